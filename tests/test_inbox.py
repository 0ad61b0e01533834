"""Questions that wait for `policyd prompts answer`: a person answers once, nothing else ever does."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import monotonic, time

import pytest
from msgspec.structs import replace

from policyd.cli import main, presence
from policyd.model import Effect
from policyd.service.inbox import InboxStep
from policyd.storage import clock as clocks
from policyd.storage.grantfile import GrantFile
from policyd.storage.inbox import Inbox, InboxError, answer_to
from tests.asking import grant, request, run
from tests.daemons import Daemon, chosen, params, scene, until
from tests.proxied import Client

QUESTION = {"nonce": "n", "digest": "d", "agent": "claude", "project": "/work", "actions": ["run ls"], "options": []}


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    """An inbox of this process."""
    one = Inbox(str(tmp_path / "inbox"))
    yield one
    one.close()


def test_a_question_waits_for_its_answer(inbox: Inbox) -> None:
    ident = inbox.put(QUESTION, 60, uid=7)
    [entry] = inbox.entries()
    assert (entry.id, entry.uid, entry.rejected, entry.question) == (ident, 7, "", QUESTION)
    assert inbox.answered(ident) is None
    inbox.answer(ident, "allow", option="yes")
    assert inbox.answered(ident) == {"nonce": "n", "digest": "d", "decision": "allow", "option": "yes"}
    inbox.remove(ident)
    assert list(inbox.entries()) == [] and inbox.answered(ident) is None


@pytest.mark.parametrize(
    ("name", "holds"), [("notes.json", "{}"), ("ab.json", '{"id": "../ab"}'), ("cd.json", "x"), (".json", "{}")]
)
def test_what_is_no_question_is_left_out(name: str, holds: str, inbox: Inbox) -> None:
    ident = inbox.put(QUESTION, 60, uid=7)
    row = json.loads(Path(inbox.directory, f"{ident}.json").read_text())
    stray = Path(inbox.directory, name)
    stray.touch(0o600)
    stray.write_text(json.dumps({**row, **json.loads(holds)}) if holds != "x" else holds)
    assert [entry.id for entry in inbox.entries()] == [ident] and inbox.abandoned() == []


def test_everything_in_it_is_the_users_alone(inbox: Inbox) -> None:
    inbox.answer(inbox.put(QUESTION, 60, uid=0), "reject")
    folder = Path(inbox.directory)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}


def test_the_first_answer_counts(inbox: Inbox) -> None:
    ident = inbox.put(QUESTION, 60, uid=0)
    inbox.answer(ident, "reject")
    with pytest.raises(InboxError, match="already"):
        inbox.answer(ident, "allow")
    assert (inbox.answered(ident) or {})["decision"] == "reject"


def test_a_question_out_of_time_is_rejected(inbox: Inbox) -> None:
    ident = inbox.put(QUESTION, 0, uid=0)
    with pytest.raises(InboxError, match="in time"):
        inbox.answer(ident, "allow")


@pytest.mark.parametrize("ident", ["", "..", "a/b", "../x", "ff" * 40, "XY", "\0"])
def test_an_id_names_nothing_but_a_question(inbox: Inbox, ident: str) -> None:
    inbox.put(QUESTION, 60, uid=0)
    with pytest.raises(InboxError):
        inbox.answer(ident, "allow")


LEAVE = """
import sys
from policyd.storage.inbox import Inbox
print(Inbox(sys.argv[1]).put({"nonce": "n", "digest": "d"}, 600, uid=0), flush=True)
sys.stdin.read()
"""


def test_what_a_dead_policyd_left_behind_comes_back_rejected(inbox: Inbox) -> None:
    words = [sys.executable, "-c", LEAVE, inbox.directory]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as asker:
        assert asker.stdout
        ident = asker.stdout.readline().strip()
        assert [entry.rejected for entry in inbox.entries()] == [""]
        asker.kill()
    [entry] = inbox.entries()
    assert entry.id == ident and "ended" in entry.rejected
    with pytest.raises(InboxError, match="rejected"):
        inbox.answer(ident, "allow")
    assert [one.id for one in inbox.abandoned()] == [ident] and inbox.abandoned() == []


def test_whoever_asks_next_takes_away_what_killed_processes_left_and_no_more(inbox: Inbox) -> None:
    folder = Path(inbox.directory)
    running = Inbox(inbox.directory)
    open_one, late = running.put(QUESTION, 60, uid=0), running.put(QUESTION, -200_000, uid=0)
    row = json.loads((folder / f"{late}.json").read_text())
    (folder / f"{late}.json").write_text(json.dumps({**row, "until": "2026-01-01T00:00:00+00:00"}))
    (folder / "77-abcd.lock").touch()
    for name, age in ((".old", 100_000), (".new", 10)):
        (folder / name).touch()
        os.utime(folder / name, (time() - age, time() - age))
    before = {one.name for one in folder.iterdir()}
    mine = inbox.put(QUESTION, 60, uid=0)
    after = {one.name for one in folder.iterdir()}
    assert before - after == {".old", "77-abcd.lock", f"{late}.json"}
    assert [entry.rejected for entry in inbox.entries()] == ["", ""]
    assert {entry.id for entry in inbox.entries()} == {open_one, mine}
    running.close()


TWICE = '{"nonce":"n","digest":"d","decision":"reject","decision":"allow"}'


@pytest.mark.parametrize("written", ["", "[]", "{", '"allow"', "null", TWICE])
def test_an_answer_that_cannot_be_read_is_no_yes(inbox: Inbox, written: str) -> None:
    ident = inbox.put(QUESTION, 60, uid=0)
    path = Path(inbox.directory, f"{ident}.answer")
    path.write_text(written)
    path.chmod(0o600)
    assert inbox.answered(ident) == {}


def test_an_answer_others_could_have_written_is_no_answer(inbox: Inbox) -> None:
    ident = inbox.put(QUESTION, 60, uid=0)
    path = Path(inbox.directory, f"{ident}.answer")
    path.write_text(json.dumps(answer_to(QUESTION, "allow")))
    path.chmod(0o666)
    assert inbox.answered(ident) == {}


def test_a_full_inbox_is_a_failure_of_the_step(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.storage.inbox.MOST", 2)
    ended = Inbox(inbox.directory)
    ended.put(QUESTION, 60, uid=0)
    ended.close()  # what is rejected takes nobody's place
    inbox.put(QUESTION, 60, uid=0)
    inbox.put(QUESTION, 60, uid=0)
    with pytest.raises(InboxError, match="wait"):
        inbox.put(QUESTION, 60, uid=0)


def test_an_inbox_that_cannot_be_written_is_a_failure_of_the_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InboxError, match="cannot be written"):
        Inbox(str(tmp_path / "file" / "inbox")).put(QUESTION, 60, uid=0)


def test_a_question_nobody_would_look_for_the_answer_of_is_taken_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    step = InboxStep(Inbox(str(tmp_path / "inbox")), lambda key, answer: told.append(key))

    def none(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        with pytest.raises(RuntimeError):
            step.start(1, QUESTION, monotonic() + 60, uid=0)
    assert list(step.inbox.entries()) == []
    step.start(2, QUESTION, monotonic() + 60, uid=0)
    (entry,) = step.inbox.entries()
    step.inbox.answer(entry.id, "reject")
    until(lambda: bool(told), "the answer is told")
    step.close()
    assert told == [2]


def test_the_step_tells_an_answer_once_and_a_withdrawn_question_never(tmp_path: Path) -> None:
    told: list[object] = []
    step = InboxStep(Inbox(str(tmp_path / "inbox")), lambda key, answer: told.append((key, answer["decision"])))
    for key in (1, 2):
        step.start(key, QUESTION, monotonic() + 60, uid=0)
    assert step.withdraw(2) and not step.withdraw(2)
    reader = Inbox(str(tmp_path / "inbox"))
    [entry] = reader.entries()
    reader.answer(entry.id, "reject")
    until(lambda: bool(told), "the answer is told")
    assert told == [(1, "reject")] and list(reader.entries()) == []
    step.close()
    assert threading.active_count() < 10


# ---- with policyd -------------------------------------------------------------------------------------


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person sits at the terminal."""
    monkeypatch.setattr(presence, "refusal", lambda: "")


