"""Field references of a profile: where in a tool call a fact is found.

A reference is a dotted place, `rawInput.requests[].url`, or a table that adds a reader:
`{ from = "title", template = "Run `{}`" }`, `{ from = "content", read = "json_text", field = "command" }`,
`{ from = "options._meta.parts[]", where = "scope=command", field = "text" }`. `hole` picks a named hole of the
template; `hole = "*"` takes the whole text if it fits. A template beside a `field` is of that field's text.

The places: `rawInput`, `locations`, `diff`, `title` (the request's, else the latest), `first_title`, `content` (the
texts of content blocks, the request's first), `name`, `toolCallId`, `_meta`, `options`. `[]` goes through a list or
the values of a table, `{}` through the keys of a table, `{type=delete}` through the keys whose table has that entry,
`{move_path}` through the keys whose table has any entry of that name, `$` only to a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr

from policyd.actions.evidence import Evidence
from policyd.actions.readers import Fault, Template, json_text
from policyd.model import TABLE

TABLE_KEYS = frozenset({"from", "template", "hole", "read", "where", "field"})
PLACES = frozenset(
    {
        "rawInput",
        "locations",
        "diff",
        "title",
        "first_title",
        "content",
        "name",
        "toolCallId",
        "_meta",
        "options",
    }
)
TEXTS = frozenset({"title", "first_title", "name", "toolCallId"})
"""Places that hold a single text."""


class Found(Struct, frozen=True, gc=False):
    """A value and where it was found."""

    value: object
    origin: str
    rank: int = 0
    """Which of several references found it."""


class Ref(Struct, frozen=True):
    """A compiled field reference."""

    place: str
    steps: tuple[str, ...] = ()
    template: Template | None = None
    hole: str = ""
    json: bool = False
    where: tuple[str, str] = ("", "")
    field: tuple[str, ...] = ()
    key: str = ""
    """The key of `rawInput` this reference claims, or nothing."""
    bare: bool = False
    """It is exactly that key's value."""
    plain: bool = False
    """It is one field of `rawInput`, at any depth."""
    reads: bool = False
    """A reader or template is applied to what is found there."""
    text: bool = False
    """It is a single text of the call, or what a template takes from it."""

    def __post_init__(self) -> None:
        """Prepare what is needed at every call."""
        key = self.steps[0] if self.place == "rawInput" and self.steps and self.steps[0] != "[]" else ""
        read = bool(self.template or self.json or self.where[0] or self.field)
        force_setattr(self, "reads", read)
        force_setattr(
            self, "text", self.place in TEXTS and not (self.steps or self.json or self.where[0] or self.field)
        )
        force_setattr(self, "key", key)
        force_setattr(self, "plain", bool(key) and not read and all(step[0] not in "[{$" for step in self.steps))
        force_setattr(self, "bare", self.plain and len(self.steps) == 1)

    @classmethod
    def compile(cls, source: object) -> Ref:
        """Return the compiled reference `source` (text or table); ValueError says what is wrong with it."""
        if isinstance(source, str):
            place, *steps = _steps(source)
            return cls(_known(place), tuple(steps))
        if not isinstance(source, dict) or not set(source) <= TABLE_KEYS:
            raise ValueError(f"field reference {source!r}: give text or a table of {', '.join(sorted(TABLE_KEYS))}")
        base = cls.compile(source.get("from", ""))
        if source.get("read", "json_text") != "json_text":
            raise ValueError(f"field reference {source!r}: unknown reader")
        key, _, value = str(source.get("where", "")).partition("=")
        return cls(
            base.place,
            base.steps,
            Template.compile(str(source["template"])) if "template" in source else None,
            str(source.get("hole", "")),
            "read" in source,
            (key, value),
            tuple(_steps(str(source["field"]))) if "field" in source else (),
        )

    def find(self, evidence: Evidence) -> Sequence[Found]:
        """Return every non-empty value the reference leads to, in order."""
        if self.key:
            value = evidence.raw.get(self.key)
            if value in ("", None, [], {}):
                return ()
            if self.bare:
                return (Found(value, f"rawInput.{self.key}"),)
        if self.text:
            text = self._taken(_single(self.place, evidence))
            return (Found(text, self.place),) if text else ()
        start = _start(self.place, evidence)
        if not start:
            return ()
        found = _walk(start, self.steps)
        return [one for start in found for one in self._read(start)] if self.reads else found

    def _taken(self, value: object) -> object:
        """Return what the template, if there is one, takes from a value; nothing if it does not fit."""
        if not self.template:
            return value
        holes = self.template.match(value) if isinstance(value, str) else None
        if holes is None:
            return ""
        return value if self.hole == "*" else holes.get(self.hole, "")

    def _read(self, found: Found) -> Sequence[Found]:
        value = found.value if self.field else self._taken(found.value)
        if self.json:
            try:
                value = json_text(value if isinstance(value, str) else "")
            except Fault:
                return ()
        if self.where[0] and not (isinstance(value, dict) and value.get(self.where[0]) == self.where[1]):
            return ()
        read = _walk([Found(value, found.origin)], self.field)
        if not (self.template and self.field):
            return read
        return [Found(text, one.origin) for one in read if (text := self._taken(one.value))]


