"""Finding the policy files of every layer, and composing a session's policy.

Rules of this module:

1. *managed* (`/etc/policyd/policies.d/*.toml`): every file, link and directory on the way belongs to root and is
   writable by nobody else, checked on open descriptors. Anything else is an error, never a file less.
2. *user* (`policies.d` of the user's configuration, or the files given with `--policy`): invalid or not the user's own
   is an error.
3. *project* (`.policyd/*.toml` of each workspace root): only tightens until a person trusted exactly these bytes.
   Invalid at start, it makes everything in that session at least ask.
4. A user's policy file that lies inside a session's workspace is a project file, whatever named it, unless its bytes
   were vouched for with `--policy-digest sha256:…`.
5. What is in a policy directory and is no policy (another ending, a test suite `*_test.toml`), and what lies beside
   `policies.d` as if it were one, is reported, never silently left out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from policyd import __version__
from policyd.digest import sha256
from policyd.model import Filesystem, Layer
from policyd.policy import Diagnostic, Policy, PolicyError, PolicySource, load
from policyd.storage.filecache import FileCache
from policyd.storage.places import Places
from policyd.storage.strictfile import (
    ROOT,
    InsecureFileError,
    Owners,
    check_name,
    names_in,
    never_was,
    own_owners,
    read_all,
    read_own,
    read_strictly,
)
from policyd.storage.trust import FOLDER, ProjectFiles, TrustStore, read_project

ENDING, SUITE = ".toml", "_test.toml"
PLACE, SETTINGS = "policies.d", "policyd.toml"


class Found(Struct, frozen=True):
    """Policy files of one or more layers."""

    sources: tuple[PolicySource, ...] = ()
    notes: tuple[str, ...] = ()
    """What lies in a policy directory and is not read, in words."""
    broken: str = ""
    """Why the project's policy cannot be read: everything in the session is at least ask."""

    def __add__(self, other: Found) -> Found:
        """Join what was found in two places."""
        return Found(self.sources + other.sources, self.notes + other.notes, self.broken or other.broken)


def together(*readers: Callable[[], Found]) -> tuple[Found, list[Diagnostic]]:
    """Read several layers; return what was found, and every fault: a layer that cannot be read hides no other's."""
    found, faults = Found(), []
    for read in readers:
        try:
            found += read()
        except PolicyError as error:
            faults += error.diagnostics
    return found, faults


def managed(directories: Iterable[str], owners: Owners = ROOT, *, start: str = "/") -> Found:
    """Return the managed policy files; a directory that does not exist has none.

    Raises:
        PolicyError: a file, a link or a directory on the way is not root's alone, or cannot be read.
    """
    found = Found()
    for directory in directories:
        found += checked(
            directory,
            Layer.MANAGED,
            lambda path: names_in(path, owners, start=start),
            lambda path: read_strictly(path, owners, start=start),
        )
    return found


def user(directory: str, files: Sequence[str] = ()) -> Found:
    """Return the user's policy files: `files`, where some are named, else those of `directory`, if it is there.

    Raises:
        PolicyError: one is not the user's own, or cannot be read.
    """
    if files:
        return given(files)
    owners = own_owners()
    return checked(
        directory,
        Layer.USER,
        lambda path: names_in(path, owners, start=path),
        lambda path: read_own(path, owners),
    )


