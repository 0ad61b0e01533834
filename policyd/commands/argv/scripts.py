"""What programs with a language of their own would do: `sed`, `awk`, `find`, `test`, `jq`, `tar`, `git -c` and others.

A checker looks at the words of one program and returns a `Finding`. Rules of this module:

1. `harm` is why the use is not harmless; a script that is not understood, or not constant, is not harmless.
2. `uses` are files the script or the words name beyond the table's roles; `handled` says that they are all of them.
3. `opaque` is what runs a program nobody can see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from policyd.commands.argv import hostwords, sedscript
from policyd.commands.argv.awkscript import awk_harm
from policyd.commands.argv.findwords import read_find
from policyd.commands.argv.globwords import let_in, untracked
from policyd.commands.argv.options import Parsed, becomes_several
from policyd.commands.argv.programs import Called
from policyd.commands.argv.testwords import read_test
from policyd.commands.lexing.patternwords import can_match
from policyd.model import Reach, Word, WordKind

NOTHING = frozenset({"--help", "--version", "-V", "-v", "-h"})


class Use(Struct, frozen=True):
    """A file and what is done to it (kind of action)."""

    kind: str
    word: Word
    reach: Reach = Reach.ENTRY
    skips_hidden: bool = False


class Finding(Struct, frozen=True):
    """What a checker found."""

    uses: tuple[Use, ...] = ()
    handled: bool = False
    harm: str = ""
    opaque: tuple[str, ...] = ()


Checker = Callable[[Called, Parsed], Finding]


def _sed(called: Called, parsed: Parsed) -> Finding:
    scripts = parsed.values("-e", "--expression")
    in_file = parsed.has("-f")
    files = parsed.operands if scripts or in_file else parsed.operands[1:]
    if not scripts and not in_file:
        scripts = parsed.operands[:1]
    if any(script.kind is not WordKind.CONST for script in scripts):
        maybe = [word.text for word in (*scripts, *files) if word.kind is WordKind.CONST]
        runs = any(sedscript.read(text).runs for text in maybe)
        found = sedscript.SedScript(harm="a script that is not constant", runs=runs)
    else:
        found = sedscript.read("\n".join(script.text for script in scripts))
    harm, uses = found.harm, [Use(kind, Word(name)) for kind, name in found.files]
    if in_file:
        harm = harm or "a script in a file"
    in_place = parsed.has("-i")
    uses += [Use("read", word) for word in (*parsed.values("-f"), *files)]
    if in_place:
        uses += [Use("edit", word) for word in (*files, *sedscript.copies(parsed.values("-i"), files))]
    if in_place and files and files[0].kind is WordKind.CONST:  # to BSD's `-i` the script is its ending, and this it
        uses += [Use(kind, Word(name)) for kind, name in sedscript.read(files[0].text).files if kind == "edit"]
    why = found.harm if found.harm == sedscript.TOO_LONG else "a `sed` script runs a program"
    hidden = (why,) if found.runs else _read_in("sed", parsed.values("-f"))
    return Finding(tuple(uses), True, harm, hidden)


def _read_in(name: str, files: tuple[Word, ...]) -> tuple[str, ...]:
    """Say that a program runs what it reads from its input, where one of its script files is that."""
    fed = any(_INPUT(word.text) for word in files)
    return (f"`{name}` runs what it reads from its input",) if fed else ()


_INPUT = re.compile(r"-|/dev/stdin|/(?:dev|proc/self)/fd/[0-9]+").fullmatch


def _awk(called: Called, parsed: Parsed) -> Finding:
    inline = not parsed.has("-f", "-E", "-e")
    script = parsed.operands[0] if inline and parsed.operands else None
    if not inline or script is None or script.kind is not WordKind.CONST:
        harm = "an awk program that is not a constant word"
        maybe = parsed.operands if inline else parsed.values("-e")
        harms = [awk_harm(word.text) for word in maybe if word.kind is WordKind.CONST and _ACTS(word.text)]
    else:
        harm = awk_harm(script.text)
        harms = [harm]
    hidden = [f"an awk program that is more than a filter: {each}" for each in harms if each]
    if any(word.text.startswith("inplace") for word in parsed.values("-i")):
        hidden.append("awk changes its files in place")
    hidden += _read_in("awk", parsed.values("-f", "-E"))
    files = parsed.operands[1:] if inline else parsed.operands
    uses = tuple(Use("read", word) for word in files if word.kind is not WordKind.CONST or not _ASSIGNS(word.text))
    lists = (
        *(Use("read", word) for word in parsed.values("-f", "-E", "-i")),
        *(Use("edit", word) for word in parsed.values("-o", "-p", "-d")),
    )
    return Finding((*lists, *uses), True, harm, tuple(hidden))


_ASSIGNS = re.compile(r"[A-Za-z_]\w*=").match
_ACTS = re.compile(r"[{|>@]|system|getline").search
"""What an awk program that does more than print has, and hardly the name of a file."""


def _find(called: Called, parsed: Parsed) -> Finding:
    found = read_find(parsed.operands)
    return Finding(tuple(Use(*use) for use in found.uses), True, found.harm)


def _searched(look: Callable[[Parsed], Iterator[tuple[Word, Reach, bool]]]) -> Checker:
    """Return a checker for a program that searches more than its operands say."""
    return lambda _, parsed: Finding(tuple(Use("search", *found) for found in look(parsed)))


def _test(called: Called, parsed: Parsed) -> Finding:
    harm, files = read_test(parsed.operands)
    return Finding(tuple(Use("search", word) for word in files), True, harm)


_ENV = r"(?<![.\w\"])ENV\b"
"""`$ENV`: blanks and comments may stand behind the `$`."""
_JQ_HARM = re.compile(r"\b(?:import|include|get_search_list|modulemeta|input_line_number)\b|(?<![.\w$\"])env\b|" + _ENV)
_YQ_HARM = re.compile(r"load|eval|system|env(?:subst|\()|\b(?:exec|env|import|include)\b|" + _ENV)
"""Names of operators, which may follow one another without a blank (`andload(…)`)."""
_YQ_FIELD = re.compile(r"(?<!\.)\.\w+")
_YQ_COMMANDS = frozenset({"e", "eval", "ea", "eval-all"})
"""Words in front of the filter that change nothing but how files are joined."""


def _jq(called: Called, parsed: Parsed) -> Finding:
    if parsed.has("-f"):
        return Finding(harm="a jq filter in a file")
    return Finding(harm=_filter_harm(_JQ_HARM, "jq", parsed.operands[:1]))


def _filter_harm(pattern: re.Pattern[str], name: str, scripts: tuple[Word, ...]) -> str:
    """Return why a filter, if there is one, does more than choose from what it is given."""
    if any(script.kind is not WordKind.CONST for script in scripts):
        return f"a {name} filter that is not constant"
    found = next(filter(None, (pattern.search(script.text) for script in scripts)), None)
    return f"`{found.group()}` in a {name} filter" if found else ""


def _fieldless(scripts: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return filters without the names of fields (`.payload`)."""
    return tuple(Word(_YQ_FIELD.sub(".", word.text)) if word.kind is WordKind.CONST else word for word in scripts)


