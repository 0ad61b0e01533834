"""Policy files on disk: whose they must be, what is read, what only tightens, and what trust covers.

Managed files are tested with injected owners and modes as well as on real directories: whoever runs the tests may be
root, whom no mode stops.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import policyd
from policyd.model import Effect, Layer
from policyd.policy import PolicyError, PolicySource
from policyd.storage import places, policies, strictfile
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.strictfile import InsecureFileError, Owners, read_strictly
from policyd.storage.trust import ProjectFiles, TrustStore, read_project

DENY = '[[rule]]\neffect = "deny"\ncommand = "ls"\n'
ALLOW = '[[rule]]\neffect = "allow"\ncommand = "ls"\n'
NOW = datetime(2026, 11, 29, tzinfo=UTC)
ME = Owners(frozenset({os.getuid()}), frozenset())
DIRECTORY, REGULAR, LINK = stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK


def status(kind: int, mode: int, uid: int = 0, gid: int = 0) -> os.stat_result:
    return os.stat_result((kind | mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))


# ---- the table of owners and modes -----------------------------------------------------------------

MODES = [
    (0o400, True), (0o440, True), (0o444, True), (0o600, True), (0o640, True), (0o644, True), (0o700, True),
    (0o744, True), (0o755, True), (0o1755, True), (0o2755, True), (0o4755, True), (0o620, False), (0o660, False),
    (0o664, False), (0o775, False), (0o602, False), (0o606, False), (0o646, False), (0o666, False), (0o757, False),
    (0o777, False), (0o1777, False), (0o2775, False), (0o1773, False), (0o722, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "safe"), MODES, ids=lambda value: oct(value) if value not in {True, False} else str(value)
)
@pytest.mark.parametrize("kind", [DIRECTORY, REGULAR], ids=["directory", "file"])
def test_root_alone_may_write_what_is_managed(kind: int, mode: int, safe: bool) -> None:
    assert (strictfile.ROOT.fault(status(kind, mode)) == "") is safe


@pytest.mark.parametrize("kind", [DIRECTORY, REGULAR, LINK], ids=["directory", "file", "link"])
@pytest.mark.parametrize("uid", [1, 1000, 65534])
def test_what_is_managed_belongs_to_root(kind: int, uid: int) -> None:
    assert strictfile.ROOT.fault(status(kind, 0o644 if kind is not LINK else 0o777, uid)) != ""


def test_a_link_has_no_mode_of_its_own() -> None:
    assert strictfile.ROOT.fault(status(LINK, 0o777)) == ""


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "safe"),
    [
        (1000, 1000, 0o664, True),
        (1000, 1000, 0o600, True),
        (0, 0, 0o644, True),
        (1000, 50, 0o664, False),
        (1000, 1000, 0o666, False),
        (1001, 1000, 0o600, False),
    ],
)
def test_a_users_file_is_the_users_or_roots(uid: int, gid: int, mode: int, safe: bool) -> None:
    owners = Owners(frozenset({0, 1000}), frozenset({1000}))
    assert (owners.fault(status(REGULAR, mode, uid, gid)) == "") is safe


# ---- walking, on the disk --------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a directory nobody else may write, with a policy in it."""
    root = tmp_path / "etc"
    (root / "policyd" / "policies.d").mkdir(parents=True)
    for path in (root, root / "policyd", root / "policyd" / "policies.d"):
        path.chmod(0o755)
    file = root / "policyd" / "policies.d" / "10.toml"
    file.write_text(DENY)
    file.chmod(0o644)
    return root


def managed(tree: Path) -> policies.Found:
    return policies.managed([f"{tree}/policyd/policies.d"], ME, start=str(tree))


def refusal(tree: Path) -> str:
    with pytest.raises(PolicyError) as raised:
        managed(tree)
    return str(raised.value)


