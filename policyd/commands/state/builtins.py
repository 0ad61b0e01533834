"""What the shell's own words do to the shell: directory, variables, meaning of names.

Rules of this module:

1. A name that holds a subscript is evaluated by bash even when quoted: opaque.
2. What sets a variable whose name is not constant taints everything.
3. The `activate` of the project's own virtual environment puts that in front of `PATH` and does nothing else: whoever
   wrote it also wrote the programs there. It is no more than `PATH=venv/bin`, which a rule may tolerate.
4. `IDLE` words change nothing but the shell itself, so they need no rule of their own; what they set taints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from policyd.commands.lexing.plain import constant
from policyd.commands.lexing.quoting import SOME
from policyd.commands.state import NUMBER, Pair, State
from policyd.commands.state.arithmetic import changed, is_over
from policyd.commands.state.moving import forget_stack, move
from policyd.commands.state.taint import TAINTS_ALL
from policyd.model import CONST, MOVERS, UNKNOWN, Assignment, Word

Words = tuple[Word, ...]
Opaque = Callable[[str], None]

IDLE = frozenset(
    [
        ":",
        "break",
        "continue",
        "declare",
        "dirs",
        "exit",
        "export",
        "false",
        "getopts",
        "let",
        "local",
        "pwd",
        "read",
        "readonly",
        "return",
        "set",
        "shift",
        "true",
        "typeset",
        "unset",
        "wait",
    ]
)
_LISTING = frozenset({"declare", "export", "local", "readonly", "typeset"})
"""Builtins that print every variable where they are given none: secrets may be among them."""
_FLAGS = re.compile(r"[-+][a-zA-Z]*|").fullmatch
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)(.*)", re.DOTALL)
_ACTIVATE = re.compile(r"(?:\./)?\.?venv/bin/activate").fullmatch
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_SAFE_SET = re.compile(r"[-+][eETuvx]*(o?)").fullmatch
_SAFE_OPTIONS = frozenset({"errexit", "errtrace", "functrace", "nounset", "pipefail", "verbose", "xtrace"})
_READ_VALUED = "adinNptu"
_MAPFILE_VALUED = "dnOsuCc"
_ATTRIBUTES = frozenset("rluciaA")
_DECLARES, _EXPORTS = frozenset("aAgiIlnrtux"), frozenset("aAn")
"""Options with which `declare` and its kin set variables: with others they list something, or fail."""
_UNKNOWN_NAME = "a variable is set whose name is not constant"


def subscripted(name: str) -> str:
    """Return why a name with a subscript is opaque."""
    return f"the subscript in `{name[:40]}` is evaluated, which may run something"


def apply(name: str, argv: Words, env: tuple[Assignment, ...], state: State, opaque: Opaque) -> Pair:
    """Change `state` as the builtin `name` does, `env` in front of it; return where success and failure leave it."""
    here = state.cwd
    if name in MOVERS:
        return move(name, argv[1:], env, state)
    if name in {"break", "continue"}:
        state.jumps += 1
    step = _STEPS.get(name)
    if step is not None:
        step(argv[1:], state, opaque)
    if name in {".", "source"} and len(argv) == 2 and argv[1].kind is CONST and _ACTIVATE(argv[1].text):
        state.forget()
        state.assign("PATH", constant(argv[1].text.removeprefix("./").removesuffix("/activate")), exported=True)
        return here, here
    if name in TAINTS_ALL and len(argv) > 1 and not (name == "set" and _safe_set(argv[1:])):
        state.taint_all(TAINTS_ALL[name])
        if name in {".", "source", "eval"}:
            return (), ()
    return here, here


def is_idle(name: str, argv: Words) -> bool:
    """Say whether the builtin changes nothing but the shell, and prints no variables."""
    if name in _LISTING and not [word for word in argv[1:] if not _FLAGS(word.text)]:
        return False
    if name == "dirs" and not _shows_stack(argv[1:]):
        return False
    return name in IDLE and (name != "set" or (len(argv) > 1 and _safe_set(argv[1:])))


def _shows_stack(words: Words) -> bool:
    return all(word.kind is CONST and word.text in {"-l", "-p", "-v"} for word in words)


def _safe_set(words: Words) -> bool:
    """Say whether `set` changes nothing that is relied on: behind `--` stands what `$1` is, which nobody knows."""
    option = False
    for word in words:
        if word.kind is not CONST:
            return False
        if word.text == "--":
            return not option
        if option:
            if word.text not in _SAFE_OPTIONS:
                return False
            option = False
            continue
        match = _SAFE_SET(word.text)
        if match is None or len(word.text) < 2:
            return False
        option = bool(match[1])
    return not option


def _set_name(word: Word, state: State, opaque: Opaque, *, plain: bool) -> None:
    """Set the variable that `word` names to something unknown."""
    if word.kind is not CONST:
        if "[" in word.text:
            opaque(subscripted(word.text))
        state.taint_all(_UNKNOWN_NAME)
    elif "[" in word.text:
        opaque(subscripted(word.text))
    elif _NAME(word.text):
        state.assign(word.text, None, plain=plain)


def _operands(words: Words, valued: str) -> Iterator[tuple[str, Word]]:
    """Yield (option letter, value) for options with a value, and ("", operand) for the rest."""
    at = 0
    while at < len(words) and words[at].kind is CONST and words[at].text.startswith("-"):
        text = words[at].text
        at += 1
        if text == "--":
            break
        letter = next((place for place, char in enumerate(text[1:], 1) if char in valued), 0)
        if letter and text[letter + 1 :]:
            yield text[letter], constant(text[letter + 1 :])
        elif letter and at < len(words):
            yield text[letter], words[at]
            at += 1
    for word in words[at:]:
        yield "", word


def _read(words: Words, state: State, opaque: Opaque) -> None:
    for option, word in _operands(words, _READ_VALUED):
        if option in {"", "a"}:
            _set_name(word, state, opaque, plain=True)


def _printf(words: Words, state: State, opaque: Opaque) -> None:
    if words and words[0].text.startswith("-v"):
        name = constant(words[0].text[2:]) if words[0].text != "-v" else words[1] if len(words) > 1 else None
        if name is not None:
            _set_name(name, state, opaque, plain=False)
    elif words and words[0].kind is UNKNOWN and not words[0].prefix and words[0].many:
        state.taint_all(_UNKNOWN_NAME)


def _mapfile(words: Words, state: State, opaque: Opaque) -> None:
    for option, word in _operands(words, _MAPFILE_VALUED):
        if option == "C":
            opaque("`mapfile -C` runs its argument for every line")
        elif not option:
            _set_name(word, state, opaque, plain=False)


def _getopts(words: Words, state: State, opaque: Opaque) -> None:
    for _, word in list(_operands(words, ""))[1:2]:
        _set_name(word, state, opaque, plain=False)


def _unset(words: Words, state: State, opaque: Opaque) -> None:
    for _, word in _operands(words, ""):
        _set_name(word, state, opaque, plain=True)


def _wait(words: Words, state: State, opaque: Opaque) -> None:
    for option, word in _operands(words, "p"):
        if option:
            _set_name(word, state, opaque, plain=False)


def _let(words: Words, state: State, opaque: Opaque) -> None:
    for word in words:
        compute(word.text if word.kind is CONST and not state.lesser else "[", state, opaque, "`let`")


def compute(text: str, state: State, opaque: Opaque, shown: str) -> None:
    """Evaluate an arithmetic expression, which may set a variable, or run a subscript."""
    found = changed(text, state.number)
    if found is None and is_over(text, state.number):
        state.forget()  # it may be an error
    elif found is None:
        opaque(f"{shown} is evaluated, which may run something")
        state.names = dict.fromkeys(state.names)
        for name in re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)", text):
            state.assign(name, None)
    elif found[0]:
        state.assign(found[0], NUMBER if found[1] == SOME else constant(found[1]))


def _test(words: Words, state: State, opaque: Opaque) -> None:
    for word in words:
        if word.kind is CONST and word.text in {"-v", "-R"}:
            opaque(f"`test {word.text}` evaluates a subscript, which may run something")
        elif word.kind is CONST and "[" in word.text and ("$(" in word.text or "`" in word.text):
            opaque(subscripted(word.text))


def _dirs(words: Words, state: State, opaque: Opaque) -> None:
    if not _shows_stack(words):
        forget_stack(state)


def _runs_text(words: Words, state: State, opaque: Opaque) -> None:
    for word in words:
        if word.kind is CONST and re.match(r"-[A-Za-z]*[CFWx]", word.text):
            opaque(f"`{word.text}` runs its argument")


def _declare(words: Words, state: State, opaque: Opaque, *, export: bool = False, flags: str = "") -> None:
    named = []
    for word in words:
        if word.kind is not CONST or word.text[:1] not in {"-", "+"}:
            named.append(word)
        elif word.text != "--":
            flags += word.text[1:]
    sure = (_EXPORTS if export else _DECLARES).issuperset(flags)
    if "i" in flags:
        opaque("a variable with `-i` evaluates what is put into it, which may run something")
    if "n" in flags and not export:
        opaque("a variable becomes another name for a variable, or for a subscript that is evaluated")
        state.taint_all("a variable becomes another name for a variable")
    for word in named:
        if not sure and "=" not in word.text:
            continue
        _declared(word, state, opaque, exported=export or "x" in flags)
        if not sure or set(flags) & _ATTRIBUTES:
            name = (word.text if word.kind is CONST else word.prefix).split("=")[0].rstrip("+")
            if _NAME(name):
                state.fixed |= {name}
                state.bind(name, None)


def _declared(word: Word, state: State, opaque: Opaque, *, exported: bool) -> None:
    text = word.text if word.kind is CONST else word.prefix
    match = _ASSIGNMENT.fullmatch(text)
    if "[" in text.split("=")[0]:
        opaque(subscripted(text))
    elif match is not None:
        if match[3].startswith("(") and word.kind is CONST:
            opaque(f"`{text[:40]}` is evaluated as a list, which may run something")
        value = constant(match[3]) if word.kind is CONST and match[2] == "=" else None
        state.assign(match[1], value, exported=exported)
    elif word.kind is not CONST:
        state.taint_all(_UNKNOWN_NAME)
    elif _NAME(text):
        state.assign(text, state.lookup(text), exported=exported)


def _export(words: Words, state: State, opaque: Opaque) -> None:
    _declare(words, state, opaque, export=True)


def _local(words: Words, state: State, opaque: Opaque) -> None:
    before = state.known()
    _declare(words, state, opaque)
    state.join(before)  # outside of a function it is an error, and sets nothing


def _readonly(words: Words, state: State, opaque: Opaque) -> None:
    _declare(words, state, opaque, flags="r")


_STEPS: dict[str, Callable[[Words, State, Opaque], None]] = {
    "[": _test,
    "bind": _runs_text,
    "compgen": _runs_text,
    "complete": _runs_text,
    "declare": _declare,
    "dirs": _dirs,
    "export": _export,
    "getopts": _getopts,
    "let": _let,
    "local": _local,
    "mapfile": _mapfile,
    "printf": _printf,
    "read": _read,
    "readarray": _mapfile,
    "readonly": _readonly,
    "test": _test,
    "typeset": _declare,
    "unset": _unset,
    "wait": _wait,
}
BUILTINS = frozenset(_STEPS) | frozenset(TAINTS_ALL) | IDLE | MOVERS
"""Names whose commands do something to the shell, or need no rule."""
