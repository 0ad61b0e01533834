"""`policyd serve`: the daemon, on a socket or on standard input and output.

Exit codes: 0 it was told to end, or its one peer has gone; 2 usage, settings, policy, or the socket cannot be had.
"""

from __future__ import annotations

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd serve`."""
    add = parser.add_argument
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--socket", metavar="PATH", help="where to listen (default: the system's or the user's place)")
    where.add_argument("--stdio", action="store_true", help="serve one peer on standard input and output")
    add("--group", action="append", default=[], metavar="NAME", help="members of this group may connect too")
    add("--policy", action="append", default=[], metavar="FILE", help="a policy file; stands in for the user layer")
    add("--policy-digest", action="append", default=[], metavar="DIGEST", help="sha256:... that policy files must have")
    add("--prompt", action="append", default=[], metavar="STEP", help="none, client, inbox or command:/path, in order")
    add("--agent", metavar="NAME", help="which agent peers have that do not say")
    add("--label", action="append", default=[], type=label, metavar="KEY=VALUE", help="a label that rules may name")
    add("--shell", metavar="NAME", help="the shell agents run commands with (bash, zsh, sh)")
    add("--home", metavar="DIR", help="home directory, with everything policyd keeps below it")
    add("--audit", metavar="PATH", help="the audit log, a file or a directory")
    add("--no-grants", action="store_true", help="remembered answers count for nothing")


def run(args: argparse.Namespace) -> int:
    """Serve; return the exit code."""
    from policyd.daemon import Options, serve
    from policyd.service import Choices

    choices = Choices(
        policies=tuple(os.path.abspath(policy) for policy in args.policy),
        digests=tuple(args.policy_digest),
        prompt=tuple(args.prompt),
        labels=dict(args.label),
        agent=args.agent,
        shell=args.shell,
        home=args.home,
        audit=args.audit,
        grants=not args.no_grants,
        transport="daemon",
    )
    return serve(Options(choices, args.socket, args.stdio, tuple(args.group)))


def label(text: str) -> tuple[str, str]:
    """Return key and value of a `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError("write KEY=VALUE")
    return key, value
