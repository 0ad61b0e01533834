"""Patterns against the files of a workspace: those that match nothing there, and those that name a real `[dir]`.

Only patterns with a literal head are checked: `secrets/**`, not `**/.env`, which is meant for future files too. A
workspace without files, or with too many to list, is not checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches

from policyd.cli.findings import Review
from policyd.cli.trials.standins import StandIns
from policyd.model import PathRef, Workspace
from policyd.paths import PathPattern, syntax
from policyd.policy import Rule
from policyd.policy.conditions import PathCondition
from policyd.policy.sets import shipped

MOST = 50_000
"""Entries of a workspace that are listed."""
SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", "target"})


def check(review: Review) -> None:
    """Warn about patterns that the workspace contradicts."""
    names = listing(review.cwd) if review.cwd else ()
    if not names:
        return
    space = Workspace(review.cwd, (review.cwd,), (review.cwd,), home=review.home, tmpdir=review.tmpdir)
    for rule in review.rules():
        for pattern in patterns(rule):
            if name := existing_bracket(review.cwd, pattern.source):
                found = f"`{pattern.source}`: `{name}` is a directory here, but `[…]` stands for one of its letters"
                escaped = pattern.source.replace("[", "\\[").replace("]", "\\]")
                text = pattern.source
                review.warn("names-directory", rule.ref, found, f"write `{escaped}`", key=rule.resource, text=text)
            elif tied(pattern, review.stand_ins) and not matches(pattern, names, space):
                nothing(review, rule, pattern, names)


def patterns(rule: Rule) -> Iterator[PathPattern]:
    """Yield the path patterns of a rule and its exceptions, those of shipped sets left out."""
    given = {text for found in shipped().values() if found.kind == "path" for text in found.entries}
    for table in (rule.conditions, *rule.unless):
        for condition in table:
            if isinstance(condition, PathCondition):
                yield from (pattern for pattern in condition.patterns if pattern.source not in given)


def nothing(review: Review, rule: Rule, pattern: PathPattern, names: tuple[str, ...]) -> None:
    """Warn about a pattern that matches no file."""
    head = pattern.head or pattern.source
    close = get_close_matches(head, {name for name in names if name.count("/") == head.count("/")}, n=1)
    near = [name for name in names if name.lower() == head.lower()] or close
    write = f"did you mean `{near[0]}`?" if near else "correct it, or leave it for files to come"
    found = f"`{pattern.source}` matches nothing in {review.cwd}"
    key = "path" if rule.resource == "path" else "unless"
    review.warn("matches-nothing", rule.ref, found, write, key=key, text=pattern.source)


def tied(pattern: PathPattern, stand_ins: StandIns) -> bool:
    """Say whether every alternative of a pattern starts with a literal name in the workspace."""
    read = syntax.read(pattern.source, home=stand_ins.home, tmpdir=stand_ins.tmpdir)
    return all(not one.absolute and not one.floats and one.head for one in read)


def matches(pattern: PathPattern, names: tuple[str, ...], space: Workspace) -> bool:
    """Say whether some file or directory of the workspace matches."""
    return any(pattern.sure(PathRef(name, (f"{space.cwd}/{name}",), inside=True), space) for name in names)


def existing_bracket(cwd: str, text: str) -> str:
    """Return the part of a pattern with `[…]` that is the literal name of a directory; else empty."""
    if "[" not in text or "\\[" in text or text.startswith("/"):
        return ""
    parts = text.split("/")
    for count, part in enumerate(parts, 1):
        if "[" in part and os.path.isdir(os.path.join(cwd, *parts[:count])):
            return part
    return ""


def listing(cwd: str) -> tuple[str, ...]:
    """Return the files and directories of a workspace, relative; empty if there are too many."""
    found: list[str] = []
    for folder, below, files in os.walk(cwd):
        place = os.path.relpath(folder, cwd)
        lead = "" if place == "." else place + "/"
        found += [lead + name for name in (*below, *files)]
        below[:] = [name for name in below if name not in SKIPPED]
        if len(found) > MOST:
            return ()
    return tuple(found)
