"""Performs the commands of the enforcement, with clocks, files and threads; used by every transport.

    service = open_service(Choices(policies=(…,)), note)     # StartError lists everything that is wrong
    service.connect(send)                                    # send(side, bytes)
    service.feed(side, block); service.wake(); service.tick(); service.closed(side)
    service.waker, service.deadline(), service.busy()        # when to do so
    service.finish(); service.summary()

The transport owns bytes and processes, the enforcement decides; only this package has both clocks and files. Prompt
programs, fsync and reloads run in threads and report through one queue.
"""

from __future__ import annotations

from policyd.service.service import Service
from policyd.service.start import Choices, StartError, note_terminal, open_service

__all__ = ["Choices", "Service", "StartError", "note_terminal", "open_service"]
