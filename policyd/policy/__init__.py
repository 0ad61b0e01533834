"""Policies: files read, checked as a whole, and compiled to rules that can be asked whether they hold.

The door of this room:

    load(sources, home=, tmpdir=, fs=, version=) -> Policy      or PolicyError with every mistake of every file
    policy.candidates(action, context) -> the rules that may hold, in order
    rule.holds(action, context, fs) -> Truth
    policy.defaults, policy.lock, policy.heads, policy.examples, policy.revision

Rules of this room, each with its test:

1. What loosens is judged surely, what tightens is judged widely (`conditions`).
2. A misspelt condition never makes a rule broader: unknown keys, words, sets and shapes refuse the whole policy.
3. Every mistake of every file is told at once, with its line and with what to write.
4. Order means nothing: of files, of rules, of conditions.
5. `pydantic` is imported only to read a file that no shelf knows, so that whoever only asks rules does not pay for it;
   the index, and with it all of `commands`, only for the first decision, or for a rule that has to be compiled at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from policyd.policy.conditions import MET_IN_EXAMPLES
from policyd.policy.errors import Diagnostic, PolicyError
from policyd.policy.kept import Shelf
from policyd.policy.layers import Entry, LayerDefaults, Lock
from policyd.policy.policy import Policy
from policyd.policy.rules import Example, Rule
from policyd.policy.source import PolicySource

if TYPE_CHECKING:
    from policyd.model import Filesystem

__all__ = [
    "MET_IN_EXAMPLES",
    "Diagnostic",
    "Entry",
    "Example",
    "LayerDefaults",
    "Lock",
    "Policy",
    "PolicyError",
    "PolicySource",
    "Rule",
    "Shelf",
    "load",
    "schema",
]


def load(
    sources: Iterable[PolicySource],
    *,
    home: str,
    tmpdir: str,
    fs: Filesystem | None = None,
    version: str,
    shelf: Shelf | None = None,
    account: str = "",
) -> Policy:
    """Read, validate and compile policy files into one policy.

    Args:
        sources: the files of all layers, in any order.
        home: absolute home directory, for `~/`.
        tmpdir: the system's temporary directory, for `$TMPDIR/`.
        fs: resolves the literal heads of absolute patterns, once.
        version: of policyd, for `requires` and the revision.
        shelf: where what was read of a file is kept; nothing of the managed layer ever is.
        account: home directory of the account, for `~/` of managed rules where they tighten: `home` may be another,
            and there `~/` is either. Empty: none is known.

    Raises:
        PolicyError: every mistake of every file.
    """
    from policyd.policy.build import load as build

    return build(sources, home=home, tmpdir=tmpdir, fs=fs, version=version, shelf=shelf, account=account)


def schema() -> dict[str, object]:
    """Return the JSON Schema of a policy file."""
    from policyd.policy.file import schema as of_file

    return of_file()
