"""What a shell text would run: words, simple commands, the files and URLs they name."""

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
"""The kinds by names of their own: a member of an enumeration is looked up in three classes, many times a word."""


MOVERS = frozenset({"cd", "chdir", "pushd", "popd"})
"""Builtins that take a shell to another directory: here, for a start loads nothing that reads commands."""


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
    """Why nothing after this point can be trusted (`alias`, a function, `source`); no `env` lifts it."""
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
    """One possible reading only (zsh text, argv joined to text): no allow rule ever holds."""
    fed: str = ""
    """What it reads as input: `|` another command's output, else the source of its here-documents and here-strings.

    A remembered answer is for the same words with the same input; empty = neither is written.
    """
    behind: tuple[str, ...] = ()
    """The words of the wrappers in front of it (`uv run`, `sudo -u kim`), where it and all of them stand as written."""
    texts: tuple[tuple[str, ...], ...] = ()
    """All words of each wrapper that was given a text it stands in (`bash -c 'make test'`), innermost first."""
    far: tuple[SimpleCommand, ...] = ()
    """What it runs on another machine or in a container, as far as that is told: for deny and ask rules alone."""


class FileUse(Struct, frozen=True, gc=False):
    """A file a command names, and what is done to it."""

    kind: str
    """read, edit, delete, move, search, or execute for code from elsewhere; for a mention the likeliest.

    Of a mention it is judged only where it is `known`, or the reach untold.
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
    """Why the operand cannot be told; it is then an opaque action of its kind."""
    skips_hidden: bool = False
    """See `PathRef.skips_hidden`."""
    endings: tuple[str, ...] = ()
    """See `PathRef.endings`."""
    filled_from: tuple[str, ...] = ()
    """What is copied or moved here, as written; empty = nothing, or it cannot be told."""
    known: bool = False
    """Of a mention: if it names a file, nothing but `kind` is done to it."""


class UrlUse(Struct, frozen=True, gc=False):
    """A URL a command names."""

    text: str
    role: Role
    command: int


class Reading(Struct, frozen=True, gc=False):
    """Everything a command text would do, as far as it can be told."""

    commands: tuple[SimpleCommand, ...] = ()
    files: tuple[FileUse, ...] = ()
    urls: tuple[UrlUse, ...] = ()
    opaque: tuple[str, ...] = ()
    """Why a part could not be understood, in words; beside the parts that were."""
    backs: tuple[str, ...] = ()
    """Where `cd ../x` leads, as it is spelled from where the shell is: elsewhere, if links are on the way."""
