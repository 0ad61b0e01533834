"""A directory with nothing but stub programs on PATH, and shells run in it: what really ran, and what was written.

Rules of this module:

1. Every run ends: after `_LONGEST` seconds its whole process group is killed, whatever it started. What is left in the
   background is waited for up to then.
2. A run writes below its scratch directory only, as its texts name bare files and climb no further than `_DEEP`.
3. `fits` says whether a command that was read may be a run: there, with these words. A word that is not known fits any.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from policyd.commands import read
from policyd.model import FileUse, Reading, Role, SimpleCommand, Word, WordKind
from policyd.storage.filesystem import RealFilesystem
from tests.commands_generator import PROGRAMS, TOOLS

BASH = ("/bin/bash", "--noprofile", "--norc")
_STUB = """#!/bin/sh
printf '%s\\037' "$(pwd -P)" "${0##*/}" "$@" '\x1e' >> "$LOG"
case "${0##*/}" in p2|p4) exit 1;; p3) printf '%s\\n' "$@";; git) echo abc123; exit 1;; cat) exec /bin/cat "$@";; esac
"""
_LINKED = (*TOOLS, "basename", "dirname", "seq")
_FILES = ("f.txt", "g", "1.q", "2.q", "d/g")
_TEXT = "a b\nd\n"
_DEEP = 12
_LONGEST = 3.0
_LIMITS = 'ulimit -t 2 -f 2048 -c 0 -u 4096; exec "$@"'
_HIGH = 200
"""A descriptor no text knows of: every process of a run holds it until it ends."""


class Outcome(Struct):
    """What a text did."""

    runs: list[list[str]]
    """The programs that ran: where, and with which words."""
    written: list[str]
    """The files that were made or changed."""


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with stub programs and a few links to harmless tools."""
    place = tmp_path_factory.mktemp("stubs")
    for name in PROGRAMS:
        (place / name).write_text(_STUB)
        (place / name).chmod(0o755)
    for name in _LINKED:
        (place / name).symlink_to(Path("/usr/bin") / name)
    return place


def home(scratch: Path) -> Path:
    """Return the home directory of what runs in `scratch`."""
    return scratch / "h"


def work(scratch: Path) -> Path:
    """Return where what runs in `scratch` starts."""
    return scratch.joinpath("r", *map(str, range(_DEEP)), "w")


def reading(text: str, scratch: Path, shell: str = "bash") -> Reading:
    """Read a text where it is run."""
    return read(text, cwd=(str(work(scratch)),), home=str(home(scratch)), shell=shell, fs=RealFilesystem())


def outcome(text: str, stubs: Path, scratch: Path, shell: Sequence[str] = BASH) -> Outcome:
    """Run a text where nothing is left of the one before."""
    log = scratch / "log"
    log.write_text("")
    if not work(scratch).exists():
        _laid_out(scratch)
    env = {"PATH": str(stubs), "LOG": str(log), "HOME": str(home(scratch)), "OLDPWD": str(work(scratch).parent)}
    _run(["/bin/sh", "-c", _LIMITS, "_", *shell, "-c", text], work(scratch), env)
    records = log.read_bytes().decode(errors="replace").split("\x1e")
    runs = [record.removeprefix("\x1f").split("\x1f")[:-1] for record in records if record.strip("\x1f")]
    return Outcome(runs, sorted(_taken_back(scratch)))


def _laid_out(scratch: Path) -> None:
    here = work(scratch)
    (here / "d" / "e").mkdir(parents=True)
    home(scratch).mkdir()
    for name in _FILES:
        (here / name).write_text(_TEXT)
    (here / "l").symlink_to("d/e")


def _taken_back(scratch: Path) -> Iterator[str]:
    """Put everything back as it was; yield the files that were made or changed."""
    ours = {str(work(scratch) / name) for name in _FILES}
    for place in (scratch / "r", home(scratch)):
        for folder, _, names in os.walk(place):
            for path in (os.path.join(folder, name) for name in names):
                if path not in ours:
                    os.unlink(path)
                elif Path(path).read_text(errors="replace") == _TEXT:
                    continue
                else:
                    Path(path).write_text(_TEXT)
                yield path


def _run(argv: Sequence[str], where: Path, env: dict[str, str]) -> None:
    watched, held = os.pipe()
    lifeline = fcntl.fcntl(held, fcntl.F_DUPFD, _HIGH)
    os.close(held)
    nothing = subprocess.DEVNULL
    started = subprocess.Popen(
        argv, cwd=where, env=env, stdin=nothing, stdout=nothing, stderr=nothing,
        start_new_session=True, pass_fds=(lifeline,),
    )  # fmt: skip
    os.close(lifeline)
    select.select([watched], [], [], _LONGEST)  # the end of the file: nobody holds it any more
    os.close(watched)
    with contextlib.suppress(ProcessLookupError):  # all of it has ended
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


# ---- what was read -----------------------------------------------------------------------------------------------


def levels(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """Yield a command and what it wraps."""
    here: SimpleCommand | None = command
    while here is not None:
        yield here
        here = here.inner


def fits(command: SimpleCommand, run: list[str]) -> bool:
    """Say whether a command may be the one that ran."""
    where, *argv = run
    if command.cwd and where not in [os.path.realpath(place) for place in command.cwd]:
        return False
    pattern = "".join(map(_word, command.argv))
    return re.fullmatch(pattern, "".join(f"{word}\x1f" for word in argv), re.DOTALL) is not None


def _word(word: Word) -> str:
    """Return the expression of the words that one may become, each with a separator behind it."""
    if word.text == "/dev/fd/63":
        return "/dev/fd/[0-9]+\x1f"
    if word.kind is WordKind.CONST:
        return re.escape(word.text) + "\x1f"
    if word.kind is WordKind.GLOB:
        return f"(?:(?:{_glob(word.text)})\x1f)*"
    one = re.escape(word.prefix) + "[^\x1f]*\x1f"
    return f"(?:{one})?(?:[^\x1f]*\x1f)*" if word.many else one


def _glob(text: str) -> str:
    """Return the expression of what a pattern matches, or is where it matches nothing."""
    acting = {"*": "[^\x1f]*", "?": "[^\x1f]"}
    parts = re.findall(r"\\.|\[[^]]+\]|.", text, re.DOTALL)
    pattern = "".join(part if len(part) > 2 else acting.get(part) or re.escape(part[-1]) for part in parts)
    return pattern + "|" + re.escape(re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL))


def opens(use: FileUse, path: str) -> bool:
    """Say whether a redirection that was read may be the one that wrote a file."""
    if use.role is not Role.REDIRECT or use.kind != "edit":
        return False
    if use.word.kind is not WordKind.CONST or not use.cwd:
        return True
    return path in [os.path.realpath(os.path.join(place, use.word.text)) for place in use.cwd]


def contradicted(text: str, stubs: Path, scratch: Path, shell: Sequence[str] = BASH) -> list[object]:
    """Return the programs that ran and the files that were written otherwise than the reading of a text says.

    Nothing is, where a part is said not to be understood.
    """
    found = reading(text, scratch, Path(shell[0]).name)
    if found.opaque:
        return []
    seen = outcome(text, stubs, scratch, shell)
    commands = [level for command in found.commands for level in levels(command)]
    runs: list[object] = [run for run in seen.runs if not any(fits(command, run) for command in commands)]
    return runs + [path for path in seen.written if not any(opens(use, os.path.realpath(path)) for use in found.files)]
