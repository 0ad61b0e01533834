"""Project policies a person has trusted: exactly those bytes, of exactly those files, at exactly that place.

Rules of this module:

1. The hash covers the sorted list of names and contents of all `.policyd/*.toml`; a file added, removed, renamed or
   changed by one byte voids it.
2. Only regular files count, opened without following a link, from a `.policyd` that is a directory itself. A policy
   that is anything else is an error: it could change without its bytes changing.
3. The bytes that were hashed are the bytes that are parsed: files are read once.
4. What is trusted is written in the user's state directory, keyed by the real path of the project. Nothing in a
   workspace can trust itself.
"""

from __future__ import annotations

import os
import stat
from datetime import datetime

from msgspec import Struct

from policyd.digest import sha256
from policyd.storage.private import flush_directory, make_directory, write_whole
from policyd.storage.strictfile import InsecureFileError, check_name, own_owners, read_all, read_strictly

FOLDER = ".policyd"
NOFOLLOW = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ProjectFiles(Struct, frozen=True):
    """The policy files of one project, read once."""

    root: str
    files: tuple[tuple[str, bytes], ...] = ()
    """Name within `.policyd` and content, sorted by name."""

    @property
    def digest(self) -> str:
        """The hash over sorted names and contents, `sha256:…`; lengths keep two lists from looking alike."""
        total: list[bytes] = []
        for name, data in sorted(self.files):
            coded = os.fsencode(name)
            total += (len(coded).to_bytes(8, "big"), coded, len(data).to_bytes(8, "big"), data)
        return f"sha256:{sha256(b''.join(total)).hexdigest()}"

    def path(self, name: str) -> str:
        """Return the path of one of the files."""
        return os.path.join(self.root, FOLDER, name)


def read_project(root: str) -> ProjectFiles:
    """Read `.policyd/*.toml` of a workspace root; none where there is no such directory.

    Raises:
        InsecureFileError: `.policyd` or a policy file is a link, or no plain file.
        OSError: one cannot be read.
    """
    folder = os.path.join(root, FOLDER)
    try:
        status = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return ProjectFiles(root)
    if not stat.S_ISDIR(status.st_mode):
        raise InsecureFileError(folder, "it is no directory; policies of a project are never links")
    directory = os.open(folder, NOFOLLOW | os.O_DIRECTORY)
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".toml"))
        return ProjectFiles(root, tuple((name, read_entry(directory, folder, name)) for name in names))
    finally:
        os.close(directory)


def read_entry(directory: int, folder: str, name: str) -> bytes:
    """Read one regular file of an open directory."""
    path = os.path.join(folder, name)
    check_name(path)
    try:
        descriptor = os.open(name, NOFOLLOW, dir_fd=directory)
    except OSError as error:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise InsecureFileError(path, "it is a link; trust covers plain files only") from error
        raise
    try:
        return read_all(descriptor, path)
    finally:
        os.close(descriptor)


class TrustStore(Struct, frozen=True):
    """What a person trusted, one small file a project in `directory`."""

    directory: str

    def file(self, root: str) -> str:
        """Return the file that records the trust in the project at `root`."""
        real = sha256(os.fsencode(os.path.realpath(root))).hexdigest()
        return os.path.join(self.directory, real[:32] + ".toml")

    def trusts(self, project: ProjectFiles) -> bool:
        """Say whether a person trusted exactly these files at this place; a damaged note is no trust."""
        noted = self.note(project.root)
        real = os.path.realpath(project.root)
        return bool(project.files) and noted.get("root") == real and noted.get("digest") == project.digest

    def note(self, root: str) -> dict[str, object]:
        """Return the record of a project, empty if there is none or it is invalid."""
        import tomllib

        try:
            data = read_strictly(self.file(root), own_owners(), start=self.directory)
            return tomllib.loads(data.decode("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}

    def add(self, project: ProjectFiles, now: datetime) -> None:
        """Trust exactly these files."""
        import tomli_w

        note = {"root": os.path.realpath(project.root), "digest": project.digest, "since": now}
        make_directory(self.directory)
        file = self.file(project.root)
        new = f"{file}.{os.getpid()}.{os.urandom(4).hex()}"
        write_whole(new, tomli_w.dumps(note).encode("utf-8"))
        os.replace(new, file)
        flush_directory(self.directory)

    def remove(self, root: str) -> bool:
        """Remove the trust in the project at `root`; say whether there was any."""
        try:
            os.unlink(self.file(root))
        except FileNotFoundError:
            return False
        return True
