"""Calls that work elsewhere than their session: a subagent's, and those behind one that led the agent away.

1. A call that was announced only in another session is a subagent's of that session: where that works is not stated.
2. Where calls name the one that started their agent, its `rawInput` may say that this agent works on a copy.
3. A tool may move the agent itself to another directory: it may be there once the call says where that is. Until
   then, and when a finished call does not say it, the directory is unknown. A session that is loaded is where it was,
   and its history shows that it moved, but not where to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from policyd.actions.evidence import Call, Evidence, merge
from policyd.actions.fields import Ref
from policyd.actions.identity import identify
from policyd.actions.messages import absolute
from policyd.actions.profiles import Profile
from policyd.actions.sessions import MOST_PENDING, Session
from policyd.model import EMPTY, TABLE

MOST_NESTED = 8
"""Agents that start one another."""
TOGETHER = (None, "", "none", False)
"""What says that an agent works where the one that started it works."""


def elsewhere(found: Evidence, session: Session, sessions: Mapping[str, Session], profile: Profile) -> bool:
    """Say whether it is unknown where a call works that `session` asks about."""
    own = session.calls.get(found.call_id)
    if found.call_id and not (own is not None and own.open):
        others = (other.calls.get(found.call_id) for other in sessions.values() if other is not session)
        if any(call is not None and call.open for call in others):
            return True
    return bool(profile.data.parent) and _apart(found, session, profile)


def _apart(found: Evidence, session: Session, profile: Profile) -> bool:
    """Say whether, for one of the agents that led to a call, it is unknown where it works."""
    own = session.calls.get(found.call_id)
    for _ in range(MOST_NESTED):
        parent = _text(profile.data.parent, found) or (
            _text(profile.data.parent, replace(found, raw=own.raw, meta=own.meta)) if own else ""
        )
        if not parent:
            return False
        starter = session.calls.get(parent)
        if starter is None:
            return not session.parent  # where a subagent's session works, the agent says as it makes it
        said = {**starter.older, **starter.raw}
        if any(said.get(key) not in TOGETHER for key in profile.data.apart):
            return True
        own, found = None, merge(starter, EMPTY, ())
    return True


def entered(session: Session, call_id: str, profile: Profile) -> None:
    """Record where an announced call takes its agent."""
    enters, call = profile.data.enters, session.calls.get(call_id)
    if not enters or call is None or enters.keys().isdisjoint(_names(call)) or session.entering.get(call_id) is False:
        return
    found = merge(call, EMPTY, ())
    stated = enters.get(identify(found, profile)[0])
    if stated is None:
        return
    place = next(filter(None, (_text(source, found) for source in stated)), "")
    if absolute(place) or call.status == "completed":
        session.entering[call_id] = False
        session.entered((place,) if absolute(place) else None)
    elif call.finished:
        session.entering.pop(call_id, None)
    else:
        session.entering[call_id] = True
    if len(session.entering) > MOST_PENDING:
        session.entering.clear()
        session.entered(None)


def went(session: Session, update: Mapping[str, object], profile: Profile) -> None:
    """Record an update from a session's history: a call that took its agent elsewhere does not say where to."""
    call, tools = Call(""), profile.data.enters
    call.update(update)
    if not tools.keys().isdisjoint(_names(call)) and identify(merge(call, EMPTY, ()), profile)[0] in tools:
        session.entering[""] = False


def _names(call: Call) -> Iterator[str]:
    """Yield every text that may be the name of a call's tool: cheaper than to find out which one is."""
    yield from (call.name, call.first_title)
    for part in call.meta.values():
        yield from (text for text in (part.values() if isinstance(part, TABLE) else (part,)) if isinstance(text, str))


def _text(source: str, found: Evidence) -> str:
    return next((one.value for one in _ref(source).find(found) if isinstance(one.value, str)), "")


@cache
def _ref(source: str) -> Ref:
    return Ref.compile(source)
