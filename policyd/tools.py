"""Tools by name and by argument: patterns over the names of MCP calls and built-in tools, and over arguments.

Rules of this module:

1. A joined name (`mcp__jira__get_issue`) may split in several places; an allow needs all splits to match, a deny one.
2. Read widely (deny and ask rules), a bare `jira` is also every tool of that server, and a name in other letter case
   is suspected.
3. Arguments are matched by dotted key. A missing key never matches; missing or incomplete arguments (None) count
   against the requester: `sure` says no, `maybe` says it may. `sure` requires the type as written, `maybe` accepts
   every spelling of a value (`"5"` for 5, `"true"` and 1 for true), and returns MAYBE for a text in other letter case,
   under a key in other letter case, deeper in the key's table, or in arguments that are wrapped once more.
4. `*` in a value crosses everything. Expressions are RE2 over the whole value: linear for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import cast

from msgspec import Struct

from policyd.model import Tool, Truth

_FOREIGN = (
    (re.compile(r"mcp__"), "write `server/tool`"),
    (re.compile(r"[A-Za-z_]+\("), "write the tool's name alone, and its arguments under `input`"),
    (re.compile(r"!"), "write the exception under `unless`"),
    (re.compile(r"(re|regex):|/.*/\Z", re.S), "regular expressions are not known here; write `server/tool` with `*`"),
)


# ---- patterns over names ---------------------------------------------------------------------------


class ToolPattern(Struct, frozen=True):
    """`server/tool` with `*`, or the name of a built-in tool."""

    source: str
    server: str | None
    """None: a built-in tool's name."""
    tool: str
    _server: Callable[[str], bool]
    _tool: Callable[[str], bool]

    def __eq__(self, other: object) -> bool:
        """Compare what was written; what is made of it follows."""
        return isinstance(other, ToolPattern) and self.source == other.source

    @classmethod
    def compile(cls, text: str) -> ToolPattern:
        """Read a pattern.

        Raises:
            ValueError: it cannot be meant as written; the message says what to write.
        """
        if not text.strip() or text != text.strip():
            raise ValueError(f"`{text}`: the pattern is empty or begins or ends with a blank")
        for spelling, advice in _FOREIGN:
            if spelling.match(text):
                raise ValueError(f"`{text}`: {advice}")
        server, slash, tool = text.partition("/")
        if slash and not (server and tool):
            raise ValueError(f"`{text}`: a side of `/` is empty; write `server/tool` or `server/*`")
        name = tool if slash else text
        return cls(text, server if slash else None, name, whole(server), whole(name))

    def sure(self, tool: Tool) -> bool:
        """Say whether it matches the tool, whichever way the name is split."""
        if self.server is None:
            return not tool.splits and self._tool(tool.name)
        return bool(tool.splits) and all(self._pair(*pair) for pair in tool.splits)

    def maybe(self, tool: Tool, *, widen: bool) -> Truth:
        """Say whether it may match the tool; `widen`: a bare name is also every tool of that server, in any case."""
        if self.matches(tool, widen=widen):
            return Truth.YES
        splits = tuple([(server.lower(), name.lower()) for server, name in tool.splits])
        small = Tool(tool.name.lower(), splits)
        if not widen or (small == tool and self.source == self.source.lower()):
            return Truth.NO
        return Truth.MAYBE if _compiled(self.source.lower()).matches(small, widen=True) else Truth.NO

    def matches(self, tool: Tool, *, widen: bool) -> bool:
        """Say whether it matches the tool in these letters."""
        if self.server is not None:
            return any(self._pair(*pair) for pair in tool.splits)
        named = not tool.splits and self._tool(tool.name)
        return named or (widen and any(self._tool(server) for server, _ in tool.splits))

    def _pair(self, server: str, tool: str) -> bool:
        return self._server(server) and self._tool(tool)


@lru_cache(1024)
def _compiled(text: str) -> ToolPattern:
    return ToolPattern.compile(text)


