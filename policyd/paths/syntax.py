"""The written form of path patterns: braces, anchors, segments, and the spellings that are refused.

Rules of this module:

1. A pattern that other tools would read differently is an error that says what to write; nothing loads and
   silently never matches.
2. Braces expand before anything else is looked at, at most `MOST` alternatives.
3. `**` beside other characters (`**.pem`) is refused: tools disagree whether it crosses `/`. A trailing `/` is `/**`.
4. A backslash makes the next character literal; before a letter, digit, `.` or `/` it is a separator or a regular
   expression of another tool, and refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from policyd.paths.segments import DEEP, CharClass, Segment, Token, Wild, literal

MOST = 256
"""Alternatives one pattern may expand to."""
LONGEST = 4_096
"""Characters of one pattern."""
DEEPEST = 128
"""Segments of one pattern."""


class PatternError(ValueError):
    """A pattern that cannot be meant as written; the message says what to write."""


class Written(Struct, frozen=True):
    """One alternative of a pattern after brace expansion."""

    absolute: bool
    head: tuple[str, ...]
    """The literal segments in front of the first wildcard."""
    tail: tuple[Segment, ...]
    floats: bool = False
    """Written without a `/`, or beginning with `**`: a strict rule holds it at any depth."""


_FOREIGN = (
    (re.compile(r"!"), "a leading `!` is no exception here; write it under `unless` (a name with `!`: `\\!`)"),
    (re.compile(r"(re|regex|regexp|glob|path):", re.I), "prefixes such as `re:` are not known; write a path pattern"),
    (re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://"), "this is a URL; write a plain path, or use `url`"),
    (re.compile(r"[A-Za-z]:[\\/]|\\\\"), "Windows paths are not known; write `/` between names and no drive"),
    (re.compile(r"[A-Z][A-Za-z]+\(.*\)\Z", re.S), "write the pattern alone, and the action as `kind`"),
    (re.compile(r"\^"), "regular expressions are not known; write a path pattern (a name with `^`: `\\^`)"),
    (
        re.compile(r"/(\^|[^/]*(\.[*+]|[|$]))[^/]*/[gimsuy]*\Z"),
        "`/…/` is no regular expression here; write a path pattern",
    ),
    (re.compile(r"~[^/\\]"), "another user's home is not known; write the absolute path (a name with `~`: `\\~`)"),
    (
        re.compile(r"\$(?!HOME(/|\Z)|TMPDIR(/|\Z))[{A-Z]"),
        "only `$HOME/` and `$TMPDIR/` are known (a name with `$`: `\\$`)",
    ),
)
_PLAIN = re.compile(r"(?!.*\.\*)[A-Za-z0-9_.*@/-][A-Za-z0-9_.*@/ -]*\Z")
"""Texts that hold nothing foreign."""
_ANYWHERE = (
    (re.compile(r"%[A-Za-z_]\w*%"), "`%NAME%` is not expanded; write `~/`, `$HOME/`, `$TMPDIR/` or the path"),
    (re.compile(r"[\x00-\x1f\x7f]"), "control characters cannot stand in a pattern"),
    (re.compile(r"[\ud800-\udfff]"), "the text is no valid Unicode"),
)


_WILD = re.compile(r"[*?\[\\]")
_LETTERS = re.compile(r"[A-Za-z0-9_.*@ -]+\Z")
_WHOLE = {"*": Segment((Wild.STAR,)), "**": DEEP}


def read(text: str, *, home: str, tmpdir: str) -> tuple[Written, ...]:
    """Take a pattern apart into its alternatives.

    Raises:
        PatternError: the pattern cannot be meant as written.
    """
    if not text.strip():
        raise PatternError("the pattern is empty; write `**` for everything in the workspace")
    if len(text) > LONGEST:
        raise PatternError(f"the pattern is longer than {LONGEST} characters; write several")
    if _PLAIN.match(text):
        return (_alternative(text, home, tmpdir) if ".." in text else _simple(text, home, tmpdir),)
    _refuse(text, _ANYWHERE, anywhere=True)
    _refuse(text, _FOREIGN)
    text = unicodedata.normalize("NFC", text)
    return tuple(dict.fromkeys(_checked(each, home, tmpdir) for each in expand(text)))


def _refuse(text: str, spellings: tuple[tuple[re.Pattern[str], str], ...], *, anywhere: bool = False) -> None:
    for spelling, advice in spellings:
        if spelling.search(text) if anywhere else spelling.match(text):
            raise PatternError(f"`{text}`: {advice}")


# ---- braces ----------------------------------------------------------------------------------------


def expand(text: str) -> list[str]:
    """Expand braces, innermost last, as a shell does; quoting stays in the results."""
    results, here = _sequence(text, 0, closing="")
    if here < len(text):
        raise PatternError(f"`{text}`: a `}}` without its `{{`; write `\\}}` for the character")
    return results


def _sequence(text: str, here: int, *, closing: str) -> tuple[list[str], int]:
    """Read until an unquoted character of `closing`; return all expansions and the position of that character."""
    results = [""]
    while here < len(text) and text[here] not in (closing or "}"):
        if text[here] == "{":
            choices, after = _braces(text, here)
        else:
            after = _unit(text, here)
            choices = [text[here:after]]
        results = [result + choice for result in results for choice in choices]
        if len(results) > MOST:
            raise PatternError(f"`{text}`: the braces stand for more than {MOST} patterns; write several")
        here = after
    return results, here


def _braces(text: str, here: int) -> tuple[list[str], int]:
    choices: list[str] = []
    start, here, commas = here, here + 1, 0
    while True:
        some, here = _sequence(text, here, closing=",}")
        choices += some
        if here >= len(text):
            raise PatternError(f"`{text}`: a `{{` without its `}}`; write `\\{{` for the character")
        commas += text[here] == ","
        here += 1
        if text[here - 1] == "}":
            break
    if not commas:
        raise PatternError(f"`{text}`: `{text[start:here]}` holds no `,`; write `\\{{` and `\\}}` for the characters")
    return choices, here


def _unit(text: str, here: int) -> int:
    """The end of the quoted character, class or plain character at `here`."""
    if text[here] == "\\":
        return here + 2
    if text[here] == "[":
        return _class_end(text, here)
    return here + 1


def _class_end(text: str, here: int) -> int:
    first = here + 1
    if text[first : first + 1] in {"!", "^"}:
        first += 1
    end = first + 1 if text[first : first + 1] == "]" else first
    while end < len(text) and text[end] not in "]/":
        end += 2 if text[end] == "\\" else 1
    if text[end : end + 1] != "]":
        raise PatternError(f"`{text}`: a `[` without its `]`; write `\\[` for the character")
    return end + 1


# ---- anchors and segments --------------------------------------------------------------------------


def _checked(text: str, home: str, tmpdir: str) -> Written:
    if not text.strip():
        raise PatternError("a brace leaves an empty pattern; write each name out")
    _refuse(text, _FOREIGN)
    return _alternative(text, home, tmpdir)


def _alternative(text: str, home: str, tmpdir: str) -> Written:
    prefix, rest = _anchor(text, home, tmpdir)
    segments = [segment(name, text) for name in split(rest) if name not in {"", "."}]
    if rest.endswith("/") and segments:
        segments.append(DEEP)
    segments = _fold(segments, text)
    if len(segments) > DEEPEST:
        raise PatternError(f"the pattern has more than {DEEPEST} segments; use `**`")
    bare = "/" not in rest.rstrip("/")
    floats = prefix is None and bool(segments) and (bare or (segments[0] is DEEP and rest.startswith("*")))
    if prefix is not None:
        segments = [*(literal(name) for name in prefix.split("/") if name), *segments]
    count = next((i for i, each in enumerate(segments) if each.literal is None), len(segments))
    head = tuple(each.literal or "" for each in segments[:count])
    return Written(prefix is not None, head, tuple(segments[count:]), floats)


def _simple(text: str, home: str, tmpdir: str) -> Written:
    """Read a pattern without `..`, classes, braces and quoting: its names need no taking apart."""
    prefix, rest = _anchor(text, home, tmpdir)
    names = [name for name in rest.split("/") if name not in {"", "."}]
    count = next((i for i, name in enumerate(names) if "*" in name), len(names))
    tail = [segment(name, text) for name in names[count:]]
    if rest.endswith("/") and names:
        tail.append(DEEP)
    if len(names) > DEEPEST:
        raise PatternError(f"the pattern has more than {DEEPEST} segments; use `**`")
    bare = "/" not in rest.rstrip("/")
    floats = prefix is None and bool(names) and (bare or (tail[:1] == [DEEP] and not count and rest[0] == "*"))
    above = [name for name in prefix.split("/") if name] if prefix else []
    return Written(prefix is not None, (*above, *names[:count]), tuple(_fold(tail, text)), floats)


def _anchor(text: str, home: str, tmpdir: str) -> tuple[str | None, str]:
    """The absolute directory a pattern starts at (None: the workspace), and the rest."""
    for name, place in (("~", home), ("$HOME", home), ("$TMPDIR", tmpdir)):
        if text == name or text.startswith(name + "/"):
            return place, text[len(name) + 1 :]
    return ("", text) if text.startswith("/") else (None, text)


def split(text: str) -> Iterator[str]:
    """Cut a pattern at its unquoted slashes."""
    if "\\" not in text and "[" not in text:
        yield from text.split("/")
        return
    start = here = 0
    while here < len(text):
        if text[here] == "/":
            yield text[start:here]
            start = here + 1
        here = _unit(text, here)
    yield text[start:]


def _fold(segments: list[Segment], text: str) -> list[Segment]:
    """Fold `..` and neighbouring `**`."""
    folded: list[Segment] = []
    for each in segments:
        if each.literal == "..":
            if not folded or folded[-1].literal is None:
                raise PatternError(
                    f"`{text}`: `..` leads out of the workspace or behind a wildcard; write the absolute path"
                )
            folded.pop()
        elif not (each is DEEP and folded and folded[-1] is DEEP):
            folded.append(each)
    return folded


@lru_cache(1024)
def _starred(name: str) -> Segment:
    """Read a segment of letters and single stars; many patterns end alike."""
    return Segment(tuple(Wild.STAR if char == "*" else char for char in name))


def segment(name: str, text: str) -> Segment:
    """Read one segment of the pattern `text`.

    Raises:
        PatternError: an escape or class that cannot be meant.
    """
    if not _WILD.search(name):
        return literal(name)
    if name in _WHOLE:
        return _WHOLE[name]
    if "**" not in name and _LETTERS.match(name):
        return _starred(name)
    tokens: list[Token] = []
    here = 0
    while here < len(name):
        end = _unit(name, here)
        token = _token(name[here:end], text)
        if token is Wild.STAR and tokens[-1:] == [Wild.STAR]:
            raise PatternError(f"`{text}`: `**` is a segment of its own; write `**/*` or `*` in place of `{name}`")
        tokens.append(token)
        here = end
    return Segment(tuple(tokens))


def _token(unit: str, text: str) -> Token:
    if unit == "*":
        return Wild.STAR
    if unit == "?":
        return Wild.ONE
    if unit.startswith("\\"):
        return _quoted(unit, text)
    return char_class(unit, text) if unit.startswith("[") else unit


def _quoted(unit: str, text: str) -> str:
    char = unit[1:]
    if not char or char.isalnum() or char in "./_":
        raise PatternError(f"`{text}`: `\\` is no separator and no regular expression; write `/` between names")
    return char


def char_class(unit: str, text: str) -> CharClass:
    """Read `[…]`.

    Raises:
        PatternError: a reversed range, or a POSIX class.
    """
    body = unit[1:-1]
    negated = body[:1] in {"!", "^"}
    if "[:" in unit:
        raise PatternError(f"`{text}`: POSIX classes are not known; write the range, such as `[a-z]`")
    chars = _class_chars(body[1:] if negated else body)
    ranges: list[tuple[str, str]] = []
    while chars:
        low, _ = chars.pop(0)
        if len(chars) > 1 and chars[0] == ("-", False):
            high = chars[1][0]
            chars = chars[2:]
        else:
            high = low
        if high < low:
            raise PatternError(f"`{text}`: the range `{low}-{high}` is reversed; write `{high}-{low}`")
        ranges.append((low, high))
    return CharClass(negated, tuple(ranges))


def _class_chars(body: str) -> list[tuple[str, bool]]:
    """The characters of a class and whether each was quoted."""
    chars, here = [], 0
    while here < len(body):
        quoted = body[here] == "\\" and here + 1 < len(body)
        here += quoted
        chars.append((body[here], quoted))
        here += 1
    return chars
