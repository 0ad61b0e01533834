"""A trial session on an empty disk, in which policies decide requests written as in `match`.

Nothing on the real disk is looked at, so the result is the same everywhere. The engine itself decides, as in a proxy.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from policyd import engine
from policyd.actions import Conversation, Machine
from policyd.cli.replay import PLAIN, Asked, actions_of
from policyd.cli.trials.tree import Tree, reserved
from policyd.model import Action, Agent, Context, Decision, Mode, Request
from policyd.policy import Policy, Rule
from policyd.policy.attributes import (
    AgentCondition,
    InteractiveCondition,
    LabelCondition,
    ModeCondition,
    PersonCondition,
)

OTHER = Agent("zqx0", "1", "zqx0")
ASKING = Mode("zqx0", asking=True, unsafe=False)


class Trial(Struct, frozen=True):
    """A session in which nothing has happened yet."""

    conversation: Conversation
    now: datetime

    @classmethod
    def open(
        cls, home: str, heads: Iterable[str] = (), *, cwd: str | None = None, now: datetime | None = None
    ) -> Trial:
        """Open a session in `cwd` (default: a directory below `home`) on an empty disk."""
        machine = Machine(home, Tree(), reserved=reserved(home), heads=tuple(heads))
        where = cwd or f"{home.rstrip('/')}/workspace"
        return cls(Conversation(machine, cwd=where), now or datetime.now(UTC))

    def actions(self, asked: Asked, resource: str = "") -> tuple[Action, ...]:
        """Return the actions of a written request; `resource` is that of the rule it is an example of."""
        return actions_of(asked, self.conversation, resource)

    def context(self) -> Context:
        """Return a session with a prompt and with an agent, mode and person that no rule names (unknown ones match)."""
        space = self.conversation.workspace("")
        return Context(space, self.now, OTHER, ASKING, interactive=True, user="somebody", resolved=True)

    def decide(
        self, policy: Policy, actions: tuple[Action, ...], context: Context, grant: engine.Grants = engine.no_grants
    ) -> Decision:
        """Decide actions under `policy`; `grant` returns remembered answers."""
        request = Request("", "", "", PLAIN, actions)
        return engine.decide(request, policy, context, self.conversation.machine.fs, grant)


def suited(context: Context, rule: Rule) -> Context:
    """Return `context`, changed so that the conditions of `rule` on session and person hold."""
    for condition in rule.conditions:
        match condition:
            case AgentCondition(names=(name, *_)):
                short, _, version = name.rpartition("@") if "@" in name[1:] else (name, "", "")
                context = replace(context, agent=Agent(name, version.replace("*", "0"), short))
            case ModeCondition(names=(name, *_)):
                context = replace(context, mode=mode_called(name))
            case InteractiveCondition(value=value):
                context = replace(context, interactive=value)
            case LabelCondition(wanted=wanted):
                held = {key: values[0].replace("*", "x") for key, values in wanted}
                context = replace(context, labels={**context.labels, **held}, managed_labels=held)
            case PersonCondition(name="user", names=(name, *_)):
                context = replace(context, user=name)
            case PersonCondition(names=(name, *_)):
                context = replace(context, groups=(name,))
    return context


def mode_called(name: str) -> Mode:
    """Return a mode that a pattern of `mode` matches."""
    if name in {"@asking", "@unsafe"}:
        return Mode(name.removeprefix("@"), asking=name == "@asking", unsafe=name == "@unsafe")
    return Mode(name.replace("*", "x"), asking=False, unsafe=False)
