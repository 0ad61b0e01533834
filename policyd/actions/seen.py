"""A cache of derived actions: the same evidence and the same files mean the same actions.

Rules of this module:

1. Every question to the file system while deriving is recorded with its answer. Before the result is used again every
   question is asked again, and one different answer makes it be derived afresh: nothing rests on an earlier look.
2. A result is kept from the second time on; what comes once costs only a look at its key.
3. Not kept: results that rest on a question that failed or that looks at other users' directories, on many questions,
   or on long texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import astuple, replace

from policyd.actions.builder import Surroundings
from policyd.actions.derive import derive
from policyd.actions.evidence import Evidence
from policyd.actions.profiles import Profile
from policyd.model import Action, Filesystem

Answer = TypeVar("Answer")
KEPT = 256
"""Derivations that are kept."""
MET = 4_096
"""Calls of which it is known that they came once."""
MOST_QUESTIONS = 32
LONGEST = 2_048
"""Bytes of what is known of a call whose actions are kept."""

_encode = msgspec.msgpack.Encoder(enc_hook=dict).encode
"""To JSON what is no number is nothing, and bytes are a text; here no two values that differ are alike."""


class Witness(Struct):
    """A file system that records every question and answer; the same question gets the same answer."""

    fs: Filesystem
    walks: dict[str, str] = field(default_factory=dict)
    directories: dict[str, bool | None] = field(default_factory=dict)
    files: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    own: dict[tuple[tuple[str, ...], int], frozenset[tuple[int, int]] | None] = field(default_factory=dict)
    repeatable: bool = True
    """The same answers can be asked for again."""

    def resolve(self, path: str) -> str:
        """Return the path as the kernel walks it."""
        return self._asked(self.walks, self.fs.resolve, path)

    def is_dir(self, path: str) -> bool | None:
        """Say whether it is a directory."""
        return self._asked(self.directories, self.fs.is_dir, path)

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode."""
        return self._asked(self.files, self.fs.identity, path)

    def _asked(self, known: dict[str, Answer], ask: Callable[[str], Answer], path: str) -> Answer:
        if path not in known:
            try:
                known[path] = ask(path)
            except OSError:
                self.repeatable = False
                raise
        return known[path]

    def identities(self, places: tuple[str, ...], most: int) -> frozenset[tuple[int, int]] | None:
        """Return device and inode of all files among and below `places`."""
        if (places, most) not in self.own:
            self.own[places, most] = found = self.fs.identities(places, most)
            self.repeatable &= found is not None
        return self.own[places, most]

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Look below a directory."""
        self.repeatable = False
        return self.fs.contains(directory, names)

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """Return the names in a directory."""
        self.repeatable = False
        return self.fs.listing(directory)

    def may_be_kept(self) -> bool:
        """Say whether the result may be kept; if so, drop the answers that others imply."""
        if not self.repeatable or len(self.walks) + len(self.directories) + len(self.files) > MOST_QUESTIONS:
            return False
        plain = [path for path, found in self.walks.items() if path == found]
        for path in plain:  # where no link leads to a path, none leads to what lies above it
            if any(other.startswith(f"{path}/") for other in plain):
                del self.walks[path]
        return True

    def holds(self) -> bool:
        """Say whether the file system still answers everything as it did."""
        fs = self.fs
        try:
            for path, walked in self.walks.items():
                if fs.resolve(path) != walked:
                    return False
            for path, directory in self.directories.items():
                if fs.is_dir(path) is not directory:
                    return False
            for path, identity in self.files.items():
                if fs.identity(path) != identity:
                    return False
            return not self.own or all(fs.identities(*asked) == found for asked, found in self.own.items())
        except OSError:
            return False


class Seen(Struct):
    """The actions derived for the calls of one session, as long as its surroundings stay the same."""

    around: Surroundings
    profile: Profile | None = None
    """The one that read all of them: one of the same name may read otherwise, for another version."""
    known: dict[bytes, tuple[Witness, tuple[Action, ...]]] = field(default_factory=dict)
    """What calls say -> what was asked of files for them, and their actions."""
    met: set[int] = field(default_factory=set)
    """Hashes of what calls said that came before."""

    def derive(self, evidence: Evidence, profile: Profile) -> tuple[Action, ...]:
        """Return what `derive` returns."""
        around = self.around
        if profile is not self.profile:
            self.profile = profile
            self.known.clear()
        key = key_of(evidence, profile) if around.fs is not None else None
        if around.fs is None or key is None or self._first(key):
            return derive(evidence, profile, around)
        witness, actions = self.known.get(key, (None, ()))
        if witness is not None and witness.holds():
            return actions
        witness = Witness(around.fs)
        actions = derive(evidence, profile, replace(around, fs=witness))
        self.known.pop(key, None)
        if witness.may_be_kept():
            if len(self.known) >= KEPT:
                del self.known[next(iter(self.known))]
            self.known[key] = witness, actions
        return actions

    def _first(self, key: bytes) -> bool:
        """Say whether a call is new, and note it."""
        mark = hash(key)
        if mark in self.met:
            return False
        if len(self.met) >= MET:
            self.met.clear()
        self.met.add(mark)
        return True


def key_of(evidence: Evidence, profile: Profile) -> bytes | None:
    """Return all that actions depend on beside surroundings and profile, None if it is long or not comparable."""
    said = astuple(evidence)[0 if profile.reads_id else 1 :]
    try:
        key = _encode(said)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return key if len(key) <= LONGEST else None
