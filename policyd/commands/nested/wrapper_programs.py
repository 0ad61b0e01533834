"""Programs that run others in ways of their own: `find -exec`, `fd -x`, shells, interpreters, `trap`, `git`.

What cannot be told (a script that is not constant, a program that is read from a pipe) has its reason in words.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from policyd.commands.argv.findwords import stands_for
from policyd.commands.lexing.plain import constant
from policyd.commands.nested import far
from policyd.commands.nested.inner import MORE_INPUT, Inner, Unwrapped, Words, constant_text, joined, replaced, scripts
from policyd.commands.nested.wrapper_table import BASH_LIKE, INTERPRETERS, SHELLS
from policyd.model import CONST, SimpleCommand, Word

_FIND_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
CONTAINERS = tuple(
    """
    docker podman nerdctl docker-compose buildah crictl kubectl oc minikube lxc incus lxc-attach distrobox toolbox
    limactl lima multipass colima apptainer singularity systemd-nspawn arch-chroot devcontainer flatpak-spawn adb wsl
    wsl.exe gcloud
    """.split()  # noqa: SIM905
)
"""Programs that run what they are told elsewhere, and may start a shell there."""
_VERSION = re.compile(r"(?<=[a-z])[0-9]*\.[0-9.]+$")


def language(name: str) -> str:
    return _VERSION.sub("", name) if name[-1:].isdigit() and name not in INTERPRETERS else name


def _find(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    texts = [word.text if word.kind is CONST else "" for word in words]
    end = 0
    for at, text in enumerate(texts, 1):
        if text not in _FIND_EXEC or at <= end:
            continue
        end = at
        while end < len(words) and texts[end] != ";" and not (texts[end] == "+" and words[end - 1].text == "{}"):
            end += 1
        if end > at:
            argv = replaced(_filled(words[at:end], words[: at - 1]), ("{}",))
            found.inners.append(Inner(name, argv, away=text in {"-execdir", "-okdir"}))


def _filled(argv: Words, before: Words) -> Words:
    """Put what `find` with the words `before` may find in the place of a `{}` that is a word."""
    files = stands_for(before)
    if files is None or argv[0].text == "{}":
        return argv
    return tuple(file for word in argv for file in (files if constant_text(word) == "{}" else (word,)))


def _fd(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    for at, word in enumerate(words):
        text = constant_text(word) or word.prefix
        long, _, glued = text.partition("=")
        if long not in {"--exec", "--exec-batch"} and not re.fullmatch(r"-[A-Za-z]*?[xX].*", text):
            continue
        short = re.sub(r"^-[A-Za-z]*?[xX]", "", text) if not text.startswith("--") else glued
        rest = words[at + 1 :]
        end = next((place for place, one in enumerate(rest) if constant_text(one) == ";"), len(rest))
        argv = ((constant(short),) if short else ()) + rest[:end]
        if argv:
            filled = replaced(argv, ("{}", "{/}", "{//}", "{.}", "{/.}"))
            found.inners.append(Inner(name, (*filled, MORE_INPUT) if filled == argv else filled))


def _shell(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    if len(words) == 1 and constant_text(words[0]) in _ASKS:
        return
    place = _place(words) if name in BASH_LIKE else -1
    if place > 0:
        found.inners.append(Inner(f"{name} -c", script=words[place]))
        found.alike = True
        return
    at, script, stdin = 0, False, False
    while at < len(words):
        text = constant_text(words[at])
        if text is None:
            found.reasons.append(f"a word that decides what `{name}` runs is not constant")
            break
        if text in {"--", "-"} or not text.startswith(("-", "+")):
            at += text in {"--", "-"}
            break
        if text.startswith("--"):
            script |= text in _COMMANDS
            at += 1 if script else _long_shell_option(name, text, found)
            continue
        if name in BASH_LIKE and not _is_usual(text, words[at + 1 :]):
            found.reasons.append(f"with `{text}` `{name}` may read its text otherwise")
        script |= "c" in text[1:] or (name, text) in _STARTS  # `+c` is no less than `-c`
        stdin |= "s" in text[1:]
        at += 1 + text.count("o") + text.count("O")
    if script:
        value = words[at] if at < len(words) else constant("")
        why = "" if name in BASH_LIKE else _difference(name, words)
        found.inners.append(Inner(f"{name} -c", script=value, strict=bool(why)))
        found.alike = name not in BASH_LIKE and not why
        if why:
            found.reasons.append(why)
    elif stdin or at >= len(words) or is_input(words[at]):
        found.reasons.append(f"`{name}` runs what it reads from its input")


def _is_usual(option: str, behind: Words) -> bool:
    """Say whether an option of a shell leaves it to read its text as it does without."""
    if "o" in option and not (behind and constant_text(behind[0]) in _USUAL_NAMES):
        return False
    return _USUAL.issuperset(option[1:])


def _difference(name: str, words: Words) -> str:
    """Return why the text of a shell that is not like bash cannot be read, empty where bash reads it alike."""
    text = _text(words) if name == "zsh" else ""
    if not text:
        return f"text for {name} is not parsed"
    from policyd.commands.dialects.zsh import difference

    return difference(text)


_USUAL = frozenset("abcefhilmnoprstuvxCET")
_USUAL_NAMES = frozenset({"errexit", "noclobber", "noglob", "nounset", "pipefail", "posix", "verbose", "xtrace"})
"""Options of a shell, and names behind `-o`, with which a text means no less and nothing else."""
_COMMANDS = frozenset({"--command", "--commands", "--init-command", "--execute"})
"""What fish and nu call `-c`, and what they run first."""
_STARTS = frozenset({("fish", "-C"), ("nu", "-e")})
_ASKS = frozenset({"--help", "--version"})
"""What every shell answers, or refuses, without reading anything."""
_TEXT_OPTION = re.compile(r"-[ceul]+o?|-o|--login|--norc|--noprofile").fullmatch
_SAFE_OPTIONS = frozenset({"pipefail", "errexit", "nounset"})


def _text(words: Words) -> str:
    """Return TEXT where `words`, a shell's own, only make it run that; empty where they do not."""
    place = _place(words)
    return words[place].text if place > 0 else ""