def _yq(called: Called, parsed: Parsed) -> Finding:
    """Look at the filter, which is a file where one of that name exists, so that it is read as well."""
    in_file = parsed.has("--from-file")
    words = parsed.operands[1:] if parsed.operands[:1] and parsed.operands[0].text in _YQ_COMMANDS else parsed.operands
    harm = "a yq filter in a file" if in_file else _filter_harm(_YQ_HARM, "yq", _fieldless(words[:1]))
    kind = "edit" if parsed.has("-i") else "read"
    alone = in_file or len(words) == 1
    return Finding(tuple(Use(kind if at or alone else "read", word) for at, word in enumerate(words)), True, harm)


def _date(called: Called, parsed: Parsed) -> Finding:
    shows = all(word.kind is WordKind.CONST and word.text.startswith("+") for word in parsed.operands)
    return Finding(harm="" if shows else "it sets the clock")


def _none(called: Called, parsed: Parsed) -> Finding:
    return Finding(harm="its operand changes something" if parsed.operands else "")


def _single(called: Called, parsed: Parsed) -> Finding:
    one = len(parsed.operands) == 1 and not becomes_several(parsed.operands[0])
    return Finding(harm="" if one else "only with one operand it reads")


def _ps(called: Called, parsed: Parsed) -> Finding:
    harm = any(word.kind is not WordKind.CONST or "e" in word.text.lower() for word in parsed.operands)
    return Finding(harm="it prints environments" if harm else "")


