"""Transcripts: lines that are ACP messages, `{"dir": …, "msg": …}`, or bare permission parameters, any mixed.

A line is read as strictly as the wire is: what two parsers could read in two ways is refused. A refused line that asks
for permission is a malformed request, a refused update makes its call opaque, anything else is left out with a note.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from policyd.acp import ProtocolError, strict_object
from policyd.actions import ASKING, SIDE_DOORS

FROM_AGENT = frozenset({ASKING, "session/update", "$/cancel_request", "elicitation/create"})
PREFIXES = ("fs/", "terminal/")


class Line(Struct, frozen=True):
    """One line of a transcript."""

    number: int
    direction: str
    """`a2c`, `c2a`, or `""` where it does not tell: an answer outside of a transcript."""
    message: Mapping[str, object]
    fault: str = ""
    """Why the line is refused; the message is then what could be read all the same."""

    @property
    def method(self) -> str:
        """The method, empty for an answer."""
        method = self.message.get("method")
        return method if isinstance(method, str) else ""

    @property
    def params(self) -> Mapping[str, object]:
        """The parameters, empty where there are none."""
        params = self.message.get("params")
        return params if isinstance(params, Mapping) else {}

    @property
    def session(self) -> str:
        """The session it belongs to, empty if it names none."""
        ident = self.params.get("sessionId")
        return ident if isinstance(ident, str) else ""

    @property
    def judged(self) -> bool:
        """Whether it asks for a decision."""
        return self.direction == "a2c" and self.method in (ASKING, *SIDE_DOORS)


def read(raw: Iterable[bytes], names: Callable[[], Iterable[str]] = tuple) -> Iterator[Line]:
    """Yield the lines of a transcript; blank ones are left out. `names` tells the keys the agent reads."""
    for number, text in enumerate(raw, 1):
        if text.strip():
            yield line(number, text.strip(), names())


def line(number: int, text: bytes, names: Iterable[str] = ()) -> Line:
    """Read one line."""
    try:
        return spoken(number, strict_object(text, names))
    except ProtocolError as error:
        return spoken(number, readable(text), str(error))


def readable(text: bytes) -> Mapping[str, object]:
    """Return what a refused line seems to hold, empty if nothing can be read."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def spoken(number: int, value: Mapping[str, object], fault: str = "") -> Line:
    """Return the line that `value` is: a transcript line, bare parameters, or a message."""
    message = value.get("msg")
    if "dir" in value and isinstance(message, Mapping):
        return Line(number, str(value["dir"]), message, fault)
    if "method" not in value and ("toolCall" in value or "subject" in value):
        return Line(number, "a2c", {"method": ASKING, "params": value}, fault)
    method = value.get("method")
    if not isinstance(method, str):
        return Line(number, "", value, fault)
    return Line(number, "a2c" if method in FROM_AGENT or method.startswith(PREFIXES) else "c2a", value, fault)


def answer_direction(message: Mapping[str, object]) -> str:
    """Return who sent an answer that stands outside of a transcript, by what it answers."""
    result = message.get("result")
    return "c2a" if isinstance(result, Mapping) and "outcome" in result else "a2c"
