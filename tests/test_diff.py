"""`policyd diff`: each loosening it tells is one, and where it says "not looser" none is found."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from policyd import audit, engine
from policyd.cli import main
from policyd.cli.diff.changes import Changes, changes, strength
from policyd.cli.diff.comparing import compare
from policyd.cli.replay import PLAIN
from policyd.cli.trials.covering import Coverer
from policyd.cli.trials.standins import StandIns
from policyd.cli.trials.tree import Tree
from policyd.cli.trials.trial import Trial
from policyd.model import Layer, Request
from policyd.policy import Policy, PolicySource, load
from tests import random_policies as draw
from tests.ground import File

HOME = "/home/dev"
BASE = """
[defaults]
"*" = "ask"
read = "allow"

[[rule]]
id = "look"
effect = "allow"
command = ["ls **", "cat **"]

[[rule]]
id = "push"
effect = "ask"
command = "git push"
remember = "session"

[[rule]]
id = "no-secrets"
effect = "deny"
path = ["secrets/**", ".env"]

[[rule]]
id = "docs"
effect = "allow"
url = "https://docs.python.org/**"
"""
BEFORE_DOCS = '[[rule]]\nid = "docs"'
NOT_LOOSER = {
    "nothing": ("", ""),
    "another order and other names": ('["ls **", "cat **"]', '["cat **", "ls **"]'),
    "an allow less": ('["ls **", "cat **"]', '"ls **"'),
    "an allow narrowed": ('"ls **", "cat **"', '"ls -la **", "cat README.md"'),
    "a deny more": (BEFORE_DOCS, '[[rule]]\neffect = "deny"\ncommand = "npm"\n' + BEFORE_DOCS),
    "a deny widened": ('"secrets/**", ".env"', '"secrets", "**/.env", "keys/**"'),
    "an ask that denies": (
        'effect = "ask"\ncommand = "git push"\nremember = "session"',
        'effect = "deny"\ncommand = "git"',
    ),
    "an ask widened": ('command = "git push"', 'command = "git"'),
    "an ask remembered more briefly": ('remember = "session"', 'remember = "never"'),
    "a stricter default": ('read = "allow"', 'read = "ask"'),
    "a default for one more kind": ('read = "allow"', 'read = "allow"\nfetch = "deny"'),
    "a URL narrowed": ("docs.python.org/**", "docs.python.org/3/**"),
    "an exception of an allow": ('url = "https', 'unless = { url = "https://docs.python.org/2/**" }\nurl = "https'),
    "an allow under a deny": (
        '[[rule]]\nid = "docs"',
        '[[rule]]\neffect = "allow"\nkind = "read"\npath = "secrets/x"\n[[rule]]\nid = "docs"',
    ),
}
LOOSER = {
    "an allow more": ('"ls **", "cat **"', '"ls **", "cat **", "make **"', "execute make"),
    "an allow widened": ('"https://docs.python.org/**"', '"*.python.org"', "python.org"),
    "a host more": (
        '"https://docs.python.org/**"',
        '["https://docs.python.org/**", "docs.rs"]',
        "fetch https://docs.rs/",
    ),
    "a deny less": ('"secrets/**", ".env"', '".env"', "secrets"),
    "a deny narrowed": ('".env"]', '"config/.env"]', ".env"),
    "a deny that asks": ('effect = "deny"', 'effect = "ask"', ".env"),
    "an ask gone": ('effect = "ask"\ncommand = "git push"', 'effect = "ask"\ncommand = "git pull"', "execute git push"),
    "an ask remembered longer": ('remember = "session"', 'remember = "project"', "execute git push"),
    "a looser default": ('"*" = "ask"', '"*" = "allow"', "search src/app.py"),
    "a default for one more kind": ('read = "allow"', 'read = "allow"\nthink = "allow"', "think"),
    "a ground that reaches outside": ('read = "allow"', 'read = "allow"\noutside = "allow"', "read /etc/hosts"),
    "an exception of a deny": ("path = [", 'unless = { path = "secrets/a.md" }\npath = [', "secrets/a.md"),
    "a tool": (BEFORE_DOCS, '[[rule]]\neffect = "allow"\ntool = "jira/*"\n' + BEFORE_DOCS, "jira/"),
    "a default that says conditions": (
        BEFORE_DOCS,
        '[[default]]\neffect = "allow"\ncommand = "make"\n' + BEFORE_DOCS,
        "execute make",
    ),
    "an escape": (
        '[[rule]]\nid = "docs"',
        '[[rule]]\neffect = "allow"\nkind = "execute"\nopaque = true\n[[rule]]\nid = "docs"',
        "execute",
    ),
}


SESSIONS = {
    "agent claude": 'effect = "allow"\nagent = "claude"',
    "mode plan": 'effect = "allow"\nmode = "plan"',
    "user eve": 'effect = "allow"\nuser = "eve"',
    "group dev": 'effect = "allow"\ngroup = "dev"',
    "label team=core": 'effect = "allow"\nlabel = { team = "core" }',
    "nobody to ask": 'effect = "deny"\ninteractive = false',
}
"""What a session must be for a rule to hold, and how that is told."""


def policy(text: str, managed: str = "") -> Policy:
    sources = [PolicySource("user.toml", text.encode(), Layer.USER)]
    sources += [PolicySource("managed.toml", managed.encode(), Layer.MANAGED)] if managed else []
    return load(sources, home=HOME, tmpdir="/tmp", fs=Tree(), version="0.1.0")


def found(old: Policy, new: Policy, most: int = 1500) -> Changes:
    return changes(old, new, Trial.open(HOME, {*old.heads, *new.heads}), most=most)


@pytest.mark.parametrize("name", NOT_LOOSER)
def test_what_only_tightens_is_proved_by_the_texts(name: str) -> None:
    before, after = NOT_LOOSER[name]
    assert before in BASE
    told = found(policy(BASE), policy(BASE.replace(before, after)))
    assert told.comparison.suspects == []
    assert told.loosenings == []


@pytest.mark.parametrize("name", LOOSER)
def test_what_loosens_is_shown_on_a_request(name: str) -> None:
    before, after, part = LOOSER[name]
    assert before in BASE
    told = found(policy(BASE), policy(BASE.replace(before, after)))
    assert told.comparison.suspects
    assert any(part in change.request for change in told.loosenings), [c.request for c in told.loosenings]


@pytest.mark.parametrize("session", SESSIONS)
def test_a_rule_for_certain_sessions_is_tried_in_one(session: str) -> None:
    ruled = policy(f'{BASE}[[rule]]\n{SESSIONS[session]}\ncommand = "make"\n')
    sides = (policy(BASE), ruled) if "allow" in SESSIONS[session] else (ruled, policy(BASE))
    told = found(*sides, most=200).loosenings
    assert session in {change.session for change in told if change.request == "execute make"}


def test_what_loosens_is_seen_from_the_other_side_as_tightening() -> None:
    for name, (before, after, _) in LOOSER.items():
        if name in {"a deny narrowed", "an ask gone"}:
            continue  # each loosens something else: `git pull`; `rm -rf config`, which surely reached that `.env`
        told = found(policy(BASE.replace(before, after)), policy(BASE), most=300)
        assert told.loosenings == []


def test_an_ask_over_a_default_that_denies_loosens() -> None:
    ground = '[defaults]\n"*" = "deny"\n'
    told = found(policy(ground), policy(ground + '[[rule]]\neffect = "ask"\ncommand = "make"\n'))
    assert [(c.old.effect.word, c.new.effect.word) for c in told.loosenings][:1] == [("deny", "ask")]


def test_a_lock_that_goes_loosens() -> None:
    allow = '[[rule]]\neffect = "allow"\ncommand = "make"\n'
    told = found(policy(allow, '[lock]\nrefuse = ["user.allow"]\n'), policy(allow, "[defaults]\n"))
    assert [change.request for change in told.loosenings][:1] == ["execute make"]


def test_a_lock_on_remembered_answers_that_goes_loosens() -> None:
    ground = '[defaults]\n"*" = "ask"\n'
    told = found(policy(ground, '[lock]\nrefuse = ["grants"]\n'), policy(ground))
    assert {change.session for change in told.loosenings} == {"a remembered allow"}


@pytest.mark.parametrize("name", ["an allow more", "a deny less", "an ask gone", "a looser default", "a tool"])
def test_what_is_claimed_is_what_policyd_decides(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after, _ = LOOSER[name]
    texts = {"old": BASE, "new": BASE.replace(before, after)}
    for side, text in texts.items():
        (tmp_path / f"{side}.toml").write_text(text)
    (tmp_path / "workspace").mkdir()
    told = found(policy(texts["old"]), policy(texts["new"]), most=400)
    for change in told.loosenings:
        if change.request.startswith(("{", "search ", "delete ", "move ")):
            continue  # tables cannot be given; the others look below what is not on this disk
        where = ["--home", str(tmp_path), "--cwd", str(tmp_path / "workspace"), "--no-managed", "--no-project"]
        for side, claimed in (("old", change.old), ("new", change.new)):
            given = ["--policy", str(tmp_path / f"{side}.toml"), "--example", change.request, *where]
            assert main(["explain", "--json", *given]) == 0
            assert json.loads(capsys.readouterr().out)["effect"] == claimed.effect.word, change.request


# ---- at random -------------------------------------------------------------------------------------


def mutated(rng: Random, files: list[File]) -> list[File]:
    """Change a policy a little: a rule gone, another effect, one more, another default."""
    changed = []
    for layer, trusted, table in files:
        rules = [dict(rule) for rule in table.get("rule", [])]
        if rules and rng.random() < 0.4:
            rules.pop(rng.randrange(len(rules)))
        if rng.random() < 0.4:
            rules.append(draw.rule(rng))
        if rng.random() < 0.2:
            rules += [dict(rule) for rule in rules[:1]]
        new: dict[str, Any] = {**table, "rule": rules}
        if "defaults" in table and rng.random() < 0.3:
            new["defaults"] = {**table["defaults"], "read": rng.choice(("allow", "ask", "deny"))}
        changed.append((layer, trusted, new))
    return changed


def told_not_looser(seed: int) -> tuple[Policy, Policy] | None:
    """Return a policy and a changed one that is said to be no looser, None if it is not said."""
    rng = Random(seed)  # noqa: S311
    files = draw.files(rng)
    old, new = draw.load(files), draw.load(mutated(rng, files))
    coverer = Coverer(StandIns("/home/u"), draw.NOW, exact=True)
    return None if compare(old, new, coverer).suspects else (old, new)


def loosened(old: Policy, new: Policy, seed: int, requests: int) -> list[object]:
    """Try random requests; return those that NEW lets through more easily."""
    rng = Random(seed)  # noqa: S311
    seen: list[object] = []
    for _ in range(requests):
        request, context = draw.request(rng), draw.context(rng)
        context = replace(context, now=draw.NOW)
        before, after = (engine.decide(request, each, context) for each in (old, new))
        if strength(after) < strength(before):
            seen.append((request, before, after))
    return seen


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_requests_find_no_loosening_where_none_is_told(first: int) -> None:
    pairs = [(seed, pair) for seed in range(first, first + 50) if (pair := told_not_looser(seed))]
    assert pairs
    for seed, (old, new) in pairs:
        assert loosened(old, new, seed, 40) == [], seed


@pytest.mark.slow
def test_a_hundred_thousand_random_requests_find_none() -> None:
    tried = 0
    seed = 1000
    while tried < 100_000:
        seed += 1
        if pair := told_not_looser(seed):
            assert loosened(*pair, seed, 400) == [], seed
            tried += 400


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_LOOSER)
def test_many_drafted_requests_find_none_either(name: str) -> None:
    before, after = NOT_LOOSER[name]
    assert found(policy(BASE), policy(BASE.replace(before, after)), most=20_000).loosenings == []


# ---- the command -----------------------------------------------------------------------------------


def diff(tmp_path: Path, new: str, *more: str) -> int:
    (tmp_path / "old.toml").write_text(BASE)
    (tmp_path / "new.toml").write_text(new)
    sides = [str(tmp_path / "old.toml"), str(tmp_path / "new.toml")]
    return main(["diff", *sides, "--home", str(tmp_path), "--requests", "600", *more])


def test_the_exit_code_answers_is_new_looser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, BASE) == 0
    assert "NEW decides as OLD does\nanswered by comparing the rules" in capsys.readouterr().out
    assert diff(tmp_path, BASE.replace('"cat **"', '"cat **", "make **"')) == 1
    said = capsys.readouterr().out
    assert "LOOSER   ask -> allow: execute make" in said
    assert f"is user:look ({tmp_path}/new.toml:6)" in said
    assert "answered by requests: " in said
    assert diff(tmp_path, BASE.replace("[[rule]]", "[[rle]]")) == 2


def test_what_is_not_proved_is_said_and_counts_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = (
        BASE + '[[rule]]\neffect = "allow"\ncommand = "zqx1"\nlabel = { a = "b" }\nunless = { command = "zqx1" }\n'
    )
    assert diff(tmp_path, unknown) == 0
    said = capsys.readouterr().out
    note = "not settled by comparing the rules: allow `user:new.toml:26` is new"
    assert f"NEW was not seen to be looser\n  {note}" in said
    assert diff(tmp_path, unknown, "--prove") == 1


def test_the_examples_of_what_changed_are_tried_before_anything_else(tmp_path: Path) -> None:
    named = '[[rule]]\neffect = "allow"\ncommand = "zqx1 **"\nmatch = "execute zqx1 y"\n'
    assert diff(tmp_path, BASE + named, "--requests", "1") == 1


def test_json_holds_both_decisions_of_every_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, BASE.replace('"secrets/**", ', ""), "--json") == 1
    *told, whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["change"] for one in told} == {"looser"}
    assert all(one["old"]["rules"] == ["user:no-secrets"] for one in told)
    assert (whole["looser"], whole["method"], whole["removed"]) == (True, "requests", ["user:no-secrets"])


def test_requests_of_a_transcript_are_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = {"toolCallId": "c", "kind": "execute", "title": "zqx7 deploy", "rawInput": {"command": "zqx7 deploy"}}
    options = [{"optionId": "a", "name": "Allow", "kind": "allow_once"}]
    params = {"sessionId": "s", "toolCall": call, "options": options}
    (tmp_path / "log.jsonl").write_text(json.dumps(params) + "\n")
    diff(tmp_path, BASE + '[[rule]]\neffect = "deny"\ncommand = "zqx7"\n', "--log", str(tmp_path / "log.jsonl"))
    assert "1 recorded ones agree" in capsys.readouterr().out


def test_requests_of_an_audit_log_are_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = Trial.open(str(tmp_path))
    request = Request("s", "c", "push it", PLAIN, trial.actions("execute git push origin"))
    decision = trial.decide(policy(BASE), request.actions, trial.context())
    record = audit.record(decision, request, trial.context(), id="x")
    (tmp_path / "audit.jsonl").write_bytes(audit.line(audit.body(record), 1, "0" * 64))
    new = BASE.replace('remember = "session"', "").replace('effect = "ask"', 'effect = "allow"')
    assert diff(tmp_path, new, "--log", str(tmp_path / "audit.jsonl"), "--requests", "0") == 1
    assert "execute git push origin" in capsys.readouterr().out
