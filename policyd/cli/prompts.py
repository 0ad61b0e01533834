"""`policyd prompts`: list the questions waiting in the inbox, and answer one.

    policyd prompts list [--json]
    policyd prompts answer ID allow|reject [--option OPTION] [--message TEXT]

Questions come from two places: the user's own inbox (written by proxies and the user's daemon), and the daemon at the
socket, which may be another user's. Answering needs a person: a terminal of its own, not below a running agent; the
daemon verifies that again. Exit codes: 0 done, even if nothing waits; 1 the named question does not wait; 2 usage, or
refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from policyd.cli import calling, options, presence
from policyd.cli.ending import DONE, NO, complain, failed
from policyd.cli.saying import say, say_results
from policyd.cli.shapes import listed, table, tables
from policyd.display import safe
from policyd.storage import places, sockets
from policyd.storage.inbox import Inbox
from policyd.storage.places import Places
from policyd.storage.sockets import SocketError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    command = options.subcommands(parser, options.add_home, options.add_socket)
    options.add_json(command("list", "the questions that wait for a person", run_list))
    answer = command("answer", "answer one question", run_answer)
    answer.add_argument("id", metavar="ID", help="as `policyd prompts list` shows it")
    answer.add_argument("decision", choices=("allow", "reject"), help="yes or no, to exactly this question")
    answer.add_argument("--option", metavar="OPTION", help="the id of the option to choose (default: the plain one)")
    answer.add_argument("--message", metavar="TEXT", default="", help="why, for the agent and the record")


def run(args: argparse.Namespace) -> int:
    """Run one subcommand."""
    return int(args.run(args, places.find(home=args.home)))


def run_list(args: argparse.Namespace, where: Places) -> int:
    """Print what waits."""
    rows = {
        str(row["id"]): row for row in [*of_daemon(args, where), *(one.facts() for one in Inbox(where.inbox).entries())]
    }
    lines = [line for row in rows.values() for line in words(row)]
    say_results(rows.values(), lines or ["no question waits"], as_json=args.json)
    return DONE


def run_answer(args: argparse.Namespace, where: Places) -> int:
    """Answer one question, wherever it waits."""
    if why := presence.refusal():
        return failed("prompts answer", why)
    own = Inbox(where.inbox)
    if any(entry.id == args.id for entry in own.entries()):
        own.answer(args.id, args.decision, option=args.option, message=args.message)
    elif any(row.get("id") == args.id for row in of_daemon(args, where)):
        given = {"id": args.id, "decision": args.decision, "message": args.message}
        chosen = {"option": args.option} if args.option else {}
        asked(sockets.find(where, args.socket), {"answer": {**given, **chosen}})
    else:
        complain("prompts", f"no question `{safe(args.id)}` waits; `policyd prompts list` shows which do")
        return NO
    say(f"{args.id}: {args.decision}")
    return DONE


def of_daemon(args: argparse.Namespace, where: Places) -> list[Mapping[str, object]]:
    """Return the questions at the daemon; none without a daemon, unless it was named."""
    try:
        found = asked(sockets.find(where, args.socket), {}).get("prompts")
    except SocketError:
        if args.socket:
            raise
        return []
    return tables(found)


def asked(path: str, params: Mapping[str, object]) -> dict[str, object]:
    """Return the answer of the daemon at `path` to `_policyd/prompts`; SocketError if it refuses or is missing."""
    return calling.asked(path, "_policyd/prompts", params, by="policyd prompts")


def words(row: Mapping[str, object]) -> list[str]:
    """Return a question as lines for people."""
    question = table(row.get("question"))
    state = f"rejected: {row['rejected']}" if row.get("rejected") else f"until {str(row.get('until'))[:19]}Z"
    lines = [f"{row.get('id')}  {question.get('agent') or 'an agent'} in {question.get('project') or '?'}  ({state})"]
    lines += [f"    {part}" for part in listed(question.get("actions"))]
    lines += [f"    because: {question.get('reason')}"] if question.get("reason") else []
    lines += [f"    --option {one.get('id')}  {one.get('name')}" for one in tables(question.get("options"))]
    return [safe(line) for line in lines]
