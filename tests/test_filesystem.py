"""The real file system: walks like the kernel, looks only so far, never says "nothing" without having looked."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd.paths import OpaquePath, looked_for, open_workspace, ref
from policyd.storage import filesystem, looks
from policyd.storage.filesystem import RealFilesystem


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree with links of every sort."""
    root = tmp_path / "app"
    for name in ("src/sub", "secrets", "docs", ".git"):
        (root / name).mkdir(parents=True)
    (tmp_path / "outside/deep").mkdir(parents=True)
    for name in ("src/a.py", "src/sub/b.py", "secrets/k.pem", "docs/x.md", ".env"):
        (root / name).write_text("")
    (tmp_path / "outside/deep/token.key").write_text("")
    (root / "alias").symlink_to(root / "secrets")
    (root / "up").symlink_to("../outside")
    (root / "chain").symlink_to("alias")
    (root / "src/back").symlink_to("../docs")
    (root / "loop").symlink_to("pool")
    (root / "pool").symlink_to("loop")
    (root / "gone").symlink_to(tmp_path / "missing/x")
    return root


WALKS = [
    ("src/a.py", "app/src/a.py"),
    ("src/../src//./a.py/", "app/src/a.py"),
    ("alias/k.pem", "app/secrets/k.pem"),
    ("chain/k.pem", "app/secrets/k.pem"),
    ("up/../x", "x"),
    ("up/deep/../../app/.env", "app/.env"),
    ("src/back/../a", "app/a"),
    ("new/deep/x", "app/new/deep/x"),
    ("new/../alias/x", "app/secrets/x"),
    ("src/a.py/x", "app/src/a.py/x"),
    ("gone", "missing/x"),
    ("gone/y", "missing/x/y"),
    ("../../../../../../../../../../..", None),
]


@pytest.mark.parametrize(("path", "expected"), WALKS)
def test_a_path_is_walked_as_the_kernel_does(tree: Path, path: str, expected: str | None) -> None:
    walked = RealFilesystem().resolve(f"{tree}/{path}")
    assert walked == ("/" if expected is None else str(tree.parent / expected))


@pytest.mark.parametrize("path", [*(path for path, _ in WALKS), "loop", "", "n" * 300, "src/sub (deleted)"])
def test_the_real_path_is_what_the_interpreter_finds(tree: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "src/sub (deleted)").mkdir()
    found = filesystem.real_path(f"{tree}/{path}")
    assert found == os.path.realpath(f"{tree}/{path}")
    monkeypatch.setattr(filesystem, "HANDLE", 0)
    assert filesystem.real_path(f"{tree}/{path}") == found


@pytest.mark.parametrize("path", ["loop", "loop/x", "n" * 300, "x/" * 3000])
def test_what_the_kernel_refuses_is_an_error(tree: Path, path: str) -> None:
    with pytest.raises(OSError, match=r"(?i)too many levels|too long"):
        RealFilesystem().resolve(f"{tree}/{path}")


def test_a_link_to_a_name_that_is_no_text_is_opaque(tree: Path) -> None:
    os.symlink(os.fsencode(tree) + b"/\xff", tree / "bytes")
    workspace = open_workspace(str(tree), [], home="/home/dev", fs=RealFilesystem())
    with pytest.raises(OpaquePath, match="Unicode"):
        ref("bytes", base=(str(tree),), workspace=workspace, fs=RealFilesystem())


def test_a_nul_is_an_error() -> None:
    with pytest.raises(OSError, match="null"):
        RealFilesystem().resolve("/tmp/a\0b")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc on this system")
@pytest.mark.parametrize("path", ["/proc/self/cwd/x", "/proc/self/exe", "/dev/fd/0", "/proc/self/task/../fd/1"])
def test_a_link_of_a_process_leads_elsewhere_for_another(path: str) -> None:
    with pytest.raises(OSError, match="another process"):
        RealFilesystem().resolve(path)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc on this system")
def test_the_root_of_a_process_is_the_root() -> None:
    assert RealFilesystem().resolve("/proc/self/root/etc/../etc/x") == "/etc/x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory")
def test_a_closed_directory_is_an_error(tree: Path) -> None:
    (tree / "secrets").chmod(0)
    try:
        with pytest.raises(PermissionError):
            RealFilesystem().resolve(f"{tree}/secrets/sub/x")
    finally:
        (tree / "secrets").chmod(0o700)


PARTS = st.sampled_from(["a", "b", "c", "..", ".", "l1", "l2", "l3", "l4", "new"])


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS, max_size=8), st.randoms(use_true_random=False))
def test_walking_agrees_with_the_standard_library(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], dice: random.Random
) -> None:
    root = _forest(tmp_path_factory, dice.randrange(8))
    path = "/".join([str(root), *parts])
    assert RealFilesystem().resolve(path) == os.path.realpath(path)


