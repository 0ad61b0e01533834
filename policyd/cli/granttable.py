"""Grants as a table: in colours for a person at a terminal, in plain columns otherwise, however many there are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from functools import cache

from msgspec import Struct

from policyd.display import safe
from policyd.grants import Clock, Grant
from policyd.model import Effect
from policyd.storage.grantfile import GrantFile

NAMES = ("id", "answer", "covers", "agent", "scope", "ends in")
MOST_COLOURED = 500


class Held(Struct, frozen=True):
    """A grant and the file it is in."""

    grant: Grant
    file: GrantFile


def print_table(found: Sequence[Held], clock: Clock, *, every: bool) -> None:
    """Print grants; `every`: of all projects, each named."""
    names = [*NAMES, *(["project"] if every else [])]
    rows = rows_of(found, clock, every=every)
    if sys.stdout.isatty() and len(rows) <= MOST_COLOURED:
        print_coloured(names, rows)
        return
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    form = "  ".join(f"{{:<{width}}}" for width in widths[:-1]) + "  {}"
    print("\n".join([form.format(*line) for line in (names, *rows)]))


def rows_of(found: Sequence[Held], clock: Clock, *, every: bool) -> list[tuple[str, ...]]:
    """Return the cells of each grant, safe to print."""
    shown, wall = cache(safe), clock.wall
    rows: list[tuple[str, ...]] = []
    for one in found:
        grant = one.grant
        ends = left(grant.until - wall)
        row = (grant.id, grant.effect.word, safe(grant.covers), shown(grant.agent), grant.scope, ends)
        rows.append((*row, shown(one.file.root)) if every else row)
    return rows


def print_coloured(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows with `rich`."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in {"id", "answer"})
    for cells in rows:
        answer = Text(cells[1], style="green" if cells[1] == Effect.ALLOW.word else "red")
        table.add_row(cells[0], answer, *map(Text, cells[2:]))
    Console(highlight=False).print(table)


def left(life: timedelta) -> str:
    """Return a length of time as people say it."""
    seconds = max(0, int(life.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
