"""Random policies and requests for the laws: small alphabets, so that rules and requests meet often.

Everything is drawn from one `random.Random`, so a seed names a case. Requests are built without a parser: paths have
their forms, commands their words, as the readers of `policyd.actions` would hand them over.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import tomli_w
from msgspec.structs import replace

from policyd import policy
from policyd.model import (
    Action,
    Agent,
    Context,
    Layer,
    Mode,
    PathRef,
    Request,
    Role,
    SimpleCommand,
    Tool,
    Word,
    WordKind,
    Workspace,
)
from policyd.urls import parse
from tests.ground import File

NOW = datetime(2026, 11, 29, tzinfo=UTC)
KINDS = ("read", "edit", "delete", "move", "search", "execute", "fetch", "other", "switch_mode", "think")
RULE_KINDS: tuple[Any, ...] = ("*", "@read", "@write", "read", "edit", "execute", "other", ["read", "move"], ["search"])
PATH_PATTERNS = (
    "src/**",
    "**/*.md",
    ".env",
    "**/.env",
    "secrets/**",
    "/etc/**",
    "**",
    "docs",
    "/w/src/a.py",
    "src/*.py",
)
FORMS = (
    "/w/src/a.py",
    "/w/.env",
    "/w/secrets/k",
    "/w/docs/x.md",
    "/etc/x",
    "/etc/y.md",
    "/w/src/.env",
    "/w/docs",
    "/w/z",
)
COMMAND_PATTERNS = ("frob push", "frob **", "frob status", "frob * x", "**", "x *", "frob push **")
COMMANDS = ("frob push", "frob status", "frob push x", "x", "x frob", "frob status x", "zzz")
HOSTS = ("https://a.test/**", "*.a.test", "b.test")
URLS = ("https://a.test/p", "https://x.a.test/", "https://b.test/q", "https://c.test/")
TOOLS = ("jira/*", "jira", "Bash", "jira/get", "*/get")
NAMES = (
    Tool("Bash"),
    Tool("mcp__jira__get", (("jira", "get"),)),
    Tool("jira_get", (("jira", "get"), ("jira_get", "it"))),
    Tool("mcp__x__get", (("x", "get"),)),
)
MODES = (None, Mode("plan", asking=True, unsafe=False), Mode("yolo"))
WORKSPACE = Workspace(cwd="/w", roots=("/w",), sound=("/w",), home="/home/u")


# ---- policies --------------------------------------------------------------------------------------


def some(rng: Random, values: tuple[Any, ...]) -> object:
    """Draw one value or a list of up to three."""
    count = rng.choice((1, 1, 1, 2, 3))
    picked = rng.sample(values, min(count, len(values)))
    return picked[0] if count == 1 else picked


def resource(rng: Random, kind: str) -> dict[str, Any]:
    """Draw a resource condition."""
    values = {"path": PATH_PATTERNS, "command": COMMAND_PATTERNS, "url": HOSTS, "tool": TOOLS}
    return {kind: some(rng, values[kind])} if kind else {}


def attributes(rng: Random, *, allow: bool, spare: bool = False) -> dict[str, Any]:
    """Draw conditions on session and call."""
    found: dict[str, Any] = {}
    if rng.random() < 0.15:
        found["mode"] = rng.choice(("plan", "@unsafe", ["plan", "yolo"]))
    if rng.random() < 0.1:
        found["label"] = {"env": "ci"}
    if rng.random() < 0.1 and not (allow or spare):
        found["interactive"] = rng.random() < 0.5
    return found


def block(rng: Random, effect: str = "") -> dict[str, Any]:
    """Draw what rules and conditional defaults share."""
    effect = effect or rng.choice(("allow", "allow", "allow", "ask", "deny"))
    kind = rng.choice(("path", "path", "command", "command", "url", "tool", ""))
    found = {"effect": effect, **resource(rng, kind), **attributes(rng, allow=effect == "allow")}
    if not kind or rng.random() < 0.3 or (kind == "path" and effect == "allow"):
        found["kind"] = rng.choice(RULE_KINDS)
    if "kind" in found and kind in {"command", "tool"}:
        found["kind"] = rng.choice(("*", ["execute", "other"], ["execute", "other", "read"]))
    if found.get("kind") == "execute" and not kind:
        found["kind"] = ["execute", "other"]
    if rng.random() < 0.1:
        found["until"] = rng.choice((NOW - timedelta(days=1), NOW + timedelta(days=1)))
    if kind == "tool" and rng.random() < 0.3:
        found["input"] = {"n": rng.choice((1, 2))}
    if rng.random() < 0.3:
        tables = [exception(rng, kind, allow=effect == "allow") for _ in range(rng.choice((1, 1, 2)))]
        found["unless"] = tables[0] if len(tables) == 1 else tables
    return found


def exception(rng: Random, kind: str, *, allow: bool) -> dict[str, Any]:
    """Draw one exception."""
    own = rng.choice((kind, kind, "", "tool") if kind else ("command", "path", "url", "", "tool"))
    found = {**resource(rng, own), **attributes(rng, allow=allow, spare=True)}
    if not found or rng.random() < 0.2:
        found["kind"] = rng.choice(RULE_KINDS)
    return found


def rule(rng: Random, effect: str = "") -> dict[str, Any]:
    """Draw a rule."""
    found = block(rng, effect)
    if found["effect"] == "allow" and not {"path", "command", "url", "tool"} & set(found):
        for key in ("opaque", "escalate"):
            if rng.random() < 0.4:
                found[key] = True
    if found["effect"] == "ask" and rng.random() < 0.3:
        found["remember"] = rng.choice(("never", "session", "project"))
    return found


def default(rng: Random) -> dict[str, Any]:
    """Draw a conditional default."""
    found = block(rng)
    if rng.random() < 0.3:
        found["delegate"] = True
    return found


def table(rng: Random, layer: int) -> dict[str, Any]:
    """Draw a whole file."""
    found: dict[str, Any] = {"version": 1}
    if rng.random() < 0.6:
        keys = rng.sample((*KINDS, "*", "*", "outside", "mcp"), rng.randint(1, 5))
        found["defaults"] = {key: rng.choice(("allow", "allow", "ask", "deny")) for key in keys}
        if rng.random() < 0.3:
            found["defaults"]["delegate"] = True
    if rng.random() < 0.3:
        found["default"] = [default(rng) for _ in range(rng.randint(1, 2))]
    found["rule"] = [rule(rng) for _ in range(rng.randint(0, 4))]
    if layer == 2 and rng.random() < 0.2:
        found["lock"] = {"refuse": rng.sample(("user.allow", "project.allow", "grants"), rng.randint(1, 2))}
    return found


def files(rng: Random) -> list[File]:
    """Draw the files of a policy, of all layers."""
    kinds = [rng.choice(((2, True), (1, True), (1, True), (0, True), (0, False))) for _ in range(rng.randint(0, 4))]
    return [(layer, trusted, table(rng, layer)) for layer, trusted in kinds]


def text(found: dict[str, Any]) -> bytes:
    """Return a file's table as TOML."""
    return tomli_w.dumps(found).encode()


