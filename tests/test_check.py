"""`policyd check`: what it prints, what it exits with, what may be left out, and that shipped policies pass it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from policyd.cli import main

ROOT = Path(__file__).parent.parent
POLICIES = [path for path in sorted((ROOT / "policies").glob("*.toml")) if not path.stem.endswith("_test")]
ERRORS = tomllib.loads((ROOT / "tests/data/mistakes/errors.toml").read_text())["case"]
SPARE = 'version = 1\n[[rule]]\nid = "make"\neffect = "allow"\ncommand = "make **"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path


def check(home: Path, text: str | Path, *more: str) -> int:
    path = text if isinstance(text, Path) else home / "policy.toml"
    if isinstance(text, str):
        path.write_text(text)
    return main(["check", str(path), "--no-managed", "--no-project", "--home", str(home / "home"), *more])


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_shipped_policies_leave_nothing_to_warn_about(path: Path, home: Path) -> None:
    assert check(home, path, "--strict") == 0


def test_patterns_are_held_against_the_files_of_the_project_that_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "app/src").mkdir(parents=True)
    text = 'version = 1\n[[rule]]\neffect = "deny"\nkind = "@read"\npath = "scr/**"\n'
    assert check(home, text, "--strict", "--cwd", str(home / "app")) == 1
    assert "did you mean `src`?" in capsys.readouterr().err
    monkeypatch.setattr("policyd.cli.lint.places.MOST", 0)
    assert check(home, text, "--strict", "--cwd", str(home / "app")) == 0, "more files than are listed"


def test_settings_are_looked_at_beside_the_policies_in_force(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = home / "home/.config/policyd"
    place.mkdir(parents=True)
    (place / "policyd.toml").write_text('prompt = "client"\nagent_mod = "off"\n')
    given = ["--home", str(home / "home"), "--no-managed", "--no-project"]
    assert main(["check", *given]) == 2
    said = capsys.readouterr().err
    assert "policyd.toml:1: `prompt`" in said and "policyd.toml:2: unknown setting `agent_mod`" in said
    assert "\n2 mistakes\n" in said
    assert main(["check", *given, "--json"]) == 2
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (first["file"], first["line"]) == (str(place / "policyd.toml"), 1)
    assert check(home, "version = 1\n") == 0, "only the files that are named"


def test_the_enterprise_layers_leave_nothing_to_warn_about(home: Path) -> None:
    place = ROOT / "policies/enterprise"
    given = [str(place / "user"), "--managed", str(place / "managed"), "--no-project", "--home", str(home / "home")]
    assert main(["check", "--strict", *given]) == 0


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["name"])
def test_an_error_is_found_in_its_line(case: dict[str, str], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(home, "\n" + case["text"].removeprefix("\n"), "--json") == 2
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said = [f"{one['line']}: {one['found']}; {one['write']}" for one in facts if one.get("severity") == "error"]
    wanted = case["said"]
    assert len(said) == len(wanted), said
    for got, part in zip(said, wanted, strict=True):
        assert got.partition(": ")[0] == part.partition(": ")[0], said
        assert part.partition(": ")[2] in got, said


def test_warnings_count_only_when_strict(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(home, SPARE) == 0
    said = capsys.readouterr()
    assert f'warning: {home}/policy.toml:5: rule "make": `make **` also allows' in said.err
    assert said.out.strip().endswith("; 1 warning")
    assert check(home, SPARE, "--strict") == 1


def test_a_warning_can_be_left_out_by_name_or_meant_in_the_file(home: Path) -> None:
    assert check(home, SPARE, "--strict", "--ignore", "broad") == 0
    assert check(home, SPARE.replace('"make **"', '"make **"  # ok: broad'), "--strict") == 0
    assert check(home, SPARE.replace("[[rule]]", "[[rule]]  # ours alone, ok: broad"), "--strict") == 0
    assert check(home, SPARE.replace('"make **"', '"make **"  # ok: last-star'), "--strict") == 1


def test_json_says_everything_a_program_needs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(home, SPARE, "--json")
    warning, whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {key: warning[key] for key in ("severity", "name", "layer", "line", "rule")} == {
        "severity": "warning",
        "name": "broad",
        "layer": "user",
        "line": 5,
        "rule": "make",
    }
    assert (whole["ok"], whole["warnings"], whole["rules"]) == (True, 1, 1)


def test_a_project_that_cannot_be_read_is_a_mistake_and_what_is_not_read_a_note(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "app").mkdir()
    (home / "app/.policyd").write_text("no directory")
    (home / "rules").mkdir()
    (home / "rules/notes.txt").write_text("")
    given = ["--home", str(home / "home"), "--no-managed", "--cwd", str(home / "app"), "--json"]
    assert main(["check", str(home / "rules"), *given]) == 2
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    place = {"layer": "project", "file": f"{home}/app/.policyd", "line": 0}
    assert {key: told[0][key] for key in place} == place
    assert told[0]["found"].startswith("not safe to read: it is no directory")
    assert [one["found"].rpartition("/")[2] for one in told if one.get("severity") == "note"] == [
        "notes.txt is not read: policy files end in .toml",
        "rules holds no policy: policy files end in .toml",
    ]


def test_expand_shows_the_sets_in_use(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = '[[rule]]\neffect = "deny"\npath = ["@src"]\n[[rule]]\neffect = "deny"\ncommand = "@network"\n'
    text = '[sets]\nsrc = ["src/**"]\n' + rules
    assert check(home, text, "--expand") == 0
    said = capsys.readouterr().out
    assert "@src (from user" in said
    assert "    src/**" in said
    assert "@network (from policyd, for `command`)" in said
    assert "    @network.curl: `" in said
    assert "@secrets" not in said


def test_expand_shows_every_set_where_none_can_be_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(home, "nonsense", "--expand") == 2
    assert "@secrets (from policyd, for `path`)" in capsys.readouterr().out


def test_warnings_are_not_given_beside_mistakes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(home, SPARE + '[[rule]]\neffect = "alow"\nkind = "read"\n') == 2
    said = capsys.readouterr().err
    assert "warning: " not in said
    assert "1 mistake in 1 policy file" in said


def test_a_thousand_rules_are_compared_by_index(home: Path) -> None:
    rules = [f'[[rule]]\neffect = "allow"\nkind = "read"\npath = "src/m{n}/**"\n' for n in range(300)]
    rules += [f'[[rule]]\neffect = "deny"\ncommand = "tool{n} push"\n' for n in range(300)]
    rules += [f'[[rule]]\neffect = "allow"\nurl = "https://h{n}.example.com/**"\n' for n in range(200)]
    rules += [f'[[rule]]\neffect = "allow"\ntool = "s{n}/get_*"\n' for n in range(200)]
    assert check(home, "".join(rules), "--strict") == 0
