"""The only package that touches files (policies, trust, grants, audit, settings) and inspects the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyd.policy import Policy

__all__ = ["load"]


def load(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, home: str | None = None) -> Policy:
    """Load policy files for a program that embeds policyd, and test the examples of their rules.

    Args:
        paths: one or more files or directories (their `*.toml`), all of the user layer.
        home: the home directory `~/` stands for; default the process's user's.

    Raises:
        PolicyError: every mistake of every file, every failing example, or a file that cannot be read.
        PlaceError: no home directory is known.
    """
    from policyd import __version__, policy
    from policyd.actions import Machine
    from policyd.authorizer import broken_by, check_examples
    from policyd.storage import places, policies
    from policyd.storage.filesystem import RealFilesystem

    where = places.find(home=home)
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    sources = policies.given([os.fspath(path) for path in several]).sources
    fs = RealFilesystem()
    loaded = policy.load(sources, home=where.home, tmpdir=where.tmpdir, fs=fs, version=__version__)
    broken_by(check_examples(loaded, Machine(where.home, fs, where.tmpdir)))
    return loaded