def checked(
    directory: str, layer: Layer, listing: Callable[[str], list[str]], reading: Callable[[str], bytes]
) -> Found:
    """Read the policy files of a directory by way of its layer; every fault is told at once."""
    try:
        names = listing(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not never_was(directory):
            raise PolicyError([refused(directory, error, layer)]) from error
        return Found(notes=tuple(beside(directory)))
    except OSError as error:
        raise PolicyError([refused(directory, error, layer)]) from error
    chosen = [os.path.join(directory, name) for name in names if is_policy(name)]
    return Found(sources_of(chosen, layer, reading), (*unread(directory, names), *beside(directory)))


def sources_of(
    paths: Iterable[str], layer: Layer, reading: Callable[[str], bytes], faults: Iterable[Diagnostic] = ()
) -> tuple[PolicySource, ...]:
    """Read files; PolicyError with every one that is refused, and the `faults` there are already."""
    sources, faults = [], [*faults]
    for path in paths:
        try:
            check_name(path)
            sources.append(PolicySource(path, reading(path), layer))
        except OSError as error:
            faults.append(refused(path, error, layer))
    if faults:
        raise PolicyError(faults)
    return tuple(sources)


def is_policy(name: str) -> bool:
    """Say whether a file of a policy directory is a policy by its name."""
    return name.endswith(ENDING) and not name.endswith(SUITE)


def unread(directory: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a note about each entry that is no policy file."""
    for name in names:
        if not is_policy(name):
            why = "it is a test suite" if name.endswith(SUITE) else f"policy files end in {ENDING}"
            yield f"{os.path.join(directory, name)} is not read: {why}"


def beside(directory: str) -> Iterator[str]:
    """Yield a note about each policy that was put beside `policies.d` instead of in it."""
    above, name = os.path.split(directory)
    try:
        names = sorted(os.listdir(above)) if name == PLACE else []
    except OSError:  # it is not there, or closed: nothing in it could be meant for policyd
        return
    for name in names:
        if is_policy(name) and name != SETTINGS:
            yield f"{os.path.join(above, name)} is not read: policies lie in {directory}/"


UNREADABLE = {
    errno.ENOENT: "name a file that is there",
    errno.EACCES: "let the user policyd runs as read it",
    errno.EILSEQ: "give it another",
}
"""What to do about a file that cannot be read."""


def refused(path: str, error: OSError, layer: Layer) -> Diagnostic:
    """Say why a file is not read."""
    path = os.fsencode(path).decode("utf-8", "replace")
    if isinstance(error, InsecureFileError):
        owner = "root" if layer is Layer.MANAGED else "you"
        where = path if error.path == path else f"{path} ({error.path})"
        fix = error.fix or f"make it belong to {owner} and writable by nobody else (`chown`, `chmod go-w`)"
        return Diagnostic(where, 0, "", f"not safe to read: {error.why}", fix, layer)
    fix = UNREADABLE.get(error.errno or 0, "")
    return Diagnostic(path, 0, "", f"cannot be read: {error.strerror or error}", fix, layer)


def given(paths: Iterable[str], layer: Layer = Layer.USER) -> Found:
    """Return the files named on a command line or by an embedder; a directory stands for its `*.toml`.

    Raises:
        PolicyError: one does not exist or cannot be read.
    """
    chosen: list[str] = []
    notes: list[str] = []
    faults: list[Diagnostic] = []
    for path in paths:
        try:
            names = sorted(os.listdir(path)) if os.path.isdir(path) else None
        except OSError as error:
            faults.append(refused(path, error, layer))
            continue
        notes += unread(path, (name for name in names or () if not name.endswith(SUITE)))
        if names is not None and not any(map(is_policy, names)):
            notes.append(f"{path} holds no policy: policy files end in {ENDING}")
        chosen += [path] if names is None else [os.path.join(path, name) for name in names if is_policy(name)]
    return Found(sources_of(chosen, layer, read_plain, faults), tuple(notes))


def read_plain(path: str) -> bytes:
    """Read a regular file, through links, without ever waiting for a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return read_all(descriptor, path)
    finally:
        os.close(descriptor)


def project(root: str, trust: TrustStore) -> Found:
    """Return the policy files of a workspace root, trusted or not; what cannot be read makes it broken."""
    try:
        return whole_project(root, trust)
    except PolicyError as error:
        return Found(broken=str(error))


def whole_project(root: str, trust: TrustStore) -> Found:
    """Return the policy files of a workspace root, trusted or not.

    Raises:
        PolicyError: they cannot be read.
    """
    try:
        files = read_project(root)
    except OSError as error:
        raise PolicyError([refused(os.path.join(root, FOLDER), error, Layer.PROJECT)]) from error
    return as_project(files, trusted=trust.trusts(files))


def as_project(files: ProjectFiles, *, trusted: bool) -> Found:
    """Return the policy files of a project as sources."""
    root = files.root
    chosen = [(files.path(name), data) for name, data in files.files if is_policy(name)]
    return Found(tuple(PolicySource(path, data, Layer.PROJECT, trusted, root) for path, data in chosen))


def demoted(sources: Iterable[PolicySource], roots: Sequence[str], vouched: Sequence[str] = ()) -> list[PolicySource]:
    """Return the sources as a session with these roots sees them.

    Args:
        sources: files of any layer.
        roots: the session's workspace roots.
        vouched: digests given with `--policy-digest`, `sha256:` and the hash of a file's bytes.
    """
    real = [os.path.realpath(root) for root in roots]
    return [demote(source, real, vouched) for source in sources]


def demote(source: PolicySource, roots: Sequence[str], vouched: Sequence[str]) -> PolicySource:
    """Make a user's file a project file where whoever writes the workspace could have written it."""
    if source.layer is not Layer.USER or f"sha256:{sha256(source.data).hexdigest()}" in vouched:
        return source
    places = {os.path.realpath(source.name), os.path.abspath(source.name)}
    for root in roots:
        if any(place == root or place.startswith(root.rstrip("/") + "/") for place in places):
            return replace(source, layer=Layer.PROJECT, trusted=False, root=root)
    return source


def inside(sources: Iterable[PolicySource], root: str, vouched: Sequence[str]) -> Iterator[str]:
    """Yield a note about each file that is the project's in a session with this root, though it was named."""
    for source in sources:
        if demoted([source], [root], vouched) != [source]:
            yield f"{source.name} lies in {root}: a session there takes it as the project's (see `--policy-digest`)"


def unmatched(sources: Iterable[PolicySource], vouched: Iterable[str]) -> Iterator[str]:
    """Yield a note about each digest that is no policy file's: the file it was meant for only tightens."""
    there = {f"sha256:{sha256(source.data).hexdigest()}" for source in sources} if vouched else set()
    for digest in vouched:
        if digest not in there:
            yield f"`--policy-digest {digest}` is no policy file's; write what `sha256sum FILE` prints"


def loaded_at(
    places: Places, sources: Iterable[PolicySource], fs: Filesystem | None, cache: FileCache | None = None
) -> Policy:
    """Load policies as they are meant in these places.

    Raises:
        PolicyError: every mistake of every file.
    """
    home, tmpdir, account = places.home, places.tmpdir, places.account
    return load(sources, home=home, tmpdir=tmpdir, fs=fs, version=__version__, cache=cache, account=account)


def compose(found: Found, places: Places, fs: Filesystem | None) -> tuple[Policy, str]:
    """Load a session's policy; also return why everything in it is at least ask, empty where nothing is broken.

    Raises:
        PolicyError: a managed or user file is invalid.
    """
    cache = FileCache(f"{places.cache}/policies")

    def loaded(sources: Iterable[PolicySource]) -> Policy:
        return loaded_at(places, sources, fs, cache)

    try:
        return loaded(found.sources), found.broken
    except PolicyError as error:
        if any(diagnostic.layer is not Layer.PROJECT for diagnostic in error.diagnostics):
            raise
        rest = loaded(source for source in found.sources if source.layer is not Layer.PROJECT)
        return rest, found.broken or str(error.diagnostics[0])
