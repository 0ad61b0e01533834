"""What auditing costs: building and chaining a record, verifying a log, replaying and learning from it.

python -m tests.bench.auditing [RECORDS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from policyd import audit
from policyd.cli import audit as command
from policyd.storage import auditchain
from policyd.storage.auditlog import AuditLog
from tests.audited import GROUND, HOME, START, Day, careful, read


def main(wanted: int) -> None:
    """Measure on a log of at least `wanted` records."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        day = Day(AuditLog(f"{directory}/"), careful)
        day.captured()
        rows = list(read(place / "audit.jsonl"))
        hand = AuditLog(f"{directory}/")
        while day.number < wanted:
            for row in rows:
                hand.append({name: row[name] for name in row if name not in {"seq", "prev"}}, START)
            day.number += len(rows)
        (place / "user.toml").write_text(GROUND)
        report("line", len(rows), lambda: [audit.line(audit.body(row), 1, audit.FIRST) for row in rows])
        report("verify", day.number, lambda: list(auditchain.verify(f"{directory}/")))
        for what in ("stats", "replay", "suggest"):
            ours = ["--policy", f"{directory}/user.toml", "--no-managed"] if what != "stats" else []
            report(what, day.number, lambda words=[what, *ours]: run(directory, words))  # type: ignore[misc]


def run(directory: str, words: list[str]) -> None:
    """Run `policyd audit` on the log."""
    parser = ArgumentParser()
    command.add_arguments(parser)
    with redirect_stdout(StringIO()):
        command.run(parser.parse_args([words[0], "--log", f"{directory}/", "--home", HOME, *words[1:]]))


def report(what: str, records: int, work: Callable[[], object]) -> None:
    """Say how many records a second."""
    start = time.perf_counter()
    work()
    taken = time.perf_counter() - start
    print(f"{what:8} {records:6} records  {records / taken:9.0f} a second")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
