"""The events that go into a `Connection` and the commands that come out of it.

The caller (`service`, `proxy`, `daemon`) turns input into events, calls `Connection.handle`, and performs the
commands it returns **in order**. Rules for the caller:

1. A `Send` whose `record` names the `key` of a `Record` that failed is not sent; the caller feeds back
   `Failed(record, why)` and the session answers with a rejection instead. A `Record` that can fail later (fsync)
   counts as failed until it is known to be written.
2. An `Ask` whose step cannot be started, dies, or is not answered by its deadline is `Failed(ask, why)`: never a yes.
3. `Frame.data` is one line without its newline (a CR before it is kept); `Send.data` is one or several whole lines
   with their newlines, written as they are.
4. The end of a side is `Closed(side)`. Nothing is sent to a closed side.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class Side(StrEnum):
    """Who sent a line, or to whom it goes."""

    AGENT = "agent"
    CLIENT = "client"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.CLIENT if self is Side.AGENT else Side.AGENT


class Moment(Struct, frozen=True, gc=False):
    """The time, as an argument."""

    wall: datetime
    """Aware, UTC; for records, `until` and grants."""
    mono: float
    """Seconds of a monotonic clock; for deadlines."""


# ---- events: what happened ----------------------------------------------------------------------------


class Frame(Struct, frozen=True):
    """One line came from a side."""

    side: Side
    data: bytes
    """Without the newline."""


class Reply(Struct, frozen=True):
    """A step of the prompt chain answered the `Ask` of this id.

    `answer` is the JSON object the step gave, unchecked; None = the step abstains.
    """

    ask: int
    answer: Mapping[str, object] | None


class Failed(Struct, frozen=True):
    """A `Record` (its key) or an `Ask` (its id) failed. Keys and ids never coincide."""

    command: int
    why: str


class Tick(Struct, frozen=True):
    """Time passed: due when `Connection.deadline()` is reached; harmless at any other time."""


class Reloaded(Struct, frozen=True):
    """The policy or the grants changed: open questions are judged again, a deny wins at once."""

    announce: str = ""
    """Shown in every open session, if not empty: a policy that may allow more is announced."""


class Closed(Struct, frozen=True):
    """A side is gone: prompts are withdrawn, open requests rejected, nothing is remembered."""

    side: Side


Event = Frame | Reply | Failed | Tick | Reloaded | Closed


# ---- commands: what is to be done, in order -----------------------------------------------------------


class Send(Struct, frozen=True, gc=False):
    """Write whole lines to a side."""

    side: Side
    data: bytes
    """One or several lines, each with its newline."""
    record: int | None = None
    """Key of the record that must have been written before."""


class Record(Struct, frozen=True, gc=False):
    """Append one audit record. The caller adds sequence number and hash chain (`audit.line`)."""

    key: int
    record: Mapping[str, object]


class Remember(Struct, frozen=True):
    """Store answers of a person; `grants` are `policyd.grants.Grant`. Comes after the record of the answer."""

    grants: tuple[object, ...]
    record: int | None = None
    """Key of the record that must have been written before."""


class Ask(Struct, frozen=True):
    """Ask a step of the prompt chain other than the client (`command:/path` or `inbox`)."""

    id: int
    step: str
    payload: Mapping[str, object]
    """The JSON object the step reads: request, digest, nonce, options (`policyd.prompts`)."""
    deadline: float
    """`Moment.mono` at which an answer no longer counts."""


class Withdraw(Struct, frozen=True):
    """The answer to an `Ask` is no longer wanted: end its hook, take it from the inbox."""

    ask: int


class Note(Struct, frozen=True):
    """One line for stderr, safe to display, without a newline."""

    text: str
    loud: bool = False
    """Shown at any log level: the session is not, or not fully, under policy."""


Command = Send | Record | Remember | Ask | Withdraw | Note
