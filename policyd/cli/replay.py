"""Replaying a transcript through the decision point: one result for each request and each side-door call.

A request whose details are sent separately waits as on the wire, here until the first line that is not a
`session/update` of its session. A failure on the way is a denial, never a missing result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from policyd import engine
from policyd.acp import Answer, answer
from policyd.actions import ASKING, Conversation
from policyd.actions.examples import example_actions
from policyd.authorizer import Authorizer
from policyd.cli import transcript
from policyd.cli.transcript import Line
from policyd.model import Action, Decision, Effect, Option, Request, Source

MALFORMED = Request("", "", "", (), ())
PLAIN = (Option("allow", "Allow", "allow_once"), Option("reject", "Reject", "reject_once"))
Asked = str | Mapping[str, object]
"""A request as policies write examples: `KIND RESOURCE`, or a table."""


class Result(Struct, frozen=True):
    """The decision on one line."""

    line: Line
    request: Request
    decision: Decision
    answer: Answer
    error: str = ""
    """Why the request is malformed; then nothing else counts."""

    @property
    def outcome(self) -> Mapping[str, object] | None:
        """ACP's inner outcome, None if a person has to answer or there is nothing to choose."""
        if self.request.side_door or self.answer.effect is Effect.ASK:
            return None
        if self.answer.option is None:
            return {"outcome": "cancelled"}
        return {"outcome": "selected", "optionId": self.answer.option}


class Replay:
    """Replays one transcript through a decision point."""

    def __init__(self, authorizer: Authorizer, *, unattended: bool = False, now: datetime | None = None) -> None:
        """Start; `unattended`: requests that would be asked about are denied."""
        self.authorizer = authorizer
        self.unattended = unattended
        self.now = now
        self.notes: list[str] = []
        """Which lines were skipped, in words, or that there was no request at all."""

    def run(self, raw: Iterable[bytes]) -> Iterator[Result]:
        """Yield a result for each line that asks for a decision."""
        lines = transcript.read(raw, lambda: self.authorizer.conversation.profile.names)
        ahead: deque[Line] = deque()
        empty = "nothing was read"
        while (line := ahead.popleft() if ahead else next(lines, None)) is not None:
            self._observe(line)
            empty = empty and "there is no request in it"
            if line.judged:
                empty = ""
                if line.method == ASKING and not line.fault:
                    ahead.extend(self._wait(line, lines))
                yield self._decide(line)
        self.notes += [empty] if empty else []

    def _observe(self, line: Line) -> None:
        conversation = self.authorizer.conversation
        direction = line.direction or transcript.answer_direction(line.message)
        if not line.fault and direction in ("a2c", "c2a"):
            conversation.observe(direction, line.message)
        elif line.fault and line.method == "session/update":
            update = line.params.get("update")
            call = update.get("toolCallId") if isinstance(update, Mapping) else None
            conversation.refuse(line.session, str(call or ""), f"an update of the call was refused: {line.fault}")
        elif not line.judged:
            self.notes.append(f"line {line.number} is left out: {line.fault or 'no direction `a2c` or `c2a`'}")

    def _wait(self, request: Line, lines: Iterator[Line]) -> Iterator[Line]:
        """Observe the updates a request waits for; yield the line that ended the wait."""
        conversation = self.authorizer.conversation
        while conversation.waits(request.params):
            following = next(lines, None)
            if following is None:
                return
            if following.method != "session/update" or following.session != request.session:
                yield following
                return
            self._observe(following)

    def _decide(self, line: Line) -> Result:
        if error := line.fault or malformed(line):
            denied = Decision(Effect.DENY, Source.ERROR, error)
            return Result(line, MALFORMED, denied, Answer(Effect.DENY), error)
        try:
            point, params = self.authorizer, line.params
            request = point.request(params) if line.method == ASKING else point.side_door(line.method, params)
            decision = point.settle(request, now=self.now)
        except Exception as failure:
            self.notes.append(f"line {line.number} is denied: {failure!r}")
            request, decision = MALFORMED, engine.failed(failure, self.authorizer.policy)
        return Result(line, request, decision, self.answer(request, decision))

    def written(self, asked: Asked) -> Result:
        """Decide a request written as an example in a policy."""
        self.authorizer.in_force("")
        title = asked if isinstance(asked, str) else " ".join(str(asked[key]) for key in asked if key != "input")
        return self.settled(Request("", "", title, PLAIN, actions_of(asked, self.authorizer.conversation)))

    def settled(self, request: Request) -> Result:
        """Decide a request that is not from a transcript."""
        decision = self.authorizer.settle(request, now=self.now)
        return Result(Line(0, "a2c", {}), request, decision, self.answer(request, decision))

    def answer(self, request: Request, decision: Decision) -> Answer:
        """Return the answer to a request, by its decision."""
        effect = decision.effect
        if self.unattended and effect is Effect.ASK:
            effect = Effect.DENY
        if request.side_door:
            return Answer(effect)
        found = answer(effect, request.options, final=decision.final, plain=request.plain, refusal=request.refusal)
        if self.unattended and found.effect is Effect.ASK:
            return answer(Effect.DENY, request.options, refusal=request.refusal)
        return found


def actions_of(asked: Asked, conversation: Conversation, resource: str = "") -> tuple[Action, ...]:
    """Return the actions of a written request; `resource` is that of the rule it is an example of."""
    text, table = (asked, {}) if isinstance(asked, str) else ("", asked)
    return example_actions(text, table, resource, conversation.around(""), conversation.profile)


def malformed(line: Line) -> str:
    """Return why a request is malformed, `""` if it is not."""
    params = line.params
    if not isinstance(params.get("sessionId"), str):
        return "the request names no session"
    if line.method != ASKING:
        return ""
    if not isinstance(params.get("options"), list) or not params["options"]:
        return "the request offers no option"
    if not any(isinstance(params.get(key), Mapping) for key in ("toolCall", "subject")):
        return "the request has no `toolCall`"
    return ""
