"""Stand-ins: a few actions that together represent everything a rule can match.

A path stand-in is a shell glob (the pattern itself, made absolute), a command stand-in has unknown words in place of
wildcards, hosts and tools have a word that no pattern uses. Conditions answer `YES` only if every instance matches, so
a rule that surely holds for all stand-ins of another rule holds wherever that one does.

None means that a pattern has no stand-in: then nothing may be concluded from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from policyd import urls
from policyd.commands.lexing.patternwords import PatternWord
from policyd.commands.matching.patterns import CommandPattern
from policyd.model import KINDS, Action, PathRef, Reach, Role, SimpleCommand, Tool, Word, WordKind, Workspace
from policyd.paths import escape, syntax
from policyd.policy import Rule
from policyd.policy.conditions import (
    CommandCondition,
    CommandMatcher,
    KindCondition,
    PathCondition,
    ToolCondition,
    UrlCondition,
)

WORKSPACE = "/policyd workspace"
"""Where relative patterns start: a path that no policy uses."""
FRESH = "zqx0"
"""A word that no policy uses: only a wildcard matches it."""
FRESH_PORT = 64_738
"""The same of a port."""
RESOURCE_KINDS = {"path": ("read", "edit", "delete", "move", "search"), "command": ("execute",), "url": ("fetch",)}


class StandIn(Struct, frozen=True):
    """An action that represents every action one pattern of a rule can match."""

    action: Action
    key: str = ""
    """`path`, `command`, `url`, `tool`; empty for a rule on kinds alone."""
    pattern: str = ""
    """The pattern as written, or the entry of a shipped set."""

    @property
    def deep(self) -> bool:
        """Whether it is a directory above the named path, removed or copied with everything below."""
        return self.action.path is not None and self.action.path.reach is not Reach.ENTRY


class StandIns(Struct, frozen=True, dict=True):
    """The stand-ins of rules, in a workspace of their own."""

    home: str
    tmpdir: str = "/tmp"
    known: dict[Rule, list[StandIn] | None] = field(default_factory=dict)

    @cached_property
    def workspace(self) -> Workspace:
        """A workspace of its own."""
        roots = (WORKSPACE,)
        return Workspace(WORKSPACE, roots, roots, home=self.home, tmpdir=self.tmpdir)

    def of(self, rule: Rule) -> list[StandIn] | None:
        """Return the stand-ins of everything `rule` can match, None if there are none."""
        if rule not in self.known:
            self.known[rule] = self.made(rule)
        return self.known[rule]

    def made(self, rule: Rule) -> list[StandIn] | None:
        """Make the stand-ins of a rule."""
        found = list(self.resources(rule))
        if None in found:
            return None
        kinds = self.kinds(rule)
        made = [replace(one, action=replace(one.action, kinds=frozenset({k}))) for one in found if one for k in kinds]
        if rule.effect:
            bare = [one for one in found if one and one.key in {"path", "url"}]
            made += [replace(one, action=replace(one.action, kinds=frozenset(), role=Role.MENTION)) for one in bare]
        return made

    def kinds(self, rule: Rule) -> tuple[str, ...]:
        """Return the kinds `rule` can match."""
        named = kind_of(rule)
        if named is None:
            return RESOURCE_KINDS.get(rule.resource, KINDS if rule.resource == "" else ("other",))
        return tuple(filter(named.names, KINDS)) if named.every else tuple(sorted(named.kinds))

    def resources(self, rule: Rule) -> Iterator[StandIn | None]:
        """Yield a stand-in for each pattern of the rule's resource, without kinds; None for a pattern without one."""
        condition = next((c for c in rule.conditions if c.name == rule.resource), None)
        strict = bool(rule.effect)
        match condition:
            case PathCondition():
                yield from self.paths(condition, strict=strict)
            case CommandCondition():
                yield from self.commands(condition, strict=strict)
            case UrlCondition():
                for url in condition.patterns:
                    yield from url_actions(url)
            case ToolCondition():
                for tool in condition.patterns:
                    for one in tool_actions(tool.server, tool.tool, strict=strict):
                        yield StandIn(one, "tool", tool.source)
            case _:
                yield StandIn(Action(frozenset()))

    def paths(self, condition: PathCondition, *, strict: bool) -> Iterator[StandIn]:
        """Yield a stand-in for each alternative of each path pattern."""
        for pattern in condition.patterns:
            for form, inside in self.globs(pattern.source, strict=strict):
                yield StandIn(Action(frozenset(), path=globbed(form, inside=inside)), "path", pattern.source)
            for place in self.above(pattern.source) if strict else ():
                whole = PathRef(place, (place,), reach=Reach.CONTENT)
                yield StandIn(Action(frozenset(), path=whole), "path", pattern.source)
        if condition.outside:
            yield StandIn(Action(frozenset(), path=globbed("/**", inside=False)), "path", "@outside")

    def globs(self, text: str, *, strict: bool) -> Iterator[tuple[str, bool]]:
        """Yield a path pattern as absolute shell globs, and whether each lies in the workspace."""
        for written in syntax.read(text, home=self.home, tmpdir=self.tmpdir):
            names = [*map(escape, written.head), *(segment.source for segment in written.tail)]
            if written.absolute:
                yield "/" + "/".join(names), False
            elif strict and written.floats:
                lead = [] if names[:1] == ["**"] else ["**"]
                yield "/" + "/".join(lead + names), False
            else:
                yield "/".join([escape(WORKSPACE), *names]), True

    def above(self, text: str) -> Iterator[str]:
        """Yield the directories at and above the literal head of a strict pattern: removing one affects it."""
        for written in syntax.read(text, home=self.home, tmpdir=self.tmpdir):
            if not written.floats:
                start = [] if written.absolute else [WORKSPACE[1:]]
                names = [*start, *written.head]
                yield from ("/" + "/".join(names[:count]) for count in range(len(names) + 1))

    def commands(self, condition: CommandCondition, *, strict: bool) -> Iterator[StandIn | None]:
        """Yield a stand-in for each alternative of each command pattern."""
        for entry in condition.entries:
            name = entry.source if isinstance(entry, CommandPattern) else f"@{getattr(entry, 'name', '')}"
            for pattern in patterns_of(entry):
                for words in pattern.alternatives:
                    command = unknown_words(words, open_ended=strict)
                    if command is None:
                        yield None
                        continue
                    place = (WORKSPACE,)
                    yield StandIn(Action(frozenset(), command=command, cwd=place, cwd_inside=True), "command", name)


