"""Command patterns: allow rules read them narrowly, deny and ask rules widely."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import resources

import pytest

from policyd.commands import read
from policyd.commands.matching import strict
from policyd.commands.matching.patterns import CommandPattern, PatternError, program_names
from policyd.commands.matching.views import View, every
from policyd.model import Assignment, SimpleCommand, Truth, Word
from tests.commandrows import decide
from tests.words import command

HOME = "/home/dev"


Row = dict[str, list[str]]
"""Truth of a strict or allow reading -> commands."""


def _rows() -> list[tuple[str, Row]]:
    text = (resources.files("tests") / "data" / "commands" / "patterns.toml").read_text("utf-8")
    return [(row.pop("pattern"), row) for row in tomllib.loads(text)["row"]]


def compiled(text: str) -> CommandPattern:
    return CommandPattern.compile(text, home=HOME)


@pytest.mark.parametrize(("text", "row"), _rows())
def test_pattern_means_what_its_author_meant(text: str, row: Row) -> None:
    pattern = compiled(text)
    sure = {given: pattern.sure(command(given)) for key in ("yes", "never") for given in row.get(key, [])}
    assert sure == {given: key == "yes" for key in ("yes", "never") for given in row.get(key, [])}
    expected = {"yes": Truth.YES, "wide": Truth.YES, "maybe": Truth.MAYBE, "no": Truth.NO}
    found = {given: pattern.maybe(command(given), widen=True) for key in expected for given in row.get(key, [])}
    strict = {given: truth for key, truth in expected.items() for given in row.get(key, [])}
    if "yes" in row:
        strict.update({given: max(found[given], Truth.MAYBE) for given in row["yes"]})
    assert found == strict


@pytest.mark.parametrize(("text", "row"), _rows())
def test_every_match_is_among_the_programs_the_index_looks_up(text: str, row: Row) -> None:
    pattern = compiled(text)
    for given in (given for key in ("yes", "wide", "maybe") for given in row.get(key, [])):
        names = program_names(command(given))
        assert pattern.programs is None or names is None or names & pattern.programs, given


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("git 'status", "not closed"),
        ("a && b", "shell syntax"),
        ("a | b", "shell syntax"),
        ("echo $X", "shell syntax"),
        ("a > b", "shell syntax"),
        ("{a,b}" * 12, "more than"),
    ],
)
def test_text_that_is_no_pattern_is_an_error(text: str, found: str) -> None:
    with pytest.raises(PatternError, match=found):
        compiled(text)


def test_an_allow_holds_for_the_command_as_written_or_as_unwrapped() -> None:
    wrapped = command("timeout 60 npm test", inner="npm test")
    assert compiled("timeout 60 npm test").sure(wrapped)
    assert compiled("npm test").sure(wrapped)
    assert compiled("npm test").maybe(wrapped, widen=True) is Truth.YES
    assert not compiled("npm run").sure(wrapped)


@pytest.mark.parametrize(
    ("pattern", "text", "holds"),
    [
        ("uv run pytest **", "uv run pytest -q", True),
        ("uv run --group dev pytest **", "uv run --group dev pytest -q", True),
        ("uv run {pytest,mypy} **", "timeout 5 uv run mypy src", True),
        ("uv run tools/x.py **", "uv run tools/x.py a", True),
        ("sudo -u * systemctl status **", "sudo -u kim systemctl status x", True),
        ("sudo uv run pytest **", "sudo uv run pytest -q", True),
        ("bundle exec rspec", "bundle exec rspec", True),
        ("uv run pytest **", "bash -lc 'cd src && uv run pytest -q'", True),
        ("uv run pytest", "uv run pytest -q", False),
        ("uv run **", "uv run pytest", False),
        ("uv run *", "uv run pytest", False),
        ("uv **", "uv run pytest", False),
        ("uv run pytest **", "uv run --with evil pytest", False),
        ("uv run pytest **", "uv run pytest2", False),
        ("uv run pytest **", "uv run ./pytest", False),
        ("uv run pytest **", "uv run $X pytest", False),
        ("uv run pytest **", "uv run pytest; pytest", False),
        ("uv run pytest **", "PATH=/tmp/x uv run pytest", False),
        ("uv run timeout **", "uv run rm x", False),
        ("sudo uv run **", "sudo uv run pytest", False),
        ("xargs rm **", "xargs -I {} sh -c 'rm {}'", False),
        ("bash -c **", "sudo bash -c 'rm x'", False),
        ("xargs tool **", "xargs tool -x", True),
        ("xargs tool -x", "xargs tool -x", False),
        ("xargs tool **", "xargs -n 1 tool", False),
        ("bash -c 'make && make test'", "bash -c 'make && make test'", True),
        ("bash -c 'make && make test'", 'bash -c "make && make test"', True),
        ("bash -c 'make && make test'", "bash -lc \"bash -c 'make && make test'\"", True),
        ("bash -c 'cd a/b; make'", "bash -c 'cd a/b; make'", True),
        ("sudo sh -c 'make a b'", "sudo sh -c 'make a b'", True),
        ("ssh h 'make && rm x'", "ssh h 'make && rm x'", True),
        ("ssh h make **", "ssh h make -j 2", True),
        ("su kim -c 'make test'", "su kim -c 'make test'", True),
        ("eval make test", "eval make test", True),
        ("bash -c 'make && make test'", "bash -c 'make && make x'", False),
        ("bash -c 'make && make test'", "bash -c 'make  && make test'", False),
        ("bash -c 'make && make test'", "bash -c 'make && make test' x", False),
        ("bash -c 'make && make test'", "bash -xc 'make && make test'", False),
        ("bash -c 'make && make test'", "FOO=1 bash -c 'make && make test'", False),
        ("bash -c 'make && make test'", "bash -c 'make && make test'; make", False),
        ("bash -c 'make && make test'", "sudo bash -c 'make && make test'", False),
        ("bash -c 'cd a/b; make'", "bash -c 'cd a/./b; make'", False),
        ("bash -c 'make && {a,b}'", "bash -c 'make && a'", False),
        ("bash -c **", "bash -c 'make && make test'", False),
        ("bash -c *", "bash -c make", False),
        ("ssh h make **", "ssh h make ';' rm x", False),
        ("ssh h make **", "ssh h 'make x'", False),
        ("ssh h make **", "ssh h make '*.x'", False),
        ("ssh h make **", "ssh -p 2 h make", False),
        ("ssh h **", "ssh h make", False),
        ("eval 'make $x'", "x=evil; eval 'make $x'", False),
        ("env FOO=1 npm test", "env FOO=1 npm test", True),
        ("env FOO=1 npm **", "env FOO=1 npm test", True),
        ("env A='x*' npm test", "env A='x*' npm test", True),
        ("env FOO=1 npm test", "env FOO=2 npm test", False),
        ("env FOO=1 npm test", "FOO=1 npm test", False),
        ("env FOO=1 npm test", "BAR=1 env FOO=1 npm test", False),
        ("env FOO=* npm test", "env FOO=1 npm test", False),
        ("env A='x*' npm test", "env A=xy npm test", False),
        ("{env FOO=1,timeout 5} npm test", "FOO=1 timeout 5 npm test", False),
        ("make FOO=1", "FOO=1 make FOO=1", False),
    ],
)
def test_an_allow_that_writes_out_a_wrapper_and_what_it_runs_holds_for_both(
    pattern: str, text: str, holds: bool
) -> None:
    found = read(text, cwd=("/w",), home=HOME).commands
    assert all(compiled(pattern).sure(one) for one in found if not (one.idle or one.chdir)) is holds


@pytest.mark.parametrize(
    ("pattern", "text", "word"),
    [
        ("ssh h uptime **", "ssh h uptime -p", "allow"),
        ("ssh h 'uptime && make test'", "ssh h 'uptime && make test'", "allow"),
        ("ssh h 'uptime && make test'", "bash -lc \"ssh h 'uptime && make test'\"", "allow"),
        ("ssh h uptime **", "cd /tmp && ssh h uptime", "ask"),
        ("ssh h uptime **", 'cd "$X" && ssh h uptime', "ask"),
        ("ssh h cat **", "ssh h cat notes", "ask"),
        ("{ssh **,uptime}", "ssh h uptime", "ask"),
        ("bash -c 'make test'", 'cd "$X" && bash -c "make test"', "ask"),
    ],
)
def test_an_allow_that_writes_out_another_machine_asks_nothing_of_the_directory_there(
    pattern: str, text: str, word: str
) -> None:
    policy = f'version = 1\n[[rule]]\neffect = "allow"\ncommand = ["cd **", """{pattern}"""]\n'
    assert decide(policy, text).effect.word == word


def test_a_variable_around_the_command_must_be_tolerated() -> None:
    pattern = compiled("npm test")
    for text, env, holds in (
        ("NODE_ENV=test npm test", (), False),
        ("NODE_ENV=test npm test", ("NODE_ENV",), True),
        ("NODE_ENV=test npm test", ("NODE_ENV=t*",), True),
        ("NODE_ENV=prod npm test", ("NODE_ENV=t*",), False),
        ("NODE_ENV=t/x npm test", ("NODE_ENV=t*",), False),
        ("NODE_ENV=t/x npm test", ("NODE_ENV=t**",), True),
        ("NODE_ENV=$X npm test", ("NODE_ENV=*",), False),
        ("NODE_ENV=$X npm test", ("*",), True),
        ("A=1 PATH=/x npm test", ("A",), False),
        ("A=a@b npm test", ("A=a\\@b",), True),
        ("A='a*b' npm test", ("A=a\\*b",), True),
        ("A=axb npm test", ("A=a\\*b",), False),
        ("A='a\\b' npm test", ("A=a\\\\b",), True),
        ("A='x\\' npm test", ("A=x\\",), True),
    ):
        assert pattern.sure(command(text), env) is holds, (text, env)


def test_what_was_set_inside_a_wrapper_counts_for_the_wrapper_too() -> None:
    wrapped = command("env LD_PRELOAD=x ls", inner="LD_PRELOAD=x ls")
    assert not compiled("**").sure(wrapped)
    assert compiled("**").sure(wrapped, ("*",))


def test_nothing_lifts_a_taint_of_the_second_kind() -> None:
    plain = command("npm test")
    tainted = type(plain)(plain.argv, plain.text, tainted="alias", cwd=plain.cwd)
    only = type(plain)(plain.argv, plain.text, strict_only=True, cwd=plain.cwd)
    set_before = type(plain)(plain.argv, plain.text, taint=(Assignment("PATH", Word("/x")),), cwd=plain.cwd)
    for command_ in (tainted, only):
        assert not compiled("**").sure(command_, ("*",))
        assert compiled("npm").maybe(command_, widen=True) is Truth.YES
    assert not compiled("npm test").sure(set_before)
    assert compiled("npm test").sure(set_before, ("PATH",))


def test_a_pattern_in_unless_is_not_widened() -> None:
    pattern = compiled("git push")
    assert pattern.maybe(command("git push"), widen=False) is Truth.YES
    assert pattern.maybe(command("/tmp/git push"), widen=False) is Truth.YES
    assert pattern.maybe(command("git push origin"), widen=False) is Truth.NO
    assert pattern.maybe(command("git -C x push"), widen=False) is Truth.NO
    assert pattern.maybe(command("git $X"), widen=False) is Truth.MAYBE
    assert pattern.maybe(command("git push $$X"), widen=False) is Truth.MAYBE


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("tool a*b", "tool a" + "x" * 400 + "b", True),
        ("tool a*b", "tool a" + "x" * 400 + "/b", False),
        ("tool a**b", "tool a" + "x" * 400 + "/b", True),
        ("tool --x=*", "tool --x=" + "é" * 400, True),
        ("tool a.*", "tool ab" + "x" * 400, False),
        ("tool *a*a*a*a*a*b", "tool " + "a" * 100_000, False),
    ],
)
def test_long_words_match_as_short_ones(pattern: str, text: str, wanted: bool) -> None:
    assert compiled(pattern).sure(command(text)) is wanted


@pytest.mark.parametrize(
    "words",
    [
        ["docker", "run", *["a"] * 300, "rm", "x"],
        ["no-program-of-the-table", *["-a"] * 300, "rm", "x"],
        ["no-program-of-the-table", "a;" * 300 + "rm x"],
        ["no-program-of-the-table", "a " * 9_000 + "; rm x"],
        ["sqlite3", *["a"] * 300, ".shell rm x"],
        ["python", *["-B"] * 300, "-c", "import os; os.system('rm x')"],
        ["python", "-c", "import os; " + "x = 1; " * 300 + "os.system('rm x')"],
        ["python", "-c", "import os #" + "#" * 17_000 + "\nos.system('rm x')"],
    ],
)
def test_no_padding_hides_a_program_among_the_words_of_another(words: list[str]) -> None:
    found = SimpleCommand(tuple(map(Word, words)), "", cwd=("/w",))
    assert compiled("rm **").maybe(found, widen=True) is Truth.MAYBE
    names = program_names(found)
    assert names is None or "rm" in names


def test_of_very_many_goals_any_may_be_meant_and_none_is_looked_at_by_itself() -> None:
    seen = every(command("make " + "a:b " * 1000))
    assert len(seen) < 10
    assert compiled("make deploy").maybe(command("make " + "a " * 1000), widen=True) is Truth.MAYBE


def test_of_very_many_ways_to_see_very_many_words_the_first_are_looked_at_and_the_rest_suspected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    walk: Callable[..., Truth] = strict._walk

    def counted(pattern: object, view: View, states: object, *, widen: bool) -> Truth:
        looked.append(len(view.words))
        return walk(pattern, view, states, widen=widen)

    monkeypatch.setattr(strict, "_walk", counted)
    flood = command("mytool " + "a " * 3_000)
    assert compiled("* ** x ** y").maybe(flood, widen=True) is Truth.MAYBE
    assert sum(looked) < 20_000
    assert compiled("* ** x ** y").maybe(command("mytool " + "a " * 30), widen=True) is Truth.NO


@pytest.mark.slow
def test_ten_thousand_words_are_judged() -> None:
    flood = command("docker " + "$$X -z word " * 4000)
    assert compiled("docker ** --privileged").maybe(flood, widen=True) is Truth.MAYBE
    assert compiled("docker run * * --privileged x").maybe(flood, widen=True) is Truth.MAYBE
    plain = command("git add " + "file " * 10_000)
    assert compiled("git push --force").maybe(plain, widen=True) is Truth.NO
    assert compiled("git add ** -A").maybe(plain, widen=True) is Truth.NO
    assert compiled("git add **").sure(plain)
