"""Command patterns: what an allow rule may be sure of, and what a strict rule has to suspect.

Rules of this module:

1. `sure` believes what is constant: a word that is not constant is matched by `**` only, a bare program name is that
   program or its path in a system directory, a path with `..` is nothing, every variable set counts.
2. `sure` looks at the command as written and as unwrapped by transparent wrappers. Of what another wrapper runs a
   pattern speaks that writes out the wrapper, and by its name what it runs (`uv run pytest **`; not `uv run **`); of
   what a text runs, one that is the wrapper with this very text, every word of it (`bash -c 'make test'`).
3. `maybe` is the strict reading, in `strict.py`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from policyd.commands.lexing.patternwords import PatternError, PatternWord, fits, fold, read
from policyd.commands.lexing.plain import ASSIGNED
from policyd.commands.matching import strict, views
from policyd.commands.state.variables import tolerated
from policyd.model import SimpleCommand, Truth, Word, WordKind

__all__ = [
    "SYSTEM",
    "CommandPattern",
    "PatternError",
    "exactly",
    "levels",
    "plain_name",
    "program_names",
    "trusted",
    "untrusted",
]

SYSTEM = frozenset(
    {
        "/bin",
        "/sbin",
        "/usr/bin",
        "/usr/sbin",
        "/usr/local/bin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
    }
)
"""Directories in which a program is what its name says."""
_REMOTE = frozenset({"ssh", "mosh"})
"""Wrappers that run a command on another machine."""


def levels(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """Yield the command as written and as unwrapped, outermost first."""
    here: SimpleCommand | None = command
    while here is not None:
        yield here
        here = here.inner


def trusted(command: SimpleCommand, env: tuple[str, ...]) -> bool:
    """Say whether nothing around the command keeps an allow rule with `env` from holding."""
    for level in (command,) if command.inner is None else levels(command):
        if level.tainted or level.strict_only:
            return False
        if (level.taint or level.env) and not all(
            tolerated(assignment, env, level.cwd) for assignment in (*level.taint, *level.env)
        ):
            return False
    return True


def untrusted(command: SimpleCommand, env: tuple[str, ...]) -> str:
    """Return what around the command keeps an allow rule with `env` from holding, in words."""
    for level in levels(command):
        if level.tainted:
            return level.tainted
        for assignment in (*level.taint, *level.env):
            if not tolerated(assignment, env, level.cwd):
                return f"the variable `{assignment.name}` may change what it runs, and no `env` tolerates it"
    return ""


def plain_name(word: Word) -> str:
    """Return the name of a program word that is bare or a path in a system directory, else nothing."""
    if word.kind is not WordKind.CONST:
        return ""
    if "/" not in word.text:
        return word.text
    if "/../" in word.text or not word.text.startswith("/"):
        return ""
    head, name = posixpath.split(fold(word.text))
    return name if head in SYSTEM else ""


def program_names(command: SimpleCommand) -> frozenset[str] | None:
    """Return, in lower case, every name strict rules may know the command by; None = any (not constant)."""
    return views.names_of(views.every(command))


class CommandPattern(Struct, frozen=True, dict=True):
    """A pattern over one simple command."""

    source: str
    alternatives: tuple[tuple[PatternWord, ...], ...]
    programs: frozenset[str] | None
    """Lower-case names of the programs it may hold for (see `program_names`); None = any."""
    carries: bool = True
    """An allow by this pattern carries the files the command names."""
    runs: bool = False
    """It speaks of one use of a program, whatever the program runs: its author says `within` or `path`."""

    @classmethod
    def compile(cls, text: str, *, home: str) -> CommandPattern:
        """Read `text`; a leading `~/` is `home`.

        Raises:
            PatternError: an open quote, shell syntax, braces without end, no word.
        """
        alternatives = read(text, home)
        names = tuple({_name(words[0]) for words in alternatives})
        return cls(text, alternatives, None if "" in names else _names(names))

    def beside(self, other: CommandPattern) -> CommandPattern:
        """Return a pattern that holds for what either does, written as this one."""
        programs = None if self.programs is None or other.programs is None else self.programs | other.programs
        return replace(self, alternatives=(*self.alternatives, *other.alternatives), programs=programs)

    @property
    def spelled(self) -> tuple[tuple[PatternWord, ...], ...]:
        """The words it may be, of which its command holds each."""
        return self.alternatives

    def sure(self, command: SimpleCommand, env: tuple[str, ...] = ()) -> bool:
        """Say whether an allow rule with this pattern (and `env`) holds for the command."""
        if not (trusted(command, env) or trusted(command, (*env, *self._sets))):
            return False
        here: SimpleCommand | None = command
        while here is not None:
            for words in self.alternatives:
                if exactly(words, here):
                    return True
            here = here.inner
        if not (command.behind or command.texts):
            return False
        return any(_through(words, command) or _as_text(words, command) for words in self.alternatives)

    @cached_property
    def _sets(self) -> frozenset[str]:
        """What it writes out that `env` sets, as the `env` of a rule would tolerate it."""
        return frozenset.intersection(*map(_assigned, self.alternatives))

    def elsewhere(self, command: SimpleCommand) -> bool:
        """Say whether it writes out that the command runs on another machine: no directory here is its place."""
        return any(
            words[0].literal in _REMOTE and (_through(words, command) or _as_text(words, command))
            for words in self.alternatives
        )

    @property
    def text(self) -> str:
        """How a policy writes it."""
        return self.source

    def why_not(self, command: SimpleCommand, env: tuple[str, ...] = ()) -> str:
        """Return why the pattern does not hold for a command whose words it matches; nothing for others."""
        matches = any(exactly(words, level) for level in levels(command) for words in self.alternatives)
        return untrusted(command, env) if matches else ""

    def maybe(self, command: SimpleCommand, *, widen: bool) -> Truth:
        """Say whether the command may be what the pattern means.

        `widen` reads the pattern as a deny or ask rule does: a prefix, options anywhere in every spelling. Of very many
        ways to see very many words the first are looked at; what any other may be is suspected.
        """
        found, left = Truth.NO, _LOOKED
        for view in views.every(command):
            if left < 0:
                return max(found, Truth.MAYBE)
            for words in self.alternatives:
                truth = strict.match(words, view, widen=widen)
                found = max(found, truth)
                if found is Truth.YES:
                    return found
                if truth or words[0].any or words[0].many or words[0].literal in view.names:
                    left -= len(view.words) * len(words)
        return found


_LOOKED = 50_000
"""Words of a command, for each of a pattern, that are looked at before all others are suspected."""


@lru_cache(512)
def _names(names: tuple[str, ...]) -> frozenset[str]:
    """Return names as one set for all patterns that hold them."""
    return frozenset(names)


def _name(word: PatternWord) -> str:
    if word.literal is None:
        return ""
    return posixpath.basename(word.literal).lower() or "/"


def exactly(words: tuple[PatternWord, ...], command: SimpleCommand) -> bool:
    """Say whether one level of a command surely is what the words of a pattern say."""
    argv = command.argv
    if words[0].many:
        return (bool(argv) and argv[0].kind is WordKind.CONST and _rest(words, argv, command.cwd)) or (
            not argv and len(words) == 1
        )
    return bool(argv) and _program(words[0], argv[0], command.cwd) and _rest(words[1:], argv[1:], command.cwd)


def _through(words: tuple[PatternWord, ...], command: SimpleCommand) -> bool:
    """Say whether a pattern writes out the wrappers in front of a command, and the command's program."""
    at = len(command.behind)
    if not at or len(words) <= at or any(word.many for word in words[:at]):
        return False
    named = words[at].literal is not None and (words[at].path or words[at].literal == command.argv[0].text)
    if not named:
        return False
    return exactly(words, replace(command, argv=(*map(Word, command.behind), *command.argv)))


