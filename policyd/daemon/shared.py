"""State shared by all peers: policies, settings, the audit log, grants, prompt programs, durability, watching.

Rules of this module:

1. A peer costs two small objects, no thread and no descriptor beside its socket.
2. Grants are kept by user: one uid's never count for another. Session grants belong to one peer.
3. The identity of a peer comes from the kernel; labels, roots, client and agent are its claims.
4. Results of threads arrive through one queue and one wake-up pipe.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import monotonic
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from policyd import audit
from policyd.authorizer import Authorizer, Claims
from policyd.daemon.lookout import Lookout
from policyd.daemon.steps import Durability, Steps
from policyd.daemon.wire import Hello
from policyd.display import safe
from policyd.grants import Grant
from policyd.policy import Policy
from policyd.service.book import Change, stated
from policyd.service.passing import let_go
from policyd.service.performer import Performer, bell
from policyd.service.service import LEVELS
from policyd.service.start import Choices, Ground, enforced, in_force, prepare
from policyd.service.steps import faults
from policyd.session import Connection, Note, Reloaded, Remember, Settings
from policyd.session.judge import Judge
from policyd.storage import checkpoints
from policyd.storage.auditlog import AuditError
from policyd.storage.grants import Remembered, grants_cache
from policyd.storage.inbox import Inbox
from policyd.storage.settings import is_locked

PENDING = 1_000
"""Permission requests of one uid that may be open at once."""
A_MINUTE, MINUTE = 60, 60.0
"""Lines about the peers of one uid that are written in so many seconds."""


class Who(Struct, frozen=True):
    """A peer as the kernel names it."""

    uid: int
    gid: int
    pid: int
    user: str
    groups: tuple[str, ...] = ()
    home: str = ""
    """Home directory of another user than this daemon's: what `~/` means to them; empty: this daemon's."""
    born: int = 0
    """When the process was started, in the kernel's ticks: with it a process id names one process only."""

    @property
    def own(self) -> bool:
        """Whether it is this daemon's own user, or root."""
        return self.uid in {0, os.getuid()}


