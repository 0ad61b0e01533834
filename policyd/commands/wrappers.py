"""What a wrapper runs: `timeout 5 rm x`, `sudo -u kim rm x`, `find . -exec rm {} +`, `bash -c 'rm x'`.

Rules of this module:

1. Options come from `wrapper_table`; with one that is not listed both readings are given and the wrapper is opaque.
2. What cannot be told (a script that is not constant, a program that is read from a pipe) has its reason in words.
3. Nothing is decided here about who may see the inner command: `Inner` says how it was reached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from policyd.commands.plain import KEYWORDS, constant
from policyd.commands.wrapper_table import (
    ALL,
    BASH_LIKE,
    FEEDS,
    INTERPRETERS,
    SCRIPT_OPTIONS,
    SHELLS,
    SUBCOMMANDS,
    WRAPPERS,
    Wrapper,
)
from policyd.model import Assignment, Word, WordKind

Words = tuple[Word, ...]

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_VERSION = re.compile(r"(?<=[a-z])[0-9]*\.[0-9.]+$")
_LOADER = re.compile(r"ld(?:-linux.*|-musl.*|64)?\.so(?:\.\d+)*").fullmatch
_NUMBER_OPTION = re.compile(r"-\d+").fullmatch
_READINGS = 4
_OPENING = KEYWORDS | {"{", "!", "[["}
_FIND_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_INPUT = Word("{}", WordKind.UNKNOWN, "", many=False)
_MORE_INPUT = Word("…", WordKind.UNKNOWN, "", many=True)


@dataclass(frozen=True, slots=True)
class Inner:
    """One command, or shell text, that a wrapper runs."""

    via: str
    argv: Words = ()
    script: Word | None = None
    """Shell text; not constant = opaque."""
    env: tuple[Assignment, ...] = ()
    place: Word | None = None
    """The directory it runs in, where the wrapper names one."""
    away: bool = False
    """It runs in a place that cannot be told."""
    here: bool = False
    """It runs in the same shell."""
    strict: bool = False
    """Only strict rules see it (another shell's text, one of two readings)."""


@dataclass(slots=True)
class Unwrapped:
    """What is inside a command."""

    transparent: Inner | None = None
    inners: list[Inner] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Options:
    """A wrapper's words taken apart."""

    rest: list[Words] = field(default_factory=list)
    """The command, in every reading."""
    values: list[tuple[str, Word]] = field(default_factory=list)
    plain: bool = True
    known: bool = True
    empty: bool = False
    forks: int = 0


def base(word: Word) -> str:
    """Return the name of a constant program word, without its directory; empty if it is not constant."""
    return word.text.rpartition("/")[2] if word.kind is WordKind.CONST else ""


def marks(name: str) -> frozenset[str] | None:
    """Return the words with which a program of this name may run something written among its words.

    None: it never does; none at all: whatever its words are.
    """
    if name in _GIT_LIKE:
        return _GIT_LIKE[name]
    special = (
        name in WRAPPERS
        or name in _OTHERS
        or name in SCRIPT_OPTIONS
        or name in FEEDS
        or _language(name) in INTERPRETERS
        or _LOADER(name) is not None
    )
    return frozenset() if special else None


def unwrap(name: str, argv: Words, *, fed: str) -> Unwrapped:
    """Return what the command `argv`, whose program is called `name`, runs beside itself."""
    found = Unwrapped()
    if name in WRAPPERS:
        _wrapper(name, WRAPPERS[name], argv[1:], found, fed)
    elif name in _OTHERS:
        _OTHERS[name](name, argv[1:], found, fed)
    elif name in SCRIPT_OPTIONS:
        _scripts(name, SCRIPT_OPTIONS[name], argv[1:], found)
    elif name in FEEDS and fed:
        found.reasons.append(f"`{name}` runs what it reads from its input")
    elif _LOADER(name):
        _wrapper(name, Wrapper(valued=frozenset({"--library-path", "--preload", "--argv0"})), argv[1:], found, fed)
    elif _language(name) in INTERPRETERS:
        _interpreter(name, argv[1:], found, fed)
    if name in _HEADS:
        _subcommand(name, argv[1:], found, fed)
    return found


def _language(name: str) -> str:
    return _VERSION.sub("", name) if name[-1:].isdigit() and name not in INTERPRETERS else name


# ---- options ---------------------------------------------------------------------------------------


def _constant(word: Word) -> str | None:
    return word.text if word.kind is WordKind.CONST else None


def _full(name: str, spec: Wrapper) -> str:
    """Return the option that `name` spells or abbreviates."""
    if name in spec.flags or name in spec.valued or not name.startswith("--"):
        return name
    like = {option for option in spec.flags | spec.valued if option.startswith(name)}
    return like.pop() if len(like) == 1 else name


def _options(spec: Wrapper, words: Words) -> _Options:
    found = _Options()
    _read_options(spec, words, 0, found)
    return found


def _read_options(spec: Wrapper, words: Words, at: int, found: _Options) -> None:
    while at < len(words):
        text = _constant(words[at])
        if text is None or not text.startswith("-") or (text == "-" and "-" not in spec.flags):
            break
        if text == "--":
            at += 1
            break
        at = _read_option(spec, words, at, found)
    if len(found.rest) < _READINGS:
        found.rest.append(words[at:])


def _read_option(spec: Wrapper, words: Words, at: int, found: _Options) -> int:
    text = words[at].text
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return _long(spec, _full(name, spec), constant(value) if equals else None, words, at, found)
    if text in spec.flags or text in spec.valued:
        return _long(spec, text, None, words, at, found)
    if spec.numbers and _NUMBER_OPTION(text):
        return at + 1
    return _cluster(spec, words, at, found)


def _long(spec: Wrapper, name: str, glued: Word | None, words: Words, at: int, found: _Options) -> int:
    found.plain &= name in spec.plain
    found.empty |= name in spec.empty
    if name in spec.valued:
        value = glued if glued is not None else words[at + 1] if at + 1 < len(words) else constant("")
        found.values.append((name, value))
        return at + (1 if glued is not None else 2)
    if name not in spec.flags and glued is None:
        _both(spec, words, at, found)
    elif name not in spec.flags:
        found.known = False
    return at + 1


def _both(spec: Wrapper, words: Words, at: int, found: _Options) -> None:
    """An option that is not listed: it may take the next word."""
    found.known = False
    found.forks += 1
    if found.forks < _READINGS and at + 2 < len(words):
        _read_options(spec, words, at + 2, found)


def _cluster(spec: Wrapper, words: Words, at: int, found: _Options) -> int:
    text = words[at].text
    for place in range(1, len(text)):
        name = "-" + text[place]
        found.plain &= name in spec.plain
        found.empty |= name in spec.empty
        if name in spec.valued:
            glued = text[place + 1 :]
            if glued:
                found.values.append((name, constant(glued)))
                return at + 1
            found.values.append((name, words[at + 1] if at + 1 < len(words) else constant("")))
            return at + 2
        if name not in spec.flags:
            _both(spec, words, at, found)
            break
    return at + 1


# ---- wrappers --------------------------------------------------------------------------------------


def _wrapper(name: str, spec: Wrapper, words: Words, found: Unwrapped, fed: str) -> None:
    options = _options(spec, words)
    if options.empty and options.known:
        return
    if not options.known:
        found.reasons.append(f"an option of `{name}` is not known, so what it runs may be another word")
    if name in {"time", "coproc"} and any(_compound(rest) for rest in options.rest):
        found.reasons.append(f"`{name}` stands before more than a simple command")
    scripted = _scripts(name, spec.scripts, words, found) if spec.scripts else False
    place = next((value for option, value in options.values if option in spec.places), None)
    _split_string(name, options, found)
    commands = [_command(name, spec, rest, place) for rest in options.rest]
    inners = [inner for inner in commands if inner is not None]
    if not inners and not scripted and spec.shell:
        found.reasons.append(f"`{name}` starts a shell, which runs what it is given")
    if not inners and spec.here and spec.assigns and any(options.rest):
        found.reasons.append(f"`{name}` stands before assignments")
    if not inners or spec.skip == ALL:
        return
    if spec.transparent and options.plain and options.known:
        found.transparent = inners[0]
        return
    if spec.transparent and options.known:
        found.reasons.append(f"`{name}` has an option that does more than run the command behind it")
    found.inners += [_fed(inner, spec, options) for inner in inners]


def _command(name: str, spec: Wrapper, rest: Words, place: Word | None) -> Inner | None:
    env: list[Assignment] = []
    if name in {"time", "coproc"}:
        rest = _braced(rest)
    while spec.assigns and rest and (pair := _assignment(rest[0])) is not None:
        env.append(pair)
        rest = rest[1:]
    rest = rest[spec.skip :]
    if spec.skip and rest and _constant(rest[0]) == "--":
        rest = rest[1:]
    if not rest or (spec.scripts and _constant(rest[0]) in spec.scripts):
        return None
    if not spec.joined:
        return Inner(name, rest, None, tuple(env), place, spec.away, spec.here)
    return Inner(name, (), joined(rest), tuple(env), place, spec.away, spec.here)


def _compound(rest: Words) -> bool:
    """Say whether words begin with what opens a compound command."""
    return any(_constant(word) in _OPENING for word in rest[:3])


def in_shell(name: str) -> bool:
    """Say whether what the wrapper `name` runs, runs in this very shell."""
    return name in WRAPPERS and WRAPPERS[name].here


def _braced(rest: Words) -> Words:
    """Return the first command of `time { a; }`, `time ! a` and `coproc NAME { a; }`."""
    if len(rest) > 1 and _constant(rest[1]) == "{":
        rest = rest[1:]
    while rest and _constant(rest[0]) in {"{", "!", "time"} and len(rest) > 1:
        rest = rest[1:]
    return rest


def _assignment(word: Word) -> Assignment | None:
    text = word.text if word.kind is WordKind.CONST else word.prefix
    found = _ASSIGNMENT.fullmatch(text)
    if found is None:
        return None
    value = constant(found[2]) if word.kind is WordKind.CONST else Word(word.text, WordKind.UNKNOWN)
    return Assignment(found[1], value, exported=True)


def joined(words: Words) -> Word:
    """Return the words joined with blanks, as `eval` and `ssh` join them; unknown if one is."""
    if all(word.kind is WordKind.CONST for word in words):
        return constant(" ".join([word.text for word in words]))
    return Word(" ".join([_source(word) for word in words]), WordKind.UNKNOWN, "", many=True)


def _source(word: Word) -> str:
    text = word.text
    if word.kind is WordKind.UNKNOWN and len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r'\\(["\\$`])', r"\1", text[1:-1])
    return text


