"""Programs that may have an open-ended "always", and the further words it covers. Data in `programs.toml`."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

ANY_WORD = "*"
RESPONSE_FILE = "@"
"""In `never`: a word `@file`, which stands for options in that file."""


class Program(Struct, frozen=True):
    """A row of `programs.toml`."""

    words: tuple[str, ...]
    dashes: bool = False
    never: tuple[str, ...] = ()

    def leads(self, words: tuple[str, ...]) -> bool:
        """Say whether `words` begin with this row's words."""
        if len(words) < len(self.words):
            return False
        pairs = zip(self.words, words, strict=False)
        return all(_plain(got) if want == ANY_WORD else got == want for want, got in pairs)

    def covers(self, rest: tuple[str, ...]) -> bool:
        """Say whether an "always" for the leading words also covers the further words `rest`."""
        own = rest[: rest.index("--")] if self.dashes and "--" in rest else rest
        if self.dashes:
            return not any(word.startswith("-") for word in own)
        return not any(_is_option(word, option) for word in own for option in self.never)


def prefix(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the leading words of a command for an open-ended "always", None if it may have none."""
    row = _row(words)
    if row is None or not row.covers(words[len(row.words) :]):
        return None
    return words[: len(row.words)]


def covered(words: tuple[str, ...], lead: tuple[str, ...]) -> bool:
    """Say whether an open-ended grant for `lead` covers the command `words`."""
    row = _row(words)
    return (
        row is not None
        and words[: len(lead)] == lead
        and len(row.words) == len(lead)
        and row.covers(words[len(lead) :])
    )


def limits(words: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Return whether further options of a command count only behind `--`, and which an "always" never covers."""
    row = _row(words)
    if row is None:
        return False, ()
    return row.dashes, tuple(option for option in row.never if option != RESPONSE_FILE)


def _row(words: tuple[str, ...]) -> Program | None:
    return next((row for row in _rows() if row.leads(words)), None)


@cache
def _rows() -> tuple[Program, ...]:
    import tomllib
    from importlib.resources import files

    table = tomllib.loads(files("policyd.grants").joinpath("programs.toml").read_text("utf-8"))
    rows = (
        Program(tuple(row["words"]), bool(row.get("dashes", False)), tuple(row.get("never", ())))
        for row in table["program"]
    )
    return tuple(sorted(rows, key=lambda row: -len(row.words)))


def _plain(word: str) -> bool:
    return bool(word) and not word.startswith("-")


def _is_option(word: str, option: str) -> bool:
    """Say whether `word` may be `option` in any spelling: abbreviated, glued, in a cluster, one dash or two."""
    if option == RESPONSE_FILE:
        return word.startswith(option)
    if not word.startswith("-"):
        return False
    name, bare = option.lstrip("-"), word.lstrip("-").split("=")[0]
    if len(name) == 1:
        return word.startswith("-") and not word.startswith("--") and name in word
    return bool(bare) and (name.lower().startswith(bare.lower()) or bare.lower() == name.lower())
