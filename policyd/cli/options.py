"""The options that commands share.

`add_deciding` is for every command that decides; `add_offline` only for those that decide offline: `proxy` and `serve`
must not have options that leave out a layer.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from policyd.proxy.options import SHELLS, is_digest

PROMPTS = ("none", "client", "inbox", "command:/path")
STEPS = f"who is asked: {', '.join(PROMPTS)} (repeatable, in order)"
POLICY = "policy file or directory, instead of the user's (repeatable)"
DIGEST = "sha256:… of a policy file that lies in the workspace: it may loosen too (repeatable)"
LABEL = "a label that rules may name (repeatable)"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
NO_PROJECT = "leave the project layer out"
MOST_DIGITS = 9


def add_deciding(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands that decide."""
    add_policies(parser)
    add = parser.add_argument
    add("--cwd", type=directory, metavar="DIR", help="working directory of sessions that were not seen to open")
    add("--agent", default="", metavar="NAME", help="which agent this is, until it names itself")
    add("--label", action="append", default=[], type=label, metavar="KEY=VALUE", help=LABEL)
    add("--prompt", action="extend", default=[], type=prompt, metavar="STEP", help=STEPS)
    add("--shell", default="", choices=SHELLS, help="the shell the agent runs commands with (default: the setting's)")
    add_home(parser)
    add("--no-grants", action="store_true", help="remembered answers count for nothing")


def add_offline(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that decide offline only."""
    add_managed(parser)
    add_project(parser, "the session's")
    what = "nobody is there: what would be asked is denied"
    parser.add_argument("--unattended", action="store_true", help=what)


def add_policies(parser: argparse.ArgumentParser) -> None:
    """Add the options that replace the user's policies."""
    parser.add_argument("--policy", action="append", default=[], type=named, metavar="FILE", help=POLICY)
    parser.add_argument("--policy-digest", action="append", default=[], type=digest, metavar="DIGEST", help=DIGEST)


def add_managed(parser: argparse.ArgumentParser) -> None:
    """Add the options that replace the managed layer, offline."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--managed", metavar="DIR", help="directory of managed policies, instead of the system's")
    group.add_argument("--no-managed", action="store_true", help="leave the managed layer out")


def add_project(parser: argparse.ArgumentParser, usual: str) -> None:
    """Add the options that replace the project layer, offline; `usual` names the default root."""
    group = parser.add_mutually_exclusive_group()
    whose = f"project root whose .policyd counts, instead of {usual}"
    group.add_argument("--project", type=project, metavar="DIR", help=whose)
    group.add_argument("--no-project", action="store_true", help=NO_PROJECT)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


def add_home(parser: argparse.ArgumentParser, **more: Any) -> None:  # noqa: ANN401
    """Add `--home`."""
    parser.add_argument("--home", metavar="DIR", help="home directory, with everything policyd keeps below it", **more)


def add_socket(parser: argparse.ArgumentParser, **more: Any) -> None:  # noqa: ANN401
    """Add `--socket`."""
    parser.add_argument("--socket", metavar="PATH", help="the daemon's socket (default: where it usually is)", **more)


def subcommands(
    parser: argparse.ArgumentParser, *shared: Callable[..., None]
) -> Callable[[str, str, Callable[..., int]], argparse.ArgumentParser]:
    """Return a function that adds a subcommand; `shared` options may come before or after its name."""
    for add in shared:
        add(parser)
    commands = parser.add_subparsers(dest="does", required=True, metavar="COMMAND")

    def command(name: str, text: str, does: Callable[..., int]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=does)
        for add in shared:
            add(added, default=argparse.SUPPRESS)
        return added

    return command


def directory(text: str) -> str:
    """Return the absolute path of `text`, links unresolved."""
    return os.path.normpath(os.path.join(os.getcwd(), os.path.expanduser(text)))


def project(text: str) -> str:
    """Return the absolute path of an existing directory."""
    if not os.path.isdir(path := directory(text)):
        raise argparse.ArgumentTypeError(f"`{text}` is no directory; name one that is there")
    return path


def counting(things: str, least: int) -> Callable[[str], int]:
    """Return the parser of a number of things, at least `least`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > MOST_DIGITS or int(text) < least:
            raise argparse.ArgumentTypeError(f"`{text}` is no number of {things}; write {least} or more")
        return int(text)

    return read


def span(text: str) -> timedelta | None:
    """Parse `30m`, `8h`, `7d`; None for anything else."""
    found = re.fullmatch(r"(\d{1,7})([smhdw])", text)
    return timedelta(seconds=int(found[1]) * UNITS[found[2]]) if found else None


def named(text: str) -> str:
    """Refuse an empty file name: an unset variable must not stand for the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("it needs a value")
    return text


def digest(text: str) -> str:
    """Check the digest of a policy file."""
    if not is_digest(text):
        raise argparse.ArgumentTypeError(f"`{text}` is no digest; write sha256: and the 64 hex digits of `sha256sum`")
    return text


def label(text: str) -> tuple[str, str]:
    """Parse `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is no label; write KEY=VALUE")
    return key, value


def prompt(text: str) -> tuple[str, ...]:
    """Parse a prompt chain: its steps in order, empty for `none`."""
    parts = [part.strip() for part in text.split(",")]
    if parts == ["none"]:
        return ()
    for part in parts:
        if part not in {"client", "inbox"} and not part.startswith("command:/"):
            raise argparse.ArgumentTypeError(f"`{part}` is no prompt; write {', '.join(PROMPTS)}")
    return tuple(parts)
