"""Grants as TOML: what is written reads back the same, and damage never leaves an allow."""

from __future__ import annotations

import random
import re
import tomllib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd.grants import Grant, Key, Loaded, dump, load
from policyd.grants import text as grants_text
from policyd.grants.grant import grant_id
from policyd.model import Effect
from tests.asking import ASKED, CLOCK, GRANTS, NOW, PROJECT, grant

DENIALS = tuple(one for one in GRANTS if one.effect is Effect.DENY)

EFFECTS = (Effect.ALLOW, Effect.DENY)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
some_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))


@st.composite
def keys(draw: st.DrawFn) -> Key:
    """Any key a grant may hold."""
    kinds = tuple(sorted(draw(st.sets(some_text, min_size=1, max_size=2))))
    resource = draw(st.sampled_from(["command", "path", "url", "tool"]))
    if resource == "command":
        env = draw(st.lists(st.tuples(st.from_regex(r"[A-Z_]{1,5}", fullmatch=True), any_text), max_size=2))
        return Key(
            kinds,
            resource,
            tuple(draw(st.lists(any_text, min_size=1, max_size=4))),
            cwd=tuple(sorted(draw(st.sets(some_text, min_size=1, max_size=2)))),
            env=tuple(env),
            via=tuple(draw(st.lists(some_text, max_size=1))),
            fed=draw(st.sampled_from(["", "|", "abc"])),
        )
    words = tuple(sorted(draw(st.sets(some_text, min_size=1, max_size=2))))
    if resource == "tool":
        return Key(kinds, resource, words, arguments=draw(some_text))
    return Key(kinds, resource, words, reach="content" if resource == "path" and draw(st.booleans()) else "entry")


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    """Any grant."""
    created, known = draw(times), draw(st.booleans())
    scope, effect = draw(st.sampled_from(["session", "project", "user"])), draw(st.sampled_from(list(EFFECTS)))
    agent, members = draw(some_text), tuple(draw(st.lists(keys(), min_size=1, max_size=3)))
    session = draw(some_text) if scope == "session" else ""
    return Grant(
        id=grant_id(effect, scope, agent, members, session),
        effect=effect,
        scope=scope,
        agent=agent,
        members=members,
        covers=draw(any_text),
        created=created,
        until=created + timedelta(seconds=draw(st.integers(1, 10**7)), microseconds=draw(st.integers(0, 999_999))),
        boot=draw(st.floats(0, 1e9)) if known else None,
        boot_id="b" if known else "",
        session=session,
        run=draw(some_text) if scope == "session" else "",
        by=draw(any_text),
        client=draw(any_text),
    )


@given(st.lists(grants(), max_size=4, unique_by=lambda one: one.id))
@settings(max_examples=150)
def test_grants_round_trip(written: list[Grant]) -> None:
    text = dump(written, PROJECT, NOW)
    assert load(text) == Loaded(tuple(written), PROJECT, NOW)
    assert len(tomllib.loads(text).get("grant", [])) == len(written), "and it is TOML"


def both_texts(one: Grant) -> tuple[str, str]:
    """Return what the quick writer writes of a grant, empty where it leaves it, and what the other one writes."""
    table = grants_text._grant_table(one)
    return grants_text._usual_text(table), grants_text._any_text(table)


@given(grants())
@settings(max_examples=150)
def test_the_quick_writer_writes_what_the_other_one_writes(one: Grant) -> None:
    quick, other = both_texts(one)
    assert quick in ("", other)


def test_the_quick_writer_is_for_usual_grants() -> None:
    told = [both_texts(one) for one in GRANTS]
    assert sum(bool(quick) for quick, _ in told) >= 6
    assert all(quick in ("", other) for quick, other in told)


def test_the_quick_reader_reads_what_the_parser_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    text = dump(GRANTS, PROJECT, NOW)
    quick = sum(grants_text.usual().fullmatch(piece) is not None for piece in text.split(grants_text.BREAK)[1:])
    assert quick >= 6
    found = load(text)
    monkeypatch.setattr(grants_text, "usual", lambda: re.compile(r"(?!)"))
    grants_text._read.cache_clear()
    assert load(text) == found == Loaded(GRANTS, PROJECT, NOW)


def test_a_file_is_conditions_of_the_policy_language_with_everything_literal() -> None:
    table = tomllib.loads(dump([grant(ASKED["an odd word"])], PROJECT, NOW))["grant"][0]["rule"][0]
    assert table["kind"] == ["execute"]
    assert table["command"] == "echo 'it'\\''s $HOME * \n ✓' ''"
    assert table["cwd"] == ["."]
    path = tomllib.loads(dump([grant(ASKED["an edit"])], PROJECT, NOW))["grant"][0]["rule"][0]
    assert path == {"kind": ["edit"], "path": ["src/a.py"]}


