"""A policy file is read as a whole: every mistake at its line, with what to write; nothing loads by half."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd import policy
from policyd.commands import read
from policyd.model import Action, Context, Layer, Truth
from policyd.paths import open_workspace
from policyd.policy import Policy, PolicyError, PolicySource
from policyd.policy.conditions import PathCondition
from policyd.policy.file import RuleBlock
from tests.fakes import FakeFilesystem
from tests.policytext import load, source

CASES = tomllib.loads((Path(__file__).parent / "data/policies/mistakes.toml").read_text())["case"]


def mistakes(*sources: PolicySource) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        load(*sources)
    return [str(one) for one in raised.value.diagnostics]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_each_mistake_is_told_at_its_line(case: dict[str, Any]) -> None:
    layer = Layer[case.get("layer", "user").upper()]
    said = mistakes(source("\n" + case["text"], layer))
    lines = [one.removeprefix("mistakes.toml:") for one in said]
    for wanted in case["said"]:
        line, words = wanted.split(": ", 1)
        assert any(one.startswith(line + ":") and words in one for one in lines), (wanted, said)
    assert len(said) == len(case["said"]), said


# ---- what loads ------------------------------------------------------------------------------------


def test_rules_know_their_line_and_have_an_id_without_one() -> None:
    loaded = load(
        source(
            'reason = """\n[[rule]]\n"""\n'.replace("reason", "name") + '\n[[rule]] # one\neffect="deny"\nkind="*"\n'
        )
    )
    assert [(rule.ref.line, rule.ref.label) for rule in loaded.rules] == [(5, "user:mistakes.toml:5")]


def test_an_entry_of_defaults_has_its_line_behind_a_long_text_that_looks_like_one() -> None:
    (ground,) = load(source('name = """\n[defaults]\nread = 1"""\n[defaults]\nread = "deny"\n')).defaults
    assert [entry.ref.line for entry in ground.entries.values()] == [5]


def test_a_policy_in_a_log_is_one_line() -> None:
    loaded = load(source('[[rule]]\neffect = "deny"\ncommand = "rm"\n'))
    assert repr(loaded) == f"Policy(1 rules, revision '{loaded.revision}')"


def test_rules_written_in_one_line_have_that_line() -> None:
    loaded = load(source('version = 1\nrule = [\n  { id = "x", effect = "deny", kind = "*" },\n]\n'))
    assert [(rule.ref.line, rule.ref.id) for rule in loaded.rules] == [(2, "x")]


def test_ids_are_unique_within_a_layer_only() -> None:
    rule = '[[rule]]\nid = "x"\neffect = "deny"\nkind = "*"\n'
    loaded = load(
        source(rule, Layer.MANAGED, "m.toml"), source(rule, name="u.toml"), source(rule, Layer.PROJECT, "p.toml")
    )
    assert [rule.ref.label for rule in loaded.rules] == ["managed:x", "user:x", "project:x"]
    assert "taken by a.toml:1" in mistakes(source(rule, name="a.toml"), source(rule, name="b.toml"))[0]


def test_mistakes_of_all_files_are_told_together() -> None:
    said = mistakes(
        source("x = 1", name="b.toml"), source("y = [", Layer.MANAGED, "a.toml"), source('z = "', name="c.toml")
    )
    assert [one.split(":")[0] for one in said] == ["a.toml", "b.toml", "c.toml"]


def test_a_file_that_is_empty_or_no_plain_utf8_is_told_so() -> None:
    assert mistakes(PolicySource("x.toml", b"\xef\xbb\xbfversion = 1", Layer.USER)) == [
        "x.toml:1: it begins with a byte order mark; save it as plain UTF-8"
    ]
    assert mistakes(PolicySource("x.toml", b"\n\0\0", Layer.USER)) == [
        "x.toml:1: it is empty; write `version = 1` if it is to say nothing"
    ]
    assert "x.toml:2: not UTF-8" in mistakes(PolicySource("x.toml", b"version = 1\n# \xff", Layer.USER))[0]
    assert "x.toml: nested too deeply" in mistakes(PolicySource("x.toml", b"a = " + 9000 * b"[", Layer.USER))[0]


def test_a_number_beyond_all_numbers_is_named() -> None:
    assert "x.toml:1: not TOML: " in mistakes(PolicySource("x.toml", b"version = " + b"9" * 5000, Layer.USER))[0]


def test_lines_count_the_same_with_the_ends_of_another_system() -> None:
    text = '[defaults]\r\nread = "allow"\r\n[[rule]]\r\neffect = "deny"\r\ncomand = "x"\r\n'
    assert mistakes(source(text))[0].startswith("mistakes.toml:5: ")


def test_a_sound_file_does_not_load_beside_a_broken_one() -> None:
    mistakes(source('[[rule]]\neffect = "allow"\nkind = "*"\n', name="a.toml"), source("nonsense", name="b.toml"))


def test_the_revision_names_the_bytes_whatever_the_order() -> None:
    one, other = source('name = "a"\nrevision = "7"', name="a.toml"), source('name = "b"', name="b.toml")
    assert load(one, other).revision == load(other, one).revision
    assert load(one).revision != load(source('name = "a"\nrevision = "8"', name="a.toml")).revision
    assert load(one).revision != load(source('name = "a"\nrevision = "7"', Layer.MANAGED, "a.toml")).revision
    assert [(own.name, own.revision) for own in load(other, one).names] == [("a", "7"), ("b", "")]


def test_locks_of_managed_files_add_up() -> None:
    lock = load(
        source('[lock]\nrefuse = ["grants"]\nsettings = ["prompt"]', Layer.MANAGED, "a.toml"),
        source('[lock]\nrefuse = ["user.allow"]', Layer.MANAGED, "b.toml"),
        source('[[rule]]\neffect = "allow"\nkind = "*"', name="c.toml"),
    )
    assert lock.lock.refuse == {"grants", "user.allow"}
    assert lock.lock.settings == {"prompt"}
    assert lock.lock.grants
    assert "refuses allow rules of users" in lock.rules[0].void


@pytest.mark.parametrize(
    ("wanted", "loads"),
    [(">=0.1", True), (">=0.1, <0.2", True), ("==0.1.0", True), (">0.1", False), (">=0.2", False), ("!=0.1", False)],
)
def test_requires(wanted: str, loads: bool) -> None:
    if loads:
        load(source(f'requires = "{wanted}"'))
    else:
        assert "update policyd" in mistakes(source(f'requires = "{wanted}"'))[0]


# ---- sets ------------------------------------------------------------------------------------------


def patterns(loaded: Policy, label: str) -> list[str]:
    rule = next(rule for rule in loaded.rules if rule.ref.label == label)
    condition = next(condition for condition in rule.conditions if isinstance(condition, PathCondition))
    return [pattern.source for pattern in condition.patterns]


def test_a_rule_sees_the_sets_of_its_layer_and_those_above() -> None:
    rule = '[[rule]]\nid = "r"\neffect = "deny"\npath = "@docs"\n'
    managed = source('[sets]\ndocs = ["m/**"]\n' + rule, Layer.MANAGED, "m.toml")
    own = source(rule + '[sets]\ndocs = ["u/**", "@more"]\nmore = "x"\n', name="u.toml")
    loaded = load(managed, own, source(rule, Layer.PROJECT, "p.toml"))
    assert patterns(loaded, "managed:r") == ["m/**"]
    assert patterns(loaded, "user:r") == ["u/**", "x"]
    assert patterns(loaded, "project:r") == ["u/**", "x"]


def test_nobody_above_sees_the_sets_of_a_project() -> None:
    rule = '[[rule]]\neffect = "deny"\npath = "@docs"\n'
    project = source('[sets]\ndocs = ["**"]', Layer.PROJECT, "p.toml")
    assert "unknown set `@docs`" in mistakes(source(rule, name="u.toml"), project)[0]
    trusted = source('[sets]\ndocs = ["**"]', Layer.PROJECT, "p.toml", trusted=True)
    assert "unknown set `@docs`" in mistakes(source(rule, name="u.toml"), trusted)[0]


def test_files_of_a_layer_share_their_sets() -> None:
    rule = '[[rule]]\nid = "r"\neffect = "deny"\npath = "@docs"\n'
    assert patterns(load(source(rule, name="a.toml"), source('[sets]\ndocs = "d/**"', name="b.toml")), "user:r") == [
        "d/**"
    ]
    said = mistakes(source('[sets]\nd = "x"', name="a.toml"), source('[sets]\nd = "y"', name="b.toml"))
    assert said == ["b.toml:2: set `@d` is defined twice in this layer; rename one, or merge them"]


def test_an_entry_of_a_shipped_set() -> None:
    load(source('[[rule]]\neffect = "allow"\ncommand = "@read-only.ls"'))
    said = mistakes(source('[[rule]]\neffect = "allow"\ncommand = "@read-only.lss"'))
    assert "has no entry `lss`; write `@read-only.ls`" in said[0]


def test_a_directory_may_begin_with_an_at_sign() -> None:
    loaded = load(source('[[rule]]\nid = "r"\neffect = "deny"\npath = ["@types/**", "./@babel"]'))
    assert patterns(loaded, "user:r") == ["@types/**", "./@babel"]


# ---- the index -------------------------------------------------------------------------------------

COMMANDS = (
    "git push",
    "git push *",
    "git {push,pull} --force",
    "npm install",
    "npm {i,ci}",
    "git --no-pager log",
    "pytest **",
    "rm -rf",
    "make *",
    "*",
    "** --force",
    "/opt/x/tool run",
    "~/bin/tool",
    "g* status",
    "docker compose up",
    "@read-only",
    "@test-runners",
    "@force-push",
    "@destructive",
    "python -m http.server",
    "kubectl get secrets",
    "'odd word' x",
    "ssh h uptime **",
    "bash -c 'make && git push'",
    "xargs git push **",
)
TEXTS = (
    "git push",
    "git -C x push -uf",
    "git-push --force",
    "npm i left-pad",
    "npm ci",
    "npm install",
    "/usr/bin/git status",
    "python3.11 -m pytest -q",
    "busybox rm -rf x",
    "sudo git push",
    "env A=1 make all",
    "timeout 5 npm i",
    "git $X",
    "$X push",
    "docker compose up",
    "docker-compose up",
    "/opt/x/tool run",
    "GIT push",
    "xargs git push",
    "git 'push'",
    "git pu*",
    "ls -la",
    "cargo test",
    "bash -c 'git push --force'",
    "python -m http.server",
    "kubectl -n a get secrets",
    "ssh h uptime -p",
    "bash -c 'make && git push'",
)


@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_the_index_names_every_command_rule_that_may_hold(effect: str) -> None:
    rules = "".join(f'[[rule]]\neffect = "{effect}"\ncommand = """{text}"""\n' for text in COMMANDS)
    loaded = load(source(rules))
    workspace = open_workspace("/w", (), home="/home/dev", fs=FakeFilesystem())
    context = Context(workspace, datetime(2026, 11, 29, tzinfo=UTC))
    for text in TEXTS:
        for command in read(text, cwd=("/w",), home="/home/dev").commands:
            action = Action(frozenset({"execute"}), command=command, cwd=("/w",), cwd_inside=True)
            named = loaded.candidates(action, context)
            missing = [r.ref.id for r in loaded.rules if r.holds(action, context) is not Truth.NO and r not in named]
            assert missing == [], text


# ---- anything else ---------------------------------------------------------------------------------


def told(one: PolicySource) -> list[str]:
    """Return what is found wrong with a file, a word where it loads."""
    try:
        load(one)
    except PolicyError as error:
        return [mistake.found for mistake in error.diagnostics] or [""]
    return ["it loads"]


PIECES = st.sampled_from(
    [
        '"',
        "'",
        "[[rule]]",
        "[rule]",
        "\n",
        "=",
        "effect",
        "deny",
        "allow",
        "kind",
        "path",
        "{",
        "}",
        "[",
        "]",
        ",",
        "#",
        '"""',
        "unless",
        "@docs",
        "1",
        "true",
        "é",
        "\\",
        "*",
        "command",
        "match",
        "2026-01-01",
        ".",
        " ",
        "defaults",
        "sets",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_whatever_is_written_loads_or_is_refused(text: str) -> None:
    assert all(told(source(text)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_whatever_bytes_are_read_load_or_are_refused(data: bytes) -> None:
    assert all(told(PolicySource("x.toml", data, Layer.USER)))


VALUES = st.recursive(
    st.sampled_from(["allow", "deny", "*", "x/**", "@secrets", "", 0, 1.5, True, "read", "git push", "a{b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "kind", "a", "regex"]), inner, max_size=2)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from([*RuleBlock.model_fields, "delegate", "priority", "comand"])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=3),
    st.sampled_from(["rule", "default", "sets", "lock"]),
)
def test_whatever_table_is_written_loads_or_is_refused(blocks: list[dict[str, object]], name: str) -> None:
    table = {name: blocks if name in {"rule", "default"} else {k: v for block in blocks for k, v in block.items()}}
    assert all(told(source(tomli_w.dumps(table), Layer.MANAGED)))


# ---- the schema ------------------------------------------------------------------------------------


def test_the_schema_accepts_what_loads_and_refuses_a_misspelt_key() -> None:
    validator = jsonschema.Draft202012Validator(policy.schema())
    good = tomllib.loads(
        '[defaults]\n"*" = "ask"\ndelegate = true\n[sets]\na = "x"\n[[rule]]\neffect = "deny"\npath = "a"\n'
        'unless = { path = "b" }\nmatch = ["read a", { kind = "read" }]\n[[default]]\neffect = "ask"\nkind = "*"\n'
    )
    assert list(validator.iter_errors(good)) == []
    assert list(validator.iter_errors({"rule": [{"effect": "deny", "comand": "x"}]})) != []
    assert list(validator.iter_errors({"defaults": {"raed": "deny"}})) != []
