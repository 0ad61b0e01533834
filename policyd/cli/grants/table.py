"""Grants as a table in plain columns; for a person at a terminal the answers are coloured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

from msgspec import Struct

from policyd.cli import colour
from policyd.cli.saying import say_verbatim
from policyd.display import safe
from policyd.grants import Clock, Grant
from policyd.storage.grantfile import GrantFile

NAMES = ("id", "answer", "covers", "agent", "scope", "ends in")


class Held(Struct, frozen=True):
    """A grant and the file it is in."""

    grant: Grant
    file: GrantFile


def print_table(found: Sequence[Held], clock: Clock, *, every: bool) -> None:
    """Print grants; `every`: of all projects, each named."""
    rows = [(*NAMES, "project") if every else NAMES, *rows_of(found, clock, every=every)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    coloured = colour.wanted()
    form = "  ".join(f"{{:<{width}}}" for width in widths[:-1]) + "  {}\n"
    for number, row in enumerate(rows):
        cells = list(row)
        if number and coloured:
            cells[1] = colour.of_effect(row[1], row[1].ljust(widths[1]))
        say_verbatim(form.format(*cells))


def rows_of(found: Sequence[Held], clock: Clock, *, every: bool) -> list[tuple[str, ...]]:
    """Return the cells of each grant, safe to print."""
    shown, wall = cache(safe), clock.wall
    rows: list[tuple[str, ...]] = []
    for one in found:
        grant = one.grant
        ends = left(grant.until - wall) + (", or with its agent" if grant.scope == "session" else "")
        row = (shown(grant.id), grant.effect.word, safe(grant.covers), shown(grant.agent), shown(grant.scope), ends)
        rows.append((*row, shown(one.file.root)) if every else row)
    return rows


def left(life: timedelta) -> str:
    """Return a length of time as people say it."""
    seconds = max(0, int(life.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
