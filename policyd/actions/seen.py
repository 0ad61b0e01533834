"""What was derived before: the same evidence and the same files stand for the same actions.

Rules of this module:

1. Whatever deriving asks of the file system is noted with its answer. Before what followed is used again every question
   is asked again, and one other answer makes all of it be derived anew: nothing rests on an earlier look.
2. One decision takes one look: the same question gets the same answer while actions are derived.
3. Not kept: what rests on a question that failed or that looks at whole directories, on many of them, or on long texts.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct, field
from msgspec.structs import astuple, replace

from policyd.actions.builder import Surroundings
from policyd.actions.derive import derive
from policyd.actions.evidence import Evidence
from policyd.actions.profiles import Profile
from policyd.model import Action, Filesystem

KEPT = 256
"""Derivations that are kept."""
MOST_QUESTIONS = 32
LONGEST = 2_048
"""Bytes of what is known of a call whose actions are kept."""

_encode = msgspec.json.Encoder(enc_hook=dict).encode
Answers = dict[tuple[str, str], object]


class Witness(Struct):
    """A file system that notes what it is asked and what it answers."""

    fs: Filesystem
    answers: Answers = field(default_factory=dict)
    """Question and path -> answer."""
    steady: bool = True
    """The same answers can be asked for again."""

    def resolve(self, path: str) -> str:
        """Return the path as the kernel walks it."""
        found = self._asked("resolve", path, self.fs.resolve)
        return found if isinstance(found, str) else ""

    def is_dir(self, path: str) -> bool | None:
        """Say whether it is a directory."""
        found = self._asked("is_dir", path, self.fs.is_dir)
        return found if isinstance(found, bool) else None

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode."""
        found = self._asked("identity", path, self.fs.identity)
        return found if isinstance(found, tuple) else None

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Look below a directory."""
        self.steady = False
        return self.fs.contains(directory, names)

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """Return the names in a directory."""
        self.steady = False
        return self.fs.listing(directory)

    def _asked(self, question: str, path: str, ask: Callable[[str], object]) -> object:
        try:
            return self.answers[question, path]
        except KeyError:
            pass
        try:
            found = self.answers[question, path] = ask(path)
        except OSError:
            self.steady = False
            raise
        return found


class Seen(Struct):
    """What the calls of one session stood for, as long as its surroundings are these."""

    around: Surroundings
    known: dict[bytes, tuple[Answers, tuple[Action, ...]]] = field(default_factory=dict)
    """What calls say -> what was asked of files for them, and their actions."""

    def derive(self, evidence: Evidence, profile: Profile) -> tuple[Action, ...]:
        """Return what `derive` returns."""
        around = self.around
        key = key_of(evidence, profile) if around.fs is not None else None
        if around.fs is None or key is None:
            return derive(evidence, profile, around)
        answers, actions = self.known.get(key, ({}, ()))
        if actions and same(answers, around.fs):
            return actions
        witness = Witness(around.fs)
        actions = derive(evidence, profile, replace(around, fs=witness))
        self.known.pop(key, None)
        if witness.steady and len(witness.answers) <= MOST_QUESTIONS:
            if len(self.known) >= KEPT:
                del self.known[next(iter(self.known))]
            self.known[key] = needed(witness.answers), actions
        return actions


def key_of(evidence: Evidence, profile: Profile) -> bytes | None:
    """Return all that actions follow from beside the surroundings, None where that is long or cannot be compared."""
    said = astuple(evidence)[0 if profile.reads_id else 1 :]
    try:
        key = _encode((profile.short, said))
    except (TypeError, ValueError, RecursionError):
        return None
    return key if len(key) <= LONGEST else None


def needed(answers: Answers) -> Answers:
    """Leave out what another answer tells: where no link leads to a path, none leads to what lies above it."""
    plain = [path for (question, path), found in answers.items() if question == "resolve" and found == path]
    above = {path for path in plain if any(other.startswith(f"{path}/") for other in plain)}
    return {asked: found for asked, found in answers.items() if asked[0] != "resolve" or asked[1] not in above}


def same(answers: Answers, fs: Filesystem) -> bool:
    """Say whether the file system still answers everything as it did."""
    try:
        return all(getattr(fs, question)(path) == found for (question, path), found in answers.items())
    except OSError:
        return False
