"""`policyd explain [FILE…]`: why each request is decided as it is, for people.

For every request: the evidence and where it was found, every action with the rules and defaults that apply to it, the
near misses, the option that would be answered, and what would change the decision. `--example "KIND RESOURCE"`, or
`--kind`, `--path`, `--command`, `--url`, `--tool`, explain a request that was never made; `--record N` one from the
audit log, as today's rules decide it. Coloured at a terminal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from policyd.actions import Evidence
from policyd.audit.rebuild import Undecidable
from policyd.authorizer import Authorizer, Claims
from policyd.cli import colour, loading, options, shapes
from policyd.cli.audit.cases import labels_of
from policyd.cli.audit.replay import rules_effect
from policyd.cli.decide import complain_of, opened, replaying
from policyd.cli.ending import DONE, UsageError, complain
from policyd.cli.explain import asked
from policyd.cli.explain.text import explain, nearly
from policyd.cli.facts import result_facts
from policyd.cli.replay import Replay, Result
from policyd.cli.saying import say_json, say_verbatim
from policyd.model import Effect, Source

NOTHING = (
    'explain what? Write `--example "execute git push"`, `--record N` for what `policyd audit show` '
    "lists, or a transcript's name"
)

RECORDED = "recorded"
"""Id of the session in which a recorded request is explained: no session grant is for it."""


class Explained(Struct, frozen=True):
    """A result, the evidence, and the decision point."""

    result: Result
    evidence: tuple[Evidence, ...]
    point: Authorizer
    past: Mapping[str, object] | None = None
    """The audit record that is explained, if any."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="transcripts; standard input if no request is named")
    asked.add_arguments(parser)
    options.add_json(parser)
    options.add_deciding(parser)
    options.add_offline(parser)


def run(args: argparse.Namespace) -> int:
    """Print an explanation of each decision."""
    for each in explained(args):
        if args.json:
            say_json(facts(each))
        else:
            say_verbatim(f"{in_words(each)}\n")
        sys.stdout.flush()
    return DONE


def explained(args: argparse.Namespace) -> Iterator[Explained]:
    """Yield every decision to explain."""
    table = asked.named(args)
    asked.check_kinds(args.example)
    asked.check_files(args.files)
    if args.record:
        yield recorded(asked.past(args), args)
        return
    requests = [*args.example, *filter(None, [table])]
    if requests and not args.cwd:
        args.cwd = os.getcwd()
    loaded = loading.load(args)
    for note in loaded.in_force().notes:
        complain("explain", note)
    for request in requests:
        replay = replaying(args, loaded)
        yield Explained(replay.written(request), (), replay.authorizer)
    if not (args.files or requests) and sys.stdin.isatty():
        raise UsageError(NOTHING)
    for name in args.files or ([] if requests else ["-"]):
        yield from of_transcript(name, replaying(args, loaded))


def of_transcript(name: str, replay: Replay) -> Iterator[Explained]:
    """Yield the decisions of a transcript; notes on skipped lines go to stderr."""
    talk = replay.authorizer.conversation
    with opened(name) as lines:
        for result in replay.run(lines):
            known = () if result.error or result.request.side_door else talk.evidence(result.line.params)
            yield Explained(result, known, replay.authorizer)
    complain_of("explain", name, replay.notes)


def recorded(past: asked.Past, args: argparse.Namespace) -> Explained:
    """Decide a recorded request again under today's rules: in the same place, for the same agent."""
    case, agent = past.case, shapes.table(past.record.get("agent"))
    name, version = str(agent.get("name") or ""), str(agent.get("version") or "")
    moved, args.cwd = bool(args.cwd), args.cwd or case.cwd
    args.agent = args.agent or ("" if name else str(agent.get("profile") or ""))
    replay = replaying(args, loading.load(args))
    point = replay.authorizer
    if not args.agent:
        point.observe("c2a", {"id": 0, "method": "initialize", "params": {}})
        point.observe("a2c", {"id": 0, "result": {"agentInfo": {"name": name, "version": version}}})
    point.claims = claimed(past.record, point.claims, args)
    roots = () if moved else tuple(root for root in case.roots if root != args.cwd)
    opening = {"cwd": args.cwd, "additionalDirectories": list(roots)}
    point.observe("c2a", {"id": 1, "method": "session/new", "params": opening})
    modes = {"currentModeId": past.record.get("mode")}
    point.observe("a2c", {"id": 1, "result": {"sessionId": RECORDED, "modes": modes}})
    return Explained(replay.settled(replace(case.request, session_id=RECORDED)), (), point, past.record)


def claimed(record: Mapping[str, object], claims: Claims, args: argparse.Namespace) -> Claims:
    """Return the claims at the time of a record; options, and managed labels of today, take precedence."""
    labels, managed = labels_of(record)
    return replace(
        claims,
        labels={**claims.labels, **labels, **dict(args.label)},
        managed_labels={**managed, **claims.managed_labels},
        interactive=claims.interactive or (record.get("interactive") is True and not args.unattended),
    )


def in_words(each: Explained) -> str:
    """Return an explanation for people."""
    text = explain(each.result, each.evidence, each.point)
    if each.past is not None:
        now = f"today: {each.result.answer.effect.word}"
        same = as_then(each.past, each.result)
        text = f"{asked.then(each.past)}\n{now}, {'as then' if same else 'not as then'}\n{text}"
    return colour.painted(text) if colour.wanted() else text


def as_then(record: Mapping[str, object], result: Result) -> bool:
    """Say whether the rules decide a recorded request as they did then, whatever a person answered."""
    now = Effect.ASK if result.decision.source is Source.GRANT else result.answer.effect
    try:
        return rules_effect(record) is now
    except Undecidable:
        return record.get("effect") == now.word


def facts(each: Explained) -> dict[str, object]:
    """Return an explanation as JSON: the output of `decide`, with everything that applied."""
    whole = result_facts(each.result)
    shown_lines = whole.get("actions")
    for fact, judged in zip(
        shown_lines if isinstance(shown_lines, list) else [], each.result.decision.actions, strict=True
    ):
        fact["found"] = judged.action.origin
        fact["hits"] = [ref.label for ref in judged.hits]
        fact["possible"] = [ref.label for ref in judged.possible]
        fact["defaults"] = [ref.label for ref in judged.defaults]
        fact["floors"] = list(judged.floors)
        fact["nearly"] = [{"rule": ref.label, "but": but} for ref, but in nearly(judged, each.result, each.point)]
    if each.past is not None:
        whole["record"] = {key: each.past.get(key) for key in ("seq", "id", "time", "effect", "rules", "by", "option")}
    return whole
