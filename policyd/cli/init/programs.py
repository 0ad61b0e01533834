"""Absolute paths for programs: clients started from a desktop lack the shell's PATH (`~/.local/bin`, Node)."""

from __future__ import annotations

import os
import shutil
import sys

ENV = (b"#!/usr/bin/env ", b"#!/bin/env ")


def policyd() -> list[str]:
    """Return the command that starts this policyd, with an absolute path."""
    called = os.path.abspath(sys.argv[0])
    beside = os.path.join(os.path.dirname(sys.executable), "policyd")
    for path in (called, beside):
        if os.path.basename(path) == "policyd" and os.access(path, os.X_OK) and os.path.isfile(path):
            return [path]
    return [sys.executable, "-P", "-m", "policyd"]


def absolute(command: list[str], install: str = "") -> tuple[list[str], str]:
    """Return a command with an absolute path to its program, and a problem in words, or empty.

    A script that names its interpreter by `env` is started by that interpreter, absolutely too. `install`: the command
    that installs it, if that is known.
    """
    found = shutil.which(command[0])
    if found is None:
        if "/" in command[0]:
            return command, f"`{command[0]}` is no program that can be run: write the path of one"
        by = f" (`{install}`)" if install else ""
        return command, f"`{command[0]}` was not found on PATH: install it{by}, or write its absolute path in its place"
    program = os.path.abspath(found)
    interpreter = named_by_env(program)
    if not interpreter:
        return [program, *command[1:]], ""
    path = shutil.which(interpreter)
    if path is None:
        return [program, *command[1:]], f"{program} needs `{interpreter}`, which was not found on PATH"
    return [os.path.abspath(path), program, *command[1:]], ""


def named_by_env(program: str) -> str:
    """Return the interpreter that an `env` script names, empty for any other program."""
    try:
        with open(program, "rb") as file:
            first = file.readline(256)
    except OSError:
        return ""
    words = next((first[len(start) :].split() for start in ENV if first.startswith(start)), [])
    return words[0].decode("utf-8", "replace") if len(words) == 1 else ""
