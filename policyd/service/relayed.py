"""Relaying lines between `policyd proxy --connect` and the daemon: whole lines split into pieces that fit a message.

UTF-8 is sent as text, everything else as base64: lines arrive byte for byte.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

PROTOCOL = 1
FRAME = 8 * 1024 * 1024
"""Bytes of one message between policyd and a peer."""
PIECE = 1024 * 1024
"""Bytes of relayed lines in one message: escaped, they may take six times the room."""
HELLO = "_policyd/hello"
RELAY = "_policyd/relay"
RELAYED = "_policyd/relayed"
CHANGED = "_policyd/changed"


class PieceError(ValueError):
    """A relay message without readable lines."""


def pieces(data: bytes) -> Iterator[dict[str, object]]:
    """Cut whole lines into members of relay messages: `text`, else `base64`; `more` on all but the last."""
    for at in range(0, len(data) or 1, PIECE):
        piece = data[at : at + PIECE]
        more = {"more": True} if at + PIECE < len(data) else {}
        try:
            yield {"text": piece.decode("utf-8"), **more}
        except UnicodeDecodeError:
            yield {"base64": base64.b64encode(piece).decode("ascii"), **more}


def piece_of(params: Mapping[str, object]) -> bytes:
    """Return the bytes of one piece.

    Raises:
        PieceError: it holds neither `text` nor `base64`.
    """
    found, coded = params.get("text"), params.get("base64")
    if isinstance(found, str):
        return found.encode("utf-8")
    if isinstance(coded, str):
        try:
            return base64.b64decode(coded, validate=True)
        except ValueError:
            raise PieceError("`base64` cannot be read") from None
    raise PieceError("a relay message holds `text` or `base64`")
