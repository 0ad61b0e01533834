"""One connection between a client and an agent. The signature other rooms build on."""

from __future__ import annotations

from policyd.model import Filesystem
from policyd.session.events import Command, Event, Moment, Side
from policyd.session.ports import Decider
from policyd.session.settings import Settings


class Connection:
    """The enforcement between one client and one agent."""

    def __init__(self, decider: Decider, settings: Settings, *, nonce: str) -> None:
        """Start with nothing seen. `nonce` is fresh random text: no side can guess the ids policyd makes from it."""
        raise NotImplementedError

    def handle(self, event: Event, now: Moment, fs: Filesystem | None) -> list[Command]:
        """Take one event, return what is to be done, in order. Never raises on what a side sent."""
        raise NotImplementedError

    def feed(self, side: Side, block: bytes, now: Moment, fs: Filesystem | None) -> list[Command]:
        """Take a block of whole lines (`acp.Lines.feed`), same as a `Frame` each; runs that pass leave as one `Send`."""
        raise NotImplementedError

    def deadline(self) -> float | None:
        """Return the `Moment.mono` at which the next `Tick` is due, None if nothing waits."""
        raise NotImplementedError
