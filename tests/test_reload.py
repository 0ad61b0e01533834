"""Every way a policy file changes, seen by a running proxy, a running daemon, and a proxy that lets a daemon decide."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.daemons import Daemon, answers, chosen, scene, until
from tests.proxied import AGENT, Client

ALLOW = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = "make"\n'
DENY = ALLOW.replace("allow", "deny")
EMPTY = "version = 1\n"
LOOSER = "it may allow more than before"
HASTY = """
from policyd import cli
from policyd.service import steady, watch
steady.QUIET = watch.BEAT = watch.PAUSE = watch.DELAY = 0.05
watch.SETTLE = 20
raise SystemExit(cli.main())
"""
HASTE = (sys.executable, "-c", HASTY)
"""It soon takes files for whole."""


class Transport(ABC):
    """A running policyd with user policies in `folder`, and somebody who asks it."""

    command = HASTE

    def __init__(self, root: Path) -> None:
        self.scene = scene(root)
        self.folder = root / "home/.config/policyd/policies.d"
        self.folder.mkdir(parents=True)
        (self.folder / "a.toml").write_text(EMPTY)
        self.log = root / "stderr.log"
        self.count = 1

    def run(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start policyd with its standard error in the log."""
        with self.log.open("ab") as log:
            return subprocess.Popen([*self.command, *words], env=self.scene.environ, bufsize=0, stderr=log, **more)

    def client(self, *words: str) -> Client:
        """Return a client of a proxy with the scripted agent, its session open."""
        pipe = subprocess.PIPE
        agent = (shutil.which("python3") or "python3", "-I", AGENT, "ask", "1")
        client = Client(self.run("proxy", *words, "--", *agent, stdin=pipe, stdout=pipe))
        client.open(self.scene.work)
        return client

    @abstractmethod
    def start(self) -> None:
        """Start it."""

    @abstractmethod
    def make(self) -> str:
        """Ask for permission to run `make`; return the option chosen."""

    @abstractmethod
    def stop(self) -> None:
        """End it."""

    def reloads(self) -> list[dict[str, Any]]:
        """Return what is on record of reloads."""
        return [row for row in self.scene.records() if row["event"] == "reload"] if self.scene.audit.exists() else []


class Proxy(Transport):
    """A proxy that decides by itself."""

    def start(self) -> None:
        self.asker = self.client("--prompt=none")

    def make(self) -> str:
        self.count += 1
        return str(self.asker.asked("make", self.count).get("optionId"))

    def stop(self) -> None:
        self.asker.close()


class Served(Transport):
    """A daemon and an embedder."""

    def start(self) -> None:
        self.daemon = Daemon(self.scene)
        self.daemon.process = self.run("serve", "--prompt=none", f"--socket={self.daemon.path}")
        until(lambda: answers(self.daemon.path), "the daemon listens")
        self.peer = self.daemon.peer()

    def make(self) -> str:
        self.count += 1
        return chosen(self.peer.ask("make", call=f"c{self.count}"))

    def stop(self) -> None:
        self.peer.close()
        self.daemon.stop()


class Connected(Served):
    """A proxy connected to a daemon."""

    def start(self) -> None:
        super().start()
        self.asker = self.client(f"--connect={self.daemon.path}")

    def make(self) -> str:
        self.count += 1
        return str(self.asker.asked("make", self.count).get("optionId"))

    def stop(self) -> None:
        self.asker.close()
        super().stop()


@pytest.fixture(params=[Proxy, Served, pytest.param(Connected, marks=pytest.mark.slow)])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transport]:
    """A running policyd of each kind."""
    one: Transport = request.param(tmp_path)
    one.start()
    until(lambda: one.make() == "no", "it decides")
    yield one
    one.stop()


