"""The prompt chain as playbooks: each road through it, and that only an explicit choice is a yes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from policyd.grants import keys
from policyd.model import Action, Effect, Mode, Option, Request, Role
from policyd.prompts import (
    Choice,
    Client,
    Desk,
    Joined,
    Limits,
    Opened,
    Outcome,
    Prompt,
    Question,
    Refused,
    Step,
    Stop,
    ToClient,
    ToStep,
    ask,
    find,
    parse_chain,
    unasked,
    usable,
)
from policyd.prompts import question as prompts_question
from policyd.prompts.clients import CAREFUL
from policyd.prompts.diffs import difference
from tests.asking import ASKS, OPTIONS, ROOT, context, decision, fetch, request, run, touch

ZED = find("zed")
NPM = request(run("npm", "run", "test"))


def question(asking: Request = NPM, client: Client = ZED, **more: object) -> Question:
    """What is asked about `asking` at this client."""
    return ask(asking, decision(asking), context(), client, root=ROOT, **more)  # type: ignore[arg-type]


def prompt(*words: str, client: Client = ZED, asking: Request = NPM, **more: object) -> Prompt:
    """An open prompt along this chain."""
    return Prompt(parse_chain(words), question(asking, client), client, "n", **more)  # type: ignore[arg-type]


def started(*words: str, **more: object) -> Prompt:
    """A prompt whose first step was asked at 100."""
    found = prompt(*words, **more)  # type: ignore[arg-type]
    found.start(100.0)
    return found


def ended(found: Prompt) -> Outcome:
    """The outcome, which there must be."""
    assert found.outcome is not None
    return found.outcome


def reply(command: object, **more: object) -> dict[str, object]:
    """A step's answer with the right nonce and digest."""
    assert isinstance(command, ToStep)
    return {"nonce": command.payload["nonce"], "digest": command.payload["digest"], **more}


# ---- roads through the chain ------------------------------------------------------------------------


def test_the_client_is_asked_and_allows() -> None:
    found = prompt("client")
    (command,) = found.start(100.0)
    assert isinstance(command, ToClient)
    assert [choice.kind for choice in command.choices] == [
        "allow_once",
        "reject_once",
        "allow_always",
        "allow_always",
        "allow_always",
        "reject_always",
    ]
    assert command.choices[0].id == "proceed_once", "the agent's own"
    assert not command.untouched
    assert command.note == ""
    assert found.chosen(0, "proceed_once", 105.0) == ()
    assert ended(found) == Outcome(Effect.ALLOW, "client", "allowed by the person at the client", "proceed_once", None)


def test_an_always_is_remembered_and_the_agent_told_allow_once() -> None:
    found = started("client")
    found.chosen(0, "policyd-always-2", 103.0)
    outcome = ended(found)
    assert outcome.effect is Effect.ALLOW
    assert outcome.option == "proceed_once"
    assert outcome.offer is not None
    assert outcome.offer.scope == "project"
    assert outcome.offer.covers == "`npm run test`"


def test_a_never_is_remembered_as_a_denial() -> None:
    found = started("client")
    found.chosen(0, "policyd-never-4", 103.0)
    assert ended(found).effect is Effect.DENY
    assert ended(found).offer is not None
    assert ended(found).offer.effect is Effect.DENY  # type: ignore[union-attr]


@pytest.mark.parametrize("option", ["proceed_always", "", "PROCEED_ONCE", "allow_once", "cancel ", "policyd-always-9"])
def test_an_option_that_was_not_offered_is_a_rejection(option: str) -> None:
    found = started("client", "inbox")
    assert found.chosen(0, option, 105.0) == ()
    assert ended(found).effect is Effect.DENY
    assert ended(found).by == "policyd"


@pytest.mark.parametrize("why", ["the client cancelled", "error -32603", "no optionId", "the pipe is closed"])
def test_whatever_else_a_client_answers_is_a_rejection(why: str) -> None:
    found = started("client", "inbox")
    assert found.refused(0, why, 105.0) == ()
    assert ended(found).effect is Effect.DENY
    assert ended(found).reason == why


def test_silence_past_the_step_is_a_rejection_with_a_reason() -> None:
    found = started("client", "inbox")
    assert found.deadline == 700.0
    assert found.tick(699.9) == ()
    assert found.tick(700.0) == (Stop(0),)
    assert ended(found).reason == "nobody answered within 600 seconds"
    assert found.deadline is None
    assert found.chosen(0, "proceed_once", 701.0) == ()
    assert ended(found).effect is Effect.DENY


