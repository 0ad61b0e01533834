"""What a call of the client's `fs/*` or `terminal/create` would do.

Here the protocol says what a field means, whoever the agent is: no profile reads them. What it does not know is opaque.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyd.actions import guard, resources
from policyd.actions.builder import MENTIONING, Builder, Surroundings
from policyd.actions.evidence import Evidence
from policyd.actions.fields import Found
from policyd.model import Action, Tool

TERMINAL = "terminal/create"
KINDS = {"fs/read_text_file": frozenset({"read"}), "fs/write_text_file": frozenset({"edit"})}
SIDE_DOORS = (*KINDS, TERMINAL)
FIELDS = frozenset(
    {"sessionId", "_meta", "path", "content", "line", "limit", "command", "args", "env", "cwd", "outputByteLimit"}
)
"""What the protocol knows of them."""


def door_actions(method: str, params: Mapping[str, object], around: Surroundings) -> tuple[Action, ...]:
    """Return every action the call stands for; never empty."""
    build = Builder(Evidence("", raw=params), around, Tool(method), params)
    if method == TERMINAL:
        _terminal(build, params)
    elif method in KINDS:
        build.path(params.get("path"), KINDS[method], "path")
    for key in params.keys() - FIELDS:
        if params[key] and isinstance(params[key], MENTIONING):
            build.opaque(f"`{key}` of `{method}` is not known", frozenset({"other"}), key)
            build.mentions(params[key], key, key)
    if not build.actions:
        build.opaque(f"`{method}` is not known", frozenset({"other"}))
    return guard.mark(tuple(build.actions), around)


def _terminal(build: Builder, params: Mapping[str, object]) -> None:
    command, args, env, cwd = (params.get(key) for key in ("command", "args", "env", "cwd"))
    places, known = build.bases(), bool(build.bases())
    if cwd not in ("", None):
        places, known = resources.resolve_cwd(build, [Found(cwd, "cwd")])
    resources.vector_actions(build, command, args, env, "command", places, known=known, doubtful=False)
