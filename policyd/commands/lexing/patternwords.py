"""The words of a command pattern, and how one word of a pattern fits one word of a command.

Rules of this module:

1. Shell quoting: a quoted or backslashed character is itself. Unquoted, only `*`, `**`, braces, a leading `~/` and a
   leading `$HOME/` mean something; characters that would be shell syntax are an error, since a pattern is one simple
   command.
2. Braces expand before the split, so `npm {test,run lint}` is two patterns.
3. `*` stays within a path segment, `**` does not. Matching is linear in the text for a given pattern.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import force_setattr

STAR, STARS = "*", "**"
SYNTAX = frozenset("|&;<>()`$\n\r")
MOST_ALTERNATIVES = 1000
LONG = 256
"""Texts longer than this are left to the regular expression engine."""

PLAIN = re.compile(r"[ \t]*[A-Za-z0-9_./@%+,:=*-][A-Za-z0-9_./@%+,:=* \t-]*").fullmatch
"""Texts whose every character means itself, `*` and blanks apart."""
Piece = tuple[str, bool]
"""A literal text and False, or `*`/`**` and True."""


class PatternError(ValueError):
    """A command pattern that cannot be read; the text says what to write."""


class PatternWord(Struct, frozen=True):
    """One word of a command pattern."""

    pieces: tuple[Piece, ...]
    literal: str | None
    """The text of a word without wildcards, folded if it is a path."""
    path: bool
    """A literal part holds a `/`."""
    any: bool = False
    """A lone `*`: one word that is no option."""
    many: bool = False
    """A lone `**`: zero or more words."""
    option: bool = False
    """It begins with a literal `-` and is more than that."""

    def __post_init__(self) -> None:
        """Note what is asked of it at every match."""
        text, wild = self.pieces[0] if self.pieces else ("", True)
        dashed = not wild and text.startswith("-") and (text != "-" or len(self.pieces) > 1) and text != "--"
        force_setattr(self, "any", self.pieces == ((STAR, True),))
        force_setattr(self, "many", self.pieces == ((STARS, True),))
        force_setattr(self, "option", dashed)

    @property
    def text(self) -> str:
        """The word as written, quotes removed."""
        return "".join(text for text, _ in self.pieces)


def fold(path: str) -> str:
    """Fold `.`, `..` and doubled slashes of a path; a leading `..` of a relative one stays."""
    folded = posixpath.normpath(path) if path else path
    return folded[1:] if folded.startswith("//") else folded


# ---- reading a pattern -----------------------------------------------------------------------------


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character of a pattern with whether it is quoted; quotes themselves are yielded as empty."""
    position, quote = 0, ""
    while position < len(text):
        char = text[position]
        position += 1
        if quote:
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"' and text[position : position + 1] in {'"', "\\", "$", "`"}:
                yield text[position], True
                position += 1
            else:
                yield char, True
        elif char in "'\"":
            quote = char
            yield "", True
        elif char == "\\" and position < len(text):
            yield text[position], True
            position += 1
        else:
            yield char, False
    if quote:
        raise PatternError(f"the quote {quote} is not closed")


Marked = tuple[tuple[str, bool], ...]


def _closing(marked: Marked, start: int) -> tuple[int, list[int]] | None:
    """Find the `}` of the `{` at `start` and its commas; None where it is no alternation."""
    depth, commas = 0, []
    for index in range(start, len(marked)):
        char, quoted = marked[index]
        if quoted:
            continue
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 1:
            commas.append(index)
        if depth == 0:
            return (index, commas) if commas else None
    return None


