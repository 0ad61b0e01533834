"""The audit record (`schema = 1`): one flat fact a decision, and the line it becomes.

Rules of this module:

1. A record is plain JSON data and is masked when it leaves `record` or `event`: nothing unmasked reaches storage.
2. A line is one JSON object of at most 16 KiB, free of raw control and format characters. What was cut says so and
   by how much; of a record too long for a line a digest stays.
3. Each line carries its sequence number and the SHA-256 of the line before it; `broken` says what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

import msgspec

from policyd.audit import masks
from policyd.audit.actionrows import action_row
from policyd.digest import sha256
from policyd.model import KINDS, Context, Decision, Judged, Request, RuleRef, Tool

SCHEMA = 1
KNOWN = frozenset(KINDS)
TEXT_LIMIT = 2048
"""Characters kept of one string."""
LIST_LIMIT = 200
"""Entries kept of one list."""
RULES_LISTED = 50
"""Rules that are listed by name."""
ACTIONS_LISTED = 100
"""Actions that are listed."""
LONGEST_MASKED = 16 * 1024
"""Characters of one string that are searched for secrets; what is cut before lies far from what is kept."""
SEARCHED = 40 * 1024
"""Characters of one member of a record that are searched for secrets; longer texts behind them are not kept."""
SHORT = 64
"""Characters of a text that is always searched, and kept."""
VALUES_LISTED = 5_000
"""Values of one member of a record that are kept."""
SECRETS_KEPT = 64
"""Secrets of one record that are looked for in all its fields."""
LINE_LIMIT = 16 * 1024
"""Bytes of one line, newline included."""
FIRST = "0" * 64
"""`prev` of the first line of a chain."""


def record(
    decision: Decision,
    request: Request | None,
    context: Context,
    *,
    id: str,  # noqa: A002 - the name of the field
    client: Mapping[str, str] | None = None,
    option: str | None = None,
    outcome: str = "",
    by: str = "policy",
    latency_ms: float | None = None,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the record of one decision, masked.

    Args:
        request: None for a message that was no request at all.
        id: the decision's id, unique.
        client: `name` and `version` as the client states them.
        option: the id of the option answered.
        outcome: `selected`, `cancelled`, `error`, `passed`.
        by: who answered: `policy`, `client`, `command:/path`, `inbox`, `grant`.
        latency_ms: from the request's arrival to its answer.
        extra: further fields; none may replace one of the above.
    """
    agent = context.agent
    row: dict[str, object] = {
        "schema": SCHEMA,
        "event": "decision",
        "id": id,
        "time": timestamp(context.now),
        "user": context.user,
        "agent": {"name": agent.name, "version": agent.version, "profile": agent.profile},
        "client": dict(client or {}),
        "session": request.session_id if request else "",
        "cwd": context.workspace.cwd,
        "call": request.call_id if request else "",
        "title": request.title if request else "",
        "kind": request_kind(request),
    }
    add_decision(row, decision)
    row["outcome"], row["option"], row["by"] = outcome, option, by
    row["latency_ms"] = None if latency_ms is None else round(latency_ms, 3)
    row["revision"] = decision.revision
    add_session(row, context)
    if request:
        add_request(row, request)
    return tidy({**extra, **row} if extra else row)


def add_decision(row: dict[str, object], decision: Decision) -> None:
    """Add what was decided, by which rules, of which actions."""
    row["effect"], row["source"] = decision.effect.word, str(decision.source)
    row["rules"] = [rule_row(rule) for rule in decision.rules[:RULES_LISTED]]
    row["reason"] = decision.reason
    row["actions"] = [judged_row(judged) for judged in decision.actions[:ACTIONS_LISTED]]
    if others := others_of(decision):
        row["matched"] = others
    if len(decision.actions) > ACTIONS_LISTED:
        row["actions_cut"] = len(decision.actions) - ACTIONS_LISTED
    if len(decision.rules) > RULES_LISTED:
        row["rules_cut"] = len(decision.rules) - RULES_LISTED


