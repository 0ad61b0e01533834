"""The decision point: from observed messages, a policy and remembered answers to one decision.

    authorizer = Authorizer(load(["policy.toml"]), resolve=filesystem, home="/home/dev")
    authorizer.observe("c2a", message)                 # every message of both sides, in order
    decision = authorizer.decide(params)               # of `session/request_permission`

Rules of this module:

1. It only composes: `actions` turns a request into actions, `engine` decides them.
2. An exception anywhere is a denial with source `error`; so is a request that cannot be parsed.
3. Without a time the decision holds at any time: the strictest of "every rule still holds" and "every `until` is past".
4. Without a resolver no rule with `path` and no default allows; the reason of the ask says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field
from msgspec.structs import replace

from policyd import engine
from policyd.actions import Conversation, Machine, Session
from policyd.actions.examples import example_actions
from policyd.display import sentences
from policyd.model import Context, Decision, Effect, Filesystem, Judged, Layer, Request, Source
from policyd.policy import Diagnostic, Policy, PolicyError

EARLIEST = datetime(2, 1, 1, tzinfo=UTC)
LATEST = datetime(9998, 12, 31, tzinfo=UTC)
BLIND = "files cannot be seen without a resolver, so nothing that rests on paths is allowed"
MODEL = '; of a model of the SDK give `model_dump(mode="json", by_alias=True, exclude_unset=True)`'
NOWHERE = "the session's working directory is not known, so nothing is inside the workspace"
NARROW = {
    "command": " (an allow takes these words and no more; `**` at its end takes any)",
    "path": " (an allow takes this path alone; `dir/**` is all below `dir`)",
}
"""Notes on a common misunderstanding of allow rules, for examples that do not match."""
Grants = Callable[[Request, Context], Callable[[Judged], Effect | None]]
"""Looks up remembered answers to the actions of a request (`GrantBook.bind`, with a clock)."""
Policies = Callable[[Session], tuple[Policy, str]]
"""Returns the policy of a session, and why everything in it is at least ask (empty if not)."""


class Claims(Struct, frozen=True):
    """Facts about the process and the person that rules may name and that are not on the wire."""

    labels: Mapping[str, str] = field(default_factory=dict)
    managed_labels: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    groups: tuple[str, ...] = ()
    interactive: bool = False
    """Whether a prompt is configured."""


class ParamsError(ValueError):
    """The params of a request are no table."""


class Authorizer:
    """Decides the permission requests of one connection."""

    def __init__(
        self,
        policy: Policy,
        *,
        policies: Policies | None = None,
        resolve: Filesystem | None = None,
        home: str | None = None,
        machine: Machine | None = None,
        claims: Claims | None = None,
        grants: Grants | None = None,
        end_grants: Callable[[str], None] | None = None,
        agent: str = "",
        cwd: str | None = None,
        launched: str | None = None,
    ) -> None:
        """Start without observed messages.

        Args:
            policy: the rules in force; `reload` replaces them.
            policies: the rules of each session, if projects have rules of their own.
            resolve: access to files; None: none.
            home: the home directory `~/` stands for; needed with a resolver.
            machine: the same and more, instead of `resolve`, `home` and `launched`.
            claims: labels, person, and whether there is a prompt.
            grants: remembered answers.
            end_grants: called for each session that is closed, whose session grants end.
            agent: profile or wire name to assume until the agent names itself.
            cwd: of sessions that were never seen to open.
            launched: where the agent was started. Some work there, whatever their session's directory is: while this
                is not known, nothing that starts from a directory is allowed to these.

        Raises:
            TypeError: `policy` is none, but the name of a file, say.
            ValueError: a resolver without a home directory.
        """
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` is what `policyd.load` returns, no {type(policy).__name__}")
        if machine is None:
            if resolve is not None and not home:
                raise ValueError("a resolver needs `home`: without it `~/` stands for nothing")
            machine = Machine(home=home or "/", fs=resolve, launched=launched)
        self.policy = policy
        self.policies = policies
        self.claims = claims or Claims()
        self.grants = grants
        self.end_grants = end_grants
        self.conversation = Conversation(replace(machine, heads=policy.heads), agent=agent, cwd=cwd)

    def observe(self, direction: str, message: Mapping[str, object]) -> None:
        """Observe one message; `direction` is `a2c` (agent to client) or `c2a`."""
        self.conversation.observe(direction, message)

    def reload(self, policy: Policy) -> None:
        """Put another policy in force."""
        self.policy = policy
        self.conversation.reopen(replace(self.conversation.machine, heads=policy.heads))

    def in_force(self, session_id: str) -> tuple[Policy, str]:
        """Return the policy of a session, and why everything in it is at least ask."""
        if self.policies is None:
            return self.policy, ""
        session = self.conversation.session(session_id)
        policy, broken = self.policies(session)
        if session.heads is not policy.heads:
            self.conversation.use_heads(session_id, policy.heads)
        return policy, broken

    def context(self, session_id: str, now: datetime) -> Context:
        """Return the context of a session at `now`."""
        return self._context(session_id, now, self.in_force(session_id)[1])

    def _context(self, session_id: str, now: datetime, broken: str) -> Context:
        talk, claims = self.conversation, self.claims
        return Context(
            workspace=talk.workspace(session_id),
            now=now,
            agent=talk.agent,
            mode=talk.mode(session_id),
            interactive=claims.interactive,
            labels=claims.labels,
            managed_labels=claims.managed_labels,
            user=claims.user,
            groups=claims.groups,
            broken=broken,
            resolved=talk.machine.fs is not None,
        )

    def request(self, params: Mapping[str, object]) -> Request:
        """Return a `session/request_permission` as actions.

        Raises:
            ParamsError: `params` are no table.
        """
        if type(params) is not dict and not isinstance(params, Mapping):
            raise ParamsError(f"its params are a {type(params).__name__}, no table as on the wire{MODEL}")
        self.in_force(str(params.get("sessionId", "")))
        return self.conversation.request(params)

    def side_door(self, method: str, params: Mapping[str, object]) -> Request:
        """Return a call of the client's `fs/*` or `terminal/create` as actions."""
        self.in_force(str(params.get("sessionId", "")))
        return self.conversation.side_door(method, params)

    def decide(self, params: Mapping[str, object], *, now: datetime | None = None) -> Decision:
        """Decide a `session/request_permission` with these params; never raises, whatever they hold."""
        try:
            return self.settle(self.request(params), now=now)
        except ParamsError as error:
            why = f"the request cannot be read: {error}"
            return Decision(Effect.DENY, Source.ERROR, why, revision=self.policy.revision)
        except Exception as error:
            return engine.failed(error, self.policy)

    def settle(self, request: Request, *, now: datetime | None = None) -> Decision:
        """Decide a request given as actions; never raises."""
        try:
            if now is not None:
                return self.settle_at(request, now)[0]
            found = [self.settle_at(request, time)[0] for time in (EARLIEST, LATEST)]
        except Exception as error:
            return engine.failed(error, self.policy)
        return max(found, key=lambda decision: decision.effect)

    def settle_at(self, request: Request, now: datetime) -> tuple[Decision, Context]:
        """Decide a request at one moment; return the decision and its context.

        Raises what finding the policy or the context raises; a failure to decide is a denial.
        """
        policy, broken = self.in_force(request.session_id)
        context = self._context(request.session_id, now, broken)
        try:
            grant = self.grants(request, context) if self.grants else engine.no_grants
            decision = engine.decide(request, policy, context, self.conversation.machine.fs, grant)
            return unseen(decision, context) if decision.effect is Effect.ASK else decision, context
        except Exception as error:
            return engine.failed(error, self.policy), context


