"""`policyd edit`: nothing broken is saved, nothing of others is overwritten, and what changes by it is told."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policyd.cli import edit, main, presence
from policyd.storage import places, policies
from policyd.storage.auditlog import AuditLog
from policyd.storage.private import write_whole
from policyd.storage.strictfile import LARGEST, own_owners
from policyd.storage.trust import TrustStore, read_project
from tests.audited import CAPTURES, Day, careful
from tests.proxied import POLICYD

OLD = 'version = 1\n[[rule]]\nid = "push"\neffect = "ask"\ncommand = "git push"\n'
NEW = OLD + '[[rule]]\nid = "rm"\neffect = "deny"\ncommand = "rm **"\n'
LOOSE = OLD.replace('"ask"', '"allow"')
BROKEN = OLD.replace('"ask"', '"alow"')


@dataclass
class House:
    """A home with one policy, an editor that writes what a test wants, and what came of it."""

    home: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @property
    def policies(self) -> Path:
        return self.home / ".config/policyd/policies.d"

    @property
    def mine(self) -> Path:
        return self.policies / "mine.toml"

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def editor(self, *texts: str, more: str = "true") -> None:
        """Let the editor write these texts, one each time; `more` is run with the copy as its first word."""
        (self.home / "turn").unlink(missing_ok=True)
        for number, text in enumerate(texts):
            self.write(self.home / f"text{number}", text)
        turn = f'cd {self.home}; n=$(cat turn 2>/dev/null || echo 0); cp text$n "$1"; echo $((n+1)) > turn'
        self.write(self.home / "editor.sh", f"{turn if texts else ''}\n{more}\n")
        self.monkeypatch.setenv("EDITOR", shlex.join(["sh", str(self.home / "editor.sh")]))

    def person(self, *answers: str) -> None:
        """Put somebody at a terminal who answers so, and then has enough."""
        said = iter(answers)

        def typed(question: str) -> str:
            print(question)
            for one in said:
                return one
            raise EOFError

        self.monkeypatch.setattr(presence, "has_terminal", lambda: True)
        self.monkeypatch.setattr("builtins.input", typed)

    def edit(self, *words: str) -> tuple[int, str]:
        """Run the command; return how it ended and what it said."""
        code = main(["edit", "--home", str(self.home), *words])
        return code, "".join(self.capsys.readouterr())

    def left(self) -> list[Path]:
        """What was left of copies, and in the directory of policies beside the policies."""
        edits = Path(places.find(home=str(self.home)).edits)
        beside = [one for one in self.policies.iterdir() if not one.name.endswith(".toml")]
        return [*beside, *(edits.iterdir() if edits.exists() else ())]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> House:
    found = House(tmp_path, monkeypatch, capsys)
    found.write(found.mine, OLD).chmod(0o640)
    found.write(found.policies / "mine_test.toml", "")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(presence, "below_agent", lambda: "")
    monkeypatch.setattr(presence, "has_terminal", lambda: False)
    return found


def test_a_valid_change_is_saved_with_its_mode_and_what_changes_by_it_is_told(house: House) -> None:
    house.editor(NEW, more='stat -c %a "$1" "$(dirname "$1")"')
    before = house.mine.stat().st_ino
    code, said = house.edit()
    assert code == 0 and house.mine.read_text() == NEW and house.left() == []
    assert "ok: 1 policy file, 2 rules" in said and "+ deny  user:rm" in said and "NEW is not looser" in said
    assert stat.S_IMODE(house.mine.stat().st_mode) == 0o640 and house.mine.stat().st_ino != before


def test_a_loosening_is_shown_with_a_request(house: House) -> None:
    house.editor(LOOSE)
    code, said = house.edit()
    assert code == 0 and "LOOSER   ask -> allow: execute git push" in said and "NEW is looser" in said


def test_a_broken_file_is_never_saved(house: House) -> None:
    house.editor(BROKEN)
    code, said = house.edit("mine.toml")
    assert code == 2 and house.mine.read_text() == OLD and house.left() == []
    assert f'{house.mine}:4: rule "push": ' in said and "mine.toml was not saved: 1 mistake" in said


def test_a_person_may_edit_again_what_is_broken_but_not_save_it(house: House) -> None:
    house.editor(BROKEN, NEW)
    house.person("s", "save", "", "e", "s")
    code, said = house.edit()
    assert code == 0 and house.mine.read_text() == NEW
    assert said.count("what now? (e)dit again, (q)uit: ") == 4
    assert said.count("what now? (s)ave, (e)dit again, (q)uit: ") == 1


@pytest.mark.parametrize("answers", [("q",), ("quit",), (), ("y", "n")])
def test_who_leaves_has_saved_nothing(answers: tuple[str, ...], house: House) -> None:
    house.editor(NEW)
    house.person(*answers)
    code, said = house.edit()
    assert code == 1 and house.mine.read_text() == OLD and "not saved" in said and house.left() == []


def test_an_unchanged_file_says_so(house: House) -> None:
    house.editor(OLD)
    found = house.mine.stat()
    code, said = house.edit()
    assert (code, said) == (0, f"{house.mine}: unchanged\n")
    assert (house.mine.stat().st_ino, house.mine.stat().st_mtime_ns) == (found.st_ino, found.st_mtime_ns)


def test_two_edits_do_not_cross(house: House) -> None:
    house.editor(NEW)
    descriptor = os.open(house.policies, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    code, said = house.edit()
    assert code == 2 and f"somebody else edits a policy in {house.policies}" in said
    os.close(descriptor)
    assert house.edit()[0] == 0


def overwrite(house: House) -> str:
    return f"echo '# mine' >> {house.mine}"


def take_away(house: House) -> str:
    return f"rm {house.mine}"


def put_a_link(house: House) -> str:
    other = house.write(house.home / "other.toml", OLD)
    return f"rm {house.mine}; ln -s {other} {house.mine}"


@pytest.mark.parametrize("change", [overwrite, take_away, put_a_link])
def test_what_somebody_else_changed_meanwhile_stays_and_so_does_the_text(
    change: Callable[[House], str], house: House
) -> None:
    house.editor(NEW, more=change(house))
    code, said = house.edit()
    assert code == 2 and f"{house.mine}: somebody else changed it meanwhile" in said
    assert not house.mine.exists() or house.mine.read_text() != NEW
    kept = Path(said.partition("was not saved; your text is in ")[2].split()[0])
    assert kept.read_text() == NEW and stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_a_file_that_somebody_else_made_meanwhile_stays(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    new = house.policies / "more.toml"
    house.editor(NEW.replace('"push"', '"other"'))
    link = os.link
    monkeypatch.setattr(os, "link", lambda *names, **more: (new.write_text(OLD), link(*names, **more)))  # at last
    assert house.edit("more.toml")[0] == 2 and new.read_text() == OLD


def test_a_mistake_that_a_change_brings_to_another_file_counts(house: House) -> None:
    other = house.write(house.policies / "zz.toml", OLD.replace('"push"', '"rm"'))
    house.editor(NEW)
    code, said = house.edit("mine.toml")
    assert code == 2 and f"{other}:3: " in said and house.mine.read_text() == OLD


def test_a_file_that_cannot_be_put_there_leaves_the_text(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    house.editor(NEW)
    monkeypatch.setattr(os, "rename", full)
    code, said = house.edit()
    assert code == 2 and "was not saved; your text is in " in said and "No space left on device" in said
    assert house.mine.read_text() == OLD


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def torn(*_: object) -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    ("where", "fault", "ended"), [("difference", interrupted, 130), ("asked", interrupted, 130), ("judged", torn, 2)]
)
def test_whatever_keeps_a_text_from_being_saved_leaves_it(
    where: str, fault: Callable[..., None], ended: int, house: House
) -> None:
    house.editor(NEW)
    house.monkeypatch.setattr(edit, where, lambda *_, **__: fault())
    code, said = house.edit()
    assert code == ended and house.mine.read_text() == OLD
    assert Path(said.partition("was not saved; your text is in ")[2].split("\n")[0]).read_text() == NEW


@pytest.mark.parametrize(
    ("more", "kept"),
    [("kill -9 $$", NEW), (f"head -c {LARGEST + 1} /dev/zero > $1", None), ("exit 1", NEW)],
    ids=["killed", "too large", "failed"],
)
def test_an_editor_that_ends_badly_leaves_what_was_written(more: str, kept: str | None, house: House) -> None:
    house.editor(NEW, more=more)
    code, said = house.edit()
    assert code == 2 and house.mine.read_text() == OLD
    copy = Path(said.partition("was not saved; your text is in ")[2].split("\n")[0])
    assert copy.stat().st_size > LARGEST if kept is None else copy.read_text() == kept


def test_what_an_editor_that_died_left_beside_the_copy_stays(house: House) -> None:
    house.editor(more='touch "$(dirname "$1")/.mine.toml.swp"; exit 1')
    assert house.edit()[0] == 2 and len(house.left()) == 1


def test_a_file_that_is_in_its_place_was_saved(house: House) -> None:
    house.editor(NEW)
    fsync = os.fsync
    house.monkeypatch.setattr(os, "fsync", lambda each: torn() if stat.S_ISDIR(os.fstat(each).st_mode) else fsync(each))
    code, said = house.edit()
    assert code == 0 and house.mine.read_text() == NEW and house.left() == []
    assert "mine.toml: saved" in said and "the disk may not keep it through a crash: Input/output error" in said
    house.editor(OLD)
    house.monkeypatch.setattr(edit, "trust_lost", torn)
    code, said = house.edit()
    assert code == 2 and house.mine.read_text() == OLD and house.left() == [] and "not saved" not in said


def test_trust_is_lost_where_the_project_cannot_be_read(house: House) -> None:
    file = house.write(house.home / "work/.policyd/rules.toml", OLD)
    store = TrustStore(places.find(home=str(house.home)).trust)
    store.add(read_project(str(house.home / "work")), datetime.now(UTC))
    house.editor(NEW, more=f"ln -s {file} {file.parent}/link.toml")
    code, said = house.edit(str(file))
    assert code == 0 and "saved" in said and "the project is not trusted any more" in said


ENTRIES = ((1, 6, -1), (2, 4, 4321), (4, 0, -1), (16, 4, -1), (32, 0, -1))
"""An access list: the owner and user 4321 may read the file, its group may not."""


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has other access lists")
def test_an_access_list_stays_or_the_mode_would_say_more(house: House) -> None:
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in ENTRIES)
    try:
        os.setxattr(house.mine, edit.ACCESS, access)
    except OSError:
        pytest.skip("this file system has no access lists")
    house.editor(NEW)
    assert house.edit()[0] == 0 and house.mine.read_text() == NEW
    assert os.getxattr(house.mine, edit.ACCESS) == access
    house.editor(OLD)
    house.monkeypatch.setattr(os, "setxattr", torn)
    assert house.edit()[0] == 2 and house.mine.read_text() == NEW


def test_nothing_is_done_to_what_somebody_puts_in_the_place_of_names(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = house.write(house.home / "other", "")
    other.chmod(0o600)
    dressed = list[int]()

    def swapped(path: str, data: bytes, dress: Callable[[int], None] = lambda descriptor: None, **more: Any) -> None:
        """Put links in the place of the directory and of what was written, as whoever may write above can."""
        write_whole(path, data, lambda descriptor: swap(descriptor, dress), **more)

    def swap(descriptor: int, dress: Callable[[int], None]) -> None:
        away = house.policies.rename(house.home / "away")
        house.policies.symlink_to(house.home / "elsewhere")
        for one in away.glob(".mine.toml.*"):
            one.rename(away / "gone")
            one.symlink_to(other)
        dress(descriptor)
        dressed.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    (house.home / "elsewhere").mkdir()
    house.editor(NEW)
    monkeypatch.setattr(edit, "write_whole", lambda *words, **more: (swapped if more else write_whole)(*words, **more))
    assert house.edit()[0] == 2
    assert dressed == [0o640] and stat.S_IMODE(other.stat().st_mode) == 0o600 and other.read_text() == ""
    assert [*(house.home / "elsewhere").iterdir()] == []


def test_the_copy_lies_where_nobody_else_can_put_anything(house: House) -> None:
    house.editor(NEW, more=f'echo "$1" > {house.home}/seen; ls -A {house.policies} >> {house.home}/seen')
    assert house.edit()[0] == 0
    copy, *beside = (house.home / "seen").read_text().splitlines()
    assert copy.startswith(f"{house.home}/.local/state/policyd/edits/") and beside == ["mine.toml", "mine_test.toml"]


def test_a_link_to_a_policy_of_another_place_is_not_followed(house: House) -> None:
    house.editor(LOOSE)
    folder = house.home / "work/.policyd"
    folder.mkdir(parents=True)
    for link in (folder / "x.toml", house.home / "x.toml"):
        link.symlink_to(house.mine)
        code, said = house.edit(str(link))
        assert code == 2 and f"{link} is a link to {house.mine}; name the policy it leads to" in said
    (folder / "y.toml").symlink_to(house.write(house.home / "y.toml", OLD))
    assert house.edit(str(folder / "y.toml"))[0] == 2
    assert house.mine.read_text() == OLD


def test_a_link_is_followed_to_its_file(house: House) -> None:
    real = house.write(house.home / "dotfiles/policy.toml", OLD)
    house.mine.unlink()
    house.mine.symlink_to(real)
    house.editor(NEW)
    assert house.edit()[0] == 0
    assert house.mine.is_symlink() and real.read_text() == NEW
    real.unlink()
    assert house.edit()[0] == 2


def test_a_new_file_begins_as_one_and_is_its_users_alone(house: House) -> None:
    new = house.policies / "more.toml"
    house.editor(more=f'cp "$1" {house.home}/seen')
    assert house.edit("more.toml") == (0, f"{new}: unchanged\n") and not new.exists()
    assert (house.home / "seen").read_text() == "version = 1\n"
    house.editor(NEW.replace('"push"', '"other"'))
    assert house.edit("more.toml")[0] == 0 and stat.S_IMODE(new.stat().st_mode) == 0o600
    assert "which one?" in house.edit()[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone/x.toml", "gone/x.toml: No such file"),
        ("mine_test.toml", "is no policy file: those end in .toml, suites in _test.toml"),
        ("mine.txt", "is no policy file"),
        (".", "is no policy file"),
        ("\udcff.toml", "its name is no UTF-8"),
        ("policyd.toml", "holds settings, not rules"),
        ("", "it needs a value"),
    ],
)
def test_what_is_no_policy_file_is_refused(name: str, said: str, house: House) -> None:
    house.editor(NEW)
    try:
        code, told = house.edit(name)
    except SystemExit as error:  # argparse's own
        code, told = int(str(error.code)), "".join(house.capsys.readouterr())
    assert code == 2 and said in told


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false", "the editor `false` ended with 1: nothing was saved"),
        ("no-such-editor -w", "the editor `no-such-editor` cannot be run: No such file"),
        ("vi 'x", "VISUAL is no command: No closing quotation"),
        ("sh -c 'rm \"$0\"'", "No such file"),
        ('sh -c \'mkdir "$0.d" && rm "$0" && mv "$0.d" "$0"\'', "it is a directory, not a plain file"),
    ],
)
def test_an_editor_that_fails_saves_nothing(command: str, said: str, house: House) -> None:
    house.monkeypatch.setenv("VISUAL", command)
    code, told = house.edit()
    assert code == 2 and said in told and house.mine.read_text() == OLD


def test_no_shell_reads_the_editors_words(house: House) -> None:
    house.editor(NEW)
    house.monkeypatch.setenv("EDITOR", os.environ["EDITOR"] + f" ; touch {house.home}/no")
    house.edit()
    assert not (house.home / "no").exists()


def test_an_agent_may_not_edit(house: House) -> None:
    house.editor(LOOSE)
    command = f"{shlex.join([*POLICYD, 'edit', '--home', str(house.home)])}; exit $?"
    words = ["sh", "-c", command, "policyd", "proxy"]  # what stands above it looks like a proxy
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "policyd edit: an agent under policyd may not do this\n")
    assert house.mine.read_text() == OLD


def test_mistakes_of_other_files_do_not_keep_one_from_being_mended(house: House) -> None:
    house.write(house.policies / "other.toml", BROKEN.replace('"push"', '"z"'))
    house.mine.write_text(BROKEN)
    house.editor(NEW)
    code, said = house.edit("mine.toml")
    assert code == 0 and house.mine.read_text() == NEW and "other policy files have mistakes" in said
    house.editor(NEW + '[[rule]]\nid = "ls"\neffect = "allow"\ncommand = "ls"\nmatch = ["rm x"]\n')
    code, said = house.edit("mine.toml")
    assert code == 2 and "mine.toml was not saved: 1 mistake" in said


def test_recent_requests_of_the_audit_log_are_decided_under_both(house: House) -> None:
    house.mine.write_text('version = 1\n[defaults]\n"*" = "ask"\n')
    log = AuditLog(str(house.home / ".local/state/policyd/audit/audit.jsonl"))
    Day(log, careful).captured(CAPTURES[:3])
    house.editor('version = 1\n[defaults]\n"*" = "deny"\n')
    code, said = house.edit()
    count = sum(b'"event":"decision"' in line for line in Path(log.path).read_bytes().splitlines())
    assert code == 0 and count and f"and {count} recorded ones agree" in said and "stricter ask -> deny" in said


def test_a_projects_file_is_judged_as_such_and_is_trusted_no_more(house: House) -> None:
    root = house.home / "work"
    file = house.write(root / ".policyd/rules.toml", OLD)
    store = TrustStore(places.find(home=str(house.home)).trust)
    store.add(read_project(str(root)), datetime.now(UTC))
    house.editor(OLD + '[[rule]]\nid = "ls"\neffect = "allow"\ncommand = "ls"\n')
    code, said = house.edit(str(file))
    assert (
        code == 0
        and f"the project is not trusted any more: its rules only tighten until `policyd trust {root}`" in said
    )
    assert "LOOSER" not in said and not store.trusts(read_project(str(root)))


def test_a_managed_file_is_judged_as_such(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, real = house.home / "etc/policyd", policies.managed
    file = house.write(folder / "policies.d/base.toml", OLD)
    monkeypatch.setattr(places, "MANAGED", (str(folder),))
    monkeypatch.setattr(policies, "managed", lambda found: real(found, own_owners(), start=str(folder)))
    house.editor(locked := NEW + '[lock]\nrefuse = ["user.allow"]\n', locked)
    code, said = house.edit()
    assert code == 2 and "[lock]" in said and house.mine.read_text() == OLD
    code, said = house.edit(str(file))
    assert code == 0 and "+ deny  managed:rm" in said and file.read_text() == locked
    file.chmod(0o666)
    house.editor(OLD)
    code, said = house.edit(str(file))
    assert code == 2 and "not safe to read: everybody may write it" in said and file.read_text() == locked
