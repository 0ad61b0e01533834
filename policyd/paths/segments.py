"""One segment of a path or pattern: the wildcards of a file name, matched in bounded time.

Rules of this module:

1. A segment never contains `/`; `*`, `?` and classes match a leading dot like any other character.
2. No backtracking: literal runs are searched left to right, so the cost is at most length times pattern.
3. Two wildcards meet if they can match one name (`meets`); one covers another if it matches every name
   the other can (`covers`). Where that is not worth telling, `meets` says yes and `covers` says no.
4. A shell glob never matches a leading dot it does not write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import force_setattr

from policyd.paths.lexical import caseless

LONGEST = 256
"""Tokens of a segment that are compared one by one; a longer one may match anything (names have 255 bytes)."""
SPECIAL = frozenset("*?[]{},\\!~$^")


class Wild(Enum):
    """The two wildcards inside a segment."""

    ONE = "?"
    STAR = "*"


class CharClass(Struct, frozen=True):
    """`[a-z]` or, negated, `[!a-z]`: inclusive ranges of characters."""

    negated: bool
    ranges: tuple[tuple[str, str], ...]

    def holds(self, char: str) -> bool:
        """Say whether the class contains `char`."""
        return any(low <= char <= high for low, high in self.ranges) != self.negated

    def folds(self, char: str) -> bool:
        """Say whether the class contains `char` in either case."""
        return any(self.holds(c) for c in (char, char.upper(), char.lower()) if len(c) == 1)


Token = str | Wild | CharClass
Matcher = Callable[[str], bool]


def never(text: str) -> bool:
    """Match nothing: what stands for a matcher until it is made."""
    return False


class Segment(Struct, frozen=True):
    """One segment of a pattern or glob; single characters are tokens of their own."""

    tokens: tuple[Token, ...]
    folded: bool = False
    matches: Matcher = never
    literal: str | None = None
    """The one name it matches, or None if it holds a wildcard."""

    def __post_init__(self) -> None:
        """Choose the quickest way to match."""
        force_setattr(self, "literal", _text(self.tokens))
        force_setattr(self, "matches", _matcher(self.tokens, self.folded))

    def __eq__(self, other: object) -> bool:
        """Compare what was written; what is made of it follows."""
        return isinstance(other, Segment) and self.tokens == other.tokens and self.folded == other.folded

    def __hash__(self) -> int:
        """Hash what was written."""
        return hash((self.tokens, self.folded))

    @property
    def source(self) -> str:
        """The segment in the pattern language again."""
        if self.literal is not None:
            return escape(self.literal)
        return "".join(_written(token) for token in self.tokens)

    def fold(self) -> Segment:
        """Return the segment for names that are case-folded before they are matched."""
        chars = (c for t in self.tokens for c in (caseless(t) if isinstance(t, str) else (t,)))
        return Segment(tuple(chars), folded=True)


@lru_cache(4_096)
def literal(name: str) -> Segment:
    """Return the segment that matches `name` and nothing else."""
    return Segment(tuple(name))


def escape(text: str) -> str:
    """Return the pattern text that matches `text` literally."""
    if SPECIAL.isdisjoint(text):
        return text
    return "".join("\\" + char if char in SPECIAL else char for char in text)


def _written(token: Token) -> str:
    if isinstance(token, Wild):
        return token.value
    if isinstance(token, CharClass):
        body = "".join(_bound(low) if low == high else f"{_bound(low)}-{_bound(high)}" for low, high in token.ranges)
        return f"[{'!' if token.negated else ''}{body}]"
    return escape(token)


def _bound(char: str) -> str:
    return "\\" + char if char in "]\\-^!" else char


def _text(tokens: tuple[Token, ...]) -> str | None:
    chars = [token for token in tokens if isinstance(token, str)]
    return "".join(chars) if len(chars) == len(tokens) else None


# ---- matching a name -------------------------------------------------------------------------------


def _matcher(tokens: tuple[Token, ...], folded: bool) -> Matcher:
    text = _text(tokens)
    if text is not None:
        return text.__eq__
    chunks = tuple(_chunks(tokens))
    if len(chunks) == 1:
        return _whole(chunks[0], folded)
    first, last = _text(chunks[0]), _text(chunks[-1])
    if len(chunks) == 2 and first is not None and last is not None:
        return _affixes(first, last)
    return _general(chunks, folded)


def _chunks(tokens: tuple[Token, ...]) -> Iterator[tuple[Token, ...]]:
    start = 0
    for index, token in enumerate(tokens):
        if token is Wild.STAR:
            yield tokens[start:index]
            start = index + 1
    yield tokens[start:]


def _affixes(first: str, last: str) -> Matcher:
    if not first and not last:
        return lambda name: True
    if not first:
        return lambda name: name.endswith(last)
    if not last:
        return lambda name: name.startswith(first)
    shortest = len(first) + len(last)
    return lambda name: len(name) >= shortest and name.startswith(first) and name.endswith(last)


def _whole(chunk: tuple[Token, ...], folded: bool) -> Matcher:
    return lambda name: len(name) == len(chunk) and _at(chunk, name, 0, folded)


def _general(chunks: tuple[tuple[Token, ...], ...], folded: bool) -> Matcher:
    """Anchor the first and last chunk, find the middle ones leftmost: what greedy matching needs."""
    first, *middle, last = chunks
    texts = [_text(chunk) for chunk in middle]

    def matches(name: str) -> bool:
        end = len(name) - len(last)
        if end < len(first) or not _at(first, name, 0, folded) or not _at(last, name, end, folded):
            return False
        here = len(first)
        for chunk, text in zip(middle, texts, strict=True):
            here = name.find(text, here, end) if text is not None else _find(chunk, name, here, end, folded)
            if here < 0:
                return False
            here += len(chunk)
        return True

    return matches


def _find(chunk: tuple[Token, ...], name: str, start: int, end: int, folded: bool) -> int:
    for here in range(start, end - len(chunk) + 1):
        if _at(chunk, name, here, folded):
            return here
    return -1


def _at(chunk: tuple[Token, ...], name: str, here: int, folded: bool) -> bool:
    return all(_holds(token, name[here + offset], folded) for offset, token in enumerate(chunk))


def _holds(token: Token, char: str, folded: bool) -> bool:
    if isinstance(token, str):
        return token == char
    if isinstance(token, CharClass):
        return token.folds(char) if folded else token.holds(char)
    return True


# ---- wildcards against wildcards -------------------------------------------------------------------


def meets(pattern: Segment, glob: Segment) -> bool:
    """Say whether a name exists that `pattern` matches and the shell expands `glob` to."""
    name = glob.literal
    if name is not None:
        return pattern.matches(name)
    left, right = pattern.tokens, glob.tokens
    if len(right) > LONGEST or len(left) > LONGEST:
        return True
    dots = right[:1] == (".",)
    seen, todo = {(0, 0, dots)}, [(0, 0, dots)]
    while todo:
        i, j, free = todo.pop()
        if i == len(left) and j == len(right) and free:
            return True
        for state in _steps(left, right, i, j, free):
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return False


def _steps(
    left: tuple[Token, ...], right: tuple[Token, ...], i: int, j: int, free: bool
) -> Iterator[tuple[int, int, bool]]:
    """The states behind (i, j): skip a star, or let both sides take one character (`free`: a dot may be it)."""
    a = left[i] if i < len(left) else None
    b = right[j] if j < len(right) else None
    if a is Wild.STAR:
        yield i + 1, j, free
    if b is Wild.STAR:
        yield i, j + 1, free
    if a is None or b is None or (a is Wild.STAR and b is Wild.STAR and free):
        return
    if (free or (a != "." and b != ".")) and _overlap(a, b):
        yield i + (a is not Wild.STAR), j + (b is not Wild.STAR), True


def _overlap(a: Token, b: Token) -> bool:
    """Say whether one character fits both; two classes are taken to meet."""
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    if isinstance(a, CharClass) and isinstance(b, str):
        return a.folds(b)
    if isinstance(b, CharClass) and isinstance(a, str):
        return b.folds(a)
    return True


def covers(pattern: Segment, glob: Segment) -> bool:
    """Say whether `pattern` surely matches every name `glob` can; a star is taken only by a star."""
    name = glob.literal
    if name is not None:
        return pattern.matches(name)
    if len(glob.tokens) > LONGEST or len(pattern.tokens) > LONGEST:
        return False
    states = _closure(pattern.tokens, {0})
    for symbol in glob.tokens:
        after = {i if token is Wild.STAR else i + 1 for i, token in _takers(pattern.tokens, states, symbol)}
        states = _closure(pattern.tokens, after)
    return len(pattern.tokens) in states


def _closure(tokens: tuple[Token, ...], states: set[int]) -> set[int]:
    result = set(states)
    for i in states:
        while i < len(tokens) and tokens[i] is Wild.STAR:
            i += 1
            result.add(i)
    return result


def _takers(tokens: tuple[Token, ...], states: set[int], symbol: Token) -> Iterator[tuple[int, Token]]:
    for i in states:
        if i < len(tokens) and _takes(tokens[i], symbol):
            yield i, tokens[i]


def _takes(token: Token, symbol: Token) -> bool:
    if token is Wild.STAR:
        return True
    if symbol is Wild.STAR:
        return False
    if token is Wild.ONE or token == symbol:
        return True
    return isinstance(token, CharClass) and isinstance(symbol, str) and token.holds(symbol)


DEEP = Segment((Wild.STAR, Wild.STAR))
"""`**`: any number of segments. No other segment holds two stars in a row."""
