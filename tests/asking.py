"""Builders for what the prompt and grant tests ask about: actions, requests and decisions that ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from policyd.grants import Clock, Grant, Offer, Project, offers
from policyd.model import (
    Action,
    Agent,
    Assignment,
    Context,
    Decision,
    Effect,
    Judged,
    Layer,
    Option,
    PathRef,
    Request,
    Role,
    RuleRef,
    SimpleCommand,
    Source,
    Tool,
    Url,
    Word,
    Workspace,
)

ROOT = "/work/project"
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
CLOCK = Clock(NOW, 1000.0, "boot-1")
OPTIONS = (
    Option("proceed_always", "Allow for this session", "allow_always"),
    Option("proceed_once", "Allow once", "allow_once"),
    Option("cancel", "No", "reject_once"),
)
ASKS = RuleRef(Layer.USER, "asks", Effect.ASK, file="user.toml", line=7, remember="project")


def run(*words: str, cwd: str = ROOT, env: Mapping[str, str] | None = None, **more: object) -> Action:
    """A command with constant words."""
    assigned = tuple(Assignment(name, Word(value)) for name, value in (env or {}).items())
    command = SimpleCommand(tuple(map(Word, words)), " ".join(words), env=assigned, cwd=(cwd,))
    action = Action(frozenset({"execute"}), command=command, cwd=(cwd,), cwd_inside=cwd.startswith(ROOT))
    return replace(action, **more)


def touch(kind: str, path: str, *, role: Role = Role.PRIMARY, **more: object) -> Action:
    """Something done to one path."""
    kinds = frozenset() if role is Role.MENTION else frozenset({kind})
    action = Action(kinds, role=role, path=PathRef(path, (path,), inside=path.startswith(ROOT)))
    return replace(action, **more)


def fetch(host: str, path: str = "/", **more: object) -> Action:
    """A URL fetched."""
    text = f"https://{host}{path}"
    action = Action(frozenset({"fetch"}), url=Url(text, "https", host, 443, (path,)))
    return replace(action, **more)


def call(server: str, tool: str, args: Mapping[str, object] | None = None, **more: object) -> Action:
    """A call of an MCP tool."""
    known = Tool(f"mcp__{server}__{tool}", ((server, tool),))
    action = Action(frozenset({"other"}), tool=known, args={} if args is None else args, mcp=True)
    return replace(action, **more)


def request(*actions: Action, session: str = "s1", call_id: str = "c1", **more: object) -> Request:
    """A request for `actions` with the usual three options."""
    return replace(Request(session, call_id, "a title", OPTIONS, actions), **more)


def context(agent: str = "claude-code", cwd: str = ROOT) -> Context:
    """A session of `agent` in the project."""
    return Context(Workspace(cwd, (cwd,), (cwd,), home="/home/dev"), NOW, agent=Agent(agent, "1.0", "claude"))


def asked(action: Action, rule: RuleRef = ASKS) -> Judged:
    """`action` judged as an ask by `rule`."""
    return Judged(action, Effect.ASK, hits=(rule,))


def decision(asking: Request, rule: RuleRef = ASKS, **more: object) -> Decision:
    """A decision that asks about every action of `asking`."""
    actions = tuple(asked(action, rule) for action in asking.actions)
    found = Decision(Effect.ASK, Source.RULE, "user:asks asks", (rule,), (rule,), actions, remember=rule.remember)
    return replace(found, **more)


RUN = "this-process"


def offered(asking: Request, where: Context | None = None, **more: object) -> tuple[Offer, ...]:
    """What may be remembered of `asking`, asked about by one rule."""
    return offers(asking, decision(asking), where or context(), root=ROOT, **more)  # type: ignore[arg-type]


def grant(asking: Request, *, scope: str = "project", effect: Effect = Effect.ALLOW, general: bool = False) -> Grant:
    """The grant a person would give by the offer of this kind."""
    found = [one for one in offered(asking) if (one.effect, one.general) == (effect, general) and one.scope == scope]
    assert len(found) == 1, offered(asking)
    return found[0].grant(clock=CLOCK, session=asking.session_id, run=RUN, by="client", client="zed")


ASKED = {
    "a command": request(run("npm", "test")),
    "a command elsewhere": request(run("make", cwd=f"{ROOT}/sub")),
    "a command with assignments": request(run("make", env={"CI": "1", "A": ""})),
    "an odd word": request(run("echo", "it's $HOME * \n ✓", "")),
    "a compound": request(run("a"), run("b"), touch("edit", f"{ROOT}/out", role=Role.REDIRECT)),
    "an edit": request(touch("edit", f"{ROOT}/src/a.py")),
    "an outside path": request(touch("read", "/usr/share/dict/words")),
    "a URL": request(fetch("docs.python.org", "/3/library")),
    "a tool": request(call("jira", "get", {"key": "A-1", "deep": {"b": [1, None, "x"]}})),
    "a mention": request(run("grep", "x"), touch("", f"{ROOT}/.env", role=Role.MENTION)),
    "two kinds": request(replace(touch("edit", f"{ROOT}/a"), kinds=frozenset({"edit", "other"}))),
}


PROJECT = Project(ROOT, 2049, 77)


GRANTS = tuple(
    dict.fromkeys(
        grant(asking, scope=scope, effect=effect)
        for asking in ASKED.values()
        for scope, effect in (("session", Effect.ALLOW), ("project", Effect.ALLOW), ("project", Effect.DENY))
    )
)
