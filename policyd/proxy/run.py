"""The run of one agent: load while it boots, pump while it runs, return how it ended.

Imported when the agent is running already.
"""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

from policyd.proxy import FAILED, origin
from policyd.proxy.agent import Agent, widen
from policyd.proxy.options import Options
from policyd.proxy.pump import FORWARDED, Pump
from policyd.service import Choices, Service, StartError, open_service
from policyd.service.notes import Notes, complain
from policyd.service.signals import catch

if TYPE_CHECKING:
    from policyd.proxy.remote import Remote

REFUSED = 5


def run(agent: Agent, options: Options) -> int:
    """Relay between the client and a started agent until it ends; return the exit code."""
    notes = Notes()
    client_in, client_out = aside(0, os.O_RDONLY), aside(1, os.O_WRONLY)
    try:
        service = opened(options, notes)
    except StartError as error:
        agent.end()
        return complain(error.problems)
    gc.freeze()  # a thousand rules need not be looked through again and again
    gc.enable()
    signals, told = catch({*FORWARDED, signal.SIGCHLD})
    origin.tell(told)
    widen(client_in, client_out)
    pump = Pump(agent, client_in=client_in, client_out=client_out)
    service.connect(pump.send)
    agent.poll()  # it may have ended before its end was listened for
    pump.run(service, signals)
    if pump.trouble:
        agent.end()
    service.finish()
    for fd in (client_in, client_out):
        restore(fd)
    return outcome(agent, service, pump, options, notes)


def opened(options: Options, notes: Notes) -> Service | Remote:
    """Return what decides: the policy loaded here, or the daemon.

    Raises:
        StartError: with everything that is wrong.
    """
    if options.connect is None:
        return open_service(choices(options), notes.write)
    from policyd.proxy.remote import Remote
    from policyd.storage.places import PlaceError

    try:
        return Remote(options, notes.write)
    except PlaceError as error:
        raise StartError([f"policyd: {error}"]) from error


def outcome(agent: Agent, service: Service | Remote, pump: Pump, options: Options, notes: Notes) -> int:
    """Say how it ended; return the exit code, or end by the agent's signal."""
    for line in service.summary():
        notes.write(line)
    if pump.trouble:
        notes.write(f"{pump.trouble}; the agent was ended")
        return FAILED
    status = agent.status or 0
    if status < 0:
        notes.write(f"the agent was ended by {name_of(-status)}")
        die_by(-status)
    return REFUSED if status == 0 and options.fail_on_reject and service.refused else status


def name_of(number: int) -> str:
    """Name a signal; most real-time ones have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def die_by(number: int) -> None:
    """End this process by the signal that ended the agent, so that whoever waits sees the same; no core of ours."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.set_wakeup_fd(-1)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def choices(options: Options) -> Choices:
    """Return what the command line chose, for the service."""
    return Choices(
        policies=tuple(options.policies),
        digests=tuple(options.digests),
        prompt=tuple(options.prompt),
        labels=dict(label.split("=", 1) for label in options.labels),
        agent=options.agent,
        client=options.client,
        shell=options.shell,
        home=options.home,
        audit=options.audit,
        grants=not options.no_grants,
        command=tuple(options.command),
        transport="proxy",
    )


def aside(fd: int, flags: int) -> int:
    """Move a standard stream out of the way, so that nothing printed by mistake can reach the other side."""
    moved = os.dup(fd)
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, fd)
    os.close(nothing)
    return moved


def restore(fd: int) -> None:
    """Make a descriptor blocking again: whoever shares it expects that."""
    try:
        os.set_blocking(fd, True)
    except OSError:  # closed when its other end was
        return
