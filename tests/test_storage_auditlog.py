"""The audit log on disk: shared by processes, chained, put aside when full, never silent about what it lost."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from policyd import audit
from policyd.storage import auditchain, auditlog, locks
from policyd.storage.auditchain import head_path, log_files, verify
from policyd.storage.auditlog import AuditError, AuditLog
from policyd.storage.auditsync import Syncer
from tests.audited import delete, edit, swap

NOW = datetime(2026, 11, 29, tzinfo=UTC)
LOCK = locks.lock
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")


PLACES = ("", "audit.jsonl", "audit.head")
"""What of a log may be something else: its directory, the file, the note of its end."""


def link_nowhere(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_a_file(path: Path) -> None:
    path.with_name("other").touch()
    path.symlink_to(path.with_name("other"))


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/full")


def for_all(path: Path) -> None:
    path.touch()
    path.chmod(0o666)


def row(number: int) -> dict[str, object]:
    """Return a small record."""
    return audit.event("decision", NOW, n=number, effect="allow")


class Unsaid:
    """What no text can be made of."""

    def __str__(self) -> str:
        """Fail."""
        raise ValueError("nothing")


def written(path: Path, count: int, **options: int) -> AuditLog:
    """Return a log with `count` records."""
    log = AuditLog(str(path), origin={"pid": 1}, **options)
    for number in range(count):
        log.append(row(number), NOW)
    log.close()
    return log


def faults(path: Path) -> list[str]:
    """Return what `verify` finds."""
    return [wrong for _, _, wrong in verify(str(path))]


def test_a_log_is_private_and_holds_what_was_appended(tmp_path: Path) -> None:
    path = tmp_path / "state" / "policyd" / "audit.jsonl"
    umask = os.umask(0)
    written(path, 3)
    os.umask(umask)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == [1, 2, 3] and lines[0]["pid"] == 1 and lines[0]["prev"] == audit.FIRST
    made = (path, path.parent, path.parent.parent)
    assert [stat.S_IMODE(one.stat().st_mode) for one in made] == [0o600, 0o700, 0o700]
    assert faults(path) == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "put", [Path.touch, Path.mkdir, link_nowhere, link_to_itself, link_to_a_file, link_to_a_device, for_all, None]
)
def test_what_takes_no_record_is_told_before_one_is_written(
    tmp_path: Path, place: str, put: Callable[[Path], None] | None
) -> None:
    directory = tmp_path / "audit"
    if place:
        directory.mkdir()
    if put:
        put(directory / place if place else directory)
    there = sorted(tmp_path.rglob("*"))
    why = auditlog.unwritable(f"{directory}/")
    assert sorted(tmp_path.rglob("*")) == there
    with pytest.raises(AuditError) if why else nullcontext():
        AuditLog(f"{directory}/").append(row(1), NOW)


@ROOT
@pytest.mark.parametrize("place", PLACES)
def test_a_log_of_another_user_takes_no_record_and_that_is_told(tmp_path: Path, place: str) -> None:
    directory = tmp_path / "audit"
    written(directory / "audit.jsonl", 1)
    if place:
        os.chown(directory / place, 4321, 4321)
        assert "it belongs to user 4321" in auditlog.unwritable(f"{directory}/")
    else:
        assert auditlog.unwritable(f"{directory}/") == ""


def test_several_hands_share_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    logs = [AuditLog(str(path)) for _ in range(3)]
    for number in range(30):
        logs[number % 3].append(row(number), NOW)
    assert faults(path) == []
    assert len(path.read_bytes().splitlines()) == 30


def test_processes_share_one_chain_across_files(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    code = (
        "import sys\nfrom datetime import UTC, datetime\nfrom policyd.storage.auditlog import AuditLog\n"
        "log = AuditLog(sys.argv[1], rotate=4000)\n"
        "[log.append({'event': 'decision', 'n': n, 'title': 'x' * 40}, datetime.now(UTC)) for n in range(100)]"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(4)]
    assert [each.wait() for each in running] == [0, 0, 0, 0]
    files = log_files(str(path))
    assert len(files) > 5
    assert sum(len(Path(file).read_bytes().splitlines()) for file in files) == 400
    assert faults(path) == []


def insert(lines: list[bytes], at: int) -> None:
    lines.insert(at, lines[at].replace(b'"n":', b'"n":9'))


def garbage(lines: list[bytes], at: int) -> None:
    lines.insert(at, b"not json\n")


@pytest.mark.parametrize("change", [edit, delete, swap, insert, garbage])
def test_every_change_of_one_line_is_found(tmp_path: Path, change: Callable[[list[bytes], int], None]) -> None:
    path = tmp_path / "audit.jsonl"
    written(path, 60)
    whole = path.read_bytes().splitlines(keepends=True)
    for at in range(60):
        lines = whole.copy()
        change(lines, at)
        path.write_bytes(b"".join(lines))
        assert faults(path), f"line {at + 1}"


@pytest.mark.slow
def test_every_change_of_one_line_in_ten_thousand_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    written(path, 10_000)
    whole = path.read_bytes().splitlines(keepends=True)
    rng = random.Random(1)  # noqa: S311 - a choice of places
    for change in (edit, delete, swap, insert, garbage):
        for at in (0, 1, 9_998, 9_999, *(rng.randrange(10_000) for _ in range(6))):
            lines = whole.copy()
            change(lines, at)
            path.write_bytes(b"".join(lines))
            assert faults(path), (change.__name__, at)


def test_an_end_changed_before_the_next_append_stays_visible(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    written(path, 5)
    path.write_bytes(path.read_bytes().replace(b'"n":4', b'"n":5'))
    written(path, 2)
    assert len(faults(path)) == 1


@pytest.mark.parametrize("step", ["read_note", "rotated_files"])
@pytest.mark.parametrize("before", [True, False])
def test_what_is_written_or_put_aside_while_a_log_is_looked_at_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, before: bool
) -> None:
    path, real = tmp_path / "audit.jsonl", getattr(auditchain, step)
    written(path, 40, rotate=4000)

    def meanwhile(*words: object) -> object:
        monkeypatch.setattr(auditchain, step, real)  # whoever writes looks there too
        if before:
            written(path, 30, rotate=1000)
        found = real(*words)
        if not before:
            written(path, 30, rotate=1000)
        return found

    monkeypatch.setattr(auditchain, step, meanwhile)
    assert faults(path) == []


def test_what_is_named_like_a_file_put_aside_and_is_none_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "audit-000000000009.jsonl")
    written(tmp_path / "audit.jsonl", 2)
    assert faults(tmp_path / "audit.jsonl") == []


def test_an_end_that_was_edited_shows_behind_lines_that_were_not_noted(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    written(path, 4)
    edited = audit.body({**row(3), "n": 9})
    lines = path.read_bytes().splitlines(keepends=True)[:-1]
    for number in (4, 5):
        lines.append(audit.line(edited, number, audit.digest(lines[-1])))
    path.write_bytes(b"".join(lines))
    assert faults(path) == ["the last line that was noted, number 4, was edited"]


def test_a_line_written_by_a_process_that_died_before_it_noted_the_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    written(path, 4)
    note = Path(head_path(str(path)))
    before = note.read_bytes()
    written(path, 1)
    note.write_bytes(before)
    assert faults(path) == []
    written(path, 1)
    assert faults(path) == []


@pytest.mark.parametrize("line", [b'{"torn":', b'{"a":' * 100_000], ids=["torn", "nested"])
def test_a_last_line_that_is_no_record_is_reported_and_does_not_swallow_the_next(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    written(path, 2)
    with path.open("ab") as file:
        file.write(line)
    written(path, 1)
    assert json.loads(path.read_bytes().splitlines()[-1])["n"] == 0
    assert faults(path)[0] == "is no record"


def test_what_cannot_be_written_is_an_error_and_leaves_a_gap_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(str(path))
    log.append(row(0), NOW)
    real = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) < 30:
            raise OSError(28, "No space left on device")
        return real(fd, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for _ in range(3):
            with pytest.raises(AuditError, match="No space left"):
                log.append(row(1), NOW)
    log.append(row(2), NOW)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["event"] for line in lines] == ["decision", "gap", "decision"] and lines[1]["lost"] == 3
    assert faults(path) == []


def test_a_lock_that_nobody_lets_go_of_is_an_error_and_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process leaves it that was stopped while it wrote."""
    monkeypatch.setattr(locks, "LONGEST", 0.02)
    log = AuditLog(str(tmp_path / "audit.jsonl"))
    log.append(row(0), NOW)
    with open(log.path, "rb") as stopped:
        locks.lock(stopped.fileno())
        for brief in (False, True):
            waits: list[bool] = []
            monkeypatch.setattr(
                locks, "lock", lambda fd, brief, real=LOCK, waits=waits: (waits.append(brief), real(fd))
            )
            with pytest.raises(AuditError, match="another process keeps it locked"):
                log.append(row(1), NOW)
            assert waits == [brief]
    log.append(row(2), NOW)
    assert [json.loads(line)["event"] for line in Path(log.path).read_bytes().splitlines()][1:] == ["gap", "decision"]
    assert faults(Path(log.path)) == []


