"""Candidate rules, no wider than what was approved or refused.

Rules of this module:

1. An approval is for the whole request. A part of it is a candidate only if nothing else needed an answer.
2. Exact rules first: the command with its words, directory and variables; the path; the URL; the tool with its input.
3. General rules only for what was approved in at least `SEVERAL` variants: further words of a command, for programs
   whose "always" may be open-ended (with a rule that still asks about dangerous options); the files of one directory,
   the pages of one host, the inputs of one tool.
4. An allow names the agent, and for a command the directories it was approved in. A denial holds for all agents
   everywhere.
5. What the policy language cannot express is no candidate: a variable that must be set, the input of a command.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.cli.suggest.log import Blind, Question
from policyd.cli.suggest.write import (
    Ask,
    Table,
    Unwritable,
    any_input,
    command_table,
    host,
    named,
    path_table,
    places,
    tool_table,
    url_table,
)
from policyd.commands.state.variables import tolerated
from policyd.grants import keys, literal, programs
from policyd.model import Action, Effect, Judged, Reach, Role

SEVERAL = 3
FILE = "/policyd/suggested.toml"
"""The file name of the suggestions while they are tried; no such file exists."""
OWN = {"path": ["@auto-run", "@secrets"]}
"""The exceptions of an allow for a whole directory."""


class Candidate(Struct, eq=False):
    """A rule that may be suggested."""

    effect: Effect
    table: Table
    asks: list[Ask]
    """The questions it is made from."""
    instead: list[Candidate] = field(default_factory=list)
    """The exact rules that replace this general one if it does harm."""
    beside: list[Table] = field(default_factory=list)
    """Ask rules that belong to it."""
    saves: int = 0
    id: str = ""

    @property
    def answers(self) -> int:
        """How often people gave this answer."""
        return sum(one.question.refused if self.effect else one.question.approved for one in self.asks)


def asked(question: Question, judged: Sequence[Judged]) -> Ask | str:
    """Return the one thing of a question that needs an answer, or why there is none, in words."""
    if question.case.request.menu:
        return "it was a choice between several answers"
    asks = [at for at, one in enumerate(judged) if one.effect is Effect.ASK]
    rules = [ref.label for at in asks for ref in (*judged[at].hits, *judged[at].possible) if ref.effect is Effect.ASK]
    if rules:
        return f"the rule {rules[0]} asks: an allow changes nothing while it stands"
    if any(judged[at].action.opaque for at in asks):
        return "it could not be understood"
    alone = [at for at in asks if judged[at].action.carrier not in asks]
    if len(alone) != 1:
        return "several things were asked together, and not all were approved by themselves"
    action = judged[alone[0]].action
    key = keys.key(action, ())
    if action.role is Role.MENTION or key is None:
        return "it cannot be named exactly"
    if key.via or key.fed:
        return "the policy language has no words for how it was run or what it was fed"
    return Ask(question, action, key)


# ---- exact -----------------------------------------------------------------------------------------


def exact(one: Ask, effect: Effect) -> Candidate:
    """Return the rule for exactly what was answered."""
    write: dict[str, Callable[[Ask, Effect], Table]] = {
        "command": command_table,
        "path": path_table,
        "url": url_table,
        "tool": tool_table,
    }
    return Candidate(effect, named(one, effect, write[one.key.resource](one, effect)), [one])


# ---- general ---------------------------------------------------------------------------------------


def candidates(asks: Iterable[Ask], effect: Effect, least: int, blind: Blind) -> list[Candidate]:
    """Return the rules for questions answered the same way at least `least` times, general ones if possible."""
    same: dict[tuple[object, ...], list[Ask]] = {}
    asks = list(asks)
    bare = {(one.agent, one.key, one.action.cwd) for one in asks}
    for one in asks:
        without = (one.agent, replace(one.key, env=()), one.action.cwd)
        if effect is Effect.ALLOW and not harmless(one.action) and without not in bare:
            continue
        place = one.action.cwd if effect is Effect.ALLOW else ()
        same.setdefault((one.agent if effect is Effect.ALLOW else "", one.key, place), []).append(one)
    single = [rule for group in same.values() if (rule := joined(group, effect))]
    found: list[Candidate] = []
    for group, general in families(single, effect, blind):
        whole = [one for each in group for one in each.asks]
        often = [each for each in group if each.answers >= least]
        if general is not None and sum(each.answers for each in group) >= least:
            found.append(Candidate(effect, general[0], whole, often, general[1]))
        else:
            found += often
    return merged(found)


def harmless(action: Action) -> bool:
    """Say whether a command sets only variables that every rule tolerates.

    A rule can tolerate a variable but not require it: one for `DRY_RUN=1 ./deploy` would allow `./deploy` too.
    """
    command = action.command
    return command is None or all(tolerated(one, ()) for one in (*command.taint, *command.env))


def merged(found: Iterable[Candidate]) -> list[Candidate]:
    """Merge rules that differ in the agent only."""
    kept: list[Candidate] = []
    for each in found:
        same = next((one for one in kept if alike(one, each)), None)
        if same is None:
            kept.append(each)
            continue
        same.asks += each.asks
        same.instead = merged([*same.instead, *each.instead])
        if "agent" in same.table:
            same.table["agent"] = sorted({one.agent for one in same.asks})
    return kept


def alike(one: Candidate, other: Candidate) -> bool:
    """Say whether two rules differ in the agent only, and both name one, or neither does."""
    tables = [{key: value for key, value in each.table.items() if key != "agent"} for each in (one, other)]
    same = one.effect is other.effect and one.beside == other.beside and tables[0] == tables[1]
    return same and ("agent" in one.table) is ("agent" in other.table)


def joined(group: list[Ask], effect: Effect) -> Candidate | None:
    """Return the exact rule for one thing asked in several sessions, None if it cannot be expressed."""
    try:
        rule = exact(group[0], effect)
    except Unwritable:
        return None
    rule.asks = group
    return rule


General = tuple[Table, list[Table]] | None


def families(single: list[Candidate], effect: Effect, blind: Blind) -> Iterator[tuple[list[Candidate], General]]:
    """Yield groups of similar exact rules, each with its general rule, if any."""
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for each in single:
        groups.setdefault(family(each.asks[0], effect), []).append(each)
    for group in groups.values():
        yield group, general(group, effect, blind) if len(group) >= SEVERAL else None


def family(one: Ask, effect: Effect) -> tuple[object, ...]:
    """Return what exact rules must have in common to be generalised."""
    key, action = one.key, one.action
    who = one.agent if effect is Effect.ALLOW else ""
    if key.resource == "command" and effect:
        return who, "command", lead(key.words)
    if key.resource == "command":
        inside = action.cwd_inside and not action.strays and all(ref and ref.inside for ref in action.within)
        return who, "command", programs.prefix(key.words) if inside else key, action.cwd, key.env
    if key.resource == "path":
        path = action.path
        plain = path is not None and path.reach is Reach.ENTRY and path.inside and effect is Effect.ALLOW
        return who, "path", key.kinds, directory(one) if plain else key
    if key.resource == "url" and action.url:
        return who, "url", action.url.scheme, action.url.host, action.url.port, key.kinds
    return who, "tool", key.words, key.kinds


def lead(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a program, and its subcommand if the second word looks like one."""
    return words[:2] if len(words) > 1 and words[1].isidentifier() else words[:1]


