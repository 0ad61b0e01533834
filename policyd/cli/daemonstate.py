"""The state of a running daemon: what is in force, which problems it has, who is connected, what waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from policyd.cli.calling import asked
from policyd.cli.ending import counted
from policyd.cli.shapes import tables, texts
from policyd.storage import sockets
from policyd.storage.places import Places
from policyd.storage.sockets import SocketError

PERIODS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


class Running(Struct):
    """A daemon that answered."""

    socket: str
    state: Mapping[str, object] = field(default_factory=dict)
    """The result of `_policyd/status`."""

    @property
    def problems(self) -> list[str]:
        """Its problems, in words."""
        mute = self.state.get("mute")
        return [*texts(self.state.get("problems")), *([f"{mute}; every decision is refused"] if mute else [])]


def find(places: Places, socket: str | None) -> Running | None:
    """Ask the daemon; None where there is none.

    Raises:
        SocketError: one was named, or one listens, and it does not answer.
    """
    try:
        path = sockets.find(places, socket)
    except SocketError:
        return None
    try:
        return Running(path, asked(path, "_policyd/status", {}, by="policyd status"))
    except SocketError:
        if socket or sockets.listens(path):
            raise
        return None  # the socket of a daemon that has ended


def lines(running: Running) -> Iterator[str]:
    """Yield the state for people."""
    state = running.state
    pid, up = state.get("pid"), span(state.get("seconds"))
    yield f"daemon {state.get('version')} at {running.socket}, process {pid}, up {up}"
    yield "  decides  for `policyd proxy --connect` and embedders; what is above, for proxies without it"
    yield f"  revision {state.get('revision')}, {number(state.get('rules'), 'rule')}"
    for row in tables(state.get("files")):
        yield f"  {row.get('layer')!s:<8} {row.get('file')}"
    yield f"  tier     {state.get('tier')}"
    yield f"  asks     {', then '.join(texts(state.get('prompt'))) or 'nobody'}"
    waiting = number(state.get("pending"), "request")
    yield f"  serves   {number(state.get('connections'), 'connection')}; waiting for an answer: {waiting}"
    yield f"  inbox    waiting for `policyd prompts answer`: {number(state.get('prompts'), 'question')}"
    yield f"  audit    {state.get('audit')} ({state.get('durability')})"
    yield from (f"  problem  {problem}" for problem in running.problems)


def span(seconds: object) -> str:
    """Return a duration in the largest unit that fits."""
    given = seconds if isinstance(seconds, int | float) else 0
    name, size = next((one for one in PERIODS if given >= 2 * one[1]), ("second", 1))
    return counted(int(given // size), name)


def number(count: object, word: str) -> str:
    """Return a number of things in words; the count comes from another process and may be no number."""
    return counted(count, word) if isinstance(count, int) else f"? {word}s"
