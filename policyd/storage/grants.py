"""The grants of one policyd process: the current book of each project, and new grants.

`Remembered.bind(request, context)` returns the `grant` argument of `engine.decide`. Every look-up checks the files (two
`lstat`s if nothing changed, one if there never were grants), so a denial added by another process, or `policyd grants
revoke`, counts at the next decision. The grants of a closed session end, even those written later; a session reopened
under its id starts without any. Grants of closed sessions and ended connections are removed from the files. If a grant
cannot be written, a session grant is still kept in memory; any other is not, and the caller gets the reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.grants import LONGEST, Clock, Grant, GrantBook
from policyd.grants.book import Settle, nothing
from policyd.grants.grant import SESSION_LIFE
from policyd.model import Context, Effect, Judged, Request
from policyd.storage import clock as clocks
from policyd.storage.filecache import FileCache
from policyd.storage.filesystem import real_path
from policyd.storage.grantfile import GrantFile, GrantFileError, denials, name_of, project_of

CLOSED_KEPT = 1_000
"""Closed sessions beyond which those are forgotten whose grants have all run out."""
ROOMS = ("grants", "model")
"""Where the code is that reads grants."""


class Remembered(Struct, weakref=True):
    """Grants as one process sees them."""

    directory: str
    """`Places.grants`."""
    run: str
    """A random word of this process (`processes.run_word`)."""
    clock: Callable[[], Clock] = clocks.now
    longest: timedelta = LONGEST
    """`grants.max_age`, of what was remembered before it was set too."""
    cache: FileCache | None = None
    """The cache of parsed large files."""
    say: Callable[[str], None] = lambda text: None
    """Takes what is found wrong with a file, in words."""
    _files: dict[str, GrantFile] = field(default_factory=dict)
    _books: dict[str, tuple[tuple[tuple[Grant, ...], ...], GrantBook]] = field(default_factory=dict)
    _memory: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    """Session grants that could not be written, by project."""
    _closed: dict[str, datetime] = field(default_factory=dict)
    """Session -> when it was closed last: what was answered for it before counts no more."""
    _absent: bool = False
    """There was no directory of grants when one was looked for."""
    _written: set[str] = field(default_factory=set)
    """The projects for whose sessions something was written."""

    def beside(self, run: str) -> Remembered:
        """Return the same files as another connection sees them: session grants are its own, under `run`."""
        return Remembered(self.directory, run, self.clock, self.longest, self.cache, self.say, self._files)

    def bind(self, request: Request, context: Context, *, allows: bool = True) -> Settle:
        """Return what is remembered of each action of `request`; see `GrantBook.bind`.

        Nothing is looked at before it is asked for: most requests are settled without grants.
        """
        bound: list[Settle] = []

        def settle(judged: Judged) -> Effect | None:
            if not bound:
                bound.append(nothing if self._none_kept() else self._bound(request, context, allows=allows))
            return bound[0](judged)

        return settle

    def _bound(self, request: Request, context: Context, *, allows: bool) -> Settle:
        clock = self.clock()
        return self.book(self.root(context), clock).bind(request, context, clock, allows=allows)

    def _none_kept(self) -> bool:
        """Say whether nothing was ever remembered: there is no directory of grants."""
        self._absent = not self._memory and _missing(self.directory)
        return self._absent

    def root(self, context: Context) -> str:
        """Return the real path of the session's project as it is now; empty: no session yet.

        A link to one project may lead to another tomorrow, where nothing of the first holds.
        """
        cwd = context.workspace.cwd
        return real_path(cwd) if cwd else ""

    def book(self, root: str, clock: Clock) -> GrantBook:
        """Return the grants that may count in the project at `root` now."""
        files = [self._file(place) for place in (("", root) if root else ("",))]
        parts = (self._memory.get(root, ()), *[file.grants(clock) for file in files])
        if any(file.unread for file in files):  # what they deny is not known
            parts = tuple(map(denials, parts))
        for file in files:
            file.note(clock)
            for text in file.take_problems():
                self.say(text)
        known = self._books.get(root)
        if known is None or known[0] != parts:
            held = tuple(grant.capped(self.longest) for grant in sum(parts, ()) if not self._over(grant))
            known = self._books[root] = parts, GrantBook(root, held, self.run)
        return known[1]

    def end(self, session: str) -> None:
        """Take in that a session of this process was closed."""
        now = self.clock().wall
        if len(self._closed) >= CLOSED_KEPT:
            self._closed = {one: at for one, at in self._closed.items() if at > now - SESSION_LIFE}
        held = (grant for parts, _ in self._books.values() for part in parts for grant in part)
        given = [grant.created for grant in held if grant.run == self.run]
        self._closed[session] = max([now, *given])  # the wall clock may have been set back since
        self._take_out({*self._books, *self._written}, session)
        self._books.clear()

    def leave(self) -> None:
        """Take in that the connection has ended, and with it all its sessions."""
        self._take_out(self._written)
        self._written.clear()

    def _take_out(self, places: Iterable[str], session: str | None = None) -> None:
        """Take what was for a session, or all, of this process out of files; it counts no more where that fails."""

        def over(grant: Grant) -> bool:
            return grant.scope == "session" and grant.run == self.run and session in (None, grant.session)

        for file in [self._files[place] for place in {"", *places} if place in self._files]:
            if any(map(over, file.current().grants)):
                with suppress(GrantFileError):
                    file.change(lambda old: [grant for grant in old if not over(grant)], brief=True)

    def _over(self, grant: Grant) -> bool:
        at = self._closed.get(grant.session) if grant.scope == "session" and grant.run == self.run else None
        return at is not None and grant.created <= at

    def remember(self, grants: Iterable[Grant]) -> None:
        """Keep grants, each for its project, stamped with this moment's boot clock and this process.

        Raises:
            GrantFileError: one could not be written; session grants are kept in memory all the same.
        """
        clock = self.clock()
        places: dict[str, list[Grant]] = {}
        for grant in grants:
            if grant.scope == "project" and not grant.project:
                raise ValueError("a grant of project scope names no project")
            place = "" if grant.scope == "user" else grant.project
            places.setdefault(place, []).append(self._stamp(grant, clock))
        for place, new in places.items():
            self._add(place, new)

    def _add(self, place: str, new: list[Grant]) -> None:
        if any(grant.scope == "session" for grant in new):
            self._written.add(place)
        try:
            self._file(place).change(lambda old: merged(old, new))
        except GrantFileError:
            session = [grant for grant in new if grant.scope == "session"]
            if session:
                self._memory[place] = merged(self._memory.get(place, ()), session)
            raise

    def changed(self) -> bool:
        """Say whether a file in use changed since it was last looked at: open questions are then judged again.

        Safe in a thread.
        """
        if self._absent and not _missing(self.directory):
            self._absent = False
            return True
        return any(file.changed() for file in [*self._files.values()])

    def _file(self, root: str) -> GrantFile:
        if root not in self._files:
            self._files[root] = GrantFile(self.directory, root, self.clock, cache=self.cache)
        return self._files[root]

    def _stamp(self, grant: Grant, clock: Clock) -> Grant:
        return replace(
            grant,
            until=min(grant.until, grant.created + self.longest),
            boot=clock.boot if clock.boot_id else None,
            boot_id=clock.boot_id,
            run=self.run if grant.scope == "session" else "",
        )


def grants_cache(directory: str) -> FileCache:
    """Return the cache of parsed grants below the user's cache directory (`Places.cache`)."""
    return FileCache(f"{directory}/grants", ROOMS)