def _known(place: str) -> str:
    if place not in PLACES:
        raise ValueError(f"field reference `{place}`: unknown place; one of {', '.join(sorted(PLACES))}")
    return place


def _start(place: str, evidence: Evidence) -> list[Found]:
    if place == "rawInput":
        return [Found(evidence.raw, "rawInput")]
    if place == "locations":
        return [Found(path, f"locations[{at}].path") for at, path in enumerate(evidence.locations)]
    if place == "diff":
        return [Found(diff.path, f"content diff {at}") for at, diff in enumerate(evidence.diffs)]
    if place == "content":
        return [Found(text, f"content text {at}") for at, text in enumerate(evidence.texts)]
    if place == "options":
        return [Found(option, f"options[{at}]") for at, option in enumerate(evidence.options)]
    value = _single(place, evidence)
    return [Found(value, place)] if value else []


def _single(place: str, evidence: Evidence) -> object:
    if place == "title":
        return evidence.titles[0] if evidence.titles else ""
    if place == "first_title":
        return evidence.first_title
    if place == "name":
        return evidence.name
    return evidence.call_id if place == "toolCallId" else evidence.meta


def _walk(found: list[Found], steps: tuple[str, ...]) -> list[Found]:
    """Return what `steps` lead to from each of `found`, without what is empty."""
    for step in steps:
        found = [one for start in found for one in _step(start, step)]
    return [one for one in found if one.value not in ("", None, [], {})]


def _step(found: Found, step: str) -> list[Found]:
    if step == "[]":
        value = list(found.value.values()) if isinstance(found.value, TABLE) else found.value
        items = value if isinstance(value, list) else []
        return [Found(item, f"{found.origin}[{at}]") for at, item in enumerate(items)]
    if step == "$":
        return [found] if isinstance(found.value, str) else []
    if step.startswith("{"):
        return [Found(key, found.origin) for key in _keys(found.value, step[1:-1])]
    if isinstance(found.value, TABLE) and step in found.value:
        return [Found(found.value[step], f"{found.origin}.{step}")]
    return []


def _keys(value: object, where: str) -> Iterator[str]:
    """Yield the keys of a table whose own table has the entry `where` (`type=delete`, or `move_path`: any value)."""
    for key, item in value.items() if isinstance(value, TABLE) else ():
        if not where or (isinstance(item, TABLE) and _says(item, where)):
            yield str(key)


def _says(item: Mapping[str, object], where: str) -> bool:
    name, equals, wanted = where.partition("=")
    if equals:
        return item.get(name) == wanted or wanted in item
    return any(isinstance(part, TABLE) and bool(part.get(name)) for part in (item, *item.values()))


def _steps(text: str) -> list[str]:
    return text.replace("[]", ".[]").replace("{", ".{").split(".")


def each(refs: tuple[Ref, ...], evidence: Evidence) -> list[Found]:
    """Return what every one of `refs` leads to, in their order, with the reference's place as rank."""
    every: list[Found] = []
    for rank, ref in enumerate(refs):
        if ref.key and ref.key not in evidence.raw:
            continue
        found = ref.find(evidence)
        every += [Found(one.value, one.origin, rank) for one in found] if rank else found
    return every