def unknown_script(word: Word) -> str:
    """Return shell text that is not constant as far as it is written: for strict rules."""
    return _source(word)


def _fed(inner: Inner, spec: Wrapper, options: _Options) -> Inner:
    """Add the words that `xargs` and its kin read."""
    strict = len(options.rest) > 1
    if not spec.input:
        return _with(inner, inner.argv, strict=strict)
    marks = [value.text for option, value in options.values if option in {"-I", "-J", "--replace"} and value.text]
    argv = replaced(inner.argv, (*marks, "{}")) if inner.argv else ()
    return _with(inner, (*argv, _MORE_INPUT) if argv and not marks else argv, strict=strict)


def _with(inner: Inner, argv: Words, *, strict: bool) -> Inner:
    if argv == inner.argv and strict == inner.strict:
        return inner
    return Inner(inner.via, argv, inner.script, inner.env, inner.place, inner.away, inner.here, strict)


def replaced(argv: Words, marks: tuple[str, ...]) -> Words:
    """Return the words with those that hold a mark for input turned unknown."""
    return tuple(
        Word(word.text, WordKind.UNKNOWN, word.text.split(mark, 1)[0])
        if (mark := next((mark for mark in marks if mark in word.text), ""))
        else word
        for word in argv
    )


def _split_string(name: str, options: _Options, found: Unwrapped) -> None:
    """`env -S 'rm x'`: the words are in one string."""
    if name != "env":
        return
    for option, value in options.values:
        if option in {"-S", "--split-string"}:
            rest = options.rest[0] if options.rest else ()
            found.reasons.append("`env -S` splits a string into the command it runs")
            found.inners.append(Inner("env", (), joined((value, *rest)), strict=True))