def test_managed_files_are_read(tree: Path) -> None:
    (source,) = managed(tree).sources
    assert (source.layer, source.data) == (Layer.MANAGED, DENY.encode())


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "the file, for others": (lambda d: (d / "10.toml").chmod(0o646), "everybody may write it"),
    "the file, for a group": (lambda d: (d / "10.toml").chmod(0o664), "may write it"),
    "the directory": (lambda d: d.chmod(0o777), "everybody may write it"),
    "the directory, with a sticky bit": (lambda d: d.chmod(0o1777), "everybody may write it"),
    "a parent": (lambda d: d.parent.chmod(0o775), "may write it"),
    "the first parent": (lambda d: d.parent.parent.chmod(0o757), "everybody may write it"),
    "a FIFO": (lambda d: os.mkfifo(d / "20.toml", 0o644), "a FIFO, not a plain file; put a plain"),
    "a directory as a file": (lambda d: (d / "20.toml").mkdir(mode=0o755), "a directory"),
    "a link to nowhere": (lambda d: (d / "20.toml").symlink_to("30"), "cannot be read"),
    "a link to itself": (lambda d: (d / "20.toml").symlink_to("20.toml"), "too many links"),
    "a link out of the tree": (lambda d: (d / "20.toml").symlink_to("/etc/hosts"), "link out of"),
    "a link above the tree": (lambda d: (d / "20.toml").symlink_to("../../../x"), "leads out of"),
    "a name that is no UTF-8": (lambda d: (d / "\udcff.toml").write_text(""), "its name is no UTF-8; give it another"),
    "a large file": (lambda d: os.truncate(d / "10.toml", strictfile.LARGEST + 1), "larger than"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_insecure_managed_file_is_an_error_never_a_file_less(tree: Path, name: str) -> None:
    make, said = FAULTS[name]
    make(tree / "policyd" / "policies.d")
    assert said in refusal(tree)


def test_all_faults_are_told_at_once(tree: Path) -> None:
    folder = tree / "policyd" / "policies.d"
    (folder / "10.toml").chmod(0o666)
    os.mkfifo(folder / "20.toml")
    assert refusal(tree).count("not safe to read") == 2


def test_a_managed_link_is_followed_where_its_folder_is_safe(tree: Path) -> None:
    store = tree / "store"
    store.mkdir(mode=0o755)
    (store / "real.toml").write_text(DENY)
    (store / "real.toml").chmod(0o644)
    (tree / "policyd" / "policies.d" / "20.toml").symlink_to("../../store/real.toml")
    assert len(managed(tree).sources) == 2
    store.chmod(0o777)
    assert "everybody may write it" in refusal(tree)


def test_a_directory_behind_a_link_is_followed(tree: Path) -> None:
    (tree / "policyd").rename(tree / "version-2")
    (tree / "policyd").symlink_to("version-2")
    assert len(managed(tree).sources) == 1


def test_no_managed_directory_is_no_managed_layer(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert policies.managed([str(tmp_path / "none")], ME, start=str(tmp_path)).sources == ()


@pytest.mark.parametrize("at", ["policyd", "policyd/policies.d"])
@pytest.mark.parametrize("make", [lambda place: place.write_text(""), lambda place: place.symlink_to("gone")])
@pytest.mark.parametrize("layer", ["managed", "user"])
def test_a_directory_that_is_none_or_leads_nowhere_is_an_error(
    tmp_path: Path, at: str, make: Callable[[Path], object], layer: str
) -> None:
    (tmp_path / at).parent.mkdir(exist_ok=True)
    for place in (tmp_path, (tmp_path / at).parent):
        place.chmod(0o755)
    make(tmp_path / at)
    directory = f"{tmp_path}/policyd/policies.d"
    with pytest.raises(PolicyError):
        policies.user(directory) if layer == "user" else policies.managed([directory], ME, start=str(tmp_path))


def test_the_real_managed_directory_is_checked_from_the_root() -> None:
    with pytest.raises(InsecureFileError, match="/tmp: "):
        read_strictly("/tmp/x", Owners(frozenset({0})))


def test_other_files_are_reported(tree: Path) -> None:
    (tree / "policyd" / "policies.d" / "20.toml.bak").write_text(DENY)
    (tree / "policyd" / "policies.d" / "20_test.toml").write_text("case = []")
    (tree / "policyd" / "policies.d" / "20_test.toml").chmod(0o644)
    found = managed(tree)
    assert len(found.sources) == 1
    assert "20.toml.bak is not read: policy files end in .toml" in found.notes[0]
    assert "20_test.toml is not read: it is a test suite" in found.notes[1]


def test_a_policy_beside_the_directory_of_policies_is_reported(tree: Path) -> None:
    """Who puts it there believes that it is in force."""
    for name in ("company.toml", "policyd.toml", "notes.txt", "a_test.toml"):
        (tree / "policyd" / name).write_text(DENY)
    found = managed(tree)
    assert found.notes == (f"{tree}/policyd/company.toml is not read: policies lie in {tree}/policyd/policies.d/",)
    (tree / "policyd" / "policies.d" / "10.toml").unlink()
    (tree / "policyd" / "policies.d").rmdir()
    assert managed(tree).notes == found.notes


def test_a_named_directory_without_policies_is_reported(tmp_path: Path) -> None:
    assert policies.given([str(tmp_path)]).notes == (f"{tmp_path} holds no policy: policy files end in .toml",)


def test_a_swapped_file_is_never_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is put in the place of a checked file afterwards: the bytes are those of the checked descriptor."""
    file = tree / "policyd" / "policies.d" / "10.toml"
    real = os.fstat

    def swapping(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if stat.S_ISREG(found.st_mode) and file.exists() and file.stat().st_ino == found.st_ino:
            file.unlink()
            file.write_text(ALLOW)
            file.chmod(0o666)
        return found

    monkeypatch.setattr("policyd.storage.strictfile.os.fstat", swapping)
    assert read_strictly(str(file), ME, start=str(tree)) == DENY.encode()


def test_descriptors_are_closed(tree: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    managed(tree)
    (tree / "policyd" / "policies.d" / "10.toml").chmod(0o666)
    refusal(tree)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert before == after


# ---- the user's files ------------------------------------------------------------------------------


def test_user_files_may_be_links_to_files_of_ones_own(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "policies.d", tmp_path / "dotfiles"
    folder.mkdir(mode=0o755)
    elsewhere.mkdir()
    (elsewhere / "p.toml").write_text(DENY)
    (folder / "p.toml").symlink_to(elsewhere / "p.toml")
    assert [source.layer for source in policies.user(str(folder)).sources] == [Layer.USER]
    (elsewhere / "p.toml").chmod(0o666)
    with pytest.raises(PolicyError, match="everybody may write it"):
        policies.user(str(folder))
    assert policies.user(str(tmp_path / "none")).sources == ()


def test_files_given_by_name_are_read_or_refused_together(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(DENY)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "b.toml").write_text(ALLOW)
    (tmp_path / "d" / "notes.txt").write_text("")
    found = policies.given([str(tmp_path / "a.toml"), str(tmp_path / "d")])
    assert [os.path.basename(source.name) for source in found.sources] == ["a.toml", "b.toml"]
    assert len(found.notes) == 1
    os.mkfifo(tmp_path / "fifo.toml")
    with pytest.raises(PolicyError) as raised:
        policies.given([str(tmp_path / "gone.toml"), str(tmp_path / "fifo.toml")])
    assert len(raised.value.diagnostics) == 2


def test_the_library_loads_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(DENY)
    (tmp_path / "b.toml").write_text(ALLOW)
    assert [rule.effect for rule in policyd.load(tmp_path).rules] == [Effect.DENY, Effect.ALLOW]
    assert [rule.effect for rule in policyd.load([tmp_path / "b.toml"], home="/home/dev").rules] == [Effect.ALLOW]
    (tmp_path / "c.toml").write_text("nonsense = 1")
    with pytest.raises(PolicyError, match="unknown key `nonsense`"):
        policyd.load(str(tmp_path))


# ---- projects and trust ----------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with two policy files."""
    folder = tmp_path / "project" / ".policyd"
    folder.mkdir(parents=True)
    (folder / "a.toml").write_text(ALLOW)
    (folder / "b.toml").write_text(DENY)
    (folder / "README.md").write_text("not a policy")
    return tmp_path / "project"


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    """Make an empty store."""
    return TrustStore(str(tmp_path / "state" / "trust"))


def trusted(project: Path, store: TrustStore) -> bool:
    return all(source.trusted for source in policies.project(str(project), store).sources)


def test_a_project_is_not_trusted_until_a_person_said_so(project: Path, store: TrustStore) -> None:
    assert not trusted(project, store)
    store.add(read_project(str(project)), NOW)
    assert trusted(project, store)
    assert store.remove(str(project))
    assert not trusted(project, store)
    assert not store.remove(str(project))


CHANGES: dict[str, Callable[[Path], object]] = {
    "one byte": lambda folder: (folder / "a.toml").write_text(ALLOW + "#"),
    "a file more": lambda folder: (folder / "c.toml").write_text(""),
    "a file less": lambda folder: (folder / "b.toml").unlink(),
    "another name": lambda folder: (folder / "b.toml").rename(folder / "c.toml"),
    "contents exchanged": lambda folder: exchange(folder / "a.toml", folder / "b.toml"),
    "a byte moved between files": lambda folder: shift(folder / "a.toml", folder / "b.toml"),
}


def exchange(one: Path, other: Path) -> None:
    first, second = one.read_text(), other.read_text()
    one.write_text(second)
    other.write_text(first)


def shift(one: Path, other: Path) -> None:
    text = one.read_text()
    one.write_text(text[:-1])
    other.write_text(text[-1] + other.read_text())


@pytest.mark.parametrize("name", CHANGES)
def test_trust_is_void_after_any_change(project: Path, store: TrustStore, name: str) -> None:
    store.add(read_project(str(project)), NOW)
    CHANGES[name](project / ".policyd")
    assert not trusted(project, store)


def test_trust_covers_one_place(project: Path, store: TrustStore, tmp_path: Path) -> None:
    store.add(read_project(str(project)), NOW)
    project.rename(tmp_path / "moved")
    assert not trusted(tmp_path / "moved", store)


def test_a_note_of_trust_that_cannot_be_believed_is_none(project: Path, store: TrustStore) -> None:
    files = read_project(str(project))
    store.add(files, NOW)
    note = Path(store.file(str(project)))
    note.chmod(0o666)
    assert not store.trusts(files)
    note.chmod(0o600)
    assert store.trusts(files)
    for damaged in ("digest = [", f"digest = {'[' * 5000}", "digest = 1", ""):
        note.write_text(damaged)
        assert not store.trusts(files)


def test_a_project_without_files_is_nothing_to_trust(tmp_path: Path, store: TrustStore) -> None:
    empty = read_project(str(tmp_path))
    assert empty.files == ()
    store.add(empty, NOW)
    assert not store.trusts(empty)


@pytest.mark.parametrize("kind", ["file link", "folder link", "fifo", "directory", "odd name"])
def test_a_project_policy_is_plain_files_only(project: Path, store: TrustStore, kind: str) -> None:
    folder = project / ".policyd"
    if kind == "file link":
        (folder / "z.toml").symlink_to("a.toml")
    elif kind == "folder link":
        folder.rename(project / "elsewhere")
        folder.symlink_to("elsewhere")
    elif kind == "fifo":
        os.mkfifo(folder / "z.toml")
    elif kind == "odd name":
        (folder / "\udcff.toml").write_text("version = 1\n")
    else:
        (folder / "z.toml").mkdir()
    found = policies.project(str(project), store)
    assert found.sources == ()
    assert ".policyd" in found.broken


def test_the_digest_is_of_names_and_contents() -> None:
    def digest(*files: tuple[str, bytes]) -> str:
        return ProjectFiles("/", files).digest

    assert digest(("a", b"x"), ("b", b"y")) == digest(("b", b"y"), ("a", b"x"))
    assert digest(("a", b"xb"), ("c", b"")) != digest(("a", b"x"), ("bc", b""))
    assert ProjectFiles("/p", (("a.toml", b""),)).digest.startswith("sha256:")


# ---- a session's policy ----------------------------------------------------------------------------


def test_a_users_file_inside_the_workspace_is_a_project_file(tmp_path: Path) -> None:
    file = tmp_path / "ci.toml"
    file.write_text(ALLOW)
    (source,) = policies.given([str(file)]).sources
    (inside,) = policies.demoted([source], [str(tmp_path)])
    assert (inside.layer, inside.trusted) == (Layer.PROJECT, False)
    (outside,) = policies.demoted([source], [str(tmp_path / "work")])
    assert outside.layer is Layer.USER
    (linked_root,) = policies.demoted([source], [str(link_to(tmp_path, tmp_path.parent / f"{tmp_path.name}-link"))])
    assert linked_root.layer is Layer.PROJECT
    vouched = f"sha256:{hashlib.sha256(ALLOW.encode()).hexdigest()}"
    assert policies.demoted([source], [str(tmp_path)], [vouched])[0].layer is Layer.USER
    assert list(policies.unmatched([source], [vouched])) == []
    (said,) = policies.unmatched([source], [vouched, f"sha256:{'0' * 64}"])
    assert said.startswith(f"`--policy-digest sha256:{'0' * 64}` is no policy file's")


def link_to(target: Path, link: Path) -> Path:
    link.symlink_to(target)
    return link


@pytest.fixture
def home(tmp_path: Path) -> places.Places:
    """Return the places of a home of its own."""
    return places.find(home=str(tmp_path), environ={})


def compose(found: policies.Found, home: places.Places) -> tuple[int, str]:
    loaded, broken = policies.compose(found, home, RealFilesystem())
    return len(loaded.rules), broken


def test_an_invalid_project_file_breaks_the_session_only(home: places.Places) -> None:
    user = PolicySource("u.toml", DENY.encode(), Layer.USER)
    bad = PolicySource("p.toml", b"comand = 1", Layer.PROJECT)
    rules, broken = compose(policies.Found((user, bad)), home)
    assert rules == 1
    assert broken.startswith("p.toml:1: unknown key `comand`")


def test_an_invalid_user_file_is_an_error(home: places.Places) -> None:
    bad = PolicySource("u.toml", b"comand = 1", Layer.USER)
    with pytest.raises(PolicyError):
        compose(policies.Found((bad, PolicySource("p.toml", b"x=", Layer.PROJECT))), home)


def test_a_project_that_cannot_be_read_stays_broken(home: places.Places) -> None:
    assert compose(policies.Found(broken=".policyd: no"), home) == (0, ".policyd: no")
