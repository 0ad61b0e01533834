"""What commands print: the one door of this package to standard output and error (ruff lets no other module print).

Rules of this module:

1. Policies, transcripts, logs and names of files are written by others: no line for people acts on their terminal.
2. What programs read is JSON in ASCII, one object a line.
3. What is pasted, or piped into a file, is printed as it is; TOML of what others wrote is escaped where it is made.
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
    """Return a part of a line that others wrote, safe and not too long."""
    return safe(str(value), limit=300)


def tell(*facts: Mapping[str, object]) -> None:
    """Print objects for programs."""
    for fact in facts:
        print(json.dumps(fact))


def say_or_tell(facts: Iterable[Mapping[str, object]], lines: Iterable[object], *, as_json: bool) -> None:
    """Print what was found: objects for programs, or lines for people."""
    if as_json:
        tell(*facts)
    else:
        say(*lines)


def give(text: str) -> None:
    """Print what is meant for a file, a paste or a terminal as it is."""
    sys.stdout.write(text)
