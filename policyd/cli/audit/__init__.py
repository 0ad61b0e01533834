"""`policyd audit`: read the record of what was decided.

    policyd audit show [-n 20] [--effect deny] [--session S] [--agent A] [--rule R] [--kind K] [--project DIR]
                       [--since 2h] [--until 2026-11-29T12:00] [--json]
    policyd audit follow | stats | replay [--policy NEW] | suggest [--unused]     [the same filters]
    policyd audit verify [--checkpoints FILE]

`--log PATH` reads another log than the settings name. Exit codes: 0; 1 `verify` found something, or `replay` with
`--exit-code` a change; 2 usage, or there is no log: where nothing was recorded nothing is known.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from importlib import import_module

from policyd.cli import options
from policyd.cli.audit import verify
from policyd.cli.audit.filters import add_filters, add_log
from policyd.cli.ending import UsageError, failed
from policyd.storage import auditchain, places, settings

NO_LOG = "there is no log at {}: nothing was recorded there yet"
COMMANDS = {
    "show": "print past decisions",
    "follow": "print decisions as they are made",
    "stats": "count decisions and prompts, by rule and kind",
    "replay": "decide past requests again, by today's or other rules",
    "suggest": "rules that would have settled what people kept answering alike",
    "verify": "check that no line was changed, removed, added or moved",
}
MODULES = {
    "show": "audit.show",
    "follow": "audit.show",
    "stats": "audit.stats",
    "replay": "audit.replay",
    "suggest": "suggest",
    "verify": "audit.verify",
}
"""Where each of them lives, below `policyd.cli`."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the subcommands and their filters."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        add_log(command)
        if name != "verify":
            add_filters(command)
        options.add_json(command)
    verify.add_arguments(commands.choices["verify"])
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
    log = auditchain.log_path(args.log or log_in_force(args.home))
    if not auditchain.log_files(log) and not getattr(args, "checkpoints", None):
        return failed("audit", NO_LOG.format(log))
    return int(import_module(f"policyd.cli.{MODULES[args.what]}").run(args, log))


def log_in_force(home: str | None) -> str:
    """Return the path of this user's log, as the settings say; UsageError where records go to what keeps none."""
    here = places.find(home=home)
    path = settings.in_force(here).settings.audit_path or f"{here.audit}/"
    file = auditchain.log_path(path)
    if os.path.exists(file) and not os.path.isfile(file):
        raise UsageError(f"{file} is no plain file: what is recorded there cannot be read again")
    return path
