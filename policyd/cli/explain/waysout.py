"""What would change a decision: a rule to paste if the policy language can express the action, else a sentence.

A rule is no wider than the action, except for the input of a tool, the input of a command, and the entries below a
directory that is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

import tomli_w
from msgspec import Struct, field

from policyd.cli.facts import shown_kind
from policyd.cli.shapes import unlisted
from policyd.display import in_toml, safe
from policyd.engine import MENU
from policyd.grants import conditions, key
from policyd.grants.literal import PLAIN, escape, join
from policyd.model import (
    READ_KINDS,
    Action,
    Assignment,
    Decision,
    Effect,
    Judged,
    Layer,
    Reach,
    Role,
    RuleRef,
    SimpleCommand,
    Source,
    WordKind,
)
from policyd.policy import Policy

WIDTH = 200
PASTED = "[[rule]]"
USUAL = {"https": ":443/", "http": ":80/"}


class Obstacles(Struct, frozen=True):
    """What may keep a rule of the user's from taking effect."""

    policy: Policy = field(default_factory=Policy)
    broken: str = ""
    """Why everything in the session is at least ask."""
    unsound: tuple[str, ...] = ()
    """Why there is no workspace, so that nothing is inside it."""

    @property
    def firm(self) -> set[RuleRef]:
        """The managed defaults that no rule of a lower layer overrides."""
        managed = [layer for layer in self.policy.defaults if layer.rank is Layer.MANAGED]
        entries = {one.ref for layer in managed for one in layer.entries.values() if not one.delegate}
        return entries | {one.ref for layer in managed for one in layer.rules if not one.delegate}

    @property
    def refused(self) -> str:
        """Why no allow rule of the user counts; empty if it may."""
        return self.policy.lock.voids(Layer.USER, trusted=True)


def ways_out(
    decision: Decision, effect: Effect, roots: tuple[str, ...], obstacles: Obstacles | None = None
) -> Iterator[str]:
    """Yield what would change a decision with this final `effect`; without a person an *ask* ends as a denial."""
    if effect is Effect.ALLOW:
        return
    obstacles = obstacles or Obstacles()
    if decision.effect is Effect.ASK and obstacles.broken:
        yield f"repair the project's policy: {safe(obstacles.broken, limit=2 * WIDTH)}"
        return
    for rule in decision.rules if decision.effect is Effect.DENY else ():
        if not rule.default:
            whose = ", which is your administrator's" if rule.layer is Layer.MANAGED else ""
            yield f"add an `unless` to {safe(rule.label)}{whose}, or do it another way"
    if decision.source is Source.GRANT:
        yield "a remembered answer refuses it: `policyd grants list` shows it, `policyd grants revoke ID` takes it back"
        return
    least = Effect.DENY if any(map(_denied_by_rule, decision.actions)) else Effect.ASK
    open_actions = [one for one in decision.actions if one.effect >= least and not _denied_by_rule(one)]
    if open_actions and obstacles.unsound:
        yield f"work in a directory of its own: {safe(' and '.join(obstacles.unsound), limit=2 * WIDTH)}"
        return
    beyond = any(one.action.opaque for one in open_actions)  # no rule on the rest settles it
    shown_lines: set[str] = set()
    for judged in open_actions:
        if not _comes_along(judged, decision):
            line = way_of(judged, roots, obstacles)
            if line not in shown_lines and not (beyond and line.startswith(PASTED)):
                shown_lines.add(line)
                yield line
    if MENU in decision.reason:
        yield MENU


def way_of(judged: Judged, roots: tuple[str, ...], obstacles: Obstacles) -> str:
    """Return what would allow one action that is asked about, or denied by a default."""
    action, firm, denies = judged.action, obstacles.firm, _may_deny(judged)
    first, said = ("answer it: ", "asks") if judged.effect is Effect.ASK else ("", "denies")
    reasons = {
        "only a managed rule can allow what touches policyd itself": bool(action.guarded),
        _beyond(action, "what is not understood", "opaque"): bool(action.opaque),
        _beyond(action, "what widens the agent's reach", "escalate"): bool(action.escalate),
        "an ask rule applies: answer it, or change that rule": _asked_by_rule(judged),
        _less(action, denies): bool(denies),
        f"{first}a managed default {said}, and no rule of yours lifts it": not firm.isdisjoint(judged.defaults),
        f"{first}the managed policy refuses allow rules of users": bool(obstacles.refused),
    }
    found = next((reason for reason, holds in reasons.items() if holds), "")
    return found or written(rule(action, roots)) or _unwritable(action)


