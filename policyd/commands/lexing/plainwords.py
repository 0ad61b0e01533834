"""What is matched of plain texts: words, redirections, one command with the operator behind it.

Rules of this module:

1. Every expression is linear: no two of its alternatives begin alike, and nothing that was matched is given back.
2. Expressions with substitutions and groups in them are large; they are made when a text first needs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from policyd.commands.lexing.source import STRING, TOKEN

KEYWORDS = frozenset(
    """
    always case coproc do done elif else end esac fi for foreach function if in nocorrect noglob repeat select then time
    until while
    """.split()  # noqa: SIM905
)
"""Words that are no program at the head of a command, in bash or zsh."""
NO_PROGRAM = KEYWORDS - {"time", "coproc", "noglob", "nocorrect"} | {"{", "}", "!"}
"""Words of a shell that stand in the place of a program only where they were quoted or came out of a value."""

_ASCII = r"A-Za-z0-9_./@%+,:="
_BARE = rf"\x80-\xff{_ASCII}"
_VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*+|\{[A-Za-z_][A-Za-z0-9_]*+\}|[0-9?@*#$!])"
_SINGLE = r"'[\t\n -&(-~\x80-\xff]*+'"
_ANSI = r"\$'(?:[\t\n -&(-\[\]-~\x80-\xff]|\\[!-~])*+'"
_ESCAPE = r"\\[!-~\x80-\xff]"
_BRACES = rf"\{{[{_BARE}-]*+\}}"
_IN_DOUBLE = r"[\t\n !#%-\[\]-_a-~\x80-\xff]++|\\[\t -~\x80-\xff]"
_TICKS = rf"`(?:[{_BARE}~^*? \t|;&-]|{_VARIABLE})++`"
_END = r"(?=[ \t\n;&|]|\Z)"
_MARK = rf"{TOKEN}[0-9]++{TOKEN}"
_DELIMITER = r"'[A-Za-z0-9_]++'|\"[A-Za-z0-9_]++\"|[A-Za-z0-9_]++"


def _inside(nested: str) -> str:
    """Return the expression of what may stand between parentheses, with `nested` in it."""
    within = rf"{_VARIABLE}{nested}"
    return (
        rf"(?:[{_BARE}~^*?!\[\] \t\n|&;>-]|<(?!<)|{_MARK}|{_BRACES}|{_SINGLE}|{_ANSI}|{_ESCAPE}"
        rf'|"(?:{_IN_DOUBLE}|{within})*+"|{within})++'
    )


_INNER = _inside(rf"|\$\({_inside('')}\)")
"""Text that surely ends at the parenthesis behind it: no comment, deeper nesting or here-document (but cut out)."""


def _expansion(blank: str, nested: str) -> str:
    """Return the expression of `${x:-y}` and `${x##*/}` with `nested` in it, and `blank`."""
    operator = r":?[-+?=]|##?|%%?|//?|,,?|\^\^?"
    return rf"\$\{{[A-Za-z_][A-Za-z0-9_]*+(?:{operator})(?:[{_BARE}~^*?{blank}-]|{_VARIABLE}{nested})*+\}}"


def _word(nests: bool) -> str:
    """Return the expression of a word; `nests`: with substitutions in it."""
    nested = rf"|\$\({_INNER}\)|{_TICKS}" if nests else ""
    double = rf"{_VARIABLE}|{_expansion(' ', nested)}{nested}"
    process = rf"|(?<=[ \t])[<>]\({_INNER}\)" if nests else ""
    bare = rf"{_VARIABLE}|{_expansion('', nested)}{nested}{process}"
    return rf"""(?:[{_BARE}~^*?-]++|{_BRACES}|{_SINGLE}|{_ANSI}|"(?:{_IN_DOUBLE}|{double})*+"|{_ESCAPE}|{bare})++"""


@cache
def part(nests: bool) -> Callable[..., re.Match[str] | None]:
    """Return what matches one command with the operator behind it; `nests`: with others in it.

    Its groups: plain words, other words, what opens a group (`!` or `time` with it), the text in it, redirections,
    a comment, the operator.
    """
    word = _word(nests)
    opening = r"(?:(?:!|time)(?=[ \t])[ \t]*+)?(?:\(|\{(?=[ \t\n]))"
    group = rf"({opening})(?!\()({_INNER})[)}}]{_END}" if nests else "((?!))()"
    opened = rf"(?:[12]?>>?|&>>?|<{STRING}?)[ \t]*+{word}|<<[ \t]*+(?:{_DELIMITER})"
    copied = rf"[12]?>&[12]|<{_MARK}"
    return re.compile(
        rf"[ \t]*+(?:([{_ASCII[:-1]}~^*?-]++{_END}(?:[ \t]++[{_ASCII}~^*?-]++{_END})*+)"
        rf"|((?:[ \t]*+(?:{word}|[\[\]]|!=?){_END})++)|{group})?"
        rf"((?:[ \t]*+(?:{opened}|{copied}){_END})*+)[ \t]*+(#[^\n]*+)?"
        r"(&&|\|[|&]?|[;&\n][ \t\n]*+|\Z)"
    ).match


def _tested(nests: bool) -> str:
    """Return the expression of a word of `[[ … ]]`."""
    nested = rf"|\$\({_INNER}\)|{_TICKS}" if nests else ""
    double = rf'"(?:[\t !#%-\'*-\[\]-_a-~\x80-\xff]++|\\[\t -\'*-_a-~\x80-\xff]|{_VARIABLE}{nested})*+"'
    return rf"(?:[{_BARE}~^*?-]++|'[\t -&*-_a-~\x80-\xff]*+'|{double}|{_VARIABLE}{nested})++"


@cache
def test(nests: bool) -> Callable[..., re.Match[str] | None]:
    """Return what matches `[[ … ]]` in which no subscript, pattern in brackets or parenthesis is."""
    word = rf"{_tested(nests)}[ \t]++"
    term = rf"(?:![ \t]++)*+(?:-[A-Za-z][ \t]++)?+{word}(?:(?:!=|=[=~]?|-[a-z]{{2}})[ \t]++{word})?+"
    return re.compile(rf"\[\[[ \t]++{term}(?:(?:&&|\|\|)[ \t]++{term})*+\]\]{_END}").match


@cache
def atoms(nests: bool) -> Callable[..., Iterator[re.Match[str]]]:
    """Return what finds the words and operators of a `[[ … ]]` that `test` matches."""
    return re.compile(rf"{_tested(nests)}|!=?|&&|\|\|").finditer


@cache
def spelling(nests: bool) -> re.Pattern[str]:
    """Return what matches one word of a plain list; `nests`: with substitutions in it."""
    return re.compile(rf"{_word(nests)}|[\[\]]|!=?|{_MARK}|{STRING}{_word(nests)}")


@cache
def substitution() -> Callable[..., re.Match[str] | None]:
    """Return what matches `$(…)` and `<(…)` of a plain list; its group is the text in them."""
    return re.compile(rf"[$<>]\(({_INNER})\)").match


@cache
def expansion() -> Callable[..., re.Match[str] | None]:
    """Return what matches `${x:-y}` and `${x##*/}` of a plain list."""
    return re.compile(_expansion(" ", rf"|\$\({_INNER}\)|{_TICKS}")).match


@cache
def body() -> Callable[..., re.Match[str] | None]:
    """Return what matches the text of a here-document in which only variables and plain substitutions are expanded."""
    return re.compile(
        rf"(?:[^\\$`]++|\\.|{_VARIABLE}|\$\({_INNER}\)|{_TICKS}|\$(?![\w({{\[?@*#$!]))*+", re.DOTALL
    ).fullmatch


def single(text: str) -> str:
    """Return a text that is one command and no more, whose output goes nowhere else: what that prints, it prints."""
    text = text.strip(" \t\n")
    found = part("(" in text or "`" in text)(text, 0)
    alone = found is not None and found.end() == len(text) and found[3] is None and _quiet(found[5]) is not None
    return text if alone else ""


_quiet = re.compile(rf"(?:[ \t]*+(?:2>[ \t]*+/dev/null|<{_MARK}){_END})*+").fullmatch
"""Redirections that never fail, take nothing of what is printed away and add nothing to it."""
_CONSTANT = re.compile(
    rf"""(?:[{_BARE}^*?!\[\]-]++|\{{\}}|{_SINGLE}|{_ANSI}|"(?:{_IN_DOUBLE})*+"|{_ESCAPE})++"""
).fullmatch
is_unglobbed = re.compile(rf"""[{_BARE}-]*+(?:{_SINGLE}|"(?:{_IN_DOUBLE})*+")?""").fullmatch
"""A word in which no glob, brace, variable or tilde is."""


def is_constant(text: str) -> bool:
    """Say whether a word of a plain list is the same word whatever the state of the shell."""
    return _CONSTANT(text) is not None
