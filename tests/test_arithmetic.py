"""Numbers that are computed, and the lines that an error in them cuts short."""

from __future__ import annotations

import pytest

from policyd.commands import read
from policyd.commands.state.arithmetic import value
from tests.rowwise import in_groups

KNOWN = [
    ("1+2*3", 7), ("(1+2)*3", 9), ("7/2", 3), ("-7/2", -3), ("-7%3", -1), ("7%-3", 1), ("0x1F + 1", 32), (" 5 ", 5),
    ("2 - -3", 5), ("-(4)", -4), ("0", 0), ("10-2-3", 5), ("2*-3", -6),
]  # fmt: skip
UNKNOWN = [
    "", "1/0", "5%0", "08", "010", "0x", "1 2", "1+", "(1", "1)", "2**3", "1<<2", "3>2", "--1", "++1", "x",
    "0xg", "1;2",
    "99999999999999999999", "999999999999999999*999999999999999999", "1" * 300,
]  # fmt: skip


@in_groups(KNOWN)
def test_an_expression_over_numbers_has_its_value(text: str, expected: int) -> None:
    assert value(text) == expected


@in_groups((text,) for text in UNKNOWN)
def test_what_may_be_an_error_has_none(text: str) -> None:
    assert value(text) is None


@pytest.mark.parametrize(
    "text", ['p "$((2+3))"', "p $((2+3))", "x=2; p $((x+3))", "x=$((2+3)); p $x", "p $(( (2)+3 ))"]
)
def test_a_number_that_is_computed_is_a_word(text: str) -> None:
    assert [word.text for word in read(text, cwd=("/w",), home="/h").commands[-1].argv] == ["p", "5"]


CUTS = [
    ": $((1/0))", ": $((08))", ": $((1 2))", ": $[1/0]", "readonly y=1; y=2", "readonly y; y=(1)", ": ${y:0:-9}",
    ": ${y:08}", ": ${a[08]}", ": ${a[-5]}", "a[08]=1", ": ${y?}", ": ${y:?no}", "UID=3",
    "for f in 1; do : $((1/0)); done",
]  # fmt: skip


@in_groups((text,) for text in CUTS)
def test_behind_what_may_cut_a_line_short_nothing_that_is_set_is_sure(text: str) -> None:
    seen = read(f"x=1; {text}; x=2\np $x", cwd=("/w",), home="/h")
    assert seen.commands[-1].argv[1].text == "$x"


@in_groups((text,) for text in (": $((1/1))", ": ${y:0:2}", ": ${y:-b}", "a[0]=1", ": ${a[1]}", "readonly y=1"))
def test_behind_what_cannot_fail_it_is(text: str) -> None:
    seen = read(f"x=1; {text}; x=2\np $x", cwd=("/w",), home="/h")
    assert seen.commands[-1].argv[1].text == "2"
