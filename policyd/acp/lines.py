"""Framing: lines end only at byte 0x0A. CR, U+2028, U+0085, VT and FF are ordinary bytes of a line.

The cost is linear in the bytes fed, whatever the chunks: an incomplete line is kept as a list of chunks.
"""

from __future__ import annotations

LIMIT = 64 * 1024 * 1024


class FrameLimitError(ValueError):
    """A line is longer than the limit: the stream cannot be followed any further."""


class Lines:
    """One direction of a connection, cut into whole lines."""

    __slots__ = ("_kept", "_limit", "_parts")

    def __init__(self, limit: int = LIMIT) -> None:
        """Keep at most `limit` bytes of one line, newline not counted."""
        self._limit = limit
        self._parts: list[bytes] = []
        self._kept = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes as they came; return the whole lines now complete, newlines included (`b""` if none).

        Raises:
            FrameLimitError: a line exceeds the limit; nothing of it is ever returned.
        """
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return b""
        first = self._kept + chunk.index(b"\n")
        if first > self._limit or (end > self._limit and _longest(chunk[:end]) > self._limit):
            raise FrameLimitError(f"a line is longer than {self._limit} bytes")
        block = b"".join((*self._parts, memoryview(chunk)[:end])) if self._parts else chunk[:end]
        self._parts, self._kept = [], 0
        if end < len(chunk):
            self._keep(chunk[end:])
        return block

    def finish(self) -> bytes:
        """Return what the stream ended with: a last line that has no newline, or `b""`."""
        rest = b"".join(self._parts)
        self._parts, self._kept = [], 0
        return rest

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._kept += len(part)
        if self._kept > self._limit:
            raise FrameLimitError(f"a line is longer than {self._limit} bytes")
        self._parts.append(part)


def _longest(block: bytes) -> int:
    return max(len(line) for line in block.split(b"\n"))
