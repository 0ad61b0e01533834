"""What the operands of a known program are for, and how far it reaches below them, by the table and its options."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from policyd.commands.argv.options import Parsed
from policyd.commands.argv.programs import Program
from policyd.model import Reach, Word, WordKind

_REACHES = {reach.value: reach for reach in Reach}


def slots(program: Program, parsed: Parsed) -> Iterable[tuple[str, Word]]:
    """Pair each operand with its role; words beyond the roles are mentions."""
    operands, count = program.operands, len(parsed.operands)
    if operands and program.instead and parsed.has(*program.instead):
        operands = operands[1:]
    if program.target and len(operands) > 1 and (count == 1 or parsed.has(*program.target)):
        operands = operands[:-1]
    roles = _few_roles(operands, count) if count <= _FEW else _roles(operands, count)
    if peeks(program, parsed):
        roles = tuple("read" if role in {"edit", "delete"} else role for role in roles)
    return zip(roles, parsed.operands, strict=False)


def _roles(operands: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return the roles of `count` words where the table gives `operands`."""
    roles = list(operands)
    repeat = next((place for place, role in enumerate(roles) if role.endswith("*")), None)
    if repeat is not None:
        before, after = roles[:repeat], roles[repeat + 1 :]
        after = after[max(0, len(before) + len(after) - count) :] if count else []
        middle = max(0, count - len(before) - len(after))
        roles = [*before, *[roles[repeat].rstrip("*")] * middle, *after]
    return (*roles, *["mention"] * (count - len(roles)))


_FEW = 16
_few_roles = lru_cache(1_024)(_roles)
"""The same of so few words that what was found is kept."""


def peeks(program: Program, parsed: Parsed) -> bool:
    """Say whether its options make a program only show what it would do; a word nobody knows may undo or eat them."""
    if not program.peek or parsed.unknown or parsed.loose or not parsed.has(*_peek(program, parsed)):
        return False
    return all(item.exact and not item.option.harms and item.word.kind is WordKind.CONST for item in parsed.given)


def _peek(program: Program, parsed: Parsed) -> frozenset[str]:
    """Return the options that make it only show; one of several modes does not, where another may take it back."""
    modes = {item.option.names for item in parsed.given if not program.modes.isdisjoint(item.option.names)}
    return program.peek - program.modes if len(modes) > 1 else program.peek


def _names_only(program: Program, parsed: Parsed) -> bool:
    """Say whether a program that only shows what it would do shows no more than names."""
    return peeks(program, parsed) and not parsed.has(*(program.peek - program.shallow))


def reach_of(program: Program, parsed: Parsed) -> Reach:
    """Return how far the program reaches below its operands with these options."""
    if program.shallow and parsed.has(*program.shallow) and (not program.peek or _names_only(program, parsed)):
        return Reach.NAMES
    if program.deep and parsed.has(*program.deep):
        return Reach.CONTENT
    return _REACHES[program.reach]
