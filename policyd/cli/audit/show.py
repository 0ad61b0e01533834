"""`policyd audit show` and `follow`: records as lines for people, or as JSON.

A record is printed as far as possible: fields that are missing or of another type are left out.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO

from policyd.cli.audit.filters import Record, chosen, parsed, wanted
from policyd.cli.audit.filters import agent as agent_name
from policyd.cli.saying import say, say_json, shown
from policyd.cli.shapes import listed, tables, texts


def run(args: Namespace, log: str) -> int:
    """Print the selected records; return the exit code."""
    write = say_json if args.json else write_text
    if args.what == "show":
        return show(log, wanted(args), args.n, write)
    return follow(log, wanted(args), write)


def show(log: str, want: Callable[[Record], bool], count: int, write: Callable[[Record], None]) -> int:
    """Print the newest `count` selected records, oldest first; 0 = all."""
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
    except KeyboardInterrupt:  # the usual end
        pass
    return 0


def lines_as_they_come(log: str, pause: float = 0.2) -> Iterator[bytes]:
    """Yield whole lines appended from now on; when the log is rotated, continue with the new file."""
    place = os.stat(log).st_size
    while True:
        with open(log, "rb") as file:
            file.seek(place)
            yield from lines_of(file, log, pause)
        place = 0


def lines_of(file: BinaryIO, log: str, pause: float) -> Iterator[bytes]:
    """Yield the lines of an open log until it is rotated, and the last ones written to it."""
    rest, gone = b"", False
    while True:
        if data := file.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
        elif gone:
            return
        else:
            time.sleep(pause)
            with suppress(FileNotFoundError):  # rotated a moment ago, and the new file is not there yet
                gone = os.stat(log).st_ino != os.fstat(file.fileno()).st_ino


# ---- printing --------------------------------------------------------------------------------------


def write_text(record: Record) -> None:
    """Print a record as lines for people."""
    say(*in_words(record))


def in_words(record: Record) -> Iterator[str]:
    """Yield a record as lines: number, time, effect, what, why; then the actions."""
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
    if record.get("event") == "reload":
        yield from (f"    {shown(line)}" for line in reloaded(record))
    for action in tables(record.get("actions")):
        effect, kind = shown(action.get("effect", "")), shown(action.get("kind") or "mention")
        yield f"    {effect:5}  {kind}  {resource(action)}"


def reloaded(record: Record) -> Iterator[str]:
    """Yield the result of a reload: the problems, or the revision in force."""
    problems = texts(record.get("problems"))
    yield from problems
    if not problems and record.get("revision"):
        yield f"revision {record['revision']}{', it may allow more than before' if record.get('loosens') else ''}"


def located(rule: Mapping[str, object]) -> str:
    """Return a rule's name, with file and line where the record has them."""
    place = f" ({rule['file']}:{rule.get('line')})" if rule.get("file") else ""
    return f"{rule.get('rule')}{place}"


def resource(action: Mapping[str, object]) -> str:
    """Return the resource of an action."""
    for key in ("path", "url", "tool"):
        if value := action.get(key):
            return shown(value)
    if words := listed(action.get("command")):
        return shown(" ".join(map(str, words)))
    return shown(f"not understood: {action['opaque']}") if action.get("opaque") else "-"
