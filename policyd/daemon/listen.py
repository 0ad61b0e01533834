"""The listening socket, and who may connect to it.

Rules of this module:

1. The directory is this user's or root's and nobody else can change it; the socket is 0600. Anything at its path that
   is not a socket of this user's is never touched.
2. A socket with a listener is not taken over; a dead one is, under a lock.
3. The kernel identifies a peer before its first byte is read. This daemon's own uid and root may connect; others only
   as members of a named group, or of the group of a socket handed over by root's service manager, whatever the mode of
   the file. An unidentified peer, and the uid that stands for "unknown", may not connect.
"""

from __future__ import annotations

import grp
import os
import socket
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from policyd.daemon.shared import Who
from policyd.storage import locks, places, sockets
from policyd.storage.private import make_directory
from policyd.storage.processes import born

BACKLOG = 1024
account = lru_cache(maxsize=4096)(places.account)
group_name = lru_cache(maxsize=4096)(places.group_name)
"""Peers come and go; the databases may be slow to ask."""


class ListenError(Exception):
    """The daemon cannot listen, and why."""


class StrangerError(Exception):
    """A peer may not come in, and why."""

    def __init__(self, uid: int | None, why: str) -> None:
        """`uid` is None where it is not known."""
        super().__init__(why)
        self.uid = uid


def listen(path: str) -> socket.socket:
    """Listen at `path`.

    Raises:
        ListenError: something else is there, or the place is not safe.
    """
    directory = os.path.dirname(path)
    if directory in ("/tmp", "/var/tmp") or len(os.fsencode(path)) > 107:
        raise ListenError(f"{path}: a socket must lie in a directory of its own, and its path be at most 107 bytes")
    try:
        make_directory(directory)
        _check_directory(directory)
        held = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            locks.lock(held)
            _make_room(path)
            return _bound(path)
        finally:
            os.close(held)
    except OSError as error:
        raise ListenError(f"{path}: {error.strerror or error}") from error


def _check_directory(directory: str) -> None:
    status = os.stat(directory)
    if status.st_uid not in {0, os.getuid()}:
        raise ListenError(f"{directory} belongs to user {status.st_uid}")
    if status.st_mode & 0o022:
        raise ListenError(f"others may change {directory}; take that right away (chmod go-w)")


def _make_room(path: str) -> None:
    """Take away a dead socket of ours."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise ListenError(f"{path} is there and is no socket; it is left alone")
    if status.st_uid != os.getuid():
        raise ListenError(f"{path} is a socket of user {status.st_uid}; it is left alone")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.setblocking(False)
        try:
            one.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # somebody listens, whose queue is full
            pass
    raise ListenError(f"another policyd serves {path}")


def _bound(path: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        one.bind(path)
        one.listen(BACKLOG)
    except OSError:
        one.close()
        raise
    finally:
        os.umask(before)
    return one


def unlink(path: str, inode: int) -> None:
    """Take the socket's name away, if it still names the socket with this inode."""
    with suppress(OSError):
        if os.lstat(path).st_ino == inode:
            os.unlink(path)


class Door:
    """Decides who may come in through one listener."""

    def __init__(self, listener: socket.socket, named: Sequence[str] = (), *, handed: bool = False) -> None:
        """Let in members of the groups `named`, beside this user and root.

        Raises:
            ListenError: there is no such group.
        """
        self.listener = listener
        self._groups = {_gid(name) for name in named}
        if handed:
            with suppress(OSError, ValueError):  # a name that is no path has no group
                status = os.stat(listener.getsockname())
                if status.st_uid == 0 and status.st_gid:
                    self._groups.add(status.st_gid)

    def who(self, one: socket.socket) -> Who:
        """Return who is at the other end.

        Raises:
            StrangerError: they may not come in.
        """
        uid = None
        try:
            pid, uid, gid = sockets.credentials(one)
            gids = {gid, *sockets.groups(one)}
        except (OSError, struct.error) as error:
            what = "who it is" if uid is None else f"its groups (more than {sockets.MOST_GROUPS} cannot be asked for)"
            raise StrangerError(uid, f"the kernel does not say {what}: {error}") from error
        if uid == sockets.NOBODY:
            raise StrangerError(uid, "this uid stands for everybody who is not known")
        if uid not in {0, os.getuid()} and not gids & self._groups:
            raise StrangerError(uid, self._missing())
        names = tuple(group_name(one) for one in sorted(gids))
        name, home = account(uid)
        return Who(uid, gid, pid, name, names, "" if uid == os.getuid() else home, born(pid))

    def _missing(self) -> str:
        """Say what another user lacks."""
        if not self._groups:
            return "no group may come in: name one with --group, or let systemd make the socket"
        wanted = " or ".join(group_name(gid) for gid in sorted(self._groups))
        return f"its process is not in the group {wanted}; who was added to it has to log in again"


def myself() -> Who:
    """Return this process's own user: the peer of standard input and output."""
    gids = sorted({os.getgid(), *os.getgroups()})
    pid, uid = os.getppid(), os.getuid()
    return Who(uid, os.getgid(), pid, account(uid)[0], tuple(map(group_name, gids)), born=born(pid))


def _gid(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ListenError(f"there is no group `{name}`") from None
