"""The service: commands in order, nothing without its record, files that change the policy."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import replace

from policyd.model import Effect, Layer
from policyd.policy import Policy, PolicyError, PolicySource, load
from policyd.service import steady
from policyd.service.book import Change, PolicyBook
from policyd.service.change import loosens
from policyd.service.passing import let_go
from policyd.service.performer import Performer
from policyd.service.signals import catch
from policyd.service.start import Choices, prepare
from policyd.service.steps import ProgramSteps
from policyd.service.tally import Tally
from policyd.session import (
    Ask,
    Closed,
    Command,
    Event,
    Failed,
    Moment,
    Note,
    Record,
    Reloaded,
    Remember,
    Reply,
    Send,
    Side,
    Withdraw,
)
from policyd.storage import places as where
from policyd.storage import policies
from policyd.storage.auditlog import AuditLog
from policyd.storage.auditsync import Syncer
from policyd.storage.places import Places
from policyd.storage.trust import TrustStore, read_project

RECORD = Record(1, {"schema": 1, "event": "decision", "effect": "allow", "rules": [{"rule": "user:a"}]})
ALLOW = Send(Side.AGENT, b"allow\n", 1)


@dataclass
class Script:
    """An enforcement that answers every event from a list."""

    answers: list[list[Command]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def handle(self, event: Event, now: Moment) -> list[Command]:
        self.events.append(event)
        return self.answers.pop(0) if self.answers else []

    def feed(self, side: Side, block: bytes, now: Moment) -> list[Command]:
        return self.answers.pop(0)

    def deadline(self) -> float | None:
        return None


@dataclass
class Bench:
    """A performer with everything it did."""

    script: Script
    log: AuditLog
    sent: list[tuple[Side, bytes]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[Remember] = field(default_factory=list)

    def performer(self) -> Performer:
        """Make the performer."""
        made = Performer(
            self.script,
            log=self.log,
            note=lambda note: self.notes.append(note.text),
            remember=self.kept.append,
        )
        made.send_by(lambda side, data: self.sent.append((side, data)))
        return made


def bench(tmp_path: Path, *answers: list[Command], audit: str = "") -> Bench:
    """Return a bench whose enforcement answers so."""
    return Bench(Script(list(answers)), AuditLog(audit or str(tmp_path / "audit.jsonl")))


def until(performer: Performer, done: Callable[[], bool]) -> None:
    """Wake the performer whenever a thread posted, until `done`."""
    end = monotonic() + 10
    while not done() and monotonic() < end:
        select.select([performer.waker], [], [], 0.1)
        performer.wake()
    assert done()


# ---- records before answers ------------------------------------------------------------------------


def test_commands_are_performed_in_order(tmp_path: Path) -> None:
    here = bench(tmp_path, [Send(Side.CLIENT, b"1\n"), RECORD, ALLOW, Note("n"), Send(Side.CLIENT, b"2\n")])
    here.performer().feed(Side.AGENT, b"x\n")
    assert here.sent == [(Side.CLIENT, b"1\n"), (Side.AGENT, b"allow\n"), (Side.CLIENT, b"2\n")]
    assert here.notes == ["n"] and b'"effect":"allow"' in (tmp_path / "audit.jsonl").read_bytes()


def test_an_answer_whose_record_failed_is_not_sent_and_the_failure_goes_back(tmp_path: Path) -> None:
    keep = Remember((), 1)
    here = bench(
        tmp_path, [RECORD, ALLOW, keep, Send(Side.CLIENT, b"2\n")], [Send(Side.AGENT, b"no\n")], audit="/dev/full"
    )
    here.performer().feed(Side.AGENT, b"x\n")
    assert here.sent == [(Side.CLIENT, b"2\n"), (Side.AGENT, b"no\n")] and here.kept == []
    assert isinstance(here.script.events[0], Failed) and "No space left" in here.script.events[0].why


class Raising(AuditLog):
    """A log with a defect."""

    def append(self, record: Mapping[str, object], now: datetime) -> None:
        raise ZeroDivisionError("defect")


def test_any_exception_while_recording_is_a_failed_record(tmp_path: Path) -> None:
    here = bench(tmp_path, [RECORD, ALLOW], [])
    here.log = Raising(str(tmp_path))
    here.performer().feed(Side.AGENT, b"x\n")
    assert here.sent == [] and here.script.events == [Failed(1, "ZeroDivisionError: defect")]


def test_with_fsync_only_what_depends_on_the_record_waits(tmp_path: Path) -> None:
    here = bench(tmp_path, [RECORD, ALLOW, Send(Side.CLIENT, b"2\n")])
    performer = here.performer()
    syncer = performer.durable = Syncer(here.log, lambda keys, why: performer.post((keys, why)))
    performer.feed(Side.AGENT, b"x\n")
    assert here.sent == [(Side.CLIENT, b"2\n")] and performer.busy()
    until(performer, lambda: not performer.busy())
    assert here.sent[-1] == (Side.AGENT, b"allow\n")
    syncer.stop()


def test_a_record_that_did_not_become_durable_counts_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = bench(tmp_path, [RECORD, ALLOW], [Send(Side.AGENT, b"no\n")])

    def broken(fd: int) -> None:
        raise OSError(5, "EIO")

    monkeypatch.setattr(os, "fdatasync", broken)
    performer = here.performer()
    syncer = performer.durable = Syncer(here.log, lambda keys, why: performer.post((keys, why)))
    performer.feed(Side.AGENT, b"x\n")
    until(performer, lambda: bool(here.sent))
    assert here.sent == [(Side.AGENT, b"no\n")]
    (failed,) = here.script.events
    assert isinstance(failed, Failed) and failed.command == 1 and failed.why.endswith("cannot be made durable: EIO")
    syncer.stop()


# ---- asking ----------------------------------------------------------------------------------------


def hook(tmp_path: Path, text: str) -> str:
    """Write a prompt program."""
    path = tmp_path / "hook"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def asked(path: str, seconds: float = 10.0) -> Ask:
    """Return a question for a program."""
    return Ask(7, f"command:{path}", {"nonce": "n"}, monotonic() + seconds)


def test_a_programs_answer_comes_back_as_a_reply(tmp_path: Path) -> None:
    here = bench(tmp_path, [asked(hook(tmp_path, 'cat > /dev/null; echo "{\\"decision\\": \\"allow\\"}"'))])
    performer = here.performer()
    performer.steps = ProgramSteps(performer.post)
    performer.feed(Side.AGENT, b"x\n")
    until(performer, lambda: bool(here.script.events))
    assert here.script.events == [Reply(7, {"decision": "allow"})]


@pytest.mark.parametrize("step", ["inbox", "other", "command:relative", "command:/nowhere/at/all"])
def test_a_step_that_cannot_be_run_has_failed(tmp_path: Path, step: str) -> None:
    here = bench(tmp_path, [replace(asked(""), step=step)])
    performer = here.performer()
    performer.steps = ProgramSteps(performer.post)
    performer.feed(Side.AGENT, b"x\n")
    until(performer, lambda: bool(here.script.events))
    assert isinstance(here.script.events[0], Failed)


def test_without_steps_a_question_has_failed(tmp_path: Path) -> None:
    here = bench(tmp_path, [asked("/x"), Withdraw(7)])
    here.performer().feed(Side.AGENT, b"x\n")
    assert isinstance(here.script.events[0], Failed)


def test_an_answer_that_cannot_be_remembered_is_said_and_sent_all_the_same(tmp_path: Path) -> None:
    here = bench(tmp_path, [RECORD, Remember((), 1), ALLOW])
    performer = here.performer()

    def broken(command: Remember) -> None:
        raise OSError("disk")

    performer._remember = broken
    performer.feed(Side.AGENT, b"x\n")
    assert here.sent == [(Side.AGENT, b"allow\n")] and "disk" in here.notes[0]


def test_a_closed_side_and_a_reload_reach_the_enforcement(tmp_path: Path) -> None:
    here = bench(tmp_path)
    performer = here.performer()
    performer.reloaded = lambda found: Reloaded()
    performer.closed(Side.CLIENT)
    performer.post("a change")
    performer.wake()
    assert here.script.events == [Closed(Side.CLIENT), Reloaded()]


def test_a_policy_is_let_go_of_though_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    let_go([load([], home="/home/dev", tmpdir="/tmp", version="0.1.0")])


def test_the_tally_counts_effects_and_rules() -> None:
    tally = Tally()
    for effect, rule in (("allow", "user:a"), ("deny", "user:b"), ("deny", "user:b")):
        tally.add({"event": "decision", "effect": effect, "rules": [{"rule": rule}]})
    tally.add({"event": "unasked"})
    tally.add({"event": "reload"})
    assert tally.lines() == ["1 allowed, 2 rejected, 1 unasked", "  2  deny user:b", "  1  allow user:a"]
    assert tally.refused


def test_what_could_not_be_recorded_counts_as_refused() -> None:
    tally = Tally()
    tally.lost = 2
    assert tally.refused and tally.lines() == [
        "0 allowed, 0 rejected, 0 unasked, 2 refused: they could not be recorded"
    ]


# ---- policies in force -----------------------------------------------------------------------------

DENY = '[[rule]]\nid = "d"\neffect = "deny"\ncommand = "rm"\n'
ALLOW_LS = '[[rule]]\nid = "a"\neffect = "allow"\ncommand = "ls"\n'
ALLOW_CAT = '[[rule]]\nid = "c"\neffect = "allow"\ncommand = "cat **"\n'


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A home with a directory for policies, no managed layer; what is written there is whole at once."""
    monkeypatch.setattr(steady, "QUIET", 0.0)
    (tmp_path / "home/.config/policyd/policies.d").mkdir(parents=True)
    found = where.find(home=str(tmp_path / "home"), environ={})
    return replace(found, managed=("/nowhere/policyd",))


