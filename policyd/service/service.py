"""One running connection: the performer, and its helpers (prompt programs, fsync, reload)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from policyd import audit
from policyd.authorizer import Authorizer
from policyd.display import safe
from policyd.grants import Grant
from policyd.service.book import Change, PolicyBook, stated
from policyd.service.passing import let_go
from policyd.service.performer import Performer
from policyd.service.warm import warm
from policyd.session import Note, Reloaded, Remember, Side
from policyd.storage.grants import Remembered
from policyd.storage.places import here
from policyd.storage.settings import Loaded

if TYPE_CHECKING:
    from policyd.service.watch import Watcher
    from policyd.storage.checkpoints import Checkpoints

SLICE = 0.0005
"""Seconds a thread may keep the interpreter while a message waits, or the loop while a record is made durable."""
LEVELS = {"error": 0, "warn": 1, "info": 2, "debug": 3}


class Service:
    """What a transport holds: feed it whole lines, let it wake and tick, and finish it."""

    def __init__(
        self,
        book: PolicyBook,
        loaded: Loaded,
        authorizer: Authorizer,
        remembered: Remembered,
        note: Callable[[str], None],
        command: Sequence[str] = (),
    ) -> None:
        """Hold the parts; `use` and `connect` complete it. `command` started the agent, for the record."""
        self.settings = loaded.settings
        self.inbox = ""
        """The directory of questions that wait for `policyd prompts answer`."""
        self._book = book
        self._loaded = loaded
        self._authorizer = authorizer
        self._remembered = remembered
        self._write = note
        self._command = command
        self._loud = LEVELS[loaded.settings.log_level]
        self._performer: Performer
        self._watcher: Watcher
        self._checkpoints: Checkpoints | None = None
        self._out: Callable[[Side, bytes], None]

    # ---- putting together ---------------------------------------------------------------------------

    def use(self, performer: Performer) -> None:
        """Take the performer, and what of it is called for every message."""
        self._performer = performer
        self.waker = performer.waker
        self.feed, self.closed, self.tick, self.wake = performer.feed, performer.closed, performer.tick, performer.wake
        self.deadline, self.busy = performer.deadline, performer.busy
        performer.reloaded = self._reloaded

    def connect(self, out: Callable[[Side, bytes], None]) -> None:
        """Begin: send by `out`, start what runs beside the loop, say and record what is to be known."""
        self._out = out
        sys.setswitchinterval(SLICE)
        self._performer.send_by(out)
        performer = self._performer
        if any(step != "client" for step in self.settings.prompt):
            from policyd.service.steps import ProgramSteps, faults

            performer.steps = ProgramSteps(performer.post, self.inbox)
            for text in faults(self.settings.prompt):
                self.say(Note(safe(text), loud=True))
        if self.settings.audit_durability == "fsync":
            from policyd.storage.auditsync import Syncer

            performer.durable = Syncer(performer.log, lambda keys, why: performer.post((keys, why)))
        if self.settings.audit_checkpoints != "off":
            from policyd.storage import checkpoints

            self._checkpoints = checkpoints.begin(performer.log, self.settings.audit_checkpoints, self._write)
        warm(self._book.policy)
        self._watch()
        for text in (*self._book.notes, *self._loaded.notes):
            self.say(Note(safe(text)))
        policies = [source.name for source in self._book.sources]
        self._record("start", command=list(self._command), cwd=here(), policies=policies, **stated(self._book.policy))

    def _watch(self) -> None:
        from policyd.service.watch import Watcher

        self._watcher = Watcher(
            lambda: [*self._book.watched(), self._remembered.directory],
            self._look,
            lambda text: self._performer.post(Note(safe(text), loud=True)),
        )
        self._watcher.start()

    # ---- what the performer calls -------------------------------------------------------------------

    def say(self, note: Note) -> None:
        """Write one line to standard error, if it is wanted."""
        if note.loud or self._loud >= LEVELS["info"]:
            self._write(note.text)

    def remember(self, command: Remember) -> None:
        """Keep answers of a person."""
        self._remembered.remember(grant for grant in command.grants if isinstance(grant, Grant))

    # ---- reload -------------------------------------------------------------------------------------

    def _look(self) -> bool:
        """Look at the files, in the watcher's thread; say whether to look again soon."""
        change = self._book.look()
        if change is not None:
            self._performer.post(change)
        elif self._remembered.changed():
            self._performer.post("grants")
        return self._book.waits

    def _reloaded(self, found: object) -> Reloaded | None:
        """Take what the watcher found; return what the enforcement is told: it judges open questions again."""
        if isinstance(found, Note):
            self.say(found)
            return None
        return Reloaded(self._take(found)) if isinstance(found, Change) else Reloaded()

    def _take(self, change: Change) -> str:
        """Put a change in force; return what open sessions are told of it, empty if nothing."""
        replaced = self._book.take(change)
        if change.revision:
            self._authorizer.reload(self._book.policy)
        for problem in change.problems:
            self.say(Note(safe(problem), loud=True))
        told = change.words(self._book.policy.revision)
        if told:
            self.say(Note(told, loud=change.loosens))
        said = stated(self._book.policy)
        self._record("reload", **said, loosens=change.loosens, problems=list(change.problems))
        let_go(replaced)
        return told if change.loosens else ""

    def _record(self, name: str, **fields: object) -> None:
        self._performer.record(audit.event(name, datetime.now(UTC), **fields))

    # ---- the end ------------------------------------------------------------------------------------

    @property
    def refused(self) -> bool:
        """Whether anything was refused."""
        return self._performer.tally.refused

    def summary(self) -> list[str]:
        """What was decided, in lines, where nobody is asked; a person knows it."""
        return [] if self.settings.prompt else self._performer.tally.lines()

    def finish(self) -> None:
        """End what runs beside the loop, once the sides are gone."""
        self._performer.finish()
        self._remembered.leave()
        self._watcher.stop(0.0)
        if self._checkpoints:
            self._checkpoints.stop()
