"""One open question on its way through the chain: a pure state machine of events and commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from policyd.display import safe
from policyd.grants import Offer
from policyd.model import Effect, RuleRef
from policyd.prompts.chain import Step
from policyd.prompts.clients import Client
from policyd.prompts.payload import AnswerError, payload, read_answer
from policyd.prompts.question import Choice, Question

HUMAN_MS = 400


class ToClient(Struct, frozen=True):
    """Ask the client: a `session/request_permission` with these options."""

    step: int
    choices: tuple[Choice, ...]
    note: str
    """To be put into the call's title, for a client whose user sees no option names; empty otherwise."""
    untouched: bool
    """A menu: the request goes out as it came."""
    deadline: float
    alone: bool = False
    """The title must be visible: no diff of an earlier update may replace it."""


class ToStep(Struct, frozen=True):
    """Ask another step with this JSON object."""

    step: int
    name: str
    """`command:/path` or `inbox`."""
    payload: Mapping[str, object]
    deadline: float


class Stop(Struct, frozen=True):
    """A step's answer is no longer wanted."""

    step: int


PromptCommand = ToClient | ToStep | Stop


class Outcome(Struct, frozen=True):
    """How a question ended. An answer, not a decision: the caller judges again."""

    effect: Effect
    by: str
    """`client`, `command`, `inbox`; `machine`: faster than a person; `policyd`: nobody answered."""
    reason: str
    """For the model and the record."""
    option: str = ""
    """Id of the agent's option that was chosen; empty: the caller picks one that rejects."""
    offer: Offer | None = None
    """What is to be remembered."""


