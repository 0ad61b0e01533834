"""Started at a terminal, without a protocol: a client runs its configured command so that a person can log in.

policyd then replaces itself by the agent (`exec`), after one line on standard error and one record, or refuses, by the
setting `terminal`. Without the record the agent is not started. `policyd proxy -- AGENT` typed by hand is therefore not
under policy, and says so.
"""

from __future__ import annotations

import os

from policyd.proxy import say
from policyd.proxy.agent import cannot_start
from policyd.proxy.options import Options


def become(options: Options) -> int:
    """Replace this process by the agent; return an exit code if that is refused or fails."""
    from policyd.proxy import run
    from policyd.service import StartError, note_terminal
    from policyd.service.notes import complain

    name = options.command[0]
    try:
        allowed = note_terminal(run.choices(options), options.command)
    except StartError as error:
        return complain(error.problems)
    if not allowed:
        return say(f"policyd: no ACP between two terminals, and `terminal` is `refuse`: not running {name}", 2)
    say(f"policyd: no ACP here: running {name} without policy", 0)
    try:
        os.execvp(name, options.command)  # noqa: S606 - the agent itself, no shell
    except OSError as error:
        code, text = cannot_start(options.command, error)
        return say(text, code)
