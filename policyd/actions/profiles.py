"""Agent profiles: what the fields of an agent's tool calls mean, and which of its modes ask. Data, not code.

`policyd/agents/NAME.toml` holds one profile; NAME is its short name, which policies use (`agent = "claude"`). A profile
is chosen by the name the agent gives itself at `initialize` and, where `version` says so, its version; an agent that
gives no name may be known by the options it offers (`nameless`), nothing else.
An agent without a profile gets `generic`, which reads only fields that mean the same for every agent and calls the rest
opaque, so that an outdated profile asks instead of allowing.

Rules for a profile:

1. A fact is read from a field, from a whole title or text by a literal template, or by a named reader; never searched
   for.
2. A field of `rawInput` that is neither used nor `inert` makes the call opaque. `inert` is for text that changes
   nothing.
3. What a tool may do beyond its main resource is stated (`widens`), not left out.

The schema is `policyd.actions.tables`; an unknown key is an error of the package, found by its tests.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from operator import attrgetter
from posixpath import dirname
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from policyd.actions.fields import Found, Ref, each
from policyd.actions.readers import Template
from policyd.actions.tables import ProfileTable, ToolTable
from policyd.model import KINDS, TABLE, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.abc import ResourceLoader

    from policyd.actions.evidence import Evidence

GENERIC = "generic"
RANK = attrgetter("rank")


class ToolSpec(Struct, frozen=True):
    """A tool table with its references compiled."""

    table: ToolTable
    label: str
    """`tool.bash` or `kind.execute`, for explanations."""
    refs: dict[str, tuple[Ref, ...]]
    used: frozenset[str]
    """Keys of `rawInput` that the table reads a fact from."""
    claimed: frozenset[str]
    """Those, and the ones it calls inert."""
    apart: frozenset[str]
    """Keys whose whole value is accounted for, whatever it holds."""
    beyond: frozenset[str]
    """Groups with a reference that begins elsewhere than at a key of `rawInput`."""
    readers: dict[str, tuple[tuple[str, int, Ref], ...]]
    """Key of `rawInput` -> the references that begin at it, each with its group and its place there."""
    where: frozenset[str]
    """Keys of `rawInput` at which what leads to paths begins, or the directory they start at."""
    wherever: bool
    """Some of that begins elsewhere."""
    doubtful: bool = False
    """Whether the agent is one of those the table is of is not known."""

    def read(self, evidence: Evidence) -> dict[str, list[Found]]:
        """Return what the references lead to, in order, by group."""
        said = {group: each(self.refs[group], evidence) for group in self.beyond}
        for key in evidence.raw:
            for group, rank, ref in self.readers.get(key, ()):
                if group not in self.beyond:
                    found = ref.find(evidence)
                    said.setdefault(group, []).extend([Found(one.value, one.origin, rank) for one in found])
        for several in said.values():
            if len(several) > 1:
                several.sort(key=RANK)
        return said

    def names_paths(self, evidence: Evidence) -> bool:
        """Say whether the call may name a path, or the directory where one would start."""
        stated = evidence.locations or evidence.diffs or self.table.here or self.wherever
        return bool(stated) or not self.where.isdisjoint(evidence.raw)

    def of(self, name: str, version: str) -> bool:
        """Say whether the table is of an agent that states this name and version."""
        told = [text.rpartition("@") if "@" in text[1:] else (text, "", "*") for text in self.table.agents]
        return not told or any(known == name and fnmatchcase(version, glob) for known, _, glob in told)

    def counts(self, stated: set[str], raw: set[str]) -> bool:
        """Say whether the table counts for a call of these kinds with these keys."""
        table = self.table
        if "execute" in stated and raw & set(table.lacks):
            return False
        return (not table.stated or stated <= set(table.stated)) and set(table.needs) <= raw


class Profile(Struct, frozen=True):
    """A profile in force."""

    short: str
    data: ProfileTable
    identify: tuple[Ref, ...]
    titled: tuple[tuple[Template | str, str], ...]
    tools: dict[str, ToolSpec]
    kinds: dict[str, ToolSpec]
    patterns: tuple[tuple[str, ToolSpec], ...] = field(default=())
    """Tool names with `*`: first what begins with text (`mcp__*`), then the others, in the order written."""
    names: frozenset[str] = frozenset()
    """Every key of `rawInput` that some table reads a fact from: case variants of them are refused on the wire."""
    races: bool = False
    """Details of some tool's calls race the request."""
    order: tuple[tuple[str, ToolSpec], ...] = ()
    """The tables by kind, in the order in which kinds are looked for."""
    family: str = ""
    """Short name of the profile of the same agent that this one, of certain versions, extends; else its own."""
    naming: tuple[str, ...] = ()
    """The fields in which a request, too, may name its tool."""
    shows: tuple[tuple[Ref, str], ...] = ()
    """What reads the command or the tool out of a whole text that is shown, with the label of its table."""
    reads_id: bool = False
    """Something is read from the ids of calls."""

    def named(self, tool: str, stated: Iterable[str], raw: Iterable[str]) -> ToolSpec | None:
        """Return how to read a call of `tool`, None if no table names it.

        Args:
            tool: the tool's name.
            stated: the kinds that are stated.
            raw: the keys of its `rawInput`.
        """
        if not tool:
            return None
        exact = self.tools.get(tool)
        found = [exact] if exact else []
        found += [spec for pattern, spec in self.patterns if fnmatchcase(tool, pattern)]
        said, keys = set(stated), set(raw)
        return next((spec for spec in found if spec.counts(said, keys)), None)

    def kinded(self, kinds: Iterable[str]) -> ToolSpec | None:
        """Return how to read a call of a tool that no table names, by the kinds stated."""
        said = frozenset(kinds)
        for kind, spec in self.order:
            if kind in said or kind == "*":
                return spec
        return None

    def of(self, name: str, version: str) -> Profile:
        """Return the profile as it is for an agent that states this name and version."""
        if not any(spec.table.agents for spec in self.tools.values()):
            return self
        kept = {tool: spec for tool, spec in self.tools.items() if spec.of(name, version)}
        return replace(self, tools={tool: replace(spec, doubtful=False) for tool, spec in kept.items()})

    def same_agent(self, other: Profile) -> bool:
        """Say whether both describe the same agent, perhaps in another version."""
        return self.short == other.short or not set(self.data.name).isdisjoint(other.data.name)

    def mode(self, name: str) -> Mode:
        """Return what the profile says of mode `name`; an unknown mode is unsafe."""
        table = self.data.mode
        asking = bool(name) and name in (table.asking, *table.safe)
        return Mode(name, asking=asking, unsafe=not asking)

    def unsafe_option(self, option: str, value: object) -> bool:
        """Say whether setting config option `option` to `value` turns asking off, or may do so."""
        table, text = self.data.mode, spelled(value)
        if option == table.option:
            return self.mode(text).unsafe
        if option in table.unsafe_options:
            return text in table.unsafe_options[option]
        return False

    def plain(self, option_ids: Iterable[str]) -> str | None:
        """Return the plain `allow_once` of exactly this set of option ids, if the profile names one."""
        ids = sorted(option_ids)
        return next((menu.plain for menu in self.data.menu if sorted(menu.options) == ids), None)


