"""The workspace of a session: its roots, and which of them are a workspace for allow rules.

Rules of this module:

1. Roots are resolved once, when the session opens; both spellings count.
2. `/`, the home directory, an ancestor of it, and any directory at, above or inside policyd's own files are no
   workspace for allow: whoever starts an editor there has not named a project.
3. A directory of Windows is `/c:/proj/app` here and no workspace for allow: what its paths lead to cannot be looked at.
   Strict patterns start there, without regard to case.
4. A root that cannot be resolved is no workspace for allow either; strict patterns still start there.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from policyd.model import Filesystem, Workspace
from policyd.paths.drives import of_windows
from policyd.paths.lexical import below, compose, fold, resolved


def open_workspace(
    cwd: str | None,
    additional: Iterable[str],
    *,
    home: str,
    fs: Filesystem | None,
    tmpdir: str = "/tmp",
    reserved: Iterable[str] = (),
    heads: Iterable[str] = (),
    fold_case: bool = False,
) -> Workspace:
    """Resolve the roots of a session and the literal heads of the policy's relative patterns in them.

    `reserved` are the directories of policyd's managed, user and state files. Without `fs` no root is sound.

    Raises:
        ValueError: no home directory is known.
    """
    if not home.startswith("/"):
        raise ValueError("the home directory is not known; set `HOME` or pass `--home`")
    homes = _spellings(home, fs)
    kept = tuple(each for path in reserved for each in _spellings(path, fs))
    roots: dict[str, None] = {}
    sound: dict[str, None] = {}
    unsound: list[str] = []
    for root in dict.fromkeys((*((cwd,) if cwd else ()), *additional)):
        spellings, why = _root(root, homes, kept, fs)
        roots.update(dict.fromkeys(spellings))
        if why:
            unsound.append(f"`{root}` {why}")
        else:
            sound.update(dict.fromkeys(spellings))
    return Workspace(
        cwd=cwd,
        roots=tuple(roots),
        sound=tuple(sound),
        home=fold(home),
        tmpdir=fold(tmpdir),
        unsound=tuple(unsound),
        heads=_heads(heads, tuple(roots), fs),
        fold_case=fold_case or (cwd is not None and of_windows(cwd)),
    )


def with_heads(workspace: Workspace, heads: Iterable[str], fs: Filesystem | None) -> Workspace:
    """Return the workspace for another policy: its roots stay what they were, whatever became of links since."""
    return replace(workspace, heads=_heads(heads, workspace.roots, fs))


def _heads(heads: Iterable[str], roots: tuple[str, ...], fs: Filesystem | None) -> dict[str, tuple[str, ...]]:
    return {head: _stands_for(head, roots, fs) for head in dict.fromkeys(heads) if head}


def _spellings(path: str, fs: Filesystem | None) -> tuple[str, ...]:
    return resolved(fold(path), fs)


def _root(
    root: str, homes: tuple[str, ...], kept: tuple[str, ...], fs: Filesystem | None
) -> tuple[tuple[str, ...], str]:
    """Every spelling of a root, and why it is no workspace for allow (empty: it is one)."""
    if not root.startswith("/") or "\0" in root:
        return (), "is no absolute path"
    written = compose(fold(root))
    if fs is None:
        return (written,), "was not resolved"
    try:
        spellings = tuple(dict.fromkeys((written, compose(fold(fs.resolve(root))))))
    except OSError as error:
        return (written,), f"cannot be resolved: {error.strerror or error}"
    return spellings, next((why for each in spellings if (why := _unsound(each, homes, kept))), "")


def _unsound(root: str, homes: tuple[str, ...], kept: tuple[str, ...]) -> str:
    if root == "/":
        return "is the whole disk"
    if of_windows(root):
        return "is a directory of Windows, whose files cannot be looked at"
    if any(below(root, home) == "" for home in homes):
        return "is the home directory"
    if any(below(root, home) is not None for home in homes):
        return "lies above the home directory"
    if any(below(root, each) is not None or below(each, root) is not None for each in kept):
        return "holds files of policyd"
    return ""


def _stands_for(head: str, roots: tuple[str, ...], fs: Filesystem | None) -> tuple[str, ...]:
    starts = tuple(f"{root.rstrip('/')}/{head}" for root in roots)
    return tuple(dict.fromkeys(each for start in starts for each in resolved(start, fs)))
