"""The conditions of rules, defaults and exceptions on what an action does, and when each of them holds.

Conditions on session and person are in `attributes.py`.

Rules of this module:

1. *What loosens is judged surely, what tightens is judged widely.* A condition is compiled for the place it stands in
   (`Place`). In a loosening place it holds only if every form of the thing matches and nothing is unknown; in a
   tightening place it holds if any form matches, and may hold (`MAYBE`) where that cannot be told.
2. *Strict rules read wide, allow rules read narrow*: only the conditions of a deny or ask rule are widened.
3. A resource condition never matches an opaque action, except that it may where doubt tightens: in the exception of
   an allow rule, and, on a path or URL, for an opaque mention (arguments that nobody stated) in a deny or ask rule.
4. No condition sees another: a rule is the conjunction of its own (`Rule.holds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from policyd.model import (
    READ_KINDS,
    Action,
    Context,
    Filesystem,
    PathRef,
    Role,
    SimpleCommand,
    Tool,
    Truth,
    Url,
    Workspace,
)
from policyd.paths import PathPattern
from policyd.tools import InputPattern, ToolPattern
from policyd.urls import UrlPattern

if TYPE_CHECKING:
    from policyd.commands.lexing.patternwords import PatternWord
    from policyd.policy.commandindex import CommandIndex

FEW = 4
"""Entries of a command condition that are tried one by one; more of them are indexed."""
NO, MAYBE, YES = Truth.NO, Truth.MAYBE, Truth.YES
IMPLIED: Mapping[str, frozenset[str]] = {
    "search": frozenset({"search", "read"}),
    "move": frozenset({"move", "delete", "edit"}),
}
OTHER = frozenset({"other"})
MET_IN_EXAMPLES = frozenset({"agent", "mode", "interactive", "label", "user", "group", "until"})
"""Conditions on the session: an example of a rule counts them as met."""


class Place(Enum):
    """Where a condition stands, and so how it is judged."""

    ALLOW = "a condition of an allow rule"
    STRICT = "a condition of a deny or ask rule"
    SPARE = "the exception of a deny or ask rule"
    EXCEPT = "the exception of an allow rule"

    def __init__(self, _: str) -> None:
        """Note which of the two polarities it has."""
        self.loosens = self.name in {"ALLOW", "SPARE"}
        self.widen = self.name == "STRICT"


class CommandMatcher(Protocol):
    """A command pattern, or an entry of a shipped set."""

    @property
    def programs(self) -> frozenset[str] | None:
        """The programs it may hold for; None = any."""

    @property
    def carries(self) -> bool:
        """Whether an allow by it extends to the files the command names."""

    @property
    def runs(self) -> bool:
        """Whether a word of the command may name code that it runs."""

    @property
    def spelled(self) -> tuple[tuple[PatternWord, ...], ...] | None:
        """The word sequences it stands for, of which a matching command holds every word; None if not known."""

    def sure(self, cmd: SimpleCommand, env: tuple[str, ...] = ()) -> bool:
        """Say whether an allow rule may rest on it."""

    def maybe(self, cmd: SimpleCommand, *, widen: bool) -> Truth:
        """Say whether a strict rule must count it."""

    def elsewhere(self, cmd: SimpleCommand) -> bool:
        """Say whether the pattern itself says that the command runs on another machine."""

    @property
    def text(self) -> str:
        """The pattern as written in a policy."""

    def why_not(self, cmd: SimpleCommand, env: tuple[str, ...] = ()) -> str:
        """Return, in words, why it does not hold for a command with its program; empty for other programs."""


class Condition(Protocol):
    """One condition, compiled for its place."""

    @property
    def name(self) -> str:
        """Its key in the policy file."""

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Return whether it holds; never MAYBE in a loosening place."""


def wide_kinds(action: Action) -> frozenset[str]:
    """Return every kind that a tightening condition takes the action for.

    What is moved is read as well: under its new name, of which no rule knows.
    """
    kinds = action.kinds
    if "search" in kinds or "move" in kinds:
        kinds = kinds.union({"read"}, *(IMPLIED.get(kind, ()) for kind in kinds))
    return kinds | OTHER if action.mcp or not kinds else kinds