def braces(marked: Marked) -> list[Marked]:
    """Expand the braces of a marked text, leftmost first.

    Raises:
        PatternError: more than `MOST_ALTERNATIVES`.
    """
    done: list[Marked] = []
    todo: list[tuple[Marked, int]] = [(marked, 0)]
    while todo:
        text, start = todo.pop()
        index = next((i for i in range(start, len(text)) if text[i] == ("{", False) and _closing(text, i)), None)
        if index is None:
            done.append(text)
        else:
            end, commas = _closing(text, index) or (index, [])
            edges = [index, *commas, end]
            parts = [text[left + 1 : right] for left, right in pairwise(edges)]
            todo.extend((text[:index] + part + text[end + 1 :], index) for part in reversed(parts))
        if len(done) + len(todo) > MOST_ALTERNATIVES:
            raise PatternError(f"the braces stand for more than {MOST_ALTERNATIVES} patterns")
    return done


def _split(marked: Marked) -> list[Marked]:
    words: list[list[tuple[str, bool]]] = []
    inside = False
    for char, quoted in marked:
        if not quoted and char in " \t":
            inside = False
            continue
        if not inside:
            words.append([])
            inside = True
        words[-1].append((char, quoted))
    return [tuple(word) for word in words]


def _home(word: Marked, home: str) -> Marked:
    plain = "".join(char if not quoted else "\0" for char, quoted in word)
    for lead in ("~", "$HOME"):
        if plain == lead or plain.startswith(lead + "/"):
            return (*((char, True) for char in home), *word[len(lead) :])
    return word


def _word(marked: Marked, home: str) -> PatternWord:
    found: list[Piece] = []
    for char, quoted in _home(marked, home):
        if not quoted and char in SYNTAX:
            raise PatternError(f"`{char}` is shell syntax; a pattern is one simple command, so quote it to mean itself")
        wild = not quoted and char == STAR
        if found and wild and found[-1] == (STAR, True):
            found[-1] = (STARS, True)
        elif found and not wild and not found[-1][1]:
            found[-1] = (found[-1][0] + char, False)
        elif not (found and wild and found[-1] == (STARS, True)):
            found.append((char, wild))
    if any(not wild and "\0" in text for text, wild in found):
        raise PatternError("a NUL character can be in no command")
    path = any("/" in text for text, wild in found if not wild)
    literal = None if any(wild for _, wild in found) else "".join(text for text, _ in found)
    return PatternWord(tuple(found), fold(literal) if literal and path else literal, path)


@lru_cache(4_096)
def _plain(text: str) -> PatternWord:
    """Read a word that holds no quotes, braces, home or syntax; words recur from rule to rule."""
    if STAR not in text:
        path = "/" in text
        return PatternWord(((text, False),), fold(text) if path else text, path)
    return _word(tuple([(char, False) for char in text]), "")


def _any_word(marked: Marked, home: str) -> PatternWord:
    text = "".join([char for char, _ in marked])
    return _plain(text) if PLAIN(text) and not any(quoted for _, quoted in marked) else _word(marked, home)


def read(text: str, home: str) -> tuple[tuple[PatternWord, ...], ...]:
    """Read a pattern: one tuple of words for each expansion of its braces.

    Raises:
        PatternError: an open quote, shell syntax, no word at all.
    """
    if PLAIN(text):
        return (tuple([_plain(word) for word in text.split()]),)
    found = [
        tuple(_any_word(word, home) for word in _split(alternative)) for alternative in braces(tuple(_characters(text)))
    ]
    if not found or not all(found):
        raise PatternError("an empty command pattern; write `**` for any command")
    return tuple(dict.fromkeys(found))


@lru_cache(512)
def pieces(text: str, *, escapes: bool = False) -> tuple[Piece, ...]:
    """Read one word that holds only literals, `*` and `**`; with `escapes` what a backslash stands before is itself."""
    if not escapes or "\\" not in text:
        return _word(tuple((char, char != STAR) for char in text), "").pieces
    found = re.findall(r"\\(.)|(.)", text, re.DOTALL)
    return _word(tuple((quoted or char, bool(quoted) or char != STAR) for quoted, char in found), "").pieces


# ---- one word against one word ---------------------------------------------------------------------


