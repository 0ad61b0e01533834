"""The shipped sets: what they hold, how they are named, what strict rules catch with them."""

from __future__ import annotations

import pytest

from policyd.commands.matching.patterns import CommandPattern
from policyd.commands.sets import SetEntry, ShippedSet, advice, shipped
from policyd.model import Assignment, SimpleCommand, Truth, Word
from policyd.paths import PathPattern
from tests.commandrows import decide, table
from tests.rowwise import in_groups
from tests.words import command

STRICT: dict[str, dict[str, list[str]]] = table("sets.toml")
NAMES = {
    "auto-run",
    "destructive",
    "files",
    "force-push",
    "git-read",
    "network",
    "privilege",
    "publish",
    "read-only",
    "secrets",
    "test-runners",
}


def _entries(found: ShippedSet) -> list[SetEntry]:
    return [entry for entry in found.entries.values() if isinstance(entry, SetEntry)]


def _entry(text: str) -> SetEntry:
    name, _, key = text.partition(".")
    entry = shipped()[name].entries[key]
    assert isinstance(entry, SetEntry)
    return entry


def _truth(name: str, text: str) -> Truth:
    return max(entry.maybe(command(text), widen=True) for entry in _entries(shipped()[name]))


def test_the_sets_of_the_design_ship() -> None:
    assert set(shipped()) == NAMES
    assert {name: found.kind for name, found in shipped().items() if found.kind != "command"} == {
        "auto-run": "path",
        "secrets": "path",
    }


def test_every_entry_says_why_and_where_from() -> None:
    for found in shipped().values():
        assert found.reason
        assert found.entries
        for entry in _entries(found):
            assert entry.reason, entry.name
            assert entry.source, entry.name
            assert entry.text.startswith(f"@{found.name}.")


@pytest.mark.parametrize("name", ["auto-run", "secrets"])
def test_every_path_of_a_path_set_is_a_pattern(name: str) -> None:
    for text in shipped()[name].entries.values():
        assert isinstance(text, str)
        PathPattern.compile(text, home="/home/dev", tmpdir="/tmp")


@in_groups((name, text, key == "yes") for name, found in STRICT.items() for key in found for text in found[key])
def test_a_strict_rule_with_a_set_catches_what_it_means(name: str, text: str, wanted: bool) -> None:
    assert (_truth(name, text) is Truth.YES) is wanted


def test_an_entry_is_found_by_the_programs_it_may_hold_for() -> None:
    for found in shipped().values():
        for entry in _entries(found):
            assert entry.programs, entry.name


def test_a_builtin_is_not_touched_by_variables_but_its_program_is() -> None:
    entry = _entry("read-only.echo")
    for text, holds in (("PATH=/x echo hi", True), ("PATH=/x /bin/echo hi", False), ("PATH=/x timeout 5 echo", False)):
        assert entry.sure(command(text)) is holds
    plain = command("echo hi")
    tainted = SimpleCommand(plain.argv, "", taint=(Assignment("PATH", Word("/x")),), cwd=plain.cwd)
    assert entry.sure(tainted)
    assert not entry.sure(SimpleCommand(plain.argv, "", tainted="alias", cwd=plain.cwd))
    assert not entry.sure(SimpleCommand(plain.argv, "", taint=tainted.taint, via=("xargs",), cwd=plain.cwd))


def test_the_variables_a_set_tolerates_are_its_own() -> None:
    entry = _entry("test-runners.pytest")
    assert entry.sure(command("PYTHONPATH=src pytest"))
    assert not entry.sure(command("PYTHONPATH=/tmp/x pytest"))
    assert not entry.sure(command("FOO=1 pytest"))
    assert entry.sure(command("FOO=1 pytest"), ("FOO",))


def test_a_subcommand_is_found_behind_global_options_and_by_its_other_names() -> None:
    assert _entry("git-read.log").sure(command("git -C src --no-pager log -3"))
    assert not _entry("git-read.log").sure(command("git -c core.pager=x log -3"))
    assert _entry("test-runners.npm-test").sure(command("npm -w a t"))
    assert _entry("test-runners.cargo-check").sure(command("cargo clippy"))


