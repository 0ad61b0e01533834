"""The conditions on session, person and time, and when each of them holds.

Rules of this module:

1. An unknown mode, agent or person holds in tightening places and fails in loosening ones.
2. `interactive` never loosens; of labels only managed ones loosen a managed rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from fnmatch import translate
from functools import lru_cache

from msgspec import Struct

from policyd.model import Action, Context, Filesystem, Mode, Truth
from policyd.policy.conditions import Place

NO, YES = Truth.NO, Truth.YES


class AgentCondition(Struct, frozen=True):
    """`agent`: short profile names with an optional version glob, or exact wire names. A claim of the agent."""

    place: Place
    names: tuple[str, ...]
    name: str = "agent"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Compare with the wire name, then with profile and version."""
        agent = context.agent
        if not agent.name and agent.profile == "generic":
            return NO if self.place.loosens else YES
        for text in self.names:
            if text == agent.name:
                return YES
            short, _, version = text.rpartition("@") if "@" in text[1:] else (text, "", "")
            if short not in (agent.profile, agent.family):
                continue
            if not version or (agent.version and glob(version)(agent.version)):
                return YES
            if not agent.version and not self.place.loosens:
                return YES
        return NO


class ModeCondition(Struct, frozen=True):
    """`mode`: the mode a `switch_mode` leads to, else the session's; `@unsafe`, `@asking` from profiles."""

    place: Place
    names: tuple[str, ...]
    name: str = "mode"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """An unknown mode fails where it would loosen and holds elsewhere."""
        mode = action.mode if action.mode is not None or "switch_mode" in action.kinds else context.mode
        if mode is None:
            return NO if self.place.loosens else YES
        return YES if any(is_mode(text, mode) for text in self.names) else NO


def is_mode(text: str, mode: Mode) -> bool:
    """Say whether `text` of a policy names `mode`."""
    if text == "@unsafe":
        return mode.unsafe
    if text == "@asking":
        return mode.asking and not mode.unsafe
    return bool(glob(text)(mode.name))


class InteractiveCondition(Struct, frozen=True):
    """`interactive`: whether a prompt is configured; the language keeps it out of loosening places."""

    place: Place
    value: bool
    name: str = "interactive"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Compare; a loosening place never holds."""
        return YES if context.interactive is self.value and not self.place.loosens else NO


class LabelCondition(Struct, frozen=True):
    """`label`: every key has one of the values. Where it loosens a managed rule, only managed labels count."""

    place: Place
    wanted: tuple[tuple[str, tuple[str, ...]], ...]
    managed: bool
    name: str = "label"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Managed labels outrank those set at start; what tightens counts either."""
        if self.place.loosens:
            labels = context.managed_labels if self.managed else {**context.labels, **context.managed_labels}
            return YES if fits(self.wanted, labels) else NO
        return YES if fits(self.wanted, context.labels, context.managed_labels) else NO


def fits(wanted: tuple[tuple[str, tuple[str, ...]], ...], *labels: Mapping[str, str]) -> bool:
    """Say whether, for every key, one of `labels` has one of its values."""
    return all(
        any(key in held and any(glob(value)(held[key]) for value in values) for held in labels)
        for key, values in wanted
    )


class PersonCondition(Struct, frozen=True):
    """`user` or `group`: who runs this, according to the kernel."""

    place: Place
    names: tuple[str, ...]
    name: str

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """An unknown person fails where it would loosen and holds elsewhere."""
        if not context.user:
            return NO if self.place.loosens else YES
        held = (context.user,) if self.name == "user" else context.groups
        return YES if any(one in self.names for one in held) else NO


class UntilCondition(Struct, frozen=True):
    """`until`: past this moment the rule does not hold."""

    moment: datetime
    name: str = "until"

    def truth(self, action: Action, context: Context, fs: Filesystem | None) -> Truth:
        """Compare with the clock of the context."""
        return YES if context.now < self.moment else NO


@lru_cache(maxsize=1024)
def glob(pattern: str) -> Callable[[str], object]:
    """Return a whole-value match for a short glob of a policy (versions, modes, labels); linear."""
    return re.compile(translate(pattern)).match
