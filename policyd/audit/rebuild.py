"""Reconstructing the request from an audit record, so that other rules can decide it. Pure.

    said = rebuild.request(record)              # model.Request, or Undecidable says why not

Rules of this module:

1. Nothing is guessed: a record in which something that rules look at was masked or cut is `Undecidable`.
2. The request has the actions that were recorded then: files may have changed, and so may this program.
3. A text that only looks like a mask counts as one, which can only make a request `Undecidable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from policyd import urls
from policyd.model import (
    Action,
    Assignment,
    Mode,
    Option,
    PathRef,
    Reach,
    Request,
    Role,
    SimpleCommand,
    Tool,
    Word,
    WordKind,
)

ALTERED = re.compile(r"\[masked:[a-z0-9-]+\]|\[cut \d+ characters\]|^\[\d+ more\]$|^\[cut\]$|\ufffd")
Marks = list[object]


class Undecidable(ValueError):  # noqa: N818 - it is a fact about a record, not a fault of this program
    """A record lacks something a decision needs; the message says what."""


class PathRow(msgspec.Struct):
    """A path as `actionrows.add_path` writes it."""

    path: str = ""
    real: str = ""
    forms: list[str] = []
    reach: Reach = Reach.ENTRY
    outside: bool = False
    glob: bool = False
    folded: bool = False
    skips_hidden: bool = False
    endings: list[str] = []
    filled_from: list[str] = []

    def ref(self) -> PathRef:
        """Return the path."""
        forms = tuple(self.forms) or (self.path,)
        hidden, ends, filled = self.skips_hidden, tuple(self.endings), tuple(self.filled_from)
        return PathRef(self.path, forms, self.reach, self.glob, not self.outside, self.folded, hidden, ends, filled)


class CommandRow(msgspec.Struct):
    """A command as `actionrows.add_command` writes it."""

    command: list[str] | None = None
    text: str = ""
    marks: list[Marks] = []
    env: list[str] = []
    env_marks: list[Marks] = []
    taint: list[str] = []
    taint_marks: list[Marks] = []
    via: list[str] = []
    behind: list[str] = []
    texts: list[list[str]] = []
    runs_in: list[str] | None = None
    tainted: str = ""
    fed: str = ""
    chdir: str | None = None
    idle_command: bool = False
    strict_only: bool = False
    inner: CommandRow | None = None
    far: list[CommandRow] = []

    def simple(self, cwd: tuple[str, ...]) -> SimpleCommand:
        """Return the command; `cwd`: where it runs if the row does not say."""
        words = self.command or []
        here = cwd if self.runs_in is None else tuple(self.runs_in)
        return SimpleCommand(
            argv=marked(words, self.marks),
            text=self.text or " ".join(words),
            env=tuple(assigned(self.env, self.env_marks)),
            taint=tuple(assigned(self.taint, self.taint_marks)),
            tainted=self.tainted,
            cwd=here,
            inner=self.inner.simple(here) if self.inner else None,
            via=tuple(self.via),
            chdir=self.chdir,
            idle=self.idle_command,
            strict_only=self.strict_only,
            fed=self.fed,
            behind=tuple(self.behind),
            texts=tuple(map(tuple, self.texts)),
            far=tuple(row.simple(()) for row in self.far),
        )


class ModeRow(msgspec.Struct):
    """A mode that an action leads to."""

    name: str
    asking: bool = False
    unsafe: bool = True


class CalledRow(msgspec.Struct):
    """The tool a request is a call of."""

    tool: str
    splits: list[tuple[str, str]] = []

    def name(self) -> Tool:
        """Return the tool."""
        return Tool(self.tool, tuple(self.splits))


class StandingRow(msgspec.Struct):
    """The rest of an action's row."""

    kind: str | None
    role: Role
    kinds: list[str] = []
    cwd: list[str] = []
    url: str | None = None
    tool: str | None = None
    splits: list[tuple[str, str]] = []
    input: dict[str, object] | None = None
    opaque: str = ""
    escalate: str = ""
    guarded: str = ""
    cwd_outside: bool = False
    strays: list[str] = []
    within: list[PathRow | None] = []
    carrier: int | None = None
    mode: ModeRow | None = None
    idle: bool = False
    mcp: bool = False
    doubtful: bool = False
    called: CalledRow | None = None
    """Of a call of another tool than the request's first."""
    actions_cut: int = 0