def spelled(value: object) -> str:
    """Return the value of an option as profiles spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


REFERENCES = (
    "command",
    "cwd",
    "cwd_own",
    "path",
    "glob",
    "url",
    "prose",
    "mention",
    "patch",
    "diff",
    "deletes",
    "moves",
    "server",
    "tool",
    "arguments",
)
LEADING = ("cwd", "path", "glob", "mention", "diff", "deletes", "moves")
"""Groups that say where paths are, or where they start."""


def compile_profile(short: str, data: ProfileTable, family: str = "") -> Profile:
    """Return `data` with every reference compiled; ValueError names the table that is wrong."""
    tools = {name: _spec(f"tool.{name}", table) for name, table in data.tool.items()}
    kinds = {name: _spec(f"kind.{name}", table) for name, table in data.kind.items()}
    identify = tuple(Ref.compile(source) for source in data.identify)
    groups = [group for spec in (*tools.values(), *kinds.values()) for group in spec.refs.values()]
    references = [ref for group in (identify, *groups) for ref in group]
    return Profile(
        short,
        data,
        identify,
        tuple((Template.compile(text) if "{" in text else text, tool) for text, tool in data.titled.items()),
        {name: spec for name, spec in tools.items() if "*" not in name},
        kinds,
        tuple(sorted([each for each in tools.items() if "*" in each[0]], key=lambda each: each[0][0] == "*")),
        frozenset(name for spec in (*tools.values(), *kinds.values()) for name in spec.used),
        any(spec.table.late for spec in (*tools.values(), *kinds.values())),
        tuple((kind, kinds[kind]) for kind in (*KINDS, "*") if kind in kinds),
        family or short,
        tuple(
            [place for place in ("name", "title", "rawInput", "_meta") if any(ref.place == place for ref in identify)]
        ),
        tuple(
            [
                (ref, spec.label)
                for spec in (*tools.values(), *kinds.values())
                for ref in (*spec.refs["command"], *spec.refs["tool"])
                if ref.place == "content" and ref.template
            ]
        ),
        any(ref.place == "toolCallId" for ref in references),
    )


def _spec(label: str, table: ToolTable) -> ToolSpec:
    try:
        refs = {name: tuple(Ref.compile(source) for source in getattr(table, name)) for name in REFERENCES}
    except ValueError as error:
        raise ValueError(f"[{label}]: {error}") from error
    used = {ref.key for group in refs.values() for ref in group}
    used |= {"args", "env"} if table.argv else set()
    used |= {table.args} if table.args else set()
    used |= {*table.widens, *table.opaque_if}
    used.discard("")
    apart = {*table.inert, *table.written, *table.widens, *table.opaque_if, *([table.args] if table.args else [])}
    every = [(name, rank, ref) for name, group in refs.items() for rank, ref in enumerate(group)]
    return ToolSpec(
        table,
        label,
        refs,
        frozenset(used),
        frozenset({*used, *table.inert, *table.written}),
        frozenset(apart),
        frozenset(name for name, group in refs.items() if not all(ref.key for ref in group)),
        {key: tuple(one for one in every if one[2].key == key) for key in {ref.key for _, _, ref in every if ref.key}},
        frozenset(ref.key for group in LEADING for ref in refs[group] if ref.key),
        any(not ref.key for group in LEADING for ref in refs[group]),
        doubtful=bool(table.agents),
    )


@cache
def shipped() -> dict[str, Profile]:
    """Return every profile of the package by short name."""
    from importlib.resources import files

    folder = files("policyd") / "agents"
    sources = {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}
    tables = {short: parse(entry.read_bytes()) for short, entry in sorted(sources.items()) if short != GENERIC}
    found = {
        short: compile_profile(short, inherit(table, tables), family(short, tables)) for short, table in tables.items()
    }
    return {**found, GENERIC: generic()}


def parse(data: bytes) -> ProfileTable:
    """Return the profile in TOML `data`; msgspec.ValidationError or TOMLDecodeError if it is invalid."""
    import tomllib

    return msgspec.convert(tomllib.loads(data.decode()), ProfileTable)


def inherit(table: ProfileTable, tables: dict[str, ProfileTable]) -> ProfileTable:
    """Return `table` with what it leaves out filled in from the profile it extends."""
    if not table.extends:
        return table
    base = inherit(tables[table.extends], tables)
    blank = ProfileTable(name=[])
    said = {key: getattr(table, key) for key in table.__struct_fields__ if getattr(table, key) != getattr(blank, key)}
    said |= {"tool": {**base.tool, **table.tool}, "kind": {**base.kind, **table.kind}, "extends": ""}
    return msgspec.structs.replace(base, **said)


def family(short: str, tables: dict[str, ProfileTable]) -> str:
    """Return the short name of the profile that `short` extends for versions of the same agent, else `short`."""
    base = tables[short].extends
    same = base and not set(tables[base].name).isdisjoint(tables[short].name)
    return family(base, tables) if same else short


def find(name: str, version: str = "") -> Profile:
    """Return the profile for an agent that calls itself `name`, `generic` if there is none."""
    fits = [profile for profile in shipped().values() if name and name in profile.data.name]
    for profile in sorted(fits, key=lambda profile: not profile.data.version):
        patterns = profile.data.version
        if not patterns or any(fnmatchcase(version, pattern) for pattern in patterns):
            return profile.of(name, version)
    return generic()


def unnamed(methods: object) -> Profile:
    """Return the profile of an agent that gives no name, by the login methods it offers, else `generic`."""
    listed = methods if isinstance(methods, list) else []
    ids = {str(item.get("id")) for item in listed if isinstance(item, TABLE)}
    known = (item for item in shipped().values() if item.data.methods and ids.issuperset(item.data.methods))
    return next((item.of("", "") for item in known), generic())


def nameless(option_ids: Iterable[str]) -> Profile:
    """Return the profile of an agent that gives no name, by the options it offers, else `generic`."""
    ids = sorted(option_ids)
    return next((item for item in shipped().values() if ids and sorted(item.data.nameless) == ids), generic())


@cache
def generic() -> Profile:
    """Return the cautious profile for an agent without its own: every connection begins with it."""
    loader, package = cast("ResourceLoader", __spec__.loader), dirname(dirname(__file__))
    return compile_profile(GENERIC, parse(loader.get_data(f"{package}/agents/{GENERIC}.toml")))


def named(text: str) -> Profile | None:
    """Return the profile whose short name, or one of whose wire names, is `text`; None if there is none."""
    found = shipped().get(text) or find(text)
    return None if found.short == GENERIC and text != GENERIC else found
