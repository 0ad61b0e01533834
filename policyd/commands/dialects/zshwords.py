"""Builtins that zsh and bash have in common, and the words of theirs that both read alike.

Rules of this module:

1. The list of what is alike is closed. A builtin that only one of the two has, or that reads its words in a way of its
   own, is not alike: to the other it is a program, or does something else.
2. Numbers are where zsh evaluates arithmetic (`exit`, `printf %d`, `[ a -eq b ]`), which may run something: only
   digits are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"

SPECIAL = frozenset(
    """
    aliases argv builtins cdpath commands dirstack fignore fpath functions galiases funcstack functrace historywords
    histchars jobdirs jobstates jobtexts keymaps langinfo mailpath manpath mapfile modules nameddirs options
    parameters patchars path pipestatus prompt psvar reswords saliases signals status termcap terminfo userdirs
    usergroups watch widgets
    """.split()  # noqa: SIM905
)
"""Variables in small letters that are more than that to zsh."""
NUMBERS = frozenset(
    """
    ARGC BAUD COLUMNS DIRSTACKSIZE EGID ERRNO EUID FUNCNEST GID HISTCMD HISTSIZE KEYTIMEOUT LINENO LINES LISTMAX
    LOGCHECK MAILCHECK OPTIND PPID RANDOM SAVEHIST SECONDS SHLVL TMOUT TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID
    """.split()  # noqa: SIM905
)
"""Variables that are numbers to zsh: it evaluates what they are set to."""
_ONE_WORD = re.compile(
    r"""[A-Za-z0-9_./:@%+,=!-]++|'[^']*'|"(?:[^"$]|\$(?![@*]))*"|\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|\?)"""
).fullmatch
_UNARY = re.compile(r"-[defhnrswxzL]").fullmatch
_NUMERIC = re.compile(r"-(?:eq|ne|lt|le|gt|ge)").fullmatch
_NUMBER = re.compile(r"-?[0-9]{1,15}|\$\?|\"\$\?\"").fullmatch
_NAMED = re.compile(_NAME).fullmatch
_ACTIVATE = re.compile(r"(?:\./)?\.?venv/bin/activate").fullmatch
_FORMAT = re.compile(
    r"(['\"])(?!-)(?:[^%$`\"'\\]|%%|%-?[0-9]*(?:\.[0-9]+)?[sb]|\\\\?[nt])*+\1"
    r"|(?!-)(?:[A-Za-z0-9_./@+,:-]|%[sb%]|\\\\?n)++"
).fullmatch
_EXIT = re.compile(r"[0-9]{1,3}|\$\?").fullmatch
_SET = re.compile(r"[-+](?:[eux]+o?|o)|pipefail").fullmatch
_EXPORT = re.compile(rf"({_NAME})(?:=([^{{*?]*))?").fullmatch
_PLACE = re.compile(r"""(?:['"]?(?:[A-Za-z0-9_./]|\$(?:HOME|PWD)\b|\$\{HOME\}|\$\()|~)[^*?{]*""").fullmatch
"""A directory that begins with no sign, and with no variable that may hold one."""
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*").fullmatch


def _no_words(words: list[str]) -> bool:
    return not words


def _any(words: list[str]) -> bool:
    return True


def _cd(words: list[str]) -> bool:
    return not words or (len(words) == 1 and bool(_PLACE(words[0])))


def _test(words: list[str]) -> bool:
    """Only where what is asked is written: which operator a variable holds cannot be told."""
    if words[:1] == ["!"]:
        words = words[1:]
    if not all(map(_ONE_WORD, words)):
        return False
    if len(words) == 2:
        return bool(_UNARY(words[0]))
    if len(words) == 3 and _NUMERIC(words[1]):
        return bool(_NUMBER(words[0]) and _NUMBER(words[2]))
    return len(words) < 2 or (len(words) == 3 and words[1] in {"=", "!="})


def _bracket(words: list[str]) -> bool:
    return words[-1:] == ["]"] and _test(words[:-1])


def _export(words: list[str]) -> bool:
    found = [_EXPORT(word) for word in words]
    return bool(found) and all(each is not None and settable(each[1], each[2] or "0") for each in found)


def settable(name: str, value: str = "") -> bool:
    """Say whether `name` is a plain variable to zsh, or a number that is set to digits."""
    return name not in SPECIAL and (name not in NUMBERS or (value.isascii() and value.isdigit()))


def _read(words: list[str]) -> bool:
    return all(_NAMED(word) and settable(word) for word in (words[1:] if words[:1] == ["-r"] else words))


def _activates(words: list[str]) -> bool:
    return len(words) == 1 and bool(_ACTIVATE(words[0]))


def _printf(words: list[str]) -> bool:
    return bool(words) and bool(_FORMAT(words[0]))


def _exit(words: list[str]) -> bool:
    return not words or (len(words) == 1 and bool(_EXIT(words[0])))


def _command(words: list[str]) -> bool:
    return len(words) > 1 and words[0] == "-v" and all(_PLAIN_WORD(word) for word in words[1:])


CHANGES = frozenset([".", "cd", "exit", "export", "set", "source", "unset"])
"""Builtins that change the shell they run in."""
_ALIKE: dict[str, Callable[[list[str]], bool]] = {
    ".": _activates,
    ":": _any,
    "[": _bracket,
    "cd": _cd,
    "command": _command,
    "echo": _any,
    "exit": _exit,
    "export": _export,
    "false": _any,
    "printf": _printf,
    "pwd": _no_words,
    "read": _read,
    "set": lambda words: bool(words) and all(_SET(word) for word in words),
    "source": _activates,
    "test": _test,
    "true": _any,
    "type": lambda words: all(map(_PLAIN_WORD, words)),
    "unset": lambda words: _read(["-r", *words]),
    "wait": _no_words,
    "which": lambda words: all(map(_PLAIN_WORD, words)),
}
"""Builtins of both shells -> whether these words are read alike."""
_OWN_WAY = frozenset(
    """
    - . alias always autoload bg bind bindkey break builtin bye caller cap case chdir clone comparguments compcall
    compctl compdescribe compfiles compgen compgroups complete compopt compquote comptags comptry compvalues
    continue coproc declare dirs disable disown echotc echoti emulate enable end esac eval exec fc fg float for
    foreach function functions getcap getln getopts hash help history in integer jobs kill let limit local log
    logout mapfile nocorrect noglob popd print private prompt pushd pushln r read readarray readonly rehash repeat
    return sched select set setcap setopt shift shopt source stat strftime suspend time times trap ttyctl typeset
    ulimit umask unalias unfunction unhash unlimit unset unsetopt vared whence where zcompile zcurses zdelattr
    zformat zftp zgdbmpath zgetattr zle zlistattr zmodload zparseopts zprof zpty zregexparse zselect zsetattr
    zsocket zstat zstyle zsystem ztcp ztie zuntie
    """.split()  # noqa: SIM905
) | {f"zf_{name}" for name in ("chgrp", "chmod", "chown", "ln", "mkdir", "mv", "rm", "rmdir", "sync")}
"""Builtins and keywords that one of the two shells lacks, or reads in its own way."""


def alike(name: str, words: list[str], *, quoted: bool) -> bool:
    """Say whether both shells take `name` with `words` (as they are written) for the same; `quoted` = the name is."""
    reads = _ALIKE.get(name)
    if reads is None:
        return name not in _OWN_WAY
    return not quoted and reads(words)