def whole(pattern: str) -> Callable[[str], bool]:
    """Return the test whether a whole text matches a glob in which `*` crosses everything; linear."""
    if "*" not in pattern:
        return pattern.__eq__
    if pattern == "*":
        return lambda text: True
    first, *middle, last = pattern.split("*")
    shortest = len(first) + len(last)

    def matches(text: str) -> bool:
        if len(text) < shortest or not text.startswith(first) or not text.endswith(last):
            return False
        here, end = len(first), len(text) - len(last)
        for part in middle:
            here = text.find(part, here, end)
            if here < 0:
                return False
            here += len(part)
        return True

    return matches


# ---- patterns over arguments -----------------------------------------------------------------------


Test = Callable[[object], bool]


class InputPattern(Struct, frozen=True):
    """What the arguments of a call must hold: every key, each by one of its values."""

    source: Mapping[str, object]
    tests: tuple[tuple[str, Test, Test], ...]
    """Key, what its value must be, and what a value in small letters is suspected for."""

    def __eq__(self, other: object) -> bool:
        """Compare what was written; what is made of it follows."""
        return isinstance(other, InputPattern) and self.source == other.source

    @classmethod
    def compile(cls, table: Mapping[str, object]) -> InputPattern:
        """Read the table of an `input` condition.

        Raises:
            ValueError: an empty table or list, an unknown value or a broken expression, and what to write.
        """
        if not table:
            raise ValueError('`input` is empty; write `{ "key" = "value" }`')
        tests = ((key, _test(key, value), _test(key, value, small=True)) for key, value in table.items())
        return cls(dict(table), tuple(tests))

    def sure(self, args: Mapping[str, object] | None) -> bool:
        """Say whether every key is there and all of its value matches (of an array: every element)."""
        return args is not None and self._held(args, every=True) is Truth.YES

    def maybe(self, args: Mapping[str, object] | None) -> Truth:
        """Say whether every key is there and some of its value matches; MAYBE where that cannot be told.

        The arguments are not known, hold more values than are looked at, or what matches in another place or case.
        """
        return Truth.MAYBE if args is None else self._held(args, every=False)

    def _held(self, args: Mapping[str, object], *, every: bool) -> Truth:
        found = Truth.YES
        for key, test, suspect in self.tests:
            values = list(islice(_leaves(_values(args, key)), MOST_VALUES + 1))
            if len(values) > MOST_VALUES:
                found = Truth.MAYBE
            elif every and not (values and all(map(test, values))):
                return Truth.NO
            elif every or any(test(spelled) for value in values for spelled in _spellings(value)):
                continue
            elif _suspected(args, key, values, suspect):
                found = Truth.MAYBE
            else:
                return Truth.NO
        return found


def _suspected(args: Mapping[str, object], key: str, values: list[object], test: Test) -> bool:
    """Say whether a text passes that lies deeper than the key says, or is, or its key, written in other letters."""
    small, key = cast("Mapping[str, object]", _keyed_small(args)), key.casefold()
    tables = [small, *(small[name] for name in WRAPPING if name in small)]
    todo = [*values, *(value for table in tables for value in _values(table, key))]
    for _ in range(MOST_VALUES):
        if not todo:
            return False
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        elif isinstance(value, Mapping):
            todo += cast("Mapping[str, object]", value).values()
        elif any(test(spelled) or test(_small(spelled)) for spelled in _spellings(value)):
            return True
    return True


def _keyed_small(value: object) -> object:
    """Return a value with every key in small letters: what many servers decode by takes `SQL` for `sql`."""
    if isinstance(value, list):
        return [_keyed_small(each) for each in value]
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return {key.casefold(): _keyed_small(each) for key, each in table.items()}
    return value


