"""The policies in force: one for each home and set of workspace roots, reloaded when files change.

Rules of this module:

1. At start all managed and user files must be valid. Later, a bad edit of any file changes nothing and is reported; the
   last good set stays in force.
2. The denials, asks and locks of a file that vanishes stay in force until it is back or policyd restarts, even in
   sessions opened meanwhile.
3. `look` may run in a thread: it reads and compiles files; nothing is in force until `take` swaps the references.
4. With `reload = "tighten"` sessions, including later ones, are only tightened until policyd restarts. The same applies
   while a file is being written (`steady`): its loosening counts once the file is unchanged for a while.
5. `~/` is the home of the user a session belongs to: each user of a shared daemon has their own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from policyd.authorizer import broken_by
from policyd.model import Filesystem, Layer
from policyd.policy import Diagnostic, Policy, PolicyError, PolicySource
from policyd.service.change import loosens, tightened, vanished_locks, with_vanished
from policyd.service.passing import unnoticed
from policyd.service.steady import Steady
from policyd.storage import policies
from policyd.storage.places import Places
from policyd.storage.policies import Found
from policyd.storage.trust import FOLDER, TrustStore

Roots = tuple[str, ...]
Key = tuple[str, Roots]
"""A home, empty for that of this process, and workspace roots."""
BASE: Key = ("", ())
"""What holds here without a workspace."""
MOST_ROOTS = 1_000
"""Sets of workspace roots that are kept; the files of an older one are read again when it is asked for."""


class InForce(Struct, frozen=True):
    """What holds in sessions with certain roots."""

    found: Found
    """The files as they were last read."""
    policy: Policy
    broken: str = ""
    """Why everything in such a session is at least ask."""
    good: Found = field(default_factory=Found)
    """The files the policy was made of: not the last ones, where a project's were edited badly."""
    problem: str = ""
    """Why those are not the last ones."""
    before: InForce | None = None
    """What held before files began to change that may not be whole yet: nothing more is allowed."""


class Change(Struct, frozen=True):
    """The differences found by a look at the files."""

    base: Found | None = None
    in_force: dict[Key, InForce] = field(default_factory=dict)
    seen: frozenset[Key] = frozenset()
    """The homes and sets of roots that were looked at."""
    problems: tuple[str, ...] = ()
    """Why nothing, or not everything, was taken over."""
    loosens: bool = False

    @property
    def revision(self) -> str:
        """The new revision of the policy without projects, empty if it did not change."""
        return self.in_force[BASE].policy.revision if BASE in self.in_force else ""

    def words(self, revision: str) -> str:
        """Describe the change, empty if there is none; `revision` is in force now."""
        if not self.in_force:
            return ""
        how = "it may allow more than before" if self.loosens else "it only tightens"
        if any(one.before for one in self.in_force.values()):
            how = "it only tightens until its files have been the same for a second"
        return f"the policy changed: {how} (revision {revision})"


