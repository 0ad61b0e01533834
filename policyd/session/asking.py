"""Asking a person through the prompt chain: the client on the wire, other steps through `Ask` commands.

The client is asked under an id of policyd's own that nobody can guess, so that no answer to anything else, and none
that was sent before the question was read, settles it. The params of a request that needs no change are passed as they
came. The answer is consumed here and never forwarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policyd import acp
from policyd.acp import messages
from policyd.display import safe
from policyd.grants import Clock
from policyd.prompts import (
    Joined,
    Outcome,
    Prompt,
    PromptCommand,
    Question,
    Refused,
    ToClient,
    ToStep,
    ask,
    find,
    parse_chain,
    unasked,
    usable,
)
from policyd.prompts.clients import CAREFUL, Client, at_most
from policyd.session import doors
from policyd.session.core import Core, quoted
from policyd.session.events import Ask, Remember, Side, Withdraw
from policyd.session.ports import Verdict
from policyd.session.state import PERMISSION, Held, OpenPrompt

LONGEST_TITLE = 400
"""Characters of an agent's title: it must not push the note on what "always" covers out of sight."""


class Asker:
    """The open questions of one connection."""

    def __init__(self, core: Core, close: Callable[[OpenPrompt], None]) -> None:
        """Share `core`; `close` is called once for every question that has ended."""
        self._core = core
        self._close = close
        self._chain = parse_chain(core.settings.prompt, core.settings.prompt_timeouts)
        self._prompts: list[OpenPrompt] = []
        self._by_client: dict[object, OpenPrompt] = {}
        self._by_ask: dict[int, OpenPrompt] = {}
        self._known = CAREFUL
        self._name = ""
        """The client name for which `_known` was looked up."""
        self._free_since = 0.0
        """When the client last answered: the next question cannot have been read before."""

    # ---- asking -------------------------------------------------------------------------------------

    def ask(self, held: Held, verdict: Verdict) -> Outcome | None:
        """Ask about a held request, or let it wait for the answer to an identical question.

        Return the outcome if nobody is asked. Raises whatever building the question raises.
        """
        client = self._client()
        chain = usable(self._chain, client)
        if not chain:
            return unasked(verdict.decision.rules, verdict.decision.reason, client)
        question = self._question(held, verdict, client)
        desk = held.session.desk
        found = desk.admit(question, held.number, self._core.now.mono)
        if isinstance(found, Refused):
            return found.outcome
        if isinstance(found, Joined):
            held.pending = next(pending for pending in self._prompts if pending.prompt is found.prompt)
            return None
        prompt = Prompt(chain, question, client, nonce=self._core.secret(), human_ms=self._core.settings.human_ms)
        desk.opened(found.fingerprint, prompt)
        held.pending = pending = OpenPrompt(prompt, held.session, held)
        self._prompts.append(pending)
        self._perform(pending, prompt.start(self._core.now.mono))
        return None

    def _client(self) -> Client:
        name = self._core.settings.client or self._core.decider.client().get("name", "")
        if name != self._name:
            self._known, self._name = find(name), name
        return self._known if self._core.decider.person() else at_most(self._known, "session")

    def _question(self, held: Held, verdict: Verdict, client: Client) -> Question:
        decider = self._core.decider
        return ask(
            verdict.request,
            verdict.decision,
            verdict.context,
            client,
            root=decider.project(held.session.id),
            tool_call=shown(held),
            allows=decider.remembers(),
            client_name=decider.client().get("name", ""),
        )

    def _perform(self, pending: OpenPrompt, commands: tuple[PromptCommand, ...], *, tell: bool = True) -> None:
        for command in commands:
            if isinstance(command, ToClient):
                self._to_client(pending, command)
            elif isinstance(command, ToStep):
                pending.step, pending.ask = command.step, self._core.number()
                self._by_ask[pending.ask] = pending
                self._core.put(Ask(pending.ask, command.name, command.payload, command.deadline))
            else:
                self._stop(pending, tell=tell)
        if pending.prompt.outcome is not None and pending in self._prompts:
            self._prompts.remove(pending)
            self._close(pending)

    def _to_client(self, pending: OpenPrompt, command: ToClient) -> None:
        held, pending.step = pending.first, command.step
        ident = self._core.own_id()
        self._by_client["text", ident], pending.asked = pending, quoted(ident)
        if held.door or not (command.untouched or same_options(held, command)) or command.note:
            self._core.send(Side.CLIENT, messages.request(ident, PERMISSION, enriched(held, command)))
        else:
            self._core.send(Side.CLIENT, messages.spliced_request(quoted(ident), PERMISSION, held.raw))

    # ---- answers ------------------------------------------------------------------------------------

    def client_answered(self, key: object, reply: acp.Envelope) -> bool:
        """Handle the client's answer to a question; False if no question has this id."""
        pending = self._by_client.pop(key, None)
        if pending is None:
            return False
        pending.asked = None
        now = self._core.now.mono
        choice, why = selected(reply)
        if choice is not None:
            commands = pending.prompt.chosen(pending.step, choice, now, self._free_since)
        else:
            pending.cancelled = why == CANCELLED
            commands = pending.prompt.refused(pending.step, why, now)
        self._free_since = now
        self._perform(pending, commands)
        return True

    def replied(self, ident: int, answer: Mapping[str, object] | None) -> None:
        """Handle the answer of another step."""
        pending = self._by_ask.pop(ident, None)
        if pending is not None:
            pending.ask = None
            self._perform(pending, pending.prompt.replied(pending.step, answer, self._core.now.mono))

    def failed(self, ident: int, why: str) -> None:
        """Handle a failed `Ask`: the next step is asked."""
        pending = self._by_ask.pop(ident, None)
        if pending is not None:
            pending.ask = None
            self._perform(pending, pending.prompt.failed(pending.step, why, self._core.now.mono))

    def tick(self) -> None:
        """End questions whose time is up."""
        for pending in list(self._prompts):
            self._perform(pending, pending.prompt.tick(self._core.now.mono))

    @property
    def waiting(self) -> bool:
        """Whether a question is open."""
        return bool(self._prompts)

    def deadline(self) -> float | None:
        """Return when the next question times out."""
        return min((at for pending in self._prompts if (at := pending.prompt.deadline) is not None), default=None)

    def leave(self, held: Held, *, tell: bool) -> None:
        """Stop waiting; a question nobody waits for is withdrawn. `tell`: the client does not know yet."""
        prompt = held.session.desk.leave(held.number)
        pending = next((pending for pending in self._prompts if pending.prompt is prompt), None)
        if pending is not None:
            self._perform(pending, pending.prompt.withdraw("nobody waits for an answer any more"), tell=tell)

    def _stop(self, pending: OpenPrompt, *, tell: bool) -> None:
        if pending.asked is not None:
            self._by_client.pop(acp.id_key(pending.asked), None)
            if tell:
                self._core.send(Side.CLIENT, messages.cancel_request(pending.asked))
            pending.asked = None
        if pending.ask is not None:
            self._by_ask.pop(pending.ask, None)
            self._core.put(Withdraw(pending.ask))
            pending.ask = None

    def remember(self, pending: OpenPrompt, outcome: Outcome, record: int) -> None:
        """Keep the "always" of an outcome, once."""
        offer, settings, now = outcome.offer, self._core.settings, self._core.now
        if offer is None or pending.remembered or (offer.scope == "session" and not settings.run):
            return
        pending.remembered = True
        grant = offer.grant(
            clock=Clock(now.wall),  # whoever stores it adds the boot clock
            session=pending.session.id,
            run=settings.run,
            by=outcome.by,
            client=self._core.decider.client().get("name", ""),
            life=settings.grants_max_age,
        )
        self._core.put(Remember((grant,), record))


