"""`policyd decide [FILE…]`: decide offline. JSON Lines in, one JSON object a request or side-door call out.

Lines are ACP messages, transcript lines `{"dir": …, "msg": …}`, or bare `session/request_permission` parameters, any
mixed; everything else sets context. Without FILE, or as `-`, standard input is read. Each file is a connection.

Exit code 0; with `--exit-code` 0, 1 or 3 for the strictest of allow, deny, ask; 2 for usage and policy errors.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from policyd.cli import loading, options
from policyd.cli.facts import result_facts
from policyd.cli.replay import Replay, Result
from policyd.model import Effect
from policyd.policy import PolicyError
from policyd.storage.places import PlaceError

CODES = {Effect.ALLOW: 0, Effect.DENY: 1, Effect.ASK: 3}
USAGE = 2


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
    try:
        for result in results(args, left_out):
            print(json.dumps(result_facts(result)), flush=True)
            effects.append(Effect.DENY if result.error else result.answer.effect)
    except (PolicyError, PlaceError, loading.UsageError, OSError) as error:
        return refused(error)
    return exit_code(effects, left_out) if args.exit_code else 0


def exit_code(effects: list[Effect], left_out: list[str]) -> int:
    """Return the code of the strictest decision; what was not decided is an error, never an allow."""
    if left_out or not effects:
        print("policyd: a line could not be read" if left_out else "policyd: there was no request", file=sys.stderr)
        return USAGE
    return CODES[max(effects)]


def results(args: argparse.Namespace, left_out: list[str] | None = None) -> Iterator[Result]:
    """Yield what is decided of every file; what was left out is told on stderr, and added to `left_out`."""
    loaded = loading.load(args)
    for name in args.files or ["-"]:
        point = loading.authorizer(args, loaded)
        replay = Replay(point, unattended=args.unattended, now=datetime.now(UTC))
        with opened(name) as lines:
            yield from replay.run(lines)
        if left_out is not None:
            left_out += replay.notes
        for note in [*replay.notes, *filter(None, [point.conversation.contradiction])]:
            print(f"policyd: {name}: {note}", file=sys.stderr)


@contextmanager
def opened(name: str) -> Iterator[Iterable[bytes]]:
    """Open a transcript; `-` is standard input."""
    if name == "-":
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:
        yield file


def refused(error: Exception) -> int:
    """Print everything that is wrong and return the exit code."""
    if isinstance(error, BrokenPipeError):
        return 0
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    print(text, file=sys.stderr)
    return USAGE
