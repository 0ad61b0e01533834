"""The audit log: chained lines appended to one file that all policyd processes of a user share.

Rules of this module:

1. An append holds the file's lock: it checks whether another process wrote, takes number and hash of the last line from
   there, and writes one line. A line that could not be written completely is truncated. A lock that is never released
   is a failure, and from then on hardly waited for until it was acquired again.
2. `append` raises `AuditError` if the line is not in the file; the caller must then reject. After a failure the next
   line that can be written is a `gap` record with the number of lost records.
3. `fsync` means durable before it counts: `Syncer` does it in a thread, with one call for all that wait. A file is made
   durable before it is closed. The kernel reports an fsync failure only once: every record begun before it stays in
   doubt.
4. The file is made the user's alone (0600 in 0700), and opened without following links; one that is another's, or that
   others may write, is an error. Beyond `ROTATE` bytes it is renamed
   `audit-<number of its first line>.jsonl`; the chain goes on in the next file.
5. A path that is no regular file (`/dev/full`, a pipe) is written as it is: chained, neither locked nor rotated. A line
   that was torn there is ended before the next.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from policyd import audit
from policyd.storage import locks
from policyd.storage.auditchain import Head, current_head, first_number, head_path, log_path, read_note
from policyd.storage.private import make_directory
from policyd.storage.strictfile import own_owners

ROTATE = 64 * 1024 * 1024
SYSTEM = ("/dev/", "/proc/")
"""Where a link is the system's own."""
ELSEWHERE = "`--audit PATH` or the setting `audit.path` names another"
"""What to do about a log that cannot be written."""


class AuditError(Exception):
    """A record could not be written."""


