"""Adding settings to somebody else's JSON file: only what is not there, or nothing.

Rules of this module:

1. A file with comments, duplicate keys or anything else that strict JSON would lose is not written.
2. A value that is there and says something else is somebody's choice: nothing is written at all. Lists grow by what
   they lack.
3. The old file is kept beside the new one; the new one takes its place in one step, with the same mode. A link stays a
   link.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from policyd.cli.init.recipes import dumped
from policyd.storage.private import make_directory, write_whole


class MergeError(Exception):
    """The file cannot be changed safely; the text says why."""


def merge_file(path: str, wanted: dict[str, object]) -> str | None:
    """Add `wanted` to the JSON file at `path`; return where the old file is kept, None if there was nothing to do.

    Raises:
        MergeError: the file is not strict JSON, or says something else already.
        OSError: it cannot be read or written.
    """
    target = os.path.realpath(path)
    try:
        old = Path(target).read_bytes()
    except FileNotFoundError:
        if os.path.exists(f"{path}c"):
            raise MergeError(f"{path}c is there, with comments of somebody's") from None
        make_directory(os.path.dirname(target))
        replace(target, dumped(wanted), 0o600)
        return ""
    current = strict(path, old)
    merged = merge(current, wanted)
    if merged == current:
        return None
    kept = keep(target, old)
    replace(target, dumped(merged), stat.S_IMODE(os.stat(target).st_mode))
    return kept


def strict(path: str, data: bytes) -> dict[str, object]:
    """Return the table in `data`; MergeError if writing it back would lose something."""
    try:
        value = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise MergeError(f"{path} has comments or is no JSON: put the text above in yourself ({error})") from error
    if not isinstance(value, dict):
        raise MergeError(f"{path} holds no table")
    return value


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a table; ValueError for a key that comes twice."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key comes twice")
    return table


def merge(current: dict[str, object], wanted: dict[str, object], key: str = "") -> dict[str, object]:
    """Return `current` with what it lacks of `wanted`; MergeError names the first key that says something else."""
    merged = dict(current)
    for name, value in wanted.items():
        there, where = merged.get(name), f"{key}.{name}".lstrip(".")
        if name not in merged:
            merged[name] = value
        elif isinstance(there, dict) and isinstance(value, dict) and not (is_command(there) or is_command(value)):
            merged[name] = merge(there, value, where)
        elif isinstance(there, list) and isinstance(value, list) and not is_command(current):
            merged[name] = [*there, *(item for item in value if item not in there)]
        elif there != value:
            raise MergeError(f"`{where}` is there already and says {json.dumps(there)[:80]}")
    return merged


def is_command(table: dict[str, object]) -> bool:
    """Say whether a table says how a program is started: such a table is one thing, never mixed of two."""
    return bool(table.keys() & {"command", "argv", "args"})


def keep(target: str, old: bytes) -> str:
    """Write the old content to a file of its own beside `target`; return its path."""
    number = 0
    while True:
        path = f"{target}.before-policyd{f'.{number}' if number else ''}"
        with suppress(FileExistsError):
            write_whole(path, old)
            return path
        number += 1


def replace(target: str, text: str, mode: int) -> None:
    """Put `text` in the place of `target` in one step."""
    descriptor, path = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".policyd-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(path, target)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
