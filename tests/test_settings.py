"""Settings: which layer wins, what is locked, what a variable may do, and how mistakes read."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from policyd.cli import main
from policyd.model import Layer
from policyd.policy import PolicySource
from policyd.policy.conditions import PathCondition
from policyd.proxy.options import SHELLS
from policyd.storage import places as where
from policyd.storage import policies, settings_file
from policyd.storage import settings as files
from policyd.storage.places import PlaceError, Places
from policyd.storage.settings import Loaded, SettingsError, load
from policyd.storage.strictfile import own_owners, read_strictly


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A home of one's own, and a managed directory whose parents are not looked at."""
    start = str(tmp_path / "etc")
    monkeypatch.setattr(files, "read_strictly", lambda path: read_strictly(path, own_owners(), start=start))
    for name in ("etc", "home/.config/policyd"):
        (tmp_path / name).mkdir(parents=True)
    found = where.find(home=str(tmp_path / "home"), environ={})
    return replace(found, managed=(str(tmp_path / "etc"),))


def write(places: Places, *, managed: str = "", user: str = "") -> None:
    """Write the two files."""
    for path, text in ((places.managed_settings[0], managed), (places.user_settings, user)):
        if text:
            Path(path).write_text(text)
            Path(path).chmod(0o644)


def loaded(places: Places, **options: object) -> Loaded:
    """Load with nothing in the environment."""
    return load(places, options=options, environ={}, defaults={"prompt": ("client",)})


def test_without_files_the_defaults_hold(places: Places) -> None:
    settings = loaded(places).settings
    assert settings.prompt == ("client",) and settings.agent_mode == "enforce" and settings.audit_durability == "write"


def test_options_beat_the_user_who_beats_unlocked_managed_settings(places: Places) -> None:
    write(places, managed='strict = true\nfs_read = "policy"\nhuman_ms = 1', user="human_ms = 2\nstrict = false")
    found = loaded(places, human_ms=3)
    assert (found.settings.strict, found.settings.fs_read, found.settings.human_ms) == (False, "policy", 3)
    assert found.origins == {
        "strict": places.user_settings,
        "fs_read": places.managed_settings[0],
        "human_ms": "option",
    }


LOCKED = '[lock]\nsettings = ["prompt", "audit", "agent_mode", "labels"]\n'


def test_what_is_locked_is_final(places: Places) -> None:
    write(
        places,
        managed='prompt = []\nlabels = { env = "ci" }\n[audit]\ndurability = "fsync"\n' + LOCKED,
        user='agent_mode = "off"\nprompt = ["client"]\n[audit]\npath = "/tmp/x"\n[timeouts]\nclient = 5\n',
    )
    found = load(places, options={"labels": {"env": "prod"}}, environ={"POLICYD_AUDIT_DIR": "/tmp/y"})
    settings = found.settings
    assert settings.prompt == () and settings.agent_mode == "enforce" and settings.timeouts == {}
    assert settings.audit_path == "" and settings.audit_durability == "fsync" and settings.labels == {"env": "ci"}
    assert len(found.notes) == 6 and all("locked" in note for note in found.notes)


def test_a_lock_of_a_managed_policy_file_counts_too(places: Places) -> None:
    write(places, user='agent_mode = "off"')
    assert load(places, environ={}, locks=frozenset({"agent_mode"})).settings.agent_mode == "enforce"


