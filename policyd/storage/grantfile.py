"""Grants on disk: one file for each project in the user's state directory, shared by all policyd processes.

Rules of this module:

1. Files are keyed by the real path of the project's root, and never stored in the repository. Device and inode of the
   root are recorded: if another directory is at that path, its allows are void.
2. A change holds a lock (released by the kernel when its holder dies; one that stays held is a failure), reads the
   file, writes a temporary one in the same directory, flushes and renames it, and flushes the directory. A reader sees
   the old file or the new one.
3. Only a regular file of this user that nobody else may write counts, checked on the descriptor that is read.
4. A damaged file is moved aside and replaced by its readable denials; its allows are lost. A file that cannot be read
   for the moment (no descriptor is left, a disk fails) is `unread`, not damaged: it is not overwritten, and what it
   denies is not known.
5. A reader checks the file's identity before each use, so that others' changes count at the next decision.
6. The parsed contents of a large file may be cached under the digest of its bytes. The file itself is still checked and
   read, and every rule above holds.
7. The latest wall-clock time is recorded, every ten minutes beside the file and in it at each change: after a reboot no
   allow counts while the clock is behind that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import DecodeError, Struct, field, msgpack
from msgspec.structs import replace

from policyd.digest import sha256
from policyd.grants import Clock, Grant, Loaded, Project, dump, load
from policyd.grants.text import BREAK, LONGEST_TEXT
from policyd.model import Effect
from policyd.storage import clock as clocks
from policyd.storage.filecache import FileCache
from policyd.storage.locks import lock
from policyd.storage.private import flush_directory, make_directory, put
from policyd.storage.processes import ended
from policyd.storage.strictfile import own_owners, read_own, read_some

BEHIND = timedelta(minutes=2)
NOTED = timedelta(minutes=10)
LARGE = 64 * 1024
DIGEST = 32
USER = "user"
NO_FILE = frozenset({errno.ELOOP, errno.ENXIO})
"""Why no file can be opened there: it is a link, or a socket."""

Identity = tuple[int, int, int, int, int] | None
Change = Callable[[tuple[Grant, ...]], Iterable[Grant]]


class GrantFileError(OSError):
    """A change could not be written; what was there still is."""


class GrantFile(Struct):
    """One file of grants."""

    directory: str
    root: str
    """Real path of the project; empty for the file of user scope."""
    clock: Callable[[], Clock] = clocks.now
    problems: list[str] = field(default_factory=list)
    """What was found wrong, in words, each once, until somebody takes it (`take_problems`)."""
    cache: FileCache | None = None
    """The cache of parsed large files."""
    unread: bool = False
    """It is there and could not be read."""
    _reported: set[str] = field(default_factory=set)
    _identity: Identity = None
    _loaded: Loaded = field(default_factory=Loaded)
    _read: bool = False
    _view: tuple[Loaded, bool, bool] | None = None
    _grants: tuple[Grant, ...] = ()
    path: str = ""
    """The file."""

    def __post_init__(self) -> None:
        """Name the file once: it is looked at for every question."""
        self.path = f"{self.directory}/{name_of(self.root)}.toml"

    def grants(self, clock: Clock) -> tuple[Grant, ...]:
        """Return what may count at this moment: the same tuple as before where nothing changed. Never raises."""
        loaded = self.current()
        if not loaded.grants:
            return ()
        if self.unread:
            return denials(loaded.grants)
        view = loaded, self._same_place(loaded), _behind(loaded, clock)
        if self._view is None or view[0] is not self._view[0] or view[1:] != self._view[1:]:
            kept = (one for one in loaded.grants if _may_count(one, *view[1:], clock) and self._belongs(one))
            self._view, self._grants = view, lasting(kept)
        return self._grants

    def current(self) -> Loaded:
        """Return what the file holds, read again if it changed; what it held where it is `unread`."""
        if self.changed():
            self._refresh()
            if self._loaded.damage:
                with contextlib.suppress(OSError), self._locked():
                    self._set_aside()
        return self._loaded

    def changed(self) -> bool:
        """Say whether the file is another than the one last read."""
        return not self._read or identify(self.path) != self._identity

    def change(self, how: Change, *, brief: bool = False) -> tuple[Grant, ...]:
        """Replace the grants by what `how` makes of them, durably; return the new ones.

        What is over, or void, is left out on the way. The clock is read when the lock is held: what others added
        while this process waited is no grant from the future. `brief`: hardly wait for others.

        Raises:
            GrantFileError: nothing was changed.
        """
        try:
            with self._locked(brief=brief):
                self._refresh()
                if self.unread:
                    raise GrantFileError(errno.EIO, "what is there cannot be read", self.path)
                if self._loaded.damage:
                    self._set_aside()
                old, clock = self._loaded, self.clock()
                place, behind = self._same_place(old), _behind(old, clock)
                kept = (one for one in old.grants if _unspent(one, clock) and _may_count(one, place, behind, clock))
                new = tuple(how(lasting(kept)))
                self._write(new, clock.wall if behind else max(clock.wall, old.seen or clock.wall))
                return new
        except GrantFileError:
            raise
        except OSError as error:
            raise GrantFileError(error.errno, f"grants cannot be written: {error.strerror}", self.path) from error

    def note(self, clock: Clock) -> None:
        """Note the wall clock where the note is older than ten minutes; failing to is no harm."""
        loaded = self._loaded
        if self.unread or not loaded.grants or loaded.seen is None or clock.wall - loaded.seen <= NOTED:
            return
        self._loaded = replace(loaded, seen=clock.wall)
        with contextlib.suppress(OSError), self._locked(brief=True):
            put(f"{self.path}.seen", clock.wall.isoformat().encode())

    def _noted(self, loaded: Loaded) -> Loaded:
        """Return what the file holds with the later of the two notes of the clock; a damaged one is none."""
        try:
            noted = datetime.fromisoformat(read_own(f"{self.path}.seen", own_owners()).decode("ascii"))
            return replace(loaded, seen=max(noted, loaded.seen)) if loaded.seen else loaded
        except (OSError, ValueError, TypeError):
            return loaded

    def take_problems(self) -> tuple[str, ...]:
        """Return and forget what was found wrong."""
        found = tuple(self.problems)
        self.problems.clear()
        return found

    def _refresh(self) -> None:
        if not self.changed():
            return
        try:
            self._identity, self._loaded = self._load()
        except OSError as error:
            self.unread, self._read = True, False
            self._report(f"{self.path} cannot be read ({error.strerror}): until it can be, no remembered answer allows")
            return
        self.unread, self._read = False, True
        if self._loaded.damage:
            self._report(f"{self.path} is damaged ({self._loaded.damage[0]}): what it allowed is void")

    def _same_place(self, loaded: Loaded) -> bool:
        """Say whether the file is about the directory that lies at the root now."""
        if not loaded.grants or loaded.project == Project(self.root, *self._place()):
            return True
        self._report(f"{self.path} is about another directory than {self.root or 'none'}: what it allowed is void")
        return False

    def _belongs(self, grant: Grant) -> bool:
        """Say whether a grant's scope is that of this file: what is for one project never counts for all."""
        return grant.effect is Effect.DENY or grant.scope == "session" or (grant.scope == "user") == (not self.root)

    def _place(self) -> tuple[int, int]:
        if not self.root:
            return 0, 0
        try:
            found = os.stat(self.root)
        except OSError:
            return 0, 0
        return found.st_dev, found.st_ino

    def _load(self) -> tuple[Identity, Loaded]:
        """Return what is there; OSError where that cannot be told."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None, Loaded()
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            return identify(self.path), Loaded(damage=(f"it cannot be opened: {error.strerror}",))
        try:
            status = os.fstat(descriptor)
            identity, why = _identity(status), insecure(status)
            if not stat.S_ISREG(status.st_mode):
                return identity, Loaded(damage=(why,))
            loaded = _parse_cached(read_some(descriptor, LONGEST_TEXT + 1), self.cache)
            return identity, _only_denials(loaded, why) if why else self._noted(loaded) if loaded.grants else loaded
        finally:
            os.close(descriptor)

    def _set_aside(self) -> None:
        """Keep the damaged file under another name and put its denials in its place; the lock is held."""
        self._refresh()
        loaded = self._loaded
        if self.unread or not loaded.damage:
            return
        aside = f"{self.path}.damaged-{os.getpid()}-{os.urandom(4).hex()}"
        os.rename(self.path, aside)
        self._write(loaded.grants, loaded.seen or datetime(1970, 1, 1, tzinfo=UTC))
        self._report(f"the damaged file was kept as {aside}")

    @contextlib.contextmanager
    def _locked(self, *, brief: bool = False) -> Iterator[None]:
        make_directory(self.directory)
        status = os.stat(self.directory)
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise GrantFileError(errno.EPERM, "the directory is not this user's alone", self.directory)
        descriptor = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            lock(descriptor, brief=brief)
            yield
        finally:
            os.close(descriptor)

    def _write(self, grants: tuple[Grant, ...], seen: datetime) -> None:
        project = Project(self.root, *self._place())
        data = dump(grants, project, seen).encode()
        if len(data) > LONGEST_TEXT:
            raise GrantFileError(errno.EFBIG, "too many grants", self.path)
        put(self.path, data)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.path}.seen")
        flush_directory(self.directory)
        self._loaded = Loaded(grants, project, seen)
        self._identity, self._read = identify(self.path), True

    def _report(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self.problems.append(text)


def name_of(root: str) -> str:
    """Return the name of the file for a project's root: a digest, so that no path is too long for it."""
    return sha256(os.fsencode(root)).hexdigest()[:32] if root else USER


