"""Which patterns a path may concern: a filter in front of the exact judgement.

`PathIndex.candidates` returns a superset of the ids whose pattern may match in either polarity; `linear` is its
twin for tests and returns exactly those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policyd.model import PathRef, Truth, Workspace
from policyd.paths.pattern import PathPattern


@dataclass(frozen=True, slots=True)
class Linear:
    """Every pattern is judged one after the other."""

    items: tuple[tuple[PathPattern, int], ...]

    def candidates(self, ref: PathRef, workspace: Workspace) -> Iterable[int]:
        """Return the ids of all patterns that may match `ref`."""
        return [
            id_
            for pattern, id_ in self.items
            if pattern.sure(ref, workspace) or pattern.maybe(ref, workspace, None, widen=True) is not Truth.NO
        ]


def linear(items: Iterable[tuple[PathPattern, int]]) -> Linear:
    """Return the naive twin of `PathIndex`."""
    return Linear(tuple(items))


class PathIndex(Linear):
    """A filter over many patterns."""

    def __init__(self, items: Iterable[tuple[PathPattern, int]]) -> None:
        super().__init__(tuple(items))
