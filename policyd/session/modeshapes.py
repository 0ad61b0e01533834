"""The shapes in which modes and options appear on the wire: results of openings, updates, answers to changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from policyd import acp
from policyd.model import Effect
from policyd.session.core import text_of
from policyd.session.ports import Asking, Verdict


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


def listing(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the options in the answer to a change, in the shape of an update."""
    return {"sessionUpdate": "config_option_update", "configOptions": fields.get("configOptions")}


def overlaid(before: list[Mapping[str, object]], *after: Mapping[str, object]) -> Mapping[str, object]:
    """Merge results of openings, and updates, in order: later values replace earlier ones.

    The list of modes that was offered is kept.
    """
    found: dict[str, object] = {}
    for one in (*before, *after):
        fields = switched(one) if "update" in one else one
        modes, known = fields.get("modes"), found.get("modes")
        found.update({name: value for name, value in fields.items() if value is not None})
        if isinstance(modes, Mapping) and isinstance(known, Mapping):
            found["modes"] = {**known, **modes}
    return found


def patched(line: bytes, result: Mapping[str, object], asking: Asking) -> bytes:
    """Return the response with the mode and options that are in force, and otherwise unchanged values."""
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
