"""`policyd decide [FILE…]`: decide offline. JSON Lines in, one JSON object a request or side-door call out.

Lines are ACP messages, transcript lines `{"dir": …, "msg": …}`, or bare `session/request_permission` parameters, in
any mixture; all other messages set the context. Without FILE, or as `-`, standard input is read. Each file is a
connection.

Exit code 0; with `--exit-code` 0, 1 or 3 for the strictest of allow, deny, ask, and 2 if nothing was decided; 2 for
usage and policy errors. A file without a request is always reported on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from policyd.authorizer import NOWHERE
from policyd.cli import loading, options
from policyd.cli.ending import DONE, FAILED, complain
from policyd.cli.facts import result_facts
from policyd.cli.replay import Replay, Result
from policyd.cli.saying import say_json
from policyd.model import Effect

CODES = {Effect.ALLOW: 0, Effect.DENY: 1, Effect.ASK: 3}
MOST_NOTES = 5
"""Lines that are left out and named one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `decide`."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="transcripts; standard input if none")
    parser.add_argument("--exit-code", action="store_true", help="0 allow, 1 deny, 3 ask: the strictest decision")
    options.add_json(parser)
    options.add_deciding(parser)
    options.add_offline(parser)


def run(args: argparse.Namespace) -> int:
    """Print a line for each decision."""
    effects: list[Effect] = []
    left_out: list[str] = []
    nowhere = False
    for result in results(args, left_out):
        say_json(result_facts(result))
        sys.stdout.flush()
        effects.append(Effect.DENY if result.error else result.answer.effect)
        nowhere = nowhere or (not result.error and NOWHERE in result.decision.reason)
    if nowhere and not args.cwd:
        complain("decide", f"{NOWHERE}: name it with `--cwd DIR`")
    return exit_code(effects, left_out) if args.exit_code else DONE


def exit_code(effects: list[Effect], left_out: list[str]) -> int:
    """Return the code of the strictest decision; a request that was not decided is an error, never an allow."""
    return FAILED if left_out or not effects else CODES[max(effects)]


def results(args: argparse.Namespace, left_out: list[str]) -> Iterator[Result]:
    """Yield the decisions of every file; notes on skipped lines go to stderr and to `left_out`."""
    loaded = loading.load(args)
    for note in loaded.in_force().notes:
        complain("decide", note)
    for name in args.files or ["-"]:
        replay = replaying(args, loaded)
        with opened(name) as lines:
            yield from replay.run(lines)
        left_out += replay.notes
        complain_of("decide", name, replay.notes)
        if contradiction := replay.authorizer.conversation.contradiction:
            complain("decide", f"{source(name)}: {contradiction}")


def complain_of(command: str, name: str, notes: list[str]) -> None:
    """Say what was left out of a transcript: of many lines the first, and how many more."""
    more = len(notes) - MOST_NOTES - 1
    shown = [*notes[:MOST_NOTES], f"{more} more notes of this kind", notes[-1]] if more > 1 else notes
    for note in shown:
        complain(command, f"{source(name)}: {note}")
    if notes and name.endswith(".toml"):
        complain(command, f"{name}: a policy goes behind `--policy`, and what is decided is a transcript")


def replaying(args: argparse.Namespace, loaded: loading.Loaded) -> Replay:
    """Return a fresh decision point, as the options describe it."""
    return Replay(loading.authorizer(args, loaded), unattended=args.unattended, now=datetime.now(UTC))


def source(name: str) -> str:
    """Return a transcript's name as people say it."""
    return "standard input" if name == "-" else name


@contextmanager
def opened(name: str) -> Iterator[Iterable[bytes]]:
    """Open a transcript; `-` is standard input."""
    if name == "-":
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:
        yield file
