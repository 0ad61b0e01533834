"""Laws of shell text: no failure, no long thought, and no `rm` that runs is allowed where `rm` is denied."""

from __future__ import annotations

import re

from policyd.commands import CommandPattern, PatternError, read, read_argv
from policyd.model import Decision, Effect, Source, Truth
from tests.commandrows import CWD, FILES, HOME, decide
from tests.fuzz.law import hold

POLICY = """version = 1
[defaults]
"*" = "allow"
[[rule]]
effect = "deny"
command = "rm"
"""
SHELLS = ("bash", "zsh", "sh")
PLAIN = re.compile(r"[A-Za-z0-9_ ./;&|\n-]+")
WORDS = (
    "rm x;",
    "&&",
    "\n",
    "$(rm x)",
    "`rm x`",
    "<<EOF",
    "EOF",
    "'",
    '"',
    "\\",
    "${",
    "}",
    "$((",
    "))",
    "((",
    "[[",
    "]]",
    "{ ",
    "; }",
    "(",
    ")",
    "for i in",
    "; do",
    "done",
    "case x in",
    "esac",
    "if",
    "then",
    "fi",
    "while",
    "function f",
    "f()",
    "&",
    ">",
    ">>",
    "<",
    "<(",
    ">&2",
    "2>&1",
    "$'\\x72m'",
    "*",
    "?",
    "[a]",
    "~",
    "!",
    "eval",
    "exec",
    "env",
    "xargs",
    "sh -c",
    "bash -c",
    "find . -exec",
    "+=",
    "A=",
    "#",
    "$X",
    "$@",
    "${X:-rm}",
    "${!X}",
    "alias",
    "set --",
    "shift",
    "read",
    "trap",
    "source",
    ".",
    "command",
    "builtin",
    "sudo",
    "cd /",
    "~root",
    "é",
    "\x00",
    "\r",
    "\t",
    "-",
    "--",
    "<<<",
    "<<-",
    "",
    "&",
    ";;",
    ";&",
    "coproc",
    "time",
    "select",
    "until",
    "declare",
    "local",
    "export",
    "printf -v",
    "mapfile",
    "unset",
    "[",
    "{a,b}",
    "{1..3}",
    "@(a)",
    "!(a)",
    "EOF\n",
)


def check(data: bytes) -> None:
    """Read and decide a text where `rm` is denied and all else allowed."""
    check_under(POLICY, data)


def check_under(policy: str, data: bytes) -> None:
    """Read and decide a text.

    Raises:
        LawBroken: policyd failed, or an `rm` that runs is allowed.
    """
    shell, text = SHELLS[len(data) % 3], data.decode("utf-8", "replace")
    read(text, cwd=(CWD,), home=HOME, shell=shell, fs=FILES)
    found = _decide(policy, text, shell)
    hold(not (_runs_rm(text) and found.effect is Effect.ALLOW), "a plain `rm` is allowed", text)
    hold(_decide(policy, f"rm x\n{text}", shell).effect is not Effect.ALLOW, "an `rm` before it is allowed", text)
    hold(
        _decide(policy, f"echo $(rm x)\n{text}", shell).effect is not Effect.ALLOW,
        "an inner `rm` before it is allowed",
        text,
    )
    if found.effect is Effect.ALLOW and "<<" not in text and not text.endswith("\\"):
        after = _decide(policy, f"{text}\nrm x", shell)
        hold(after.effect is not Effect.ALLOW, "an `rm` after it is allowed", text)


def _decide(policy: str, text: str, shell: str) -> Decision:
    found = decide(policy, text, shell=shell)
    hold(found.source is not Source.ERROR, "policyd failed", found.reason, text)
    return found


def _runs_rm(text: str) -> bool:
    """Say whether `rm` is the first word of a command, of texts so plain that splitting tells."""
    if not PLAIN.fullmatch(text):
        return False
    return any(piece.split()[:1] == ["rm"] for piece in re.split(r"[;&|\n]", text))


def check_pattern(data: bytes) -> None:
    """A command pattern and a command: surely implies maybe; `read_argv` reads any words."""
    first, _, rest = data.decode("utf-8", "replace").partition("\n")
    words = tuple(rest.replace("\0", "").split()) or ("x",)
    readings = [read(rest, cwd=(CWD,), home=HOME), read_argv(words, {}, cwd=(CWD,), home=HOME)]
    try:
        pattern = CommandPattern.compile(first, home=HOME)
    except PatternError:
        return
    for command in (command for reading in readings for command in reading.commands):
        if pattern.sure(command):
            wide = pattern.maybe(command, widen=True)
            hold(wide is Truth.YES, "an allow matches, a deny of the same text does not", first, rest)
