"""State of sessions and held requests. Mutable, owned by `Connection`, never exposed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from msgspec import Struct, field

from policyd.actions import ASKING, OPENING
from policyd.model import TABLE
from policyd.prompts import Desk, Prompt
from policyd.session.events import Moment, Side
from policyd.session.ports import Asking, Verdict

PERMITS_KEPT = 1_000
OPENINGS, PERMISSION = frozenset(OPENING), ASKING


class Hold(Struct):
    """The response that opens a session, held until the asking mode is confirmed."""

    line: bytes
    asking: Asking
    deadline: float
    result: Mapping[str, object]
    step: int = 0
    """Index of the step whose answer is awaited."""
    own: str = ""
    """Id of that request."""
    queue: list[tuple[Side, bytes]] = field(default_factory=list)
    """Lines of the session that wait behind the response, in order; empty where one was answered meanwhile."""
    size: int = 0
    asked: dict[object, int] = field(default_factory=dict)
    """Position in the queue of each request that policyd answers, by its id."""
    confirmed: list[int] = field(default_factory=list)
    """For each step that was confirmed, how many lines had come before."""


class SetBack(Struct):
    """A mode switch by the agent that is being undone."""

    line: bytes | None
    """The update that reported it, held back; None = the client has seen it."""
    asking: Asking
    deadline: float
    step: int = 0
    own: str = ""
    later: list[tuple[Mapping[str, object], bytes | None]] = field(default_factory=list)
    """Later switches that the remaining steps do not undo."""


class Permit(Struct, frozen=True):
    """A permission given for one thing, not yet used by a side door."""

    kind: str
    """`read`, `write` or `command`."""
    forms: frozenset[str] = frozenset()
    """Every spelling of the path."""
    digest: str | None = None
    """Digest of the text shown; None = none was shown."""
    commands: tuple[object, ...] = ()
    """In order, with their input and environment."""
    uses: frozenset[object] = frozenset()
    """Files and URLs beside the commands: all that were allowed, or all that are wanted."""
    texts: frozenset[str] = frozenset()
    """The possible source texts of the whole, where known."""
    cwd: tuple[str, ...] = ()


class Session(Struct):
    """One ACP session."""

    id: str
    opened: bool = False
    """The response that opened it was forwarded: the client knows it. Earlier updates are history."""
    opening: int = 0
    """How many requests to load or resume it are under way."""
    was_open: bool = False
    """It was open before the first of them."""
    early_updates: dict[str, tuple[Mapping[str, object], bytes]] = field(default_factory=dict)
    """The latest updates of mode and options that came before it was open, with their lines."""
    hold: Hold | None = None
    setback: SetBack | None = None
    setbacks: int = 0
    unwatched: str = ""
    """Why the asking mode is not in force, in words; empty if it is."""
    prompts: list[bytes] = field(default_factory=list)
    """Prompts of the client that wait for a mode."""
    reports: list[bytes] = field(default_factory=list)
    """Synthetic calls to send as soon as the session is open."""
    reported: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Calls whose refusal was shown."""
    diffs: OrderedDict[str, dict[str, str]] = field(default_factory=OrderedDict)
    """Call -> path -> digest of the text its diff shows."""
    judged: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Completed calls the tripwire has looked at."""
    approved: OrderedDict[str, frozenset[object]] = field(default_factory=OrderedDict)
    """Allowed call -> what it would do then; empty once a change was recorded."""
    permits: list[Permit] = field(default_factory=list)
    desk: Desk = field(default_factory=Desk)


class OpenPrompt(Struct):
    """An open prompt, and the ids under which its answer may come."""

    prompt: Prompt
    session: Session
    first: Held
    """The request it was asked for; identical ones wait for the same outcome."""
    step: int = 0
    """Index of the step being asked."""
    asked: bytes | None = None
    """The id under which the client was asked."""
    ask: int | None = None
    """The id of the open `Ask`."""
    cancelled: bool = False
    """The client answered `cancelled`."""
    remembered: bool = False


class Held(Struct):
    """A request of the agent that policyd answers or forwards once it is judged."""

    number: int
    session: Session
    ident: bytes
    """Its id as it came."""
    key: tuple[str, object]
    method: str
    line: bytes
    """The line as it came, without its newline."""
    raw: bytes
    """Its params as they came."""
    params: Mapping[str, object]
    started: Moment
    wait_until: float | None = None
    """While its details are awaited."""
    verdict: Verdict | None = None
    pending: OpenPrompt | None = None
    """The open question whose outcome it waits for."""
    door: bool = False
    """It came through a side door."""
    call_id: str = ""
    """The tool call it names, `""` if none."""

    def __post_init__(self) -> None:
        """Cache what is needed at every step."""
        self.door = self.method != PERMISSION
        self.call_id = call_named(self.params)

    def emptied(self) -> Held:
        """Return a copy without the message, which is enough to answer it."""
        return Held(self.number, self.session, self.ident, self.key, self.method, b"", b"", {}, self.started)


def call_named(params: Mapping[str, object]) -> str:
    """Return the tool call that params of a request name, `""` if none."""
    call, subject = params.get("toolCall"), params.get("subject")
    if call is None and isinstance(subject, TABLE):
        call = subject.get("toolCall", subject)
    ident = call.get("toolCallId") if isinstance(call, TABLE) else None
    return ident if isinstance(ident, str) else ""


def remember(kept: OrderedDict[str, None], key: str, limit: int) -> None:
    """Add `key`, forgetting the oldest beyond `limit`."""
    kept[key] = None
    kept.move_to_end(key)
    while len(kept) > limit:
        kept.popitem(last=False)