class Prompt(Struct):
    """An open question."""

    chain: Sequence[Step]
    question: Question
    client: Client
    nonce: str
    """Fresh random text, used for nothing else."""
    human_ms: int = HUMAN_MS
    outcome: Outcome | None = None
    faults: list[str] = field(default_factory=list)
    """Why steps abstained, in words."""
    _at: int = -1
    _asked: float = 0.0
    _digest: str = ""

    def start(self, now: float) -> tuple[PromptCommand, ...]:
        """Ask the first step."""
        return self._next(now) if self._at < 0 and self.outcome is None else ()

    @property
    def deadline(self) -> float | None:
        """When `tick` is due; None once it is over."""
        return self._asked + self.chain[self._at].timeout if self._open else None

    def chosen(self, step: int, option_id: str, now: float, free: float = 0.0) -> tuple[PromptCommand, ...]:
        """Handle the client's selection: an offered option decides, any other is a rejection.

        `free`: since when its user had no other question to answer.
        """
        if (over := self._over(step, now)) is not None:
            return over
        named = [choice for choice in self.question.choices if choice.id == option_id]
        if len(named) != 1:
            return self._reject("the client selected an option that was not offered")
        return self._decide(named[0], now, free=free)

    def refused(self, step: int, why: str, now: float) -> tuple[PromptCommand, ...]:
        """Handle a question that the client cancelled or answered with an error or nonsense."""
        over = self._over(step, now)
        return self._reject(why, by=self.chain[step].kind) if over is None else over

    def replied(self, step: int, answer: Mapping[str, object] | None, now: float) -> tuple[PromptCommand, ...]:
        """Handle the answer of another step; None: it abstains."""
        if (over := self._over(step, now)) is not None:
            return over
        if answer is None:
            return self._pass_on("it abstained", now)
        try:
            reply = read_answer(answer, self.question, nonce=self._nonce, body_digest=self._digest)
        except AnswerError as error:
            return self._reject(f"the answer of {self._name} does not count: {error}")
        if reply.choice is None:
            return self._pass_on(reply.message or "it abstained", now)
        return self._decide(reply.choice, now, reply.message)

    def failed(self, step: int, why: str, now: float) -> tuple[PromptCommand, ...]:
        """Handle a step that could not be run, or died: it abstains, and the next is asked."""
        over = self._over(step, now)
        return self._pass_on(why, now) if over is None else over

    def tick(self, now: float) -> tuple[PromptCommand, ...]:
        """Reject if the current step has been silent for too long."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return ()
        step, seconds = self._at, self.chain[self._at].timeout
        self._reject(f"nobody answered within {seconds:.0f} seconds")
        return (Stop(step),)

    def withdraw(self, why: str) -> tuple[PromptCommand, ...]:
        """End a void question (the turn was cancelled, a side is gone, a denial was added)."""
        if not self._open:
            return ()
        step = self._at
        self._reject(why)
        return (Stop(step),)

    @property
    def _open(self) -> bool:
        return self.outcome is None and 0 <= self._at < len(self.chain)

    @property
    def _name(self) -> str:
        return self.chain[self._at].name

    @property
    def _nonce(self) -> str:
        return f"{self.nonce}-{self._at}"

    def _over(self, step: int, now: float) -> tuple[PromptCommand, ...] | None:
        """Return the commands if an answer of a step comes too late; None if it counts."""
        if not (self._open and step == self._at):
            return ()
        return self.tick(now) or None

    def _next(self, now: float) -> tuple[PromptCommand, ...]:
        self._at, self._asked = self._at + 1, now
        if self._at >= len(self.chain):
            self._reject(self._nobody())
            return ()
        step, deadline = self.chain[self._at], now + self.chain[self._at].timeout
        if step.kind == "client":
            note = "" if self.client.shows_option_names else self.question.note
            alone = bool(note) and not self.client.title_beside_diff
            return (ToClient(self._at, self.question.choices, note, self.question.menu, deadline, alone),)
        body = payload(self.question, nonce=self._nonce, seconds=step.timeout)
        self._digest = str(body["digest"])
        return (ToStep(self._at, step.name, body, deadline),)

    def _pass_on(self, why: str, now: float) -> tuple[PromptCommand, ...]:
        self.faults.append(f"{self._name}: {safe(why, limit=500)}")
        return self._next(now)

    def _decide(self, choice: Choice, now: float, message: str = "", *, free: float = 0.0) -> tuple[PromptCommand, ...]:
        kind = self.chain[self._at].kind
        fast = (now - max(self._asked, free)) * 1000 < self.human_ms
        quick = choice.offer or (kind == "client" and choice.effect is Effect.ALLOW)
        by = "machine" if fast and quick else kind
        offer = None if fast else choice.offer
        reply = f": {safe(message, limit=500)}" if message else ""
        verb = "allowed" if choice.effect is Effect.ALLOW else "rejected"
        self.outcome = Outcome(choice.effect, by, f"{verb} by {_who(by)}{reply}", choice.option, offer)
        return ()

    def _reject(self, why: str, by: str = "policyd") -> tuple[PromptCommand, ...]:
        self.outcome = Outcome(Effect.DENY, by, safe(why, limit=1000))
        return ()

    def _nobody(self) -> str:
        if not self.chain:
            return unasked(self.question.rules, self.question.reason, self.client).reason
        must = _must(self.question.rules, self.question.reason)
        return f"{must}, and nobody answered ({'; '.join(self.faults)})"


def unasked(rules: Iterable[RuleRef], reason: str, client: Client) -> Outcome:
    """Return how a question ends that there is nobody to put to: what would be shown need not be made for it."""
    nobody = "nobody is there to ask (`--prompt none`, `prompt = []`, or a hello without `person`)"
    if not client.person:
        nobody = f"nobody is behind the answers of {safe(client.profile, limit=100)}"
    return Outcome(Effect.DENY, "policyd", safe(f"{_must(rules, reason)}, and {nobody}", limit=1000))


def _must(rules: Iterable[RuleRef], reason: str) -> str:
    """Return that a person must be asked: which rules want it, and why, where that is more than that they do."""
    labels = [rule.label for rule in rules]
    reply = f"this must be asked ({', '.join(labels)})" if labels else "this must be asked"
    known = reason in ("", "; ".join(f"asked about by `{label}`" for label in labels))
    return reply if known else f"{reply}: {reason.rstrip('.')}"


def _who(by: str) -> str:
    return {"client": "the person at the client", "machine": "the client, faster than a person"}.get(
        by, f"the {by} step"
    )
