"""One connection to the daemon: messages out, messages in; any error is a `LostError`."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping

from policyd.acp import Lines
from policyd.service.relayed import FRAME, PROTOCOL
from policyd.storage.sockets import ENTRY

BLOCK = 64 * 1024


class LostError(Exception):
    """The daemon is lost, and why."""


class Link:
    """One connection to the daemon."""

    def __init__(self, one: socket.socket) -> None:
        """Take over a connected socket."""
        one.setblocking(False)
        self.socket = one
        self._lines = Lines(FRAME)
        self._out = bytearray()
        self._heard = False
        """Whether a message came: who was turned away hears none."""

    @property
    def waits(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._out)

    def send(self, method: str, params: Mapping[str, object], ident: int | None = None) -> None:
        """Send a message; LostError if nobody reads."""
        lead = {} if ident is None else {"id": ident}
        body = {"jsonrpc": "2.0", **lead, "method": method, "params": params}
        self._out += json.dumps(body, ensure_ascii=False).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as it goes; LostError if nobody reads."""
        try:
            while self._out:
                del self._out[: self.socket.send(memoryview(self._out)[: 4 * BLOCK])]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise self._broken(error.strerror or "the connection broke") from error

    def _broken(self, why: str) -> LostError:
        return LostError(why if self._heard else f"{why}; {ENTRY}")

    def read(self) -> list[dict[str, object]]:
        """Return the messages that came; LostError at the end."""
        try:
            data = self.socket.recv(4 * BLOCK)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError as error:
            raise self._broken(error.strerror or "the connection broke") from error
        if not data:
            raise self._broken("it ended")
        try:
            found = [json.loads(line) for line in self._lines.feed(data).split(b"\n") if line]
        except (ValueError, RecursionError) as error:  # too long a line among them
            raise LostError(f"it sent what cannot be read: {error}") from error
        self._heard = self._heard or bool(found)
        return [one for one in found if isinstance(one, dict)]


def check_hello(message: Mapping[str, object]) -> str:
    """Return the revision the answer to a hello names; LostError if the daemon does not take us."""
    result = message.get("result")
    if not isinstance(result, dict):
        error = message.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        raise LostError(f"it refused: {said}")
    if result.get("protocol") != PROTOCOL:
        raise LostError(f"it speaks protocol {str(result.get('protocol'))[:20]}, not {PROTOCOL}")
    return str(result.get("revision") or "")
