"""Requests policyd answers for the client: judged, asked about if need be, answered exactly once.

1. A request is in `held` exactly from its arrival to its answer. Every decision goes through `_settle`; anything that
   goes wrong on the way is a rejection.
2. The record of an allow is put before the allow, and the allow names it: it is not sent unless the record is written.
3. After a person or a step has allowed a request, it is judged again: under the current policy, by all updates since,
   and by where links lead now. Updates that come while a question is open are judged too; a denial wins.
4. An answer that comes late, twice, from the wrong side, or names an option that was not offered, allows nothing.
5. Two requests open under one id are both rejected: either answer could be taken for the other's. So are two that
   wait for the same session's mode.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from policyd import acp
from policyd.acp import messages
from policyd.display import safe, sentences
from policyd.model import Decision, Effect, Source
from policyd.prompts import Outcome
from policyd.session import doors
from policyd.session.asking import Asker
from policyd.session.core import Core, Passing
from policyd.session.events import Side
from policyd.session.modes import DUPLICATE_ID
from policyd.session.ports import Verdict
from policyd.session.records import Records
from policyd.session.report import Report
from policyd.session.state import Held, OpenPrompt, Session
from policyd.session.tripwire import Tripwire

RECORDED_KEPT = 10_000
HELD_MOST = 2_000


class Permissions:
    """The agent's requests that policyd has to answer."""

    def __init__(self, core: Core, records: Records, tripwire: Tripwire) -> None:
        """Share `core`; `tripwire` is notified of what was allowed."""
        self._tripwire = tripwire
        self._core = core
        self._records = records
        self._report = Report(core)
        self._asker = Asker(core, self.close)
        self._recorded: OrderedDict[int, tuple[Held, str | None]] = OrderedDict()
        """Key of an allow's record -> the request, and the option to reject it with if the record cannot be written."""

    # ---- arrival ------------------------------------------------------------------------------------

    def arrive(self, session: Session, message: acp.Envelope, line: bytes, params: Mapping[str, object]) -> None:
        """Handle a request: judge it now, or when its details have come."""
        ident, raw = message.id or b"null", message.params or b"{}"
        held = Held(
            self._core.number(),
            session,
            ident,
            message.key or ("null", None),
            message.method or "",
            line,
            raw,
            params,
            self._core.now,
        )
        self._core.held[held.number] = held
        if self._core.closed or len(self._core.held) > HELD_MOST:
            self._cancel(held, "a side is gone" if self._core.closed else "too many requests are open", by="policyd")
            return
        if len(duplicates := self._under(held.key)) > 1:
            for one in duplicates:  # whichever answer it takes for whichever request, none allows
                self._cancel(one, DUPLICATE_ID, by="policyd", tell=True)
            return
        held.wait_until = self._core.now.mono + self._core.settings.details_after_ms / 1000.0
        self._try(held, self._judge_if_complete)

    def details(self, session: Session, call_id: str) -> None:
        """Handle an update: judge the requests that waited for it, and again those a person is being asked about."""
        about = [held for held in self._of(session) if not held.door and held.call_id in ("", call_id)]
        self._reject_denied(held for held in about if held.pending is not None or len(about) > 1)
        for held in about:
            if held.wait_until is not None and held.number in self._core.held:
                self._try(held, self._judge_if_complete)

    def tick(self) -> None:
        """Judge requests that have waited long enough, end prompts whose time is up."""
        for held in list(self._core.held.values()):
            if held.wait_until is not None and self._core.now.mono >= held.wait_until:
                self._try(held, self._judge)
        self._asker.tick()

    @property
    def waiting(self) -> bool:
        """Whether a request is held or a question is open."""
        return bool(self._core.held) or self._asker.waiting

    def deadline(self) -> float | None:
        """Return when the next request or prompt is due."""
        waits = [held.wait_until for held in self._core.held.values() if held.wait_until is not None]
        prompts = self._asker.deadline()
        return min([*waits, *([] if prompts is None else [prompts])], default=None)

    # ---- judging ------------------------------------------------------------------------------------

    def _try(self, held: Held, step: Callable[[Held], None]) -> None:
        """Take one step with a request; an exception rejects it."""
        try:
            step(held)
        except Exception as error:
            self._fail(held, error)

    def _judge_if_complete(self, held: Held) -> None:
        if self._complete(held):
            self._judge(held)

    def _complete(self, held: Held) -> bool:
        return held.door or not self._core.decider.late(held.params)

    def _judge(self, held: Held) -> None:
        held.wait_until = None
        held.verdict = verdict = self._decide(held)
        if held.door:
            self._judge_door(held, verdict)
        else:
            self._judge_permission(held, verdict)

    def _reject_denied(self, about: Iterable[Held]) -> None:
        """Reject the requests that are denied by now; nothing else about an open question changes."""
        for held, verdict in self._denied(about):
            self._try(held, partial(self._deny, verdict=verdict))

    def _denied(self, about: Iterable[Held]) -> list[tuple[Held, Verdict]]:
        """Return the requests that are denied by all that is known now, and by where links lead now.

        All are judged before any is answered: an answer makes the evidence of its call stale.
        """
        found: list[tuple[Held, Verdict]] = []

        def look(held: Held) -> None:
            if held.pending is not None or self._complete(held):
                found.append((held, self._decide(held)))

        for held in about:
            self._try(held, look)
        return [(held, verdict) for held, verdict in found if verdict.decision.effect is Effect.DENY]

    def _deny(self, held: Held, verdict: Verdict) -> None:
        held.wait_until, held.verdict = None, verdict
        self._reject(held, verdict, verdict.decision)

    def _decide(self, held: Held) -> Verdict:
        core = self._core
        if held.door:
            found = core.decider.door(held.method, held.params, core.now)
            return replace(found, request=replace(found.request, options=doors.OPTIONS, menu=False))
        return core.decider.permission(held.params, core.now)

    def _judge_permission(self, held: Held, verdict: Verdict) -> None:
        decision, request = verdict.decision, verdict.request
        found = acp.answer(
            decision.effect, request.options, final=decision.final, plain=request.plain, refusal=request.refusal
        )
        if found.effect is not decision.effect:
            decision = replace(decision, effect=found.effect, reason=sentences((found.why, decision.reason)))
            held.verdict = verdict = replace(verdict, decision=decision)
        if found.effect is Effect.ASK:
            self._ask(held, verdict)
        else:
            self._settle(held, decision, found.option, by=decided_by(decision))

    def _judge_door(self, held: Held, verdict: Verdict) -> None:
        decision = verdict.decision
        if doors.passes_unasked(verdict, self._core.settings):
            decision = replace(
                decision, effect=Effect.ALLOW, reason="a read inside the workspace that no rule is about"
            )
        elif decision.effect is Effect.ASK:
            settled, changed = doors.settle(held.session, verdict, held.params)
            if settled:
                why = "settled by the permission given for this"
                decision = replace(decision, effect=Effect.ALLOW, source=Source.PROMPT, reason=why)
            elif changed:
                self._records.event("changed_after_approval", session=held.session.id, method=held.method)
        if decision.effect is Effect.ASK:
            self._ask(held, verdict)
        else:
            self._settle(held, decision, None, by=decided_by(decision))

    def _ask(self, held: Held, verdict: Verdict) -> None:
        outcome = self._asker.ask(held, verdict)
        if outcome is not None:
            self._outcome(held, outcome, None)

    # ---- answers of people --------------------------------------------------------------------------

    def close(self, pending: OpenPrompt) -> None:
        """Answer every request that waits for this question, each judged again."""
        outcome, numbers = pending.prompt.outcome, pending.session.desk.close(pending.prompt, self._core.now.mono)
        waiters = [held for number in numbers if isinstance(number, int) and (held := self._core.held.get(number))]
        yes = outcome is not None and outcome.effect is Effect.ALLOW
        denied = {held.number: verdict.decision for held, verdict in self._denied(waiters if yes else ())}
        for held in waiters:
            if held.number in self._core.held:
                self._try(held, lambda one: self._outcome(one, outcome, pending, denied.get(one.number)))

    def _outcome(
        self, held: Held, outcome: Outcome | None, pending: OpenPrompt | None, denied: Decision | None = None
    ) -> None:
        """Answer a request by an outcome; `pending` is the question that was asked, None if nobody was.

        `denied`: the denial that has come meanwhile, which wins over the answer.
        """
        verdict = held.verdict
        if outcome is None or verdict is None:
            raise RuntimeError("a question ended without an outcome")
        cancelled = pending is not None and pending.cancelled
        decision = replace(verdict.decision, effect=outcome.effect, source=Source.PROMPT, reason=outcome.reason)
        option = outcome.option or None
        if denied is not None:
            decision, option = denied, None
        elif outcome.effect is Effect.ALLOW:
            decision, option = self._again(held, verdict, decision, option)
        allowed = decision.effect is Effect.ALLOW
        if not allowed:
            option = None if cancelled else self._rejection(verdict, decision, outcome.option)
        key = self._settle(held, decision, option, by=outcome.by, outcome="cancelled" if cancelled else "")
        if pending is not None and key is not None and allowed is (outcome.effect is Effect.ALLOW):
            self._asker.remember(pending, outcome, key)

    def _again(
        self, held: Held, verdict: Verdict, decision: Decision, option: str | None
    ) -> tuple[Decision, str | None]:
        """Return what a person's yes comes to: the current policy may still deny it."""
        core = self._core
        now = core.decider.again(verdict, core.now)
        if now.effect is Effect.DENY:
            return now, None
        if held.door:
            return decision, None
        if option is None:
            return replace(decision, effect=Effect.DENY, reason="no option that only allows this was offered"), None
        mode = core.decider.chosen(verdict, option, core.now)
        if mode is not None and mode.decision.effect is not Effect.ALLOW:
            return replace(mode.decision, effect=Effect.DENY), None
        return decision, option

    def _rejection(self, verdict: Verdict, decision: Decision, chosen: str) -> str | None:
        options = verdict.request.options
        if chosen and any(option.id == chosen and option.kind in acp.REJECT_KINDS for option in options):
            return chosen
        return acp.answer(Effect.DENY, options, final=decision.final, refusal=verdict.request.refusal).option

    def client_answered(self, key: object, reply: acp.Envelope) -> bool:
        """Handle the client's answer to a question; False if no question has this id."""
        return self._asker.client_answered(key, reply)

    def replied(self, ask: int, answer: Mapping[str, object] | None) -> None:
        """Handle the answer of another step."""
        self._asker.replied(ask, answer)

    def failed(self, command: int, why: str) -> None:
        """Handle a record or an ask that failed."""
        held, option = self._recorded.pop(command, (None, None))
        if held is None:
            self._asker.failed(command, why)
            return
        reason = f"the decision could not be recorded: {why}"
        self._core.note(reason, loud=True)
        held.session.permits.clear()
        if held.door:
            self._core.answered(Side.CLIENT, held.key)
        self._show(held, "it could not be recorded", reason)
        self._refuse(held, reason, option)

    # ---- the end ------------------------------------------------------------------------------------

    def forget(self, line: bytes) -> None:
        """Drop the request of a line that failed and is answered as a whole."""
        for held in [one for one in self._core.held.values() if one.line is line]:
            del self._core.held[held.number]

    def cancel_session(self, session: Session, *, by: str = "client") -> None:
        """Answer every open request of a session `cancelled`, once."""
        session.permits.clear()
        for held in self._of(session):
            self._cancel(held, "the turn was cancelled", by=by, tell=by != "client")

    def uses(self, key: object) -> bool:
        """Say whether an open request of the agent has this id."""
        return bool(self._under(key))

    def cancel_request(self, key: object) -> bool:
        """Handle a request that the agent withdraws; True if it was held."""
        found = self._under(key)
        for held in found[:1]:
            self._cancel(held, "the agent withdrew the request", by="agent", tell=True)
        return bool(found)

    def abandon(self, why: str) -> None:
        """Cancel all requests: a side is gone."""
        for held in list(self._core.held.values()):
            self._cancel(held, why, by="policyd")

    def reload(self, announce: str) -> None:
        """Handle a policy change: reject the requests it denies now, even while a question is open."""
        if announce:
            self._report.announce(announce)
        self._reject_denied(held for held in list(self._core.held.values()) if held.pending is not None)

    def _reject(self, held: Held, verdict: Verdict, decision: Decision) -> None:
        """Withdraw the question about a request and reject it."""
        self._asker.leave(held, tell=True)
        self._settle(held, decision, self._rejection(verdict, decision, ""), by=decided_by(decision))

    def _cancel(self, held: Held, why: str, *, by: str, tell: bool = False) -> None:
        self._asker.leave(held, tell=tell)
        try:
            if held.verdict is not None:
                decision = replace(held.verdict.decision, effect=Effect.DENY, source=Source.PROMPT, reason=why)
                outcome = "abandoned" if self._core.closed else "cancelled"
                self._records.decision(replace(held.verdict, decision=decision), outcome=outcome, by=by, held=held)
            else:
                self._records.failure(held, why)
        except Exception as error:
            self._core.note(f"a cancelled request could not be recorded: {type(error).__name__}")
        self._refuse(held, why)

    def _settle(self, held: Held, decision: Decision, option: str | None, *, by: str, outcome: str = "") -> int | None:
        """Record and answer: the only place that sends an allow. Return the record's key."""
        if held.number not in self._core.held or held.verdict is None:
            return None
        allowed = decision.effect is Effect.ALLOW
        if allowed and not held.door and option is None:
            raise RuntimeError("an allow without an option")
        line = answer_line(held, option, decision)
        held.verdict = verdict = Verdict(held.verdict.request, decision, held.verdict.context)
        shown = outcome or ("passed" if held.door and allowed else "error" if held.door else "")
        shown = shown or ("selected" if option is not None else "cancelled")
        odd = [one.id for one in acp.mislabelled(verdict.request.options)]
        extra = {"mislabelled": odd} if odd else None
        key = self._records.decision(verdict, outcome=shown, option=option, by=by, held=held, extra=extra)
        if not allowed:
            if by != "client" or decision.source is not Source.PROMPT:
                self._report.refused(held, decision)
            self._answer(held, option, line)
            return key
        self._recorded[key] = held.emptied(), rejecting(held)
        while len(self._recorded) > RECORDED_KEPT:
            self._recorded.popitem(last=False)
        if not held.door:
            doors.give(held.session, verdict, held.call_id, held.params)
            self._tripwire.approved(held.session, held.call_id, verdict.request.actions)
        self._answer(held, option, line, key)
        return key

    def _answer(self, held: Held, option: str | None, line: bytes, allowed: int | None = None) -> None:
        """Send the answer; `allowed`: the key of the record of an allow."""
        del self._core.held[held.number]
        forward = held.door and allowed is not None
        if forward:
            self._core.track(Side.AGENT, held.key, Passing(held.method, held.session.id))
        self._core.send(Side.CLIENT if forward else Side.AGENT, line, allowed)
        if not held.door:
            self._observe_answer(held, option)

    def _observe_answer(self, held: Held, option: str | None) -> None:
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        try:
            self._core.decider.observe(Side.CLIENT, {"id": held.key[1], "result": {"outcome": outcome}})
        except Exception as error:
            self._core.note(f"an answer could not be observed: {type(error).__name__}")

    def _fail(self, held: Held, error: Exception) -> None:
        """Reject a request because of an exception."""
        answered = held.number not in self._core.held
        state = "it was answered before" if answered else "the request is refused"
        why = f"policyd failed ({type(error).__name__}: {error}); {state}"[:500]
        self._core.note(why, loud=True)
        if answered:
            return
        held.session.permits.clear()  # one may be of this request
        try:
            self._asker.leave(held, tell=True)
        except Exception as second:
            self._core.note(f"a question could not be withdrawn: {type(second).__name__}")
        self._records.failure(held, why)
        self._show(held, "it failed", why)
        self._refuse(held, why)

    def _show(self, held: Held, what: str, why: str) -> None:
        """Show a refusal caused by a failure; never raises, as the answer still has to be sent."""
        try:
            self._report.show(held.session, f"Blocked by policyd: {what}", safe(why))
        except Exception as error:
            self._core.note(f"a refusal could not be shown: {type(error).__name__}")

    def _refuse(self, held: Held, why: str, option: str | None = None) -> None:
        """Reject with nothing that may fail: by `option` or `cancelled`, or by an error for a side door."""
        self._core.held.pop(held.number, None)
        if held.door:
            line = messages.error(held.ident, messages.REFUSED, f"Denied by policyd: {why}")
        else:
            line = messages.permission(held.ident, option, {"effect": "deny", "rules": [], "reason": why})
        self._core.send(Side.AGENT, line)
        if not held.door:
            self._observe_answer(held, option)

    def _under(self, key: object) -> list[Held]:
        return [held for held in self._core.held.values() if held.key == key]

    def _of(self, session: Session) -> list[Held]:
        return [held for held in self._core.held.values() if held.session is session]


def answer_line(held: Held, option: str | None, decision: Decision) -> bytes:
    """Return the line that answers or forwards a request; built before anything is recorded."""
    if held.door and decision.effect is Effect.ALLOW:
        return held.line + b"\n"
    if held.door:
        return messages.error(held.ident, messages.REFUSED, f"Denied by policyd: {decision.reason}".strip())
    meta = {"effect": decision.effect.word, "rules": [rule.label for rule in decision.rules], "reason": decision.reason}
    return messages.permission(held.ident, option, meta)


def rejecting(held: Held) -> str | None:
    """Return the option to reject a request with if its allow cannot be recorded; None for `cancelled`."""
    if held.verdict is None:
        return None
    request = held.verdict.request
    try:
        return acp.answer(Effect.DENY, request.options, refusal=request.refusal).option
    except Exception:
        return None


def decided_by(decision: Decision) -> str:
    """Return who decided, as records name it."""
    return "grant" if decision.source is Source.GRANT else "policy"
