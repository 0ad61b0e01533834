"""Watches policy files in a thread: `watchfiles` says when to look, a comparison of the bytes whether they changed.

Rules of this module:

1. Directories are watched, not files: a rename over a file, a swapped link and a recreated directory all change an
   entry. Events within `SETTLE` cause one look; every `POLL` seconds there is one anyway, for file systems without
   events.
2. The thread begins `DELAY` after the start, so as not to slow down an agent's start. After watching has begun there is
   always a look, so that no change is missed.
3. Errors are reported, and the policy stays in force.
4. Only the watching part of `watchfiles` is loaded: the whole package would import seventy modules.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

NOTIFIER = "watchfiles._rust_notify"
DELAY = 1.0
SETTLE = 100
"""Milliseconds."""
STORM = 1_600
"""Milliseconds after which a look no longer waits for events to end."""
POLLED = 300
"""Milliseconds between polls where the system tells nothing of changes."""
PAUSE = 0.2
"""Seconds between two looks at least: a storm of changes is a few."""
BEAT = 0.5
"""Seconds between looks at whether there is something else to watch."""
POLL = 30.0


class Watcher:
    """Calls `look` after every change in the directories that `places` names, until `stop`."""

    def __init__(
        self, places: Callable[[], list[str]], look: Callable[[], bool | None], complain: Callable[[str], None]
    ) -> None:
        """Begin nothing yet; all three are called in the watcher's thread. `look` says whether to look again soon."""
        self._places = places
        self._look = look
        self._complain = complain
        self._said: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policyd-watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, patience: float = 1.0) -> None:
        """End; wait for the thread at most `patience` seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(patience)

    def _run(self) -> None:
        if self._stop.wait(DELAY):
            return
        while not self._stop.is_set():
            if not self._done(self._watch, f"policy files are only looked at every {POLL:.0f} seconds"):
                self._stop.wait(POLL)
                self._done(self._look, "policy files could not be looked at")

    def _done(self, step: Callable[[], object], otherwise: str) -> bool:
        """Do a step; where it fails, report that once: a watcher that cannot watch still looks."""
        try:
            step()
        except Exception as error:
            text = f"{otherwise}: {error}"
            if text not in self._said:
                self._said.add(text)
                self._complain(text)
            return False
        return True

    def _watch(self) -> None:
        """Look once watching has begun, then after every change, until there is something else to watch."""
        places = existing(self._places())
        begun, left = False, POLL
        with notifier()(places, False, polls(), POLLED, False, True) as notify:
            while True:
                changes = notify.watch(STORM, SETTLE, int(BEAT * 1000), self._stop)
                if changes in ("stop", "signal"):
                    return
                left -= BEAT
                if changes != "timeout" or not begun or left <= 0:
                    begun, left = True, BEAT if self._look() else POLL
                    self._stop.wait(PAUSE)
                # A directory that went is watched no more, even if another has its place already.
                gone = not isinstance(changes, str) and any(path in places for _, path in changes)
                if gone or existing(self._places()) != places:
                    return


@cache
def notifier() -> type[RustNotify]:
    """Return what watches in `watchfiles`, by itself if it can be had so."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = None if NOTIFIER in sys.modules else PathFinder.find_spec("watchfiles")
    spec = PathFinder.find_spec(NOTIFIER, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        module = import_module(NOTIFIER)
    else:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    found: type[RustNotify] = module.RustNotify
    return found


def polls() -> bool:
    """Say whether the system must be asked for changes again and again; as `watchfiles` itself finds out."""
    said = os.environ.get("WATCHFILES_FORCE_POLLING", "").lower()
    return said not in {"false", "disable", "disabled"} if said else "microsoft-standard" in os.uname().release.lower()


def existing(places: list[str]) -> list[str]:
    """Return the directories and files that are there, for each that is not its nearest parent that is."""
    found: dict[str, None] = {}
    for place in places:
        while not os.path.exists(place):
            place = os.path.dirname(place) or "/"
        found[place] = None
    return list(found)