def put(places: Places, name: str, text: str) -> Path:
    """Write a user policy file, as an editor would: a new file renamed over the old one."""
    path = Path(places.user_policies) / name
    fresh = path.with_suffix(".new")
    fresh.write_text("version = 1\n" + text)
    os.rename(fresh, path)
    return path


def book(places: Places, *, tighten: bool = False) -> PolicyBook:
    """Return a started book."""
    made = PolicyBook(places)
    made.tighten = tighten
    made.start()
    return made


def ids(policy: Policy, effect: Effect) -> set[str]:
    """Return the rules of an effect."""
    return {rule.ref.id for rule in policy.rules if rule.effect is effect and not rule.void}


def looked(made: PolicyBook) -> Change:
    """Look, take, return the change."""
    change = made.look()
    assert change is not None
    made.take(change)
    return change


def test_a_changed_file_is_in_force_after_a_look(places: Places) -> None:
    put(places, "a.toml", ALLOW_LS)
    made = book(places)
    assert made.look() is None
    put(places, "a.toml", DENY)
    assert not looked(made).loosens
    assert ids(made.policy, Effect.DENY) == {"d"} and ids(made.policy, Effect.ALLOW) == set()


def test_a_bad_edit_changes_nothing_and_is_reported_once(places: Places) -> None:
    put(places, "a.toml", DENY)
    made = book(places)
    before = made.policy
    put(places, "a.toml", ALLOW_LS.replace("effect", "efect"))
    put(places, "b.toml", ALLOW_CAT)
    assert any("efect" in problem for problem in looked(made).problems)
    assert made.policy is before and made.look() is None
    put(places, "a.toml", DENY)
    assert looked(made).problems == () and ids(made.policy, Effect.ALLOW) == {"c"}


