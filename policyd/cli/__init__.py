"""The `policyd` command: dispatches on the first word, and imports only that command's module.

Each command is a module or package here with `add_arguments(parser)` and `run(args) -> int`. It raises what keeps it
from running (`ending.expected`); this module prints that.
`proxy` is special: it starts its agent before anything heavy is imported, so it parses its own few options.
Exit codes: 0 done; 2 usage or policy errors; others as the command documents.

Shared modules, and the parts of the larger commands:

    saying, ending, options, shapes, colour       printing, exit codes, options, untrusted JSON, colour
    loading, inforce                              the policies that options name; those that a proxy here would load
    transcript, replay, facts                     requests parsed from lines, decided again, as JSON
    trials/ trial, tree, drafting, hazards        policies tried on generated requests
    trials/ standins, covering                    and compared without any requests
    presence, calling, daemonstate                whether a person types; calls to a running daemon, and its state
    advice, jsonc                                 setup advice for each agent; JSON with comments

    explain/ asked, text, waysout                 the request to explain, its explanation, what would change it
    suite                                         the files of `policyd test`
    diff/ changes, comparing, recorded            decisions that change, found by comparing rules, drafts and logs
    findings, expand                              the findings of `policyd check`; its `--expand`
    lint/ reach, broad, gaps, places              its warnings, a module for each kind
    audit/ filters, cases, show, stats, replay, verify   which records, records as requests; each subcommand
    suggest/ log, rules, write, text, proof       what people answered, rules that settle it, and proof that they do
    grants/ table, elsewhere                      grants in columns; grants kept by another user's daemon
    doctor/ agentfacts, tiers, wrapped            an agent, who could change which files, clients' settings
    init/ presets, recipes, programs, merging, commented   starter policies, how clients start agents, adding settings
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
    "explain": "explain decisions to people: every action and every rule that applied",
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
    if None in (sys.stdin, sys.stdout, sys.stderr):  # the next file opened would get its descriptor
        if sys.stderr is not None:
            sys.stderr.write("policyd: standard input, output and error must be open\n")
        return 2
    code = attempt(sys.argv[1:] if argv is None else argv)
    return code if flushed() else 2


def flushed() -> bool:
    """Flush standard output; say whether all of it was written. A failure must not raise again at exit."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader that has seen enough (`| head`)
            sys.stderr.write(f"policyd: standard output: {error.strerror}\n")
        return False
    return True


def attempt(words: list[str]) -> int:
    """Run the command named by the first word and return its exit code; never raises."""
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
        # Not 1, which would be taken for an answer (`decide --exit-code`, `check --strict`).
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
    """Return a hint at the command whose description holds the word, or whose name is similar."""
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
