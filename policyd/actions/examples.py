"""Examples inside policies (`match = ["read .env", "execute cat .env"]`) as actions, read by the code for requests.

A text is `KIND RESOURCE`; a table names kind, path, command, cwd, url, tool, input and mode. What a word is follows
from the kind: command text for `execute`, a URL for `fetch`, a path for kinds that touch files, else a tool; for a rule
on tools it is a tool.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from policyd.actions import guard, shell
from policyd.actions.builder import Builder, Surroundings
from policyd.actions.evidence import Evidence
from policyd.actions.identity import joined
from policyd.actions.profiles import Profile
from policyd.actions.resources import WIDE
from policyd.model import Action, Reach, Tool

FILES = frozenset({"read", "edit", "delete", "move", "search"})


def example_actions(
    text: str, table: Mapping[str, object], resource: str, around: Surroundings, profile: Profile
) -> tuple[Action, ...]:
    """Return the actions of an example of a rule whose resource condition is `resource` (empty: none)."""
    fields = dict(table) if table else read_text(text, resource)
    kind = str(fields.get("kind") or implied(fields))
    args = fields.get("input")
    build = Builder(Evidence("", kinds=frozenset({kind})), around, args=args if isinstance(args, Mapping) else {})
    cwd = _cwd(build, fields.get("cwd"))
    if isinstance(command := fields.get("command"), str):
        shell.text_actions(build, command, "example", cwd)
    for path in _texts(fields.get("path")):
        build.path(path, build.kinds, "example", reach=Reach.CONTENT if kind in WIDE else Reach.ENTRY)
    if isinstance(url := fields.get("url"), str):
        build.url(url if "://" in url else f"https://{url}", build.kinds, "example")
    if isinstance(tool := fields.get("tool"), str):
        _tool(build, tool)
    if not build.actions:
        build.add(Action(build.kinds, args=build.args, origin="example"))
    mode = fields.get("mode")
    named = profile.mode(mode) if isinstance(mode, str) else None
    actions = guard.mark(tuple(build.actions), around)
    return tuple(replace(action, mode=named) for action in actions) if named else actions


def read_text(text: str, resource: str) -> dict[str, object]:
    """Return the table that an example's text stands for."""
    kind, _, rest = text.partition(" ")
    rest = rest.strip()
    if not rest:
        return {"kind": kind}
    if kind == "execute":
        return {"kind": kind, "command": rest}
    if resource == "tool":
        return {"kind": kind, "tool": rest}
    if kind == "fetch":
        return {"kind": kind, "url": rest}
    if kind == "switch_mode":
        return {"kind": kind, "mode": rest}
    return {"kind": kind, "path" if kind in FILES or resource == "path" else "tool": rest}


def implied(fields: Mapping[str, object]) -> str:
    """Return the kind of an example table that names none."""
    kinds = {"command": "execute", "url": "fetch", "path": "read", "mode": "switch_mode"}
    return next((kind for key, kind in kinds.items() if key in fields), "other")


def _texts(value: object) -> list[str]:
    """Return the text or the texts of a table's entry."""
    listed = value if isinstance(value, list) else [value]
    return [text for text in listed if isinstance(text, str)]


def _cwd(build: Builder, cwd: object) -> tuple[str, ...]:
    if not isinstance(cwd, str):
        return build.bases()
    return build.ref(cwd, build.bases(), Reach.ENTRY).forms[:1]


def _tool(build: Builder, text: str) -> None:
    server, slash, name = text.partition("/")
    pairs = ((server, name),) if slash else _splits(text) if text.startswith("mcp") else ()
    tool = Tool(text, pairs)
    build.name = tool
    build.add(Action(build.kinds, tool=tool, name=tool, args=build.args, mcp=bool(pairs), origin="example"))


def _splits(text: str) -> tuple[tuple[str, str], ...]:
    """Return what a joined name may mean, split at the first joint it holds."""
    found = (joined(text.removeprefix("mcp."), joint, ()) for joint in ("__", ".", "_"))
    return next((tool.splits for tool in found if tool is not None), ())
