"""The table of programs: every entry has a source and examples, and the examples come out."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from policyd.commands import read
from policyd.commands.argv import programs, scripts, values
from policyd.commands.argv.options import options
from policyd.commands.files import mentions, sentwords
from policyd.commands.files.mentions import is_remote, one_piece, parts
from policyd.commands.files.operands import PLACES, uses
from policyd.commands.matching import views
from policyd.commands.matching.patterns import levels, plain_name
from policyd.commands.sets import closed
from policyd.model import WRITE_KINDS, FileUse, Reach, Role, SimpleCommand, Word
from tests.commandrows import table
from tests.fakes import FakeFilesystem
from tests.rowwise import in_groups
from tests.words import command

MARK = {
    Reach.ENTRY: "",
    Reach.NAMES: "//",
    Reach.CONTENT: "/**",
    Reach.FILES: "/*",
    Reach.UNTOLD: "/...",
    Reach.LINK: "->",
}


def _all() -> Iterator[programs.Program]:
    todo = [program for name in programs.known() if (program := programs.find(name))]
    while todo:
        program = todo.pop(0)
        yield program
        todo.extend({sub.name: sub for sub in program.subs.values()}.values())


def _examples(key: str) -> list[str]:
    return [text for program in _all() for text in cast("list[str]", program.examples.get(key, []))]


def _files() -> list[tuple[str, str]]:
    return [item for program in _all() for item in cast("Mapping[str, str]", program.examples.get("files", {})).items()]


def why(given: SimpleCommand) -> str:
    """Return why the table does not vouch for a command."""
    name = plain_name(given.argv[0])
    called = programs.called(name, given.argv[1:])
    assert called is not None, name
    return closed.reason(called, writes=called.program.role == "writer")


def test_the_table_knows_at_least_120_programs_each_with_source_and_examples() -> None:
    names = programs.known()
    assert len(names) >= 120
    for program in map(programs.find, names):
        assert program is not None
        assert program.source, program.name
        assert any(sub.examples for sub in (program, *program.subs.values())), program.name


def test_roles_checkers_and_values_are_words_the_code_knows() -> None:
    roles = {
        "data",
        "read",
        "search",
        "edit",
        "delete",
        "move",
        "mention",
        "mount",
        "link",
        "copy",
        "pretty",
        "posargs",
        "lints",
        "run",
        "url",
        "host",
        "config",
        "code",
        "at",
    }
    more = {
        "rev",
        "command",
        "shell",
        "entry",
        "text",
        "goal",
        "tests",
        "script",
        "own",
        "package",
        "remote-read",
        "remote-edit",
        "program",
        "member",
        "most",
        "number",
        "imports",
        "lines",
        "term",
        "undotted",
        "place",
        "commit",
        "count",
        "names",
        "columns",
        "order",
        "ports",
        "endings",
        "only",
        "but",
        "backup",
        "asked",
        "printed",
        "message",
        *sentwords.ROLES,
        *mentions.ADDRESSES,
        *values.LISTS,
        "plugin",
    }
    for program in _all():
        assert {role.rstrip("*") for role in program.operands} <= roles | more, program.name
        assert program.check in {"", "git", *scripts.CHECKERS}, program.name
        assert program.role in {"", "reader", "writer"}, program.name
        more |= {""}
        for option in program.syntax.options.values():
            assert set(option.value.split("+")) <= roles | more, (program.name, option)
        if program.untold is not None:
            assert set(program.untold.kinds) <= WRITE_KINDS, program.name
            told = (program.untold.where, program.untold.when, program.untold.unless, program.untold.again)
            assert all(name in program.syntax.options for names in told for name in names), program.name
        for names in (program.deep, program.shallow, program.hidden, program.instead, program.target, program.modes):
            assert all(name in program.syntax.options for name in names if names), (program.name, names)


@in_groups((text,) for text in _examples("match"))
def test_the_table_vouches_for(text: str) -> None:
    assert why(command(text)) == ""


@in_groups((text,) for text in _examples("not_match"))
def test_the_table_does_not_vouch_for(text: str) -> None:
    assert why(command(text)) != ""


def _named_beside(use: FileUse) -> bool:
    return use.role is Role.MENTION and use.reach is not Reach.UNTOLD


@in_groups(_files())
def test_what_is_done_to_which_file(text: str, expected: str) -> None:
    found, _, _ = uses(command(text), 0)
    named = [
        f"{'mention' if _named_beside(use) else use.kind} {use.word.text}{MARK[use.reach]}"
        for use in found
        if not _named_beside(use) or "mention" in expected
    ]
    assert sorted(named) == sorted(expected.split(", ") if expected else [])


@in_groups(table("options.toml").items())
def test_an_option_takes_the_next_word_only_where_the_program_says_so(key: str, lists: dict[str, str]) -> None:
    name = lists.get("program", key)
    outer, _, sub = name.partition(" ")
    program = programs.find(outer)
    assert program is not None
    known = (program.subs[sub] if sub else program).syntax.options
    flags = (text for text in lists.get("flags", "").split() if text in known and known[text].takes_next)
    unseen = (text for text in flags if known[text].value not in PLACES)
    swallowed = [text for text in unseen if not why(command(f"{name} {text} ./x"))]
    assert swallowed == [], f"what stands behind would not be seen; {lists['source']}"
    valued = (known[text] for text in lists.get("valued", "").split() if text in known)
    assert [option for option in valued if not option.takes_next and not option.unsafe] == [] or "(" in key


def _named(text: str) -> tuple[list[str], list[str], list[str], list[str]]:
    files, urls, opaque = uses(command(text), 0)
    return (
        [f"{use.kind} {use.word.text}" for use in files if use.role is Role.OPERAND],
        [use.word.text for use in files if use.role is Role.MENTION],
        [use.text for use in urls],
        opaque,
    )


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("mytool .env", [".env"]),
        ("mytool --file=.env", [".env"]),
        ("mytool -f.env", [".env"]),
        ("mytool x=.env @.env", ["x=.env", ".env", "@.env", ".env"]),
        ("mytool a:.env", ["a:.env", ".env", "a"]),
        ("mytool .env:/x:ro", [".env:/x:ro", "/x:ro", ".env", "/x", "ro"]),
        ("mytool a=b=.env", ["a=b=.env", "b=.env", ".env"]),
        ("mytool --x=y,.env", ["y,.env", ".env", "y"]),
        ("mytool -vf.env", ["f.env", ".env"]),
        ("mytool file:///w/%2eenv", ["/w/.env", "file:///w/%2eenv", "///w/%2eenv", "file"]),
        ("mytool https://x.invalid/.env s3://b/k --f=http://x:80/y?z=/w", []),
        ("mytool --x=https://x.invalid/a,.env", [",.env", ".env"]),
        ("mytool '<.env'", ["<.env", ".env"]),
        ('mytool \'{"f":".env"}\'', ['{"f":".env"}', '".env"}', '{"f"', "f", ".env"]),
        ("mytool 'a=@.env;type=x'", ["a=@.env;type=x", "@.env;type=x", ".env;type=x", "type=x", ".env", "x"]),
        ("mytool s3://b/../.env", ["s3://b/../.env", "//b/../.env", "s3"]),
        ("mytool unix:///run/x odd://b", ["unix:///run/x", "///run/x", "unix", "odd://b", "//b", "odd"]),
        ("git show secrets:a", ["secrets:a", "a"]),
        ("npm run docs:build", []),
        ("mytool --flag -v", []),
        ("mytool *.pem", ["*.pem"]),
        ("./cat .env", [".env"]),
        ("git show HEAD:.env", ["HEAD:.env", ".env"]),
        ("mytool $X", []),
        ("mytool secrets/$X", ["secrets/*"]),
        ("ssh host cat .env", ["cat", ".env"]),
        ("node a.js .env", [".env"]),
    ],
)
def test_words_that_may_be_paths_are_mentions(text: str, mentions: list[str]) -> None:
    assert _named(text)[1] == mentions


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("git diff -- Makefile", True),
        ("git show HEAD:Makefile", True),
        ("git log -L 1,5:Makefile", True),
        ("git reset HEAD Makefile", True),
        ("git checkout Makefile", False),
        ("git stash push Makefile", False),
        ("strange Makefile", False),
    ],
)
def test_what_git_only_shows_is_a_mention_of_which_is_known_what_is_done(text: str, known: bool) -> None:
    files = [use for use in uses(command(text), 0)[0] if use.role is Role.MENTION and use.word.text == "Makefile"]
    assert [(use.kind, use.known) for use in files if use.reach is not Reach.UNTOLD] == [
        ("search" if known else "read", known)
    ]


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("curl -s https://x.invalid/a", ["https://x.invalid/a"]),
        ("curl x.invalid/a", ["http://x.invalid/a"]),
        ("wget https://x.invalid", ["https://x.invalid"]),
        ("git clone https://x.invalid/a.git b", ["https://x.invalid/a.git"]),
        ("git clone git@x.invalid:a/b", ["ssh://x.invalid/a/b"]),
        ("git push https://x.invalid/a", ["https://x.invalid/a"]),
        ("git remote add o https://x.invalid/a", ["https://x.invalid/a"]),
        ("scp a me@x.invalid:b", ["ssh://x.invalid/b"]),
        ("rsync -a a x.invalid:b", ["ssh://x.invalid/b"]),
        ("ssh me@x.invalid ls", ["ssh://x.invalid"]),
        ("mytool --url=https://x.invalid", ["https://x.invalid"]),
        ("npm install --registry=https://x.invalid", ["https://x.invalid"]),
        ("curl $X", ["unknown://anywhere/"]),
        ("curl https://x.invalid$X", ["unknown://anywhere/"]),
        ("curl --url https://u@x.invalid:80/$X", ["unknown://x.invalid/"]),
        ("git clone $X", ["unknown://anywhere/"]),
        ("git log $X", []),
        ("docker pull x.invalid/a", ["http://x.invalid/a"]),
        ("nc x.invalid 80", ["ssh://x.invalid"]),
        ("npx https://x.invalid/a.tgz", ["https://x.invalid/a.tgz"]),
        ("python -c 'get(\"https://x.invalid/a\")'", ["https://x.invalid/a"]),
        ("mytool --to=s3://b/k,https://x.invalid", ["s3://b/k", "https://x.invalid"]),
        ("echo https://x.invalid", []),
        ("grep https://x.invalid f", []),
        ("gh api https://x.invalid/a", ["https://x.invalid/a"]),
        ("yarn add https://x.invalid/a", ["https://x.invalid/a"]),
        ("docker -H tcp://x.invalid:1 ps", ["tcp://x.invalid:1"]),
        ("kubectl -s https://x.invalid get pods", ["https://x.invalid"]),
        ("git commit -m 'see https://x.invalid'", []),
    ],
)
def test_urls_in_commands_are_mentions(text: str, urls: list[str]) -> None:
    assert list(dict.fromkeys(_named(text)[2])) == urls


@pytest.mark.parametrize(
    "text",
    [
        "rg --pre id x",
        "sort --compress-program=id f",
        "sort --comp id f",
        "tar xf x --to-command=id",
        "git -c core.pager=id log",
        "git -c alias.x=!id x",
        "git clone 'ext::id x' y",
        "git remote add o ext::id",
        "git -c include.path=/tmp/x log",
        "sed 1e f",
        "rsync -e x a b",
        "go test -exec /tmp/x ./...",
        "pytest -p evil",
    ],
)
def test_an_option_that_runs_a_program_is_opaque(text: str) -> None:
    assert _named(text)[3]


@pytest.mark.parametrize("text", ["git -c color.ui=never log", "git -c core.pager=cat log", "rg x", "sort f"])
def test_harmless_options_are_not_opaque(text: str) -> None:
    assert not _named(text)[3]


def test_an_operand_that_is_not_constant_cannot_be_told() -> None:
    files, _, _ = uses(command("cat $F"), 0)
    assert [bool(use.unknown) for use in files] == [True]


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("cat a", [True]),
        ("sort -o out f", [False, True]),
        ("uniq f out", [True, False]),
        ("sed -i p f", [True, False]),
        ("find . -delete", [False, True]),
        ("git diff --output=x", [False]),
        ("cp a b", [True, True]),
        ("rm a", [True]),
        ("curl -o out https://x.invalid", [True]),
        ("xxd -r a b", [True, False]),
    ],
)
def test_a_reader_carries_reads_only_and_a_writer_what_it_writes(text: str, carried: list[bool]) -> None:
    files, _, _ = uses(command(text), 0)
    assert [use.carried for use in files if use.role is Role.OPERAND] == carried


def test_operands_of_a_wrapped_command_are_those_of_the_inner_one() -> None:
    files, _, _ = uses(command("timeout 5 cat .env", inner="cat .env"), 3)
    assert [(use.word.text, use.command) for use in files] == [(".env", 3)]


def test_a_copy_into_a_directory_that_exists_names_the_file_it_makes() -> None:
    fs = FakeFilesystem({"/home/dev/app/d": None})
    files, _, _ = uses(command("cp a/x d"), 0, fs=fs)
    assert [use.word.text for use in files] == ["a/x", "d", "d/x"]
    files, _, _ = uses(command("cp a/x d"), 0)
    assert [use.word.text for use in files] == ["a/x", "d"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("git -C sub log -p -- ../a", "/w/a"),
        ("git -C sub show HEAD:./a", "/w/sub/a"),
        ("git -C sub -C deep log -L1,2:../a", "/w/sub/a"),
        ("git -C sub show HEAD:lib/a", "/w/lib/a"),
        ("git show :0:lib/a", "/w/lib/a"),
        ("git -C sub grep x -- :/lib/a", "/w/lib/a"),
        ("git -C sub grep x -- ':(top,icase)lib/a'", "/w/lib/a"),
        ("git -C sub log sub", "/w/sub/sub"),
        ("git -C sub/deep cat-file -p :lib/a", "/w/lib/a"),
    ],
)
def test_paths_of_git_begin_where_it_is_told_to_run_and_at_the_top_of_the_repository(text: str, path: str) -> None:
    given = replace(command(text), cwd=("/w",))
    found = uses(given, 0, fs=FakeFilesystem({"/w/.git/HEAD": ""}))[0]
    assert path in {posixpath.normpath(posixpath.join(place, use.word.text)) for use in found for place in use.cwd}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("git am x", {"/w"}),
        ("git checkout a", {"/w/sub/a"}),
        ("git checkout a gone", {"/w/sub/a", "/w/sub/gone"}),
        ("git checkout gone a", {"/w/sub/a"}),
        ("git checkout -- gone", {"/w/sub/gone"}),
        ("git checkout --pathspec-from-file=x", {"/w"}),
        ("git -C .. restore .", {"/w"}),
        ("git -C /other am x", {"/other"}),
        ("git --work-tree=/x am x", {"/w", "/x"}),
        ("git apply x", {"/w/sub"}),
        ("git restore '*.py'", {"/w"}),
        ("git restore *.py", {"/w/sub/*.py"}),
    ],
)
def test_a_command_that_changes_a_working_tree_changes_it_from_its_top(text: str, places: set[str]) -> None:
    given = replace(command(text), cwd=("/w/sub",))
    found = uses(given, 0, fs=FakeFilesystem({"/w/.git/HEAD": "", "/w/sub/a": ""}))[0]
    below = [use for use in found if use.reach is Reach.UNTOLD]
    assert {posixpath.normpath(posixpath.join(place, use.word.text)) for use in below for place in use.cwd} == places
    assert {use.kind for use in below} == {"edit", "delete"}


def test_what_moves_to_another_commit_is_not_looked_into() -> None:
    for text in ("git checkout main", "git checkout gone", "git checkout main --", "git switch -", "git pull"):
        found = uses(command(text), 0, fs=FakeFilesystem({"/w/.git/HEAD": ""}))[0]
        assert [use for use in found if use.reach is Reach.UNTOLD] == [], text


def test_the_top_of_a_working_tree_is_looked_for_behind_links() -> None:
    given = replace(command("git am x"), cwd=("/h/link",))
    found = uses(given, 0, fs=FakeFilesystem({"/w/.git/HEAD": "", "/w/sub/a": ""}, {"/h/link": "/w/sub"}))[0]
    assert {use.cwd for use in found if use.reach is Reach.UNTOLD} == {("/w",)}


def test_behind_a_directory_of_git_that_is_not_known_no_place_is() -> None:
    given = replace(command("git -C $X show HEAD:a"), cwd=("/w",))
    assert {use.cwd for use in uses(given, 0)[0] if use.word.text == "a"} == {()}


def test_a_search_that_skips_hidden_names_says_so() -> None:
    assert [use.skips_hidden for use in uses(command("rg x"), 0)[0]] == [True]
    assert [use.skips_hidden for use in uses(command("rg -. x"), 0)[0]] == [False]
    assert [use.skips_hidden for use in uses(command("rg -uu x"), 0)[0]] == [False]
    assert [use.skips_hidden for use in uses(command("grep -r x"), 0)[0]] == [False]


def test_a_formatter_says_how_the_names_of_its_files_end_unless_an_option_may_change_that() -> None:
    assert [use.endings for use in uses(command("black src"), 0)[0]] == [(".py", ".pyi", ".ipynb")]
    assert {use.endings for use in uses(command("black --include x src"), 0)[0]} == {()}
    assert {use.endings for use in uses(command("black $X src"), 0)[0]} == {()}
    assert [use.endings for use in uses(command("rm -r src"), 0)[0]] == [()]


@pytest.mark.parametrize(
    ("text", "endings"),
    [
        ("grep -rn x . --include=*.py", (".py",)),
        ("grep -rn --include '*.ts' --include=test_*.tsx x .", (".ts", ".tsx")),
        ("grep -rn --include='*.py' --exclude='a*' x .", (".py",)),
        ("grep -rn --exclude='a*' --include='*.py' x .", ()),
        ("grep -rn --exclude-from=a --include='*.py' x .", ()),
        ("grep -rn --include='*' --include='*.py' x .", ()),
        ("grep -rn --include='*.[ch]' x .", ()),
        ("grep -rn --include='*.p?' x .", ()),
        ("grep -rn --include=$X x .", ()),
        ("grep -rn --include='*.py' --frob x .", ()),
        ("grep -rn x .", ()),
    ],
)
def test_patterns_of_the_only_names_bound_what_a_search_reads_below(text: str, endings: tuple[str, ...]) -> None:
    assert {use.endings for use in uses(command(text), 0)[0] if use.role is not Role.MENTION} == {endings}


def test_endings_that_are_added_count_too() -> None:
    assert [use.endings[-2:] for use in uses(command("eslint --fix --ext .a,.env src"), 0)[0]][-1:] == [(".a", ".env")]
    assert {use.endings for use in uses(command("eslint --fix --ext $X src"), 0)[0]} == {()}


@pytest.mark.parametrize(
    "text", ["deno eval \"Deno.readTextFileSync('a/.env')\"", "sqlite3 x.db '.read a/.env'", "frob 'open(`a/.env`)'"]
)
def test_code_that_is_an_operand_names_the_files_of_its_strings(text: str) -> None:
    assert "a/.env" in {use.word.text for use in uses(command(text), 0)[0]}


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("eslint --fix src", ["src"]),
        ("eslint src", []),
        ("ruff check --fix", ["."]),
        ("ruff check src --add-noqa tests", ["src", "tests"]),
        ("rubocop -A", ["."]),
        ("codespell -w README.md", ["README.md"]),
        ("golangci-lint run --fix ./pkg/a", ["./pkg/a"]),
        ("biome check --write a.ts", ["a.ts"]),
    ],
)
def test_a_checker_that_mends_writes_what_it_checks(text: str, edited: list[str]) -> None:
    found = [use for use in uses(command(text), 0)[0] if use.kind == "edit"]
    assert [(use.word.text, use.carried, use.reach) for use in found] == [
        (path, True, Reach.CONTENT) for path in edited
    ]


@pytest.mark.parametrize(
    ("text", "opaque"),
    [
        (f"sed '{'p;' * 10_000}' f", True),
        (f"awk '{{{'print;' * 5_000}}}' f", True),
        (f"ls -{'l' * 1_000} f", False),
        (f"sed '{'p;' * 5_000}' f", False),
        (f"ls -{'l' * 50} f", False),
    ],
    ids=["sed", "awk", "cluster", "shorter sed", "shorter cluster"],
)
def test_what_is_longer_than_anybody_writes_is_not_vouched_for(text: str, opaque: bool) -> None:
    vouched = len(text) < 15_000 and "l" * 100 not in text
    assert (why(command(text)) == "") == vouched
    assert any("too long" in reason for reason in _named(text)[3]) == opaque


def test_the_notation_of_options_reads_spellings_values_and_marks() -> None:
    table = options("-o|--out=edit -c[=data] -i! -p=data+read -#")
    assert table["-o"] is table["--out"]
    assert (table["-o"].value, table["-o"].unsafe, table["-o"].takes_next) == ("edit", True, True)
    assert (table["-c"].glued, table["-c"].takes_next) == (True, False)
    assert (table["-i"].unsafe, table["-i"].value) == (True, "")
    assert table["-p"].value == "data+read"


def test_an_applet_and_a_subprogram_are_what_they_stand_for() -> None:
    assert {view.program.text for view in views.views(command("busybox rm x"))} == {"busybox", "rm"}
    assert {view.program.text for view in views.views(command("git-push x"))} == {"git-push", "git"}


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("grep x *", True),
        ("grep x -?", True),
        ("cat [!a]*", True),
        ("for f in *; do wc $f; done", True),
        ("cd .. && grep x *", False),
        ("grep x -- *", False),
        ("grep x ./*", False),
        ("grep x [a-z]*", False),
        ("grep x *.py", False),
        ("echo *", False),
    ],
)
def test_a_file_that_a_glob_makes_an_option_is_not_overlooked(text: str, becomes: bool) -> None:
    found = read(text, cwd=("/w/d",), home="/h", fs=FakeFilesystem({"/w/d/-R": "", "/w/d/f": "", "/w/g": ""})).opaque
    assert found == (("`-R` lies where it runs and becomes an option",) if becomes else ())


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("shopt -s dotglob; cat *", True),
        ("bash -c 'shopt -s dotglob; cat src/*'", True),
        ("GLOBIGNORE=x; cat *", True),
        ("BASHOPTS=dotglob bash -c 'cat *'", True),
        ("set -o globdots; cat *", True),
        ("shopt -s dotglob; cat a", False),
        ("set -e; cat *", False),
        ("x=1; cat *", False),
    ],
)
def test_a_glob_behind_options_of_the_shell_finds_more_than_it_says(text: str, more: bool) -> None:
    found = read(text, cwd=("/w",), home="/h").opaque
    assert bool([reason for reason in found if "may find other names" in reason]) == more


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("git -C evil status", True),
        ("git -C evil/wt log", True),
        ("cd evil && git status", True),
        ("cd evil/wt; git diff", True),
        ("git status", False),
        ("git -C src log", False),
        ("git -C .git log", False),
        ("cd src && git status", False),
        ("ls evil", False),
        ("cd /bare && git log", False),
        ("cd linked && git log", True),
        ("cd sparse && git log", True),
        ("cd apart && git log", True),
        ("cd headless && git log", False),
    ],
)
def test_a_repository_that_came_with_another_one_is_not_overlooked(text: str, taken: bool) -> None:
    heads = ("/w/.git", "/w/evil", "/bare")
    lies = {f"{head}/{name}": "" for head in heads for name in ("HEAD", "config", "objects/x", "refs/x")}
    odd = ("linked/objects/x", "linked/refs/x", "sparse/HEAD", "sparse/objects", "sparse/refs", "apart/HEAD")
    more = (*odd, "apart/commondir", "headless/objects/x", "headless/refs/x", "evil/wt/f", "src/f")
    links = {"/w/linked/HEAD": "refs/heads/x"}
    fs = FakeFilesystem({**lies, **{f"/w/{name}": "" for name in more}}, links)
    found = read(text, cwd=("/w",), home="/h", fs=fs).opaque
    assert bool([reason for reason in found if "is a repository inside another" in reason]) == taken
    assert taken or not found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("curl file:///home/dev/app/.env", "/home/dev/app/.env"),
        ("curl -o x FILE://localhost/etc/shadow", "/etc/shadow"),
        ("curl file:/etc/%70asswd", "/etc/passwd"),
        ("git clone file:///srv/x", "/srv/x"),
    ],
)
def test_the_file_of_a_file_url_is_read(text: str, path: str) -> None:
    assert f"read {path}" in _named(text)[0]


def test_a_word_that_names_more_than_is_looked_at_is_opaque() -> None:
    assert _named("mytool " + ":".join(f"a{number}" for number in range(100)))[3]
    assert not _named("mytool " + ":".join("a" * 100))[3]


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from(list("ab1./_-+%~=:@,*'")), min_size=1, max_size=12))
def test_a_word_in_which_nothing_is_marked_off_is_its_only_part(text: str) -> None:
    if one_piece(text):
        word = Word(text)
        assert list(parts(word)) == [word]
        assert not is_remote(word)


PROJECT = FakeFilesystem(
    {
        "/w/.git": None,
        "/w/node_modules/.bin/tsc": "",
        "/w/sub/.git": None,
        "/node_modules/.bin/jest": "",
        "/w/lib": None,
    }
)


@pytest.mark.parametrize(
    ("text", "cwd", "found"),
    [
        ("npx tsc --noEmit", "/w", True),
        ("npx tsc --noEmit", "/w/lib", True),
        ("timeout 9 npx tsc", "/w", True),
        ("mkdir a && npx tsc", "/w", True),
        ("npx tsc", "/w/sub", False),
        ("npx jest", "/w", False),
        ("npx tsc@5", "/w", False),
        ("npx --yes tsc", "/w", False),
        ("npx -p x tsc", "/w", False),
        ("npx ../.bin/tsc", "/w", False),
        ("npx $X", "/w", False),
        ("bunx tsc", "/w", False),
        ("cd sub; npx tsc", "/w", False),
        ("mv node_modules x && npx tsc", "/w", False),
        ("rm -r node_modules; npx tsc", "/w", False),
    ],
)
def test_npx_runs_what_the_project_installed_where_it_did(text: str, cwd: str, found: bool) -> None:
    last = read(text, cwd=(cwd,), home="/home/dev", fs=PROJECT).commands[-1]
    names = [level.argv[0].text for level in levels(last)]
    assert (names[-1] == "node_modules/.bin/tsc") is found
