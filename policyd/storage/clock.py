"""The two clocks by which grants expire: the wall clock, and the boot clock, which never jumps."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache

from policyd.grants import Clock

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def now() -> Clock:
    """Return the time by both clocks."""
    return Clock(datetime.now(UTC), boot_seconds(), boot_id())


def boot_seconds() -> float:
    """Return the seconds since the machine started, suspend included (macOS' monotonic clock counts it too)."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def boot_id() -> str:
    """Return the id of this boot of the machine, empty if unknown."""
    try:
        with open(BOOT_ID, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return _boot_session()


def _boot_session() -> str:
    """Return macOS' name of this start of the machine."""
    import ctypes

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        buffer, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        failed = libc.sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    except (OSError, AttributeError):
        return ""
    return "" if failed else buffer.value.decode("ascii", "replace")