LATE: dict[str, Callable[[Prompt, object], object]] = {
    "a choice": lambda found, asked: found.chosen(0, "proceed_once", 700.0),
    "a refusal": lambda found, asked: found.refused(0, "no", 700.0),
    "a yes": lambda found, asked: found.replied(0, reply(asked, decision="allow"), 700.0),
    "an abstention": lambda found, asked: found.replied(0, None, 700.0),
    "a failure": lambda found, asked: found.failed(0, "it ended", 700.0),
}


@pytest.mark.parametrize("what", LATE)
def test_what_a_step_says_past_its_time_is_a_rejection_whatever_was_noticed_first(what: str) -> None:
    found = prompt("inbox" if what == "a yes" else "client", "command:/b")
    (asked,) = found.start(100.0)
    assert LATE[what](found, asked) == (Stop(0),)
    assert ended(found).reason == "nobody answered within 600 seconds"


def test_a_step_that_abstains_or_cannot_run_hands_on() -> None:
    found = prompt("command:/a", "command:/b", "inbox")
    (first,) = found.start(0.0)
    assert isinstance(first, ToStep)
    assert (first.name, first.deadline) == ("command:/a", 120.0)
    (second,) = found.failed(0, "it exited with 1", 1.0)
    (third,) = found.replied(1, reply(second, decision="abstain", message="on holiday"), 2.0)
    assert isinstance(third, ToStep)
    assert third.name == "inbox"
    assert found.replied(2, reply(third, decision="allow", message="fine"), 9.0) == ()
    assert ended(found).effect is Effect.ALLOW
    assert ended(found).reason == "allowed by the inbox step: fine"
    assert found.faults == ["command:/a: it exited with 1", "command:/b: on holiday"]


def test_the_end_of_the_chain_is_a_rejection_that_names_the_faults() -> None:
    found = started("command:/a")
    assert found.replied(0, None, 1.0) == ()
    assert ended(found).effect is Effect.DENY
    said = "this must be asked (user:asks): user:asks asks, and nobody answered (command:/a: it abstained)"
    assert ended(found).reason == said


def test_an_empty_chain_is_rejected_at_once_and_says_so() -> None:
    found = prompt()
    assert found.start(5.0) == ()
    rest = "and nobody is there to ask (`--prompt none`, `prompt = []`, or a hello without `person`)"
    assert ended(found).reason == f"this must be asked (user:asks): user:asks asks, {rest}"
    for rules, reason, said in (
        ((ASKS,), "asked about by `user:asks`", f"this must be asked (user:asks), {rest}"),
        ((ASKS,), "Pushing wants a person.", f"this must be asked (user:asks): Pushing wants a person, {rest}"),
        ((), "outside the workspace", f"this must be asked: outside the workspace, {rest}"),
        ((), "", f"this must be asked, {rest}"),
    ):
        assert unasked(rules, reason, ZED).reason == said
    acpx = find("acpx")
    found = Prompt(usable(parse_chain(["client"]), acpx), question(client=acpx), acpx, "n")
    assert found.start(5.0) == ()
    assert "nobody is behind the answers of acpx" in ended(found).reason


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "allow", "nonce": "other"},
        {"decision": "allow", "digest": "other"},
        {"decision": "Allow"},
        {"decision": None},
        {"decision": "allow", "option": "nope"},
        {"decision": "allow", "option": "cancel"},
        {"decision": "reject", "option": "proceed_once"},
        {"decision": "allow", "more": 1},
        {"decision": "allow", "message": ["x"]},
        {},
    ],
)
def test_an_answer_that_does_not_count_is_a_rejection(answer: dict[str, object]) -> None:
    found = prompt("command:/a", "inbox")
    (command,) = found.start(0.0)
    assert found.replied(0, {**reply(command), **answer}, 9.0) == ()
    assert ended(found).effect is Effect.DENY
    assert "does not count" in ended(found).reason


def test_a_rejection_needs_no_option() -> None:
    found = prompt("command:/a", "inbox")
    (command,) = found.start(0.0)
    assert found.replied(0, reply(command, decision="reject", message="not today"), 9.0) == ()
    assert ended(found).effect is Effect.DENY
    assert ended(found).reason == "rejected by the command step: not today"


