"""The shape of a policy file: every key, its type, and nothing else. Source of the JSON Schema.

Rules of this module:

1. Shape only. What a pattern means, whether a set exists, which keys go together is `compile.py` and `combinations.py`.
2. Unknown keys are errors at every level, and no value is converted: a number is no string, `1` is no `true`.
3. Imported only when a file is read: `pydantic` is too heavy for a start-up that has not started its agent yet.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema

from policyd.model import EFFECT_WORDS
from policyd.policy.blocks import DEFAULT_KEYS, as_list

EffectWord = Literal["allow", "ask", "deny"]


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    list[Text],
    Field(min_length=1),
    BeforeValidator(as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]


def as_tables(value: object) -> object:
    """Read one table as a list of one."""
    return [value] if isinstance(value, dict) else value


class Block(BaseModel):
    """Settings of every block."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Conditions(Block):
    """What a rule, a default or an exception can say of an action and its session."""

    kind: Texts | None = None
    path: Texts | None = None
    command: Texts | None = None
    cwd: Texts | None = None
    within: Texts | None = None
    env: Texts | None = None
    url: Texts | None = None
    tool: Texts | None = None
    input: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    agent: Texts | None = None
    mode: Texts | None = None
    interactive: StrictBool | None = None
    label: Annotated[dict[str, Texts], Field(min_length=1)] | None = None
    user: Texts | None = None
    group: Texts | None = None


class Unless(Conditions):
    """An exception of a rule: the rule does not hold where all of this does."""


class Named(Conditions):
    """What rules and conditional defaults share."""

    effect: EffectWord
    id: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f\"]+$", max_length=100)] | None = None
    reason: Text | None = None
    until: AwareDatetime | None = None
    unless: (
        Annotated[
            list[Unless],
            Field(min_length=1),
            BeforeValidator(as_tables),
            WithJsonSchema(
                {
                    "anyOf": [
                        Unless.model_json_schema(),
                        {"type": "array", "items": Unless.model_json_schema(), "minItems": 1},
                    ]
                }
            ),
        ]
        | None
    ) = None


class ExampleTable(Block):
    """An example that text cannot say: an action with arguments, a mode, several paths."""

    kind: Text | None = None
    path: Texts | None = None
    command: Text | None = None
    cwd: Text | None = None
    url: Text | None = None
    tool: Text | None = None
    input: dict[str, Any] | None = None
    mode: Text | None = None


def as_several(value: object) -> object:
    """Read one text or table as a list of one."""
    return [value] if isinstance(value, str | dict) else value


Examples = Annotated[
    list[Any],
    Field(min_length=1),
    BeforeValidator(as_several),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {"anyOf": [{"type": "string"}, ExampleTable.model_json_schema()]},
                },
            ]
        }
    ),
]
"""Texts and tables, told apart in `build.py`: a union would report every mistake twice."""


class RuleBlock(Named):
    """`[[rule]]`: conditions and what follows where they hold."""

    opaque: Literal[True] | None = None
    escalate: Literal[True] | None = None
    remember: Literal["never", "session", "project"] | None = None
    match: Examples | None = None
    not_match: Examples | None = None


class DefaultBlock(Named):
    """`[[default]]`: what counts where no rule applies, under conditions."""

    delegate: StrictBool = False


SETTINGS = (
    "prompt",
    "timeouts",
    "agent_mode",
    "strict",
    "fs_read",
    "on_unasked",
    "report",
    "reload",
    "terminal",
    "audit",
    "audit.path",
    "audit.durability",
    "audit.checkpoints",
    "grants",
    "grants.max_age",
    "labels",
    "shell",
    "log_level",
    "color",
    "details_after_ms",
    "human_ms",
)


class Lock(Block):
    """`[lock]` of a managed file: what lower layers, grants and settings may not do."""

    refuse: Annotated[list[Literal["user.allow", "project.allow", "grants"]], Field(min_length=1)] = Field(
        default_factory=list, validate_default=False
    )
    settings: Annotated[list[Text], Field(min_length=1)] = Field(default_factory=list, validate_default=False)


class PolicyFile(Block):
    """A whole policy file."""

    version: Literal[1] = 1
    name: Text | None = None
    revision: Text | None = None
    requires: Text | None = None
    defaults: Annotated[
        dict[str, Any],
        WithJsonSchema(
            {
                "type": "object",
                "properties": {
                    **{key: {"enum": list(EFFECT_WORDS)} for key in DEFAULT_KEYS},
                    "delegate": {"type": "boolean"},
                },
                "patternProperties": {"^_": {"enum": list(EFFECT_WORDS)}},
                "additionalProperties": False,
            }
        ),
    ] = Field(default_factory=dict)
    default: list[DefaultBlock] = Field(default_factory=list)
    sets: dict[str, Texts] = Field(default_factory=dict)
    rule: list[RuleBlock] = Field(default_factory=list)
    lock: Lock | None = None


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **PolicyFile.model_json_schema()}
