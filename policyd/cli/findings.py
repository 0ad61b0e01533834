"""The warnings of `policyd check`, and the review of a policy that the checks work on.

A finding has a name (`last-star`), a place, what was found, and what to write. A comment `# ok: last-star` on its line,
or on the first line of its rule, silences it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from typing import cast

from msgspec import Struct, field

from policyd.cli.replay import Asked
from policyd.cli.trials.covering import Coverer
from policyd.cli.trials.standins import StandIns
from policyd.cli.trials.trial import Trial
from policyd.model import Decision, RuleRef
from policyd.policy import Diagnostic, Policy, Rule
from policyd.policy.blocks import Table
from policyd.policy.read import Parsed

SILENCED = re.compile(r"#[^\n]*?\bok:[ ]*([a-z, -]+)")


class Finding(Struct, frozen=True):
    """One warning."""

    name: str
    at: Diagnostic

    def __str__(self) -> str:
        """The warning as people read it."""
        return f"{self.at} [{self.name}]"


class Block(Struct, frozen=True):
    """A `[[rule]]` or `[[default]]` in its file."""

    parsed: Parsed
    name: str
    number: int

    @property
    def table(self) -> Table:
        """The block as written."""
        return cast("Table", self.parsed.raw[self.name][self.number])

    def line(self, key: str = "", text: str = "") -> int:
        """Return the line of `text` under `key`, else of the key, else of the block."""
        return self.parsed.lines.find(self.name, self.number, key, text)


class Review(Struct, dict=True):
    """A policy with everything the checks need."""

    policy: Policy
    files: list[Parsed]
    home: str
    tmpdir: str
    now: datetime
    cwd: str = ""
    """A workspace whose files are looked at; empty for none."""
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def stand_ins(self) -> StandIns:
        """The stand-ins of its rules."""
        return StandIns(self.home, self.tmpdir)

    @cached_property
    def coverer(self) -> Coverer:
        """Compares rules."""
        return Coverer(self.stand_ins, self.now)

    @cached_property
    def trial(self) -> Trial:
        """Decides requests."""
        return Trial.open(self.home, self.policy.heads, now=self.now)

    def decide(self, asked: Asked) -> Decision:
        """Decide a request in an ordinary session."""
        return self.trial.decide(self.policy, self.trial.actions(asked), self.trial.context())

    @cached_property
    def blocks(self) -> dict[tuple[str, str, int], Block]:
        """Every block by file, name and line."""
        return {
            (parsed.source.name, name, parsed.line(name, number)): Block(parsed, name, number)
            for parsed in self.files
            for name, blocks in (("rule", parsed.rules), ("default", parsed.defaults))
            for number, _ in blocks
        }

    def block(self, ref: RuleRef) -> Block:
        """Return the block of a rule."""
        return self.blocks[ref.file, "default" if ref.default else "rule", ref.line]

    def rules(self) -> Iterator[Rule]:
        """Yield the rules that are not void."""
        return (rule for rule in self.policy.rules if not rule.void)

    def warn(self, name: str, ref: RuleRef, found: str, write: str, *, key: str = "", text: str = "") -> None:
        """Add a finding about a rule."""
        block = self.block(ref)
        own = block.table.get("id", "")
        at = Diagnostic(ref.file, block.line(key, text), str(own), found, write, ref.layer)
        self.note(name, at, block.parsed, block.line())

    def warn_top(self, name: str, parsed: Parsed, key: str, found: str, write: str) -> None:
        """Add a finding about a table or key outside of the blocks, such as `defaults.read`."""
        line = parsed.lines.top(key)
        at = Diagnostic(parsed.source.name, line, "", found, write, parsed.source.layer)
        self.note(name, at, parsed, line)

    def note(self, name: str, at: Diagnostic, parsed: Parsed, header: int) -> None:
        """Add a finding unless a comment silences it."""
        lines = parsed.lines.lines
        near = (lines[line - 1] for line in {at.line, header} if 0 < line <= len(lines))
        if not any(name in re.split(r"[, ]+", names) for line in near for names in SILENCED.findall(line)):
            self.findings.append(Finding(name, at))


def shown(ref: RuleRef) -> str:
    """Return a rule as messages name it, with file and line."""
    return f"`{ref.label}`{ref.place}"
