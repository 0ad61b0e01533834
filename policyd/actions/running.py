"""Which commands run, remove or signal policyd.

Rules:

1. policyd is run by its name, as a module or a script of Python, and by programs that fetch or start others (`uvx`,
   `poetry run`); what installs or removes packages and names it changes it.
2. A signal by name is judged by what the name can match: a pattern of `pkill` against the command lines policyd has,
   a name of `killall` or a unit of `systemctl` as a glob. What is unknown may match.
3. A number may be any process: only those that surely reach others than one's own are marked (`-1`, `0`, `$PPID`).
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from policyd.model import SimpleCommand, Word, WordKind

PROGRAM = "policyd"
FINDERS = frozenset({"pkill", "pgrep"})
"""They take a regular expression over names, or over whole command lines."""
NAMERS = frozenset({"killall", "pidof", "systemctl", "service", "launchctl", "skill", "snice"})
SIGNALLERS = frozenset({*FINDERS, *NAMERS, "kill", "killall5", "xkill", "fuser"})
RUNNERS = frozenset({"uvx", "uv", "pipx", "poetry", "pdm", "hatch", "rye", "pixi", "conda", "mamba", "micromamba"})
PACKAGERS = frozenset({"pip", "pip3", "apt", "apt-get", "dpkg", "dnf", "yum", "pacman", "apk", "brew", "port", "snap"})
STARTERS = RUNNERS | PACKAGERS | {"npx", "pnpx", "bunx", "nix", "nix-shell", "mise", "asdf", "flatpak"}
"""Programs that run others by name, or install and remove them."""
LINES = (
    "policyd",
    "python",
    "python3",
    "/usr/bin/policyd proxy -- agent",
    "/usr/bin/python3 /usr/bin/policyd proxy -- agent",
    "/usr/bin/python3 -m policyd serve",
)
"""What policyd's processes are called."""
SCRIPTS = tuple(f"/{PROGRAM}/{name}" for name in ("__main__.py", "cli/__init__.py", "cli/__main__.py"))
LONGEST = 256
EVERYONE = frozenset({"-1", "0"})
WITH_VALUE = frozenset("WXc")
"""Options of Python that take an argument; what follows `-c` and `-m` is the program's."""


def runs_policyd(command: SimpleCommand) -> str:
    """Say which of policyd's things `command` (or what it wraps) runs or signals, `""` if none."""
    if command.inner is not None and (reason := runs_policyd(command.inner)):
        return reason
    if not command.argv:
        return ""
    name, words = _base(command.argv[0].text), command.argv[1:]
    if _is_policyd(name) or (name.startswith(("python", "pypy")) and _of_python([word.text for word in words])):
        return "program"
    if name in STARTERS and any(_names(word.text) for word in words):
        return "program"
    return "process" if name in SIGNALLERS and _signals(name, words, command.text) else ""


def _base(text: str) -> str:
    return text.rsplit("/", 1)[-1]


def _is_policyd(name: str) -> bool:
    return name.casefold() in {PROGRAM, f"{PROGRAM}.exe"}


def _names(text: str) -> bool:
    """Say whether a word names policyd as a package or program: `policyd==1`, `policyd[cli]`, `nixpkgs#policyd`."""
    name = text.casefold().rsplit("#", 1)[-1].rsplit("/", 1)[-1].rsplit("=", 1)[-1] if "==" not in text else text
    for mark in "=@[<>~!; ":
        name = name.partition(mark)[0]
    return _is_policyd(name)


def _of_python(words: list[str]) -> bool:
    """Say whether the words of a Python interpreter start policyd: `-m policyd`, `-Im policyd.cli`, its script."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or word == "-":
            return _is_policyd(_base(word)) or f"/{word}".endswith(SCRIPTS)
        for place, letter in enumerate(word[1:] if not word.startswith("--") else "", 1):
            rest = word[place + 1 :] or (words[at + 1] if at + 1 < len(words) else "")
            if letter == "m":
                return rest.partition(".")[0] == PROGRAM
            if letter == "c":
                return PROGRAM in rest
            if letter in WITH_VALUE:
                at += 0 if word[place + 1 :] else 1
                break
        at += 1
    return False


def _signals(name: str, words: tuple[Word, ...], text: str) -> bool:
    if PROGRAM in text.casefold():
        return True
    if name == "kill":
        return "PPID" in text or _everyone(words)
    targets = [word for word in words if not word.text.startswith("-")]
    if name in FINDERS:
        return any(word.kind is WordKind.UNKNOWN or _matches(word.text) for word in targets)
    return name in NAMERS and any(word.kind is WordKind.UNKNOWN or _fits(word.text) for word in targets)


def _matches(pattern: str) -> bool:
    """Say whether a regular expression may match one of policyd's command lines; one that cannot be parsed may."""
    import re2

    options = re2.Options()
    options.log_errors, options.case_sensitive = False, False
    try:
        found = re2.compile(pattern, options) if len(pattern) <= LONGEST else None
    except re2.error:
        return True
    return found is None or any(found.search(line) for line in LINES)


def _fits(pattern: str) -> bool:
    name = pattern.casefold()
    return len(name) > LONGEST or any(
        fnmatchcase(own, name) for own in (PROGRAM, f"{PROGRAM}.service", f"{PROGRAM}.socket")
    )


def _everyone(words: tuple[Word, ...]) -> bool:
    """Say whether a `kill` reaches every process: a target of -1 or 0 behind the signal."""
    targets = [word.text for word in words]
    if targets and targets[0].startswith("-") and targets[0] not in {"--", "-s", "-n"}:
        targets = targets[1:] or targets
    return any(target in EVERYONE for target in targets)
