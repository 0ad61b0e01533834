"""Effects, truth values, layers and roles."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType

KINDS = (
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
)
MEMORY = {"never": 0, "session": 1, "project": 2}
"""How long an answer may be remembered: the values of `remember`, ordered."""
READ_KINDS = frozenset({"read", "search"})
WRITE_KINDS = frozenset({"edit", "delete", "move"})
EMPTY: Mapping[str, object] = MappingProxyType({})
TABLE = (dict, Mapping)
"""For `isinstance`: `dict` first, because the check against an abstract class is slow."""


class Effect(IntEnum):
    """The effect of a rule or decision, ordered so that the strictest of several is `max()`."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        """The effect as policies and JSON spell it."""
        return EFFECT_WORDS[self]


class Truth(IntEnum):
    """Whether a condition holds: a conjunction is `min()`, a disjunction `max()`."""

    NO = 0
    MAYBE = 1
    YES = 2


class Layer(IntEnum):
    """Where a policy file comes from, ordered by rank."""

    PROJECT = 0
    USER = 1
    MANAGED = 2

    @property
    def word(self) -> str:
        """The layer as messages and rule names spell it."""
        return LAYER_WORDS[self]


EFFECT_WORDS = ("allow", "ask", "deny")
EFFECTS = dict(zip(EFFECT_WORDS, Effect, strict=True))
LAYER_WORDS = ("project", "user", "managed")


class Source(StrEnum):
    """What made a decision."""

    RULE = "rule"
    DEFAULT = "default"
    GRANT = "grant"
    GUARD = "guard"
    PROMPT = "prompt"
    ERROR = "error"


class Role(StrEnum):
    """The role of an action in its request.

    Primary, operand and redirect actions are judged by everything; a mention only by deny and ask rules.
    """

    PRIMARY = "primary"
    OPERAND = "operand"
    REDIRECT = "redirect"
    MENTION = "mention"
