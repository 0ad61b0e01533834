"""The MCP servers a client's request has the agent start: a command or a URL each, as actions.

The client asks for them, not the agent; what to do about them is left to the session. Both readings of a command and
its arguments count, as for `terminal/create`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyd.actions import guard, resources
from policyd.actions.builder import Builder, Surroundings
from policyd.actions.evidence import Evidence
from policyd.model import TABLE, Action, Tool

UNREAD = "an MCP server whose shape is not known"
OTHER = frozenset({"other"})


def started(method: str, params: Mapping[str, object], around: Surroundings) -> tuple[Action, ...]:
    """Return what the `mcpServers` of a request that opens a session would start."""
    servers = params.get("mcpServers")
    build = Builder(Evidence("", raw=params), around, Tool(method), params)
    if not isinstance(servers, list):
        build.opaque(UNREAD, OTHER, "mcpServers")
    for at, server in enumerate(servers if isinstance(servers, list) else []):
        _server(build, server if isinstance(server, TABLE) else {}, f"mcpServers[{at}]")
    return guard.mark(tuple(build.actions), around)


def _server(build: Builder, server: Mapping[str, object], origin: str) -> None:
    command, url = server.get("command"), server.get("url")
    home = build.bases()
    if command is not None:
        resources.vector_actions(build, command, server.get("args"), server.get("env"), origin, home, known=bool(home))
    if url is not None:
        build.url(url, frozenset({"fetch"}), origin)
    if command is None and url is None:
        build.opaque(UNREAD, OTHER, origin)