def add_session(row: dict[str, object], context: Context) -> None:
    """Add what else rules may ask about the session, where it is not the usual."""
    space = context.workspace
    if context.mode:
        row["mode"] = context.mode.name
    if context.labels or context.managed_labels:
        row["labels"] = {**context.labels, **context.managed_labels}
    if space.roots != ((space.cwd,) if space.cwd else ()):
        row["roots"] = list(space.roots)
    if space.sound != space.roots:
        row["sound"] = list(space.sound)
    if context.interactive:
        row["interactive"] = True
    if context.managed_labels:
        row["managed_labels"] = list(context.managed_labels)


def add_request(row: dict[str, object], request: Request) -> None:
    """Add what an answer depends on beside the actions: the door, the options, the tool's name."""
    if request.side_door:
        row["door"] = request.side_door
    elif request.options:
        row["offered"] = [[option.id, option.kind] for option in request.options]
    if request.menu:
        row["menu"] = True
    if request.plain is not None:
        row["plain"] = request.plain
    if request.refusal is not None:
        row["refusal"] = request.refusal
    names = [action.name for action in request.actions if action.name]
    if names:
        called = names[0]
        row["called"] = tool_row(called)
        add_others(row, request, called)


def add_others(row: Mapping[str, object], request: Request, called: Tool) -> None:
    """Add to actions of calls of another tool which tool that is: a request may stand for several calls."""
    listed = row["actions"]
    for one, action in zip(listed if isinstance(listed, list) else (), request.actions, strict=False):
        if action.name is not called and action.name != called:
            one["called"] = tool_row(action.name) if action.name else None


def tool_row(tool: Tool) -> dict[str, object]:
    """Return a tool with every server and name it may mean."""
    return {"tool": tool.name, "splits": [list(pair) for pair in tool.splits]}


def event(name: str, now: datetime, **fields: object) -> dict[str, object]:
    """Return the record of something that is no decision (`start`, `reload`, `unasked`, `gap`, …), masked."""
    return tidy({"schema": SCHEMA, "event": name, "time": timestamp(now), **fields})


def timestamp(moment: datetime) -> str:
    """Return an aware time as UTC with microseconds."""
    universal = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return universal.isoformat(timespec="microseconds")[:-6] + "Z"


def request_kind(request: Request | None) -> str:
    """Return the kind of the request's first action that states one."""
    for action in request.actions if request else ():
        if known := action.kinds & KNOWN:
            return next(iter(known)) if len(known) == 1 else next(kind for kind in KINDS if kind in known)
    return ""


def others_of(decision: Decision) -> list[str]:
    """Return the rules that matched and did not decide."""
    if not decision.matched:
        return []
    deciding = decision.rules if len(decision.rules) < 4 else frozenset(decision.rules)
    return labels_of([rule for rule in decision.matched if rule not in deciding])


def labels_of(rules: Sequence[RuleRef]) -> list[str]:
    """Return the names of rules; of very many the first, and how many more."""
    names = [rule.label for rule in rules[:RULES_LISTED]]
    return names if len(rules) <= RULES_LISTED else [*names, f"[{len(rules) - RULES_LISTED} more]"]


def rule_row(rule: RuleRef) -> dict[str, object]:
    """Return a rule as records name it."""
    row: dict[str, object] = {"rule": rule.label, "effect": rule.effect.word}
    if rule.file:
        row["file"], row["line"] = rule.file, rule.line
    return row


def judged_row(judged: Judged) -> dict[str, object]:
    """Return one action with what was decided of it."""
    row = action_row(judged.action)
    row["effect"] = judged.effect.word
    if spoke := (*judged.hits, *judged.possible, *judged.defaults):
        row["rules"] = labels_of(spoke)
    if judged.floors:
        row["floors"] = list(judged.floors)
    if judged.granted is not None:
        row["granted"] = judged.granted.word
    return row


# ---- masking and cutting ---------------------------------------------------------------------------


