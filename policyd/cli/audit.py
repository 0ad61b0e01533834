"""`policyd audit`: read the record of what was decided.

    policyd audit show [-n 20] [--effect deny] [--session S] [--agent A] [--rule R] [--kind K] [--project DIR]
                       [--since 2h] [--until 2026-11-29T12:00] [--json]
    policyd audit follow | stats | replay [--policy NEW] | suggest [--unused]     [the same filters]
    policyd audit verify

`--log PATH` reads another log than the settings name. Exit codes: 0; 1 `verify` found something, or `replay` with
`--exit-code` a change; 2 usage, or there is no log: where nothing was recorded nothing is known.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import BinaryIO

from policyd.cli import options
from policyd.cli.auditfilters import Record, add_filters, add_log, chosen, parsed, wanted
from policyd.cli.auditfilters import agent as agent_name
from policyd.cli.ending import DONE, NO, failed
from policyd.cli.saying import say, say_or_tell, shown, tell
from policyd.cli.shapes import listed, tables
from policyd.storage import auditchain, places, settings

NO_LOG = "there is no log at {}: nothing was recorded there yet"
EMPTY = "holds no record: nothing was written, or all of it was taken away"
ANALYSES = {"stats": "auditstats", "replay": "auditreplay", "suggest": "suggest"}
"""Commands that look at all records of a log together, and their modules."""
COMMANDS = {
    "show": "print past decisions",
    "follow": "print decisions as they are made",
    "stats": "count decisions and prompts, by rule and kind",
    "replay": "decide past requests again, by today's or other rules",
    "suggest": "rules that would have settled what people kept answering alike",
    "verify": "check that no line was changed, removed, added or moved",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the subcommands and their filters."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        add_log(command)
        if name != "verify":
            add_filters(command)
        options.add_json(command)
    how_many = "how many, the newest; 0 = all (default 20)"
    count = options.counting("records", 0)
    commands.choices["show"].add_argument("-n", type=count, default=20, metavar="N", help=how_many)
    for name in ("replay", "suggest"):
        options.add_policies(commands.choices[name])
        options.add_managed(commands.choices[name])
        commands.choices[name].add_argument("--no-project", action="store_true", help=options.NO_PROJECT)
    changed = "1 if a decision changed or could not be decided"
    commands.choices["replay"].add_argument("--exit-code", action="store_true", help=changed)
    add = commands.choices["suggest"].add_argument
    often = "how often it was answered alike (default 2)"
    add("--min", type=options.counting("answers", 1), default=2, metavar="N", help=often)
    add("--unused", action="store_true", help="the reverse: allow rules in force that nothing in the log used")


def run(args: Namespace) -> int:
    """Do what was asked; return the exit code."""
    try:
        log = auditchain.log_path(args.log or log_in_force(args.home))
    except (places.PlaceError, settings.SettingsError) as error:
        return failed("audit", error)
    if not auditchain.log_files(log):
        return failed("audit", NO_LOG.format(log))
    if args.what in ANALYSES:
        return int(import_module(f"policyd.cli.{ANALYSES[args.what]}").run(args, log))
    if args.what == "verify":
        return verify(log, as_json=args.json)
    write = tell if args.json else write_text
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
    found = chosen(log, want)
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
    except KeyboardInterrupt:  # how a person ends it
        pass
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
            continue
        with suppress(FileNotFoundError):  # put aside a moment ago, and the next is not there yet
            if os.stat(log).st_ino != os.fstat(file.fileno()).st_ino:
                return
        time.sleep(pause)


# ---- printing --------------------------------------------------------------------------------------


def write_text(record: Record) -> None:
    """Print a record as lines for people."""
    say(*in_words(record))


def in_words(record: Record) -> Iterator[str]:
    """Yield the lines that tell a record: number, time, effect, what, why; then the actions."""
    agent = agent_name(record)
    what = record.get("effect") if record.get("event") == "decision" else record.get("event")
    by = str(record.get("by") or "policy")
    whose = "" if by == "policy" else f" by {by}"
    command = listed(record.get("command"))
    title = record.get("title") or " ".join(map(str, command))
    head = f"{record.get('seq')}  {str(record.get('time'))[:19]}Z  {str(what).upper()}{whose}  {agent}"
    yield f"{shown(head)}  {shown(title)}".rstrip()
    rules = ", ".join(shown(located(rule)) for rule in tables(record.get("rules")))
    if rules or record.get("reason"):
        yield f"    {rules or shown(record.get('source') or '-')}: {shown(record.get('reason') or '')}"
    for action in tables(record.get("actions")):
        effect, kind = shown(action.get("effect", "")), shown(action.get("kind") or "mention")
        yield f"    {effect:5}  {kind}  {resource(action)}"


def located(rule: Mapping[str, object]) -> str:
    """Return a rule's name, with file and line where the record has them."""
    place = f" ({rule['file']}:{rule.get('line')})" if rule.get("file") else ""
    return f"{rule.get('rule')}{place}"


def resource(action: Mapping[str, object]) -> str:
    """Return what an action is about."""
    for key in ("path", "url", "tool"):
        if value := action.get(key):
            return shown(value)
    if words := listed(action.get("command")):
        return shown(" ".join(map(str, words)))
    return shown(f"not understood: {action['opaque']}") if action.get("opaque") else "-"


# ---- verify ----------------------------------------------------------------------------------------


def verify(log: str, *, as_json: bool) -> int:
    """Print everything that breaks the chain; 1 if there was something."""
    found = list(auditchain.verify(log))
    facts = ({"file": file, "line": line, "wrong": wrong} for file, line, wrong in found)
    lines = [f"{file}:{line}: {wrong}" for file, line, wrong in found]
    whole = "every line follows the one before it" if any(map(os.path.getsize, auditchain.log_files(log))) else EMPTY
    say_or_tell(facts, lines or [f"{log}: {whole}"], as_json=as_json)
    return NO if found else DONE
