"""What a shell text would run: words, simple commands, and the files and URLs they name."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from policyd.model.files import Reach
from policyd.model.words import Role


class WordKind(StrEnum):
    """What is known of a word of a command."""

    CONST = "const"
    GLOB = "glob"
    UNKNOWN = "unknown"


CONST, GLOB, UNKNOWN = WordKind.CONST, WordKind.GLOB, WordKind.UNKNOWN
"""Aliases: access to a member of an enumeration is slow, and happens many times for each word."""


MOVERS = frozenset({"cd", "chdir", "pushd", "popd"})
"""Builtins that change a shell's directory; here, because `commands` is not loaded at start."""


class Word(Struct, frozen=True, gc=False, cache_hash=True):
    """One word of a command after quote removal, brace expansion and folding of what is constant."""

    text: str
    """CONST: the value. GLOB: the pattern, quoted characters backslashed. UNKNOWN: the source text."""
    kind: WordKind = WordKind.CONST
    prefix: str = ""
    """UNKNOWN: the constant characters in front of the first unknown one (`--output=` of `--output=$X`)."""
    many: bool = False
    """UNKNOWN: unquoted, so it may become no word, one or several."""


class Assignment(Struct, frozen=True, gc=False):
    """A variable set for a command or before it."""

    name: str
    value: Word
    exported: bool = False


class SimpleCommand(Struct, frozen=True, gc=False, cache_hash=True):
    """One simple command a shell text would run."""

    argv: tuple[Word, ...]
    text: str
    """Its source text, for people."""
    env: tuple[Assignment, ...] = ()
    """Its prefix assignments, harmless ones included."""
    taint: tuple[Assignment, ...] = ()
    """Variables set earlier in the text that are not harmless: an allow rule must tolerate each."""
    tainted: str = ""
    """Why nothing after this point can be trusted (`alias`, a function, `source`), whatever `env` a rule has."""
    cwd: tuple[str, ...] = ()
    """Every directory it may run in, absolute, links unresolved; empty = unknown."""
    inner: SimpleCommand | None = None
    """What a transparent wrapper (`timeout 60 …`) runs; an allow holds for either."""
    via: tuple[str, ...] = ()
    """The wrappers it was reached through (`sudo`, `xargs`, `bash -c`), outermost first."""
    chdir: str | None = None
    """`cd X` with a constant X: the directory as an absolute path. No action for allow if inside."""
    idle: bool = False
    """`true`, `pwd`, `:`, `set -e`: needs no allow of its own; strict rules still see it."""
    strict_only: bool = False
    """One possible interpretation only (zsh text, argv joined to text): no allow rule ever holds."""
    fed: str = ""
    """Its input: `|` for another command's output, else the source of its here-documents and here-strings, or empty.

    A remembered answer is for the same words with the same input.
    """
    behind: tuple[str, ...] = ()
    """The words of the wrappers in front of it (`uv run`, `sudo -u kim`), if it and they are written out literally."""
    texts: tuple[tuple[str, ...], ...] = ()
    """All words of each wrapper whose text argument contains it (`bash -c 'make test'`), innermost first."""
    far: tuple[SimpleCommand, ...] = ()
    """What it runs on another machine or in a container, as far as known; only deny and ask rules see it."""


class FileUse(Struct, frozen=True, gc=False):
    """A file a command names, and what is done to it."""

    kind: str
    """read, edit, delete, move, search, or execute for code from elsewhere; for a mention the likeliest.

    The kind of a mention counts only if it is `known`, or the reach is `UNTOLD`.
    """
    word: Word
    role: Role
    command: int
    """Index in `Reading.commands` of the command that names it; -1: the value of a variable does."""
    reach: Reach = Reach.ENTRY
    carried: bool = False
    """An allow of the command carries it inside the workspace."""
    cwd: tuple[str, ...] = ()
    unknown: str = ""
    """Why the operand is not known; it is then an opaque action of its kind."""
    skips_hidden: bool = False
    """See `PathRef.skips_hidden`."""
    endings: tuple[str, ...] = ()
    """See `PathRef.endings`."""
    filled_from: tuple[str, ...] = ()
    """What is copied or moved here, as written; empty = nothing, or not known."""
    known: bool = False
    """Of a mention: if it names a file, nothing but `kind` is done to it."""


class UrlUse(Struct, frozen=True, gc=False):
    """A URL a command names."""

    text: str
    role: Role
    command: int


class Reading(Struct, frozen=True, gc=False):
    """Everything a command text would do, as far as known."""

    commands: tuple[SimpleCommand, ...] = ()
    files: tuple[FileUse, ...] = ()
    urls: tuple[UrlUse, ...] = ()
    opaque: tuple[str, ...] = ()
    """Why some parts could not be understood, in words; the others are still included."""
    backs: tuple[str, ...] = ()
    """The lexical target of `cd ../x`, which is wrong if links are on the way."""
