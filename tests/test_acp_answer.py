"""Which option is answered: the table of section 7 against an independent rule, and hostile options."""

from __future__ import annotations

import itertools
import json

import pytest

from policyd.acp import Answer, answer, messages, mislabelled, unsound
from policyd.actions.messages import listed, options_of
from policyd.model import Effect, Option

KINDS = ("allow_once", "allow_always", "reject_once", "reject_always", "mystery", None)
MULTISETS = [kinds for size in range(6) for kinds in itertools.combinations_with_replacement(KINDS, size)]
DECISIONS = ("allow", "ask", "deny", "deny finally")


def offered(kinds: tuple[str | None, ...]) -> list[dict[str, str]]:
    """Options of these kinds, as an agent would send them; ids and names say nothing."""
    return [
        {"optionId": f"o{at}", "name": f"Choice {at}"} | ({} if kind is None else {"kind": kind})
        for at, kind in enumerate(kinds)
    ]


def golden(kinds: tuple[str | None, ...], decision: str) -> str:
    """The row of section 7, written as a person reads it: the kind answered, `ask` or `cancelled`."""
    known = [kind for kind in kinds if kind in KINDS[:4]]
    if not known:
        return "cancelled"
    if decision == "ask":
        return "ask"
    if decision == "allow":
        return "allow_once" if known.count("allow_once") == 1 else "ask"
    if "reject_once" in known:
        return "reject_once"
    if decision == "deny finally" and "reject_always" in known:
        return "reject_always"
    return "cancelled"


def told(found: Answer, options: tuple[Option, ...]) -> str:
    if found.effect is Effect.ASK:
        return "ask"
    kinds = {option.id: option.kind for option in options}
    return "cancelled" if found.option is None else kinds[found.option]


def test_the_table_has_1848_rows() -> None:
    assert len(MULTISETS) * len(DECISIONS) == 1848


@pytest.mark.parametrize("decision", DECISIONS)
def test_every_row_of_the_table(decision: str) -> None:
    effect = Effect[decision.split()[0].upper()]
    for kinds in MULTISETS:
        for order in {kinds, kinds[::-1]}:
            options = options_of(offered(order))
            found = answer(effect, options, final=decision == "deny finally")
            assert told(found, options) == golden(kinds, decision), (kinds, decision)
            if effect is Effect.DENY:
                assert found.effect is Effect.DENY


def test_the_first_of_several_rejects_is_taken() -> None:
    options = options_of(offered(("reject_always", "reject_once", "reject_once")))
    assert answer(Effect.DENY, options).option == "o1"


def test_a_profile_names_the_plain_option_of_a_menu() -> None:
    options = options_of(offered(("allow_once", "allow_once", "reject_once")))
    assert answer(Effect.ALLOW, options).effect is Effect.ASK
    assert answer(Effect.ALLOW, options, plain="o1") == Answer(Effect.ALLOW, "o1")
    assert answer(Effect.ALLOW, options, plain="o2").effect is Effect.ASK
    assert answer(Effect.ALLOW, options, plain="nowhere").effect is Effect.ASK


def test_a_profile_prefers_a_rejection_that_lets_the_turn_go_on() -> None:
    options = options_of(offered(("allow_once", "reject_once", "reject_once")))
    assert answer(Effect.DENY, options, refusal="o2").option == "o2"
    assert answer(Effect.DENY, options, refusal="o0").option == "o1"
    assert answer(Effect.DENY, options, refusal="nowhere").option == "o1"


# ---- hostile options ---------------------------------------------------------------------------------

NO_LABELS = [
    "Reject",
    "reject once",
    "No",
    "No, thanks",
    "Deny",
    "Cancel",
    "Don't allow",
    "Do not run",
    "Never",
    "  Block",
]
YES_LABELS = ["Allow", "allow once", "Yes", "Yes, and continue", "Approve", "Accept", "Always allow", "OK", "Proceed"]
REST = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def allow(name: str = "Allow", ident: object = "yes", kind: object = "allow_once") -> dict[str, object]:
    return {"optionId": ident, "name": name, "kind": kind}