def test_another_way_to_a_program_is_held_to_its_options() -> None:
    entry = _entry("test-runners.python-pytest")
    assert entry.sure(command("python3 -m pytest -q tests"))
    assert entry.sure(command("uv run pytest -x"))
    assert not entry.sure(command("python3 -m pytest -p evil"))
    assert not entry.sure(command("python3 -I -m pytest"))


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("mypy", ".venv/bin/mypy src", True),
        ("mypy", "python3 -m mypy src", True),
        ("mypy", "./venv/bin/python -m mypy src", True),
        ("mypy", "uv run --frozen mypy src", True),
        ("mypy", "uv run --group dev mypy src", True),
        ("mypy", "uv run --with evil mypy src", False),
        ("mypy", "poetry run mypy --python-executable x src", False),
        ("mypy", "/tmp/.venv/bin/mypy src", False),
        ("mypy", ".venv/bin/../x/mypy src", False),
        ("mypy", ".venv/bin/x/mypy src", False),
        ("mypy", "poetry run ./mypy src", False),
        ("mypy", "poetry run poetry run mypy src", False),
        ("mypy", "npx --no-install mypy src", False),
        ("eslint", "npx --no-install eslint src", True),
        ("eslint", "pnpm exec eslint src", True),
        ("eslint", "npx eslint src", False),
        ("rubocop", "bundle exec rubocop app", True),
        ("rubocop", "bundle exec rubocop -a", False),
    ],
)
def test_other_ways_to_a_program_are_held_to_the_same(name: str, text: str, holds: bool) -> None:
    assert _entry(f"test-runners.{name}").sure(command(text)) is holds


def test_a_strict_rule_sees_other_ways_to_a_program() -> None:
    assert _entry("test-runners.mypy").maybe(command("python -m mypy src"), widen=True) is Truth.YES
    assert _entry("test-runners.jest").maybe(command("yarn run jest"), widen=True) is Truth.YES


def test_a_filter_of_the_activated_environment_stands_behind_a_pipe_only() -> None:
    entry = _entry("test-runners.activated")
    activated = (Assignment("PATH", Word(".venv/bin"), exported=True),)
    for taint, fed, holds in ((activated, "|", True), ((), "|", False), (activated, "", False)):
        given = command("tail -5")
        assert entry.sure(SimpleCommand(given.argv, "", taint=taint, cwd=given.cwd, fed=fed)) is holds


def test_several_operands_are_each_named() -> None:
    entry = _entry("test-runners.gradle")
    for text, holds in (("gradle test check", True), ("gradle :a:test", True), ("gradle ':a:publish :b:test'", False)):
        assert entry.sure(command(text)) is holds


def test_an_operand_decides_what_a_task_runner_may_run() -> None:
    entry = _entry("test-runners.make")
    for text, holds in (("make test", True), ("make -j4 check", True), ("make", False), ("make test install", False)):
        assert entry.sure(command(text)) is holds


FILES = """
version = 1

[[rule]]
effect = "allow"
command = "@files"

[[rule]]
effect = "allow"
kind = ["edit", "read", "move", "delete"]
path = "src/**"
"""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("mkdir -p src/new", "allow"),
        ("touch src/a", "allow"),
        ("cp src/a src/b", "allow"),
        ("mkdir lib", "ask"),
        ("cp src/a lib/", "ask"),
        ("cp src/a /etc/x", "ask"),
        ("touch ../x", "ask"),
        ("ln -s /etc/passwd src/x", "ask"),
        ("cp -t lib src/a", "ask"),
        ("mkdir $X", "ask"),
        ("install a b", "ask"),
    ],
)
def test_the_files_of_a_file_program_need_rules_of_their_own(text: str, word: str) -> None:
    assert decide(FILES, text).effect.word == word