class Changes:
    """What is done to the files of a directory, in order, and what then becomes of `make`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = 0

    def renamed(self, text: str, name: str = "a.toml") -> None:
        """As an editor does: a new file over the old one."""
        fresh = self.folder.parent / "fresh"
        fresh.write_text(text)
        os.rename(fresh, self.folder / name)

    def recreated(self, text: str) -> None:
        """The whole directory goes and comes back."""
        shutil.rmtree(self.folder)
        time.sleep(0.2)
        self.folder.mkdir()
        (self.folder / "a.toml").write_text(text)

    def swapped(self, text: str) -> None:
        """As a Kubernetes ConfigMap does: the files are links through a link to a directory, which is swapped."""
        self.version += 1
        place, link = self.folder / f"..v{self.version}", self.folder / "..data"
        place.mkdir()
        (place / "m.toml").write_text(text)
        (self.folder / "..next").symlink_to(place.name)
        os.rename(self.folder / "..next", link)
        if not (self.folder / "m.toml").is_symlink():
            (self.folder / "m.toml").symlink_to("..data/m.toml")

    STEPS: ClassVar[tuple[tuple[str, Callable[[Changes], object], str], ...]] = (
        ("written in place", lambda c: (c.folder / "a.toml").write_text(ALLOW), "yes"),
        ("renamed over", lambda c: c.renamed(DENY), "no"),
        ("renamed over again", lambda c: c.renamed(ALLOW), "yes"),
        ("a second file", lambda c: c.renamed(DENY, "b.toml"), "no"),
        ("deleted with the directory, and back", lambda c: c.recreated(ALLOW), "no"),
        ("the second file is back, empty", lambda c: c.renamed(EMPTY, "b.toml"), "yes"),
        ("a link to a directory", lambda c: c.swapped(DENY), "no"),
        ("the link swapped", lambda c: c.swapped(EMPTY), "yes"),
        ("the link swapped back", lambda c: c.swapped(DENY), "no"),
    )


def test_every_way_a_policy_changes_counts_in_a_running_session(here: Transport) -> None:
    changes = Changes(here.folder)
    for name, change, wanted in Changes.STEPS:
        change(changes)
        until(lambda wanted=wanted: here.make() == wanted, f"{name}: {wanted}")  # type: ignore[misc]
    assert [row["loosens"] for row in here.reloads()].count(True) >= 3
    asker = getattr(here, "asker", None)
    assert asker is None or told(asker) >= 1


def test_a_file_that_vanishes_keeps_its_denies_and_a_bad_edit_changes_nothing(here: Transport) -> None:
    file = here.folder / "a.toml"
    file.write_text(ALLOW)
    until(lambda: here.make() == "yes", "the rule counts")
    file.write_text(DENY)
    until(lambda: here.make() == "no", "it is denied")
    file.unlink()
    (here.folder / "b.toml").write_text(ALLOW)
    until(lambda: here.reloads()[-1]["revision"].endswith("+kept"), "the files were looked at")
    assert here.make() == "no"
    file.write_text(EMPTY)
    until(lambda: here.make() == "yes", "the file is back, without its deny")
    file.write_text("version = 1\n[[rules]]\n")
    until(lambda: bool(here.reloads()[-1]["problems"]), "the mistake is on record")
    assert here.make() == "yes"
    assert "the changed policy is not used" in here.log.read_text() and "rules" in here.log.read_text()
    file.write_text(DENY)
    until(lambda: here.make() == "no", "it is mended")
    assert here.reloads()[-1]["problems"] == []


@pytest.mark.slow
def test_a_policy_that_may_allow_more_is_told_and_one_that_tightens_is_not(tmp_path: Path) -> None:
    for kind in (Proxy, Connected):
        (tmp_path / kind.__name__).mkdir()
        one = kind(tmp_path / kind.__name__)
        one.start()
        (one.folder / "a.toml").write_text(DENY)
        until(lambda one=one: bool(one.reloads()), "the deny is seen")  # type: ignore[misc]
        assert one.make() == "no" and not told(one.asker)
        (one.folder / "a.toml").write_text(ALLOW)
        until(lambda one=one: one.make() == "yes", "the allow is seen")  # type: ignore[misc]
        assert told(one.asker) == 1 and LOOSER in one.log.read_text()
        one.stop()


def told(client: Client) -> int:
    """Return how often the session was told that the policy may allow more."""
    return sum(LOOSER in json.dumps(message) for message in client.seen)


@pytest.mark.slow
def test_with_tighten_a_running_daemon_takes_denies_and_no_allows(tmp_path: Path) -> None:
    one = Served(tmp_path)
    (tmp_path / "home/.config/policyd/policyd.toml").write_text('reload = "tighten"\n')
    (one.folder / "a.toml").write_text(ALLOW)
    one.start()
    until(lambda: one.make() == "yes", "it decides")
    (one.folder / "a.toml").write_text(DENY)
    until(lambda: one.make() == "no", "the deny counts")
    (one.folder / "a.toml").write_text(ALLOW)
    until(lambda: len(one.reloads()) >= 2, "the allow is seen")
    assert one.make() == "no" and not any(row["loosens"] for row in one.reloads())
    one.stop()


@pytest.mark.slow
def test_a_storm_of_changes_is_few_reloads_and_its_end_counts(tmp_path: Path) -> None:
    """10 000 changes in ten seconds: at most fifty reloads, decisions go on, the last content counts within seconds."""
    one = Served(tmp_path)
    one.command = (sys.executable, "-m", "policyd")
    one.start()
    until(lambda: one.make() == "no", "it decides")
    time.sleep(1.5)
    began, took = time.monotonic(), []
    for number in range(10_000):
        (one.folder / "a.toml").write_text((ALLOW, DENY)[number % 2] + f"# {number}\n")
        if number % 100 == 0:
            asked = time.monotonic()
            one.make()
            took.append(time.monotonic() - asked)
        time.sleep(max(0.0, began + number / 1000 - time.monotonic()))
    (one.folder / "a.toml").write_text(ALLOW)
    ended = time.monotonic()
    until(lambda: one.make() == "yes", "the last content counts")
    print(
        f"\n{len(one.reloads())} reloads in {ended - began:.1f} s, slowest decision {max(took) * 1000:.0f} ms, "
        f"the end counted after {time.monotonic() - ended:.2f} s"
    )
    assert len(one.reloads()) <= 5 * (ended - began) + 5
    one.stop()


def test_the_service_manager_and_status_hear_of_a_bad_edit(tmp_path: Path) -> None:
    from tests.daemons import Manager

    one, manager = Served(tmp_path), Manager(tmp_path)
    one.scene.environ["NOTIFY_SOCKET"] = manager.path
    one.start()
    assert manager.until("READY")["STATUS"].endswith("in force")
    (one.folder / "a.toml").write_text("version = 1\n[[rules]]\n")
    one.daemon.process.send_signal(1)
    assert manager.until("RELOADING")
    done = manager.until("READY")
    assert "1 problems" in done["STATUS"] and "rules" in done["STATUS"]
    assert one.peer.call("_policyd/status", {})["problems"]
    (one.folder / "a.toml").write_text(EMPTY)
    while "problems" in manager.until("STATUS")["STATUS"]:
        pass
    manager.socket.close()
    one.stop()