def listed(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """Return what `policyd prompts list` shows."""
    capsys.readouterr()
    main(["prompts", *words, "list", "--json"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_question_of_the_daemon_is_answered_at_the_command_line(
    tmp_path: Path, person: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with Daemon(scene(tmp_path), options=["--prompt", "inbox"]) as daemon:
        words = ["--home", str(daemon.scene.root / "home")]
        for decision, option in (("allow", "yes"), ("reject", "no")):
            peer = daemon.peer()
            ident = peer.request("session/request_permission", params("npm test"))
            until(lambda: bool(listed(words, capsys)), "the question is listed")
            [row] = listed(words, capsys)
            assert "nonce" not in json.dumps(row) and "npm test" in json.dumps(row["question"])
            assert main(["prompts", *words, "answer", str(row["id"]), decision]) == 0
            assert chosen(peer.result(ident)) == option
            peer.close()
        until(lambda: not listed(words, capsys), "nothing waits any more")
        assert main(["prompts", *words, "list"]) == 0
        assert main(["prompts", *words, "answer", "00000000", "allow"]) == 1


def test_what_runs_below_a_client_of_the_daemon_may_not_answer(tmp_path: Path) -> None:
    """This process asks; a child of it that speaks to the daemon is refused, whatever it says."""
    with Daemon(scene(tmp_path), options=["--prompt", "inbox"]) as daemon:
        peer = daemon.peer()
        ident = peer.request("session/request_permission", params("npm test"))
        until(lambda: bool(peer.call("_policyd/prompts", {})["prompts"]), "the question is listed")
        [row] = peer.call("_policyd/prompts", {})["prompts"]
        code = (
            "import sys; from policyd.cli.prompts import asked; "
            "print(asked(sys.argv[1], {'answer': {'id': sys.argv[2], 'decision': 'allow'}}))"
        )
        words = [sys.executable, "-c", code, daemon.path, row["id"]]
        said = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        assert said.returncode != 0 and "may not answer" in said.stderr
        peer.send({"method": "session/cancel", "params": {"sessionId": "s1"}})
        assert chosen(peer.result(ident)) == "cancelled"
        assert peer.call("_policyd/prompts", {})["prompts"] == []
        peer.close()


def test_below_a_client_of_the_daemon_a_remembered_yes_may_be_revoked_and_no_remembered_no(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        peer = daemon.peer()
        kept = GrantFile(
            str(daemon.scene.root / "home" / ".local/state/policyd/grants"), os.path.realpath(daemon.scene.work)
        )
        both = [grant(request(run("make")), effect=effect) for effect in (Effect.ALLOW, Effect.DENY)]
        now = clocks.now()
        fresh = [replace(one, created=now.wall, until=now.wall + timedelta(days=1), boot=None) for one in both]
        kept.change(lambda old: fresh)
        code = (
            "import sys; from policyd.cli.calling import asked; "
            "print(asked(sys.argv[1], '_policyd/grants', {'revoke': [sys.argv[2]]}, by='test'))"
        )

        def revoked(ident: str) -> bool:
            words = [sys.executable, "-c", code, daemon.path, ident]
            return subprocess.run(words, capture_output=True, timeout=30, check=False).returncode == 0

        allow, deny = (one.id for one in both)
        assert peer.call("_policyd/grants", {})["grants"]
        assert revoked(allow) and not revoked(deny)
        assert [one["effect"] for one in peer.call("_policyd/grants", {})["grants"]] == ["deny"]
        peer.close()


CHILD = """
import socket, sys, time
from tests.daemons import Peer, params
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
peer = Peer(one.detach()).greet(person=True, cwd=sys.argv[2], client={"name": "zed"}, agent="claude")
ident = peer.request("session/request_permission", params("make deploy"))
asked = peer.until(method="_policyd/ask")
time.sleep(0.5)
always = [one["optionId"] for one in asked["params"]["options"] if one["kind"] == "allow_always"]
chosen = {"outcome": {"outcome": "selected", "optionId": always[-1]}}
peer.send({"id": asked["id"], "result": chosen})
print(peer.result(ident)["outcome"]["optionId"], *(one["name"] for one in asked["params"]["options"]))
"""


@pytest.mark.parametrize("below", [True, False])
def test_what_runs_below_a_client_of_the_daemon_speaks_for_nobody_but_itself(tmp_path: Path, below: bool) -> None:
    """A program that an agent was allowed to run may claim a person too: its "always" is none of the agent's."""
    with Daemon(scene(tmp_path)) as daemon:
        peer = daemon.peer(agent="claude") if below else None
        words = [sys.executable, "-c", CHILD, daemon.path, str(daemon.scene.work)]
        said = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
        assert said.startswith("yes ") and ("in this project" in said) is not below
        peer = peer or daemon.peer(agent="claude")
        assert chosen(peer.ask("make deploy")) == ("no" if below else "yes")
        peer.close()


def test_the_command_wants_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "refusal", lambda: "no person")
    inbox = Inbox(str(tmp_path / ".local/state/policyd/inbox"))
    ident = inbox.put(QUESTION, 60, uid=os.getuid())
    assert main(["prompts", "--home", str(tmp_path), "answer", ident, "allow"]) == 2
    assert inbox.answered(ident) is None
    inbox.close()


def test_a_proxy_without_a_daemon_has_an_inbox_too(
    tmp_path: Path, person: None, capsys: pytest.CaptureFixture[str]
) -> None:
    here = scene(tmp_path)
    client = Client(here.start("ask", "1", options=["--prompt", "inbox"]))
    client.open(here.work)
    client.prompt("npm test")
    words = ["--home", str(here.root / "home")]
    until(lambda: bool(listed(words, capsys)), "the question is listed")
    assert main(["prompts", *words, "answer", str(listed(words, capsys)[0]["id"]), "allow"]) == 0
    assert client.until(method="answered")["params"]["result"]["outcome"]["optionId"] == "yes"
    client.close()


def test_a_killed_daemons_question_is_rejected_by_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Daemon(scene(tmp_path), options=["--prompt", "inbox"]) as daemon:
        peer = daemon.peer()
        peer.request("session/request_permission", params("npm test"))
        words = ["--home", str(daemon.scene.root / "home")]
        until(lambda: bool(listed(words, capsys)), "the question is listed")
        daemon.stop(9)
        daemon.start()
        [row] = listed(words, capsys)
        assert "ended" in str(row["rejected"])
        until(lambda: any(row["event"] == "inbox" for row in daemon.scene.records()), "the rejection is on record")
        rows = [row for row in daemon.scene.records() if row["event"] == "inbox"]
        assert [(row["entry"], row["outcome"]) for row in rows] == [(listed(words, capsys)[0]["id"], "rejected")]
        peer.close()
