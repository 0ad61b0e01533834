"""`policyd status`: what is in force here, from which files, whether a proxy would start, and a daemon's state.

A daemon is asked if one listens at the usual place, or at `--socket`; it need not run.

Exit code 0: all is well; 1: an error keeps a proxy from starting, everything in the project is at least ask, or the
daemon has a problem (a bad edit, an audit log that cannot be written); 2: the check failed, or the daemon does not
answer.
"""

from __future__ import annotations

import argparse
import json

import policyd
from policyd.cli import daemonstate, inforce, options
from policyd.cli.daemonstate import Running
from policyd.cli.ending import counted
from policyd.cli.inforce import InForce
from policyd.cli.saying import say_results
from policyd.model import Layer
from policyd.storage.settings import Loaded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd status`."""
    add_place(parser)
    options.add_socket(parser)
    options.add_json(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the policies and the project."""
    parser.add_argument("--cwd", type=options.project, metavar="DIR", help="the project (default: here)")
    parser.add_argument("--policy", action="append", default=[], metavar="FILE", help=options.POLICY)
    options.add_home(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is in force; return the exit code."""
    state = inforce.gather(args.cwd or options.directory("."), args.home, args.policy)
    running = daemonstate.find(state.places, args.socket)
    said = [*lines(state), *(daemonstate.lines(running) if running else ())]
    say_results([{**inforce.facts(state), "daemon": daemon_facts(running)}], said, as_json=args.json)
    sound = state.holds and not state.broken and not state.mute
    return 0 if sound and not (running and running.problems) else 1


def daemon_facts(running: Running | None) -> dict[str, object] | None:
    """Return the daemon's state and socket, None without a daemon."""
    return {"socket": running.socket, **running.state} if running else None


def lines(state: InForce) -> list[str]:
    """Return the state as lines for people."""
    policy = state.policy
    rules = counted(len(policy.rules) if policy else 0, "rule")
    said = [f"policyd {policyd.__version__}, revision {policy.revision if policy else 'none'}, {rules}"]
    names = {(one.layer, one.file): one for one in (policy.names if policy else ()) if one.revision}
    for row in inforce.layer_facts(state):
        said.append(f"  {row['layer']:<8} {row['file']}{trust_words(row, state)}")
        if own := names.get((str(row["layer"]), str(row["file"]))):
            said.append(f"  named    {own.name}, its revision {own.revision}")
    if not state.found.sources and not state.errors:
        said.append("  no policy file: everything asks (`policyd init default --write` writes a starter)")
    if policy and policy.lock.refuse:
        said.append(f"  lock     refuses {', '.join(sorted(policy.lock.refuse))}")
    if state.loaded:
        said += [f"  setting  {text}" for text in settings_set(state.loaded)]
    said.append(f"  audit    {state.audit}")
    said += [f"  note     {note}" for note in state.notes]
    said += [f"  error    {error}" for error in (*state.errors, state.mute, state.broken) if error]
    here = "; in this project everything is at least ask" if state.broken else ""
    said.append(f"in force{here}" if state.holds else "a proxy would not start")
    return said


def trust_words(row: dict[str, object], state: InForce) -> str:
    """Return what a project file may do."""
    if "trusted" not in row:
        return ""
    if state.policy and (why := state.policy.lock.voids(Layer.PROJECT, trusted=True)):
        return f" (only tightens: {why})"
    if not str(row["file"]).startswith(f"{state.root.rstrip('/')}/.policyd/"):
        return " (lies in this directory: here it only tightens)"
    return " (trusted)" if row["trusted"] else " (only tightens; `policyd trust` lets it allow)"


def settings_set(loaded: Loaded) -> list[str]:
    """Return the settings that differ from the default or are locked."""
    return [
        f"{key}{shown(row['value'])} ({row['from']}{', locked' if row['locked'] else ''})"
        for key, row in inforce.setting_facts(loaded).items()
        if row["from"] != "default" or row["locked"]
    ]


def shown(value: object) -> str:
    """Return a setting's value as in a file, empty if it has none."""
    return "" if value in ("", None, {}) else f" = {json.dumps(value)}"
