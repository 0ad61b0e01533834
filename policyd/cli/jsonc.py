"""JSON with comments and trailing commas, as Zed's settings are written.

Both expressions are linear: one alternative consumes each character, and a run of blanks is scanned twice at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

Pairs = Callable[[list[tuple[str, object]]], object]

STRING = r'"(?:[^"\\]|\\.)*(?:"|\Z|\\\Z)'
COMMENT = re.compile(rf"({STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
TRAILING = re.compile(rf'({STRING}|[^\s\[{{,"])(\s*),(?=\s*[}}\]])|{STRING}', re.DOTALL)
"""A comma between a value and a closing bracket; or a string, which may hold commas."""


def loads(text: str, pairs: Pairs | None = None) -> object:
    """Return the value in `text`; ValueError where it is neither JSON nor JSON with comments.

    Args:
        text: what the file holds.
        pairs: makes tables of keys and values, as `json.loads` takes it.
    """
    bare = COMMENT.sub(lambda found: found[1] or " ", text)
    try:
        plain = TRAILING.sub(lambda found: f"{found[1]}{found[2]} " if found[1] else found[0], bare)
        return json.loads(plain, object_pairs_hook=pairs)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