GOOD = dump([grant(ASKED["a command"])], PROJECT, NOW)
WRONG = {
    "an unknown key": ('scope = "project"', 'scope = "project"\nextra = 1'),
    "another effect": ('effect = "allow"', 'effect = "ask"'),
    "an upper-case effect": ('effect = "allow"', 'effect = "ALLOW"'),
    "another scope": ('scope = "project"', 'scope = "everywhere"'),
    "no agent": ('agent = "claude-code"', 'agent = ""'),
    "an agent of another type": ('agent = "claude-code"', "agent = true"),
    "another id": ('id = "g-', 'id = "h-'),
    "a time without an offset": ("created = 2026-11-29 12:00:00+00:00", "created = 2026-11-29 12:00:00"),
    "a date": ("created = 2026-11-29 12:00:00+00:00", "created = 2026-11-29"),
    "the end before the beginning": ("until = 2026-12-29", "until = 2026-10-29"),
    "a time out of range": ("created = 2026-11-29 12:00:00+00:00", "created = 0001-01-01 00:00:00+23:59"),
    "a command that is a pattern": ('command = "npm test"', 'command = "npm *"'),
    "a command with a brace": ('command = "npm test"', 'command = "npm {test,publish}"'),
    "a command of another type": ('command = "npm test"', 'command = ["npm test"]'),
    "an empty command": ('command = "npm test"', 'command = ""'),
    "a set": ('command = "npm test"', 'command = "@test-runners"'),
    "an unknown condition": ('command = "npm test"', 'command = "npm test"\nunless = "x"'),
    "two resources": ('command = "npm test"', 'command = "npm test"\npath = ["a"]'),
    "no resource": ('command = "npm test"\n', ""),
    "more beside a command": ('command = "npm test"', 'command = "npm test"\nmore = true'),
    "a key twice": ('command = "npm test"', 'command = "npm test"\ncommand = "npm test"'),
    "a future version": ("version = 1", "version = 2"),
    "no version": ("version = 1", ""),
    "an unknown header": ("version = 1", "version = 1\nallow_all = true"),
    "no project": ("[project]", "[other]"),
    "no clock": ("[clock]", "[clocks]"),
    "a clock without an offset": ("seen = 2026-11-29 12:00:00+00:00", "seen = 2026-11-29 12:00:00"),
    "a device of another type": ("device = 2049", 'device = "2049"'),
    "an infinite boot clock in words": ("boot = 1000.0", 'boot = "inf"'),
    "a boolean boot clock": ("boot = 1000.0", "boot = true"),
    "an immense boot clock": ("boot = 1000.0", f"boot = 1{'0' * 400}"),
    "a grant that is no table": ("[[grant]]", "grant = 1\n[[grants]]"),
    "a session grant without a session": ('scope = "project"', 'scope = "session"'),
    "a NUL": ('agent = "claude-code"', 'agent = "claude-code\0"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_exactly_a_grant_is_damage(name: str) -> None:
    old, new = WRONG[name]
    assert old in GOOD
    found = load(GOOD.replace(old, new, 1))
    assert found.damage
    assert found.grants == ()


def test_a_tool_needs_its_arguments_or_the_word() -> None:
    text = dump([grant(ASKED["a tool"])], PROJECT, NOW)
    line = next(line for line in text.splitlines() if line.startswith("arguments"))
    assert "arguments, or" in load(text.replace(line, "")).damage[0]
    assert "arguments, or" in load(text.replace(line, f"{line}\nmore = true")).damage[0]


def test_one_damaged_allow_voids_every_allow_and_no_denial() -> None:
    text = dump(GRANTS, PROJECT, NOW)
    broken = text.replace('effect = "allow"', 'effect = "maybe"', 1)
    assert load(broken).grants == DENIALS


def test_an_id_that_occurs_twice_is_damage() -> None:
    once = grant(ASKED["a command"])
    assert load(dump([once, once], PROJECT, NOW)).damage


@pytest.mark.parametrize("cut", [0.05, 0.3, 0.5, 0.9, 0.99])
def test_of_a_truncated_file_denials_before_the_cut_stay(cut: float) -> None:
    text = dump(DENIALS, PROJECT, NOW)
    found = load(text[: int(len(text) * cut)])
    assert found.damage
    assert set(found.grants) <= set(DENIALS)
    assert len(found.grants) >= int(len(DENIALS) * cut) - 1


def test_no_damage_ever_makes_or_changes_an_allow() -> None:
    dice = random.Random(4)  # noqa: S311 - a repeatable table
    text, known = dump(GRANTS, PROJECT, NOW), {(one.id, one.agent, one.members) for one in GRANTS}
    for _ in range(400):
        at, to = sorted(dice.randrange(len(text)) for _ in range(2))
        piece = dice.choice(["", "\0" * 8, "x", '"', "\n[[grant]]\n", "[", "= 1\n", text[at : to + 3], "💥"])
        damaged = text[:at] + piece + text[to if dice.random() < 0.5 else at :]
        found = load(damaged)
        allows = [one for one in found.grants if one.effect is Effect.ALLOW]
        assert not (allows and found.damage)
        assert {(one.id, one.agent, one.members) for one in allows} <= known, piece


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = load(text)
    assert found.damage
    assert found.grants == ()


def test_immense_and_deeply_nested_files_are_damage() -> None:
    deny = dump([grant(ASKED["a command"], effect=Effect.DENY)], PROJECT, NOW)
    assert load(deny + "#" * grants_text.LONGEST_TEXT).damage
    assert load(deny + "#" * grants_text.LONGEST_TEXT).grants
    assert load(deny + "\nx = " + "[" * 100_000).damage


def test_a_grant_that_was_read_holds_like_the_one_that_was_written() -> None:
    (again,) = load(GOOD).grants
    assert again.alive(CLOCK)
    assert again == grant(ASKED["a command"])
