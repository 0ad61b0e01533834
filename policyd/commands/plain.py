"""Plain words and lists: texts so simple that no grammar is needed to take them apart.

Rules of this module:

1. A word qualifies only if its characters mean the same whatever stands around it: letters, digits, `_./@%+,:=^~*?-`,
   `{}`, printable text in quotes, a backslash before one character, `$NAME`, `${NAME}`, `$1`, `$?`.
2. `[ … ]` is a command like any other, with `!` and `!=` among its words.
3. Between commands stand `&&`, `||`, `|`, `;`, `&` or the end of a line; a comment is nothing. Behind the words of a
   command may stand redirections `> f`, `>> f`, `2> f`, `&> f`, `< f`, `2>&1`, each before a blank or an operator,
   and the marks that `source` leaves of here-documents and here-strings.
4. Every character of the text belongs to one of these, or the text is left to `grammar`. So is what begins with a
   keyword, sets a variable otherwise than by `name=value`, or declares what is not constant.
5. Here is only said where words stand; what they become is read by `words`, as it is behind the grammar.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from policyd.commands.run import PARTS
from policyd.commands.source import STRING, TOKEN
from policyd.model import Word

KEYWORDS = frozenset(
    """
    always case coproc do done elif else end esac fi for foreach function if in nocorrect noglob repeat select then time
    until while
    """.split()  # noqa: SIM905
)
"""Words that are no program at the head of a command, in bash or zsh."""

Span = tuple[int, int]

_PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:-][A-Za-z0-9_./@%+,:= \t-]*").fullmatch
_BARE = r"A-Za-z0-9_./@%+,:=\x80-\xff-"
_VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*+|\{[A-Za-z_][A-Za-z0-9_]*+\}|[0-9?@*#$!])"
_SINGLE = r"'[\t\n -&(-~\x80-\xff]*+'"
_ESCAPE = r"\\[!-~\x80-\xff]"
_IN_DOUBLE = r"[\t\n !#%-\[\]-_a-~\x80-\xff]++|\\[\t -~\x80-\xff]"
_WORD = rf"""(?:[{_BARE}~^*?]++|\{{\}}|{_SINGLE}|"(?:{_IN_DOUBLE}|{_VARIABLE})*+"|{_ESCAPE}|{_VARIABLE})++"""
_END = r"(?=[ \t\n;&|]|\Z)"
_TOKENS = re.compile(
    rf"[ \t]*+(?:([{_BARE}]++){_END}"
    rf"|({_WORD}){_END}"
    rf"|([12]?>>?|&>>?|<)[ \t]*+({_WORD}){_END}"
    rf"|([12]?>&)([12]){_END}"
    rf"|(<)({TOKEN}[0-9]++{TOKEN}|{STRING}{_WORD}){_END}"
    rf"|(\[|\]|!=?){_END}"
    r"|(&&|\|\|?|[;&\n][ \t\n]*+)"
    r"|(#[^\n]*+)"
    r"|(.))",
    re.DOTALL,
).finditer
_QUOTED, _REDIRECTS, _TEST, _OPERATOR, _COMMENT = 2, {4, 6, 8}, 9, 10, 11
_CONSTANT = re.compile(rf"""(?:[{_BARE}^*?!\[\]]++|{_SINGLE}|"(?:{_IN_DOUBLE})*+"|{_ESCAPE})++""").fullmatch
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=").match
_UNGLOBBED = re.compile(rf"""[{_BARE}]*+(?:{_SINGLE}|"(?:{_IN_DOUBLE})*+")?""").fullmatch
_ENDS = frozenset({";", "&", "\n"})
_BETWEEN = frozenset({"&&", "||", "|"})
_DECLARES = frozenset({"declare", "export", "local", "readonly", "typeset", "unset", "unsetenv"})
_WORDS: dict[str, Word] = {}
_WORDS_KEPT = 8_192
_WORD_KEPT = 256
"""Words longer than this are not kept."""


class Part(Struct):
    """One simple command of a plain list."""

    before: str
    """What joins it to the command before: `&&`, `||`, `|`, or nothing."""
    words: list[Span] = field(default_factory=list)
    assigned: list[Span] = field(default_factory=list)
    """`name=value` in front of the words."""
    redirects: list[tuple[str, Span]] = field(default_factory=list)
    """Operator without descriptor, and file."""
    after: str = ""
    """What ends it: an operator, the end of a line, or nothing."""
    test: bool = False
    """It is a `[` whose `]` was not met."""
    declares: bool = False
    """It sets variables by its words."""
    closed: bool = False
    """No word may follow."""


def constant(text: str) -> Word:
    """Return the constant word `text`; words recur, so they are kept (bounded)."""
    word = _WORDS.get(text)
    if word is None:
        if len(text) > _WORD_KEPT:
            return Word(text)
        if len(_WORDS) >= _WORDS_KEPT:
            _WORDS.clear()
        word = _WORDS[text] = Word(text)
    return word


def split(text: str) -> tuple[Word, ...] | None:
    """Return the words of a text that is one plain command, None for any other."""
    if _PLAIN(text) is None:
        return None
    words = text.split()
    first = words[0]
    if first in KEYWORDS or "=" in first:
        return None
    return tuple([_WORDS.get(word) or constant(word) for word in words])


def is_constant(text: str) -> bool:
    """Say whether a word of a plain list is the same word whatever the state of the shell."""
    return _CONSTANT(text) is not None


def divide(source: str) -> list[Part] | None:
    """Return the simple commands of a text (latin-1) that is a plain list, None for any other.

    Of more than `PARTS` one more is returned, and the rest is not looked at.
    """
    part = Part("")
    parts = [part]
    for token in _TOKENS(source):
        kind = token.lastindex or 0
        if kind == _OPERATOR:
            operator = token[kind].rstrip(" \t\n") or "\n"
            if part.words or len(part.assigned) == 1:
                part.after = operator
                if len(parts) > PARTS:
                    part.after = ""
                    break
                part = Part("" if operator in _ENDS else operator)
                parts.append(part)
            elif operator != "\n" or part.before:
                return None
        elif kind > _QUOTED:
            if not _mark(part, kind, token):
                return None
        elif part.words and not part.closed:
            part.words.append(token.span(kind))
        elif part.closed or not _begin(part, token[kind], token.span(kind)):
            return None
    return _ended(source, parts)


def _begin(part: Part, text: str, place: Span) -> bool:
    """Take the first word of a command; say whether it may stand there."""
    if "=" not in text:
        part.words.append(place)
        part.declares = text in _DECLARES
        return text not in KEYWORDS and text[0] not in "\\{"
    part.assigned.append(place)
    return _ASSIGNED(text) is not None


def _mark(part: Part, kind: int, token: re.Match[str]) -> bool:
    """Take what is neither word nor operator; say whether it may stand there."""
    if kind in _REDIRECTS:
        part.redirects.append((token[kind - 1].lstrip("12"), token.span(kind)))
        part.closed = True
        return bool(part.words) and not part.test
    if kind != _TEST:
        return kind == _COMMENT and not part.assigned
    text = token[kind]
    fits = part.test if text != "[" else not (part.words or part.assigned)
    part.words.append(token.span(kind))
    part.test, part.closed = text != "]", text == "]"
    return fits


def _ended(source: str, parts: list[Part]) -> list[Part] | None:
    last = parts[-1]
    if not (last.words or last.assigned):
        parts.pop()
    if not parts or parts[-1].after in _BETWEEN:
        return None
    for part in parts:
        if part.test or (part.declares and not _declares(source, part)):
            return None
    return parts


def _declares(source: str, part: Part) -> bool:
    """Say whether the words of a declaration are constant, so that they are read as any words are."""
    return not part.assigned and all(_UNGLOBBED(source, *place) for place in part.words)
