"""Where the daemon's socket is, and how to connect to it without trusting any listener.

Rules of this module:

1. The order: the option; `/run/policyd/policyd.sock` if root or the user `policyd` owns it; the user's runtime
   directory. Never `/tmp`.
2. A client checks the identity of the listener: it must be root, this user, or the owner of a system socket. Otherwise
   whoever created the file could answer for policyd.
"""

from __future__ import annotations

import os
import pwd
import socket
import stat
import struct
import sys

from policyd.storage.places import Places

SYSTEM = "/run/policyd/policyd.sock"
NAME = "policyd.sock"
DAEMON_USER = "policyd"
LOCAL_PEERCRED = 1
SO_PEERGROUPS = 59
MOST_GROUPS = 256
"""More than that Python cannot ask the kernel for."""
NOBODY = 65534
ENTRY = "it lets in its own user, root, and members of its group (in the shipped units `policyd-clients`; log in anew)"
"""What to say where a connection is refused, or closed before a word came."""


class SocketError(Exception):
    """There is no daemon that may be talked to, and why."""


def daemon_uids() -> frozenset[int]:
    """Return the uids a system daemon may have: root's, and the user's of that name if there is one."""
    try:
        return frozenset({0, pwd.getpwnam(DAEMON_USER).pw_uid})
    except KeyError:
        return frozenset({0})


def find(places: Places, given: str | None = None) -> str:
    """Return the socket to connect to.

    Raises:
        SocketError: none is there.
    """
    if given:
        return os.path.abspath(given)
    if owner(SYSTEM) in daemon_uids():
        return SYSTEM
    own = own_socket(places)
    if own and owner(own) == os.getuid():
        return own
    where = own or "a socket in a runtime directory (XDG_RUNTIME_DIR is not set here)"
    raise SocketError(f"no daemon is running: neither {SYSTEM} nor {where} is there; one elsewhere has to be named")


def own_socket(places: Places) -> str | None:
    """Return the socket of the user's own daemon; None where the system gives no directory for it."""
    return f"{places.runtime}/{NAME}" if places.runtime else None


def served(places: Places) -> str:
    """Return where `policyd serve` listens unless told otherwise.

    Raises:
        SocketError: the system gives no directory for it.
    """
    try:
        system = os.getuid() in daemon_uids() and os.stat(os.path.dirname(SYSTEM)).st_uid == os.getuid()
    except OSError:
        system = False
    if system:
        return SYSTEM
    own = own_socket(places)
    if own is None:
        raise SocketError("there is no runtime directory of this user; name a socket with --socket")
    return own


def connect(path: str, *, seconds: float = 5.0) -> socket.socket:
    """Return a connected socket whose other end is a policyd that may be trusted; it is blocking, with a timeout.

    Raises:
        SocketError: nobody listens, or somebody who may not.
    """
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.settimeout(seconds)
    try:
        one.connect(path)
        check_listener(one, path)
    except OSError as error:
        one.close()
        hint = f"; {ENTRY}" if isinstance(error, PermissionError) else ""
        raise SocketError(f"no daemon answers at {path}: {error.strerror or error}{hint}") from error
    except SocketError:
        one.close()
        raise
    return one


def listens(path: str) -> bool:
    """Say whether anybody listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.settimeout(1.0)
        try:
            one.connect(path)
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def check_listener(one: socket.socket, path: str) -> None:
    """Look at who listens at the other end.

    Raises:
        SocketError: neither root, nor this user, nor the system daemon.
    """
    uid = credentials(one)[1]
    allowed = {0, os.getuid()} | (set(daemon_uids()) if path == SYSTEM else set())
    if uid not in allowed or uid == NOBODY:
        raise SocketError(f"{path} is not policyd's: user {uid} listens there")


def credentials(one: socket.socket) -> tuple[int, int, int]:
    """Return process id, uid and gid of the other end, as the kernel noted them; a pid of 0 is not known.

    Raises:
        OSError: the kernel does not say.
    """
    if sys.platform == "darwin":
        raw = one.getsockopt(0, LOCAL_PEERCRED, 76)
        _, uid, count = struct.unpack_from("=IIh", raw)
        gid = struct.unpack_from("=I", raw, 12)[0] if count else -1
        return struct.unpack("=i", one.getsockopt(0, 2, 4))[0], uid, gid
    pid, uid, gid = struct.unpack("=iII", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid, gid


def groups(one: socket.socket) -> tuple[int, ...]:
    """Return all groups of the other end, as the kernel noted them.

    Raises:
        OSError: the kernel does not say, or the other end has more than `MOST_GROUPS`.
    """
    if sys.platform == "darwin":
        raw = one.getsockopt(0, LOCAL_PEERCRED, 76)
        count = struct.unpack_from("=h", raw, 8)[0]
        return struct.unpack_from(f"={count}I", raw, 12)
    raw = one.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * MOST_GROUPS)
    return struct.unpack(f"={len(raw) // 4}I", raw)


def owner(path: str) -> int | None:
    """Return who owns the socket at `path`, None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_uid if stat.S_ISSOCK(status.st_mode) else None
