"""Audit records: building, masking and chaining them as lines. Pure; `policyd.storage.auditlog` writes them.

    row = record(decision, request, context, id=…, client=…, option=…, outcome=…, by=…, latency_ms=…)
    row = event("reload", now, revision=…)
    data = line(body(row), seq, prev); prev = digest(data)
    mask(text)                                    # for anything else that is stored or shown

Every field is data an agent may have chosen: masked, cut to size and escaped here, so that no reader of the log can
be fooled by a line and no secret is kept.
"""

from __future__ import annotations

from policyd.audit.actionrows import action_row
from policyd.audit.lines import FIRST, LINE_LIMIT, body, broken, digest, line, link
from policyd.audit.masks import mask, mask_words
from policyd.audit.record import SCHEMA, event, record, timestamp

__all__ = [
    "FIRST",
    "LINE_LIMIT",
    "SCHEMA",
    "action_row",
    "body",
    "broken",
    "digest",
    "event",
    "line",
    "link",
    "mask",
    "mask_words",
    "record",
    "timestamp",
]
