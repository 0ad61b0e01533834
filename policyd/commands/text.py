"""One shell text while it is read: what is known of the shell there, and what its words become."""

from __future__ import annotations

from collections.abc import Iterable

from policyd.commands.execute import Script
from policyd.commands.plain import Span, constant, is_constant
from policyd.commands.quoting import decoded
from policyd.commands.run import Run
from policyd.commands.state import State
from policyd.commands.words import QUICK, Scanner
from policyd.model import Word

_SPELLED: dict[str, Word] = {}
"""Spelling -> word, of words that mean the same everywhere; they recur, so they are kept (bounded)."""
_SPELLED_KEPT = 8_192
_LONGEST = 256


class Text:
    """A source text (latin-1) with the state of the shell that reads it. No grammar was asked about it."""

    __slots__ = (
        "document",
        "echoed",
        "exact",
        "fed",
        "literal",
        "printed",
        "run",
        "script",
        "shown",
        "source",
        "state",
        "via",
    )

    def __init__(
        self, run: Run, source: str, state: State, via: tuple[str, ...], script: Script, fed: str = ""
    ) -> None:
        """Begin to read `source`, which is fed with `fed`; `script` reads the texts inside it."""
        self.run = run
        self.source = source
        self.state = state
        self.via = via
        self.script = script
        self.fed = fed
        self.document: str | None = None
        self.shown = True
        self.literal = False
        """Whether `document` is what a command is fed, with nothing in it to expand."""
        self.echoed: str | None = None
        """What a `cat` read last prints."""
        self.printed = ""
        self.exact = source.isascii() and source.isprintable()
        """Its characters are what they stand for: no bytes of UTF-8, no mark of `source`."""

    def opaque(self, reason: str) -> None:
        """Note a part that is not understood."""
        self.run.reasons[reason] = None

    def text(self, start: int, end: int) -> str:
        """Return source text for people."""
        return self.source[start:end] if self.exact else decoded(self.source[start:end])

    def scan(self, spans: Iterable[Span]) -> list[Word]:
        """Return the words at the places given."""
        source = self.source
        found: list[Word] = []
        for start, end in spans:
            word = _SPELLED.get(source[start:end])
            if word is None:
                found += self._spell(start, end)
            else:
                found.append(word)
        return found

    def _spell(self, start: int, end: int) -> list[Word]:
        """Read a word that is not among those kept."""
        text = self.source[start:end]
        quick = QUICK(text)
        if quick is not None:
            inner = quick[quick.lastindex or 0]
            words = [constant(inner if inner.isascii() else decoded(inner))]
        else:
            words = Scanner(self).words(start, end)
            if len(text) > _LONGEST or not is_constant(text):
                return words
        if len(text) <= _LONGEST:
            if len(_SPELLED) >= _SPELLED_KEPT:
                _SPELLED.clear()
            _SPELLED[text] = words[0]
        return words

    def body(self, source: str) -> None:
        """Read what is expanded in the text of a here-document."""
        if "$" in source or "`" in source:
            from policyd.commands.grammar import body

            body(self, source)

    # ---- what a grammar would know -----------------------------------------------------------------

    def substitution(self, start: int, end: int) -> int:
        """Say that a substitution cannot be followed; its text ends at `end`."""
        self.opaque("a substitution stands where no grammar shows it")
        return end

    def closing(self, start: int, end: int) -> int:
        """Return where the `${…}` at `start` ends: it cannot be told."""
        return 0

    def ends_at(self, start: int) -> int:
        """Return where the substitution at `start` ends: it cannot be told."""
        return 0

    def backticks(self, inner: str) -> None:
        """Say that the text between backticks cannot be followed."""
        self.opaque("a substitution stands where no grammar shows it")