def _small(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


WRAPPING = ("arguments", "args", "input", "params", "parameters")
"""Keys under which some agents put a tool's arguments."""
MOST_VALUES = 10_000
"""Values under one key that are looked at."""
_MISSING = object()
"""Stands for a key that one element of an array lacks."""


def _values(value: object, key: str) -> Iterator[object]:
    """Everything a dotted key may mean: nested tables, a key that holds dots itself, and both through arrays."""
    if isinstance(value, list):
        for each in value:
            yield from list(_values(each, key)) or (_MISSING,)
        return
    if not isinstance(value, Mapping):
        return
    table = cast("Mapping[str, object]", value)
    if key in table:
        yield table[key]
    here = key.find(".")
    while here >= 0:
        if key[:here] in table:
            yield from _values(table[key[:here]], key[here + 1 :])
        here = key.find(".", here + 1)


def _leaves(values: Iterable[object]) -> Iterator[object]:
    """Yield what arrays hold, however deep; an empty one as something that is missing."""
    for value in values:
        if isinstance(value, list):
            yield from _leaves(value) if value else (_MISSING,)
        else:
            yield value


_DECIMAL = re.compile(r"[-+]?[0-9]{1,30}(?:\.[0-9]{1,30})?").fullmatch


def _spellings(value: object) -> Iterator[object]:
    """Yield a value and what a server may take it for: `"5"` for 5, `true` for `"true"`."""
    yield value
    if isinstance(value, bool):
        yield from (str(value).lower(), int(value))
    elif isinstance(value, int | float):
        yield str(int(value) if value == value // 1 and abs(value) < 1e15 else value)
        if value in {0, 1}:
            yield bool(value)
    elif isinstance(value, str):
        text = value.strip().lower()
        if text in {"true", "false"}:
            yield text == "true"
        elif _DECIMAL(text):
            yield float(text) if "." in text else int(text)


def _test(key: str, value: object, *, small: bool = False) -> Test:
    if isinstance(value, list):
        if not value:
            raise ValueError(f"`input.{key}`: the list is empty; write at least one value")
        tests = [_test(key, each, small=small) for each in value]
        return lambda given: any(test(given) for test in tests)
    if isinstance(value, Mapping):
        return _special(key, cast("Mapping[str, object]", value))
    if isinstance(value, bool):
        return lambda given: given is value
    if isinstance(value, int | float):
        return lambda given: _number(given) and given == value
    if isinstance(value, str):
        matches = whole(value.lower() if small else value)
        return lambda given: isinstance(given, str) and matches(given)
    raise ValueError(f"`input.{key}`: a date or time is no argument; write a string, number, boolean or list")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _special(key: str, table: Mapping[str, object]) -> Test:
    """`{ regex = "…" }`, `{ max = n }`, or both."""
    unknown = sorted(set(table) - {"regex", "max"})
    if unknown or not table:
        raise ValueError(
            f'`input.{key}`: only `regex` and `max` are known here; a nested key is written `"{key}.name"`'
        )
    tests: list[Test] = []
    if "regex" in table:
        tests.append(_regex(key, table["regex"]))
    if "max" in table:
        tests.append(_max(key, table["max"]))
    return lambda given: all(test(given) for test in tests)


def _regex(key: str, text: object) -> Test:
    if not isinstance(text, str):
        raise ValueError(f"`input.{key}`: `regex` wants a string")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody reads a group, and finding where each lies takes a hundred times as long
    try:
        compiled = re2.compile(text, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else error
        raise ValueError(f"`input.{key}`: `{text}` is no RE2 expression: {why}") from error
    return lambda given: isinstance(given, str) and compiled.fullmatch(_text(given)) is not None


def _text(value: str) -> str:
    """The value as it reaches a server: half a surrogate pair is the replacement character."""
    return value if value.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", value)


def _max(key: str, limit: object) -> Test:
    if not _number(limit):
        raise ValueError(f"`input.{key}`: `max` wants a number")
    most = cast("float", limit)
    return lambda given: _number(given) and cast("float", given) <= most
