"""One ACP session as observed: where it works, what is known of its calls, and where its shell may be.

A shell that keeps its directory between calls (the agent's profile says so) may be in the session's cwd and in every
directory that a command that may have run went to, from wherever the commands before it led. Whatever may go to an
unknown place makes the directory unknown: a `cd` to it, a program that is not constant, a file that `source` runs
(but a virtual environment's `activate`, which by its nature stays where it is).

A subagent may have a session of its own, which the agent announces: it works where its parent does. If the agent says
that it is elsewhere, its directory is unknown, and its roots remain those that the client gave the parent.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from policyd import commands, paths
from policyd.actions.evidence import FINISHED, Call
from policyd.actions.messages import absolute, listed
from policyd.actions.seen import Seen
from policyd.actions.toolcall import table
from policyd.model import MOVERS, TABLE, Filesystem, SimpleCommand, WordKind, Workspace

MOST_CALLS = 10_000
MOST_PLACES = 16
MOST_PENDING = 64
"""Calls that may still move the shell of which it is looked at where they lead."""
MOST_READ = 64 * 1024
"""Characters of a command that are read for all the places it may begin in."""
FORGOTTEN = "what was said of the call before is not all known any more"
SOURCES = frozenset({"source", "."})
COMMANDS = ("command", "cmd", "commands")
DIRECTORIES = (
    *("cwd", "workdir", "working_directory", "working_dir", "workingDir", "workingDirectory", "directory", "dir_path"),
)
"""Keys of `rawInput` under which agents state what a shell would run, and where."""
_PLAIN = re.compile(r"[A-Za-z0-9_./=:,@+ -]{1,4096}").fullmatch
QUOTES = str.maketrans("", "", "\\'\"")


class Machine(Struct, frozen=True):
    """What the conversation knows about the machine it runs on."""

    home: str
    fs: Filesystem | None = None
    tmpdir: str = "/tmp"
    shell: str = "bash"
    reserved: tuple[str, ...] = ()
    """policyd's own files and directories."""
    heads: tuple[str, ...] = ()
    """Literal heads of the policy's relative patterns (`Policy.heads`)."""
    fold_case: bool = False
    launched: str | None = ""
    """The directory the agent was started in; None: nobody knows, empty: its session's."""


Place = tuple[str | None, tuple[str, ...], tuple[str, ...], Workspace | None]
"""Directory, further directories and MCP servers of a session, and what they were resolved to."""


