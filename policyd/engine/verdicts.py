"""What was judged before: the same actions, in the same session, under the same policy, are judged alike.

Rules of this module:

1. A verdict is kept only where nothing it rests on can change without its key or the session's facts changing: not
   the clock (`until`), not files (globs, whole directories), not arguments (`input`), not policyd's own floors.
2. The key of a request is every field of every action, but those of `APART`: none of these is looked at where a
   verdict is kept. A field that is added to actions is in the key unless somebody takes it out.
3. Nothing is kept of what failed, and nothing remembered by a person is looked at: grants come after.
4. Bounded: what is too much is forgotten, all at once, and every key with the policy. Of a request its key is kept,
   unless it is long, its arguments are not; equal verdicts are one.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from operator import attrgetter

from msgspec import Struct
from msgspec.msgpack import Encoder
from msgspec.structs import replace

from policyd.model import Action, Context, Decision, Effect, Judged, Reach, RuleRef
from policyd.policy import Policy

KEPT = 7_000
"""Actions whose verdict is kept a session, all requests together."""
SESSIONS = 16
MOST_ACTIONS = 32
"""Actions of a request that is kept."""
LONGEST = 4_096
"""Bytes of the key of a request that is kept, an action: a command may be 256 KiB, and each is another."""
APART = frozenset({"args", "within", "origin", "whole"})
"""Fields of an action at which only rules that are not steady, floors, grants and records look."""
Key = tuple[object, ...]
Judgement = tuple[Effect, tuple[RuleRef, ...], tuple[RuleRef, ...], tuple[RuleRef, ...], tuple[str, ...]]
judgement = attrgetter("effect", "hits", "possible", "defaults", "floors")
"""What was judged of an action, the action itself apart."""
JUDGED = [name for name in Action.__struct_fields__ if name not in APART]
fields = attrgetter(*JUDGED)
but_path = attrgetter(*[name for name in JUDGED if name != "path"])
but_command = attrgetter(*[name for name in JUDGED if name != "command"])
encode = Encoder().encode
facts = attrgetter(*[name for name in Context.__struct_fields__ if name != "now"])


class Verdict(Struct, frozen=True, gc=False):
    """What was judged of the actions with one key."""

    judged: tuple[Judgement, ...]
    decision: Decision | None = None
    """What followed for a request that is no menu, where no remembered answer spoke of it."""


class Verdicts(Struct):
    """The verdicts of one session under one policy."""

    facts: Key
    """What is true of the session, the time apart."""
    known: dict[Key, dict[object, Verdict]]
    """By the first part of the key, by the second."""
    size: int = 0
    """Actions of all that is known."""


NONE: dict[object, Verdict] = {}
"""Stands in for a table that is not there; never written to."""


def of_session(policy: Policy, context: Context) -> Verdicts:
    """Return the verdicts of a session, none where it is new or something about it changed."""
    held = policy.memory.get(id(context.workspace))
    if isinstance(held, Verdicts) and held.facts == facts(context):
        return held
    if len(policy.memory) >= SESSIONS:
        policy.memory.clear()
    own = replace(context, labels=dict(context.labels), managed_labels=dict(context.managed_labels))
    fresh = policy.memory[id(context.workspace)] = Verdicts(facts(own), {})
    return fresh


def key_of(actions: tuple[Action, ...]) -> tuple[Key, object]:
    """Return what the judgement of these actions rests on: what many have in common, and what each has for itself."""
    if len(actions) != 1:
        return (), tuple(map(fields, actions))
    action = actions[0]
    if action.path is not None:
        return but_path(action), action.path
    if action.command is not None:
        return but_command(action), action.command
    return (), fields(action)


def keep(held: Verdicts, common: Key, own: object, judged: tuple[Judged, ...], decision: Decision | None) -> None:
    """Keep what was judged, if it rests on nothing but the key, the session and steady rules."""
    size = len(judged)
    if size > MOST_ACTIONS or [one for one in judged if not lasts(one.action)]:
        return
    if weight((common, own)) > LONGEST * size:
        return
    held.size += size
    if held.size > KEPT:
        held.known.clear()
        held.size = size
    verdict = same(tuple(map(judgement, judged)), decision and replace(decision, actions=()))
    held.known.setdefault(common, {})[own] = verdict


def weight(key: Key) -> int:
    """Return the bytes of a key; more than any where it holds what is no Unicode, as names of files may."""
    try:
        return len(encode(key))
    except UnicodeError:
        return sys.maxsize


def lasts(action: Action) -> bool:
    """Say whether the judgement of an action rests on no file and on no floor of policyd's own."""
    if action.opaque or action.guarded or action.escalate or action.strays or action.mode is not None:
        return False
    path = action.path
    return path is None or not (path.glob or path.folded or path.reach is not Reach.ENTRY)


@lru_cache(1024)
def same(judged: tuple[Judgement, ...], decision: Decision | None) -> Verdict:
    """Return one verdict for all that are equal, whatever session and policy they are of: it holds no key."""
    return Verdict(judged, decision)
