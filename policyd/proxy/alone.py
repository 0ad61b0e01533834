"""`policyd proxy` without an agent, as a conductor of proxy chains may start it: every request is refused.

A chain component forwards what it does not understand and may be bypassed when it fails; policyd decides, and must be
the last before the agent.
"""

from __future__ import annotations

import os

LAST = "put policyd last: policyd proxy -- AGENT"
UNKNOWN_METHOD = -32601


def answer_alone(usage: str) -> int:
    """Refuse every request until the input ends; exit code 2."""
    if os.isatty(0):
        os.write(2, usage.encode())
        return 2
    import json

    os.write(2, f"policyd proxy: no agent is named, so every request is refused; {LAST}\n".encode())
    with os.fdopen(0, "rb", closefd=False) as lines:
        for line in lines:
            if (ident := asked(line)) is not None:
                error = {"code": UNKNOWN_METHOD, "message": LAST, "data": {"details": LAST}}
                answer = json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}, separators=(",", ":"))
                os.write(1, answer.encode() + b"\n")
    return 2


def asked(line: bytes) -> object:
    """Return the id of a request, None for everything else."""
    import json

    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message.get("id") if isinstance(message, dict) and "method" in message else None
