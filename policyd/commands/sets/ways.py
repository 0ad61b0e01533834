"""Other ways to a program: `python -m mypy`, `.venv/bin/mypy` and `poetry run mypy` are all `mypy`.

Rules of this module:

1. A way is the words in front of the program (`poetry run`), or the directory it lies in (`.venv/bin/`).
2. Only constant words are a way; behind it stands a bare name, and an entry of a set is asked about that.
3. Some (yarn 1) do not hand on the first `--`: what stands behind it are options of the program as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from policyd.commands.argv.options import key
from policyd.commands.lexing.patternwords import PatternWord
from policyd.commands.matching.patterns import CommandPattern, exactly
from policyd.commands.state.variables import near
from policyd.model import SimpleCommand, Word, WordKind


class Ways(Struct):
    """Ways to the programs of one kind."""

    folders: tuple[str, ...]
    words: tuple[tuple[PatternWord, ...], ...]
    programs: frozenset[str]
    """The programs they begin with."""
    found: dict[object, tuple[SimpleCommand, ...]]
    """What was found behind them, by the words of the command; words recur."""

    def behind(self, level: SimpleCommand) -> tuple[SimpleCommand, ...]:
        """Return the commands that a level of a command reaches this way: one, hardly ever more, mostly none."""
        name = (key(level.argv), level.cwd)
        known = self.found.get(name)
        if known is None:
            if len(self.found) >= _KEPT:
                self.found.clear()
            known = self.found[name] = tuple(replace(level, argv=rest) for rest in self._rests(level))
        return known

    def _rests(self, level: SimpleCommand) -> Iterator[tuple[Word, ...]]:
        first, *more = level.argv or (Word(""),)
        text = _near(first, level.cwd)
        for folder in self.folders:
            if text.startswith(folder):
                yield from _bare((Word(text[len(folder) :]), *more))
        for words in self.words:
            if exactly(words, level):
                yield from _bare(_handed(level.argv[len(words) - 1 :]))


_KEPT = 1024


def _near(word: Word, cwd: tuple[str, ...]) -> str:
    """Return a program as it is written where the command runs, nothing where it is not constant."""
    if word.kind is not WordKind.CONST:
        return ""
    return near(word.text, cwd[0]) if len(cwd) == 1 else word.text


_END = Word("--")


def _handed(rest: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words without the first `--`."""
    at = rest.index(_END) if _END in rest else len(rest)
    return (*rest[:at], *rest[at + 1 :])


def _bare(rest: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    if rest and rest[0].kind is WordKind.CONST and rest[0].text and "/" not in rest[0].text:
        yield rest


def compiled(texts: Iterable[str]) -> Ways:
    """Read ways as a set writes them: a text that ends in `/` is a folder, any other words with braces and `*`."""
    patterns = [CommandPattern.compile(f"{text} **", home="~") for text in texts if not text.endswith("/")]
    words = tuple(alternative for pattern in patterns for alternative in pattern.alternatives)
    programs = frozenset[str]().union(*(pattern.programs or frozenset() for pattern in patterns))
    return Ways(tuple(text for text in texts if text.endswith("/")), words, programs, {})
