"""The working form of a word: text in which every quoted special character carries a backslash.

A word under construction is a string of bytes as latin-1 (so that offsets are byte offsets). In it a character that
may still act (`*`, `?`, `[`, `{`, `~`, …) stands bare if the shell would let it act, behind a backslash if not.
`ONE` and `MANY` stand for text that is not known.
"""

from __future__ import annotations

import itertools
import re

from msgspec.structs import replace

from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.source import BOTH, BRACE, STRING, TOKEN
from policyd.model import GLOB, UNKNOWN, Word

ONE, MANY = "\x01", "\x02"
"""Unknown text that stays one word (quoted), and unknown text that may become none or several (unquoted)."""
SURE, FRAIL = "\x0e", "\x0f"
"""Text that is one name as `NAME` says (see `tame`), and text that is one or nothing at all.

What may be nothing is a word of its own, or begins a range of revisions or the name of a file in one.
"""
NAME = "[0-9A-Z_a-z]*"
PRINTED = Word(NAME, GLOB, many=True)
"""A word that is `FRAIL`: to git, which prints such, the name of a commit."""
SOME = "\x11"
"""A number that is not known: one word."""
COUNT = "\x12"
"""What a program prints that counts: such a number, maybe behind blanks, or nothing where it failed."""

_ACTIVE = re.compile(r"[*?\[\]{},~\\]")
_TAME = re.compile(r"[{},~\\]")
_PAIRS = re.compile(r"\\(.)", re.DOTALL)
_MEANT = re.compile(r"\\.|[{},]", re.DOTALL)
_LEFTOVER = re.compile(r"\\.|[{},~]", re.DOTALL)
_UNKNOWN = re.compile("[\x01\x02\x11\x12]")
_OURS = re.compile("[\x01-\x06\x0e-\x12]")
"""Characters that stand for something in a working form: none of them comes out of a text."""
_RIDDLE = re.compile("[\x01\x02\x0e\x0f\x11\x12]")
_RANGE = re.compile(r"\x0f(?:\.\.\.?[A-Za-z@][\w@~^-]*(?:/[\w@~^-]+)*|:(?!/|.*\.\.)[\w./@+-]+)").fullmatch
"""What may stand behind the name of a revision: `..main`, `:src/app.py`."""
_MARKS = re.compile(rf"<{TOKEN}\d+{TOKEN}|<{STRING}|>{BOTH}|{BRACE}")
_MARKED = {
    TOKEN: "<<…".encode().decode("latin-1"),
    f"<{STRING}": "<<<",
    f">{BOTH}": "<>",
    BRACE: "{",
}
_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_NUMBERS = re.compile(r"([-+]?[0-9]+)\.\.([-+]?[0-9]+)(?:\.\.([-+]?[0-9]+))?").fullmatch
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.([-+]?[0-9]+))?").fullmatch


BRACES_LIMIT = 1_000
_DIGITS = 16
"""How long a number of a sequence may be: shells differ where one is too large for them."""
_OPEN_LIMIT = 64


class TooManyError(ValueError):
    """A brace expansion is larger than the limit."""


class UnsureError(ValueError):
    """It is not sure what expands: bash drops some braces of those that do not (`{..{a,b}}` is `..a ..b`)."""


def quoted(text: str) -> str:
    """Return `text` with every special character quoted; `..` too, so that no brace sequence comes out of quotes."""
    text = text.replace(BRACE, "{")
    if _ACTIVE.search(text):
        text = _ACTIVE.sub(r"\\\g<0>", text)
    return text.replace("..", r"\.\.") if ".." in text else text


def value(text: str) -> str:
    """Return the value of an unquoted variable: its globs act, its braces and tildes do not."""
    return _TAME.sub(r"\\\g<0>", text) if _TAME.search(text) else text


def plain(working: str) -> str:
    """Return the characters of a working form."""
    return _PAIRS.sub(r"\1", working) if "\\" in working else working


def decoded(text: str) -> str:
    """Return latin-1 bytes as the UTF-8 text they are."""
    if _MARKS.search(text) is not None:
        text = _MARKS.sub(lambda mark: _MARKED.get(mark[0], _MARKED[TOKEN]), text)
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")


