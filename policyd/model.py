"""The nouns every other room speaks in: effects, paths, commands, actions, decisions.

Rules of this module:

1. Values only. Nothing here opens a file, reads a clock or decides anything.
2. Everything is frozen: an action that was judged is the action that is recorded.
3. What is not known has a value of its own (`Truth.MAYBE`, `WordKind.UNKNOWN`, `Action.opaque`);
   no field's default means "harmless".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Protocol

KINDS = (
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
)
READ_KINDS = frozenset({"read", "search"})
WRITE_KINDS = frozenset({"edit", "delete", "move"})
EMPTY: Mapping[str, object] = MappingProxyType({})


class Effect(IntEnum):
    """What is answered, ordered so that the strictest of several is `max()`."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        """The effect as policies and JSON spell it."""
        return self.name.lower()


class Truth(IntEnum):
    """Whether a condition holds: a conjunction is `min()`, a disjunction `max()`."""

    NO = 0
    MAYBE = 1
    YES = 2


class Layer(IntEnum):
    """Where a policy file comes from, ordered by rank."""

    PROJECT = 0
    USER = 1
    MANAGED = 2

    @property
    def word(self) -> str:
        """The layer as messages and rule names spell it."""
        return self.name.lower()


class Source(StrEnum):
    """What made a decision."""

    RULE = "rule"
    DEFAULT = "default"
    GRANT = "grant"
    GUARD = "guard"
    PROMPT = "prompt"
    ERROR = "error"


class Role(StrEnum):
    """How an action stands in its request.

    Primary, operand and redirect actions are judged by everything; a mention only by deny and ask rules.
    """

    PRIMARY = "primary"
    OPERAND = "operand"
    REDIRECT = "redirect"
    MENTION = "mention"


# ---- the file system, as an argument ---------------------------------------------------------------


class Filesystem(Protocol):
    """What the core may ask about files. The rim passes a real one; tests pass a dictionary."""

    def resolve(self, path: str) -> str:
        """Return the absolute `path` as the kernel walks it, link by link, `..` after each link.

        Components that do not exist are kept below the nearest existing ancestor.

        Raises:
            OSError: a loop, a denied directory, a name too long: the path is then opaque.
        """

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Say whether a bounded look below `directory` finds an entry matching one of `names`.

        `names` are path patterns without a literal head, such as `.env` or `**/*.pem`. None: not
        looked at, or more entries than the bound.
        """

    def is_dir(self, path: str) -> bool | None:
        """Say whether `path` is an existing directory; None where that cannot be told."""

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode of an existing file, None where there is none."""

    def listing(self, directory: str) -> tuple[str, ...] | None:
        """Return the names in `directory` (bounded), None where that cannot be told."""


# ---- paths -----------------------------------------------------------------------------------------


class Reach(StrEnum):
    """How far an operation on a path goes below it."""

    ENTRY = "entry"
    """Only the entry itself."""
    NAMES = "names"
    """Lists names below (`find`, `ls -R`): reaches no pattern below."""
    CONTENT = "content"
    """Reads, copies, moves or removes what lies below (`grep -r`, `rm -r`, `tar`)."""


@dataclass(frozen=True, slots=True)
class PathRef:
    """One path a request names, in every spelling it may stand for."""

    text: str
    """As stated."""
    forms: tuple[str, ...]
    """Absolute, folded, NFC; never empty. First as written, then as the kernel walks it, decoded, …"""
    reach: Reach = Reach.ENTRY
    glob: bool = False
    """The forms are shell globs (quoted characters backslashed): judged by what they can match."""
    inside: bool = False
    """Every form lies in a root that is a workspace for allow."""
    folded: bool = False
    """Compare without regard to case (macOS); only ever widens strict rules."""
    skips_hidden: bool = False
    """What lies below under a name with a leading dot is not reached (`rg` without `--hidden`)."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The roots of a session, resolved when it opened."""

    cwd: str | None
    """The session's working directory as written; None while no session has opened."""
    roots: tuple[str, ...]
    """Every spelling of every root (as written, as resolved): what relative strict patterns start at."""
    sound: tuple[str, ...]
    """The spellings that are a workspace for allow; `/`, home and their ancestors never are."""
    home: str
    tmpdir: str = "/tmp"
    unsound: tuple[str, ...] = ()
    """Why roots were refused as a workspace for allow, in words."""
    heads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Literal head of a relative pattern -> the absolute directories it stands for in this session."""
    fold_case: bool = False


# ---- commands --------------------------------------------------------------------------------------


class WordKind(StrEnum):
    """What is known of a word of a command."""

    CONST = "const"
    GLOB = "glob"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command after quote removal, brace expansion and folding of what is constant."""

    text: str
    """CONST: the value. GLOB: the pattern, quoted characters backslashed. UNKNOWN: the source text."""
    kind: WordKind = WordKind.CONST
    prefix: str = ""
    """UNKNOWN: the constant characters in front of the first unknown one (`--output=` of `--output=$X`)."""
    many: bool = False
    """UNKNOWN: unquoted, so it may become no word, one or several."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable set for a command or before it."""

    name: str
    value: Word
    exported: bool = False


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command a shell text would run."""

    argv: tuple[Word, ...]
    text: str
    """Its source text, for people."""
    env: tuple[Assignment, ...] = ()
    """Its prefix assignments, harmless ones included."""
    taint: tuple[Assignment, ...] = ()
    """Variables set earlier in the text that are not harmless: an allow rule must tolerate each."""
    tainted: str = ""
    """Why nothing after this point can be trusted (`alias`, a function, `source`); no `env` lifts it."""
    cwd: tuple[str, ...] = ()
    """Every directory it may run in, absolute, links unresolved; empty = unknown."""
    inner: SimpleCommand | None = None
    """What a transparent wrapper (`timeout 60 …`) runs; an allow holds for either."""
    via: tuple[str, ...] = ()
    """The wrappers it was reached through (`sudo`, `xargs`, `bash -c`), outermost first."""
    chdir: str | None = None
    """`cd X` with a constant X: the directory as an absolute path. No action for allow if inside."""
    idle: bool = False
    """`true`, `pwd`, `:`, `set -e`: needs no allow of its own; strict rules still see it."""
    strict_only: bool = False
    """One possible reading only (zsh text, argv joined to text): no allow rule ever holds."""
    fed: str = ""
    """What it reads as input: `|` another command's output, else the source of its here-documents and here-strings.

    A remembered answer is for the same words with the same input; empty = neither is written.
    """


@dataclass(frozen=True, slots=True)
class FileUse:
    """A file a command names, and what is done to it."""

    kind: str
    """read, edit, delete, move or search; for a mention the likeliest, not judged."""
    word: Word
    role: Role
    command: int
    """Index in `Reading.commands` of the command that names it."""
    reach: Reach = Reach.ENTRY
    carried: bool = False
    """An allow of the command carries it inside the workspace."""
    cwd: tuple[str, ...] = ()
    unknown: str = ""
    """Why the operand cannot be told; it is then an opaque action of its kind."""
    skips_hidden: bool = False
    """See `PathRef.skips_hidden`."""


@dataclass(frozen=True, slots=True)
class UrlUse:
    """A URL a command names."""

    text: str
    role: Role
    command: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything a command text would do, as far as it can be told."""

    commands: tuple[SimpleCommand, ...] = ()
    files: tuple[FileUse, ...] = ()
    urls: tuple[UrlUse, ...] = ()
    opaque: tuple[str, ...] = ()
    """Why a part could not be understood, in words; beside the parts that were."""


