"""A fast check of a policy file's shape (`msgspec`, in C): it accepts only what `file.py` would, without messages.

What it rejects is checked again by `file.py` (`pydantic`), which is authoritative and finds the messages; a test keeps
the two in step.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

Text = Annotated[str, Meta(min_length=1)]
Texts = Text | Annotated[list[Text], Meta(min_length=1)]
Table = Annotated[dict[str, Any], Meta(min_length=1)]
Examples = Annotated[list[Any], Meta(min_length=1)] | str | dict[str, Any]
Name = Annotated[str, Meta(pattern=r'\A[^\x00-\x1f\x7f"]+\Z', max_length=100)]
Moment = Annotated[datetime, Meta(tz=True)]


class Conditions(Struct, forbid_unknown_fields=True):
    """The conditions of a block."""

    kind: Texts | None = None
    path: Texts | None = None
    command: Texts | None = None
    cwd: Texts | None = None
    within: Texts | None = None
    env: Texts | None = None
    url: Texts | None = None
    tool: Texts | None = None
    input: Table | None = None
    agent: Texts | None = None
    mode: Texts | None = None
    interactive: bool | None = None
    label: Annotated[dict[str, Texts], Meta(min_length=1)] | None = None
    user: Texts | None = None
    group: Texts | None = None


class Named(Conditions, kw_only=True):
    """What rules and conditional defaults share."""

    effect: Literal["allow", "ask", "deny"]
    id: Name | None = None
    reason: Text | None = None
    until: Moment | None = None
    unless: Conditions | Annotated[list[Conditions], Meta(min_length=1)] | None = None


class RuleBlock(Named):
    """`[[rule]]`."""

    opaque: bool | None = None
    escalate: bool | None = None
    remember: Literal["never", "session", "project"] | None = None
    match: Examples | None = None
    not_match: Examples | None = None

    def __post_init__(self) -> None:
        """Refuse `false`."""
        if self.opaque is False or self.escalate is False:
            raise ValueError("`false` is not written")


class DefaultBlock(Named):
    """`[[default]]`."""

    delegate: bool = False


BLOCKS: Mapping[str, type[Struct]] = {"rule": RuleBlock, "default": DefaultBlock}


class Lock(Struct, forbid_unknown_fields=True):
    """`[lock]`."""

    refuse: Annotated[list[Literal["user.allow", "project.allow", "grants"]], Meta(min_length=1)] | None = None
    settings: Annotated[list[Text], Meta(min_length=1)] | None = None


class PolicyFile(Struct, forbid_unknown_fields=True):
    """A policy file without its blocks, which are checked one by one, so that no call takes long."""

    version: Literal[1] = 1
    name: Text | None = None
    revision: Text | None = None
    requires: Text | None = None
    defaults: dict[str, Any] | None = None
    default: list[Any] | None = None
    sets: dict[str, Texts] | None = None
    rule: list[Any] | None = None
    lock: Lock | None = None


class ExampleTable(Struct, forbid_unknown_fields=True):
    """An example that is a table."""

    kind: Text | None = None
    path: Texts | None = None
    command: Text | None = None
    cwd: Text | None = None
    url: Text | None = None
    tool: Text | None = None
    input: dict[str, Any] | None = None
    mode: Text | None = None


def fits(table: object, shape: type[Struct]) -> bool:
    """Say whether a table has a shape."""
    try:
        convert(table, shape)
    except ValidationError:
        return False
    return True


def file_fits(raw: Mapping[str, Any]) -> bool:
    """Say whether a file and each of its blocks are well formed."""
    if not fits(raw, PolicyFile):
        return False
    blocks = ((block, shape) for key, shape in BLOCKS.items() for block in raw.get(key, ()))
    return all(fits(block, shape) for block, shape in blocks)
