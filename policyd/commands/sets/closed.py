"""Whether the table of programs can vouch for a command: every word understood, nothing written, nothing run.

This is what the entries of the shipped sets rest on. Rules of this module:

1. Closed world: an option that is not in the table, an abbreviation, a word that may become an option, an operand
   that is written, a checker's `harm`: each is a reason, and a reason means no.
2. A value that looks like an option, and words behind a `--` that may itself be a value, are not believed: the table
   may be wrong about who takes a value on another system.
3. A word from a glob that may begin with `-` is tolerated where no option of the program can harm.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from policyd.commands.argv import programs, scripts
from policyd.commands.argv.options import Given, Parsed, becomes_several, constant, may_be_option, parse, unread
from policyd.commands.argv.programs import Called, Program
from policyd.commands.argv.values import REFUSED, harmless_value
from policyd.commands.files.roles import peeks, slots
from policyd.model import Word, WordKind

WRITTEN = frozenset({"edit", "delete", "move", "url", "host", "remote-read", "remote-edit"})
SCRIPTS = ("jest", "vitest", "mocha", "eslint", "pytest", "cargo test")
"""Programs whose harmless options a test script may be given behind `--`."""
_HANDS_ON = frozenset({"yarn"})
"""Programs (yarn, pnpm) that hand every word behind the name of a script to it."""

_LINT = re.compile(r"--|-[DWAF][\w:-]*|--(?:deny|warn|allow|forbid)(?:=[\w:-]+)?|[A-Za-z][\w:-]*").fullmatch
_EXPANDS = re.compile(r"[$`]|\\[\"\\]|\\\Z")
"""What a shell expands between double quotes, which are all that older runners of scripts put, or what ends them."""
_TEST_PATH = re.compile(r"(?!/|.*\.\.)[\w./-]*(?:/|\.py)[\w./:\[\]-]*").fullmatch


def reason(call: Called, *, writes: bool = False) -> str:
    """Return why the table cannot vouch for the command, nothing if it can.

    `writes`: operands may be written (an entry of `@files`).
    """
    parsed = parse(call.program.syntax, call.after)
    if call.program.name in _HANDS_ON and parsed.operands:
        parsed = _handed_on(call, parsed)
    if call.path:
        outer = options_reason(call.outer, parse(call.outer.syntax, call.before), writes=False)
        if outer:
            return outer
    if call.outer.subs and not call.path and parsed.operands and call.program is call.outer:
        return f"a subcommand of {call.outer.name} that is not known"
    if call.program.verb:
        return f"`{call.program.name}` changes something"
    if call.program.needs and not writes and not parsed.has(*call.program.needs):
        needed = min(call.program.needs, key=lambda name: (len(name), name))
        return f"without `{needed}` {call.program.name} may write or run something"
    return options_reason(call.program, parsed, writes=writes) or _operands_reason(call, parsed, writes=writes)


def options_reason(program: Program, parsed: Parsed, *, writes: bool) -> str:
    """Return why one of the options is not harmless."""
    for word in parsed.unknown:
        return f"`{word.text}` is no option of {program.name} that is known to be harmless"
    for given in parsed.given:
        reason = _option_reason(program, given, writes=writes)
        if reason:
            return reason
    dashed = parsed.eaten and any(_dashed(word) for word in parsed.operands[parsed.split :])
    if dashed and program.can_harm and not passes(program):
        return "`--` may be the value of the option before it"
    if not parsed.loose or program.words or program.inert:
        return ""
    for word in parsed.loose:
        if word.kind is WordKind.UNKNOWN:
            better = "; `find … -type f -exec … {} +` says which files" if word.text == "…" else ""
            return f"{unread(word)} is not known before it runs{better}"
        if program.can_harm:
            better = f"; `./{word.text}` may not" if word.kind is WordKind.GLOB and word.text[0] in "*?[" else ""
            return f"`{word.text}` may become an option{better}"
    return ""


def passes(program: Program) -> bool:
    """Say whether what stands behind `--` is for what the program runs, and no operand of its own."""
    return any(role.rstrip("*") in {"own", "script", "lints", "posargs"} for role in program.operands)


def _option_reason(program: Program, given: Given, *, writes: bool) -> str:
    if not given.exact:
        return f"`{given.word.text}` is an abbreviation"
    written = given.role == "edit" or (given.role == "backup" and given.value is None)
    fine = harmless_value(given.role, given.value) or (writes and written)
    if given.option.unsafe and not fine and given.value is not None and given.role in REFUSED:
        return f"`{given.value.text}` behind `{constant(given.word).partition('=')[0]}` {REFUSED[given.role]}"
    if program.letters and _clustered(given):
        return f"`{given.word.text}` is read otherwise by {program.name}"
    if given.option.harms and not fine:
        return f"`{given.word.text}` may make {program.name} write, run or read something else"
    if given.option.unsafe and not fine:
        return f"with `{given.word.text}` {program.name} may read what no word names: behind links, from a list"
    if given.apart and given.value is not None and _dashed(given.value):
        return f"`{given.value.text}` may be an option of its own"
    if given.apart and given.value is not None and becomes_several(given.value):
        return f"`{given.word.text}` may take another word"
    return ""


def _clustered(given: Given) -> bool:
    """Say whether a value is glued to a letter; a number, and what stands behind a `=`, is one everywhere."""
    if given.value is None or given.apart or given.word.text.startswith("--"):
        return False
    value = given.value.text
    return not (value.isdigit() or given.word.text.endswith(f"={value.removeprefix('=')}"))


def _handed_on(call: Called, parsed: Parsed) -> Parsed:
    """Return options with those behind the name of a script as the script's own: known are such as cannot harm there.

    So are long ones of the program's own; a letter means something else to every program.
    """
    names = parsed.operands[1:2] if parsed.operands[0].text == "run" else ()
    at = call.after.index((names or parsed.operands)[0])
    before, behind = call.after[:at], call.after[at:]
    strange = [word for word in parsed.unknown if word in before or not _passed(call.program, "script", word)]
    own = [given.word for given in parsed.given if given.word in behind and not given.word.text.startswith("--")]
    return replace(parsed, unknown=(*strange, *(word for word in own if not _passed(call.program, "script", word))))


def _dashed(word: Word) -> bool:
    """Say whether a word looks like an option; a negative number does not."""
    text = word.text
    return text.startswith("-") and text != "-" and not text[1:].isdigit()


def _operands_reason(call: Called, parsed: Parsed, *, writes: bool) -> str:
    listed = _list_reason(call.program, parsed)
    if listed:
        return listed
    finding = scripts.check(call, parsed)
    if finding.harm:
        return finding.harm
    for use in finding.uses:
        if use.kind in WRITTEN and not writes:
            return f"it writes `{use.word.text}`"
    if finding.handled:
        return ""
    return _slots_reason(call, parsed, writes=writes)


def _list_reason(program: Program, parsed: Parsed) -> str:
    """Return which word may stand for the options in a file, a value as well."""
    words = (*parsed.operands, *(item.value for item in parsed.given if item.apart and item.value))
    listed = next(filter(_may_list, words), None) if program.ats else None
    return f"`{listed.text}` may name a file of options" if listed is not None else ""


def _may_list(word: Word) -> bool:
    """Say whether a word may begin with `@`."""
    head = constant(word)
    return head.startswith("@") or (not head and word.kind is not WordKind.CONST)


def _slots_reason(call: Called, parsed: Parsed, *, writes: bool) -> str:
    program = call.program
    if program.listing and parsed.operands and not parsed.has(*program.listing):
        return f"`{parsed.operands[0].text}` makes it more than a listing"
    written = not writes and any(role.rstrip("*") in WRITTEN for role in program.operands)
    if written and parsed.mixed and not program.mixes:
        return "an option behind an operand, where another operand is written"
    several = next((word for word in parsed.operands if becomes_several(word)), None)
    if written and several is not None and not peeks(program, parsed):
        return f"`{several.text}` may become several words, and another operand is written"
    if "posargs*" in program.operands:
        return _posargs_reason(program, parsed)
    for role, word in slots(program, parsed):
        if role in WRITTEN and not writes:
            return f"it writes `{word.text}`"
        if role == "tests" and word.text.startswith("@"):
            return f"`{word.text}` may name a file of arguments"
        if role == "mention" and "://" in word.text:
            return f"`{word.text}` may be fetched"
        if role == "lints" and not _LINT(word.text):
            return f"`{word.text}` is more than the level of a lint"
        if role == "package" and not _package(word):
            return f"`{word.text}` is no package of this project by its look"
        if role in {"own", "script"} and not _passed(program, role, word):
            return f"`{word.text}` is no option that is known to be harmless"
    return ""


def _posargs_reason(program: Program, parsed: Parsed) -> str:
    """Return why words that may become a command, or options of a test runner, are not ordinary ones."""
    pytest = programs.find("pytest")
    led = parsed.split != 0 and parsed.operands[:1] and parsed.operands[0].text in program.leads
    given = parsed.operands[1:] if led else parsed.operands
    words = parse(pytest.syntax, given) if pytest is not None else parsed
    bare = [word.text for word in words.operands if not _TEST_PATH(word.text)]
    if bare:
        return f"`{bare[0]}` may be a command"
    return (options_reason(pytest, words, writes=False) or _list_reason(pytest, words)) if pytest is not None else ""


def _package(word: Word) -> bool:
    local = word.text in {".", "./..."} or word.text.startswith("./")
    return word.kind is WordKind.CONST and local and ".." not in word.text.split("/")


def _passed(program: Program, role: str, word: Word) -> bool:
    """Say whether a word behind `--` is no option, or one that cannot harm."""
    if role == "script" and _EXPANDS.search(word.text):
        return False
    if not may_be_option(word):
        return True
    if word.kind is not WordKind.CONST:
        return False
    tables = [program] if role == "own" else [table for table in map(_table, SCRIPTS) if table]
    name, equals, value = word.text.partition("=")
    found = [option for table in tables if (option := table.syntax.options.get(name))]
    given = Word(value) if equals else None
    return bool(found) and not any(option.harms and not harmless_value(option.value, given) for option in found)


def _table(name: str) -> Program | None:
    outer, _, sub = name.partition(" ")
    program = programs.find(outer)
    return program.subs.get(sub) if program is not None and sub else program
