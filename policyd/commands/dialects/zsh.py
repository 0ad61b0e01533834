"""Whether a text for zsh says the same to bash, so that the grammar of bash may read it.

Rules of this module:

1. A closed list: ordinary words, quotes, `*` and `?`, `{a,b}`, `$NAME`, `$(…)`, lists, pipes, subshells, `if`, `for`,
   `while`, plain redirections, here-documents without expansions. The first thing that is not on it is the difference.
2. What bash would split or expand and zsh would not is a difference: an unquoted `$x` whose value holds a blank or a
   wildcard. So is what only zsh does: `=name`, `$x:t`, `**`, numeric ranges, several inputs of one command, the end of
   a pipeline run by the shell itself.
3. Builtins count only where their words are read alike: `print`, `log`, `r` are programs to bash, and `printf`, `exit`
   or `[ a -eq b ]` of zsh evaluate their words as arithmetic, which may run something.
4. The options are those zsh starts with; what a user's own start-up files change is the user's, as `PATH` is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct, field

from policyd.commands.dialects.zshwords import CHANGES, alike, settable
from policyd.commands.state.taint import loose

SHOWN = 40
"""How much of the text a difference shows."""
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_PLAINLY = r"(?!\[|:[A-Za-z&])"
_ENDED = r"(?![\x80-\U0010ffff])"
"""Any letter may be part of a name in zsh."""
_VARIABLE = rf"\$(?:(?:{_NAME}{_ENDED}|\{{{_NAME}\}}|[?@*](?![A-Za-z0-9_])|[1-9](?![0-9])){_PLAINLY})"
_CHOICE = r"(?:[A-Za-z0-9_/@%+:-]|\.(?!\.))"
_PIECE = re.compile(
    r"(?P<run>[A-Za-z0-9_./@%+,:\x80-\U0010ffff-]++)"
    r"|(?P<quoted>'[^']*+'(?!'))"
    r"|\\[ -~]"
    rf"|(?P<variable>{_VARIABLE})"
    r"|(?P<glob>\?|\*(?!\*))"
    r"|(?<=[A-Za-z0-9_./@%+,:-])=(?![=~])"
    r"|(?<=[A-Za-z0-9_~^])[~^](?![/=])"
    rf"|(?P<braces>\{{\}}|\{{{_CHOICE}++(?:,{_CHOICE}++)*+\}}|(?<=[A-Za-z0-9_./-])\{{{_CHOICE}*+(?:,{_CHOICE}*+)++\}})"
)
_HOME = re.compile(r"~(?=[/\s;&|)<>]|\Z)")
_IN_DOUBLE = re.compile(rf"""[^\\"$`]++|\\[^\n]|{_VARIABLE}|\$(?=[ "|),;%.&\n])""")
_BLANK = re.compile(r"(?:[ \t]++|(?<=[ \t])\\\n(?=[ \t]))++")
_DESCRIPTOR = re.compile(r"\{\w+\}").fullmatch
_COMMENT = re.compile(r"#[A-Za-z0-9_.,:/@%+ \t-]*+(?=\n|\Z)")
"""An interactive shell may take a comment for a command: only one that would do nothing is none."""
_OPERATOR = re.compile(r"&&(?!&)|\|\|(?!\|)|\|&?(?![|&])|;(?![;&|])|&(?![&!|>])|\n")
_DOCUMENT = re.compile(r"<<(-?)(?:'([A-Za-z0-9_]++)'|\"([A-Za-z0-9_]++)\"|([A-Za-z0-9_]++))(?=[\s;&|)<>]|\Z)")
_COPY = re.compile(r"2>&1(?=[\s;&|)]|\Z)|[12]?>&[12](?=[\s;&|)]|\Z)")
_REDIRECT = re.compile(
    r"(?:(?P<input><(?:<<)?)|(?P<output>1?>(?:>|\|)?|&>>?)|2>>?)(?![<>&|!(])[ \t]*+(?=[A-Za-z_./~\"'$])"
)
_EXPANDS = re.compile(r"[$`\\]")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)")
_ASSIGNED = re.compile(rf"({_NAME})=")
_SPACED = re.compile(r"[\s*?\[\\]")
_QUOTES = re.compile(r"['\"\\]")

_LEADS = frozenset(["!", "do", "elif", "else", "if", "then", "until", "while", "{"])
"""Keywords behind which a command begins."""
_OPENS = frozenset(["if", "until", "while", "{"])
_CLOSES = frozenset(["done", "fi", "}"])
"""Keywords behind which no word may stand."""


class DifferenceError(Exception):
    """Here zsh and bash may part."""


class _Command(Struct):
    """One simple command as far as it was read."""

    words: list[str] = field(default_factory=list)
    """Its words as they are written, behind assignments and keywords."""
    inputs: int = 0
    outputs: int = 0
    redirected: bool = False
    assigned: bool = False
    closed: bool = False
    """Only redirections may follow."""
    values: bool = False
    """It is the list of a `for`."""
    names: list[str] = field(default_factory=list)
    """Variables it sets."""


class _Scan(Struct):
    """One pass over a text."""

    text: str
    at: int = 0
    open: list[tuple[str, _Command, int, int]] = field(default_factory=list)
    """`(` a subshell, `$` a substitution, with the command that it stands in, `nested` and `piped` there."""
    nested: int = 0
    """How many compound commands are open."""
    piped: int = -1
    """How many were open at the pipe that what is read stands behind; -1: behind none."""
    moved: bool = False
    """What changes the shell stands before a `&&` or `||` of the list: behind an `&` it is no other shell to zsh."""
    names: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Variables that are set, before and behind a pipe."""
    command: _Command = field(default_factory=_Command)
    documents: list[tuple[str, bool, bool]] = field(default_factory=list)
    """Here-documents whose text follows: delimiter, tabs are stripped, quoted."""
    spaced: bool = False
    """Some variable has a value that bash would split or expand."""
    bare: bool = False
    """Some variable stands unquoted."""

    def run(self) -> None:
        while self.at < len(self.text):
            self._step()
        self._end("\n")
        if self.open or self.documents or (self.spaced and self.bare) or self.names[0] & self.names[1]:
            raise DifferenceError

    def _step(self) -> None:
        for pattern, action in _STEPS:
            found = pattern.match(self.text, self.at)
            if found is not None:
                action(self, found)
                return
        self._word()

    def _skip(self, found: re.Match[str]) -> None:
        self.at = found.end()

    def _comment(self, found: re.Match[str]) -> None:
        line = self.text[self.text.rfind("\n", 0, self.at) + 1 : self.at]
        if line.strip(" \t") or self.command != _Command():
            raise DifferenceError
        self.at = found.end()

    # ---- words ----

    def _word(self) -> None:
        start = self.at
        globs = self._pieces()
        raw = self.text[start : self.at]
        command = self.command
        if command.closed or not raw or _DESCRIPTOR(raw):
            raise DifferenceError
        if command.words or command.values:
            command.words.append(raw)
        elif (assigned := _ASSIGNED.match(raw)) is not None:
            self._assign(assigned[1], raw[assigned.end() :], globs)
        else:
            self._head(raw, globs)

    def _pieces(self) -> bool:
        """Take one word; say whether it has wildcards or braces."""
        globs, start, text, riddle = False, self.at, self.text, False
        home = _HOME.match(text, self.at)
        self.at = home.end() if home is not None else self.at
        while self.at < len(text) and text[self.at] not in " \t\n;&|)<>":
            char = text[self.at]
            if riddle and char in "~=^":  # what stands before may be nothing, and these begin the word
                raise DifferenceError
            riddle = char == "$"
            if char == '"':
                self._double()
            elif text.startswith("$(", self.at) and not text.startswith("$((", self.at):
                self._substitution()
                self.bare = True
            elif self._lone(start):
                self.at += 1
            else:
                found = _PIECE.match(text, self.at)
                if found is None:
                    raise DifferenceError
                globs |= found["glob"] is not None or found["braces"] not in {None, "{}"}
                self.bare |= found["variable"] is not None
                self.at = found.end()
        return globs

    def _lone(self, start: int) -> bool:
        """Say whether here stands a character that is a word of its own: `{`, `}`, `!`, in a test `=`, `!=`, `]`."""
        text, at, words = self.text, self.at, self.command.words
        ended = at + 1 >= len(text) or text[at + 1] in " \t\n;&|)"
        tested = bool(words) and words[0] in {"[", "test"}
        if at != start:
            return text[start:at] == "!" and text[at] == "=" and ended and tested
        if not words and text[at] in "{}!":
            return ended and not self.command.values
        if text[at] == "!":
            return tested and (ended or text.startswith("!=", at))
        return ended and ((text[at] in "=]" and tested) or (text[at] == "[" and not words and not self.command.values))

    def _double(self) -> None:
        self.at += 1
        while not self.text.startswith('"', self.at):
            if self.text.startswith("$(", self.at) and not self.text.startswith("$((", self.at):
                self._substitution()
                continue
            found = _IN_DOUBLE.match(self.text, self.at)
            if found is None:
                raise DifferenceError
            self.at = found.end()
        self.at += 1

    def _substitution(self) -> None:
        """Take a `$(…)` as the text of its own that it is."""
        depth = len(self.open)
        self._enter("$")
        self.at += 2
        while len(self.open) > depth:
            if self.at >= len(self.text):
                raise DifferenceError
            self._step()

    # ---- commands ----

    def _head(self, raw: str, globs: bool) -> None:
        command = self.command
        if raw in _LEADS or (raw == "time" and _TIMED.match(self.text, self.at)):
            if command.redirected or command.assigned:
                raise DifferenceError
            self.nested += raw in _OPENS
            return
        if raw in _CLOSES:
            self.nested -= 1
            command.words, command.closed = [raw], True
            return
        loop = _FOR.match(self.text, self.at) if raw == "for" else None
        if loop is not None and settable(loop[1]) and not command.assigned:
            command.values = True
            command.names.append(loop[1])
            self.nested += 1
            self.at = loop.end()
            return
        if globs or raw[0] == "%" or any(sign in raw for sign in "$=~^"):
            raise DifferenceError
        command.words.append(raw)

    def _assign(self, name: str, value: str, globs: bool) -> None:
        if globs or not settable(name, value):
            raise DifferenceError
        self.spaced |= _SPACED.search(value) is not None and not value.startswith("$(")
        self.command.assigned = True
        self.command.names.append(name)

    def _redirect(self, found: re.Match[str]) -> None:
        command = self.command
        if self.text[found.start() - 1 : found.start()].isdigit():  # `10>f` is a word and `>f`
            raise DifferenceError
        self.at = found.end()
        start = self.at
        if self._pieces() or _NETWORK.search(self.text, start, self.at) or command.values:
            raise DifferenceError
        command.redirected = True
        command.inputs += found["input"] is not None
        command.outputs += found["output"] is not None

    def _copies(self, found: re.Match[str]) -> None:
        self.command.redirected = True
        self.at = found.end()

    def _document(self, found: re.Match[str]) -> None:
        self.command.redirected = True
        self.command.inputs += 1
        self.documents.append((found[2] or found[3] or found[4], bool(found[1]), found[4] is None))
        self.at = found.end()

    def _operator(self, found: re.Match[str]) -> None:
        self.at = found.end()
        if found[0] != "\n" or self.command not in (_Command(), _Command(inputs=True)):  # a line may end behind `|`
            self._end(found[0])
        if found[0] == "\n" and self.documents:
            for document in self.documents:
                self._body(*document)
            self.documents = []

    def _body(self, delimiter: str, tabs: bool, quoted: bool) -> None:
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            line = self.text[self.at : end if end >= 0 else len(self.text)]
            self.at = end + 1 if end >= 0 else len(self.text)
            if (line.lstrip("\t") if tabs else line) == delimiter:
                return
            if not quoted and _EXPANDS.search(line):
                break
        raise DifferenceError

    def _end(self, operator: str) -> None:
        """End a simple command; of a pipeline the next one has an input."""
        command, pipe = self.command, operator in {"|", "|&"}
        if operator == "&" and self.moved:
            raise DifferenceError
        changes = bool(command.names) or bool(command.words and _QUOTES.sub("", command.words[0]) in CHANGES)
        self.moved = (self.moved or changes) if operator in {"&&", "||", "|", "|&"} else self.moved and self.nested > 0
        self.command = _Command(inputs=pipe)
        if command.inputs > 1 or command.outputs + pipe > 1 or (command.redirected and not command.words):
            raise DifferenceError
        if command.names and (command.values or not command.words):
            self._sets(command.names)
        if command.values:
            self._valued(command.words)
        elif command.words and not command.closed:
            if command.assigned and command.words[0] == "export":  # zsh expands its words behind what is set
                raise DifferenceError
            self._called(command.words[0], command.words[1:])
        if not pipe and self.piped >= self.nested:
            self.piped = -1
        elif pipe and self.piped < 0:
            self.piped = self.nested

    def _called(self, written: str, words: list[str]) -> None:
        """Check that both shells take a command for the same."""
        name = _QUOTES.sub("", written)
        if (name in CHANGES and self.piped >= 0) or not alike(name, words, quoted=name != written):
            raise DifferenceError
        if name == "export":
            self._valued(words)
        elif name == "read":
            self._sets([word for word in words if word != "-r"])

    def _sets(self, names: list[str]) -> None:
        """Note variables that are set; the end of a pipeline sets those of the shell itself."""
        self.names[self.piped >= 0].update(names)
        if self.piped >= 0 and not all(map(loose, names)):
            raise DifferenceError

    def _valued(self, words: list[str]) -> None:
        """Note words that give variables their values."""
        self.spaced |= any(_QUOTES.search(word) and _SPACED.search(word) for word in words)

    def _opens(self, found: re.Match[str]) -> None:
        command = self.command
        if command.words or command.assigned or command.redirected or command.values or command.closed:
            raise DifferenceError
        self._enter("(")
        self.at = found.end()

    def _enter(self, kind: str) -> None:
        """Begin what a shell of its own runs."""
        if len(self.open) > _DEEPEST or self.documents:
            raise DifferenceError
        self.open.append((kind, self.command, self.nested, self.piped))
        self.command, self.nested, self.piped = _Command(), 0, -1

    def _closes(self, found: re.Match[str]) -> None:
        if not self.open or self.documents:
            raise DifferenceError
        self._end("\n")
        kind, self.command, self.nested, self.piped = self.open.pop()
        if kind == "(":
            self.command.words, self.command.closed = ["("], True
        self.at = found.end()


_DEEPEST = 32
_TIMED = re.compile(r"[ \t]+[A-Za-z0-9_./]")
_FOR = re.compile(rf"[ \t]+({_NAME})[ \t]+in(?=[ \t])")
_STEPS: tuple[tuple[re.Pattern[str], Callable[[_Scan, re.Match[str]], None]], ...] = (
    (_BLANK, _Scan._skip),
    (_COMMENT, _Scan._comment),
    (_DOCUMENT, _Scan._document),
    (_COPY, _Scan._copies),
    (_REDIRECT, _Scan._redirect),
    (_OPERATOR, _Scan._operator),
    (re.compile(r"\((?![()])"), _Scan._opens),
    (re.compile(r"\)"), _Scan._closes),
)


def difference(text: str) -> str:
    """Return what zsh may read in another way than bash does, empty where both read the text alike."""
    scan = _Scan(text)
    try:
        scan.run()
    except DifferenceError:
        place = max(0, scan.at - 1)
        return f"`{text[place : place + SHOWN].strip() or text.strip()[:SHOWN]}` may mean something else to zsh"
    return ""
