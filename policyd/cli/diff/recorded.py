"""Recorded requests: from an audit log, or from a transcript of an agent and its client.

A record that lacks something a decision needs (masked, cut) is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from policyd.actions import Conversation
from policyd.audit.rebuild import Undecidable
from policyd.authorizer import Authorizer
from policyd.cli.audit import cases, filters
from policyd.cli.facts import resource, shown_kind
from policyd.cli.replay import Replay
from policyd.model import Action, Role, Workspace
from policyd.policy import Policy
from policyd.storage import auditchain


class Recorded(Struct, frozen=True):
    """One request of a log."""

    title: str
    actions: tuple[Action, ...]
    workspace: Workspace
    """As it was then."""


class Log(Struct):
    """An audit log (with its rotated files) or a transcript; the first line tells which."""

    path: str
    conversation: Conversation
    """Its machine is used to read a transcript."""
    heads: tuple[str, ...] = ()
    """Literal heads of the policies that will decide."""
    left_out: int = 0
    newest: int = 0
    """How many decisions of an audit log are read, the newest; 0 = all."""

    @property
    def file(self) -> str:
        """The current file of the log."""
        return auditchain.log_path(self.path)

    def read(self) -> Iterator[Recorded]:
        """Return every request of the log."""
        path = self.file
        with open(path, "rb") as file:
            first = filters.parsed(file.readline()) or {}
        return self.of_audit(path) if "schema" in first and "event" in first else self.of_transcript()

    def of_audit(self, path: str) -> Iterator[Recorded]:
        """Yield the decisions of an audit log as requests."""
        home, tmpdir = self.conversation.machine.home, self.conversation.machine.tmpdir
        for record in filters.chosen(path, lambda record: record.get("event") == "decision", self.newest):
            try:
                case = cases.case(record)
            except Undecidable:
                self.left_out += 1
                continue
            space = cases.opened(case.cwd, case.roots, case.sound, home, tmpdir, self.heads)
            yield Recorded(titled(case.request.actions, case.request.title), case.request.actions, space)

    def of_transcript(self) -> Iterator[Recorded]:
        """Yield the requests of a transcript."""
        machine = self.conversation.machine
        point = Authorizer(Policy(heads=self.heads), machine=machine, cwd=self.conversation.workspace("").cwd)
        with open(self.path, "rb") as file:
            for result in Replay(point).run(file):
                if result.error:
                    self.left_out += 1
                    continue
                asked = result.request
                space = point.conversation.workspace(asked.session_id)
                yield Recorded(titled(asked.actions, asked.title), asked.actions, space)


def titled(actions: tuple[Action, ...], title: str) -> str:
    """Return a title for a request: its primary actions as `KIND RESOURCE`, else its own title."""
    parts = []
    for action in actions:
        if action.role is Role.PRIMARY and not action.opaque:
            named = resource(action)
            text = str(named.get("text") or next(iter(named.values()), ""))
            parts.append(f"{shown_kind(action)} {text}".strip())
    return " + ".join(parts) or title
