"""All grants of one project, and whether they settle an ask. Pure.

`bind` is called once for each request and returns the `grant` function for `engine.decide`. Grants are looked up by
key, so that ten thousand of them cost no more than ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from policyd.grants.grant import SCOPES, Clock, Grant
from policyd.grants.keys import Key, agent_name, key, relative, significant
from policyd.grants.programs import covered
from policyd.model import MEMORY, Action, Context, Effect, Judged, Request, SimpleCommand, WordKind

K = TypeVar("K")
Settle = Callable[[Judged], Effect | None]


class GrantBook(Struct, frozen=True):
    """The grants that may count for one project and one policyd process."""

    root: str
    """Real path of the project."""
    grants: tuple[Grant, ...] = ()
    run: str = ""
    """Random word of this process: session grants of others never count."""
    _exact: Mapping[tuple[str, tuple[Key, ...]], tuple[Grant, ...]] = field(default_factory=dict)
    _open: Mapping[tuple[str, tuple[str, ...]], tuple[Grant, ...]] = field(default_factory=dict)
    _denials: Mapping[tuple[str, str, str], tuple[Grant, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the grants by agent and key."""
        exact: dict[tuple[str, tuple[Key, ...]], list[Grant]] = {}
        opened: dict[tuple[str, tuple[str, ...]], list[Grant]] = {}
        denials: dict[tuple[str, str, str], list[Grant]] = {}
        for grant in self.grants:
            if grant.effect is Effect.DENY:
                for place in _handles(grant.members[0]):
                    denials.setdefault((grant.agent, *place), []).append(grant)
            elif grant.members[0].more:
                opened.setdefault((grant.agent, grant.members[0].words), []).append(grant)
            else:
                exact.setdefault((grant.agent, _named(grant.members)), []).append(grant)
        force_setattr(self, "_exact", _frozen(exact))
        force_setattr(self, "_open", _frozen(opened))
        force_setattr(self, "_denials", _frozen(denials))

    def bind(self, request: Request, context: Context, clock: Clock, *, allows: bool = True) -> Settle:
        """Return a function that looks up the grant for a judged action of `request` at `clock`.

        `allows=False` (the policy's lock refuses grants): only denials count.
        """
        if not self.grants:
            return nothing
        agents = dict.fromkeys((agent_name(context.agent), context.agent.profile))
        roots = spellings(self.root, context)
        denials = self._denying(request, [*agents], roots, clock) if self._denials else ()
        allowing = self._allowing(request, [*agents], roots, clock) if allows and not request.menu else ()
        denied = _denied(denials, request.actions, roots)
        if not denied and not allowing:
            return nothing

        def settle(judged: Judged) -> Effect | None:
            if any(judged.action is action or judged.action == action for action in denied):
                return Effect.DENY
            if judged.effect is not Effect.ASK or judged.memory == "never":
                return None
            return Effect.ALLOW if _settles(judged, allowing, roots) else None

        return settle

    def _denying(self, request: Request, agents: list[str], roots: tuple[str, ...], clock: Clock) -> Iterable[Grant]:
        """Return the denials whose first member may be among the actions of `request`."""
        places = {place for action in request.actions for place in _places(action, roots)}
        found = (one for agent in agents for place in places for one in self._denials.get((agent, *place), ()))
        return [one for one in dict.fromkeys(found) if self._counts(one, request, clock)]

    def _allowing(self, request: Request, agents: list[str], roots: tuple[str, ...], clock: Clock) -> tuple[Grant, ...]:
        if not self._exact and not self._open:
            return ()
        members = keys_of(request.actions, roots)
        if not members:
            return ()
        found = [grant for agent in agents for grant in self._exact.get((agent, members), ())]
        if self._open and len(members) == 1:
            found += [grant for agent in agents for grant in self._opened(agent, members[0], request.actions)]
        return tuple(grant for grant in found if self._counts(grant, request, clock))

    def _opened(self, agent: str, member: Key, actions: Iterable[Action]) -> Iterable[Grant]:
        if member.resource == "command" and not all(_stays_inside(action) for action in actions if significant(action)):
            return ()
        longest = max((len(lead) for _, lead in self._open), default=0)
        leads = (member.words[:count] for count in range(1, min(len(member.words), longest) + 1))
        candidates = (grant for lead in leads for grant in self._open.get((agent, lead), ()))
        return [grant for grant in candidates if covers(grant.members[0], member)]

    def _counts(self, grant: Grant, request: Request, clock: Clock) -> bool:
        if grant.scope == "session" and (grant.run != self.run or grant.session != request.session_id or not self.run):
            return False
        return grant.alive(clock)


