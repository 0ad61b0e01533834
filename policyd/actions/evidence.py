"""What is known of one tool call: its updates, merged with a request's own fields.

Rules:

1. A request's own fields come first: each key of its `rawInput` that is not empty, then the latest update's. What is
   stated while it is open and says something else (`contradicted`) is judged in addition.
2. Collections (`locations`, diffs) are the union of the request's and the latest non-empty ones: a move's destination
   is often only in the earlier diff.
3. Every kind an update states stays stated; the tool's name is the first one stated; titles keep all values. A kind
   that a request states is a statement about that request only.
4. What was known when a request was answered, or when the call finished, is old: it may add mentions to a later request
   with the same id, but never counts as something found. A call that has finished and was not announced again cannot
   be asked about any more; nor can an id under which two different calls were announced.

Nothing here depends on the agent; what a field means is in its profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct, field

from policyd.actions.toolcall import (
    Diff,
    content_diffs,
    content_texts,
    location_paths,
    misshapen,
    named_paths,
    strange,
    table,
)
from policyd.model import EMPTY, KINDS, TABLE

NONE: frozenset[str] = frozenset()
OTHER, KNOWN = frozenset({"other"}), frozenset(KINDS)
FINISHED = ("completed", "failed", "cancelled")
CHUNK = "tool_call_content_chunk"
"""What version 2 calls one more block of a call's content."""
TELLING = ("tool_call", "tool_call_update", CHUNK)
"""Updates that describe a call."""
COLLECTIONS = ("locations", "content")
REPLACED = ("rawInput", "locations", "content")
ADDED = ("title", "kind", "_meta")
TWO_NAMES = "its updates name two tools"
TWO_CALLS, OVER = "two calls were announced under one id", "the call it names has finished"
_encode = msgspec.json.Encoder().encode
MANY_TITLES = 32
LONGEST_KEPT = 4096
"""Characters of a text that is kept beyond its request."""


class Evidence(Struct, frozen=True, gc=False):
    """A tool call as one request finds it."""

    call_id: str
    name: str = ""
    """The first tool name stated on the wire."""
    kinds: frozenset[str] = frozenset()
    """Every kind stated; `other` only where nothing else was."""
    stated: str = ""
    """The kind the request itself states."""
    raw: Mapping[str, object] = field(default_factory=dict)
    fault: str = ""
    """Why `rawInput`, or a field beside it, could not be read."""
    detailed: bool = True
    """`rawInput` was stated, be it an empty table."""
    titles: tuple[str, ...] = ()
    """The request's first, then the others, newest first."""
    first_title: str = ""
    """The title of the first update: an agent's tool where it is no prose. A request's own title never stands in."""
    locations: tuple[str, ...] = ()
    diffs: tuple[Diff, ...] = ()
    texts: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    options: tuple[Mapping[str, object], ...] = ()
    old: tuple[str, ...] = ()
    """Texts known before an earlier request with this id was answered."""
    older: Mapping[str, object] = field(default_factory=dict)
    """`rawInput` as it was known then."""
    missing: frozenset[str] = frozenset()
    """Late fields that have not come."""
    announced: bool = True
    """Whether any update named the call."""


