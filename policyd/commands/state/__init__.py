"""What a shell knows while a text runs: its directory, its variables, what has been tampered with.

Rules of this module:

1. A directory is every place it may be, in order; none at all means that it cannot be told.
2. A variable has a known value only while that is sure; `None` means that it was set to something unknown. A variable
   that is not listed comes from outside and is unknown, but for `HOME`, `PWD` and `IFS`.
3. Taint only grows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.quoting import SOME, unknown
from policyd.commands.state.taint import loose
from policyd.commands.state.variables import harmless
from policyd.model import CONST, GLOB, UNKNOWN, Assignment, Word

Cwd = tuple[str, ...]
Pair = tuple[Cwd, Cwd]
"""The directories after success and after failure."""
Trail = tuple[str, Cwd]
"""The directory before (empty: not known), and those on the stack, from its top as far down as they are known."""
LOST: Trail = ("", ())

PLACES = 16
_VARIABLES = 256
_VALUE = 4_096
_DYNAMIC = frozenset(
    [
        "_",
        "BASHOPTS",
        "BASHPID",
        "BASH_ARGC",
        "BASH_ARGV",
        "BASH_ARGV0",
        "BASH_COMMAND",
        "BASH_LINENO",
        "BASH_REMATCH",
        "BASH_SOURCE",
        "BASH_SUBSHELL",
        "COLUMNS",
        "COPROC",
        "COPROC_PID",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "LINENO",
        "LINES",
        "MAPFILE",
        "OLDPWD",
        "OPTARG",
        "OPTIND",
        "PIPESTATUS",
        "PPID",
        "PWD",
        "RANDOM",
        "REPLY",
        "SECONDS",
        "SHELLOPTS",
        "SRANDOM",
        "UID",
    ]
)
"""Variables that do not keep what is put into them."""
NUMBER = Word("$((…))", UNKNOWN)
"""What a variable holds of which no more is known than that it is a whole number, in digits, maybe with a sign."""
COUNTED = Word("$(wc)", UNKNOWN)
"""The same, maybe behind blanks, or nothing at all, which is zero to arithmetic."""
LIST = "[@]"
"""What stands behind the name under which the items of a list are kept."""
_ENDS = "\0"
"""Stands behind each of them: it is in no text."""


_INTEGERS = frozenset(
    """
    BASHPID COLUMNS DIRSTACKSIZE EGID ERRNO EUID FUNCNEST GID HISTCMD HISTSIZE KEYTIMEOUT LINENO LINES LISTMAX LOGCHECK
    MAILCHECK OPTIND PPID RANDOM SAVEHIST SECONDS SHLVL SRANDOM TMOUT UID
    """.split()  # noqa: SIM905
)
"""Variables that are numbers to bash or zsh: what is put into them is computed."""
_NUMBER = re.compile(r"[0-9]{1,18}").fullmatch
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,17}").fullmatch
"""What is no octal number to arithmetic."""
_READ_ONLY = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"})


def _is_number(value: Word) -> bool:
    return value is NUMBER or (value.kind is CONST and _DECIMAL(value.text) is not None)


def _is_counted(value: Word | None) -> bool:
    """Say whether a value is one of those that stand for numbers; a word of a text may look the same."""
    return value is NUMBER or value is COUNTED


def _may_count(value: Word) -> bool:
    return value is COUNTED or _is_number(value)


def met(left: Word | None, right: Word | None) -> Word | None:
    """Return what is known of a variable that holds one of two values."""
    if left == right or left is None or right is None:
        return left if left == right else None
    if _is_number(left) and _is_number(right):
        return NUMBER
    return COUNTED if _may_count(left) and _may_count(right) else None


def union(left: Cwd, right: Cwd) -> Cwd:
    """Return every directory of both, none if either cannot be told."""
    if left == right:
        return left
    if not left or not right:
        return ()
    places = tuple(dict.fromkeys(left + right))
    return places if len(places) <= PLACES else ()


def enter(cwd: Cwd, directory: str) -> Cwd:
    """Return where `cd directory` leads, as the shell counts: `..` goes back over links by name."""
    if directory.startswith("/"):
        return (posixpath.normpath(directory).replace("//", "/", 1),)
    if len(cwd) == 1:
        place = cwd[0]
        return (posixpath.normpath(f"{place}/{directory}" if place[-1:] != "/" else place + directory),)
    return tuple(dict.fromkeys(posixpath.normpath(posixpath.join(place, directory)) for place in cwd))


def _untold(reason: str) -> None:
    """Note nothing: there is no reading."""


class State(Struct):
    """The shell's state at one point of the text."""

    home: str
    cwd: Cwd
    names: dict[str, Word | None] = field(default_factory=dict)
    taint: tuple[Assignment, ...] = ()
    tainted: str = ""
    fold: bool = True
    """Whether an assignment met now certainly has happened for what follows."""
    fixed: frozenset[str] = frozenset()
    """Variables with an attribute (read-only, upper case): what is put into them is not what comes out."""
    fold_kept: bool = True
    """False once no value can be trusted any more."""
    told: Callable[[str], object] = _untold
    """Notes a part that is not understood."""
    backs: dict[str, None] = field(default_factory=dict)
    """What `Reading.backs` will be; all shells of a text share it."""
    picky: bool = False
    """A glob that matches nothing is an error (zsh), behind which nothing of the line runs."""
    lesser: bool = False
    """This shell may be less than bash (see `posix`)."""
    jumps: int = 0
    """How often a loop was left, or its next value taken, so far."""
    physical: bool = False
    """`..` leads out of what a link points to: this shell did not come here by the name of the link."""
    trails: dict[str, Trail] = field(default_factory=dict)
    """By directory, what is remembered there; all ways through a text share it (see `moving`)."""
    start: Cwd = ()
    above: Cwd = ()
    """Every directory that `cd "$(git rev-parse --show-toplevel)"` may lead to from `start`; none: not looked for."""

    def fork(self) -> State:
        """Return a state of its own, as a subshell has."""
        return replace(self, names=dict(self.names))

    def fresh(self, cwd: Cwd) -> State:
        """Return the state of another shell started from this one: no variable of this one is known in it."""
        found = State(self.home, cwd, dict.fromkeys(self.names), self.taint, self.tainted, told=self.told)
        found.start, found.above = self.start, self.above
        found.physical, found.backs = self.physical or cwd != self.cwd, self.backs
        return found

    def lookup(self, name: str) -> Word | None:
        """Return the value of a variable where it is known."""
        if name in self.names:
            found = self.names[name]
            return None if _is_counted(found) else found
        if name == "HOME":
            return constant(self.home)
        if name == "PWD" and len(self.cwd) == 1 and not self.physical:
            return constant(self.cwd[0])
        return None

    def number(self, name: str) -> str:
        """Return the number that a variable holds, `SOME` if it is not known which; nothing for any other value."""
        found = self.names.get(name)
        return SOME if _is_counted(found) else found.text if found is not None and _is_number(found) else ""

    def bind(self, name: str, value: Word | None) -> None:
        """Set a variable to what is known of it; it is no list any more."""
        self.names[name] = None if name in _DYNAMIC or name in self.fixed else value
        self.names.pop(name + LIST, None)

    def items(self, name: str) -> tuple[str, ...]:
        """Return what a list holds, nothing where that is not known."""
        found = self.names.get(name + LIST)
        return tuple(found.text.split(_ENDS)[:-1]) if found is not None else ()

    def fill(self, name: str, words: Sequence[Word], *, more: bool) -> None:
        """Make a variable a list, or put `more` into one."""
        before = self.items(name) if more else ()
        self.assign(name, None)
        known = self.fold and name not in self.fixed and loose(name) and not self.lesser and not self.picky
        if known and (before or not more) and all(word.kind is CONST and word.text[:1] != "[" for word in words):
            text = "".join([f"{item}{_ENDS}" for item in (*before, *(word.text for word in words))])
            self.names[name + LIST] = Word(text) if len(text) <= _VALUE else None

    def assign(self, name: str, value: Word | None, *, exported: bool = False, plain: bool = True) -> None:
        """Set a variable as the text does; `plain` is a statement, `for` or `read`."""
        digits = value is NUMBER or (value is not None and value.kind is CONST and _NUMBER(value.text))
        if name in _INTEGERS and not digits:
            self.told(f"`{name}` evaluates what is put into it, which may run something")
        if name in self.fixed or name in _READ_ONLY:
            self.forget()  # it may be an error, behind which nothing of the line runs
        self.bind(name, self._kept(name, value))
        if harmless(name, value) or (plain and not exported and loose(name)):
            return
        found = Assignment(name, value if value is not None else unknown("$" + name), exported)
        if found in self.taint:
            return
        if len(self.taint) >= _VARIABLES:
            self.taint_all("more variables are set than are followed")
        else:
            self.taint += (found,)

    def _kept(self, name: str, value: Word | None) -> Word | None:
        """Return what is known of a variable that is set, or may have been."""
        if value is None or len(value.text) > _VALUE:
            return None
        if self.fold:
            return value if value.kind is not UNKNOWN or _is_counted(value) else None
        return met(NUMBER if _is_number(value) else value, self.names.get(name)) if _may_count(value) else None

    def forget(self) -> None:
        """Trust no value any more, and none that is set from here on."""
        self.names = {**dict.fromkeys(self.names), "IFS": None}
        self.fold = self.fold_kept = False

    def expand(self, words: Iterable[Word]) -> None:
        """Note that words are expanded."""
        if self.picky and any(word.kind is GLOB for word in words):
            self.forget()

    def taint_all(self, why: str) -> None:
        """Let nothing after this point be trusted."""
        self.tainted = self.tainted or why
        self.forget()

    def known(self) -> Mapping[str, Word | None]:
        """Return what is known of variables at this point, for `join`."""
        return dict(self.names) if self.names else NO_NAMES

    def join(self, other: Mapping[str, Word | None]) -> None:
        """Keep only the values that are the same on both of two ways to this point."""
        if self.names != other:
            names = self.names
            self.names = {name: met(names.get(name), other.get(name)) for name in {**names, **other}}


NO_NAMES: Mapping[str, Word | None] = {}
"""What is known of variables where none was set; never changed."""


def then(state: State, pair: Pair, operator: str, read: Callable[[], Pair], *, leaves: bool = False) -> Pair:
    """Read what stands behind `&&` or `||`, which may not run; `leaves` = it ends the shell if it does."""
    state.cwd = pair[0] if operator == "&&" else pair[1]
    before = state.known()
    after = read()
    state.join(before)
    return joined(pair, operator, after, leaves=leaves)


def joined(pair: Pair, operator: str, after: Pair, *, leaves: bool) -> Pair:
    """Return the directories behind `&&` or `||` from those before it and those of what stands there."""
    success, failure = pair
    if operator == "&&":
        return after[0], union(failure, after[1])
    return (success if leaves else union(success, after[0])), after[1]
