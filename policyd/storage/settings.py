"""Settings: from `/etc/policyd/policyd.toml`, the user's `policyd.toml` and options, with what is locked.

Rules of this module:

1. Without a `[lock]` the managed file sets defaults that the user's file and then options override. Settings named by a
   managed `[lock] settings` are final: other values are ignored, and `Loaded.notes` says whose they were.
2. `POLICYD_*` variables: harmless ones only (`VARIABLES`), as a repository can set variables. None names a policy, a
   mode, a prompt or a label; there is no `.env` file.
3. A mistake in a file is an error that names file, line and key; all are reported at once. A managed file that others
   can write is an error too. Options are validated where they are parsed.
4. Files are validated with `pydantic-settings` (`settings_file`), which is imported only if there is a file, to keep
   the start fast.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import fields, replace

from policyd.model import Layer
from policyd.policy import Diagnostic, PolicyError
from policyd.storage import policies
from policyd.storage.places import Places
from policyd.storage.strictfile import never_was, own_owners, read_own, read_strictly

VARIABLES = {"POLICYD_LOG_LEVEL": "log_level", "POLICYD_COLOR": "color", "POLICYD_AUDIT_DIR": "audit_path"}
LOG_LEVELS = ("error", "warn", "info", "debug")
COLORS = ("auto", "always", "never")
KEYS = {
    "audit_path": "audit.path",
    "audit_durability": "audit.durability",
    "audit_checkpoints": "audit.checkpoints",
    "grants_max_age": "grants.max_age",
}
"""Field -> the key as files and locks spell it, where they differ."""


class SettingsError(PolicyError):
    """Settings that do not hold: everything that is wrong with them, told as the mistakes of policies are."""


class Settings(Struct, frozen=True):
    """Everything that can be set, with its default."""

    prompt: tuple[str, ...] = ()
    """The prompt chain, in order: `client`, `command:/path`, `inbox`. The proxy's default is `client`."""
    timeouts: Mapping[str, float] = field(default_factory=dict)
    """Seconds a prompt step may take, by step or by road (`client`, `command`, `inbox`)."""
    agent_mode: str = "enforce"
    """`enforce`, `warn` or `off`: whether the agent is kept in a mode that asks."""
    strict: bool = False
    """A session whose asking mode cannot be confirmed gets no prompt."""
    fs_read: str = "allow"
    """`allow` or `policy`: whether reads via the client's `fs` in the workspace pass unless a strict rule matches."""
    on_unasked: str = "record"
    """`record` or `cancel`: what follows a call that was made unasked though policy denies it."""
    report: str = "tool_call"
    """`tool_call` or `off`: whether the person at the client sees a refusal."""
    reload: str = "live"
    """`live` or `tighten`: whether a changed policy may loosen a running session."""
    terminal: str = "exec"
    """`exec` or `refuse`: what `proxy` does between two terminals."""
    audit_path: str = ""
    """The audit log, a file or a directory; empty = the state directory."""
    audit_durability: str = "write"
    """`write` or `fsync`: when a record counts as written."""
    audit_checkpoints: str = "off"
    """`off`, `stderr` or `syslog`: where checkpoints of the log are said; `stderr` where that is the journal."""
    grants_max_age: float = 30.0
    """Days a remembered answer lasts at most."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that rules may name."""
    shell: str = ""
    """The shell agents run commands with; empty = as the agent's profile says, else bash."""
    log_level: str = "info"
    """`error`, `warn`, `info` or `debug`: what is said on stderr."""
    color: str = "auto"
    """`auto`, `always` or `never`."""
    details_after_ms: int = 250
    """How long a request waits for details its agent sends late."""
    human_ms: int = 400
    """An "always" that comes back faster counts once and is not remembered."""


class Loaded(Struct, frozen=True):
    """Settings in force and where they came from."""

    settings: Settings
    managed_labels: Mapping[str, str] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()
    """Keys that are final."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Field -> the file, `option` or variable its value came from; what is missing is a default."""
    notes: tuple[str, ...] = ()
    """What was not used because it is locked."""


def field_names() -> tuple[str, ...]:
    """Return the name of every setting."""
    return tuple(each.name for each in fields(Settings))


def key_of(name: str) -> str:
    """Return the key of a field as files and locks spell it."""
    return KEYS.get(name, name)


