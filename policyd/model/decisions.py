"""Decisions, with everything they rest on."""

from __future__ import annotations

from msgspec import Struct

from policyd.model.requests import Action
from policyd.model.words import LAYER_WORDS, MEMORY, Effect, Layer, Source


class RuleRef(Struct, frozen=True, cache_hash=True, gc=False):
    """A rule or default as decisions name it."""

    layer: Layer
    id: str
    effect: Effect
    file: str = ""
    line: int = 0
    reason: str = ""
    remember: str = ""
    """Of an ask rule: never, session or project."""
    default: bool = False

    @property
    def label(self) -> str:
        """The name shown everywhere: `user:push`."""
        return f"{LAYER_WORDS[self.layer]}:{self.id}"

    @property
    def place(self) -> str:
        """Its file and line, to append to its label; empty if it is in no file."""
        return f" ({self.file}:{self.line})" if self.file else ""


class Judged(Struct, frozen=True, gc=False):
    """One action with everything that applies to it."""

    action: Action
    effect: Effect
    hits: tuple[RuleRef, ...] = ()
    """Rules whose conditions hold for certain."""
    possible: tuple[RuleRef, ...] = ()
    """Deny and ask rules that may match: each counts as ask."""
    defaults: tuple[RuleRef, ...] = ()
    floors: tuple[str, ...] = ()
    """Why it is at least ask whatever the rules say, in words."""
    granted: Effect | None = None
    """The effect of a remembered answer to it, if any."""

    @property
    def memory(self) -> str:
        """The longest memory that may settle it if it asks: the shortest of all that ask, `never` with a floor."""
        asking = [ref.remember for ref in (*self.hits, *self.possible, *self.defaults) if ref.remember]
        return "never" if self.floors else min(asking, key=MEMORY.__getitem__, default="project")


class Decision(Struct, frozen=True, gc=False):
    """The answer to one request and everything it rests on."""

    effect: Effect
    source: Source
    reason: str
    """Written for the model and the person: what decided, and what to do instead."""
    rules: tuple[RuleRef, ...] = ()
    """The rules and defaults that decided."""
    matched: tuple[RuleRef, ...] = ()
    """Every rule that matched."""
    actions: tuple[Judged, ...] = ()
    revision: str = ""
    """The policy revision that decided."""
    remember: str = "project"
    """Of an ask: the longest memory that may settle it, the shortest of the asking rules."""

    @property
    def final(self) -> bool:
        """Whether every deciding rule is a managed or user rule: then a refusal may be permanent."""
        return bool(self.rules) and not [one for one in self.rules if one.layer is Layer.PROJECT or one.default]