class Call(Struct, gc=False):
    """What the updates of one tool call stated, newest last."""

    call_id: str
    name: str = ""
    first_title: str = ""
    titles: tuple[str, ...] = ()
    kinds: frozenset[str] = NONE
    raw: Mapping[str, object] = EMPTY
    fault: str = ""
    locations: tuple[str, ...] = ()
    diffs: tuple[Diff, ...] = ()
    texts: tuple[str, ...] = ()
    meta: Mapping[str, object] = EMPTY
    status: str = ""
    arrived: frozenset[str] = NONE
    """Places that updates of this epoch brought: `rawInput`, `rawInput.command`, `locations`."""
    old: tuple[str, ...] = ()
    older: Mapping[str, object] = EMPTY
    asked: bool = False
    """A request named it, or covered it."""
    settled: bool = False
    """That request was answered."""
    later: Mapping[str, object] | None = None
    """`rawInput` as stated while a request about it is open; None: no request is open."""
    announced: bool = False
    broken: str = ""
    """Why nothing that is known of it counts: one of its updates was refused."""
    odd: dict[str, str] = field(default_factory=dict)
    """Collection (`locations`, `content`) -> what of its latest value has a shape that is not known."""
    detailed: bool = False
    """Its `rawInput` was stated, be it an empty table."""
    sizes: dict[str, int] = field(default_factory=dict)
    """What of it is kept -> about how many bytes that is."""

    @property
    def size(self) -> int:
        """About how many bytes are kept of it."""
        return sum(self.sizes.values())

    @property
    def open(self) -> bool:
        """Whether it has been announced and has not finished."""
        return self.announced and not self.finished

    @property
    def finished(self) -> bool:
        """Whether its last status says that it has ended."""
        return self.status in FINISHED

    def update(self, update: Mapping[str, object]) -> None:
        """Record one `tool_call` or `tool_call_update`, or one more block of its content."""
        if update.get("sessionUpdate") == CHUNK:
            self._more(update.get("content"))
            return
        if self.announced and update.get("sessionUpdate") == "tool_call":
            self._again(update)
        whole = self.announced and update.get("sessionUpdate") == "tool_call_update"
        self.announced = True
        self._identity(update)
        self._details(update, whole=whole)
        self._weigh(update)
        status = update.get("status")
        if isinstance(status, str):
            self.status = status
            if status in FINISHED:
                self.settle()

    def _more(self, block: object) -> None:
        """Record one more block of the content: only a diff says what the call does."""
        if fault := strange("content", [block]):
            self.odd["content"] = fault
        if diffs := content_diffs([block]):
            self.announced = True
            self.diffs += diffs
            self.sizes["content"] = self.sizes.get("content", 0) + weight(block)

    def _again(self, update: Mapping[str, object]) -> None:
        """Record that the call is announced once more, perhaps as another one, or after it had finished."""
        raw, paths = table(update.get("rawInput"))[0], named_paths(update)
        known = {*self.locations, *(diff.path for diff in self.diffs)}
        if any(differs(self.raw.get(key), value) for key, value in raw.items()) or (
            paths and known and not known & paths
        ):
            self.odd = {**self.odd, "id": TWO_CALLS}
        if self.finished:
            self.status = ""

    def _identity(self, update: Mapping[str, object]) -> None:
        title, name, kind, meta = (update.get(key) for key in ("title", "name", "kind", "_meta"))
        if isinstance(title, str) and title:
            self.first_title = self.first_title or title[:LONGEST_KEPT]
            if title not in self.titles and len(self.titles) < MANY_TITLES:
                self.titles += (title,)
        if isinstance(name, str) and name:
            self.name = self.name or name
            if name != self.name:
                self.odd["name"] = TWO_NAMES
        if isinstance(kind, str) and kind:
            self.kinds |= {kind}
        if isinstance(meta, TABLE):
            self.meta = overlaid(self.meta, meta)

    def _details(self, update: Mapping[str, object], *, whole: bool) -> None:
        """Record the stated details; `whole`: even an empty table is complete, not just an announcement."""
        if "rawInput" in update and update["rawInput"] is not None:
            raw, fault = table(update["rawInput"])
            self.detailed = True
            if raw or fault:
                self.raw, self.fault = raw, fault
                self.later = None if self.later is None else raw
            self.arrived |= {f"rawInput.{key}" for key, value in raw.items() if value not in ("", None, [], {})}
            if whole or raw:
                self.arrived |= {"rawInput"}
        for key in COLLECTIONS:
            if update.get(key) is not None:
                self.odd[key] = strange(key, update[key])
        if paths := location_paths(update.get("locations")):
            self.locations = paths
            self.arrived |= {"locations"}
        content = update.get("content")
        if diffs := content_diffs(content):
            self.diffs = diffs
        if texts := content_texts(content):
            self.texts = texts

    def _weigh(self, update: Mapping[str, object]) -> None:
        """Add up what is kept of the update: only the latest details, all of the rest."""
        sizes = self.sizes
        for key in REPLACED:
            if value := update.get(key):
                sizes[key] = weight(value)
        for key in ADDED:
            if value := update.get(key):
                sizes[key] = sizes.get(key, 0) + weight(value)

    @property
    def doubt(self) -> str:
        """Why the call cannot be understood: odd values, two calls in one, or it has ended; `""` if it can."""
        return OVER if self.finished else next(filter(None, self.odd.values()), "")

    def settle(self) -> None:
        """Mark what is known as old: a request was answered, or the call has finished."""
        self.settled, self.later = True, None
        if not self.announced:  # nothing was ever told of it
            return
        if self.raw or self.locations or self.diffs:
            known = (*self.old, *self.locations, *(diff.path for diff in self.diffs), *_strings(self.raw))
            self.old = tuple(dict.fromkeys(known))[-64:]
            raw = self.raw.items()
            brief = {key: value for key, value in raw if isinstance(value, str) and len(value) < LONGEST_KEPT}
            self.older = brief or self.older
        self.raw, self.fault, self.locations, self.diffs, self.texts = EMPTY, "", (), (), ()
        self.arrived, self.titles, self.odd, self.detailed = NONE, (), {}, False
        rest = self.sizes.get("_meta", 0) + self.sizes.get("kind", 0) + len(self.first_title)
        self.sizes = {"_meta": rest, "old": sum(map(len, self.old)) + weight(self.older)} if self.sizes else {}


