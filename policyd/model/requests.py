"""Requests as actions, and the context in which they are judged."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from policyd.model.files import PathRef, Workspace
from policyd.model.shell import SimpleCommand
from policyd.model.words import Role


class Url(Struct, frozen=True, gc=False):
    """A URL, parsed and normalised."""

    text: str
    scheme: str
    host: str
    """Lower case, IDNA as ASCII, no trailing dot; brackets kept on IPv6."""
    port: int
    """The default of the scheme where none is written; 0 where the scheme has none."""
    paths: tuple[str, ...]
    """Every spelling of the path (dot segments folded, percent-decoded); each begins with `/`."""
    query: str = ""


class Tool(Struct, frozen=True, gc=False):
    """A tool by name: a built-in one, or every server and tool that a joined MCP name may mean."""

    name: str
    splits: tuple[tuple[str, str], ...] = ()
    """(server, tool) pairs; empty = a built-in tool."""

    @property
    def mcp(self) -> bool:
        """Whether it belongs to an MCP server."""
        return bool(self.splits)


class Mode(Struct, frozen=True, gc=False):
    """A session mode and what the agent's profile says of it."""

    name: str
    asking: bool = False
    unsafe: bool = True
    """An unknown mode is unsafe."""


class Action(Struct, frozen=True, gc=False):
    """One atomic thing a request would do: kinds and at most one resource."""

    kinds: frozenset[str]
    """Every kind ever stated or found; empty for a mention of unknown kind (any)."""
    role: Role = Role.PRIMARY
    path: PathRef | None = None
    command: SimpleCommand | None = None
    url: Url | None = None
    tool: Tool | None = None
    """The resource of an MCP call, or of a built-in call that has no other by nature."""
    opaque: str = ""
    """Why its resource is not known; an opaque action has no resource."""
    name: Tool | None = None
    """The tool of the request, an attribute of every action."""
    args: Mapping[str, object] | None = None
    """The call's arguments, for `input`; None = missing or incomplete."""
    cwd: tuple[str, ...] = ()
    """Where it runs: every form of every possible directory, normalised; empty = unknown."""
    cwd_inside: bool = False
    """Every possible cwd lies in the workspace."""
    strays: tuple[str, ...] = ()
    """Words of a command that name a path outside the workspace, as written."""
    within: tuple[PathRef | None, ...] = ()
    """Of a command: every file it names or writes (None = one that is not known)."""
    carrier: int | None = None
    """Index in the request's actions of the command whose allow carries this operand."""
    escalate: str = ""
    """The field that widens the agent's reach (sandbox off, extra permissions)."""
    mode: Mode | None = None
    """The mode a `switch_mode` leads to, if known."""
    guarded: str = ""
    """Which of policyd's own files it touches."""
    idle: bool = False
    """Needs no allow: only deny and ask rules judge it."""
    mcp: bool = False
    """Kind `other` for allow rules and defaults, whatever the agent says."""
    doubtful: bool = False
    """Only some interpretations of the request contain it: deny and ask rules match it as uncertain."""
    origin: str = ""
    """Where in the evidence it was found: `rawInput.command`, `locations[0].path`, …"""
    whole: str = ""
    """Of a command: the whole text it is part of, with operators, if that runs others too."""


class Option(Struct, frozen=True, gc=False, rename={"id": "optionId"}):
    """One option of a permission request."""

    id: str = ""
    name: str = ""
    kind: str = ""


class Request(Struct, frozen=True, gc=False):
    """One `session/request_permission` (or side-door call), as actions."""

    session_id: str
    call_id: str
    title: str
    options: tuple[Option, ...]
    actions: tuple[Action, ...]
    menu: bool = False
    """The options hold no single plain `allow_once`: a person must choose."""
    plain: str | None = None
    """Id of the option a profile names as the plain `allow_once` of exactly this set."""
    refusal: str | None = None
    """Id of the reject option a profile prefers (the turn goes on)."""
    side_door: str = ""
    """The ACP method, where the request is not `session/request_permission`."""
    shown: tuple[tuple[str, ...], ...] = ()
    """Path and texts of every diff that its calls show, from any message."""


class Agent(Struct, frozen=True, gc=False):
    """An agent as it, or `--agent`, names it: a claim."""

    name: str = ""
    """Wire name (`agentInfo.name`)."""
    version: str = ""
    profile: str = "generic"
    """Short name of the profile in force (`claude`, `codex`, …)."""
    family: str = ""
    """Short name of the profile it is a version of (`vibe` of `vibe-2`)."""


class Context(Struct, frozen=True, gc=False):
    """The facts about a session while a request is judged. Time is a field; no clock is read."""

    workspace: Workspace
    now: datetime
    """Aware, UTC."""
    agent: Agent = Agent()
    mode: Mode | None = None
    interactive: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    managed_labels: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    groups: tuple[str, ...] = ()
    broken: str = ""
    """Why everything in this session is at least ask (an invalid project policy)."""
    resolved: bool = True
    """Paths were resolved; False (library without a resolver): no `path` rule and no default allows."""
