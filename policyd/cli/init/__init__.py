"""`policyd init`: a starter policy (`init PRESET`), or the settings for a client (`--client`) or agent (`--agent`).

    policyd init default --write
    policyd init --client zed --agent claude
    policyd init --client acpx -- /opt/agents/mine --acp
    policyd init --agent opencode --write

Text to paste goes to standard output, notes for the person to standard error. With `--write` the text is written to its
file instead, if that is safe: an existing file is never overwritten, a different entry never changed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from contextlib import suppress

from policyd.actions import profiles
from policyd.cli import advice, options
from policyd.cli.advice import Advice, File
from policyd.cli.ending import complain, failed
from policyd.cli.init import merging, presets, programs
from policyd.cli.init.merging import MergeError
from policyd.cli.init.recipes import CLIENTS, Recipe
from policyd.cli.saying import say, say_verbatim
from policyd.storage import places
from policyd.storage.places import Places
from policyd.storage.private import make_directory, put_new


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd init`."""
    what = "; ".join(f"{name}: {text}" for name, text in presets.PRESETS.items())
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help=f"a starter policy ({what}), or behind `--` the agent's command"
    )
    parser.add_argument("--client", choices=tuple(CLIENTS), help="print how this client starts an agent under policy")
    parser.add_argument("--agent", metavar="NAME", help="for this agent; without --client: its own settings that help")
    parser.add_argument("--write", action="store_true", help="write it where it is read, instead of printing it")
    options.add_home(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write what was asked for; return the exit code."""
    if args.agent and not known(args.agent):
        return failed("init", f"no agent `{args.agent}` is known; {listed(args.agent)}")
    if not (args.client or args.agent):
        return preset(args.words, args.home, write=args.write)
    where = places.find(home=args.home)
    if args.client:
        return client(args.client, args.agent, args.words, where, write=args.write)
    return agent(args.agent, args.words, where, write=args.write)


def listed(name: str) -> str:
    """Return which agents could be meant by a name that none has."""
    from policyd.policy.errors import nearest

    near = nearest(name, profiles.shipped())
    meant = f"did you mean `{near}`? " if near else ""
    return f"{meant}write one of {', '.join(sorted(profiles.shipped()))}"


def known(name: str) -> str:
    """Return the short name of an agent, empty if it has no profile."""
    profile = profiles.named(name)
    return profile.short if profile else ""


def preset(words: list[str], home: str | None, *, write: bool) -> int:
    """Print or write a starter policy; printing one needs no home."""
    if not words and write:
        return failed("init", f"which starter policy? write one of {', '.join(presets.PRESETS)}")
    if not words:
        say("starter policies (`policyd init NAME` prints one, `policyd init NAME --write` puts it in force):")
        say(*(f"  {name:<10} {text}" for name, text in presets.PRESETS.items()))
        say("for a client: --client NAME [--agent NAME] [-- AGENT ARG…]; for an agent: --agent NAME")
        return 0
    if len(words) > 1 or words[0] not in presets.PRESETS:
        name = " ".join(words)
        option = "--client" if name in CLIENTS else "--agent" if known(name) else ""
        more = f"`policyd init {option} {name}`" if option else f"one of {', '.join(presets.PRESETS)}"
        return failed("init", f"no starter policy `{name}`; write {more}")
    if write:
        return write_preset(words[0], places.find(home=home))
    say_verbatim(presets.text(words[0]))
    return 0


def write_preset(name: str, where: Places) -> int:
    """Write the preset into the user's policy directory."""
    path = os.path.join(where.user_policies, f"{name}.toml")
    make_directory(where.user_policies)
    try:
        put_new(path, presets.text(name).replace(presets.SCHEMA_HERE, presets.SCHEMA_ABOVE).encode())
    except FileExistsError:
        return failed("init", f"{path} is there already and was left as it is")
    write_schema(os.path.join(where.config, presets.SCHEMA))
    say(f"wrote {path}; `policyd check` validates it, `policyd status` shows what is in force")
    return 0


def write_schema(path: str) -> None:
    """Write the schema that the first line of the policy names for editors; policyd itself does not use it."""
    import json

    from policyd.policy.file import schema

    with suppress(OSError), open(path, "w", encoding="utf-8") as opened:
        json.dump(schema(), opened, indent=2)


def client(name: str, agent_name: str | None, words: list[str], where: Places, *, write: bool) -> int:
    """Print or write the settings with which a client starts an agent."""
    short = known(agent_name) if agent_name else ""
    advised = advice.of(short)
    command = words or advised.command
    if not command:
        return failed("init", "which agent? write `--agent NAME`, or its command behind `--`")
    if not short:
        short = known(os.path.basename(words[0])) or os.path.basename(words[0])
        advised = advice.shipped().get(short) or Advice(short, "no", [])
    command, missing = programs.absolute(command, "" if words else advised.install)
    found = CLIENTS[name](advised, short, programs.policyd(), command)
    if write:
        return write_recipe(found, where, missing)
    say_verbatim(found.text)
    advise((*found.notes, missing), f"goes into {advice.place(found.file, where)}" if found.file else "")
    return 0


def write_recipe(found: Recipe, where: Places, missing: str) -> int:
    """Merge a recipe into its client's settings; if that is not safe, say why and print it."""
    why = "; ".join(filter(None, [found.why_not, missing]))
    if found.table is None or why:
        say_verbatim(found.text)
        advise(found.notes, f"not written: {why}")
        return 2
    code = merge(advice.place(found.file, where), found.table, found.text, comments=found.comments)
    advise(found.notes)
    return code


def agent(name: str, words: list[str], where: Places, *, write: bool) -> int:
    """Print or write an agent's own settings that help."""
    if words:
        return failed("init", "a command behind `--` goes with `--client`")
    advised = advice.of(known(name))
    codes = [settle(file, where, write=write) for file in advised.file]
    if not advised.file:
        advise([], f"{advised.title} has no settings of its own that help")
    unasked = profiles.shipped()[known(name)].data.mode.never_asked
    advise([*advised.set, *(f"not asked: {text}" for text in unasked)])
    return min(codes, default=0)


def settle(file: File, where: Places, *, write: bool) -> int:
    """Print one of an agent's files, or write it if it is the user's own."""
    path = advice.place(file.path, where)
    if write and file.path.startswith("~/"):
        return merge(path, file.wanted, file.text)
    unwritten = ", which is root's and was not written" if write else ""
    advise([f"goes into {path}{unwritten}: {file.why}"])
    say_verbatim(file.text.strip() + "\n\n")
    return 2 if write else 0


def merge(path: str, wanted: dict[str, object], text: str, *, comments: bool = False) -> int:
    """Merge settings into a file; if that is not safe, say why and print them."""
    try:
        kept = merging.merge_file(path, wanted, comments=comments)
    except MergeError as error:
        say_verbatim(text.strip() + "\n")
        return failed("init", f"not written: {error}")
    if kept is None:
        say(f"{path} has these settings already")
    else:
        say(f"wrote {path}{f'; what was there is kept in {kept}' if kept else ''}")
    return 0


def advise(notes: Iterable[str], first: str = "") -> None:
    """Print notes for the person, on standard error."""
    for note in filter(None, (first, *notes)):
        complain("init", note)
