"""The words of `find`: where it starts, what it writes and deletes, whether it does more than print names.

Source: find(1), GNU findutils 4.10; BSD find. A word that is no known test or action is harm. What `-exec` runs is a
command of its own; `stands_for` says what its `{}` may be, and a known reader of known files is no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from policyd.commands.argv import programs
from policyd.commands.argv.options import becomes_several, may_be_option
from policyd.model import Reach, Word, WordKind

_LINES = {
    "flags": "-true -false -empty -executable -readable -writable -nouser -nogroup -print -print0 -ls -prune -quit "
    "-depth -d -xdev -mount -noleaf -daystart -nowarn -warn -ignore_readdir_race -noignore_readdir_race -not -a -and "
    "-o -or -sparse ! ( ) ,",
    "values": "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size "
    "-mtime -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -inum -links -maxdepth -mindepth -fstype "
    "-used -context -printf -regextype",
    "files": "-newer -anewer -cnewer -samefile",
    "writes": "-fprint -fprint0 -fls -fprintf",
    "runs": "-exec -execdir -ok -okdir",
}
FLAGS, VALUES, FILES, WRITES, RUNS = (frozenset(line.split()) for line in _LINES.values())
_NEWER = re.compile(r"-newer[aBcm][aBcmt]").fullmatch

Use = tuple[str, Word, Reach]


class FindWords(Struct):
    """What a `find` would do."""

    uses: list[Use] = field(default_factory=list)
    harm: str = ""


def _start(words: tuple[Word, ...]) -> int:
    """Return where the expression begins: behind the options and the starting points."""
    position = 0
    while position < len(words) and words[position].text in {"-H", "-P", "-O0", "-O1", "-O2", "-O3"}:
        position += 1
    while position < len(words) and not _expression(words[position]):
        position += 1
    return position


def _expression(word: Word) -> bool:
    if word.kind is not WordKind.CONST:
        return may_be_option(word) and word.kind is WordKind.UNKNOWN
    return word.text.startswith("-") or word.text in {"(", "!", ")", ","}


def read_find(words: tuple[Word, ...]) -> FindWords:
    """Read the words behind `find`."""
    found = FindWords()
    end = _start(words)
    begin = next((i for i, word in enumerate(words[:end]) if not word.text.startswith("-")), end)
    starts = words[begin:end] or (Word("."),)
    position = end
    while position < len(words):
        word = words[position]
        if word.kind is not WordKind.CONST:
            found.harm = found.harm or "a word of `find` that is not constant"
            position += 1
        else:
            reads = word.text == "-exec" and _runs_reader(words, position)
            if reads and stands_for(words[:position]) is None:
                found.harm = found.harm or "`-exec` of find may be handed a link; say `-type f` before it"
            position += 1 + _step(word.text, words[position + 1 :], starts, found, quiet=reads)
    found.uses.extend(("search", start, Reach.NAMES) for start in starts)
    if any(may_be_option(start) for start in starts):
        found.harm = found.harm or "a starting point that may be an option"
    return found


def _may_act(value: Word) -> bool:
    """Say whether the value of a test may bring an action along: no file that is called as one ends in `.py`."""
    return becomes_several(value) and may_be_option(value) and "." not in re.split(r"[][*?\\]", value.text)[-1]


def _runs_reader(words: tuple[Word, ...], at: int) -> bool:
    """Say whether the `-exec` at `at` hands what is found to a program that only reads."""
    head = words[at + 1] if at + 1 < len(words) else Word("")
    program = programs.find(head.text) if head.kind is WordKind.CONST else None
    return program is not None and program.role == "reader"


def _step(text: str, rest: tuple[Word, ...], starts: tuple[Word, ...], found: FindWords, *, quiet: bool = False) -> int:
    """Read one test or action; return how many words it takes behind it."""
    if text in FLAGS:
        return 0
    if text in VALUES:
        if rest and _may_act(rest[0]):
            found.harm = found.harm or f"`{rest[0].text}` may become several words, an action among them"
        return 1
    if text in FILES or _NEWER(text):
        found.uses.extend(("search", word, Reach.ENTRY) for word in rest[:1] if not text.endswith("t"))
        return 1
    if not quiet:
        found.harm = found.harm or f"`{text}` of find does more than print names"
    if text in WRITES:
        found.uses.extend(("edit", word, Reach.ENTRY) for word in rest[:1])
        return 2 if text == "-fprintf" else 1
    if text == "-delete":
        found.uses.extend(("delete", start, Reach.CONTENT) for start in starts)
    if text == "-files0-from":
        found.uses.extend(("read", word, Reach.ENTRY) for word in rest[:1])
        return 1
    if text in RUNS:
        return next((i + 1 for i, word in enumerate(rest) if word.text in {";", "+"}), len(rest))
    return 0


# ---- what is found ---------------------------------------------------------------------------------

Test = tuple[str, str]
"""A test or operator with its value."""

_TYPE = Word("-type")
_EITHER = frozenset({"-o", "-or", ","})
_NOT = frozenset({"!", "-not"})
_NAMES = frozenset({"-name", "-iname"})
_PRINTS = frozenset({"-print", "-print0", "-printf", "-ls"})
_GLOB = re.compile(r"(\*?)([\w.*-]*)").fullmatch
_MOST = 64
"""Globs that are told apart."""


def printed(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return globs for every file whose name `find` with these words prints with a NUL behind it; none: not known."""
    if not words or words[-1].text != "-print0" or any(word.text in _PRINTS for word in words[:-1]):
        return ()
    return stands_for(words[:-1]) or ()


