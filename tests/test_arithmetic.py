"""Numbers that are computed, and the lines that an error in them cuts short."""

from __future__ import annotations

import pytest

from policyd.commands import read
from policyd.commands.lexing.quoting import SOME
from policyd.commands.state.arithmetic import changed, value
from tests.rowwise import in_groups

KNOWN = [
    ("1+2*3", 7), ("(1+2)*3", 9), ("7/2", 3), ("-7/2", -3), ("-7%3", -1), ("7%-3", 1), ("0x1F + 1", 32), (" 5 ", 5),
    ("2 - -3", 5), ("-(4)", -4), ("0", 0), ("10-2-3", 5), ("2*-3", -6), ("3 > 2", 1), ("1 + 1 < 2 * 1", 0),
    ("2 == 1 + 1 && !0", 1), ("0 || 3 >= 4", 0), ("!5 != 1", 1), ("i + 1", 6), ("2 -low", 5), ("$i*2", 10),
    ("${i}%3", 2),
]  # fmt: skip
HELD = {"i": "5", "low": "-3", "some": SOME}
"""What variables hold."""


def _held(name: str) -> str:
    return HELD.get(name, "")


UNKNOWN = [
    "", "1/0", "5%0", "08", "010", "0x", "1 2", "1+", "(1", "1)", "2**3", "1<<2", "1 = 1", "--1", "++1", "x",
    "0xg", "1;2", "1 ? 2 : 3", "0 && 1/0", "$i$i", "1$i", "2 -$low", "i[0]", "i i", "5/some", "5%some", "$some", "x1",
    "99999999999999999999", "999999999999999999*999999999999999999", "1" * 300,
]  # fmt: skip


@in_groups(KNOWN)
def test_an_expression_over_numbers_has_its_value(text: str, expected: int) -> None:
    assert value(text, _held) == str(expected)


@in_groups((text,) for text in UNKNOWN)
def test_what_may_be_an_error_has_none(text: str) -> None:
    assert value(text, _held) is None


@in_groups((text,) for text in ("some", "some + 1", "-some", "some * 0", "some / 2", "!some", "some < i", "i && some"))
def test_of_a_number_that_is_not_known_another_is_made(text: str) -> None:
    assert value(text, _held) == SOME


CHANGES = [
    ("i++", ("i", "6")), ("--i", ("i", "4")), ("i += 2 * 3", ("i", "11")), ("i -= -1", ("i", "6")),
    ("x = 4", ("x", "4")),
    ("x=i", ("x", "5")), ("i %= 3", ("i", "2")), ("some++", ("some", SOME)), ("i = some", ("i", SOME)),
    ("i < 3", ("", "")), ("i == 5", ("", "")), ("x++", None), ("x = y", None), ("i /= 0", None), ("i = j = 3", None),
    ("i[0] = 3", None), ("i = 1, x = 2", None), ("i <<= 1", None), ("i++ + 1", None), ("$i++", None),
    ("i = $(a)", None),
    ("x += 1", None), ("", None),
]  # fmt: skip


@in_groups(CHANGES)
def test_what_an_expression_sets_is_known_or_not_understood(text: str, expected: tuple[str, str] | None) -> None:
    assert changed(text, _held) == expected


NUMBERS = [
    "n=$(a | wc -l); p $((n + 1))", "n=$(wc -l < f); if ((n > 3)); then p; fi", "n=$(grep -c x f); [[ $n -gt 3 ]]",
    "t=0; for f in *.q; do n=$(wc -l < g); t=$((t + n)); done; p $t", "for f in *.q; do n=5; p $((n + 1)); done",
    "[[ $# -gt 1 && $? -eq 0 ]]", "x=5; [[ $x -lt 3 || x -gt x+1 ]]",
    "i=0; while [[ \"$i\" -lt 3 ]]; do ((i++)); done",
    "[[ -f a && ( 3 -lt 4 ) ]]", "(($# > 1)) && p $(($# - 1))",
    "i=1; ((i++)); p $i", "i=1; let i++ 'j = i + 3'; p $j", "i=1; ((i += 2 * i)); p $i",
    "i=1; ((i)) || p; p $((i + 1 > 1))",
    "i=0; for f in a b; do ((i++)); done; p $i", "i=-3; i=$((i+4)); p $i",
    "i=0; while read f; do i=$((i+1)); done; p $i", "i=0; for f in *.q; do ((i += 2)); p $i; done",
    "i=0; while ((i < 3)); do p $i; let i++; done", "i=1; if a; then i=2; fi; p $((i * 2))",
]  # fmt: skip
UNSURE = [
    "n=$(wc); ((n))", "n=$((…)); ((n))",
    "n=$(wc -l f); ((n))", "n=$(a; wc -l); ((n))", "n=$(a | wc -l > f); ((n))", "n=$(a | wc -l)x; ((n))",
    "n=$(a && wc -l); ((n))", "n=$(grep -c x f g); ((n))", "n=$(grep -c x *); ((n))", "n=$(a | wc -l; b); ((n))",
    "n=$(a | wc -l &); ((n))", "wc() { b; }; n=$(a | wc -l); ((n))",
    "n=$(a | wc -l | b); ((n))", "n=$(wc -l $f); ((n))",
    "n=5; while a; do ((n)); [ b ] && break; n=$(c); done", "x=1; while a; do ((x)); declare x\"\"=$y; done",
    "a=1; b=1; c=$x; while d; do ((a)); declare a''=$b b''=$c; done",
    "[[ $x -lt 3 ]]", "[[ x -lt 3 ]]", "x=a; [[ $x -lt 3 ]]", "[[ -v x ]]", "[[ 3 -v 4 ]]", "[[ 1 -eq a[2] ]]",
    "[[ 08 -eq 1 ]]", "x=08; [[ $x -eq 1 ]]", "[[ 1 -eq 2 -eq a ]]", "x=1; [[ $x$y -eq 1 ]]", "[[ $(a) -eq 1 ]]",
    "((x++))", "x='a[$(b)]'; while false; do x=5; done; : $((x))", "x='a[$(b)]'; for f in $n; do x=5; done; ((x))",
    "x='a[$(b)]'; while a; do break; x=5; done; let y=x", "x=1; read x; ((x))", "x=1; x=$(a); ((x))",
    "x=1; x=1$y; ((x))",
    "i=0; j=0; while a; do : $((j)); j=$i; i=$(b); done", "x=1; for x in $y; do ((x)); done", "x=1; unset x; ((x))",
    "x=5; x=08; ((x++))", "x=1; declare -i x; ((x++))", "x=1; [ a ] && x=b; ((x))", "IFS=1; ((x))", "((x=y))",
    "sh -c '((x=1))'", "sh -c 'let x=1'", "x=1; eval \"x=$y\"; ((x))", "x=1; printf -v x %s a; ((x))", "let 'x[1]=2'",
]  # fmt: skip


@in_groups((text,) for text in NUMBERS)
def test_a_number_that_is_counted_runs_nothing(text: str) -> None:
    found = read(text, cwd=("/w",), home="/h")
    assert not found.opaque
    assert all(not word.many for command in found.commands for word in command.argv)


@in_groups((text,) for text in UNSURE)
def test_what_may_be_no_number_is_not_evaluated_without_a_word(text: str) -> None:
    assert read(text, cwd=("/w",), home="/h").opaque


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
