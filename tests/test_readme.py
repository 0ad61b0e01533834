"""Everything the README shows works: policies load with their examples, commands print what is printed there."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from policyd.actions import Machine
from policyd.authorizer import check_examples
from policyd.cli import COMMANDS, ending, parser_of
from policyd.cli.suite import read as read_suite
from policyd.cli.trials.tree import Tree
from policyd.commands.sets import shipped
from policyd.daemon import wire
from policyd.model import Layer
from policyd.policy import PolicySource, load
from policyd.prompts.chain import TIMEOUTS
from policyd.proxy import options as proxy_options
from policyd.service import relayed
from policyd.storage import settings
from tests.clienthouse import ROOT

README = (ROOT / "README.md").read_text()
PROTOCOL = (ROOT / "examples/PROTOCOL.md").read_text()
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(match[1], match[2].strip(), match[3]) for match in BLOCK.finditer(README)]


def blocks(language: str, info: str = "") -> list[str]:
    return [text for name, more, text in BLOCKS if name == language and more.startswith(info)]


POLICIES = [(more, text) for name, more, text in BLOCKS if name == "toml" and more.startswith("policy")]


@pytest.mark.parametrize(("info", "text"), POLICIES, ids=[f"policy {n}" for n in range(len(POLICIES))])
def test_every_policy_shown_loads_and_its_examples_come_out(info: str, text: str) -> None:
    layer = Layer.MANAGED if "managed" in info else Layer.USER
    source = PolicySource("README.md", text.encode(), layer)
    disk = Tree({}, {}, "/home/dev")
    policy = load([source], home="/home/dev", tmpdir="/tmp", fs=disk, version="0.1.0")
    assert check_examples(policy, Machine("/home/dev", disk)) == []


@pytest.mark.parametrize("text", blocks("toml", "suite"))
def test_every_suite_shown_passes(text: str, tmp_path: Path) -> None:
    (tmp_path / "default.toml").write_text((ROOT / "policies" / "default.toml").read_text())
    (tmp_path / "shown_test.toml").write_text(text)
    outcomes = read_suite(str(tmp_path / "shown_test.toml")).run()
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.failure] == []


SESSIONS = [
    (command, expected)
    for text in blocks("console")
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]


@pytest.mark.parametrize(("command", "expected"), SESSIONS, ids=[row[0][:60] for row in SESSIONS])
def test_every_command_shown_prints_what_is_shown(command: str, expected: str, tmp_path: Path) -> None:
    """`…` stands for anything, a line of its own for any lines."""
    program = tmp_path / "bin" / "policyd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m policyd "$@"\n')
    program.chmod(0o755)
    env = {"HOME": str(tmp_path / "home"), "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    (tmp_path / "home").mkdir()
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    pattern = re.escape(expected.strip()).replace(re.escape("…"), "…")
    pattern = re.sub(r"(?:^|\n|\\\n)…(?=\n|\\\n|$)", r"(?:\n.*)*?", pattern).replace("…", ".*")
    assert re.fullmatch(pattern, (done.stdout + done.stderr).strip()), done.stdout + done.stderr


def test_the_demo_prints_what_is_shown(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    env = {**os.environ, "DEMO_BIN": str(folder), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", str(ROOT / "examples/demo")], env=env, capture_output=True, text=True, timeout=110, check=True
    )
    shown = README[README.index("<!-- demo output -->") :]
    expected = shown.split("```text\n")[1].split("```")[0]
    assert expected in done.stdout
    for rule in ("user:look", "user:secrets", "user:push"):
        assert f"{rule} ({ROOT}/policies/default.toml:" in done.stdout


def test_every_command_is_in_the_table() -> None:
    table = README[README.index("## Commands and exit codes") :]
    assert [name for name in COMMANDS if f"| `policyd {name}" not in table] == []


def test_the_rule_of_exit_codes_is_the_one_of_the_commands() -> None:
    told = " ".join(README[README.index("One rule for all but") :].split("\n\n")[0].split())
    assert [text for code, text in ending.RULE.items() if f"**{code}** {text}." not in told] == []


def taken() -> dict[str, set[str]]:
    """Return each long option and the commands that take it, `grants list` being one."""
    found: dict[str, set[str]] = {}

    def walk(parser: argparse.ArgumentParser, name: str) -> None:
        below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        for action in parser._actions:
            for word in action.option_strings:
                if not below and word.startswith("--") and word != "--help":
                    found.setdefault(word, set()).add(name)
        for inner, each in below[0].choices.items() if below else ():
            walk(each, f"{name} {inner}")

    for name in COMMANDS.keys() - {"proxy"}:
        walk(parser_of(name), name)
    for word in ("--connect", *proxy_options.VALUES, *(word for word in proxy_options.FLAGS if word != "--help")):
        if word.startswith("--"):
            found.setdefault(word, set()).add("proxy")
    return found


def named(cell: str, commands: set[str]) -> set[str]:
    """Return the commands a cell of the option table names: a command stands for all of its own commands too."""
    words = re.findall(r"`([^`]+)`", cell)
    chosen = {each for each in commands for word in words if each == word or each.startswith(f"{word} ")}
    return commands - chosen if cell.startswith("all but") else chosen


def test_the_option_table_says_which_commands_take_what() -> None:
    real = taken()
    commands = set[str]().union(*real.values(), COMMANDS) - {"grants", "prompts", "audit"}
    table = README[README.index("| option | commands |") :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    told = {word: named(row[1], commands) for row in rows for word in re.findall(r"`(--[\w-]+)", row[0])}
    other = {"--project": {name for name in real["--project"] if name.startswith("audit ")}}
    wrong = {word: real[word] ^ cell for word, cell in told.items() if real[word] - other.get(word, set()) != cell}
    assert wrong == {}
    shared = {word for word, names in real.items() if len({name.split()[0] for name in names}) > 1}
    own = {"--kind", "--path", "--tool"}  # `explain` asks about one, `grants add` remembers one
    assert shared - told.keys() == own


def test_the_proxys_help_tells_every_option() -> None:
    words = [word for word in (*proxy_options.VALUES, *proxy_options.FLAGS, "--connect") if word.startswith("--")]
    assert [word for word in words if word not in proxy_options.USAGE] == []


def test_every_option_and_word_of_every_command_is_explained() -> None:
    silent = []

    def walk(parser: argparse.ArgumentParser) -> None:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for each in action.choices.values():
                    walk(each)
            elif not (action.help or "").strip():
                silent.append(f"{parser.prog} {action.option_strings or action.dest}")

    for name in COMMANDS.keys() - {"proxy"}:
        walk(parser_of(name))
    assert silent == []


def test_the_defaults_in_the_table_of_settings_are_the_real_ones() -> None:
    table = README[README.index("## Settings") : README.index("## Agents")]
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| ([^|]*) \|", table, re.MULTILINE))
    usual = settings.Settings()
    plain = {name: value for name in settings.field_names() if (value := getattr(usual, name)) not in ("", (), {})}
    said = {name: rows[settings.key_of(name)].strip("`") for name in plain}
    assert said == {n: f"{v:g}" if isinstance(v, float) else json.dumps(v) for n, v in plain.items()}
    assert rows["timeouts"] == "`client` and `inbox` {client:g}, `command` {command:g}".format_map(TIMEOUTS)


def test_every_shipped_set_is_in_the_table() -> None:
    rows = [f"| `@{name}` | `{one.kind}` | {one.reason} |" for name, one in shipped().items()]
    assert [row for row in rows if row not in README] == []


def test_every_setting_is_in_the_table() -> None:
    table = README[README.index("## Settings") :]
    assert [name for name in settings.field_names() if f"| `{settings.key_of(name)}` |" not in table] == []


def test_every_command_in_a_shell_block_exists() -> None:
    shown = re.findall(r"policyd (\w+)", "\n".join(blocks("sh")))
    assert shown
    assert set(shown) <= set(COMMANDS)


@pytest.mark.parametrize("text", [README, PROTOCOL], ids=["README", "PROTOCOL"])
def test_every_file_named_exists(text: str) -> None:
    names = re.findall(r"`((?:examples|policies|policyd|systemd|tests)/[\w./-]+)`", text)
    links = [target for target in re.findall(r"\]\(([^)]*)\)", text) if ":" not in target]
    assert names or links
    assert [name for name in names if not (ROOT / name).exists()] == []
    beside = ROOT if text is README else ROOT / "examples"
    assert [target for target in links if not (beside / target).exists()] == []


def test_the_protocol_names_every_method_of_embedders() -> None:
    methods = {value for room in (wire, relayed) for value in vars(room).values() if str(value).startswith("_policyd/")}
    told = set(re.findall(r'"method":"(_policyd/\w+)"', PROTOCOL))
    assert methods - {relayed.RELAY, relayed.RELAYED} == told


def test_the_python_shown_runs(tmp_path: Path) -> None:
    """The lines up to the `async with` are executed; the rest is what test_sdk plays against a real agent."""
    text = next(text for text in blocks("python") if "Guard" in text)
    compile(text, "README.md", "exec", flags=0x2000)
    (tmp_path / "policy.toml").write_text("version = 1\n")
    code = text.split("async with")[0]
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_the_library_shown_decides(tmp_path: Path) -> None:
    code = next(text for text in blocks("python") if "Authorizer(" in text)
    (tmp_path / "policy.toml").write_text((ROOT / "policies/default.toml").read_text())
    call = {"toolCallId": "1", "kind": "execute", "rawInput": {"command": "git status"}}
    params = {"sessionId": "s", "toolCall": call, "options": [{"optionId": "y", "name": "Allow", "kind": "allow_once"}]}
    program = f"params = {params!r}\n{code}\nprint(result['outcome'], decision.effect.word, decision.reason)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=env, capture_output=True)
    assert said.stdout.startswith(b"{'outcome': 'selected', 'optionId': 'y'} allow Looking runs nothing and writes")
