"""What a target is, and how one input is put to it."""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

LONGEST = 4096
"""Bytes of an input; longer ones say nothing shorter ones do not, and take time."""


class LawBroken(AssertionError):  # noqa: N818 - what it is called where it is read
    """An input for which a law does not hold."""


class TooSlow(BaseException):
    """An input that took more processor time than any may."""


@dataclass(frozen=True, slots=True)
class Target:
    """Laws on bytes."""

    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()
    """What mutations insert: the words of the language."""
    twist: Callable[[random.Random, bytes], bytes] | None = None
    """Mutation that knows the language."""
    seconds: float = 1.0
    """Processor time one input may take."""


def hold(true: object, words: str, *shown: object) -> None:
    """Demand that something is true.

    Raises:
        LawBroken: it is not.
    """
    if not true:
        raise LawBroken(": ".join([words, *(repr(one)[:300] for one in shown)]))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, in seconds of processor time.

    Raises:
        TooSlow: it took longer.
    """
    began = time.process_time()
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if time.process_time() - began > seconds:
        raise TooSlow(f"took {time.process_time() - began:.1f} s")


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooSlow("was interrupted")


def broken(target: Target, data: bytes, slack: float = 1.0) -> tuple[str, str] | None:
    """Put one input to a target; return where and how it broke a law, None if it did not."""
    try:
        with limited(target.seconds * slack):
            target.check(data)
    except (Exception, TooSlow) as error:
        last = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != "hold"][-1]
        kind = type(error).__name__
        place = kind if isinstance(error, TooSlow) else f"{kind} {last.filename.rpartition('/')[2]}:{last.lineno}"
        return place, "".join(traceback.format_exception(error)[-12:])
    return None