def unseen(decision: Decision, context: Context) -> Decision:
    """Add to an ask by default why nothing inside a workspace could be allowed."""
    if decision.source is not Source.DEFAULT:
        return decision
    space = context.workspace
    why = [] if context.resolved else [BLIND]
    if not space.cwd:
        why.append(NOWHERE)
    elif context.resolved and not space.sound:
        why += [f"{each}, which is no workspace" for each in space.unsound]
    return replace(decision, reason=sentences([decision.reason, *why])) if why else decision


def check_examples(policy: Policy, machine: Machine) -> list[Diagnostic]:
    """Return a diagnostic for every example of a rule that fails.

    Examples are judged in a workspace of their own below the home directory, as texts for bash whatever shell agents
    use; conditions on the session count as met.
    """
    if not policy.examples:
        return []
    bash = replace(machine, heads=policy.heads, shell="bash")  # noqa: S604 - a name, nothing is run
    talk = Conversation(bash, cwd=f"{machine.home.rstrip('/')}/workspace")
    context = Context(talk.workspace(""), LATEST, resolved=True)
    wrong = []
    for example in policy.examples:
        actions = example_actions(example.text, example.table, example.rule.resource, talk.around(""), talk.profile)
        if engine.rule_holds(example.rule, actions, context, machine.fs) is not example.wanted:
            text = example.text or inline(example.table)
            found = f"the example `{text}` {'does not match' if example.wanted else 'matches'}"
            narrow = example.wanted and example.rule.effect is Effect.ALLOW
            advice = "correct the rule or the example" + NARROW.get(example.rule.resource if narrow else "", "")
            ref = example.rule.ref
            wrong.append(Diagnostic(example.file, example.line, ref.id, found, advice, ref.layer))
    return wrong


def inline(table: Mapping[str, object]) -> str:
    """Return the table of an example as inline TOML."""
    from json import dumps

    entries = (f"{key} = {dumps(value, ensure_ascii=False, default=str)}" for key, value in table.items())
    return f"{{ {', '.join(entries)} }}"


def broken_by(wrong: Sequence[Diagnostic]) -> str:
    """Return why failing examples make everything at least ask, empty without any.

    Raises:
        PolicyError: with all of them, unless only a project's are at fault.
    """
    if any(mistake.layer is not Layer.PROJECT for mistake in wrong):
        raise PolicyError(wrong)
    return str(wrong[0]) if wrong else ""
