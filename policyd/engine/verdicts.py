"""What was judged before: the same actions, in the same session, under the same policy, are judged alike.

Rules of this module:

1. A verdict is kept only where nothing it rests on can change without its key or the session's facts changing: not
   the clock (`until`), not files (globs, whole directories), not arguments (`input`), not policyd's own floors.
2. The key of a request holds every field of every action that is looked at when it is judged. What has no place in the
   key has no place here: such a request is judged anew each time.
3. Nothing is kept of what failed, and nothing remembered by a person is looked at: grants come after.
4. Bounded, and forgotten with the policy.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from policyd.model import Action, Context, Decision, Judged, Reach, Role, SimpleCommand
from policyd.policy import Policy

KEPT = 4_096
"""Requests whose verdict is kept a session."""
SESSIONS = 16
MOST_ACTIONS = 8
"""Actions of a request that is kept."""
Key = tuple[object, ...]


class Verdict(Struct, gc=False):
    """What was judged of the actions with one key."""

    commands: tuple[SimpleCommand, ...]
    """Those the key names by identity: kept, so that the identity stays theirs."""
    judged: tuple[Judged, ...]
    decision: Decision | None = None
    """What followed for a request that is no menu, where no remembered answer spoke of it."""


class Verdicts(Struct):
    """The verdicts of one session under one policy."""

    context: Context
    """Its facts, the time apart."""
    known: dict[Key, Verdict]

    def fits(self, context: Context) -> bool:
        """Say whether these are the verdicts of a session of which all this is true."""
        own = self.context
        return (
            own.workspace is context.workspace
            and own.interactive is context.interactive
            and own.resolved is context.resolved
            and own.broken == context.broken
            and (own.agent is context.agent or own.agent == context.agent)
            and (own.mode is context.mode or own.mode == context.mode)
            and own.user == context.user
            and own.groups == context.groups
            and own.labels == context.labels
            and own.managed_labels == context.managed_labels
        )


def verdicts(policy: Policy, context: Context) -> Verdicts:
    """Return the verdicts of a session, none where it is new or something about it changed."""
    held = policy.memory.get(id(context.workspace))
    if isinstance(held, Verdicts) and held.fits(context):
        return held
    if len(policy.memory) >= SESSIONS:
        policy.memory.clear()
    labels, managed = dict(context.labels), dict(context.managed_labels)
    fresh = Verdicts(replace(context, labels=labels, managed_labels=managed), {})
    policy.memory[id(context.workspace)] = fresh
    return fresh


def key_of(actions: tuple[Action, ...]) -> Key | None:
    """Return what the judgement of these actions rests on, None where that cannot be said in few words."""
    if len(actions) == 1:
        return one_key(actions[0])
    if len(actions) > MOST_ACTIONS:
        return None
    keys = []
    for action in actions:
        key = one_key(action)
        if key is None:
            return None
        keys.append(key)
    return tuple(keys)


def one_key(action: Action) -> Key | None:
    """Return the same of one action."""
    if action.opaque or action.guarded or action.escalate or action.strays or action.mode is not None:
        return None
    path, command, url, tool, name = action.path, action.command, action.url, action.tool, action.name
    if path is not None and (path.glob or path.folded or path.reach is not Reach.ENTRY):
        return None
    return (
        action.kinds,
        action.role is Role.PRIMARY,
        action.role is Role.MENTION,
        action.mcp,
        action.idle,
        action.carrier,
        action.cwd_inside,
        action.cwd,
        path and path.forms,
        path and path.inside,
        command and id(command),
        url and (url.text, url.scheme, url.host, url.port, url.paths, url.query),
        tool and (tool.name, tool.splits),
        name and (name.name, name.splits),
    )


def keep(held: Verdicts, key: Key, judged: tuple[Judged, ...], policy: Policy) -> Verdict | None:
    """Keep what was judged, if it rests on nothing but the key and the session; None where it does not."""
    if not all(index.steady for _, index in policy.ground):
        return None
    if not policy.index.steady:
        rules = (rule for one in judged for rule in policy.candidates(one.action, held.context))
        if not all(rule.steady for rule in rules):
            return None
    if len(held.known) >= KEPT:
        del held.known[next(iter(held.known))]
    commands = tuple(one.action.command for one in judged if one.action.command is not None)
    held.known[key] = found = Verdict(commands, judged)
    return found


def again(judged: tuple[Judged, ...], actions: tuple[Action, ...]) -> tuple[Judged, ...]:
    """Return the same verdicts over these actions."""
    if len(actions) == 1:
        one = judged[0]
        return (Judged(actions[0], one.effect, one.hits, one.possible, one.defaults, one.floors),)
    return tuple(
        [
            Judged(action, one.effect, one.hits, one.possible, one.defaults, one.floors)
            for one, action in zip(judged, actions, strict=True)
        ]
    )
