"""What a shell that is less than bash, as `sh` is on many systems, reads otherwise than bash.

Rules of this module:

1. Such a text is read as bash reads it, and is opaque where what it does is known to bash only: `{a,b}`, `$'…'`, `~+`,
   `&>`, which is `&` and `>` to dash, `[[`, which is no test to dash but a program with operators behind it, and
   `declare`, which sets nothing there.
2. What dash takes for an error needs no word here: what follows does not run, and nothing else does.
3. Between double quotes and in here-documents nothing of this happens without a substitution; what stands in comments
   is nothing.
"""

from __future__ import annotations

import re

from policyd.commands.lexing.source import BRACE, Document, prepare

_FOUND = (
    r"@\{[\w-]*+\}|\$\$|(?P<hard>\$\{)"
    r"""|(?P<found>\$['"]|(?<!&)&>|\{(?![\s}])|~[+-](?=[/\s;&|)]|\Z)|(?<![^\s;&|()`])(?:\[\[|declare|typeset)(?=\s))"""
)
_PIECE = re.compile(
    r"""\\.|'[^']*+'|(?P<double>"(?:[^"\\]|\\.)*+")|`(?:[^`\\]|\\.)*+`|(?<![^\s;&|()])\#[^\n]*+"""
    rf"""|\$\{{[^\s{{}}"'`$\\]*+\}}|{_FOUND}""",
    re.DOTALL,
)
_ANYWHERE = re.compile(_FOUND)
_SIMPLE = re.compile(
    r"""(?:[^\\$`]|\\.|\$(?![({])|\$\{[^\s{}"'`$\\]*+\}|\$\((?:[^()'"`\\#]|\([^()'"`\\#]*+\))*+\)|`[^`"'\\#]*+`)*+""",
    re.DOTALL,
).fullmatch
"""What stands between double quotes that certainly are a pair: no quotes are in what is expanded there."""
_MAY = re.compile(r"[{~]|&>|\$['\"]|\[\[|declare|typeset").search
_RUNS = re.compile(r"\$\(|`").search


def difference(text: str) -> str:
    """Return why a text (latin-1) may not be to another shell what it is to bash, empty where it is the same."""
    if "<<" not in text and "\\\n" not in text:
        return _difference(text)
    documents: list[Document] = []
    text, problems, _ = prepare(text, documents)
    for one in documents:
        if not one.quoted and _RUNS(one.body) and _MAY(one.body):
            return "what stands in a here-document may mean something in bash only"
    return problems[0] if problems else _difference(text.replace(BRACE, "{"))


def _difference(text: str) -> str:
    if _MAY(text) is None:
        return ""
    for piece in _PIECE.finditer(text):
        inner = (piece["double"] or "")[1:-1]
        if piece["hard"] or (inner and not _SIMPLE(inner)):  # where quotes and comments end behind it is not sure
            return next((_told(found) for found in _ANYWHERE.finditer(text) if found["found"]), "")
        if piece["found"]:
            return _told(piece)
        if inner and _RUNS(inner) and (why := _difference(inner)):
            return why
    return ""


def _told(piece: re.Match[str]) -> str:
    return f"`{piece['found']}` means something in bash only"
