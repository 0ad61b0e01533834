"""What calls stood for is used again only where everything it rests on is still the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyd.actions import Evidence, Surroundings, derive, profiles
from policyd.actions.evidence import Call
from policyd.actions.seen import KEPT, Seen, key_of
from policyd.actions.toolcall import Diff
from policyd.paths import open_workspace
from tests.fakes import FakeFilesystem

ROOT = "/home/dev/app"
FILES: dict[str, str | None] = {f"{ROOT}/src/a.py": "", f"{ROOT}/docs": None, "/etc/passwd": ""}


def around(fs: FakeFilesystem) -> Surroundings:
    """Return surroundings in which `fs` may change later."""
    space = open_workspace(ROOT, [], home="/home/dev", fs=fs)
    return Surroundings(space, fs, reserved=("/home/dev/.config/policyd",), cwds=(ROOT,))


def call(kind: str, **raw: object) -> Evidence:
    """Return the evidence of a call."""
    return Evidence("c1", kinds=frozenset({kind}), stated=kind, raw=raw)


CALLS = {
    "edit": call("edit", path="src/a.py"),
    "delete": call("delete", path="docs"),
    "command": call("execute", command="cat src/a.py && cp src/a.py docs"),
    "glob": call("execute", command="cat src/*.py"),
    "loop": call("read", path="loop"),
    "elsewhere": call("read", path="/etc/passwd"),
    "guarded": call("edit", path="/home/dev/.config/policyd/policy.toml"),
}
CHANGES: dict[str, Callable[[FakeFilesystem], None]] = {
    "nothing": lambda fs: None,
    "a link in place of the file": lambda fs: fs.links.update({f"{ROOT}/src/a.py": "/etc/passwd"}),  # type: ignore[attr-defined]
    "a link above it": lambda fs: fs.links.update({f"{ROOT}/src": "/etc"}),  # type: ignore[attr-defined]
    "a link above the project": lambda fs: fs.links.update({"/home/dev": "/srv"}),  # type: ignore[attr-defined]
    "a link out of it": lambda fs: fs.links.pop(f"{ROOT}/src", None),  # type: ignore[attr-defined]
    "a directory is gone": lambda fs: fs.files.pop(f"{ROOT}/docs", None),  # type: ignore[attr-defined]
    "a directory is back": lambda fs: fs.files.update({f"{ROOT}/docs": None}),  # type: ignore[attr-defined]
    "a loop": lambda fs: fs.links.update({f"{ROOT}/loop": "loop"}),  # type: ignore[attr-defined]
    "no loop": lambda fs: fs.links.pop(f"{ROOT}/loop", None),  # type: ignore[attr-defined]
    "another file": lambda fs: fs.files.update({f"{ROOT}/src/b.py": ""}),  # type: ignore[attr-defined]
}


@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from(sorted(CALLS))), max_size=24))
def test_a_call_stands_for_what_it_would_if_nothing_had_been_seen(steps: list[tuple[str, str]]) -> None:
    fs = FakeFilesystem(dict(FILES), {f"{ROOT}/loop": "loop"})
    places, profile = around(fs), profiles.generic()
    seen = Seen(places)
    for change, name in steps:
        CHANGES[change](fs)
        assert seen.derive(CALLS[name], profile) == derive(CALLS[name], profile, places)


def test_what_rests_on_a_failed_look_or_on_a_whole_directory_is_not_kept() -> None:
    fs = FakeFilesystem(dict(FILES), {f"{ROOT}/loop": "loop"})
    seen = Seen(around(fs))
    for name in (*CALLS, *CALLS):
        seen.derive(CALLS[name], profiles.generic())
    kept = {key_of(CALLS[name], profiles.generic()): name for name in CALLS}
    assert {kept[key] for key in seen.known} == {"edit", "delete", "command", "elsewhere", "guarded"}


class Linked(FakeFilesystem):
    """Files of the same content are hard links of each other."""

    def identity(self, path: str) -> tuple[int, int] | None:
        content = self.files.get(self.resolve(path))
        return None if content is None else (1, len(content))


def test_a_file_that_becomes_a_hard_link_to_policyds_own_is_guarded_however_often_it_was_met() -> None:
    files: dict[str, str | None] = {f"{ROOT}/src/a.py": "a", "/home/dev/.config/policyd/policy.toml": "policy"}
    seen = Seen(around(Linked(files)))
    guarded = [seen.derive(CALLS["edit"], profiles.generic())[0].guarded for _ in range(3)]
    assert len(seen.known) == 1
    for content in ("a", "policy", "b", "a"):
        files["/home/dev/.config/policyd/policy.toml"] = content
        guarded.append(seen.derive(CALLS["edit"], profiles.generic())[0].guarded)
    assert guarded == ["", "", "", "files", "", "files", "files"]


def test_a_call_is_derived_twice_and_then_known() -> None:
    seen = Seen(around(FakeFilesystem(dict(FILES))))
    seen.derive(CALLS["command"], profiles.generic())
    first = seen.derive(CALLS["command"], profiles.generic())
    again = msgspec.structs.replace(CALLS["command"], call_id="c2")
    assert seen.derive(again, profiles.generic()) is first


def test_another_version_of_the_agent_reads_a_call_anew() -> None:
    old, new = (profiles.find("@zed-industries/claude-agent-acp", version) for version in ("0.17.1", "0.20.0"))
    assert old.short == new.short
    places = around(FakeFilesystem(dict(FILES)))
    seen, evidence = Seen(places), Evidence("c1", name="mcp__acp__Bash", raw={"command": "ls"}, detailed=True)
    for profile in (old, old, new, new, old):
        assert seen.derive(evidence, profile) == derive(evidence, profile, places)
    assert derive(evidence, old, places) != derive(evidence, new, places)


def test_no_more_is_kept_than_the_bound() -> None:
    seen = Seen(around(FakeFilesystem(dict(FILES))))
    for number in range(2 * KEPT + 20):
        seen.derive(call("edit", path=f"src/{number // 2}.py"), profiles.generic())
        seen.derive(call("edit", path="x.py", content="x" * 5_000), profiles.generic())
    assert len(seen.known) == KEPT


OTHERS: Mapping[str, object] = {
    "name": "tool",
    "kinds": frozenset({"read"}),
    "stated": "read",
    "raw": {"path": "b"},
    "fault": "odd",
    "detailed": False,
    "titles": ("title",),
    "first_title": "first",
    "locations": ("a",),
    "diffs": (Diff("a"),),
    "texts": ("text",),
    "meta": {"a": 1},
    "options": ({"kind": "allow_once"},),
    "old": ("a",),
    "older": {"path": "a"},
    "missing": frozenset({"rawInput"}),
    "announced": False,
}


def test_every_field_of_the_evidence_tells_two_calls_apart() -> None:
    assert {*OTHERS, "call_id"} == set(Evidence.__struct_fields__)
    plain = Evidence("c1")
    found = [
        key_of(msgspec.structs.replace(plain, **{name: value}), profiles.generic()) for name, value in OTHERS.items()
    ]
    assert len({*found, key_of(plain, profiles.generic())}) == len(OTHERS) + 1


@pytest.mark.parametrize("profile", profiles.shipped().values(), ids=lambda profile: profile.short)
def test_the_id_of_a_call_counts_where_a_profile_reads_it(profile: profiles.Profile) -> None:
    one, two = (key_of(Evidence(ident), profile) for ident in ("read__1", "write__1"))
    assert (one != two) is profile.reads_id
    assert profile.reads_id is ("toolCallId" in [ref["from"] for ref in profile.data.identify if isinstance(ref, dict)])


def test_no_two_values_have_one_key() -> None:
    values: tuple[object, ...] = (
        None,
        float("nan"),
        float("inf"),
        0,
        False,
        0.0,
        1,
        True,
        1.0,
        "",
        b"",
        "YQ==",
        b"a",
        "1",
        [],
        {},
        [1],
    )
    keys = [key_of(call("edit", value=value), profiles.generic()) for value in values]
    assert None not in keys
    assert len(set(keys)) == len(values)
    assert key_of(call("edit", value=2**70), profiles.generic()) is None
    assert key_of(call("edit", value="\ud800"), profiles.generic()) is None


def test_a_call_without_updates_has_a_key() -> None:
    assert key_of(Evidence("c1", meta=Call("c1").meta, older=Call("c1").older), profiles.generic())
