"""`policyd status` beside a daemon: what it has in force, what is wrong there; and without one, as ever."""

from __future__ import annotations

import io
import json
import socket
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from policyd.cli import daemonstate, main
from policyd.cli.daemonstate import Running
from policyd.storage import sockets
from tests.daemons import Daemon, params, scene, until
from tests.proxied import Scene


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def status(here: Scene, *words: str) -> Done:
    """Run `policyd status` in the scene."""
    home = str(here.root / "home")
    command = ["status", "--home", home, "--policy", str(here.policy), "--cwd", str(here.work), *words]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(command)
    return Done(code, out.getvalue(), err.getvalue())


def told(here: Scene, *words: str) -> dict[str, Any]:
    """Return what `policyd status --json` says of the daemon."""
    found: dict[str, Any] = json.loads(status(here, "--json", *words).out)["daemon"]
    return found


def test_a_running_daemon_is_asked_what_it_has(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path), options=["--prompt", "client", "--prompt", "inbox"]) as daemon:
        place, peer = f"--socket={daemon.path}", daemon.peer(person=True)
        peer.request("session/request_permission", params("npm test"))
        peer.until(method="_policyd/ask")
        found = told(daemon.scene, place)
        assert (found["connections"], found["pending"], found["prompts"]) == (2, 1, 0)
        assert found["files"] == [{"layer": "user", "file": str(daemon.scene.policy)}]
        assert found["revision"].startswith("sha256:") and found["pid"] == daemon.process.pid
        assert (found["mute"], found["problems"], found["prompt"]) == ("", [], ["client", "inbox"])
        done = status(daemon.scene, place)
        assert done.code == 0
        assert f"listening on {daemon.path}" in (daemon.scene.root / "daemon.log").read_text()
        for words in (
            f"process {daemon.process.pid}",
            "waiting for an answer: 1 request",
            str(daemon.scene.audit),
            found["revision"],
        ):
            assert words in done.out
        peer.close()


def test_a_question_in_the_inbox_is_counted(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path), options=["--prompt", "inbox"]) as daemon:
        peer = daemon.peer()
        peer.request("session/request_permission", params("npm test"))
        until(lambda: told(daemon.scene, f"--socket={daemon.path}")["prompts"] == 1, "the question is counted")
        peer.close()


def test_a_bad_edit_is_told_and_the_last_good_policy_stays(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        place, good = f"--socket={daemon.path}", tmp_path / "good.toml"
        good.write_text(daemon.scene.policy.read_text())
        before = told(daemon.scene, place)["revision"]
        daemon.scene.policy.write_text("version = 1\n[[rules]]\n")
        daemon.process.send_signal(1)
        until(lambda: bool(told(daemon.scene, place)["problems"]), "the mistake is told")
        assert told(daemon.scene, place)["revision"] == before
        done = status(daemon.scene, place, "--policy", str(good))
        assert done.code == 1 and "problem  the changed policy is not used" in done.out


def test_a_daemon_that_cannot_record_is_no_sound_one(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path), options=["--audit", "/dev/full"]) as daemon:
        done = status(daemon.scene, f"--socket={daemon.path}")
        assert done.code == 1 and "cannot be written" in done.out


def test_without_a_daemon_everything_else_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    here = scene(tmp_path)
    done = status(here, "--json")
    assert done.code == 0 and json.loads(done.out)["daemon"] is None


def babble(listener: socket.socket) -> None:
    """Answer one peer with what is no message."""
    one, _ = listener.accept()
    with one:
        one.recv(1 << 16)
        one.sendall(b"[1]\n{}\nnoise\n")


@pytest.mark.parametrize("kind", ["nothing", "dead", "no socket", "hangs up", "babbles", "silent"])
def test_a_named_daemon_that_does_not_answer_is_an_error(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, path = scene(tmp_path), str(tmp_path / "run/p.sock")
    connect = sockets.connect
    monkeypatch.setattr(sockets, "connect", lambda path: connect(path, seconds=0.2))
    with socket.socket(socket.AF_UNIX) as listener:
        if kind not in ("nothing", "no socket"):
            listener.bind(path)
        if kind in ("silent", "babbles", "hangs up"):
            listener.listen()
        if kind == "no socket":
            Path(path).write_text("x")
        does = {"babbles": lambda: babble(listener), "hangs up": lambda: listener.accept()[0].close()}
        thread = threading.Thread(target=does.get(kind, lambda: None))
        thread.start()
        done = status(here, f"--socket={path}")
        thread.join()
    assert done.code == 2 and "daemon" in done.err and done.out == ""


@pytest.mark.parametrize("told", [{}, {"problems": 3, "files": "x", "prompt": None, "seconds": "y", "mute": 1}])
def test_an_answer_of_another_shape_is_shown_as_far_as_it_goes(told: dict[str, object]) -> None:
    assert list(daemonstate.lines(Running("/s", told)))


def test_peers_that_hang_up_are_no_connections(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        peer, gone = daemon.peer(), daemon.stranger()
        gone.close()
        until(lambda: peer.call("_policyd/status", {})["connections"] == 1, "only one is left")
        peer.close()
