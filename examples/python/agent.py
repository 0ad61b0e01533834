"""A small real agent on the official SDK: does what each line of its prompt says, asking before each step.

A line is `run COMMAND`, `read PATH`, `edit PATH` or `fetch URL`. What is allowed is really done, in the
session's directory; what is refused is not. The answer's `_meta.policyd` is written back as text, so that the
person sees which rule applied.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from pathlib import Path
from typing import Any

import acp
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallLocation,
    ToolCallUpdate,
)

KINDS = {"run": "execute", "read": "read", "edit": "edit", "fetch": "fetch"}
FIELDS = {"run": "command", "read": "path", "edit": "path", "fetch": "url"}
OPTIONS = [
    PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
    PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]


class LineAgent:
    """Turns each line of a prompt into one tool call."""

    def __init__(self) -> None:
        self.folders: dict[str, Path] = {}
        self.numbers = itertools.count(1)
        self.client: Client

    def on_connect(self, conn: Client) -> None:
        """Remember the connection to the client."""
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Name this agent."""
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="line-agent", version="1.0.0"),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Open a session in `cwd`."""
        session_id = f"session-{len(self.folders) + 1}"
        self.folders[session_id] = Path(cwd)
        return NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        """Do what each line says, one after the other."""
        text = "\n".join(block.text for block in prompt if hasattr(block, "text"))
        for line in filter(None, map(str.strip, text.splitlines())):
            verb, _, rest = line.partition(" ")
            if verb in KINDS and rest:
                await self.step(session_id, verb, rest)
        return PromptResponse(stop_reason="end_turn")

    async def step(self, session_id: str, verb: str, what: str) -> None:
        """Announce one call, ask, and do it if the answer allows."""
        call_id = f"call-{next(self.numbers)}"
        folder = self.folders[session_id]
        places = [ToolCallLocation(path=str(folder / what))] if verb in {"read", "edit"} else None
        title = what if verb == "run" else f"{verb} {what}"
        start = acp.start_tool_call(
            call_id, title, kind=KINDS[verb], status="pending", raw_input={FIELDS[verb]: what}, locations=places
        )
        await self.client.session_update(session_id, start)
        call = ToolCallUpdate(
            tool_call_id=call_id, title=title, kind=KINDS[verb], raw_input={FIELDS[verb]: what}, locations=places
        )
        answer = await self.client.request_permission(session_id, call, OPTIONS)
        outcome = answer.outcome
        allowed = isinstance(outcome, AllowedOutcome) and outcome.option_id in {"once", "always"}
        said = (answer.field_meta or {}).get("policyd", {})
        result = await asyncio.to_thread(attempt, verb, what, folder) if allowed else ""
        texts = filter(None, [spoken(said), result])
        update = acp.update_tool_call(
            call_id,
            status="completed" if allowed else "failed",
            content=[acp.tool_content(acp.text_block(text)) for text in texts],
        )
        await self.client.session_update(session_id, update)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Nothing runs in the background here."""


def spoken(said: dict[str, Any]) -> str:
    """Return what policyd said beside its answer."""
    return f"policyd: {said['reason']}" if said.get("reason") else ""


def attempt(verb: str, what: str, folder: Path) -> str:
    """Carry out one allowed step and return what it printed, or why it failed."""
    try:
        return do(verb, what, folder)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return str(error)


def do(verb: str, what: str, folder: Path) -> str:
    """Carry out one allowed step and return what it printed."""
    if verb == "run":
        done = subprocess.run(["bash", "-c", what], cwd=folder, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr
    if verb == "read":
        return (folder / what).read_text()
    if verb == "edit":
        (folder / what).write_text("edited\n")
        return f"wrote {what}"
    return f"would fetch {what}"


if __name__ == "__main__":
    asyncio.run(acp.run_agent(LineAgent()))  # type: ignore[arg-type]
