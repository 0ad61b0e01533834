"""The value of `$((…))` and `((…))` over numbers: what it becomes, whether it becomes anything, what it sets.

Rules of this module:

1. Only whole numbers with `+ - * / %`, comparisons, `! && ||`, signs and parentheses are computed, as bash does:
   division rounds towards zero.
2. What is not computed here may be an error (`1/0`, `08`, `1 2`), and bash then leaves out the rest of the line.
3. A name is only looked at where its value is known to be a number: any other value is evaluated in its turn, and may
   run something. `SOME` is a number of which no more is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from policyd.commands.lexing.quoting import SOME

_TOKEN = re.compile(
    r"[ \t\n]*(?:(0[xX][0-9A-Fa-f]{1,15}|0|[1-9][0-9]{0,17})(?![0-9A-Za-z_])|(\x11)|([<>=!]=|&&|\|\||[-+*/%()<>!]))"
)
_NAME = re.compile(r"(?<![\w$}])(?:\$\{([A-Za-z_]\w*)\}|(\$?)([A-Za-z_]\w*)|\$[#?])(?![\w${\x11])", re.ASCII)
"""A variable by itself: what touches another name or number is none, or another one. `$#` and `$?` are numbers."""
_HELD = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII).fullmatch
_CHANGE = re.compile(
    r"\s*(?:([A-Za-z_]\w*)(?:(\+\+|--)|\s*([-+*/%]?)=(?!=)(.*))|(\+\+|--)([A-Za-z_]\w*))\s*", re.ASCII | re.DOTALL
).fullmatch
_LONGEST = 200
_LARGEST = 1 << 60
"""Far below what a shell can hold."""
_RANKS: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"==", "!="}),
    frozenset({"<", ">", "<=", ">="}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
"""Operators, those first that bind least."""

Known = Callable[[str], str]
"""Returns the number that a variable holds, `SOME` or nothing."""


def nothing(_: str) -> str:
    """Know no variable."""
    return ""


def value(text: str, known: Known = nothing) -> str | None:
    """Return the value of an expression over numbers, None where it is not known to have one."""
    plain = len(text) <= _LONGEST and "++" not in text and "--" not in text  # `x--3` is an error that sets `x`
    tokens = _tokens(_NAME.sub(lambda name: _put(name, known), text)) if plain else []
    reader = _Expression(tokens)
    try:
        found = reader.read() if tokens else None
    except (ArithmeticError, IndexError):
        return None
    if not tokens or reader.at < len(tokens):
        return None
    return SOME if found is None else str(found)


def is_over(text: str, known: Known) -> bool:
    """Say whether an expression holds nothing but numbers and operators, and sets nothing, whatever its value is."""
    return _PLAIN(_NAME.sub(lambda name: _put(name, known), text)) is not None and _SETS(text) is None


def is_number(word: str, known: Known) -> bool:
    """Say whether a word of `[[ … ]]` surely is one number, or an expression over numbers."""
    if len(word) > 1 and word[0] == word[-1] == '"':
        word = word[1:-1]
    held = _HELD(word)
    return bool(known(held[1] or held[2])) if held is not None else value(word, known) is not None


def changed(text: str, known: Known) -> tuple[str, str] | None:
    """Return the variable that an expression sets, with its value, and nothing twice where it sets none.

    None: it may be an error, or run something.
    """
    found = _CHANGE(text)
    if found is None:
        return ("", "") if value(text, known) is not None else None
    name = found[1] or found[6]
    if found[2] or found[5]:
        result = value(f"{name}{(found[2] or found[5])[0]}1", known)
    elif found[3]:
        result = value(f"{name}{found[3]}({found[4]})", known)
    else:
        result = value(found[4], known)
    return (name, result) if result is not None else None


_PLAIN = re.compile(r"(?:0[xX][0-9A-Fa-f]++|[0-9\s+\-*/%()<>=!&|^~?:,\x11])*+").fullmatch
_SETS = re.compile(r"(?<![<>=!])=(?!=)|\+\+|--").search


def _put(name: re.Match[str], known: Known) -> str:
    """Return the number in the place of a name, in parentheses where a sign would touch another."""
    if name[0] in {"$#", "$?"}:
        return f"({SOME})"
    found = known(name[1] or name[3])
    spelled = bool(name[1] or name[2])
    if not found or (spelled and found[0] in {"-", SOME}):  # it is put there as it is written: `$((1 -$x))`
        return name[0]
    return f"({found})"


def _tokens(text: str) -> list[int | str]:
    """Return numbers and operators, nothing where there is anything else."""
    found: list[int | str] = []
    at, end = 0, len(text.rstrip(" \t\n"))
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            return []
        digits = token[1]
        found.append(int(digits, 16 if digits[1:2] in {"x", "X"} else 10) if digits else token[2] or token[3])
        at = token.end()
    return found


class _Expression(Struct):
    """Tokens that are read from left to right; None is a number that is not known."""

    tokens: list[int | str]
    at: int = 0

    def read(self, rank: int = 0) -> int | None:
        if rank == len(_RANKS):
            return self._factor()
        found = self.read(rank + 1)
        while self._next() in _RANKS[rank]:
            found = _joined(str(self._take()), found, self.read(rank + 1))
        return found

    def _factor(self) -> int | None:
        part = self._take()
        if isinstance(part, int) or part == SOME:
            return part if isinstance(part, int) else None
        if part == "(":
            found = self.read()
            if self._take() != ")":
                raise ArithmeticError
            return found
        if part in {"-", "+", "!"} and self._next() not in {"-", "+"}:
            found = self._factor()
            return found if part == "+" or found is None else -found if part == "-" else int(not found)
        raise ArithmeticError

    def _next(self) -> int | str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> int | str:
        self.at += 1
        return self.tokens[self.at - 1]


_COMPUTED: dict[str, Callable[[int, int], int]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: _divided(left, right),
    "%": lambda left, right: left - _divided(left, right) * right,
}


def _joined(operator: str, left: int | None, right: int | None) -> int | None:
    """Return what an operator makes of two numbers."""
    if operator in {"/", "%"} and not right:
        raise ArithmeticError  # none, or one that may be none
    if left is None or right is None:
        return None
    found = _COMPUTED[operator](left, right)
    if abs(found) >= _LARGEST:
        raise ArithmeticError
    return found


def _divided(left: int, right: int) -> int:
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole
