"""`policyd audit stats` and `replay`, the filters all commands share, and records read back as requests."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from policyd import audit
from policyd.actions import Machine
from policyd.audit import rebuild
from policyd.audit.actionrows import action_row
from policyd.authorizer import Authorizer
from policyd.cli import main
from policyd.cli.audit import cases, replay, show
from policyd.cli.audit import stats as counted
from policyd.cli.suggest.log import collect
from policyd.model import Action, Assignment, Mode, PathRef, Reach, Role, SimpleCommand, Tool, Word, WordKind
from policyd.storage import auditchain
from policyd.storage.auditlog import AuditLog
from tests.audited import CAPTURES, GROUND, HOME, START, Day, careful, delete, edit, policy, read, swap
from tests.fakes import FakeFilesystem
from tests.recorded import results_of

POLICY = (
    GROUND
    + """
read = "allow"
outside = "deny"
[[rule]]
id = "status"
effect = "allow"
command = ["@git-read", "@read-only", "touch **"]
[[rule]]
id = "secrets"
effect = "deny"
path = ["@secrets"]
[[rule]]
id = "edits"
effect = "allow"
kind = "@write"
path = "**"
unless = { path = "@auto-run" }
[[rule]]
id = "old"
effect = "allow"
kind = "fetch"
url = "*.example.com"
until = 2026-11-02T10:00:00Z
"""
)


def run(log: Path, *words: str) -> int:
    """Run `policyd audit WORDS` on a log."""
    return main(["audit", words[0], "--log", f"{log}/", "--home", HOME, *words[1:]])


def out(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all recorded agents asked under a policy with rules, answered by a careful person."""
    path = tmp_path_factory.mktemp("log")
    Day(AuditLog(f"{path}/"), careful, rules=policy(POLICY)).captured()
    (path / "same.toml").write_text(POLICY)
    (path / "loose.toml").write_text('version = 1\n[defaults]\n"*" = "allow"\n')
    (path / "strict.toml").write_text('version = 1\n[[rule]]\nid = "no"\neffect = "deny"\nkind = "*"\n')
    return path


def replayed(log: Path, name: str, *words: str) -> int:
    return run(log, "replay", "--policy", str(log / name), "--no-managed", "--json", *words)


# ---- records read back -----------------------------------------------------------------------------


def told(action: Action) -> Action:
    """What a record tells of an action."""

    def plain(one: SimpleCommand | None) -> SimpleCommand | None:
        if one is None:
            return None
        return replace(one, text="", inner=plain(one.inner), far=tuple(filter(None, map(plain, one.far))))

    args = action.args if action.tool else None
    return replace(action, origin="", whole="", command=plain(action.command), args=args)


def test_what_real_agents_asked_is_read_back_whole() -> None:
    unread, rules = [], policy(POLICY)
    for path in CAPTURES:
        for row in path.read_text("utf-8").splitlines():
            case = json.loads(row)
            point = Authorizer(rules, machine=Machine(home=HOME, fs=FakeFilesystem()))
            for found in results_of(point, case["lines"], START):
                context = point.context(found.request.session_id, START)
                line = audit.line(
                    audit.body(audit.record(found.decision, found.request, context, id="x")), 1, audit.FIRST
                )
                try:
                    back = rebuild.request(json.loads(line))
                except rebuild.Undecidable as error:
                    unread.append((case["case"], str(error)))
                    continue
                assert tuple(map(told, back.actions)) == tuple(map(told, found.request.actions)), case["case"]
                assert [o.kind for o in back.options] == [o.kind for o in found.request.options]
                assert (back.menu, back.plain) == (found.request.menu, found.request.plain)
    assert {why for _, why in unread} <= {"too long: the record holds a part of it", "it holds no action"}
    assert len(unread) < 5


