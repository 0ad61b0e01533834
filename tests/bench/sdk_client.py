"""A client on the official SDK that answers every permission request alike: `sdk_client.py AGENT [ARG…]`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acp


class Fixed(acp.Client):
    """Says yes to everything, which is what the benchmark compares the answering of policyd with."""

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **more: Any) -> Any:  # type: ignore[override]
        """Choose the first option."""
        outcome = {"outcome": "selected", "optionId": options[0].option_id}
        return acp.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """Take no notice."""

    def on_connect(self, conn: Any) -> None:
        """Take no notice."""


async def main() -> None:
    """Open a session and prompt once."""
    client: Any = Fixed  # the other methods of the protocol are never called
    async with acp.spawn_agent_process(
        client(), sys.argv[1], *sys.argv[2:], transport_kwargs={"stderr": None}
    ) as found:
        connection, _ = found
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd="/tmp", mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])


asyncio.run(main())
