"""Paths: every spelling that a path in a request may stand for, and the patterns that match it.

Rules of this package:

1. Loosening is judged surely, tightening widely: `PathPattern.sure` and `PathPattern.maybe` (see `pattern`).
2. Files are looked at only through the `Filesystem` passed in; an unknown path is opaque, never guessed.
3. Time is bounded for any text and any pattern: segments and tails are matched without backtracking.
4. The index is only a filter: it may return too many patterns, never too few.
"""

from policyd.paths.drives import of_windows, posix
from policyd.paths.forms import OpaquePath, ref
from policyd.paths.index import PathIndex
from policyd.paths.lexical import inside
from policyd.paths.names import LookedFor, looked_for
from policyd.paths.pattern import PathPattern
from policyd.paths.roots import open_workspace, with_heads
from policyd.paths.segments import escape
from policyd.paths.syntax import PatternError

__all__ = [
    "LookedFor",
    "OpaquePath",
    "PathIndex",
    "PathPattern",
    "PatternError",
    "escape",
    "inside",
    "looked_for",
    "of_windows",
    "open_workspace",
    "posix",
    "ref",
    "with_heads",
]
