"""Which "always" options may be offered for a request, and what each covers, in words.

1. The exact action, in this session, then in this project; then at most one generalisation; then the same denial.
   For a compound only the exact set of its actions.
2. Nothing is offered that would not settle the same request again: no offers for menus, for an ask with a floor, where
   an action has no key, for more than `MOST_MEMBERS` actions, or where a rule that asks says `remember = "never"`.
3. An agent that has no name, and no profile either, cannot be told from another one: it gets the session only.
4. `user` scope is offered only if every action is a URL, a tool or a path outside the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from policyd.display import safe
from policyd.grants.book import keys_of, spellings, within
from policyd.grants.grant import LONGEST, SESSION_LIFE, Clock, Grant, grant_id
from policyd.grants.keys import Key, agent_name, key, known, significant
from policyd.grants.literal import join
from policyd.grants.programs import prefix
from policyd.model import MEMORY, Action, Context, Decision, Effect, Judged, Request, Role

PLACES = {"session": "in this session", "project": "in this project", "user": "in every project"}
VERBS = {"read": "reading", "edit": "editing", "delete": "deleting", "move": "moving", "search": "searching"}
SHOWN = 200
MOST_MEMBERS = 200
"""The maximum number of actions one answer may be remembered for; nobody reads more."""


class Offer(Struct, frozen=True):
    """One "always" a person may choose."""

    effect: Effect
    scope: str
    agent: str
    members: tuple[Key, ...]
    covers: str
    """What it covers, without its scope; safe to display."""
    project: str = ""
    """Real path of the project."""

    @property
    def general(self) -> bool:
        """Whether it covers more than the exact actions of the request."""
        return self.members[0].more

    @property
    def name(self) -> str:
        """The option as it is shown."""
        verb = "Always allow" if self.effect is Effect.ALLOW else "Never allow"
        return f"{verb} {self.covers} {PLACES[self.scope]}"

    def grant(
        self,
        *,
        clock: Clock,
        session: str = "",
        run: str = "",
        by: str = "",
        client: str = "",
        life: timedelta = LONGEST,
    ) -> Grant:
        """Return the grant this offer becomes at `clock`; session grants live hours, others at most `life`."""
        kept = min(SESSION_LIFE if self.scope == "session" else life, LONGEST)
        here = self.scope == "session"
        return Grant(
            id=grant_id(self.effect, self.scope, self.agent, self.members, session if here else ""),
            effect=self.effect,
            scope=self.scope,
            agent=self.agent,
            members=self.members,
            covers=f"{self.covers} {PLACES[self.scope]}",
            created=clock.wall,
            until=clock.wall + kept,
            boot=clock.boot if clock.boot_id else None,
            boot_id=clock.boot_id,
            session=session if here else "",
            run=run if here else "",
            by=by,
            client=safe(client, limit=100),
            project=self.project,
        )


def offers(
    request: Request, decision: Decision, context: Context, *, root: str, allows: bool = True
) -> tuple[Offer, ...]:
    """Return the offers for `request`, the narrowest first, denials last.

    `root` is the project's real path; `allows=False` (the policy's lock refuses grants): only denials.
    """
    roots = spellings(root, context)
    members = _members(request, decision.actions, roots) if _is_few(request) else ()
    longest = min((decision.remember, *(one.memory for one in decision.actions)), key=MEMORY.__getitem__)
    if decision.effect is not Effect.ASK or request.menu or not members or longest == "never":
        return ()
    agent, text = agent_name(context.agent), _words([one.action for one in decision.actions], roots)
    longest = longest if known(context.agent) else "session"
    scopes = [scope for scope in ("session", "project") if within(scope, longest if root else "session")]
    if longest == "project" and all(_anywhere(member) for member in members):
        scopes.append("user")
    exact = [Offer(Effect.ALLOW, scope, agent, members, text, root) for scope in scopes]
    opened = _opened([one for one in exact if one.scope != "user"][-1], decision.actions)
    denials = [Offer(Effect.DENY, scope, agent, members, text, root) for scope in scopes if scope != "user"]
    return (*([*exact, *opened] if allows else []), *denials)


def _is_few(request: Request) -> bool:
    """Say whether the actions are few enough for a person to read."""
    return sum(map(significant, request.actions)) <= MOST_MEMBERS


def _members(request: Request, judged: Sequence[Judged], roots: tuple[str, ...]) -> tuple[Key, ...]:
    """Return the keys of the significant actions, and of the mentions that ask; empty if one has no key."""
    named = keys_of(request.actions, roots)
    beside = [key(one.action, roots) for one in judged if one.effect is Effect.ASK and one.action.role is Role.MENTION]
    found = [one for one in beside if one is not None]
    return (*named, *dict.fromkeys(found)) if named and len(found) == len(beside) else ()


def _opened(offer: Offer, judged: Sequence[Judged]) -> list[Offer]:
    """Return the one generalisation of `offer`, if its only action takes one."""
    if len(offer.members) != 1:
        return []
    member = offer.members[0]
    if member.resource == "tool":
        text = f"`{safe(member.words[0], limit=SHOWN)}` with any input"
        return [replace(offer, members=(replace(member, arguments="", more=True),), covers=text)]
    actions = [one.action for one in judged if significant(one.action)]
    lead = prefix(member.words) if member.resource == "command" else None
    if lead is None or not all(action.cwd_inside and not action.strays for action in actions):
        return []
    text = f"`{safe(join(lead), limit=SHOWN)} …` with any further words"
    return [replace(offer, members=(replace(member, words=lead, more=True),), covers=text)]


def _anywhere(member: Key) -> bool:
    """Say whether a member means the same in every project."""
    if member.resource == "path":
        return all(form.startswith("/") for form in member.words)
    return member.resource in {"url", "tool"}


def _words(actions: Sequence[Action], roots: tuple[str, ...]) -> str:
    """Describe the exact set of `actions`; a command stands for the files it names."""
    shown = [action for action in actions if significant(action)]
    if any(action.command for action in shown):
        shown = [action for action in shown if action.role is not Role.OPERAND]
    text = _whole(shown, roots)
    parts = [_phrase(action, roots) for action in shown] if not text else [text]
    return parts[0] if len(parts) == 1 else f"exactly these {len(parts)} together: {', '.join(parts)}"


def _whole(shown: Sequence[Action], roots: tuple[str, ...]) -> str:
    """Return a compound as written, empty if its text does not show everything that `shown` would do."""
    found = [(action, key(action, roots)) for action in shown if action.command is not None]
    texts = {action.whole for action, _ in found}
    if len(texts) != 1 or texts == {""} or any(one.role is Role.PRIMARY and one.command is None for one in shown):
        return ""
    text = texts.pop()
    if any(f"{name}=" not in text for _, one in found if one is not None for name, _ in one.env):
        return ""
    places = sorted({place for _, one in found if one is not None for place in one.cwd} - {"."})
    return f"exactly `{safe(text, limit=2 * SHOWN)}`{_in(places)}"


def _phrase(action: Action, roots: tuple[str, ...]) -> str:
    found = key(action, roots)
    if found is None:
        return "this"
    if action.command is not None:
        return _command(action, found)
    if found.resource == "tool":
        return f"`{safe(found.words[0], limit=SHOWN)}` with this input" if found.arguments else f"`{found.words[0]}`"
    name = f"`{safe(found.words[0], limit=SHOWN)}`"
    if found.resource == "url":
        return f"fetching {name}"
    return f"{' and '.join(VERBS.get(kind, kind) for kind in found.kinds)} {name}"


def _command(action: Action, found: Key) -> str:
    assert action.command is not None  # noqa: S101 - the caller looked
    env = "".join(f"{name}={value} " for name, value in found.env)
    text = f"`{safe(env + join(found.words), limit=SHOWN)}`"
    return text + _in(found.cwd if found.cwd != (".",) else ())


def _in(places: Sequence[str]) -> str:
    return f" (run in {' or '.join(safe(place, limit=SHOWN) for place in places)})" if places else ""
