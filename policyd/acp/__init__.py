"""The ACP wire format, without I/O: framing, envelopes, strict decoding, choosing options, policyd's own messages.

    lines = Lines(); block = lines.feed(chunk)            # whole lines, newlines included
    streams(block) or runs(block, watched)                # a fast scan in C; the rest goes to `envelope`
    message = envelope(line)                              # method, id, params, result, error as raw bytes
    value = strict_object(message.params, names=…)        # unambiguous JSON, else ProtocolError
    answer(effect, options, …)                            # which option to answer with, if any

This is protocol version 1. Nothing here decides, remembers or sends.
"""

from __future__ import annotations

from policyd.acp import messages
from policyd.acp.answer import ALLOW_KINDS, REJECT_KINDS, Answer, answer, mislabelled, unsound
from policyd.acp.envelope import (
    Envelope,
    NotJsonError,
    claims,
    envelope,
    has_method,
    id_key,
    readable_id,
    session_of,
    update_call,
)
from policyd.acp.glance import UPDATE, runs, skim, streams, update_kind
from policyd.acp.json import NAMES, ProtocolError, strict, strict_object
from policyd.acp.lines import LIMIT, FrameLimitError, Lines

__all__ = [
    "ALLOW_KINDS",
    "LIMIT",
    "NAMES",
    "REJECT_KINDS",
    "UPDATE",
    "Answer",
    "Envelope",
    "FrameLimitError",
    "Lines",
    "NotJsonError",
    "ProtocolError",
    "answer",
    "claims",
    "envelope",
    "has_method",
    "id_key",
    "messages",
    "mislabelled",
    "readable_id",
    "runs",
    "session_of",
    "skim",
    "streams",
    "strict",
    "strict_object",
    "unsound",
    "update_call",
    "update_kind",
]
