"""Agent profiles are data: they load, say nothing misspelt, and are chosen by what the agent calls itself."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyd.actions import Conversation, Machine
from policyd.actions.fields import Ref
from policyd.actions.profiles import Profile, compile_profile, find, named, nameless, parse, shipped
from policyd.actions.readers import Fault, Template, apply_patch, json_text, sections
from policyd.actions.tables import ProfileTable
from policyd.model import KINDS, Reach

CAPTURES = Path(__file__).parent / "data" / "captures"
CAPTURED = {
    "acpx": {"generic", "claude"},
    "agentao": {"agentao"},
    "claude-agent-acp": {"claude"},
    "cline": {"cline"},
    "codex-acp": {"codex"},
    "codex-zed": {"codex-zed"},
    "copilot-cli": {"copilot"},
    "cursor": {"generic"},
    "deepagents": {"generic"},
    "droid": {"droid"},
    "fast-agent": {"fast-agent"},
    "gemini": {"gemini"},
    "gemini-0": {"gemini-0", "generic"},
    "grok": {"generic"},
    "hermes": {"hermes"},
    "kilo": {"kilo"},
    "kimi-cli": {"kimi"},
    "kimi-code": {"kimi-code"},
    "kiro": {"kiro"},
    "kode": {"kode"},
    "mistral-vibe": {"vibe"},
    "opencode": {"opencode"},
    "nanocoder": {"nanocoder"},
    "oh-my-pi": {"oh-my-pi"},
    "openhands": {"openhands"},
    "pi": {"pi"},
    "qoder": {"qoder"},
    "qwen": {"qwen"},
    "qwen-0.15": {"qwen"},
    "sigit": {"sigit"},
    "vibe-2": {"vibe-2"},
    "vibe-2.19": {"vibe-2"},
}


def profiles() -> list[Profile]:
    return list(shipped().values())


@pytest.mark.parametrize("profile", profiles(), ids=lambda profile: profile.short)
def test_a_profile_uses_only_words_that_mean_something(profile: Profile) -> None:
    for spec in (*profile.tools.values(), *profile.kinds.values(), *(spec for _, spec in profile.patterns)):
        table = spec.table
        assert table.kind in (*KINDS, ""), spec.label
        assert set(table.stated) <= set(KINDS), spec.label
        assert table.locations in ("", "path", "cwd", "read", "mention"), spec.label
        assert table.reach in ("", *(reach.value for reach in Reach)), spec.label
        assert table.base in ("", "/"), spec.label
    assert profile.data.covers in ("", "pending", "in_progress")
    assert profile.data.mode.door in ("set_mode", "set_config_option", "none")
    assert set(profile.kinds) <= {*KINDS, "*"}


@pytest.mark.parametrize("profile", profiles(), ids=lambda profile: profile.short)
def test_a_mode_is_asking_or_unsafe_and_never_both(profile: Profile) -> None:
    modes = profile.data.mode
    assert not {modes.asking, *modes.safe} & set(modes.unsafe)
    assert all(profile.mode(name).unsafe for name in [*modes.unsafe, "", "a-mode-nobody-knows"])
    assert not modes.asking or profile.mode(modes.asking).asking
    assert modes.door == "none" or modes.asking


def test_every_captured_agent_has_its_profile() -> None:
    for folder, wanted in CAPTURED.items():
        seen = set()
        for row in (CAPTURES / f"{folder}.jsonl").read_text().splitlines():
            for line in json.loads(row)["lines"]:
                result = line["msg"].get("result") or {}
                if "protocolVersion" in result:
                    info = result.get("agentInfo") or result.get("info") or {}
                    seen.add(find(info.get("name", ""), info.get("version", "")).short)
        assert seen == wanted


def test_a_version_may_have_a_profile_of_its_own() -> None:
    assert find("@mistralai/mistral-vibe", "2.0.2").short == "vibe-2"
    assert find("@mistralai/mistral-vibe", "2.26.1").short == "vibe"
    assert find("@mistralai/mistral-vibe", "4.0.0").short == "vibe"
    assert find("Kimi Code CLI", "1.51.0").short == "kimi"
    assert find("Kimi Code CLI", "2.1.0").short == find("Kimi Code CLI", "0.34.0").short == "kimi-code"
    assert find("Kimi Code CLI", "10.0.0").short == "kimi-code"


@pytest.mark.parametrize(
    ("given", "version", "contradicts"), [("vibe", "2.0.2", False), ("vibe-2", "3.0", False), ("codex", "3.0", True)]
)
def test_an_agent_given_by_name_may_be_any_of_its_versions(given: str, version: str, contradicts: bool) -> None:
    talk = Conversation(Machine("/home/dev"), agent=given)
    talk.observe("c2a", {"id": 0, "method": "initialize", "params": {}})
    talk.observe("a2c", {"id": 0, "result": {"agentInfo": {"name": "@mistralai/mistral-vibe", "version": version}}})
    assert bool(talk.contradiction) is contradicts
    assert talk.agent.family == "vibe"


def test_an_agent_nobody_described_gets_the_careful_profile() -> None:
    assert find("", "").short == "generic"
    assert find("Claude", "1").short == "generic"
    assert nameless(["a", "b"]).short == nameless([]).short == "generic"
    assert nameless(["approve_always", "approve", "reject"]).short == "deepagents"


def test_a_profile_is_named_by_its_short_name_or_the_agents() -> None:
    assert named("codex") is named("@agentclientprotocol/codex-acp")
    assert named("nobody") is None


def test_a_profile_extends_another() -> None:
    kilo, opencode = shipped()["kilo"], shipped()["opencode"]
    assert set(opencode.tools) <= set(kilo.tools)
    assert kilo.data.name != opencode.data.name


def test_a_plain_option_is_known_only_in_exactly_its_set() -> None:
    openhands = shipped()["openhands"]
    ids = ["accept", "reject", "always_proceed", "risk_based"]
    assert openhands.plain(reversed(ids)) == "accept"
    assert openhands.plain(ids[:3]) is None
    assert openhands.plain([*ids, "more"]) is None


@pytest.mark.parametrize(
    ("short", "option", "value", "unsafe"),
    [
        ("copilot", "allow_all", "on", True),
        ("copilot", "allow_all", "off", False),
        ("cline", "auto_approve", True, True),
        ("cline", "auto_approve", False, False),
        ("cline", "mode", "plan", False),
        ("claude", "mode", "auto", True),
        ("claude", "mode", "default", False),
        ("claude", "model", "opus", False),
        ("opencode", "mode", "a-custom-agent", True),
    ],
)
def test_an_option_that_switches_asking_off_is_unsafe(short: str, option: str, value: object, unsafe: bool) -> None:
    assert shipped()[short].unsafe_option(option, value) is unsafe


@pytest.mark.parametrize(
    "text",
    ["name = []\nnonsense = 1", 'name = ["a"]\n[tool.x]\ncomand = []', 'name = ["a"]\n[mode]\nasks = "x"', "name = 1"],
)
def test_a_misspelt_profile_does_not_load(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse(text.encode())


@pytest.mark.parametrize(
    "source", ["rawinput.x", {"from": "title", "regex": "x"}, {"from": "title", "template": "x"}, 7]
)
def test_a_misspelt_reference_is_refused(source: object) -> None:
    with pytest.raises(ValueError, match=r"reference|template"):
        Ref.compile(source)


def test_a_wrong_reference_names_its_table() -> None:
    table = msgspec.convert({"name": [], "tool": {"x": {"path": ["nowhere.y"]}}}, ProfileTable)
    with pytest.raises(ValueError, match=r"\[tool.x\].*nowhere"):
        compile_profile("p", table)


# ---- readers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "text", "expected"),
    [
        ("Run `{x}`", "Run `ls`", {"x": "ls"}),
        ("Run `{x}`", "Run `a` and `b`", {"x": "a` and `b"}),
        ("Run `{x}`", "Run ``", None),
        ("Run `{x}`", "Run `ls` now", None),
        ("Run `{x}`", "I Run `ls`", None),
        ("Run `{x}`", "Run `", None),
        ("{tool} ({server} MCP Server)", "delete_note (notes MCP Server)", {"tool": "delete_note", "server": "notes"}),
        ("{tool} ({server} MCP Server)", "delete_note (notes)", None),
        ("{a}: {b}", "x: y: z", {"a": "x", "b": "y: z"}),
        ("{a}: {b}", "x:", None),
    ],
)
def test_a_template_fits_the_whole_text_or_nothing(template: str, text: str, expected: dict[str, str] | None) -> None:
    assert Template.compile(template).match(text) == expected


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_a_template_takes_is_what_was_put_in(left: str, right: str) -> None:
    template = Template.compile("<{a}|{b}>")
    match = template.match(f"<{left}|{right}>")
    found = "|".join([match["a"], match["b"]]) if match else None
    assert found == (None if left.startswith("|") else f"{left}|{right}")


@pytest.mark.parametrize("template", ["no hole", "open {brace"])
def test_a_template_without_a_hole_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="template"):
        Template.compile(template)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a"', "NaN", '{"a": Infinity}', "", "ls -la", "[" * 9_000])
def test_json_that_two_parsers_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(Fault):
        json_text(text)


SECTIONS = [
    ("[a b.py#12AB]\nPUT 3.=3:\n+[c#1234]\n+REM\n\nCUT 9 @x", [("a b.py", "edit")]),
    (
        "*** Begin Patch\n[a#12ab]\nREM\n[/etc/x#0000]\nPUT >$ @x\n*** End Patch\n",
        [("a", "delete"), ("/etc/x", "edit")],
    ),
    ("[a#12AB]\r\nPUT <1:\r\n+x\r\nMV ../b c\r\n", [("a", "move"), ("../b c", "move")]),
    ("*** Begin Patch\n*** Delete File: a\n*** End Patch", [("a", "delete")]),
]


@pytest.mark.parametrize(("text", "expected"), SECTIONS)
def test_a_patch_of_sections_names_their_files(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(file.path, file.kind) for file in sections(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"[{head}\nREM"
            for head in ("a#12AB", "a]", "a#12A]", "a#12AG]", "#12AB]", " a#12AB]", "a]b#12AB]", "a#b#12AB]")
        ),
        *(f"[{path}#12AB]\nREM" for path in ("'a'", '"a"', "*a", "a\t", "a ")),
        *(
            f"[a#12AB]\n{line}"
            for line in (
                " REM",
                "rem",
                "REM x",
                "MV",
                "MV ",
                "MV  b",
                "MV b ",
                "MV 'b'",
                "MV [b#1234]",
                "-x",
                "@@ -1 +1 @@",
            )
        ),
        *(f"[a#12AB]\n{first}\n{then}" for first in ("REM", "MV b") for then in ("REM", "MV c")),
        *("x\n[a#12AB]\nREM", "[a#12AB]\nREM\n*** End Patch", "*** Begin Patch\n[a#12AB]\nREM"),
        *("", "[", "[a#12AB]\rREM", "[a#12AB]\nREM\u2028[b#12AB]"),
    ],
)
def test_a_patch_of_sections_that_is_not_sure_is_refused(text: str) -> None:
    with pytest.raises(Fault):
        sections(text)


PATCHES = [
    ("*** Add File: a\n+x", [("a", "edit")]),
    ("*** Update File: a b.py\n@@\n-x\n+y", [("a b.py", "edit")]),
    ("*** Delete File: /etc/x", [("/etc/x", "delete")]),
    ("*** Update File: a\n*** Move to: ../b\n@@", [("a", "move"), ("../b", "move")]),
    ("*** Move File: a b -> /c", [("a b", "move"), ("/c", "move")]),
    ("*** Update File: a\n@@\n+x\n*** End of File\n*** Add File: b\n+*** c", [("a", "edit"), ("b", "edit")]),
]


@pytest.mark.parametrize(("body", "expected"), PATCHES)
def test_a_patch_names_its_files(body: str, expected: list[tuple[str, str]]) -> None:
    files = apply_patch(f"*** Begin Patch\n{body}\n*** End Patch\n")
    assert [(file.path, file.kind) for file in files] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Add File: a",
        "*** Add File: a",
        "*** Begin Patch\n*** Frobnicate: a\n*** End Patch",
        "*** Begin Patch\n*** Add File:  \n*** End Patch",
        "*** Begin Patch\n*** Move to: a\n*** End Patch",
        "*** Begin Patch\n*** Move File: a\n*** End Patch",
        "*** Begin Patch\n*** Move File: a ->\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a\n*** Move to: b\n*** End Patch",
    ],
)
def test_a_patch_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(Fault):
        apply_patch(text)