def project_of(path: str) -> str:
    """Return the project a file says it is about, empty where it says none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        head = read_some(descriptor, LARGE).partition(BREAK.encode())[0]
        return _parse(head).project.path
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def identify(path: str) -> Identity:
    """Return what changes whenever a file is replaced or written, None where there is none."""
    try:
        return _identity(os.lstat(path))
    except OSError:
        return None


def insecure(status: os.stat_result) -> str:
    """Return why a file with this status is not this user's alone, empty if it is."""
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if status.st_uid != os.getuid():
        return f"it belongs to user {status.st_uid}"
    return "others may write it" if status.st_mode & 0o022 else ""


def _identity(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _parse_cached(data: bytes, cache: FileCache | None) -> Loaded:
    """Return what the bytes of a file hold, from the cache if it is there."""
    if cache is None or len(data) < LARGE:
        return _parse(data)
    name = sha256(data).hexdigest()
    kept = cache.get(name) or b""
    if kept[:DIGEST] == sha256(kept[DIGEST:]).digest():
        with contextlib.suppress(DecodeError):
            return msgpack.decode(kept[DIGEST:], type=Loaded)
    loaded = _parse(data)
    if not loaded.damage:
        told = msgpack.encode(loaded)
        cache.put(name, sha256(told).digest() + told)
    return loaded


def _parse(data: bytes) -> Loaded:
    try:
        return load(data.decode())
    except UnicodeDecodeError as error:
        return _only_denials(load(data.decode(errors="replace")), f"it is no UTF-8: {error.reason}")


def denials(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Return what is denied among grants."""
    return tuple(one for one in grants if one.effect is Effect.DENY)


def lasting(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Return grants but for those of sessions whose policyd has ended."""
    found = tuple(grants)
    over = {run for run in {one.run for one in found} if ended(run)}
    return tuple(one for one in found if one.run not in over) if over else found


def _only_denials(loaded: Loaded, why: str) -> Loaded:
    return replace(loaded, grants=denials(loaded.grants), damage=(why, *loaded.damage))


def _behind(loaded: Loaded, clock: Clock) -> bool:
    return loaded.seen is not None and clock.wall < loaded.seen - BEHIND


def _unspent(grant: Grant, clock: Clock) -> bool:
    """Say whether a grant is not over yet; a denial from the future stays, an allow from there is void."""
    return grant.alive(clock) or (grant.effect is Effect.DENY and grant.until > clock.wall)


def _may_count(grant: Grant, same_place: bool, behind: bool, clock: Clock) -> bool:
    """Say whether a grant may count: for the same directory still, and by a clock that did not go back."""
    if grant.effect is Effect.DENY:
        return True
    return same_place and (not behind or bool(clock.boot_id and clock.boot_id == grant.boot_id))
