"""Facts from the kernel about other processes: parent, start time, command line, whether they have ended."""

from __future__ import annotations

import os
import sys

from policyd.storage.clock import boot_id

PROC = "/proc"
DEEPEST = 100
"""Processes above one that are looked at."""


def born(pid: int) -> int:
    """Return when a process was started, in the kernel's ticks; 0 where that cannot be told."""
    try:
        return int(_stat(pid)[19])
    except (OSError, ValueError, IndexError):
        return 0


def run_word() -> str:
    """Return a random word by which others can tell whether the process that made it has ended."""
    pid = os.getpid()
    return f"{pid}-{born(pid)}-{_numbering()}-{os.urandom(8).hex()}"


def ended(word: str) -> bool:
    """Say whether the process that made a word is surely there no more."""
    parts = word.split("-")
    if len(parts) != 4 or not (parts[0].isdecimal() and parts[1].isdecimal()) or parts[1] == "0":
        return False
    if parts[2] != _numbering() or parts[2] == "0":
        return False
    now = born(int(parts[0]))
    return now != int(parts[1]) if now else _gone(int(parts[0]))


def _gone(pid: int) -> bool:
    """Say whether there is no process of this id; the system may show nobody but root those of others."""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, ProcessLookupError)
    return False


def _numbering() -> str:
    """Return by which numbering of processes this one has its id, `0` where that cannot be told.

    Every machine calls its own the same, and a home may be on several: the start of the machine is named too.
    """
    try:
        if os.readlink(f"{PROC}/self") != str(os.getpid()) or not boot_id():
            return "0"
        return f"{boot_id().replace('-', '')}.{os.stat(f'{PROC}/self/ns/pid').st_ino}"
    except OSError:
        return "0"


def process(pid: int) -> tuple[int, list[str]]:
    """Return the parent and the words of a process; -1 where it cannot be looked at."""
    if sys.platform == "darwin":
        return _by_ps(pid)
    try:
        parent = int(_stat(pid)[1])
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            return parent, file.read().decode(errors="replace").split("\0")
    except (OSError, ValueError, IndexError):
        return -1, []


def runs_agent(words: list[str]) -> bool:
    """Say whether a command line is a policyd that has an agent below it."""
    names = [word.rpartition("/")[2] for word in words]
    return any(name == "policyd" and words[at + 1 : at + 2] in (["proxy"], ["serve"]) for at, name in enumerate(names))


def _stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name, which may hold anything."""
    with open(f"{PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _by_ps(pid: int) -> tuple[int, list[str]]:
    import subprocess

    command = ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)]
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return (int(words[0]), words[1:]) if words and words[0].isdigit() else (-1, [])
