"""`policyd audit`: read the record of what was decided.

    policyd audit show [-n 20] [--effect deny] [--session S] [--agent A] [--rule R] [--kind K] [--since 2h] [--json]
    policyd audit follow [the same filters]
    policyd audit verify

`--log PATH` reads another log than the settings name. Exit codes: 0; 1 `verify` found something; 2 usage, or no log.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from policyd.display import safe
from policyd.storage import auditchain, places, settings

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
Record = Mapping[str, object]


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the subcommands and their filters."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="show | follow | verify")
    for name, text in (("show", "print past decisions"), ("follow", "print decisions as they are made")):
        command = commands.add_parser(name, help=text)
        add_filters(command)
        command.add_argument("--json", action="store_true", help="the records as they are, one a line")
        command.add_argument("--log", metavar="PATH", help="the log, a file or its directory")
        command.add_argument("--home", metavar="DIR", help="the home directory, where the environment does not tell")
    commands.choices["show"].add_argument("-n", type=int, default=20, help="how many, the newest; 0 = all (default 20)")
    verify = commands.add_parser("verify", help="check that no line was changed, removed, added or moved")
    verify.add_argument("--json", action="store_true", help="what was found as JSON, one object a line")
    verify.add_argument("--log", metavar="PATH", help="the log, a file or its directory")
    verify.add_argument("--home", metavar="DIR", help="the home directory, where the environment does not tell")


def add_filters(parser: ArgumentParser) -> None:
    """Declare the filters of `show` and `follow`."""
    parser.add_argument("--effect", choices=["allow", "deny", "ask"], help="only decisions with this effect")
    parser.add_argument("--event", help="only this event (decision, unasked, reload, terminal, …)")
    parser.add_argument("--session", help="only this session")
    parser.add_argument("--agent", help="only this agent: its name or profile")
    parser.add_argument("--rule", help="only what this rule decided: `user:push`, or the id alone")
    parser.add_argument("--kind", help="only requests with an action of this kind")
    parser.add_argument("--since", type=moment, metavar="WHEN", help="only since then: 30m, 2h, 7d, or a date and time")


def run(args: Namespace) -> int:
    """Do what was asked; return the exit code."""
    try:
        log = auditchain.log_path(args.log or log_in_force(args.home))
    except (places.PlaceError, settings.SettingsError) as error:
        print(f"policyd audit: {error}", file=sys.stderr)
        return 2
    if not auditchain.log_files(log):
        print(f"policyd audit: there is no log at {log} yet", file=sys.stderr)
        return 2
    if args.what == "verify":
        return verify(log, as_json=args.json)
    write = write_json if args.json else write_text
    if args.what == "show":
        return show(log, wanted(args), args.n, write)
    return follow(log, wanted(args), write)


def log_in_force(home: str | None) -> str:
    """Return the path of this user's log, as the settings say."""
    here = places.find(home=home)
    return settings.load(here).settings.audit_path or f"{here.audit}/"


# ---- show and follow -------------------------------------------------------------------------------


def show(log: str, want: Callable[[Record], bool], count: int, write: Callable[[Record], None]) -> int:
    """Print the newest `count` records that are wanted, oldest first; 0 = all."""
    found = (record for file in auditchain.log_files(log) for record in records(file) if want(record))
    for record in found if count == 0 else deque(found, maxlen=count):
        write(record)
    return 0


def follow(log: str, want: Callable[[Record], bool], write: Callable[[Record], None]) -> int:
    """Print records as they are written, until interrupted."""
    try:
        for line in lines_as_they_come(log):
            record = parsed(line)
            if record is not None and want(record):
                write(record)
                sys.stdout.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def lines_as_they_come(log: str, pause: float = 0.2) -> Iterator[bytes]:
    """Yield whole lines appended from now on; when the file is put aside, those of the next one too."""
    place = os.stat(log).st_size
    while True:
        with open(log, "rb") as file:
            file.seek(place)
            yield from lines_of(file, log, pause)
        place = 0


def lines_of(file: BinaryIO, log: str, pause: float) -> Iterator[bytes]:
    """Yield the lines of an open log until another file has its name."""
    rest = b""
    while True:
        if data := file.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
        elif os.path.exists(log) and os.stat(log).st_ino != os.fstat(file.fileno()).st_ino:
            return
        else:
            time.sleep(pause)


def records(path: str) -> Iterator[Record]:
    """Yield the records of one file; what is none is left out (`verify` finds it)."""
    with open(path, "rb") as file:
        for line in file:
            record = parsed(line)
            if record is not None:
                yield record