def glob(pattern: tuple[Piece, ...], text: str, stops: str = "/") -> bool:
    """Match all of `text`; `*` crosses none of the characters in `stops`, `**` crosses all."""
    if len(text) > LONG:
        return _expression(pattern, stops)(text.encode("utf-8", "surrogatepass")) is not None
    units: list[tuple[str, bool]] = []
    for piece, wild in pattern:
        units.extend([(piece, True)] if wild else [(char, False) for char in piece])
    states = _skip({0}, units)
    for char in text:
        after = {index for index in states if index < len(units) and _steps(units[index], char, stops)}
        states = _skip({index if units[index][1] else index + 1 for index in after}, units)
        if not states:
            return False
    return len(units) in states


@lru_cache(256)
def _expression(pattern: tuple[Piece, ...], stops: str) -> Callable[[bytes], object]:
    """Return a full match of the pattern over UTF-8, in time linear in the text. Loaded when a long text is met."""
    import re2

    star = f"[^{re2.escape(stops)}]*" if stops else "(?s:.)*"
    parts = [("(?s:.)*" if text == STARS else star) if wild else re2.escape(text) for text, wild in pattern]
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    full: Callable[[bytes], object] = re2.compile("".join(parts).encode("utf-8", "surrogatepass"), options).fullmatch
    return full


def _steps(unit: tuple[str, bool], char: str, stops: str) -> bool:
    text, wild = unit
    return (text == STARS or char not in stops) if wild else text == char


def _skip(states: set[int], units: list[tuple[str, bool]]) -> set[int]:
    todo = list(states)
    while todo:
        index = todo.pop()
        if index < len(units) and units[index][1] and index + 1 not in states:
            states.add(index + 1)
            todo.append(index + 1)
    return states


def can_match(shell_glob: str, text: str) -> bool:
    """Say whether a shell glob may stand for `text`; classes count as any text, nested ones with all behind them."""
    units: list[tuple[str, bool]] = []
    position = 0
    while position < len(shell_glob):
        char = shell_glob[position]
        position += 1
        if char == "\\" and position < len(shell_glob):
            units.append((shell_glob[position], False))
            position += 1
        elif char in "*?[":
            units.append((STARS, True))
            closing = shell_glob.find("]", position + 1) if char == "[" else -1
            nested = closing > 0 and "[" in shell_glob[position:closing]
            position = len(shell_glob) if nested else closing + 1 if closing > 0 else position
        else:
            units.append((char, False))
    return glob(tuple(units), text)


def folded(word: PatternWord) -> tuple[Piece, ...]:
    """Return the pieces of a path pattern without `./` in front and doubled slashes."""
    first, rest = word.pieces[0], word.pieces[1:]
    text = first[0]
    while not first[1] and text.startswith("./"):
        text = text[2:].lstrip("/")
    return ((text, first[1]), *rest) if text else rest


def fits(word: PatternWord, text: str, *, cross: bool = False) -> bool:
    """Say whether a constant word is what a pattern word without `**` on its own says.

    Words with `/` compare as paths: `text` folded against the pattern (`./-rf` is no option). `cross` lets `*` go over
    `/`.
    """
    if word.any:
        return not text.startswith("-") or text == "-"
    if not cross and word.pieces and word.pieces[0][1] and text.startswith("-"):
        return False
    if word.literal is not None:
        return text == word.literal or ("/" in text and word.literal[:1] != "-" and fold(text) == word.literal)
    shape = folded(word) if word.path else word.pieces
    spelling = fold(text) if "/" in text and (word.path or cross) else text
    if glob(shape, spelling, "" if cross else "/"):
        return True
    # `dir/**` is `dir` and all below it
    below = shape[-1:] == ((STARS, True),) and len(shape) > 1 and shape[-2][0].endswith("/")
    return below and glob((*shape[:-2], (shape[-2][0][:-1], False)), spelling, "" if cross else "/")
