"""The patterns of `Filesystem.contains`, compiled."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from policyd.paths.segments import DEEP, Segment
from policyd.paths.syntax import segment, split
from policyd.paths.tails import Tail


class LookedFor(Struct, frozen=True):
    """One pattern, relative to the directory of the look."""

    tail: Tail
    last: Segment
    """What the last name of a match looks like."""

    @property
    def floats(self) -> bool:
        """Whether it may begin at any depth."""
        return self.tail.segments[0] is DEEP


@lru_cache(1_024)
def looked_for(names: tuple[str, ...], *, fold_case: bool = False) -> tuple[LookedFor, ...]:
    """Compile the names of a look; one without `/` is looked for at any depth.

    Raises:
        PatternError: a name that is no pattern.
    """
    return tuple(_one(name, fold_case) for name in names)


def _one(name: str, fold_case: bool) -> LookedFor:
    segments = tuple(segment(part, name) for part in split(name) if part)
    if len(segments) == 1:
        segments = (DEEP, *segments)
    tail = Tail(segments).fold() if fold_case else Tail(segments)
    return LookedFor(tail, next((each for each in reversed(tail.segments) if each is not DEEP), DEEP))