def _place(words: Words) -> int:
    """Return where TEXT stands in `-lc TEXT`, `-eu -o pipefail -c TEXT`; -1 where a shell does more than run that."""
    at = 0
    while at < len(words) and _TEXT_OPTION(option := constant_text(words[at]) or ""):
        at += 1
        short = not option.startswith("--")
        if short and option.endswith("o"):
            if at >= len(words) or words[at].text not in _SAFE_OPTIONS:
                return -1
            at += 1
        if short and "c" in option:
            text = constant_text(words[at]) if at < len(words) else None
            return at if text and text[0] not in "-+" else -1
    return -1


def without_text(command: SimpleCommand) -> SimpleCommand:
    """Return a command without the text of a shell, which is read as commands beside it and names nothing more."""
    if command.inner is not None:
        return replace(command, inner=without_text(command.inner))
    name, *words = command.argv
    place = _place(tuple(words)) if name.text.rpartition("/")[2] in BASH_LIKE else -1
    if place <= 0:
        return command
    return replace(command, argv=(name, *words[:place], constant(":"), *words[place + 1 :]))


def _long_shell_option(name: str, text: str, found: Unwrapped) -> int:
    if text.split("=")[0] in {"--rcfile", "--init-file"}:
        found.reasons.append(f"`{name} {text}` runs a file first")
        return 1 if "=" in text else 2
    return 1


def is_input(word: Word) -> bool:
    """Say whether a word names what a program is fed."""
    text = constant_text(word)
    return text is not None and (text in {"-", "/dev/stdin"} or text.startswith(("/dev/fd/", "/proc/self/fd/")))