def _missing(directory: str) -> bool:
    """Say whether it is certain that a directory is not there."""
    try:
        os.lstat(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def merged(old: Iterable[Grant], new: Iterable[Grant]) -> tuple[Grant, ...]:
    """Return `old` with `new` added; one of the same name is replaced, and a denial ends an allow of the same thing."""
    found = {grant.name: grant for grant in old}
    for grant in new:
        found.pop(grant.name, None)
        found[grant.name] = grant
        if grant.effect is Effect.DENY:
            found = {name: one for name, one in found.items() if not _ends(grant, one)}
    return tuple(found.values())


def files(directory: str, cache: FileCache | None = None) -> tuple[GrantFile, ...]:
    """Return all files of grants in `directory`, the user's own first; a file says itself which project it is about."""
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".toml"))
    except OSError:
        return ()
    roots = (project_of(f"{directory}/{name}") for name in names)
    found = (root for root in sorted(set(roots)) if f"{name_of(root)}.toml" in names)
    return tuple(GrantFile(directory, root, cache=cache) for root in found)


def _ends(denial: Grant, grant: Grant) -> bool:
    """Say whether a denial ends a grant: not where it is of a session, and the grant of another process's."""
    same = grant.agent == denial.agent and grant.members == denial.members
    return grant.effect is Effect.ALLOW and same and (not denial.run or grant.run in {"", denial.run})