def test_each_step_has_a_nonce_of_its_own() -> None:
    found = prompt("command:/a", "command:/b")
    (first,) = found.start(0.0)
    (second,) = found.failed(0, "gone", 1.0)
    assert isinstance(second, ToStep)
    assert reply(first)["nonce"] != second.payload["nonce"]
    assert found.replied(1, {**reply(first), "decision": "allow"}, 2.0) == ()
    assert ended(found).effect is Effect.DENY


def test_a_withdrawn_question_stops_its_step_once() -> None:
    found = started("inbox")
    assert found.withdraw("the turn was cancelled") == (Stop(0),)
    assert found.withdraw("again") == ()
    assert ended(found).reason == "the turn was cancelled"


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.399])
def test_an_always_faster_than_a_person_counts_once_and_is_not_remembered(seconds: float) -> None:
    found = started("client")
    found.chosen(0, "policyd-always-1", 100.0 + seconds)
    assert (ended(found).effect, ended(found).by, ended(found).offer) == (Effect.ALLOW, "machine", None)
    found = started("client")
    found.chosen(0, "policyd-always-1", 100.41)
    assert ended(found).by == "client"
    assert ended(found).offer is not None


def test_an_always_right_after_another_answer_counts_once_however_long_it_was_open() -> None:
    found = started("client")
    found.chosen(0, "policyd-always-1", 160.0, 159.8)
    assert (ended(found).effect, ended(found).by, ended(found).offer) == (Effect.ALLOW, "machine", None)


@pytest.mark.parametrize(("option", "by"), [("proceed_once", "machine"), ("cancel", "client")])
def test_a_yes_faster_than_a_person_is_not_called_a_persons(option: str, by: str) -> None:
    found = started("client")
    found.chosen(0, option, 100.1)
    assert ended(found).by == by
    assert ("faster than a person" in ended(found).reason) is (by == "machine")


calls = st.sampled_from(["start", "chosen", "refused", "replied", "failed", "tick", "withdraw"])


@given(st.lists(st.tuples(calls, st.integers(-1, 4), st.floats(0, 5000)), max_size=12))
@settings(max_examples=300)
def test_no_order_of_events_without_a_choice_is_a_yes(events: list[tuple[str, int, float]]) -> None:
    found, now = prompt("command:/a", "client", "inbox"), 0.0
    for name, step, seconds in events:
        now += seconds
        act: dict[str, Callable[[], object]] = {
            "start": lambda now=now: found.start(now),  # type: ignore[misc]
            "chosen": lambda step=step, now=now: found.chosen(step, "cancel", now),  # type: ignore[misc]
            "refused": lambda step=step, now=now: found.refused(step, "x", now) if step in range(3) else None,  # type: ignore[misc]
            "replied": lambda step=step, now=now: found.replied(step, {"decision": "allow"}, now),  # type: ignore[misc]
            "failed": lambda step=step, now=now: found.failed(step, "x", now),  # type: ignore[misc]
            "tick": lambda now=now: found.tick(now),  # type: ignore[misc]
            "withdraw": lambda: found.withdraw("x"),
        }
        before = found.outcome
        act[name]()
        assert before is None or found.outcome is before, "an outcome is final"
    assert found.outcome is None or found.outcome.effect is Effect.DENY


# ---- menus ----------------------------------------------------------------------------------------

PLAN = (
    Option("exit-plan-auto", "Yes, and auto-accept edits", "allow_always"),
    Option("exit-plan-bypass", "Yes, and bypass permissions", "allow_always"),
    Option("exit-plan-default", "Yes, and ask", "allow_once"),
    Option("reject", "No, keep planning", "reject_once"),
    Option("new", "Something new", "allow_forever"),
)
SWITCH = Action(frozenset({"switch_mode"}), mode=Mode("default"))


@pytest.mark.parametrize("asking", [request(SWITCH, options=PLAN), request(run("x"), options=PLAN, menu=True)])
def test_menus_and_mode_changes_go_through_untouched(asking: Request) -> None:
    found = prompt("client", asking=asking)
    (command,) = found.start(0.0)
    assert isinstance(command, ToClient)
    assert command.untouched
    assert [(choice.id, choice.kind) for choice in command.choices] == [(one.id, one.kind) for one in PLAN]
    found.chosen(0, "exit-plan-bypass", 5.0)
    assert (ended(found).effect, ended(found).option, ended(found).offer) == (Effect.ALLOW, "exit-plan-bypass", None)


