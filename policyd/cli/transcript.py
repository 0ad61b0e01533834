"""Transcripts: lines that are ACP messages, `{"dir": …, "msg": …}`, or bare permission parameters, in any mixture.

Lines are parsed as strictly as on the wire. A refused line that asks for permission is a malformed request, a refused
update makes its call opaque, any other refused line is skipped with a note.
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
    """`a2c`, `c2a`, or `""` if unknown: a bare answer."""
    message: Mapping[str, object]
    fault: str = ""
    """Why the line is refused; the message is then parsed leniently."""

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
    """Yield the lines of a transcript without blank ones. `names` returns the keys that the agent reads."""
    for number, text in enumerate(raw, 1):
        if text.strip():
            yield line(number, text.strip(), names())


def line(number: int, text: bytes, names: Iterable[str] = ()) -> Line:
    """Parse one line."""
    try:
        return as_line(number, strict_object(text, names))
    except ProtocolError as error:
        return as_line(number, readable(text), str(error))


def readable(text: bytes) -> Mapping[str, object]:
    """Return a refused line parsed leniently, empty if it is not JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def as_line(number: int, value: Mapping[str, object], fault: str = "") -> Line:
    """Return the line for a JSON object: a transcript line, bare parameters, or a message."""
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
    """Return the direction of a bare answer, by its result."""
    result = message.get("result")
    return "c2a" if isinstance(result, Mapping) and "outcome" in result else "a2c"