def _asks(look: Callable[[tuple[Word, ...]], str]) -> Checker:
    """Return a checker for a program that may ask the network for what its operands name."""
    return lambda _, parsed: Finding(harm=(name := look(parsed.operands)) and f"it may ask the network for `{name}`")


def _dd(called: Called, parsed: Parsed) -> Finding:
    uses: list[Use] = []
    for word in parsed.operands:
        name, _, value = word.text.partition("=")
        if name in {"if", "of"} and word.kind is WordKind.CONST:
            uses.append(Use("read" if name == "if" else "edit", Word(value)))
        elif word.kind is not WordKind.CONST:
            uses.append(Use("edit", word))
    return Finding(tuple(uses), True)


def _chmod(called: Called, parsed: Parsed) -> Finding:
    modeless = parsed.has("-x", "-w", "-r", "-X", "-m", "--reference")
    reach = Reach.CONTENT if parsed.has("-R") else Reach.ENTRY
    files = parsed.operands if modeless else parsed.operands[1:]
    reference = tuple(Use("read", word) for word in parsed.values("--reference"))
    return Finding((*reference, *(Use("edit", word, reach) for word in files)), True)


def _tar(called: Called, parsed: Parsed) -> Finding:
    archives = tuple(word for word in parsed.values("-f") if word != Word("-"))
    places = parsed.values("-C")
    lists = [*(Use("read", word) for word in parsed.values("-T", "-X")), *(Use("search", word) for word in places)]
    written = [Use("edit", word) for word in parsed.values("-g", "--index-file", "--volno-file")]
    if parsed.has("-c", "-r", "-u", "-A"):
        uses = [
            *(Use("edit", word) for word in archives),
            *(Use("read", word, Reach.CONTENT) for word in parsed.operands),
        ]
        if parsed.has("--remove-files"):
            uses += [Use("delete", word, Reach.CONTENT) for word in parsed.operands]
    else:
        uses = [Use("read", word) for word in archives]
        if parsed.has("-x") and not parsed.has("-O"):
            uses += [Use("edit", word, Reach.UNTOLD) for word in places or (Word("."),)]
    runs = tuple(f"`{item.word.text}` of tar runs a program" for item in parsed.given if item.role == "run")
    away = any(word.kind is not WordKind.CONST or ":" in word.text for word in archives)
    harm = "it runs a program" if runs else "the archive may be on another machine" if away else ""
    return Finding((*lists, *written, *uses), True, harm, runs)


def _ar(called: Called, parsed: Parsed) -> Finding:
    """Look at the letters of the first word: `t` and `p` only show."""
    mode, rest = parsed.operands[:1], parsed.operands[1:]
    letters = mode[0].text.lstrip("-") if mode and mode[0].kind is WordKind.CONST else ""
    if letters and set(letters) <= set("tpv") and set(letters) & set("tp"):
        return Finding(tuple(Use("read", word) for word in rest[:1]), True)
    taken_apart = "x" in letters and not letters.startswith("-")
    uses = [Use("read" if taken_apart else "edit", word) for word in rest[:1]]
    uses += [Use("edit", Word("."), Reach.UNTOLD)] if taken_apart else [Use("read", word) for word in rest[1:]]
    return Finding(tuple(uses), True, "it changes the archive or takes it apart")


def _jar(called: Called, parsed: Parsed) -> Finding:
    archives = parsed.values("-f")
    known = all(word.kind is WordKind.CONST for word in archives)
    makes = parsed.has("-c", "-u")
    uses = [Use("edit" if makes else "read", word) for word in archives]
    if makes:
        uses += [Use("read", word, Reach.CONTENT) for word in parsed.operands]
    if parsed.has("-x"):
        uses.append(Use("edit", Word("."), Reach.UNTOLD))
    return Finding(tuple(uses), True, "" if known else "the archive is not known")