def shown(text: str) -> str:
    """Return latin-1 bytes as people read them."""
    return text if text.isascii() and text.isprintable() else decoded(text)


def is_glob(working: str) -> bool:
    """Say whether a bare glob character is left."""
    return bool(_GLOB.search(_PAIRS.sub("", working) if "\\" in working else working))


def word(working: str, source: str) -> Word:
    """Return the finished word of a working form whose text in the source is `source`."""
    if (SURE in working or FRAIL in working) and named(working):
        found = word(working.replace(SURE, NAME).replace(FRAIL, NAME), source)
        return replace(found, many=working == FRAIL)
    unknown = _RIDDLE.search(working)
    if unknown is not None:
        head = working[: unknown.start()]
        prefix = re.split(r"(?<!\\)[*?\[]", head)[0] if is_glob(head + "]") else head
        return Word(decoded(source), UNKNOWN, decoded(plain(prefix)), MANY in working or is_glob(working))
    if is_glob(working):
        text = _LEFTOVER.sub(lambda found: found[0] if len(found[0]) > 1 else "\\" + found[0], working)
        return Word(decoded(text), GLOB)
    return constant(decoded(plain(working)))


def named(working: str) -> bool:
    """Say whether a word is known but for names, and they stand where they may."""
    return _UNKNOWN.search(working) is None and (FRAIL not in working or working == FRAIL or bool(_RANGE(working)))


def renamed(known: Word) -> str:
    """Return the working form of a glob, its names marked again."""
    return known.text.replace(NAME, FRAIL if known.many else SURE)


def unknown(source: str) -> Word:
    """Return the word of which only the source text is known."""
    return Word(source, UNKNOWN, "", many=True)


def working(known: Word) -> str:
    """Return the working form of a word as if it stood in double quotes (a glob stays one)."""
    text = known.text if known.text.isascii() else known.text.encode("utf-8", "replace").decode("latin-1")
    return text if known.kind is GLOB else quoted(text)


def marked(known: Word) -> Word:
    """Return the word with its certainty taken away, for places a shell may read otherwise."""
    return replace(known, kind=UNKNOWN, prefix="")


# ---- homes -----------------------------------------------------------------------------------------

_HOME = re.compile(r"(\A|.*[=:{,])~([^/~:]*)\Z", re.DOTALL).match
_SEQUENCE = re.compile(r"\{[^{}\"'$`\\]*+[\"'$`\\]").search
_EXPANDS = re.compile(r"[\"'$`\\]").search


def homeless(text: str) -> str:
    """Return bare text before something quoted or expanded: a `~` is no home unless a `/` stands between."""
    found = _HOME(text)
    if found is None:
        return text
    mark = ONE if re.search("[{},]", text) else r"\~"
    return f"{found[1]}{mark}{found[2]}"


def is_unsure(source: str) -> bool:
    """Say whether something quoted or expanded stands where it is not sure what else is expanded around it.

    That is behind a `~` that ends at a colon, and in what would be `{1..3}` without it.
    """
    if ".." in source and _SEQUENCE(source) is not None:
        return True
    return any(_EXPANDS(part.partition("~")[2].partition(":")[2]) for part in source.split("/") if "~" in part)


# ---- brace expansion -------------------------------------------------------------------------------


def braces(text: str) -> list[str]:
    """Expand the bare braces of a working form as bash does.

    Raises:
        TooManyError: more than `BRACES_LIMIT` words.
        UnsureError: it is not sure which braces remain.
    """
    if "{" not in text or ("," not in text and ".." not in text):
        return [text]
    if text.count("{") > _OPEN_LIMIT:
        raise TooManyError
    found = _braces(text)
    if any(map(_is_unsure, found)) if found != [text] else _is_unsure(text, opened=True):
        raise UnsureError
    return found


def _is_unsure(text: str, *, opened: bool = False) -> bool:
    """Say whether braces are left; of `opened` ones, whether one is closed twice: `x{a},}` is `xa} x`."""
    bare = _PAIRS.sub("", text)
    return 0 < bare.count("{") < bare.count("}") if opened else "{" in bare or "}" in bare


