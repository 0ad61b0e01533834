"""What is known of what `$(…)` prints before it runs: a part of a path, the head of the repository."""

from __future__ import annotations

import pytest

from policyd.commands import read
from policyd.model import Word, WordKind
from tests.fakes import FakeFilesystem

PARTS = [
    ("dirname src/app.py", "src"),
    ("dirname a", "."),
    ("dirname ../x/y", "../x"),
    ("dirname /a", "/"),
    ("basename a/.env", ".env"),
    ("basename a/b.py .py", "b"),
    ("basename .py .py", ".py"),
]


@pytest.mark.parametrize(("inner", "printed"), PARTS)
def test_a_part_of_a_plain_path_is_known(inner: str, printed: str) -> None:
    for text in (f"p $({inner})", f'p "$({inner})"', f"p `{inner}`", f"x=$({inner}); p $x"):
        assert read(text, cwd=("/w",), home="/h").commands[-1].argv[1:] == (Word(printed),), text


@pytest.mark.parametrize(
    "text",
    [
        "p $(dirname a b)", "p $(dirname -z a/b)", "p $(dirname a//b)", "p $(dirname a/b/)", "p $(dirname 'a b/c')",
        "p $(dirname $X)", "p $(dirname a/b; x)", "p $(./dirname a/b)", "p $(dirname a/b | x)", "p $(A=1 dirname a/b)",
        "alias dirname=x; p $(dirname a/b)", "PATH=/x; p $(dirname a/b)", "IFS=/; p $(dirname a/b)",
        "p $(dirname 'a*/b')",
        "dirname() { x; }; p $(dirname a/b)", "p $(timeout 1 dirname a/b)", "p $(basename -a a b)",
        "p $(dirname a/b c)", "p $(dirname a/b 2>&1)", "p $(git rev-parse HEAD 2>&1)",
    ],
)  # fmt: skip
def test_a_part_of_another_path_is_not_known(text: str) -> None:
    seen = read(text, cwd=("/w",), home="/h").commands
    assert [command.argv[1].kind for command in seen if command.argv[0].text == "p"] == [WordKind.UNKNOWN]


TOP = 'cd "$(git rev-parse --show-toplevel)"'


@pytest.mark.parametrize(
    ("files", "places"),
    [
        ({}, ["/w/a/b"]),
        ({"/w/a/b/.git": None}, ["/w/a/b"]),
        ({"/w/.git": None}, ["/w/a/b", "/w/a", "/w"]),
        ({"/w/a/.git": "gitdir: x", "/w/a/b/.git": None}, ["/w/a/b", "/w/a"]),
        ({"/.git": None}, ["/w/a/b", "/w/a", "/w", "/"]),
    ],
)
def test_the_head_of_the_repository_is_any_directory_up_to_the_last_that_looks_like_one(
    files: dict[str, str | None], places: list[str]
) -> None:
    seen = read(f"{TOP} && ls", cwd=("/w/a/b",), home="/h", fs=FakeFilesystem({"/w/a/b": None, **files}))
    assert list(seen.commands[-1].cwd) == places


def test_the_head_of_a_repository_behind_a_link_is_looked_for_where_the_link_leads() -> None:
    fs = FakeFilesystem({"/w": None, "/o/.git": None, "/o/p": None}, {"/w/l": "/o/p"})
    seen = read(f"{TOP} && ls", cwd=("/w/l",), home="/h", fs=fs)
    assert set(seen.commands[-1].cwd) == {"/w/l", "/o/p", "/o"}


@pytest.mark.parametrize(
    "text",
    [
        "cd $(git rev-parse --show-toplevel)",
        'cd "$(git rev-parse --show-toplevel)/x"',
        'cd "$(git -C /x rev-parse --show-toplevel)"',
        f"cd x; {TOP}",
        f"git() {{ a; }}; {TOP}",
        f"alias git=x; {TOP}",
        f"export GIT_WORK_TREE=/x; {TOP}",
        f"GIT_DIR=/x; export GIT_DIR; {TOP}",
        f"pushd /x; {TOP}",
    ],
)
def test_the_head_of_another_repository_is_not_known(text: str) -> None:
    assert read(f"{text} && ls", cwd=("/w",), home="/h", fs=FakeFilesystem({"/w": None})).commands[-1].cwd == ()


def test_where_directories_cannot_be_looked_at_the_head_of_the_repository_is_not_known() -> None:
    assert read(f"{TOP} && ls", cwd=("/w",), home="/h").commands[-1].cwd == ()
    assert read(f"{TOP} && ls", cwd=("/w", "/v"), home="/h", fs=FakeFilesystem()).commands[-1].cwd == ()
    locked = FakeFilesystem({"/w": None}, errors=frozenset({"/w"}))
    assert read(f"{TOP} && ls", cwd=("/w",), home="/h", fs=locked).commands[-1].cwd == ()