def test_a_chosen_option_of_an_unknown_kind_is_no_yes() -> None:
    found = started("client", asking=request(SWITCH, options=PLAN))
    found.chosen(0, "new", 105.0)
    assert (ended(found).effect, ended(found).option) == (Effect.DENY, "")


def test_a_step_must_name_the_option_of_a_menu() -> None:
    found = prompt("inbox", asking=request(SWITCH, options=PLAN))
    (command,) = found.start(0.0)
    found.replied(0, reply(command, decision="allow"), 9.0)
    assert ended(found).effect is Effect.DENY
    found = prompt("inbox", asking=request(SWITCH, options=PLAN))
    (command,) = found.start(0.0)
    found.replied(0, reply(command, decision="allow", option="exit-plan-default"), 9.0)
    assert (ended(found).effect, ended(found).option) == (Effect.ALLOW, "exit-plan-default")


def test_ids_that_occur_twice_are_no_choice() -> None:
    twice = (*PLAN, Option("reject", "Yes!", "allow_once"))
    found = started("client", asking=request(SWITCH, options=twice))
    found.chosen(0, "reject", 105.0)
    assert ended(found).effect is Effect.DENY


# ---- what is offered and shown ----------------------------------------------------------------------


def kinds(client: Client, asking: Request = NPM) -> list[tuple[str, str]]:
    return [(choice.id, choice.kind) for choice in question(asking, client).choices]


def test_an_unknown_client_gets_one_option_a_kind_for_the_session() -> None:
    shown = question(client=CAREFUL).choices
    assert [choice.kind for choice in shown] == ["allow_once", "reject_once", "allow_always", "reject_always"]
    offer = shown[2].offer
    assert offer is not None
    assert (offer.scope, offer.general) == ("session", False)


def test_a_client_that_shows_no_names_gets_what_always_covers_in_the_title() -> None:
    found = prompt("client", client=find("CodeCompanion.nvim"))
    (command,) = found.start(0.0)
    assert isinstance(command, ToClient)
    assert command.note == "Always allow `npm run test` in this project", "its user never sees a reject_always"
    assert command.alone, "a diff of an earlier update would hide the title"


@pytest.mark.parametrize(
    ("asking", "content"),
    [
        (NPM, [{"type": "diff", "path": "/a", "newText": "x"}]),
        (request(touch("edit", f"{ROOT}/a.py")), [{"type": "diff", "path": f"{ROOT}/a.py", "newText": "x"}]),
        (request(touch("edit", f"{ROOT}/a.py")), None),
    ],
)
def test_where_a_diff_hides_the_title_nothing_is_remembered(asking: Request, content: object) -> None:
    call = {"toolCallId": "c", **({"content": content} if content else {})}
    assert not [one for one in question(asking, find("codecompanion"), tool_call=call).choices if one.offer]
    assert [one for one in question(asking, find("jetbrains"), tool_call=call).choices if one.offer]
    assert [one for one in question(asking, find("zed"), tool_call=call).choices if one.offer], "names are shown"


def test_an_agent_without_a_rejection_gets_one_of_policyds() -> None:
    shown = question(request(run("x"), options=(Option("go", "Go", "allow_once"),))).choices
    assert ("policyd-reject", "reject_once", "") in [(choice.id, choice.kind, choice.option) for choice in shown]


def test_the_plain_option_a_profile_names_is_the_one_offered() -> None:
    options = (Option("risky", "Always for low risk", "allow_once"), Option("ok", "Yes", "allow_once"), OPTIONS[2])
    shown = question(request(run("x"), options=options, plain="ok", refusal="cancel")).choices
    assert [choice.id for choice in shown if choice.kind == "allow_once"] == ["ok"]


