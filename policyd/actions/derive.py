"""From evidence to actions: everything a tool call would do, as the agent's profile reads it.

Rules:

1. Primary are the paths of reads, edits, deletes, moves and searches, each simple command with its operands, the URL of
   a fetch, the tool of an MCP call. A command found under any kind is an execute, a diff under any kind an edit.
2. Everything else that names a path or URL is a mention: only deny and ask rules look at it. Arguments of an MCP call
   that were not stated are an opaque mention: any such rule on a path or URL may apply.
3. A field of `rawInput`, or a part of one, that the profile neither uses nor calls inert makes an opaque action
   (`unread`); one that widens the agent's reach is an action of its own, as is a switch whose name says so. A kind
   that, by the tool's own table, writes is added to the kind the agent states.
4. Opaque actions are added, never put in place of what was understood. Nothing primary found: one opaque action. A kind
   that is neither the protocol's nor an extension (`_kind`) is opaque too: only the agent knows what it means.
5. What touches policyd itself is marked (`guard`), whoever asks and however it is named.
"""

from __future__ import annotations

from msgspec.structs import replace

from policyd.actions import guard, resources
from policyd.actions.builder import Builder, Surroundings
from policyd.actions.evidence import KNOWN, Evidence
from policyd.actions.identity import ambiguous, arguments, identify, mcp_tool
from policyd.actions.profiles import Profile, ToolSpec
from policyd.actions.unread import unread
from policyd.model import TABLE, WRITE_KINDS, Action, Mode, Role, Tool

TOLD = ("deletes", "moves", "patch")
"""Groups of references to files that are changed otherwise than by an edit."""
MOST_FIELDS = 1_000
"""The number of fields of `rawInput` that are looked at, beside those a profile knows."""
TOO_MANY = "`rawInput` has more fields than are looked at"
UNSTATED = "its arguments are not on the wire and may name any path or URL"
OFF = frozenset(
    {"no", "off", "disable", "disabled", "skip", "without", "outside", "bypass", "escape", "leave", "dangerously"}
)
WIDE = (
    *("escalate", "elevate", "privileged", "bypass", "dangerous", "unsafe", "unrestricted", "sudo", "asroot"),
    *("fullaccess", "allowall", "autoapprove", "skippermission", "skipapproval", "noapproval", "yolo"),
)


def derive(evidence: Evidence, profile: Profile, around: Surroundings) -> tuple[Action, ...]:
    """Return every action the call stands for; never empty, each with where it was found."""
    name, spec = identify(evidence, profile)
    if not evidence.announced and (twofold := ambiguous(evidence, profile)):
        evidence = replace(evidence, fault=twofold)
    unsaid = profile.data.vague or evidence.kinds == {"other"}
    if spec and spec.table.kind and (spec.table.resource or unsaid):
        evidence = replace(evidence, kinds=frozenset({spec.table.kind}))
    elif spec and spec.table.kind in WRITE_KINDS - evidence.kinds and not spec.table.mcp:
        evidence = replace(evidence, kinds=evidence.kinds | {spec.table.kind})
    many = len(evidence.raw) > MOST_FIELDS
    if many:
        evidence = replace(evidence, raw=_first(evidence, spec), fault=evidence.fault or TOO_MANY)
    build = Builder(evidence, around, Tool(name) if name else None)
    build.args = evidence.raw if evidence.detailed and not (evidence.fault or evidence.missing) else None
    if evidence.fault:
        build.opaque(evidence.fault, evidence.kinds, "rawInput")
    if many:
        build.add(Action(build.kinds, name=build.name, escalate=TOO_MANY, origin="rawInput"))
    for kind in sorted(evidence.kinds - KNOWN):
        if not kind.startswith("_") and not (spec and spec.table.mcp):
            build.opaque(f"no protocol knows the kind `{kind}`", evidence.kinds, "kind")
    if spec is None:
        build.opaque("no profile says what this call does", evidence.kinds)
    else:
        _call(build, profile, spec, name)
    for text in evidence.old:
        build.mentions(text, "earlier evidence")
    if not [action for action in build.actions if action.role is not Role.MENTION]:
        build.opaque(_nothing(evidence), evidence.kinds)
    return guard.mark(tuple(build.actions), around)


def _first(evidence: Evidence, spec: ToolSpec | None) -> dict[str, object]:
    """Return the first fields of `rawInput`, and all that the profile knows."""
    known = spec.claimed if spec is not None else frozenset()
    return {key: value for at, (key, value) in enumerate(evidence.raw.items()) if at < MOST_FIELDS or key in known}


def shifted(actions: tuple[Action, ...], by: int) -> list[Action]:
    """Return the actions of a call placed after `by` others: their indices into the list shifted accordingly."""
    return [act if act.carrier is None else replace(act, carrier=act.carrier + by) for act in actions]


def _nothing(evidence: Evidence) -> str:
    if evidence.missing:
        return "its details have not come: " + ", ".join(sorted(evidence.missing))
    return "the request does not say what it would do" if evidence.announced else "nothing announced this tool call"


