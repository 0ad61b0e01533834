"""Run command lines one after another in a workspace that is put back where one changed it.

Stands alone: the tracer starts it as somebody who may write nowhere else, by a Python of the system. Its words are the
place of the workspace, the file of the lines and the file for what it saw. `MARK` tells the trace where a line begins.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

MARK = "/traced/"
TREES = ("app", "home", "outside", "tmp")
SECONDS = 1.5
MOST_OUTPUT = 200_000
"""Then the pipe is closed, which ends `yes`."""


def seen(base: str) -> dict[str, tuple[int, ...]]:
    """Return what there is, each file with what changes when it is written or replaced."""
    found: dict[str, tuple[int, ...]] = {}
    todo = [os.path.join(base, tree) for tree in TREES]
    while todo:
        for entry in os.scandir(todo.pop()):
            told = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
                found[entry.path] = (told.st_mode, told.st_ino)
            else:
                found[entry.path] = (told.st_mode, told.st_ino, told.st_mtime_ns, told.st_size)
    return found


def put_back(base: str) -> None:
    """Make the workspace what it was."""
    for tree in TREES:
        shutil.rmtree(os.path.join(base, tree))
        subprocess.run(["/bin/cp", "-a", os.path.join(base, "kept", tree), os.path.join(base, tree)], check=True)


def mark(name: str) -> None:
    """Leave a mark in the trace: no such file is there."""
    with suppress(FileNotFoundError):
        os.close(os.open(MARK + name, os.O_RDONLY))


def run(base: str, line: str) -> bytes:
    """Run a line in a process group of its own, which has an end; return the beginning of what it printed."""
    env = {"PATH": os.environ["PATH"], "HOME": f"{base}/home", "TMPDIR": f"{base}/tmp", "LC_ALL": "C.UTF-8"}
    env |= {"TERM": "xterm", "JAVA_TOOL_OPTIONS": "-XX:-UsePerfData"}
    watched, given = os.pipe()
    started = subprocess.Popen(
        ["/bin/bash", "--norc", "--noprofile", "-c", line],
        cwd=f"{base}/app", env=env, stdin=subprocess.DEVNULL, stdout=given, stderr=given, start_new_session=True,
    )  # fmt: skip
    os.close(given)
    ends = time.monotonic() + SECONDS
    printed = b""
    while len(printed) < MOST_OUTPUT and select.select([watched], [], [], max(0.0, ends - time.monotonic()))[0]:
        more = os.read(watched, 65_536)
        if not more:
            break
        printed += more
    os.close(watched)
    with suppress(subprocess.TimeoutExpired):
        started.wait(max(0.01, ends - time.monotonic()))
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    return printed


def main(base: str, lines: str, report: str) -> None:
    """Run each line of a JSON list; write what each changed, and whether it printed what nobody may see."""
    with open(lines) as file:
        texts = json.load(file)
    before, told = seen(base), []
    for number, text in enumerate(texts):
        mark(str(number))
        printed = run(base, text)
        mark("end")
        after = seen(base)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        told.append([changed, b"PROTECTED" in printed])
        if changed:
            put_back(base)
            before = seen(base)
    with open(report, "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
