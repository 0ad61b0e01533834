"""Which tool a call is of, and which MCP server a joined name may mean.

A joined name (`mcp__notes__delete_note`, `notes_delete_note`) is split wherever the joint occurs. If the client named
servers and some split fits one of them, only those splits count; otherwise all do, including those at a joint that the
agent was not known to use, and an allow needs every one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from policyd.actions.evidence import Call, Evidence, merge
from policyd.actions.fields import Ref
from policyd.actions.profiles import Profile, ToolSpec, generic
from policyd.actions.readers import Fault, json_text
from policyd.model import EMPTY, Tool

PREFIXES = ("mcp__", "mcp_")
MCP_TOOLS = "tool.mcp"
"""How the tables of names begin in which that prefix says nothing."""
JOINING = frozenset("_-./: ")
LONGEST_NAME = 256
TWO_TOOLS = "two tools are named"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


JOINTS = str.maketrans("", "", "_-./:")
"""What joins the parts of a name."""
PROSE = frozenset({"title", "first_title"})


def identify(evidence: Evidence, profile: Profile) -> tuple[str, ToolSpec | None]:
    """Return the tool's name (`""` if it is not stated) and how its calls are read (None if unknown).

    A name out of a title counts only where it is made of a name's characters and the profile has a table for it: a
    title may be the model's own prose, or a command.
    """
    for _, tool, spec in _stated(evidence, profile):
        return tool, spec
    for template, name in profile.titled:
        title = evidence.titles[0] if evidence.titles else ""
        fits = title == template if isinstance(template, str) else template.match(title) is not None
        if fits and (spec := _named(profile, name, evidence)):
            return name, spec
    return "", _fallback(evidence, profile, "")


def _stated(evidence: Evidence, profile: Profile) -> Iterator[tuple[str, str, ToolSpec | None]]:
    """Yield each field that states a tool, its name and how it is read, the one that counts first."""
    seen = ""
    for ref in profile.identify:
        for found in ref.find(evidence) if ref.place != seen else ():
            if isinstance(found.value, str) and is_name(found.value):
                prose = ref.place in PROSE
                spec = None if prose and not is_plain(found.value) else _named(profile, found.value, evidence)
                if spec or not prose:
                    seen = ref.place
                    yield seen, found.value, spec or _fallback(evidence, profile, found.value)
                    break


def renamed(call: Call, asked: Mapping[str, object], profile: Profile) -> str:
    """Return why a request about an announced call is ambiguous: they name two tools; `""` if they do not.

    A tool that calls another one (its table says where that is named) may be named so, or by the one it calls.
    """
    known = {"name": call.name, "title": call.titles and call.titles[-1], "rawInput": call.raw, "_meta": call.meta}
    if not any(asked.get(place) and asked[place] != known[place] for place in profile.naming):
        return ""
    stated = list(_stated(merge(Call(call.call_id), asked, ()), profile))
    told = list(_stated(merge(call, EMPTY, ()), profile))
    if any(spec and spec.refs["tool"] for _, _, spec in told):
        return ""
    return TWO_TOOLS if len({*_counting(stated), *_counting(told)}) > 1 else ""


def ambiguous(evidence: Evidence, profile: Profile) -> str:
    """Return why a call that was not announced is ambiguous: its request names two tools; `""` if it does not."""
    return TWO_TOOLS if len(_counting(list(_stated(evidence, profile)))) > 1 else ""


def _counting(stated: list[tuple[str, str, ToolSpec | None]]) -> set[str]:
    """Return the names that count among those stated: the first, and all that are not in prose."""
    return {name for at, (place, name, _) in enumerate(stated) if at == 0 or place not in PROSE}


def _fallback(evidence: Evidence, profile: Profile, name: str) -> ToolSpec | None:
    general = generic()
    return profile.kinded(evidence.kinds) or _named(general, name, evidence) or general.kinded(evidence.kinds)


def _named(profile: Profile, name: str, evidence: Evidence) -> ToolSpec | None:
    return profile.named(name, [evidence.stated] if evidence.stated else evidence.kinds, evidence.raw)


def is_name(text: str) -> bool:
    """Say whether `text` can be a tool's name: one word, not prose."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and " " not in text


def is_plain(text: str) -> bool:
    """Say whether `text` holds nothing that a shell would read as more than one word."""
    return text.translate(JOINTS).isalnum() or not text.translate(JOINTS)


