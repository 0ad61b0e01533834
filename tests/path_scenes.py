"""A small project for path tests: a dictionary file system, its workspace, and short ways to write a case."""

from __future__ import annotations

from dataclasses import dataclass

from policyd.model import Filesystem, PathRef, Reach, Workspace
from policyd.paths import PathPattern, open_workspace, ref
from tests.fakes import FakeFilesystem

HOME = "/home/dev"
APP = "/home/dev/app"
FILES = {
    "/home/dev/app/src/a.py": "",
    "/home/dev/app/src/sub/b.py": "",
    "/home/dev/app/secrets/k.pem": "",
    "/home/dev/app/docs/x.md": "",
    "/home/dev/app/.env": "",
    "/home/dev/notes/n.md": "",
    "/etc/hosts": "",
    "/etc/ssl/key.pem": "",
}
LINKS = {
    "/home/dev/app/alias": "/home/dev/app/secrets",
    "/home/dev/app/out": "/etc",
    "/home/dev/app/lib": "src",
    "/home/dev/app/src/up": "../docs",
    "/home/dev/app/odd/loop": "/home/dev/app/odd/loop",
    "/home/dev/link": "/home/dev/app",
}


@dataclass
class Scene:
    """Patterns and paths in one session."""

    workspace: Workspace
    fs: Filesystem | None

    def pattern(self, text: str) -> PathPattern:
        """Compile a pattern as the policy would."""
        return PathPattern.compile(text, home=HOME, tmpdir="/tmp", fs=self.fs)

    def path(
        self, text: str, *, base: str = APP, reach: Reach = Reach.ENTRY, glob: bool = False, uri: bool = False
    ) -> PathRef:
        """Take a path to its forms."""
        return ref(text, base=(base,), workspace=self.workspace, fs=self.fs, reach=reach, glob=glob, uri=uri)


def scene(*patterns: str, cwd: str = APP, additional: tuple[str, ...] = (), fold_case: bool = False) -> Scene:
    """Open a session whose policy holds `patterns`."""
    fs = FakeFilesystem(files=dict(FILES), links=dict(LINKS))
    compiled = [PathPattern.compile(text, home=HOME, tmpdir="/tmp", fs=fs) for text in patterns]
    heads = [head for each in compiled for head in each.heads]
    workspace = open_workspace(cwd, additional, home=HOME, fs=fs, heads=heads, fold_case=fold_case)
    return Scene(workspace, fs)