def _as_text(words: tuple[PatternWord, ...], command: SimpleCommand) -> bool:
    """Say whether a pattern is, word for word, a wrapper with a text that the command stands in."""
    return any(
        len(words) == len(text)
        and _program(words[0], Word(text[0]), command.cwd)
        and all(one.literal is not None and one.text == word for one, word in zip(words, text, strict=True))
        for text in command.texts
    )


def _assigned(words: tuple[PatternWord, ...]) -> frozenset[str]:
    """Return the assignments that stand behind `env`."""
    if words[0].literal != "env":
        return frozenset()
    found = takewhile(lambda word: word.literal is not None and ASSIGNED(word.text), words[1:])
    return frozenset([re.sub(r"[\\*]", r"\\\g<0>", word.text) for word in found])


def _program(pattern: PatternWord, word: Word, cwd: tuple[str, ...]) -> bool:
    if word.kind is not WordKind.CONST:
        return False
    if pattern.path:
        return "/" in word.text and _word(pattern, word, cwd)
    name = plain_name(word)
    return bool(name) and fits(pattern, name)


def _word(pattern: PatternWord, word: Word, cwd: tuple[str, ...]) -> bool:
    if word.kind is not WordKind.CONST:
        return False
    text = word.text
    if text == (pattern.text if pattern.path else pattern.literal) and pattern.literal is not None:
        return True
    if pattern.path and ".." in text.split("/"):
        return False
    if pattern.path and pattern.text.startswith("/") and "/" in text and not text.startswith(("/", "-")):
        return bool(cwd) and all(fits(pattern, posixpath.join(place, text)) for place in cwd)
    return fits(pattern, text) or (pattern.path and text.startswith("/") and _near(pattern, text, cwd))


def _near(pattern: PatternWord, text: str, cwd: tuple[str, ...]) -> bool:
    """Say whether an absolute path is what a relative pattern means where the command runs."""
    return bool(cwd) and all(
        text.startswith(place + "/") and fits(pattern, "./" + text[len(place) + 1 :]) for place in cwd
    )


def _rest(words: tuple[PatternWord, ...], argv: tuple[Word, ...], cwd: tuple[str, ...]) -> bool:
    for at, pattern in enumerate(words):
        if pattern.many:
            return at + 1 == len(words) or _behind(words[at:], argv[at:], cwd)
        if at >= len(argv) or not _word(pattern, argv[at], cwd):
            return False
    return len(words) == len(argv)


def _behind(words: tuple[PatternWord, ...], argv: tuple[Word, ...], cwd: tuple[str, ...]) -> bool:
    """Follow the words of a pattern from its first `**` on, through every place they may be at."""
    states = {0}
    for pattern in words:
        if pattern.many:
            states = set(range(min(states), len(argv) + 1))
        else:
            states = {at + 1 for at in states if at < len(argv) and _word(pattern, argv[at], cwd)}
        if not states:
            return False
    return len(argv) in states
