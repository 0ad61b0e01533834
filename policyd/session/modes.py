"""Keeping agents in a mode in which they ask (design section 9).

1. The response that opens a session is held until the agent has confirmed every step of the asking mode; lines of
   that session wait behind it, in order, and no prompt passes before. At most `hold_s`.
2. That one response is rewritten: `currentModeId`, and the `currentValue` of the options that were set.
3. If the agent refuses, or does not answer, or has no such mode: the response leaves as it came and the session is
   unwatched: loudly; under `strict` it gets no prompt.
4. A change of the client's to something unsafe is refused with an error, unless a rule allows it by name.
5. A switch of the agent's own is undone before the next prompt; the client is not told of it unless undoing failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policyd import acp
from policyd.audit import event
from policyd.model import Effect
from policyd.session.core import Core, text_of
from policyd.session.events import Side
from policyd.session.ports import Asking, Verdict
from policyd.session.records import Records
from policyd.session.report import Report
from policyd.session.state import Hold, Session, SetBack

SWITCHES = frozenset({"current_mode_update", "config_option_update"})
QUEUE_LINES = 10_000
QUEUE_BYTES = 64 * 1024 * 1024
PROMPTS_KEPT = 100
SETBACKS = 8
"""Switches of an agent's own that are undone in one session before it counts as unwatched."""
UNSEEN = "policyd has not seen this session open, so it cannot tell whether the agent asks"
NO_ASKING = "policyd could not make this agent ask for permission ({why}); prompts are refused (strict)."


