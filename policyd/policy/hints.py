"""Hints for users of other tools: what they write, and how it is written here.

A foreign spelling that loads as a pattern which never matches is worse than an error, so each is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from policyd.policy.errors import Mistake, listed, nearest

STRICTEST = "order and numbers do not count, the strictest rule wins; use `[[default]]` for what a rule may relax"
KEYS = {
    "toolName": "write `kind` for a built-in action or `tool` for an MCP tool",
    "tool_name": "write `kind` for a built-in action or `tool` for an MCP tool",
    "tools": "write `tool`",
    "mcpName": 'write `tool = "server/*"`',
    "mcp_name": 'write `tool = "server/*"`',
    "server": 'write `tool = "server/*"`',
    "commandPrefix": 'write `command = "… **"`',
    "command_prefix": 'write `command = "… **"`',
    "commandRegex": "write `command`; its words are patterns, not regular expressions",
    "prefix_rule": 'write `command = "… **"`',
    "argsPattern": 'write `input = { key = "pattern" }`',
    "args_pattern": 'write `input = { key = "pattern" }`',
    "args": "write `input`",
    "arguments": "write `input`",
    "priority": STRICTEST,
    "order": STRICTEST,
    "decision": "write `effect`",
    "action": "write `effect`",
    "permission": "write `effect`",
    "verdict": "write `effect`",
    "allow": 'write `effect = "allow"` and a condition',
    "ask": 'write `effect = "ask"` and a condition',
    "deny": 'write `effect = "deny"` and a condition',
    "pattern": "write one of `path`, `command`, `url`, `tool`",
    "patterns": "write one of `path`, `command`, `url`, `tool`",
    "resource": "write one of `path`, `command`, `url`, `tool`",
    "file": "write `path`",
    "files": "write `path`",
    "paths": "write `path`",
    "commands": "write `command`",
    "cmd": "write `command`",
    "bash": "write `command`",
    "domain": "write `url`",
    "host": "write `url`",
    "urls": "write `url`",
    "kinds": "write `kind`",
    "except": "write `unless = { … }`",
    "not": "write `unless = { … }`",
    "exclude": "write `unless = { … }`",
    "when": "write the conditions beside `effect`",
    "justification": "write `reason`",
    "denyMessage": "write `reason`",
    "deny_message": "write `reason`",
    "message": "write `reason`",
    "description": "write `reason`",
    "comment": "write `reason`, or a comment after `#`",
    "name": "write `id`",
    "expires": "write `until`",
    "client": "policies do not know clients; write `agent`, `user`, `group` or `label`",
    "answer": "policyd never answers with an `always` option of the agent",
    "modes": "write `mode`",
    "priorities": STRICTEST,
}
TOP = {
    "rules": "write `[[rule]]`",
    "policies": "write `[[rule]]`",
    "permissions": "write `[[rule]]` blocks with `effect`",
    "permission": "write `[[rule]]` blocks with `effect`",
    "set": "write `[sets]`",
    "lists": "write `[sets]`",
    "locks": "write `[lock]`",
    "effect": "put it in a `[[rule]]` block",
    "hooks": "hooks are settings, not policy: `prompt` in policyd.toml",
    "prompt": "it is a setting, not policy: policyd.toml",
    "settings": "settings are not policy: policyd.toml",
    "allow": 'write `[[rule]]` blocks with `effect = "allow"`',
    "deny": 'write `[[rule]]` blocks with `effect = "deny"`',
    "ask": 'write `[[rule]]` blocks with `effect = "ask"`',
}
EFFECTS = {
    "ask_user": "ask",
    "prompt": "ask",
    "confirm": "ask",
    "challenge": "ask",
    "forbidden": "deny",
    "forbid": "deny",
    "block": "deny",
    "reject": "deny",
    "no": "deny",
    "approve": "allow",
    "accept": "allow",
    "permit": "allow",
    "yes": "allow",
}
KINDS = {
    "bash": "execute",
    "shell": "execute",
    "run": "execute",
    "exec": "execute",
    "command": "execute",
    "terminal": "execute",
    "write": "edit",
    "create": "edit",
    "update": "edit",
    "modify": "edit",
    "remove": "delete",
    "rm": "delete",
    "rename": "move",
    "webfetch": "fetch",
    "web": "fetch",
    "http": "fetch",
    "url": "fetch",
    "grep": "search",
    "glob": "search",
    "list": "search",
    "mode": "switch_mode",
    "mcp": "other",
    "tool": "other",
}
CALL = re.compile(r"^[A-Z][A-Za-z_]{0,40}\((.*)\)$", re.DOTALL)
REGEX = re.compile(r"^(?:re|regex|regexp):|^\^.*\$$|^/\^[^/]*/?", re.DOTALL)
SLASHED = re.compile(r"^/[^/\s]*[$|+\\][^/\s]*/[gimsuy]{0,6}$")
EXPRESSION = re.compile(r"\\[sdw][+*]|^/[^/]*(?:\.[*+]|\\[sdwb]|[$|^])[^/]*/[gimsuy]{0,6}$")
ASSIGNMENT = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\+?=")
VARIABLE = re.compile(r"^\$(?!HOME(?:/|$)|TMPDIR(?:/|$))\{?[A-Za-z_]+\}?/|^%[A-Za-z_]+%")


def unknown_key(key: str, known: Iterable[str], table: dict[str, str]) -> str:
    """Return what to write in place of an unknown key."""
    if key in table:
        return table[key]
    known = list(known)
    near = nearest(key, known)
    return f"write `{near}`" if near else f"known here: {listed(known)}"


def unknown_kind(word: str, known: Iterable[str], more: str = "") -> str:
    """Return what to write in place of an unknown kind."""
    known = list(known)
    near = KINDS.get(word.lower()) or nearest(word, known)
    return f"write `{near}`" if near else f"known are {listed(known)}{more}"


def refuse_foreign(key: str, text: str) -> None:
    """Raise Mistake for a pattern in another tool's spelling that would load and never match."""
    if call := CALL.match(text):
        inner = re.sub(r":\*$", " **", call[1]) or "**"
        raise Mistake(f"`{text}` is another tool's spelling", f"write the pattern alone, `{inner}`", key=key, text=text)
    if text.startswith("!"):
        wanted = "write an `unless`, or `\\!` for the character"
        raise Mistake(f"`{text}`: a pattern cannot be negated", wanted, key=key, text=text)
    if text.startswith("mcp__"):
        server, _, tool = text[5:].partition("__")
        raise Mistake(f"`{text}` is a joined name", f'write `tool = "{server}/{tool or "*"}"`', key=key, text=text)
    if REGEX.search(text) or (key != "path" and SLASHED.search(text)):
        raise expression(key, text)
    if key == "command":
        refuse_foreign_command(key, text)
    if key in {"path", "cwd", "within"}:
        refuse_foreign_path(key, text)