class KindCondition(Struct, frozen=True):
    """`kind`: a set of kinds; `every` is `"*"`, all but `switch_mode`."""

    place: Place
    kinds: frozenset[str]
    every: bool = False
    name: str = "kind"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Loosening: each kind ever stated is named. Tightening: one of them is; a bare mention may be any."""
        place, mention = self.place, action.role is Role.MENTION and not action.kinds
        if place.loosens:
            kinds = action.kinds
            if action.mcp:
                kinds = OTHER if place is Place.ALLOW else kinds | OTHER
            if not kinds or mention:
                return NO
            return YES if kinds <= self.kinds or all(map(self.names, kinds)) else NO
        if mention:
            return YES if self.names("read") else MAYBE
        return YES if any(map(self.names, wide_kinds(action))) else NO

    def names(self, kind: str) -> bool:
        """Say whether the condition names `kind`."""
        return kind in self.kinds or (self.every and kind != "switch_mode")


def unstated(action: Action, place: Place) -> Truth:
    """Say whether a path or URL condition holds for an action that has none.

    An opaque action is none of them but may be excepted; an opaque mention may name any.
    """
    if not action.opaque:
        return NO
    return MAYBE if place is Place.EXCEPT or (place is Place.STRICT and action.role is Role.MENTION) else NO


class PathCondition(Struct, frozen=True):
    """`path`: any of the patterns; `outside` is `@outside`, what lies in no root."""

    place: Place
    patterns: tuple[PathPattern, ...]
    outside: bool = False
    name: str = "path"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Judge the action's path in every form."""
        ref = action.path
        if ref is None:
            return unstated(action, self.place)
        if self.place.loosens:
            if not context.resolved or context.workspace.cwd is None:
                return NO
            sure = surely(self.patterns, ref, context.workspace) or (self.outside and lies_outside(ref, context))
            return YES if sure else NO
        if self.outside and not ref.inside:
            return YES
        best, workspace, widen = NO, context.workspace, self.place.widen
        only_read = bool(action.kinds) and action.kinds <= READ_KINDS
        for pattern in self.patterns:
            truth = pattern.maybe(ref, workspace, fs, widen=widen, only_read=only_read)
            if truth is YES:
                return YES
            best = max(best, truth)
        return best


def surely(patterns: tuple[PathPattern, ...], ref: PathRef, workspace: Workspace) -> bool:
    """Say whether every form of a path matches a pattern: all forms the same one, or each its own."""
    for pattern in patterns:
        if pattern.sure(ref, workspace):
            return True
    if len(ref.forms) == 1 or len(patterns) < 2:
        return False
    forms = [replace(ref, forms=(form,)) for form in ref.forms]
    return all(any(pattern.sure(form, workspace) for pattern in patterns) for form in forms)


def lies_outside(ref: PathRef, context: Context) -> bool:
    """Say whether every form surely lies outside every root, sound or not."""
    roots = (*context.workspace.roots, *context.workspace.sound)
    below = tuple(root.rstrip("/") + "/" for root in roots)
    return not ref.glob and not any(form in roots or form.startswith(below) for form in ref.forms)


