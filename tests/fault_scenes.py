"""Requests, allowed and refused, that together touch every kind of condition: what `tests/faults.py` makes fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from policyd import commands, engine, paths, policy, urls
from policyd.model import Action, Agent, Context, Decision, Effect, Layer, Mode, PathRef, Reach, Request, Role, Tool
from tests.fakes import FakeFilesystem

POLICY = """
[defaults]
"*" = "ask"
think = "allow"
outside = "ask"
[[default]]
tool = "notes/*"
effect = "allow"
[[rule]]
effect = "allow"
kind = ["read", "search", "edit"]
path = ["src/**", "*.md", "/srv/{a,b}/**"]
unless = { path = ["**/.env", "src/private/**"] }
[[rule]]
effect = "allow"
command = ["git {status,log} **", "@read-only", "make **"]
env = ["CI"]
unless = { command = "git log --output" }
[[rule]]
effect = "allow"
command = "rm **"
within = "build/**"
cwd = "**"
[[rule]]
effect = "allow"
url = ["*.python.org", "https://docs.rs/**"]
[[rule]]
effect = "allow"
tool = ["jira/get_*", "Bash"]
input = { id = "A-*" }
agent = "claude@0.*"
mode = ["plan", "@asking"]
label = { env = "ci" }
user = "dev"
until = 2030-01-01T00:00:00Z
[[rule]]
effect = "allow"
kind = "_odd"
opaque = true
escalate = true
mode = "plan"
[[rule]]
effect = "deny"
path = ["@secrets", "secrets/**"]
unless = [{ path = "**/.env.example" }, { tool = "Sealer" }]
[[rule]]
effect = "deny"
command = ["git push", "@destructive"]
unless = { command = "rm build/*", within = "build/**" }
[[rule]]
effect = "ask"
tool = "jira/delete_*"
input = { force = true }
[[rule]]
effect = "deny"
url = "*.evil.test"
interactive = true
"""
FS = FakeFilesystem({"/w/src/a.py": "", "/w/build/x": "", "/w/README.md": ""}, links={"/w/src/lib": "/w/src"})


def loaded() -> policy.Policy:
    """Load the policy of the scenes."""
    source = policy.PolicySource("scenes.toml", POLICY.encode(), Layer.USER)
    return policy.load([source], home="/home/dev", tmpdir="/tmp", fs=FS, version="0.1.0")


def context(rules: policy.Policy, mode: Mode | None) -> Context:
    """Open the session of the scenes."""
    workspace = paths.open_workspace("/w", (), home="/home/dev", fs=FS, heads=rules.heads)
    return Context(
        workspace,
        datetime(2026, 11, 29, tzinfo=UTC),
        Agent("Claude", "0.9", "claude"),
        mode=mode,
        labels={"env": "ci"},
        user="dev",
        groups=("dev",),
    )


ALLOWED = ("read_file", "run_commands", "run_below", "fetch", "call_tool", "note", "think", "odd", "mentions")
REFUSED = ("read_secret", "push", "forget", "evil")


def scenes() -> Iterator[Callable[[], Decision]]:
    """Yield decisions, each from text to answer: those of `ALLOWED`, then those of `REFUSED`."""
    rules = loaded()
    plain = context(rules, Mode("plan", asking=True, unsafe=False))
    for name in (*ALLOWED, *REFUSED):
        read: Callable[[Context], tuple[Action, ...]] = globals()[name]

        def decide(read: Callable[[Context], tuple[Action, ...]] = read) -> Decision:
            return engine.decide(Request("s", "c", "t", (), read(plain)), rules, plain, FS)

        yield decide


def allows(answer: Decision | None) -> bool:
    """Say whether a decision lets the agent go on."""
    return answer is not None and answer.effect is Effect.ALLOW


def here(kind: str) -> Action:
    """Return an action in the workspace."""
    return Action(frozenset({kind}), cwd=("/w",), cwd_inside=True)


def at(text: str, plain: Context, reach: Reach = Reach.ENTRY) -> PathRef:
    """Return a path of the workspace."""
    return paths.ref(text, base=("/w",), workspace=plain.workspace, fs=FS, reach=reach)


def read_file(plain: Context) -> tuple[Action, ...]:
    """A file, a file through a link, a directory, a file elsewhere."""
    names = ("src/a.py", "src/lib/a.py", "/srv/a/x", "README.md")
    found = tuple(replace(here("read"), path=at(name, plain)) for name in names)
    return (*found, replace(here("search"), path=at("src", plain)))


def run_commands(plain: Context) -> tuple[Action, ...]:
    """Two commands with a file, as the shell reader gives them."""
    reading = commands.read("CI=1 git log -3 && cat src/a.py", cwd=("/w",), home="/home/dev", fs=FS)
    assert not reading.opaque
    actions = [replace(here("execute"), command=command) for command in reading.commands]
    for use in reading.files:
        path = at(use.word.text, plain, use.reach)
        actions.append(replace(here(use.kind), role=use.role, path=path, carrier=use.command if use.carried else None))
    return tuple(actions)


def run_below(plain: Context) -> tuple[Action, ...]:
    """A command that may name files of one directory only."""
    reading = commands.read("rm build/x", cwd=("/w",), home="/home/dev", fs=FS)
    (command,) = reading.commands
    return (replace(here("execute"), command=command, within=(at("build/x", plain),)),)


def fetch(_: Context) -> tuple[Action, ...]:
    """Two pages."""
    return tuple(
        replace(here("fetch"), url=urls.parse(url)) for url in ("https://docs.python.org/3/", "https://docs.rs/x")
    )


def call_tool(_: Context) -> tuple[Action, ...]:
    """An MCP call by its joined name."""
    tool = Tool("mcp__jira__get_issue", (("jira", "get_issue"),))
    return (replace(here("other"), tool=tool, name=tool, mcp=True, args={"id": "A-1"}),)


def note(_: Context) -> tuple[Action, ...]:
    """An MCP call that a default allows."""
    return (replace(here("other"), tool=Tool("notes/add", (("notes", "add"),)), mcp=True),)


def think(_: Context) -> tuple[Action, ...]:
    """A thought."""
    return (here("think"),)


def odd(_: Context) -> tuple[Action, ...]:
    """What nobody understood, under a rule that says so, and a request to leave the sandbox."""
    return replace(here("_odd"), opaque="an open quote"), replace(here("_odd"), escalate="no sandbox")


def mentions(plain: Context) -> tuple[Action, ...]:
    """A command that names a file nobody knows the use of."""
    reading = commands.read("make src/a.py", cwd=("/w",), home="/home/dev", fs=FS)
    (command,) = reading.commands
    mention = Action(frozenset(), Role.MENTION, path=at("src/a.py", plain))
    return replace(here("execute"), command=command), mention


def read_secret(plain: Context) -> tuple[Action, ...]:
    """A file that a strict rule names, read and mentioned."""
    mention = Action(frozenset(), Role.MENTION, path=at("secrets/k", plain))
    return replace(here("read"), path=at("src/.env", plain)), mention


def push(_: Context) -> tuple[Action, ...]:
    """Commands that strict rules name, behind wrappers and a word nobody knows."""
    reading = commands.read("git status && sudo git -C . push -uf $X", cwd=("/w",), home="/home/dev", fs=FS)
    return tuple(replace(here("execute"), command=command) for command in reading.commands)


def forget(_: Context) -> tuple[Action, ...]:
    """An MCP call a rule asks about, with and without its arguments."""
    tool = Tool("jira/delete_issue", (("jira", "delete_issue"),))
    call = replace(here("other"), tool=tool, mcp=True)
    return replace(call, args={"force": True}), call


def evil(_: Context) -> tuple[Action, ...]:
    """A page that a strict rule names while a prompt is configured, as one of two."""
    return tuple(replace(here("fetch"), url=urls.parse(url)) for url in ("https://docs.rs/x", "https://a.evil.test/"))
