"""Requests that were really made, as actions: from an audit log, or from a transcript of an agent and its client.

An audit record names what was decided about, not everything the agent sent: its primary actions are made again from
kind and resource, in the directory the record names. What was masked or cut stays so.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policyd.actions import Conversation
from policyd.actions.examples import example_actions
from policyd.authorizer import Authorizer
from policyd.cli.replay import Replay
from policyd.model import Action
from policyd.policy import Policy

Recorded = tuple[str, tuple[Action, ...]]
Record = Mapping[str, object]


def requests(path: str, talk: Conversation) -> Iterator[Recorded]:
    """Yield title and actions of every request in a log or transcript.

    Args:
        path: an audit log or a transcript; the first line tells which.
        talk: the session in which an audit log's actions are made again.
    """
    with open(path, "rb") as file:
        first = file.readline()
        file.seek(0)
        if is_record(parsed(first)):
            for line in file:
                record = parsed(line)
                if is_record(record):
                    yield title_of(record), remade(record, talk)
            return
        replay = Replay(Authorizer(Policy(), machine=talk.machine, cwd=talk.workspace("").cwd))
        for result in replay.run(file):
            if not result.error:
                yield result.request.title or f"line {result.line.number}", result.request.actions


def parsed(line: bytes) -> Record:
    """Return a line's object, empty if it holds none."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def is_record(value: Record) -> bool:
    """Say whether a line is the record of a decision (or of anything else in an audit log)."""
    return "schema" in value and "event" in value


def title_of(record: Record) -> str:
    """Return what a record is shown as."""
    rows = primary(record)
    told = [told_row(row) for row in rows]
    return " + ".join(told) or str(record.get("title") or f"record {record.get('seq')}")


def primary(record: Record) -> list[Record]:
    """Return the actions of a record that others do not follow from."""
    rows = record.get("actions")
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [row for row in found if row.get("role") == "primary"]


def told_row(row: Record) -> str:
    """Return an action as `KIND RESOURCE`."""
    asked = example_of(row)
    resource = next((str(asked[key]) for key in ("command", "path", "url", "tool") if key in asked), "")
    return f"{asked['kind']} {resource}".strip()


def example_of(row: Record) -> dict[str, object]:
    """Return a recorded action as policies write examples."""
    found: dict[str, object] = {"kind": row.get("kind") or "other"}
    words = row.get("command")
    if isinstance(words, list):
        found["command"] = str(row.get("text") or shlex.join(map(str, words)))
    found.update({key: row[key] for key in ("path", "url", "tool", "input") if key in row})
    places = row.get("cwd")
    if isinstance(places, list) and places:
        found["cwd"] = places[0]
    return found


def remade(record: Record, talk: Conversation) -> tuple[Action, ...]:
    """Return the actions of a record, made again."""
    made: list[Action] = []
    around, profile = talk.around(""), talk.profile
    for row in primary(record):
        if row.get("opaque"):
            made.append(Action(frozenset({str(row.get("kind") or "other")}), opaque=str(row["opaque"])))
        else:
            made += example_actions("", example_of(row), "", around, profile)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One record of a log, by number or id."""

    key: str

    def fits(self, record: Record) -> bool:
        """Say whether it is the record."""
        return self.key in {str(record.get("seq")), str(record.get("id"))} and is_record(record)
