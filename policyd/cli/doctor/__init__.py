"""`policyd doctor`: what works here and what does not: on this machine, for one agent, or for clients of agents.

It changes nothing. Exit code 0: all well; 1: problems, each in a line that begins with `mend`; 2: the check failed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from msgspec import Struct, field, to_builtins

from policyd.cli import inforce, options, status
from policyd.cli.doctor import agentfacts, tiers, wrapped
from policyd.cli.doctor.agentfacts import AgentFacts
from policyd.cli.doctor.tiers import Tier
from policyd.cli.doctor.wrapped import Entry
from policyd.cli.ending import counted, failed
from policyd.cli.inforce import InForce
from policyd.cli.saying import say_results
from policyd.prompts import clients
from policyd.service.steps import faults
from policyd.storage import grants


class Findings(Struct):
    """Everything that was found."""

    state: InForce
    tier: Tier
    agent: AgentFacts | None = None
    client: clients.Client | None = None
    files: list[str] = field(default_factory=list)
    """Settings files of clients that were found."""
    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """The problems, in words."""
        return [*state_problems(self.state), *(self.agent.problems if self.agent else ()), *map(entry_words, self.bad)]

    @property
    def bad(self) -> list[Entry]:
        """The agents that are not, or not correctly, under policy."""
        return [entry for entry in self.entries if entry.problem]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd doctor`."""
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--agent", metavar="NAME", help="what this agent asks, and what to set in it")
    about.add_argument("--client", metavar="NAME", help="how this client is configured, and what its user sees")
    status.add_place(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check, print, and return the exit code."""
    cwd = args.cwd or options.directory(".")
    state = inforce.gather(cwd, args.home, args.policy)
    if args.client and args.client not in clients.shipped():
        return failed("doctor", f"no client `{args.client}` is known; write one of {', '.join(clients.shipped())}")
    found = findings(state, args.agent, args.client, cwd)
    say_results([as_json(found)], lines(found), as_json=args.json)
    return 1 if found.problems else 0


def findings(state: InForce, agent: str | None, client: str | None, cwd: str) -> Findings:
    """Gather what the options ask for."""
    found = Findings(state, tiers.tier(state))
    if agent:
        found.agent = agentfacts.facts(agent, state)
        return found
    if client:
        found.client = clients.shipped()[client]
        found.notes += [wrapped.NOTES[client]] if client in wrapped.NOTES else []
    config = os.path.dirname(state.places.config)
    for place in wrapped.places(state.places.home, cwd, config):
        entries = wrapped.look(place) if client in {None, place.client} else None
        if entries is not None:
            found.files.append(place.path)
            found.entries += entries
    return found


def state_problems(state: InForce) -> list[str]:
    """Return what keeps a proxy from starting, or from deciding normally in this project."""
    found = [*map(str, state.mistakes), *state.problems, *filter(None, [state.mute])]
    if state.broken:
        found.append(f"everything in this project is at least ask: {state.broken}")
    return [*found, *faults(state.loaded.settings.prompt if state.loaded else ())]


def entry_words(entry: Entry) -> str:
    """Say what is wrong with one agent of a client."""
    return " ".join(part for part in (f"{entry.client}: {entry.file}:", entry.name, entry.problem) if part)


def lines(found: Findings) -> list[str]:
    """Return everything in words."""
    advised = status.lines(found.state)
    advised += [f"  chain    {chain(found.state)}", f"  grants   {remembered(found.state)}"]
    advised += tier_lines(found.tier)
    advised += agent_lines(found.agent) if found.agent else []
    advised += client_lines(found)
    advised += [f"mend  {problem}" for problem in found.problems]
    return [*advised, "all well" if not found.problems else f"to mend: {len(found.problems)}"]


def chain(state: InForce) -> str:
    """Say who is asked, in order."""
    if state.loaded is None:
        return "unknown: the settings do not hold"
    steps = state.loaded.settings.prompt
    return ", then ".join(steps) if steps else "nobody: what asks is rejected with the reason"


def remembered(state: InForce) -> str:
    """Say where answers are remembered, and whether any are."""
    if state.policy and "grants" in state.policy.lock.refuse:
        return "none count: the managed policy refuses them"
    count = len(grants.files(state.places.grants))
    return f"{state.places.grants}/ ({counted(count, 'file')}; `policyd grants list` shows them)"


def tier_lines(tier: Tier) -> Iterator[str]:
    """Say the tier, what it does not prove, and which parts this user could change."""
    yield f"tier {tier.word}: {tier.adds}"
    yield f"  not proven  {tier.unproven}"
    for part in tier.parts:
        why = part.why.replace(f"{part.path} is", "it is")
        yield f"  {part.what:<11} {part.path} ({f'you could change it: {why}' if why else 'not yours to change'})"


def agent_lines(agent: AgentFacts) -> Iterator[str]:
    """Yield the facts about an agent."""
    yield f"agent {agent.name}: {agent.title} ({agent.verified})"
    rows = (
        ("names", ["; ".join(agent.wire_names) or "any"]),
        ("mode", [agent.mode]),
        ("refused", [", ".join(agent.unsafe)] if agent.unsafe else []),
        ("asks", agent.asked),
        ("unasked", agent.never_asked),
        ("refusal", [agent.refusal]),
        ("fs write", [agent.fs_write]),
        ("statuses", [agent.statuses]),
        ("set", agent.set),
    )
    yield from (f"  {what:<9} {text}" for what, texts in rows for text in texts)


def client_lines(found: Findings) -> Iterator[str]:
    """Yield the findings in clients' settings, and the facts about one client."""
    if found.client:
        client = found.client
        yield f"client {client.profile}: {client.verified}"
        yield f"  person    {'may answer' if client.person else 'nobody answers: the step `client` is left out'}"
        by = "name" if client.shows_option_names else "kind"
        yield f"  shows     {counted(client.options_per_kind, 'option')} a kind, by {by}"
        yield f"  remembers {'nothing' if client.remember == 'never' else f'{client.remember} at most'}"
        yield f"  modes     it learns the session's mode from: {', '.join(client.modes_from)}"
        yield from (f"  does      {text}" for text in client.behaviour)
    yield from (f"  read      {path}" for path in found.files)
    if not (found.files or found.agent or found.client):
        yield "  clients   no settings found: `policyd init --client NAME` prints how one starts an agent under policy"
    yield from (f"  note      {text}" for text in found.notes)
    for entry in found.entries:
        if not entry.problem:
            yield f"  wrapped   {entry.client}: {entry.name}{f' ({entry.note})' if entry.note else ''}"


def as_json(found: Findings) -> dict[str, object]:
    """Return everything as a JSON object."""
    return {
        "schema": 1,
        "inforce": inforce.facts(found.state),
        "chain": list(found.state.loaded.settings.prompt) if found.state.loaded else None,
        "tier": to_builtins(found.tier),
        "agent": to_builtins(found.agent) if found.agent else None,
        "client": to_builtins(found.client) if found.client else None,
        "clients": {"files": found.files, "agents": [to_builtins(entry) for entry in found.entries]},
        "notes": found.notes,
        "problems": found.problems,
    }
