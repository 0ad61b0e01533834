"""Tools: joined names and their splits, patterns over names, patterns over arguments."""

from __future__ import annotations

import re

import pytest

from policyd.model import Tool, Truth
from policyd.tools import MOST_VALUES, InputPattern, ToolPattern

YES, MAYBE, NO = Truth.YES, Truth.MAYBE, Truth.NO

# pattern, tool, surely, widely
JIRA = Tool("mcp__jira__get_issue", (("jira", "get_issue"),))
BOTH = Tool("notes_read_delete", (("notes", "read_delete"), ("notes_read", "delete")))
BUILT_IN = Tool("bash")
NAMES = [
    ("jira/get_issue", JIRA, True, YES),
    ("jira/get_*", JIRA, True, YES),
    ("jira/*", JIRA, True, YES),
    ("*/*", JIRA, True, YES),
    ("j*/*issue", JIRA, True, YES),
    ("jira/delete*", JIRA, False, NO),
    ("jira", JIRA, False, YES),
    ("jir", JIRA, False, NO),
    ("jira*", JIRA, False, YES),
    ("get_issue", JIRA, False, NO),
    ("*", JIRA, False, YES),
    ("notes/*", BOTH, False, YES),
    ("notes*/*", BOTH, True, YES),
    ("notes_read/delete", BOTH, False, YES),
    ("bash", BUILT_IN, True, YES),
    ("ba*", BUILT_IN, True, YES),
    ("*", BUILT_IN, True, YES),
    ("bash/*", BUILT_IN, False, NO),
    ("*/*", BUILT_IN, False, NO),
    ("Bash", BUILT_IN, False, MAYBE),
    ("JIRA", JIRA, False, MAYBE),
    ("Jira/Get*", JIRA, False, MAYBE),
    ("Jira/Set*", JIRA, False, NO),
]


@pytest.mark.parametrize(("pattern", "tool", "surely", "widely"), NAMES)
def test_every_split_must_match_for_allow_and_one_for_deny(
    pattern: str, tool: Tool, surely: bool, widely: Truth
) -> None:
    compiled = ToolPattern.compile(pattern)
    assert compiled.sure(tool) is surely
    assert compiled.maybe(tool, widen=True) is widely


def test_inside_unless_a_bare_name_is_a_built_in_tool() -> None:
    assert ToolPattern.compile("jira").maybe(JIRA, widen=False) is NO
    assert ToolPattern.compile("bash").maybe(BUILT_IN, widen=False) is YES


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("", "empty"),
        (" x", "blank"),
        ("mcp__jira__get", "server/tool"),
        ("Bash(git *)", "input"),
        ("!jira/*", "unless"),
        ("re:x", "server/tool"),
        ("/x.*/", "server/tool"),
        ("jira/", "server/*"),
        ("/x", "server/*"),
    ],
)
def test_a_foreign_pattern_is_an_error_that_says_what_to_write(pattern: str, advice: str) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        ToolPattern.compile(pattern)


