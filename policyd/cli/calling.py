"""One request to a running daemon, for commands that show its state or give it an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from policyd.storage import sockets
from policyd.storage.sockets import SocketError

LONGEST = 16 * 1024 * 1024


def asked(path: str, method: str, params: Mapping[str, object], *, by: str) -> dict[str, object]:
    """Return the answer of the daemon at `path` to one request; `by` is the command that asks.

    Raises:
        SocketError: there is none, it does not answer in time, or it refuses.
    """
    hello = {"protocol": 1, "client": {"name": by}}
    calls = (request(0, "_policyd/hello", hello), request(1, method, params))
    with sockets.connect(path) as one, one.makefile("rb") as answers:
        try:
            one.sendall(b"".join(calls))
            reply = read_answer(answers, 1)
        except ConnectionError as error:
            raise SocketError(f"the daemon at {path} closed the connection: {sockets.ENTRY}") from error
        except (OSError, ValueError) as error:
            raise SocketError(f"the daemon at {path} does not answer: {error}") from error
    result, refused = reply.get("result"), reply.get("error")
    if isinstance(result, dict):
        return result
    said = refused.get("message") if isinstance(refused, dict) else None
    raise SocketError(str(said or f"the daemon at {path} closed the connection: {sockets.ENTRY}"))


def request(ident: int, method: str, params: Mapping[str, object]) -> bytes:
    """Return one request as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode() + b"\n"


def read_answer(answers: IO[bytes], ident: int) -> dict[str, Any]:
    """Return the answer to a request, an empty table if the stream ends first."""
    for line in iter(lambda: answers.readline(LONGEST), b""):
        message = json.loads(line)
        if isinstance(message, dict) and message.get("id") == ident:
            return message
    return {}
