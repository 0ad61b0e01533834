"""Which variables matter: those that change what a later, harmless-looking command runs.

Rules of this module:

1. Setting a variable taints what follows, for allow rules, unless the name is harmless (`variables.HARMLESS`) or a
   plain lower-case shell variable, or one of a few others, set by a statement, `for` or `read` (`loose`).
2. Words that change what names mean (`TAINTS_ALL`) taint everything behind them, and no rule's `env` lifts that.
3. The lists are closed: a name that is not known is not harmless.
"""

from __future__ import annotations

import re

TAINTS_ALL = {
    ".": "`.` runs a file in this shell",
    "alias": "`alias` changes what a program name means",
    "enable": "`enable` changes which builtins there are",
    "eval": "`eval` runs text in this shell",
    "hash": "`hash` changes where a program is found",
    "set": "`set` changes how the shell reads what follows",
    "setopt": "`setopt` changes how the shell reads what follows",
    "shopt": "`shopt` changes how the shell reads what follows",
    "source": "`source` runs a file in this shell",
    "trap": "`trap` runs text at another moment",
    "unalias": "`unalias` changes what a program name means",
    "zmodload": "`zmodload` adds builtins",
}
"""Builtins that taint everything after them, with the reason people read."""

_OWN = frozenset(
    [
        "BASE",
        "BRANCH",
        "BRANCHES",
        "COMMIT",
        "COMMITS",
        "COUNT",
        "DIR",
        "DIRS",
        "FILE",
        "FILES",
        "HASH",
        "LINE",
        "MERGE_BASE",
        "PATTERN",
        "REPO_ROOT",
        "RESULT",
        "ROOT",
        "SHA",
        "SINCE",
        "TAG",
        "TOTAL",
    ]
)
"""Names that scripts write for their own use, and that no usual program looks for."""
_LOOSE = re.compile(r"[a-z][a-z0-9]*").fullmatch
_NOT_LOOSE = frozenset({"path", "fpath", "cdpath", "manpath"})


def loose(name: str) -> bool:
    """Say whether `name` is a plain shell variable: lower-case letters and digits, no `…proxy`, no search path."""
    if name in _OWN:
        return True
    return bool(_LOOSE(name)) and not name.endswith("proxy") and name not in _NOT_LOOSE
