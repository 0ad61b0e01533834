"""Warming up: what the first decision needs, but a start does not, is built in a thread while the agent boots.

Indexes, tables of programs, profiles, the shell grammar and the expressions of the audit are built on first use, so
that a start waits for none; this thread uses them first. It begins `DELAY` after the start, so as not to delay an agent
that speaks at once. It decides nothing, and its failures are ignored: what it could not build is built when it is
needed, where a failure is a refusal.
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