def spellings(root: str, context: Context) -> tuple[str, ...]:
    """Return every spelling of the project's root that keys are relative to."""
    cwd = context.workspace.cwd
    return tuple(dict.fromkeys(place.rstrip("/") for place in (root, cwd) if place and place != "/"))


def keys_of(actions: Iterable[Action], roots: tuple[str, ...]) -> tuple[Key, ...]:
    """Return the keys of all significant actions in order; empty if one of them has none."""
    keys = [key(action, roots) for action in actions if significant(action)]
    return tuple(one for one in keys if one is not None) if None not in keys else ()


def covers(held: Key, asked: Key) -> bool:
    """Say whether a member of an allow grant covers the key of an action."""
    if not held.more:
        return held == asked
    if held.resource == "tool":
        return replace(asked, arguments="", more=True) == held
    return replace(asked, words=held.words, more=True) == held and covered(asked.words, held.words)


def within(scope: str, longest: str) -> bool:
    """Say whether a grant of `scope` lies within the memory `longest`."""
    return SCOPES.index(scope) < MEMORY[longest] or longest == "project"


def _settles(judged: Judged, grants: Iterable[Grant], roots: tuple[str, ...]) -> bool:
    asked, longest = key(judged.action, roots), judged.memory
    return asked is not None and any(
        within(grant.scope, longest) and any(covers(member, asked) for member in grant.members) for grant in grants
    )


def _stays_inside(action: Action) -> bool:
    return action.cwd_inside and not action.strays


def _named(members: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(member for member in members if not member.mention)


def _denied(denials: Iterable[Grant], actions: tuple[Action, ...], roots: tuple[str, ...]) -> tuple[Action, ...]:
    """Return the actions that denials match; a compound's denial only if all its members are present."""
    found: list[Action] = []
    for grant in denials:
        hits = [[action for action in actions if _reads_wide(member, action, roots)] for member in grant.members]
        if all(hits):
            found += [action for group in hits for action in group]
    return tuple(found)


def _handles(member: Key) -> Iterable[tuple[str, str]]:
    """Return the index keys of a denied member."""
    words = member.words[:1] if member.resource == "command" else member.words
    return [(member.resource, word) for word in words]


def _places(action: Action, roots: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Return the index keys under which denials of `action` may be found."""
    inner = action.command
    while inner is not None:
        yield from [("command", inner.argv[0].text)] if inner.argv else []
        inner = inner.inner
    if action.path is not None:
        yield from (("path", relative(form, roots)) for form in action.path.forms)
    if action.url is not None or action.tool is not None:
        asked = key(action, roots)
        yield from ((asked.resource, word) for word in asked.words) if asked is not None else ()


def _reads_wide(member: Key, action: Action, roots: tuple[str, ...]) -> bool:
    """Say whether a denied member may be `action`: any one spelling, place, kind or wrapped command suffices."""
    if member.kinds and action.kinds and not set(member.kinds) & action.kinds:
        return False
    if member.resource == "command":
        return action.command is not None and _runs(member, action, action.command, roots)
    if member.resource == "path":
        return action.path is not None and bool({relative(form, roots) for form in action.path.forms} & {*member.words})
    asked = key(action, roots)
    if asked is None or asked.resource != member.resource or not {*asked.words} & {*member.words}:
        return False
    return member.more or not member.arguments or member.arguments == asked.arguments


def _runs(member: Key, action: Action, command: SimpleCommand, roots: tuple[str, ...]) -> bool:
    places = {relative(place, roots) for place in action.cwd}
    if places and not places & {*member.cwd}:
        return False
    inner: SimpleCommand | None = command
    while inner is not None:
        if _same_words(member, inner):
            return True
        inner = inner.inner
    return False


def _same_words(member: Key, command: SimpleCommand) -> bool:
    if any(word.kind is not WordKind.CONST for word in command.argv):
        return False
    words = tuple(word.text for word in command.argv)
    return words[: len(member.words)] == member.words if member.more else words == member.words


def nothing(_: Judged) -> Effect | None:
    return None


def _frozen(table: dict[K, list[Grant]]) -> Mapping[K, tuple[Grant, ...]]:
    return MappingProxyType({name: tuple(grants) for name, grants in table.items()})
