"""What the enforcement needs of the rooms below it, as small protocols."""

from __future__ import annotations

from typing import Protocol


class Decider(Protocol):
    """The decision point of one connection: an `Authorizer` and the `Conversation` it observes."""
