"""The requests to explain: named on the command line, or recorded in the audit log."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence

from msgspec import Struct

from policyd.audit.rebuild import Undecidable
from policyd.cli.audit import NO_LOG, cases, filters, log_in_force
from policyd.cli.audit.filters import Record
from policyd.cli.audit.show import located
from policyd.cli.ending import MissingError, UsageError
from policyd.cli.saying import shown
from policyd.cli.shapes import tables
from policyd.model import KINDS
from policyd.policy.build import example_mistake
from policyd.storage import auditchain

NAMED = {
    "kind": ("KIND", "explain a request of this kind, about what the next options name"),
    "path": ("PATH", "about this path"),
    "command": ("TEXT", "about this shell text"),
    "url": ("URL", "about this URL"),
    "tool": ("SERVER/TOOL", "about this tool"),
    "mode": ("MODE", "about a switch to this mode"),
}


class Past(Struct, frozen=True):
    """A record of the audit log and the request it is about."""

    record: Record
    case: cases.Case


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a request: a made-up one, or a recorded one."""
    add = parser.add_argument
    example = "explain a request nobody has made yet (repeatable)"
    add("--example", action="append", default=[], metavar='"KIND RESOURCE"', help=example)
    for name, (value, text) in NAMED.items():
        add(f"--{name}", metavar=value, help=text)
    with_this = "with this argument (repeatable)"
    add("--input", action="append", default=[], type=argument, metavar="KEY=VALUE", help=with_this)
    add("--record", metavar="N|ID", help="explain what the audit log holds under this number or id")
    add("--log", metavar="PATH", help="the audit log, a file or its directory (default: as the settings say)")


def argument(text: str) -> tuple[str, object]:
    """Parse `KEY=VALUE`; the value is taken for JSON if it is valid JSON, else for text."""
    import json

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is no argument; write KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def named(args: argparse.Namespace) -> dict[str, object]:
    """Return the request that the options name, as a policy's example table; empty if they name none.

    Raises:
        UsageError: no such request is possible.
    """
    found: dict[str, object] = {key: value for key in NAMED if (value := getattr(args, key)) is not None}
    if args.input:
        found["input"] = dict(args.input)
    mistake = example_mistake("", found) if found else None
    if mistake is not None:
        raise UsageError(f"{mistake.found}; {mistake.write}")
    return found


def check_kinds(examples: Iterable[str]) -> None:
    """Refuse an example whose first word is not a kind: it would be taken for the name of a tool.

    Raises:
        UsageError: with what to write.
    """
    for text in examples:
        kind = text.partition(" ")[0]
        if kind not in KINDS and not kind.startswith("_"):
            raise UsageError(
                f"`{shown(kind)}` is no kind; write the kind first: "
                f'--example "execute {shown(text)}" for a command, else one of {", ".join(KINDS)}'
            )


def check_files(words: Sequence[str]) -> None:
    """Refuse a request in the place of a file name.

    Raises:
        UsageError: with what to write.
    """
    for text in words:
        if text != "-" and not os.path.lexists(text):
            request = " ".join(words)
            example = request if request.partition(" ")[0] in KINDS else f"execute {request}"
            hint = f'a request is named so: --example "{shown(example)}"'
            raise UsageError(f"{shown(text)}: No such file or directory; {hint}")


def past(args: argparse.Namespace) -> Past:
    """Return the record `args.record` names.

    Raises:
        MissingError: there is no such record.
        UsageError: it lacks something a decision needs.
        SettingsError: the settings, which name the log, are invalid.
    """
    log = auditchain.log_path(args.log or log_in_force(args.home))
    if not auditchain.log_files(log):
        raise UsageError(NO_LOG.format(log))
    records = filters.chosen(log, lambda record: args.record in {str(record.get("seq")), str(record.get("id"))})
    record = next(records, None)
    if record is None:
        raise MissingError(f"{log} has no record `{args.record}`; `policyd audit show` lists them")
    if record.get("event") != "decision":
        raise UsageError(f"record {args.record} is no decision but `{record.get('event')}`")
    try:
        return Past(record, cases.case(record))
    except Undecidable as error:
        raise UsageError(f"record {args.record} cannot be decided again: {error}") from error


def then(record: Record) -> str:
    """Return what was decided then, in one line."""
    by = ", ".join(map(located, tables(record.get("rules")))) or str(record.get("source"))
    return shown(f"record {record.get('seq')} of {record.get('time')}: {decided(record, by)}")


def decided(record: Record, by: str) -> str:
    """Return what was decided: the effect of the rules, and who answered if they asked."""
    effect, who = record.get("effect"), record.get("by")
    if filters.answered(record):
        return f"ask by {by}, answered {effect} by {who}"
    if record.get("source") == "prompt":
        return f"ask by {by}, nobody answered: {effect}"
    if record.get("source") == "grant":
        return f"ask by {by}, {effect} by a remembered answer"
    return f"{effect} by {by}"
