"""Which keys of a block may stand together. Pure look at presence and words; yields every mistake it finds.

Each check exists because the combination would load and mean less, or more, than its author thinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from policyd.policy.errors import Mistake, listed

if TYPE_CHECKING:
    from policyd.policy.file import Conditions, Named, Unless

CONDITIONS = (
    "kind",
    "path",
    "command",
    "cwd",
    "within",
    "env",
    "url",
    "tool",
    "input",
    "agent",
    "mode",
    "interactive",
    "label",
    "user",
    "group",
)

RESOURCES = ("path", "command", "url", "tool")
NARROW = ("cwd", "within", "env")


def named(block: Conditions) -> list[str]:
    """Return the conditions a block has."""
    return [key for key in CONDITIONS if getattr(block, key) is not None]


def resource_of(block: Conditions) -> str:
    """Return the resource a block is about: path, command or URL, else the tool, else nothing."""
    return next((key for key in RESOURCES if getattr(block, key) is not None), "")


def mistakes(block: Named) -> Iterator[Mistake]:
    """Yield every combination of a rule or default that must not load."""
    yield from about_resources(block)
    yield from about_kinds(block)
    yield from about_narrowing(block)
    yield from about_effect(block)
    if block.effect == "allow" and block.interactive is not None:
        yield Mistake(
            "`interactive` in an allow rule would allow exactly when nobody can be asked",
            "put it in a `[[default]]` or a deny or ask rule",
            key="interactive",
        )
    for exception in block.unless or ():
        yield from about_exception(block, exception)


def about_resources(block: Named) -> Iterator[Mistake]:
    """A rule has one resource, or `kind`."""
    given = [key for key in ("path", "command", "url") if getattr(block, key) is not None]
    if len(given) > 1:
        yield Mistake(
            f"`{given[0]}` and `{given[1]}` in one rule: an action has one resource",
            "write two rules" + (", or `within` for the files of a command" if "command" in given else ""),
            key=given[1],
        )
    if not resource_of(block) and block.kind is None:
        yield Mistake(
            "a rule needs `kind` or one of `path`, `command`, `url`, `tool`" + only(block),
            'write what it is about; `kind = "*"` says every kind',
        )
    if block.effect == "allow" and block.path is not None and block.kind is None:
        yield Mistake(
            "an allow rule with `path` does not say what may be done there",
            'name `kind`, such as `kind = "@read"` or `kind = ["read", "edit"]`',
            key="path",
        )


def about_kinds(block: Named) -> Iterator[Mistake]:
    """A kind that the resource never has would make a rule that never holds."""
    kinds = set(block.kind or ("*",))
    if "*" in kinds:
        return
    if block.command is not None and "execute" not in kinds:
        yield Mistake(
            f"`command` with {listed(sorted(kinds))}: a command is of kind `execute`",
            "remove `kind`; what a command does to files is for rules with `path`",
            key="kind",
        )
    mcp = block.tool is not None and all("/" in tool for tool in block.tool)
    if block.effect == "allow" and mcp and "other" not in kinds:
        yield Mistake(
            f"`tool` of a server with {listed(sorted(kinds))}: an allow sees every MCP call as `other`",
            "remove `kind`",
            key="kind",
        )


def only(block: Named) -> str:
    """Say what a rule without a condition has instead."""
    if getattr(block, "match", None) or getattr(block, "not_match", None):
        return "; `match` and `not_match` are examples, not conditions"
    return ""


def about_narrowing(block: Named) -> Iterator[Mistake]:
    """`cwd`, `within` and `env` narrow the command of an allow; `input` needs a call."""
    for key in NARROW:
        if getattr(block, key) is None:
            continue
        if block.command is None:
            yield Mistake(f"`{key}` without `command`", f"write `command` beside it, or remove `{key}`", key=key)
        elif block.effect != "allow":
            yield Mistake(
                f"`{key}` only narrows an allow",
                "remove it, or write the exception as `unless = { command = …, " + key + " = … }`",
                key=key,
            )
    if block.input is not None and not resource_of(block):
        yield Mistake("`input` without a resource", "write `tool` (or `path`, `command`, `url`) beside it", key="input")


def about_effect(block: Named) -> Iterator[Mistake]:
    """`opaque` and `escalate` go with an allow on kinds, `remember` with an ask."""
    for key in ("opaque", "escalate"):
        if not getattr(block, key, None):
            continue
        if block.effect != "allow":
            yield Mistake(
                f"`{key}` on a rule that does not allow",
                "remove it: a deny or ask rule without a resource already reads so",
                key=key,
            )
        elif resource_of(block) or block.kind is None:
            yield Mistake(
                f"`{key}` goes with `kind`, not with a resource: what is not understood has none",
                f'write a rule of its own, `kind = "execute", {key} = true`',
                key=key,
            )
    if getattr(block, "remember", None) is not None and block.effect != "ask":
        yield Mistake(f"`remember` on a rule that does not ask (`{block.effect}`)", "remove it", key="remember")


def about_exception(block: Named, exception: Unless) -> Iterator[Mistake]:
    """An exception names the rule's own resource type, or attributes."""
    own, theirs = resource_of(block), resource_of(exception)
    if not named(exception):
        yield Mistake("an empty `unless`", "write its conditions, or remove it", key="unless")
    if own and theirs not in {"", "tool", own}:
        yield Mistake(
            f"`unless` names `{theirs}` in a rule on `{own}`: one action has one resource, so it would never hold",
            f"write the exception with `{own}`",
            key=f"unless.{theirs}",
        )
    elif not own and theirs in {"path", "url"} and block.kind == ["execute"]:
        yield Mistake(
            f'`unless` names `{theirs}` in a rule on `kind = "execute"`: a command has neither path nor URL',
            "write the exception with `command`, or a rule of its own",
            key=f"unless.{theirs}",
        )
    given = [key for key in ("path", "command", "url") if getattr(exception, key) is not None]
    if len(given) > 1:
        found = f"`{given[0]}` and `{given[1]}` in one `unless`"
        yield Mistake(found, "write a list of tables", key=f"unless.{given[1]}")
    for key in NARROW:
        if getattr(exception, key) is None:
            continue
        if exception.command is None:
            yield Mistake(f"`{key}` without `command` in `unless`", "write `command` beside it", key=f"unless.{key}")
        elif block.effect == "allow":
            found = f"`{key}` in the exception of an allow rule"
            yield Mistake(found, "write it beside `command` of the rule", key=f"unless.{key}")
    if exception.input is not None and not (own or theirs):
        yield Mistake("`input` without a resource in `unless`", "write `tool` beside it", key="unless.input")
    if exception.interactive is not None and block.effect != "allow":
        yield Mistake(
            "`interactive` in the exception of a deny or ask rule would loosen it when nobody can be asked",
            "remove it",
            key="unless.interactive",
        )
