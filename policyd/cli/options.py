"""The options that commands share, and what they mean.

`add_deciding` is for every command that decides; `add_offline` only for those that decide offline: no option of `proxy`
or `serve` may leave a layer out.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

PROMPTS = ("none", "client", "command:/path/to/program")


def add_deciding(parser: argparse.ArgumentParser) -> None:
    """Add the options of all that decide."""
    add = parser.add_argument
    add("--policy", action="append", default=[], metavar="FILE", help="policy file or directory, instead of the user's")
    add("--policy-digest", action="append", default=[], metavar="sha256:…", help="vouch for a policy in the workspace")
    add("--cwd", type=directory, metavar="DIR", help="working directory of sessions that were not seen to open")
    add("--agent", default="", metavar="NAME", help="agent to assume until it names itself")
    add("--label", action="append", default=[], type=label, metavar="K=V", help="label that policies may ask for")
    add("--prompt", type=prompt, metavar="CHAIN", help=f"how people are asked: {', '.join(PROMPTS)}")
    add("--shell", default="bash", choices=("bash", "sh", "zsh", "powershell", "cmd"), help="shell of command texts")
    add("--home", metavar="DIR", help="home directory, with everything policyd keeps below it")
    add("--no-grants", action="store_true", help="leave remembered answers out")


def add_offline(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that decide offline only."""
    add = parser.add_argument
    managed, project = parser.add_mutually_exclusive_group(), parser.add_mutually_exclusive_group()
    managed.add_argument("--managed", metavar="DIR", help="directory of managed policies, instead of the system's")
    managed.add_argument("--no-managed", action="store_true", help="leave the managed layer out")
    project.add_argument(
        "--project", metavar="DIR", help="project root whose .policyd counts, instead of the session's"
    )
    project.add_argument("--no-project", action="store_true", help="leave the project layer out")
    add("--unattended", action="store_true", help="nobody is there: what would be asked is denied")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object a fact")


def directory(text: str) -> str:
    """Return the absolute path of `text`, links unresolved."""
    return os.path.normpath(os.path.join(os.getcwd(), os.path.expanduser(text)))


def label(text: str) -> tuple[str, str]:
    """Read `K=V`."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is no label; write KEY=VALUE")
    return key, value


def prompt(text: str) -> tuple[str, ...]:
    """Read a prompt chain: its parts in order, none for `none`."""
    parts = [part.strip() for part in text.split(",")]
    if parts == ["none"]:
        return ()
    for part in parts:
        if part not in {"client", "inbox"} and not part.startswith("command:/"):
            raise argparse.ArgumentTypeError(f"`{part}` is no prompt; write {', '.join(PROMPTS)}")
    return tuple(parts)


def labels(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return labels as a table; the last of a name counts."""
    return dict(pairs)
