"""What a proxy without decisions of its own has to remember of the traffic: enough to go on when its daemon is lost.

Rules of this module:

1. Every request is answered once: what answers no open request does not leave.
2. Known of each open request: its line, whether it has left to the other side, and the answer that has come but not
   left. Known of the past: `initialize`, how each session was opened, what was said of its mode since, and of its calls
   (`journal`).
3. A block is numbered as it is relayed; until its number comes back, nothing of it counts as done.
4. Kept are at most `MOST_OPEN` requests and `MOST_HELD` bytes of them, `MOST_SESSIONS` sessions and `MOST_PAST` bytes
   of their past; beyond that the oldest go. The answer to a request that went does not leave, and a later daemon lets
   no prompt to a session that went.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator

from msgspec import Struct, field

from policyd import acp
from policyd.acp import messages
from policyd.proxy.journal import Journal
from policyd.session import Side
from policyd.session.responses import CHANGES
from policyd.session.state import OPENINGS, PERMISSION

MODES = frozenset({"current_mode_update", "config_option_update"})
MOST_SESSIONS, MOST_PAST = 1_000, 128 * 1024 * 1024
MOST_OPEN, MOST_HELD = 10_000, 128 * 1024 * 1024
Key = tuple[Side, object]
Told = tuple[Side, bytes]


class Open(Struct):
    """A request that has no answer yet."""

    side: Side
    """Who asked."""
    line: bytes
    ident: bytes
    method: str
    block: int
    """The block it came in."""
    left: bool = False
    """It has gone to the other side."""
    answer: bytes | None = None
    """What the other side answered; it has not gone to whoever asked."""
    answer_block: int = 0

    @property
    def params(self) -> bytes:
        """Its params as they came."""
        message = read(self.line)
        return (message.params if message else None) or b"{}"

    @property
    def cost(self) -> int:
        """What it counts of the bytes that may be held: so much at least that there are no more than `MOST_OPEN`."""
        return max(len(self.line), MOST_HELD // MOST_OPEN)


class Ledger(Struct):
    """The traffic of one proxy as far as it is not over."""

    refused: bool = False
    """Whether any request was refused."""
    journal: Journal = field(default_factory=Journal)
    """What was said of calls."""
    _open: dict[Key, list[Open]] = field(default_factory=dict)
    _held: int = 0
    """The cost of these."""
    _own: dict[Key, bytes] = field(default_factory=dict)
    """Requests of policyd's own that a side has not answered."""
    _named: list[Told] = field(default_factory=list)
    """`initialize` and its answer."""
    _sessions: dict[str, list[Told]] = field(default_factory=dict)
    """How each session was opened."""
    _marks: dict[str, dict[str, list[Told]]] = field(default_factory=dict)
    """What was said of a session's mode since."""

    # ---- what comes ---------------------------------------------------------------------------------

    def fed(self, side: Side, block: bytes, number: int) -> None:
        """Note what came from a side."""
        for line, method, _ in acp.skim(block):
            message = None if method is not None else read(line)
            if side is Side.AGENT and (message is None or message.id is None or not message.method):
                self.journal.told(line)
            if message is None or message.key is None:
                continue
            if message.method is None:
                self._answered(side, message, line, number)
            elif message.id is not None:
                self._add((side, message.key), Open(side, line, message.id, message.method, number))

    def _add(self, key: Key, one: Open) -> None:
        self._open.setdefault(key, []).append(one)
        self._held += one.cost
        while self._held > MOST_HELD:
            self._held -= sum(one.cost for one in self._open.pop(next(iter(self._open))))

    def _answered(self, side: Side, message: acp.Envelope, line: bytes, number: int) -> None:
        if self._own.pop((side, message.key), None) is not None:
            return
        for one in self._open.get((side.other, message.key), ())[:1]:
            one.answer, one.answer_block = line, number

    # ---- what leaves --------------------------------------------------------------------------------

    def sent(self, side: Side, data: bytes) -> bytes:
        """Note what leaves to a side; return what of it may."""
        found = [(line, self._leaves(side, line, method, params)) for line, method, params in acp.skim(data)]
        if all(leaves for _, leaves in found):
            return data
        return b"".join(line + b"\n" for line, leaves in found if leaves)

    def _leaves(self, side: Side, line: bytes, method: str | None, params: bytes | None) -> bool:
        message = read(line) if method is None else None
        if message is not None and message.id is None:
            method, params = message.method, message.params
        if side is Side.CLIENT and method == acp.UPDATE and params is not None:
            self._mode_told(line, params)
        if message is None or message.key is None:
            return True
        if message.method is None:
            return self._closes(side, message, line)
        self._asked(side, message)
        return True

    def _asked(self, side: Side, message: acp.Envelope) -> None:
        waiting = self._open.get((side.other, message.key), ())
        one = next((one for one in waiting if not one.left and one.method == message.method), None)
        if one is not None:
            one.left = True
        elif message.id is not None:
            self._own[side, message.key] = message.id

    def _closes(self, side: Side, message: acp.Envelope, line: bytes) -> bool:
        """Note an answer to `side`; False if nothing open is answered by it."""
        waiting = self._open.get((side, message.key))
        if not waiting:  # an error without an id says that some line cannot be read
            return message.id == b"null" and message.error is not None
        one = waiting.pop(0)
        self._held -= one.cost
        if not waiting:
            del self._open[side, message.key]
        if one.method == PERMISSION:
            self.refused |= refuses(message.result)
            self.journal.settled(*call_of(one.params), one.line, line)
        elif message.error is not None:
            self.refused |= rejects(message.error)
        elif side is Side.CLIENT and message.result is not None:
            self._understood(one, line, message.result)
        return True

    def _understood(self, one: Open, line: bytes, result: bytes) -> None:
        """Keep what a later daemon has to know."""
        pair = [(Side.CLIENT, one.line), (Side.AGENT, line)]
        if one.method == "initialize":
            self._named = pair
        elif one.method in OPENINGS:
            session = acp.session_of(result) or acp.session_of(one.params)
            self._sessions[session] = pair
            self.journal.reopened(session)
            self._marks[session] = {}
            self._trim()
        elif one.method in CHANGES:
            self._mark(acp.session_of(one.params), one.method, pair)

    def _mode_told(self, line: bytes, params: bytes) -> None:
        session, kind = acp.update_kind(params)
        if kind in MODES:
            self._mark(session, kind, [(Side.AGENT, line)])

    def _mark(self, session: str, what: str, told: list[Told]) -> None:
        marks = self._marks.get(session)
        if marks is not None:
            marks.pop(what, None)
            marks[what] = told
            self._trim()

    def _trim(self) -> None:
        """Forget the oldest sessions beyond what is kept."""
        most = MOST_PAST + sum(len(line) for _, line in self._named)
        while len(self._sessions) > MOST_SESSIONS or sum(len(line) for _, line in self.past()) > most:
            oldest = next(iter(self._sessions))
            del self._sessions[oldest], self._marks[oldest]

    # ---- when the daemon is lost, and when it is back -------------------------------------------------

    def past(self) -> Iterator[Told]:
        """Yield the lines that tell what happened so far, in order."""
        yield from self._named
        for session, pair in self._sessions.items():
            yield from pair
            for told in self._marks[session].values():
                yield from told

    def passed(self) -> Iterator[Told]:
        """Yield the requests that have left and whose answers may still pass."""
        for one in self._all():
            if one.left and one.method != PERMISSION:
                yield one.side, one.line

    def stranded(self, undone: Container[int]) -> Iterator[Told]:
        """Yield what the lost daemon held: requests not let through or being asked about, answers not handed on.

        `undone` are the numbers of blocks that will be read again.
        """
        for one in self._all():
            if one.block not in undone and (not one.left or one.method == PERMISSION):
                one.left = False
                yield one.side, one.line
        for one in self._all():
            if one.left and one.answer is not None and one.answer_block not in undone:
                yield one.side.other, one.answer

    def questions(self) -> Iterator[bytes]:
        """Yield and forget the ids under which the client is being asked; nobody waits for its answers any more."""
        for side, key in [one for one in self._own if one[0] is Side.CLIENT]:
            yield self._own.pop((side, key))
        for one in self._all():
            if one.left and one.method == PERMISSION:
                yield one.ident

    def _all(self) -> list[Open]:
        return sorted((one for waiting in self._open.values() for one in waiting), key=lambda one: one.block)


def read(line: bytes) -> acp.Envelope | None:
    """Return the envelope of a line, None if it has none; of a request that is refused, its id and an empty method."""
    try:
        return acp.envelope(line)
    except ValueError:
        ident = acp.readable_id(line) if acp.has_method(line) else None
        return None if ident is None else acp.Envelope("", ident, key=acp.id_key(ident))


def call_of(params: bytes) -> tuple[str, str]:
    """Return the session and the call a permission request names, `""` what cannot be told."""
    try:
        found = json.loads(params)
        return str(found.get("sessionId", "")), str(found.get("toolCall", {}).get("toolCallId", ""))
    except (ValueError, AttributeError, RecursionError):
        return "", ""


def rejects(error: bytes) -> bool:
    """Say whether an error is policyd's refusal of another request."""
    try:
        return bool(json.loads(error).get("code") == messages.REFUSED)
    except (ValueError, AttributeError, RecursionError):
        return False


def refuses(result: bytes | None) -> bool:
    """Say whether the answer to a permission request is policyd's refusal."""
    try:
        meta = json.loads(result or b"{}").get("_meta", {})
        return bool(meta.get("policyd", {}).get("effect") == "deny")
    except (ValueError, AttributeError):
        return False
