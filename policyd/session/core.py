"""State shared by all parts of the enforcement: the outbox, the ids, the sessions, the pending requests.

1. Commands leave in the order they were put. Consecutive lines forwarded to one side leave as one `Send`.
2. policyd's own request ids contain a random word: neither side can have used one before it was sent, and a request
   with such an id is refused. Answers to them are never forwarded.
3. An answer is taken only from the side that was asked, once.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from msgspec import Struct, field

from policyd import acp
from policyd.digest import sha256
from policyd.display import safe
from policyd.prompts import Desk, Limits
from policyd.session.events import Command, Moment, Note, Record, Send, Side
from policyd.session.ports import Decider
from policyd.session.settings import Settings
from policyd.session.state import Held, Session

PASSING_KEPT, ALIKE_KEPT = 10_000, 100
"""Ids of requests that await their response, and requests under one id; the oldest beyond that are dropped."""
SESSIONS_KEPT = 2_000
NEVER = Moment(datetime.min.replace(tzinfo=UTC), 0.0)
"""Before the first event."""
Mark = tuple[int, list[bytes], int, Side]
Answered = Callable[[acp.Envelope], None]


class Passing(Struct):
    """A forwarded request that awaits its response."""

    method: str
    session: str = ""
    """The session it opens or changes, where its params name one."""
    understood: bool = False
    """Its response is parsed too."""


class Core(Struct):
    """Shared state of one connection."""

    decider: Decider
    settings: Settings
    nonce: str
    now: Moment = NEVER
    sessions: dict[str, Session] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)
    """Requests of the agent that policyd has not answered, by number."""
    passing: OrderedDict[tuple[Side, object], list[Passing]] = field(default_factory=OrderedDict)
    """Forwarded requests by the side that sent them and their id."""
    own: dict[tuple[Side, str], Answered] = field(default_factory=dict)
    """Handlers for the answers to policyd's own requests, by the side that was asked and id."""
    closed: set[Side] = field(default_factory=set)
    limits: Limits = field(default_factory=Limits)
    """Limits on prompts over all sessions."""
    _out: list[Command] = field(default_factory=list)
    _run: list[bytes] = field(default_factory=list)
    _run_side: Side = Side.CLIENT
    _count: int = 0
    _sessions_most: int = SESSIONS_KEPT
    """Above this number of sessions, unused ones are dropped."""
    prefix: str = ""
    """The prefix of policyd's own ids; it does not reveal the nonce."""

    def __post_init__(self) -> None:
        """Derive the visible prefix from the secret nonce."""
        self.prefix = f"policyd:{sha256(f'wire {self.nonce}'.encode()).hexdigest()[:16]}:"
        self.limits = self._limits()

    # ---- the outbox ---------------------------------------------------------------------------------

    def forward(self, side: Side, line: bytes) -> None:
        """Forward a line to `side` byte for byte."""
        if self._run and self._run_side is not side:
            self._flush()
        self._run_side = side
        self._run.append(line)

    def send(self, side: Side, data: bytes, record: int | None = None) -> None:
        """Send whole lines of policyd's own, or a line that is forwarded only if `record` was written."""
        self.put(Send(side, data, record))

    def put(self, command: Command) -> None:
        """Append a command to the outbox."""
        if self._run:
            self._flush()
        self._out.append(command)

    def note(self, text: str, *, loud: bool = False) -> None:
        """Append a line for stderr."""
        self.put(Note(safe(text), loud))

    def record(self, row: Mapping[str, object]) -> int:
        """Append an audit record; return its key."""
        key = self.number()
        self.put(Record(key, row))
        return key

    def taken(self) -> list[Command]:
        """Empty the outbox and return its commands, without those for a closed side."""
        self._flush()
        out, self._out = self._out, []
        if not self.closed:
            return out
        return [one for one in out if not (isinstance(one, Send) and one.side in self.closed)]

    def mark(self) -> Mark:
        """Return the state of the outbox, for `rewind`."""
        return len(self._out), self._run, len(self._run), self._run_side

    def rewind(self, mark: Mark) -> None:
        """Drop what was put since `mark`; a run that was flushed since is put back."""
        count, self._run, lines, self._run_side = mark
        del self._out[count:]
        del self._run[lines:]

    def _flush(self) -> None:
        if self._run:
            data = b"\n".join(self._run) + b"\n"
            self._run = []
            self._out.append(Send(self._run_side, data))

    # ---- ids ----------------------------------------------------------------------------------------

    def number(self) -> int:
        """Return a fresh number, for records, asks and held requests alike."""
        self._count += 1
        return self._count

    def own_id(self) -> str:
        """Return a fresh id for a request of policyd's own that nobody can guess from the ones before."""
        return f"{self.prefix}{self.secret()[:32]}"

    def secret(self) -> str:
        """Return fresh text that nobody can guess from anything ever sent."""
        return sha256(f"secret {self.nonce} {self.number()}".encode()).hexdigest()

    def ours(self, key: object) -> bool:
        """Say whether an id is one of policyd's own."""
        return isinstance(key, tuple) and isinstance(key[1], str) and key[1].startswith(self.prefix)

    def ask_side(self, side: Side, method: str, params: Mapping[str, object], answered: Answered) -> str:
        """Send a request of policyd's own; `answered` gets the response."""
        ident = self.own_id()
        self.own[side, ident] = answered
        self.send(side, acp.messages.request(ident, method, params))
        return ident

    def forget(self, side: Side, ident: str) -> None:
        """Drop an own request: its answer is no longer wanted."""
        self.own.pop((side, ident), None)

    # ---- forwarded requests -------------------------------------------------------------------------

    def track(self, side: Side, key: object, passing: Passing) -> None:
        """Remember a forwarded request of `side`."""
        waiting = self.passing.setdefault((side, key), [])
        waiting.append(passing)
        del waiting[:-ALIKE_KEPT]
        while len(self.passing) > PASSING_KEPT:
            self.passing.popitem(last=False)

    def answered(self, side: Side, key: object) -> Passing | None:
        """Take out the request that a response from `side` answers, None if there is none."""
        waiting = self.passing.get((side.other, key))
        if not waiting:
            return None
        found = waiting.pop(0)
        if not waiting:
            del self.passing[side.other, key]
        return found

    # ---- sessions -----------------------------------------------------------------------------------

    def session(self, ident: str) -> Session:
        """Return the session of this id, new if it was never seen."""
        found = self.sessions.get(ident)
        if found is None:
            found = self.sessions[ident] = Session(ident, desk=Desk((self._limits(), self.limits)))
            if len(self.sessions) > self._sessions_most:
                self._forget_sessions()
        return found

    def _forget_sessions(self) -> None:
        """Drop sessions that were named but never opened, the oldest first."""
        asking = {held.session.id for held in self.held.values()}
        idle = [
            one.id
            for one in self.sessions.values()
            if not (one.opened or one.opening or one.hold or one.permits or one.id in asking)
        ]
        for ident in idle[: SESSIONS_KEPT // 2]:
            del self.sessions[ident]
        self._sessions_most = max(SESSIONS_KEPT, 2 * len(self.sessions) - SESSIONS_KEPT // 2)

    def _limits(self) -> Limits:
        return Limits(self.settings.open_prompts, self.settings.prompts_a_minute)


def quoted(ident: str) -> bytes:
    """Return an own id as JSON."""
    return json.dumps(ident).encode()


def text_of(params: Mapping[str, object], name: str) -> str:
    """Return a text field, `""` if it is missing or not text."""
    value = params.get(name)
    return value if isinstance(value, str) else ""
