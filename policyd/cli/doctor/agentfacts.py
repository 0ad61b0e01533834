"""The facts about one agent, from its profile, its own settings and policyd's, for `policyd doctor --agent`."""

from __future__ import annotations

from msgspec import Struct

from policyd.actions import profiles
from policyd.actions.profiles import GENERIC, Profile
from policyd.actions.tables import ModeTable
from policyd.cli import advice
from policyd.cli.advice import Advice, File
from policyd.cli.inforce import InForce

UNKNOWN = "unknown"
CANCELLED = "where it offers no way to reject, the answer is `cancelled`; an agent that takes that for a yes goes on"
DOORS = {"set_mode": "session/set_mode", "set_config_option": "session/set_config_option"}


class AgentFacts(Struct, frozen=True):
    """One agent, in words. A list may be empty."""

    name: str
    title: str
    verified: str
    wire_names: list[str]
    mode: str
    """Which mode it starts in, which one policyd sets, and by which method."""
    unsafe: list[str]
    """Modes, options and `_meta` keys that policyd refuses."""
    asked: list[str]
    never_asked: list[str]
    refusal: str
    fs_write: str
    statuses: str
    set: list[str]
    files: list[advice.State]
    problems: list[str]


def facts(name: str, state: InForce) -> AgentFacts:
    """Return the facts about the agent of this short name or wire name; an unknown one is `generic`."""
    known = profiles.named(name)
    profile = known or profiles.generic()
    advised, data = advice.of(profile.short), profile.data
    setting = state.loaded.settings.agent_mode if state.loaded else "enforce"
    files = [advice.state(file, state.places) for file in advised.file]
    return AgentFacts(
        name=profile.short if known else name,
        title=advised.title,
        verified=advised.verified,
        wire_names=data.name,
        mode=mode_words(data.mode, setting),
        unsafe=unsafe_words(data.mode),
        asked=advised.asked,
        never_asked=data.mode.never_asked,
        refusal=refusal_words(profile),
        fs_write=write_words(profile),
        statuses=status_words(profile),
        set=advised.set + [set_words(file, found) for file, found in zip(advised.file, files, strict=True)],
        files=files,
        problems=list(problems(name, known, advised, setting, files)),
    )


def mode_words(mode: ModeTable, setting: str) -> str:
    """Say how the agent is put into an asking mode."""
    start = f"starts in `{mode.start}`" if mode.start else "has no mode that is known"
    if setting == "off":
        return f'{start}; policyd leaves its mode alone (`agent_mode = "off"`)'
    if mode.door == "none" or not mode.asking:
        return f"{start}; policyd has no way to change that, and refuses modes that sound like no asking"
    if not mode.stated:
        start = f"says `{mode.start}` when a session opens, whatever its own settings make of that"
    if setting == "warn":
        return f'{start}; policyd only warns where it is not in `{mode.asking}` (`agent_mode = "warn"`)'
    door = DOORS.get(mode.door, mode.door)
    if mode.start == mode.asking and mode.stated:
        return f"{start}, which asks; policyd keeps it there by {door}"
    return f"{start}; policyd sets `{mode.asking}` by {door} before the first prompt, and keeps it there"


def unsafe_words(mode: ModeTable) -> list[str]:
    """List every mode, option and `_meta` key that switches asking off."""
    options = [f"{name} = {'/'.join(values)}" for name, values in mode.unsafe_options.items()]
    return [*mode.unsafe, *options, *(f"_meta.{key}" for key in mode.unsafe_meta)]


def refusal_words(profile: Profile) -> str:
    """Say what a refusal does to the turn."""
    if profile.short == GENERIC:
        return f"{UNKNOWN}; {CANCELLED}"
    if not profile.data.refusal_ends_turn:
        return "the turn goes on: the model is told and may go another way"
    other = f", unless it offers `{profile.data.refuse[0]}`" if profile.data.refuse else ""
    return f"the whole turn ends{other}"


def write_words(profile: Profile) -> str:
    """Say whether the agent honours a refused write at the client's fs."""
    if profile.short == GENERIC:
        return UNKNOWN
    if profile.data.write_honoured:
        return "what is refused at the client's fs is not written"
    return "what is refused at the client's fs is written all the same, by the agent itself: only its asking holds it"


def status_words(profile: Profile) -> str:
    """Say whether calls made unasked can be noticed."""
    if profile.short == GENERIC:
        return UNKNOWN
    if profile.data.statuses:
        return "`completed` means that the call ran: a denied call made unasked is noticed"
    return "cannot be trusted: calls made unasked are not noticed"


def set_words(file: File, found: advice.State) -> str:
    """Say what to set in one of the agent's files, and whether it is set."""
    missing = f", lacks {', '.join(found.missing)}" if found.missing else ""
    return f"{file.path} ({found.word}{missing}): {file.why}"


def problems(name: str, known: Profile | None, advised: Advice, setting: str, files: list[advice.State]) -> list[str]:
    """List what should be fixed before this agent runs."""
    found = []
    if known is None:
        found.append(
            f"`{name}` has no profile: what it does unasked is unknown; most of what it asks is left to a person"
        )
    if not advised.gated:
        found.append(f"{advised.title} does what it wants without asking: policyd cannot hold it back")
    if setting != "enforce":
        found.append(f"`agent_mode` is `{setting}`: policyd does not keep this agent in a mode that asks")
    for file, state in zip(advised.file, files, strict=True):
        if state.word == "unreadable":
            found.append(f"{state.path} cannot be read")
        elif file.needed and state.word != "set":
            found.append(f"{state.path}: {file.why}; `policyd init --agent {name}` prints what to set")
    return found
