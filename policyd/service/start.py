"""Starts a connection: places, policies, settings, audit, grants, the enforcement; reports all problems at once.

Rules of this module:

1. Nothing is half started: `StartError` lists every mistake of every policy and settings file, and there is no service.
2. Policies are loaded before settings, so that locks of a managed policy are known before any setting is read.
3. Imports are as late as possible: `pydantic` only if a file has to be validated, threads only if they run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

import policyd
from policyd import audit
from policyd.actions import Machine, Session
from policyd.authorizer import Authorizer, Claims, check_examples
from policyd.display import safe
from policyd.policy import Policy, PolicyError
from policyd.service import notes
from policyd.service.book import PolicyBook
from policyd.service.performer import Performer
from policyd.service.service import Service
from policyd.session import Connection, Note, Settings
from policyd.session.judge import Judge
from policyd.storage import places as where
from policyd.storage import settings as settings_files
from policyd.storage.auditlog import AuditError, AuditLog
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.grants import Remembered, grants_cache
from policyd.storage.places import PlaceError, Places
from policyd.storage.policies import inside, unmatched
from policyd.storage.processes import run_word
from policyd.storage.settings import Loaded, SettingsError

STEPS = ("client", "inbox", "none")


class StartError(Exception):
    """Nothing was started; `problems` says why, each in a line or more."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep what was found."""
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Choices(Struct, frozen=True):
    """What whoever starts a connection chose; None or empty: nothing."""

    policies: tuple[str, ...] = ()
    """Policy files that stand in for the user layer."""
    digests: tuple[str, ...] = ()
    """Digests of such files that may lie in the workspace."""
    prompt: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    agent: str | None = None
    client: str | None = None
    shell: str | None = None
    home: str | None = None
    audit: str | None = None
    """The log, absolute: a file, or a directory if it ends in a slash."""
    grants: bool = True
    command: tuple[str, ...] = ()
    """What started the agent, for the record."""
    transport: str = "proxy"
    """How the agent is reached, for the record."""


class Ground(Struct, frozen=True):
    """What a connection is built from."""

    places: Places
    fs: RealFilesystem
    machine: Machine
    book: PolicyBook
    loaded: Loaded
    log: AuditLog


def open_service(choices: Choices, note: Callable[[str], None]) -> Service:
    """Start the service between one client and one agent.

    Raises:
        StartError: with everything that is wrong.
    """
    ground = prepare(choices)
    settings = ground.loaded.settings
    places, longest = ground.places, timedelta(days=settings.grants_max_age)
    remembered = Remembered(places.grants, run_word(), longest=longest, cache=grants_cache(places.cache))
    authorizer = Authorizer(
        ground.book.policy,
        policies=lambda session: in_force(ground.book, session),
        machine=replace(ground.machine, launched=where.here() or None),
        claims=claims(ground.loaded),
        grants=remembered.bind if choices.grants else None,
        end_grants=remembered.end,
        agent=choices.agent or "",
    )
    try:
        connection = Connection(
            Judge(authorizer), enforced(settings, choices, remembered.run), nonce=os.urandom(8).hex()
        )
    except ValueError as error:
        raise StartError([f"policyd: {error}"]) from error
    service = Service(ground.book, ground.loaded, authorizer, remembered, note, choices.command)
    service.inbox = places.inbox
    remembered.say = lambda text: service.say(Note(safe(text), loud=True))
    service.use(Performer(connection, log=ground.log, note=service.say, remember=service.remember))
    return service


def prepare(choices: Choices) -> Ground:
    """Find, read and check everything; StartError with all that is wrong."""
    problems: list[str] = []
    try:
        places = where.find(home=choices.home)
    except PlaceError as error:
        raise StartError([f"policyd: {error}"]) from error
    fs = RealFilesystem()
    machine = Machine(
        home=places.home,
        fs=fs,
        tmpdir=places.tmpdir,
        reserved=places.reserved,
        fold_case=fs.fold_case,
    )
    book = PolicyBook(
        places,
        files=choices.policies,
        vouched=choices.digests,
        fs=fs,
        check=lambda policy, home: check_examples(policy, replace(machine, home=home)),
    )
    locks: frozenset[str] = frozenset()
    try:
        locks = book.start().lock.settings
    except PolicyError as error:
        problems += map(str, error.diagnostics)
    loaded = load_settings(places, choices, locks, problems)
    if problems or loaded is None:
        raise StartError(problems)
    loaded = replace(loaded, notes=(*loaded.notes, *misplaced(book, choices, places.home)))
    settings = loaded.settings
    book.tighten = settings.reload == "tighten"
    log = AuditLog(settings.audit_path or f"{places.audit}/", origin=origin(choices))
    return Ground(places, fs, replace(machine, shell=settings.shell or machine.shell), book, loaded, log)