def _braces(text: str) -> list[str]:
    start = _bare(text, "{", 0)
    while start >= 0:
        end, commas = _closing(text, start)
        inner = _alternatives(text, start, end, commas) if end > 0 else None
        if inner is not None:
            tails = _braces(text[end + 1 :])
            if len(inner) * len(tails) > BRACES_LIMIT:
                raise TooManyError
            return [text[:start] + middle + tail for middle in inner for tail in tails]
        start = _bare(text, "{", start + 1)
    return [text]


def _bare(text: str, char: str, start: int) -> int:
    """Return the place of the next unquoted `char`, -1 where there is none."""
    while (found := text.find(char, start)) > 0 and _is_quoted(text, found):
        start = found + 1
    return found


def _is_quoted(text: str, place: int) -> bool:
    count = 0
    while place - count > 0 and text[place - count - 1] == "\\":
        count += 1
    return count % 2 == 1


def _closing(text: str, start: int) -> tuple[int, list[int]]:
    """Return the brace that closes the one at `start` (0: none) and the commas between, at its level."""
    depth = 0
    commas: list[int] = []
    for found in _MEANT.finditer(text, start):
        char = found[0]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if not depth:
                return found.start(), commas
        elif char == "," and depth == 1:
            commas.append(found.start())
    return 0, []


def _alternatives(text: str, start: int, end: int, commas: list[int]) -> list[str] | None:
    if not commas:
        return _sequence(text[start + 1 : end])
    cuts = [start, *commas, end]
    found: list[str] = []
    for left, right in itertools.pairwise(cuts):
        found += _braces(text[left + 1 : right])
        if len(found) > BRACES_LIMIT:
            raise TooManyError
    return found


def _sequence(text: str) -> list[str] | None:
    numbers = _NUMBERS(text)
    letters = None if numbers else _LETTERS(text)
    if (numbers or letters) and max(map(len, text.split(".."))) > _DIGITS:
        raise UnsureError
    if numbers is not None:
        low, high = int(numbers[1]), int(numbers[2])
        step = abs(int(numbers[3] or 1)) or 1
        width = max(len(numbers[1]), len(numbers[2])) if _padded(numbers[1]) or _padded(numbers[2]) else 0
        return [f"{number:0{width}d}" for number in _steps(low, high, step)]
    if letters is not None:
        step = abs(int(letters[3] or 1)) or 1
        return [quoted(chr(code)) for code in _steps(ord(letters[1]), ord(letters[2]), step)]
    return None


def _padded(number: str) -> bool:
    digits = number.lstrip("-")
    return len(digits) > 1 and digits[0] == "0"


def _steps(low: int, high: int, step: int) -> range:
    steps = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    if len(steps) > BRACES_LIMIT:
        raise TooManyError
    return steps


# ---- $'…' ------------------------------------------------------------------------------------------

_ESCAPE = re.compile(
    r"\\(?:x(\{[0-9A-Fa-f]*\}?|[0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))",
    re.DOTALL,
)
_SIMPLE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def ansi(text: str) -> str:
    """Return what stands between `$'` and `'` after its escapes, as bash reads them; NUL ends it."""
    found = _ESCAPE.sub(_ansi_escape, text)
    found = found.split("\x00", 1)[0]
    return _OURS.sub("\x7f", found)


def _ansi_escape(found: re.Match[str]) -> str:
    byte, octal, short, long, control, char = found.groups()
    if byte is not None:
        return chr(int(byte.strip("{}") or "0", 16) & 255)
    if octal is not None:
        return chr(int(octal, 8) & 255)
    if short is not None or long is not None:
        code = int(short or long, 16)
        return chr(code).encode("utf-8", "replace").decode("latin-1") if code < 0x110000 else "?"
    if control is not None:
        return chr(ord(control) & 31) if control != "?" else "\x7f"
    return _SIMPLE.get(char, char if char in "\\'\"?" else "\\" + char)
