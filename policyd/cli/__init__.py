"""The `policyd` command: looks at its first word and imports only that command's module.

Each command lives in a module or package of this one with `add_arguments(parser)` and `run(args) -> int`; what keeps it
from being done it raises (`ending.expected`), and here is where that is said.
`proxy` is apart: its agent is started before anything heavy is imported, so it parses its own few options.
Exit codes: 0 done; 2 usage or policy errors; others as the command documents.

What the commands share, and what lies behind them:

    saying, ending, options, shapes, colour       printing, exit codes, options, JSON of others, colour
    loading, inforce                              the policies an option names; what a proxy started here would find
    transcript, replay, facts                     requests read from lines, decided again, as JSON
    trials/ trial, tree, drafting, hazards        policies tried on requests nobody made
    trials/ standins, covering                    and compared without any
    presence, calling, daemonstate                whether a person types; a running daemon, and what it says of itself
    advice, jsonc                                 what is known of agents beside their profiles; JSON with comments

    explain/ asked, text, waysout                 what is asked about, what is said of it, what would change it
    suite                                         the files of `policyd test`
    diff/ changes, comparing, recorded            what a change lets through, told from texts, drafts and logs
    findings, expand                              what `policyd check` finds, its patterns written out
    lint/ reach, broad, gaps, places              its warnings, a module a kind
    audit/ filters, cases, show, stats, replay, verify   which records, records as requests; each subcommand
    suggest/ log, rules, write, text, proof       what was answered, the rules of it, and that they hold
    grants/ table, elsewhere                      grants in columns; those that another user's daemon keeps
    doctor/ agentfacts, tiers, wrapped            an agent, who could change what, clients' settings
    init/ presets, recipes, programs, merging     starter policies, how clients start agents, others' settings
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from types import ModuleType

COMMANDS = {
    "proxy": "run an agent under policy, between it and its client",
    "decide": "decide offline: JSON Lines in, one JSON object a request out",
    "explain": "explain decisions to people: every action and every rule that spoke",
    "check": "validate and lint policy files",
    "edit": "change a policy file: locked, checked, compared with what was decided, never saved broken",
    "audit": "read the record of what was decided",
    "grants": "see, take back, add and share remembered answers",
    "serve": "the daemon: one policyd for many agents, on a socket or stdio",
    "prompts": "the questions that wait for a person, and answering them",
    "init": "starter policies, and what clients and agents need set",
    "test": "run the test suites beside policies",
    "diff": "which decisions change between two policies, and is the new one looser",
    "status": "what is in force here, and from which files",
    "doctor": "what holds here and what does not: tier, agents, clients",
    "trust": "let a project's policy loosen, exactly as it stands",
    "schema": "JSON Schemas of policies, settings and hooks",
    "man": "the manual page, for `policyd man > policyd.1`",
}


def main(argv: list[str] | None = None) -> int:
    """Run the command named by the first word of `argv` (default: the process's) and return its exit code."""
    if None in (sys.stdin, sys.stdout, sys.stderr):  # a file that is opened next would be taken for it
        if sys.stderr is not None:
            sys.stderr.write("policyd: standard input, output and error must be open\n")
        return 2
    code = attempt(sys.argv[1:] if argv is None else argv)
    return code if told() else 2


def told() -> bool:
    """Say whether all that was printed has left: what was not told is no answer, and must not raise again at exit."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # which is of a reader that has enough (`| head`)
            sys.stderr.write(f"policyd: standard output: {error.strerror}\n")
        return False
    return True


def attempt(words: list[str]) -> int:
    """Run the command named by the first word and return its exit code, whatever becomes of it."""
    try:
        return dispatch(words)
    except BrokenPipeError:
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from policyd.cli.ending import expected, failed

        if expected(error):
            return failed(words[0] if words else "help", error)
        # Nobody's answer is in it: 1 would be read as one (`decide --exit-code`, `check --strict`).
        import traceback

        traceback.print_exc()
        return 2


def dispatch(words: list[str]) -> int:
    """Import the module of the command named by the first word and run it with the others."""
    name, rest = words[0] if words else "help", words[1:]
    if name == "help" and rest:
        return dispatch([rest[0], "--help"])
    if name in {"-h", "--help", "help"}:
        sys.stdout.write(overview() + "\n")
        return 0 if words else 2
    if name in {"-V", "--version"}:
        from policyd import __version__

        sys.stdout.write(f"policyd {__version__}\n")
        return 0
    if name not in COMMANDS:
        sys.stderr.write(f"policyd: unknown command `{name}`; {hint(name)}`policyd help` lists them\n")
        return 2
    if name == "proxy":
        from policyd.proxy import main as run_proxy

        return run_proxy(rest)
    return int(module_of(name).run(parser_of(name).parse_args(rest)))


def hint(word: str) -> str:
    """Return a hint at the command that does what the word says, or is called nearly so."""
    from policyd.policy.errors import nearest

    does = (name for name, text in COMMANDS.items() if word in text.replace(":", "").split())
    found = next(does, "") or nearest(word, COMMANDS)
    return f"did you mean `{found}`? " if found else ""


def module_of(name: str) -> ModuleType:
    """Import the module of command `name`."""
    from importlib import import_module

    from policyd.proxy import spare_imports

    spare_imports()
    return import_module(f"policyd.cli.{name}")


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of command `name`, which is any but `proxy`."""
    import argparse

    parser = argparse.ArgumentParser(prog=f"policyd {name}", description=COMMANDS[name])
    module_of(name).add_arguments(parser)
    return parser


def overview() -> str:
    """Return the list of commands."""
    width = max(map(len, COMMANDS))
    rows = (f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    more = "`policyd COMMAND --help` says more; begin with `policyd init default --write`"
    return "\n".join(["usage: policyd COMMAND …", "", *rows, "", more])