def _call(build: Builder, profile: Profile, spec: ToolSpec, name: str) -> None:
    table, kinds = spec.table, build.evidence.kinds
    build.said = spec.read(build.evidence)
    if table.opaque:
        build.opaque(table.opaque, kinds)
    if table.tells and build.evidence.raw.keys().isdisjoint(table.tells):
        build.opaque("what is done is not on the wire", kinds, "rawInput")
    for ref, label in profile.shows:
        if label != spec.label and ref.find(build.evidence):
            build.opaque(f"it shows a text that is of {label}", kinds, "content")
    for key, why in table.opaque_if.items():
        if holds(build.evidence.raw.get(key)):
            build.opaque(why, kinds, f"rawInput.{key}")
    if "switch_mode" in kinds:
        _switch(build, profile)
    if table.mcp:
        _mcp(build, spec, name)
        resources.paths_of(build, profile, spec)
        if table.args:
            _widening(build, spec)
            _unclaimed(build, spec)
        return
    if table.resource == "tool" or table.plain:
        _own(build, spec, name)
    resources.commands_of(build, spec)
    resources.patches_of(build, spec)
    resources.paths_of(build, profile, spec)
    resources.urls_of(build)
    _widening(build, spec)
    _unclaimed(build, spec)
    _unnamed(build, spec)
    if table.own and (spec.doubtful or table.own in build.around.servers):
        server = profile.named("mcp__*", (), ())
        _mcp(build, server or spec, name)


def _unnamed(build: Builder, spec: ToolSpec) -> None:
    """Add an opaque action for what is not named: files named beside it do not make up for that.

    That is a command that would be run, and what `rawInput` would say of files that are deleted or moved.
    """
    found, table = build.actions, spec.table
    if not build.evidence.detailed and any(ref.key for group in TOLD for ref in spec.refs[group]):
        build.opaque("what is done to files is not stated", build.kinds)
    if "execute" not in build.kinds or table.plain or table.resource or not found:
        return
    if not any(action.command is not None or action.opaque for action in found):
        build.opaque("the command is not named", build.kinds)


def _mcp(build: Builder, spec: ToolSpec, name: str) -> None:
    evidence = build.evidence
    tool = mcp_tool(evidence, spec, name, build.around.servers)
    build.args = arguments(evidence, spec)
    kinds = evidence.kinds | {"other"}
    if tool is None:
        build.opaque("the MCP server and tool are not named on the wire", kinds)
    else:
        build.name = tool
        build.add(Action(kinds, tool=tool, name=tool, args=build.args, mcp=True, origin="tool name"))
        if any(not server for server, _ in tool.splits):
            build.opaque("the MCP server is not named on the wire", kinds)
    build.mentions(build.args if build.args is not None else evidence.raw, "arguments")
    if build.args is None:
        build.add(Action(frozenset(), Role.MENTION, opaque=UNSTATED, name=build.name, origin="arguments"))


def _own(build: Builder, spec: ToolSpec, name: str) -> None:
    """Add the one action of a call that has no path, command or URL by nature."""
    tool = Tool(name) if name else None
    escalate = spec.table.escalate
    build.add(Action(build.kinds, tool=tool, name=tool, args=build.args, escalate=escalate, origin="tool name"))


def _switch(build: Builder, profile: Profile) -> None:
    """Add the change of mode: to the mode of the one plain `allow_once`, where the profile knows it."""
    once = [option for option in build.evidence.options if option.get("kind") == "allow_once"]
    leads = profile.data.mode.leads.get(str(once[0].get("optionId"))) if len(once) == 1 else None
    mode: Mode | None = profile.mode(leads) if leads else None
    build.add(Action(build.kinds, tool=build.name, name=build.name, args=build.args, mode=mode, origin="kind"))


def _widening(build: Builder, spec: ToolSpec) -> None:
    for key in spec.table.widens:
        value = build.evidence.raw.get(key)
        if holds(value):
            origin = f"rawInput.{key}"
            build.add(Action(build.kinds, name=build.name, args=build.args, escalate=key, origin=origin))
            build.mentions(value, origin)
    for key, value in build.evidence.raw.items():
        if isinstance(value, bool | int | float) and key not in spec.claimed and widens_by_name(key, on=bool(value)):
            origin = f"rawInput.{key}"
            build.add(Action(build.kinds, name=build.name, args=build.args, escalate=key, origin=origin))


def widens_by_name(key: str, *, on: bool) -> bool:
    """Say whether a switch that no profile describes widens the agent's reach by its name, in any spelling."""
    words = (
        "".join(f" {char}" if char.isupper() else char if char.isalpha() else " " for char in key).casefold().split()
    )
    letters = "".join(words)
    if "sandbox" in letters:
        return on is any(word in OFF or word.startswith(("nosandbox", "unsandbox")) for word in words)
    return on and any(word in letters for word in WIDE)


def _unclaimed(build: Builder, spec: ToolSpec) -> None:
    ran = bool([action for action in build.actions if action.command])
    for key, value in unread(build.evidence, spec, ran=ran):
        build.opaque(f"no profile says what `rawInput.{key}` means", build.kinds, f"rawInput.{key}")
        build.mentions(value, f"rawInput.{key}", key)


def holds(value: object) -> bool:
    """Say whether anything inside `value` is set: a text, a number, `true`; `false`, nothing and empty ones are not."""
    if isinstance(value, TABLE):
        return any(holds(item) for item in value.values())
    if isinstance(value, list):
        return any(holds(item) for item in value)
    return bool(value) and not (isinstance(value, str) and value.lower() in {"false", "off", "no"})