class Session(Struct):
    """One ACP session of the connection."""

    id: str
    cwd: str | None = None
    additional: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    mode: str = ""
    heads: tuple[str, ...] | None = None
    """Literal heads of the relative patterns of this session's policy; None: the machine's."""
    workspace: Workspace | None = None
    stale: bool = False
    """Its heads are those of another policy."""
    calls: OrderedDict[str, Call] = field(default_factory=OrderedDict)
    replaying: bool = False
    before: Place | None = None
    """Where it worked before the load that is under way."""
    places: tuple[str, ...] = ()
    """Where a shell that keeps its directory may stand, beside the cwd."""
    lost: bool = False
    """The shell went somewhere that cannot be told."""
    leaving: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Call id -> where its command would take the shell; None = nobody knows."""
    entering: dict[str, bool] = field(default_factory=dict)
    """Call id -> whether nobody has said yet where that call takes the agent: it is no command, but an entry."""
    seen: Seen | None = None
    """The surroundings of its calls and what they stood for, as long as workspace and places are these."""
    parent: str = ""
    """The session that made it: a subagent's."""
    size: int = 0
    """About how many bytes are kept of its calls."""
    forgetful: bool = False
    """A call was forgotten of which more was known than its own request says: one that is not announced may be it."""
    bereft: bool = False
    """One of those had been announced and not yet asked about."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Where it works: its directory, if one is known, and those named beside it."""
        return (self.cwd, *self.additional) if self.cwd else self.additional

    def child(self, ident: str) -> Session:
        """Return the session `ident` that this one made: it works where this one does."""
        return Session(
            ident, self.cwd, self.additional, self.servers, places=self.places, lost=self.lost, parent=self.id
        )

    def launched(self, directory: str | None) -> None:
        """Record where its agent was started, and may work; None: unknown."""
        self.lost |= directory is None
        if directory and directory != self.cwd:
            self.places = tuple(dict.fromkeys((*self.places, directory)))

    def placed(self, parent: Session, told: Mapping[str, object]) -> None:
        """Record where the agent says that a session of `parent` is; what is a root, only the client says."""
        if self.parent != parent.id or told.get("cwd") in (None, "", self.cwd):
            return
        self.cwd, self.additional, self.workspace = None, self.roots, None

    def call(self, ident: str, *, announced: bool = False) -> Call:
        """Return the call `ident`, made on first sight; the oldest is forgotten past the cap."""
        if ident not in self.calls:
            while len(self.calls) >= MOST_CALLS:
                self.forget_one()
            self.calls[ident] = Call(ident, broken=FORGOTTEN if self.forgetful and not announced else "")
        return self.calls[ident]

    def told(self, ident: str, update: Mapping[str, object]) -> int:
        """Record an update of a call; return how many bytes more are kept."""
        call = self.call(ident, announced=update.get("sessionUpdate") == "tool_call")
        before = call.size
        call.update(update)
        self.size += call.size - before
        return call.size - before

    def settle(self, ident: str) -> int:
        """Record that a request about a call was answered; return how many bytes more are kept."""
        call = self.calls.get(ident)
        if call is None:
            return 0
        before = call.size
        call.settle()
        more = call.size - before
        self.size += more
        return more

    @property
    def place(self) -> Place:
        """Where it works."""
        return self.cwd, self.additional, self.servers, self.workspace

    def loading(self, before: Place, known: Session) -> None:
        """Record that it is being loaded: updates are history, and nothing is known of calls that go on meanwhile.

        Args:
            before: where it works if that fails.
            known: as what it was known.
        """
        self.goes_on(known)
        self.replaying = self.forgetful = self.bereft = True
        self.before = before

    def loaded(self, *, done: bool) -> None:
        """Record that its load has ended: the updates were history; if it failed, it works where it did.

        Then it goes on, and what was known of its calls, before and during the load, is forgotten.
        """
        self.forget_all()
        self.forgetful = self.bereft = not done
        if self.before is not None and not done:
            self.cwd, self.additional, self.servers, self.workspace = self.before
            self.stale = True
        self.replaying, self.before = False, None

    def forget_all(self) -> None:
        """Forget every call: the session begins afresh."""
        self.calls.clear()
        self.size, self.forgetful, self.bereft = 0, False, False

    def forget_one(self) -> int:
        """Forget the oldest call; return its size in bytes."""
        _, gone = self.calls.popitem(last=False)
        self.forgetful = self.forgetful or gone.announced or gone.broken != ""
        self.bereft = self.bereft or (gone.open and not gone.settled)
        self.size -= gone.size
        return gone.size

    def follow(self, ident: str, update: Mapping[str, object], machine: Machine) -> None:
        """Record where the command of a call takes the shell, once it is known to have run."""
        text = _commands(table(update.get("rawInput"))[0])
        if text != "":
            self.leaving.pop(ident, None)
            self.leaving[ident] = None if text is None else self._leads(text, machine)
            if self.leaving[ident] == ():
                del self.leaving[ident]
            if len(self.leaving) > MOST_CALLS:
                self.leaving.clear()
                self.lost = True
        if update.get("status") in FINISHED and ident in self.leaving:
            self._moved(self.leaving.pop(ident))

    def entered(self, places: tuple[str, ...] | None) -> None:
        """Record that a call took the agent to one of `places`, where it may be from then on; None: to any."""
        self._moved(places)

    def goes_on(self, known: Session | None) -> None:
        """Record that it continues where `known` was, including wherever a call has taken its agent."""
        self.entering = {**known.entering, **self.entering} if known else self.entering
        self.lost |= bool(self.entering)

    def may_run(self, ident: str, *, yes: bool) -> None:
        """Record whether a call that was asked about may run: from then on the shell may be where it leads."""
        if not yes:
            self.leaving.pop(ident, None)
        elif ident in self.leaving:
            self._moved(self.leaving[ident])

    def stands(self, before: Iterable[str] = ()) -> tuple[str, ...]:
        """Return every directory the shell may be in once the calls `before` have run; empty = unknown."""
        gone = [self.leaving[ident] for ident in before if ident in self.leaving]
        if self.cwd is None or self.lost or None in gone or any(self.entering.values()):
            return ()
        return tuple(dict.fromkeys((self.cwd, *self.places, *(place for places in gone for place in places or ()))))

    def _leads(self, text: str, machine: Machine) -> tuple[str, ...] | None:
        if _stays(text):
            return ()
        found: list[str] = []
        pending = list(self.leaving.values())
        leading = (place for places in pending[:MOST_PENDING] for place in places or ())
        starts = list(dict.fromkeys((*self.places, *leading)))[: MOST_PLACES + 1]
        many = len(starts) > MOST_PLACES or len(pending) > MOST_PENDING or len(text) * len(starts) > MOST_READ
        if many and _names_a_mover(text):
            return None
        for start in (self.cwd, *starts):
            if start is None:
                return None
            reading = commands.read(text, cwd=(start,), home=machine.home, shell=machine.shell)
            if any(map(_astray, reading.commands)) or (reading.opaque and _names_a_mover(text)):
                return None
            found += [command.chdir for command in reading.commands if command.chdir is not None]
        return tuple(dict.fromkeys(found))

    def _moved(self, places: tuple[str, ...] | None) -> None:
        known = tuple(place for place in dict.fromkeys((*self.places, *(places or ()))) if place != self.cwd)
        self.lost = self.lost or places is None or len(known) > MOST_PLACES
        self.places = known[:MOST_PLACES]


