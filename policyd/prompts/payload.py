"""The JSON for steps of the chain: schema 1, described by `hook.schema.json` beside this module.

Everything a step is given is safe to display. An answer counts only if it is one object with this nonce, this digest
and an explicit decision; `allow` and `reject` may name an option, which must have been offered and have the same
effect. Unknown keys are refused: a misspelt `option` must not become a plain yes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from policyd.grants.keys import digest
from policyd.model import Effect
from policyd.prompts.question import Choice, Question

SCHEMA = 1
ANSWER_KEYS = frozenset({"nonce", "digest", "decision", "option", "message"})
DECISIONS = {"allow": Effect.ALLOW, "reject": Effect.DENY}


class AnswerError(ValueError):
    """An invalid answer, which counts as a rejection."""


class Answer(Struct, frozen=True):
    """What a step decided."""

    choice: Choice | None
    """None: it abstains."""
    message: str = ""


def payload(question: Question, *, nonce: str, seconds: float) -> dict[str, object]:
    """Return the object a step reads; `seconds` is how long it may take."""
    body: dict[str, object] = {
        "schema": SCHEMA,
        "session": question.session_id,
        "tool_call": question.call_id,
        "agent": question.agent,
        "client": question.client,
        "project": question.project,
        "cwd": question.cwd,
        "title": question.title,
        "actions": list(question.parts),
        "details": [{"kind": one.kind, "name": one.name, "text": one.text} for one in question.details],
        "rules": [
            {"id": rule.label, "effect": rule.effect.word, "file": rule.file, "line": rule.line}
            for rule in question.rules
        ],
        "reason": question.reason,
        "options": [_option(choice) for choice in question.choices],
        "menu": question.menu,
        "seconds": seconds,
    }
    return {**body, "nonce": nonce, "digest": digest(body)}


def read_answer(answer: Mapping[str, object], question: Question, *, nonce: str, body_digest: str) -> Answer:
    """Return what `answer` decides.

    Raises:
        AnswerError: wrong nonce or digest, no explicit decision, an option that was not offered or has another effect.
    """
    if strange := set(answer) - ANSWER_KEYS:
        raise AnswerError(f"it holds an unknown key `{min(map(str, strange))}`")
    if answer.get("nonce") != nonce or answer.get("digest") != body_digest:
        raise AnswerError("it answers another question (nonce or digest differ)")
    message = answer.get("message", "")
    if not isinstance(message, str):
        raise AnswerError("its message is no text")
    decision = answer.get("decision")
    if decision == "abstain" and "option" not in answer:
        return Answer(None, message)
    if not isinstance(decision, str) or decision not in DECISIONS:
        raise AnswerError("its decision is none of allow, reject, abstain")
    return Answer(_choice(question, DECISIONS[decision], answer.get("option")), message)


def _choice(question: Question, effect: Effect, option: object) -> Choice:
    if option is None and effect is Effect.DENY:
        return Choice("", "", "reject_once")
    if option is None:
        plain = [one for one in question.choices if one.kind == "allow_once"]
        if question.menu or len(plain) != 1:
            raise AnswerError("it allows a menu without naming the option")
        return plain[0]
    named = [one for one in question.choices if one.id == option]
    if len(named) != 1 or named[0].effect is not effect:
        raise AnswerError("it names an option that was not offered, or one that says otherwise")
    return named[0]


def _option(choice: Choice) -> dict[str, object]:
    remembered = {"covers": choice.offer.covers, "scope": choice.offer.scope} if choice.offer else None
    return {"id": choice.id, "name": choice.name, "kind": choice.kind, "remembers": remembered}