def _first(*words: str) -> Checker:
    """Return a checker for a program whose first operand may be a command that writes."""

    def check(called: Called, parsed: Parsed) -> Finding:
        first = parsed.operands[0] if parsed.operands else Word("")
        found = first.text in words or (first.kind is WordKind.GLOB and any(can_match(first.text, it) for it in words))
        return Finding(harm=f"`{first.text}` does more than read" if found else "")

    return check


def _quoted(called: Called, parsed: Parsed) -> Finding:
    """Look for a name that the program would hand to a shell, where a quote in it ends the program's own."""
    odd = [word.text for word in parsed.operands if word.kind is not WordKind.CONST or not _UNQUOTED(word.text)]
    return Finding(harm=f"a shell may read `{odd[0]}`" if odd else "")


_UNQUOTED = re.compile(r"[\w ./@%+:,=~-]*").fullmatch


def _listed(called: Called, parsed: Parsed) -> Finding:
    """Look for `-`, which stands for the files that a list names; without a file, all that is installed is meant."""
    if not parsed.operands:
        return Finding(harm="without a file it compiles what is installed")
    return Finding(harm="`-` reads which files from its input" if Word("-") in parsed.operands else "")


def _man(called: Called, parsed: Parsed) -> Finding:
    """Look for a page that is a file: it may include any other."""
    files = [word.text for word in parsed.operands if word.kind is not WordKind.CONST or "/" in word.text]
    return Finding(harm=f"`{files[0]}` may include other files" if files else "")


def _reflog(called: Called, parsed: Parsed) -> Finding:
    """Look at the first word: what is no name of a revision may be a subcommand."""
    first = next(iter(parsed.operands), None)
    known = first is None or (first.kind is WordKind.CONST and bool(_REVISION(first.text)))
    return Finding(harm="" if known else f"`{first.text if first else ''}` may be a subcommand")


_REVISION = re.compile(r"(?:HEAD|@)(?:[@~^].*)?|[\w.-]+@\{.*|[\w.-]+/.*").fullmatch
_SETS_NOTHING = re.compile(r"(?:V|VERBOSE)=[0-9]?").fullmatch
"""A variable of `make` that only says how much is shown."""


def _unzip(called: Called, parsed: Parsed) -> Finding:
    uses = [Use("read", word) for word in parsed.operands[:1]]
    if not parsed.has("-l", "-v", "-p", "-t"):
        uses += [Use("edit", word, Reach.UNTOLD) for word in parsed.values("-d") or (Word("."),)]
    return Finding(tuple(uses), True)


_ASKED = frozenset({"imports", "asked", "printed"})
"""Roles of a text that is run, of which closed lists are harmless."""


def _interpreter(called: Called, parsed: Parsed) -> Finding:
    asks = parsed.given and all(item.word.text in NOTHING for item in parsed.given)
    asks = asks or any(item.role in _ASKED for item in parsed.given)  # any other value of these is refused before
    return Finding(harm="" if asks and not parsed.operands else "it runs what it is given")


def _make(called: Called, parsed: Parsed) -> Finding:
    told = [word for word in parsed.operands if not (word.kind is WordKind.CONST and _SETS_NOTHING(word.text))]
    names = any(word.kind is not WordKind.CONST or "=" in word.text for word in told)
    harm = "it sets a variable" if names else ""
    if parsed.operands and not told:
        harm = "without a name it may run anything"
    return Finding(harm=harm, opaque=_read_in("make", parsed.values("-f")))


def _npm(called: Called, parsed: Parsed) -> Finding:
    known = called.path or not parsed.operands
    return Finding(harm="" if known or called.outer.name != "npm" else "a subcommand that is not known")


LISTS = frozenset({"list", "show", "freeze", "check"})


def _verbs(called: Called, parsed: Parsed) -> Finding:
    first = parsed.operands[:1]
    known = not first or (first[0].kind is WordKind.CONST and first[0].text in LISTS)
    return Finding(harm="" if known and (first or parsed.given) else "it changes something")


# ---- git -------------------------------------------------------------------------------------------

