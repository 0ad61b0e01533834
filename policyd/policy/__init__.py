"""Policies: TOML files parsed, checked as a whole, and compiled to rules that can be matched against actions.

The interface of this package:

    load(sources, home=, tmpdir=, fs=, version=) -> Policy      or PolicyError with every mistake of every file
    policy.candidates(action, context) -> the rules that may hold, in order
    rule.holds(action, context, fs) -> Truth
    policy.defaults, policy.lock, policy.heads, policy.examples, policy.revision

Rules of this package, each with its test:

1. What loosens is judged surely, what tightens is judged widely (`conditions`).
2. A misspelt condition never makes a rule broader: unknown keys, words, sets and shapes refuse the whole policy.
3. Every mistake of every file is reported at once, with its line and with what to write.
4. Order means nothing: of files, of rules, of conditions.
5. Start-up stays cheap: `pydantic` is imported only to find the words for a mistake; the index, and with it all of
   `commands`, only for the first decision, or for a rule that is not plain.
"""

from __future__ import annotations

from policyd.policy.build import load
from policyd.policy.cached import Cache
from policyd.policy.conditions import MET_IN_EXAMPLES
from policyd.policy.errors import Diagnostic, PolicyError
from policyd.policy.layers import Entry, LayerDefaults, Lock
from policyd.policy.policy import Policy
from policyd.policy.rules import Example, Rule
from policyd.policy.source import PolicySource

__all__ = [
    "MET_IN_EXAMPLES",
    "Cache",
    "Diagnostic",
    "Entry",
    "Example",
    "LayerDefaults",
    "Lock",
    "Policy",
    "PolicyError",
    "PolicySource",
    "Rule",
    "load",
    "schema",
]


def schema() -> dict[str, object]:
    """Return the JSON Schema of a policy file."""
    from policyd.policy.file import schema as of_file

    return of_file()
