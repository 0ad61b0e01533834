"""Printing for all commands: the only module that may write to standard output and error (ruff enforces it).

Rules of this module:

1. Policies, transcripts, logs and file names are untrusted: no line for people contains control characters.
2. Output for programs is JSON in ASCII, one object on each line.
3. Text to be pasted or piped into a file is printed unchanged; TOML of untrusted text is escaped where it is built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping

from policyd.display import inert, safe


def say(*lines: object, error: bool = False) -> None:
    """Print lines for people; `error`: on standard error."""
    for line in lines:
        print(inert(str(line)), file=sys.stderr if error else sys.stdout)


def shown(value: object) -> str:
    """Return untrusted text as part of a line: without control characters and not too long."""
    return safe(str(value), limit=300)


def say_json(*facts: Mapping[str, object]) -> None:
    """Print objects as JSON, one on each line."""
    for fact in facts:
        print(json.dumps(fact))


def say_results(facts: Iterable[Mapping[str, object]], lines: Iterable[object], *, as_json: bool) -> None:
    """Print results: as JSON for programs, or as lines for people."""
    if as_json:
        say_json(*facts)
    else:
        say(*lines)


def say_verbatim(text: str) -> None:
    """Print text unchanged, for a file, a paste or a terminal."""
    sys.stdout.write(text)
