"""Programs themselves as judges: what the table calls harmless changes no file when it is run.

Slow: each case starts a program. Only commands that the table vouches for are run, in a scratch directory.
"""

from __future__ import annotations

import os
import random
import shutil
import string
import subprocess
from pathlib import Path

import pytest

from policyd.commands.argv import programs, sedscript
from policyd.commands.argv.awkscript import awk_harm
from policyd.commands.sets import closed
from policyd.model import Word

pytestmark = pytest.mark.slow


def listed(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


SED = [*listed("s y e w r W p d a i c b t : { } ; ! 1 2 $ , / \\ [ ] x g | # q n N = ~ + I ^ * . & -"), "\n", " "]
SED += ["w f", "e id", "s/a/b/", "/x/", "y/a/b/", "}", "\\n", "\\/", "{p;", "a\\\n", "[^/]", "s/[/]/x/e"]
AWK = ["print", "printf", "{", "}", "(", ")", ";", "\n", " ", '"x"', '"\\""', '"a>b"', '"/"', "/x/", '/"/', "/[/]/"]
AWK += [">", ">>", "|", "$1", "1", "x", "a[1]", "/", "+", "++", "!", "~", "if(1)", "BEGIN", "END", ",", "?", ":", "in"]
AWK += ['system("touch P")', '"touch P"', '>"P"', '|"touch P"', "#", "\\\n", "return", "getline", "substr", '"', '\\"']
NAMES = [
    *listed("sort uniq cut paste join comm column fold fmt expand rev strings od hexdump xxd base64 md5sum cmp diff"),
    *listed("file stat ls du readlink basename seq grep nl tac head tail wc tr iconv jq find sed cat date"),
]
OTHER = [*listed("f g out dir - 1 . x +x a=b -o -oout --output=out 1d .a %s"), "--"]


def test_no_sed_script_called_harmless_is_refused_by_the_sandbox() -> None:
    if "GNU" not in subprocess.run(["sed", "--version"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("no GNU sed")
    chance = random.Random(3)  # noqa: S311
    for _ in range(4000):
        script = "".join(chance.choice(SED) for _ in range(chance.randint(1, 9)))
        if not sedscript.read(script).harm:
            args = ["sed", "--sandbox", "-n", "-e", script, "/dev/null"]
            done = subprocess.run(args, capture_output=True, text=True, timeout=5, check=False)
            assert "sandbox" not in done.stderr, script


def test_no_awk_program_called_harmless_writes_or_runs(tmp_path: Path) -> None:
    awk = shutil.which("mawk") or shutil.which("gawk")
    if awk is None:
        pytest.skip("no awk")
    (tmp_path / "in").write_text('x y z\nfoo "bar" / 1\n')
    chance = random.Random(4)  # noqa: S311
    for _ in range(8000):
        script = "".join(chance.choice(AWK) for _ in range(chance.randint(1, 10)))
        if not awk_harm(script):
            run([awk, script, "in"], tmp_path)
            assert os.listdir(tmp_path) == ["in"], script


def test_no_command_the_table_vouches_for_changes_a_file(tmp_path: Path) -> None:
    for name, text in (("f", "b 2\na 1\n"), ("g", '{"a":1}\n'), ("dir/h", "x\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = contents(tmp_path)
    chance = random.Random(5)  # noqa: S311
    for _ in range(6000):
        name = chance.choice(NAMES)
        words = arguments(name, chance)
        called = programs.called(name, tuple(map(Word, words)))
        if called is not None and shutil.which(name) and not closed.reason(called):
            run([name, *words], tmp_path)
            assert contents(tmp_path) == before, [name, *words]


def arguments(name: str, chance: random.Random) -> list[str]:
    """Make up words, many of them options of the program."""
    program = programs.find(name)
    assert program is not None
    options = sorted(program.syntax.options)
    words = []
    for _ in range(chance.randint(0, 6)):
        kind = chance.random()
        if kind < 0.4:
            words.append(chance.choice(options) + chance.choice(["", "", "out", "=out", "1"]))
        elif kind < 0.5:
            words.append("-" + "".join(chance.choice(string.ascii_letters) for _ in range(chance.randint(1, 3))))
        else:
            words.append(chance.choice(OTHER))
    return words


def contents(folder: Path) -> dict[str, str]:
    """Return every file below with its text."""
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(args: list[str], folder: Path) -> None:
    """Run a program that should only read; one that waits is ended."""
    env = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    try:
        subprocess.run(args, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=2, check=False)
    except subprocess.TimeoutExpired:
        return