def merge(call: Call, asked: Mapping[str, object], options: Iterable[object], late: Iterable[str] = ()) -> Evidence:
    """Return the evidence of `call` for a request whose `toolCall` is `asked`; `late` are the fields to wait for."""
    raw, fault = table(asked.get("rawInput"))
    known = {key: value for key, value in call.raw.items() if raw.get(key) in ("", None, [], {})} if call.raw else {}
    content = asked.get("content")
    kind, title, name, meta = asked.get("kind"), asked.get("title"), asked.get("name"), asked.get("_meta")
    stated = kind if isinstance(kind, str) else ""
    own_title = (title,) if isinstance(title, str) and title else ()
    return Evidence(
        call.call_id,
        call.name or (name if isinstance(name, str) else ""),
        spoken({*call.kinds, stated}),
        stated,
        {**raw, **known},
        misshapen(asked) or fault or call.fault or call.doubt,
        call.detailed or asked.get("rawInput") is not None,
        _once(own_title, call.titles[::-1]),
        call.first_title,
        _once(location_paths(asked.get("locations")), call.locations),
        _union(content_diffs(content), call.diffs) if content else call.diffs,
        (*content_texts(content), *call.texts) if content else call.texts,
        {**call.meta, **(meta if meta is not None and isinstance(meta, TABLE) else {})},
        tuple([option for option in options if isinstance(option, TABLE)]),
        call.old,
        call.older,
        frozenset(late).difference(call.arrived),
        call.announced,
    )


def overlaid(known: Mapping[str, object], stated: Mapping[str, object], depth: int = 3) -> Mapping[str, object]:
    """Return two tables as one: what is stated counts, of tables inside them down to `depth` each key alone."""
    if not known or not depth:
        return {**known, **stated}
    both = {**known, **stated}
    for key, value in stated.items():
        before = known.get(key)
        if before is not None and isinstance(before, TABLE) and isinstance(value, TABLE):
            both[key] = overlaid(before, value, depth - 1)
    return both


def contradicted(call: Call, asked: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return `asked` with what was stated since in its place, None where that says nothing else."""
    raw, later = table(asked.get("rawInput"))[0], call.later or EMPTY
    if all(value in ("", None, [], {}, raw.get(key)) or key not in raw for key, value in later.items()):
        return None
    return {**asked, "rawInput": {**raw, **later}}


def _once(own: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of both without repetition, the request's own first."""
    return tuple(dict.fromkeys((*own, *known))) if known or len(own) > 1 else own


def differs(known: object, stated: object) -> bool:
    """Say whether a value differs from the known one and is not just more of the same text."""
    if known in ("", None, [], {}) or stated in ("", None, [], {}) or known == stated:
        return False
    return not (isinstance(known, str) and isinstance(stated, str) and stated.startswith(known))


def says_more(asked: Mapping[str, object]) -> bool:
    """Say whether a request that covers calls without naming them states itself what would be done."""
    kind = asked.get("kind")
    return (
        kind not in (None, "", "other")
        or asked.get("rawInput") not in (None, "", {}, [])
        or bool(misshapen(asked))
        or bool(asked.get("locations"))
        or bool(content_diffs(asked.get("content")))
    )


def spoken(kinds: Iterable[str]) -> frozenset[str]:
    """Return the kinds that state something: `other`, or none, state nothing beside another.

    A kind that the protocol does not know is joined by the one it is another spelling of.
    """
    said = frozenset(filter(None, kinds))
    if not said <= KNOWN:
        said |= KNOWN.intersection(kind.strip().casefold() for kind in said)
    return said - OTHER or said or OTHER


def _union(own: tuple[Diff, ...], known: tuple[Diff, ...]) -> tuple[Diff, ...]:
    if not known:
        return own
    paths = {diff.path for diff in own}
    return (*own, *[diff for diff in known if diff.path not in paths])


def weight(value: object) -> int:
    """Return roughly how many bytes a value takes."""
    if isinstance(value, str):
        return len(value)
    try:
        return len(_encode(value))
    except (UnicodeError, TypeError, RecursionError):
        return len(repr(value))


def _strings(value: object) -> list[str]:
    """Return the texts inside `value` that may each be a path; a command is not."""
    if isinstance(value, str):
        return [value] if len(value) < LONGEST_KEPT and value.split() == [value] else []
    if isinstance(value, TABLE):
        return [text for item in value.values() for text in _strings(item)]
    return [text for item in value for text in _strings(item)] if isinstance(value, list) else []
