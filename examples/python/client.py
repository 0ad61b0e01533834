"""A small client on the official SDK: starts an agent, sends it one prompt, prints what happens.

    client.py [--answer once|reject|ask] CWD PROMPT -- COMMAND [ARG …]

Every permission request that reaches it was neither allowed nor refused by policy: it is printed as ASK and
answered by a person on the terminal, or by `--answer`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import acp
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)


class TerminalClient:
    """Prints updates; asks the person at the terminal."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.titles: dict[str, str] = {}

    def on_connect(self, conn: Any) -> None:
        """The connection is used through `spawn_agent_process`."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Show the question and every option; answer by number, or as `--answer` says."""
        print(f"ASK    {tool_call.title}")
        for number, option in enumerate(options, 1):
            print(f"         {number}. {option.name}")
        chosen = await self.choose(options)
        print(f"         -> {chosen.name if chosen else 'cancelled'}")
        outcome: AllowedOutcome | DeniedOutcome = DeniedOutcome(outcome="cancelled")
        if chosen:
            outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def choose(self, options: list[PermissionOption]) -> PermissionOption | None:
        """Return the option meant, or None for `cancelled`."""
        if self.answer == "ask":
            try:
                text = await asyncio.to_thread(input, "         number: ")
            except EOFError:
                return None
            return options[int(text) - 1] if text.isdigit() and 0 < int(text) <= len(options) else None
        kind = "allow_once" if self.answer == "once" else "reject_once"
        return next((option for option in options if option.kind == kind), None)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Print each finished call with its title and its text; policyd's own note of a refusal says the same."""
        call_id = getattr(update, "tool_call_id", None)
        if call_id is None or call_id.startswith("policyd-"):
            return
        self.titles[call_id] = getattr(update, "title", None) or self.titles.get(call_id, call_id)
        if update.status in {"completed", "failed"}:
            word = "ALLOW" if update.status == "completed" else "DENY "
            print(f"{word}  {self.titles[call_id]}")
            for part in update.content or []:
                text = getattr(getattr(part, "content", None), "text", "") or ""
                for line in text.strip().splitlines():
                    print(f"         {line}")


async def run(cwd: str, prompt: str, command: list[str], answer: str) -> str:
    """Start `command`, send one prompt, and return the reason the turn stopped."""
    client = TerminalClient(answer)
    async with acp.spawn_agent_process(client, command[0], *command[1:]) as (agent, _process):  # type: ignore[arg-type]
        await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_info=Implementation(name="line-client", version="1.0.0")
        )
        session = await agent.new_session(cwd=cwd, mcp_servers=[])
        result = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
        return result.stop_reason


def main(argv: list[str]) -> int:
    """Read the words and run."""
    split = argv.index("--") if "--" in argv else len(argv)
    words, command = argv[:split], argv[split + 1 :]
    answer = "ask"
    if len(words) > 2 and words[0] == "--answer":
        answer, words = words[1], words[2:]
    if len(words) != 2 or not command or answer not in {"once", "reject", "ask"}:
        print(__doc__, file=sys.stderr)
        return 2
    reason = asyncio.run(run(os.path.abspath(words[0]), words[1], command, answer))
    print(f"turn ended: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