NAMES = st.text("abc=/ -$*é", min_size=1, max_size=6)
WORDS = st.builds(Word, NAMES, st.sampled_from(WordKind), st.just(""), st.just(False)) | st.builds(
    Word, NAMES, st.just(WordKind.UNKNOWN), NAMES, st.booleans()
)
SETS = st.builds(Assignment, st.text("ABC_", min_size=1, max_size=3), WORDS, st.booleans())
PATHS = st.builds(
    PathRef,
    NAMES,
    st.lists(NAMES.map("/".__add__), min_size=1, max_size=3, unique=True).map(tuple),
    st.sampled_from(Reach),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
TEXTS = st.lists(NAMES, max_size=3).map(tuple)
PLAIN = st.builds(
    SimpleCommand,
    argv=st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    text=st.just(""),
    env=st.lists(SETS, max_size=2).map(tuple),
    taint=st.lists(SETS, max_size=2).map(tuple),
    tainted=st.sampled_from(["", "alias"]),
    cwd=TEXTS,
    via=TEXTS,
    chdir=st.none() | NAMES,
    idle=st.booleans(),
    strict_only=st.booleans(),
    fed=st.sampled_from(["", "|", "text"]),
)
COMMANDS = st.builds(replace, PLAIN, inner=st.none() | PLAIN, far=st.lists(PLAIN, max_size=2).map(tuple))
ARGS = st.none() | st.dictionaries(NAMES, st.integers(-9, 9) | NAMES | st.lists(NAMES, max_size=2), max_size=3)
TOOLS = st.builds(Tool, NAMES, st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple))
ACTIONS = st.builds(
    Action,
    kinds=st.frozensets(st.sampled_from(["read", "edit", "execute", "other", "_mine"]), max_size=3),
    role=st.sampled_from(Role),
    cwd=TEXTS,
    cwd_inside=st.booleans(),
    strays=TEXTS,
    within=st.lists(st.none() | PATHS, max_size=2).map(tuple),
    carrier=st.none() | st.integers(0, 3),
    escalate=st.sampled_from(["", "sandbox"]),
    guarded=st.sampled_from(["", "files"]),
    opaque=st.sampled_from(["", "why"]),
    idle=st.booleans(),
    mcp=st.booleans(),
    mode=st.none() | st.builds(Mode, NAMES, st.booleans(), st.booleans()),
)


@given(ACTIONS, PATHS, COMMANDS, TOOLS, ARGS, st.sampled_from(["path", "command", "tool", ""]))
def test_any_action_is_read_back_as_it_was(
    action: Action,
    path: PathRef,
    simple: SimpleCommand,
    tool: Tool,
    args: Mapping[str, object] | None,
    resource: str,
) -> None:
    held: dict[str, Any] = {
        "path": {"path": path},
        "command": {"command": simple},
        "tool": {"tool": tool, "args": args},
    }
    whole = replace(action, **held.get(resource, {}), cwd_inside=action.cwd_inside and bool(action.cwd))
    row = json.loads(json.dumps(action_row(whole)))
    assert told(rebuild.action(row, None)) == told(whole)


ALTERED = (
    {"command": ["curl", "-H", "[masked:authorization]"]},
    {"command": ["echo", "a[cut 900 characters]b"]},
    {"command": ["echo", "[12 more]"]},
    {"path": "/w/\ufffd"},
    {"tool": "a/b", "input": {"key": "[masked:secret-value]"}},
    {"tool": "a/b", "input": {"[masked:github-token]": 1}},
)


@pytest.mark.parametrize("fields", ALTERED, ids=str)
def test_what_was_masked_or_cut_is_not_guessed(fields: dict[str, object]) -> None:
    row = {"kind": "execute", "role": "primary", **fields}
    with pytest.raises(rebuild.Undecidable):
        rebuild.request({"event": "decision", "actions": [row]})


DAMAGED: tuple[object, ...] = (
    {"actions": []},
    {"actions": "none"},
    {"actions": [{"kind": 3, "role": "primary"}]},
    {"actions": [{"kind": "read", "role": "king"}]},
    {"actions": [{"kind": "execute", "role": "primary", "command": ["a"], "marks": [[7, "glob", "", False]]}]},
    {"actions": [{"kind": "execute", "role": "primary", "command": ["a"], "env": ["A=1"], "env_marks": [[[], 1]]}]},
    {"actions": [{"kind": "fetch", "role": "primary", "url": "https://a\\b"}]},
    {"actions": [{"kind": "read", "role": "primary", "path": "a"}], "whole": "sha256:0"},
    {"actions": [7]},
    {"actions": [{"kind": "read", "role": "primary", "path": "/a"}], "agent": "claude"},
)