class Modes:
    """The asking mode of every session."""

    def __init__(self, core: Core, records: Records) -> None:
        """Share `core`; `ready` sessions whose queue is to be read are taken by the connection."""
        self._core = core
        self._records = records
        self._report = Report(core)
        self._holds = 0
        self._busy: dict[str, Session] = {}
        """Sessions with a task under way."""
        self.ready: list[tuple[Session, list[tuple[Side, bytes]]]] = []
        """Sessions released, with the lines that waited: the connection reads them as if they came now."""

    # ---- opening ------------------------------------------------------------------------------------

    def opened(self, session: Session, line: bytes, result: Mapping[str, object]) -> None:
        """Take the response that opens a session: pass it on, or hold it until asking is in force."""
        mode = self._core.settings.agent_mode
        before = switched(session.told[0]) if session.told else {}
        session.told = None
        asking = Asking() if mode == "off" else self._asking(session, {**before, **result})
        if mode == "warn" and (asking.steps or asking.missing):
            self._core.note(f"session {session.id}: the agent is in a mode that does not ask the client", loud=True)
            asking = Asking()
        if session.hold is not None:
            self._failed(session, "the session was opened again before the agent confirmed its mode")
        if asking.missing:
            self._unwatched(session, asking.missing)
        if not asking.steps:
            self._release(session, line)
            return
        self._holds += 1
        session.hold = Hold(line, asking, self._core.now.mono + self._core.settings.hold_s, result)
        self._next(session)

    def not_opened(self, session: Session, was_open: bool) -> None:
        """The agent refused to load or resume: the session is what it was."""
        session.opened, session.opening = was_open, False
        told, session.told = session.told, None
        if was_open and told is not None:
            self.agent_switch(session, told[0], told[1], passed=True)
        self._let_prompts(session)

    def _asking(self, session: Session, result: Mapping[str, object]) -> Asking:
        try:
            return self._core.decider.asking(session.id, result)
        except Exception as error:
            return Asking(missing=f"{type(error).__name__}: {error}")

    def _next(self, session: Session) -> None:
        """Send the next step of a hold or of a switch that is undone, or finish it."""
        task = session.hold or session.setback
        if task is None:
            return
        self._busy[session.id] = session
        if task.step == len(task.asking.steps):
            del self._busy[session.id]
            self._confirmed(session)
            return
        method, params = task.asking.steps[task.step]
        self._observe(Side.CLIENT, {"id": f"policyd:{task.step}:{session.id}", "method": method, "params": params})
        task.own = self._core.ask_side(Side.AGENT, method, params, lambda reply: self._replied(session, task, reply))

    def _replied(self, session: Session, task: Hold | SetBack, reply: acp.Envelope) -> None:
        if task is not session.hold and task is not session.setback:
            return
        if reply.result is None:
            method = task.asking.steps[task.step][0]
            self._failed(session, f"the agent refused {method}")
            return
        self._observe(Side.AGENT, {"id": f"policyd:{task.step}:{session.id}", "result": {}})
        task.step += 1
        self._next(session)

    def _observe(self, side: Side, message: Mapping[str, object]) -> None:
        """Let the decider see policyd's own settings as if the client had made them."""
        try:
            self._core.decider.observe(side, message)
        except Exception as error:
            self._core.note(f"a mode could not be observed: {type(error).__name__}")

    def _confirmed(self, session: Session) -> None:
        hold = session.hold
        if hold is not None:
            session.hold = None
            self._holds -= 1
            queue = [one for one in hold.queue if one[0] is Side.CLIENT or not self._stale(one[1])]
            self._release(session, self._patched(hold), queue)
            return
        session.setback = None
        self._let_prompts(session)

    def _stale(self, line: bytes) -> bool:
        """Say whether a line tells of a mode that was in force before the one just confirmed."""
        message = acp.envelope(line)
        if message.method != acp.UPDATE or message.params is None:
            return False
        if acp.update_kind(message.params)[1] not in SWITCHES:
            return False
        return self._judge(acp.UPDATE, acp.strict_object(message.params)) is not None

    def _patched(self, hold: Hold) -> bytes:
        try:
            return patched(hold.line, hold.result, hold.asking)
        except Exception as error:  # the mode is in force; the client only shows another
            self._core.note(f"a session's response could not be rewritten: {type(error).__name__}")
            return hold.line

    def _failed(self, session: Session, why: str) -> None:
        self._unwatched(session, why)
        hold, setback = session.hold, session.setback
        session.hold = session.setback = None
        self._busy.pop(session.id, None)
        if hold is not None:
            self._holds -= 1
            self._core.forget(Side.AGENT, hold.own)
            self._release(session, hold.line, hold.queue)
        if setback is not None:
            self._core.forget(Side.AGENT, setback.own)
            self._core.passes(Side.CLIENT, setback.line)
            self._let_prompts(session)

    def _release(self, session: Session, line: bytes, queue: list[tuple[Side, bytes]] | None = None) -> None:
        self._core.passes(Side.CLIENT, line)
        session.opened, session.opening = True, False
        for report in session.reports:
            self._core.send(Side.CLIENT, report)
        session.reports.clear()
        self.ready.append((session, queue or []))
        self._let_prompts(session)

    def _unwatched(self, session: Session, why: str) -> None:
        session.unwatched = why
        self._core.record(event("unwatched", self._core.now.wall, session=session.id, reason=why))
        self._core.note(f"session {session.id} is NOT under policy where the agent does not ask: {why}", loud=True)
        self._report.show(
            session, f"policyd: this session is not under policy where the agent does not ask ({why})", why
        )

    # ---- what waits ---------------------------------------------------------------------------------

    def queued(self, session: Session, side: Side, line: bytes) -> bool:
        """Keep a line of a session whose response is held; False if nothing is held."""
        hold = session.hold
        if hold is None:
            return False
        hold.queue.append((side, line))
        hold.size += len(line)
        if len(hold.queue) > QUEUE_LINES or hold.size > QUEUE_BYTES:
            self._failed(session, "too much came before the agent confirmed its mode")
        return True

    @property
    def holding(self) -> bool:
        """Whether the response of any session is held."""
        return self._holds > 0

    def prompt(self, session: Session, line: bytes, ident: bytes) -> bool:
        """Let a prompt pass, keep it, or refuse it; True if it passed."""
        if session.hold is not None or session.setback is not None or session.opening:
            if len(session.prompts) >= PROMPTS_KEPT:
                raise acp.ProtocolError("too many prompts wait for the agent's mode")
            session.prompts.append(line)
        elif not session.opened and self._core.settings.agent_mode == "enforce":
            self._core.send(Side.CLIENT, acp.messages.error(ident, acp.messages.INVALID_PARAMS, UNSEEN))
        elif session.unwatched and self._core.settings.strict:
            text = NO_ASKING.format(why=session.unwatched)
            self._core.send(Side.CLIENT, acp.messages.error(ident, acp.messages.REFUSED, text))
        else:
            session.permits.clear()
            self._core.passes(Side.AGENT, line)
            return True
        return False

    def cancel_prompts(self, session: Session) -> None:
        """The turn is cancelled: prompts that still wait end at once."""
        waiting, session.prompts = session.prompts, []
        for line in waiting:
            ident = acp.envelope(line).id or b"null"
            self._core.send(Side.CLIENT, acp.messages.result(ident, {"stopReason": "cancelled"}))

    def cancel_prompt(self, key: object) -> bool:
        """The client withdraws a request; True if it was a prompt that still waited."""
        for session in self._core.sessions.values():
            for line in session.prompts:
                message = acp.envelope(line)
                if message.key == key:
                    session.prompts.remove(line)
                    text = "cancelled before it reached the agent"
                    self._core.send(
                        Side.CLIENT, acp.messages.error(message.id or b"null", acp.messages.CANCELLED, text)
                    )
                    return True
        return False

    def _let_prompts(self, session: Session) -> None:
        waiting, session.prompts = session.prompts, []
        if waiting:
            self.ready.append((session, [(Side.CLIENT, line) for line in waiting]))

    def tick(self) -> None:
        """Give up on agents that do not answer in time."""
        for session in list(self._busy.values()):
            task = session.hold or session.setback
            if task is not None and self._core.now.mono >= task.deadline:
                self._failed(session, "the agent did not answer in time")

    def deadline(self) -> float | None:
        """Return when the next task is given up."""
        tasks = [session.hold or session.setback for session in self._busy.values()]
        return min((task.deadline for task in tasks if task is not None), default=None)

    # ---- changes ------------------------------------------------------------------------------------

    def client_switch(self, method: str, params: Mapping[str, object], ident: bytes) -> bool:
        """Judge a change by the client; True if it was refused and answered."""
        verdict = self._judge(method, params)
        if verdict is None:
            return False
        refusal = self._refusal(method, verdict)
        if not refusal:
            return False
        self._core.send(Side.CLIENT, acp.messages.error(ident, acp.messages.REFUSED, refusal))
        return True

    def _refusal(self, method: str, verdict: Verdict | str) -> str:
        """Record a judged change; return why it is refused, `""` if it may pass."""
        if isinstance(verdict, str):
            return verdict
        if self._core.settings.agent_mode == "warn" and verdict.decision.effect is not Effect.DENY:
            self._core.note(f"{method}: the client switches the agent's asking off", loud=True)
            return ""
        allowed = named(verdict)
        if not allowed:
            verdict = replace(verdict, decision=replace(verdict.decision, effect=Effect.DENY))
        self._records.decision(verdict, outcome="passed" if allowed else "error", extra={"method": method})
        if allowed:
            return ""
        return f"Refused by policyd: this mode does not ask for permission. {verdict.decision.reason}".strip()

    def _judge(self, method: str, params: Mapping[str, object]) -> Verdict | str | None:
        if self._core.settings.agent_mode == "off":
            return None
        try:
            return self._core.decider.switch(method, params, self._core.now, self._core.fs)
        except Exception as error:
            return f"Refused by policyd: {type(error).__name__} while judging {method}."

    def agent_switch(
        self, session: Session, params: Mapping[str, object], line: bytes, *, passed: bool = False
    ) -> None:
        """Judge a switch the agent tells of; pass the update on (unless it has passed), or undo the switch."""
        verdict = None if session.unwatched else self._judge("session/update", params)
        if verdict is None or not self._refusal("session/update", verdict):
            if not passed:
                self._core.passes(Side.CLIENT, line)
            return
        if session.setback is not None:
            return
        session.setbacks += 1
        asking = self._asking(session, switched(params))
        if session.setbacks > SETBACKS or asking.missing or not asking.steps:
            self._unwatched(session, asking.missing or "the agent keeps leaving its asking mode")
            self._core.passes(Side.CLIENT, line)
            return
        self._core.note(f"session {session.id}: the agent left its asking mode; policyd sets it back", loud=True)
        session.setback = SetBack(line, asking, self._core.now.mono + self._core.settings.hold_s)
        self._next(session)