# table, arguments, surely, widely
ARGUMENTS: list[tuple[dict[str, object], dict[str, object] | None, bool, Truth]] = [
    ({"branch": "release/*"}, {"branch": "release/a/b"}, True, YES),
    ({"branch": "release/*"}, {"branch": "main"}, False, NO),
    ({"branch": "release/*"}, {}, False, NO),
    ({"branch": "release/*"}, None, False, MAYBE),
    ({"branch": "*"}, {"branch": "a\nb"}, True, YES),
    ({"branch": "*"}, {"branch": ""}, True, YES),
    ({"branch": "*"}, {"branch": 3}, False, YES),
    ({"branch": "*"}, {"branch": None}, False, NO),
    ({"branch": "a*b*c"}, {"branch": "a-b-c"}, True, YES),
    ({"branch": "a[x]"}, {"branch": "a[x]"}, True, YES),
    ({"branch": "?"}, {"branch": "x"}, False, NO),
    ({"n": 3}, {"n": 3}, True, YES),
    ({"n": 3}, {"n": 3.0}, True, YES),
    ({"n": 3}, {"n": "3"}, False, YES),
    ({"n": 3}, {"n": " 3.0 "}, False, YES),
    ({"n": 3}, {"n": "3x"}, False, NO),
    ({"n": "3"}, {"n": 3}, False, YES),
    ({"n": "3"}, {"n": 3.0}, False, YES),
    ({"n": 1}, {"n": True}, False, YES),
    ({"n": 2}, {"n": True}, False, NO),
    ({"b": True}, {"b": "True"}, False, YES),
    ({"b": True}, {"b": "yes"}, False, NO),
    ({"b": "true"}, {"b": True}, False, YES),
    ({"b": True}, {"b": True}, True, YES),
    ({"b": True}, {"b": 1}, False, YES),
    ({"b": True}, {"b": 0}, False, NO),
    ({"b": False}, {"b": None}, False, NO),
    ({"k": ["a", "b"]}, {"k": "b"}, True, YES),
    ({"k": ["a", 3]}, {"k": 3}, True, YES),
    ({"k": ["a", "b"]}, {"k": ["a", "b"]}, True, YES),
    ({"k": ["a", "b"]}, {"k": ["a", "c"]}, False, YES),
    ({"k": "a"}, {"k": ["c", ["a"]]}, False, YES),
    ({"k": "a"}, {"k": []}, False, NO),
    ({"k": "a"}, {"k": {"a": 1}}, False, NO),
    ({"k": "*DROP*"}, {"k": "drop table x"}, False, MAYBE),
    ({"k": "*drop*"}, {"k": "Drop table x"}, False, MAYBE),
    ({"k": "*DROP*"}, {"k": "select"}, False, NO),
    ({"k": "*DROP*"}, {"k": {"q": ["x", {"y": "DROP"}]}}, False, MAYBE),
    ({"k": "a"}, {"arguments": {"k": "a"}}, False, MAYBE),
    ({"k": "a"}, {"k": "b", "args": {"k": "A"}}, False, MAYBE),
    ({"k": "a"}, {"arguments": {"x": "a"}, "other": {"k": "a"}}, False, NO),
    ({"k": {"regex": "DROP.*"}}, {"k": {"q": "DROP x"}}, False, MAYBE),
    ({"k": True, "n": 1}, {"input": {"k": "TRUE"}, "n": 1}, False, MAYBE),
    ({"a.b": "x"}, {"a": {"b": "x"}}, True, YES),
    ({"a.b": "x"}, {"a.b": "x"}, True, YES),
    ({"a.b": "x"}, {"a.b": "x", "a": {"b": "y"}}, False, YES),
    ({"a.b": "x"}, {"a": [{"b": "x"}, {"b": "x"}]}, True, YES),
    ({"a.b": "x"}, {"a": [{"b": "x"}, {}]}, False, YES),
    ({"a.b": "x"}, {"a": [{"b": "x"}, 3]}, False, YES),
    ({"a.b.c": "x"}, {"a.b": {"c": "x"}}, True, YES),
    ({"a": "x", "b": "y"}, {"a": "x"}, False, NO),
    ({"a": "x", "b": "y"}, {"a": "x", "b": "y", "c": 1}, True, YES),
    ({"q": {"regex": "(?is)\\s*select\\b[^;]*"}}, {"q": "SELECT 1\nFROM x"}, True, YES),
    ({"q": {"regex": "(?is)\\s*select\\b[^;]*"}}, {"q": "SELECT 1; DROP"}, False, NO),
    ({"q": {"regex": "a"}}, {"q": "ab"}, False, NO),
    ({"q": {"regex": ".*"}}, {"q": 3}, False, YES),
    ({"q": {"regex": "a.b"}}, {"q": "a\ud800b"}, True, YES),
    ({"n": {"max": 1000}}, {"n": 1000}, True, YES),
    ({"n": {"max": 1000}}, {"n": 1001}, False, NO),
    ({"n": {"max": 1000}}, {"n": float("nan")}, False, NO),
    ({"n": {"max": 1000}}, {"n": True}, False, YES),
    ({"n": {"max": 1000}}, {"n": [1, 2000]}, False, YES),
]


@pytest.mark.parametrize(("table", "args", "surely", "widely"), ARGUMENTS)
def test_arguments_are_judged_by_key(
    table: dict[str, object], args: dict[str, object] | None, surely: bool, widely: Truth
) -> None:
    compiled = InputPattern.compile(table)
    assert compiled.sure(args) is surely
    assert compiled.maybe(args) is widely


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ({}, "empty"),
        ({"k": []}, "empty"),
        ({"k": {}}, "regex"),
        ({"k": {"min": 3}}, "regex"),
        ({"k": {"regex": "("}}, "RE2"),
        ({"k": {"regex": 3}}, "string"),
        ({"k": {"max": "3"}}, "number"),
        ({"k": {"max": True}}, "number"),
        ({"k": None}, "string"),
    ],
)
def test_a_value_that_cannot_be_meant_is_an_error(table: dict[str, object], advice: str) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        InputPattern.compile(table)


def test_hostile_arguments_are_answered_at_once() -> None:
    globs = InputPattern.compile({"k": "*a" * 200 + "b"})
    assert not globs.sure({"k": "a" * 1_000_000})
    expression = InputPattern.compile({"k": {"regex": "(a*)*b"}})
    assert not expression.sure({"k": "a" * 1_000_000})
    nested: object = "x"
    for _ in range(200):
        nested = [nested]
    assert InputPattern.compile({"k": "x"}).sure({"k": nested})


@pytest.mark.parametrize(
    "value",
    [
        ["a"] * (MOST_VALUES + 1),
        [["a"] * 100] * (MOST_VALUES // 100 + 1),
        ["a", ["a", ["a"] * MOST_VALUES]],
    ],
)
def test_more_values_than_are_looked_at_match_nothing_for_sure_and_everything_perhaps(value: object) -> None:
    pattern = InputPattern.compile({"branch": "a"})
    assert not pattern.sure({"branch": value}) and pattern.maybe({"branch": value}) is MAYBE
    assert InputPattern.compile({"branch": "a", "n": 1}).maybe({"branch": value, "n": 2}) is NO
