"""Prompt hooks written by tests, and one question put to them."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from policyd.prompts import Outcome, Prompt, Stop, ToStep, ask, find, parse_chain
from policyd.service.hooks import Hooks
from tests.asking import ROOT, context, decision, request, run

HEAD = f"""#!{sys.executable} -IS
import json, os, signal, subprocess, sys, time
q = json.load(sys.stdin)
a = {{"nonce": q["nonce"], "digest": q["digest"], "decision": "allow"}}
say = lambda value: print(json.dumps(value))
"""
Running = tuple[Hooks, "queue.Queue[tuple[int, object]]"]


def write(path: Path, text: str, mode: int = 0o755) -> str:
    """Make an executable file."""
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return str(path)


def put_to(hooks: Running, path: str, seconds: float = 30.0) -> Outcome:
    """Put one question to the hook at `path` as a session does, to its end."""
    runner, answers = hooks
    asking = request(run("npm", "test"))
    question = ask(asking, decision(asking), context(), find("zed"), root=ROOT)
    prompt = Prompt(parse_chain([f"command:{path}"], {"command": seconds}), question, find("zed"), "n0nce")
    for command in prompt.start(time.monotonic()):
        assert isinstance(command, ToStep)
        runner.start(7, command.name.removeprefix("command:"), command.payload, seconds)
    while prompt.outcome is None:
        try:
            _, answer = answers.get(timeout=0.05)
        except queue.Empty:
            assert all(isinstance(command, Stop) for command in prompt.tick(time.monotonic()))
            continue
        if isinstance(answer, Mapping):
            prompt.replied(0, answer, time.monotonic())
        else:
            prompt.failed(0, str(answer), time.monotonic())
    runner.stop(7)
    return prompt.outcome