class PolicyBook:
    """The policies of one process."""

    def __init__(
        self,
        places: Places,
        *,
        files: Sequence[str] = (),
        vouched: Sequence[str] = (),
        fs: Filesystem | None = None,
        check: Callable[[Policy, str], Sequence[Diagnostic]] = lambda policy, home: (),
    ) -> None:
        """Look at nothing yet.

        Args:
            files: given with `--policy`; they stand in for the user layer.
            vouched: digests of `--policy-digest`.
            check: finds examples of rules that do not come out for whom a home is of.
        """
        self.tighten = False
        """Whether a reload may only tighten; from the settings, once they are loaded."""
        self.waits = False
        """Whether files are to be looked at again soon: they were not steady."""
        self._steady = Steady()
        self._places = places
        self._files = tuple(files)
        self._vouched = tuple(vouched)
        self._fs = fs
        self._check = check
        self._trust = TrustStore(places.trust)
        self._base = self._first = Found()
        """The managed and user files as last read, first at start."""
        self._in_force: dict[Key, InForce] = {}
        self._reported: tuple[str, ...] = ()

    def start(self) -> Policy:
        """Load what holds without a workspace.

        Raises:
            PolicyError: every mistake of every managed and user file.
        """
        self._base = self._first = self._find_base()
        self._in_force[BASE] = InForce(self._base, *self._compose(self._base, ""), good=self._base)
        self._steady.begin(self._base.sources)
        return self._in_force[BASE].policy

    @property
    def notes(self) -> tuple[str, ...]:
        """The files in policy directories that are not read."""
        return self._base.notes

    @property
    def sources(self) -> tuple[PolicySource, ...]:
        """The files of that policy, the strongest layer first."""
        return tuple(sorted(self._in_force[BASE].good.sources, key=lambda source: (-source.layer, source.name)))

    @property
    def policy(self) -> Policy:
        """What holds without a workspace."""
        return self._in_force[BASE].policy

    def of(self, roots: Sequence[str], home: str = "") -> InForce:
        """Return what holds in a session with these workspace roots. Reads the project's files the first time.

        Args:
            roots: of the session.
            home: of whom it is of; empty: this process's.

        Raises:
            PolicyError: a user's file is invalid as the project file it counts as here.
        """
        key = ("" if home == self._places.home else home, tuple(roots))
        if key not in self._in_force:
            self._in_force[key] = self._fresh(self._base, key)
            while len(self._in_force) > MOST_ROOTS:
                del self._in_force[next(each for each in self._in_force if each not in (BASE, key))]
        return self._in_force[key]

    def look(self) -> Change | None:
        """Read all files again; return what is different, None if nothing is. Safe in a thread."""
        with unnoticed():
            change = self._look()
            if change is not None:
                gc.freeze()
        return change

    def _look(self) -> Change | None:
        in_force = dict(self._in_force)
        problems: list[str] = []
        try:
            base = self._find_base()
            changed = dict(self._changes(base, in_force))
        except PolicyError as error:
            base, changed = self._base, {}
            problems = [f"the changed policy is not used: {diagnostic}" for diagnostic in error.diagnostics]
        after = {**in_force, **changed}.values()
        self.waits = not problems and any(one.before for one in after)
        said = (*problems, *(one.problem for one in after if one.problem))
        if not changed and said == self._reported:
            return None
        self._reported = said
        for new in changed.values():
            new.policy.ready()
        whole = {key: new for key, new in changed.items() if not (self.tighten or new.before)}
        looser = any(loosens(in_force[key].policy, new.policy) for key, new in whole.items())
        return Change(base, changed, frozenset(in_force), said, looser)

    def take(self, change: Change) -> list[Policy]:
        """Put a change in force: one reference each; return what it replaces, for whoever frees it.

        A session that opened meanwhile is looked at here; where a file means nothing there, the next look tells why.
        """
        before = list(self._in_force.values())
        self._base = change.base or self._base
        late = {key: one for key, one in self._in_force.items() if key not in change.seen}
        self._in_force.update(change.in_force)
        with suppress(PolicyError):
            self._in_force.update(self._changes(self._base, late))
        stay = {id(one.policy) for one in self._in_force.values()}
        return list({id(one.policy): one.policy for one in before if id(one.policy) not in stay}.values())

    def watched(self) -> list[str]:
        """Return the directories whose entries matter."""
        roots = {root for _, key in list(self._in_force) for root in key}
        places = [
            *self._places.managed_policies,
            *self._places.managed,
            *([] if self._files else [self._places.user_policies, self._places.config]),
            *(name.rpartition("/")[0] or "/" for name in self._files),
            *self._files,
            self._places.trust,
            *roots,
            *(f"{root}/{FOLDER}" for root in roots),
        ]
        return list(dict.fromkeys(places))

    # ---- loading ------------------------------------------------------------------------------------

    def _find_base(self) -> Found:
        """Find managed and user files; all faults of both at once."""
        places, files = self._places, self._files
        found, faults = policies.together(
            lambda: policies.managed(places.managed_policies), lambda: policies.user(places.user_policies, files)
        )
        if faults:
            raise PolicyError(faults)
        return found

    def _sources(self, base: Found, roots: Roots) -> Found:
        """Find everything that counts in a session with these roots."""
        found = replace(base, sources=tuple(policies.demoted(base.sources, roots, self._vouched)))
        for root in roots:
            found += policies.project(root, self._trust)
        return found

    def _compose(self, found: Found, home: str) -> tuple[Policy, str]:
        """Load files and check their examples; PolicyError unless only a project's are at fault."""
        places = replace(self._places, home=home) if home else self._places
        policy, broken = policies.compose(found, places, self._fs)
        wrong = self._check(policy, places.home)
        if home:  # the others came out at start, in the home they were written for
            wrong = [one for one in wrong if one.layer is Layer.PROJECT]
        return policy, broken or broken_by(wrong)

    def _fresh(self, base: Found, key: Key) -> InForce:
        home, roots = key
        found = self._sources(base, roots)
        if found == base and roots:
            return self.of((), home)
        self._steady.begin(found.sources)
        beside = self._in_force.get((home, ()), self._in_force[BASE])
        policy, broken, good = self._kept(found, beside, home)
        earlier = beside.before.good if beside.before else self._first
        if earlier.sources == base.sources or not (beside.before or self.tighten):
            return InForce(found, policy, broken, good)
        then = self._sources(earlier, roots)
        old, was_broken = self._compose(then, home)
        old = with_vanished(old, beside.policy, ())
        before = None if self.tighten else InForce(then, old, was_broken, then)
        return InForce(found, tightened(old, policy), broken or was_broken, good, before=before)

    def _kept(self, found: Found, old: InForce, home: str) -> tuple[Policy, str, Found]:
        """Return what files mean together with what stays of those that vanished since `old`, and what is at fault."""
        locks = tuple(vanished_locks(old.good.sources, found.sources))
        good = replace(found, sources=found.sources + locks)
        policy, broken = self._compose(good, home)
        return with_vanished(policy, old.policy, [source.name for source in found.sources]), broken, good

    def _changes(self, base: Found, in_force: dict[Key, InForce]) -> Iterator[tuple[Key, InForce]]:
        """Yield what holds anew, for each home and set of roots whose files are different."""
        for (home, roots), old in in_force.items():
            found = self._sources(base, roots)
            steady = self._steady.look(found.sources)
            same = found.sources == old.found.sources and found.broken == old.found.broken
            if same and (old.before is None or not steady):
                continue
            yield (home, roots), self._renewed(found, old, home, steady=steady)

    def _renewed(self, found: Found, old: InForce, home: str, *, steady: bool) -> InForce:
        """Return what holds after the files changed from those of `old`."""
        policy, broken, good = self._kept(found, old, home)
        problem = ""
        if broken and not old.broken:
            problem = f"the changed project policy is not used: {broken}"
            policy, broken, good = self._kept(last_good(found, old.good), old, home)
        before = old.before or old
        if self.tighten or (not steady and loosens(before.policy, policy)):
            policy = tightened(before.policy, policy)
            return InForce(found, policy, broken, good, problem, None if self.tighten else before)
        return InForce(found, policy, broken, good, problem)


def last_good(found: Found, old: Found) -> Found:
    """Return what was found with the project files of before: the new ones are broken.

    Trust was in bytes that are no longer there: of what they allowed only that stays which is there and trusted now.
    """
    others = [source for source in found.sources if source.layer is not Layer.PROJECT]
    before = [source for source in old.sources if source.layer is Layer.PROJECT]
    still = [one if one in found.sources else replace(one, trusted=False) for one in before]
    return Found((*others, *still), found.notes)


def stated(policy: Policy, path: str = "") -> dict[str, object]:
    """Return what records say of a policy: its revision, and by layer and path what its files call themselves.

    `path` stands in the place of every path where it is given.
    """
    names = [replace(one, file=path) if path else one for one in policy.names]
    return {"revision": policy.revision, "names": [to_builtins(one) for one in names]}
