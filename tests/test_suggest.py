"""`policyd audit suggest`: no broader than what was approved, nothing that was refused, most prompts first."""

from __future__ import annotations

import json
import random
import subprocess
import tomllib
import zlib
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from policyd import audit, engine
from policyd.actions import Conversation, Machine
from policyd.actions.examples import example_actions
from policyd.cli import main
from policyd.cli import suggest as suggesting
from policyd.cli.audit.cases import Replayer
from policyd.cli.suggest.log import Answers
from policyd.model import Context, Decision, Effect, Request, Source
from policyd.policy import Policy
from policyd.storage.auditlog import AuditLog
from tests.audited import CAPTURES, GROUND, HOME, Day, Person, careful, policy, words
from tests.fakes import FakeFilesystem
from tests.proxied import POLICYD, Client, Scene

CASES = tomllib.loads((Path(__file__).parent / "data" / "suggest" / "cases.toml").read_text("utf-8"))["case"]
EFFECTS = {"allow": Effect.ALLOW, "deny": Effect.DENY}
RESERVED = (f"{HOME}/.config/policyd", f"{HOME}/.local/state/policyd", "/etc/policyd")


@dataclass
class Bench:
    """A log, the policy that was in force, and what is suggested."""

    path: Path
    rules: str = GROUND
    found: suggesting.Suggestions | None = None
    agents: Sequence[Path] = CAPTURES

    def __post_init__(self) -> None:
        self.day = Day(AuditLog(f"{self.path}/"), lambda request: Effect.ALLOW, rules=policy(self.rules))
        (self.path / "user.toml").write_text(self.rules)

    def answer(self, asked: object, effect: str, times: int = 1, agent: str = "claude", cwd: str = "") -> None:
        """Let an agent ask, and a person answer, so many times."""
        self.day.person = lambda request: EFFECTS[effect]
        for _ in range(times):
            request, context = question(asked, agent, cwd, self.day.rules)
            self.day.decided(request, engine.decide(request, self.day.rules, context), context)

    def run(self, *words: str) -> int:
        """Run `policyd audit` on the log."""
        ours = () if words[0] in {"stats", "show"} else ("--policy", str(self.path / "user.toml"), "--no-managed")
        return main(["audit", words[0], "--log", f"{self.path}/", "--home", HOME, *ours, *words[1:]])


def question(asked: object, agent: str, cwd: str, rules: Policy) -> tuple[Request, Context]:
    """Return a request written as in `match`, and its session."""
    machine = Machine(HOME, FakeFilesystem(), reserved=RESERVED, heads=rules.heads)
    talk = Conversation(machine, agent=agent, cwd=cwd or f"{HOME}/project")
    text, table = (asked, {}) if isinstance(asked, str) else ("", asked)
    assert isinstance(table, Mapping)
    actions = example_actions(text, table, "tool" if table else "", talk.around(""), talk.profile)
    request = Request("s1", "c1", str(asked), (), actions)
    now = Day.now
    return request, Context(talk.workspace(""), now, agent=talk.agent, user="dev", interactive=True)


def decided(asked: object, rules: Policy) -> Effect:
    """Return what `rules` say of a request; a list names agent and directory too."""
    given: list[Any] = asked if isinstance(asked, list) else [asked]
    agent, cwd = (str(each) for each in [*given[1:], *["claude", ""][len(given) - 1 :]])
    what = given[0]
    request, context = question(what, agent, cwd, rules)
    return engine.decide(request, rules, context, FakeFilesystem()).effect


