"""The chain of an audit log on disk: where it ends, which files it is in, whether it holds.

Rules of this module:

1. Beside the log lies `audit.head`: number and hash of the last line. Without it an edit of the last line, or its
   removal, could not be told from a log that ends there.
2. A writer continues from the recorded end, not from what the file shows: a changed end stays visible for ever. Lines
   after the recorded end that continue its chain are what a dying process wrote last; they count.
3. A chain detects edits made by accident or by somebody who does not know of it. It is not a signature: that the whole
   log was rewritten is shown only by checkpoints kept elsewhere (`checkpoints`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from policyd import audit

NAME = "audit.jsonl"
TAIL = 4 * audit.LINE_LIMIT
NOTE = 96
"""The size of the recorded end in bytes: number, blank, hash, newline."""


class Head:
    """The end of a chain: the last line's number and hash, and the file's size."""

    __slots__ = ("lead", "prev", "seq", "size")

    def __init__(self, seq: int = 0, prev: str = audit.FIRST, size: int = 0, lead: bytes = b"") -> None:
        """`lead` is what must be written first: the newline that a torn last line lacks."""
        self.seq, self.prev, self.size, self.lead = seq, prev, size, lead

    def note(self) -> bytes:
        """Return the end as `audit.head` holds it."""
        return f"{self.seq:020d} {self.prev}\n".encode()


def log_path(path: str) -> str:
    """Return the log's file, whether `path` names it or its directory."""
    return os.path.join(path, NAME) if path.endswith("/") or os.path.isdir(path) else path


def head_path(path: str) -> str:
    """Return where the end of the log at `path` is recorded."""
    return path.removesuffix(".jsonl") + ".head"


def read_note(fd: int) -> Head | None:
    """Return the recorded end, None if there is none or it is damaged."""
    match = re.fullmatch(rb"(\d{20}) ([0-9a-f]{64})\n", os.pread(fd, NOTE, 0))
    return Head(int(match[1]), match[2].decode()) if match else None


def current_head(fd: int, size: int, path: str, note: Head | None) -> Head:
    """Return the end that the next line of the log continues."""
    end = read_head(fd, size) if size else read_previous(path)
    if note is None or (note.seq, note.prev) == (end.seq, end.prev) or follows(fd, size, note, end):
        return end
    return Head(note.seq, note.prev, end.size, end.lead)


def follows(fd: int, size: int, note: Head, end: Head) -> bool:
    """Say whether the lines after the recorded end continue its chain to the file's end."""
    if end.seq <= note.seq:
        return False
    prev, seq = note.prev, note.seq
    for line in last_lines(fd, size)[-(end.seq - note.seq) :]:
        if audit.broken(line, seq + 1, prev):
            return False
        prev, seq = audit.digest(line), seq + 1
    return (seq, prev) == (end.seq, end.prev)


def last_lines(fd: int, size: int) -> list[bytes]:
    """Return the last lines of a file; the first of them may be incomplete."""
    start = max(0, size - TAIL)
    return os.pread(fd, size - start, start).rstrip(b"\n").split(b"\n")


def read_head(fd: int, size: int) -> Head:
    """Return the end of the chain in a file that is not empty."""
    lead = b"" if os.pread(fd, 1, size - 1) == b"\n" else b"\n"
    lines = last_lines(fd, size)
    return Head(last_number(lines), audit.digest(lines[-1]), size, lead)


def last_number(lines: list[bytes]) -> int:
    """Return the number of the last line that has one, plus one for each torn line after it."""
    for back, line in enumerate(reversed(lines)):
        try:
            return audit.link(line).seq + back
        except ValueError:  # torn: counted by `back`
            continue
    return len(lines)