def misplaced(book: PolicyBook, choices: Choices, home: str) -> Iterator[str]:
    """Yield what is to be known of files and digests of the command line that count for less than was meant."""
    yield from unmatched(book.sources, choices.digests)
    here = where.here().rstrip("/")
    if choices.policies and choices.transport == "proxy" and here and not f"{home}/".startswith(f"{here}/"):
        yield from inside(book.sources, here, choices.digests)


def load_settings(places: Places, choices: Choices, locks: frozenset[str], problems: list[str]) -> Loaded | None:
    """Return the settings in force, or append what is wrong with them."""
    options: dict[str, object] = {"prompt": chain(choices.prompt, problems)} if choices.prompt else {}
    said = {"labels": dict(choices.labels), "shell": choices.shell, "audit_path": choices.audit}
    options.update({name: value for name, value in said.items() if value})
    defaults: dict[str, object] = {"prompt": ("client",)}
    if notes.on_journal():
        defaults["audit_checkpoints"] = "stderr"
    if choices.transport == "daemon" and where.is_own(where.DAEMON_AUDIT):
        defaults["audit_path"] = f"{where.DAEMON_AUDIT}/"
    try:
        return settings_files.load(places, options=options, defaults=defaults, locks=locks)
    except SettingsError as error:
        problems += map(str, error.diagnostics)
        return None


def chain(words: Sequence[str], problems: list[str]) -> tuple[str, ...]:
    """Return the prompt chain the command line names; `none` is an empty one."""
    problems += [
        f"policyd: `--prompt {word}`: write none, client, inbox or command:/absolute/path, one step an option"
        for word in words
        if word not in STEPS and not word.startswith("command:/")
    ]
    return () if "none" in words else tuple(words)


def in_force(book: PolicyBook, session: Session, home: str = "") -> tuple[Policy, str]:
    """Return the policy of a session of whom `home` is of, and why everything in it is at least ask."""
    held = book.of(session.roots, home)
    return held.policy, held.broken


def claims(loaded: Loaded) -> Claims:
    """Return what rules may ask about the process and the person."""
    user, groups = where.person()
    settings = loaded.settings
    return Claims(settings.labels, loaded.managed_labels, user, groups, interactive=bool(settings.prompt))


def enforced(settings: settings_files.Settings, choices: Choices, run: str) -> Settings:
    """Return the settings of the enforcement."""
    return Settings(
        agent_mode=settings.agent_mode,
        strict=settings.strict,
        fs_read=settings.fs_read,
        on_unasked=settings.on_unasked,
        report=settings.report,
        details_after_ms=settings.details_after_ms,
        prompt=settings.prompt,
        prompt_timeouts=settings.timeouts,
        client=choices.client or "",
        run=run if choices.grants else "",
        grants_max_age=timedelta(days=settings.grants_max_age),
        human_ms=settings.human_ms,
    )


def origin(choices: Choices) -> dict[str, object]:
    """Return the fields that identify this process in all its records."""
    return {
        "host": os.uname().nodename,
        "user": where.person()[0],
        "uid": os.getuid(),
        "pid": os.getpid(),
        "policyd": policyd.__version__,
        "transport": choices.transport,
    }


def note_terminal(choices: Choices, command: Sequence[str]) -> bool:
    """Record that an agent is about to run between two terminals, without policy; False if that is refused.

    Raises:
        StartError: policy or settings are wrong, or the record cannot be written.
    """
    ground = prepare(choices)
    allowed = ground.loaded.settings.terminal == "exec"
    now = datetime.now(UTC)
    what = "exec" if allowed else "refuse"
    row = audit.event("terminal", now, command=list(command), cwd=where.here(), outcome=what)
    try:
        ground.log.append(row, now)
        ground.log.fsync()
    except AuditError as error:
        raise StartError([f"policyd: {error}; the agent is not run"]) from error
    return allowed
