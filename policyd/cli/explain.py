"""`policyd explain [FILE…]`: why each request is decided as it is, for people.

For every request: what is known of it and where that was found, every action with everything that spoke about it, the
rules that nearly did, the option that would be answered, and the way out. `--example "KIND RESOURCE"` explains a
request nobody has made yet, in the words that `match` in a policy uses.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from policyd.acp import Answer
from policyd.actions import Evidence
from policyd.actions.examples import example_actions
from policyd.authorizer import Authorizer
from policyd.cli import loading, options
from policyd.cli.decide import opened, refused
from policyd.cli.explaining import explain, nearly
from policyd.cli.facts import result_facts
from policyd.cli.replay import Replay, Result
from policyd.cli.transcript import Line
from policyd.model import Option, Request
from policyd.policy import PolicyError
from policyd.storage.places import PlaceError

PLAIN = (Option("allow", "Allow", "allow_once"), Option("reject", "Reject", "reject_once"))


@dataclass(frozen=True, slots=True)
class Explained:
    """One result and what it rests on."""

    result: Result
    evidence: tuple[Evidence, ...]
    point: Authorizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="transcripts; standard input if none and no --example")
    parser.add_argument(
        "--example", action="append", default=[], metavar='"KIND RESOURCE"', help="explain this instead"
    )
    options.add_json(parser)
    options.add_deciding(parser)
    options.add_offline(parser)


def run(args: argparse.Namespace) -> int:
    """Print an explanation of each decision."""
    try:
        for each in explained(args):
            print(as_json(each) if args.json else explain(each.result, each.evidence, each.point), flush=True)
    except (PolicyError, PlaceError, loading.UsageError, OSError) as error:
        return refused(error)
    return 0


def explained(args: argparse.Namespace) -> Iterator[Explained]:
    """Yield every decision with what it rests on."""
    if args.example and not args.cwd:
        args.cwd = os.getcwd()
    loaded = loading.load(args)
    for text in args.example:
        yield example(text, args, loading.authorizer(args, loaded))
    for name in args.files or ([] if args.example else ["-"]):
        point = loading.authorizer(args, loaded)
        replay = Replay(point, unattended=args.unattended, now=datetime.now(UTC))
        with opened(name) as lines:
            for result in replay.run(lines):
                known = (
                    () if result.error or result.request.side_door else point.conversation.evidence(result.line.params)
                )
                yield Explained(result, known, point)
        for note in replay.notes:
            print(f"policyd: {name}: {note}", file=sys.stderr)


def example(text: str, args: argparse.Namespace, point: Authorizer) -> Explained:
    """Decide an example as if an agent had asked for it."""
    talk = point.conversation
    point.in_force("")
    actions = example_actions(text, {}, "", talk.around(""), talk.profile)
    request = Request("", "", text, PLAIN, actions)
    decision = point.settle(request, now=datetime.now(UTC))
    answer = Replay(point, unattended=args.unattended).answer(request, decision)
    return Explained(Result(Line(0, "a2c", {}), request, decision, answer or Answer(decision.effect)), (), point)


def as_json(each: Explained) -> str:
    """Return an explanation as one JSON object: what `decide` prints, with everything that spoke."""
    facts = result_facts(each.result)
    told = facts.get("actions")
    for fact, judged in zip(told if isinstance(told, list) else [], each.result.decision.actions, strict=True):
        fact["found"] = judged.action.origin
        fact["hits"] = [ref.label for ref in judged.hits]
        fact["possible"] = [ref.label for ref in judged.possible]
        fact["defaults"] = [ref.label for ref in judged.defaults]
        fact["floors"] = list(judged.floors)
        fact["nearly"] = [{"rule": ref.label, "but": but} for ref, but in nearly(judged, each.result, each.point)]
    return json.dumps(facts)