def directory(one: Ask) -> tuple[str, ...]:
    """Return the directory of a file in each of its forms, none if it is a root of the session."""
    path = one.action.path
    found = tuple(posixpath.dirname(form) for form in path.forms) if path else ()
    return () if any(each in one.question.case.roots for each in found) else found


def general(group: list[Candidate], effect: Effect, blind: Blind) -> General:
    """Return the general rule for a group of exact rules, and the rules that belong to it."""
    one = group[0].asks[0]
    if effect is Effect.ALLOW and blind.everything:
        return None
    resource = one.key.resource
    if resource == "command":
        return denied_lead(one) if effect else opened(one, blind)
    if resource == "path":
        return None if effect else files(group, blind)
    if resource == "url":
        return None if effect is Effect.ALLOW and hidden_host(one, blind) else (host(one, effect), [])
    if effect is Effect.ALLOW and any(word in blind.tools for word in (*one.key.words, tool_name(one))):
        return None
    return named(one, effect, any_input(one)), []


def denied_lead(one: Ask) -> General:
    """Return the denial of a program, or of its subcommand."""
    return {"command": [literal.join(lead(one.key.words))]}, []


def opened(one: Ask, blind: Blind) -> General:
    """Return the allow of a command with further words, and the ask rules for its dangerous options."""
    words = programs.prefix(one.key.words)
    if words is None or words[0] in blind.programs:
        return None
    dashes, never = programs.limits(one.key.words)
    text = literal.join(words)
    patterns = [text, f"{text} -- **"] if dashes else [f"{text} **"]
    table = named(one, Effect.ALLOW, {"command": patterns, **places(one)})
    return table, [{"command": [f"{text} {option}" for option in never]}] if never else []


def files(group: list[Candidate], blind: Blind) -> General:
    """Return the allow of the files of one directory, with their common ending, if any."""
    one = group[0].asks[0]
    places_, names = directory(one), [ask.key.words[0] for each in group for ask in each.asks]
    if not places_ or any(path.startswith(f"{place}/") for path in blind.paths for place in places_):
        return None
    endings = {posixpath.splitext(name)[1] for name in names}
    ending = literal.escape(endings.pop()) if len(endings) == 1 else ""
    patterns = [f"{literal.escape(place)}/*{ending}" for place in places_]
    return named(one, Effect.ALLOW, {"kind": sorted(one.action.kinds), "path": patterns, "unless": OWN}), []


def hidden_host(one: Ask, blind: Blind) -> bool:
    """Say whether a refusal that cannot be reconstructed concerned the same host."""
    return one.action.url is not None and any(one.action.url.host in text.lower() for text in blind.urls)


def tool_name(one: Ask) -> str:
    """Return a tool's name as the agent states it."""
    return one.action.tool.name if one.action.tool else ""
