"""Reading and filtering the records of the audit log.

A record that lacks what a filter asks for does not pass it. `verify` has no filters.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from policyd.cli import options
from policyd.cli.ending import complain, counted
from policyd.cli.shapes import listed, table, values
from policyd.paths import inside
from policyd.storage import auditchain

Record = Mapping[str, object]
Wanted = Callable[[Record], bool]


def add_log(parser: ArgumentParser) -> None:
    """Declare the options for the log's location."""
    parser.add_argument("--log", metavar="PATH", help="the log, a file or its directory")
    options.add_home(parser)


def add_filters(parser: ArgumentParser) -> None:
    """Declare the filters every command but `verify` takes."""
    add = parser.add_argument
    add("--effect", choices=["allow", "deny", "ask"], help="only decisions with this effect")
    add("--event", help="only this event (decision, unasked, reload, terminal, …)")
    add("--session", help="only this session")
    add("--agent", help="only this agent: its name or profile")
    add("--rule", help="only what this rule decided: `user:push`, or the id alone")
    add("--kind", help="only requests with an action of this kind")
    add("--project", type=options.directory, metavar="DIR", help="only sessions in this directory or below")
    add("--since", type=moment, metavar="WHEN", help="only since then: 30m, 2h, 7d, or a date and time")
    add("--until", type=moment, metavar="WHEN", help="only before then")


def wanted(args: Namespace) -> Wanted:
    """Return one test for all filters together."""
    tests: list[Wanted] = []
    exact = {name: value for name in ("effect", "event", "session") if (value := getattr(args, name))}
    if exact:
        tests.append(lambda record: all(record.get(name) == value for name, value in exact.items()))
    if args.agent:
        tests.append(lambda record: args.agent in values(record.get("agent"), "name", "profile"))
    if args.rule:
        tests.append(lambda record: any(named(rule, args.rule) for rule in listed(record.get("rules"))))
    if args.kind:
        tests.append(lambda record: any(args.kind in kinds(action) for action in listed(record.get("actions"))))
    if args.project:
        tests.append(lambda record: inside(str(record.get("cwd") or ""), (args.project,)))
    if args.since:
        tests.append(lambda record: str(record.get("time") or "") >= args.since)
    if args.until:
        tests.append(lambda record: "" < str(record.get("time") or "") < args.until)
    return lambda record: all(test(record) for test in tests)


def moment(text: str) -> str:
    """Return a time in the format of records, from `2h` or an ISO date and time (local without an offset)."""
    try:
        ago = options.span(text)
        then = datetime.fromisoformat(text).astimezone(UTC) if ago is None else datetime.now(UTC) - ago
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"`{text}` is no time; write 30m, 2h, 7d, or 2026-11-29T12:00") from None
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# ---- reading ---------------------------------------------------------------------------------------


def chosen(log: str, want: Wanted, newest: int = 0) -> Iterator[Record]:
    """Return the records of all files of a log that are wanted, oldest first.

    `newest`: the last so many of them, out of no more files than hold them; 0 = all.
    """
    files = auditchain.log_files(log)
    if not newest:
        return (record for file in files for record in records(file) if want(record))
    found: list[Record] = []
    for file in reversed(files):
        found = [*deque((one for one in records(file) if want(one)), maxlen=newest - len(found)), *found]
        if len(found) >= newest:
            break
    return iter(found)


def records(path: str) -> Iterator[Record]:
    """Yield the records of one file; the number of lines that are none is reported at its end."""
    skipped = 0
    with open(path, "rb") as file:
        for line in file:
            record = parsed(line)
            if record is not None:
                yield record
            else:
                skipped += 1
    if skipped:
        complain("audit", f"{path}: skipped {counted(skipped, 'line')} that hold no record; `audit verify` lists them")


def parsed(line: bytes) -> Record | None:
    """Return one line's record, None if it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def named(rule: object, name: str) -> bool:
    """Say whether `name` names a record's rule, with or without its layer."""
    label = str(table(rule).get("rule", ""))
    return name in {label, label.partition(":")[2]}


def kinds(action: object) -> list[object]:
    """Return the kinds of a record's action."""
    return [*values(action, "kind"), *listed(table(action).get("kinds"))]


# ---- who decided -----------------------------------------------------------------------------------

PEOPLE = frozenset({"client", "inbox", "command"})


def answered(record: Record) -> bool:
    """Say whether a person answered this request: a prompt that ended with somebody's yes or no."""
    by = str(record.get("by") or "").partition(":")[0]
    return record.get("source") == "prompt" and by in PEOPLE and record.get("outcome") != "cancelled"


def agent(record: Record) -> str:
    """Return the agent as policies name it: by its profile, else by its wire name."""
    stated = table(record.get("agent"))
    profile, name = stated.get("profile"), stated.get("name")
    return str((profile if profile != "generic" else "") or name or "")
