"""What the daemon of another user remembers of this user's answers: its files are not this user's to read or change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from policyd.cli import calling
from policyd.cli.shapes import tables, texts
from policyd.display import safe
from policyd.storage import sockets
from policyd.storage.places import Places
from policyd.storage.sockets import SocketError

Row = Mapping[str, object]


def daemon(where: Places) -> str:
    """Return the socket of another user's daemon; empty where there is none, or it is this user's own."""
    try:
        path = sockets.find(where)
    except SocketError:
        return ""
    return "" if sockets.owner(path) == os.getuid() else path


def rows(where: Places, root: str | None) -> list[Row]:
    """Return what is remembered there for a project, or (None) for all; nothing where it does not say."""
    path = daemon(where)
    try:
        found = tables(asked(path, ()).get("grants")) if path else []
    except SocketError:  # who does not use that daemon need not hear of it
        return []
    return [row for row in found if root is None or row.get("project") in ("", root)]


def revoke(where: Places, ids: Sequence[str]) -> tuple[str, ...]:
    """Take answers back there; return the ids of those that are gone.

    Raises:
        SocketError: it refuses, or does not answer.
    """
    return texts(asked(daemon(where), ids).get("revoked"))


def asked(path: str, ids: Sequence[str]) -> dict[str, object]:
    """Return what the daemon at `path` answers."""
    return calling.asked(path, "_policyd/grants", {"revoke": list(ids)}, by="policyd grants")


def lines(found: Sequence[Row]) -> Iterator[str]:
    """Yield what a person sees of it."""
    if found:
        yield "at the daemon:"
    for row in found:
        cells = ("id", "effect", "covers", "agent", "scope", "project")
        yield "  ".join(safe(str(row.get(name) or "-"), limit=200) for name in cells) + f"  until {row.get('until')}"
