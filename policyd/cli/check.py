"""`policyd check`: every mistake of every policy file of every layer at once, with file, line and what to write.

If everything loads, warnings follow: about rules that mean less, or more, than their author thinks (`lint`).

Rules of this command:

1. A layer that cannot be read does not hide the mistakes of the others.
2. A project file with a mistake is an error here, though a session would only ask about everything.
3. Examples of rules are tested once everything loads; settings are checked unless policy files are named.
4. Exit code 0: all is well; 1: warnings, with `--strict`; 2: mistakes. They are printed on stderr (with `--json` on
   stdout, one object each).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct, field

from policyd.actions import Machine
from policyd.authorizer import check_examples
from policyd.cli import expand, loading, options
from policyd.cli.ending import counted
from policyd.cli.findings import Finding
from policyd.cli.lint import lint
from policyd.cli.saying import say, say_json, say_results
from policyd.policy import Diagnostic, Policy, PolicyError, PolicySource
from policyd.storage import places, policies, settings
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.places import Places
from policyd.storage.policies import Found
from policyd.storage.settings import SettingsError
from policyd.storage.trust import TrustStore


class Report(Struct):
    """What was found in all layers."""

    sources: tuple[PolicySource, ...]
    mistakes: list[Diagnostic]
    notes: tuple[str, ...]
    policy: Policy | None = None
    warnings: list[Finding] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd check`."""
    parser.add_argument("policy", nargs="*", metavar="FILE", help="policy files or directories, instead of the user's")
    what = "the project (default: here); if it is named, patterns are checked against its files too"
    parser.add_argument("--cwd", type=options.project, metavar="DIR", help=what)
    options.add_home(parser)
    options.add_managed(parser)
    options.add_project(parser, "--cwd")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are warnings")
    parser.add_argument("--ignore", action="append", default=[], metavar="NAME", help="leave out warnings of this name")
    parser.add_argument("--expand", action="store_true", help="also show the sets that policies use, entry by entry")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check the layers the options name; return the exit code."""
    where = places.find(home=args.home)
    report = examine(args, where)
    if args.expand:
        rows = [*expand.rows(report.sources)]
        say_results(rows, map(expand.line_of, rows), as_json=args.json)
    if args.json:
        say_json(*facts(report))
    else:
        show(report)
    if report.mistakes:
        return 2
    return 1 if args.strict and report.warnings else 0


def examine(args: argparse.Namespace, where: Places) -> Report:
    """Load every layer, then test the examples."""
    found, mistakes = policies.together(
        lambda: loading.managed(args, where),
        lambda: policies.user(where.user_policies, args.policy),
        lambda: project(args, where),
    )
    report = loaded(found, mistakes, where)
    if not args.policy:
        report.mistakes += settings_mistakes(where)
    report.warnings = [one for one in warned(report, where, args.cwd or "") if one.name not in args.ignore]
    return report


def loaded(found: Found, mistakes: list[Diagnostic], where: Places) -> Report:
    """Load what was found and test the examples; `mistakes` are those found so far."""
    report, fs = Report(found.sources, mistakes, found.notes), RealFilesystem()
    try:
        report.policy = policies.loaded_at(where, found.sources, fs)
    except PolicyError as error:
        report.mistakes += error.diagnostics
    else:
        report.mistakes += check_examples(report.policy, Machine(where.home, fs, where.tmpdir))
    return report


def warned(report: Report, where: Places, cwd: str = "") -> list[Finding]:
    """Return the warnings about what loads."""
    if report.policy is None or report.mistakes:
        return []
    now = datetime.now(UTC)
    return [*lint(report.policy, report.sources, home=where.home, tmpdir=where.tmpdir, now=now, cwd=cwd)]


def settings_mistakes(where: Places) -> list[Diagnostic]:
    """Return what is wrong with the settings."""
    try:
        settings.load(where)
    except SettingsError as error:
        return error.diagnostics
    return []


def project(args: argparse.Namespace, where: Places) -> Found:
    """Return the project layer; a file that cannot be read is a mistake."""
    if args.no_project:
        return Found()
    root = os.path.abspath(args.project or args.cwd or os.getcwd())
    return policies.whole_project(root, TrustStore(where.trust))


def show(report: Report) -> None:
    """Print the report for people."""
    say(*report.mistakes, error=True)
    say(*(f"warning: {warning}" for warning in report.warnings), error=True)
    say(*(f"note: {note}" for note in report.notes), error=True)
    if report.mistakes:
        read = f" in {counted(len(report.sources), 'policy file')}" if report.sources else ""
        say(f"{counted(len(report.mistakes), 'mistake')}{read}", error=True)
    elif report.policy is not None:
        found = {"policy file": report.sources, "rule": report.policy.rules, "example": report.policy.examples}
        counts = ", ".join(counted(len(things), word) for word, things in found.items())
        summary = f"ok: {counts}, revision {report.policy.revision}"
        say(summary + (f"; {counted(len(report.warnings), 'warning')}" if report.warnings else ""))
        if not report.sources:
            say("note: no policy file was found: everything asks", error=True)


def facts(report: Report) -> Iterator[dict[str, object]]:
    """Yield the report as JSON: each mistake, each warning, each note, then a summary."""
    for mistake in report.mistakes:
        yield {"severity": "error", **place(mistake)}
    for warning in report.warnings:
        yield {"severity": "warning", "name": warning.name, **place(warning.at)}
    for note in report.notes:
        yield {"severity": "note", "found": note}
    policy = report.policy
    yield {
        "ok": not report.mistakes,
        "warnings": len(report.warnings),
        "files": len(report.sources),
        "rules": len(policy.rules) if policy else 0,
        "examples": len(policy.examples) if policy else 0,
        "revision": policy.revision if policy else "",
    }


def place(at: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as JSON."""
    where = {"layer": at.layer.word, "file": at.file, "line": at.line, "rule": at.rule}
    return {**where, "found": at.found, "write": at.write}
