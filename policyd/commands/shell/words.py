"""From the bytes of a word to the words it becomes: quotes, escapes, `~`, variables, braces, substitutions.

Rules of this module:

1. The grammar says where a word begins, ends and holds substitutions; what the bytes mean is read here.
2. Whatever still holds a substitution the grammar did not show is opaque, and read as well where it can be.
3. A part that is not constant becomes `ONE` or `MANY` (see `quoting`), never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from policyd.commands.lexing import quoting
from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.quoting import COUNT, FRAIL, MANY, ONE, SOME, SURE
from policyd.commands.lexing.source import BRACE
from policyd.commands.shell.host import Host
from policyd.commands.shell.tame import HERE
from policyd.commands.state import COUNTED, NUMBER
from policyd.model import GLOB, UNKNOWN, Word

QUICK = re.compile(r"[A-Za-z0-9_./@%+,:=-]+|'([^'\x04]*)'|\"([^\"$`\\\x04]*)\"").fullmatch
"""Words that are read at a glance: plain ones, and those in one pair of quotes (its group is the value)."""
SPLITS = "\xa0"
"""The byte that is a blank to bash where the C library takes bytes of UTF-8 for characters (macOS)."""
PROCESS = "/dev/fd/63"
"""What a process substitution becomes."""
_RUN = re.compile(rf"[^\\'\"`$<>;&|()\s{SPLITS}\x01\x02]+", re.ASCII)
_QUOTED_RUN = re.compile(r"[^\"\\$`]+")
_ANSI = re.compile(r"\$'((?:\\.|[^'\\])*)'", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTE = re.compile(r"['\"]")
_OPENING = re.compile(rf"[{{{re.escape(BRACE)}]")
_UNTOLD = re.compile(f"[{ONE}{MANY}{SOME}{COUNT}{SURE}{FRAIL}]|:~").search
_LONE = re.compile(rf"(?<!\$)[{{{re.escape(BRACE)}]")
_UNDIVIDED = re.compile(rf"{_LONE.pattern}|\$(?![\w({{\[?@*#$!'\"-])")
"""Braces, which come before a value is divided, and a `$` that is no more: behind one bash divides nothing."""
_BRACED_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LISTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\[(@|0|[1-9][0-9]{0,3})\]\}")
_LIVE = re.compile(r"\\.|\$[(\[{]|`|[<>]\(", re.DOTALL)
_BACKTICKS = re.compile(r"`((?:\\.|[^`\\])*)`", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=", re.DOTALL)
_PARAMETER = re.compile(r"#?([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?:\[([^\]]*)\])?")
_LITERAL_SUBSCRIPT = re.compile(r"[@*]|\"[@*]\"|-?\d+")
_LITERAL_SLICE = re.compile(r":\s*-?\d+\s*(?::\s*-?\d+\s*)?\}")
_FAILS = re.compile(r"-\d|0\d|:?\?|\d*:[^}:]*\b0\d|\d*:\s*-?\d+\s*:\s*(?:-|0\d)").match
"""Subscripts and what stands behind them that may be an error, behind which nothing of the line runs."""
_SPECIAL = "0123456789@*#?$!-"
_WHOLE = re.compile(rf"{SURE}|{FRAIL}|{SOME}|(?:[A-Za-z0-9_/@%+,:=-]|\.|\\\.)+").fullmatch
"""Output that stays one word where a shell may divide it."""


def glance(text: str) -> Word | None:
    """Return the word of a text (latin-1) that is read at a glance, None for any other."""
    quick = QUICK(text)
    if quick is None:
        return None
    inner = quick[quick.lastindex or 0]
    return constant(inner if inner.isascii() else quoting.decoded(inner))


class Scanner:
    """Reads words out of one source text."""

    __slots__ = ("at", "buffer", "divides", "end", "fields", "first", "held", "host", "opened", "splits", "text")

    def __init__(self, host: Host) -> None:
        self.host = host
        self.text = host.source
        self.opened: re.Match[str] | None = None
        self.divides: bool | None = None
        """Whether it is sure how values divide the word; None until that is asked."""
        self.fields: list[str] = []
        self.buffer: list[str] = []

    def words(self, start: int, end: int) -> list[Word]:
        """Return the words that the bytes from `start` to `end` become."""
        self._scan(start, end, splits=True)
        return self._expanded(self.text[start:end])

    def output(self, printed: str, inside: bool, source: str) -> list[Word]:
        """Return the words that a substitution becomes which `source` is, in quotes (`inside`) or not."""
        self.first = self.at = self.end = len(self.text)
        self.splits, self.held = True, inside
        self._printed(printed, inside)
        self._break()
        return self._expanded(source)

    def _expanded(self, source: str) -> list[Word]:
        """Return the words of the fields, their braces expanded."""
        if quoting.is_unsure(source):
            return [quoting.unknown(quoting.decoded(source))]
        if len(self.fields) == 1 and "{" not in self.fields[0]:
            return [self._finish(self.fields[0], source)]
        try:
            parts = [quoting.braces(field) for field in self.fields]
        except quoting.TooManyError:
            self.host.opaque("a brace expansion is too large")
            return [quoting.unknown(quoting.decoded(source))]
        except quoting.UnsureError:
            self.host.opaque(f"the braces of `{quoting.decoded(source)[:40]}` cannot be followed")
            return [quoting.unknown(quoting.decoded(source))]
        expanded = [part for field in parts for part in field]
        if len(expanded) > len(parts):
            if len(parts) > 1 or ("" in expanded and _QUOTE.search(source)):
                # Braces come before a value is split; of words that are empty then, only what was quoted stays.
                return [quoting.unknown(quoting.decoded(source))]
            expanded = [part for part in expanded if part]
            return [self._finish(part, source, assigns=False) for part in expanded]
        return [self._finish(part, source) for part in expanded]

    def value(self, start: int, end: int) -> Word:
        """Return the value that the bytes from `start` to `end` give a variable."""
        self._scan(start, end, splits=False)
        text = self._home("".join(self.fields))
        if (SURE in text or FRAIL in text) and quoting.named(text) and not quoting.is_glob(text) and "~" not in text:
            return quoting.word(text, self.text[start:end])
        if text in {SOME, COUNT}:
            return NUMBER if text == SOME else COUNTED
        if _UNTOLD(text) is not None:
            return Word(quoting.decoded(self.text[start:end]), UNKNOWN)
        return constant(quoting.decoded(quoting.plain(text)))

    def live(self, start: int, end: int, *, quotes: bool) -> None:
        """Read the substitutions of a text in which nothing else matters."""
        at = start
        while (found := _LIVE.search(self.text, at, end)) is not None:
            at = found.end()
            if found[0] == "`":
                at = self._read_backticks(found.start(), end, quotes=quotes)
            elif found[0] == "${":
                self._parameter(found.start(), end)
            elif found[0] in {"$(", "$["} or (found[0] in {"<(", ">("} and not quotes):
                at = self.host.substitution(found.start(), end)

    # ---- scanning ----

    def _scan(self, start: int, end: int, *, splits: bool) -> None:
        self.first = self.at = start
        self.end, self.splits, self.divides = end, splits, None
        self.opened = _OPENING.search(self.text, start, end) if splits else None
        self.fields = []
        self.buffer = []
        self.held = False
        while self.at < self.end:
            run = _RUN.match(self.text, self.at, self.end)
            if run is not None:
                text = run[0].replace(BRACE, "{")
                text = "\\" + text if text[0] == "~" and self.at > self.first else text
                self.at = run.end()
                self.buffer.append(quoting.homeless(text) if "~" in text and self.at < self.end else text)
                continue
            _STEPS.get(self.text[self.at], Scanner._odd)(self)
        self._break()

    def _break(self) -> None:
        field = "".join(self.buffer)
        if field or self.held:
            self.fields.append(field)
        self.buffer, self.held = [], False

    def _odd(self) -> None:
        """An operator or blank inside a word: the grammar and the shell may see different words here."""
        split = self.text[self.at] == SPLITS
        first = self._character() if split else self.at
        shown = quoting.decoded(self.text[first : min(first + 160, self.end)])[:40]  # at most four bytes each
        why = "is divided into two words by some shells; quote it" if split else "is read differently by shells"
        self.host.opaque(f"`{shown}` {why}")
        self.buffer.append(MANY)
        self.at += 1

    def _character(self) -> int:
        """Return where the character begins that has the byte at hand in it."""
        first = self.at
        while first and "\x80" <= self.text[first] <= "\xbf":
            first -= 1
        return first

    def _escape(self) -> None:
        char = self.text[self.at + 1 : min(self.at + 2, self.end)]
        if char == "\n" or not char:
            self.host.opaque("a line continuation stands where it cannot be followed")
        else:
            self.buffer.append(quoting.quoted(char))
        self.held = True
        self.at += 2

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1, self.end)
        if end < 0:
            self.host.opaque("a quote is not closed")
            end = self.end
        self.buffer.append(quoting.quoted(self.text[self.at + 1 : end]))
        self.held = True
        self.at = end + 1

    def _double(self) -> None:
        self.held = True
        self.at += 1
        text, end = self.text, self.end
        while self.at < end:
            run = _QUOTED_RUN.match(text, self.at, end)
            if run is not None:
                self.buffer.append(quoting.quoted(run[0]))
                self.at = run.end()
                continue
            char = text[self.at]
            if char == '"':
                self.at += 1
                return
            self._in_double(char)
        self.host.opaque("a quote is not closed")

    def _in_double(self, char: str) -> None:
        if char == "\\":
            escaped = self.text[self.at + 1 : self.at + 2]
            if escaped == "\n":
                self.host.opaque("a line continuation stands where it cannot be followed")
            self.buffer.append(quoting.quoted(escaped if escaped in '$`"\\' else "\\" + escaped))
            self.at += 2
        elif char == "$":
            self._dollar(inside=True)
        else:
            self._backtick(inside=True)

    def _unknown(self, inside: bool) -> None:
        self.buffer.append(ONE if inside or not self.splits else MANY)

    def _dollar(self, inside: bool = False) -> None:
        text, at = self.text, self.at
        following = text[at + 1] if at + 1 < self.end else ""
        if following in {"'", '"'} and following:
            self._dollar_quote(following, inside)
        elif following in {"(", "["} and following:
            self.at = self.host.substitution(at, self.end)
            self._printed(self.host.printed if following == "(" else "", inside)
        elif following == "{":
            self._braced(inside)
        elif following and following in _SPECIAL:
            self._special(following, inside)
        else:
            name = _NAME.match(text, at + 1, self.end)
            self.at = name.end() if name is not None else at + 1
            if not inside and self._torn():
                self.buffer.append(MANY)
            elif name is not None:
                self._variable(name[0], inside)
            else:
                self.buffer.append("$")

    def _torn(self) -> bool:
        """Say whether braces, which come first, may put other letters behind the name that ends here: `$x{a,b}`."""
        following = self.text[self.at : min(self.at + 1, self.end)]
        if not self.splits or not following:
            return False
        inside = self.opened is not None and self.opened.start() < self.at
        return following in {"{", BRACE} or (inside and following in {",", "}"})

    def _printed(self, printed: str, inside: bool) -> None:
        """Put what a substitution prints, as far as it is known."""
        if printed == HERE:
            self._variable("PWD", inside)
        elif printed == COUNT and self.splits:
            self._unknown(inside)
        elif inside or not self.splits or (_WHOLE(printed) and "IFS" not in self.host.state.names):
            self.buffer.append(printed or ONE)
        else:
            self._unknown(inside)

    def _dollar_quote(self, quote: str, inside: bool) -> None:
        ansi = _ANSI.match(self.text, self.at, self.end) if quote == "'" and not inside else None
        if ansi is not None:
            self.buffer.append(quoting.quoted(quoting.ansi(ansi[1].replace(BRACE, "{"))))
            self.held = True
            self.at = ansi.end()
            return
        if inside:
            self.buffer.append("$")
        self.at += 1

    def _special(self, name: str, inside: bool) -> None:
        self.at += 2
        if name == "$" and not inside and self._torn():  # no braces are expanded behind `$`
            self.buffer.append(MANY)
        elif name in "?#$!-":
            self.buffer.append(ONE)
        elif name == "@":
            self.buffer.append(MANY)
        else:
            self._unknown(inside)

    def _variable(self, name: str, inside: bool) -> None:
        value = self.host.state.lookup(name)
        if name == "IFS" and not inside and "IFS" not in self.host.state.names:
            self.host.opaque("words are split with `$IFS`")
            self._break()
        elif value is None:
            number = self.host.state.names.get(name) is NUMBER and (inside or "IFS" not in self.host.state.names)
            self.buffer.append(SOME) if number else self._unknown(inside)
        elif value.kind is GLOB:
            self.buffer.append(quoting.renamed(value) if inside or "IFS" not in self.host.state.names else MANY)
            self.held = True
        elif inside or not self.splits:
            self.buffer.append(quoting.working(value))
            self.held = True
        elif "IFS" in self.host.state.names:
            self.buffer.append(MANY)
        else:
            self._split(value.text if value.text.isascii() else value.text.encode().decode("latin-1"))

    def _split(self, text: str) -> None:
        parts = re.split(r"[ \t\n]+", text)
        if self.host.state.picky and (len(parts) > 1 or quoting.is_glob(text)):  # zsh takes the value as it is
            self.buffer.append(MANY)
            return
        if len(parts) > 1 and self.divides is None:
            self.divides = _UNDIVIDED.search(self.text, self.first, self.end) is None
        if len(parts) > 1 and not self.divides:
            self.buffer.append(MANY)
            return
        for number, part in enumerate(parts):
            if number:
                self._break()
            self.buffer.append(quoting.value(part))

    def _braced(self, inside: bool) -> None:
        name = _BRACED_NAME.match(self.text, self.at, self.end)
        if name is not None:
            self.at = name.end()
            self._variable(name[1], inside)
            return
        if self._item(inside):
            return
        many = self._parameter(self.at, self.end)
        end = self.host.closing(self.at, self.end)
        if not end:
            self.host.opaque("an expansion `${…}` cannot be followed")
            end = self.text.find("}", self.at, self.end) + 1 or self.end
        self.live(self.at + 2, end, quotes=inside)
        self.at = end
        if many:
            self.buffer.append(MANY)
        else:
            self._unknown(inside)

    def _item(self, inside: bool) -> bool:
        """Put the items of a list that is known in the place of `"${a[@]}"`, one in that of `"${a[0]}"`."""
        opened = self.opened
        found = _LISTED.match(self.text, self.at, self.end) if inside and opened is not None else None
        if found is None or opened is None or _LONE.search(self.text, opened.start(), self.end):  # braces come first
            return False
        items = self.host.state.items(found[1])
        if found[2] != "@":
            items = items[int(found[2]) : int(found[2]) + 1]
        if not items:
            return False
        self.at = found.end()
        for number, item in enumerate(items):
            if number:
                self._break()
                self.held = True
            self.buffer.append(quoting.working(constant(item)))
        return True

    def _parameter(self, start: int, end: int) -> bool:
        """Note what the `${` at `start` would do beside giving a value; say whether it gives several words."""
        inner = self.text[start + 2 : end]
        shown = quoting.decoded(self.text[start : min(end, start + 40)])
        parameter = _PARAMETER.match(inner)
        if inner[:1] == "!" or parameter is None:
            self.host.opaque(f"`{shown}` gives what another variable names, or runs something")
            return True
        name, subscript, rest = parameter[1], parameter[2], inner[parameter.end() :]
        if rest.startswith("["):
            subscript = "["
        if subscript is not None and not _LITERAL_SUBSCRIPT.fullmatch(subscript):
            self.host.opaque(f"the subscript in `{shown}` is evaluated, which may run something")
        if rest.startswith("@"):
            self.host.opaque(f"`{shown}` evaluates the value, which may run something")
        elif rest.startswith((":=", "=")):
            self.host.state.assign(name, None, plain=False)
        elif rest[:1] == ":" and rest[1:2] not in {"-", "?", "+"} and not _LITERAL_SLICE.match(rest):
            self.host.opaque(f"the numbers in `{shown}` are evaluated, which may run something")
        if _FAILS(f"{subscript or ''}{rest}"):
            self.host.state.forget()
        return name == "@" or subscript in {"@", '"@"'}

    def _backtick(self, inside: bool = False) -> None:
        self.host.printed = ""
        self.at = self._read_backticks(self.at, self.end, quotes=inside)
        self._printed(self.host.printed, inside)

    def _read_backticks(self, start: int, end: int, *, quotes: bool) -> int:
        found = _BACKTICKS.match(self.text, start, end)
        if found is None:
            self.host.opaque("backticks are not closed")
            return end
        if self.host.shown and (self.host.ends_at(start) != found.end() or (quotes and '\\"' in found[1])):
            self.host.opaque("backticks stand where a grammar does not show them")
        self.host.backticks(re.sub(r"\\([$`\\])", r"\1", found[1]))
        return found.end()

    def _process(self) -> None:
        if self.text[self.at + 1 : self.at + 2] != "(":
            self._odd()
            return
        self.at = self.host.substitution(self.at, self.end)
        self.buffer.append(PROCESS)

    # ---- finishing ----

    def _finish(self, field: str, source: str, *, assigns: bool = True) -> Word:
        if field.startswith("~"):
            field = self._home(field)
        elif assigns and ("=~" in field or ":~" in field) and (name := _ASSIGNED.match(source)) is not None:
            head, rest = field[: name.end()], field[name.end() :]  # what is written like an assignment holds homes too
            if name[1] or self.host.state.lesser:
                field = re.sub("([=:])~", rf"\1{ONE}", field)
            else:
                field = head + self._home(rest).replace(":~", f":{ONE}")
        return quoting.word(field, source)

    def _home(self, text: str) -> str:
        """Fold the bare `~` that `text` begins with."""
        if not text.startswith("~"):
            return text
        prefix, slash, rest = text.partition("/")
        user, colon, _ = prefix.partition(":")
        if "\\" in user or ONE in user or MANY in user or SOME in user:
            return "\\" + text
        if colon:  # bash ends the name there too, and may leave what follows as it is written
            return ONE + slash + rest
        names = {"~": "HOME", "~+": "PWD"}
        value = self.host.state.lookup(names[prefix]) if prefix in names else None
        if value is None:
            return ONE + slash + rest
        return quoting.working(value) + slash + rest


_STEPS: dict[str, Callable[[Scanner], None]] = {
    "\\": Scanner._escape,
    "'": Scanner._single,
    '"': Scanner._double,
    "$": Scanner._dollar,
    "`": Scanner._backtick,
    "<": Scanner._process,
    ">": Scanner._process,
}
