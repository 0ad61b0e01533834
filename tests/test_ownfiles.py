"""policyd's own files are told by device and inode, and what was listed before counts only where nothing changed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from policyd.actions import guard
from policyd.storage import filesystem, ownfiles
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.ownfiles import OwnFiles

MOST = 100
STEP = 0.012
"""Seconds; longer than the steps in which the kernel gives times to files."""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directories whose names are kept `STEP` after their last change."""
    for name in ("own/policies.d", "own/audit/2026", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("own/policyd.toml", "own/policies.d/a.toml", "own/audit/2026/1.jsonl", "elsewhere/x", "elsewhere/y"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(ownfiles, "SETTLED", STEP * 1e9)
    return tmp_path / "own"


def test_a_listing_is_used_again_until_its_directory_changes(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = ownfiles._read

    def reading(place: str, stamp: tuple[int, int, int, int], most: int) -> object:
        read.append(place)
        return real(place, stamp, most)

    monkeypatch.setattr(ownfiles, "_read", reading)
    files, places = OwnFiles(), (str(own), str(own / "none"))
    time.sleep(2 * STEP)
    first = files.identities(places, MOST)
    assert (len(first or ()), len(read)) == (3, 4)
    (own / "policyd.toml").write_text("version = 1")
    assert files.identities(places, MOST) is first
    assert len(read) == 4
    (own / "policies.d/b.toml").write_text("")
    assert len(files.identities(places, MOST) or ()) == 4
    assert read[4:] == [str(own / "policies.d")]


def test_what_changed_just_now_is_listed_again(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownfiles, "SETTLED", 4_000_000_000)
    files = OwnFiles()
    files.identities((str(own),), MOST)
    assert not files._known


def _move(old: Path, new: Path) -> None:
    if old.is_dir() and not new.exists():
        old.rename(new)


def _turn(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda own: None,
    "a new file": lambda own: (own / "policies.d/b.toml").write_text(""),
    "a file is gone": lambda own: (own / "policies.d/b.toml").unlink(missing_ok=True),
    "a file replaced": lambda own: [(own / "new").write_text("x"), (own / "new").rename(own / "policyd.toml")],
    "a new directory": lambda own: (own / "audit/2027").mkdir(parents=True, exist_ok=True),
    "a file in it": lambda own: (own / "audit/2027").is_dir() and (own / "audit/2027/1.jsonl").write_text(""),
    "a link to a file": lambda own: _turn(own / "link", "../elsewhere/x"),
    "the link turned": lambda own: _turn(own / "link", "../elsewhere/y"),
    "a link to a directory": lambda own: _turn(own / "link", "../elsewhere"),
    "its file replaced": lambda own: [(own / "new").write_text("x"), (own / "new").rename(own.parent / "elsewhere/x")],
    "a file behind it": lambda own: (own.parent / "elsewhere/z").write_text(""),
    "a link that leads nowhere": lambda own: _turn(own / "link", "nowhere"),
    "a loop": lambda own: _turn(own / "link", "link"),
    "times set back": lambda own: os.utime(own / "policies.d", ns=(1, 1)),
    "a directory moved away": lambda own: _move(own / "audit", own.parent / "old"),
    "a directory moved back": lambda own: _move(own.parent / "old", own / "audit"),
}


@pytest.mark.parametrize("seed", range(8))
def test_own_files_are_told_as_if_nothing_had_been_listed_before(own: Path, seed: int) -> None:
    rng, files, places = random.Random(seed), RealFilesystem(steady=True), (str(own), str(own / "policyd.toml"))  # noqa: S311
    for name in rng.choices(sorted(CHANGES), k=15):
        CHANGES[name](own)
        time.sleep(rng.choice((0, 2 * STEP)))
        found = files.identities(places, MOST)
        assert (
            found == guard.identities(places, MOST, RealFilesystem(steady=True)) == OwnFiles().identities(places, MOST)
        )
        assert found is not None, name


def test_what_cannot_be_listed_to_the_end_is_not_told(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RealFilesystem()
    counted = [files.identities((str(own),), most) is not None for most in (2, 6, 7, MOST)]
    assert counted == [False, False, True, True]
    (own / "up").symlink_to("..")
    assert files.identities((str(own),), MOST) is None
    (own / "up").unlink()
    monkeypatch.setattr(os, "scandir", _refused)
    (own / "policies.d/new").write_text("")
    assert files.identities((str(own),), MOST) is None
    monkeypatch.undo()
    monkeypatch.setattr(filesystem, "BUDGET", -1.0)
    assert files.identities((str(own),), MOST) is None


def _refused(directory: str) -> None:
    raise PermissionError(13, "denied", directory)


def test_no_more_directories_are_kept_than_the_bound(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownfiles, "KEPT", 2)
    time.sleep(2 * STEP)
    files = OwnFiles()
    assert len(files.identities((str(own),), MOST) or ()) == 3
    assert 1 <= len(files._known) <= 2
