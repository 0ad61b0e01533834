"""Paths in every spelling, workspaces, and the file-system interface."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field


class Filesystem(Protocol):
    """What the core may ask about files. Production code passes a real one; tests pass a dictionary."""

    def resolve(self, path: str) -> str:
        """Return the absolute `path` as the kernel walks it, link by link, `..` after each link.

        Components that do not exist are kept below the nearest existing ancestor.

        Raises:
            OSError: a loop, a denied directory, a name too long: the path is then opaque.
        """

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Say whether a bounded search below `directory` finds an entry matching one of `names`.

        `names` are path patterns without a literal head, such as `.env` or `**/*.pem`. None: not searched, or more
        entries than the bound.
        """

    def is_dir(self, path: str) -> bool | None:
        """Say whether `path` is an existing directory; None if unknown."""

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode of an existing file, None where there is none."""

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """Return the names in `directory` (bounded), None if unknown."""

    def identities(self, places: tuple[str, ...], most: int) -> frozenset[tuple[int, int]] | None:
        """Return device and inode of every file among and below `places`.

        None: more than `most` files and directories, or some cannot be listed.
        """


class Reach(StrEnum):
    """How far an operation on a path goes below it."""

    ENTRY = "entry"
    """Only the entry itself."""
    NAMES = "names"
    """Lists names below (`find`, `ls -R`): reaches no pattern below."""
    CONTENT = "content"
    """Reads, copies, moves or removes what lies below (`grep -r`, `rm -r`, `tar`)."""
    FILES = "files"
    """Reads a file, or the files of a directory (`diff`): resolved to `ENTRY` or `CONTENT` by looking at the disk."""
    UNTOLD = "untold"
    """Changes, creates or removes files below that no word names, as a patch or an archive does."""
    LINK = "link"
    """Makes a link of this name: what is put where it leads lies below the name as well."""


BELOW = frozenset({Reach.CONTENT, Reach.UNTOLD})
"""Operations that concern the files below a directory."""


class PathRef(Struct, frozen=True, gc=False):
    """One path a request names, in every spelling it may stand for."""

    text: str
    """As stated."""
    forms: tuple[str, ...]
    """Absolute, normalised, NFC; never empty. First as written, then as the kernel resolves it, decoded, …"""
    reach: Reach = Reach.ENTRY
    glob: bool = False
    """The forms are shell globs (quoted characters escaped), judged by what they can match."""
    inside: bool = False
    """Every form lies in a root that is a workspace for allow."""
    folded: bool = False
    """Ignore letter case (macOS); only ever widens strict rules."""
    skips_hidden: bool = False
    """Entries below with a leading dot are not reached (`rg` without `--hidden`)."""
    endings: tuple[str, ...] = ()
    """Of the files below, only those with these endings are reached (`black .`); empty = all."""
    filled_from: tuple[str, ...] = ()
    """The directories whose content is copied here: of the files below, only those in them are reached."""
    found: tuple[str, ...] | None = None
    """The existing paths that a shell expands the glob to, absolute, NFC; None: not looked up, none, or incomplete."""


class Workspace(Struct, frozen=True, gc=False):
    """The roots of a session, resolved when it opened."""

    cwd: str | None
    """The session's working directory as written; None while no session has opened."""
    roots: tuple[str, ...]
    """Every spelling of every root (as written, as resolved): relative strict patterns start there."""
    sound: tuple[str, ...]
    """The spellings that are a workspace for allow rules; `/`, home and their ancestors never are."""
    home: str
    tmpdir: str = "/tmp"
    unsound: tuple[str, ...] = ()
    """Why roots were refused as a workspace for allow rules, in words."""
    heads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Literal head of a relative pattern -> the absolute directories it stands for in this session."""
    fold_case: bool = False
