"""A question to a person: everything that is shown, safe to display, and the offered options.

1. A person sees agent, project, directory, the exact command or diff, the rule that asked, and what "always" covers.
2. The agent's own "always" options are replaced by policyd's, last in the list, at most as many of each kind as the
   client's user can tell apart. The agent gets its plain `allow_once`, or its rejection.
3. Menus and mode changes are shown unchanged: a person chooses, and the choice is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from policyd.display import safe
from policyd.grants import Offer, offers
from policyd.grants.keys import digest
from policyd.grants.literal import join
from policyd.model import Action, Context, Decision, Effect, Judged, Option, Request, Role, RuleRef, WordKind
from policyd.prompts.clients import Client
from policyd.prompts.diffs import Detail, details

ALLOWS = frozenset({"allow_once", "allow_always"})
CHANGES = frozenset({"edit", "delete", "move"})
KINDS = frozenset({*ALLOWS, "reject_once", "reject_always"})
LONGEST_NAME = 400
LONGEST_TITLE = 1000
LONGEST_PART = 16 * 1024


class Choice(Struct, frozen=True):
    """One option as it is offered to a person."""

    id: str
    """What the client, or a step, answers with."""
    name: str
    """Safe to display."""
    kind: str
    """An ACP option kind."""
    option: str = ""
    """Id of the agent's option this leads to; empty: a rejection finds its own."""
    offer: Offer | None = None
    """What it remembers."""

    @property
    def effect(self) -> Effect:
        """What choosing it says; a kind that is not known is no allow."""
        return Effect.ALLOW if self.kind in ALLOWS else Effect.DENY


class Question(Struct, frozen=True):
    """One request, ready to be asked."""

    session_id: str
    call_id: str
    agent: str
    client: str
    project: str
    cwd: str
    title: str
    parts: tuple[str, ...]
    """Descriptions of the actions: `run …`, `edit …`."""
    details: tuple[Detail, ...]
    """Diffs and texts the request carries."""
    rules: tuple[RuleRef, ...]
    reason: str
    choices: tuple[Choice, ...]
    menu: bool
    """The options are the agent's own, unchanged; the chosen one is the answer."""
    fingerprint: str
    """The same for identical questions of one session, whatever their call is."""
    alike: str
    """The same for identical questions of any session."""

    @property
    def note(self) -> str:
        """What "always" covers, to be put into the title for a client that shows no option names."""
        return "; ".join(choice.name for choice in self.choices if choice.offer)


def ask(
    request: Request,
    decision: Decision,
    context: Context,
    client: Client,
    *,
    root: str,
    tool_call: Mapping[str, object] | None = None,
    allows: bool = True,
    client_name: str = "",
) -> Question:
    """Return the question `decision` puts to a person.

    `root` is the project's real path, `tool_call` the ACP object of the request; `allows=False`: the policy's lock
    refuses grants.
    """
    menu = request.menu or any("switch_mode" in action.kinds for action in request.actions)
    shown = details(tool_call or {})
    found = offers(request, decision, context, root=root, allows=allows) if not menu else ()
    offered = _offered(found, client, diffs=_diffs(request, shown))
    alike = _alike(request, decision, context, tool_call or {})
    return Question(
        session_id=request.session_id,
        call_id=request.call_id,
        agent=safe(
            f"{context.agent.name or context.agent.profile} {context.agent.version}".strip(), limit=LONGEST_NAME
        ),
        client=safe(client_name or client.profile, limit=LONGEST_NAME),
        project=safe(root, limit=LONGEST_TITLE),
        cwd=safe(context.workspace.cwd or "", limit=LONGEST_TITLE),
        title=safe(request.title, limit=LONGEST_TITLE),
        parts=tuple(map(_part, decision.actions)),
        details=shown,
        rules=decision.rules,
        reason=safe(decision.reason, limit=LONGEST_TITLE),
        choices=_menu(request.options) if menu else _choices(request, client, offered),
        menu=menu,
        fingerprint=digest([request.session_id, alike]),
        alike=alike,
    )


def _menu(options: Sequence[Option]) -> tuple[Choice, ...]:
    """Return the agent's options; one of an unknown kind leads nowhere, whoever chooses it."""
    return tuple(
        Choice(one.id, safe(one.name, limit=LONGEST_NAME), one.kind, one.id if one.kind in KINDS else "")
        for one in options
    )


def _choices(request: Request, client: Client, found: Sequence[Offer]) -> tuple[Choice, ...]:
    """Return the plain allow, the rejections, then what is remembered: who takes the first takes the least."""
    plain = [one for one in request.options if one.kind == "allow_once" and request.plain in {None, one.id}][:1]
    refusals = [one for one in request.options if one.kind == "reject_once"]
    refusals.sort(key=lambda one: one.id != request.refusal)
    named = list(_menu([*plain, *(refusals if client.shows_option_names else refusals[:1])]))
    if not refusals:
        named.append(Choice("policyd-reject", "Reject", "reject_once"))
    always = [_always(number, offer, plain) for number, offer in enumerate(found, 1)]
    choices = [*named, *_at_most(always, client.options_per_kind)]
    return tuple(_spelled(choices) if client.option_ids == "kind" else choices)