class RequestRow(msgspec.Struct):
    """What is used of a record beside its actions."""

    session: str = ""
    call: str = ""
    title: str = ""
    offered: list[tuple[str, str]] = []
    menu: bool = False
    mislabelled: list[str] = []
    plain: str | None = None
    refusal: str | None = None
    door: str = ""
    called: CalledRow | None = None


def request(record: Mapping[str, object]) -> Request:
    """Return the request a record is about.

    Raises:
        Undecidable: it was masked or cut where rules look, or is no record of a request.
    """
    listed = record.get("actions")
    rows = listed if isinstance(listed, list) else []
    if "whole" in record or not rows:
        raise Undecidable("too long: the record holds a part of it" if "whole" in record else "it holds no action")
    if found := next(altered(rows), ""):
        raise Undecidable(f"a part that rules look at is not in the record: {found}")
    try:
        head = msgspec.convert(record, RequestRow)
        name = head.called.name() if head.called else None
        actions = tuple(action(row, name) for row in rows)
    except (ValueError, TypeError, LookupError, urls.OddUrl) as error:
        raise Undecidable(f"the record is not written as this version reads it: {error}") from error
    options = tuple(Option(ident, "", kind) for ident, kind in head.offered)
    menu = head.menu or bool(head.mislabelled)  # both: a person must choose
    return Request(head.session, head.call, head.title, options, actions, menu, head.plain, head.refusal, head.door)


def action(row: Mapping[str, object], name: Tool | None) -> Action:
    """Return one action; `name` is the tool of the request.

    Raises:
        ValueError: the row is not written as this version reads it.
    """
    rest = msgspec.convert(row, StandingRow)
    command = msgspec.convert(row, CommandRow) if "command" in row else None
    cwd = tuple(rest.cwd)
    if "called" in row:
        name = rest.called.name() if rest.called else None
    return Action(
        kinds=frozenset(rest.kinds or ([rest.kind] if rest.kind else [])),
        role=rest.role,
        path=msgspec.convert(row, PathRow).ref() if "path" in row else None,
        command=command.simple(cwd) if command else None,
        url=urls.parse(rest.url) if rest.url is not None else None,
        tool=Tool(rest.tool, tuple(rest.splits)) if rest.tool is not None else None,
        opaque=rest.opaque,
        name=name,
        args=rest.input,
        cwd=cwd,
        cwd_inside=bool(cwd) and not rest.cwd_outside,
        strays=tuple(rest.strays),
        within=tuple(one.ref() if one else None for one in rest.within),
        carrier=rest.carrier,
        escalate=rest.escalate,
        mode=Mode(rest.mode.name, rest.mode.asking, rest.mode.unsafe) if rest.mode else None,
        guarded=rest.guarded,
        idle=rest.idle,
        mcp=rest.mcp,
        doubtful=rest.doubtful,
    )


def marked(words: Sequence[str], marks: Sequence[Marks]) -> tuple[Word, ...]:
    """Return words with what is known of those that are not constant."""
    found = [Word(text) for text in words]
    for mark in marks:
        at, kind, prefix, many = msgspec.convert(mark, tuple[int, WordKind, str, bool])
        found[at] = Word(words[at], kind, prefix, many)
    return tuple(found)


def assigned(items: Sequence[str], marks: Sequence[Marks]) -> Iterator[Assignment]:
    """Yield assignments with what is unusual about them."""
    known = {mark[0]: msgspec.convert(mark[1:], tuple[WordKind, str, bool, bool]) for mark in marks if mark}
    for at, text in enumerate(items):
        name, _, value = text.partition("=")
        kind, prefix, many, exported = known.get(at, (WordKind.CONST, "", False, False))
        yield Assignment(name, Word(value, kind, prefix, many), exported)


def altered(value: object) -> Iterator[str]:
    """Yield what in a row was masked or cut before it was stored."""
    if isinstance(value, str):
        if match := ALTERED.search(value):
            yield match.group() if match.group() != "\ufffd" else "text that is no Unicode"
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in {"rules", "floors"}:
                yield from altered(name)
                yield from altered(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from altered(item)
