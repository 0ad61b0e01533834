"""What the first decision needs and a start does not: made in a thread while the agent still boots.

Indexes, tables of programs, profiles, the grammar of shells and the expressions of the audit are made when somebody
needs them, so a start waits for none; this thread needs them first. It begins `DELAY` after the start: whoever speaks
at once does not wait for it. It decides nothing and its faults are nobody's: what it could not make is made by whoever
needs it, where a fault is a refusal.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from threading import Thread
from time import sleep

from policyd.policy import Policy

DELAY = 0.01
"""Seconds."""
LINE = "true --warm 'x' && for i in 1; do echo $i; done"


def warm(policy: Policy) -> None:
    """Begin; returns at once."""
    Thread(target=prepare, args=(policy,), name="policyd warm", daemon=True).start()


def prepare(policy: Policy) -> None:
    """Make what the first decision needs."""
    sleep(DELAY)
    with suppress(Exception):
        from policyd import audit, commands
        from policyd.actions import profiles

        profiles.shipped()
        policy.ready()
        commands.read(LINE, cwd=("/",), home="/")
        audit.mask("TOKEN=x")
    gc.freeze()  # what lives as long as the process need not be looked at again and again