def read_previous(path: str) -> Head:
    """Return where a new file continues: the end of the newest rotated file, or the start of a chain."""
    older = rotated_files(path)
    if not older:
        return Head()
    fd = os.open(older[-1], os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        size = os.fstat(fd).st_size
        end = read_head(fd, size) if size else Head()
    finally:
        os.close(fd)
    return Head(end.seq, end.prev)


def rotated_files(path: str) -> list[str]:
    """Return the rotated files of the log at `path`, oldest first."""
    directory, name = os.path.split(path)
    stem = name.removesuffix(".jsonl") + "-"
    try:
        with os.scandir(directory or ".") as entries:
            found = [one.name for one in entries if one.name.startswith(stem) and one.is_file()]
    except FileNotFoundError:
        return []
    return sorted(os.path.join(directory, name) for name in found if name.endswith(".jsonl"))


def log_files(path: str) -> list[str]:
    """Return all files of a log, oldest first: the rotated ones, then the current one."""
    path = log_path(path)
    return [*rotated_files(path), *([path] if os.path.exists(path) else [])]


def first_number(fd: int) -> int:
    """Return the number of a file's first line, 0 if it cannot be read."""
    try:
        return audit.link(os.pread(fd, audit.LINE_LIMIT, 0).split(b"\n", 1)[0]).seq
    except ValueError:
        return 0


def verify(path: str, passed: Callable[[int, str], None] | None = None) -> Iterator[tuple[str, int, str]]:
    """Yield (file, line, what is wrong) for everything that breaks the chain of the log at `path`, in order.

    What others append or rotate meanwhile breaks nothing: the recorded end is read before the lines it is compared
    with, and the current file is opened before the rotated ones are listed.

    Args:
        path: the log's file or directory.
        passed: called with number and hash of each line.
    """
    path = log_path(path)
    note, why = noted_end(path)
    noted = ""
    with current_and_older(path) as files:
        end = Head(*start_of(files[0].name)) if files else Head()
        for file in files:
            for number, data in enumerate(file, 1):
                end, wrong = checked(data, end)
                if passed:
                    passed(end.seq, end.prev)
                if note and end.seq == note.seq:
                    noted = end.prev
                if wrong:
                    yield file.name, number, wrong
    if why and (end.seq or note):
        yield head_path(path), 1, f"{why}: whether the log's end is whole cannot be told"
    elif note and note.seq > end.seq:
        yield path, 0, f"ends at number {end.seq}, but {note.seq} was written: the end was removed"
    elif note and noted not in ("", note.prev):
        yield path, 0, f"the last line that was noted, number {note.seq}, was edited"


@contextmanager
def current_and_older(path: str) -> Iterator[list[BinaryIO]]:
    """Open the files of a log that is being written, oldest first: each once, even if files are rotated meanwhile."""
    with ExitStack() as stack:
        try:
            files = [stack.enter_context(open(path, "rb"))]
        except FileNotFoundError:
            files = []
        older = [stack.enter_context(open(name, "rb")) for name in rotated_files(path)]
        there = {identity(file) for file in older}
        yield [*older, *(file for file in files if identity(file) not in there)]


def identity(file: BinaryIO) -> tuple[int, int]:
    """Return device and inode of an open file."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def noted_end(path: str) -> tuple[Head | None, str]:
    """Return the recorded end of the log at `path`, and why there is none."""
    try:
        fd = os.open(head_path(path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, "is missing"
    with os.fdopen(fd):
        note = read_note(fd)
    return note, "" if note else "is damaged"


def start_of(file: str) -> tuple[int, str]:
    """Return number and hash before the first line of the oldest file: its name says where it starts; "" = unknown."""
    match = re.search(r"-(\d+)\.jsonl$", file)
    first = int(match[1]) if match else 1
    return first - 1, audit.FIRST if first <= 1 else ""


def checked(data: bytes, end: Head) -> tuple[Head, str]:
    """Return the end of the chain after a line, and what is wrong with the line."""
    try:
        own = audit.link(data)
    except ValueError:
        return Head(end.seq + 1, audit.digest(data)), "is no record"
    return Head(own.seq, audit.digest(data)), audit.broken(data, end.seq + 1, end.prev or own.prev)