def parsed(line: bytes) -> Record | None:
    """Return one line's record, None if it is none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def wanted(args: Namespace) -> Callable[[Record], bool]:
    """Return the test all filters make together."""
    tests: list[Callable[[Record], bool]] = []
    exact = {name: value for name in ("effect", "event", "session") if (value := getattr(args, name))}
    if exact:
        tests.append(lambda record: all(record.get(name) == value for name, value in exact.items()))
    if args.agent:
        tests.append(lambda record: args.agent in values(record.get("agent"), "name", "profile"))
    if args.rule:
        tests.append(lambda record: any(named(rule, args.rule) for rule in listed(record.get("rules"))))
    if args.kind:
        tests.append(lambda record: any(args.kind in kinds(action) for action in listed(record.get("actions"))))
    if args.since:
        tests.append(lambda record: str(record.get("time")) >= args.since)
    return lambda record: all(test(record) for test in tests)


def moment(text: str) -> str:
    """Return a time as records write it, from `2h` or an ISO date and time (local where no offset is given)."""
    if match := re.fullmatch(r"(\d+)([smhdw])", text):
        then = datetime.now(UTC) - timedelta(seconds=int(match[1]) * UNITS[match[2]])
    else:
        then = datetime.fromisoformat(text).astimezone(UTC)
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def listed(value: object) -> Sequence[object]:
    """Return a list as it is, anything else as none."""
    return value if isinstance(value, list) else ()


def values(table: object, *keys: str) -> list[object]:
    """Return what a table holds under these keys."""
    return [table.get(key) for key in keys] if isinstance(table, dict) else []


def named(rule: object, name: str) -> bool:
    """Say whether a record's rule is the one called `name`, with or without its layer."""
    label = str(rule.get("rule")) if isinstance(rule, dict) else ""
    return name in {label, label.partition(":")[2]}


def kinds(action: object) -> list[object]:
    """Return the kinds of a record's action."""
    return [*values(action, "kind"), *(listed(action.get("kinds")) if isinstance(action, dict) else ())]


# ---- printing --------------------------------------------------------------------------------------


def write_json(record: Record) -> None:
    """Print a record as JSON."""
    print(json.dumps(record, ensure_ascii=True, separators=(",", ":")))


def write_text(record: Record) -> None:
    """Print a record as lines for people."""
    print("\n".join(in_words(record)))


def in_words(record: Record) -> Iterator[str]:
    """Yield the lines that tell a record: number, time, effect, what, why; then the actions."""
    agent = next((str(name) for name in values(record.get("agent"), "profile", "name") if name), "")
    what = record.get("effect") if record.get("event") == "decision" else record.get("event")
    by = record.get("by")
    whose = f" by {by}" if by not in {None, "policy"} else ""
    title = record.get("title") or record.get("command") or ""
    head = f"{record.get('seq')}  {str(record.get('time'))[:19]}Z  {str(what).upper()}{whose}  {agent}"
    yield f"{head}  {shown(title)}".rstrip()
    rules = ", ".join(located(rule) for rule in listed(record.get("rules")))
    if rules or record.get("reason"):
        yield f"    {rules or record.get('source') or '-'}: {shown(record.get('reason') or '')}"
    for action in listed(record.get("actions")):
        if isinstance(action, dict):
            yield f"    {action.get('effect', '')!s:5}  {action.get('kind') or 'mention'}  {resource(action)}"


def located(rule: object) -> str:
    """Return a rule's name, with file and line where the record has them."""
    if not isinstance(rule, dict):
        return ""
    place = f" ({rule['file']}:{rule.get('line')})" if rule.get("file") else ""
    return shown(f"{rule.get('rule')}{place}")


def resource(action: Mapping[str, object]) -> str:
    """Return what an action is about."""
    for key in ("path", "url", "tool"):
        if value := action.get(key):
            return shown(value)
    if words := listed(action.get("command")):
        return shown(" ".join(map(str, words)))
    return shown(f"not understood: {action['opaque']}") if action.get("opaque") else "-"


def shown(value: object) -> str:
    """Return text safe for a terminal, not too long."""
    return safe(str(value), limit=300)


# ---- verify ----------------------------------------------------------------------------------------


def verify(log: str, *, as_json: bool) -> int:
    """Print everything that breaks the chain; 1 if there was something."""
    found = 0
    for found, (file, line, wrong) in enumerate(auditchain.verify(log), 1):  # noqa: B007 - the count is used below
        print(json.dumps({"file": file, "line": line, "wrong": wrong}) if as_json else f"{file}:{line}: {wrong}")
    if not found and not as_json:
        print(f"{log}: every line follows the one before it")
    return 1 if found else 0