GIT_KEYS = re.compile(
    r"(?:color|advice|user|column|status|branch|tag|log|blame|grep|i18n|fetch|push|pull|commit|init|gc|safe)\.[a-z]+"
    r"|core\.(?:quotepath|autocrlf|abbrev|commentchar|ignorecase|precomposeunicode|safecrlf|eol|filemode|checkstat"
    r"|preloadindex|untrackedcache|pager=(?:cat)?|pager)"
    r"|diff\.(?:renames|renamelimit|algorithm|context|mnemonicprefix|noprefix|colormoved|wserrorhighlight|submodule)"
    r"|color\.[a-z]+\.[a-z]+",
    re.I,
)
"""Configuration keys that name no program, file or URL."""


_GIT_NAMES = frozenset(
    """
    commit.template init.templatedir gc.recentobjectshook log.mailmap push.gpgsign blame.ignorerevsfile
    log.showsignature grep.fallbacktonoindex
    """.split()  # noqa: SIM905
)
"""Keys of those that do, or that make `git grep` a search of all files."""


def git_config(word: Word) -> str:
    """Return why `git -c KEY=VALUE` may run something, nothing if it may not."""
    if word.kind is not WordKind.CONST:
        return "`git -c` with a value that is not known"
    key, _, value = word.text.partition("=")
    if key.lower() == "core.pager":
        return "" if value == "cat" else "`git -c core.pager` names a program"
    if key.lower() in _GIT_NAMES or "signature" in value:
        return f"`git -c {key}` names a program or a file, or asks for one"
    return "" if GIT_KEYS.fullmatch(key) else f"`git -c {key}` may name a program"


CONFIG_READ_FLAGS = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool", "-l")


def _git_config(called: Called, parsed: Parsed) -> Finding:
    """Look at the words behind the options, which end at the first of them: another option there is a value."""
    words = [word.text if word.kind is WordKind.CONST else "" for word in parsed.operands]
    dashed = any(text.startswith("-") for text in words)
    single = len(words) == 1 and "." in words[0]
    reads = not dashed and (single or parsed.has(*CONFIG_READ_FLAGS))
    return Finding(harm="" if reads else "it may change the configuration")


def _undashed(called: Called, parsed: Parsed) -> Finding:
    return Finding(harm="words behind `--` are settings" if parsed.split >= 0 else "")


def _tsc(called: Called, parsed: Parsed) -> Finding:
    """Look for a word that takes a switch back: `tsc --noEmit false` writes."""
    taken = any(word.text in {"true", "false", "null"} for word in parsed.operands)
    return Finding(harm="a switch is taken back" if taken else "")


def _cargo_fmt(called: Called, parsed: Parsed) -> Finding:
    """Look at the words behind `--` too: they are options of rustfmt."""
    if any(word != Word("--check") for word in parsed.operands):
        return Finding(harm="it hands more than `--check` to rustfmt")
    checks = parsed.has("--check") or parsed.operands
    written = () if checks else (Use("edit", Word("."), Reach.CONTENT),)
    return Finding(written, harm="" if checks else "without `--check` it writes")


CHECKERS: Mapping[str, Checker] = {
    "ar": _ar,
    "awk": _awk,
    "ast-grep": _first("new", "lsp", "completions"),
    "bat": _first("cache"),
    "cargofmt": _cargo_fmt,
    "chmod": _chmod,
    "date": _date,
    "dd": _dd,
    "find": _find,
    "gitconfig": _git_config,
    "gitgrep": _searched(untracked),
    "golist": _asks(hostwords.of_packages),
    "jar": _jar,
    "jest": _first("init", "create-config", "migrate"),
    "jq": _jq,
    "listed": _listed,
    "lsof": _asks(hostwords.of_files),
    "make": _make,
    "man": _man,
    "none": _none,
    "npm": _npm,
    "ps": _ps,
    "python": _interpreter,
    "quoted": _quoted,
    "reflog": _reflog,
    "rg": _searched(let_in),
    "sed": _sed,
    "single": _single,
    "ss": _asks(hostwords.of_filter),
    "tar": _tar,
    "test": _test,
    "tsc": _tsc,
    "undashed": _undashed,
    "unzip": _unzip,
    "verbs": _verbs,
    "yq": _yq,
}


def check(called: Called, parsed: Parsed) -> Finding:
    """Run the checker of the called program."""
    checker = CHECKERS.get(called.program.check)
    return checker(called, parsed) if checker is not None else Finding()