class CommandCondition(Struct, frozen=True, dict=True):
    """`command`, with the `cwd`, `within` and `env` that narrow what is let through."""

    place: Place
    entries: tuple[CommandMatcher, ...]
    cwd: tuple[PathPattern, ...] | None = None
    within: tuple[PathPattern, ...] | None = None
    env: tuple[str, ...] = ()
    name: str = "command"

    @cached_property
    def entry_index(self) -> CommandIndex:
        """The index over the entries: a shipped set has hundreds."""
        from policyd.policy.commandindex import CommandIndex

        strict = self.place is not Place.ALLOW
        return CommandIndex((at, one.programs, one.spelled, strict) for at, one in enumerate(self.entries))

    def about(self, cmd: SimpleCommand) -> Sequence[CommandMatcher]:
        """Return, in order, the entries that may hold for a command."""
        entries = self.entries
        return entries if len(entries) <= FEW else [entries[at] for at in sorted(self.entry_index.find(cmd))]

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Judge the action's command."""
        cmd = action.command
        if cmd is None:
            return MAYBE if action.opaque and self.place is Place.EXCEPT else NO
        if self.place.loosens:
            env = self.env
            for entry in self.about(cmd):
                if entry.sure(cmd, env):
                    return YES if self.in_place(action, context) and self.files_fit(action, context) else NO
            return NO
        best, widen = NO, self.place.widen
        for entry in self.about(cmd):
            truth = entry.maybe(cmd, widen=widen)
            if truth is YES:
                return YES
            best = max(best, truth)
        return best

    def carries(self, action: Action) -> bool:
        """Say whether an entry that holds for the command also carries the files it names."""
        cmd = action.command
        return cmd is not None and any(entry.carries and entry.sure(cmd, self.env) for entry in self.about(cmd))

    def runs(self, action: Action) -> bool:
        """Say whether only entries for running code that the command names hold for it."""
        cmd = action.command
        return cmd is not None and not any(not entry.runs and entry.sure(cmd, self.env) for entry in self.about(cmd))

    def why_not(self, action: Action) -> str:
        """Return, in words, why it does not hold for a command with an entry's program; else empty."""
        cmd = action.command
        if cmd is None:
            return ""
        for entry in self.about(cmd):
            if why := entry.why_not(cmd, self.env):
                return f"`{entry.text}` does not hold: {why}"
            if self.cwd is None and not (action.cwd_inside or self._elsewhere(action)) and entry.sure(cmd, self.env):
                return f"`{entry.text}` holds inside the workspace only"
        return ""

    def in_place(self, action: Action, context: Context) -> bool:
        """Say whether every possible working directory matches `cwd`, or without a `cwd` lies in the workspace."""
        if self.cwd is None:
            return action.cwd_inside or self.place is Place.SPARE or self._elsewhere(action)
        if not action.cwd:
            return False
        ref = PathRef(action.cwd[0], action.cwd, inside=action.cwd_inside)
        return surely(self.cwd, ref, context.workspace)

    def _elsewhere(self, action: Action) -> bool:
        """Say whether a command runs on another machine, as a pattern itself says."""
        cmd = action.command
        return cmd is not None and not action.cwd and any(entry.elsewhere(cmd) for entry in self.about(cmd))

    def files_fit(self, action: Action, context: Context) -> bool:
        """Say whether every file the command names or writes lies `within`; never for a command that names none.

        `make` and `python -c` name nothing and may write anywhere.
        """
        patterns = self.within
        if patterns is None:
            return True
        return (
            bool(action.within)
            and context.resolved
            and all(ref is not None and surely(patterns, ref, context.workspace) for ref in action.within)
        )


class UrlCondition(Struct, frozen=True):
    """`url`: any of the patterns."""

    place: Place
    patterns: tuple[UrlPattern, ...]
    name: str = "url"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Judge the action's URL."""
        url: Url | None = action.url
        if url is None:
            return unstated(action, self.place)
        if self.place.loosens:
            return YES if any(pattern.sure(url) for pattern in self.patterns) else NO
        widen = self.place.widen
        return max(pattern.maybe(url, widen=widen) for pattern in self.patterns)


class ToolCondition(Struct, frozen=True):
    """`tool`: the MCP tool that is the resource, else the name of the request's tool, an attribute of every action."""

    place: Place
    patterns: tuple[ToolPattern, ...]
    name: str = "tool"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Judge every reading of the name."""
        tool: Tool | None = action.tool or action.name
        if tool is None:
            return MAYBE if self.place is Place.EXCEPT else NO
        if self.place.loosens:
            return YES if any(pattern.sure(tool) for pattern in self.patterns) else NO
        return max(pattern.maybe(tool, widen=self.place.widen) for pattern in self.patterns)


class InputCondition(Struct, frozen=True):
    """`input`: the arguments of the call; missing or incomplete ones count against the requester."""

    place: Place
    pattern: InputPattern
    name: str = "input"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Judge the arguments."""
        if self.place.loosens:
            return YES if self.pattern.sure(action.args) else NO
        return self.pattern.maybe(action.args)
