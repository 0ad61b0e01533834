"""Keeping agents in a mode in which they ask.

1. The response that opens a session is held until the agent has confirmed every step of the asking mode; lines of
   that session wait behind it, in order, and no prompt passes before. At most `hold_s`.
2. That one response is rewritten: `currentModeId`, and the `currentValue` of the options that were set.
3. If the agent refuses, does not answer, or has no such mode, the response is forwarded unchanged and the session is
   *unwatched*: this is noted loudly, and under `strict` the session gets no prompt.
4. A change by the client to something unsafe is refused with an error, unless a rule allows it by name.
5. A switch by the agent is undone before the next prompt; the client does not see it unless undoing fails. It may show
   in an update or in the agent's answer to a change by the client.
6. If the mode an agent states is no evidence of its real mode, asking is set at every opening.
7. A step counts as confirmed if the agent accepts it, unless the answer lists options that contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from policyd import acp
from policyd.audit import event
from policyd.model import Effect
from policyd.session.core import Core
from policyd.session.doors import DOORS
from policyd.session.events import Side
from policyd.session.modeshapes import listing, named, overlaid, patched, switched
from policyd.session.ports import Asking, Verdict
from policyd.session.records import Records
from policyd.session.report import Report
from policyd.session.state import PERMISSION, Hold, Session, SetBack

JUDGED = DOORS | {PERMISSION}
"""Requests of the agent that policyd answers, or forwards once they are judged."""
SWITCHES = frozenset({"current_mode_update", "config_option_update"})
QUEUE_LINES = 10_000
QUEUE_BYTES = 64 * 1024 * 1024
PROMPTS_KEPT = 100
SETBACKS = 8
"""Switches by the agent that are undone in one session before it counts as unwatched."""
DUPLICATE_ID = "two requests are open under one id"
UNSEEN = "policyd has not seen this session open, so it cannot tell whether the agent asks"
NO_ASKING = "policyd could not make this agent ask for permission ({why}); prompts are refused (strict)."


class Modes:
    """The asking mode of every session."""

    def __init__(self, core: Core, records: Records) -> None:
        """Share `core`; the connection takes the lines that are `ready`."""
        self._core = core
        self._records = records
        self._report = Report(core)
        self._holds = 0
        self._busy: dict[str, Session] = {}
        """Sessions with a task under way."""
        self.ready: list[list[tuple[Side, bytes]]] = []
        """Lines that waited for a session: the connection handles them as if they came now."""

    # ---- opening ------------------------------------------------------------------------------------

    def opened(self, session: Session, line: bytes, result: Mapping[str, object]) -> None:
        """Handle the response that opens a session: forward it, or hold it until an asking mode is in force."""
        mode = self._core.settings.agent_mode
        early, session.early_updates = [params for params, _ in session.early_updates.values()], {}
        if session.hold is not None or session.setback is not None:
            self._failed(session, "the session was opened again before the agent confirmed its mode")
        session.unwatched, session.setbacks = "", 0
        asking = Asking() if mode == "off" else self._starting(session, result, early)
        if mode == "warn" and (asking.steps or asking.missing):
            self._core.note(f"session {session.id}: the agent may be in a mode that does not ask the client", loud=True)
            asking = Asking()
        if asking.missing:
            self._unwatched(session, asking.missing)
        if not asking.steps:
            self._release(session, line)
            return
        self._holds += 1
        session.hold = hold = Hold(line, asking, self._core.now.mono + self._core.settings.hold_s, result)
        self._next(session, hold)

    def _starting(self, session: Session, result: Mapping[str, object], early: list[Mapping[str, object]]) -> Asking:
        """Return the steps for a session that opens, by its response and by earlier updates."""
        asking = self._asking(session, overlaid([*early], result))
        if asking.steps or asking.missing or not any(self._unsafe(params) for params in early):
            return asking
        return self._asking(session, overlaid([result], *early))

    def not_opened(self, session: Session) -> None:
        """Restore a session that the agent refused to load or resume."""
        if session.opening:
            return
        session.opened = session.was_open
        early, session.early_updates = session.early_updates, {}
        for params, line in early.values() if session.opened else ():
            self.agent_switch(session, params, line, passed=True)
        self._let_prompts(session)

    def _asking(self, session: Session, result: Mapping[str, object]) -> Asking:
        try:
            return self._core.decider.asking(session.id, result)
        except Exception as error:
            return Asking(missing=f"{type(error).__name__}: {error}")

    def _next(self, session: Session, task: Hold | SetBack) -> None:
        """Send the next step of a hold or of a switch being undone, or finish it."""
        self._busy[session.id] = session
        if task.step == len(task.asking.steps):
            del self._busy[session.id]
            self._confirmed(session)
            return
        method, params = task.asking.steps[task.step]
        self._observe(Side.CLIENT, {"id": f"policyd:{task.step}:{session.id}", "method": method, "params": params})
        task.own = self._core.ask_side(Side.AGENT, method, params, lambda reply: self._replied(session, task, reply))

    def _replied(self, session: Session, task: Hold | SetBack, reply: acp.Envelope) -> None:
        if reply.result is None:
            method = task.asking.steps[task.step][0]
            self._failed(session, f"the agent refused {method}")
            return
        self._observe(Side.AGENT, {"id": f"policyd:{task.step}:{session.id}", "result": {}})
        task.step += 1
        if isinstance(task, Hold):
            task.confirmed.append(len(task.queue))
        if task.step == len(task.asking.steps) and self._contradicts(reply.result):
            self._failed(session, "the agent says that it is still in a mode that does not ask")
            return
        self._next(session, task)

    def _observe(self, side: Side, message: Mapping[str, object]) -> None:
        """Let the decider observe policyd's own changes as if the client had made them."""
        try:
            self._core.decider.observe(side, message)
        except Exception as error:
            self._core.note(f"a mode could not be observed: {type(error).__name__}")

    def _contradicts(self, result: bytes) -> bool:
        """Say whether the answer to the last step lists options under which the agent does not ask."""
        try:
            fields = acp.strict(result)
        except acp.ProtocolError:
            return True
        return isinstance(fields, dict) and self._unsafe({"update": listing(fields)})

    def _unsafe(self, params: Mapping[str, object]) -> bool:
        """Say whether an update reports a mode or option that no rule allows by name."""
        verdict = self._judge(acp.UPDATE, params)
        return verdict is not None and (isinstance(verdict, str) or not named(verdict))

    def _confirmed(self, session: Session) -> None:
        hold, setback = session.hold, session.setback
        if hold is not None:
            session.hold = None
            self._holds -= 1
            kept = [one for at, one in enumerate(hold.queue) if not self._stale(session, hold, at)]
            self._release(session, self._patched(hold), kept)
            return
        session.setback = None
        if setback is not None and setback.line is None and setback.asking.mode:
            self._core.send(Side.CLIENT, acp.messages.mode_update(session.id, setback.asking.mode))
        for params, line in setback.later if setback is not None else ():
            self._undo(session, params, line)
        if session.setback is None:
            self._let_prompts(session)

    def _stale(self, session: Session, hold: Hold, at: int) -> bool:
        """Say whether a queued line reports a switch that steps confirmed after it have undone."""
        side, line = hold.queue[at]
        message = acp.envelope(line) if side is Side.AGENT and line else acp.Envelope()
        if message.method != acp.UPDATE or message.params is None:
            return False
        if acp.update_kind(message.params)[1] not in SWITCHES:
            return False
        params, done = acp.strict_object(message.params), sum(came <= at for came in hold.confirmed)
        return self._judge(acp.UPDATE, params) is not None and self._covered(session, params, hold.asking, done)

    def _covered(self, session: Session, params: Mapping[str, object], asking: Asking, done: int) -> bool:
        """Say whether the steps after the first `done` undo the switch that an update reports."""
        needed = self._asking(session, switched(params))
        return not needed.missing and bool(needed.steps) and all(one in asking.steps[done:] for one in needed.steps)

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
            for line in (setback.line, *(line for _, line in setback.later)):
                if line is not None:
                    self._core.forward(Side.CLIENT, line)
            self._let_prompts(session)

    def _release(self, session: Session, line: bytes, queue: list[tuple[Side, bytes]] | None = None) -> None:
        self._core.forward(Side.CLIENT, line)
        session.opened, session.was_open = not session.opening, True
        for report in session.reports:
            self._core.send(Side.CLIENT, report)
        session.reports.clear()
        self.ready.append([one for one in queue or () if one[1]])
        self._let_prompts(session)

    def _unwatched(self, session: Session, why: str) -> None:
        session.unwatched = why
        self._core.record(event("unwatched", self._core.now.wall, session=session.id, reason=why))
        self._core.note(f"session {session.id} is NOT under policy where the agent does not ask: {why}", loud=True)
        self._report.show(
            session, f"policyd: this session is not under policy where the agent does not ask ({why})", why
        )

    # ---- what waits ---------------------------------------------------------------------------------

    def queued(self, session: Session, side: Side, message: acp.Envelope, line: bytes) -> bool:
        """Queue a line of a session whose response is held, or reject it; False if nothing is held."""
        hold = session.hold
        if hold is None:
            return False
        if side is Side.AGENT and message.id is not None and message.method in JUDGED:
            if self._reject_queued(session, hold, message.key, DUPLICATE_ID):
                self._reject(session, line, DUPLICATE_ID)
                return True
            hold.asked[message.key] = len(hold.queue)
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
        """Forward a prompt, queue it, or refuse it; True if it was forwarded."""
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
            self._core.forward(Side.AGENT, line)
            return True
        return False

    def cancelled(self, session: Session) -> None:
        """Handle a cancelled turn: queued prompts end at once, and queued requests of the agent are rejected."""
        waiting, session.prompts = session.prompts, []
        for line in waiting:
            ident = acp.envelope(line).id or b"null"
            self._core.send(Side.CLIENT, acp.messages.result(ident, {"stopReason": "cancelled"}))
        if (hold := session.hold) is not None:
            for key in list(hold.asked):
                self._reject_queued(session, hold, key, "the turn was cancelled")

    def cancel_request(self, key: object) -> bool:
        """Handle a request that the agent withdraws; True if it was queued."""
        holds = [(session, session.hold) for session in self._busy.values() if session.hold is not None]
        return any(self._reject_queued(session, hold, key, "the agent withdrew the request") for session, hold in holds)

    def _reject_queued(self, session: Session, hold: Hold, key: object, why: str) -> bool:
        """Reject a queued request of the agent; False if none has this id."""
        at = hold.asked.pop(key, None)
        if at is not None:
            self._reject(session, hold.queue[at][1], why)
            hold.queue[at] = Side.AGENT, b""
        return at is not None

    def _reject(self, session: Session, line: bytes, why: str) -> None:
        message = acp.envelope(line)
        ident = message.id or b"null"
        answer = acp.messages.error(ident, acp.messages.REFUSED, f"Denied by policyd: {why}")
        if message.method == PERMISSION:
            answer = acp.messages.permission(ident, None, {"effect": "deny", "rules": [], "reason": why})
        self._records.event("refused", session=session.id, side="agent", method=message.method, reason=why)
        self._core.send(Side.AGENT, answer)

    def cancel_prompt(self, key: object) -> bool:
        """Handle a request that the client withdraws; True if it was a queued prompt."""
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
            self.ready.append([(Side.CLIENT, line) for line in waiting])

    def tick(self) -> None:
        """Give up on agents that do not answer in time."""
        for session in list(self._busy.values()):
            task = session.hold or session.setback
            if task is not None and self._core.now.mono >= task.deadline:
                self._failed(session, "the agent did not answer in time")

    @property
    def waiting(self) -> bool:
        """Whether a task is under way."""
        return bool(self._busy)

    def deadline(self) -> float | None:
        """Return when the next task times out."""
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
            self._core.note(f"{method}: the agent's asking is switched off", loud=True)
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
            return self._core.decider.switch(method, params, self._core.now)
        except Exception as error:
            return f"Refused by policyd: {type(error).__name__} while judging {method}."

    def agent_switch(
        self, session: Session, params: Mapping[str, object], line: bytes, *, passed: bool = False
    ) -> None:
        """Judge a switch the agent reports; forward the update (unless it has `passed`), or undo the switch."""
        verdict = None if session.unwatched else self._judge(acp.UPDATE, params)
        if verdict is None or not self._refusal(acp.UPDATE, verdict):
            if not passed:
                self._core.forward(Side.CLIENT, line)
            return
        self._undo(session, params, None if passed else line)

    def _undo(self, session: Session, params: Mapping[str, object], line: bytes | None) -> None:
        """Undo a switch of the agent, now or after the one being undone."""
        running = session.setback
        if running is not None and self._covered(session, params, running.asking, running.step):
            return
        session.setbacks += 1
        asking = self._asking(session, switched(params))
        if session.setbacks > SETBACKS or asking.missing or not asking.steps:
            self._unwatched(session, asking.missing or "the agent keeps leaving its asking mode")
            if line is not None:
                self._core.forward(Side.CLIENT, line)
            return
        if running is not None:
            running.later.append((params, line))
            return
        self._core.note(f"session {session.id}: the agent left its asking mode; policyd sets it back", loud=True)
        session.setback = setback = SetBack(line, asking, self._core.now.mono + self._core.settings.hold_s)
        self._next(session, setback)
