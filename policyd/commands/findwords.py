"""The words of `find`: where it starts, what it writes and deletes, whether it does more than print names.

Source: find(1), GNU findutils 4.10; BSD find. A word that is no known test or action is harm.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from policyd.commands.options import may_be_option
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
            position += 1 + _step(word.text, words[position + 1 :], starts, found)
    found.uses.extend(("search", start, Reach.NAMES) for start in starts)
    if any(may_be_option(start) for start in starts):
        found.harm = found.harm or "a starting point that may be an option"
    return found


def _step(text: str, rest: tuple[Word, ...], starts: tuple[Word, ...], found: FindWords) -> int:
    """Read one test or action; return how many words it takes behind it."""
    if text in FLAGS:
        return 0
    if text in VALUES:
        return 1
    if text in FILES or _NEWER(text):
        found.uses.extend(("search", word, Reach.ENTRY) for word in rest[:1] if not text.endswith("t"))
        return 1
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
