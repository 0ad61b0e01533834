"""Logs for the tests of `policyd audit`: requests of recorded agents, answered by a scripted person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from policyd import audit
from policyd.actions import Machine
from policyd.authorizer import Authorizer, Claims
from policyd.model import Action, Context, Decision, Effect, Layer, Request, Source
from policyd.policy import Policy, PolicySource, load
from policyd.storage.auditlog import AuditLog
from tests.fakes import FakeFilesystem
from tests.recorded import results_of

CAPTURES = tuple(sorted((Path(__file__).parent / "data" / "captures").glob("*.jsonl")))
HOME = "/home/dev"
GROUND = 'version = 1\n[defaults]\n"*" = "ask"\n'
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
Person = Callable[[Request], Effect]


def policy(text: str = GROUND) -> Policy:
    """The user's policy."""
    return load([PolicySource("user.toml", text.encode(), Layer.USER)], home=HOME, tmpdir="/tmp", version="0.1.0")


@dataclass
class Day:
    """Writes a log as a proxy would, at a clock of its own."""

    log: AuditLog
    person: Person
    now: datetime = START
    number: int = 0
    rules: Policy = field(default_factory=policy)

    def captured(self, paths: Sequence[Path] = CAPTURES) -> None:
        """Let recorded agents ask again."""
        for path in paths:
            for row in path.read_text("utf-8").splitlines():
                self.transcript(json.loads(row)["lines"])

    def transcript(self, lines: list[object]) -> None:
        """Let one recorded session run."""
        machine = Machine(home=HOME, fs=FakeFilesystem())
        point = Authorizer(self.rules, machine=machine, claims=Claims(user="dev", interactive=True))
        for found in results_of(point, lines, self.now):
            if not found.error:
                self.decided(found.request, found.decision, point.context(found.request.session_id, self.now))

    def decided(self, request: Request, decision: Decision, context: Context) -> None:
        """Record a decision; what is asked the person answers."""
        by, outcome = "policy", "selected"
        if decision.effect is Effect.ASK:
            effect, by = self.person(request), "client"
            decision = replace(decision, effect=effect, source=Source.PROMPT, reason="by the client's user")
        self.number, self.now = self.number + 1, self.now + timedelta(seconds=61)
        row = audit.record(
            decision,
            request,
            replace(context, now=self.now),
            id=f"d{self.number}",
            option="allow" if decision.effect is Effect.ALLOW else "reject",
            outcome=outcome,
            by=by,
            latency_ms=1500.0 if by == "client" else 0.2,
        )
        self.log.append(row, self.now)


def words(action: Action) -> str:
    """What an action is about, for the scripted person to read."""
    if action.command:
        return " ".join(word.text for word in action.command.argv)
    found = action.path or action.url
    return found.text if found else action.tool.name if action.tool else action.opaque


def careful(request: Request) -> Effect:
    """Refuse what deletes, leaves the project or touches secrets; allow the rest."""
    for action in request.actions:
        text = words(action)
        outside = action.path is not None and not action.path.inside
        if outside or "delete" in action.kinds or any(bad in text for bad in ("rm ", ".env", "push", "curl", "delete")):
            return Effect.DENY
    return Effect.ALLOW


def read(log: Path) -> Iterator[dict[str, object]]:
    """The records of a log."""
    for line in log.read_bytes().splitlines():
        yield json.loads(line)


# ---- what is done to a log -------------------------------------------------------------------------


def edit(lines: list[bytes], at: int) -> None:
    """Change a word of a line."""
    lines[at] = lines[at].replace(b"allow", b"allot")


def delete(lines: list[bytes], at: int) -> None:
    """Take a line away."""
    del lines[at]


def swap(lines: list[bytes], at: int) -> None:
    """Put a line in its neighbour's place."""
    other = at - 1 if at else 1
    lines[at], lines[other] = lines[other], lines[at]
