"""Judging one action: the rules that hold, the defaults that count, and the floors.

This is where decisions are made. Everything needed is in the arguments; files are looked at only through `fs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.engine.reasons import UNREAD
from policyd.model import Action, Context, Effect, Filesystem, Judged, Layer, PathRef, Role, RuleRef, Truth
from policyd.policy import Entry, LayerDefaults, Policy, Rule

if TYPE_CHECKING:
    from policyd.policy.index import Index

ALLOW, ASK = Effect.ALLOW, Effect.ASK
NO, YES = Truth.NO, Truth.YES
USER, MENTION = Layer.USER, Role.MENTION
effect_of, ref_of, rank_of = attrgetter("effect"), attrgetter("ref"), attrgetter("rank")
OTHER = frozenset({"other"})
UNKNOWN_USE = (frozenset({"read", "edit"}),)
"""What a command may do with a file whose use is unknown; each is judged by itself."""
RUN_USE = (*UNKNOWN_USE, frozenset({"execute"}))
"""The same where a shipped entry for running the code it names allows the command."""


class Judge(Struct):
    """Judges the actions of one request."""

    policy: Policy
    context: Context
    fs: Filesystem | None
    actions: tuple[Action, ...]
    named: dict[str, list[Action]] = field(default_factory=dict)
    """Path as stated -> the actions on it, filled on first use: a command may name thousands."""
    cacheable: bool = True
    """No rule tried so far depends on the clock, on arguments or on a command's files."""

    def judge(self, action: Action, carried: Sequence[Rule] = ()) -> tuple[Judged, list[Rule]]:
        """Judge one action; also return the allow rules that hold for it, which its operands need.

        Args:
            action: one of the request.
            carried: allow rules of the command whose operand it is.
        """
        hits, possible = self.matching(action, self.policy.index)
        if carried:
            hits += [rule for rule in carried if rule not in hits]
        asks_nothing = action.idle or action.role is MENTION
        if asks_nothing:
            hits = [rule for rule in hits if rule.effect is not ALLOW]
        defaults = [] if asks_nothing else self.defaults_of(action, hits)
        allows = [rule for rule in hits if rule.effect is ALLOW] if hits else hits
        floors = self.floors(action, allows, defaults)
        effects = [*map(effect_of, hits), *map(effect_of, defaults)]
        if (
            possible
            or floors
            or not (effects or asks_nothing)
            or (defaults and not hits and self.has_kind_without_default(action, defaults))
        ):
            effects.append(ASK)
        judged = Judged(
            action,
            max(effects) if effects else ALLOW,
            refs(hits) if hits else (),
            refs(possible) if possible else (),
            refs(defaults) if defaults else (),
            tuple(floors),
        )
        return judged, allows

    def matching(self, action: Action, index: Index) -> tuple[list[Rule], list[Rule]]:
        """Return the rules that hold, and the deny and ask rules that may hold."""
        rules = index.candidates(action, self.context)
        if not index.cacheable:
            self.cacheable = self.cacheable and all(rule.cacheable for rule in rules)
        hits: list[Rule] = []
        possible: list[Rule] = []
        for rule in rules:
            truth = rule.holds(action, self.context, self.fs, actions=self.actions)
            if truth is YES:
                hits.append(rule)
            elif truth is not NO and rule.effect is not ALLOW:
                possible.append(rule)
        return hits, possible

    def defaults_of(self, action: Action, hits: list[Rule]) -> list[Entry]:
        """Return the defaults that count: those of each layer, unless a rule of that layer or a higher one matched.

        A delegated default also yields to rules of lower trusted layers. An untrusted project only tightens, so its
        rules do not displace its defaults either.
        """
        found: list[Entry] = []
        if not self.policy.indexed_defaults:
            return found
        rank = max(map(rank_of, hits)) if hits else -1
        for layer, index in self.policy.indexed_defaults:
            if rank >= layer.rank and rank >= USER:
                continue
            entries = self.entries_of(action, layer, index) if index.every else layer.of(action)
            found += entries if rank < USER else [entry for entry in entries if not entry.delegate]
        return found

    def entries_of(self, action: Action, layer: LayerDefaults, index: Index) -> list[Entry]:
        """Return the defaults of a layer with `[[default]]` blocks: those that hold replace its `[defaults]`."""
        sure, may = self.matching(action, index)
        blocks = [Entry(rule.ref, rule.effect, rule.delegate, block=True) for rule in sure]
        return [
            *(blocks or layer.of(action)),
            *(Entry(replace(rule.ref, effect=ASK), ASK, rule.delegate) for rule in may),
        ]

    def has_kind_without_default(self, action: Action, defaults: list[Entry]) -> bool:
        """Say whether no default names some kind of `action`: the allow of another kind does not cover it."""
        if action.mcp or (len(action.kinds) == 1 and (action.path is None or action.path.inside)):
            return False
        if any(entry.block for entry in defaults):
            return False
        return not all(
            any(layer.names(kind) for layer, _ in self.policy.indexed_defaults) for kind in action.kinds or OTHER
        )

    # ---- floors --------------------------------------------------------------------------------------

    def floors(self, action: Action, allows: list[Rule], defaults: list[Entry]) -> list[str]:
        """Return, in words, why an action is at least ask whatever the rules say."""
        found: list[str] = []
        if action.guarded and not any(rule.ref.layer is Layer.MANAGED for rule in allows):
            found.append(f"it touches policyd's own {action.guarded}")
        if action.role is MENTION:
            return found
        if action.opaque and not any(rule.opaque for rule in allows):
            found.append(f"{UNREAD}{action.opaque}")
        if action.escalate and not any(rule.escalate for rule in allows):
            found.append(f"it widens the agent's reach: {action.escalate}")
        if self.context.broken:
            found.append(f"the project's policy is broken: {self.context.broken}")
        if action.idle or not (allows or ALLOW in map(effect_of, defaults)):
            return found
        if action.path is not None:
            found += self.path_floors(action, action.path, allows)
        if action.command is not None:
            found += self.command_floors(action, allows)
        if not self.context.resolved and not allows:
            found.append("paths cannot be resolved here")
        return found

    def path_floors(self, action: Action, path: PathRef, allows: list[Rule]) -> list[str]:
        """Return the floors of a path that the allow does not name itself."""
        found: list[str] = []
        if any(rule.resource == "path" or rule.encloses for rule in allows):
            return found
        if not path.inside and not self.outside_allowed(action):
            found.append("outside the workspace")
        if not self.context.resolved and allows:
            found.append("paths cannot be resolved here")
        return found

    def command_floors(self, action: Action, allows: list[Rule]) -> list[str]:
        """Return the floors of a command that would run, read or write where the allow does not say."""
        found: list[str] = []
        if not action.cwd_inside and not any(rule.resource == "command" for rule in allows):
            found.append("it runs outside the workspace" if action.cwd else "where it runs is not known")
        if action.command is not None and action.command.strict_only and not any(rule.opaque for rule in allows):
            found.append("it may be read in more than one way")
        if action.strays and not any(rule.encloses for rule in allows):
            runs = all(rule.runs(action) for rule in allows)
            strays = self.uncovered(action, RUN_USE if runs else UNKNOWN_USE)
            if strays:
                found.append(f"it names {', '.join(strays)} outside the workspace")
        return found

    def uncovered(self, action: Action, uses: tuple[frozenset[str], ...]) -> list[str]:
        """Return the words of a command that name a path outside to which neither rule nor default gives access."""
        if not self.named:
            for one in self.actions:
                if one.path is not None:
                    self.named.setdefault(one.path.text, []).append(one)
        within: dict[str, list[PathRef]] = {}
        for ref in action.within:
            if ref is not None:
                within.setdefault(ref.text, []).append(ref)
        return [word for word in action.strays if not self.covered(word, action, within.get(word, []), uses)]

    def covered(self, word: str, action: Action, within: list[PathRef], uses: tuple[frozenset[str], ...]) -> bool:
        """Say whether an allow rule with `path`, or rules and defaults together, let a command reach a path outside.

        A file is judged by its use where that is known, otherwise by all of `uses`.
        """
        same = self.named.get(word, [])
        known = [one for one in same if one.role is not Role.MENTION]
        if not known:
            refs = [*within, *(one.path for one in same if one.path is not None)]
            bare = replace(action, command=None, strays=(), within=())
            known = [replace(bare, path=ref, kinds=kinds) for ref in refs for kinds in uses]
        return bool(known) and all(self.path_allowed(one) or self.judge(one)[0].effect is ALLOW for one in known)

    def path_allowed(self, action: Action) -> bool:
        """Say whether an allow rule with `path` holds for `action`."""
        return any(
            rule.effect is ALLOW and rule.resource == "path" and rule.holds(action, self.context, self.fs) is YES
            for rule in self.policy.candidates(action, self.context)
        )

    def outside_allowed(self, action: Action) -> bool:
        """Say whether the defaults let `action` reach outside: an `outside` entry allows it, and none is stricter."""
        entries = [entry for layer, _ in self.policy.indexed_defaults for entry in layer.of(action)]
        return any(entry.outside for entry in entries) and all(entry.effect is ALLOW for entry in entries)


def refs(items: Sequence[Rule | Entry]) -> tuple[RuleRef, ...]:
    """Return the references by which decisions name rules or defaults."""
    return tuple(map(ref_of, items))
