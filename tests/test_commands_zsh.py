"""Texts for zsh: what bash reads alike is decided alike, the rest asks; zsh itself is the judge where there is one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from policyd.commands import read
from policyd.commands.dialects.zsh import difference
from policyd.model import Reading, WordKind
from tests.commandrows import decide, table
from tests.commands_generator import Generator
from tests.rowwise import in_groups
from tests.stubground import contradicted, levels, stubs

__all__ = ["stubs"]

TABLE: dict[str, Any] = table("zsh.toml")
POLICY = """
version = 1

[[rule]]
effect = "allow"
command = "**"

[[rule]]
effect = "deny"
command = "rm"
"""
ZSH = shutil.which("zsh")


def reading(text: str, shell: str) -> Reading:
    """Read a text as the shell of that name does."""
    return read(text, cwd=("/w",), home="/h", shell=shell)


@in_groups((text,) for text in TABLE["alike"])
def test_a_text_both_shells_read_alike_is_read_as_for_bash(text: str) -> None:
    assert difference(text) == ""
    assert reading(text, "zsh") == reading(text, "bash")


@in_groups((printed,) for printed in ("a b", "*.py", "a\n b"))
def test_zsh_divides_no_value(printed: str) -> None:
    text = f"x=$(cat <<'E'\n{printed}\nE\n); ls $x"
    assert reading(text, "zsh").commands[-1].argv[1].kind is WordKind.UNKNOWN
    assert reading(text, "bash").commands[-1].argv[1].kind is not WordKind.UNKNOWN


@in_groups((text,) for text in TABLE["apart"])
def test_what_zsh_may_read_otherwise_is_opaque(text: str) -> None:
    assert "may mean something else to zsh" in difference(text)
    found = reading(text, "zsh")
    assert found.opaque
    assert all(level.strict_only for command in found.commands for level in levels(command))


@in_groups((text,) for text in TABLE["apart"])
def test_what_zsh_may_read_otherwise_is_never_allowed(text: str) -> None:
    assert decide(POLICY, text, shell="zsh").effect.word != "allow"  # noqa: S604
    quoted = "'" + text.replace("'", "'\\''") + "'"
    assert decide(POLICY, f"zsh -lc {quoted}").effect.word != "allow"


ROWS = [
    ("git status && ls | wc -l", "allow"),
    ("cd src && rm x", "deny"),
    ("for f in a b; do rm $f; done", "deny"),
    ('echo "$(rm x)"', "deny"),
    ("print -z rm x", "ask"),
    ("ls -la; echo *(e:'rm x':)", "ask"),
]


@pytest.mark.parametrize(("text", "word"), ROWS)
def test_a_text_wrapped_for_zsh_is_decided_as_the_text_is(text: str, word: str) -> None:
    argv = ["zsh", "-lc", text]
    assert decide(POLICY, text, shell="zsh").effect.word == word  # noqa: S604
    assert decide(POLICY, text, given={"command": argv}).effect.word == word
    assert decide(POLICY, text, given={"command": ["/bin/zsh", "-c", text]}).effect.word == word


@pytest.mark.parametrize("options", ["-ic", "-o extendedglob -c", "-fc", "--shwordsplit -c", "-xc"])
def test_zsh_with_other_options_is_not_read(options: str) -> None:
    assert decide(POLICY, f"zsh {options} ls").effect.word == "ask"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(ZSH is None, reason="zsh is not installed")
def test_zsh_runs_no_program_that_policyd_has_not_seen(stubs: Path, tmp_path: Path) -> None:
    for seed in range(2_000_000, 2_004_000):
        text = Generator(seed).text()
        if not difference(text):
            assert not contradicted(text, stubs, tmp_path, (str(ZSH), "-f")), text


@pytest.mark.parametrize("text", ["x=1; p *.a; x=2\nq $x", "x=1; for f in *.a; do p; done; x=2\nq $x"])
def test_behind_a_glob_that_may_match_nothing_no_value_is_sure(text: str) -> None:
    assert read(text, cwd=("/w",), home="/h", shell="zsh").commands[-1].argv[1].text == "$x"  # noqa: S604
    assert read(text, cwd=("/w",), home="/h").commands[-1].argv[1].text == "2"