def _contained(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """What runs elsewhere, and a shell there that is fed: `docker exec -i c sh`."""
    inner = far.runs(name, words)
    found.inners += [inner] if inner is not None else []
    if fed and words and (constant_text(words[-1]) or "").rpartition("/")[2] in SHELLS:
        found.reasons.append(f"`{name}` starts a shell, which runs what it reads from its input")


def _encoded(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """Text for PowerShell that nobody can read: `pwsh -EncodedCommand AAAA`."""
    if any(_ENCODED(constant_text(word) or "") for word in words):
        found.reasons.append(f"`{name}` runs text that is encoded")


_ENCODED = re.compile(r"[-/]e(?:c|nc?o?d?e?d?c?o?m?m?a?n?d?)?", re.IGNORECASE).fullmatch


def _source_file(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    if words and is_input(words[0]):
        found.reasons.append(f"`{name}` runs what it reads from its input")
    elif words and words[0].kind is not CONST:
        found.reasons.append(f"the file that `{name}` runs is not constant")


def interpreter(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    spec = INTERPRETERS[language(name)]
    at, finds = 0, False
    while at < len(words):
        text = constant_text(words[at])
        if text is None:
            found.reasons.append(f"a word that decides what `{name}` runs is not constant")
            return
        if text in spec.quiet or has_code(text, spec.code):
            return
        if not text.startswith("-") or text in {"-", "--"}:
            at += text == "--"
            break
        finds = finds or text in spec.finds
        at += 2 if text in spec.valued else 1
    if (at >= len(words) and not finds) or (at < len(words) and is_input(words[at])):
        found.reasons.append(f"`{name}` runs what it reads from its input")


def has_code(text: str, code: frozenset[str]) -> bool:
    """Say whether an option word has one of the options `code` in it."""
    if text.startswith("--"):
        return text.split("=")[0] in code
    return text.startswith("-") and (text in code or any("-" + letter in code for letter in text[1:]))


def _trap(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    rest = words[1:] if words and constant_text(words[0]) == "--" else words
    if len(rest) > 1 and constant_text(rest[0]) not in {"-", "", "-l", "-p"}:
        found.inners.append(Inner(name, script=rest[0]))


def _alias(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """The text of an alias may run later; strict rules see it."""
    for word in words:
        head, equals, text = word.text.partition("=")
        if equals and word.kind is CONST and not head.startswith("-"):
            found.inners.append(Inner(f"alias {head}", script=constant(text), strict=True))


def _hash(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """`hash -p FILE NAME`: the file may run under that name later; strict rules see it."""
    for at, word in enumerate(words[:-1]):
        text = constant_text(word) or ""
        if text.startswith("-") and "p" in text:
            file = constant(text.partition("p")[2]) if not text.endswith("p") else words[at + 1]
            found.inners.append(Inner(name, (file, MORE_INPUT), strict=True))


def _jobs(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    if words and constant_text(words[0]) == "-x" and len(words) > 1:
        found.inners.append(Inner(name, words[1:]))


def _git(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """`submodule foreach`, `rebase --exec`: shell text among git's words."""
    texts = [word.text if word.kind is CONST else "" for word in words]
    if "submodule" in texts[:8] and "foreach" in texts:
        rest = words[texts.index("foreach") + 1 :]
        while rest and (constant_text(rest[0]) or "").startswith("-"):
            rest = rest[1:]
        if rest:
            found.inners.append(Inner("git submodule foreach", script=joined(rest), away=True))
    if "rebase" in texts[:8]:
        scripts("git rebase", frozenset({"-x", "--exec"}), words, found)
    if "filter-branch" in texts[:8]:
        options = {f"--{kind}-filter" for kind in ("tree", "index", "msg", "env", "parent", "commit", "tag-name")}
        scripts("git filter-branch", frozenset(options), words, found)


def _socat(name: str, words: Words, found: Unwrapped, fed: str) -> None:
    """Addresses that run a program: `EXEC:cat x`."""
    for word in words:
        kind, _, text = (constant_text(word) or "").partition(":")
        if kind.upper() in {"EXEC", "SYSTEM", "SHELL"}:
            found.inners.append(Inner(name, script=constant(text), strict=True))


OTHERS = {
    ".": _source_file,
    "alias": _alias,
    "fd": _fd,
    "fdfind": _fd,
    "find": _find,
    "gfind": _find,
    "git": _git,
    "hash": _hash,
    "jobs": _jobs,
    "socat": _socat,
    "source": _source_file,
    "trap": _trap,
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(CONTAINERS, _contained),
    **dict.fromkeys(("pwsh", "powershell"), _encoded),
}
