"""Tables of hundreds of rows: one test for each few of them, every row tried, each that fails told.

A test has a cost of its own, which is many times that of most rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

SHOWN = 300


def in_groups(rows: Iterable[Sequence[Any]], size: int = 25) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each of `rows`, `size` rows being one test."""
    listed = list(rows)
    starts = range(0, len(listed), size)
    assert listed, "no rows, no test"

    def grouped(test: Callable[..., None]) -> Callable[..., None]:
        def over(start: int) -> None:
            try_each(test, listed[start : start + size])

        over.__name__, over.__doc__, over.__module__ = test.__name__, test.__doc__, test.__module__
        names = [f"{start + 1}-{min(start + size, len(listed))}" for start in starts]
        return pytest.mark.parametrize("start", starts, ids=names)(over)

    return grouped


def try_each(test: Callable[..., None], rows: Sequence[Sequence[Any]]) -> None:
    """Call `test` with each row, and fail with all that failed; a row cannot skip."""
    wrong = []
    for row in rows:
        try:
            test(*row)
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
            error.add_note(f"in the row {repr(row)[:SHOWN]}")
            wrong.append(error)
    if wrong:
        raise BaseExceptionGroup(f"{len(wrong)} of {len(rows)} rows fail", wrong)
