"""`policyd man`: the manual page, generated from the texts of `--help`: `policyd man > policyd.1`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import policyd
from policyd.cli import COMMANDS, ending, parser_of
from policyd.cli.saying import say_verbatim
from policyd.proxy.options import USAGE

FILES = (
    ("/etc/policyd/policies.d/*.toml", "managed policies, owned by root"),
    ("/etc/policyd/policyd.toml", "managed settings"),
    ("~/.config/policyd/policies.d/*.toml", "the user's policies"),
    ("~/.config/policyd/policyd.toml", "the user's settings"),
    (".policyd/*.toml", "a project's policy: it only tightens until it is trusted"),
    ("~/.local/state/policyd/{grants,trust,audit}/", "remembered answers, trusted projects, the record of decisions"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`policyd man` takes no options."""


def run(args: argparse.Namespace) -> int:
    """Print the page; return the exit code."""
    say_verbatim("\n".join(page()) + "\n")
    return 0


def page() -> Iterator[str]:
    """Yield the page as roff."""
    yield f'.TH POLICYD 1 "" "policyd {policyd.__version__}"'
    yield from (".SH NAME", "policyd \\- a policy-driven permission daemon for the Agent Client Protocol")
    yield from (".SH SYNOPSIS", ".B policyd", "\\fICOMMAND\\fR \\&...")
    yield ".SH DESCRIPTION"
    yield roff(
        "Answers the permission requests of coding agents from TOML policies, asks a person where policy leaves it"
    )
    yield roff("open, and records every decision. Each command explains itself with --help.")
    yield ".SH COMMANDS"
    for name, text in COMMANDS.items():
        yield from (".SS", f"policyd {name}", roff(text) + ".", ".PP")
        yield from proxy_options() if name == "proxy" else options(parser_of(name))
    yield ".SH EXIT STATUS"
    for code, text in ending.RULE.items():
        yield from (".TP", f".B {code}", roff(text))
    yield from (".PP", roff(ending.MORE))
    yield ".SH FILES"
    for path, text in FILES:
        yield from (".TP", f".I {roff(path)}", roff(text))


def options(parser: argparse.ArgumentParser, above: str = "") -> Iterator[str]:
    """Yield the options of a command and of its own commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from (".TP", f".B {roff(above + name)}", roff(below.description or ""))
                yield from options(below, f"{above}{name} ")
        elif not isinstance(action, argparse._HelpAction):
            words = ", ".join(action.option_strings) or value(action)
            what = f" {value(action)}" if action.option_strings and action.nargs != 0 else ""
            yield from (".TP", f".B {roff(above + words + what)}", roff(action.help or ""))


def value(action: argparse.Action) -> str:
    """Return the metavar of an option, as `--help` shows it."""
    if action.choices is not None and action.metavar is None:
        return f"{{{','.join(map(str, action.choices))}}}"
    return str(action.metavar or action.dest.upper())


def proxy_options() -> Iterator[str]:
    """Yield the options of `policyd proxy`, which reads them without argparse."""
    for line in USAGE.splitlines():
        words, _, text = line.strip().partition("  ")
        if words.startswith("-") and text:
            yield from (".TP", f".B {roff(words)}", roff(text.strip()))


def roff(text: str) -> str:
    """Return text escaped for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "\\&" + escaped if escaped[:1] in ".'" else escaped