def tidy(row: dict[str, object]) -> dict[str, object]:
    """Return `row` with secrets masked and long parts cut; the usual row, which has neither, is returned as it is."""
    data = whole(row)
    if data is not None and len(data) <= TEXT_LIMIT * 2 and not masks.suspicious_json(data):
        return row
    found = Findings()
    cleaned = found.clean_row(row)
    if found.secrets:
        cleaned = found.clean_row(row)  # again: what one field showed to be secret is masked in all of them
    if found.kinds:
        cleaned["masked"] = sorted(found.kinds)
    return cleaned


def whole(row: Mapping[str, object]) -> bytes | None:
    """Return `row` as plain ASCII JSON, None where it is not that simple."""
    try:
        data = msgspec.json.encode(row)
    except (UnicodeEncodeError, TypeError):
        return None
    return data if data.isascii() else None


class Findings:
    """The secrets of one record."""

    def __init__(self) -> None:
        """Start with none."""
        self.secrets: dict[str, str] = {}
        self.kinds: set[str] = set()
        self._spans: dict[str, Sequence[masks.Span]] = {}
        """Text -> where its secrets stand: the same names and paths stand in a record many times."""
        self._room = SEARCHED
        self._values = VALUES_LISTED

    def clean_row(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the members of a record cleaned, each as if it were the only one to be long."""
        cleaned: dict[str, object] = {}
        for name, value in row.items():
            self._room, self._values = SEARCHED, VALUES_LISTED
            cleaned[self.clean_text(name, "")] = self.clean(value, name)
        return cleaned

    def clean(self, value: object, key: str = "") -> object:
        """Return `value` masked and cut. `key` is the name it stands under."""
        self._values -= 1
        if self._values < 0 and not isinstance(value, int | float | None):
            return "[cut]"
        if isinstance(value, str):
            return self.clean_text(value, key)
        if isinstance(value, Mapping):
            items = list(value.items())[:LIST_LIMIT]
            return {self.clean_text(str(name), ""): self.clean(item, str(name)) for name, item in items}
        if isinstance(value, Sequence):
            return self.clean_list(value, key)
        return value if isinstance(value, int | float | None) else self.clean_text(str(value), key)

    def clean_list(self, values: Sequence[object], key: str) -> list[object]:
        """Return the entries cleaned; the words of a command are judged together."""
        kept = values[:LIST_LIMIT]
        if key == "command":
            words = [masks.clean(cut(str(word), LONGEST_MASKED)) for word in kept]
            words = [word if self._fits(word) else f"[cut {len(word)} characters]" for word in words]
            for kind, secret in masks.find_words(words):
                self.learn(secret, kind)
            cleaned: list[object] = [self.without_known(word) for word in masks.mask_words(words)]
        else:
            cleaned = [self.clean(item, key) for item in kept]
        return [*cleaned, f"[{len(values) - LIST_LIMIT} more]"] if len(values) > LIST_LIMIT else cleaned

    def clean_text(self, text: str, key: str) -> str:
        """Return one string cleaned."""
        if len(text) > SHORT or not text.isascii():
            text = masks.clean(cut(text, LONGEST_MASKED))
            if not self._fits(text):
                return f"[cut {len(text)} characters]"
        if key and text and masks.names_a_secret(key) and masks.is_secret_value(text):
            self.learn(text, "secret-value")
        spans = self._spans.get(text)
        if spans is None:
            spans = self._spans[text] = masks.find(text)
        for span in spans:
            self.learn(text[span.start : span.end], span.kind)
        return self.without_known(masks.replaced(text, spans) if spans else text)

    def _fits(self, text: str) -> bool:
        """Say whether a text is searched: it is short, or there is room."""
        if len(text) <= SHORT:
            return True
        self._room -= len(text)
        return self._room >= 0

    def without_known(self, text: str) -> str:
        """Return a text, masked by itself, without what other texts showed to be secret, and cut."""
        for secret, kind in self.secrets.items():
            if secret in text:
                text = text.replace(secret, f"[masked:{kind}]")
        return cut(text)

    def learn(self, secret: str, kind: str) -> None:
        """Remember a secret, so that it is masked wherever else it stands."""
        self.kinds.add(kind)
        if len(secret) >= 6 and len(self.secrets) < SECRETS_KEPT:
            self.secrets[secret] = kind


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return `text` with the middle of what is too long replaced by its length; both ends stay."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}[cut {len(text) - 2 * half} characters]{text[-half:]}"


# ---- lines -----------------------------------------------------------------------------------------


def line(record: Mapping[str, object], seq: int, prev: str) -> bytes:
    """Return the line of `record`, newline included, at most `LINE_LIMIT` bytes.

    Args:
        seq: its number in the chain, from 1.
        prev: `digest` of the line before, `FIRST` for the first.
    """
    row = {**record, "seq": seq, "prev": prev}
    data = encoded(row)
    if len(data) >= LINE_LIMIT:
        data = encoded(shortened(row, sha256(data).hexdigest()))
    return data + b"\n"


def digest(data: bytes) -> str:
    """Return the hash of a line, its newline not counted."""
    return sha256(data.rstrip(b"\n")).hexdigest()


def encoded(row: Mapping[str, object]) -> bytes:
    """Return `row` as JSON without raw control, format or line separator characters."""
    data = msgspec.json.encode(row)
    if data.isascii() and b"\x7f" not in data:
        return data
    text = data.decode()
    return unsafe().sub(lambda match: escape(match.group()), text).encode()


@cache
def unsafe() -> re.Pattern[str]:
    """Characters that end a line for some readers, or move, hide or colour text on a terminal."""
    return re.compile(
        "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    )


def escape(character: str) -> str:
    """Return one character as JSON's escape."""
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def shortened(row: Mapping[str, object], whole: str) -> dict[str, object]:
    """Return a row that fits a line: its actions fewer, its texts shorter, the digest of the whole added."""
    short: dict[str, object] = {}
    for actions, limit in ((20, 200), (4, 100), (0, 60)):
        short = {key: value for key, value in row.items() if key not in {"actions", "matched"}}
        listed = row.get("actions")
        if isinstance(listed, Sequence):
            before = row.get("actions_cut")
            short["actions"] = listed[:actions]
            short["actions_cut"] = len(listed) - len(listed[:actions]) + (before if isinstance(before, int) else 0)
        short = {key: trimmed(value, limit) for key, value in short.items()}
        short["whole"] = f"sha256:{whole}"
        if len(encoded(short)) < LINE_LIMIT:
            return short
    kept = {"schema", "event", "id", "time", "effect", "source", "by", "option", "outcome", "revision", "seq", "prev"}
    return {key: value for key, value in short.items() if key in kept} | {"whole": f"sha256:{whole}"}


def trimmed(value: object, limit: int, depth: int = 0) -> object:
    """Return `value` with texts cut to `limit`, lists to 20 entries, and nothing deeper than six levels."""
    if isinstance(value, str):
        return value if len(value) <= max(limit, 64) else cut(value, max(limit, 64))
    if depth > 6 and isinstance(value, Mapping | Sequence):
        return "[cut]"
    if isinstance(value, Mapping):
        return {cut(str(key), 64): trimmed(item, limit, depth + 1) for key, item in list(value.items())[:20]}
    if isinstance(value, Sequence):
        return [trimmed(item, limit, depth + 1) for item in value[:20]]
    return value


def broken(data: bytes, seq: int, prev: str) -> str:
    """Say in words why a line is not the one that follows `prev` with number `seq`; empty if it is."""
    try:
        head = link(data)
    except ValueError:
        return "no JSON record"
    if head.prev != prev:
        return "does not follow the line before it: something was edited, removed, added or moved"
    return "" if head.seq == seq else f"has number {head.seq}, expected {seq}"


class Link(msgspec.Struct):
    """What ties a line to the one before it."""

    seq: int
    prev: str


_link = msgspec.json.Decoder(Link)


def link(data: bytes) -> Link:
    """Return number and predecessor of a line.

    Raises:
        ValueError: the line is no record.
    """
    try:
        return _link.decode(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