def named(verdict: Verdict) -> bool:
    """Say whether a rule, not a default, allows the change."""
    decision = verdict.decision
    return decision.effect is Effect.ALLOW and any(
        rule.effect is Effect.ALLOW and not rule.default for rule in (*decision.rules, *decision.matched)
    )


def switched(params: Mapping[str, object]) -> Mapping[str, object]:
    """Return an update of mode or options in the shape of an opening result."""
    update = params.get("update")
    fields = update if isinstance(update, Mapping) else {}
    result: dict[str, object] = {}
    if "currentModeId" in fields:
        result["modes"] = {"currentModeId": fields["currentModeId"]}
    if "configOptions" in fields:
        result["configOptions"] = fields["configOptions"]
    return result


def patched(line: bytes, result: Mapping[str, object], asking: Asking) -> bytes:
    """Return the response with the mode and options that are in force; every other value as it was."""
    ident = acp.envelope(line).id or b"null"
    body = dict(result)
    modes, options = body.get("modes"), body.get("configOptions")
    if asking.mode and isinstance(modes, Mapping):
        body["modes"] = {**modes, "currentModeId": asking.mode}
    if asking.options and isinstance(options, list):
        body["configOptions"] = [_option(one, asking.options) for one in options]
    return acp.messages.result(ident, body)[:-1]


def _option(option: object, values: Mapping[str, object]) -> object:
    if isinstance(option, Mapping) and text_of(option, "id") in values:
        return {**option, "currentValue": values[text_of(option, "id")]}
    return option
