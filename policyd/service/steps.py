"""Runs the steps of the prompt chain that are not the client: programs and the inbox; others fail in words."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic

from policyd.service.hooks import Hooks
from policyd.service.inbox import InboxStep
from policyd.session import Ask, Failed, Reply
from policyd.storage.inbox import Inbox


class ProgramSteps:
    """The prompt programs of one connection, and its questions in the user's inbox."""

    def __init__(self, post: Callable[[object], None], inbox: str = "") -> None:
        """`post` takes `Reply` and `Failed` events, from any thread; `inbox` is a directory."""
        self._hooks = Hooks(
            replied=lambda ask, answer: post(Reply(ask, answer)),
            failed=lambda ask, why: post(Failed(ask, why)),
        )
        self._inbox = InboxStep(Inbox(inbox), lambda key, answer: post(Reply(key, answer))) if inbox else None

    def start(self, ask: Ask) -> None:
        """Begin a step; its answer or failure is posted."""
        road, _, path = ask.step.partition(":")
        if road == "command":
            self._hooks.start(ask.id, path, ask.payload, ask.deadline - monotonic())
        elif road == "inbox" and self._inbox:
            self._inbox.start(ask.id, ask.payload, ask.deadline, uid=os.getuid())
        else:
            raise ValueError(f"the step `{ask.step}` cannot be run here")

    def withdraw(self, ask: int) -> None:
        """End a step whose answer is no longer wanted."""
        if not (self._inbox and self._inbox.withdraw(ask)):
            self._hooks.stop(ask)

    def close(self) -> None:
        """End all; policyd's own end does not wait for slow programs."""
        if self._inbox:
            self._inbox.close()
        self._hooks.close(0.05)
