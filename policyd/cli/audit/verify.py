"""`policyd audit verify [--checkpoints FILE]`: is every line there, in its place, and as it was written?

The hash chain alone reveals an edit only by somebody who cannot recompute it. Checkpoints that were written elsewhere
reveal any edit: `journalctl -t policyd | policyd audit verify --checkpoints -`.

Rules of this command:

1. A checkpoint holds if a line of the log has its number and its hash. Each one that does not is reported: the end or
   the beginning was removed, or the log was rewritten.
2. Checkpoints name their log. Those of other logs are only counted; `--of` gives the name of the log that LOG copies.
3. The number of records after the last checkpoint that holds is reported: only the chain vouches for these.
4. Exit code 0: the log is whole; 1: it is not; 2: there is no log, or no checkpoint of it.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator

from policyd.cli.ending import DONE, NO, UsageError, counted
from policyd.cli.saying import say_results, shown
from policyd.storage import auditchain, checkpoints
from policyd.storage.checkpoints import Checkpoint

EMPTY = "holds no record: nothing was written, or all of it was removed"
WHOLE = "every line follows the one before it"
Fault = tuple[str, int, str]
"""File, line, and what is wrong."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the checkpoints to compare the log with."""
    text = "text with checkpoints that were written elsewhere, such as a journal; - is standard input"
    parser.add_argument("--checkpoints", metavar="FILE", help=text)
    parser.add_argument(
        "--of", metavar="PATH", help="the log that the checkpoints name, or its directory, if this log is a copy"
    )


def run(args: Namespace, log: str) -> int:
    """Print everything that is wrong with a log; 1 if there is anything."""
    compared = Comparison(args.checkpoints, checkpoints.plain(args.of or log)) if args.checkpoints else None
    faults = list(auditchain.verify(log, compared.passed if compared else None))
    files = auditchain.log_files(log)
    lines = [f"{file}:{line}: {wrong}" for file, line, wrong in faults]
    if not faults:
        lines = [f"{log}: {WHOLE if any(map(os.path.getsize, files)) else EMPTY}"]
    if compared:
        unheld = list(compared.faults())
        lines += [*(f"{file}:{line}: {wrong}" for file, line, wrong in unheld), *compared.lines(log)]
        faults += unheld
    facts: list[dict[str, object]] = [{"file": file, "line": line, "wrong": wrong} for file, line, wrong in faults]
    say_results([*facts, *([compared.facts()] if compared else [])], lines, as_json=args.json)
    return NO if faults else DONE


class Comparison:
    """The checkpoints of one log, compared with its lines."""

    def __init__(self, name: str, path: str) -> None:
        """Find those of the log at `path` in a file.

        Raises:
            UsageError: it holds none.
            OSError: it cannot be read.
        """
        self.name = name
        self.open: dict[tuple[int, str], int] = {}
        """Number and hash of those not yet found in the log -> line of the checkpoint."""
        self.others: Counter[str] = Counter()
        self.first = self.last = self.exposed = self.newest = 0
        """The first and last number of the log, the records after the newest checkpoint that holds, and its number."""
        for line, one in read(name):
            if one.path in {path, os.path.join(path, auditchain.NAME)}:
                self.open.setdefault((one.seq, one.digest), line)
            else:
                self.others[one.path] += 1
        self.count = len(self.open)
        if not self.open:
            raise UsageError(f"{name} holds no checkpoint of {path}{self.aside()}")

    def passed(self, seq: int, digest: str) -> None:
        """Compare a line of the log."""
        self.first, self.last = self.first or seq, seq
        if self.open.pop((seq, digest), None) is None:
            self.exposed += 1
        else:
            self.exposed, self.newest = 0, seq

    def faults(self) -> Iterator[Fault]:
        """Yield each checkpoint that does not hold; those before the first line of the log as one."""
        early = [line for (seq, _), line in sorted(self.open.items()) if seq < self.first]
        if early:
            gone = f"{counted(len(early), 'checkpoint')} of records before number {self.first}, where the log begins"
            yield self.name, min(early), f"{gone}: they were removed, or their files were moved away"
        for (seq, digest), line in sorted(self.open.items()):
            if seq > self.last:
                wrong = f"number {seq} was written, but the log ends at number {self.last}: the end was removed"
                yield self.name, line, wrong
            elif seq >= self.first:
                yield self.name, line, f"number {seq} was another record, {digest[:12]}…: the log was rewritten"

    def lines(self, log: str) -> Iterator[str]:
        """Yield a summary for people."""
        held = f"{self.count - len(self.open)} of {counted(self.count, 'checkpoint')} held"
        newest = f", up to number {self.newest}" if self.newest else ""
        after = f"{counted(self.exposed, 'record')} after that, which no checkpoint covers"
        yield f"{log}: {held}{newest}; {after}{self.aside()}"

    def aside(self) -> str:
        """Return a note on the checkpoints of other logs."""
        names = ", ".join(shown(name) for name in self.others)
        return f" ({counted(self.others.total(), 'checkpoint')} of {names})" if names else ""

    def facts(self) -> dict[str, object]:
        """Return the same as JSON."""
        held = self.count - len(self.open)
        return {"checkpoints": self.count, "held": held, "newest": self.newest, "exposed": self.exposed}


def read(name: str) -> Iterator[tuple[int, Checkpoint]]:
    """Yield the checkpoints of a file, or of standard input."""
    if name == "-":
        yield from checkpoints.find(sys.stdin.buffer)
        return
    with open(name, "rb") as lines:
        yield from checkpoints.find(lines)
