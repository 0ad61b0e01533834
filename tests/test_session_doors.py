"""What a permission given for a command, or a file, settles at the side doors and of other calls, and what not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from policyd.model import Action, Context, Decision, Effect, Judged, Layer, PathRef, Request, RuleRef, Source, Workspace
from policyd.session import Record, Settings, Side
from policyd.session.doors import passes_unasked
from policyd.session.ports import Verdict
from tests.playbook import Play, ScriptedDecider, moment
from tests.realwire import ASK_ALL, Wire, methods

TERMINAL, WRITE = "terminal/create", "fs/write_text_file"
RULE = RuleRef(Layer.USER, "r", Effect.ASK)


def passes_after(approved: str, **terminal: object) -> bool:
    """Say whether a terminal call passes unasked after a person allowed a command."""
    wire = Wire()
    wire.open()
    wire.allow(wire.request(kind="execute", title=approved, rawInput={"command": approved}))
    return methods(wire.door(TERMINAL, **terminal), "client") == [TERMINAL]


SAME: list[tuple[str, dict[str, object]]] = [
    ("npm test", {"command": "npm test"}),
    ("npm test", {"command": "npm", "args": ["test"]}),
    ("npm test", {"command": "bash", "args": ["-c", "npm test"]}),
    ("make test && git push", {"command": "make test && git push"}),
    ("make test && git push", {"command": "bash", "args": ["-lc", "make test && git push"]}),
    ("echo hi > a", {"command": "echo hi > a"}),
    ("cat a | tee b", {"command": "cat a | tee b"}),
]
OTHER: list[tuple[str, dict[str, object]]] = [
    ("echo hi", {"command": "echo hi > evil"}),
    ("echo hi", {"command": "echo hi > /etc/evil"}),
    ("echo hi > a", {"command": "echo hi > b"}),
    ("make test && git push", {"command": "make test || git push"}),
    ("make test && git push", {"command": "git push; make test"}),
    ("make test && git push", {"command": "git push & make test & make test"}),
    ("cat a | tee b", {"command": "cat a; tee b"}),
    ("tee f <<'E'\nx\nE", {"command": "tee f <<'E'\ny\nE"}),
    ("cat x", {"command": "cat x <<< y"}),
    ("for i in 1 2; do rm $i; done", {"command": "rm 1; rm 2; rm 1"}),
    ("(cd a; make)", {"command": "cd a; make"}),
    ("npm test", {"command": "npm test", "env": [{"name": "NODE_OPTIONS", "value": "-r ./evil"}]}),
    ("npm test", {"command": "npm", "args": ["test"], "cwd": "/tmp"}),
    ("npm test", {"command": "npm test", "cwd": 5}),
    ("npm test", {"command": "npm test", "cwd": []}),
    ("npm test", {"command": "npm test", "argv": ["publish"]}),
    ("npm test", {"command": "npm test", "input": "x"}),
    ("npm test", {"command": "npm test $(true)"}),
]


@pytest.mark.parametrize(("approved", "terminal"), SAME)
def test_a_command_that_was_allowed_runs_once_without_a_second_question(
    approved: str, terminal: dict[str, object]
) -> None:
    assert passes_after(approved, **terminal)


@pytest.mark.parametrize(("approved", "terminal"), OTHER)
def test_a_command_that_does_more_or_otherwise_than_what_was_allowed_is_asked_about(
    approved: str, terminal: dict[str, object]
) -> None:
    assert not passes_after(approved, **terminal)


def test_a_permission_for_what_is_not_all_understood_settles_nothing() -> None:
    wire = Wire()
    wire.open()
    wire.allow(wire.request(kind="execute", rawInput={"command": "npm test", "odd": "x"}))
    assert methods(wire.door(TERMINAL, command="npm test"), "client") == ["session/request_permission"]


def test_a_permission_for_a_command_is_used_up_by_one_run() -> None:
    wire = Wire()
    wire.open()
    wire.allow(wire.request(kind="execute", rawInput={"command": "npm test"}))
    assert methods(wire.door(TERMINAL, 1, command="npm test"), "client") == [TERMINAL]
    assert methods(wire.door(TERMINAL, 2, command="npm test"), "client") == ["session/request_permission"]


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "execute", "rawInput": {"command": "echo hi > a"}},
        {"kind": "execute", "rawInput": {"command": "sed -i s/x/y/ a"}},
        {"kind": "execute", "rawInput": {"command": "cp b a"}},
        {"kind": "move", "locations": [{"path": "/home/dev/app/b"}, {"path": "/home/dev/app/a"}]},
    ],
)
def test_what_a_command_or_a_move_does_to_a_file_allows_no_text_of_it(call: dict[str, object]) -> None:
    wire = Wire()
    wire.open()
    wire.allow(wire.request(**call))
    assert methods(wire.door(WRITE, path="/home/dev/app/a", content="evil"), "client") != [WRITE]


def test_each_file_is_written_as_its_own_diff_shows() -> None:
    wire = Wire()
    wire.open()
    at = "/home/dev/app/"
    wire.files.links = {f"{at}link": f"{at}real"}
    texts = {f"{at}a": "A", f"{at}b": "B", f"{at}link": "L"}
    shown = [{"type": "diff", "path": path, "oldText": None, "newText": text} for path, text in texts.items()]
    wire.allow(wire.request(kind="edit", content=shown))
    for ident, (path, text) in enumerate(zip(texts, "BLA", strict=True), 20):
        assert methods(wire.door(WRITE, ident, path=path, content=text), "client") == ["session/request_permission"]
    for path, text in texts.items():
        assert methods(wire.door(WRITE, path=path, content=text), "client") == [WRITE]


@pytest.mark.parametrize(
    ("kind", "settles"), [("read", True), ("edit", True), ("search", True), ("delete", False), ("move", False)]
)
def test_a_permission_to_look_into_a_file_settles_one_read(kind: str, *, settles: bool) -> None:
    wire = Wire(settings=Settings(fs_read="policy"))
    wire.open()
    file = "/home/dev/app/a"
    wire.allow(wire.request(kind=kind, locations=[{"path": file}], title="x"))
    sent = [methods(wire.door("fs/read_text_file", at, path=file), "client") for at in (9, 10)]
    assert sent[0] == [["session/request_permission"], ["fs/read_text_file"]][settles]
    assert "fs/read_text_file" not in sent[1]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"possible": (RULE,)},
        {"floors": ("it is policyd's own",)},
        {"hits": (RULE,)},
        {"action": Action(frozenset({"read"}), path=PathRef("/etc/x", ("/etc/x",)))},
        {"action": Action(frozenset({"read"}), opaque="nobody knows what")},
    ],
)
def test_a_read_passes_unasked_where_nothing_but_a_default_asks_about_any_of_it(changed: dict[str, object]) -> None:
    read = Action(frozenset({"read"}), path=PathRef("/w/a", ("/w/a",), inside=True))
    free = Judged(read, Effect.ASK, defaults=(RULE,))
    for found in ((), (replace(free, **changed),), (free, replace(free, **changed)), (replace(free, **changed), free)):
        decision = Decision(Effect.ASK, Source.DEFAULT, "", actions=found)
        request = Request("s", "", "", (), tuple(one.action for one in found), side_door="fs/read_text_file")
        verdict = Verdict(request, decision, Context(Workspace("/w", ("/w",), ("/w",), "/home"), moment(0.0).wall))
        assert passes_unasked(verdict, Settings()) is (found != () and not changed)


@pytest.mark.parametrize("announced", [True, False])
def test_a_file_is_written_as_an_update_showed_it_before_the_request(*, announced: bool) -> None:
    wire = Wire()
    wire.open()
    file = "/home/dev/app/a"
    shown: dict[str, Any] = {"content": [{"type": "diff", "path": file, "oldText": None, "newText": "x"}]}
    wire.update("tool_call", toolCallId="t", title="a", **(shown if announced else {}))
    wire.update("tool_call_update", toolCallId="t", **({} if announced else shown))
    wire.allow(wire.request(kind="edit", title="a", locations=[{"path": file}]))
    assert methods(wire.door(WRITE, path=file, content="evil"), "client") == ["session/request_permission"]
    assert methods(wire.door(WRITE, 10, path=file, content="x"), "client") == [WRITE]


def test_texts_shown_for_other_files_allow_no_text_of_a_file_that_was_only_named() -> None:
    wire = Wire()
    wire.open()
    shown = [{"type": "diff", "path": "/home/dev/app/a", "oldText": None, "newText": "x"}]
    asked = wire.request(kind="edit", content=shown, locations=[{"path": "/home/dev/app/b"}])
    wire.allow(asked)
    assert methods(wire.door(WRITE, path="/home/dev/app/b", content="evil"), "client") != [WRITE]


@pytest.mark.parametrize("name", ["true #", "#", "ls; #", "", "A=1 ls <<'", "X\n#", "1", None, 5])
@pytest.mark.parametrize("as_table", [True, False])
def test_a_variable_whose_name_is_shell_text_hides_no_command(name: object, as_table: bool) -> None:
    policy = '[defaults]\n"*" = "ask"\n[[rule]]\neffect = "allow"\ncommand = ["true", "ls **"]\n'
    env: object = {str(name): "x"} if as_table else [{"name": name, "value": "x"}]
    wire = Wire(policy)
    wire.open()
    assert TERMINAL not in methods(wire.door(TERMINAL, command="rm -rf src", env=env), "client")
    sent = wire.request(kind="execute", rawInput={"command": "rm -rf src", "env": env})
    assert "session/request_permission" in methods(sent, "client") or not any(one["to"] == "agent" for one in sent)


@pytest.mark.parametrize("method", ["session/Request_permission", "session/request_permission ", "FS/write_text_file"])
def test_a_variant_of_a_method_that_is_judged_reaches_no_client(method: str) -> None:
    wire = Wire()
    wire.open()
    sent = wire.agent(id=7, method=method, params={"sessionId": "s", "path": "/home/dev/app/a", "content": ""})
    assert [(one["to"], one["id"], "error" in one) for one in sent] == [("agent", 7, True)]


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        *[(kind, "deny") for kind in ("delete", "Delete", "DELETE", " delete")],
        *[(kind, "ask") for kind in ("\uff44elete", "dele\u200bte", "remove", "del\u00e9te", "")],
        ("_remove", "allow"),
    ],
)
def test_a_kind_the_protocol_does_not_know_is_taken_for_its_likely_one_and_allowed_by_nobody(
    kind: str, effect: str
) -> None:
    wire = Wire('[defaults]\n"*" = "allow"\n[[rule]]\neffect = "deny"\nkind = "delete"\n')
    wire.open()
    sent = wire.request(kind=kind, title="x", locations=[{"path": "/home/dev/app/a"}])
    asked = methods(sent, "client") == ["session/request_permission"]
    answers = {"deny": [{"outcome": "selected", "optionId": "n"}], "allow": [{"outcome": "selected", "optionId": "y"}]}
    assert (asked, outcomes(sent)) == (effect == "ask", answers.get(effect, []))


@pytest.mark.parametrize("value", ["NaN", '"\\ud800"', "[" * 3000 + "]" * 3000])
def test_a_permission_request_that_is_not_strict_json_is_answered_cancelled(value: str) -> None:
    wire = Wire('[[rule]]\neffect = "allow"\nkind = "*"\n')
    wire.open()
    line = f'{{"id":7,"method":"session/request_permission","params":{{"sessionId":"s","x":{value}}}}}'
    sent = wire.line(Side.AGENT, line.encode())
    answers = [one["result"] for one in sent if one["to"] == "agent" and one.get("id") == 7]
    assert [one["outcome"] for one in answers if isinstance(one, dict)] == [{"outcome": "cancelled"}]


@pytest.mark.parametrize("agent", ["", "nobody-knows"])
def test_an_allow_of_the_call_that_is_named_stands_for_no_other_open_call_of_an_agent_nobody_described(
    agent: str,
) -> None:
    wire = Wire(f'{ASK_ALL}[[rule]]\nid = "no-push"\neffect = "deny"\ncommand = "git push"\n', agent=agent)
    wire.open()
    calls = {"first": "git push", "second": "touch b", "t": "touch a"}
    for call, command in calls.items():
        wire.update("tool_call", toolCallId=call, title="Run", rawInput={"command": command})
    wire.allow(wire.request())
    for call in calls:
        wire.update("tool_call_update", toolCallId=call, status="completed")
    records = [one.record for one in wire.commands if isinstance(one, Record)]
    assert [one["call"] for one in records if one.get("unasked")] == ["first"]
    assert [one["call"] for one in records if one["effect"] == "allow"] == ["t"]


# ---- what is told while a question is open --------------------------------------------------------------

NO_ETC = f'{ASK_ALL}[[rule]]\nid = "no-etc"\neffect = "deny"\npath = "/etc/**"\n'


def tell(wire: Wire, **update: object) -> list[dict[str, object]]:
    """Say an update of a call; return what left because of it."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", **update}
    return wire.agent(method="session/update", params={"sessionId": "s", "update": update})