_FORESTS: dict[int, Path] = {}


def _forest(factory: pytest.TempPathFactory, seed: int) -> Path:
    """Directories and links that do not loop, the same for one seed."""
    if seed not in _FORESTS:
        root, dice = factory.mktemp("forest").resolve(), random.Random(seed)  # noqa: S311 - the same forest every time
        places = [root, *(root / name for name in ("a", "b", "c", "a/b", "a/c", "b/c", "a/b/c"))]
        for place in places[1:]:
            place.mkdir()
        for number in range(1, 5):
            where, target = dice.choice(places), dice.choice(places)
            text = str(target) if dice.random() < 0.5 else os.path.relpath(target, where)
            (where / f"l{number}").symlink_to(text)
        _FORESTS[seed] = root
    return _FORESTS[seed]


def test_walking_agrees_with_the_kernel(tmp_path: Path) -> None:
    dice, files = random.Random(7), RealFilesystem()  # noqa: S311 - the same paths every time
    names = ["a", "b", "a", "b", "l1", "l2", "..", "f"]
    places = [tmp_path.joinpath(*parts) for size in range(4) for parts in itertools.product("ab", repeat=size)]
    for place in places:
        place.mkdir(exist_ok=True)
        (place / "f").write_text("")
        for number in range(1, 3):
            target = "/".join(dice.choices(names, k=dice.randrange(1, 3)))
            (place / f"l{number}").symlink_to(target if dice.random() < 0.7 else f"{dice.choice(places)}/{target}")
    paths = ["/".join(dice.choices(names, k=dice.randrange(1, 6))) for _ in range(10_000)]
    outcomes = [_kernel_agrees(files, f"{tmp_path}/{path}") for path in paths]
    assert outcomes.count("same") > 2_000
    assert outcomes.count("refused") > 100


