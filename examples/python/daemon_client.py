"""An ACP client on the official SDK whose permission requests the policyd daemon answers.

    daemon_client.py SOCKET CWD PROMPT -- COMMAND [ARG …]        the daemon: policyd serve

Towards policyd it takes the agent's side of an ACP connection: what its agent sent it, it sends on. No daemon, or no
answer: rejected. `Daemon` needs nothing but asyncio and may be copied.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from typing import Any

import acp
from acp.schema import RequestPermissionResponse


class Daemon:
    """One connection to policyd."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.numbers = itertools.count(1)
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.reading = asyncio.create_task(self.read(reader))

    @classmethod
    async def connect(cls, path: str, name: str) -> Daemon:
        """Connect and say hello."""
        daemon = cls(*await asyncio.open_unix_connection(path, limit=2**24))
        await daemon.request("_policyd/hello", {"protocol": 1, "client": {"name": name}})
        return daemon

    async def request(self, method: str, params: object) -> Any:
        """Return the result of a request; raises if there is none."""
        if self.reading.done():
            raise ConnectionError("the daemon is gone")
        number = next(self.numbers)
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.write({"id": number, "method": method, "params": params})
        return await answer

    def write(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Hand answers to whoever waits for them; at the end, whatever ended it, nobody waits any more."""
        try:
            async for line in reader:
                message = json.loads(line)
                answer = self.waiting.pop(message["id"], None) if "method" not in message else None
                if answer and not answer.done():
                    answer.set_result(message.get("result"))
        finally:
            for answer in self.waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("the daemon is gone"))


class PolicedClient:
    """A client that asks the daemon instead of a person."""

    def __init__(self, daemon: Daemon | None) -> None:
        self.daemon = daemon

    def on_connect(self, conn: Any) -> None:
        """The connection is used through `spawn_agent_process`."""

    def observe(self, event: Any) -> None:
        """Send every message on as it was: modes, sessions, tool calls are evidence."""
        if self.daemon:
            direction = "a2c" if event.direction.value == "incoming" else "c2a"
            self.daemon.write({"method": "_policyd/observe", "params": {"dir": direction, "msg": event.message}})

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        """Answer as the daemon says."""
        asked = {
            "sessionId": session_id,
            "toolCall": tool_call.model_dump(mode="json", by_alias=True, exclude_none=True),
            "options": [option.model_dump(mode="json", by_alias=True, exclude_none=True) for option in options],
        }
        refusal = next((option.option_id for option in options if option.kind == "reject_once"), None)
        outcome: dict[str, Any] = {"outcome": "cancelled"}
        if refusal is not None:
            outcome = {"outcome": "selected", "optionId": refusal}
        try:
            if self.daemon:
                outcome = (await self.daemon.request("session/request_permission", asked))["outcome"]
        except (ConnectionError, TypeError, KeyError) as error:
            print(f"rejected: {error}")
        print(json.dumps({"asked": tool_call.title, "answer": outcome}))
        return RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Show nothing: this is about permissions."""


async def main(socket: str, cwd: str, prompt: str, command: list[str]) -> None:
    """Run one prompt."""
    try:
        daemon = await Daemon.connect(socket, "example")
    except OSError as error:
        daemon = None
        print(f"no policyd: {error}", file=sys.stderr)
    client = PolicedClient(daemon)
    async with acp.spawn_agent_process(client, *command, observers=[client.observe]) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=cwd, mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit("usage: daemon_client.py SOCKET CWD PROMPT -- COMMAND [ARG …]")
    place, folder, task = sys.argv[1:4]
    asyncio.run(main(place, os.path.abspath(folder), task, sys.argv[5:]))
