"""Grants on disk: shared by many processes, never half written, never wider for being damaged."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from policyd.grants import Clock, Grant
from policyd.grants.grant import grant_id
from policyd.model import Effect
from policyd.storage import clock as clocks
from policyd.storage import grantfile, locks, private, processes
from policyd.storage.filecache import FileCache
from policyd.storage.grantfile import GrantFile, GrantFileError, name_of
from policyd.storage.grants import Remembered, files, grants_cache
from tests.asking import ASKED, CLOCK, NOW, asked, context, grant, request, run

ALLOW = grant(ASKED["a command"])
DENY = grant(ASKED["an edit"], effect=Effect.DENY)
OTHER = grant(ASKED["a URL"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project directory; grants live beside it in `state`."""
    place = tmp_path / "project"
    place.mkdir()
    return place


def state(project: Path) -> str:
    """The directory of grants."""
    return str(project.parent / "state" / "grants")


def file(project: Path, clock: Clock = CLOCK) -> GrantFile:
    """The project's file, looked at anew."""
    return GrantFile(state(project), str(project), lambda: clock)


def put(project: Path, *grants: Grant, clock: Clock = CLOCK) -> GrantFile:
    """Write these grants."""
    found = file(project, clock)
    found.change(lambda old: (*old, *grants))
    return found


def test_what_was_written_is_there_for_everybody(project: Path) -> None:
    assert file(project).grants(CLOCK) == ()
    put(project, ALLOW, DENY)
    assert file(project).grants(CLOCK) == (ALLOW, DENY)
    assert os.stat(file(project).path).st_mode & 0o777 == 0o600
    assert os.stat(state(project)).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(state(project))) == [f"{name_of(str(project))}.toml", f"{name_of(str(project))}.toml.lock"]


def test_another_process_change_counts_at_the_next_look(project: Path) -> None:
    mine = put(project, ALLOW)
    assert not mine.changed()
    put(project, DENY)
    assert mine.changed()
    assert mine.grants(CLOCK) == (ALLOW, DENY)
    os.unlink(mine.path)
    assert mine.grants(CLOCK) == ()


def test_the_same_tuple_is_given_while_nothing_changes(project: Path) -> None:
    mine = put(project, ALLOW)
    assert mine.grants(CLOCK) is mine.grants(CLOCK)


# ---- damage ---------------------------------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[:-30]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": cut,
    "empty": lambda data: b"",
    "NUL": lambda data: b"\0" * len(data),
    "a NUL inside": lambda data: data[:300] + b"\0" + data[300:],
    "no UTF-8": lambda data: data.replace(b"claude", b"\xff\xfeude", 1),
    "random": lambda data: random.Random(1).randbytes(5000),  # noqa: S311
    "a rule widened": lambda data: data.replace(b'"npm test"', b'"npm **"'),
    "another agent": lambda data: data.replace(b'agent = "claude-code"', b'agent = "codex"', 1),
    "immense": lambda data: data + b"#" * (17 * 1024 * 1024),
    "JSON": lambda data: b'{"allow": true}',
}


@pytest.mark.parametrize("name", DAMAGE)
def test_of_a_damaged_file_no_allow_is_left_and_it_is_set_aside(name: str, project: Path) -> None:
    path = Path(put(project, ALLOW, DENY).path)
    broken = DAMAGE[name](path.read_bytes())
    path.write_bytes(broken)
    mine = file(project)
    assert all(one.effect is Effect.DENY for one in mine.grants(CLOCK))
    if name in {"a rule widened", "another agent", "immense", "no UTF-8"}:
        assert mine.grants(CLOCK) == (DENY,)
    (aside,) = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == broken
    assert len(mine.take_problems()) == 2
    assert put(project, OTHER).grants(CLOCK)[-1] == OTHER, "and life goes on"


