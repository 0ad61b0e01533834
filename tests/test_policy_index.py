"""The index over rules is a filter: it leaves out no rule that may hold, whatever is written and asked."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd.commands import read
from policyd.commands.sets import SetEntry, shipped
from policyd.model import Action, Context, Tool, Truth
from policyd.paths import open_workspace
from policyd.policy import Policy
from policyd.policy.commandindex import merge_aliases, representative, synonyms
from policyd.policy.conditions import CommandCondition
from policyd.service.passing import free
from tests.fakes import FakeFilesystem
from tests.policytext import load, source

PROGRAMS = (
    "git",
    "docker",
    "npm",
    "python",
    "pip3.11",
    "kubectl",
    "mytool",
    "GIT",
    "./run",
    "sudo",
    "make",
    "find",
    "gradlew",
)
PARTS = (
    *(
        "push",
        "log",
        "container",
        "ls",
        "list",
        "i",
        "install",
        "inst",
        "run",
        "-m",
        "--force",
        "--forced",
        "--fo",
        "-f",
        "-mx",
    ),
    *("x", "./x", "a/../x", "--message=x", "--tag", "-t", "-tx", "-vtx", "--", "-", "exec", "src/x", "--x-y", "-name"),
    *("-forced", "--fo=x", "--forced=x"),
)
ONLY_PATTERNS = ("*", "**", "p*", "--*", "'x y'")
ONLY_COMMANDS = ("$A", "$A.x", "p*", '"$B"', "'x y'", "-vfx", "-name=x")


def pattern(rng: Random) -> str:
    """Return a pattern of up to five words."""
    words = [rng.choice((*PARTS, *ONLY_PATTERNS)) for _ in range(rng.randint(0, 4))]
    return " ".join([rng.choice((*PROGRAMS, "*")), *words])


def text(rng: Random) -> str:
    """Return a command of up to seven words."""
    words = [rng.choice((*PARTS, *ONLY_COMMANDS)) for _ in range(rng.randint(0, 6))]
    return " ".join([rng.choice(PROGRAMS), *words])


def session_at(cwd: str) -> Context:
    """Return a session that works in `cwd`."""
    return Context(open_workspace(cwd, (), home="/home/dev", fs=FakeFilesystem()), datetime(2026, 11, 29, tzinfo=UTC))


def missing(loaded: Policy, line: str) -> list[object]:
    """Return the rules that may hold for a command and are not named."""
    context = session_at("/w")
    found: list[object] = []
    for command in read(line, cwd=("/w",), home="/home/dev").commands:
        action = Action(frozenset({"execute"}), command=command, cwd=("/w",), cwd_inside=True)
        named = loaded.candidates(action, context)
        holding = (rule for rule in loaded.rules if rule.holds(action, context) is not Truth.NO)
        found += [(rule.table["command"], line) for rule in holding if rule not in named]
    return found


def written(effects: str, patterns: list[str]) -> Policy:
    """Return a policy of a rule for each pattern."""
    return load(
        source("".join(f'[[rule]]\neffect = "{effects}"\ncommand = """{one}"""\n' for one in dict.fromkeys(patterns)))
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["allow", "ask", "deny"]))
def test_no_command_rule_that_may_hold_is_left_out(seed: int, effect: str) -> None:
    rng = Random(seed)  # noqa: S311 - not for secrets
    loaded = written(effect, [pattern(rng) for _ in range(40)])
    for _ in range(25):
        assert missing(loaded, text(rng)) == []


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("git push --unknown", "git push --unk"),
        ("git push --unknown", "git push --unknown=now"),
        ("python -m pip", "python -mpip"),
        ("python -m pip", "python -vmpip"),
        ("npm install x", "npm i x"),
        ("docker container ls x", "docker container list x"),
        ("make build", "make ./build"),
        ("mytool --verbose-thing", "mytool -verbose-thing"),
        ("git log x", "git log $X"),
        ("git log x", "git lx x"),
        ("mytool --xyz", "MYTOOL -x"),
        ("mytool --Xyz", "mytool -vx"),
        ("mytool -x", "mytool --Xyz"),
        ("python -m pip", f"python -{70 * 'v'}mpip"),
        ("npm publish", "npm publ"),
        ("gradlew publish", "./gradlew publ"),
        ("npm run publish", "npm run --silent publ"),
        ("docker rm x", "docker container remove x"),
        ("make build", "make test build"),
        ("make build", "gmake build"),
        ("pip install x", "uv pip install x"),
        ("npm install --global", "npm -g install x"),
        ("mytool --xyz=now", "mytool --xyz now"),
        ("mytool --xyz=now", "mytool --xy=now"),
        ("git push --unknown", "git alias -v"),
        ("terraform --unknown", "terraform -unknown"),
        ("tar --extract", "tar -x"),
        ("curl --upload-file=a", "curl -Ta"),
    ],
)
def test_each_spelling_finds_its_rule(rule: str, line: str) -> None:
    assert missing(written("deny", [rule, "git log other", "python -m other", "mytool --other"]), line) == []


@pytest.mark.parametrize(
    "line",
    [
        "mytool --xyq",
        "mytool -q",
        "mytool --x9",
        "mytool -pyz",
        "mytool run HEAD -q --y=--xy",
    ],
)
def test_a_rule_on_one_long_option_is_not_asked_about_another(line: str) -> None:
    loaded = written("deny", ["mytool --xyzzy", "mytool --x1"])
    session = session_at("/w")
    for command in read(line, cwd=("/w",), home="/home/dev").commands:
        action = Action(frozenset({"execute"}), command=command, cwd=("/w",), cwd_inside=True)
        assert list(loaded.candidates(action, session)) == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["allow", "deny"]))
def test_a_rule_of_many_patterns_holds_as_rules_of_one_would(seed: int, effect: str) -> None:
    rng = Random(seed)  # noqa: S311 - not for secrets
    patterns = list(dict.fromkeys(pattern(rng) for _ in range(30)))
    each = written(effect, patterns).rules
    listed = ", ".join(f'"""{one}"""' for one in patterns)
    (every,) = load(source(f'[[rule]]\neffect = "{effect}"\ncommand = [{listed}]\n')).rules
    session = session_at("/w")
    for command in (command for _ in range(10) for command in read(text(rng), cwd=("/w",), home="/home/dev").commands):
        action = Action(frozenset({"execute"}), command=command, cwd=("/w",), cwd_inside=True)
        assert every.holds(action, session) is max(rule.holds(action, session) for rule in each), command.text


OTHER_WAYS = ("python3 -m mypy src", ".venv/bin/mypy src", "poetry run mypy src", "npx --no-install eslint src")


def lines_of_sets(rng: Random) -> list[str]:
    """Return commands that entries of shipped sets are about, some with a word more."""
    entries = [entry for each in shipped().values() for entry in each.entries.values() if isinstance(entry, SetEntry)]
    found = list(OTHER_WAYS)
    for entry in rng.sample(entries, 60):
        words = rng.choice(rng.choice(entry.patterns).alternatives)
        known = [word.literal or rng.choice(("x", "--all", "")) for word in words]
        at = rng.randint(1, len(known))
        found.append(" ".join([*known[:at], rng.choice(("", "", "-q", "$A", "--version")), *known[at:]]))
    return found


@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_no_entry_of_a_set_that_may_hold_is_left_out(effect: str) -> None:
    sets = [name for name, each in shipped().items() if each.kind == "command"]
    listed = ", ".join(f'"@{name}"' for name in sets)
    (rule,) = load(source(f'[[rule]]\neffect = "{effect}"\ncommand = [{listed}]\n')).rules
    (condition,) = (one for one in rule.conditions if isinstance(one, CommandCondition))
    for line in lines_of_sets(Random(7)):  # noqa: S311 - not for secrets
        for command in read(line, cwd=("/w",), home="/home/dev").commands:
            about = [entry.text for entry in condition.about(command)]
            held = [one for one in condition.entries if one.sure(command) or one.why_not(command)]
            if effect == "deny":
                held += [one for one in condition.entries if any(one.maybe(command, widen=w) for w in (True, False))]
            assert [one.text for one in held if one.text not in about] == [], line


def test_of_a_set_few_entries_are_asked_about_a_command() -> None:
    (rule,) = load(source('[[rule]]\neffect = "allow"\ncommand = ["@git-read", "@read-only"]\n')).rules
    (condition,) = (one for one in rule.conditions if isinstance(one, CommandCondition))
    (command,) = read("git status --short", cwd=("/w",), home="/home/dev").commands
    assert len(condition.entries) > 100 > 10 > len(condition.about(command))


def test_names_of_a_subcommand_at_any_depth_stand_for_one() -> None:
    assert synonyms("npm").get("i") == synonyms("npm").get("install", "install")
    found: dict[str, str] = {}
    for one, other in (("a", "b"), ("b", "c"), ("c", "a")):
        merge_aliases(found, one, other)
    assert len({representative(found, word) for word in "abc"}) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["allow", "deny"]))
def test_no_tool_rule_that_may_hold_is_left_out(seed: int, effect: str) -> None:
    rng = Random(seed)  # noqa: S311 - not for secrets
    names, servers = ("get", "get_issue", "GET_x", "a_get", "x"), ("jira", "Jira", "mail", "jira_get")
    globs = ("get*", "*get", "g*t", "*", "get_*", "*_x", "*e*", *names)
    pairs = [f"{rng.choice((*servers, '*', 'j*'))}/{rng.choice(globs)}" for _ in range(20)]
    patterns = [*pairs, rng.choice(servers)]
    rules = "".join(f'[[rule]]\neffect = "{effect}"\ntool = "{one}"\n' for one in dict.fromkeys(patterns))
    loaded = load(source(rules))
    context = session_at("/w")
    for _ in range(20):
        splits = tuple((rng.choice(servers), rng.choice(names)) for _ in range(rng.randint(0, 2)))
        tool = Tool(rng.choice((*servers, "_".join(splits[0]) if splits else "x")), splits)
        action = Action(frozenset({"other"}), tool=tool if splits else None, name=tool, mcp=bool(splits))
        named = loaded.candidates(action, context)
        assert [r for r in loaded.rules if r.holds(action, context) is not Truth.NO and r not in named] == []


@pytest.mark.parametrize("glob", ["get_{}*", "*_{}", "*_{}_*", "g*_{}_x"])
def test_a_glob_of_tools_is_filed_by_the_longest_text_in_it(glob: str) -> None:
    rules = "".join(f'[[rule]]\neffect = "deny"\ntool = "jira/{glob.format(n)}"\n' for n in range(100, 300))
    name = glob.format(123).replace("*", "a")
    tool = Tool(f"jira_{name}", (("jira", name),))
    action = Action(frozenset({"other"}), tool=tool, name=tool, mcp=True)
    context = session_at("/w")
    assert len(list(load(source(rules)).candidates(action, context))) == 1


def test_a_policy_is_let_go_of_in_parts_that_others_may_still_use() -> None:
    many = '[[rule]]\neffect = "deny"\ncommand = ["git push", "make", "a", "b", "c"]\n'
    first = load(source(f'{many}[[rule]]\neffect = "deny"\npath = [".env", "*.pem"]\n'))
    assert [id(each) for each in first.parts()] == [id(each) for each in first.rules]
    first.ready()
    rule, parts = first.rules[0], list(first.parts())
    assert {id(each) for each in first.rules} < {id(each) for each in parts}
    free([first])
    assert missing(first, "git push origin") == []
    assert rule.conditions