CANCELLED = "the question was cancelled at the client"


def selected(reply: acp.Envelope) -> tuple[str | None, str]:
    """Return the option a client's answer selects, or why it selects none."""
    if reply.result is None:
        return None, "the client answered with an error"
    try:
        outcome = acp.strict_object(reply.result).get("outcome")
    except acp.ProtocolError as error:
        return None, f"the client's answer cannot be read: {error}"
    fields = outcome if isinstance(outcome, dict) else {}
    option = fields.get("optionId")
    if fields.get("outcome") == "selected" and isinstance(option, str):
        return option, ""
    return None, CANCELLED if fields.get("outcome") == "cancelled" else "the client's answer selects nothing"


def shown(held: Held) -> Mapping[str, object]:
    """Return the tool call a client is shown for a held request."""
    if held.door and held.verdict is not None:
        return doors.tool_call(held.number, held.verdict, held.params)
    call = held.params.get("toolCall")
    return call if isinstance(call, Mapping) else {}


def same_options(held: Held, command: ToClient) -> bool:
    """Say whether the options offered are the agent's own."""
    own = held.verdict.request.options if held.verdict is not None else ()
    return [(one.id, one.name, one.kind) for one in own] == [(one.id, one.name, one.kind) for one in command.choices]


def enriched(held: Held, command: ToClient) -> dict[str, object]:
    """Return the params of the request for the client: options replaced, and in the title what they cover."""
    call = dict(shown(held))
    if command.note:
        title = call.get("title") or (held.verdict.request.title if held.verdict is not None else "")
        call["title"] = f"{safe(str(title), limit=LONGEST_TITLE)} [{command.note}]"
    if command.alone:
        call.setdefault("content", [])
    options = [{"optionId": one.id, "name": one.name, "kind": one.kind} for one in command.choices]
    return (
        {**held.params, "toolCall": call, "options": options}
        if not held.door
        else {"sessionId": held.session.id, "toolCall": call, "options": options}
    )
