"""Mistakes in a policy, reported all at once, each with what to write instead.

Style of a message: `file:line: rule "id": what was found; what to write`, lower case, user input in backticks, no
type names, no final stop.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from policyd.model import Layer


class Diagnostic(Struct, frozen=True):
    """One mistake of a policy's author."""

    file: str
    line: int
    """1-based; 0 where the file as a whole is meant."""
    rule: str
    """Id of the rule or default, empty outside of one."""
    found: str
    write: str = ""
    layer: Layer = Layer.USER

    def __str__(self) -> str:
        """The message as every command prints it."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        rule = f'rule "{self.rule}": ' if self.rule else ""
        return f"{place}: {rule}{self.found}" + (f"; {self.write}" if self.write else "")


class PolicyError(Exception):
    """A policy that does not load: the author's fault. Carries every diagnostic of every file."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Sort the diagnostics by file and line."""
        self.diagnostics = sorted(diagnostics, key=lambda d: (d.file, d.line, d.rule, d.found))
        super().__init__("\n".join(map(str, self.diagnostics)))


class Mistake(ValueError):  # noqa: N818 - the word of every message
    """One mistake inside a block, before its place is known: what was found, what to write, the key it stands at."""

    def __init__(self, found: str, write: str = "", *, key: str = "", text: str = "") -> None:
        """Name the key, and the text inside its value, so that the line can be found."""
        super().__init__(found)
        self.found, self.write, self.key, self.text = found, write, key, text


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known word that `word`, in whatever letter case, most likely stands for; empty where none is near."""
    from difflib import get_close_matches

    words = {each.lower(): each for each in known}
    return next((words[each] for each in get_close_matches(word.lower(), list(words), n=1, cutoff=cutoff)), "")


def listed(words: Iterable[str]) -> str:
    """Return the words as messages list them: `a`, `b`, `c`."""
    return ", ".join(f"`{word}`" for word in words)
