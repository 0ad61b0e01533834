"""Where policyd's files are, and who runs it.

Rules of this module:

1. The home directory is `--home`, else `HOME`, else the password database: some clients start agents with neither
   `HOME` nor `XDG_*`. No absolute home directory is an error at start, never a guess.
2. `--home` replaces the user's whole surroundings: `XDG_*` variables, which belong to the other home, are not read.
3. The managed directory is part of the program. No variable and no option of `proxy` or `serve` moves it.
4. Names only: nothing here opens or creates a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from msgspec import Struct

MANAGED = ("/etc/policyd",)
MANAGED_MACOS = ("/Library/Application Support/policyd", "/etc/policyd")
DAEMON_AUDIT = "/var/log/policyd"


class PlaceError(Exception):
    """No home directory is known."""


class Places(Struct, frozen=True):
    """The directories of one user, absolute; none of them need exist."""

    home: str
    config: str
    """User policies and settings: `$XDG_CONFIG_HOME/policyd`."""
    state: str
    """Grants, trust and audit: `$XDG_STATE_HOME/policyd`."""
    cache: str
    """Parsed policies; nothing here is trusted."""
    runtime: str | None
    """The user's socket directory, None where the system gives none; never `/tmp`."""
    managed: tuple[str, ...]
    """Managed policies and settings, in order."""
    tmpdir: str
    """The system's temporary directory: `$TMPDIR/` in patterns."""
    account: str = ""
    """The home directory by the password database, whatever `HOME` and `--home` say; empty if it names none."""

    @property
    def user_policies(self) -> str:
        """The directory of the user's policy files."""
        return f"{self.config}/policies.d"

    @property
    def user_settings(self) -> str:
        """The user's settings file."""
        return f"{self.config}/policyd.toml"

    @property
    def managed_policies(self) -> tuple[str, ...]:
        """The directories of the managed policy files."""
        return tuple(f"{place}/policies.d" for place in self.managed)

    @property
    def managed_settings(self) -> tuple[str, ...]:
        """The managed settings files, in order."""
        return tuple(f"{place}/policyd.toml" for place in self.managed)

    @property
    def grants(self) -> str:
        """The directory of remembered answers."""
        return f"{self.state}/grants"

    @property
    def trust(self) -> str:
        """The directory of pinned project policies."""
        return f"{self.state}/trust"

    @property
    def edits(self) -> str:
        """The directory of the copies that `policyd edit` gives to editors."""
        return f"{self.state}/edits"

    @property
    def inbox(self) -> str:
        """The directory of questions that wait for `policyd prompts answer`."""
        return f"{self.state}/inbox"

    @property
    def reserved(self) -> tuple[str, ...]:
        """What is policyd's own: the guard holds it against agents."""
        return (self.config, self.state, self.cache, *self.managed)

    @property
    def audit(self) -> str:
        """The directory of the audit log."""
        return f"{self.state}/audit"


def find(*, home: str | None = None, environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> Places:
    """Return the places of this user.

    Args:
        home: `--home`, absolute or relative to the working directory.
        environ: default the process's.

    Raises:
        PlaceError: no absolute home directory is known.
    """
    env = os.environ if environ is None else environ
    own = os.path.abspath(home) if home else home_directory(env)
    xdg: Mapping[str, str] = {} if home else env
    macos = platform == "darwin"
    return Places(
        home=own,
        config=xdg_directory(xdg, "XDG_CONFIG_HOME", f"{own}/.config") + "/policyd",
        state=xdg_directory(xdg, "XDG_STATE_HOME", f"{own}/.local/state") + "/policyd",
        cache=xdg_directory(xdg, "XDG_CACHE_HOME", f"{own}/Library/Caches" if macos else f"{own}/.cache") + "/policyd",
        runtime=runtime_directory(env, macos=macos),
        managed=MANAGED_MACOS if macos else MANAGED,
        tmpdir=temporary_directory(env, own),
        account=account(os.getuid())[1],
    )


def home_directory(env: Mapping[str, str]) -> str:
    """Return the user's home from `HOME`, else the password database; PlaceError where neither names one."""
    said = env.get("HOME", "")
    home = said or account(os.getuid())[1]
    if not home.startswith("/"):
        why = f"HOME is `{said}`, no absolute path" if said else "no HOME, no password entry"
        raise PlaceError(f"no home directory is known ({why}); name one with --home DIR")
    return home.rstrip("/") or "/"


def account(uid: int) -> tuple[str, str]:
    """Return name and home directory of a uid by the password database: `uid:N` and empty where it names none."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return f"uid:{uid}", ""
    return entry.pw_name, (entry.pw_dir.rstrip("/") or "/") if entry.pw_dir.startswith("/") else ""


def group_name(gid: int) -> str:
    """Return the name of a gid, or `gid:N`."""
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"gid:{gid}"


def xdg_directory(env: Mapping[str, str], name: str, default: str) -> str:
    """Return the absolute directory a variable names; the specification ignores relative ones."""
    value = env.get(name, "")
    return value.rstrip("/") if value.startswith("/") and value.rstrip("/") else default


def temporary_directory(env: Mapping[str, str], home: str) -> str:
    """Return what `TMPDIR` names, `/tmp` where that is the home directory or above it: no rule means all of that."""
    named = os.path.normpath(xdg_directory(env, "TMPDIR", "/tmp"))
    return "/tmp" if os.path.commonpath((named, home)) == named else named


def runtime_directory(env: Mapping[str, str], *, macos: bool) -> str | None:
    """Return the user's own directory for sockets, None where there is none owned by this user."""
    uid = os.getuid()
    wanted = env.get("TMPDIR", "") if macos else env.get("XDG_RUNTIME_DIR", "") or f"/run/user/{uid}"
    try:
        owned = wanted.startswith("/") and os.stat(wanted).st_uid == uid
    except OSError:
        owned = False
    return wanted.rstrip("/") + "/policyd" if owned and wanted.rstrip("/") != "/tmp" else None


def here() -> str:
    """Return the working directory, `""` where it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def is_own(directory: str) -> bool:
    """Say whether a directory is there and belongs to the user of this process."""
    try:
        return os.stat(directory).st_uid == os.getuid()
    except OSError:
        return False


def person() -> tuple[str, tuple[str, ...]]:
    """Return the kernel's word on who runs this: user name (or `uid:N`) and group names, for `user` and `group`."""
    name, _ = account(os.getuid())
    return name, tuple(map(group_name, sorted({os.getgid(), *os.getgroups()})))