# ---- URLs and tools --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Url:
    """A URL taken apart and normalised."""

    text: str
    scheme: str
    host: str
    """Lower case, IDNA as ASCII, no trailing dot; brackets kept on IPv6."""
    port: int
    """The default of the scheme where none is written; 0 where the scheme has none."""
    paths: tuple[str, ...]
    """Every spelling of the path (dot segments folded, percent-decoded); each begins with `/`."""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool by name: a built-in one, or every server and tool a joined MCP name may mean."""

    name: str
    splits: tuple[tuple[str, str], ...] = ()
    """(server, tool) pairs; empty = a built-in tool."""

    @property
    def mcp(self) -> bool:
        """Whether it belongs to an MCP server."""
        return bool(self.splits)


# ---- what an agent asks for ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mode:
    """A session mode and what the agent's profile says of it."""

    name: str
    asking: bool = False
    unsafe: bool = True
    """An unknown mode is unsafe."""


@dataclass(frozen=True, slots=True)
class Action:
    """One atomic thing a request would do: kinds and at most one resource."""

    kinds: frozenset[str]
    """Every kind ever stated or found; empty for a mention (any kind)."""
    role: Role = Role.PRIMARY
    path: PathRef | None = None
    command: SimpleCommand | None = None
    url: Url | None = None
    tool: Tool | None = None
    """The resource of an MCP call, or of a built-in call that has no other by nature."""
    opaque: str = ""
    """Why its resource cannot be told; an opaque action has no resource."""
    name: Tool | None = None
    """The tool of the request, an attribute of every action."""
    args: Mapping[str, object] | None = None
    """The call's arguments for `input`; None = missing or incomplete."""
    cwd: tuple[str, ...] = ()
    """Where it runs, every form of every possible directory, folded; empty = unknown."""
    cwd_inside: bool = False
    """Every possible cwd lies in the workspace."""
    strays: tuple[str, ...] = ()
    """Words of a command that name a path outside the workspace, as written."""
    within: tuple[PathRef | None, ...] = ()
    """Of a command: every file it names or writes (None = one that cannot be told)."""
    carrier: int | None = None
    """Index in the request's actions of the command whose allow carries this operand."""
    escalate: str = ""
    """The field that widens the agent's reach (sandbox off, extra permissions)."""
    mode: Mode | None = None
    """The mode a `switch_mode` leads to, where the wire tells."""
    guarded: str = ""
    """Which of policyd's own things it touches."""
    idle: bool = False
    """Needs no allow: only deny and ask rules judge it."""
    mcp: bool = False
    """Kind `other` for allow rules and defaults, whatever the agent says."""
    origin: str = ""
    """Where in the evidence it was found: `rawInput.command`, `locations[0].path`, …"""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a permission request."""

    id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Request:
    """One `session/request_permission` (or side-door call), understood."""

    session_id: str
    call_id: str
    title: str
    options: tuple[Option, ...]
    actions: tuple[Action, ...]
    menu: bool = False
    """The options hold no single plain `allow_once`: a person must choose."""
    plain: str | None = None
    """Id of the option a profile names as the plain `allow_once` of exactly this set."""
    refusal: str | None = None
    """Id of the reject option a profile prefers (the turn goes on)."""
    side_door: str = ""
    """The ACP method, where the request is not `session/request_permission`."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as it names itself, or as `--agent` names it: a claim."""

    name: str = ""
    """Wire name (`agentInfo.name`)."""
    version: str = ""
    profile: str = "generic"
    """Short name of the profile in force (`claude`, `codex`, …)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is true of the session while a request is judged. Time is a field, never read."""

    workspace: Workspace
    now: datetime
    """Aware, UTC."""
    agent: Agent = Agent()
    mode: Mode | None = None
    interactive: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    managed_labels: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    groups: tuple[str, ...] = ()
    broken: str = ""
    """Why everything in this session is at least ask (an invalid project policy)."""
    resolved: bool = True
    """Paths were resolved; False (library without a resolver): no `path` rule and no default allows."""


