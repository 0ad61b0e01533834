"""Replacing a policy without delaying messages: slow work is done in a thread, in small pieces.

Rules of this module:

1. While a thread loads a policy the garbage collector is off, and the new objects are frozen before it is on again: it
   would scan ten thousand rules at once, and block everything.
2. A policy that is no longer needed is freed rule by rule: freeing it at once takes as long as a hundred messages.
3. Nothing here changes a policy: references to its parts are only dropped one by one.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from policyd.policy import Policy


@contextmanager
def unnoticed() -> Iterator[None]:
    """Keep the collector from stopping the loop while a thread makes ten thousand rules.

    Whoever made something large says `gc.freeze()` before the end.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def let_go(policies: list[Policy]) -> None:
    """Free policies that are in force no more; takes over the list, returns at once."""
    if policies:
        with suppress(RuntimeError):  # no thread is to be had: they are freed at once, and everybody waits
            Thread(target=free, args=(policies,), name="policyd free", daemon=True).start()


def free(policies: list[Policy]) -> None:
    """Free policies part by part."""
    parts = deque(part for policy in policies for part in policy.parts())
    policies.clear()
    while parts:
        parts.popleft()