def stands_for(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """Return globs for every file that `{}` may be behind the words in front of `-exec`, None where that is not known.

    Only regular files: what is a link may lead anywhere.
    """
    if _TYPE not in words:
        return None
    end = _start(words)
    if any(word.kind is not WordKind.CONST for word in words) or (end and words[0].text.startswith("-")):
        return None
    tests = _tests([word.text for word in words[end:]])
    held = _held(tests) if tests is not None else None
    if held is None or [("-type", "f")] not in held:
        return None
    starts = words[:end] or (Word("."),)
    names = next(filter(None, map(_named, held)), [])
    return tuple(below(starts, names if names and len(names) * len(starts) <= _MOST else [""]))


def _tests(texts: list[str]) -> list[Test] | None:
    """Return the tests and operators of an expression, None where an action is among them that is no printing."""
    found: list[Test] = []
    at = 0
    while at < len(texts):
        valued = texts[at] in VALUES | FILES
        if not valued and texts[at] not in FLAGS:
            return None
        if texts[at] != "-daystart":  # no test: a `!` before it turns what is behind it round
            found.append((texts[at], texts[at + 1] if valued and at + 1 < len(texts) else ""))
        at += 1 + valued
    return found


def _held(tests: list[Test]) -> list[list[Test]] | None:
    """Return the tests that hold where what stands behind them is reached, a group in parentheses as one.

    Of `a -o b` that is `b`. None: it would be reached inside parentheses.
    """
    held: list[list[Test]] = []
    group: list[Test] = []
    depth, negated = 0, False
    for test in tests:
        if not depth and test[0] in _EITHER:
            held, negated = [], False
        elif not depth and test[0] in _NOT:
            negated = True
        else:
            group = group if depth else []
            if not depth and not negated:
                held.append(group)
            negated = False
            depth += (test[0] == "(") - (test[0] == ")")
            if depth < 0:
                return None
            group.append(test)
    return held if not depth else None


def _named(group: list[Test]) -> list[str]:
    """Return shell globs for the names of which a group asks for one, nothing where it asks for more or else."""
    choices = group[1:-1] if group[0][0] == "(" else group
    if any(text not in _NAMES for text, _ in choices[::2]) or any(text not in _EITHER for text, _ in choices[1::2]):
        return []
    found = [globs(value, fold=text == "-iname") for text, value in choices[::2]]
    return [name for names in found for name in names] if all(found) else []


def globs(value: str, *, fold: bool) -> list[str]:
    """Return shell globs for the names a glob matches whose `*` also takes a leading dot, none where it is not read.

    `fold`: whatever their case.
    """
    found = _GLOB(value) if not fold or value.isascii() else None
    if found is None:
        return []
    return _names(found[1], "".join(map(_either_case, found[2])) if fold else found[2])


def _either_case(char: str) -> str:
    """Return a glob for a character in both cases; letters beyond ASCII have `i` and `k` for their small ones."""
    return "?" if char in "iIkK" else f"[{char.lower()}{char.upper()}]" if char.isalpha() else char


def _names(star: str, rest: str) -> list[str]:
    """Return shell globs for the names that a glob of `find` matches, whose `*` also takes a leading dot."""
    return [star + rest, *([f".*{rest}"] if star else []), *([rest] if star and rest.startswith(".") else [])]


def below(starts: tuple[Word, ...], names: list[str]) -> Iterator[Word]:
    """Yield globs for every file below the starting points, and them, whose name matches one of `names`."""
    for start in starts:
        head = "".join("\\" + char if char in "*?[]\\" else char for char in start.text.rstrip("/"))
        yield from (Word(f"{head}/**" + (f"/{name}" if name else ""), WordKind.GLOB) for name in names)
        yield start  # last: no program is made of it where a wrapper takes the first of them for one
