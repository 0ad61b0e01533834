"""The daemon's interface to systemd: readiness, reload, watchdog, socket activation.

Standard library only; without systemd nothing here has an effect. The variables are removed once read: programs the
daemon starts are not services.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from time import CLOCK_MONOTONIC, clock_gettime_ns

FIRST = 3
"""The first descriptor that is handed over."""


class Notifier:
    """Tells the service manager how the daemon is."""

    def __init__(self) -> None:
        """Read where to tell it, and how often the watchdog wants to hear."""
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        period, owner = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        mine = owner in ("", str(os.getpid())) and period.isdigit() and int(period) > 0
        self.interval: float | None = int(period) / 2e6 if mine else None
        """Seconds between two beats; None: no watchdog."""

    def ready(self, status: str) -> None:
        """Tell that connections are taken."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Tell that the policy is being read again; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={clock_gettime_ns(CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Tell that the daemon ends."""
        self._send("STOPPING=1")

    def beat(self) -> None:
        """Tell the watchdog that a decision was just made."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Tell how it goes, for `systemctl status`."""
        self._send(f"STATUS={text}")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
            one.connect(address)
            one.sendall(text.encode())


def handed_over() -> list[socket.socket]:
    """Return the listening sockets systemd started the daemon with; none where it did not."""
    owner, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if owner != str(os.getpid()) or not count.isdigit():
        return []
    found = []
    for fd in range(FIRST, FIRST + min(int(count), 64)):
        os.set_inheritable(fd, False)
        one = socket.socket(fileno=fd)
        if one.family == socket.AF_UNIX and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.append(one)
        else:
            one.close()
    return found
