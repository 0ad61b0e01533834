"""What a shell that is less than bash, as `sh` is on many systems, reads otherwise than bash.

Rules of this module:

1. Such a text is read as bash reads it, and is opaque where what it does is known to bash only: `{a,b}`, `$'…'`, `~+`,
   `[[`, which is no test to dash but a program with operators behind it, and `declare`, which sets nothing there.
2. What dash takes for an error needs no word here: what follows does not run, and nothing else does.
3. Between double quotes without a substitution in them nothing of this happens; what stands in comments is nothing.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""\\.|\$\$|'[^']*+'|(?P<double>"(?:[^"\\]|\\.)*+")|(?<![^\s;&|(])\#[^\n]*+|@\{[\w-]*+\}|\$\{"""
    r"""|(?P<found>\$['"]|\{(?![\s}])|~[+-](?=[/\s;&|)]|\Z)|(?<![^\s;&|(])(?:\[\[|declare|typeset)(?=\s))""",
    re.DOTALL,
)
_MAY = re.compile(r"[{~]|\$['\"]|\[\[|declare|typeset").search
_RUNS = re.compile(r"\$\(|`").search


def difference(text: str) -> str:
    """Return why a text is not known to be to another shell what it is to bash, empty where it is the same."""
    if _MAY(text) is None:
        return ""
    for piece in _PIECE.finditer(text):
        if piece["found"]:
            return f"`{piece['found']}` means something in bash only"
        inner = (piece["double"] or "")[1:-1]
        if inner and _RUNS(inner) and (why := difference(inner)):
            return why
    return ""