def _always(number: int, offer: Offer, plain: Sequence[Option]) -> Choice:
    if offer.effect is Effect.ALLOW:
        return Choice(f"policyd-always-{number}", offer.name, "allow_always", plain[0].id if plain else "", offer)
    return Choice(f"policyd-never-{number}", offer.name, "reject_always", "", offer)


def _at_most(choices: Sequence[Choice], count: int) -> list[Choice]:
    allows = [choice for choice in choices if choice.kind == "allow_always"]
    return [*allows[:count], *[choice for choice in choices if choice.kind != "allow_always"][:count]]


def _spelled(choices: Sequence[Choice]) -> list[Choice]:
    """Give each choice its kind as id; further ones of a kind are left out."""
    first = {choice.kind: choice for choice in reversed(choices)}
    return [replace(choice, id=choice.kind) for choice in choices if first[choice.kind] is choice]


def _diffs(request: Request, shown: Sequence[Detail]) -> bool:
    """Say whether a client may show a diff: of this request, or of an earlier update of an edit."""
    changes = any(one.role is Role.PRIMARY and one.kinds & CHANGES for one in request.actions)
    return changes or any(one.kind == "diff" for one in shown)


def _offered(found: Sequence[Offer], client: Client, *, diffs: bool) -> list[Offer]:
    """Return the offers the profile lets this client's user make: none whose reach is said nowhere."""
    order = ("session", "project", "user")
    unsaid = diffs and not client.shows_option_names and not client.title_beside_diff
    if client.remember == "never" or unsaid:
        return []
    longest = order.index(client.remember)
    seen = {Effect.ALLOW: "allow_always" in client.option_kinds, Effect.DENY: "reject_always" in client.option_kinds}
    kept = [offer for offer in found if order.index(offer.scope) <= longest and seen[offer.effect]]
    denials = [offer for offer in kept if offer.effect is Effect.DENY][-1:]
    if client.shows_option_names and client.options_per_kind > 1:
        return [*(offer for offer in kept if offer.effect is Effect.ALLOW), *denials]
    exact = [one for one in kept if one.effect is Effect.ALLOW and not one.general and one.scope != "user"]
    return [*exact[-1:], *denials]


def _part(judged: Judged) -> str:
    action = judged.action
    why = f" (not understood: {safe(action.opaque, limit=LONGEST_NAME)})" if action.opaque else ""
    return f"{_verb(action)}{safe(_object(action), limit=LONGEST_PART)}{why}"


def _verb(action: Action) -> str:
    if action.command is not None:
        return "run "
    kinds = " and ".join(sorted(action.kinds)) or "names"
    if action.role is Role.MENTION:
        return f"may {kinds} files below " if action.kinds else "names "
    return f"{safe(kinds, limit=LONGEST_NAME)} "


def _object(action: Action) -> str:
    if action.command is not None:
        words = action.command.argv
        plain = all(word.kind is WordKind.CONST for word in words)
        text = join(tuple(word.text for word in words)) if plain and not action.command.text else action.command.text
        place = f"  [in {' or '.join(action.cwd)}]" if action.cwd else ""
        return text + place
    if action.path is not None:
        other = [form for form in action.path.forms if form != action.path.text]
        return action.path.text + (f" ({other[-1]})" if other else "")
    if action.url is not None:
        return action.url.text
    return action.tool.name if action.tool else action.escalate or action.origin


def _alike(request: Request, decision: Decision, context: Context, tool_call: Mapping[str, object]) -> str:
    told = {name: value for name, value in tool_call.items() if name not in {"toolCallId", "status", "_meta"}}
    options = [[one.id, one.kind, one.name] for one in request.options]
    shared = _Shared()
    actions = [shared.told(one.action) for one in decision.actions]
    place = [context.agent.name, context.agent.profile, context.workspace.cwd or ""]
    try:
        return digest([place, request.title, request.side_door, options, actions, [*shared.texts], told, request.shown])
    except (TypeError, ValueError, RecursionError):
        return digest([place, request.call_id, actions, [*shared.texts], repr(told)])


class _Shared:
    """What actions have in common, each thing once: a text of a thousand commands is in every one of them."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self._numbers: dict[int, int] = {}

    def number(self, value: object) -> int:
        """Return the place in `texts` of a value that is kept elsewhere for as long as this is used."""
        found = self._numbers.get(id(value))
        if found is None:
            found = self._numbers[id(value)] = self.texts.setdefault(repr(value), len(self.texts))
        return found

    def told(self, action: Action) -> str:
        """Return all of an action, with numbers for what others may have too."""
        command = action.command
        common: list[object] = [action.whole, action.args, action.cwd]
        if command is not None:
            common += [command.fed, command.taint, command.cwd, *command.texts]
            command = replace(command, fed="", taint=(), cwd=(), texts=())
        action = replace(action, whole="", args=None, cwd=(), command=command)
        return f"{[self.number(one) for one in common]} {action}"