def kind_of(rule: Rule) -> KindCondition | None:
    """Return the `kind` condition of a rule, if any."""
    return next((each for each in rule.conditions if isinstance(each, KindCondition)), None)


def patterns_of(entry: CommandMatcher) -> tuple[CommandPattern, ...]:
    """Return the patterns of an entry: itself, or those of an entry of a shipped set."""
    return (entry,) if isinstance(entry, CommandPattern) else getattr(entry, "patterns", ())


def globbed(form: str, *, inside: bool) -> PathRef:
    """Return a path that represents everything the glob `form` matches."""
    return PathRef(form, (form,), glob=True, inside=inside)


def dotted(action: Action) -> Action:
    """Return a path stand-in that also represents names with a leading dot, which globs exclude; to find overlaps."""
    if action.path is None or not action.path.glob:
        return action
    form = action.path.forms[0]
    hidden = "/".join("." + part if part[:1] in {"*", "?"} and part != "**" else part for part in form.split("/"))
    return replace(action, path=replace(action.path, forms=(form, hidden)))


def unknown_words(words: tuple[PatternWord, ...], *, open_ended: bool) -> SimpleCommand | None:
    """Return a command with unknown words in place of wildcards; None if the program is a wildcard.

    `open_ended`: the pattern is of a strict rule, where it is a prefix.
    """
    if words[0].literal is None:
        return None
    made = []
    for word in words:
        if word.literal is not None:
            made.append(Word(word.literal))
        else:
            lead = "" if word.pieces[0][1] else word.pieces[0][0]
            made.append(Word("$word", WordKind.UNKNOWN, lead, many=word.many))
    if open_ended and not made[-1].many:
        made.append(Word("$words", WordKind.UNKNOWN, many=True))
    return SimpleCommand(tuple(made), " ".join(word.text for word in words), cwd=(WORKSPACE,))


def url_actions(pattern: urls.UrlPattern) -> Iterator[StandIn | None]:
    """Yield stand-ins of a URL pattern: a wildcard becomes a word, `**` one or two segments."""
    if pattern.query is not None or pattern.scheme == "*":
        yield None
        return
    host = FRESH + pattern.host if pattern.host[0] == "." else pattern.host.replace("*", f"{FRESH}.{FRESH}")
    port = "" if pattern.port is None else f":{pattern.port or FRESH_PORT}"
    path = pattern.path or "/**"
    for deep in (FRESH, f"{FRESH}/{FRESH}"):
        text = path.replace("**", "\0").replace("*", FRESH).replace("\0", deep)
        try:
            url = urls.parse(f"{pattern.scheme}://{host}{port}{text}")
        except ValueError:
            yield None
            continue
        yield StandIn(Action(frozenset(), url=url), "url", pattern.source)


def tool_actions(server: str | None, tool: str, *, strict: bool) -> Iterator[Action]:
    """Yield stand-ins of a tool pattern."""
    name = tool.replace("*", FRESH)
    if server is not None:
        pair = (server.replace("*", FRESH), name)
        yield from mcp_tool(pair)
        return
    plain = Tool(name)
    yield Action(frozenset(), tool=plain, name=plain)
    yield Action(frozenset(), name=plain)
    if strict:
        yield from mcp_tool((name, FRESH))


def mcp_tool(pair: tuple[str, str]) -> Iterator[Action]:
    """Yield the call of an MCP tool, and an action found in such a call."""
    tool = Tool("/".join(pair), (pair,))
    yield Action(frozenset(), tool=tool, name=tool, mcp=True)
    yield Action(frozenset(), name=tool)


def written(table: Mapping[str, object], key: str) -> list[str]:
    """Return the texts a block has under `key`."""
    value = table.get(key)
    return [value] if isinstance(value, str) else [str(each) for each in value] if isinstance(value, list) else []
