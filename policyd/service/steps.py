"""Runs the steps of the prompt chain that are not the client: programs now; what cannot be run here fails in words."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from policyd.service.hooks import Hooks
from policyd.session import Ask, Failed, Reply


class ProgramSteps:
    """The prompt programs of one connection."""

    def __init__(self, post: Callable[[object], None]) -> None:
        """`post` takes `Reply` and `Failed` events, from any thread."""
        self._hooks = Hooks(
            replied=lambda ask, answer: post(Reply(ask, answer)),
            failed=lambda ask, why: post(Failed(ask, why)),
        )

    def start(self, ask: Ask) -> None:
        """Run the program of a question; its answer or failure is posted."""
        road, _, path = ask.step.partition(":")
        if road != "command":
            raise ValueError(f"the step `{ask.step}` cannot be run here")
        self._hooks.start(ask.id, path, ask.payload, ask.deadline - monotonic())

    def withdraw(self, ask: int) -> None:
        """End a program whose answer is no longer wanted."""
        self._hooks.stop(ask)

    def close(self) -> None:
        """End all programs; policyd's own end does not wait for slow ones."""
        self._hooks.close(0.05)
