"""Runs the steps of the prompt chain other than the client: programs and the inbox; any other fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

from policyd.service.hooks import HookError, Hooks, check
from policyd.service.inbox import InboxStep
from policyd.session import Ask, Failed, Reply
from policyd.storage.inbox import Inbox


class Crew:
    """Prompt programs and an inbox. Each step has a number, under which its answer or failure comes, from a thread."""

    def __init__(
        self,
        inbox: Inbox | None,
        replied: Callable[[int, Mapping[str, object]], None],
        failed: Callable[[int, str], None],
    ) -> None:
        """Start nothing yet."""
        self._hooks = Hooks(replied=replied, failed=failed)
        self._inbox = InboxStep(inbox, replied) if inbox else None

    def start(self, number: int, ask: Ask, uid: int) -> None:
        """Begin a step of an agent of `uid`. Raises what keeps it from beginning."""
        road, _, path = ask.step.partition(":")
        if road == "command":
            self._hooks.start(number, path, ask.payload, ask.deadline - monotonic())
        elif road == "inbox" and self._inbox:
            self._inbox.start(number, ask.payload, ask.deadline, uid=uid)
        else:
            raise ValueError(f"the step `{ask.step}` cannot be run here")

    def stop(self, number: int) -> None:
        """End a step whose answer is no longer wanted."""
        if not (self._inbox and self._inbox.withdraw(number)):
            self._hooks.stop(number)

    def close(self) -> None:
        """End all; policyd's own end does not wait for slow programs."""
        if self._inbox:
            self._inbox.close()
        self._hooks.close(0.05)


def faults(chain: Iterable[str]) -> Iterator[str]:
    """Yield why programs of a prompt chain cannot be run, as things stand."""
    for step in chain:
        road, _, path = step.partition(":")
        if road == "command":
            try:
                check(path)
            except HookError as error:
                yield f"the prompt step `{step}` cannot be run: {error}"


class ProgramSteps:
    """The steps of one connection."""

    def __init__(self, post: Callable[[object], None], inbox: str = "") -> None:
        """`post` takes `Reply` and `Failed` events, from any thread; `inbox` is a directory."""
        self._crew = Crew(
            Inbox(inbox) if inbox else None,
            lambda ask, answer: post(Reply(ask, answer)),
            lambda ask, why: post(Failed(ask, why)),
        )

    def start(self, ask: Ask) -> None:
        """Begin a step; its answer or failure is posted."""
        self._crew.start(ask.id, ask, os.getuid())

    def withdraw(self, ask: int) -> None:
        """End a step whose answer is no longer wanted."""
        self._crew.stop(ask)

    def close(self) -> None:
        """End all."""
        self._crew.close()
