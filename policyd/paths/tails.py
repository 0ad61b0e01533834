"""What a pattern says below its directory: a sequence of segments, matched without backtracking.

`**` stands for any number of segments, none included. A path below the directory is given as `rest`: its
segments joined by `/`, empty for the directory itself. The frequent shapes have matchers of their own; all others
keep the set of positions the pattern may be at, which is also how the rest of a pattern *below* a path is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct
from msgspec.structs import force_setattr

from policyd.paths.segments import DEEP, Matcher, Segment, covers, meets, never

States = frozenset[int]


class Tail(Struct, frozen=True, dict=True):
    """The segments of a pattern behind its directory."""

    segments: tuple[Segment, ...]
    matches: Matcher = never
    """Say whether the tail matches `rest`."""

    def __post_init__(self) -> None:
        """Choose the quickest way to match."""
        force_setattr(self, "matches", _matcher(self))

    @cached_property
    def widened(self) -> Tail:
        """The tail that also covers everything below what it matches."""
        return self if self.segments[-1:] == (DEEP,) else tail_of((*self.segments, DEEP))

    def fold(self) -> Tail:
        """Return the tail for text that is case-folded before it is matched."""
        return Tail(tuple(s if s is DEEP else s.fold() for s in self.segments))

    def whole(self) -> bool:
        """Say whether what it matches always includes everything below."""
        return self.segments[-1:] == (DEEP,)

    # ---- positions ---------------------------------------------------------------------------------

    def start(self) -> States:
        """Return the positions before the first segment of a path."""
        return settle(self.segments, {0})

    def step(self, states: Iterable[int], name: str) -> States:
        """Return the positions behind the segment `name`."""
        return step(self.segments, states, name)

    def step_glob(self, states: Iterable[int], glob: Segment, *, sure: bool) -> States:
        """Return the positions behind a segment of a shell glob: of every name (`sure`) or of any."""
        fits, segments = (covers if sure else meets), self.segments
        after = set()
        for i in states:
            if i < len(segments) and segments[i] is DEEP:
                after.add(i)
            elif glob is not DEEP and i < len(segments) and fits(segments[i], glob):
                after.add(i + 1)
        if glob is DEEP and not sure:
            after.update(states, self._ahead(states))
        return settle(segments, after)

    def ends(self, states: Iterable[int]) -> bool:
        """Say whether a path that leads to these positions is matched."""
        return len(self.segments) in states

    def residue(self, states: Iterable[int]) -> tuple[str, ...]:
        """Return what may still match below, as patterns relative to the path that led here."""
        rests = self.rests
        return tuple([rests[i] for i in sorted(states) if i < len(rests)])

    @cached_property
    def rests(self) -> tuple[str, ...]:
        """What is left at each position, as written: without a `**` at the end, for what is below is looked at too."""
        end = len(self.segments) - self.whole()
        return tuple("/".join(s.source for s in self.segments[i:end]) for i in range(end))

    def run(self, rest: str) -> States:
        """Return the positions behind all segments of `rest`."""
        return run(self.segments, rest)

    def below(self, rest: str) -> tuple[str, ...]:
        """Return what may still match below `rest`, as patterns relative to it."""
        if self.floating_name:  # as many as most patterns are: what led here changes nothing
            return self.rests
        return self.residue(self.run(rest))

    @cached_property
    def floating_name(self) -> bool:
        """Whether it is one name at any depth, with or without what lies below."""
        return tuple(segment is DEEP for segment in self.segments) in ((True, False), (True, False, True))

    def run_glob(self, globs: Sequence[Segment], *, sure: bool) -> States:
        """Return the positions behind the segments of a shell glob."""
        states = self.start()
        for glob in globs:
            if not states:
                break
            states = self.step_glob(states, glob, sure=sure)
        return states

    def _ahead(self, states: Iterable[int]) -> set[int]:
        """Positions any number of segments on: all from the first."""
        return set(range(min(states, default=len(self.segments) + 1), len(self.segments) + 1))


@lru_cache(1024)
def tail_of(segments: tuple[Segment, ...]) -> Tail:
    """Return the tail of some segments: many patterns end alike."""
    return Tail(segments)


def settle(segments: tuple[Segment, ...], states: set[int]) -> States:
    """Return the positions and those behind the `**` at them."""
    result = set(states)
    for i in states:
        while i < len(segments) and segments[i] is DEEP:
            i += 1
            result.add(i)
    return frozenset(result)


def step(segments: tuple[Segment, ...], states: Iterable[int], name: str) -> States:
    """Return the positions behind the segment `name`."""
    after = set()
    for i in states:
        if i == len(segments):
            continue
        if segments[i] is DEEP:
            after.add(i)
        elif segments[i].matches(name):
            after.add(i + 1)
    return settle(segments, after)


def run(segments: tuple[Segment, ...], rest: str) -> States:
    """Return the positions behind all segments of `rest`."""
    states = settle(segments, {0})
    for name in rest.split("/") if rest else ():
        if not states:
            break
        states = step(segments, states, name)
    return states


def _matcher(tail: Tail) -> Matcher:
    segments = tail.segments
    deep = tuple(segment is DEEP for segment in segments)
    if deep == ():
        return lambda rest: not rest
    if deep == (True,):
        return lambda rest: True
    if deep == (False,):
        return _name(segments[0].matches)
    if deep == (False, True):
        return _top(segments[0].matches)
    if deep == (True, False):
        return _base(segments[1].matches)
    if deep == (True, False, True):
        return _anywhere(segments[1])
    return lambda rest: len(segments) in run(segments, rest)  # not of the tail: it would hold itself


def _name(matches: Matcher) -> Matcher:
    return lambda rest: bool(rest) and "/" not in rest and matches(rest)


def _top(matches: Matcher) -> Matcher:
    return lambda rest: bool(rest) and matches(rest.partition("/")[0])


def _base(matches: Matcher) -> Matcher:
    return lambda rest: bool(rest) and matches(rest[rest.rfind("/") + 1 :])


def _anywhere(segment: Segment) -> Matcher:
    name = segment.literal
    if name is not None:
        return lambda rest: name in rest and name in rest.split("/")
    matches = segment.matches
    return lambda rest: bool(rest) and any(map(matches, rest.split("/")))
