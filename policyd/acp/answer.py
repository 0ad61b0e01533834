"""Choosing the option of a permission request for an effect.

Options are chosen by `kind`, never by position, id or name. A name can only be a reason *not* to answer: an option
whose name means the opposite of its kind goes to a person.

    allow   the only `allow_once`, or the plain one a profile names for exactly this set; a menu, or `allow_always`
            alone: ask
    deny    the option a profile prefers, else the first `reject_once`, else `reject_always` if every deciding rule is a
            managed or user rule, else `cancelled`
    no option, unsound options, unknown kinds only: `cancelled`, whatever was decided
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from msgspec import Struct

from policyd.model import Effect, Option

ALLOW_KINDS = ("allow_once", "allow_always")
REJECT_KINDS = ("reject_once", "reject_always")
OPTION_KINDS = ALLOW_KINDS + REJECT_KINDS
KNOWN = frozenset(OPTION_KINDS)
MOST_OPTIONS = 32
LONGEST_ID = 256
SURE = LONGEST_ID // 4
"""So many characters never exceed `LONGEST_ID` bytes."""
KNOWN_SETS = 16
"""Sets of options whose answers are kept: an agent offers the same ones again and again."""


class Answer(Struct, frozen=True, gc=False):
    """The answer. `effect` ASK: only a person may answer."""

    effect: Effect
    option: str | None = None
    """Id of the option; None beside ALLOW never occurs, beside DENY means the outcome `cancelled`."""
    why: str = ""
    """Why it differs from the decision, in words."""


def unsound(options: Sequence[Option]) -> str:
    """Return why no option can be chosen at all, `""` if one can."""
    if not options:
        return "the request offers no option"
    if len(options) > MOST_OPTIONS:
        return f"the request offers more than {MOST_OPTIONS} options"
    ids = {option.id for option in options}
    if "" in ids or (max(map(len, ids)) > SURE and any(map(_too_long, ids))):
        return "an option has no id, or one that is too long"
    if len(ids) != len(options):
        return "two options have the same id"
    return "no option has a known kind" if KNOWN.isdisjoint([option.kind for option in options]) else ""


def _too_long(ident: str) -> bool:
    return len(ident.encode("utf-8", "replace")) > LONGEST_ID


@cache
def _opposites() -> dict[str, re.Pattern[str]]:
    """Return, by kind, the beginning of names that mean the opposite."""
    refusals = re.compile(
        r"\s*(reject|deny|denied|no|cancel|refuse|decline|block|don['’]?t|do not|stop|never|disallow)\b", re.I
    )
    consents = re.compile(
        r"\s*(allow|yes|approve|accept|always allow|ok|okay|proceed|permit|grant|run|continue)\b", re.I
    )
    return {**dict.fromkeys(ALLOW_KINDS, refusals), **dict.fromkeys(REJECT_KINDS, consents)}


@lru_cache(KNOWN_SETS)
def mislabelled(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return the options whose name means the opposite of their kind, for the person and the record."""
    opposites = _opposites()
    return tuple([one for one in options if one.kind in opposites and opposites[one.kind].match(one.name)])


@lru_cache(KNOWN_SETS)
def answer(
    effect: Effect,
    options: tuple[Option, ...],
    *,
    final: bool = False,
    plain: str | None = None,
    refusal: str | None = None,
) -> Answer:
    """Return the answer to `effect` among `options`.

    `final`: every deciding rule is a managed or user rule. `plain`, `refusal`: ids a profile prefers (`model.Request`).
    """
    why = unsound(options)
    if why:
        return Answer(Effect.DENY, None, why)
    if effect is Effect.DENY:
        return Answer(Effect.DENY, _rejecting(options, final, refusal))
    if effect is Effect.ASK:
        return Answer(Effect.ASK)
    return _allowing(options, plain)


def _allowing(options: Sequence[Option], plain: str | None) -> Answer:
    wrong = mislabelled(options)
    if wrong:
        return Answer(Effect.ASK, None, f"the option {wrong[0].id!r} is named the opposite of what it does")
    once = [option.id for option in options if option.kind == "allow_once"]
    if plain is not None and plain in once:
        return Answer(Effect.ALLOW, plain)
    if len(once) == 1:
        return Answer(Effect.ALLOW, once[0])
    return Answer(Effect.ASK, None, "several options allow once" if once else "no option allows once")


def _rejecting(options: Sequence[Option], final: bool, refusal: str | None) -> str | None:
    if refusal is not None and any(option.id == refusal and option.kind in REJECT_KINDS for option in options):
        return refusal
    for kind in REJECT_KINDS if final else REJECT_KINDS[:1]:
        for option in options:
            if option.kind == kind:
                return option.id
    return None
