"""Starts the daemon: load, listen, serve, clean up."""

from __future__ import annotations

import gc
import os
import selectors
import sys

from msgspec import Struct, field

from policyd.daemon.listen import Door, ListenError, listen, myself, unlink
from policyd.daemon.server import ENDING, KEPT, RELOADING, Server, descriptors
from policyd.daemon.shared import Shared
from policyd.daemon.systemd import Notifier, handed_over
from policyd.service import Choices, StartError
from policyd.service.notes import Notes, complain
from policyd.service.service import SLICE
from policyd.service.signals import catch
from policyd.storage import sockets
from policyd.storage.sockets import SocketError


class Options(Struct, frozen=True):
    """The options of the command line."""

    choices: Choices = field(default_factory=lambda: Choices(transport="daemon"))
    socket: str | None = None
    stdio: bool = False
    groups: tuple[str, ...] = ()
    """Groups whose members may connect too."""


def serve(options: Options) -> int:
    """Serve until told to end; return the exit code."""
    notifier, note = Notifier(), Notes().write
    caught, _ = catch({*ENDING, RELOADING})
    try:
        shared = Shared(options.choices, note)
        doors, made = open_doors(options, shared)
    except StartError as error:
        return complain(error.problems)
    except (ListenError, SocketError) as error:
        return complain([f"policyd serve: {error}"])
    # Standard input may be a file, which the best selector of the system cannot watch.
    server = Server(shared, doors, notifier, *([selectors.PollSelector] if options.stdio else []))
    if options.stdio:
        server.serve(myself(), *streams())
    shared.begin()
    for path, _ in made:
        note(f"listening on {path}")
    sys.setswitchinterval(SLICE)
    gc.freeze()
    try:
        server.run(caught)
    finally:
        shared.finish()
        for path, inode in made:
            unlink(path, inode)
    return 0


def open_doors(options: Options, shared: Shared) -> tuple[list[Door], list[tuple[str, int]]]:
    """Return where peers come in, and which sockets were made for it: path and inode."""
    handed = [Door(one, options.groups, handed=True) for one in handed_over()]
    if descriptors() < 1 and (handed or not options.stdio):
        have = f"`ulimit -n` is {KEPT + descriptors()}, and {KEPT} files are policyd's own"
        raise ListenError(f"{have}: nobody could connect; make it 64 or more")
    if options.stdio or handed:
        return handed, []
    path = os.path.abspath(options.socket) if options.socket else sockets.served(shared.ground.places)
    door = Door(listen(path), options.groups)
    if options.groups:
        os.chmod(path, 0o666)  # noqa: S103 - who may come in is decided by uid and group, for each peer
    return [door], [(path, os.stat(path).st_ino)]


def streams() -> tuple[int, int]:
    """Take standard input and output for the protocol; what is printed by mistake goes to standard error."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    for fd in (source, target):
        os.set_blocking(fd, False)
    return source, target