def mcp_tool(evidence: Evidence, spec: ToolSpec, name: str, servers: tuple[str, ...]) -> Tool | None:
    """Return the MCP tool a call is of, None where the wire does not name it.

    A tool without a server gets every known server; with none known the server is the empty name, which no pattern of
    an allow rule matches. Beside a joined name, a server stated separately only chooses among the splits.
    """
    server, tool = (_first(spec.refs[part], evidence) for part in ("server", "tool"))
    if spec.table.mcp != "fields":
        told = tool if spec.refs["tool"] and not spec.refs["server"] else name
        prefixed = spec.label.startswith(MCP_TOOLS)
        found = joined(told, spec.table.mcp, servers, prefixed=prefixed) if told else None
        return _chosen(found, server, tool, evidence, spec) if found and server else found
    if not tool:
        return None
    if server:
        return Tool(f"{server}/{tool}", ((server, tool),))
    return Tool(tool, tuple((known, tool) for known in servers) or (("", tool),))


def _chosen(found: Tool, server: str, tool: str, evidence: Evidence, spec: ToolSpec) -> Tool:
    """Return the one split of `found` that `server` and `tool` name; if it is none of them, it is added to all.

    They come from a title, which may be an argument `command` of the call itself: then they do not choose.
    """
    args, spelled = arguments(evidence, spec), _spellings(server)
    if args is None or "command" in args:
        return found
    if any(part == tool and told in spelled for told, part in found.splits):
        return Tool(f"{server}/{tool}", ((server, tool),))
    return Tool(found.name, (*found.splits, (server, tool)))


def joined(name: str, joint: str, servers: tuple[str, ...], *, prefixed: bool = True) -> Tool | None:
    """Return the tool of the joined `name`, with every split that fits; None if the joint is not in it.

    `prefixed`: that a name begins with `mcp_` means nothing; otherwise a server's name may begin so.
    """
    bare = next((name[len(prefix) :] for prefix in PREFIXES if name.startswith(prefix)), name)
    texts = (bare,) if prefixed or name.startswith(PREFIXES[0]) else tuple(dict.fromkeys((name, bare)))
    splits = tuple(split for text in texts for split in _splits(text, joint))
    if not splits:
        return None
    fitting = tuple(
        (known, part)
        for told, tool in splits
        for known in servers
        if told in _spellings(known)
        for part in {tool, tool.lstrip(joint) or tool}
    )
    kept = tuple(dict.fromkeys(fitting or (*splits, *_otherwise(name, bare, joint, servers))))
    return Tool("/".join(kept[0]) if len(kept) == 1 else name, kept)


def _otherwise(name: str, bare: str, joint: str, servers: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Yield other splits of a name that fits no server by its joint: at other joints, a known server first."""
    if len(joint) == 1:
        for other in set("/.:") & set(bare):
            yield from _splits(bare, other)
    for text in {name, bare, name[4:] if name[:3] == "mcp" else bare}:
        for known in servers:
            for spelling in set(_spellings(known)):
                rest = text[len(spelling) :]
                if text.startswith(spelling) and rest[:1] in JOINING and rest.lstrip("_-./: "):
                    yield known, rest.lstrip("_-./: ")


def _spellings(server: str) -> tuple[str, str, str]:
    """Return how agents write a server's name in a joined one."""
    return server, _UNSAFE.sub("_", server), _UNSAFE.sub("_", server).replace("-", "_")


def _splits(text: str, joint: str) -> Iterable[tuple[str, str]]:
    at = text.find(joint, 1)
    while 0 < at < len(text) - len(joint):
        yield text[:at], text[at + len(joint) :]
        at = text.find(joint, at + 1)


def arguments(evidence: Evidence, spec: ToolSpec) -> Mapping[str, object] | None:
    """Return an MCP call's arguments; None where they are missing or incomplete."""
    if spec.refs["arguments"]:
        values = (value for ref in spec.refs["arguments"] for value in _values(ref, evidence))
        return next((value for value in values if isinstance(value, Mapping)), None)
    if evidence.fault or evidence.missing or not evidence.detailed:
        return None
    value = evidence.raw.get(spec.table.args, {}) if spec.table.args else evidence.raw
    return value if isinstance(value, Mapping) else None


def _values(ref: Ref, evidence: Evidence) -> Iterable[object]:
    """Yield what `ref` leads to; for a key, or JSON of a title or text, also an empty table: no arguments."""
    if not ref.json:
        empty = ref.bare and evidence.raw.get(ref.key) == {}
        yield from ({},) if empty else (found.value for found in ref.find(evidence))
        return
    for text in evidence.titles[:1] if ref.place == "title" else evidence.texts:
        try:
            yield json_text(text)
        except Fault:  # words for a person, no arguments
            continue


def _first(refs: Iterable[Ref], evidence: Evidence) -> str:
    for ref in refs:
        for found in ref.find(evidence):
            if isinstance(found.value, str) and is_name(found.value):
                return found.value
    return ""
