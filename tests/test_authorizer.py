"""The decision point: what it composes, how it fails, and the examples inside policies."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest

from policyd.actions import Machine, Session
from policyd.authorizer import BLIND, NOWHERE, Authorizer, Claims, check_examples
from policyd.model import Context, Effect, Judged, Layer, Request, Source
from policyd.policy import Policy, PolicySource, load
from tests.fakes import FakeFilesystem

FILES = FakeFilesystem({"/home/dev/project": None, "/home/dev/project/.env": "", "/home/dev/project/a.py": ""})
MACHINE = Machine("/home/dev", FILES)
OPTIONS = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
NOW = datetime(2026, 11, 29, tzinfo=UTC)
LONG = 50_000 * "x"


def policy(text: str) -> Policy:
    source = PolicySource("policy.toml", b"version = 1\n" + text.encode(), Layer.USER)
    return load([source], home="/home/dev", tmpdir="/tmp", fs=FILES, version="0.1.0")


def params(kind: str, session: str = "s", **raw: Any) -> dict[str, Any]:
    return {"sessionId": session, "toolCall": {"toolCallId": "c", "kind": kind, "rawInput": raw}, "options": OPTIONS}


def point(text: str, **more: Any) -> Authorizer:
    return Authorizer(policy(text), **{"machine": MACHINE, "cwd": "/home/dev/project", **more})


READS = '[defaults]\n"*" = "ask"\nread = "allow"\n'
EDITS = '[[rule]]\neffect = "allow"\nkind = "edit"\npath = "**"\n'


def test_a_request_is_decided_by_the_policy() -> None:
    authorizer = point(READS + EDITS)
    assert authorizer.decide(params("read", path="a.py")).effect is Effect.ALLOW
    assert authorizer.decide(params("edit", path="a.py")).effect is Effect.ALLOW
    assert authorizer.decide(params("edit", path="/etc/x")).effect is Effect.ASK


def test_of_long_commands_that_are_decided_no_more_than_the_last_is_kept() -> None:
    authorizer = point('[[rule]]\neffect = "allow"\ncommand = ["echo **", "@read-only"]\n')
    authorizer.decide(params("execute", command=f"echo {LONG} | sort; cat {LONG}"))
    tracemalloc.start()
    for number in range(10):
        authorizer.decide(params("execute", command=f"echo {number}{LONG} | sort; grep {number}{LONG} a.py"))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 10 * len(LONG)


def test_without_a_resolver_no_path_rule_and_no_default_allows() -> None:
    authorizer = Authorizer(policy(READS + EDITS), resolve=None, cwd="/home/dev/project")
    assert authorizer.decide(params("read", path="a.py")).effect is Effect.ASK
    assert authorizer.decide(params("edit", path="a.py")).effect is Effect.ASK


def test_nobody_tells_a_library_where_an_agent_was_started() -> None:
    asked = params("edit", path="a.py", content="x")
    asked["toolCall"]["title"] = "write_file: a.py"
    assert point(EDITS, agent="nanocoder").decide(asked).effect is Effect.ALLOW
    untold = point(EDITS, agent="nanocoder", machine=None, resolve=FILES, home="/home/dev")
    assert untold.decide(asked).effect is Effect.ASK


def test_what_asks_because_nothing_can_be_seen_says_so() -> None:
    rules = READS + EDITS + '[[rule]]\neffect = "ask"\nkind = "delete"\n'
    blind = Authorizer(policy(rules), resolve=None, cwd="/home/dev/project")
    nowhere = Authorizer(policy(rules), machine=MACHINE)
    assert blind.decide(params("edit", path="a.py")).reason.endswith(BLIND)
    assert nowhere.decide(params("edit", path="a.py")).reason.endswith(NOWHERE)
    at_home = point(rules, cwd="/home/dev").decide(params("edit", path="a.py"))
    assert at_home.reason.endswith("`/home/dev` is the home directory, which is no workspace")
    seeing = point(rules).decide(params("fetch", url="https://example.com"))
    assert seeing.reason == "asked about by `user:defaults.*`"
    for authorizer in (blind, nowhere):
        reason = authorizer.decide(params("delete", path="a.py")).reason
        assert BLIND not in reason and NOWHERE not in reason, "a rule asked"


def test_a_resolver_needs_a_home() -> None:
    with pytest.raises(ValueError, match="home"):
        Authorizer(policy(READS), resolve=FILES)


def test_until_a_session_opened_no_path_rule_allows() -> None:
    assert Authorizer(policy(EDITS), machine=MACHINE).decide(params("edit", path="a.py")).effect is Effect.ASK


def test_examples_are_texts_for_bash_whatever_shell_agents_use() -> None:
    ruled = policy('[[rule]]\neffect = "allow"\ncommand = "make test"\nmatch = "execute make test"\n')
    for shell in ("zsh", "powershell", "cmd"):
        assert check_examples(ruled, Machine("/home/dev", FILES, "/tmp", shell)) == []


@pytest.mark.parametrize("broken", ["request", "settle", "context", "grants"])
def test_a_failure_is_a_denial(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("boom")

    authorizer = point(READS)
    target = authorizer.conversation if broken == "request" else authorizer
    monkeypatch.setattr(target, {"settle": "settle_at", "context": "_context"}.get(broken, broken), fails)
    decision = authorizer.decide(params("read", path="a.py"))
    assert (decision.effect, decision.source) == (Effect.DENY, Source.ERROR)


@pytest.mark.parametrize("wrong", [{}, {"sessionId": 7}, {"sessionId": "s", "toolCall": []}, {"options": "x"}])
def test_what_cannot_be_read_is_never_allowed(wrong: dict[str, Any]) -> None:
    everything = '[defaults]\n"*" = "allow"\noutside = "allow"\nmcp = "allow"\n'
    assert point(everything).decide(wrong).effect is not Effect.ALLOW


@pytest.mark.parametrize("wrong", [None, "x", [], 7])
def test_params_that_are_no_table_are_refused_in_words(wrong: Any) -> None:
    found = point('[defaults]\n"*" = "allow"\n').decide(wrong)
    assert (found.effect, found.source) == (Effect.DENY, Source.ERROR)
    assert f"its params are a {type(wrong).__name__}, no table as on the wire" in found.reason


def test_the_name_of_a_policy_file_is_no_policy() -> None:
    with pytest.raises(TypeError, match=r"`policy` is what `policyd\.load` returns, no str"):
        Authorizer("policy.toml")  # type: ignore[arg-type]


UNTIL = '[[rule]]\neffect = "{}"\ncommand = "make"\nuntil = 2026-12-01T00:00:00Z\n'


def test_without_a_time_a_rule_with_an_end_never_loosens() -> None:
    allow, deny = point(READS + UNTIL.format("allow")), point(READS + UNTIL.format("deny"))
    assert allow.decide(params("execute", command="make"), now=NOW).effect is Effect.ALLOW
    assert allow.decide(params("execute", command="make")).effect is Effect.ASK
    assert deny.decide(params("execute", command="make")).effect is Effect.DENY


def test_a_session_has_its_own_policy() -> None:
    strict = policy('[defaults]\n"*" = "deny"\n')

    def of(session: Session) -> tuple[Policy, str]:
        return (strict, "") if session.cwd == "/home/dev/strict" else (policy(READS), "its policy is broken")

    authorizer = point(READS, policies=of)
    opening = {"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/strict", "mcpServers": []}}
    authorizer.observe("c2a", opening)
    authorizer.observe("a2c", {"id": 1, "result": {"sessionId": "strict"}})
    assert authorizer.decide(params("read", "strict", path="a.py")).effect is Effect.DENY
    broken = authorizer.decide(params("read", path="a.py"))
    assert broken.effect is Effect.ASK
    assert "broken" in broken.reason


def test_a_reload_counts_for_the_next_request() -> None:
    authorizer = point(READS)
    assert authorizer.decide(params("read", path="secrets/k")).effect is Effect.ALLOW
    authorizer.reload(policy(READS + '[[rule]]\neffect = "deny"\npath = "secrets/**"\n'))
    assert authorizer.decide(params("read", path="secrets/k")).effect is Effect.DENY


def test_remembered_answers_are_asked_for_each_request() -> None:
    def grants(request: Request, context: Context) -> Any:
        def settle(judged: Judged) -> Effect | None:
            return Effect.ALLOW if request.call_id == "c" and context.workspace.cwd else None

        return settle

    decision = point(READS, grants=grants).decide(params("execute", command="make"))
    assert (decision.effect, decision.source) == (Effect.ALLOW, Source.GRANT)


@pytest.mark.parametrize(
    ("effect", "condition", "claims", "decided"),
    [
        ("allow", 'label = { env = "ci" }', Claims(), Effect.ASK),
        ("allow", 'label = { env = "ci" }', Claims({"env": "ci"}), Effect.ALLOW),
        ("deny", 'label = { env = "ci" }', Claims({"env": "ci"}), Effect.DENY),
        ("deny", "interactive = true", Claims(), Effect.ASK),
        ("deny", "interactive = true", Claims(interactive=True), Effect.DENY),
        ("deny", 'user = "dev"', Claims(user="other"), Effect.ASK),
        ("deny", 'user = "dev"', Claims(user="dev"), Effect.DENY),
        ("deny", 'group = "team"', Claims(groups=("team",)), Effect.DENY),
        ("deny", 'agent = "claude"', Claims(), Effect.DENY),
        ("deny", 'mode = "plan"', Claims(), Effect.DENY),
    ],
)
def test_what_is_true_of_process_and_person_reaches_the_policy(
    effect: str, condition: str, claims: Claims, decided: Effect
) -> None:
    authorizer = point(
        f'{READS}[[rule]]\neffect = "{effect}"\ncommand = "make"\n{condition}\n', claims=claims, agent="claude"
    )
    update = {"sessionId": "s", "update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}}
    authorizer.observe("a2c", {"method": "session/update", "params": update})
    assert authorizer.decide(params("execute", command="make")).effect is decided


def test_a_side_door_is_judged_by_the_same_rules() -> None:
    authorizer = point(READS + '[[rule]]\neffect = "deny"\npath = "**/.env"\n')
    doors: list[tuple[str, dict[str, Any], Effect]] = [
        ("fs/read_text_file", {"path": "/home/dev/project/a.py"}, Effect.ALLOW),
        ("fs/read_text_file", {"path": "/home/dev/project/.env"}, Effect.DENY),
        ("fs/write_text_file", {"path": "/home/dev/project/a.py", "content": "x"}, Effect.ASK),
        ("terminal/create", {"command": "cat", "args": [".env"]}, Effect.DENY),
        ("terminal/create", {"command": "cat .env"}, Effect.DENY),
        ("terminal/create", {"command": "echo", "args": ["a; cat .env"]}, Effect.DENY),
        ("terminal/create", {}, Effect.ASK),
        ("fs/unheard_of", {"path": "/home/dev/project/a.py"}, Effect.ASK),
    ]
    for method, fields, effect in doors:
        decision = authorizer.settle(authorizer.side_door(method, {"sessionId": "s", **fields}))
        assert decision.effect is effect, (method, fields)


# ---- examples inside policies ----------------------------------------------------------------------

EXAMPLES = """
[[rule]]
id = "r"
{rule}
{examples}
"""


@pytest.mark.parametrize(
    ("rule", "match", "not_match"),
    [
        ('effect = "deny"\npath = "**/.env"', "read .env", "read .env.example"),
        ('effect = "deny"\npath = "**/.env"', "execute cat .env", "execute cat a"),
        ('effect = "allow"\ncommand = "npm test **"', "execute npm test", "execute npm publish"),
        ('effect = "allow"\nkind = "edit"\npath = "docs/**"', "edit docs/a.md", "delete docs/a.md"),
        ('effect = "deny"\nurl = "example.com"', "fetch http://example.com:8080/x", "fetch https://example.org/"),
        ('effect = "allow"\ntool = "jira/get_*"', "other jira/get_issue", "other jira/delete_issue"),
        ('effect = "deny"\ntool = "jira/get_*"', "other mcp__jira__get_issue", "other mcp__jira__delete_issue"),
        ('effect = "deny"\ntool = "jira/get"', "other mcp.jira.get", "other mcp.jira.delete"),
        ('effect = "deny"\ntool = "a__b/c"', "other mcp__a__b__c", "other mcp__a__d__c"),
        ('effect = "allow"\ntool = "a*/*c"', "other mcp__a__b__c", "other mcp__b__a__c"),
        ('effect = "deny"\ntool = "srv/tool"', "other mcp_srv_tool", "other mcp_tool_srv"),
        ('effect = "deny"\ntool = "WebSearch"', "fetch WebSearch", "fetch WebFetch"),
        ('effect = "deny"\nkind = "delete"', "delete a.py", "read a.py"),
        ('effect = "ask"\nkind = "switch_mode"', "switch_mode plan", "think"),
    ],
)
def test_an_example_comes_out_as_written(rule: str, match: str, not_match: str) -> None:
    def wrong(yes: str, no: str) -> int:
        text = EXAMPLES.format(rule=rule, examples=f'match = "{yes}"\nnot_match = "{no}"')
        return len(check_examples(policy(text), MACHINE))

    assert wrong(match, not_match) == 0
    assert wrong(not_match, match) == 2


def test_an_example_table_names_what_a_text_cannot() -> None:
    rule = 'effect = "allow"\ntool = "git/push"\ninput = { branch = "release/*" }'
    table = 'match = [{ tool = "git/push", input = { branch = "release/1" } }]\nnot_match = [{ tool = "git/push" }]'
    assert check_examples(policy(EXAMPLES.format(rule=rule, examples=table)), MACHINE) == []


def test_a_wrong_example_is_told_with_its_place() -> None:
    text = EXAMPLES.format(rule='effect = "deny"\npath = "**/.env"', examples='match = "read a.py"')
    (mistake,) = check_examples(policy(text), MACHINE)
    assert (mistake.file, mistake.rule) == ("policy.toml", "r")
    assert "`read a.py` does not match" in str(mistake)
    assert mistake.line > 0