# ---- what is decided -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleRef:
    """A rule or default as decisions name it."""

    layer: Layer
    id: str
    effect: Effect
    file: str = ""
    line: int = 0
    reason: str = ""
    remember: str = ""
    """Of an ask rule: never, session or project."""
    default: bool = False

    @property
    def label(self) -> str:
        """The name shown everywhere: `user:push`."""
        return f"{self.layer.word}:{self.id}"


@dataclass(frozen=True, slots=True)
class Judged:
    """One action with everything that spoke about it."""

    action: Action
    effect: Effect
    hits: tuple[RuleRef, ...] = ()
    """Rules whose conditions hold (a match that rests on an unknown word: `effect` ASK)."""
    possible: tuple[RuleRef, ...] = ()
    """Strict rules that may match: each counts as ask."""
    defaults: tuple[RuleRef, ...] = ()
    floors: tuple[str, ...] = ()
    """Why it is at least ask whatever the rules say, in words."""
    near: tuple[RuleRef, ...] = ()
    """Rules that failed on one condition only; filled for `explain`."""
    granted: Effect | None = None
    """What a remembered answer says of it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one request and everything it rests on."""

    effect: Effect
    source: Source
    reason: str
    """Written for the model and the person: what decided, and what to do instead."""
    rules: tuple[RuleRef, ...] = ()
    """The rules and defaults that decided."""
    matched: tuple[RuleRef, ...] = ()
    """Every rule that matched."""
    actions: tuple[Judged, ...] = ()
    revision: str = ""
    """The policy revision that decided."""
    remember: str = "project"
    """Of an ask: the longest memory that may settle it, the smallest of the rules asking now."""
