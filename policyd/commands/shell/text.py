"""One shell text while it is read: what is known of the shell there, and what its words become."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from policyd.commands.lexing import plainwords
from policyd.commands.lexing.plain import Span, constant, counts
from policyd.commands.lexing.quoting import COUNT, FRAIL, SURE, decoded, shown, working
from policyd.commands.lexing.quoting import word as finished
from policyd.commands.lexing.run import Run
from policyd.commands.lexing.source import TOKEN, Input, prepare
from policyd.commands.shell.execute import Script
from policyd.commands.shell.tame import mark
from policyd.commands.shell.words import PROCESS, Scanner, glance
from policyd.commands.state import Pair, State
from policyd.model import UNKNOWN, Word

_SPELLED: dict[str, Word] = {}
"""Spelling -> word, of words that mean the same everywhere; they recur, so they are kept (bounded)."""
_SPELLED_KEPT = 8_192
_NAMES = {name: finished(name, "") for name in (SURE, FRAIL)}
"""What the marks of known output become where they are a word."""
_LONGEST = 256
_NAME = r"(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})"
_variable = re.compile(rf'\${_NAME}|"\${_NAME}"').fullmatch
_PROCESSES = frozenset({"<(", ">("})
_listed = re.compile(r"([\w./@%+-]*+)\{([\w./@%+-]++(?:,[\w./@%+-]++)++)\}([\w./@%+-]*+)", re.ASCII).fullmatch
"""A word of literal choices: `src/{a,b}.py`."""
_OWN = frozenset({"IFS", "PWD"})
"""Variables of which more is known than their value."""


class Text(Struct):
    """A source text (latin-1) with the state of the shell that reads it. No grammar was asked about it."""

    run: Run
    source: str
    state: State
    via: tuple[str, ...]
    script: Script
    """Reads the texts inside this one."""
    whole: ClassVar[Callable[[Text], Pair]]
    """Reads it (`flat.whole`)."""
    fed: str = ""
    """What it is fed with."""
    document: Input | None = None
    """The here-document or here-string it is fed with."""
    files: tuple[Word, ...] = ()
    """The files whose names come through the pipe, each with a NUL behind it, where they are known."""
    echoed: str | None = None
    """What a `cat` read last prints."""
    single: str = ""
    """The substitution read last, where it is one command and no more."""
    counts: bool = False
    """Whether the substitution read last prints a count and no more."""
    printed: str = ""
    shown: bool = True

    def opaque(self, reason: str) -> None:
        """Note a part that is not understood."""
        self.run.reasons[reason] = None

    def text(self, start: int, end: int) -> str:
        """Return source text for people."""
        return shown(self.source[start:end])

    def words(self, spellings: Sequence[str]) -> tuple[Word, ...]:
        """Return the words of a plain list that are spelled so."""
        found = tuple(map(_SPELLED.get, spellings))
        if all(found):
            return found  # type: ignore[return-value]
        words: list[Word] = []
        for spelled, word in zip(spellings, found, strict=True):
            if word is None:
                words += self._spell(spelled, 0)
            else:
                words.append(word)
        return tuple(words)

    def scan(self, spans: Iterable[Span]) -> list[Word]:
        """Return the words at the places given."""
        source = self.source
        found: list[Word] = []
        for start, end in spans:
            spelled = source[start:end]
            word = _SPELLED.get(spelled)
            if word is None:
                found += self._spell(spelled, start)
            else:
                found.append(word)
        return found

    def _spell(self, text: str, start: int) -> list[Word]:
        """Read a word that is not among those kept."""
        quick = glance(text)
        if quick is not None:
            words = [quick]
        elif (name := _variable(text)) is not None and self.is_outer(name[name.lastindex or 0]):
            return [Word(text, UNKNOWN, "", text[0] == "$")]
        else:
            words = self.spelled(text, start)
            if len(words) > 1:
                self.run.spend(len(words))
            if len(text) > _LONGEST or not plainwords.is_constant(text) or words[0].kind is UNKNOWN:
                return words  # what is not understood must be said again
        if len(text) <= _LONGEST:
            if len(_SPELLED) >= _SPELLED_KEPT:
                _SPELLED.clear()
            _SPELLED[text] = words[0]
        return words

    def is_outer(self, name: str) -> bool:
        """Say whether a variable comes from outside, or holds what is not known."""
        return name not in _OWN and self.state.lookup(name) is None and not self.state.number(name)

    def spelled(self, text: str, start: int) -> list[Word]:
        """Return the words that `text` becomes; in a plain list that is the same wherever it stands."""
        inside = text[0] == '"'
        opening = text[1:3] if inside else text[:2]
        if opening == "$(" or (opening in _PROCESSES and not inside):
            found = plainwords.substitution()(text, inside)
            if found is not None and found.end() == len(text) - inside:
                self.apart(self._substituted, found[1])
                return self._output(text, inside) if opening == "$(" else [constant(PROCESS)]
        elif (listed := _listed(text)) is not None and ".." not in text:
            return [constant(f"{listed[1]}{choice}{listed[3]}") for choice in listed[2].split(",")]
        elif text[0] == "`" and text.find("`", 1) == len(text) - 1:
            self.backticks(text[1:-1])
            return self._output(text, False)
        return Scanner(self.inside(text)).words(0, len(text))

    def _output(self, text: str, inside: bool) -> list[Word]:
        """Return what a word becomes that is the substitution read last, in quotes (`inside`) or not."""
        if self.printed in {"", COUNT}:
            return [Word(decoded(text), UNKNOWN, "", not inside)]
        if inside and self.echoed is not None:
            return [constant(self.echoed.rstrip("\n"))]
        if self.printed in _NAMES and (inside or "IFS" not in self.state.names):
            return [_NAMES[self.printed]]
        return Scanner(self).output(self.printed, inside, text)

    def body(self, source: str) -> None:
        """Read what is expanded in the text of a here-document."""
        if "$" not in source and "`" not in source:
            return
        if "case" not in source and plainwords.body()(source) is not None:
            inner = Text(self.run, source, self.state, self.via, self.script, self.fed, shown=False)
            Scanner(inner).live(0, len(source), quotes=True)
            return
        from policyd.commands.shell.grammar import body

        body(self, source)

    def inside(self, source: str) -> Text:
        """Return a text of the same shell, which is fed with the same."""
        return Text(self.run, source, self.state, self.via, self.script, self.fed, self.document)

    def apart(self, read: Callable[..., object], *given: object) -> None:
        """Read a part that runs in a shell of its own, and note what it prints."""
        state, document, run = self.state, self.document, self.run
        first = len(run.commands)
        self.state, self.echoed, self.single, self.counts = state.fork(), None, "", False
        run.deeper()
        try:
            read(*given)
        finally:
            run.depth -= 1
            self.state, self.document = state, document
        if self.counts and not state.tainted:
            self.printed = COUNT
        else:
            self.printed = self._prints(first) if self.single and len(run.commands) == first + 1 else ""

    def _prints(self, index: int) -> str:
        """Return what stands for the output of the only command of a substitution."""
        command = self.run.commands[index]
        if not f"{self.single} ".startswith(f"{command.text} "):
            return ""  # it stands inside what is no command: `x=$(pwd)` prints nothing
        if self.echoed is None or command.tainted or command.taint or command.strict_only:
            return mark(command)
        self.run.commands[index] = replace(command, idle=True)
        return working(constant(self.echoed.rstrip("\n")))

    def backticks(self, inner: str) -> None:
        """Read the text between backticks."""
        self.apart(self._ticked, inner)

    def _ticked(self, source: str) -> None:
        Text(self.run, source, self.state, self.via, self.script, self.fed).whole()
        self.single = plainwords.single(source)

    # ---- what a grammar would know -----------------------------------------------------------------

    def substitution(self, start: int, end: int) -> int:
        """Read the substitution at `start`; return where it ends."""
        self.printed = ""
        found = plainwords.substitution()(self.source, start, end)
        if found is None:
            self.opaque("a substitution stands where no grammar shows it")
            return end
        self.apart(self._substituted, found[1])
        return found.end()

    def lose(self, inner: str) -> None:
        """Note what bash may lose: the word `<( )`, and, behind a here-document in `$(…)` or `<(…)`, in some a `;`."""
        if not inner.strip(" \t\n"):
            self.opaque("a substitution of nothing is no word to some shells")
        problems: list[str] = []
        if "<<" in inner and ";" in inner:
            inner, problems, _ = prepare(inner, [])
        mark = inner.find(f"<{TOKEN}")
        if problems or (mark >= 0 and ";" in inner[mark:]):
            self.opaque("a `;` behind a here-document in a substitution is lost by some versions of bash")

    def _substituted(self, source: str) -> None:
        self.lose(source)
        text = self.inside(source)
        text.whole()
        self.echoed, self.single, self.counts = text.echoed, plainwords.single(source), counts(source)

    def closing(self, start: int, end: int) -> int:
        """Return where the `${…}` at `start` ends, 0 where that cannot be told."""
        found = plainwords.expansion()(self.source, start, end)
        return found.end() if found is not None else 0

    def ends_at(self, start: int) -> int:
        """Return where the backticks at `start` end: nothing is quoted between those of a plain list."""
        return self.source.find("`", start + 1) + 1
