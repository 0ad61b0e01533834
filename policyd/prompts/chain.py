"""The prompt chain as settings write it: which steps, in which order, how long each may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from policyd.prompts.clients import Client

TIMEOUTS: Mapping[str, float] = {"client": 600.0, "command": 120.0, "inbox": 600.0}
LONGEST_TIMEOUT = 24 * 3600.0


class Step(Struct, frozen=True):
    """One step of the chain."""

    road: str
    """`client`, `command` or `inbox`."""
    path: str = ""
    """Of a command: its absolute path."""
    timeout: float = 120.0
    """Seconds until silence is a rejection."""

    @property
    def name(self) -> str:
        """The step as settings spell it: `command:/usr/local/bin/ask`."""
        return f"{self.road}:{self.path}" if self.path else self.road


def parse_chain(words: Sequence[str], timeouts: Mapping[str, float] | None = None) -> tuple[Step, ...]:
    """Return the steps `words` name; `timeouts` in seconds by step name, else by road.

    Raises:
        ValueError: an unknown step, a command without an absolute path, a timeout out of range; in words.
    """
    given = timeouts or {}
    return tuple(_step(word, given) for word in words)


def usable(steps: Sequence[Step], client: Client) -> tuple[Step, ...]:
    """Return `steps` without `client` where the profile says nobody is behind its answers."""
    return tuple(step for step in steps if step.road != "client" or client.person)


def _step(word: str, timeouts: Mapping[str, float]) -> Step:
    road, colon, path = word.partition(":")
    if road not in TIMEOUTS or (colon and road != "command"):
        raise ValueError(f"unknown prompt step `{word}`; write client, command:/absolute/path or inbox")
    if road == "command" and not path.startswith("/"):
        raise ValueError(f"prompt step `{word}` needs an absolute path: command:/absolute/path")
    timeout = float(timeouts.get(word, timeouts.get(road, TIMEOUTS[road])))
    if not 0 < timeout <= LONGEST_TIMEOUT:
        raise ValueError(f"the timeout of prompt step `{word}` must lie between 0 and {LONGEST_TIMEOUT:.0f} seconds")
    return Step(road, path, timeout)
