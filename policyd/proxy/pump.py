"""The proxy's loop: moves blocks of whole lines from each side to the service, and its output to the sides.

Rules of this module:

1. A side is not read while more than `SOFT` bytes wait for the other side: back-pressure as through a pipe. policyd's
   own answers to a side may accumulate up to `HARD`, so that an agent may write many requests before it reads, but one
   that never reads is stopped.
2. The end of a side is passed on: the end of the client's input closes the agent's input once it has drained, a client
   that stops reading closes the agent's output, an agent that stops reading closes the client's input.
3. For the service a side is gone when it stops reading: a client may close its input and still want output.
4. The loop ends when the agent has ended and its output has been passed on.
5. Signals and threads wake the loop through descriptors; nothing is done in a signal handler.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2
from time import monotonic
from typing import Protocol

from policyd.acp import FrameLimitError, Lines
from policyd.proxy.agent import PIPE_SIZE, Agent, close
from policyd.proxy.origin import SHARED
from policyd.proxy.pipes import Sink, Source
from policyd.proxy.poller import GONE, WRITE, Poller
from policyd.proxy.poller import READ as READABLE
from policyd.session import Side

SOFT = 1024 * 1024
HARD = 64 * 1024 * 1024
FORWARDED = frozenset({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2})
"""Sent to policyd, meant for the agent."""


class Service(Protocol):
    """What the pump needs of `policyd.service.Service`."""

    waker: int
    """Readable when a thread has something for the loop."""

    def feed(self, side: Side, block: bytes) -> None:
        """Take whole lines of a side."""

    def closed(self, side: Side) -> None:
        """Take in that a side is gone."""

    def wake(self) -> None:
        """Take what threads have."""

    def tick(self) -> None:
        """Time passed."""

    def deadline(self) -> float | None:
        """When `tick` is due, of `monotonic`."""

    def busy(self) -> bool:
        """Whether something that was decided still waits to be sent."""


class End:
    """One side: what comes from it, what goes to it."""

    __slots__ = ("lines", "reading", "side", "sink", "source", "writing")

    def __init__(self, side: Side, source: int, sink: int) -> None:
        """Read the side from `source`, write to it on `sink`."""
        self.side = side
        self.source = Source(source)
        self.sink = Sink(sink)
        self.lines = Lines()
        self.reading = True
        self.writing = True


class Pump:
    """Moves bytes between the client (0 and 1), the agent, and the service."""

    def __init__(self, agent: Agent, *, client_in: int = 0, client_out: int = 1) -> None:
        """Make all four descriptors non-blocking. Nothing is read before `run`."""
        self.agent = agent
        self.client_end = End(Side.CLIENT, client_in, client_out)
        self.agent_end = End(Side.AGENT, agent.stdout, agent.stdin)
        self.trouble = ""
        """Why the loop gave up, in words; empty if it did not."""
        self._poller = Poller()
        self._ends = {Side.CLIENT: self.client_end, Side.AGENT: self.agent_end}
        self._unended = b""
        self._left = 2 * PIPE_SIZE
        self._gone: set[Side] = set()
        self._changed = True
        self._service: Service

    def send(self, side: Side, data: bytes) -> None:
        """Write whole lines to a side."""
        if data == self._unended:  # it came without a newline and leaves without one
            data = data[:-1]
        self._ends[side].sink.put(data)

    def run(self, service: Service, signals: int) -> None:
        """Pump until the agent has ended and everything it wrote is passed on.

        `signals` is a descriptor that becomes readable with every signal.
        """
        self._service = service
        self._poller.watch(service.waker, READABLE)
        self._poller.watch(signals, READABLE)
        handlers: dict[int, Callable[[int], object]] = {
            self.client_end.source.fd: self._reader(self.client_end),
            self.agent_end.source.fd: self._reader(self.agent_end),
            self.client_end.sink.fd: lambda events: self._write(self.client_end, events),
            self.agent_end.sink.fd: lambda events: self._write(self.agent_end, events),
            service.waker: lambda events: self._woken(),
            signals: lambda events: self._signalled(signals),
        }
        client, agent, waited = self.client_end.sink, self.agent_end.sink, False
        wait, deadline = self._poller.wait, service.deadline
        while True:
            waits = bool(client.size or agent.size)
            if self._changed or waits or waited or client.dead or agent.dead:  # else nothing can be different
                self._changed, waited = False, waits
                if self._done():
                    return
                self._watch(self.client_end, self.agent_end)
                self._watch(self.agent_end, self.client_end)
            due = deadline()
            for fd, events in wait(None if due is None else due - monotonic()):
                handlers[fd](events)
            if due is not None and monotonic() >= due:
                self._changed = True
                service.tick()

    def _woken(self) -> None:
        self._changed = True  # it may be busy no more
        self._service.wake()

    def _done(self) -> bool:
        if self.trouble:
            return True
        if self.agent.status is None:
            return False
        take = self._reader(self.agent_end)
        while self.agent_end.reading and self._left > 0 and (taken := take(READABLE)):
            self._left -= taken  # what is in the pipe, not what a descendant goes on writing
        self._finish(self.agent_end)
        self._tell_gone(self.agent_end)
        return not (self.client_end.sink.size or self._service.busy())

    def _watch(self, end: End, other: End) -> None:
        """Read a side unless too much waits; watch its sink for room, or for its reader's going."""
        if end.reading:
            full = other.sink.size > SOFT or end.sink.size > HARD
            self._poller.watch(end.source.fd, None if full else READABLE)
        if not end.writing:
            return
        if end.sink.dead:
            self._reader_gone(end, other)
        elif not (end.sink.size or other.reading or self._service.busy()):
            self._stop_writing(end)
        else:
            self._poller.watch(end.sink.fd, WRITE if end.sink.size else 0)

    def _reader(self, end: End) -> Callable[[int], int]:
        """Return what takes a block from a side and returns how many bytes there were. Every message comes by here."""
        read, lines, feed, side = end.source.read, end.lines.feed, self._service.feed, end.side

        def take(events: int) -> int:
            data = read() if end.reading else None
            if not data:
                if data is not None:
                    self._finish(end)
                return 0
            try:
                block = lines(data)
            except FrameLimitError as error:
                self._changed = True
                self.trouble = f"the {side.value} sent a message that is too long: {error}"
                return 0
            if block:
                feed(side, block)
            return len(data)

        return take

    def _finish(self, end: End) -> None:
        """A side's input ended: pass on what had no newline."""
        if not end.reading:
            return
        if rest := end.lines.finish():
            self._unended = rest + b"\n"
            self._service.feed(end.side, self._unended)
            if not self._service.busy():
                self._unended = b""
        self._stop_reading(end)

    def _reader_gone(self, end: End, other: End) -> None:
        """A side reads no more: whoever writes to it learns that as from a pipe of its own."""
        self._stop_writing(end)
        if other.reading:
            self._stop_reading(other)
        self._tell_gone(end)

    def _tell_gone(self, end: End) -> None:
        if end.side not in self._gone:
            self._gone.add(end.side)
            self._service.closed(end.side)

    def _stop_reading(self, end: End) -> None:
        end.reading, self._changed = False, True
        self._poller.watch(end.source.fd, None)
        close(end.source.fd)

    def _stop_writing(self, end: End) -> None:
        end.writing, self._changed = False, True
        self._poller.watch(end.sink.fd, None)
        close(end.sink.fd)

    def _write(self, end: End, events: int) -> None:
        if not end.writing:
            return
        if events & WRITE:
            end.sink.flush()
        elif events & GONE:
            end.sink.kill()

    def _signalled(self, fd: int) -> None:
        """Look whether the agent ended, and hand on what we alone were sent; with no agent left it means us."""
        self._changed = True
        for byte in os.read(fd, 4096):
            number = byte & ~SHARED
            if number not in FORWARDED:
                continue
            if self.agent.poll():
                self.client_end.sink.kill()
            elif number == byte:
                self.agent.signal(number)
        self.agent.poll()
