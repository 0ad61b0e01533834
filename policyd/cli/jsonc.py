"""JSON with comments and trailing commas, as Zed's settings are written; read only, never written back."""

from __future__ import annotations

import json


def loads(text: str) -> object:
    """Return the value in `text`; ValueError where it is neither JSON nor JSON with comments."""
    try:
        return json.loads(without_trailing_commas(without_comments(text)))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def without_comments(text: str) -> str:
    """Return `text` with blanks in the place of `//` and `/* */` comments outside strings."""
    kept: list[str] = []
    at = 0
    while at < len(text):
        end = next_part(text, at)
        part = text[at:end]
        kept.append(" " if part.startswith(("//", "/*")) else part)
        at = end
    return "".join(kept)


def next_part(text: str, at: int) -> int:
    """Return the end of the string, comment or single character at `at`."""
    if text[at] == '"':
        return string_end(text, at)
    if text.startswith("//", at):
        return found(text, "\n", at)
    if text.startswith("/*", at):
        return min(found(text, "*/", at + 2) + 2, len(text))
    return at + 1


def string_end(text: str, at: int) -> int:
    """Return the end of the string that begins at `at`."""
    here = at + 1
    while here < len(text) and text[here] != '"':
        here += 2 if text[here] == "\\" else 1
    return min(here + 1, len(text))


def found(text: str, what: str, at: int) -> int:
    """Return where `what` is found from `at`, else the end."""
    place = text.find(what, at)
    return len(text) if place < 0 else place


def without_trailing_commas(text: str) -> str:
    """Return `text` without a comma that stands between a value and a closing bracket."""
    kept: list[str] = []
    at, comma, last = 0, -1, "["
    while at < len(text):
        end = string_end(text, at) if text[at] == '"' else at + 1
        part = text[at:end]
        if part in {"}", "]"} and comma >= 0:
            kept[comma] = " "
        if not part.isspace():
            comma = len(kept) if part == "," and last not in "[{," else -1
            last = part[0]
        kept.append(part)
        at = end
    return "".join(kept)