def is_locked(name: str, locks: frozenset[str]) -> bool:
    """Say whether a lock covers a field: by its key, by its table (`audit`), timeouts with the prompt."""
    key = key_of(name)
    return key in locks or key.partition(".")[0] in locks or (name == "timeouts" and "prompt" in locks)


def load(
    places: Places,
    *,
    options: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] | None = None,
    locks: frozenset[str] = frozenset(),
) -> Loaded:
    """Return the settings in force.

    Args:
        options: fields the command line set; only those.
        environ: default the process's; only `VARIABLES` are looked at.
        defaults: other defaults than the usual (the proxy's prompt chain).
        locks: `Policy.lock.settings` of the managed policy files, beside those of the managed settings files.

    Raises:
        SettingsError: everything wrong with all files and variables.
    """
    problems: list[Diagnostic] = []
    managed = [(path, values_of(path, problems, managed=True)) for path in places.managed_settings]
    user = [(places.user_settings, values_of(places.user_settings, problems, managed=False))]
    variables = variables_of(os.environ if environ is None else environ, problems)
    if problems:
        raise SettingsError(problems)
    given = [("option", dict(options or {}))]
    for _, values in managed:
        locks |= frozenset(values.pop("lock", ()))  # type: ignore[call-overload]
    found = merged([*managed], [*user, *variables, *given], defaults or {}, locks)
    audit = found.settings.audit_path
    if audit.startswith("~/"):
        found = replace(found, settings=replace(found.settings, audit_path=places.home + audit[1:]))
    return found


def in_force(places: Places) -> Loaded:
    """Return the settings of a proxy that is started here, with what the managed policies lock.

    Raises:
        PolicyError: everything wrong with the managed policies, or with settings.
    """
    found = policies.managed(places.managed_policies)
    return load(places, locks=policies.loaded_at(places, found.sources, None).lock.settings)


Part = tuple[str, dict[str, object]]
"""Where values come from, and they."""


def merged(managed: list[Part], others: list[Part], defaults: Mapping[str, object], locks: frozenset[str]) -> Loaded:
    """Put the layers together, lowest first; what is locked comes from the managed ones or is a default."""
    values, origins, notes = dict(defaults), {}, []
    labels: dict[str, str] = {}
    for final, (origin, layer) in [*((True, each) for each in managed), *((False, each) for each in others)]:
        for name, value in layer.items():
            if not final and is_locked(name, locks):
                notes.append(f"{origin}: `{key_of(name)}` is locked by the managed settings and not used")
                continue
            if isinstance(value, Mapping):
                value = {**dict(values.get(name, {})), **value, **(labels if name == "labels" else {})}  # type: ignore[call-overload]
            if final and name == "labels":
                labels = {**labels, **value}  # type: ignore[dict-item]
            values[name], origins[name] = value, origin
    settings = replace(Settings(), **values)
    return Loaded(settings, labels, locks, origins, tuple(notes))


def values_of(path: str, problems: list[Diagnostic], *, managed: bool) -> dict[str, object]:
    """Return what a settings file sets, validated; nothing where there is none."""
    try:
        data = read_file(path, managed=managed)
    except OSError as error:
        if not (isinstance(error, FileNotFoundError) and never_was(path)):
            problems.append(policies.refused(path, error, Layer.MANAGED if managed else Layer.USER))
        return {}
    from policyd.storage.settings_file import parse

    return parse(path, data, problems, managed=managed)


def read_file(path: str, *, managed: bool) -> bytes:
    """Return a file's bytes, checked on the descriptor that is read: a managed one is root's alone all the way.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or somebody else could have written it.
    """
    return read_strictly(path) if managed else read_own(path, own_owners())


def variables_of(environ: Mapping[str, str], problems: list[Diagnostic]) -> list[Part]:
    """Return what the harmless variables set."""
    allowed = {"log_level": LOG_LEVELS, "color": COLORS}
    found: list[Part] = []
    for variable, name in VARIABLES.items():
        value = environ.get(variable)
        if not value:
            continue
        if name in allowed and value not in allowed[name]:
            problems.append(Diagnostic(f"{variable}={value}", 0, "", f"write one of {', '.join(allowed[name])}"))
        elif name == "audit_path" and not value.startswith("/"):
            problems.append(Diagnostic(f"{variable}={value}", 0, "", "write an absolute directory"))
        else:
            found.append((variable, {name: value.rstrip("/") + "/" if name == "audit_path" else value}))
    return found
