"""Running prompt hooks: programs that ask a person and print the answer.

Rules of this module:

1. No shell. The path is absolute and leads to a regular, executable file that, like every directory above it, only root
   or this user can change; the file is checked on an open descriptor, verified to be the same when it is started, and
   started by its real path, so that a changed link has no effect.
2. The question is on standard input only. The environment is a short list of harmless variables with a fixed search
   path, the directory is `/`: nothing that a repository set reaches the hook.
3. An answer is exit status 0 and exactly one JSON object of at most 64 KiB without duplicate keys. Everything else is a
   failure, never an answer; `policyd.prompts` decides whether the answer counts.
4. Each hook leads a process group of its own. When it has ended, or is withdrawn or late, the rest of the group is
   ended: TERM, two seconds later KILL. A `leash` ensures that the group ends even if policyd is killed.
5. At most 16 run at once, in threads, and fewer if few files may be open; at most 1,000 wait, further ones fail. The
   traffic never waits for a hook.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING

from msgspec import Struct, field

from policyd import acp
from policyd.leash import Leash

if TYPE_CHECKING:
    from subprocess import Popen

AT_ONCE = 16
DESCRIPTORS = 20
"""Files that may be open for each: one needs five, and eight while it is started; the rest is for all else."""
WAITING = 1000
LONGEST_ANSWER = 64 * 1024
LONGEST_COMPLAINT = 2000
KILL_AFTER = 2.0
GRACE = 1.0
LOOK = 0.05
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PASSED = (
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TERM",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)


class HookError(Exception):
    """A hook gave no answer, and why."""


class _Run(Struct):
    """One hook that waits or runs."""

    ask: int
    path: str
    payload: bytes
    seconds: float
    stopped: threading.Event = field(default_factory=threading.Event)
    process: Popen[bytes] | None = None


class Hooks(Struct):
    """The hooks of one policyd process. `replied` and `failed` are called from threads, once for each `start`.

    A hook that was stopped calls neither.
    """

    replied: Callable[[int, Mapping[str, object]], None]
    failed: Callable[[int, str], None]
    environment: Mapping[str, str] = field(default_factory=lambda: limited(os.environ))
    _waiting: deque[_Run] = field(default_factory=deque)
    _runs: dict[int, _Run] = field(default_factory=dict)
    _threads: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, ask: int, path: str, payload: Mapping[str, object], seconds: float) -> None:
        """Run the hook at `path` for the question `ask`, for at most `seconds`."""
        run = _Run(ask, path, json.dumps(payload, ensure_ascii=True).encode() + b"\n", seconds)
        with self._lock:
            full = len(self._waiting) >= WAITING
            if not full:
                self._waiting.append(run)
                self._runs[ask] = run
                begin = self._threads < at_once()
                self._threads += begin
        if full:
            self.failed(ask, f"{WAITING} hooks are waiting already")
        elif begin:
            self._begin()

    def stop(self, ask: int) -> None:
        """End the hook of a question whose answer is no longer wanted."""
        with self._lock:
            run = self._runs.pop(ask, None)
        if run is not None:
            run.stopped.set()

    def close(self, seconds: float = KILL_AFTER + GRACE) -> None:
        """End all hooks; return when their groups are gone. What is left after `seconds` is killed."""
        with self._lock:
            self._waiting.clear()
            runs = [*self._runs.values()]
        for run in runs:
            self.stop(run.ask)
            _signal(run.process, signal.SIGTERM)
        end = time.monotonic() + seconds
        while self._threads and time.monotonic() < end:
            time.sleep(LOOK / 5)
        for run in runs:
            _signal(run.process, signal.SIGKILL)

    def _begin(self) -> None:
        try:
            threading.Thread(target=self._work, name="policyd-hook", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._threads -= 1
                lost = [self._waiting.popleft() for _ in range(len(self._waiting))] if not self._threads else []
            for run in lost:
                self._tell(run, None, f"no thread can be started: {error}")

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                run = self._waiting.popleft()
            answer, why = self._try(run)
            self._tell(run, answer, why)

    def _try(self, run: _Run) -> tuple[Mapping[str, object] | None, str]:
        if run.stopped.is_set():
            return None, "stopped"
        try:
            return answer_of(ask_hook(run, self.environment)), ""
        except HookError as error:
            return None, str(error)
        except Exception as error:
            return None, f"it could not be run: {type(error).__name__}: {error}"

    def _tell(self, run: _Run, answer: Mapping[str, object] | None, why: str) -> None:
        with self._lock:
            wanted = self._runs.pop(run.ask, None) is run
        if not wanted or run.stopped.is_set():
            return
        if answer is None:
            self.failed(run.ask, why)
        else:
            self.replied(run.ask, answer)


def at_once() -> int:
    """Return how many hooks may run at once, by how many files may be open."""
    return max(1, min(AT_ONCE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // DESCRIPTORS))


def limited(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment a hook gets, with a fixed search path."""
    path = f"{PATH}:/opt/homebrew/bin" if sys.platform == "darwin" else PATH
    return {"PATH": path, **{name: environ[name] for name in PASSED if name in environ}}


def answer_of(output: bytes) -> Mapping[str, object]:
    """Return the one JSON object a hook printed.

    Raises:
        HookError: it printed anything else.
    """
    if not output.strip():
        raise HookError("it printed nothing")
    try:
        return acp.strict_object(output)
    except acp.ProtocolError as error:
        raise HookError(f"it did not print one JSON object: {error}") from error


