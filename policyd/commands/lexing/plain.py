"""Plain words and lists: texts so simple that no grammar is needed to take them apart.

Rules of this module:

1. A word qualifies only if its characters mean the same whatever stands around it: letters, digits, `_./@%+,:=^~*?-`,
   `{a,b}` with nothing nested in it, printable text in quotes, a backslash before one character, `$NAME`, `${NAME}`,
   `${NAME:-a}`, `$1`, `$?`; and `$(…)`, `<(…)` and backticks whose end is sure, each with a text of its own in it.
2. `[ … ]` is a command like any other, with `!` and `!=` among its words. So are `( … )` and `{ …; }` around a plain
   list, with no other group in it. `!` may stand before any of them, `time` before a group. `[[ … ]]` without
   subscripts, parentheses and patterns in brackets is one too; and `if`, `for NAME in`, `select`, `while` and `until`
   around plain lists, which may have others in them, at most `_DEPTH` deep.
3. Between commands stand `&&`, `||`, `|`, `|&`, `;`, `&` or the end of a line; a comment is nothing. Behind the words
   of a command may stand redirections `> f`, `>> f`, `2> f`, `&> f`, `< f`, `2>&1`, each before a blank or an operator,
   here-documents in which no backslash is read, and the marks that `source` leaves of others and of here-strings.
4. Every character of the text belongs to one of these, or the text is left to `grammar`. So is what begins with
   another keyword, or sets a variable otherwise than by `name=value`, alone or behind `export` and its kin.
5. Here is only said where words stand; what they become is read by `words`, as it is behind the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from policyd.commands.lexing import plainwords
from policyd.commands.lexing.plainwords import KEYWORDS
from policyd.commands.lexing.run import PARTS
from policyd.commands.lexing.source import Document
from policyd.model import Word

Span = tuple[int, int]
Redirect = tuple[str, Span | Document]

_PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:-][A-Za-z0-9_./@%+,:= \t-]*+").fullmatch
_GROUP = re.compile(r"\{[ \t\n]").search
_CASE = re.compile(r"\bcase\b").search
_HARD = re.compile(r"['\"\\`(\x80-\xff]").search
"""What may hold a blank that divides no words, or is a blank to Python only."""
_STRUCTURE = re.compile(r"[ \t]*+(if|then|elif|else|fi|for|select|while|until|do|done|\[\[)(?=[ \t\n;&|]|\Z)").match
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=").match
_REDIRECT = re.compile(r"[ \t]*+[12]?(>&[12]|>>?|&>>?|<<|<)[ \t]*+").match
_OPERATORS = {"&&": ("&&", "&&"), "||": ("||", "||"), "|": ("|", "|"), "|&": ("|", "|"), "; ": (";", "")}
"""Operators as they are written: what each is, and what joins the command behind it; of most others that is nothing."""
_NEVER_FIRST = re.compile(r"[\\<>]|\{(?![^\s{}][^\s]*[,.])").match
"""How no first word begins: with what opens a group, or is another word to an alias."""
_TESTS = frozenset({"[", "]", "!", "!="})
_DECLARES = frozenset({"declare", "export", "local", "readonly", "typeset", "unset", "unsetenv"})
_SETS = _DECLARES - {"unset", "unsetenv"}
_RUNNERS = frozenset({"coproc", "time"})
"""Words of the shell that stand before a simple command as a program would."""
_HEADS = KEYWORDS | _DECLARES
_OPENING = frozenset({"if", "for", "select", "while", "until"})
_NAMING = frozenset({"for", "select"})
_CLOSING = frozenset({"fi", "done"})
_COUNTS = re.compile(r"wc -[clmw]|grep -i?ci? (?!-)[\w'.^:/-]+(?: (?!-)[\w./]+)?", re.ASCII).fullmatch
_NOTHING: frozenset[str] = frozenset()
_BEHIND = {
    "if": frozenset({"then"}),
    "then": frozenset({"elif", "else", "fi"}),
    "elif": frozenset({"then"}),
    "else": frozenset({"fi"}),
    "while": frozenset({"do"}),
    "until": frozenset({"do"}),
    "do": frozenset({"done"}),
}
"""What may end the list behind a word of the shell."""
_DEPTH = 4
"""How deep commands with lists in them may stand in each other."""
_SEPARATORS = frozenset({";", "\n"})
_NO_WORDS = (None, None, None)
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
    """`(` or `{` of a group, or the word of the shell that begins it (`if`, `for`)."""
    inner: Sequence[Part] = ()
    """The commands of a group."""
    lists: Sequence[tuple[str, Sequence[Part]]] = ()
    """The lists inside it, each with the word of the shell before it."""
    negated: bool = False
    """`!` stands before it."""
    declares: bool = False
    """It sets variables as `export x="$y"` does: each value is one word."""
    more: bool = False
    """It is more than words."""
    mixed: bool = False
    """What it says of errors goes where what it prints goes, or the other way round."""
    after: str = ""
    """What ends it: an operator, the end of a line, or nothing."""


class _Divided(Struct):
    """A text while it is taken apart."""

    source: str
    nests: bool
    documents: list[Document] = field(default_factory=list)
    """The here-documents whose text was not met yet."""
    depth: int = 0


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
    words = bare(text)
    return tuple([_WORDS.get(word) or constant(word) for word in words]) if words is not None else None


def bare(text: str) -> list[str] | None:
    """Return the words of a text that is one plain command as they are written, None for any other."""
    if _PLAIN(text) is None:
        return None
    words = text.split()
    return words if words[0] not in KEYWORDS and "=" not in words[0] else None


def divide(source: str) -> list[Part] | None:
    """Return the commands of a text (latin-1) that is a plain list, None for any other.

    Of more than `PARTS` one more is returned, and the rest is not looked at.
    """
    nests = "(" in source or "`" in source or ("{" in source and _GROUP(source) is not None)
    if nests and "case" in source and _CASE(source) is not None:  # a parenthesis may then belong to a pattern
        return None
    taken = _list(_Divided(source, nests), 0, _NOTHING)
    return taken[0] if taken is not None else None


def counts(source: str) -> bool:
    """Say whether all that a text prints comes from a program that counts what it is fed, or lines of one file."""
    parts = divide(source)
    if parts is None or any(part.after != "|" for part in parts[:-1]):
        return False
    last = parts[-1]
    if (
        last.group
        or last.negated
        or last.assigned
        or last.mixed
        or any(operator != "<" for operator, _ in last.redirects)
    ):
        return False
    return not last.after and _COUNTS(" ".join(last.words)) is not None


def _list(whole: _Divided, at: int, ends: frozenset[str]) -> tuple[list[Part], re.Match[str]] | None:
    """Return the commands from `at` up to a word of `ends` (to the end of the text where there are none), with it."""
    source, documents = whole.source, whole.documents
    match, before = plainwords.part(whole.nests), ""
    parts: list[Part] = []
    while True:
        found = match(source, at) if not ends or _STRUCTURE(source, at) is None else None
        if found is None:
            part: Part | None = None
        else:
            bare, behind, operator = found.group(1, 5, 7)
            if bare and not behind and (words := bare.split())[0] not in _HEADS:
                part = Part(before, bare, words)
            else:
                part = _taken(whole, found, before)
        if part is None or found is None:
            word = _STRUCTURE(source, at)
            if word is not None and word[1] in ends:
                return (parts, word) if parts and not before else None
            opened = _opened(whole, word, before) if word is not None else None
            if opened is None:
                return None
            part, found = opened
            operator = found[7]
        at = _bodies(source, found, documents) if documents and "\n" in found[0] else found.end()
        if at < 0:
            return None
        if part.text:
            parts.append(part)
            if not operator or len(parts) > PARTS:
                return (parts, found) if not (documents or ends) else None
            part.after, before = _OPERATORS.get(operator) or (operator.rstrip(_BLANKS) or "\n", "")
            part.mixed = part.mixed or operator == "|&"
        elif not operator:
            return (parts, found) if parts and not (before or documents or ends) else None
        elif operator[0] != "\n":
            return None


def _taken(whole: _Divided, found: re.Match[str], before: str) -> Part | None:
    """Return the command that was matched, without text where there is none; None where it is not plain."""
    source, nests = whole.source, whole.nests
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
        if not part.inner or (len(group) > 1 and before == "|") or not _is_closed(source, found):
            return None
    else:
        return Part(before) if not behind else None
    if part.words and not _begins(source, found, part):
        return None
    if behind and (not (part.words or group) or not _redirected(whole, found, part)):
        return None
    part.more = bool(behind or group or part.assigned or part.negated or part.declares)
    return part


def _redirected(whole: _Divided, found: re.Match[str], part: Part) -> bool:
    """Give a command the redirections that were matched behind it; say whether they are plain."""
    redirects = _redirects(whole.source, *found.span(5), whole.nests)
    if redirects is None:
        return False
    part.redirects = redirects
    part.mixed = ">&" in found[5]
    if "<<" in found[5]:
        whole.documents += [what for _, what in redirects if isinstance(what, Document)]
    return True


def _opened(whole: _Divided, word: re.Match[str], before: str) -> tuple[Part, re.Match[str]] | None:
    """Return the command that a word of the shell opens, with what stands behind it; None where it is not plain."""
    part = Part(before, group=word[1], more=True)
    if word[1] == "[[":
        tested = plainwords.test(whole.nests)(whole.source, word.start(1))
        end = tested.end() if tested is not None and not _breaks(whole, tested) else 0
    else:
        end = _compound(whole, word, part)
    part.text = whole.source[word.start(1) : end]
    found = plainwords.part(whole.nests)(whole.source, end)
    if not end or found is None or found.group(1, 2, 3) != _NO_WORDS:
        return None
    if found[5] and (word[1] == "[[" or not _redirected(whole, found, part)):
        return None
    return part, found


def _compound(whole: _Divided, word: re.Match[str], part: Part) -> int:
    """Take the lists of the command that a word of the shell opens; return where it ends, 0 where it is not plain."""
    keyword, at = word[1], word.end()
    if keyword not in _OPENING or whole.depth >= _DEPTH:
        return 0
    whole.depth += 1
    if keyword in _NAMING:
        head = _header(whole, word, part)
        if head is None:
            return 0
        keyword, at = "do", head.end()
    part.lists = lists = []
    while keyword not in _CLOSING:
        taken = _list(whole, at, _BEHIND[keyword])
        if taken is None:
            return 0
        lists.append((keyword, taken[0]))
        keyword, at = taken[1][1], taken[1].end()
    whole.depth -= 1
    return at


def _header(whole: _Divided, word: re.Match[str], part: Part) -> re.Match[str] | None:
    """Take the variable and the words of `for NAME in WORDS`; return the match of the `do` behind them."""
    source, nests = whole.source, whole.nests
    found = plainwords.part(nests)(source, word.start(1))
    if found is None or found[5] or found[6] or found[7][:1] not in _SEPARATORS or _breaks(whole, found):
        return None
    part.words = plainwords.spelling(nests).findall(source, found.start(), found.start(5))
    if len(part.words) < 4 or part.words[2] != "in" or _NAME(part.words[1]) is None:
        return None
    if not _TESTS.isdisjoint(part.words):
        return None
    do = _STRUCTURE(source, found.end())
    return do if do is not None and do[1] == "do" else None


def _breaks(whole: _Divided, found: re.Match[str]) -> bool:
    """Say whether a line ends in what was matched while the text of a here-document is due there."""
    return bool(whole.documents) and "\n" in found[0]


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
    end, inner = source[found.end(4)], found[4].rstrip(" \t")
    return end == ")" if found[3][-1] == "(" else end == "}" and inner[-1] in ";&\n" and inner[-2:-1] != "\\"


def _begins(source: str, found: re.Match[str], part: Part) -> bool:
    """Take assignments off the words; say whether what is first may stand there."""
    first = part.words[0]
    if (first[0] in "\\<>{" and _NEVER_FIRST(first)) or not (_TESTS.isdisjoint(part.words) or _is_test(part.words)):
        return False
    if "=" in first:
        return not found[6] and _assigns(source, found.start(), part)
    if first not in _HEADS:
        return True
    if first in _DECLARES:
        part.declares = not all(map(plainwords.is_unglobbed, part.words))
        return not part.declares or (first in _SETS and all(map(_declares, part.words)))
    return first in _RUNNERS and KEYWORDS.isdisjoint(part.words[1:])


def _declares(word: str) -> bool:
    """Say whether a word may stand behind `export`."""
    return ASSIGNED(word) is not None or plainwords.is_unglobbed(word) is not None


def _assigns(source: str, at: int, part: Part) -> bool:
    """Take assignments off the words; say whether they and what is behind them may stand there."""
    part.assigned = []
    while part.words and "=" in part.words[0]:
        word = part.words.pop(0)
        start = source.index(word, at)  # only blanks stand before it
        at = start + len(word)
        part.assigned.append((start, at))
        if ASSIGNED(word) is None:
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