class AuditLog:
    """One process's hand on the log. `sync` and `doubt` may be called from another thread, nothing else may."""

    def __init__(self, path: str, *, origin: Mapping[str, object] | None = None, rotate: int = ROTATE) -> None:
        """Open nothing yet: a log that cannot be opened is an error of the first append.

        Args:
            path: the file, or the directory it is in.
            origin: fields every record of this process gets: host, user, process id, version.
            rotate: size in bytes beyond which the file is put aside.
        """
        self.path = log_path(path)
        self.lost = 0
        self.begun = 0
        """How many records were begun, also those that failed; the last one's number."""
        self.written: Callable[[int, str], None] | None = None
        """Called with number and hash of each line that is in a regular file, by whoever appends."""
        self._origin = dict(origin or {})
        self._rotate = rotate
        self._fd: int | None = None
        self._note: int | None = None
        self._file = (0, 0)
        """Device and inode of the open file."""
        self._head = Head()
        self._hold = threading.Lock()
        """Held where the descriptor is closed or doubled, since its number may be another file's a moment later, and
        where a doubt is noted or asked for."""
        self._doubted, self._why = 0, ""
        """The last record that is not known to be durable, and why."""

    def append(self, record: Mapping[str, object], now: datetime) -> None:
        """Write one record.

        Raises:
            AuditError: it is not in the file, with the reason in words.
        """
        self.begun += 1
        try:
            body = audit.body({**self._origin, **record})
            fd, size = self._lock()
            try:
                self._head = self._end(fd, size)
                if self.lost:
                    self._head = self._write(fd, audit.body(audit.event("gap", now, lost=self.lost, **self._origin)))
                    self.lost = 0
                self._head = self._write(fd, body)
            finally:
                self._unlock(fd)
            if self.written and self._note is not None:
                self.written(self._head.seq, self._head.prev)
        except (OSError, ValueError, TypeError) as error:
            self.lost += 1
            self._let_go()
            why = error.strerror if isinstance(error, OSError) else None
            raise AuditError(f"the audit log {self.path} cannot be written: {why or error} ({ELSEWHERE})") from error

    def fsync(self) -> None:
        """Make what was written durable; AuditError where that fails, or is not known."""
        self.sync()
        if why := self.doubt(self.begun):
            raise AuditError(why)

    def sync(self) -> None:
        """Make what was written durable; `doubt` says whether it is."""
        try:
            with self._hold:
                fd = os.dup(self._fd) if self._fd is not None else None
            try:
                if fd is not None:
                    durable(fd)
            finally:
                if fd is not None:
                    os.close(fd)
        except Exception as error:  # whatever keeps it from being done, it is not done
            with self._hold:
                self._doubt(error)

    def doubt(self, number: int) -> str:
        """Say why a record (`begun`, as it was appended) is not known to be durable after a `sync`; empty if it is."""
        with self._hold:
            return self._why if number <= self._doubted else ""

    def close(self) -> None:
        """Let go of the file; the next append opens it again."""
        with self._hold:
            for fd in (self._fd, self._note):
                if fd is not None:
                    os.close(fd)
            regular = self._note is not None
            self._fd = self._note = None
        self._head = Head() if regular else self._head

    def _let_go(self) -> None:
        """Close a file that is not written any more; what was written to it may still wait to be made durable."""
        with suppress(OSError):
            if self._fd is not None and self._note is not None:
                self._settle(self._fd)
        self.close()

    def _settle(self, fd: int) -> None:
        """Make a file durable before this returns; where that fails, what was begun is in doubt."""
        with self._hold:
            try:
                durable(fd)
            except OSError as error:
                self._doubt(error)
                raise

    def _doubt(self, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        self._doubted, self._why = self.begun, f"the audit log {self.path} cannot be made durable: {why or error}"

    def _write(self, fd: int, body: bytes) -> Head:
        """Write one line after `self._head` and note the new end."""
        head = self._head
        data = audit.line(body, head.seq + 1, head.prev)
        put, written = head.lead + data, 0
        try:
            while written < len(put):
                written += os.write(fd, put[written:])
        except OSError:
            if self._note is not None:
                os.ftruncate(fd, head.size)
            elif written:
                self._head = Head(head.seq, head.prev, head.size, b"\n")
            raise
        end = Head(head.seq + 1, audit.digest(data), head.size + len(put))
        if self._note is not None:
            os.pwrite(self._note, end.note(), 0)
        return end

    def _lock(self) -> tuple[int, int]:
        """Return descriptor and size of the file that has the name now, locked if it is a regular one."""
        while True:
            fd = self._fd if self._fd is not None else self._open()
            if self._note is None:
                return fd, 0
            locks.lock(fd, brief=bool(self.lost))
            try:
                size = self._current_size()
                current = size is not None and not self._put_aside(fd, size)
            except BaseException:
                self._unlock(fd)
                raise
            if size is not None and current:
                return fd, size
            self._unlock(fd)
            self._let_go()

    def _unlock(self, fd: int) -> None:
        """Let others write: also while a thread holds a copy of the descriptor to make it durable."""
        if self._note is not None:
            locks.unlock(fd)

    def _open(self) -> int:
        """Open the log and, if it is a regular file, the note of its end."""
        make_directory(os.path.dirname(self.path))
        if is_device(self.path):
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
            return self._fd
        self._fd = open_own(self.path, os.O_CREAT | os.O_APPEND)
        found = os.fstat(self._fd)
        self._file = found.st_dev, found.st_ino
        self._note = open_own(head_path(self.path), os.O_CREAT)
        return self._fd

    def _current_size(self) -> int | None:
        """Return the size of the open file, None if it lost its name: another process put it aside."""
        try:
            named = os.lstat(self.path)
        except FileNotFoundError:
            return None
        return named.st_size if (named.st_dev, named.st_ino) == self._file else None

    def _put_aside(self, fd: int, size: int) -> bool:
        """Rename a full file; its chain goes on in the next."""
        if size < self._rotate:
            return False
        self._settle(fd)
        os.rename(self.path, f"{self.path.removesuffix('.jsonl')}-{first_number(fd):012d}.jsonl")
        return True

    def _end(self, fd: int, size: int) -> Head:
        """Return what the next line follows: known, or read again if another process wrote since."""
        if self._note is None or (size == self._head.size and self._head.seq):
            return self._head
        return current_head(fd, size, self.path, read_note(self._note))


def open_own(path: str, flags: int) -> int:
    """Open a file of the log; OSError for one that is no plain file, is another's, or that others may write."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o600)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is neither a file nor a device")
        if why := own_owners().fault(found):
            raise OSError(errno.EPERM, why)
    except OSError:
        os.close(fd)
        raise
    return fd


def unwritable(path: str) -> str:
    """Return why no record can be appended to the log at `path`, as far as that shows without writing to it."""
    path = log_path(os.path.abspath(path) + "/" * path.endswith("/"))
    try:
        if is_device(path):
            return "" if os.access(path, os.W_OK) else f"{path} does not let you"
        for each in (path, head_path(path)):
            try:
                os.close(open_own(each, 0))
            except (FileNotFoundError, NotADirectoryError):
                if why := unmakable(each):
                    return why
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def unmakable(path: str) -> str:
    """Return why a file that is not there cannot be made, with the directories above it."""
    above = os.path.dirname(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        return f"{above} is no directory"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"{above} does not let you"


def durable(fd: int) -> None:
    """Sync one descriptor; a pipe or terminal has nothing to sync."""
    try:
        getattr(os, "fdatasync", os.fsync)(fd)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def is_device(path: str) -> bool:
    """Say whether `path` is something other than a regular file or directory; only the system's own links count.

    `/dev/stderr` is one. A link in the log's place that leads to `/dev/null` would have records kept nowhere.
    """
    try:
        if os.path.islink(path) and not path.startswith(SYSTEM):
            return False
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