def sources(all_files: list[File]) -> list[policy.PolicySource]:
    """Return the files as sources; names follow their place."""
    return [
        policy.PolicySource(f"{number}.toml", text(found), Layer(layer), trusted, root="/w" if layer == 0 else None)
        for number, (layer, trusted, found) in enumerate(all_files)
    ]


def load(all_files: list[File]) -> policy.Policy:
    """Load a policy from its files."""
    return policy.load(sources(all_files), home="/home/u", tmpdir="/tmp", version="0.1.0")


# ---- requests --------------------------------------------------------------------------------------


def ref(rng: Random) -> PathRef:
    """Draw a path, one in four through a link."""
    forms = tuple(rng.sample(FORMS, 2)) if rng.random() < 0.25 else (rng.choice(FORMS),)
    return PathRef(forms[0], forms, inside=all(form.startswith("/w/") for form in forms))


def command(rng: Random) -> SimpleCommand:
    """Draw a command, one in four with a word nobody can know."""
    words = [Word(word) for word in rng.choice(COMMANDS).split()]
    if rng.random() < 0.25:
        words.append(Word("$X", WordKind.UNKNOWN))
    return SimpleCommand(tuple(words), " ".join(word.text for word in words), cwd=("/w",))


def action(rng: Random) -> Action:
    """Draw one action."""
    kinds = frozenset(rng.sample(KINDS, rng.choice((1, 1, 1, 1, 1, 2))))
    name = rng.choice((None, *NAMES))
    args = rng.choice((None, {}, {"n": 1}))
    guarded = "policy" if rng.random() < 0.03 else ""
    inside = rng.random() < 0.85
    found = Action(
        kinds, name=name, args=args, guarded=guarded, cwd=("/w",) if inside else ("/etc",), cwd_inside=inside
    )
    match rng.choice(("path", "path", "command", "command", "url", "tool", "opaque", "bare", "mention")):
        case "path":
            return replace(found, path=ref(rng))
        case "command":
            return replace(found, kinds=kinds | {"execute"}, command=command(rng), idle=rng.random() < 0.15)
        case "url":
            return replace(found, url=parse(rng.choice(URLS)))
        case "tool":
            tool = rng.choice(NAMES)
            return replace(found, tool=tool, name=tool, mcp=tool.mcp)
        case "opaque":
            return replace(found, opaque="not understood", escalate=rng.choice(("", "", "sandbox")))
        case "mention":
            mention = replace(found, kinds=frozenset(), role=Role.MENTION)
            return (
                replace(mention, path=ref(rng)) if rng.random() < 0.7 else replace(mention, url=parse(rng.choice(URLS)))
            )
    return replace(found, mode=rng.choice(MODES), escalate=rng.choice(("", "", "sandbox")))


def request(rng: Random) -> Request:
    """Draw a request; an operand follows the command that carries it."""
    actions: list[Action] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        actions.append(action(rng))
        if actions[-1].command is not None and rng.random() < 0.4:
            kind = rng.choice(("read", "edit"))
            carrier = len(actions) - 1 if rng.random() < 0.8 else None
            actions.append(
                Action(frozenset({kind}), Role.OPERAND, path=ref(rng), name=actions[-1].name, carrier=carrier)
            )
    return Request("s", "c", "title", (), tuple(actions), menu=rng.random() < 0.05)


def context(rng: Random) -> Context:
    """Draw a session."""
    return Context(
        workspace=WORKSPACE,
        now=NOW,
        agent=Agent("claude", "1", "claude"),
        mode=rng.choice(MODES),
        interactive=rng.random() < 0.5,
        labels={"env": "ci"} if rng.random() < 0.3 else {},
        managed_labels={"env": "ci"} if rng.random() < 0.2 else {},
        broken="bad" if rng.random() < 0.03 else "",
        resolved=rng.random() < 0.95,
    )
