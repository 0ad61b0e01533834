"""Adding keys to JSON with comments, as text: nothing that is there changes by a byte.

A new key goes behind the brace that opens its table. The caller reads the result again and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from policyd.cli.init.recipes import dumped
from policyd.cli.jsonc import COMMENT, STRING

TOKEN = re.compile(rf"{STRING}|[{{}}\[\]:,]", re.DOTALL)
Path = tuple[str, ...]


def added(text: str, current: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """Return `text`, which reads as `current`, with the keys that it lacks of `wanted`.

    Raises:
        ValueError: a table of `wanted` is none in the text.
    """
    for path, key, value, empty in additions(current, wanted):
        at = opening(text, path)
        indent = "  " * (len(path) + 1)
        entry = dumped({key: value})[2:-3].strip().replace("\n", "\n" + indent[2:])
        text = f"{text[:at]}\n{indent}{entry}" + (f"\n{indent[2:]}" if empty else ",") + text[at:]
    return text


def additions(
    current: Mapping[str, object], wanted: Mapping[str, object], path: Path = ()
) -> Iterator[tuple[Path, str, object, bool]]:
    """Yield where a key is missing, the key, its value, and whether the table there is still empty."""
    empty = not current
    for key, value in wanted.items():
        there = current.get(key)
        if key not in current:
            yield path, key, value, empty
            empty = False
        elif isinstance(there, Mapping) and isinstance(value, Mapping):
            yield from additions(there, value, (*path, key))


def opening(text: str, path: Path) -> int:
    """Return the offset behind the brace that opens the table at `path`; ValueError if there is none."""
    bare = COMMENT.sub(lambda found: found[0] if found[1] else " " * len(found[0]), text)
    inside: list[str | None] = []
    string, key = "", None
    for found in TOKEN.finditer(bare):
        sign = found[0]
        if sign == ":":
            key = json.loads(string)
        elif sign in "{[":
            inside.append(key)
            if sign == "{" and inside == [None, *path]:
                return found.end()
            key = None
        elif sign in "}]":
            inside.pop()
        elif sign == ",":
            key = None
        else:
            string = sign
    raise ValueError("the table was not found")
