"""`policyd init PRESET`: a starter policy, on stdout, or with `--write` in the user's policy directory.

A file that is there already is never overwritten: the command says so and leaves it to the person.
"""

from __future__ import annotations

import argparse
import os
import sys

from policyd.cli import presets
from policyd.storage import places
from policyd.storage.places import PlaceError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd init`."""
    what = "; ".join(f"{name}: {text}" for name, text in presets.PRESETS.items())
    parser.add_argument("preset", nargs="?", choices=tuple(presets.PRESETS), help=what)
    parser.add_argument("--write", action="store_true", help="write it where policyd reads it, instead of printing it")
    parser.add_argument("--home", metavar="DIR", help="home directory, with everything policyd keeps below it")


def run(args: argparse.Namespace) -> int:
    """Print or write a starter policy; return the exit code."""
    if args.preset is None:
        print("starter policies:", *(f"  {n:<10} {t}" for n, t in presets.PRESETS.items()), sep="\n")
        return 0
    if not args.write:
        print(presets.text(args.preset), end="")
        return 0
    return write(args)


def write(args: argparse.Namespace) -> int:
    """Write the preset into the user's policy directory."""
    try:
        directory = places.find(home=args.home).user_policies
    except PlaceError as error:
        print(f"policyd: {error}", file=sys.stderr)
        return 2
    path = os.path.join(directory, f"{args.preset}.toml")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        print(f"policyd: {path} is there already and was left as it is", file=sys.stderr)
        return 2
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(presets.text(args.preset))
    print(f"wrote {path}; `policyd check` validates it, `policyd status` shows what is in force")
    return 0