@pytest.mark.parametrize(
    ("text", "word"),
    [("sed -n 1p f", "allow"), ("sed -i s/a/b/ f", "ask"), ("cat f", "ask"), ("git log", "ask")],
)
def test_one_entry_of_a_set_is_allowed_by_its_name(text: str, word: str) -> None:
    policy = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = "@read-only.sed"\n'
    assert decide(policy, text).effect.word == word


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sed **", ["--in-place", "@read-only.sed"]),
        ("git log **", ["--output", "@git-read.log"]),
        ("pytest **", ["@test-runners.pytest"]),
        ("sort **", ["--compress-program", "@read-only.sort"]),
        ("cat **", []),
        ("sed -n *", []),
        ("stranger **", []),
    ],
)
def test_a_pattern_that_lets_in_more_than_it_seems_is_advised_on(text: str, parts: list[str]) -> None:
    found = advice(CommandPattern.compile(text, home="/home/dev"))
    assert bool(found) is bool(parts)
    assert all(part in found for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        "black --check --config x .",
        "black --check --frob .",
        "black . --check=no",
        "gofmt -l -w .",
        "prettier --check --write .",
        "rustfmt a.rs",
        "rustfmt --check --config-path x a.rs",
        "shellcheck -x a.sh",
        "gzip -d a.gz",
        "gzip a",
        "zstd -c --rm a",
        "unzip a.zip",
        "pip install x",
        "printenv",
        "printenv TOKEN",
        "pip list --outdated",
        "npm ls --prefix /tmp",
        "go env -w X=y",
        "cargo metadata --manifest-path /tmp/x",
        "git clean -fd",
        "git clean -n --frob",
        "git frob -h",
        "git help -w log",
        "ulimit -n 5",
        "set -a",
        "set -o posix",
    ],
)
def test_neighbours_of_the_showing_forms_ask(text: str) -> None:
    policy = '[[rule]]\neffect = "allow"\ncommand = ["@read-only", "@git-read", "@test-runners"]\n'
    assert decide("version = 1\n" + policy, text).effect.word == "ask"


SECRETS = """
version = 1

[defaults]
read   = "allow"
search = "allow"

[[rule]]
effect = "deny"
path   = "@secrets"

[[rule]]
effect  = "allow"
command = "@read-only"
"""
HOLD_SECRETS = """
credentials config/credentials .aws/credentials a/.aws/credentials ~/.aws/credentials .config/gh/credentials
credentials/prod.json src/credentials/aws.yml a/credentials/x.env config/credentials/production.key credentials.json
src/credentials/credentials.json credentials/service-account.json kubeconfig k8s/kubeconfig kubeconfig.yaml
prod.kubeconfig .kube/config
"""
SOURCE_CODE = """
src/credentials/index.ts packages/credentials/package.json packages/credentials/tsconfig.json lib/credentials/store.rb
src/credentials.ts pkg/kubeconfig/kubeconfig.go .env.example
"""


@in_groups((path,) for path in HOLD_SECRETS.split())
def test_files_that_hold_secrets_are_denied(path: str) -> None:
    assert decide(SECRETS, f"cat {path}").effect.word == "deny"


@in_groups((path,) for path in SOURCE_CODE.split())
def test_source_code_that_is_called_like_secrets_is_read(path: str) -> None:
    for text in (f"cat {path}", f"ls {path.rpartition('/')[0]}", "grep -rn foo src pkg"):
        assert decide(SECRETS, text).effect.word == "allow"


RUN_LATER = """
babel.config.json web/babel.config.json webpack.config.babel.js jest.config.json vite.config.mts .eslintrc.json
.git/config a/.git/hooks/pre-push rust-toolchain .yarn/releases/yarn.cjs HEAD conftest.py
Cargo.toml crates/a/Cargo.toml settings.gradle.kts app/build.gradle composer.json mix.exs project/plugins.sbt
Package.swift src/App/App.csproj Directory.Build.targets lib/BUILD.bazel turbo.json deno.jsonc
"""
LATER_NEIGHBOURS = (
    "Cargo.lock src/cargo.rs gradle.md composer.lock tsconfig.json src/project.json.ts App.cs bazel.md src/mix.ex"
)


@in_groups((path,) for path in RUN_LATER.split())
def test_files_that_make_something_run_later_are_known(path: str) -> None:
    assert decide(SECRETS.replace("@secrets", "@auto-run"), f"cat {path}").effect.word == "deny"


@in_groups((path,) for path in LATER_NEIGHBOURS.split())
def test_files_beside_them_are_not_taken_for_such(path: str) -> None:
    assert decide(SECRETS.replace("@secrets", "@auto-run"), f"cat {path}").effect.word == "allow"


def test_an_exception_is_looked_for_only_among_commands_the_entry_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(pattern: CommandPattern, *_: object, **__: object) -> Truth:
        raise AssertionError(pattern.source)

    monkeypatch.setattr(CommandPattern, "maybe", looked)
    commands = [found for found in shipped().values() if found.kind == "command"]
    entries = [entry for found in commands for entry in _entries(found) if entry.unless]
    may_be_any = command("npx " + "word " * 300)
    assert entries
    assert not any(entry.sure(may_be_any) for entry in entries)
