"""The value of `$((…))` over numbers: what it becomes, and whether it becomes anything.

Rules of this module:

1. Only whole numbers with `+ - * / %`, signs and parentheses are computed, as bash does: division rounds towards zero.
2. What is not computed here may be an error (`1/0`, `08`, `1 2`), and bash then leaves out the rest of the line.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(r"[ \t\n]*(?:(0[xX][0-9A-Fa-f]{1,15}|0|[1-9][0-9]{0,17})(?![0-9A-Za-z_])|([-+*/%()]))")
_LONGEST = 200
_LARGEST = 1 << 60
"""Far below what a shell can hold."""


def value(text: str) -> int | None:
    """Return the value of an expression over numbers, None where it is not known to have one."""
    tokens = _tokens(text) if len(text) <= _LONGEST else []
    reader = _Expression(tokens)
    try:
        found = reader.sum() if tokens else None
    except (ArithmeticError, IndexError):
        return None
    return found if reader.at == len(tokens) else None


def _tokens(text: str) -> list[int | str]:
    """Return numbers and operators, nothing where there is anything else."""
    found: list[int | str] = []
    at, end = 0, len(text.rstrip(" \t\n"))
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            return []
        found.append(int(token[1], 16 if token[1][1:2] in {"x", "X"} else 10) if token[1] else token[2])
        at = token.end()
    return found


class _Expression(Struct):
    """Tokens that are read from left to right."""

    tokens: list[int | str]
    at: int = 0

    def sum(self) -> int:
        found = self._product()
        while self._next() in {"+", "-"}:
            minus = self._take() == "-"
            found = _bounded(found + (-1 if minus else 1) * self._product())
        return found

    def _product(self) -> int:
        found = self._factor()
        while self._next() in {"*", "/", "%"}:
            operator, right = self._take(), self._factor()
            whole = found * right if operator == "*" else _divided(found, right)
            found = _bounded(found - whole * right if operator == "%" else whole)
        return found

    def _factor(self) -> int:
        part = self._take()
        if isinstance(part, int):
            return part
        if part == "(":
            found = self.sum()
            if self._take() != ")":
                raise ArithmeticError
            return found
        if part in {"-", "+"} and self._next() not in {"-", "+"}:
            return -self._factor() if part == "-" else self._factor()
        raise ArithmeticError

    def _next(self) -> int | str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> int | str:
        self.at += 1
        return self.tokens[self.at - 1]


def _divided(left: int, right: int) -> int:
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _bounded(found: int) -> int:
    if abs(found) >= _LARGEST:
        raise ArithmeticError
    return found