def _scripts(name: str, names: frozenset[str], words: Words, found: Unwrapped) -> bool:
    """Take every value of the options that hold shell text, wherever they stand."""
    before = len(found.inners)
    letters = "".join(option[1] for option in names if len(option) == 2)
    cluster = re.compile(rf"-[A-Za-z]*?[{letters}](.*)", re.DOTALL) if letters else None
    for at, word in enumerate(words):
        text = word.text if word.kind is WordKind.CONST else word.prefix
        head, equals, _ = text.partition("=")
        following = words[at + 1] if at + 1 < len(words) else constant("")
        if text in names:
            value = following
        elif equals and head in names:
            value = _tail(word, len(head) + 1)
        elif cluster and not text.startswith("--") and (match := cluster.fullmatch(text)):
            value = _tail(word, match.start(1)) if match[1] or word.kind is WordKind.UNKNOWN else following
        else:
            continue
        found.inners.append(Inner(name, script=value))
    return len(found.inners) > before


def _tail(word: Word, start: int) -> Word:
    if word.kind is WordKind.CONST:
        return constant(word.text[start:])
    return Word(word.text, WordKind.UNKNOWN, word.prefix[start:], word.many)


def _subcommand(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """`uv run rm x`: a wrapper that is a subcommand."""
    texts = [word.text if word.kind is WordKind.CONST else "" for word in words]
    for (program, sub), spec in SUBCOMMANDS.items():
        parts = sub.split()
        if program != name:
            continue
        for at in range(min(len(texts), 6)):
            if texts[at : at + len(parts)] == parts:
                _wrapper(f"{name} {sub}", spec, words[at + len(parts) :], found, fed)
                return


# ---- programs with ways of their own ----------------------------------------------------------------


def _find(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    at = 0
    while at < len(words):
        text = _constant(words[at])
        at += 1
        if text not in _FIND_EXEC:
            continue
        end = at
        while end < len(words) and not _ends(words, end):
            end += 1
        if end > at:
            argv = replaced(words[at:end], ("{}",))
            found.inners.append(Inner(name, argv, away=text in {"-execdir", "-okdir"}))
        at = end


def _ends(words: Words, at: int) -> bool:
    text = _constant(words[at])
    return text == ";" or (text == "+" and words[at - 1].text == "{}")


def _fd(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    for at, word in enumerate(words):
        text = _constant(word) or word.prefix
        long, _, glued = text.partition("=")
        if long not in {"--exec", "--exec-batch"} and not re.fullmatch(r"-[A-Za-z]*?[xX].*", text):
            continue
        short = re.sub(r"^-[A-Za-z]*?[xX]", "", text) if not text.startswith("--") else glued
        rest = words[at + 1 :]
        end = next((place for place, one in enumerate(rest) if _constant(one) == ";"), len(rest))
        argv = ((constant(short),) if short else ()) + rest[:end]
        if argv:
            filled = replaced(argv, ("{}", "{/}", "{//}", "{.}", "{/.}"))
            found.inners.append(Inner(name, (*filled, _MORE_INPUT) if filled == argv else filled))


def _shell(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    at, script, stdin = 0, False, False
    while at < len(words):
        text = _constant(words[at])
        if text is None:
            found.reasons.append(f"a word that decides what `{name}` runs is not constant")
            break
        if text in {"--", "-"} or not text.startswith(("-", "+")):
            at += text in {"--", "-"}
            break
        if text.startswith("--"):
            at += _long_shell_option(name, text, found)
            continue
        script |= "c" in text[1:] and text[0] == "-"
        stdin |= "s" in text[1:]
        at += 1 + sum(text.count(letter) for letter in "oO")
    if script:
        value = words[at] if at < len(words) else constant("")
        found.inners.append(Inner(f"{name} -c", script=value, strict=name not in BASH_LIKE))
        if name not in BASH_LIKE:
            found.reasons.append(f"text for {name} is not parsed")
    elif stdin or at >= len(words) or _is_input(words[at]):
        found.reasons.append(f"`{name}` runs what it reads from its input")


def _long_shell_option(name: str, text: str, found: Unwrapped) -> int:
    if text.split("=")[0] in {"--rcfile", "--init-file"}:
        found.reasons.append(f"`{name} {text}` runs a file first")
        return 1 if "=" in text else 2
    return 1


def _is_input(word: Word) -> bool:
    text = _constant(word)
    return text is not None and (text in {"-", "/dev/stdin"} or text.startswith(("/dev/fd/", "/proc/self/fd/")))


def _source_file(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    if words and _is_input(words[0]):
        found.reasons.append(f"`{name}` runs what it reads from its input")
    elif words and words[0].kind is not WordKind.CONST:
        found.reasons.append(f"the file that `{name}` runs is not constant")


def _interpreter(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    spec = INTERPRETERS[_language(name)]
    at = 0
    while at < len(words):
        text = _constant(words[at])
        if text is None:
            found.reasons.append(f"a word that decides what `{name}` runs is not constant")
            return
        if text in spec.quiet or _has_code(text, spec.code):
            return
        if not text.startswith("-") or text in {"-", "--"}:
            at += text == "--"
            break
        at += 2 if text in spec.valued else 1
    if at >= len(words) or _is_input(words[at]):
        found.reasons.append(f"`{name}` runs what it reads from its input")


def _has_code(text: str, code: frozenset[str]) -> bool:
    if text.startswith("--"):
        return text.split("=")[0] in code
    return text.startswith("-") and (text in code or any("-" + letter in code for letter in text[1:]))


def _trap(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    rest = words[1:] if words and _constant(words[0]) == "--" else words
    if len(rest) > 1 and _constant(rest[0]) not in {"-", "", "-l", "-p"}:
        found.inners.append(Inner(name, script=rest[0]))


def _alias(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """The text of an alias may run later; strict rules see it."""
    for word in words:
        head, equals, text = word.text.partition("=")
        if equals and word.kind is WordKind.CONST and not head.startswith("-"):
            found.inners.append(Inner(f"alias {head}", script=constant(text), strict=True))


def _jobs(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    if words and _constant(words[0]) == "-x" and len(words) > 1:
        found.inners.append(Inner(name, words[1:]))


def _git(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """`submodule foreach`, `rebase --exec`: shell text among git's words."""
    texts = [word.text if word.kind is WordKind.CONST else "" for word in words]
    if "submodule" in texts[:8] and "foreach" in texts:
        rest = words[texts.index("foreach") + 1 :]
        while rest and (_constant(rest[0]) or "").startswith("-"):
            rest = rest[1:]
        if rest:
            found.inners.append(Inner("git submodule foreach", script=joined(rest), away=True))
    if "rebase" in texts[:8]:
        _scripts("git rebase", frozenset({"-x", "--exec"}), words, found)
    if "filter-branch" in texts[:8]:
        options = {f"--{kind}-filter" for kind in ("tree", "index", "msg", "env", "parent", "commit", "tag-name")}
        _scripts("git filter-branch", frozenset(options), words, found)


_OTHERS = {
    ".": _source_file,
    "alias": _alias,
    "fd": _fd,
    "fdfind": _fd,
    "find": _find,
    "gfind": _find,
    "git": _git,
    "jobs": _jobs,
    "source": _source_file,
    "trap": _trap,
    **dict.fromkeys(SHELLS, _shell),
}
_HEADS = frozenset(program for program, _ in SUBCOMMANDS)
_GIT_LIKE = {
    name: frozenset(sub.split()[0] for program, sub in SUBCOMMANDS if program == name) for name in _HEADS - {"git"}
} | {"git": frozenset({"bisect", "submodule", "rebase", "filter-branch"})}
"""Programs that run other programs by a subcommand only."""
