"""The rows of `data/paths/rows.json`: a policy intent, a path, and the answers that are right or never given.

A row's patterns become one allow (judged surely), one ask and one deny (judged widely) list; deny before ask before
allow, the strictest path decides, what is opaque asks. Rows with a `setup` run on a real tree.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyd.model import EFFECTS, Effect, Filesystem, PathRef, Reach, Truth, Workspace
from policyd.paths import OpaquePath, PathPattern, PatternError, open_workspace, ref
from policyd.storage.filesystem import RealFilesystem
from tests.fakes import FakeFilesystem

Row = dict[str, object]
ROWS: list[Row] = json.loads((Path(__file__).parent / "data/paths/rows.json").read_text())
HOME = "/home/dev"


def _parameters() -> list[object]:
    return [pytest.param(row, id=str(row["name"]), marks=_marks(row)) for row in ROWS]


def _marks(row: Row) -> list[pytest.MarkDecorator]:
    return [pytest.mark.skip(reason=str(row["skip"]))] if "skip" in row else []


@pytest.mark.parametrize("row", _parameters())
def test_a_path_is_answered_as_its_intent_says(row: Row, tmp_path: Path) -> None:
    answer = _answer(row, tmp_path)
    right = {row["expected"], *_words(row, "also")}
    assert answer not in _words(row, "never"), row["why"]
    assert answer in right, row["why"]


def _words(row: Row, key: str) -> list[str]:
    value = row.get(key, [])
    assert isinstance(value, list)
    return value


class _Scene:
    """A row's file system, workspace and spelling of its home directory."""

    def __init__(self, row: Row, scratch: Path) -> None:
        self.home = str(scratch) + HOME if "setup" in row else HOME
        self.mac = row["os"] == "macos"
        self.fs = self._files(row)
        self.patterns = {key: [self._pattern(text) for text in _words(row, key)] for key in ("deny", "ask", "allow")}
        heads = [head for patterns in self.patterns.values() for each in patterns for head in each.heads]
        self.workspace = open_workspace(
            self.here(str(row["cwd"])), [], home=self.home, fs=self.fs, heads=heads, fold_case=self.mac
        )

    def here(self, text: str) -> str:
        return text.replace(HOME, self.home)

    def _files(self, row: Row) -> Filesystem:
        if "setup" not in row:
            return FakeFilesystem(links={"/tmp": "/private/tmp"} if self.mac else {})
        Path(self.home).mkdir(parents=True)
        for line in _words(row, "setup"):
            kind, _, rest = line.partition(" ")
            name, _, target = rest.partition(" -> ")
            path = Path(self.here(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "dir":
                path.mkdir(parents=True, exist_ok=True)
            elif kind == "file":
                path.write_text("")
            elif kind == "hardlink":
                path.hardlink_to(self.here(target))
            else:
                path.symlink_to(self.here(target))
        return RealFilesystem()

    def _pattern(self, text: str) -> PathPattern:
        return PathPattern.compile(self.here(text), home=self.home, tmpdir="/tmp", fs=self.fs)


def _answer(row: Row, scratch: Path) -> str:
    try:
        scene = _Scene(row, scratch)
    except PatternError:
        return "error"
    paths = [*_words(row, "paths"), *(["/home/dev/app/src" + "/x" * _number(row, "deep")] if "deep" in row else [])]
    reach = Reach.CONTENT if row["operation"] in {"delete", "move", "search"} else Reach.ENTRY
    effects = [_effect(scene, scene.here(path), reach, EFFECTS[str(row["default"])]) for path in paths]
    return max(effects, default=Effect.ASK).word


def _number(row: Row, key: str) -> int:
    value = row[key]
    assert isinstance(value, int)
    return value


def _effect(scene: _Scene, text: str, reach: Reach, default: Effect) -> Effect:
    workspace, fs = scene.workspace, scene.fs
    assert workspace.cwd is not None
    try:
        path = ref(text, base=(workspace.cwd,), workspace=workspace, fs=fs, reach=reach, uri=True)
    except OpaquePath:
        return Effect.ASK
    hits = [_widely(scene.patterns["deny"], path, workspace, fs, Effect.DENY)]
    hits.append(_widely(scene.patterns["ask"], path, workspace, fs, Effect.ASK))
    if any(pattern.sure(path, workspace) for pattern in scene.patterns["allow"]):
        hits.append(Effect.ALLOW)
    return max((hit for hit in hits if hit is not None), default=default)


def _widely(
    patterns: list[PathPattern], path: PathRef, workspace: Workspace, fs: Filesystem, effect: Effect
) -> Effect | None:
    truth = max((pattern.maybe(path, workspace, fs, widen=True) for pattern in patterns), default=Truth.NO)
    return {Truth.YES: effect, Truth.MAYBE: Effect.ASK, Truth.NO: None}[truth]
