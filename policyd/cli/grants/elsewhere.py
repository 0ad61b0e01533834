"""Grants that another user's daemon keeps for this user, who may not read or change its files."""

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
    """Return the socket of another user's daemon; empty if there is none, or it is this user's own."""
    try:
        path = sockets.find(where)
    except SocketError:
        return ""
    return "" if sockets.owner(path) == os.getuid() else path


def rows(where: Places, root: str | None) -> list[Row]:
    """Return the grants for a project, or (None) for all; empty if the daemon does not answer."""
    path = daemon(where)
    try:
        found = tables(asked(path, ()).get("grants")) if path else []
    except SocketError:  # of no interest to users who do not use that daemon
        return []
    return [row for row in found if root is None or row.get("project") in ("", root)]


def revoke(where: Places, ids: Sequence[str]) -> tuple[str, ...]:
    """Revoke grants; return the ids of those that are gone.

    Raises:
        SocketError: it refuses, or does not answer.
    """
    return texts(asked(daemon(where), ids).get("revoked"))


def asked(path: str, ids: Sequence[str]) -> dict[str, object]:
    """Return what the daemon at `path` answers."""
    return calling.asked(path, "_policyd/grants", {"revoke": list(ids)}, by="policyd grants")


def lines(found: Sequence[Row]) -> Iterator[str]:
    """Yield the grants as lines for people."""
    if found:
        yield "at the daemon:"
    for row in found:
        cells = ("id", "effect", "covers", "agent", "scope", "project")
        yield "  ".join(safe(str(row.get(name) or "-"), limit=200) for name in cells) + f"  until {row.get('until')}"
