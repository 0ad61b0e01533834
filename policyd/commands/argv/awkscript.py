"""An awk program: why it is more than a filter.

Rules of this module:

1. `system`, `getline`, `ARGV`, `@` and pipes run programs or read other files, `ENVIRON` may hold secrets; a `>` behind
   `print` writes one.
2. Strings and regular expressions are skipped as awk's own lexer does. Where a `/` may be a division or a regular
   expression, the program is not understood: a division is certain behind a number, a text, a variable, `]` or a
   regular expression, and no other awk may see an expression there.
3. A line ends a statement only where the statement is complete: behind `,` or `&&`, and in parentheses, it goes on.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<space>[ \t\r]+|\\\n|\#[^\n]*)
      |(?P<name>[A-Za-z_]\w*)|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
      |(?P<op>\|\||&&|>>|\|&|>=|<=|==|!=|\+\+|--|[-+*%^!]=|[^\w\s"])|(?P<newline>\n)""",
    re.S | re.X,
)
LONGEST = 16 * 1024
"""Characters of a program that is read."""
FORBIDDEN = frozenset(
    {"system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "close", "fflush", "extension", "SYMTAB"}
)
KEYWORDS = frozenset({"print", "printf", "return", "in", "case", "else", "do", "exit"})
"""Names behind which an expression begins."""
RESERVED = frozenset(
    """
    BEGIN BEGINFILE END ENDFILE and asort asorti atan2 bindtextdomain break compl continue cos dcgettext dcngettext
    default delete exp for func function gensub getline gsub if index int isarray length log lshift match mkbool mktime
    next nextfile or patsplit rand rshift sin split sprintf sqrt srand strftime strtonum sub substr switch systime
    tolower toupper typeof while xor
    """.split()  # noqa: SIM905
)
"""Names of awk's own that are no variables."""
_COMPLETE = frozenset({"operand", "regex", "reserved", ")", "]", "++", "--", "print", "printf"})
"""What a statement may end with."""
_UNSURE = frozenset({")", "++", "--", "$", "reserved"})
"""Behind these one awk sees a division, another a regular expression."""


def awk_harm(script: str) -> str:
    """Return why the program is no mere filter, nothing if it is one."""
    if len(script) > LONGEST:
        return "an awk program that is too long to be read"
    position, before, depth, printing = 0, "", 0, -1
    while position < len(script):
        if script[position] == "/" and not _operand(before):
            position = _regex_end(script, position)
            before = "regex"
            if position < 0:
                return "an awk program that is not understood"
            continue
        token = _TOKEN.match(script, position)
        if token is None:
            return "an awk program that is not understood"
        position, kind, text = token.end(), token.lastgroup, token.group()
        if kind == "space":
            if text.startswith("\\"):
                return "an awk program with a continued line"
            continue
        harm = _token(kind or "", text, before, printing >= 0 and depth == printing)
        if harm:
            return harm
        depth += (text in {"(", "["}) - (text in {")", "]"}) if kind == "op" else 0
        if text in {"print", "printf"} and kind == "name":
            printing = depth
        elif _ends(kind or "", text, before, inside=depth > printing):
            printing = -1
        before = _role(kind or "", text)
    return ""


def _role(kind: str, text: str) -> str:
    if kind == "name" and text in RESERVED:
        return "reserved"
    return "operand" if kind in {"string", "number"} or (kind == "name" and text not in KEYWORDS) else text


def _ends(kind: str, text: str, before: str, *, inside: bool) -> bool:
    """Say whether a statement ends here; `inside`: within parentheses of it."""
    if kind == "newline":
        return before in _COMPLETE and not inside
    return kind == "op" and text in {";", "{", "}"}


def _operand(before: str) -> bool:
    return before in {"operand", "regex", "]", *_UNSURE}


def _token(kind: str, text: str, before: str, printing: bool) -> str:
    if kind == "name" and text in FORBIDDEN:
        return text
    if kind != "op":
        return ""
    if text in {"|", "|&", ">>", "@"}:
        return f"`{text}` in an awk program"
    if text == ">" and printing:
        return "`>` behind print in an awk program"
    if text == "/" and before in _UNSURE:
        return "a `/` in an awk program that may be a division or a regular expression"
    return ""


def _regex_end(script: str, start: int) -> int:
    position, bracket = start + 1, False
    while position < len(script) and script[position] != "\n":
        char = script[position]
        if char == "\\":
            position += 1
        elif char == "[" and not bracket:
            bracket = True
            position += script[position + 1 : position + 2] == "^"
            position += script[position + 1 : position + 2] == "]"
        elif char == "]":
            bracket = False
        elif char == "/":
            # implementations differ on a slash in brackets: both readings must end here
            return -1 if bracket else position + 1
        position += 1
    return -1
