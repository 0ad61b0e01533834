"""The schema of agent profiles: what `policyd/agents/NAME.toml` may hold. An unknown key is a bug of the package."""

from __future__ import annotations

import msgspec

Reference = str | dict[str, str]


class ToolTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[tool.NAME]` or `[kind.KIND]`: how to read one tool's calls."""

    stated: list[str] = []
    """The table applies only if the request (if it states no kind: an update) states one of these kinds."""
    needs: list[str] = []
    """The table applies only if `rawInput` has all of these keys."""
    lacks: list[str] = []
    """The table does not apply to an `execute` whose `rawInput` has one of these keys: it is a command."""
    kind: str = ""
    """The kind if the agent states none, or only `other`."""
    command: list[Reference] = []
    """Shell text, one command line a value."""
    sorts: list[str] = []
    """Values of `command` that are no command but, beside a path in a read or edit, the sort of edit."""
    argv: bool = False
    """`rawInput` may hold `args` and `env` beside `command`, as `terminal/create` does."""
    vectors: bool = False
    """A command may be a table of `command`, `args` and `env`."""
    unwrap: bool = False
    """The command is a list of words, often a shell with `-c` around the text that counts."""
    quoted: bool = False
    """The command may be one quoted word that holds the text, as after a shell's `-c`."""
    stdin: str = ""
    """A made-up program whose last word is text typed into a running shell."""
    cwd: list[Reference] = []
    """Directories the command runs in."""
    cwd_stated: bool = False
    """The agent always states the directory: if none is found, it is unknown."""
    cwd_own: list[Reference] = []
    """Fields that say that the command runs in the session's own directory, whatever they call it."""
    path: list[Reference] = []
    """Files; the first present field counts and, if that is a plain field, every other plain one too."""
    glob: list[Reference] = []
    """Glob patterns: one that leads away from the cwd is a place of its own."""
    url: list[Reference] = []
    prose: list[Reference] = []
    """Text the tool itself takes URLs from: if it is more than words and URLs, the call is opaque."""
    mention: list[Reference] = []
    """Other paths that are only mentioned."""
    patch: list[Reference] = []
    """Patch text (`*** Begin Patch`)."""
    sections: bool = False
    """That text may also consist of sections, each headed `[PATH#TAG]`."""
    diff: list[Reference] = []
    """Unified diff of one file, whose header says what is done to it."""
    deletes: list[Reference] = []
    """Paths that are deleted."""
    moves: list[Reference] = []
    """Paths that are moved to."""
    written: list[str] = []
    """Keys of `rawInput` with text to write: beside a path they mean an edit if no kind is stated."""
    locations: str = ""
    """What `locations` are: `path` (the default where no command is found), `read`, `cwd` or `mention`."""
    every: bool = False
    """Every present field of `path` and `cwd` counts alike; what no reference reads of them is opaque."""
    reach: str = ""
    """How deep a path reaches: `entry`, `names` or `content` (the default of a search, move or delete)."""
    base: str = ""
    """Where relative paths start, if not in the session's cwd."""
    here: bool = False
    """Without a path the call is about the cwd."""
    mcp: str = ""
    """How server and tool are named: `fields`, or the text that joins them (`__`, `-`)."""
    server: list[Reference] = []
    tool: list[Reference] = []
    args: str = ""
    """The key of `rawInput` that holds an MCP call's arguments."""
    arguments: list[Reference] = []
    """Where an MCP call's arguments are, if not in `rawInput`."""
    resource: str = ""
    """`tool`: the call has no path, command or URL by nature; its name is its resource."""
    plain: bool = False
    """A call that touches nothing (todo, plan): one action with the tool's name."""
    opaque: str = ""
    """Why a call of this tool is always opaque."""
    tells: list[str] = []
    """Keys of `rawInput` that say what is done: a call that has none of them is opaque."""
    opaque_if: dict[str, str] = {}
    """Key of `rawInput` -> why the call is opaque when the key holds anything but false."""
    inert: list[str] = []
    widens: list[str] = []
    """Keys of `rawInput` that widen the agent's reach when they hold anything but false."""
    escalate: str = ""
    """Why any call of this tool widens the agent's reach."""
    agents: list[str] = []
    """The table applies only to these agents, by wire name with an optional version glob (`NAME@0.1[0-6].*`)."""
    own: str = ""
    """The agent's own MCP server that the tool belongs to; the user may have one of the same name."""
    late: list[str] = []
    """Fields that may arrive after the request."""


class ModeTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[mode]`: what the agent's modes and options mean, for enforcement and for `mode` conditions."""

    asking: str = ""
    """The mode in which the agent asks the client most."""
    start: str = ""
    """The mode a session starts in, if the agent does not say."""
    stated: bool = True
    """The mode the agent states is the one it is in; false: only one that it accepted to be set to counts."""
    door: str = "set_mode"
    """How the asking mode is set: `set_mode`, `set_config_option`, or `none`."""
    option: str = "mode"
    """The config option that is the mode."""
    safe: list[str] = []
    """Modes that ask at least as much as `asking`."""
    unsafe: list[str] = []
    """Modes in which calls run without asking the client."""
    unsafe_options: dict[str, list[str]] = {}
    """Config option -> values (`true`, `on`) that turn asking off."""
    safe_options: list[str] = []
    """Config options that have nothing to do with asking (`model`)."""
    unsafe_meta: list[str] = []
    """Dotted keys of `_meta` in `session/new` that turn asking off."""
    leads: dict[str, str] = {}
    """Option id of a `switch_mode` request -> the mode it leads to."""
    never_asked: list[str] = []
    """What the agent does without asking even in its asking mode: text shown by `doctor`."""


class Menu(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[[menu]]`: the plain `allow_once` of exactly this set of option ids."""

    options: list[str]
    plain: str


class ProfileTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A profile file as written."""

    name: list[str]
    version: list[str] = []
    extends: str = ""
    """Another profile whose tools, kinds and modes count for what this one leaves out."""
    nameless: list[str] = []
    """The option ids by which an agent that gives no name is recognised."""
    methods: list[str] = []
    """The login methods by which such an agent is recognised: it offers all of these."""
    identify: list[Reference] = []
    """Where the tool's name is found, in order."""
    titled: dict[str, str] = {}
    """Template of a request's whole title -> the tool it means."""
    vague: bool = False
    """The kinds it states are ignored: those of its tables count."""
    covers: str = ""
    """`pending` or `in_progress`: a request covers every such call, beside the one it may name."""
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
    """Once it has run a command, it is unknown where relative paths start: its directory is not on the wire."""
    shared: bool = False
    """One directory serves all sessions: that of whichever it last worked for."""
    launched: bool = False
    """It may work in the directory it was started in, whatever the session's is."""
    enters: dict[str, list[str]] = {}
    """Tool that takes the agent to another directory -> where its finished call states which, best first."""
    parent: str = ""
    """Where a call names the call that started the (sub)agent making it."""
    apart: list[str] = []
    """Keys of `rawInput` any of which says that the agent a call starts works in an unknown directory."""
    refuse: list[str] = []
    """Option ids of refusals after which the turn goes on, best first."""
    refusal_ends_turn: bool = False
    write_honoured: bool = True
    """A refused `fs/write_text_file` means nothing is written."""
    freeform: str = ""
    """The key of `rawInput` that a text counts as when an update states it in place of a table."""
    statuses: bool = True
    """`completed` can be trusted to mean that the call ran."""
    menu: list[Menu] = []
    mode: ModeTable = ModeTable()
    tool: dict[str, ToolTable] = {}
    kind: dict[str, ToolTable] = {}