def test_a_session_that_opened_before_a_change_means_nothing_in_it_keeps_what_it_has(
    places: Places, tmp_path: Path
) -> None:
    """A set of the user's that lies in a session's workspace is none for the user's other files there."""
    sets, main = tmp_path / "work/sets.toml", put(places, "main.toml", DENY)
    sets.parent.mkdir()
    sets.write_text('version = 1\n[sets]\nx = ["ls"]\n')
    made = PolicyBook(places, files=(str(main), str(sets)))
    made.start()
    put(places, "main.toml", ALLOW_LS.replace('"ls"', '"@x"'))
    change, roots = made.look(), (str(tmp_path / "work"),)
    assert change is not None and ids(made.of(roots).policy, Effect.DENY) == {"d"}
    made.take(change)
    assert ids(made.policy, Effect.ALLOW) == {"a"} and ids(made.of(roots).policy, Effect.DENY) == {"d"}
    assert any("@x" in problem for problem in looked(made).problems)


def test_a_vanished_file_keeps_its_denials_until_it_is_back(places: Places) -> None:
    gone = put(places, "a.toml", DENY + ALLOW_LS + '[defaults]\nedit = "deny"\nread = "allow"\n')
    put(places, "b.toml", ALLOW_CAT)
    made = book(places)
    gone.unlink()
    looked(made)
    assert ids(made.policy, Effect.DENY) == {"d"} and ids(made.policy, Effect.ALLOW) == {"c"}
    assert [dict(each.entries).keys() for each in made.policy.defaults if "edit" in each.entries] == [{"edit"}]
    put(places, "b.toml", ALLOW_LS)
    looked(made)
    assert ids(made.policy, Effect.DENY) == {"d"}
    put(places, "a.toml", "")
    looked(made)
    assert ids(made.policy, Effect.DENY) == set()


