"""Adding settings to another program's JSON file, without changing what is there.

Rules of this module:

1. A file with comments, duplicate keys or anything else that strict JSON would lose is not written. Where its program
   reads comments, new keys are added as text, and the result is read again before it is written.
2. A different value is somebody's choice: then nothing is written at all. Missing items are appended to lists.
3. A backup of the old file is kept beside it; the new one replaces it atomically, with the same mode. A link stays a
   link.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from codecs import BOM_UTF8 as BOM
from contextlib import suppress
from pathlib import Path

from policyd.cli import jsonc
from policyd.cli.init import commented
from policyd.cli.init.recipes import dumped
from policyd.storage.private import make_directory, put_new


class MergeError(Exception):
    """The file cannot be changed safely; the text says why."""


def merge_file(path: str, wanted: dict[str, object], *, comments: bool = False) -> str | None:
    """Add `wanted` to the JSON file at `path`; return the path of the backup, None if there was nothing to do.

    Args:
        path: the file, which need not exist.
        wanted: the settings it shall have.
        comments: whether its program reads JSON with comments.

    Raises:
        MergeError: the file is neither JSON nor JSON with comments, has a different value, or cannot be added to.
        OSError: it cannot be read or written.
    """
    target = os.path.realpath(path)
    try:
        old = Path(target).read_bytes()
    except FileNotFoundError:
        if os.path.exists(f"{path}c"):
            raise MergeError(f"{path}c exists, and may have comments") from None
        make_directory(os.path.dirname(target))
        replace(target, dumped(wanted), 0o600)
        return ""
    try:
        mark, text = ("\ufeff", old[3:].decode()) if old.startswith(BOM) else ("", old.decode())
        current, plain = read(path, text, comments=comments)
        merged = merge(current, wanted)
        if merged == current:
            return None
        new = dumped(merged) if plain else mark + commented.added(text, current, wanted)
        if read(path, new.removeprefix(mark), comments=comments)[0] != merged:
            raise ValueError("more than new keys would have to be written")
    except (ValueError, IndexError, RecursionError) as error:
        raise MergeError(f"{path} has comments or is not JSON: add the text above yourself ({error})") from error
    kept = keep(target, old)
    replace(target, new, stat.S_IMODE(os.stat(target).st_mode))
    return kept


def read(path: str, text: str, *, comments: bool) -> tuple[dict[str, object], bool]:
    """Return the table in `text`, and whether that is plain JSON; ValueError for text that is neither."""
    try:
        value, plain = json.loads(text, object_pairs_hook=once), True
    except json.JSONDecodeError:
        if not comments:
            raise
        value, plain = jsonc.loads(text, once), False
    if not isinstance(value, dict):
        raise MergeError(f"{path} holds no table")
    return value, plain


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a table; ValueError for a key that comes twice."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key comes twice")
    return table


def merge(current: dict[str, object], wanted: dict[str, object], key: str = "") -> dict[str, object]:
    """Return `current` with what it lacks of `wanted`; MergeError names the first key with a different value."""
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
            raise MergeError(f"`{where}` is set already, to {json.dumps(there)[:80]}")
    return merged


def is_command(table: dict[str, object]) -> bool:
    """Say whether a table is the command of a program, which must never be merged from two."""
    return bool(table.keys() & {"command", "argv", "args"})


def keep(target: str, old: bytes) -> str:
    """Write the old content to a backup beside `target`; return its path."""
    number = 0
    while True:
        path = f"{target}.before-policyd{f'.{number}' if number else ''}"
        with suppress(FileExistsError):
            put_new(path, old)
            return path
        number += 1


def replace(target: str, text: str, mode: int) -> None:
    """Replace `target` by `text` atomically."""
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