def conditions(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suggested rule without what it says about itself."""
    return {key: value for key, value in rule.items() if key not in {"id", "reason", "match", "not_match"}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_suggestions_say_what_was_answered_and_no_more(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path, GROUND + case.get("policy", ""))
    for row in case["answers"]:
        bench.answer(*row)
    assert bench.run("suggest") == 0
    out, err = capsys.readouterr()
    assert not err
    said = tomllib.loads(out)
    rules = policy(bench.rules + out.partition("version = 1\n")[2])
    for effect in ("allowed", "asked", "denied"):
        for asked in case.get(effect, ()):
            assert decided(asked, rules).word == {"allowed": "allow", "asked": "ask", "denied": "deny"}[effect], asked
    for row in case["answers"]:
        if row[1] == "deny":
            assert decided([row[0], *row[3:]] if row[3:] else row[0], rules) is not Effect.ALLOW
    if "rules" in case:
        own = [conditions(rule) for rule in said.get("rule", []) if rule["effect"] != "ask"]
        assert own == case["rules"]
    assert case.get("left_out", "") in out
    (tmp_path / "suggested.toml").write_text(out)
    assert checked(tmp_path) == 0, capsys.readouterr()


def checked(path: Path) -> int:
    """Let `policyd check --strict` look at what was suggested."""
    return main(["check", "--strict", "--no-managed", "--no-project", "--home", HOME, str(path / "suggested.toml")])


# ---- a log of real agents --------------------------------------------------------------------------


AGENTS = [pytest.param(CAPTURES[2::3], id="a third"), pytest.param(CAPTURES, id="all", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=AGENTS)
def captured(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Bench:
    """Three days of recorded agents, answered by a careful person."""
    bench = Bench(tmp_path_factory.mktemp("captured"), agents=request.param)
    bench.day.person = careful
    for _ in range(3):
        bench.day.captured(bench.agents)
    return bench


@pytest.fixture
def once(captured: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """What is suggested for this log is worked out once, however it is printed."""

    def suggest(args: Namespace, answers: Answers, replayer: Replayer) -> suggesting.Suggestions:
        if captured.found is None:
            captured.found = work_out(args, answers, replayer)
        return captured.found

    work_out = suggesting.suggest
    monkeypatch.setattr(suggesting, "suggest", suggest)
    return captured


def test_suggestions_settle_most_repeated_asks_of_real_agents_and_allow_nothing_refused(
    once: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert once.run("suggest") == 0
    out = capsys.readouterr().out
    settled, allowed = tried(after(once, out), careful, once.agents)
    assert allowed == []
    assert settled >= 0.75
    (once.path / "suggested.toml").write_text(out)
    assert checked(once.path) == 0, capsys.readouterr()


def after(bench: Bench, out: str) -> Day:
    """Return a day on which what was suggested is in force."""
    return Day(bench.day.log, careful, rules=policy(GROUND + out.partition("version = 1\n")[2]))


def tried(day: Day, person: Person, agents: Sequence[Path] = CAPTURES) -> tuple[float, list[str]]:
    """Return the part of the person's approvals that rules settle, and what they allow that was refused."""
    answers: list[tuple[Effect, Decision, Request]] = []

    def keep(request: Request, decision: Decision, context: Context) -> None:
        answers.append((person(request), decision, request))

    day.decided = keep  # type: ignore[method-assign]
    day.captured(agents)
    wanted = [decision.effect for answer, decision, _ in answers if answer is Effect.ALLOW]
    wrong = [r.title for answer, decision, r in answers if answer is Effect.DENY and decision.effect is Effect.ALLOW]
    return wanted.count(Effect.ALLOW) / max(1, len(wanted)), wrong


def told(request: Request) -> object:
    """What was asked, whoever asked it."""
    places = [repr((one.path.forms, one.path.reach) if one.path else one.cwd) for one in request.actions]
    kinds = ((sorted(action.kinds), str(action.tool and action.args)) for action in request.actions)
    return repr(sorted(zip(map(words, request.actions), places, kinds, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_whoever_answers_however_nothing_refused_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    refused: set[object] = set()
    kind, odds = (seed % 2, (5, 20, 60, 90)[seed // 2])
    rng = random.Random(seed)  # noqa: S311 - a person's moods

    def moody(request: Request) -> Effect:
        """Answer by what is asked, or by the mood of the moment."""
        asked = told(request)
        draw = rng.randrange(100) if kind else zlib.crc32(repr((seed, asked)).encode()) % 100
        if draw < odds:
            refused.add(asked)
        return Effect.DENY if draw < odds else Effect.ALLOW

    bench = Bench(tmp_path)
    bench.day.person = moody
    bench.day.captured()
    bench.day.captured()
    assert bench.run("suggest") == 0
    day = after(bench, capsys.readouterr().out)
    assert tried(day, lambda request: Effect.DENY if told(request) in refused else Effect.ALLOW)[1] == []


def test_the_rule_that_saves_most_prompts_comes_first(once: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert once.run("suggest", "--json") == 0
    *rules, whole = map(json.loads, capsys.readouterr().out.splitlines())
    saves = [rule["saves"] for rule in rules]
    assert saves == sorted(saves, reverse=True) and saves[-1] > 0
    assert whole["rules"] == len(rules) and whole["prompts"] == once.day.number
    assert all(rule["evidence"] and rule["first"] <= rule["last"] and rule["rule"]["match"] for rule in rules)


def test_a_question_that_was_dismissed_counts_as_a_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.answer("execute make a", "allow", 3)
    bench.answer("execute make a", "deny")
    log = next(tmp_path.rglob("*.jsonl"))
    *before, last = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*before, last.replace('"outcome":"selected"', '"outcome":"cancelled"')]))
    assert bench.run("suggest", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["prompts"] == 4


# ---- what filters, masks and records may hide ------------------------------------------------------


def test_a_filter_never_hides_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.answer("execute make a", "deny")
    bench.answer("execute make a", "allow", 3)
    for filters in (("--effect", "allow"), ("--agent", "claude"), ("--since", "2026-11-02T09:02:00+00:00")):
        assert bench.run("suggest", *filters) == 0
        assert "[[rule]]" not in capsys.readouterr().out


def test_filters_choose_whose_approvals_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.answer("execute make a", "allow", 3)
    bench.answer("execute make b", "allow", 3, "gemini", f"{HOME}/other")
    assert bench.run("suggest", "--project", f"{HOME}/other") == 0
    rules = tomllib.loads(capsys.readouterr().out)["rule"]
    assert [rule["command"] for rule in rules] == ["make b"]


def test_a_refusal_that_was_masked_keeps_what_may_be_like_it_from_being_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path)
    for file in "abc":
        bench.answer(f"execute pytest tests/{file}.py", "allow", 2)
    bench.answer("execute pytest --token ghp_abcdefghijklmnopqrstuvwxyz0123456789", "deny")
    assert bench.run("suggest") == 0
    out = capsys.readouterr().out
    assert {rule["command"] for rule in tomllib.loads(out)["rule"]} == {f"pytest tests/{each}.py" for each in "abc"}
    assert "not tried: 1 refusal." in out


def test_no_secret_comes_back_out_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.answer("execute make TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "allow", 5)
    assert bench.run("suggest") == 0
    out = capsys.readouterr().out
    assert "[[rule]]" not in out and "left out: 5 approvals." in out


def test_what_nobody_answered_is_neither_yes_nor_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.answer("execute make a", "allow", 2)
    request, context = question("execute make a", "claude", "", bench.day.rules)
    found = engine.decide(request, bench.day.rules, context)
    silent = replace(found, effect=Effect.DENY, source=Source.PROMPT, reason="nobody answered within 600 seconds")
    bench.day.log.append(audit.record(silent, request, context, id="x", by="policyd"), bench.day.now)
    assert bench.run("suggest") == 0
    assert 'command = "make a"' in capsys.readouterr().out


def test_a_denial_by_policy_counts_as_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.answer("execute make a", "allow", 3)
    strict = policy(GROUND + 'execute = "deny"\n')
    request, context = question("execute make a", "claude", "", strict)
    bench.day.decided(request, engine.decide(request, strict, context), context)
    assert bench.run("suggest") == 0
    assert "[[rule]]" not in capsys.readouterr().out


# ---- the reverse -----------------------------------------------------------------------------------

USED = """
[[rule]]
id = "status"
effect = "allow"
command = "git status"
[[rule]]
id = "idle"
effect = "allow"
command = "cargo test"
[[rule]]
id = "strict"
effect = "deny"
command = "rm"
"""


def test_allow_rules_that_nothing_used_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path, GROUND + USED)
    bench.answer("execute git status", "allow", 2)
    assert bench.run("suggest", "--unused", "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["rule"] for one in found] == ["user:idle"] and found[0]["line"] > 0
    assert bench.run("suggest", "--unused") == 0
    assert "1 allow rule used by none of 2 decisions" in capsys.readouterr().out


# ---- the whole way ---------------------------------------------------------------------------------


def answer(client: Client, text: str, kind: str, ident: int) -> None:
    """Let the agent ask through the proxy, and the client's user answer."""
    client.prompt(text, ident)
    request = client.until(method="session/request_permission")
    option = next(each["optionId"] for each in request["params"]["options"] if each["kind"] == kind)
    client.send({"id": request["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}})
    client.until(id=ident)


@pytest.mark.slow
def test_what_was_suggested_after_a_day_with_the_proxy_settles_the_next_day(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    settings = tmp_path / "home/.config/policyd/policyd.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("human_ms = 0\n")  # this person answers at once
    client = Client(scene.start("ask", "1"))
    client.open(scene.work)
    for number, (text, kind) in enumerate([("make docs", "allow_once")] * 3 + [("make deploy", "reject_once")], 2):
        answer(client, text, kind, number)
    client.close()
    words = [*POLICYD, "audit", "suggest", "--policy", str(scene.policy), "--no-managed"]
    said = subprocess.run(words, env=scene.environ, capture_output=True, text=True, check=True, timeout=60)
    suggested = tmp_path / "suggested.toml"
    suggested.write_text(said.stdout)
    assert [rule["command"] for rule in tomllib.loads(said.stdout)["rule"]] == ["make docs"]

    client = Client(scene.start("ask", "1", options=["--policy", str(suggested), "--prompt", "none"]))
    client.open(scene.work)
    assert client.asked("make docs")["optionId"] == "yes"
    assert client.asked("make deploy", 3)["optionId"] == "no"
    client.close()
    assert scene.records()[-2]["rules"][0]["rule"] == "user:make-docs"