def test_a_person_sees_agent_project_command_rule_and_diff() -> None:
    call = {
        "toolCallId": "c1",
        "content": [
            {"type": "diff", "path": "/work/project/a.py", "oldText": "one\ntwo\nthree", "newText": "one\n2\nthree"},
            {"type": "content", "content": {"type": "text", "text": "Because.\nReally."}},
            {"type": "content", "content": {"type": "image"}},
            "nonsense",
        ],
    }
    secret = touch("", f"{ROOT}/.env", role=Role.MENTION)
    asking = request(
        run("make", "x y"),
        touch("edit", f"{ROOT}/a.py"),
        fetch("a.org"),
        secret,
        Action(frozenset({"other"}), opaque="?!"),
    )
    found = question(asking, tool_call=call)
    assert (found.agent, found.project, found.cwd) == ("claude-code 1.0", ROOT, ROOT)
    assert found.parts == (
        "run make x y  [in /work/project]",
        "edit /work/project/a.py",
        "fetch https://a.org/",
        "names /work/project/.env",
        "other  (not understood: ?!)",
    )
    assert [(one.kind, one.name, one.text) for one in found.details] == [
        ("diff", "/work/project/a.py", "@@ line 2: 1 lines out, 1 in @@\n-two\n+2"),
        ("text", "", "Because.\nReally."),
    ]
    assert found.rules == (ASKS,)
    assert found.reason == "user:asks asks"


NASTY = [
    "\x1b[2J\x1b[1;1Hrm",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "safe\rrm -rf /",
    "a\u202egpj.exe",
    "a\u200bb",
    "a\U000e0041b",
    "x" + "\u0301" * 500,
    " " * 10_000 + "rm -rf /",
    "\x00\x08\x7f\x9b2J",
]


@pytest.mark.parametrize("text", NASTY)
def test_nothing_an_agent_says_acts_on_a_display(text: str) -> None:
    asking = request(run("echo", text, "END"), title=text, options=(Option("a", text, "allow_once"), OPTIONS[2]))
    call = {"content": [{"type": "diff", "path": text, "oldText": text, "newText": text + "\nEND"}]}
    found = question(asking, tool_call=call)
    shown = [
        found.title,
        *found.parts,
        *(choice.name for choice in found.choices),
        *(line for one in found.details for line in (one.name, *one.text.split("\n"))),
    ]
    for line in shown:
        assert line.isprintable(), line
    assert "END" in found.parts[0]
    assert len(found.parts[0]) < 20_000


def test_a_large_diff_is_cut_and_says_so_with_its_end_visible() -> None:
    new = "\n".join(f"line {number}" for number in range(50_000)) + "\nTHE END"
    found = question(tool_call={"content": [{"type": "diff", "path": "/a", "oldText": None, "newText": new}] * 60})
    assert "characters are not shown" in found.details[0].text
    assert found.details[0].text.endswith("THE END")
    assert found.details[-1].text == "… 10 more parts are not shown"


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("", "a", "@@ line 1: 0 lines out, 1 in @@\n+a"),
        ("a", "", "@@ line 1: 1 lines out, 0 in @@\n-a"),
        ("a\nb\nc", "a\nc", "@@ line 2: 1 lines out, 0 in @@\n-b"),
        ("a\n", "a", "the line endings change"),
        ("a\r\nb", "a\nb", "the line endings change"),
    ],
)
def test_a_diff_shows_what_changes(old: str, new: str, shown: str) -> None:
    assert difference(old, new) == shown


# ---- settings of the chain --------------------------------------------------------------------------


def test_the_chain_is_read_as_settings_write_it() -> None:
    assert parse_chain(["client", "command:/usr/bin/ask", "inbox"], {"command": 30, "inbox": 5.0}) == (
        Step("client", "", 600.0),
        Step("command", "/usr/bin/ask", 30.0),
        Step("inbox", "", 5.0),
    )
    assert parse_chain(["command:/a", "command:/b"], {"command": 30, "command:/b": 9})[1].timeout == 9.0


@pytest.mark.parametrize(
    "word", ["", "clients", "client:/x", "command", "command:", "command:ask", "inbox:", "shell:/x"]
)
def test_an_unknown_step_is_an_error_in_words(word: str) -> None:
    with pytest.raises(ValueError, match="prompt step"):
        parse_chain([word])


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9, float("nan")])
def test_a_timeout_is_finite_and_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        parse_chain(["client"], {"client": seconds})


# ---- bounds ---------------------------------------------------------------------------------------


def opened(desk: Desk, asking: Request, waiter: int, now: float) -> Prompt | None:
    """Put a question on the desk; the prompt if it was asked."""
    found = question(asking)
    admission = desk.admit(found, waiter, now)
    if not isinstance(admission, Opened):
        return None
    made = Prompt(parse_chain(["client"]), found, ZED, "n")
    desk.opened(admission.fingerprint, made)
    made.start(now)
    return made


