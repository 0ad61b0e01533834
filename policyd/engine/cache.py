"""The cache of verdicts: the same actions, in the same session, under the same policy, are judged alike.

Rules of this module:

1. A verdict is cached only if nothing it depends on can change unless its key or the session's facts change: not the
   clock (`until`), not files (globs, whole directories), not arguments (`input`), not policyd's own floors.
2. The key of a request is every field of every action except those in `APART`: no cached verdict depends on these.
   A field added to actions is part of the key unless somebody excludes it.
3. Failures are never cached, nor is what a grant decides: grants are applied afterwards.
4. Bounded: a full cache is emptied at once, and it goes with its policy. Long keys and arguments are not kept; equal
   verdicts share one object.
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
"""Actions with cached verdicts in one session, over all requests."""
SESSIONS = 16
MOST_ACTIONS = 32
"""Actions of a request that is cached."""
LONGEST = 4_096
"""Bytes of key per action of a request that is cached: a command may be 256 KiB, each a different one."""
APART = frozenset({"args", "within", "origin", "whole"})
"""Fields of an action that only uncacheable rules, floors, grants and records look at."""
Key = tuple[object, ...]
Judgement = tuple[Effect, tuple[RuleRef, ...], tuple[RuleRef, ...], tuple[RuleRef, ...], tuple[str, ...]]
judgement = attrgetter("effect", "hits", "possible", "defaults", "floors")
"""The verdict on an action, without the action itself."""
JUDGED = [name for name in Action.__struct_fields__ if name not in APART]
fields = attrgetter(*JUDGED)
but_path = attrgetter(*[name for name in JUDGED if name != "path"])
but_command = attrgetter(*[name for name in JUDGED if name != "command"])
encode = Encoder().encode
facts = attrgetter(*[name for name in Context.__struct_fields__ if name != "now"])


class Verdict(Struct, frozen=True, gc=False):
    """The cached verdict on the actions with one key."""

    judged: tuple[Judgement, ...]
    decision: Decision | None = None
    """The decision on a request that is no menu, as far as no grant applied."""


class Verdicts(Struct):
    """The verdicts of one session under one policy."""

    facts: Key
    """The session's context, without the time."""
    known: dict[Key, dict[object, Verdict]]
    """By the first part of the key, then by the second."""
    size: int = 0
    """Actions in all of `known`."""


NONE: dict[object, Verdict] = {}
"""Stands for a missing table; never written to."""


def of_session(policy: Policy, context: Context) -> Verdicts:
    """Return the verdicts of a session, empty if it is new or its context changed."""
    held = policy.memory.get(id(context.workspace))
    if isinstance(held, Verdicts) and held.facts == facts(context):
        return held
    if len(policy.memory) >= SESSIONS:
        policy.memory.clear()
    own = replace(context, labels=dict(context.labels), managed_labels=dict(context.managed_labels))
    fresh = policy.memory[id(context.workspace)] = Verdicts(facts(own), {})
    return fresh


def key_of(actions: tuple[Action, ...]) -> tuple[Key, object]:
    """Return the key of these actions, in two parts: what many requests share, and what sets this one apart."""
    if len(actions) != 1:
        return (), tuple(map(fields, actions))
    action = actions[0]
    if action.path is not None:
        return but_path(action), action.path
    if action.command is not None:
        return but_command(action), action.command
    return (), fields(action)


def keep(held: Verdicts, common: Key, own: object, judged: tuple[Judged, ...], decision: Decision | None) -> None:
    """Cache a verdict, if it depends on nothing but the key and the session."""
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
    """Return the size of a key in bytes; the largest there is for text that is no Unicode, as file names may be."""
    try:
        return len(encode(key))
    except UnicodeError:
        return sys.maxsize


def lasts(action: Action) -> bool:
    """Say whether the verdict on an action depends on no file and on no floor of policyd's own."""
    if action.opaque or action.guarded or action.escalate or action.strays or action.mode is not None:
        return False
    path = action.path
    return path is None or not (path.glob or path.folded or path.reach is not Reach.ENTRY)


@lru_cache(1024)
def same(judged: tuple[Judgement, ...], decision: Decision | None) -> Verdict:
    """Return one object for equal verdicts of all sessions and policies: a verdict holds no key."""
    return Verdict(judged, decision)
