"""Nothing that policyd started outlives a policyd that was killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hookscripts import HEAD, write
from tests.proxied import Client, Scene, gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone kills an orphan")


def test_an_agent_that_ignores_everything_dies_with_a_policyd_that_was_killed(tmp_path: Path) -> None:
    client = Client(Scene(tmp_path).start("stubborn"))
    pid = client.until(method="pid")["params"]["pid"]
    client.process.kill()
    client.process.wait()
    assert gone(pid)
    client.close()


def test_a_policyd_that_was_killed_takes_its_hooks_and_what_they_started_along(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    tell = f"import os, signal, time; signal.signal(15, 1); open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n'); "
    body = f"subprocess.Popen([sys.executable, '-ISc', {tell + 'time.sleep(60)'!r}])\n{tell}\ntime.sleep(60)"
    code = f"""
from policyd.service.hooks import Hooks
Hooks(print, print).start(1, {write(tmp_path / "hook", HEAD + body)!r}, {{"nonce": "n", "digest": "d"}}, 60.0)
input()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    while not pids.exists() or pids.read_text("utf-8").count("\n") < 2:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert all(gone(int(pid)) for pid in pids.read_text("utf-8").split())
