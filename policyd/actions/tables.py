"""The schema of agent profiles: what `policyd/agents/NAME.toml` may say. An unknown key is an error of the package."""

from __future__ import annotations

import msgspec

Reference = str | dict[str, str]


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
    """Shell text, one command line a value."""
    sorts: list[str] = []
    """Values of `command` that are no command beside a path, where a read or an edit is stated: the sort of edit."""
    argv: bool = False
    """`rawInput` may hold `args` and `env` beside `command`, as `terminal/create` does."""
    vectors: bool = False
    """A command may be a table of `command`, `args` and `env`."""
    unwrap: bool = False
    """The command is a list of words, often a shell with `-c` around the text that counts."""
    quoted: bool = False
    """The command may be one quoted word that holds the text, as it stands behind a shell's `-c`."""
    stdin: str = ""
    """A made-up program whose last word is text typed into a running shell."""
    cwd: list[Reference] = []
    """Directories the command runs in."""
    cwd_stated: bool = False
    """The agent always states the directory: none found is an unknown one."""
    cwd_own: list[Reference] = []
    """Where it says that the command runs in the session's own directory, whatever it calls that."""
    path: list[Reference] = []
    """Files; the first present field counts and, where that is one plain field, each other such field."""
    glob: list[Reference] = []
    """Glob patterns: one that leads away from the cwd is a place of its own."""
    url: list[Reference] = []
    prose: list[Reference] = []
    """Text the tool itself takes URLs from: where it is more than words and URLs, the call is opaque."""
    mention: list[Reference] = []
    """Other paths named beside the point."""
    patch: list[Reference] = []
    """Patch text (`*** Begin Patch`)."""
    sections: bool = False
    """That text may also be of sections, each behind `[PATH#TAG]`."""
    diff: list[Reference] = []
    """Unified diff of one file, whose heads say what is done to it."""
    deletes: list[Reference] = []
    """Paths that are deleted."""
    moves: list[Reference] = []
    """Paths that are moved to."""
    written: list[str] = []
    """Keys of `rawInput` with text to write: beside a path they state an edit, where no kind is stated at all."""
    locations: str = ""
    """What `locations` are: `path` (the default where no command is found), `read`, `cwd` or `mention`."""
    every: bool = False
    """Every present field of `path` and `cwd` counts alike, and what no reference reads of any is not told."""
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
    tells: list[str] = []
    """Keys of `rawInput` that say what is done: a call that has none of them cannot be told."""
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
    stated: bool = True
    """The mode the agent states is the one it is in; false: only one that it accepted to be set to counts."""
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
    methods: list[str] = []
    """The ways to log in by which such an agent is known: it offers all of these."""
    identify: list[Reference] = []
    """Where the tool's name stands, in order."""
    titled: dict[str, str] = {}
    """Template of a request's whole title -> the tool it means."""
    vague: bool = False
    """The kinds it states say nothing: those of its tables count."""
    covers: str = ""
    """`pending` or `in_progress`: a request stands for every such call, beside the one it may name."""
    moves: bool = False
    """A location without a diff beside a diff without a location is a move."""
    bare: bool = False
    """A diff may name its file without a directory: it is the one location of that name."""
    shown: bool = False
    """Every file that is changed is named by a location and shown by a diff, but for a move's two ends."""
    sticky_cwd: bool = False
    """The shell keeps its directory between calls."""
    sticky_files: bool = False
    """Relative paths of other calls start where that shell stands."""
    adrift: bool = False
    """Once it has run a command nobody says where relative paths start: the command's directory is not on the wire."""
    shared: bool = False
    """One directory serves all sessions: that of whichever it last worked for."""
    launched: bool = False
    """It may work in the directory it was started in, whatever a session's is."""
    enters: dict[str, list[str]] = {}
    """Tool that takes the agent to another directory -> where its call states which, once it is done, best first."""
    parent: str = ""
    """Where a call names the one that started the agent that makes it."""
    apart: list[str] = []
    """Keys of `rawInput` that, where one is stated, say that the agent a call starts works nobody says where."""
    refuse: list[str] = []
    """Option ids of refusals after which the turn goes on, best first."""
    refusal_ends_turn: bool = False
    write_honoured: bool = True
    """A refused `fs/write_text_file` means nothing is written."""
    freeform: str = ""
    """The key of `rawInput` under which a text counts that an update states in the place of a table."""
    statuses: bool = True
    """`completed` can be trusted to mean that the call ran."""
    menu: list[Menu] = []
    mode: ModeTable = ModeTable()
    tool: dict[str, ToolTable] = {}
    kind: dict[str, ToolTable] = {}
