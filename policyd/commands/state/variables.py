"""Which variables an allow rule may overlook, and the `env` condition of a rule.

Rules of this module:

1. The harmless list holds names that no usual program takes a program or an option from. Their value is known, leads
   nowhere as a path and holds nothing that make or a shell's arithmetic would run: make expands what it takes from
   variables.
2. `NAME` tolerates every value, `NAME=glob` the constant values that match (`*` crosses neither `/` nor `:`, `**`
   crosses all, a backslash makes the next character literal), `*` every name. A path in the directory the command runs
   in is written as if it were relative.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from policyd.commands.lexing.patternwords import glob, pieces
from policyd.model import Assignment, Word, WordKind

_SOURCES = {
    "every program": "CI",
    "no-color.org, bixense.com/clicolors, force-color.org": "NO_COLOR CLICOLOR CLICOLOR_FORCE FORCE_COLOR PY_COLORS "
    "COLORTERM",
    "environ(7), locale(7), tzset(3), POSIX": "COLUMNS LINES LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE "
    "LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME TERM TZ",
    "debconf(7)": "DEBIAN_FRONTEND",
    "git(1)": "GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT",
    "python(1)": "PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED",
    "Rust, std::backtrace": "RUST_BACKTRACE RUST_LIB_BACKTRACE",
    "Go, package runtime": "GOTRACEBACK",
    "node(1)": "NODE_NO_WARNINGS",
    "consoledonottrack.com and the tools' own telemetry pages": "DO_NOT_TRACK NEXT_TELEMETRY_DISABLED "
    "DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_NOLOGO GATSBY_TELEMETRY_DISABLED ASTRO_TELEMETRY_DISABLED "
    "TURBO_TELEMETRY_DISABLED",
    "pip(1), Homebrew manual, Terraform CLI": "PIP_DISABLE_PIP_VERSION_CHECK HOMEBREW_NO_AUTO_UPDATE TF_IN_AUTOMATION "
    "CHECKPOINT_DISABLE",
}
HARMLESS = {name: source for source, names in _SOURCES.items() for name in names.split()}
"""Variables that are harmless for every program -> where that was read."""


_RUNS = re.compile(r"[$`]").search
_PATH = re.compile(r":?/|(?:.*/)?\.\.(?:/|$)", re.DOTALL).match
"""What a language or a time zone may be a file by: messages read from it are formats."""


def harmless(name: str, value: Word | None) -> bool:
    """Say whether setting `name` to `value` leaves what a command does alone."""
    if name not in HARMLESS or value is None or value.kind is not WordKind.CONST:
        return False
    return not _RUNS(value.text) and not _PATH(value.text)


def tolerated(assignment: Assignment, env: Iterable[str], cwd: tuple[str, ...] = ()) -> bool:
    """Say whether an allow rule with the `env` entries may overlook `assignment` where it may run in `cwd`."""
    return harmless(assignment.name, assignment.value) or any(_entry(entry, assignment, cwd) for entry in env)


def _entry(entry: str, assignment: Assignment, cwd: tuple[str, ...]) -> bool:
    name, equals, value = entry.partition("=")
    if name not in {assignment.name, "*"}:
        return False
    if not equals:
        return True
    if assignment.value.kind is not WordKind.CONST:
        return False
    wanted, text = pieces(value, escapes=True), assignment.value.text
    if "*" in value and _RUNS(text):
        return False
    if glob(wanted, text, stops="/:"):
        return True
    return bool(cwd) and text.startswith("/") and all(glob(wanted, near(text, place), stops="/:") for place in cwd)


def near(text: str, place: str) -> str:
    """Return a path as it is written in the directory `place`, unchanged where it lies elsewhere."""
    if text == place:
        return "."
    return text[len(place) + 1 :] if text.startswith(place + "/") else text