def as_link(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


UNSAFE: dict[str, Callable[[Path], None]] = {
    "writable by all": lambda path: path.chmod(0o666),
    "writable by the group": lambda path: path.chmod(0o620),
    "a link": as_link,
    "a FIFO": as_fifo,
    "a directory": as_directory,
}


@pytest.mark.parametrize("name", UNSAFE)
def test_a_file_others_may_change_allows_nothing(name: str, project: Path) -> None:
    path = Path(put(project, ALLOW, DENY).path)
    UNSAFE[name](path)
    assert ALLOW not in file(project).grants(CLOCK)
    if name.startswith("writable"):
        assert file(project).grants(CLOCK) == (DENY,)


def test_nothing_is_written_where_others_may_write(project: Path) -> None:
    os.makedirs(state(project))
    os.chmod(state(project), 0o777)  # noqa: S103 - the fault under test
    with pytest.raises(GrantFileError):
        put(project, ALLOW)


def test_a_change_that_cannot_be_written_changes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = put(project, ALLOW)
    before = Path(mine.path).read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("put", "flush_directory"):
        with monkeypatch.context() as patch:
            patch.setattr(f"policyd.storage.grantfile.{name}", full)
            with pytest.raises(GrantFileError):
                put(project, OTHER)
        if name == "put":
            assert Path(mine.path).read_bytes() == before


def test_a_lock_that_nobody_lets_go_of_keeps_nobody_waiting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = put(project, ALLOW)
    monkeypatch.setattr(locks, "LONGEST", 0.02)
    with open(f"{mine.path}.lock", "rb") as stopped:
        locks.lock(stopped.fileno())
        with pytest.raises(GrantFileError, match="another process keeps it locked"):
            put(project, OTHER)
        assert file(project).grants(CLOCK) == (ALLOW,)
    put(project, OTHER)


def test_a_note_of_the_clock_hardly_waits_for_a_lock(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, waits = put(project, ALLOW), []
    monkeypatch.setattr(grantfile, "lock", lambda descriptor, *, brief=False: waits.append(brief))
    mine.note(Clock(NOW + timedelta(hours=1), CLOCK.boot + 3600, CLOCK.boot_id))
    assert waits == [True]


@pytest.mark.parametrize("end", [lambda one: one.end("s1"), Remembered.leave])
def test_who_leaves_hardly_waits_for_a_lock(
    project: Path, end: Callable[[Remembered], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, waits = remembered(project, "one"), []
    one.remember([for_session(project, "s1")])
    monkeypatch.setattr(grantfile, "lock", lambda descriptor, *, brief=False: waits.append(brief))
    end(one)
    assert waits == [True]


def test_another_directory_at_the_same_path_voids_what_was_allowed(project: Path) -> None:
    put(project, ALLOW, DENY)
    project.rename(project.with_name("moved"))
    project.mkdir()
    (project.parent / "keeps the old inode").mkdir()
    mine = file(project)
    assert mine.grants(CLOCK) == (DENY,)
    assert mine.take_problems()
    assert put(project, OTHER).grants(CLOCK) == (DENY, OTHER)


def test_a_file_copied_from_another_project_allows_nothing(project: Path) -> None:
    path = Path(put(project, ALLOW, DENY).path)
    other = project.with_name("other")
    other.mkdir()
    mine = file(other)
    Path(mine.path).write_bytes(path.read_bytes())
    os.chmod(mine.path, 0o600)
    assert mine.grants(CLOCK) == (DENY,)


# ---- what was read before --------------------------------------------------------------------------


def many(count: int = 400) -> tuple[Grant, ...]:
    """More than a small file's worth of grants."""
    asked = [request(run("make", str(number))) for number in range(count)]
    return tuple(grant(one, scope="project") for one in asked)


def test_a_large_file_is_read_once_for_all_processes_and_means_the_same(project: Path, tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "kept"), ("grants",))
    file(project).change(lambda old: (*many(), DENY))
    first, again = (GrantFile(state(project), str(project), lambda: CLOCK, cache=cache) for _ in range(2))
    assert first.grants(CLOCK) == again.grants(CLOCK) == file(project).grants(CLOCK)
    assert len(os.listdir(tmp_path / "kept")) == 1


def test_a_process_that_decides_reads_a_large_file_as_it_was_kept(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(project).change(lambda old: (*many(), DENY))
    one, other = (Remembered(state(project), name, lambda: CLOCK, cache=grants_cache(str(tmp_path))) for name in "ab")
    found = one.book(str(project), CLOCK).grants
    monkeypatch.setattr(grantfile, "_parse", lambda _: pytest.fail("it is read anew"))
    assert other.book(str(project), CLOCK).grants == found and len(found) == 401
    assert other.beside("c").cache is other.cache


@pytest.mark.parametrize("kept", [b"", b"\x80", b"rubbish", bytes(32) + b"\x80", sha256(b"\xc0").digest() + b"\xc0"])
def test_what_is_kept_counts_for_nothing_where_it_does_not_read(project: Path, tmp_path: Path, kept: bytes) -> None:
    cache = FileCache(str(tmp_path / "kept"), ("grants",))
    file(project).change(lambda old: (*many(), DENY))
    one = GrantFile(state(project), str(project), lambda: CLOCK, cache=cache)
    one.current()
    (name,) = (tmp_path / "kept").iterdir()
    name.write_bytes(kept)
    again = GrantFile(state(project), str(project), lambda: CLOCK, cache=cache)
    assert again.grants(CLOCK) == file(project).grants(CLOCK)
    assert again.grants(CLOCK)[-1] == DENY


def test_every_check_of_the_file_holds_though_its_reading_is_kept(project: Path, tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "kept"), ("grants",))
    file(project).change(lambda old: (*many(), DENY))
    path = Path(file(project).path)
    GrantFile(state(project), str(project), lambda: CLOCK, cache=cache).current()
    path.chmod(0o666)
    assert GrantFile(state(project), str(project), lambda: CLOCK, cache=cache).grants(CLOCK) == (DENY,)


def test_a_damaged_large_file_is_not_kept(project: Path, tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "kept"), ("grants",))
    file(project).change(lambda old: (*many(), DENY))
    path = Path(file(project).path)
    path.write_text(path.read_text().replace('command = "make 7"', 'command = "make 8"'))
    assert GrantFile(state(project), str(project), lambda: CLOCK, cache=cache).grants(CLOCK) == (DENY,)
    assert not (tmp_path / "kept").exists()


# ---- clocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wall", "boot_id", "counts"),
    [
        (timedelta(hours=1), "boot-2", True),
        (-timedelta(hours=24), "boot-2", False),
        (-timedelta(days=3653), "boot-2", False),
        (timedelta(days=3653), "boot-2", False),
        (timedelta(hours=1), "boot-1", True),
        (-timedelta(hours=24), "boot-1", True),
        (-timedelta(days=3), "boot-1", False),
        (timedelta(days=3653), "boot-1", False),
    ],
)
def test_no_grant_outlives_its_life_by_a_jump_of_the_clock(
    project: Path, wall: timedelta, boot_id: str, counts: bool
) -> None:
    old = replace(ALLOW, created=NOW - timedelta(days=2), until=NOW + timedelta(days=20), boot=0.0)
    later = Clock(NOW, CLOCK.boot, CLOCK.boot_id)
    put(project, old, clock=later)
    clock = Clock(NOW + wall, CLOCK.boot + 3600, boot_id)
    found = [one for one in file(project).grants(clock) if one.alive(clock)]
    assert bool(found) is counts


def test_a_clock_that_went_back_does_not_bind_for_ever(project: Path) -> None:
    put(project, ALLOW, clock=Clock(NOW + timedelta(days=1), CLOCK.boot, CLOCK.boot_id))
    after = Clock(NOW + timedelta(hours=1), 10.0, "boot-2")
    new = replace(OTHER, created=after.wall, boot=10.0, boot_id="boot-2")
    assert put(project, new, clock=after).grants(after) == (new,)
    later = Clock(NOW + timedelta(hours=2), 10.0, "boot-3")
    assert file(project).grants(later) == (new,)


def test_the_clock_is_noted_while_a_process_runs_and_nothing_is_rewritten_for_it(project: Path) -> None:
    process = remembered(project)
    process.remember([given(project)])
    assert settled(process, project) is Effect.ALLOW
    before = grantfile.identify(file(project).path)
    process.clock = lambda: Clock(NOW + timedelta(days=2), CLOCK.boot + 2 * 86_400, CLOCK.boot_id)
    assert settled(process, project) is Effect.ALLOW
    assert grantfile.identify(file(project).path) == before
    for hours, counts in ((25, False), (49, True)):
        after = Clock(NOW + timedelta(hours=hours), 10.0, "boot-2")
        assert bool(file(project, after).grants(after)) is counts


@pytest.mark.parametrize("noted", [b"", b"rubbish", b"2027-01-01", b"2026-11-29T11:00:00", b"\xff"])
def test_a_note_of_the_clock_that_cannot_be_read_is_none(project: Path, noted: bytes) -> None:
    path = put(project, ALLOW).path
    Path(f"{path}.seen").write_bytes(noted)
    os.chmod(f"{path}.seen", 0o600)
    assert file(project).grants(CLOCK) == (ALLOW,)


def test_spent_grants_are_left_out_of_the_next_write(project: Path) -> None:
    put(project, ALLOW)
    assert put(project, OTHER, clock=Clock(NOW + timedelta(days=31), 9e6, "boot-1")).current().grants == (OTHER,)


def test_the_real_clock_counts_up() -> None:
    one, two = clocks.now(), clocks.now()
    assert one.boot <= two.boot
    assert one.wall.tzinfo is not None
    assert sys.platform != "linux" or len(one.boot_id) == 36


# ---- one process among others -----------------------------------------------------------------------


def remembered(project: Path, run_id: str = "this-process") -> Remembered:
    """A process, with the tests' clock."""
    return Remembered(state(project), run_id, clock=lambda: CLOCK)


def settled(process: Remembered, project: Path, words: str = "npm test", session: str = "s1") -> Effect | None:
    """What a process makes of a command in its project."""
    place = str(project)
    asking = request(run(*words.split(), cwd=place), session=session)
    return process.bind(asking, context(cwd=place))(asked(asking.actions[0]))


def given(project: Path, scope: str = "project", effect: Effect = Effect.ALLOW) -> Grant:
    """A grant of `npm test` in the project; relative keys are the same in every project."""
    found = grant(ASKED["a command"], scope=scope, effect=effect)
    return replace(found, boot=None, boot_id="", run="", project=str(project))


def test_what_is_remembered_first_counts_at_once(project: Path) -> None:
    """Where nothing was ever kept there is no directory; who makes it is another process."""
    one, other = remembered(project, "one"), remembered(project, "other")
    assert settled(one, project) is None and not one.changed()
    other.remember([given(project, effect=Effect.DENY)])
    assert one.changed()
    assert settled(one, project) is Effect.DENY and not one.changed()


def for_session(project: Path, session: str, run_id: str = "", effect: Effect = Effect.ALLOW) -> Grant:
    """A grant of `npm test` for one session."""
    found = given(project, "session", effect)
    ident = grant_id(effect, "session", found.agent, found.members, session)
    return replace(found, id=ident, session=session, run=run_id)


@pytest.mark.parametrize("effect", [Effect.ALLOW, Effect.DENY])
def test_a_session_that_is_closed_takes_its_answers_with_it_and_no_others(project: Path, effect: Effect) -> None:
    process = remembered(project)
    here = for_session(project, "s1", effect=effect)
    process.remember([here, for_session(project, "s2", effect=effect)])
    assert settled(process, project) is settled(process, project, session="s2") is effect
    process.end("s1")
    assert [one.session for one in file(project).current().grants] == ["s2"]
    assert settled(process, project) is None
    assert settled(process, project, session="s2") is effect
    process.remember([here])
    assert settled(process, project) is None, "it was answered before, and written late"
    process.remember([replace(here, created=CLOCK.wall + timedelta(microseconds=1))])
    assert settled(process, project) is effect


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.EACCES])
def test_while_a_file_cannot_be_read_no_answer_allows_and_none_is_lost(
    project: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    process, said = remembered(project), list[str]()
    process.say = said.append
    page, place = ASKED["a URL"], context(cwd=str(project))

    def told(by: Remembered) -> Effect | None:
        return by.bind(page, place)(asked(page.actions[0]))

    process.remember([replace(grant(page, scope="user"), project="")])
    assert told(process) is Effect.ALLOW
    path = Path(put(project, grant(page, effect=Effect.DENY)).path)
    before, real = path.read_bytes(), os.open

    def failing(name: str, *more: int, **others: int) -> int:
        if name == str(path):
            raise OSError(number, os.strerror(number), name)
        return real(name, *more, **others)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        for _ in range(2):
            assert told(process) is told(remembered(project)) is None
        with pytest.raises(GrantFileError):
            process.remember([given(project)])
    assert [text.count("no remembered answer allows") for text in said] == [1], "it is said, once"
    assert path.read_bytes() == before and told(process) is Effect.DENY


def test_a_clock_that_was_set_back_brings_no_answer_of_a_closed_session_back(project: Path) -> None:
    process = remembered(project)
    process.remember([given(project, "session")])
    assert settled(process, project) is Effect.ALLOW
    process.clock = lambda: Clock(NOW - timedelta(hours=1), CLOCK.boot, CLOCK.boot_id)
    process.end("s1")
    process.clock = lambda: CLOCK
    assert settled(process, project) is None


def test_closed_sessions_are_remembered_as_long_as_their_answers_may_live(project: Path) -> None:
    process = remembered(project)
    process.remember([given(project, "session")])
    process.end("s1")
    for number in range(3_000):
        process.end(f"other-{number}")
    assert settled(process, project) is None


def test_a_grant_is_shared_by_processes_and_a_later_denial_wins_at_once(project: Path) -> None:
    one, two = remembered(project, "one"), remembered(project, "two")
    assert settled(two, project) is None
    one.remember([given(project)])
    assert settled(one, project) is Effect.ALLOW
    assert settled(two, project) is Effect.ALLOW
    assert not one.changed()
    two.remember([given(project, effect=Effect.DENY)])
    assert one.changed()
    assert settled(one, project) is Effect.DENY
    assert [found.effect for found in file(project).grants(CLOCK)] == [Effect.DENY]


def test_a_link_that_leads_to_another_project_takes_no_grant_along(project: Path) -> None:
    other, link = project.with_name("another"), project.with_name("link")
    other.mkdir()
    link.symlink_to(project)
    process = remembered(project)
    process.remember([given(project)])
    assert settled(process, link) is Effect.ALLOW
    link.unlink()
    link.symlink_to(other)
    assert settled(process, link) is None


def test_a_session_grant_is_listed_for_all_and_holds_for_one(project: Path) -> None:
    one, two = remembered(project, "one"), remembered(project, "two")
    one.remember([given(project, "session")])
    assert settled(one, project) is Effect.ALLOW
    assert settled(one, project, session="s2") is None
    assert settled(two, project) is None
    assert len(file(project).grants(CLOCK)) == 1


@pytest.mark.parametrize(
    "effects", [(Effect.ALLOW, Effect.ALLOW), (Effect.DENY, Effect.DENY), (Effect.ALLOW, Effect.DENY)]
)
def test_two_processes_whose_sessions_have_one_name_keep_their_own_answers(
    project: Path, effects: tuple[Effect, Effect]
) -> None:
    both = remembered(project, "one"), remembered(project, "two")
    for process, effect in zip(both, effects, strict=True):
        process.remember([for_session(project, "s1", effect=effect)])
    assert tuple(settled(process, project) for process in both) == effects
    assert tuple(settled(remembered(project, run), project) for run in ("one", "two")) == effects
    both[0].remember([for_session(project, "s1", effect=effects[1])])
    assert [settled(process, project) for process in both] == [effects[1]] * 2


def test_a_connection_that_ends_leaves_no_session_grant_of_its_own(project: Path) -> None:
    one, two = remembered(project, "one"), remembered(project, "two")
    one.remember([for_session(project, "s1"), given(project), for_session(project, "s2")])
    two.remember([for_session(project, "s3")])
    one.leave()
    assert [(held.scope, held.run) for held in file(project).grants(CLOCK)] == [("project", ""), ("session", "two")]


def a_word_of_another() -> str:
    """Return the word of a process that has ended."""
    words = "from policyd.storage.processes import run_word; print(run_word())"
    return subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout.strip()


def test_a_process_that_is_elsewhere_or_not_shown_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = processes.run_word(), a_word_of_another()
    with monkeypatch.context() as patch:  # all machines call their first numbering of processes the same
        patch.setattr(processes, "boot_id", lambda: "another-machine")
        assert not processes.ended(theirs)
    monkeypatch.setattr(processes, "born", lambda _pid: 0)
    assert not processes.ended(ours)


def test_a_session_without_a_name_takes_no_answer_of_others_along(project: Path) -> None:
    one = remembered(project, "one")
    one.remember([for_session(project, "s1"), for_session(project, "")])
    one.end("")
    assert [held.session for held in file(project).grants(CLOCK)] == ["s1"]


def test_what_was_for_a_session_of_a_process_that_was_killed_is_listed_no_more(project: Path) -> None:
    ours, theirs = processes.run_word(), a_word_of_another()
    runs = {theirs: sys.platform == "linux", ours: False, "a-word-of-old": False, theirs.replace("-", "-9", 2): False}
    assert {word: processes.ended(word) for word in runs} == runs
    put(project, *(for_session(project, f"s{at}", word) for at, word in enumerate(runs)))
    left = [word for word, ended in runs.items() if not ended]
    assert [held.run for held in file(project).grants(CLOCK)] == left
    assert [held.run for held in put(project).current().grants] == left


def test_a_session_grant_that_cannot_be_written_is_kept_in_memory_any_other_is_not(project: Path) -> None:
    process = remembered(project, "one")
    os.makedirs(state(project))
    os.chmod(state(project), 0o777)  # noqa: S103 - the fault under test
    for scope, effect in (("session", Effect.ALLOW), ("project", None)):
        with pytest.raises(GrantFileError):
            process.remember([given(project, scope)])
        assert settled(process, project) is (effect or Effect.ALLOW)
    fresh = remembered(project, "one")
    with pytest.raises(GrantFileError):
        fresh.remember([given(project)])
    assert settled(fresh, project) is None


def test_a_denial_that_could_not_be_written_counts_where_nothing_was_ever_kept(project: Path) -> None:
    process = Remembered("/proc/nowhere/grants", "one", clock=lambda: CLOCK)
    with pytest.raises((GrantFileError, OSError)):
        process.remember([replace(given(project, "session"), effect=Effect.DENY)])
    assert settled(process, project) is Effect.DENY


def test_a_user_grant_holds_in_every_project(project: Path) -> None:
    process = remembered(project)
    process.remember([replace(grant(ASKED["a URL"], scope="user"), boot=None, boot_id="")])
    asking = ASKED["a URL"]
    settle = process.bind(asking, context(cwd="/somewhere/else"))
    assert settle(asked(asking.actions[0])) is Effect.ALLOW
    assert [found.root for found in files(state(project))] == [""]


def test_no_grant_lives_longer_than_the_setting(project: Path) -> None:
    process = Remembered(state(project), "one", clock=lambda: CLOCK, longest=timedelta(minutes=30))
    process.remember([given(project)])
    (found,) = file(project).grants(CLOCK)
    assert found.until - found.created == timedelta(minutes=30)


def test_a_shorter_setting_ends_what_was_remembered_before_it(project: Path) -> None:
    Remembered(state(project), "one", clock=lambda: CLOCK).remember([given(project)])
    later = replace(CLOCK, wall=CLOCK.wall + timedelta(minutes=20), boot=CLOCK.boot + 1200)
    for minutes, effect in ((30, Effect.ALLOW), (10, None)):
        process = Remembered(state(project), "two", clock=lambda: later, longest=timedelta(minutes=minutes))
        assert settled(process, project) is effect


def test_no_setting_gives_life_to_a_grant_that_lasts_longer_than_any_may(project: Path) -> None:
    forged = replace(given(project), until=CLOCK.wall + timedelta(days=90))
    assert not forged.alive(CLOCK) and not forged.capped(timedelta(days=7)).alive(CLOCK)


def test_without_a_session_nothing_of_a_project_counts(project: Path) -> None:
    process = remembered(project)
    process.remember([given(project)])
    where = context(cwd=str(project))
    assert process.root(replace(where, workspace=replace(where.workspace, cwd=None))) == ""


# ---- real processes ---------------------------------------------------------------------------------

WRITER = """
import errno, sys
from policyd.storage import clock as clocks
from policyd.storage.grantfile import GrantFileError
from policyd.storage.grants import Remembered
from policyd.grants.grant import Grant, grant_id
from policyd.grants import Key
from policyd.model import Effect
from datetime import timedelta
directory, project, name, count = sys.argv[1:]
process = Remembered(directory, name)
for number in range(int(count)):
    members = (Key(("execute",), "command", (name, str(number)), cwd=(".",)),)
    now = clocks.now().wall
    made = Grant(
        id=grant_id(Effect.ALLOW, "project", "claude", members, ""), effect=Effect.ALLOW, scope="project",
        agent="claude", members=members, covers="x", created=now, until=now + timedelta(days=1), project=project,
    )
    kept = False
    while not kept:
        try:
            process.remember([made])
            kept = True
        except GrantFileError as error:  # many that never pause may keep one out for as long as it waits
            if error.errno != errno.EAGAIN:
                raise
    print(number, flush=True)
"""


def writer(project: Path, name: str, count: int) -> subprocess.Popen[str]:
    """A process that adds `count` grants, saying each when it is kept."""
    words = [sys.executable, "-c", WRITER, state(project), str(project), name, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def named(project: Path) -> set[tuple[str, ...]]:
    """The words of all grants in the file, which must be whole."""
    loaded = file(project).current()
    assert not loaded.damage
    return {one.members[0].words for one in loaded.grants}


def check_none_lost(project: Path, processes: int, count: int) -> None:
    running = [writer(project, f"p{number}", count) for number in range(processes)]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    assert named(project) == {(f"p{process}", str(number)) for process in range(processes) for number in range(count)}


def test_no_grant_of_several_processes_is_lost(project: Path) -> None:
    check_none_lost(project, 4, 15)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_grant_of_16_processes_with_200_grants_each_is_lost(project: Path) -> None:
    check_none_lost(project, 16, 200)


def check_killed(project: Path, times: int) -> None:
    dice, said = random.Random(7), set()  # noqa: S311 - a repeatable table
    for number in range(times):
        process = writer(project, f"k{number}", 1000)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(dice.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].split()
        said |= {(f"k{number}", line) for line in ("0", *lines[:-1])}
        assert said <= named(project), "an acknowledged grant is there"
    put(project, OTHER)
    assert not list(Path(state(project)).glob("*.new")), "temporary files are cleaned up"
    assert not list(Path(state(project)).glob("*.damaged-*"))


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(project: Path) -> None:
    check_killed(project, 4)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_500_killed_writers_leave_the_old_file_or_the_new_one(project: Path) -> None:
    check_killed(project, 500)


def test_what_others_add_while_a_writer_waits_is_not_from_the_future(project: Path) -> None:
    late = Clock(NOW + timedelta(seconds=30), CLOCK.boot + 30, CLOCK.boot_id)
    times = iter([CLOCK, late])
    process = Remembered(state(project), "slow", clock=lambda: next(times, late))
    put(project, replace(OTHER, created=NOW + timedelta(seconds=20), boot=CLOCK.boot + 20), clock=late)
    process.remember([given(project)])
    assert len(file(project).current().grants) == 2


def test_a_grant_for_one_project_never_counts_for_all(project: Path) -> None:
    everywhere = GrantFile(state(project), "", lambda: CLOCK)
    everywhere.change(lambda old: (ALLOW, DENY, grant(ASKED["a URL"], scope="user")))
    assert [one.scope for one in GrantFile(state(project), "").grants(CLOCK)] == ["project", "user"], "a denial stays"
    assert ALLOW not in everywhere.grants(CLOCK)
    with pytest.raises(ValueError, match="project"):
        remembered(project).remember([replace(ALLOW, project="")])


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_others_put_in_the_place_of_a_new_file_is_never_written_to(kind: str, tmp_path: Path) -> None:
    place, other = tmp_path / "a.new", tmp_path / "other"
    if kind == "file":
        place.write_bytes(b"old")
    else:
        place.symlink_to(other)
    if kind == "link":
        other.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        private.write_whole(str(place), b"new")
    assert (place.read_bytes() if place.exists() else b"old") == b"old"
    private.put(str(tmp_path / "a"), b"new")
    assert (tmp_path / "a").read_bytes() == b"new" and not (tmp_path / "a").is_symlink()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert not other.exists() or other.read_bytes() == b"old"