def test_a_vanished_file_keeps_its_conditional_denials_and_no_others(places: Places) -> None:
    ground = '[[default]]\nid = "{}"\neffect = "{}"\ntool = "{}/*"\n'
    gone = put(places, "a.toml", ground.format("gone", "deny", "a") + ground.format("loose", "allow", "b"))
    put(places, "b.toml", ground.format("stays", "ask", "c"))
    made = book(places)
    gone.unlink()
    looked(made)
    assert sorted(rule.ref.id for each in made.policy.defaults for rule in each.rules) == ["gone", "stays"]


def test_sessions_that_open_after_a_file_vanished_keep_its_denials_too(places: Places, tmp_path: Path) -> None:
    gone = put(places, "a.toml", DENY)
    project = tmp_path / "project"
    (project / ".policyd").mkdir(parents=True)
    (project / ".policyd/p.toml").write_text("version = 1\n" + ALLOW_LS)
    made = book(places)
    gone.unlink()
    looked(made)
    assert ids(made.of((str(project),)).policy, Effect.DENY) == {"d"}
    assert made.of((str(project),)).found.sources != made.of(()).found.sources


def test_a_managed_file_that_vanishes_keeps_its_lock_until_it_is_back(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "managed"
    folder.mkdir()
    lock, more = folder / "lock.toml", folder / "more.toml"
    lock.write_text('version = 1\n[lock]\nrefuse = ["user.allow", "grants"]\nsettings = ["prompt"]\n')
    monkeypatch.setattr(policies, "managed", lambda directories: policies.given([str(folder)], Layer.MANAGED))
    put(places, "a.toml", ALLOW_LS)
    made = book(places)
    held = made.policy.lock
    assert held.grants and held.settings and ids(made.policy, Effect.ALLOW) == set()
    lock.unlink()
    for text in ("version = 1\n", "version = 1\n" + ALLOW_CAT):
        more.write_text(text)
        looked(made)
        assert made.policy.lock == held and "a" not in ids(made.policy, Effect.ALLOW)
    lock.write_text("version = 1\n")
    assert looked(made).loosens
    assert made.policy.lock != held and ids(made.policy, Effect.ALLOW) == {"a", "c"}


@pytest.mark.parametrize(("locked", "shell"), [(False, "zsh"), (True, "bash")])
def test_a_locked_shell_is_not_the_command_lines_to_choose(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: bool, shell: str
) -> None:
    (tmp_path / "lock.toml").write_text('version = 1\n[lock]\nsettings = ["shell"]\n' if locked else "version = 1\n")
    named = [str(tmp_path / "lock.toml")]
    monkeypatch.setattr(policies, "managed", lambda directories: policies.given(named, Layer.MANAGED))
    chosen = Choices(home=places.home, shell="zsh")  # noqa: S604 - a name, nothing is run
    assert prepare(chosen).machine.shell == shell


def test_tighten_takes_new_denials_and_no_new_allows(places: Places) -> None:
    put(places, "a.toml", ALLOW_LS + DENY)
    made = book(places, tighten=True)
    put(places, "a.toml", ALLOW_LS + ALLOW_CAT + DENY.replace("rm", "mv").replace('"d"', '"e"'))
    looked(made)
    assert ids(made.policy, Effect.ALLOW) == {"a"} and ids(made.policy, Effect.DENY) == {"d", "e"}
    put(places, "a.toml", ALLOW_CAT)
    looked(made)
    assert ids(made.policy, Effect.ALLOW) == set() and ids(made.policy, Effect.DENY) == {"d", "e"}
    rules = len(made.policy.rules)
    for number in range(3):
        put(places, "a.toml", ALLOW_CAT + DENY + f'[defaults]\nread = "allow"\nedit = "ask"\n# {number}\n')
        looked(made)
    entries = [(key, entry.effect) for each in made.policy.defaults for key, entry in each.entries.items()]
    assert entries == [("read", Effect.ASK), ("edit", Effect.ASK)] and len(made.policy.rules) == rules


def test_sessions_that_open_while_policies_may_only_tighten_allow_no_more(places: Places, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted"
    for name in ("one", "two", "trusted"):
        (tmp_path / name / ".policyd").mkdir(parents=True)
        (tmp_path / name / ".policyd/p.toml").write_text("version = 1\n" + ALLOW_LS)
    TrustStore(places.trust).add(read_project(str(trusted)), datetime(2026, 11, 30, tzinfo=UTC))
    put(places, "a.toml", DENY)
    made = book(places, tighten=True)
    put(places, "a.toml", DENY + DENY.replace("rm", "mv").replace('"d"', '"e"'))
    looked(made)
    put(places, "a.toml", ALLOW_CAT)
    looked(made)
    for name, home, allows in (("one", "", set()), ("two", "/home/other", set()), ("trusted", "", {"a"})):
        policy = made.of((str(tmp_path / name),), home).policy
        assert (ids(policy, Effect.ALLOW), ids(policy, Effect.DENY)) == (allows, {"d", "e"})


STEPS = (
    (DENY + ALLOW_CAT, "in place of the old, line for line"),
    (DENY + ALLOW_LS + ALLOW_CAT + DENY.replace('"d"', '"e"'), "with more in it"),
    (ALLOW_CAT, "with less in it"),
)


@pytest.mark.parametrize(("text", "name"), STEPS)
def test_a_file_that_is_being_written_allows_nothing_that_was_not_allowed(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str
) -> None:
    monkeypatch.setattr(steady, "QUIET", 0.5)
    file = put(places, "a.toml", DENY + ALLOW_LS)
    made, lines, now = book(places), text.splitlines(keepends=True), [0.0]
    made._steady._clock = lambda: now[0]
    for cut in [*range(len(lines) + 1)] * 2:
        file.write_text("version = 1\n" + "".join(lines[:cut]))
        now[0] += 0.4
        if (change := made.look()) is not None:
            made.take(change)
        fresh = tmp_path / str(now[0])
        (fresh / ".policyd").mkdir(parents=True)
        (fresh / ".policyd/p.toml").write_text("version = 1\n")
        for policy in (made.policy, made.of((str(fresh),)).policy):
            assert ids(policy, Effect.ALLOW) <= {"a"} and ids(policy, Effect.DENY) >= {"d"}
        assert made.waits or made.look() is None
    now[0] += 0.5
    assert looked(made).loosens and not made.waits and made.look() is None
    for effect in Effect:
        assert (
            ids(made.policy, effect) == ids(made.of((str(fresh),)).policy, effect) == ids(book(places).policy, effect)
        )


def test_a_file_that_is_being_written_is_not_forgotten_for_many_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady, "KEPT", 2)
    now = [100.0]
    found, one = steady.Steady(lambda: now[0]), PolicySource(str(tmp_path / "a.toml"), b"", Layer.USER)
    found.begin([replace(one, data=b"before")])
    assert not found.look([one])
    for name in "bcdef":
        found.begin([replace(one, name=name), one])
    assert not found.look([one])
    now[0] += steady.QUIET
    assert found.look([one])


def test_a_file_that_stays_wrong_while_it_is_written_is_not_looked_at_all_the_time(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(places, "a.toml", DENY)
    made = book(places)
    monkeypatch.setattr(steady, "QUIET", 60.0)
    file.write_text("version = 1\n")
    looked(made)
    assert made.waits
    file.write_text("version = 1\n[[rule]]\n")
    assert looked(made).problems and not made.waits and ids(made.policy, Effect.DENY) == {"d"}


ALLOW_X = '[sets]\nx = ["{}"]\n' + ALLOW_LS.replace('"ls"', '"@x"')
DENY_X = ALLOW_X.replace('"allow"', '"deny"')
BLOCK_X = '[sets]\nx = ["{}"]\n[[default]]\nid = "b"\neffect = "allow"\nkind = "read"\npath = "@x"\n'
LOOSER = (
    (DENY, DENY + ALLOW_LS, True),
    (DENY + ALLOW_LS, DENY, False),
    (DENY, "", True),
    (ALLOW_LS, ALLOW_LS + DENY, False),
    (DENY + '[defaults]\nread = "ask"\n', DENY + '[defaults]\nread = "allow"\n', True),
    (ALLOW_X.format("ls"), ALLOW_X.format("**"), True),
    (ALLOW_X.format("ls"), ALLOW_X.format("**") + DENY, True),
    (ALLOW_X.format("ls"), ALLOW_X.format("ls") + DENY, False),
    (DENY_X.format("rm"), DENY_X.format("mv") + DENY, True),
    (BLOCK_X.format("a/*"), BLOCK_X.format("**") + DENY, True),
    (BLOCK_X.format("a/*"), BLOCK_X.format("a/*") + DENY, False),
)


@pytest.mark.parametrize(("old", "new", "looser"), LOOSER)
def test_what_may_allow_more_counts_as_loosening(places: Places, old: str, new: str, looser: bool) -> None:
    put(places, "a.toml", old)
    before = book(places).policy
    put(places, "a.toml", new)
    assert loosens(before, book(places).policy) is looser


def test_a_project_tightens_its_own_sessions_only(places: Places, tmp_path: Path) -> None:
    put(places, "a.toml", ALLOW_LS)
    project = tmp_path / "project"
    (project / ".policyd").mkdir(parents=True)
    (project / ".policyd/p.toml").write_text("version = 1\n" + DENY)
    made = book(places)
    assert ids(made.of((str(project),)).policy, Effect.DENY) == {"d"}
    assert made.of((str(tmp_path / "other"),)).policy is made.policy
    (project / ".policyd/p.toml").write_text("version = 1\n" + DENY + "nonsense = 1\n")
    change = looked(made)
    assert ids(made.of((str(project),)).policy, Effect.DENY) == {"d"} and change.problems
    assert made.look() is None


def test_a_bad_edit_of_a_trusted_project_voids_what_it_allowed(places: Places, tmp_path: Path) -> None:
    project, now = tmp_path / "project", datetime.fromisoformat("2026-11-30T00:00:00+00:00")
    (project / ".policyd").mkdir(parents=True)
    (project / ".policyd/p.toml").write_text("version = 1\n" + DENY + ALLOW_LS)
    trust, roots = TrustStore(places.trust), (str(project),)
    trust.add(read_project(roots[0]), now)
    made = book(places)
    assert ids(made.of(roots).policy, Effect.ALLOW) == {"a"}
    (project / ".policyd/p.toml").write_text("version = 1\n" + DENY + ALLOW_LS + "nonsense = 1\n")
    change = looked(made)
    assert change.problems
    assert ids(made.of(roots).policy, Effect.ALLOW) == set() and ids(made.of(roots).policy, Effect.DENY) == {"d"}


def test_a_policy_inside_the_workspace_only_tightens(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "work/ci.toml"
    path.parent.mkdir()
    path.write_text("version = 1\n" + ALLOW_LS + DENY)
    made = PolicyBook(places, files=[str(path)])
    made.start()
    assert ids(made.policy, Effect.ALLOW) == {"a"}
    inside = made.of((str(tmp_path / "work"),)).policy
    assert ids(inside, Effect.ALLOW) == set() and ids(inside, Effect.DENY) == {"d"}


def test_at_start_everything_wrong_is_told_at_once(places: Places) -> None:
    put(places, "a.toml", DENY.replace("effect", "efect"))
    put(places, "b.toml", "nonsense = 1\n")
    with pytest.raises(PolicyError) as error:
        book(places)
    assert len(error.value.diagnostics) >= 2


def test_a_signal_that_comes_when_it_is_just_caught_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    install, before, wakeup = signal.signal, signal.getsignal(signal.SIGUSR1), signal.set_wakeup_fd(-1)

    def followed(number: int, handler: Any) -> object:
        found = install(number, handler)
        if number == signal.SIGUSR1:
            os.kill(os.getpid(), number)
        return found

    monkeypatch.setattr(signal, "signal", followed)
    reading, _ = catch([signal.SIGUSR1])
    try:
        assert select.select([reading], [], [], 0)[0] and os.read(reading, 8) == bytes([signal.SIGUSR1])
    finally:
        install(signal.SIGUSR1, before)
        os.close(signal.set_wakeup_fd(wakeup))
        os.close(reading)