def asked_about(policy: str = NO_ETC) -> Wire:
    """Return a wire on which the client is asked about a command; where it runs is told late."""
    wire = Wire(policy)
    wire.open()
    tell(wire, sessionUpdate="tool_call", kind="execute", title="make")
    asked = wire.request(kind="execute", rawInput={"command": "make"})
    assert methods(asked, "client") == ["session/request_permission"]
    return wire


def outcomes(sent: list[dict[str, object]]) -> list[object]:
    """Return what the agent was answered."""
    results = [one["result"] for one in sent if one["to"] == "agent" and isinstance(one.get("result"), dict)]
    return [result["outcome"] for result in results if isinstance(result, dict)]


CHANGED = {"type": "diff", "changes": [{"operation": "modify", "path": "/etc/hosts"}]}


@pytest.mark.parametrize(
    "later",
    [{"locations": [{"path": "/etc/hosts"}]}, {"sessionUpdate": "tool_call_content_chunk", "content": CHANGED}],
)
def test_what_is_denied_by_what_is_told_later_is_rejected_while_the_question_is_open(
    later: dict[str, object],
) -> None:
    wire = asked_about()
    block = {"type": "content", "content": {"type": "text", "text": "/etc/hosts"}}
    assert outcomes(tell(wire, sessionUpdate="tool_call_content_chunk", content=block)) == []
    sent = tell(wire, **later)
    assert outcomes(sent) == [{"outcome": "selected", "optionId": "n"}]
    assert "$/cancel_request" in methods(sent, "client")
    assert wire.client(id=5, result={"outcome": {"outcome": "selected", "optionId": "y"}}) == []


