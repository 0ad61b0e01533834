"""The warnings of `policyd check`: rules that mean less, or more, than their author thinks.

    lint(policy, sources, home=…, tmpdir=…, now=…, cwd=…) -> findings, ordered by file and line

Each kind of check has a module: `reach` (rules that can never decide), `broad` (allows broader than they look), `gaps`
(omissions), `places` (patterns that the files of a workspace contradict). Two rules hold for all of them: a warning is
true of this policy, verified by the engine if possible, and it says what to write.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import policyd
from policyd.cli.findings import Finding, Review
from policyd.cli.lint import broad, gaps, places, reach
from policyd.policy import Policy, PolicySource
from policyd.policy.read import parse

CHECKS = (reach.check, broad.check, gaps.check, places.check)


def lint(
    policy: Policy, sources: Iterable[PolicySource], *, home: str, tmpdir: str, now: datetime, cwd: str = ""
) -> list[Finding]:
    """Return the warnings about a policy that loads.

    Args:
        policy: as loaded from `sources`.
        sources: its files.
        home: absolute home directory.
        tmpdir: the system's temporary directory.
        now: the time at which rules may have expired.
        cwd: a workspace whose files are looked at, empty for none.
    """
    review = Review(policy, [parse(source, policyd.__version__) for source in sources], home, tmpdir, now, cwd)
    for check in CHECKS:
        check(review)
    found = dict.fromkeys(review.findings)
    return sorted(found, key=lambda one: (-one.at.layer, one.at.file, one.at.line, one.name, one.at.found))