def check(path: str) -> tuple[str, os.stat_result]:
    """Return the real path of the hook at `path`, and its status, if nobody but root and this user can change it.

    Raises:
        HookError: it may not be run, and why.
    """
    if not path.startswith("/") or "\0" in path:
        raise HookError("its path is not absolute")
    try:
        real = os.path.realpath(path, strict=True)
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HookError(f"it cannot be opened: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        why = _unsafe(status) or _unsafe_place(real) or _unsafe_place(path)
        if not why and not os.access(real, os.X_OK):
            why = "it is not executable"
    finally:
        os.close(descriptor)
    if why:
        raise HookError(why)
    return real, status


def ask_hook(run: _Run, environment: Mapping[str, str]) -> bytes:
    """Run a hook to its end and return what it printed.

    Raises:
        HookError: it may not be run, could not be started, failed, or was ended.
    """
    leash = Leash()
    try:
        run.process = process = _spawn(run.path, *check(run.path), environment, leash.ends)
        leash.hold(-process.pid)
        end = time.monotonic() + run.seconds + GRACE
        printed, complaint = _talk(process, run.payload, end, run.stopped)
        status = _wait(process, end, run.stopped)
    finally:
        _end_group(run.process)
        leash.let_go()
    if status:
        how = f"ended by signal {-status}" if status < 0 else f"exited with {status}"
        raise HookError(f"it {how}{_last_line(complaint)}")
    return printed


def _spawn(
    path: str, real: str, checked: os.stat_result, environment: Mapping[str, str], inherited: tuple[int, ...]
) -> Popen[bytes]:
    from subprocess import PIPE, Popen

    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())  # a program begins as this thread is
    try:
        found = os.lstat(real)
        if (found.st_dev, found.st_ino) != (checked.st_dev, checked.st_ino):
            raise HookError("it was replaced while it was looked at")
        return Popen(
            [path],
            executable=real,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd="/",
            env=dict(environment),
            process_group=0,
            pass_fds=inherited,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        raise HookError(f"it cannot be started: {error}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _talk(process: Popen[bytes], payload: bytes, end: float, stopped: threading.Event) -> tuple[bytes, bytes]:
    """Write the question and read both outputs until the hook closes them, exits, or its time is over."""
    assert process.stdin is not None  # noqa: S101 - asked for above
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    printed, complaint, rest = bytearray(), bytearray(), memoryview(payload)
    with selectors.DefaultSelector() as selector:
        for stream, event in ((process.stdin, selectors.EVENT_WRITE), (process.stdout, 1), (process.stderr, 1)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, event)
        while process.stdout in {key.fileobj for key in selector.get_map().values()}:
            _check_time(end, stopped)
            ready = selector.select(LOOK)
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    rest = _write(selector, process.stdin, rest)
                else:
                    into, most = (printed, LONGEST_ANSWER) if key.fileobj is process.stdout else (complaint, 0)
                    _read(selector, key.fileobj, into, most)  # type: ignore[arg-type]
            if len(printed) > LONGEST_ANSWER:
                raise HookError(f"it printed more than {LONGEST_ANSWER} bytes")
            if not ready and _exited(process):
                break
    return bytes(printed), bytes(complaint[-LONGEST_COMPLAINT:])


def _write(selector: selectors.BaseSelector, stream: IO[bytes], rest: memoryview) -> memoryview:
    try:
        rest = rest[os.write(stream.fileno(), rest[: 64 * 1024]) :]
    except BlockingIOError:
        return rest
    except OSError:
        rest = rest[len(rest) :]
    if not rest:
        selector.unregister(stream)
        with contextlib.suppress(OSError):
            stream.close()
    return rest


def _read(selector: selectors.BaseSelector, stream: IO[bytes], into: bytearray, most: int) -> None:
    """Read what there is; an answer stops growing past `most` bytes, a complaint (0) keeps its end."""
    try:
        block = os.read(stream.fileno(), 64 * 1024)
    except BlockingIOError:
        return
    if not block:
        selector.unregister(stream)
        return
    into += block[: max(0, most + 1 - len(into))] if most else block
    if not most:
        del into[:-LONGEST_COMPLAINT]


def _wait(process: Popen[bytes], end: float, stopped: threading.Event) -> int:
    pause = 0.001
    while not _exited(process):
        _check_time(end, stopped)
        time.sleep(pause)
        pause = min(LOOK, pause * 2)
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # what it started and left behind
    return process.wait()


def _check_time(end: float, stopped: threading.Event) -> None:
    if stopped.is_set():
        raise HookError("its answer is no longer wanted")
    if time.monotonic() >= end:
        raise HookError("it took too long")


def _exited(process: Popen[bytes]) -> bool:
    """Say whether the hook is over, leaving it unreaped where possible: its group's number then stays its own."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: Popen[bytes] | None) -> None:
    """End what is left of the hook's group, if it was started, reap it, and close its pipes."""
    if process is None:
        return
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        until = time.monotonic() + KILL_AFTER
        while time.monotonic() < until and not _exited(process):
            time.sleep(LOOK / 5)
        _signal(process, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _signal(process: Popen[bytes] | None, number: signal.Signals) -> None:
    """Signal what is left of a hook's group; once it is reaped, its number may be another's."""
    if process is not None and process.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)


def _unsafe(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if status.st_uid not in {0, os.getuid()}:
        return f"it belongs to user {status.st_uid}"
    return "others may change it" if status.st_mode & 0o022 else ""


def _unsafe_place(path: str) -> str:
    """Say which directory above `path` lets others replace what lies in it."""
    place = os.path.dirname(path)
    while True:
        try:
            status = os.stat(place)
        except OSError as error:
            return f"{place} cannot be looked at: {error.strerror}"
        others = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        if others or status.st_uid not in {0, os.getuid()}:
            return f"others may change {place}"
        if place == "/":
            return ""
        place = os.path.dirname(place)


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""