def test_what_is_said_otherwise_while_a_question_is_open_is_judged_beside_what_was_asked() -> None:
    wire = asked_about(f'{ASK_ALL}[[rule]]\neffect = "deny"\ncommand = "rm"\n')
    assert outcomes(tell(wire, rawInput={"command": "make"})) == []
    assert outcomes(tell(wire, rawInput={"command": "make install", "description": "x"})) == []
    sent = tell(wire, rawInput={"command": "make; rm -r src"})
    assert outcomes(sent) == [{"outcome": "selected", "optionId": "n"}]


def test_what_is_told_later_and_is_not_denied_changes_no_question() -> None:
    wire = asked_about('[[rule]]\neffect = "ask"\ncommand = "make"\n[[rule]]\neffect = "allow"\nkind = "edit"\n')
    later: tuple[dict[str, object], ...] = ({"locations": [{"path": "/srv/x"}]}, {"kind": "edit"}, {"status": "failed"})
    for fields in later:
        assert outcomes(tell(wire, **fields)) == []
    assert outcomes(tell(wire, toolCallId="other", locations=[{"path": "/etc/x"}])) == []


def test_details_that_come_late_are_of_every_request_that_waits_for_them() -> None:
    wire = Wire(f'{ASK_ALL}[[rule]]\neffect = "deny"\ncommand = "rm"\n', agent="OpenCode")
    wire.open()
    tell(wire, sessionUpdate="tool_call", kind="execute", title="bash")
    assert [wire.request(ident, kind="execute", title="bash") for ident in (5, 6)] == [[], []], "both wait"
    sent = tell(
        wire, rawInput={"command": "rm -r x", "workdir": "/home/dev/app"}, locations=[{"path": "/home/dev/app"}]
    )
    assert outcomes(sent) == 2 * [{"outcome": "selected", "optionId": "n"}]