def stated(ident: str, params: Mapping[str, object], given: str | None) -> Session:
    """Return session `ident` as the params that open it say; `given` is the directory where they say none."""
    cwd, more, servers = (params.get(key) for key in ("cwd", "additionalDirectories", "mcpServers"))
    told = given if cwd in (None, "") else cwd
    told = paths.posix(told) if isinstance(told, str) else told
    return Session(
        ident,
        told if absolute(told) else None,
        tuple(filter(absolute, more)) if isinstance(more, list) else (),
        tuple(str(item["name"]) for item in servers if isinstance(item, TABLE) and item.get("name"))
        if isinstance(servers, list)
        else (),
    )


def _astray(command: SimpleCommand) -> bool:
    """Say whether a command may take the shell to an unknown place."""
    if not command.argv:
        return False
    program, path = command.argv[0], any(one.name == "CDPATH" for one in (*command.env, *command.taint))
    if program.kind is not WordKind.CONST:
        return program.many or "/" not in program.text
    if program.text in SOURCES:
        return not any(word.text.endswith("/bin/activate") for word in command.argv[1:2])
    return (command.chdir is None or path) and program.text in MOVERS


def _commands(raw: Mapping[str, object]) -> str | None:
    """Return what `rawInput` would have a shell run, each directory it states as a `cd`; None if that is not text."""
    found = [text for key in COMMANDS if (value := raw.get(key)) for text in (listed(value) or [value])]
    if not found:
        return ""
    if raw.get("args"):
        found = [" ".join(map(str, [*found, *listed(raw["args"])]))]
    places = [value for key in DIRECTORIES if (value := raw.get(key))]
    if not all(isinstance(text, str) for text in (*found, *places)) or any(str(place)[0] == "~" for place in places):
        return None
    moves = ["cd -- '" + str(place).replace("'", "'\\''") + "'" for place in places]
    return "\n".join([*moves, *map(str, found)])


def _stays(text: str) -> bool:
    """Say whether a text is one plain command that surely does not move the shell: most are, and need no parsing."""
    plain = _PLAIN(text) is not None and not _names_a_mover(text)
    return plain and "source" not in text and "." not in text.split(" ")


def _names_a_mover(text: str) -> bool:
    bare = text.translate(QUOTES)
    return any(mover in bare for mover in MOVERS)
