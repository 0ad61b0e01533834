"""What the kernel says of other processes: who started them, when, with which words, whether they have ended."""

from __future__ import annotations

import os
import sys

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
    return f"{pid}-{born(pid)}-{_namespace()}-{os.urandom(8).hex()}"


def ended(word: str) -> bool:
    """Say whether the process that made a word is surely there no more."""
    parts = word.split("-")
    if len(parts) != 4 or not (parts[0].isdecimal() and parts[1].isdecimal()) or parts[1] == "0":
        return False
    return parts[2] == _namespace() != "0" and born(int(parts[0])) != int(parts[1])


def _namespace() -> str:
    """Return in which numbering of processes this one is, `0` where that cannot be told."""
    try:
        return str(os.stat(f"{PROC}/self/ns/pid").st_ino)
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