def test_what_is_read_again_is_what_a_managed_policy_file_locks(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(places.managed_policies[0])
    folder.mkdir()
    (folder / "a.toml").write_text('version = 1\n[lock]\nsettings = ["audit", "grants"]\n')
    real = policies.managed
    monkeypatch.setattr(policies, "managed", lambda found: real(found, own_owners(), start=str(tmp_path / "etc")))
    monkeypatch.setattr(where, "MANAGED", places.managed)
    write(places, user=f'[audit]\npath = "{tmp_path}/clean.jsonl"\n[grants]\nmax_age = 1\n')
    (tmp_path / "clean.jsonl").touch()
    assert files.in_force(places).settings.audit_path == ""
    assert main(["audit", "verify", "--home", places.home]) == 2
    assert f"there is no log at {places.audit}/audit.jsonl" in capsys.readouterr().err
    (folder / "a.toml").write_text("version = 2\n")
    assert main(["audit", "verify", "--home", places.home]) == 2
    assert main(["grants", "list", "--home", places.home]) == 0


def test_every_setting_can_be_locked(places: Places) -> None:
    keys = [files.key_of(name) for name in files.field_names()]
    write(places, managed=f"[lock]\nsettings = {keys}")
    assert loaded(places, color="never").settings.color == "auto"
    assert all(files.is_locked(name, frozenset({files.key_of(name)})) for name in files.field_names())


def test_a_file_sets_what_there_is_to_set_in_the_words_that_variables_and_options_take() -> None:
    keys = {f"{table}.{key}" for table in ("audit", "grants") for key in settings_file.NAMES[table]}
    keys |= {*settings_file.NAMES[""]} - {"audit", "grants", "lock"}
    assert keys == {files.key_of(name) for name in files.field_names()}
    said: Any = settings_file.schema()["properties"]
    words = {"log_level": files.LOG_LEVELS, "color": files.COLORS, "shell": SHELLS}
    assert {name: tuple(said[name]["anyOf"][0]["enum"]) for name in words} == words


def test_an_audit_path_below_the_home_directory_lies_there(places: Places) -> None:
    write(places, user='[audit]\npath = "~/logs/"')
    assert loaded(places).settings.audit_path == f"{places.home}/logs/"


def test_managed_labels_win_and_are_told_apart(places: Places) -> None:
    write(places, managed='labels = { env = "ci" }', user='labels = { env = "mine", team = "a" }')
    found = loaded(places, labels={"env": "other", "job": "7"})
    assert found.settings.labels == {"env": "ci", "team": "a", "job": "7"}
    assert found.managed_labels == {"env": "ci"}


def test_variables_are_harmless_ones_only(places: Places) -> None:
    environ = {
        "POLICYD_LOG_LEVEL": "debug",
        "POLICYD_AUDIT_DIR": "/var/a",
        "POLICYD_PROMPT": "client",
        "POLICYD_AGENT_MODE": "off",
        "POLICYD_STRICT": "false",
        "PROMPT": "x",
        "AGENT_MODE": "off",
        "STRICT": "true",
        "SHELL": "/bin/zsh",
        "REPORT": "off",
    }
    write(places, user="human_ms = 5")
    settings = load(places, environ=environ).settings
    assert (settings.log_level, settings.audit_path) == ("debug", "/var/a/")
    assert (settings.prompt, settings.agent_mode, settings.strict, settings.shell) == ((), "enforce", False, "")
    assert settings.report == "tool_call"


def test_no_env_file_is_read(places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AGENT_MODE=off\nPOLICYD_AGENT_MODE=off\nagent_mode=off\n")
    monkeypatch.chdir(tmp_path)
    write(places, user="human_ms = 5")
    assert loaded(places).settings.agent_mode == "enforce"


MISTAKES = (
    ('agent_mode = "of"', ':1: `agent_mode = "of"` is not known; write `"off"`'),
    ("human_ms = 4\nagent_mod = 1", ":2: unknown setting `agent_mod`; did you mean `agent_mode`?"),
    ('strict = "yes"', ':1: `strict` is the text "yes"; write `true` or `false`, without quotes'),
    ('[audit]\nduribility = "fsync"', ":2: unknown setting `audit.duribility`; did you mean `durability`?"),
    ('audit.path = "relative"', ":1: `audit.path`: write a full path, or one that begins with `~/`"),
    ('prompt = ["client", "web"]', ":1: `prompt.1`: write `client`, `inbox` or `command:/path`"),
    ("[timeouts]\nclinet = 3", ":2: `timeouts.clinet`: no step is called so; write `client`"),
    ("_env_file = '.env'", ":1: unknown setting `_env_file`"),
    ("prompt = [", ": is no TOML"),
    (f"prompt = {'[' * 5000}", ": is no TOML"),
    (f"human_ms = {'9' * 5000}", ": is no TOML"),
    ('[lock]\nsettings = ["prompt"]', ":1: only the managed settings file can lock settings"),
    ("grants.max_age = 365", ":1: `grants.max_age` is the number 365; it should be less than or equal to 30"),
    ("human_ms = true", ":1: `human_ms` is `true`; it should be a valid integer"),
    ('human_ms = "x"', ':1: `human_ms` is the text "x"; it should be a valid integer'),
    ('prompt = "client"', ':1: `prompt` is the text "client"; it should be a list, `prompt = ["…"]`'),
    ('audit = "x"', ':1: `audit` is the text "x"; write a table: `{ name = value }`'),
    ("nonsense = 1\n", ":1: unknown setting `nonsense`; known here: prompt, timeouts, agent_mode"),
    ("[audit]\nwhere = 1", ":2: unknown setting `audit.where`; known here: path, durability, checkpoints"),
    ("PROMPT = []", ":1: unknown setting `PROMPT`; did you mean `prompt`?"),
)


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_named_with_its_line(places: Places, text: str, said: str) -> None:
    write(places, user=text)
    with pytest.raises(SettingsError) as error:
        loaded(places)
    assert str(error.value).startswith(places.user_settings + said)


def test_all_mistakes_of_all_files_are_reported_at_once(places: Places) -> None:
    write(places, managed='a = 1\n[lock]\nsettings = ["promt"]', user="b = 1\nc = 2")
    with pytest.raises(SettingsError) as error:
        load(places, environ={"POLICYD_LOG_LEVEL": "loud"})
    assert len(error.value.diagnostics) == 4


@pytest.mark.parametrize("layer", ["managed", "user"])
def test_a_file_behind_a_link_that_leads_nowhere_is_an_error(places: Places, layer: str) -> None:
    file = Path(places.managed_settings[0] if layer == "managed" else places.user_settings)
    file.symlink_to("gone")
    with pytest.raises(SettingsError, match="cannot be read"):
        loaded(places)
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to("gone")
    if layer == "user":  # the test's managed directory is where its walk begins
        with pytest.raises(SettingsError, match="cannot be read"):
            loaded(places)


def test_a_managed_file_that_others_can_write_is_an_error(places: Places) -> None:
    write(places, managed="strict = true")
    Path(places.managed_settings[0]).chmod(0o666)
    with pytest.raises(SettingsError, match=r"everybody may write it; make it belong to root .*chmod go-w"):
        loaded(places)


# ---- places ----------------------------------------------------------------------------------------


def test_home_and_xdg_name_the_places(tmp_path: Path) -> None:
    found = where.find(environ={"HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "relative"}, platform="linux")
    assert (found.config, found.grants, found.cache) == ("/h/.config/policyd", "/s/policyd/grants", "/h/.cache/policyd")


@pytest.mark.parametrize(
    ("named", "tmpdir"),
    [("/scratch", "/scratch"), ("/h/dev/tmp/", "/h/dev/tmp"), ("", "/tmp"), ("rel", "/tmp"), ("/", "/tmp")]
    + [(above, "/tmp") for above in ("/h/dev", "/h/dev/", "/h", "/h/dev/x/..", "/h//dev/.", "/..")],
)
def test_a_temporary_directory_is_never_the_home_directory_nor_above_it(named: str, tmpdir: str) -> None:
    assert where.find(home="/h/dev", environ={"TMPDIR": named}).tmpdir == tmpdir


DEV = pwd.struct_passwd(("dev", "x", 1000, 1000, "", "/home/dev/", "/bin/sh"))


def test_without_home_the_password_database_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: DEV)
    assert where.find(environ={}).home == "/home/dev"


def test_no_variable_and_no_option_moves_the_home_that_managed_rules_hold_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: DEV)
    deny = b'version = 1\n[[rule]]\neffect = "deny"\npath = "~/.ssh"'
    for found in (where.find(environ={"HOME": "/fake"}), where.find(home="/fake", environ={})):
        rules = policies.loaded_at(found, [PolicySource("/m", deny, Layer.MANAGED)], None).rules
        (condition,) = rules[0].conditions
        assert isinstance(condition, PathCondition)
        assert [each.places for each in condition.patterns[0].alternatives] == [("/fake/.ssh",), ("/home/dev/.ssh",)]


def test_no_known_home_is_an_error_and_an_option_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    with pytest.raises(PlaceError, match="--home"):
        where.find(environ={})
    with pytest.raises(PlaceError):
        where.find(environ={"HOME": "relative"})
    assert where.find(home="/x", environ={"XDG_CONFIG_HOME": "/other"}).config == "/x/.config/policyd"


def test_who_runs_it_is_the_kernels_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: DEV)
    monkeypatch.setattr(os, "getgroups", lambda: [4_000_000_000])
    name, groups = where.person()
    assert name == "dev" and "gid:4000000000" in groups
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert where.person()[0] == f"uid:{os.getuid()}"


def test_sockets_lie_in_a_directory_of_the_users_own_and_never_in_tmp(tmp_path: Path) -> None:
    def runtime(place: str) -> str | None:
        return where.runtime_directory({"XDG_RUNTIME_DIR": place}, macos=False)

    assert runtime(f"{tmp_path}/") == f"{tmp_path}/policyd"
    assert [runtime(place) for place in ("/tmp", "/tmp/", "run", f"{tmp_path}/gone")] == [None] * 4


def test_the_managed_place_is_fixed() -> None:
    assert where.find(home="/x", environ={"POLICYD_MANAGED": "/y"}, platform="linux").managed == ("/etc/policyd",)
    assert where.find(home="/x", environ={}, platform="darwin").managed[0] == "/Library/Application Support/policyd"