def _kernel_agrees(files: RealFilesystem, path: str) -> str:
    """Compare with what the kernel opens; what it does not open has no place to compare."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return "missing"
    except NotADirectoryError:
        return "no directory"
    except OSError:
        with pytest.raises(OSError, match=r"(?i)too many levels"):
            files.resolve(path)
        return "refused"
    walked = files.resolve(path)
    assert os.path.samestat(found, os.lstat(walked))
    assert walked == os.path.realpath(path)
    return "same"


LOOKS = [
    ("", ("**/.env",), True),
    ("", (".env",), True),
    ("", ("**/*.pem",), True),
    ("", ("**/*.nothing", "**/.env"), True),
    ("", ("**/*.nothing",), False),
    ("docs", ("**/.env",), False),
    ("docs", ("*.md",), True),
    ("docs", ("**/docs",), False),
    ("docs", ("**/docs/*.md",), False),
    ("", ("secrets/*.pem",), True),
    ("", ("docs/*.pem",), False),
    ("", ("**/sub/*.py",), True),
    ("", ("**/*.key",), True),
    ("", ("**/outside/*.nothing",), None),
    ("missing", ("**/.env",), None),
    ("src/a.py", ("**/.env",), None),
    ("loop", ("**/.env",), None),
    ("", ("[",), None),
]


@pytest.mark.parametrize(("directory", "names", "found"), LOOKS)
def test_a_look_finds_what_lies_below(tree: Path, directory: str, names: tuple[str, ...], found: bool | None) -> None:
    assert RealFilesystem().contains(f"{tree}/{directory}", names) is found


def test_a_look_follows_links_out_of_the_directory_once(tree: Path) -> None:
    (tree.parent / "outside/again").symlink_to(tree.parent / "outside")
    files = RealFilesystem()
    assert files.contains(str(tree), ("**/token.key",)) is True
    assert files.contains(str(tree), ("**/none",)) is False
    assert files.contains(str(tree), ("**/outside/none",)) is None


BELOW = ["a", "b.x", ".x", "ab", "xa.b", "a.x.b", "c", ""]
LOOKED_FOR = [
    "**/*.x", "**/a*", "*b", "**/.x", "a/*", "**/*.x/*", "**/ab/**", "**", "*", "?", "**/[a]b", "**/a?b/*", "**/x*b",
    "c/**/*.b", "**/*a*", "b.x/.x", "**/c/a*b", "**/.*", "**/a[b]", "**/*.b/ab",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_how_names_begin_and_end_hides_nothing_from_a_look(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)  # noqa: S311 - names of files
    for _ in range(30):
        path = tmp_path.joinpath(*(draw.choice(BELOW) for _ in range(3)))
        path.mkdir(parents=True, exist_ok=True)
    below = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")]
    for pattern in LOOKED_FOR:
        (each,) = looked_for((pattern,))
        assert RealFilesystem(steady=True).contains(str(tmp_path), (pattern,)) is any(map(each.tail.matches, below))


def test_a_look_sees_where_a_link_leads(tree: Path) -> None:
    (tree.parent / "outside/deep/id_rsa").write_text("")
    (tree / "docs/readme").symlink_to(tree.parent / "outside/deep/id_rsa")
    assert RealFilesystem().contains(str(tree / "docs"), ("**/id_rsa",)) is True
    assert RealFilesystem().contains(str(tree / "docs"), ("**/deep/id_*",)) is True


def test_a_look_is_remembered_for_a_moment_only(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RealFilesystem()
    directory = str(tree / "docs")
    monkeypatch.setattr(filesystem, "REMEMBERED", 60.0)
    assert files.contains(directory, ("**/.env",)) is False
    (tree / "docs/.env").write_text("")
    assert files.contains(directory, ("**/.env",)) is False
    monkeypatch.setattr(filesystem, "REMEMBERED", -1.0)
    assert files.contains(directory, ("**/.env",)) is True


def test_a_look_without_an_end_is_no_answer(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "ENTRIES", 3)
    assert RealFilesystem().contains(str(tree), ("**/*.nothing",)) is None


def test_a_look_that_takes_too_long_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):
        (tmp_path / f"f{number}").write_text("")
    monkeypatch.setattr(filesystem, "SECONDS", -1.0)
    assert RealFilesystem().contains(str(tmp_path), ("**/*.nothing",)) is None


def test_a_search_that_takes_too_long_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2 * looks.STRIDE):
        (tmp_path / f"{number}.py").touch()
    clock = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))  # each glance at it takes a second
    look = looks.Look(str(tmp_path), str, seconds=5.0)
    assert look.complete
    assert look.finds(looked_for(("*nothing*",))) is False
    assert look.finds(looked_for(("*nothing*", "*none*", "*nobody*"))) is None  # many names, none of them a candidate


def test_many_looks_at_once_are_no_answer(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "WINDOW", 60.0)
    monkeypatch.setattr(filesystem, "BUDGET", 0.0)
    files = RealFilesystem()
    assert files.contains(str(tree / "docs"), ("**/.env",)) is False
    assert files.contains(str(tree / "docs"), ("**/.env",)) is None
    assert files.listing(str(tree / "docs")) is None
    assert files.resolve(str(tree / "alias")) == str(tree / "secrets")
    monkeypatch.setattr(filesystem, "WINDOW", 0.0)
    assert files.contains(str(tree / "docs"), ("**/.env",)) is False


def test_case_and_composition_do_not_hide_a_name(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/.ENV").write_text("")
    (tmp_path / "d/geha\u0308lter").write_text("")
    assert RealFilesystem(fold_case=True).contains(str(tmp_path / "d"), ("**/.env",)) is True
    assert RealFilesystem().contains(str(tmp_path / "d"), ("**/.env",)) is False
    assert RealFilesystem().contains(str(tmp_path / "d"), ("**/geh\u00e4lter",)) is True


def test_what_exists_is_told(tree: Path) -> None:
    files = RealFilesystem()
    assert files.is_dir(str(tree)) is True
    assert files.is_dir(str(tree / ".env")) is False
    assert files.is_dir(str(tree / "none")) is False
    assert files.is_dir(str(tree / "loop")) is None
    assert files.is_dir("a\0b") is None
    (tree / "hard").hardlink_to(tree / ".env")
    assert files.identity(str(tree / "hard")) == files.identity(str(tree / ".env"))
    assert files.identity(str(tree / "none")) is None
    assert files.identity("a\0b") is None


def test_names_are_listed_up_to_a_bound(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RealFilesystem()
    assert set(files.listing(str(tree / "docs")) or ()) == {"x.md"}
    assert files.listing(str(tree / ".git")) == ()
    assert files.listing(str(tree / "none")) is None
    assert files.listing(str(tree / ".env")) is None
    monkeypatch.setattr(filesystem, "NAMES", 2)
    assert files.listing(str(tree)) is None


def test_a_steady_look_knows_no_clock(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "BUDGET", 0.0)
    monkeypatch.setattr(filesystem, "SECONDS", 0.0)
    monkeypatch.setattr(filesystem, "WINDOW", 1e9)
    files = RealFilesystem(steady=True)
    assert [files.contains(str(tree / "docs"), ("*.pem",)) for _ in range(3)] == [False] * 3
    assert [files.listing(str(tree / "docs")) for _ in range(3)] == [("x.md",)] * 3
