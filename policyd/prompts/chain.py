"""The prompt chain from the settings: its steps in order, and how long each may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from policyd.prompts.clients import Client

TIMEOUTS: Mapping[str, float] = {"client": 600.0, "command": 120.0, "inbox": 600.0}
LONGEST_TIMEOUT = 24 * 3600.0


class Step(Struct, frozen=True):
    """One step of the chain."""

    kind: str
    """`client`, `command` or `inbox`."""
    path: str = ""
    """Of a command: its absolute path."""
    timeout: float = 120.0
    """Seconds until silence is a rejection."""

    @property
    def name(self) -> str:
        """The step as settings spell it: `command:/usr/local/bin/ask`."""
        return f"{self.kind}:{self.path}" if self.path else self.kind


def parse_chain(words: Sequence[str], timeouts: Mapping[str, float] | None = None) -> tuple[Step, ...]:
    """Return the steps `words` name; `timeouts` in seconds by step name, else by kind.

    Raises:
        ValueError: an unknown step, a command without an absolute path, a timeout out of range; in words.
    """
    given = timeouts or {}
    return tuple(_step(word, given) for word in words)


def usable(steps: Sequence[Step], client: Client) -> tuple[Step, ...]:
    """Return `steps` without `client` if its profile says that no person is behind its answers."""
    return tuple(step for step in steps if step.kind != "client" or client.person)


def _step(word: str, timeouts: Mapping[str, float]) -> Step:
    kind, colon, path = word.partition(":")
    if kind not in TIMEOUTS or (colon and kind != "command"):
        raise ValueError(f"unknown prompt step `{word}`; write client, command:/absolute/path or inbox")
    if kind == "command" and not path.startswith("/"):
        raise ValueError(f"prompt step `{word}` needs an absolute path: command:/absolute/path")
    timeout = float(timeouts.get(word, timeouts.get(kind, TIMEOUTS[kind])))
    if not 0 < timeout <= LONGEST_TIMEOUT:
        raise ValueError(f"the timeout of prompt step `{word}` must lie between 0 and {LONGEST_TIMEOUT:.0f} seconds")
    return Step(kind, path, timeout)