@pytest.mark.parametrize("path", ["/dev/full", "/proc/nowhere/audit.jsonl", "/dev/null/audit.jsonl"])
def test_a_place_that_takes_nothing_is_an_error(path: str) -> None:
    with pytest.raises(AuditError):
        AuditLog(path).append(row(0), NOW)


@pytest.mark.parametrize("target", ["elsewhere", "/dev/null", "/dev/stderr"])
def test_a_link_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "audit.jsonl").symlink_to(target)
    with pytest.raises(AuditError):
        AuditLog(str(tmp_path)).append(row(0), NOW)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.head"])
@pytest.mark.parametrize(("mode", "owner"), [(0o666, 0), pytest.param(0o600, 4242, marks=ROOT)])
def test_a_log_that_others_could_edit_takes_nothing(tmp_path: Path, name: str, mode: int, owner: int) -> None:
    (tmp_path / name).touch()
    (tmp_path / name).chmod(mode)
    if owner:
        os.chown(tmp_path / name, owner, owner)
    with pytest.raises(AuditError, match=r"may write it|belongs to user 4242"):
        AuditLog(str(tmp_path)).append(row(0), NOW)
    assert not (tmp_path / "audit.jsonl").read_bytes()


def test_a_record_that_cannot_be_written_down_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AuditError):
        AuditLog(str(tmp_path)).append({"x": Unsaid()}, NOW)
    assert not (tmp_path / "audit.jsonl").exists()


