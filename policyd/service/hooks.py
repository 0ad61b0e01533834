"""Runs prompt programs (`command:/path`): JSON in, JSON out, in threads of their own.

Rules of this module:

1. No shell: an absolute path to a regular file that only root or this user can write. Environment: `KEPT` only. The
   question comes on standard input, never in arguments or variables.
2. One road to an answer: exit status 0 and exactly one JSON object of at most 64 KiB on standard output. Everything
   else is `Failed` with the reason. What the object means is the enforcement's to judge.
3. A program has until the deadline of its question, then its whole process group is terminated, and killed two seconds
   later; so when its question is withdrawn. None of this stops the loop. At most `AT_ONCE` run; more wait, and beyond `QUEUE` they fail.
"""

from __future__ import annotations

import os
import queue
import select
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic

import msgspec

from policyd.session import Ask, Failed, Reply

KEPT = ("HOME", "PATH", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR",
        "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "TERM", "TMUX")  # fmt: skip
AT_ONCE = 16
QUEUE = 1000
LONGEST_ANSWER = 64 * 1024
GRACE = 2.0
SLICE = 0.1
"""Seconds between looks whether the answer is still wanted."""


class HookError(Exception):
    """A hook gave no answer; the text says why."""


class Hooks:
    """The prompt programs of one connection."""

    def __init__(self, post: Callable[[object], None], environ: Mapping[str, str] | None = None) -> None:
        """`post` takes `Reply` and `Failed` events, from any thread."""
        source = os.environ if environ is None else environ
        self._environ = {name: source[name] for name in KEPT if name in source}
        self._post = post
        self._asks: queue.SimpleQueue[Ask | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._wanted: dict[int, subprocess.Popen[bytes] | None] = {}
        self._threads: list[threading.Thread] = []

    def start(self, ask: Ask) -> None:
        """Run the program of a question; HookError where it cannot even wait its turn."""
        road, _, path = ask.step.partition(":")
        if road != "command":
            raise HookError(f"the step `{ask.step}` cannot be run here")
        check(path)
        with self._lock:
            if len(self._wanted) >= QUEUE:
                raise HookError("too many questions wait for a prompt program")
            self._wanted[ask.id] = None
            if len(self._threads) < min(AT_ONCE, len(self._wanted)):
                thread = threading.Thread(target=self._work, name="policyd-hook", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._asks.put(ask)

    def withdraw(self, ask: int) -> None:
        """No longer want an answer: the program's thread ends it."""
        with self._lock:
            self._wanted.pop(ask, None)

    def close(self) -> None:
        """Kill all programs: policyd itself is ending."""
        with self._lock:
            running, self._wanted = [each for each in self._wanted.values() if each], {}
        for process in running:
            kill_group(process, signal.SIGKILL)
        for _ in self._threads:
            self._asks.put(None)
        for thread in self._threads:
            thread.join(1.0)

    def _work(self) -> None:
        while (ask := self._asks.get()) is not None:
            if ask.id not in self._wanted:
                continue
            try:
                event: Reply | Failed = Reply(ask.id, self._run(ask))
            except Exception as error:  # no program's fault may come out as anything but a failure
                event = Failed(ask.id, str(error) or type(error).__name__)
            with self._lock:
                wanted = ask.id in self._wanted
                self._wanted.pop(ask.id, None)
            if wanted:
                self._post(event)

    def _run(self, ask: Ask) -> Mapping[str, object] | None:
        path = ask.step.partition(":")[2]
        with tempfile.TemporaryFile() as question:
            question.write(msgspec.json.encode(ask.payload) + b"\n")
            question.seek(0)
            process = subprocess.Popen(
                [path], stdin=question, stdout=subprocess.PIPE, env=self._environ, cwd="/", start_new_session=True
            )
        with self._lock:
            wanted = ask.id in self._wanted
            if wanted:
                self._wanted[ask.id] = process
        try:
            if not wanted:
                raise HookError("withdrawn")
            return answer_of(path, *output_of(process, ask.deadline, lambda: ask.id in self._wanted))
        finally:
            end_group(process)


def check(path: str) -> None:
    """Raise HookError unless the program is one that nobody else can have written."""
    try:
        state = os.stat(path)
        folder = os.stat(os.path.dirname(os.path.realpath(path)))
    except OSError as error:
        raise HookError(f"prompt program {path}: {error.strerror}") from error
    if not stat.S_ISREG(state.st_mode) or not os.access(path, os.X_OK):
        raise HookError(f"prompt program {path} is no executable file")
    for each, name in ((state, path), (folder, "the folder of " + path)):
        sticky = stat.S_ISDIR(each.st_mode) and each.st_mode & stat.S_ISVTX
        if each.st_uid not in {0, os.geteuid()} or (each.st_mode & 0o022 and not sticky):
            raise HookError(f"prompt program: {name} can be written by others")


def output_of(process: subprocess.Popen[bytes], deadline: float, wanted: Callable[[], bool]) -> tuple[bytes, int]:
    """Return what a program wrote and its exit status; HookError at the deadline or past the longest answer."""
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    fd, data, chunk = process.stdout.fileno(), b"", b"."
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while chunk:
        if not wanted():
            raise HookError("withdrawn")
        if monotonic() >= deadline:
            raise HookError("the prompt program did not answer in time")
        if not poll.poll(min(SLICE, deadline - monotonic()) * 1000):
            continue
        chunk = os.read(fd, 65536)
        data += chunk
        if len(data) > LONGEST_ANSWER:
            raise HookError("the prompt program's answer is longer than 64 KiB")
    try:
        return data, process.wait(max(0.0, deadline - monotonic()))
    except subprocess.TimeoutExpired as error:
        raise HookError("the prompt program did not end in time") from error


def answer_of(path: str, data: bytes, status: int) -> Mapping[str, object] | None:
    """Return the one JSON object a program wrote, None where it wrote nothing (it abstains)."""
    if status != 0:
        raise HookError(f"prompt program {path} ended with status {status}")
    if not data.strip():
        return None
    try:
        answer = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HookError(f"prompt program {path} wrote no single JSON object") from error
    if not isinstance(answer, dict):
        raise HookError(f"prompt program {path} wrote no JSON object")
    return answer


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Terminate a program with all it started, kill what is left after `GRACE`, and reap it."""
    kill_group(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    kill_group(process, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def kill_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a program with all it started, if anything is left of it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
