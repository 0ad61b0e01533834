"""Checkpoints of the audit log: said elsewhere in time, and no change of what they cover goes unseen."""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyd import audit
from policyd.cli import main
from policyd.cli.audit.verify import Comparison
from policyd.service import start
from policyd.storage import checkpoints
from policyd.storage.auditchain import head_path, log_files, verify
from policyd.storage.auditlog import AuditLog
from policyd.storage.checkpoints import Checkpoint, Checkpoints, find, plain, to_syslog
from tests.audited import delete, edit, swap
from tests.proxied import Scene

NOW = datetime(2026, 11, 29, tzinfo=UTC)
Change = Callable[[list[bytes], int], None]


def append(log: AuditLog, count: int) -> None:
    for number in range(count):
        log.append(audit.event("decision", NOW, n=number, effect="allow"), NOW)


@contextmanager
def saying(log: AuditLog) -> Iterator[list[str]]:
    """What is said while the log is written, the last at the end."""
    said: list[str] = []
    one = Checkpoints(log, said.append, pytest.fail)
    yield said
    one.stop()


def numbers(said: list[str]) -> list[int]:
    return [one.seq for _, one in find(line.encode() for line in said)]


def until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("it did not come")


# ---- saying ----------------------------------------------------------------------------------------


def test_the_first_line_is_said_at_once_then_one_of_every_thousand_and_the_last(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit.jsonl"))
    with saying(log) as said:
        append(log, 1)
        until(lambda: numbers(said) == [1])
        append(log, checkpoints.EVERY)
        until(lambda: numbers(said) == [1, 1 + checkpoints.EVERY])
        append(log, 5)
    assert numbers(said) == [1, 1 + checkpoints.EVERY, 6 + checkpoints.EVERY]
    last = (tmp_path / "audit.jsonl").read_bytes().splitlines()[-1]
    assert said[-1] == f"audit checkpoint {6 + checkpoints.EVERY} {audit.digest(last)} {tmp_path}/audit.jsonl"


def test_after_a_while_new_lines_are_said_and_old_ones_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SECONDS", 0.01)
    log = AuditLog(str(tmp_path / "audit.jsonl"))
    with saying(log) as said:
        for number in (1, 2):
            append(log, 1)
            until(lambda number=number: numbers(said)[-1:] == [number])  # type: ignore[misc]
        time.sleep(0.05)
    assert numbers(said) == [1, 2]


def test_what_is_no_file_has_no_checkpoints(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(str(tmp_path / "pipe"))
    with saying(log) as said:
        append(log, 3)
    os.close(reader)
    assert said == []


def test_a_place_that_takes_nothing_is_complained_of_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SECONDS", 0.01)
    log, complaints, tries = AuditLog(str(tmp_path / "audit.jsonl")), list[str](), list[str]()

    def refuse(text: str) -> None:
        tries.append(text)
        if len(tries) < 4:
            raise ConnectionRefusedError(111, "Connection refused")

    one = Checkpoints(log, refuse, complaints.append)
    append(log, 1)
    until(lambda: len(tries) == 4)
    one.stop()
    assert complaints == ["checkpoints of the audit log cannot be said: Connection refused"]
    assert len(set(tries)) == 1 and len((tmp_path / "audit.jsonl").read_bytes().splitlines()) == 1


def test_the_systems_log_gets_a_datagram_and_is_never_waited_for(tmp_path: Path) -> None:
    address = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(address)
        to_syslog("audit checkpoint 1 …", address)
        assert door.recv(1000).decode() == f"<86>policyd[{os.getpid()}]: audit checkpoint 1 …"
        with pytest.raises(BlockingIOError):  # nobody reads
            all(to_syslog("x", address) is None for _ in range(100_000))  # type: ignore[func-returns-value]
    with pytest.raises(ConnectionRefusedError):
        to_syslog("x", address)


def test_a_proxy_says_checkpoints_where_the_setting_names_standard_error(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    config = tmp_path / "home/.config/policyd"
    config.mkdir(parents=True)
    (config / "policyd.toml").write_text('log_level = "error"\naudit.checkpoints = "stderr"\n')
    said = [one for _, one in find(scene.run("echo").stderr.splitlines())]
    last = scene.audit.read_bytes().splitlines()[-1]
    assert said[-1] == Checkpoint(len(scene.records()), audit.digest(last), str(scene.audit))


@pytest.mark.parametrize(("stream", "how"), [("{}:{}", "stderr"), ("1:{}", "off"), ("", "off")])
def test_where_standard_error_is_the_journal_they_are_said_there(
    stream: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", stream.format(*(found.st_dev, found.st_ino)[stream.startswith("1") :]))
    ground = start.prepare(start.Choices(home=str(tmp_path), transport="daemon"))
    assert ground.loaded.settings.audit_checkpoints == how


# ---- finding ---------------------------------------------------------------------------------------


def test_checkpoints_are_found_in_any_text() -> None:
    one = Checkpoint(12, "ab" * 32, plain('/home/d v/a"b\n%/audit.jsonl'))
    assert one.path == "/home/d%20v/a%22b%0A%25/audit.jsonl"
    texts = [
        f"policyd: {one}",
        f"Nov 30 22:59:01 host policyd[7]: policyd: {one}\r",
        json.dumps({"MESSAGE": str(one), "_PID": "7"}),
        f"\x1b[1m{one}\x1b[0m",
        f"\udcff{one} and {one}",
        f"audit checkpoint 12 {'ab' * 31} /x",
        f"audit checkpoint x {'ab' * 32} /x",
    ]
    found = list(find(text.encode("utf-8", "surrogateescape") for text in texts))
    assert found == [(number, one) for number in (1, 2, 3, 4, 5, 5)]


# ---- holding the log against them ------------------------------------------------------------------


def insert(lines: list[bytes], at: int) -> None:
    lines.insert(at, lines[at].replace(b'"n":', b'"n":9'))


def truncate(lines: list[bytes], at: int) -> None:
    del lines[at:]


def behead(lines: list[bytes], at: int) -> None:
    del lines[: at + 1]


CHANGES: tuple[Change, ...] = (edit, delete, insert, swap, truncate, behead)


class Kept:
    """A log in several files with checkpoints of some lines, which somebody may change or write anew."""

    def __init__(self, folder: Path, count: int, checked: tuple[int, ...]) -> None:
        self.path = folder / "audit.jsonl"
        append(AuditLog(str(self.path), rotate=count * 40), count)
        self.files = {Path(file): Path(file).read_bytes() for file in log_files(str(self.path))}
        self.head = Path(head_path(str(self.path)))
        self.lines = [line for data in self.files.values() for line in data.splitlines(keepends=True)]
        self.text = folder / "journal"
        said = (Checkpoint(at, audit.digest(self.lines[at - 1]), plain(str(self.path))) for at in checked)
        self.text.write_text("".join(f"host policyd[1]: {one}\n" for one in said))

    def replace(self, lines: list[bytes], *, anew: bool) -> None:
        """Put other lines into one file; `anew`: as a log of their own, with every number, hash and note right."""
        for file in self.files:
            file.unlink(missing_ok=True)
        if anew:
            lines, prev = list[bytes](), audit.FIRST
            for line in self.changed:
                row = {key: value for key, value in json.loads(line).items() if key not in {"seq", "prev"}}
                lines.append(audit.line(audit.body(row), len(lines) + 1, prev))
                prev = audit.digest(lines[-1])
            self.head.write_text(f"{len(lines):020d} {prev}\n")
        self.path.write_bytes(b"".join(lines))

    def change(self, how: Change, at: int, *, anew: bool) -> None:
        """Change one line, in a way that nothing but a checkpoint may show."""
        self.changed = self.lines.copy()
        how(self.changed, at)
        self.replace(self.changed, anew=anew)

    def unheld(self) -> list[str]:
        """What is found in chain and checkpoints."""
        said = Comparison(str(self.text), plain(str(self.path)))
        chain = list(verify(str(self.path), said.passed))
        return [wrong for _, _, wrong in (*chain, *said.faults())]


def told(kept: Kept, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    code = main(["audit", "verify", "--log", str(kept.path), "--checkpoints", str(kept.text), *more])
    return code, "".join(capsys.readouterr())


def test_a_log_in_several_files_holds_and_what_came_after_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Kept(tmp_path, 60, (1, 20, 20, 50))
    assert len(kept.files) > 3
    code, out = told(kept, capsys)
    assert code == 0 and "3 of 3 checkpoints held, up to number 50; 10 records after that" in out
    code, out = told(kept, capsys, "--json")
    assert json.loads(out) == {"checkpoints": 3, "held": 3, "newest": 50, "exposed": 10}


@pytest.mark.parametrize("anew", [False, True])
def test_no_change_before_the_last_checkpoint_goes_unseen(anew: bool, tmp_path: Path) -> None:
    kept = Kept(tmp_path, 16, (1, 6, 12))
    for how in CHANGES:
        for at in range(12):
            kept.change(how, at, anew=anew)
            assert kept.unheld(), (how.__name__, at)


@pytest.mark.slow
def test_no_change_of_ten_thousand_goes_unseen(tmp_path: Path) -> None:
    kept, rng = Kept(tmp_path, 60, (1, 17, 33, 50)), random.Random(1)  # noqa: S311 - a choice of places
    for number in range(10_000):
        how, at = CHANGES[number % len(CHANGES)], rng.randrange(50)
        kept.change(how, at, anew=bool(rng.randrange(4)))
        assert kept.unheld(), (how.__name__, at)


def test_each_way_a_log_can_be_gone_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Kept(tmp_path, 30, (1, 8, 20))
    kept.change(edit, 4, anew=True)
    code, out = told(kept, capsys)
    assert code == 1 and ":2: number 8 was another record" in out and "1 of 3 checkpoints held, up to number 1;" in out
    kept.change(truncate, 10, anew=True)
    code, out = told(kept, capsys)
    assert code == 1 and ":3: number 20 was written, but the log ends at number 10: the end was removed" in out
    kept.path.unlink()
    kept.head.unlink()
    code, out = told(kept, capsys)
    assert code == 1 and out.count("the log ends at number 0") == 3
    kept.files[oldest := next(iter(kept.files))] = b""
    for file, data in kept.files.items():
        if file != oldest:
            file.write_bytes(data)
    code, out = told(kept, capsys)
    assert code == 1 and ":1: 1 checkpoint of records before number" in out and "2 of 3 checkpoints held" in out


def test_the_first_record_of_a_log_is_held_too(tmp_path: Path) -> None:
    kept = Kept(tmp_path, 3, (1,))
    kept.change(edit, 0, anew=True)
    assert len(kept.unheld()) == 1


def test_checkpoints_of_other_logs_bear_nothing_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Kept(tmp_path, 6, (3,))
    kept.text.write_text(kept.text.read_text().replace(str(tmp_path), "/elsewhere"))
    code, out = told(kept, capsys)
    assert code == 2 and f"holds no checkpoint of {kept.path} (1 checkpoint of /elsewhere/audit.jsonl)" in out
    assert told(kept, capsys, "--of", "/elsewhere/audit.jsonl")[0] == 0
    assert told(kept, capsys, "--of", "/elsewhere/")[0] == 0
    assert told(kept, capsys, "--of", "/else")[0] == 2
