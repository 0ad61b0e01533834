"""The messages of the daemon's connection: ACP with the roles swapped, and policyd's own methods.

The embedder takes the agent's side: it forwards what its agent sends. Methods beyond ACP begin with `_policyd/`. Every
line is one JSON object of at most `relayed.FRAME` bytes. Parsing only: nothing here decides or sends.

1. A request that cannot be parsed is answered with an error, or with `cancelled` if it asks for permission.
2. Unknown members are ignored, as ACP does; wrong types of known ones are errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from policyd import acp
from policyd.acp import messages
from policyd.service.relayed import FRAME, PROTOCOL

MOST_LISTED, MOST_LABELS = 1_000, 100
"""What one list, and one table of labels, may hold: it is looked at with every request."""
OBSERVE = "_policyd/observe"
SESSION = "_policyd/session"
ASK = "_policyd/ask"
DECIDE = "_policyd/decide"
ANSWER = "_policyd/answer"
STATUS = "_policyd/status"
RELOAD = "_policyd/reload"
GRANTS = "_policyd/grants"
PROMPTS = "_policyd/prompts"


class WireError(ValueError):
    """A message that cannot be taken; the text says why, for whoever wrote the peer."""


class Hello(Struct, frozen=True):
    """What a peer says first."""

    client: str = ""
    version: str = ""
    person: bool = False
    """Whether a person answers `_policyd/ask`."""
    agent: str = ""
    """Profile or wire name to assume until the agent names itself."""
    labels: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    """The directory the agent was started in, empty where that is not said."""
    relay: bool = False
    """The peer is a `policyd proxy --connect`: it relays both sides line by line."""
    profile: str = ""
    """Relay: the client profile given on its command line."""
    rejected: int = 0
    """Relay: requests it rejected because there was no daemon."""


class Opened(Struct, frozen=True):
    """The short form of a session that was opened."""

    session: str
    cwd: str | None
    additional: tuple[str, ...]
    servers: tuple[str, ...]
    mode: str
    agent: tuple[str, str]
    labels: Mapping[str, str]


def read_hello(params: Mapping[str, object]) -> Hello:
    """Return what a hello says.

    Raises:
        WireError: another protocol, or a member of a wrong type.
    """
    if params.get("protocol") != PROTOCOL:
        raise WireError(f'this policyd speaks protocol {PROTOCOL}; write `"protocol": {PROTOCOL}`')
    name, version = named(params, "client")
    rejected = params.get("rejected", 0)
    return Hello(
        client=name,
        version=version,
        person=flag(params, "person"),
        agent=text(params, "agent"),
        labels=texts(params, "labels"),
        cwd=text(params, "cwd"),
        relay=flag(params, "relay"),
        profile=text(params, "profile"),
        rejected=rejected if isinstance(rejected, int) and 0 <= rejected < 1_000_000_000 else 0,
    )


def read_session(params: Mapping[str, object]) -> Opened:
    """Return the session a `_policyd/session` tells of.

    Raises:
        WireError: no `sessionId`, a `cwd` that is not absolute, or a member of a wrong type.
    """
    session, cwd = text(params, "sessionId"), text(params, "cwd")
    if not session:
        raise WireError("`sessionId` is missing")
    if cwd and not cwd.startswith("/"):
        raise WireError("`cwd` must be absolute")
    return Opened(
        session,
        cwd or None,
        listed(params, "additionalDirectories", MOST_LISTED),
        listed(params, "mcpServers", MOST_LISTED),
        text(params, "mode"),
        named(params, "agent"),
        texts(params, "labels"),
    )


# ---- members -------------------------------------------------------------------------------------------


def text(params: Mapping[str, object], name: str) -> str:
    """Return a text, empty if it is missing or null."""
    value = params.get(name)
    if value is not None and not isinstance(value, str):
        raise WireError(f"`{name}` must be a text")
    return value or ""


def flag(params: Mapping[str, object], name: str) -> bool:
    """Return a truth value, false if it is missing."""
    value = params.get(name, False)
    if not isinstance(value, bool):
        raise WireError(f"`{name}` must be true or false")
    return value


def texts(params: Mapping[str, object], name: str) -> dict[str, str]:
    """Return a table of texts, empty if it is missing."""
    value = params.get(name) or {}
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise WireError(f"`{name}` must be a table of texts")
    if len(value) > MOST_LABELS:
        raise WireError(f"`{name}` holds more than {MOST_LABELS} texts")
    return value


def listed(params: Mapping[str, object], name: str, most: int = FRAME) -> tuple[str, ...]:
    """Return a list of at most `most` texts, or of tables with a `name`; empty if it is missing."""
    value = params.get(name) or []
    if not isinstance(value, list):
        raise WireError(f"`{name}` must be a list")
    found = [one.get("name") if isinstance(one, dict) else one for one in value]
    if not all(isinstance(one, str) for one in found):
        raise WireError(f"`{name}` must be a list of texts")
    if len(found) > most:
        raise WireError(f"`{name}` holds more than {most} texts")
    return tuple(map(str, found))


def named(params: Mapping[str, object], name: str) -> tuple[str, str]:
    """Return name and version of a peer's `{name, version}`, or of its name alone."""
    value = params.get(name)
    if isinstance(value, str):
        return value, ""
    if value is not None and not isinstance(value, dict):
        raise WireError(f"`{name}` must be a table with `name` and `version`")
    return (text(value, "name"), text(value, "version")) if value else ("", "")


# ---- answers -------------------------------------------------------------------------------------------


def rejected(ident: bytes, why: str) -> bytes:
    """Return the answer to a permission request that is refused before anything was judged."""
    return messages.permission(ident, None, {"effect": "deny", "rules": [], "reason": why})


def refusal(line: bytes, ident: bytes | None, why: str) -> bytes | None:
    """Return the answer to a request, or a batch, that is not taken: never an error where permission was asked."""
    if line.lstrip().startswith(b"["):
        return messages.error(b"null", messages.INVALID, "policyd takes no batches")
    if ident is None or not acp.has_method(line):
        return None
    if acp.claims(line, "session/request_permission"):
        return rejected(ident, why)
    return messages.error(ident, messages.INVALID, why)
