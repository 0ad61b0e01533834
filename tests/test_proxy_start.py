"""How the proxy begins: what it imports, terminals, prompt programs, policies that change while it runs."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from policyd.service import watch
from policyd.service.watch import Watcher, existing
from tests.proxied import POLICYD, Client, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A fresh home, workspace and policy."""
    return Scene(tmp_path)


# ---- imports ---------------------------------------------------------------------------------------

BEFORE = """
import sys
import policyd.cli
known = set(sys.modules)
import policyd.proxy, policyd.proxy.options, policyd.proxy.agent
print(sorted(set(sys.modules) - known))
"""
NEVER = {"asyncio", "pydantic_settings", "typer", "rich", "acp", "argparse", "logging", "subprocess", "watchfiles"}
SPARED = """
import sys
from policyd.proxy import spare_imports
spare_imports()
print(sorted(sys.modules))
import platform, textwrap, typing_extensions, uuid
assert platform.python_version() and typing_extensions.Protocol and uuid.uuid1() and textwrap.fill("x") == "x"
"""
LATER = {
    "hashlib",
    "pydantic",
    "tomllib",
    "policyd.commands.matching.patterns",
    "policyd.policy.index",
    "policyd.policy.read",
}
"""What a start does without whose policy is plain and was read before."""
RUNNING = """
import os, sys
from policyd.proxy.run import open_service, Choices
service = open_service(Choices(policies=(sys.argv[1],), home=sys.argv[2]), print)
print(sorted(sys.modules))
"""


def test_nothing_but_the_agents_starter_is_imported_before_the_agent_runs() -> None:
    found = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True, check=True)
    assert set(json.loads(found.stdout.replace("'", '"'))) <= {
        "fcntl",
        "policyd.proxy",
        "policyd.proxy.agent",
        "policyd.proxy.options",
        "policyd.leash",
    }


def test_what_msgspec_is_spared_is_there_for_whoever_wants_it() -> None:
    found = subprocess.run([sys.executable, "-c", SPARED], capture_output=True, text=True, check=True)
    assert not {"platform", "typing_extensions", "textwrap"} & set(json.loads(found.stdout.replace("'", '"')))


def test_the_proxy_runs_without_anything_that_costs_an_interpreter(scene: Scene) -> None:
    words = [sys.executable, "-c", RUNNING, str(scene.policy), str(scene.root / "home")]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert not NEVER & set(json.loads(found.stdout.replace("'", '"')))


def test_a_start_with_a_policy_that_was_read_before_leaves_what_reads_policies_and_commands(scene: Scene) -> None:
    scene.policy.write_text('[[rule]]\neffect = "deny"\ncommand = "git push **"\n')
    words = [sys.executable, "-c", RUNNING, str(scene.policy), str(scene.root / "home")]
    for _ in range(2):
        found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert not LATER & set(json.loads(found.stdout.replace("'", '"')))


# ---- terminals -------------------------------------------------------------------------------------


