"""A sed script: the files it reads and writes, and whether it runs a program.

Rules of this module:

1. It reads what GNU and BSD sed agree on, and both readings of a delimiter inside brackets. What it cannot read is
   `harm`, never harmless.
2. A carriage return or another control character is not understood: it ends a comment of one sed, and none of another.
3. A label ends at a blank, `;` or `}`, at the first two, or at the end of the line only: each is a reading of its own,
   for what follows may be commands, or the text of one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from msgspec import Struct, field

from policyd.model import Word, WordKind

PLAIN = frozenset("=dDgGhHnNpPxzF")
BLANK = " \t"
LONGEST = 16 * 1024
"""Characters of a script that is read."""
TOO_LONG = "a `sed` script is too long to be read"
_LABEL_ENDS = (" \t\n;}", " \t\n;", "\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]").search


class SedScript(Struct):
    """What a script would do."""

    files: list[tuple[str, str]] = field(default_factory=list)
    """Kind (read or edit) and name."""
    runs: bool = False
    harm: str = ""


class _BadScriptError(ValueError):
    pass


class _Script(Struct):
    text: str
    brackets: bool
    ends: str
    """What ends a label."""
    at: int = 0
    found: SedScript = field(default_factory=SedScript)

    def run(self) -> SedScript:
        while self.at < len(self.text):
            if self.peek() in " \t\n;}":
                self.at += 1
                continue
            self.addresses()
            self.command()
        if self.found.files or self.found.runs:
            self.found.harm = "the script reads, writes or runs"
        return self.found

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise _BadScriptError
        self.at += 1
        return char

    def blanks(self) -> None:
        while self.peek() and self.peek() in BLANK:
            self.at += 1

    def line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        start, self.at = self.at, end
        return self.text[start:end].strip()

    def addresses(self) -> None:
        if self.address():
            self.blanks()
            if self.peek() == ",":
                self.at += 1
                self.blanks()
                if self.peek() and self.peek() in "+~":
                    self.at += 1
                    self.number()
                elif not self.address():
                    raise _BadScriptError
        self.blanks()
        while self.peek() == "!":
            self.at += 1
            self.blanks()

    def address(self) -> bool:
        char = self.peek()
        if char.isdigit():
            self.number()
            if self.peek() == "~":
                self.at += 1
                self.number()
            return True
        if char == "$":
            self.at += 1
            return True
        if char and char in "/\\":
            self.at += 1
            self.delimited(char if char == "/" else self.take(), regex=True)
            while self.peek() and self.peek() in "IM":
                self.at += 1
            return True
        return False

    def number(self) -> None:
        if not self.peek().isdigit():
            raise _BadScriptError
        while self.peek().isdigit():
            self.at += 1

    def delimited(self, mark: str, *, regex: bool) -> None:
        if mark in "\n\\":
            raise _BadScriptError
        while True:
            char = self.take()
            if char == mark:
                return
            if char == "\\":
                self.take()
            elif char == "\n" and regex:
                raise _BadScriptError
            elif char == "[" and regex and self.brackets:
                self.bracket()

    def bracket(self) -> None:
        if self.peek() == "^":
            self.at += 1
        self.take()
        while True:
            char = self.take()
            if char == "]":
                return
            if char == "[" and self.peek() and self.peek() in ".:=":
                end = self.text.find(self.peek() + "]", self.at + 1)
                if end < 0:
                    raise _BadScriptError
                self.at = end + 2

    def command(self) -> None:
        char = self.take()
        if char == "{":
            return
        if char == "#":
            self.line()
        elif char in PLAIN:
            self.end()
        elif char in "qQlL":
            self.blanks()
            while self.peek().isdigit():
                self.at += 1
            self.end()
        elif char in ":btT":
            self.label(char)
        elif char in "aic":
            self.inserted()
        elif char in "rRwWe":
            self.named(char)
        elif char == "y":
            mark = self.take()
            self.delimited(mark, regex=False)
            self.delimited(mark, regex=False)
            self.end()
        elif char == "s":
            self.substitute()
        else:
            raise _BadScriptError

    def named(self, char: str) -> None:
        name = self.line()
        if char == "e":
            self.found.runs = True
        elif name:
            self.found.files.append(("read" if char in "rR" else "edit", name))
        else:
            raise _BadScriptError

    def label(self, char: str) -> None:
        self.blanks()
        start = self.at
        while self.peek() and self.peek() not in self.ends:
            self.at += 1
        if char == ":" and start == self.at:
            raise _BadScriptError

    def inserted(self) -> None:
        """Skip the text of `a`, `i`, `c`: up to the first newline without a backslash."""
        self.blanks()
        if self.peek() == "}":
            raise _BadScriptError
        while self.peek() and self.peek() != "\n":
            self.at += 2 if self.peek() == "\\" else 1

    def substitute(self) -> None:
        mark = self.take()
        self.delimited(mark, regex=True)
        self.delimited(mark, regex=False)
        while self.peek() and (self.peek().isdigit() or self.peek() in "gpiImMew"):
            flag = self.take()
            if flag == "e":
                self.found.runs = True
            if flag == "w":
                self.named("w")
                return
        self.end()

    def end(self) -> None:
        self.blanks()
        if self.peek() and self.peek() not in "\n;}#":
            raise _BadScriptError


def read(script: str) -> SedScript:
    """Read a script; `harm` says why it is not a mere filter."""
    if len(script) > LONGEST:
        return SedScript(runs=True, harm=TOO_LONG)
    found = SedScript(harm="a sed script that is not understood" if _CONTROL(script) else "")
    for brackets, ends in product((True, False) if "[" in script else (True,), _LABEL_ENDS):
        try:
            reading = _Script(script, brackets, ends).run()
        except _BadScriptError:
            found.harm = found.harm or "a sed script that is not understood"
            continue
        found.files.extend(use for use in reading.files if use not in found.files)
        found.runs = found.runs or reading.runs
        found.harm = found.harm or reading.harm
    return found


def copies(endings: Iterable[Word], files: Sequence[Word]) -> Iterator[Word]:
    """Yield the names under which `sed -i` keeps what it edits: a `*` in an ending stands for the file's own."""
    for ending in endings:
        for word in files if ending.text else ():
            if word.kind is WordKind.CONST and ending.kind is WordKind.CONST:
                place, name = posixpath.split(word.text)
                kept = ending.text.replace("*", name) if "*" in ending.text else name + ending.text
                yield Word(kept if "/" in kept else posixpath.join(place, kept))
            else:
                yield Word(word.text + ending.text, WordKind.UNKNOWN)
