"""Policies for commands that decide offline: the layers that options name, combined for each session's roots.

All mistakes in all files of all layers are reported at once, on stderr, with exit code 2. Settings that affect rules
(labels, shell, age of answers) count as in a proxy; managed settings only with the system's managed policies.
"""

from __future__ import annotations

import argparse
import os
from datetime import timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.actions import Machine, Session
from policyd.authorizer import Authorizer, Claims, Grants, broken_by, check_examples
from policyd.policy import Diagnostic, Policy, PolicyError
from policyd.storage import places, policies, settings
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.places import Places
from policyd.storage.policies import Found
from policyd.storage.strictfile import own_owners
from policyd.storage.trust import TrustStore


class Loaded(Struct):
    """The policies that options name, cached by the roots of sessions."""

    args: argparse.Namespace
    places: Places
    fs: RealFilesystem
    base: Found
    kept: dict[tuple[str, ...], tuple[Policy, str]] = field(default_factory=dict)

    def machine(self) -> Machine:
        """Return the machine for the decision point."""
        return Machine(self.places.home, self.fs, self.places.tmpdir, self.args.shell or "bash", self.places.reserved)

    def in_force(self) -> settings.Loaded:
        """Return the settings in force.

        Raises:
            SettingsError: every mistake of the files.
        """
        where = replace(self.places, managed=()) if self.args.managed or self.args.no_managed else self.places
        overrides = {"labels": dict(self.args.label), "shell": self.args.shell}
        locks = self.of((self.args.cwd,) if self.args.cwd else ())[0].lock.settings
        given = {name: value for name, value in overrides.items() if value}
        loaded = settings.load(where, options=given, environ={}, locks=locks)
        unmatched = policies.unmatched(self.base.sources, self.args.policy_digest)
        return replace(loaded, notes=(*loaded.notes, *unmatched))

    def session(self, session: Session) -> tuple[Policy, str]:
        """Return the policy of a session, and why everything in it is at least ask (empty if not)."""
        return self.of(session.roots)

    def of(self, roots: tuple[str, ...]) -> tuple[Policy, str]:
        """Return the policy of a session with these roots.

        Raises:
            PolicyError: a managed or user file is invalid, or one of its examples fails.
        """
        if roots not in self.kept:
            self.kept[roots] = self._compose(roots)
        return self.kept[roots]

    def _compose(self, roots: tuple[str, ...]) -> tuple[Policy, str]:
        projects = () if self.args.no_project else (self.args.project,) if self.args.project else roots
        found = self.base
        for root in dict.fromkeys(projects):
            found += policies.project(root, TrustStore(self.places.trust))
        sources = policies.demoted(found.sources, roots, self.args.policy_digest)
        found = Found(tuple(sources), found.notes, found.broken)
        policy, broken = policies.compose(found, self.places, self.fs)
        wrong = broken_by(check_examples(policy, self.machine()))
        return policy, broken or wrong


def load(args: argparse.Namespace) -> Loaded:
    """Load the layers that the options name and check them.

    Raises:
        PolicyError: every mistake of every file.
        PlaceError: no home directory is known.
    """
    where = places.find(home=args.home)
    found, faults = policies.together(
        lambda: managed(args, where), lambda: policies.user(where.user_policies, args.policy)
    )
    if faults:
        raise PolicyError(faults)
    loaded = Loaded(args, where, RealFilesystem(steady=True), found)
    loaded.of((args.cwd,) if args.cwd else ())
    return loaded


def managed(args: argparse.Namespace, where: Places) -> Found:
    """Return the managed layer: the system's, that of a given directory with any owner, or none."""
    if args.no_managed:
        return Found()
    if args.managed:
        return managed_in(args.managed)
    return policies.managed(where.managed_policies)


def managed_in(directory: str) -> Found:
    """Return a managed layer to try, which may have any owner.

    Raises:
        PolicyError: the directory holds none, so that a trial would prove nothing.
    """
    folder = os.path.abspath(directory)
    found = policies.managed([folder], own_owners(), start=folder)
    if not found.sources:
        found_none = "no policy lies here; name the directory that holds the *.toml files itself"
        raise PolicyError([Diagnostic(folder, 0, "", found_none)])
    return found


def authorizer(args: argparse.Namespace, loaded: Loaded) -> Authorizer:
    """Return the decision point that options and settings describe."""
    policy, _ = loaded.of((args.cwd,) if args.cwd else ())
    asks = bool(args.prompt) and not args.unattended
    found = loaded.in_force()
    claims = Claims(found.settings.labels, found.managed_labels, *places.person(), interactive=asks)
    return Authorizer(
        policy,
        policies=loaded.session,
        machine=replace(loaded.machine(), shell=found.settings.shell or "bash"),
        claims=claims,
        grants=_grants(args, loaded, timedelta(days=found.settings.grants_max_age)),
        agent=args.agent,
        cwd=args.cwd,
    )


def _grants(args: argparse.Namespace, loaded: Loaded, longest: timedelta) -> Grants | None:
    if args.no_grants or not os.path.isdir(loaded.places.grants):
        return None
    from policyd.storage.grants import Remembered, grants_cache

    return Remembered(loaded.places.grants, "", longest=longest, cache=grants_cache(loaded.places.cache)).bind