def in_terminal(scene: Scene, *words: str) -> tuple[int, str]:
    """Run a command with a terminal on all three streams; return status and what the terminal showed."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvpe(words[0], list(words), scene.environ)  # noqa: S606 - the test's own command
    shown = b""
    while select.select([terminal], [], [], 20)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return status, shown.decode()


def test_between_two_terminals_policyd_becomes_the_agent_after_a_line_and_a_record(scene: Scene) -> None:
    status, shown = in_terminal(scene, *scene.command("/bin/sh", "-c", "tty; exit 3"))
    assert status == 3 and "running /bin/sh without policy" in shown and "/dev/pts/" in shown
    record = scene.records()[-1]
    assert record["event"] == "terminal" and record["outcome"] == "exec" and record["command"][0] == "/bin/sh"


def test_terminal_refuse_runs_nothing(scene: Scene) -> None:
    config = scene.root / "home/.config/policyd"
    config.mkdir(parents=True)
    (config / "policyd.toml").write_text('terminal = "refuse"\n')
    status, shown = in_terminal(scene, *scene.command("/bin/sh", "-c", "echo ran"))
    assert status == 2 and "refuse" in shown and "ran" not in shown.replace("running", "")
    assert scene.records()[-1]["outcome"] == "refuse"


def test_without_a_record_there_is_no_agent_in_a_terminal(scene: Scene) -> None:
    status, shown = in_terminal(scene, *scene.command("/bin/sh", "-c", "echo ran", options=["--audit", "/dev/full"]))
    assert status == 2 and "ran" not in shown and "No space left" in shown


def test_usage_is_shown_in_a_terminal_without_an_agent(scene: Scene) -> None:
    status, shown = in_terminal(scene, *POLICYD, "proxy")
    assert status == 2 and "usage: policyd proxy" in shown


# ---- prompt programs -------------------------------------------------------------------------------

HOOK = """#!{python} -I
import json, sys
question = json.load(sys.stdin)
yes = next(o["id"] for o in question["options"] if o["kind"] == "allow_once")
print(json.dumps({{"nonce": question["nonce"], "digest": question["digest"], "decision": "allow", "option": yes}}))
"""


def test_a_prompt_program_answers_for_a_person(scene: Scene) -> None:
    hook = scene.root / "home/hook"
    hook.write_text(HOOK.format(python=sys.executable))
    hook.chmod(0o700)
    scene.root.chmod(0o700)
    client = Client(scene.start("ask", "1", options=["--prompt", f"command:{hook}"]))
    client.open(scene.work)
    assert client.asked("make")["optionId"] == "yes"
    client.close()
    assert scene.records()[-1]["by"].startswith("command")


def test_a_prompt_program_that_fails_is_a_rejection(scene: Scene) -> None:
    client = Client(scene.start("ask", "1", options=["--prompt", "command:/bin/false"]))
    client.open(scene.work)
    assert client.asked("make").get("optionId") != "yes"
    client.close()


# ---- watching --------------------------------------------------------------------------------------


class Looks:
    """Counts looks."""

    def __init__(self) -> None:
        self.count = 0
        self.complaints: list[str] = []

    def look(self) -> None:
        self.count += 1


def seen(looks: Looks, change: Callable[[], object]) -> None:
    """Make a change and wait until it was looked at."""
    before = looks.count
    change()
    end = time.monotonic() + 15
    while looks.count == before and time.monotonic() < end:
        time.sleep(0.02)
    assert looks.count > before


WATCHING = """
import sys, threading
from pathlib import Path
from policyd.service import watch
watch.DELAY = 0.0
looks = threading.Semaphore(0)
watcher = watch.Watcher(lambda: [sys.argv[1]], looks.release, print)
watcher.start()
assert looks.acquire(timeout=20)
Path(sys.argv[1], "x").write_text("")
assert looks.acquire(timeout=20)
watcher.stop()
print(sorted(sys.modules))
import watchfiles
assert next(watchfiles.watch(sys.argv[1], rust_timeout=1, yield_on_timeout=True)) == set()
"""


def test_what_watches_takes_nothing_along(tmp_path: Path) -> None:
    found = subprocess.run([sys.executable, "-c", WATCHING, str(tmp_path)], capture_output=True, text=True, check=True)
    assert not (NEVER | {"multiprocessing"}) & set(json.loads(found.stdout.replace("'", '"')))


@pytest.mark.parametrize(
    ("said", "release", "polls"),
    [
        ("", "6.1.0", False),
        ("", "5.15-Microsoft-standard-WSL2", True),
        ("1", "6.1.0", True),
        ("false", "5.15-microsoft-standard-WSL2", False),
    ],
)
def test_changes_are_polled_for_where_the_system_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, said: str, release: str, *, polls: bool
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", said)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "host", release, "", "")))
    assert watch.polls() is polls


def test_what_another_has_loaded_of_it_is_used() -> None:
    from watchfiles import _rust_notify

    watch.notifier.cache_clear()
    assert watch.notifier() is _rust_notify.RustNotify
    watch.notifier.cache_clear()


def test_every_way_to_change_a_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DELAY", 0.0), ("PAUSE", 0.05), ("BEAT", 0.1), ("SETTLE", 20)):
        monkeypatch.setattr(watch, name, value)
    folder, looks = tmp_path / "policies.d", Looks()
    real = [tmp_path / "v1", tmp_path / "v2"]
    for place in real:
        place.mkdir()
        (place / "a.toml").write_text(place.name)
    (tmp_path / "current").symlink_to(real[0])
    places = [str(folder), str(tmp_path / "current"), str(tmp_path)]
    watcher = Watcher(lambda: places, looks.look, looks.complaints.append)
    watcher.start()
    try:
        while not looks.count:
            time.sleep(0.01)
        time.sleep(0.3)
        seen(looks, folder.mkdir)
        time.sleep(0.5)  # the new directory is watched from the next beat on
        seen(looks, lambda: (folder / "a.toml").write_text("x"))
        (tmp_path / "fresh").write_text("y")
        seen(looks, lambda: os.rename(tmp_path / "fresh", folder / "a.toml"))
        (tmp_path / "next").symlink_to(real[1])
        seen(looks, lambda: os.rename(tmp_path / "next", tmp_path / "current"))
        seen(looks, lambda: shutil.rmtree(folder))
        seen(looks, folder.mkdir)
    finally:
        watcher.stop()
    assert looks.complaints == []


@pytest.mark.slow
def test_a_storm_of_changes_is_few_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "DELAY", 0.0)
    looks = Looks()
    watcher = Watcher(lambda: [str(tmp_path)], looks.look, looks.complaints.append)
    watcher.start()
    try:
        while not looks.count:
            time.sleep(0.01)
        time.sleep(0.3)
        begin = time.monotonic()
        for number in range(5_000):
            (tmp_path / "a.toml").write_text(str(number))
        seen(looks, lambda: (tmp_path / "a.toml").write_text("last"))
    finally:
        watcher.stop()
    assert looks.count <= 5 * (time.monotonic() - begin) + 5


def test_a_watcher_that_cannot_watch_says_so_once_and_goes_on_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "DELAY", 0.0)
    monkeypatch.setattr(watch, "POLL", 0.01)
    looks, done = Looks(), threading.Event()

    def look() -> None:
        looks.count += 1
        if looks.count >= 3:
            done.set()
        raise OSError("no files left")

    def broken() -> list[str]:
        raise OSError("no watches left")

    watcher = Watcher(broken, look, looks.complaints.append)
    watcher.start()
    assert done.wait(10)
    watcher.stop()
    unwatched, unseen = looks.complaints
    assert "no watches left" in unwatched and "no files left" in unseen


def test_a_directory_that_went_and_came_back_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("DELAY", 0.0), ("PAUSE", 0.05), ("BEAT", 0.1)):
        monkeypatch.setattr(watch, name, seconds)
    folder, looked = tmp_path / "policies.d", threading.Semaphore(0)
    folder.mkdir()

    def look() -> None:
        folder.mkdir(exist_ok=True)  # it is back before the watcher asks what is there
        looked.release()

    def quiet() -> None:
        while looked.acquire(timeout=2 * watch.BEAT):
            pass

    watcher = Watcher(lambda: [str(folder)], look, print)
    watcher.start()
    for change in (folder.rmdir, (folder / "a.toml").touch):
        quiet()
        change()
        assert looked.acquire(timeout=5), "nobody looks at it any more"
    watcher.stop()


def test_what_does_not_exist_is_watched_through_its_nearest_parent(tmp_path: Path) -> None:
    assert existing([str(tmp_path / "a/b/c.toml"), str(tmp_path)]) == [str(tmp_path)]