class Shared:
    """What all connections are built from."""

    def __init__(self, choices: Choices, note: Callable[[str], None]) -> None:
        """Load everything.

        Raises:
            StartError: with all that is wrong.
        """
        self.choices = choices
        self._note = note
        self.ground: Ground = prepare(choices)
        self.settings = self.ground.loaded.settings
        self.began = monotonic()
        self.problems: tuple[str, ...] = ()
        self.pending: dict[int, int] = {}
        """Open permission requests by uid."""
        self.pids: dict[int, int] = {}
        """Process ids of peers that ask for an agent, with how many connections each has."""
        self.changed: Callable[[str, bool], None] = lambda revision, loosens: None
        """Called when another policy is in force, and whether it may allow more."""
        self.reported: Callable[[], None] = lambda: None
        """Called when something was found in the files: it is in force, or a problem."""
        self.looked: Callable[[], None] = lambda: None
        """Called when a look that somebody wanted is over."""
        self.waker, self._ring = bell()
        self._roused = False
        self._ringing: deque[Performer] = deque()
        self._found: deque[object] = deque()
        self._performers: dict[Performer, Authorizer] = {}
        self._one_look = threading.Lock()
        self._leaving: dict[Performer, Callable[[], None]] = {}
        """What is to be done when a connection has ended."""
        self._relayed: dict[Performer, Connection] = {}
        """The connections of proxies."""
        self._grant_files: dict[int, Remembered] = {}
        self._runs: WeakValueDictionary[str, Remembered] = WeakValueDictionary()
        """The grants as each connection that is open sees them, by its `run`."""
        self._told: dict[int, tuple[float, int]] = {}
        """Since when, and how many lines were written about each uid's peers."""
        self.inbox = Inbox(self.ground.places.inbox)
        self.steps = Steps(self.inbox)
        self.durability: Durability | None = None
        self._checkpoints: checkpoints.Checkpoints | None = None
        self._watching: Callable[[], None] = lambda: None
        self._looking = Lookout(
            self.look,
            lambda: self._post(self.looked),
            lambda text: self._post(Note(text, loud=True)),
        )

    def begin(self) -> None:
        """Start what runs beside the loop, say what is to be known."""
        if self.settings.audit_durability == "fsync":
            self.durability = Durability(self.ground.log)
        if self.settings.audit_checkpoints != "off":
            self._checkpoints = checkpoints.begin(self.ground.log, self.settings.audit_checkpoints, self._note)
        self.record("start", **stated(self.ground.book.policy))
        for entry in self.inbox.abandoned():
            self.record("inbox", entry=entry.id, outcome="rejected", reason="policyd ended before it was answered")
            self.say(f"the question {entry.id} was open when policyd ended: rejected")
        self._watch()
        for text in (*self.ground.book.notes, *self.ground.loaded.notes, *faults(self.settings.prompt)):
            self.say(text)

    def _watch(self) -> None:
        from policyd.service.watch import Watcher

        watcher = Watcher(
            lambda: [*self.ground.book.watched(), self.ground.places.grants],
            self.look,
            lambda text: self._post(Note(text, loud=True)),
        )
        watcher.start()
        self._watching = watcher.stop

    def finish(self) -> None:
        """End what runs beside the loop."""
        self.steps.close()
        if self.durability:
            self.durability.stop()
        self._watching()
        if self._checkpoints:
            self._checkpoints.stop()

    # ---- peers --------------------------------------------------------------------------------------

    def authorizer(self, who: Who, hello: Hello, run: str, *, interactive: bool) -> Authorizer:
        """Return a decision point for one peer."""
        book, loaded = self.ground.book, self.ground.loaded
        remembered, machine = self._remembered(who, run), self.ground.machine
        home = who.home or machine.home
        return Authorizer(
            book.of((), home).policy,
            policies=lambda session: in_force(book, session, home),
            machine=replace(machine, home=home, launched=hello.cwd or None),
            claims=Claims(self.labels(hello.labels), loaded.managed_labels, who.user, who.groups, interactive),
            grants=remembered.bind if self.choices.grants else None,
            end_grants=remembered.end,
            agent=hello.agent or self.choices.agent or "",
        )

    def labels(self, claimed: Mapping[str, str]) -> dict[str, str]:
        """Return the labels of a peer that claims these: the settings' own win, and are the only ones if locked."""
        locked = is_locked("labels", self.ground.loaded.locked)
        return {**({} if locked else claimed), **self.settings.labels}

    def performer(self, who: Who, judge: Judge, settings: Settings, *, transport: str) -> tuple[Performer, Connection]:
        """Return an enforcement over `judge`, and its hands."""
        connection = Connection(judge, settings, nonce=secrets.token_hex(8))
        remembered = self._remembered(who, settings.run)
        made: list[Performer] = []

        def ring() -> None:
            self._ringing.append(made[0])
            self._rouse()

        performer = Performer(
            connection,
            log=self.ground.log,
            note=lambda note: self.say_of(who, note.text, loud=note.loud),
            remember=lambda command: keep(remembered, command),
            ring=ring,
            stamp={"user": who.user, "uid": who.uid, "peer": who.pid, "transport": transport},
        )
        made.append(performer)
        performer.steps = self.steps.of(performer, who)
        performer.durable = self.durability.of(performer) if self.durability else None
        self._performers[performer], self._leaving[performer] = judge.authorizer, remembered.leave
        if transport == "connect":
            self._relayed[performer] = connection
        return performer, connection

    def arrived(self, who: Who, step: int = 1) -> None:
        """Count a peer that asks for an agent, or (-1) that has gone."""
        count = self.pids.pop(who.pid, 0) + step
        if count > 0:
            self.pids[who.pid] = count

    def forget(self, performer: Performer) -> None:
        """A connection has ended."""
        self._performers.pop(performer, None)
        self._relayed.pop(performer, None)
        self._leaving.pop(performer, lambda: None)()
        if performer.steps:
            performer.steps.close()

    def enforced(self, chain: tuple[str, ...], run: str, client: str, **changes: object) -> Settings:
        """Return the settings of one connection."""
        settings = enforced(self.settings, self.choices, run)
        return replace(settings, prompt=chain, client=client or settings.client, **changes)

    def _remembered(self, who: Who, run: str) -> Remembered:
        """Return the grants of a uid as one peer sees them: the files are shared, session grants are its own.

        Who decides and who remembers must share them: what cannot be written is kept nowhere else.
        """
        if who.uid not in self._grant_files:
            longest = timedelta(days=self.settings.grants_max_age)
            self._grant_files[who.uid] = Remembered(
                self.grants_of(who.uid),
                "",
                longest=longest,
                cache=grants_cache(self.ground.places.cache),
                say=lambda text: self.say(safe(text), loud=True),
            )
        found = self._runs.get(run)
        if found is None:
            found = self._runs[run] = self._grant_files[who.uid].beside(run)
        return found

    def grants_of(self, uid: int) -> str:
        """Return the directory of what a uid's people answered."""
        place = self.ground.places.grants
        return place if uid == os.getuid() else f"{place}/uid-{uid}"

    def agents_above(self) -> frozenset[int]:
        """Return the processes whose descendants may be agents."""
        return frozenset(self.pids)

    def connections(self) -> int:
        """Return how many peers ask for an agent."""
        return sum(self.pids.values())

    def waiting(self) -> int:
        """Return how many permission requests wait for an answer."""
        return sum(self.pending.values()) + sum(connection.waiting for connection in self._relayed.values())

    def revision(self) -> str:
        """Return the revision of the policy without projects."""
        return self.ground.book.policy.revision

    def words(self) -> str:
        """Return how it goes in one line, for the service manager."""
        bad = f"; {len(self.problems)} problems, the first: {safe(self.problems[0])}" if self.problems else ""
        return f"{self.revision()} in force{bad}"

    # ---- the loop's side ----------------------------------------------------------------------------

    def wake(self) -> list[Performer]:
        """Take what threads have; return the connections that were touched."""
        with suppress(BlockingIOError):
            os.read(self.waker, 4096)
        self._roused = False  # before looking: what comes from here on rings again
        touched: dict[Performer, None] = {}
        while self._ringing:
            performer = self._ringing.popleft()
            performer.wake()
            touched[performer] = None
        while self._found:
            self._take(self._found.popleft(), touched)
        return list(touched)

    def _take(self, found: object, touched: dict[Performer, None]) -> None:
        if isinstance(found, Note):
            self.say(found.text, loud=found.loud)
            return
        if callable(found):
            found()
            return
        replaced: list[Policy] = []
        announce = self._reloaded(found, replaced) if isinstance(found, Change) else ""
        for performer in list(self._performers):
            performer.handle(Reloaded(announce))
            touched[performer] = None
        let_go(replaced)

    def _reloaded(self, change: Change, replaced: list[Policy]) -> str:
        """Put a change in force; return what open sessions are told of it, empty if nothing."""
        book = self.ground.book
        replaced += book.take(change)
        self.problems = change.problems
        for authorizer in dict.fromkeys(self._performers.values()):
            if change.revision:
                authorizer.reload(book.of((), authorizer.conversation.machine.home).policy)
        for problem in change.problems:
            self.say(problem, loud=True)
        told = change.words(book.policy.revision)
        if told:
            self.say(told, loud=change.loosens)
            self.changed(book.policy.revision, change.loosens)
        self.record("reload", **stated(book.policy), loosens=change.loosens, problems=list(change.problems))
        self.reported()
        return told if change.loosens else ""

    def look(self) -> bool:
        """Look at the files again, in the watcher's thread or in one of its own; say whether to look again soon."""
        with self._one_look:
            change = self.ground.book.look()
            if change is not None:
                self._post(change)
            elif any(one.changed() for one in [*self._grant_files.values()]):
                self._post("grants")
            return self.ground.book.waits

    def look_soon(self) -> None:
        """Look at the files beside the traffic; `looked` is called when that is done."""
        self._looking.begin()

    def _post(self, what: object) -> None:
        self._found.append(what)
        self._rouse()

    def _rouse(self) -> None:
        """Wake the loop, from any thread; once until it looks, since each ring costs a call."""
        if not self._roused:
            self._roused = True
            self._ring()

    # ---- saying -------------------------------------------------------------------------------------

    def say(self, text: str, *, loud: bool = False) -> None:
        """Write one line to standard error, if it is wanted."""
        if self._wanted(loud):
            self._note(text)

    def _wanted(self, loud: bool) -> bool:
        return loud or LEVELS[self.settings.log_level] >= LEVELS["info"]

    def say_of(self, who: Who, text: str, *, loud: bool = False) -> None:
        """Write a line about what a peer did: of one user at most so many a minute, or they could fill the disk."""
        if not self._wanted(loud):
            return
        now = monotonic()
        began, count = self._told.get(who.uid, (now, 0))
        if now - began > MINUTE:
            began, count = now, 0
        self._told[who.uid] = began, count + 1
        if count == A_MINUTE:
            self.say(f"what else connections of {who.user} do is not told for a minute", loud=True)
        elif count < A_MINUTE:
            self.say(text, loud=True)

    def record(self, name: str, **fields: object) -> None:
        """Append a record nothing depends on; a failure is said."""
        now = datetime.now(UTC)
        try:
            self.ground.log.append(audit.event(name, now, **fields), now)
        except AuditError as error:
            self.say(str(error), loud=True)

    def check(self) -> str:
        """Decide a request made up for it; return what is wrong, empty if the daemon works."""
        authorizer = Authorizer(self.ground.book.policy, machine=self.ground.machine)
        params: Mapping[str, object] = {
            "sessionId": "self-check",
            "toolCall": {"toolCallId": "self-check", "kind": "read", "locations": [{"path": "/etc/policyd"}]},
            "options": [{"optionId": "no", "name": "Reject", "kind": "reject_once"}],
        }
        decision = authorizer.decide(params)
        if decision.source.value == "error":
            return decision.reason
        return self.mute() or (self.durability.check() if self.durability else "")

    def mute(self) -> str:
        """Say why decisions cannot be recorded, so that nothing is allowed; empty as far as is known."""
        lost = self.ground.log.lost
        return f"the audit log {self.ground.log.path} cannot be written: {lost} records were lost" if lost else ""


def keep(remembered: Remembered, command: Remember) -> None:
    """Keep answers of a person."""
    remembered.remember(grant for grant in command.grants if isinstance(grant, Grant))