def expression(key: str, text: str) -> Mistake:
    """Return the mistake of a pattern that is a regular expression."""
    wanted = 'patterns use `*`, `**`, `?`, `{a,b}`; only `input` takes `{ regex = "…" }`'
    return Mistake(f"`{text}` is a regular expression", wanted, key=key, text=text)


def refuse_foreign_command(key: str, text: str) -> None:
    """Raise Mistake for a command in another tool's words, or with a variable where its program should be."""
    if EXPRESSION.search(text):
        raise expression(key, text)
    if re.search(r"\w:\*$", text):
        raise Mistake(f"`{text}` is another tool's spelling", f"write `{text[:-2]} **`", key=key, text=text)
    if found := ASSIGNMENT.match(text):
        wanted = f'write the command alone; an allow rule tolerates the variable by `env = ["{found[1]}"]`'
        raise Mistake(f"`{text}`: a pattern begins with a program, not with a variable", wanted, key=key, text=text)


def refuse_foreign_path(key: str, text: str) -> None:
    """Raise Mistake for separators and variables of other systems in a path pattern."""
    if re.match(r"[A-Za-z]:/", text):
        raise Mistake(f"`{text}` begins with a drive of Windows", f"write `**/{text[3:]}`", key=key, text=text)
    if re.search(r"\\[A-Za-z0-9]|^[A-Za-z]:\\", text):
        clean = re.sub(r"\\(?=[A-Za-z0-9_.*])", "/", text)
        found = f"`{text}`: `\\` makes the next character literal, it does not separate"
        raise Mistake(found, f"write `{clean}`", key=key, text=text)
    if VARIABLE.match(text):
        wanted = "write `~/`, `$HOME/`, `$TMPDIR/` or a full path"
        raise Mistake(f"`{text}`: variables are not expanded", wanted, key=key, text=text)
