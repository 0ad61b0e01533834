"""Agent profiles: what the fields of an agent's tool calls mean, and which of its modes ask. Data, not code.

`policyd/agents/NAME.toml` holds one profile; NAME is its short name, which policies use (`agent = "claude"`). A profile
is chosen by the name the agent gives itself at `initialize` and, where `version` says so, its version; an agent that
gives no name may be known by the options it offers (`nameless`), nothing else.
An agent that nobody described gets `generic`, which claims only fields every agent means alike and calls the rest
opaque, so that an outdated profile asks instead of allowing.

Rules for a profile:

1. A fact is read from a field, from a whole title or text by a literal template, or by a named reader; never searched
   for.
2. A field of `rawInput` that is neither used nor `inert` makes the call opaque. `inert` is for text that changes
   nothing.
3. What a tool may do beyond its main resource is said (`widens`), not left out.

The schema is the structures below; an unknown key is an error of the package, found by its tests.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from posixpath import dirname
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from policyd.actions.fields import Found, Ref, each
from policyd.actions.readers import Template
from policyd.model import KINDS, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.abc import ResourceLoader

    from policyd.actions.evidence import Evidence

Reference = str | dict[str, str]
GENERIC = "generic"


class ToolTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[tool.NAME]` or `[kind.KIND]`: how to read one tool's calls."""

    stated: list[str] = []
    """The table counts only where the request states one of these kinds (where it states none: the updates do)."""
    needs: list[str] = []
    """The table counts only where `rawInput` has all of these keys."""
    lacks: list[str] = []
    """The table does not count for an `execute` whose `rawInput` has one of these keys: it is a command."""
    kind: str = ""
    """The kind where the agent states none, or only `other`."""
    command: list[Reference] = []
    """Shell text, one command line a value; the first present field counts, the others may only tighten."""
    argv: bool = False
    """`rawInput` may hold `args` and `env` beside `command`, as `terminal/create` does."""
    unwrap: bool = False
    """The command is a list of words, often a shell with `-c` around the text that counts."""
    stdin: str = ""
    """A made-up program whose last word is text typed into a running shell."""
    cwd: list[Reference] = []
    """Directories the command runs in."""
    cwd_stated: bool = False
    """The agent always states the directory: none found is an unknown one."""
    path: list[Reference] = []
    glob: list[Reference] = []
    """Glob patterns: one that leads away from the cwd is a place of its own."""
    url: list[Reference] = []
    prose: list[Reference] = []
    """Free text the tool itself takes URLs from: the call is opaque, the URLs are mentions."""
    mention: list[Reference] = []
    """Other paths named beside the point."""
    patch: list[Reference] = []
    """Patch text (`*** Begin Patch`)."""
    deletes: list[Reference] = []
    """Paths that are deleted."""
    moves: list[Reference] = []
    """Paths that are moved to."""
    written: list[str] = []
    """Keys of `rawInput` with text to write: beside a path they state an edit, where no kind is stated at all."""
    locations: str = ""
    """What `locations` are: `path` (the default where no command is found), `read`, `cwd` or `mention`."""
    every: bool = False
    """Every present field of `path` and `command` counts alike, not only the first."""
    reach: str = ""
    """How far a path goes below: `entry`, `names` or `content`; unsaid, a search, move or delete reaches content."""
    base: str = ""
    """Where relative paths start, if not at the session's cwd."""
    here: bool = False
    """Without a path the call is about the cwd."""
    mcp: str = ""
    """How server and tool are named: `fields`, or the text that joins them (`__`, `-`)."""
    server: list[Reference] = []
    tool: list[Reference] = []
    args: str = ""
    """The key of `rawInput` under which an MCP call's arguments stand."""
    arguments: list[Reference] = []
    """Where an MCP call's arguments stand, if not in `rawInput`."""
    resource: str = ""
    """`tool`: the call has no path, command or URL by nature; its name is its resource."""
    plain: bool = False
    """A call that touches nothing (todo, plan): one action with the tool's name."""
    opaque: str = ""
    """Why a call of this tool can never be told."""
    opaque_if: dict[str, str] = {}
    """Key of `rawInput` -> why the call cannot be told when it holds anything but false."""
    inert: list[str] = []
    widens: list[str] = []
    """Keys of `rawInput` that widen the agent's reach when they hold anything but false."""
    escalate: str = ""
    """Why any call of this tool widens the agent's reach."""
    agents: list[str] = []
    """The table is only of these agents, by wire name with an optional version glob (`NAME@0.1[0-6].*`)."""
    own: str = ""
    """An MCP server of the agent's own that the tool belongs to: one of that name may be the user's as well."""
    late: list[str] = []
    """Places whose details race the request."""


class ModeTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[mode]`: what the agent's modes and options mean, for enforcement and for `mode` conditions."""

    asking: str = ""
    """The mode in which the agent asks the client most."""
    start: str = ""
    """The mode a session starts in, where the agent does not say."""
    door: str = "set_mode"
    """How the asking mode is set: `set_mode`, `set_config_option`, or `none`."""
    option: str = "mode"
    """The config option that is the mode."""
    safe: list[str] = []
    """Modes that ask at least as much as `asking`."""
    unsafe: list[str] = []
    """Modes in which calls run that the client is not asked about."""
    unsafe_options: dict[str, list[str]] = {}
    """Config option -> values (`true`, `on`) that switch asking off."""
    safe_options: list[str] = []
    """Config options that have nothing to do with asking (`model`)."""
    unsafe_meta: list[str] = []
    """Dotted keys of `_meta` in `session/new` that switch asking off."""
    leads: dict[str, str] = {}
    """Option id of a `switch_mode` request -> the mode it leads to."""
    never_asked: list[str] = []
    """What the agent does without asking even in its asking mode, in words, for `doctor`."""


class Menu(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[[menu]]`: the plain `allow_once` of exactly this set of option ids."""

    options: list[str]
    plain: str


class ProfileTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A profile file as written."""

    name: list[str]
    version: list[str] = []
    extends: str = ""
    """Another profile whose tools, kinds and modes count where this one says nothing."""
    nameless: list[str] = []
    """The option ids by which an agent that gives no name at all is known."""
    identify: list[Reference] = []
    """Where the tool's name stands, in order."""
    titled: dict[str, str] = {}
    """Template of a request's whole title -> the tool it means."""
    covers: str = ""
    """`pending` or `in_progress`: a request names no call and stands for every such call."""
    moves: bool = False
    """A location without a diff beside a diff without a location is a move."""
    sticky_cwd: bool = False
    """The shell keeps its directory between calls."""
    refuse: list[str] = []
    """Option ids of refusals after which the turn goes on, best first."""
    refusal_ends_turn: bool = False
    write_honoured: bool = True
    """A refused `fs/write_text_file` means nothing is written."""
    statuses: bool = True
    """`completed` can be trusted to mean that the call ran."""
    menu: list[Menu] = []
    mode: ModeTable = ModeTable()
    tool: dict[str, ToolTable] = {}
    kind: dict[str, ToolTable] = {}


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
    keys: dict[str, frozenset[str]]
    """Group of references -> the keys of `rawInput` they begin at."""
    beyond: frozenset[str]
    """Groups with a reference that begins elsewhere than at a key of `rawInput`."""
    readers: dict[str, tuple[Ref, ...]]
    """Key of `rawInput` -> the references of all groups that begin at it."""
    where: frozenset[str]
    """Keys of `rawInput` at which what leads to paths begins, or the directory they start at."""
    wherever: bool
    """Some of that begins elsewhere."""
    doubtful: bool = False
    """Whether the agent is one of those the table is of is not known."""

    def found(self, group: str, evidence: Evidence) -> list[Found]:
        """Return what the references of a group lead to, in order; a call states few of the fields it might."""
        if group not in self.beyond and self.keys[group].isdisjoint(evidence.raw):
            return []
        return each(self.refs[group], evidence)

    def names_paths(self, evidence: Evidence) -> bool:
        """Say whether the call may name a path, or says where one would start."""
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
        """Say whether setting config option `option` to `value` switches asking off, or may."""
        table, text = self.data.mode, _spell(value)
        if option == table.option:
            return self.mode(text).unsafe
        if option in table.unsafe_options:
            return text in table.unsafe_options[option]
        return False

    def plain(self, option_ids: Iterable[str]) -> str | None:
        """Return the plain `allow_once` of exactly this set of option ids, if the profile names one."""
        ids = sorted(option_ids)
        return next((menu.plain for menu in self.data.menu if sorted(menu.options) == ids), None)


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


REFERENCES = (
    "command",
    "cwd",
    "path",
    "glob",
    "url",
    "prose",
    "mention",
    "patch",
    "deletes",
    "moves",
    "server",
    "tool",
    "arguments",
)
LEADING = ("cwd", "path", "glob", "mention", "deletes", "moves")
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
    every = [ref for group in refs.values() for ref in group]
    return ToolSpec(
        table,
        label,
        refs,
        frozenset(used),
        frozenset({*used, *table.inert, *table.written}),
        frozenset(apart),
        {name: frozenset(ref.key for ref in group if ref.key) for name, group in refs.items()},
        frozenset(name for name, group in refs.items() if not all(ref.key for ref in group)),
        {key: tuple(ref for ref in every if ref.key == key) for key in {ref.key for ref in every if ref.key}},
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
    """Return the profile in TOML `data`; msgspec.ValidationError or TOMLDecodeError if it is none."""
    import tomllib

    return msgspec.convert(tomllib.loads(data.decode()), ProfileTable)


def inherit(table: ProfileTable, tables: dict[str, ProfileTable]) -> ProfileTable:
    """Return `table` with what it leaves unsaid filled in from the profile it extends."""
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
    """Return the profile for an agent that calls itself `name`, `generic` if nobody described it."""
    fits = [profile for profile in shipped().values() if name and name in profile.data.name]
    for profile in sorted(fits, key=lambda profile: not profile.data.version):
        patterns = profile.data.version
        if not patterns or any(fnmatchcase(version, pattern) for pattern in patterns):
            return profile.of(name, version)
    return generic()


def nameless(option_ids: Iterable[str]) -> Profile:
    """Return the profile of an agent that gives no name, by the options it offers, else `generic`."""
    ids = sorted(option_ids)
    return next((item for item in shipped().values() if ids and sorted(item.data.nameless) == ids), generic())


@cache
def generic() -> Profile:
    """Return the careful profile for an agent that nobody described: every connection begins with it alone."""
    loader, package = cast("ResourceLoader", __spec__.loader), dirname(dirname(__file__))
    return compile_profile(GENERIC, parse(loader.get_data(f"{package}/agents/{GENERIC}.toml")))


def named(text: str) -> Profile | None:
    """Return the profile whose short name, or one of whose wire names, is `text`; None if there is none."""
    found = shipped().get(text) or find(text)
    return None if found.short == GENERIC and text != GENERIC else found
