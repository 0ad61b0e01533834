"""What is in force on this machine for this user and this project, gathered once for `status` and `doctor`."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

import policyd
from policyd.actions import Machine
from policyd.authorizer import broken_by, check_examples
from policyd.model import Layer
from policyd.paths import open_workspace
from policyd.policy import Diagnostic, Policy, PolicyError
from policyd.service.book import stated
from policyd.storage import grants, places, policies, settings
from policyd.storage.auditlog import ELSEWHERE, unwritable
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.places import Places
from policyd.storage.policies import Found
from policyd.storage.settings import Loaded, SettingsError
from policyd.storage.trust import TrustStore, read_project


class InForce(Struct):
    """Layers and settings as a proxy started here would find them."""

    places: Places
    root: str
    found: Found = field(default_factory=Found)
    policy: Policy | None = None
    broken: str = ""
    """Why everything in this project is at least ask."""
    mistakes: list[Diagnostic] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    loaded: Loaded | None = None
    trusted: bool | None = None
    """Whether the project's policy is trusted; None where it has none."""

    unsound: tuple[str, ...] = ()
    """Why the directory is no workspace, so that nothing in it is allowed."""
    mute: str = ""
    """Why no decision can be recorded, so that all are refused; empty if nothing seems to prevent it."""

    @property
    def holds(self) -> bool:
        """Whether a proxy would start."""
        return self.policy is not None and self.loaded is not None and not self.mistakes and not self.problems

    @property
    def audit(self) -> str:
        """Where decisions are recorded."""
        return (self.loaded.settings.audit_path if self.loaded else "") or f"{self.places.audit}/"

    @property
    def notes(self) -> list[str]:
        """Notes that are no problems."""
        unsound = [f"{why}: no workspace, nothing is allowed here; look from a project" for why in self.unsound]
        return [*unsound, *self.found.notes, *(self.loaded.notes if self.loaded else ())]

    @property
    def errors(self) -> list[str]:
        """What keeps a proxy from starting."""
        return [*map(str, self.mistakes), *self.problems]


def gather(root: str, home: str | None, files: list[str]) -> InForce:
    """Return what is in force for a session in `root`.

    Raises:
        PlaceError: no home directory is known.
    """
    where = places.find(home=home)
    found, mistakes = policies.together(
        lambda: policies.managed(where.managed_policies),
        lambda: policies.user(where.user_policies, files),
        lambda: policies.project(root, TrustStore(where.trust)),
    )
    state = InForce(where, root, found, mistakes=mistakes)
    compose(state)
    load_settings(state)
    look_at_trust(state)
    return state


def compose(state: InForce) -> None:
    """Load what was found, as far as it loads, and test its examples, as a proxy does at start."""
    state.found = replace(state.found, sources=tuple(policies.demoted(state.found.sources, (state.root,))))
    where, fs = state.places, RealFilesystem()
    space = open_workspace(state.root, (), home=where.home, fs=fs, tmpdir=where.tmpdir, reserved=where.reserved)
    state.unsound = space.unsound
    try:
        state.policy, state.broken = policies.compose(state.found, where, fs)
        wrong = broken_by(check_examples(state.policy, Machine(where.home, fs, where.tmpdir)))
        state.broken = state.broken or wrong
    except PolicyError as error:
        state.mistakes += error.diagnostics


def load_settings(state: InForce) -> None:
    """Read the settings under the locks of the policy."""
    locks = state.policy.lock.settings if state.policy else frozenset()
    try:
        state.loaded = settings.load(state.places, locks=locks, defaults={"prompt": ("client",)})
    except SettingsError as error:
        state.problems += map(str, error.diagnostics)
        return
    why = unwritable(state.audit)
    state.mute = (
        why and f"the audit log {state.audit} cannot be written: {why}; every decision is refused ({ELSEWHERE})"
    )


def look_at_trust(state: InForce) -> None:
    """Say whether the project's policy, if it has one, is trusted."""
    with suppress(OSError):  # the same error has set `broken`
        project = read_project(state.root)
        if project.files:
            state.trusted = TrustStore(state.places.trust).trusts(project)


def layer_facts(state: InForce) -> list[dict[str, object]]:
    """Return the policy files that were found, by rank."""
    rows = sorted(state.found.sources, key=lambda source: (-source.layer, source.name))
    return [
        {
            "layer": source.layer.word,
            "file": source.name,
            **({"trusted": source.trusted} if source.layer is Layer.PROJECT else {}),
        }
        for source in rows
    ]


def facts(state: InForce) -> dict[str, object]:
    """Return everything as JSON."""
    policy, loaded = state.policy, state.loaded
    return {
        "schema": 1,
        "version": policyd.__version__,
        "holds": state.holds,
        **(stated(policy) if policy else {"revision": None, "names": []}),
        "files": layer_facts(state),
        "rules": len(policy.rules) if policy else 0,
        "lock": {
            "refuse": sorted(policy.lock.refuse) if policy else [],
            "settings": sorted(loaded.locked) if loaded else [],
        },
        "project": {"root": state.root, "trusted": state.trusted, "broken": state.broken or None},
        "settings": setting_facts(loaded) if loaded else {},
        "grants": {"directory": state.places.grants, "files": len(grants.files(state.places.grants))},
        "audit": state.audit,
        "notes": state.notes,
        "errors": state.errors,
    }


def setting_facts(loaded: Loaded) -> dict[str, dict[str, object]]:
    """Return each setting with its value, origin and lock."""
    return {
        settings.key_of(name): {
            "value": to_builtins(getattr(loaded.settings, name)),
            "from": loaded.origins.get(name, "default"),
            "locked": settings.is_locked(name, loaded.locked),
        }
        for name in settings.field_names()
    }
