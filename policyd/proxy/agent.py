"""The agent as a child process: started immediately, always ended.

Rules of this module:

1. Nothing but `os`, C modules of the interpreter and the `leash` is imported here: the agent boots while policyd loads.
2. Standard error is inherited: policyd does not read it.
3. The agent does not outlive policyd, not even if policyd is killed: it is kept on a `leash`. Setting Linux's
   parent-death signal (by a fork with Python in the child, or an interpreter in between) would delay the agent.
4. The agent gets the signal dispositions it would have had without policyd (Python ignores SIGPIPE and SIGXFSZ), except
   an ignored SIGCHLD, with which exit statuses are lost.
"""

from __future__ import annotations

import fcntl
import os
from _signal import (  # type: ignore[import-not-found]  # what `signal` wraps, which would cost the agent milliseconds
    SIG_DFL,
    SIGCHLD,
    SIGKILL,
    SIGPIPE,
    SIGTERM,
    SIGXFSZ,
    signal,
)

from policyd.leash import LINUX, Leash

PIPE_SIZE = 256 * 1024


class Agent:
    """A running agent. `status` is None until it has been waited for."""

    __slots__ = ("_leash", "name", "pid", "status", "stdin", "stdout")

    def __init__(self, name: str, pid: int, stdin: int, stdout: int, leash: Leash) -> None:
        """Take over the descriptors: the agent's input to write, its output to read, the leash it is on."""
        self.name = name
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.status: int | None = None
        """As `os.waitstatus_to_exitcode` gives it: the exit code, or minus the signal."""
        self._leash = leash

    def poll(self) -> bool:
        """Say whether the agent has ended; reap it if so."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if not self.poll():
            os.kill(self.pid, number)

    def end(self, patience: float = 1.0) -> None:
        """End it: terminate, and kill if that does not help within `patience` seconds; reap it."""
        from time import monotonic, sleep

        for fd in (self.stdin, self.stdout):
            close(fd)
        self.signal(SIGTERM)
        until = monotonic() + patience
        while not self.poll() and monotonic() < until:
            sleep(0.005)
        self.signal(SIGKILL)
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def start(command: list[str]) -> Agent:
    """Start the agent with pipes for input and output.

    Raises:
        OSError: it cannot be started: not found, not executable, no memory.
    """
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    leash = Leash()
    actions = [(os.POSIX_SPAWN_DUP2, their_in, 0), (os.POSIX_SPAWN_DUP2, their_out, 1)]
    for end in leash.ends:
        os.set_inheritable(end, True)
    widen(our_out, our_in)
    signal(SIGCHLD, SIG_DFL)
    try:
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=actions,
            setsigdef=[SIGPIPE, SIGXFSZ],
        )
    except OSError:
        leash.let_go()
        os.close(our_out)
        os.close(our_in)
        raise
    finally:
        os.close(their_in)
        os.close(their_out)
    leash.hold(pid)
    return Agent(command[0], pid, our_out, our_in, leash)


def widen(*pipes: int) -> None:
    """Give pipes more room: fewer, larger reads. A refusal (a user's limit, no pipe) changes nothing."""
    for fd in pipes if LINUX else ():
        try:
            if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) < PIPE_SIZE:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            continue


def close(fd: int) -> None:
    """Close a descriptor that may be closed already."""
    try:
        os.close(fd)
    except OSError:
        return


def cannot_start(command: list[str], error: OSError) -> tuple[int, str]:
    """Return exit code and message for an agent that did not start, as shells do: 127 not found, 126 not executable."""
    name = command[0]
    if isinstance(error, FileNotFoundError):
        if "/" in name and os.path.exists(name):
            return 126, f"policyd: cannot run `{name}`: its interpreter (the `#!` line) was not found"
        return 127, f"policyd: agent `{name}` was not found; give its full path, or check PATH"
    return 126, f"policyd: agent `{name}` cannot be run: {error.strerror}"
