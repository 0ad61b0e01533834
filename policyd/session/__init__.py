"""Enforcement as a pure state machine: one connection between a client and an agent, with all its ACP sessions.

`Connection.handle(event, now)` and `Connection.feed(side, block, now)` return commands; nothing here reads a
clock, a file or a socket. `policyd.session.events` says what the caller has to do with the commands.
"""

from __future__ import annotations

from policyd.session.connection import Connection
from policyd.session.events import (
    Ask,
    Closed,
    Command,
    Event,
    Failed,
    Frame,
    Moment,
    Note,
    Record,
    Reloaded,
    Remember,
    Reply,
    Send,
    Side,
    Tick,
    Withdraw,
)
from policyd.session.settings import Settings

__all__ = [
    "Ask",
    "Closed",
    "Command",
    "Connection",
    "Event",
    "Failed",
    "Frame",
    "Moment",
    "Note",
    "Record",
    "Reloaded",
    "Remember",
    "Reply",
    "Send",
    "Settings",
    "Side",
    "Tick",
    "Withdraw",
]