def _hostile() -> list[object]:
    plain, many = allow(), [allow(ident=f"x{at}", kind="reject_once") for at in range(32)]
    rows: list[object] = [None, {}, "allow_once", 7, [], [None], ["allow_once"], [[plain]], [{}]]
    rows += [[allow(label), *rest] for label in NO_LABELS for rest in itertools.permutations(REST)]
    rows += [[plain, {"optionId": "no", "name": label, "kind": kind}] for label in YES_LABELS for kind in KINDS[2:4]]
    rows += [
        [plain, allow(ident="yes", kind=kind), *REST] for kind in ("allow_once", "reject_once", "mystery", None, 7)
    ]
    rows += [[allow(ident=ident), *rest] for ident in ("", None, 7, "x" * 257, "\u00e9" * 129) for rest in ([], REST)]
    kinds = (
        "Allow_Once",
        "ALLOW_ONCE",
        "allow-once",
        "allow_once ",
        " allow_once",
        "allowOnce",
        "allow",
        "",
        None,
        1,
        True,
    )
    kinds += ("allow_\u043ence", "allow_once\x00", "reject_once\nallow_once", ["allow_once"])  # type: ignore[assignment]
    rows += [[allow(kind=kind), *rest] for kind in kinds for rest in ([], REST, REST[::-1])]
    rows += [[plain, *many], [*many, plain], many]
    rows += [[allow(ident=f"a{at}") for at in range(count)] for count in range(2, 33)]
    rows += [[allow(ident=f"a{at}", kind="allow_always") for at in range(count)] for count in range(1, 33)]
    for label, ident in itertools.product(NO_LABELS, ("allow_once", "0", "proceed_once", "options[0]", "approve")):
        rows += [[allow(label, ident)], [*REST, allow(label, ident)], [allow(label, ident), allow(label, ident + "2")]]
        rows += [[{"optionId": ident, "name": name, "kind": "reject_once"}] for name in ("Allow once", "Yes")]
    return rows


HOSTILE = _hostile()


def test_the_hostile_corpus_is_large() -> None:
    assert len(HOSTILE) >= 400


def test_no_hostile_options_are_allowed_by_themselves() -> None:
    for row in HOSTILE:
        options = options_of(listed(row))
        assert answer(Effect.ALLOW, options).effect is not Effect.ALLOW, row


def test_a_name_that_says_the_opposite_is_flagged() -> None:
    for label in NO_LABELS:
        assert [option.id for option in mislabelled(options_of([allow(label)]))] == ["yes"]
    for label in YES_LABELS:
        assert mislabelled(options_of([{"optionId": "n", "name": label, "kind": "reject_once"}]))


def test_names_agents_really_use_are_not_flagged() -> None:
    usual = {
        "allow_once": [
            *("Allow Once", "Allow this change", "Approve once", "Yes", "Yes, proceed", "Allow"),
            *("Auto-confirm LOW/MEDIUM risk, ask for HIGH", "Yes, manually approve edits", "Yes, implement this plan"),
        ],
        "allow_always": [
            "Always proceed (don't ask again)",
            "Always allow",
            "Yes, and bypass permissions",
            "Not now, always",
        ],
        "reject_once": [
            "Cancel",
            "Deny",
            "No",
            "No, keep planning",
            "No, continue without permissions",
            "Skip this change",
        ],
        "reject_always": ["Never Allow This Tool"],
    }
    for kind, names in usual.items():
        for name in names:
            assert not mislabelled((Option("x", name, kind),)), name


def test_unsound_options_are_cancelled_whatever_was_decided() -> None:
    twice = options_of([allow(), allow(kind="reject_once")])
    assert unsound(twice)
    for effect in Effect:
        assert answer(effect, twice).option is None
        assert answer(effect, twice).effect is Effect.DENY


@pytest.mark.parametrize("effect", Effect)
def test_options_beyond_a_bound_are_cancelled(effect: Effect) -> None:
    def chosen(more: int, ident: str) -> Answer:
        rest = [{"optionId": f"r{at}", "name": "Reject", "kind": "reject_once"} for at in range(more)]
        return answer(effect, options_of([allow(ident=ident), *rest]))

    for bounded in (chosen(31, "yes"), chosen(1, "x" * 256), chosen(1, "\u00e9" * 128)):
        assert bounded.effect is effect
    for beyond in (chosen(32, "yes"), chosen(1, "x" * 257), chosen(1, "\u00e9" * 129)):
        assert (beyond.effect, beyond.option) == (Effect.DENY, None)


# ---- messages ----------------------------------------------------------------------------------------


def test_messages_are_one_line_of_json_each() -> None:
    for line in (
        messages.permission(b"0", None),
        messages.permission(b'"a\\u0000"', "x\ny", {"effect": "deny"}),
        messages.error(b"null", messages.REFUSED, "Denied by `x`:\nask"),
        messages.request("policyd:1", "session/set_mode", {"sessionId": "s", "modeId": "m"}),
        messages.spliced_request(b"7", "m", b'{"a":1.0}'),
        messages.cancel_request(b"1.50"),
        messages.cancel_session("s"),
        messages.refused_call("s", "policyd-1", "t", "why"),
        messages.mode_update("s", "m"),
    ):
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert json.loads(line)["jsonrpc"] == "2.0"


def test_an_error_says_its_sentence_twice() -> None:
    error = json.loads(messages.error(b"3", messages.REFUSED, "No."))["error"]
    assert error["message"] == error["data"]["details"] == "No."


def test_a_rejection_is_never_an_error_and_never_empty() -> None:
    sent = json.loads(messages.permission(b"3", None, {"effect": "deny"}))
    assert sent["result"] == {"outcome": {"outcome": "cancelled"}, "_meta": {"policyd": {"effect": "deny"}}}