def rule(action: Action, roots: tuple[str, ...]) -> Mapping[str, object]:
    """Return the rule that allows `action`, empty if the policy language cannot express it."""
    if "switch_mode" in action.kinds:
        mode = {"mode": action.mode.name} if action.mode else {}
        return {"effect": "allow", "kind": ["switch_mode"], **mode}
    found = None if action.role is Role.MENTION else key(action, roots)
    within = _places(action) if action.strays else []
    if found is None or (action.strays and not within) or _led_out(action, roots):
        return {}
    table = {"effect": "allow", **conditions(found), **({"within": within} if within else {})}
    more = _set_within(action.command)
    if not all(one.value.kind is WordKind.CONST for one in more):
        return {}
    if more:
        own = table.get("env")
        within = [f"{one.name}={escape(one.value.text)}" for one in more]
        table["env"] = [*own, *within] if isinstance(own, list) else within
    if action.url is not None:
        usual = USUAL.get(action.url.scheme, "/")
        urls = [word.partition("?")[0].replace(usual, "/", 1) for word in found.words]
        if not all(PLAIN.issuperset(url) for url in urls):
            return {}
        table["url"] = urls
    if action.path is not None and action.path.reach != "entry":
        table["path"] = ["**" if word == "." else f"{escape(word)}/**" for word in found.words]
    if action.cwd_inside:
        table.pop("cwd", None)
    return table


def _places(action: Action) -> list[str]:
    """Return patterns for the files that a command names, `**` for all in the workspace; empty if not all are known."""
    known = [ref for ref in action.within if ref is not None]
    if len(known) < len(action.within):
        return []
    outside = [escape(form) for ref in known if not ref.inside for form in ref.forms]
    return list(dict.fromkeys([*outside, *("**" for ref in known if ref.inside)]))


def _set_within(command: SimpleCommand | None) -> list[Assignment]:
    """Return the variables a wrapper sets (`env A=b make`): a rule on the command has to tolerate them too."""
    found: list[Assignment] = []
    outer = command
    while outer is not None and outer.inner is not None:
        found += [one for one in outer.inner.env if one not in outer.env]
        outer = outer.inner
    return found


def written(table: Mapping[str, object]) -> str:
    """Return a rule as TOML."""
    return f"{PASTED}\n{in_toml(tomli_w.dumps(unlisted(table)))}".strip() if table else ""


def _led_out(action: Action, roots: tuple[str, ...]) -> bool:
    """Say whether a link in the workspace leads out of it: no pattern follows such a link."""
    if action.path is None or action.path.inside:
        return False
    return any(form.startswith(f"{root}/") for form in action.path.forms for root in roots)


def _comes_along(judged: Judged, decision: Decision) -> bool:
    """Say whether allowing the command, which is as open, also allows this operand."""
    at, path = judged.action.carrier, judged.action.path
    asked = at is not None and decision.actions[at].effect is not Effect.ALLOW
    return asked and path is not None and path.inside and not (_asked_by_rule(judged) or _may_deny(judged))


def _denied_by_rule(judged: Judged) -> bool:
    return any(ref.effect is Effect.DENY and not ref.default for ref in judged.hits)


def _asked_by_rule(judged: Judged) -> bool:
    return any(ref.effect is Effect.ASK and not ref.default for ref in (*judged.hits, *judged.possible))


def _may_deny(judged: Judged) -> str:
    """Return the deny rules that may hold: no allow overrides one."""
    return ", ".join(safe(ref.label) for ref in judged.possible if ref.effect is Effect.DENY and not ref.default)


def _less(action: Action, denies: str) -> str:
    """Say what to do if deny rules may hold, usually for something below a directory that is searched."""
    if action.path is not None and action.path.reach is Reach.CONTENT:
        named = safe(action.path.text, limit=WIDTH)
        return f"answer it, or name less than all of `{named}`: {denies} may hold for what lies below it"
    return f"answer it, or change {denies}: whether that holds is not known beforehand"


def _beyond(action: Action, what: str, word: str) -> str:
    untold = word == "opaque" and action.kinds <= READ_KINDS and action.opaque.startswith(_UNTOLD)
    better = "; `find … -type f … -exec … {} +` says what is read" if untold else ""
    named = f'`kind = "{shown_kind(action)}"` and `{word} = true`'
    return f"{what} is allowed only, and all of it, by a rule with {named}{better}"


_UNTOLD = ("`{}`", "what is read from the input")
"""What the reason begins with if files passed to a program are not known."""


def _unwritable(action: Action) -> str:
    if action.command is None:
        return "answer it: a rule would have to be wider than what is asked"
    if not action.cwd:
        return "answer it: where the command runs is not known beforehand"
    if action.strays:
        reached = ", ".join(f"`{safe(word, limit=WIDTH)}`" for word in action.strays)
        within = f"a `within` that covers {reached} by its absolute path"
        return f"a rule with this `command`, and {within}: it names what lies outside"
    if action.command.strict_only or action.command.tainted:
        return "answer it, or write the command plainly: no rule can name it"
    known = tuple(word.text for word in takewhile(lambda word: word.kind is WordKind.CONST, action.command.argv))
    wild = action.command.argv[len(known)].text if len(known) < len(action.command.argv) else ""
    if not wild:
        names = dict.fromkeys(one.name for one in (*action.command.taint, *action.command.env))
        env = f", and an `env` that names {', '.join(f'`{safe(name)}`' for name in names)}" if names else ""
        return f"a rule with a `command` pattern that covers `{safe(action.command.text, limit=WIDTH)}`{env}"
    wide = safe(f"`{join(known, more=True)}`" if known else "`**`", limit=WIDTH)
    what = "what is read from the input" if wild == "…" else f"`{safe(wild, limit=WIDTH)}`"
    return f"a rule with a `command` pattern as wide as {wide}: only `**` covers {what}"
