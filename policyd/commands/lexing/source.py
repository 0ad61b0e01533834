"""The text before the grammar sees it: odd characters, line continuations, here-documents.

Rules of this module:

1. Control and format characters (Cc but tab and newline, Cf, U+2028, U+2029) and lone surrogates are noted, whatever
   the command does with them: what a person is shown would not be what runs.
2. Line continuations are removed as bash does, before anything else is read: not in single quotes, comments and quoted
   here-documents; a backslash at the end of a comment joins nothing.
3. Here-documents are cut out and leave `<` and a token, as the grammar places what follows `<<` badly; for `<<<` and
   `<>` stand operators that it knows, and a mark.
4. If the scan is not sure where it is, it changes nothing and says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from msgspec import Struct, field

TOKEN = "\x03"  # noqa: S105
"""Stands on both sides of the number of a here-document that was cut out."""
BRACE = "\x04"
"""Stands for a `{` at the head of a command that begins a word (`{rm,x}`), which the grammar takes for a group."""
STRING = "\x05"
"""Stands, behind `<`, before the word of a here-string: the grammar loses `<<<` behind another redirection."""
BOTH = "\x06"
"""Stands, behind `>`, before the file of `<>`, which the grammar does not know."""

_ODD = re.compile(r"[^\t\n -~]")
_WORK = re.compile(r"\\\n|<[<>]")
_NESTED = re.compile(r"`|\$['({\[]|<[<>]|\\[\s;&|()<>]#").search
_QUOTING = re.compile(r"\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|(?<![^ \t\n;&|<>])#[^\n]*+|['\"()]", re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_TRICKY = re.compile(r"\bcase\b|#")
_SUBSTITUTION = re.compile(r"[$<>]\(")
_RUN = re.compile(r"[^\\'\"`$(){}<#\n]+")
_ARITHMETIC_RUN = re.compile(r"[^\\\"`$()\n]+")
_DELIMITER = re.compile(r"<<(-?)[ \t]*((?:\\[^\n]|'[^'\n]*'|\"(?:\\.|[^\"\\\n$`])*\"|[^\s;&|()<>'\"\\`$])+)")
_COMMAND_START = re.compile(r"(?:^|[;&|({\n!]|\b(?:if|while|until|then|do|else|elif|time|for))[ \t]*\Z")
_OPEN_SUBSCRIPT = re.compile(r"\w\[[^\]\n]*\Z")
_BRACE = re.compile(r"((?:\A|[;&|(\n!`{]|\b(?:do|then|else|elif|if|while|until|time))[ \t]*)\{(?=[^\s{}][^\s]*[,.])")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_CASE = re.compile(r"\bcase\b")
_ESAC = re.compile(r"\besac\b")
_DESCRIPTOR = re.compile(r"(\A|[ \t;&|])[0-9]+\Z")
_DOUBLE_RUN = re.compile(r"[^\\\"$`]+")
_ANSI = re.compile(r"\$'(?:\\.|[^'\\])*'", re.DOTALL)
_CUT = 8
"""Here-documents that are cut out at once."""
_PRINTED = re.compile(
    r"(\$\([ \t]*+cat[ \t]*+)<<[ \t]*+(['\"]?)([A-Za-z0-9_]++)\2([ \t]*+\n)((?:(?!\3)[^\n]*+\n)*+)\3\n(?=[ \t\n]*+\))"
)
_TAIL = 200
_DEEP, _MOST, _LOOKED = 512, 5_000, 4 * 1024 * 1024
"""How deep a text is followed, for how many here-documents, and how far back for a `case` that is open."""


class UnsureError(Exception):
    """The scan cannot tell what a character means."""


def odd_characters(text: str) -> tuple[str, str]:
    """Return the text fit for reading, and why its characters are suspicious (empty: they are not)."""
    if _ODD.search(text) is None:
        return text, ""
    found = ""
    for char in set(_ODD.findall(text)):
        category = unicodedata.category(char)
        if category in {"Cc", "Cf", "Cs", "Co", "Cn"} or char in "\u2028\u2029":
            found = max(found, f"U+{ord(char):04X}")
    if not found:
        return text, ""
    text = re.sub("[\x00-\x06\x0b\x0c\ud800-\udfff]", "?", text)
    return text, f"the text holds a control or invisible character ({found})"


class Document(Struct):
    """A here-document."""

    body: str
    """Its text as latin-1 bytes, leading tabs stripped for `<<-`."""
    quoted: bool
    """Its delimiter was quoted, so nothing in it is expanded."""


class Input(Struct, frozen=True):
    """What a command is fed, as far as it is written."""

    text: str
    literal: bool
    """Nothing in it is expanded."""


class _Pending(Struct):
    number: int
    delimiter: str
    tabs: bool
    inside: bool
    """It stands between parentheses."""


class Scan(Struct):
    """One pass over a text, with a stack of what is open."""

    text: str
    documents: list[Document]
    at: int = 0
    out: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    """`)` a list, `"` double quotes, a backtick, `}` an expansion, `A` arithmetic, `a` a parenthesis in it."""
    ends: dict[int, int] = field(default_factory=dict)
    """Where a substitution begins -> where it ends, in what is put out."""
    starts: list[int] = field(default_factory=list)
    size: int = 0
    marks: list[int] = field(default_factory=list)
    """How much was put out when each of `stack` was opened."""
    pending: list[_Pending] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    doubled: bool = False
    """A `((` was met that may be arithmetic or two lists."""
    cases: bool = False
    """Whether a `case` is anywhere: then a `)` may belong to a pattern; and how much was looked through for one."""
    looked: int = 0

    def run(self) -> str:
        while self.at < len(self.text):
            top = self.stack[-1] if self.stack else ""
            if top == '"':
                self._double()
            elif top in {"A", "a"}:
                self._arithmetic()
            else:
                self._code(top)
        if self.stack:
            raise UnsureError
        if self.pending:
            self.problems.append("a here-document has no body")
        return "".join(self.out)

    def _push(self, state: str, start: int = -1) -> None:
        if len(self.stack) > _DEEP:
            raise UnsureError
        self.marks[len(self.stack) :] = [len(self.out)]
        self.starts[len(self.stack) :] = [start]
        self.stack.append(state)

    def _put(self, text: str) -> None:
        self.out.append(text)
        self.size += len(text)

    def _copy(self, count: int) -> None:
        self._put(self.text[self.at : self.at + count])
        self.at += count

    def _backslash(self) -> None:
        if self.text.startswith("\\\n", self.at):
            self.at += 2
        else:
            self._copy(2)

    def _dollar(self) -> None:
        """Copy `$` and what it opens."""
        for opening, state in (("$((", "A"), ("$(", ")"), ("${", "}")):
            if self.text.startswith(opening, self.at):
                self._push(state, self.size)
                self._copy(len(opening))
                return
        if self.text.startswith("$[", self.at):
            raise UnsureError
        self._copy(1)

    def _tick(self) -> None:
        if self.stack and self.stack[-1] == "`":
            self.stack.pop()
        elif "`" in self.stack:
            raise UnsureError
        else:
            self._push("`")
        self._copy(1)

    def _double(self) -> None:
        char = self.text[self.at]
        if char == "\\":
            self._backslash()
        elif char == '"':
            self.stack.pop()
            self._copy(1)
        elif char == "$":
            self._dollar()
        elif char == "`":
            self._tick()
        else:
            run = _DOUBLE_RUN.match(self.text, self.at)
            self._copy(len(run[0]) if run else 1)

    def _arithmetic(self) -> None:
        run = _ARITHMETIC_RUN.match(self.text, self.at)
        if run is not None:
            self._copy(len(run[0]))
            return
        char = self.text[self.at]
        if char == ")":
            self._close_arithmetic()
        elif char in "\\$`":
            {"\\": self._backslash, "$": self._dollar, "`": self._tick}[char]()
        else:
            if char in '("':
                self._push("a" if char == "(" else char)
            self._copy(1)

    def _close_arithmetic(self) -> None:
        if self.stack.pop() == "a":
            self._copy(1)
        elif self.text.startswith("))", self.at):
            self._copy(2)
        else:
            raise UnsureError

    def _code(self, top: str) -> None:
        run = _RUN.match(self.text, self.at)
        if run is not None:
            self._copy(len(run[0]))
            return
        char = self.text[self.at]
        if char == "\\":
            self._backslash()
        elif char == "'":
            self._single(top)
        elif char == '"':
            self._push('"')
            self._copy(1)
        elif char == "`":
            self._tick()
        elif char == "$":
            self._code_dollar(top)
        elif char in "()":
            self._parenthesis(char, top)
        elif char == "#":
            self._comment(top)
        elif char == "<":
            self._less(top)
        elif char == "\n":
            self._newline()
        else:
            if char == "}" and top == "}":
                self.stack.pop()
            self._copy(1)

    def _single(self, top: str) -> None:
        if top == "}" and '"' in self.stack:
            self._copy(1)
            return
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnsureError
        self._verbatim(end + 1 - self.at)

    def _verbatim(self, count: int) -> None:
        """Copy what holds no continuation; between backticks one is taken out before quotes and comments are seen."""
        if "`" in self.stack and "\\\n" in self.text[self.at : self.at + count + 1]:
            raise UnsureError
        self._copy(count)

    def _code_dollar(self, top: str) -> None:
        if self.text.startswith("$'", self.at) and not (top == "}" and '"' in self.stack):
            found = _ANSI.match(self.text, self.at)
            if found is None:
                raise UnsureError
            self._verbatim(len(found[0]))
        else:
            self._dollar()

    def _before(self) -> str:
        size, count = 0, 0
        while size <= _TAIL and count < len(self.out):
            count += 1
            size += len(self.out[-count])
        return "".join(self.out[-count:])

    def _parenthesis(self, char: str, top: str) -> None:
        if char == "(":
            double = self.text.startswith("((", self.at)
            arithmetic = double and _COMMAND_START.search(self._before())
            self.doubled = self.doubled or (double and not arithmetic)
            process = self.out and self.out[-1][-1:] in {"<", ">"}
            self._push("A" if arithmetic else ")", self.size - 1 if process else -1)
            self._copy(2 if arithmetic else 1)
            return
        self._copy(1)
        if top == ")" and not self._in_case():
            self.stack.pop()
            self.ends[self.starts[len(self.stack)]] = self.size

    def _in_case(self) -> bool:
        """Say whether a `case` is open since the last parenthesis: then this one may end a pattern."""
        if not self.cases:
            return False
        since = "".join(self.out[self.marks[len(self.stack) - 1] :])
        self.looked += len(since)
        if self.looked > _LOOKED:
            raise UnsureError
        return len(_CASE.findall(since)) > len(_ESAC.findall(since))

    def _comment(self, top: str) -> None:
        before = self.out[-1][-1:] if self.out else ""
        if top == "}" or (before and before not in " \t\n;&|()<>`"):
            self._copy(1)
            return
        if top == "`" and "`" in self.text[self.at : self.text.find("\n", self.at)]:
            raise UnsureError
        end = self.text.find("\n", self.at)
        self._verbatim((end if end >= 0 else len(self.text)) - self.at)

    def _less(self, top: str) -> None:
        for operator, mark in (("<<<", f"<{STRING}"), ("<>", f">{BOTH}")):
            if self.text.startswith(operator, self.at) and top != "}":
                self._put(mark)
                self.at = _BLANKS.match(self.text, self.at + len(operator)).end()  # type: ignore[union-attr]
                return
        if self.text.startswith("<<<", self.at):
            self._copy(3)
        elif not self.text.startswith("<<", self.at):
            self._copy(1)
        else:
            self._here_document(top)

    def _here_document(self, top: str) -> None:
        found = _DELIMITER.match(self.text, self.at)
        if found is None or top == "}" or (self.doubled and self.stack) or _OPEN_SUBSCRIPT.search(self._before()):
            raise UnsureError
        raw = found[2]
        number_ends_word = len(self.out) > 1 and self.out[-1].isdigit()  # it may: `"a"2<<E`
        if number_ends_word or self.text.startswith(("$", "`", "'", '"', "\\"), found.end()):
            raise UnsureError
        delimiter = re.sub(r"\\(.)|['\"]", lambda pair: pair[1] or "", raw)
        # bash forgets that `''` was quoted; backticks take backslashes away
        if not delimiter or "`" in self.stack or len(self.documents) > _MOST:
            raise UnsureError
        number = len(self.documents)
        self.documents.append(Document("", any(quote in raw for quote in "\\'\"")))
        self.pending.append(_Pending(number, delimiter, bool(found[1]), ")" in self.stack))
        if self.out:
            before = self.out.pop()
            self.size -= len(before)
            self._put(_DESCRIPTOR.sub(r"\1", before))
        self._put(f"<{TOKEN}{number}{TOKEN}")
        self.at = found.end()

    def _newline(self) -> None:
        self._copy(1)
        for pending in self.pending:
            self._body(pending)
        self.pending = []

    def _body(self, pending: _Pending) -> None:
        document = self.documents[pending.number]
        lines: list[str] = []
        while self.at < len(self.text):
            line = self._line(joined=not document.quoted)
            if pending.tabs:
                line = line.lstrip("\t")
            if line == pending.delimiter:
                document.body = "".join(lines)
                return
            if pending.inside and line.startswith(pending.delimiter) and ")" in line:  # bash ends it here
                self.problems.append(f"the here-document `{pending.delimiter[:40]}` may end with the parenthesis")
            lines.append(line + "\n")
        document.body = "".join(lines)
        self.problems.append(f"the here-document `{pending.delimiter[:40]}` has no end")

    def _line(self, *, joined: bool) -> str:
        """Take one line; an unquoted here-document joins lines whose end is a bare backslash."""
        parts: list[str] = []
        while True:
            end = self.text.find("\n", self.at)
            end = end if end >= 0 else len(self.text)
            line = self.text[self.at : end]
            self.at = end + 1
            if not joined or (len(line) - len(line.rstrip("\\"))) % 2 == 0 or self.at >= len(self.text):
                return "".join([*parts, line])
            parts.append(line[:-1])


def prepare(text: str, documents: list[Document]) -> tuple[str, list[str], Mapping[int, int] | None]:
    """Return the text (latin-1) without continuations and here-documents, and what could not be followed.

    The here-documents are appended to `documents`; their place in the text holds their number there. Third is where
    every `$(…)` and `<(…)` of that text ends, where the scan was needed at all: a second opinion on the grammar's.
    """
    if "\\\n" in text and (whole := joined(text)):
        return _words_in_braces(whole), [], None
    if _WORK.search(text) is None and (_TRICKY.search(text) is None or _SUBSTITUTION.search(text) is None):
        return _words_in_braces(text), [], None
    kept = len(documents)
    scan = Scan(text, documents, cases=bool(_CASE.search(text)))
    try:
        return _words_in_braces(scan.run()), scan.problems, scan.ends
    except UnsureError:
        del documents[kept:]
        return text, ["line continuations, here-documents or substitutions cannot be followed"], None


def cut(text: str, documents: list[Document]) -> str:
    """Return the text with marks in place of the here-documents of `$(cat <<'E' …)`, empty where there are others too.

    What stands around them is not looked at: whoever takes the text apart must know a mark only where one may stand.
    """
    count = text.count("<<")
    if count > _CUT:  # each may be looked for to the end of the text
        return ""
    found: list[Document] = []

    def mark(match: re.Match[str]) -> str:
        found.append(Document(match[5], bool(match[2])))
        return f"{match[1]}<{TOKEN}{len(documents) + len(found) - 1}{TOKEN}{match[4]}"

    marked = _PRINTED.sub(mark, text)
    if "<<" in marked or len(found) != count or any("\\" in one.body and not one.quoted for one in found):
        return ""
    documents += found
    return marked


def joined(text: str) -> str:
    """Return the text without line continuations; empty where more than quotes and comments must be looked at."""
    if _NESTED(text) is not None:
        return ""
    sure = True

    def join(found: re.Match[str]) -> str:
        nonlocal sure
        piece = found[0]
        sure = sure and (len(piece) > 1 or piece == "#")
        if piece == "\\\n":
            return ""
        return _ESCAPED.sub(join, piece) if piece[0] == '"' and "\\\n" in piece else piece

    found = _QUOTING.sub(join, text)
    return found if sure else ""


def _words_in_braces(text: str) -> str:
    return _BRACE.sub(rf"\1{BRACE}", text) if "{" in text else text