@pytest.mark.parametrize(("answer", "option"), [("allow", "yes"), ("deny", "no"), ("raise", None)])
def test_what_is_answered_is_what_is_known_of_the_call_from_then_on(answer: str, option: str | None) -> None:
    play = Play(ScriptedDecider({"make": answer}))
    for who, line in (("client", "new 1"), ("agent", "opened 1 default"), ("agent", 'permission 5 c "make"')):
        play.event(who, line)
    outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
    assert play.decider.seen[-1] == ("client", {"id": 5, "result": {"outcome": outcome}})
    before = len(play.decider.seen)
    play.event("agent", "terminal 6 make")
    assert len(play.decider.seen) == before, "of a side door there is nothing to know"


def test_where_a_link_leads_once_the_person_has_answered_is_what_counts() -> None:
    at, link = "/home/dev/app/", {"path": "/home/dev/app/notes"}
    for method, option in (("", "y"), (WRITE, "policyd-allow"), ("fs/read_text_file", "policyd-allow")):
        wire = Wire(f'{ASK_ALL}[[rule]]\neffect = "deny"\npath = "secrets/**"\n', settings=Settings(fs_read="policy"))
        wire.open()
        asked = wire.door(method, **link) if method else wire.request(kind="edit", locations=[link])
        question = next(one for one in asked if one.get("method") == "session/request_permission")
        wire.files.links = {f"{at}notes": f"{at}secrets/key"}
        sent = wire.client(id=question["id"], result={"outcome": {"outcome": "selected", "optionId": option}})
        assert methods(sent, "client") == ["session/update"], "the person is shown the refusal"
        assert [one["to"] for one in sent] == ["client", "agent"]
        assert "secrets" not in json.dumps(sent)
        assert outcomes(sent) in ([], [{"outcome": "selected", "optionId": "n"}])


def test_a_question_stands_for_no_other_call_that_showed_another_text() -> None:
    wire = Wire()
    wire.open()
    asked = []
    for ident, call, old, new in ((5, "t", "", "a"), (6, "u", "", "b"), (7, "v", "c", "b"), (8, "w", "c", "b")):
        shown = [{"type": "diff", "path": "/home/dev/app/a", "oldText": old, "newText": new}]
        tell(wire, sessionUpdate="tool_call", toolCallId=call, kind="edit", title="Edit a", content=shown)
        asked.append(methods(wire.request(ident, toolCallId=call, kind="edit", title="Edit a"), "client"))
    assert asked == [*3 * [["session/request_permission"]], []]


def test_one_update_rejects_every_open_request_of_its_call() -> None:
    wire = Wire(f'{ASK_ALL}[[rule]]\neffect = "deny"\ncommand = "rm"\n')
    wire.open()
    asked = [methods(wire.request(ident, kind="execute", title="x"), "client") for ident in (5, 6)]
    assert asked == [["session/request_permission"], []], "one question stands for both"
    sent = tell(wire, rawInput={"command": "rm -r x"})
    assert outcomes(sent) == 2 * [{"outcome": "selected", "optionId": "n"}]
