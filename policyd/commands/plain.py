"""Plain words and lists: texts so simple that no grammar is needed to take them apart.

Rules of this module:

1. A word qualifies only if its characters mean the same whatever stands around it: letters, digits, `_./@%+,:=^~*?-`,
   `{a,b}` with nothing nested in it, printable text in quotes, a backslash before one character, `$NAME`, `${NAME}`,
   `$1`, `$?`; and `$(…)`, `<(…)` and backticks whose end is sure: what stands in them is a text of its own.
2. `[ … ]` is a command like any other, with `!` and `!=` among its words. So are `( … )` and `{ …; }` around a plain
   list, with no other group in it. `!` may stand before any of them.
3. Between commands stand `&&`, `||`, `|`, `|&`, `;`, `&` or the end of a line; a comment is nothing. Behind the words
   of a command may stand redirections `> f`, `>> f`, `2> f`, `&> f`, `< f`, `2>&1`, each before a blank or an operator,
   here-documents in which no backslash is read, and the marks that `source` leaves of others and of here-strings.
4. Every character of the text belongs to one of these, or the text is left to `grammar`. So is what begins with a
   keyword, sets a variable otherwise than by `name=value`, or declares what is not constant.
5. Here is only said where words stand; what they become is read by `words`, as it is behind the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from policyd.commands import plainwords
from policyd.commands.plainwords import KEYWORDS
from policyd.commands.run import PARTS
from policyd.commands.source import Document
from policyd.model import Word

Span = tuple[int, int]
Redirect = tuple[str, Span | Document]

_PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:-][A-Za-z0-9_./@%+,:= \t-]*").fullmatch
_NESTS = re.compile(r"[(`]|\{[ \t\n]").search
_CASE = re.compile(r"\bcase\b").search
_HARD = re.compile(r"['\"\\`(\x80-\xff]").search
"""What may hold a blank that divides no words, or is a blank to Python only."""
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=").match
_REDIRECT = re.compile(r"[ \t]*+[12]?(>&[12]|>>?|&>>?|<<|<)[ \t]*+").match
_OPERATORS = {"&&": ("&&", "&&"), "||": ("||", "||"), "|": ("|", "|"), "|&": ("|", "|"), "; ": (";", "")}
"""Operators as they are written: what each is, and what joins the command behind it; of most others that is nothing."""
_NEVER_FIRST = re.compile(r"[\\<>]|\{(?![^\s{}][^\s]*[,.])").match
"""How no first word begins: with what opens a group, or is another word to an alias."""
_TESTS = frozenset({"[", "]", "!", "!="})
_DECLARES = frozenset({"declare", "export", "local", "readonly", "typeset", "unset", "unsetenv"})
_RUNNERS = frozenset({"coproc", "time"})
"""Words of the shell that stand before a simple command as a program would."""
_HEADS = KEYWORDS | _DECLARES
_BLANKS = " \t\n"
_WORDS: dict[str, Word] = {}
_WORDS_KEPT = 8_192
_WORD_KEPT = 256
"""Words longer than this are not kept."""


class Part(Struct):
    """One command of a plain list."""

    before: str
    """What joins it to the command before: `&&`, `||`, `|`, or nothing."""
    text: str = ""
    """Its words, with the assignments in front of them; or what stands in a group."""
    words: list[str] = field(default_factory=list)
    """Its words as they are written, without the assignments."""
    assigned: Sequence[Span] = ()
    """`name=value` in front of the words."""
    redirects: Sequence[Redirect] = ()
    """Operator without descriptor, and file or here-document."""
    group: str = ""
    """`(` or `{` of a group."""
    inner: Sequence[Part] = ()
    """The commands of a group."""
    negated: bool = False
    """`!` stands before it."""
    mixed: bool = False
    """What it says of errors goes where what it prints goes, or the other way round."""
    after: str = ""
    """What ends it: an operator, the end of a line, or nothing."""


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


def divide(source: str) -> list[Part] | None:
    """Return the commands of a text (latin-1) that is a plain list, None for any other.

    Of more than `PARTS` one more is returned, and the rest is not looked at.
    """
    nests = _NESTS(source) is not None
    if nests and _CASE(source) is not None:  # a parenthesis may then belong to a pattern
        return None
    match, before, at = plainwords.part(nests), "", 0
    parts: list[Part] = []
    documents: list[Document] = []
    while (found := match(source, at)) is not None:
        bare, behind, operator = found.group(1, 5, 7)
        at = found.end()
        words = bare.split() if bare and not behind else None
        if words is not None and words[0] not in _HEADS:
            part = Part(before, bare, words)
        else:
            taken = _taken(source, found, before, nests)
            if taken is None:
                return None
            part = taken
            if "<<" in behind:
                documents += [what for _, what in part.redirects if isinstance(what, Document)]
        if documents and "\n" in found[0]:
            at = _bodies(source, found, documents)
            if at < 0:
                return None
        if part.text:
            parts.append(part)
            if not operator or len(parts) > PARTS:
                return parts if not documents else None
            part.after, before = _OPERATORS.get(operator) or (operator.rstrip(_BLANKS) or "\n", "")
            part.mixed = part.mixed or operator == "|&"
        elif not operator:
            return parts if parts and not (before or documents) else None
        elif operator[0] != "\n" or before:
            return None
    return None


def _taken(source: str, found: re.Match[str], before: str, nests: bool) -> Part | None:
    """Return the command that was matched, without text where there is none; None where it is not plain."""
    bare, run, group, inner, behind = found.group(1, 2, 3, 4, 5)
    if bare is not None:
        part = Part(before, bare, bare.split())
    elif run is not None:
        words = run.split() if _HARD(run) is None else plainwords.spelling(nests).findall(source, *found.span(2))
        part = Part(before, run, words)
        if words[0] == "!" and not _negates(part):
            return None
    elif group is not None:
        part = Part(before, inner, group=group[-1], inner=divide(inner) or (), negated=group[0] == "!")
        if not part.inner or (part.negated and before == "|") or not _is_closed(source, found):
            return None
    else:
        return Part(before) if not behind else None
    if part.words and not _begins(source, found, part):
        return None
    if behind:
        redirects = _redirects(source, *found.span(5), nests)
        if redirects is None or not (part.words or group):
            return None
        part.redirects = redirects
        part.mixed = ">&" in behind
    return part


def _negates(part: Part) -> bool:
    """Take `!` off the words; say whether it may stand there."""
    part.words.pop(0)
    part.text = part.text[1:].lstrip(_BLANKS)
    part.negated = True
    return bool(part.words) and part.before != "|" and "=" not in part.words[0]


def _is_test(words: list[str]) -> bool:
    """Say whether words with brackets or `!` among them are `[ … ]`."""
    return words[0] == "[" and words[-1] == "]" and words.count("[") == words.count("]") == 1


def _is_closed(source: str, found: re.Match[str]) -> bool:
    """Say whether what ends a group is what closes it, and stands where it does."""
    end = source[found.end(4)]
    return end == ")" if found[3][-1] == "(" else end == "}" and found[4].rstrip(" \t")[-1] in ";&\n"


def _begins(source: str, found: re.Match[str], part: Part) -> bool:
    """Take assignments off the words; say whether what is first may stand there."""
    first = part.words[0]
    if _NEVER_FIRST(first) or not (_TESTS.isdisjoint(part.words) or _is_test(part.words)):
        return False
    if "=" in first:
        return not found[6] and _assigns(source, found.start(), part)
    if first not in _HEADS:
        return True
    if first in _DECLARES:
        return all(map(plainwords.is_unglobbed, part.words))
    return first in _RUNNERS and KEYWORDS.isdisjoint(part.words[1:])


def _assigns(source: str, at: int, part: Part) -> bool:
    """Take assignments off the words; say whether they and what is behind them may stand there."""
    part.assigned = []
    while part.words and "=" in part.words[0]:
        word = part.words.pop(0)
        start = source.index(word, at)  # only blanks stand before it
        at = start + len(word)
        part.assigned.append((start, at))
        if _ASSIGNED(word) is None:
            return False
    return not part.words or (part.words[0] not in _HEADS and _NEVER_FIRST(part.words[0]) is None)


def _redirects(source: str, start: int, end: int, nests: bool) -> Sequence[Redirect] | None:
    """Return the redirections to files between two places; a here-document holds its delimiter until its text is met.

    None: something else stands there.
    """
    found: list[Redirect] = []
    word = plainwords.spelling(nests).match
    while start < end:
        operator = _REDIRECT(source, start)
        if operator is None:
            return None
        start = operator.end()
        if operator[1][:2] == ">&":  # a copy of a descriptor is nothing
            continue
        place = word(source, start)
        if place is None:
            return None
        start = place.end()
        if operator[1] == "<<":
            found.append(("<", Document(place[0].strip("'\""), place[0][0] in "'\"")))
        else:
            found.append((operator[1], place.span()))
    return found


def _bodies(source: str, found: re.Match[str], documents: list[Document]) -> int:
    """Take the here-documents that were announced before the end of a line; return where they end, -1 if unsure."""
    operator = found[7]
    if "\n" not in operator or "\n" in source[found.start() : found.start(7)]:
        return -1
    at = found.start(7) + operator.index("\n") + 1
    for document in documents:
        mark = f"\n{document.body}"
        place = source.find(mark + "\n", at - 1)
        if place < 0 and source.endswith(mark):
            place = len(source) - len(mark)
        if place < at - 1:
            return -1
        document.body = source[at : place + 1]
        if "\\" in document.body and not document.quoted:
            return -1
        at = min(place + len(mark) + 1, len(source))
    documents.clear()
    return at
