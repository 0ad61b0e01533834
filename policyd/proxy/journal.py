"""The agent's messages about its calls, kept for a daemon that takes over, so that it has the full evidence.

Rules of this module:

1. Kept in order, per proxy: every update that names a call, and every permission request with its answer.
2. Beyond `KEPT` bytes the oldest are dropped. The next daemon is told which calls lost messages, and treats the
   evidence of these calls as incomplete.
3. Reopening a session drops its messages.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator

from msgspec import Struct

from policyd import acp
from policyd.session import Side

KEPT = 8 * 1024 * 1024
MOST_CALLS = 10_000
"""Calls whose loss is remembered; before them, those of the session that lost something longest ago are forgotten."""


class Entry(Struct):
    """One line about a call."""

    session: str
    call: str
    side: Side
    line: bytes


class Journal:
    """The lines about calls of one proxy."""

    def __init__(self, kept: int = KEPT) -> None:
        """Nothing was said."""
        self._entries: deque[Entry] = deque()
        self._left = kept
        self._lost: OrderedDict[tuple[str, str], None] = OrderedDict()

    def told(self, line: bytes) -> None:
        """Take in a notification of the agent, if it may be about a call."""
        if b"oolCallId" in line or b"\\u" in line:
            session, call = acp.update_call(line)
            if call:
                self._add(Entry(session, call, Side.AGENT, line))

    def settled(self, session: str, call: str, request: bytes, answer: bytes) -> None:
        """Take in a permission request and its answer."""
        self._add(Entry(session, call, Side.AGENT, request))
        self._add(Entry(session, call, Side.CLIENT, answer))

    def reopened(self, session: str) -> None:
        """A session begins anew."""
        for entry in self._entries:
            if entry.session == session:
                self._left += len(entry.line)
        self._entries = deque(entry for entry in self._entries if entry.session != session)
        for key in [key for key in self._lost if key[0] == session]:
            del self._lost[key]

    def entries(self) -> Iterator[tuple[Side, bytes]]:
        """Yield the lines, in order."""
        for entry in self._entries:
            yield entry.side, entry.line

    def lost(self) -> dict[str, list[str]]:
        """Return the calls of each session of which something went."""
        found: dict[str, list[str]] = {}
        for session, call in self._lost:
            found.setdefault(session, []).append(call)
        return found

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._left -= len(entry.line)
        while self._left < 0:
            gone = self._entries.popleft()
            self._left += len(gone.line)
            if not gone.call:
                continue
            self._lost[gone.session, gone.call] = None
            self._lost.move_to_end((gone.session, gone.call))
            while len(self._lost) > MOST_CALLS:
                self._lost.popitem(last=False)
