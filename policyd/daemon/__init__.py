"""`policyd serve`: one policyd for all agents of a user or a machine, on a socket or standard input and output.

    serve(Options(...)) -> exit code

An embedder speaks ACP with the roles swapped (`wire`), `policyd proxy --connect` relays lines (`relay`); each
connection has an enforcement of its own over policies, grants, audit log and prompt programs that all share.

Exit codes: 0 ended normally; 2 usage, settings, policy, or the socket is unavailable.
"""

from __future__ import annotations

from policyd.daemon.serve import Options, serve

__all__ = ["Options", "serve"]
