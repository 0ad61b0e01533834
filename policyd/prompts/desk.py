"""Bounded asking: identical open questions are one prompt, and a person is asked no more than they can read.

1. A question identical to an open one waits for its answer; every waiter is answered and recorded by itself.
2. At most `open_prompts` are open and `a_minute` begun within any 60 seconds; more are rejected.
3. A question that was rejected three times within ten minutes is rejected without asking again.
4. Rules 2 and 3 hold for each session and for all sessions of a connection together: one person reads them all, and
   an agent may open any number of sessions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from msgspec import Struct, field

from policyd.model import Effect
from policyd.prompts.prompt import Outcome, Prompt
from policyd.prompts.question import Question

MINUTE = 60.0
MEMORY = 600.0
REJECTIONS = 3
REMEMBERED = 1000


class Opened(Struct, frozen=True):
    """Ask: make a prompt and hand it to `Desk.opened`."""

    fingerprint: str


class Joined(Struct, frozen=True):
    """An identical question is open: its answer is this one's."""

    prompt: Prompt


class Refused(Struct, frozen=True):
    """Not asked."""

    outcome: Outcome


class Limits(Struct):
    """What one person was asked lately, and the limits."""

    open_prompts: int = 8
    a_minute: int = 20
    _open: int = 0
    _begun: deque[float] = field(default_factory=deque)
    _rejected: dict[str, list[float]] = field(default_factory=dict)

    def refusal(self, alike: str, now: float) -> str:
        """Return why a question is not asked, empty if it may be."""
        while self._begun and self._begun[0] <= now - MINUTE:
            self._begun.popleft()
        recent = [at for at in self._rejected.get(alike, ()) if at > now - MEMORY]
        if len(recent) >= REJECTIONS:
            return "the same request was rejected three times within ten minutes; do something else, or ask the user"
        if self._open >= self.open_prompts:
            return f"{self.open_prompts} questions are waiting for a person; ask again when they are answered"
        if len(self._begun) >= self.a_minute:
            return f"a person was asked {self.a_minute} times within a minute; wait before asking again"
        return ""

    def begin(self, now: float) -> None:
        """Count a question that is asked."""
        self._open += 1
        self._begun.append(now)

    def end(self) -> None:
        """Count a question that has ended."""
        self._open -= 1

    def rejected(self, alike: str, now: float) -> None:
        """Count a rejection of a question."""
        kept = [at for at in self._rejected.pop(alike, ()) if at > now - MEMORY]
        self._rejected[alike] = [*kept, now][-REJECTIONS:]
        while len(self._rejected) > REMEMBERED:
            del self._rejected[next(iter(self._rejected))]


class Desk(Struct):
    """The open prompts of one session."""

    limits: tuple[Limits, ...] = field(default_factory=lambda: (Limits(),))
    """The session's own, and those it shares with other sessions."""
    _open: dict[str, Prompt] = field(default_factory=dict)
    _waiting: dict[str, list[Hashable]] = field(default_factory=dict)

    def admit(self, question: Question, waiter: Hashable, now: float) -> Opened | Joined | Refused:
        """Say whether `question` is asked, waits for an identical one, or is rejected."""
        fingerprint = question.fingerprint
        if fingerprint in self._open:
            self._waiting[fingerprint].append(waiter)
            return Joined(self._open[fingerprint])
        why = next(filter(None, (one.refusal(question.alike, now) for one in self.limits)), "")
        if why:
            return Refused(Outcome(Effect.DENY, "policyd", why))
        for one in self.limits:
            one.begin(now)
        self._waiting[fingerprint] = [waiter]
        return Opened(fingerprint)

    def opened(self, fingerprint: str, prompt: Prompt) -> None:
        """Note that `prompt` was made for an `Opened`."""
        self._open[fingerprint] = prompt

    def close(self, prompt: Prompt, now: float) -> tuple[Hashable, ...]:
        """Remove an ended prompt; return who waits for its outcome, in order."""
        fingerprint = prompt.question.fingerprint
        if self._open.get(fingerprint) is not prompt:
            return ()
        del self._open[fingerprint]
        outcome = prompt.outcome
        for one in self.limits:
            one.end()
            if outcome is not None and outcome.effect is Effect.DENY and outcome.by != "policyd":
                one.rejected(prompt.question.alike, now)
        return tuple(self._waiting.pop(fingerprint, ()))

    def leave(self, waiter: Hashable) -> Prompt | None:
        """Remove one waiter; return its prompt, to be withdrawn, if nobody waits for it any more."""
        for fingerprint, waiters in self._waiting.items():
            if waiter in waiters:
                waiters.remove(waiter)
                return self._open.get(fingerprint) if not waiters else None
        return None