def test_identical_open_questions_are_one_prompt() -> None:
    desk = Desk()
    first = opened(desk, NPM, 1, 0.0)
    assert first is not None
    again = desk.admit(question(replace(NPM, call_id="other")), 2, 1.0)
    assert isinstance(again, Joined)
    assert again.prompt is first
    assert isinstance(desk.admit(question(replace(NPM, title="other")), 3, 1.0), Opened), (
        "another title is another question"
    )
    first.chosen(0, "proceed_once", 5.0)
    assert desk.close(first, 5.0) == (1, 2)
    assert desk.close(first, 5.0) == ()


def test_what_a_call_carries_makes_another_question() -> None:
    diffs = [{"content": [{"type": "diff", "path": "/a", "newText": text}]} for text in ("x", "y")]
    prints = {question(tool_call={"toolCallId": "c", **diff}).fingerprint for diff in diffs}
    assert len(prints) == 2
    assert question(tool_call={"toolCallId": "c"}).fingerprint == question(tool_call={"toolCallId": "d"}).fingerprint
    assert question(tool_call={"rawInput": {1: {2}}}).fingerprint, "what is no JSON has one too"


def test_the_text_that_many_commands_share_is_told_once_and_still_makes_another_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[int] = []

    def digest(value: object) -> str:
        told.append(len(repr(value)))
        return keys.digest(value)

    def asking(shared: str, many: int) -> Request:
        parts = [run("make", whole=shared, args={"command": shared}) for _ in range(many)]
        commands = [replace(part.command, fed=shared, texts=((shared,),)) for part in parts if part.command]
        return request(*(replace(part, command=one) for part, one in zip(parts, commands, strict=True)))

    monkeypatch.setattr(prompts_question, "digest", digest)
    prints = {question(asking(text * 10_000, 50)).alike for text in ("a", "b")}
    assert len(prints) == 2
    assert max(told) < 50_000 + 50 * 1_000


def test_at_most_eight_are_open_and_twenty_a_minute_begun() -> None:
    desk, asked, refused = Desk(), [], 0
    for number in range(1000):
        made = opened(desk, request(run("x", str(number))), number, number * 0.05)
        refused += made is None
        asked += [made] if made is not None else []
        if len(desk._open) == 8:
            done = next(iter(desk._open.values()))
            done.chosen(0, "proceed_once", number * 0.05)
            desk.close(done, number * 0.05)
    assert len(asked) == 20
    assert refused == 980
    assert opened(desk, request(run("later")), 9999, 100.0) is not None


def test_a_ninth_open_question_is_rejected_with_a_reason() -> None:
    desk = Desk()
    for number in range(8):
        assert opened(desk, request(run("x", str(number))), number, 0.0)
    ninth = desk.admit(question(request(run("y"))), 9, 0.0)
    assert isinstance(ninth, Refused)
    assert ninth.outcome.effect is Effect.DENY
    assert "8 questions are waiting" in ninth.outcome.reason


def test_what_was_rejected_three_times_is_not_asked_again_for_ten_minutes() -> None:
    desk = Desk()
    for number in range(3):
        made = opened(desk, NPM, number, number * 10.0)
        assert made is not None
        made.chosen(0, "cancel", number * 10.0 + 5)
        desk.close(made, number * 10.0 + 5)
    again = desk.admit(question(), 4, 60.0)
    assert isinstance(again, Refused)
    assert "three times" in again.outcome.reason
    assert isinstance(desk.admit(question(request(run("other"))), 5, 60.0), Opened)
    assert isinstance(desk.admit(question(), 6, 700.0), Opened)


def test_a_question_nobody_waits_for_is_to_be_withdrawn() -> None:
    desk = Desk()
    made = opened(desk, NPM, 1, 0.0)
    desk.admit(question(), 2, 0.0)
    assert desk.leave(1) is None
    assert desk.leave(2) is made
    assert desk.leave(3) is None


def test_rejections_are_remembered_within_bounds() -> None:
    desk = Desk((Limits(a_minute=10_000),))
    for number in range(1500):
        made = opened(desk, request(run("x", str(number))), number, 0.0)
        assert made is not None
        made.chosen(0, "cancel", 1.0)
        desk.close(made, 1.0)
    assert len(desk.limits[0]._rejected) == 1000


def test_choices_say_what_they_are() -> None:
    assert Choice("a", "a", "allow_always").effect is Effect.ALLOW
    assert Choice("a", "a", "").effect is Effect.DENY
