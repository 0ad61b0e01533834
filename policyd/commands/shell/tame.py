"""What a few commands print: a name whose shape is known before they run, so that `$(…)` around them is no riddle.

Rules of this module:

1. Known output is one name without `/` that begins with a letter, a digit or `_`: no option, no hidden file, no way
   out of a directory. `quoting.SURE` stands where it surely is, `quoting.FRAIL` where nothing may come out instead.
2. `dirname` and `basename` print a part of the plain path they are given, whatever lies there.
3. `cat` with nothing but a constant here-document prints that, and needs no allow of its own where it only does that
   inside `$(…)`: it is how a text of several lines is written (`git commit -m "$(cat <<'EOF' …)"`).
4. Words of the command that are not constant, or not in the closed table here, say nothing about what it prints.
"""

from __future__ import annotations

import posixpath
import re

from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.quoting import FRAIL, SURE, quoted
from policyd.commands.matching.patterns import plain_name
from policyd.model import CONST, Assignment, SimpleCommand, Word

HERE = "\x10"
"""What `mark` returns for the command that prints the directory."""

_PWD = (Word("pwd"),)
_PRINTERS = frozenset({"basename", "date", "dirname", "git", "id", "nproc", "pwd", "seq", "uname"})
"""What the expressions below begin with."""
_PLAIN = r"(?!-)[A-Za-z0-9_.@%+,:=/-]*[A-Za-z0-9_.@%+,:=-]"
_PARTS = re.compile(rf"(dirname|basename) ({_PLAIN})(?: (\.[A-Za-z0-9_.]+))?").fullmatch
_REV = r"(?:HEAD|@)(?:[~^]\d*)*"
_BRANCH = r"[A-Za-z@][\w@~^-]*(?:/[\w@~^-]+)*"
_STAMP = r"\+%[YymdHMSsFj](?:%[YymdHMSsNjF]|[\w.:-])*"
_SURE = re.compile(rf"date(?: -u)?(?: {_STAMP})?|nproc|id -[ug]|uname -[smr]").fullmatch
_FRAIL = re.compile(
    rf"git rev-parse(?: --short(?:=\d+)?| --verify| -q| --quiet)* {_REV}"
    rf"|git rev-parse(?: --short(?:=\d+)?| -q| --quiet)* --verify(?: --short(?:=\d+)?| -q| --quiet)* {_BRANCH}"
    rf"|git merge-base(?: --fork-point)? {_BRANCH} {_BRANCH}|git rev-list --count {_BRANCH}"
    rf"|git log (?:-1|-n ?1) --(?:format|pretty)=(?:format:)?%[Hh](?: {_BRANCH})?(?: -- {_PLAIN})?"
    rf"|git rev-list (?:-1|-n ?1|--max-count=1) {_BRANCH}(?: -- {_PLAIN})?"
    r"|seq \d+(?: \d+)?(?: \d+)?"
).fullmatch


def mark(command: SimpleCommand) -> str:
    """Return what stands for the output of a command, nothing where its shape is not known."""
    argv = command.argv
    if not argv or command.env or command.inner is not None:
        return ""
    name = plain_name(argv[0])
    if name not in _PRINTERS:
        return ""
    words = [word.text for word in argv[1:] if word.kind is CONST and " " not in word.text]
    if len(words) < len(argv) - 1:
        return ""
    text = " ".join([name, *words])
    if name == "pwd":  # the program follows links, as the shell's own does not
        return HERE if argv == _PWD else ""
    if name in {"basename", "dirname"}:
        return "" if command.tainted or command.taint else _part(text)
    return SURE if _SURE(text) else FRAIL if _FRAIL(text) else ""


def _part(text: str) -> str:
    """Return what `dirname PATH` and `basename PATH [SUFFIX]` print, nothing where that takes more to tell."""
    found = _PARTS(text)
    if found is None or "//" in found[2] or (found[3] and found[1] == "dirname"):
        return ""
    directory, name = posixpath.split(found[2])
    return quoted(directory or "." if found[1] == "dirname" else name.removesuffix(found[3] or "") or name)


def echoes(argv: tuple[Word, ...], env: tuple[Assignment, ...]) -> bool:
    """Say whether the words make a command that prints its input."""
    return argv == (constant("cat"),) and not env