@pytest.mark.parametrize("row", DAMAGED, ids=str)
def test_a_record_that_cannot_be_read_is_undecidable(row: dict[str, object]) -> None:
    with pytest.raises(rebuild.Undecidable):
        cases.case({"event": "decision", "time": "2026-11-02T10:00:00Z", "cwd": "/w", "agent": {"name": "a"}, **row})


# ---- replay ----------------------------------------------------------------------------------------


def test_the_same_rules_decide_the_same(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(log, "same.toml", "--exit-code") == 1  # what is too long cannot be decided
    *rows, whole = out(capsys)
    changed = [row for row in rows if "now" in row]
    assert all(row["looked"] and row["now"] == "ask" for row in changed)  # the files that were searched are not here
    assert whole["changed"] == len(changed) < whole["same"] / 100 and whole["same"] > 400
    assert {row["undecidable"] for row in rows if row not in changed} == {"too long: the record holds a part of it"}


def test_every_decision_that_changes_is_told_with_what_decides_now(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(log, "strict.toml") == 0
    *rows, whole = out(capsys)
    changes = [row for row in rows if "now" in row]
    then = [
        record for record in read(log / "audit.jsonl") if record["effect"] != "deny" or record["source"] == "prompt"
    ]
    assert len(changes) == whole["changed"] and whole["looser"] == 0
    assert {row["now"] for row in changes} == {"deny"} and changes[0]["rules_now"] == ["user:no"]
    switches = sum(record["kind"] == "switch_mode" for record in then)  # `*` is all but these
    assert len(then) - whole["undecidable"] - switches <= whole["changed"] <= len(then) - switches


def test_what_becomes_looser_is_marked_and_comes_first(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(log, "loose.toml") == 0
    whole = out(capsys)[-1]
    assert whole["looser"] > 0
    assert run(log, "replay", "--policy", str(log / "loose.toml"), "--no-managed") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("! ") and "to something looser (!)" in "\n".join(lines)


HIDDEN = (
    '[[rule]]\nid = "h"\neffect = "deny"\nkind = "edit"\npath = "**"\ninput = { "mode" = "x" }\n',
    '[[rule]]\nid = "h"\neffect = "deny"\nkind = "edit"\npath = "**"\ngroup = "wheel"\n',
)


@pytest.mark.parametrize("rule", HIDDEN)
def test_a_rule_on_what_records_do_not_hold_leaves_its_requests_undecided(
    log: Path, capsys: pytest.CaptureFixture[str], rule: str
) -> None:
    (log / "hidden.toml").write_text(POLICY + rule)
    assert replayed(log, "hidden.toml", "--kind", "edit") == 0
    *rows, whole = out(capsys)
    assert whole["undecidable"] > 100 and whole["changed"] == 0
    why = {row["undecidable"] for row in rows} - {"too long: the record holds a part of it"}
    assert why == {"user:h looks at facts that are not recorded"}


def test_a_broken_policy_replays_nothing(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log / "broken.toml").write_text("version = 1\n[[rule]]\nid = 3\n")
    assert replayed(log, "broken.toml") == 2
    assert "broken.toml" in capsys.readouterr().err


# ---- stats -----------------------------------------------------------------------------------------


def test_stats_count_by_rule_kind_and_day(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(log, "stats", "--json") == 0
    (said,) = out(capsys)
    rows: list[dict[str, Any]] = list(read(log / "audit.jsonl"))
    prompts = [row for row in rows if row["source"] == "prompt"]
    assert (said["decisions"], said["prompts"]) == (len(rows), len(prompts))
    assert said["approved"] == sum(row["effect"] == "allow" for row in prompts)
    assert said["rules"]["user:secrets"]["deny"] > 0 and said["rules"]["user:secrets"]["prompts"] == 0
    edits = [row for row in rows if '"edit"' in json.dumps(kinds_of(row))]
    assert said["kinds"]["edit"]["decisions"] == len(edits)
    assert said["latency_ms"]["policy"] == {"p50": 0.2, "p99": 0.2, "count": len(rows) - len(prompts)}
    assert said["latency_ms"]["people"]["p50"] == 1500.0
    assert said["prompts_a_day"] == len(prompts) / len({row["time"][:10] for row in rows})


def kinds_of(row: dict[str, Any]) -> list[object]:
    return [[one["kind"], one.get("kinds")] for one in row["actions"]]


def answered(number: int, effect: str, **fields: object) -> dict[str, object]:
    time = (START + timedelta(hours=number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    row: dict[str, object] = {"event": "decision", "time": time, "effect": effect, "source": "prompt", "by": "client"}
    return {**row, "outcome": "selected", "latency_ms": float(number), **fields}


FLAGS = ((50, 0, True), (49, 0, False), (48, 2, True), (47, 3, False), (95, 5, False), (96, 4, True))


@pytest.mark.parametrize(("yes", "no", "flagged"), FLAGS)
def test_questions_that_are_clicked_away_are_flagged(yes: int, no: int, flagged: bool) -> None:
    stats = counted.Stats()
    for number in range(yes + no):
        stats.add(answered(number, "allow" if number < yes else "deny", rules=[{"rule": "user:ask"}]))
    assert stats.total.tired is flagged is stats.rules["user:ask"].tired
    assert any("clicked away" in line for line in counted.lines(stats)) is flagged


NO_PROMPTS: tuple[dict[str, object], ...] = (
    {"by": "policyd"},
    {"by": "machine"},
    {"by": "policy"},
    {"outcome": "cancelled"},
    {"source": "grant", "by": "grant"},
    {"source": "rule", "by": "policy"},
)


@pytest.mark.parametrize("fields", NO_PROMPTS, ids=str)
def test_only_what_a_person_answered_is_a_prompt(fields: dict[str, object]) -> None:
    stats = counted.Stats()
    stats.add(answered(1, "allow", **fields))
    stats.add(answered(2, "allow", by="command:/usr/bin/ask"))
    assert stats.total.prompts == 1 and stats.total.decisions == 2


def test_latencies_are_by_nearest_rank_and_unasked_calls_are_listed() -> None:
    stats = counted.Stats()
    for number in range(200):
        stats.add(answered(number, "allow"))
    stats.add({"event": "decision", "unasked": True, "title": "rm\x1b[2J", "seq": 9, "time": "2026-11-02"})
    stats.add({"event": "gap", "lost": 3})
    stats.add(
        answered(100, "deny", by="policyd", latency_ms=600_000.0)
    )  # nobody answered: policyd was not slow, nor a person
    said = counted.facts(stats)
    assert said["latency_ms"] == {
        "policy": {"p50": None, "p99": None, "count": 0},
        "people": {"p50": 100.0, "p99": 198.0, "count": 200},
    }
    text = "\n".join(counted.lines(stats))
    assert "1 calls that policy denies ran" in text and "\x1b" not in text and "1 gap" in text
    assert stats.total.decisions == 201 and said["prompts_a_day"] == round(200 / len(stats.days), 2)


def test_stats_of_nothing_are_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audit.jsonl").write_bytes(b"no record\n[1]\n")
    assert run(tmp_path, "stats") == 0
    assert capsys.readouterr().out.startswith("0 decisions on 0 days")


# ---- filters ---------------------------------------------------------------------------------------

FILTERS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--project", "/home/dev"), "a b"),
    (("--project", "/home/dev/a"), "a"),
    (("--project", "/home/de"), ""),
    (("--until", "2026-11-02T11:00:00+00:00"), "a"),
    (("--since", "2026-11-02T11:00:00+00:00", "--until", "2026-11-02T11:30:00+00:00"), "b"),
    (("--since", "2026-11-02T11:00:00+00:00"), "b c"),
    (("--effect", "deny", "--agent", "gemini"), "c"),
    (("--rule", "user:x"), "b"),
    (("--kind", "edit"), "a"),
)


@pytest.mark.parametrize(("words", "wanted"), FILTERS, ids=str)
@pytest.mark.parametrize("what", ["show", "stats", "replay", "suggest"])
def test_every_command_takes_the_same_filters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, words: tuple[str, ...], wanted: str
) -> None:
    hand = AuditLog(f"{tmp_path}/")
    rows = {
        "a": answered(1, "allow", cwd="/home/dev/a", actions=[{"kind": "read", "kinds": ["read", "edit"]}]),
        "b": answered(2, "allow", cwd="/home/dev/b", rules=[{"rule": "user:x"}]),
        "c": answered(3, "deny", cwd="/srv/c", agent={"name": "g", "profile": "gemini"}),
    }
    for name, row in rows.items():
        hand.append({**row, "title": name}, START)
    ours = ("--no-managed", "--no-project", "--policy", str(tmp_path)) if what in {"replay", "suggest"} else ()
    assert run(tmp_path, what, "--json", *ours, *words) == 0
    said = out(capsys)
    if what == "show":
        assert " ".join(row["title"] for row in said) == wanted
    elif what == "replay":
        assert len(said) - 1 == len(wanted.split())
    else:
        assert said[-1]["prompts"] == len(wanted.split())


@pytest.mark.parametrize("words", [("--since", "soon"), ("--until", "2h3"), ("--since", "99999999999d")])
def test_a_time_that_is_none_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "show", *words)
    assert ended.value.code == 2 and "write 30m, 2h, 7d" in capsys.readouterr().err


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["allow", "deny", "prompt", "rule", "", "/w", "\0"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["rule", "kind", "path"]), inner),
    max_leaves=5,
)
FIELDS = [
    "effect",
    "source",
    "by",
    "outcome",
    "time",
    "cwd",
    "roots",
    "agent",
    "user",
    "labels",
    "mode",
    "actions",
    "rules",
    "matched",
    "latency_ms",
    "door",
]


WHOLE = {
    "event": "decision",
    "time": "2026-11-02T10:00:00Z",
    "agent": {"name": "a"},
    "actions": [{"kind": "read", "role": "primary", "path": "/a"}],
}


@cache
def replayer() -> cases.Replayer:
    """Return what decides again under no rules at all."""
    layers: dict[str, object] = {
        "policy": [],
        "policy_digest": [],
        "managed": None,
        "no_managed": True,
        "no_project": True,
    }
    return cases.Replayer(Namespace(home="/nonexistent", **layers))


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_record_however_damaged_ends_a_command(fields: dict[str, object]) -> None:
    record = {"event": "decision", **fields}
    stats = counted.Stats()
    stats.add(record)
    list(counted.lines(stats))
    collect([record], lambda each: True)
    for case in cases.cases([record, {**WHOLE, **fields}]):
        if isinstance(case, cases.Case):
            with suppress(rebuild.Undecidable):
                replayer().decide(case)
    with suppress(rebuild.Undecidable):
        replay.rules_effect(record)
    list(show.in_words(record))


# ---- the chain -------------------------------------------------------------------------------------


def repeat(lines: list[bytes], at: int) -> None:
    lines.insert(at, lines[at])


def renumber(lines: list[bytes], at: int) -> None:
    lines.insert(at, lines[at].replace(b'"seq":', b'"seq":1'))


@pytest.mark.slow
@pytest.mark.parametrize("change", [edit, delete, swap, repeat, renumber])
def test_every_edit_deletion_swap_and_insertion_in_ten_thousand_lines_is_found(
    change: Callable[[list[bytes], int], None],
) -> None:
    """A line is tied to its neighbours only: what surrounds each of the 10 000 is checked, and where the log ends."""
    lines, ends = [], [auditchain.Head()]
    for number in range(1, 10_001):
        line = audit.line(
            audit.body({"event": "decision", "effect": "allow", "title": f"run {number}"}), number, ends[-1].prev
        )
        lines.append(line)
        ends.append(auditchain.Head(number, audit.digest(line)))
    for at in range(10_000):
        first = max(0, at - 2)
        around, end, found = lines[first : at + 3], ends[first], False
        change(around, at - first)
        for line in around:
            end, wrong = auditchain.checked(line, end)
            found = found or bool(wrong)
        assert found or (at > 9_990 and (end.seq, end.prev) != (10_000, ends[-1].prev)), at + 1
