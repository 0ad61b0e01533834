"""`policyd serve`: the daemon, on a socket or on standard input and output.

Exit codes: 0 it was asked to end, or its only peer has gone; 2 usage, settings, policy, or the socket is unavailable.
"""

from __future__ import annotations

import argparse
import os

from policyd.cli import options
from policyd.proxy.options import SHELLS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd serve`."""
    add = parser.add_argument
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--socket", metavar="PATH", help="where to listen (default: the system's or the user's place)")
    where.add_argument("--stdio", action="store_true", help="serve one peer on standard input and output")
    add("--group", action="append", default=[], metavar="NAME", help="members of this group may connect too")
    options.add_policies(parser)
    add("--prompt", action="append", default=[], metavar="STEP", help=options.STEPS)
    add("--agent", metavar="NAME", help="which agent a peer has that does not say")
    add("--label", action="append", default=[], type=options.label, metavar="KEY=VALUE", help=options.LABEL)
    add("--shell", choices=SHELLS, help="the shell agents run commands with")
    options.add_home(parser)
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