def test_durable_records_are_reported_once_each(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit.jsonl"))
    done: list[int] = []
    syncer = Syncer(log, lambda keys, why: done.extend(keys) if not why else None)
    for number in range(50):
        log.append(row(number), NOW)
        syncer.add(number)
    syncer.stop()
    assert done == list(range(50))


@pytest.mark.parametrize(
    ("name", "error"),
    [("dup", OSError(24, "Too many open files")), ("fdatasync", OSError(5, "EIO")), ("close", MemoryError("none"))],
)
def test_whatever_keeps_a_sync_from_being_made_its_records_are_not_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    log = AuditLog(str(tmp_path / "audit.jsonl"))
    log.append(row(0), NOW)
    said: list[str] = []
    syncer = Syncer(log, lambda keys, why: said.append(why))
    with monkeypatch.context() as patch:

        def broken(fd: int) -> None:
            raise error

        patch.setattr(os, name, broken)
        syncer.add(1)
        until(lambda: bool(said))
    log.append(row(1), NOW)
    syncer.add(2)
    syncer.stop()
    assert error.args[-1] in said[0] and said[1] == ""


def until(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(1000):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError("never")


@pytest.mark.parametrize("kept", [True, False])
def test_a_record_before_a_failed_one_is_durable_only_if_it_was_made_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """The failure lets go of the file; the sync that comes then must not count as that of the record before."""
    log, synced = AuditLog(str(tmp_path / "audit.jsonl")), []

    def sync(fd: int) -> None:
        synced.append(fd)
        if not kept:
            raise OSError(5, "Input/output error")

    log.append(row(0), NOW)
    monkeypatch.setattr(os, "fdatasync", sync)
    with pytest.raises(AuditError):
        log.append({"x": Unsaid()}, NOW)
    assert len(synced) == 1
    if kept:
        log.fsync()
    else:
        with pytest.raises(AuditError, match="Input/output error"):
            log.fsync()


def test_a_record_in_a_file_that_was_moved_away_is_durable_only_if_it_was_made_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    log, inode = AuditLog(str(path)), 0
    log.append(row(0), NOW)
    inode = path.stat().st_ino
    path.rename(tmp_path / "elsewhere")

    def sync(fd: int) -> None:
        if os.fstat(fd).st_ino == inode:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", sync)
    first = log.begun
    log.append(row(1), NOW)
    log.sync()
    assert "Input/output error" in log.doubt(first)


@pytest.mark.parametrize("who", ["the thread", "a failed append", "a rotation"])
def test_a_failure_the_kernel_tells_of_once_is_about_every_record_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """It tells whoever asks first; the others hear that all is well, and one of them asks for each record."""
    log = AuditLog(str(tmp_path / "audit.jsonl"), rotate=1_000_000)
    log.append(row(0), NOW)
    failing = [OSError(5, "Input/output error")]

    def sync(fd: int) -> None:
        if failing:
            raise failing.pop()

    monkeypatch.setattr(os, "fdatasync", sync)
    if who == "the thread":
        log.append(row(1), NOW)
        log.sync()
    elif who == "a failed append":
        with pytest.raises(AuditError):
            log.append({"x": Unsaid()}, NOW)
    else:
        log._rotate = 1
        with pytest.raises(AuditError):
            log.append(row(1), NOW)
        log._rotate = 1_000_000
    log.sync()
    assert all("Input/output error" in log.doubt(number) for number in (1, 2))
    log.append(row(2), NOW)
    log.fsync()
    assert log.doubt(3) == ""


def test_each_record_is_reported_as_what_is_known_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, said, begun, free = AuditLog(str(tmp_path / "audit.jsonl")), dict[int, str](), Event(), Event()

    def sync(fd: int) -> None:
        if not begun.is_set():
            begun.set()
            free.wait()
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", sync)
    syncer = Syncer(log, lambda keys, why: said.update(dict.fromkeys(keys, why)))
    for number in (1, 2):
        log.append(row(number), NOW)
        syncer.add(number)
        begun.wait()
    free.set()
    until(lambda: len(said) == 2)
    log.append(row(3), NOW)
    syncer.add(3)
    syncer.stop()
    assert [bool(said[number]) for number in (1, 2, 3)] == [True, True, False]


def test_a_line_that_was_torn_in_a_pipe_is_ended_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log, pieces = AuditLog(str(path)), list[bytes]()
    while not log.lost:
        with suppress(AuditError):
            log.append({**row(0), **{f"text {number}": "x" * 2_000 for number in range(5)}}, NOW)
    with suppress(BlockingIOError):
        while data := os.read(reader, 1 << 16):
            pieces.append(data)
    log.append(row(1), NOW)
    lines = (b"".join(pieces) + os.read(reader, 1 << 16)).splitlines()
    os.close(reader)
    assert [json.loads(line)["event"] for line in lines[-2:]] == ["gap", "decision"]
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(lines[-3])
