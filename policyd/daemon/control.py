"""Requests to the daemon itself: its state, a reload, remembered answers, waiting questions.

1. A peer sees the grants and the questions of its own uid; root and the daemon's user see all questions.
2. A question is answered by a person only: the peer must not descend from an agent (`policyd.daemon.descent`).
3. Only the daemon's user and root see the paths of files, and what is wrong in them.
4. Only a person may loosen: revoking a remembered allow needs none, as policyd then asks again; revoking a remembered
   denial does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING

import policyd
from policyd.actions import profiles
from policyd.daemon import descent, wire
from policyd.daemon.wire import WireError
from policyd.model import Effect, Layer
from policyd.service.book import stated
from policyd.service.relayed import PROTOCOL
from policyd.storage import clock as clocks
from policyd.storage.grants import files
from policyd.storage.inbox import InboxError

if TYPE_CHECKING:
    from policyd.daemon.shared import Shared, Who

UNTOLD = "told to the daemon's user and root only"


class Control:
    """The daemon as one peer may see and steer it."""

    def __init__(self, shared: Shared, who: Who) -> None:
        """Answer to `who`."""
        self._shared = shared
        self._who = who

    def welcome(self) -> dict[str, object]:
        """Return the answer to a hello."""
        return {
            "protocol": PROTOCOL,
            "version": policyd.__version__,
            "tier": self._tier(),
            "revision": self._shared.revision(),
            "required": self._managed(),
            "agents": sorted(profiles.shipped()),
        }

    def answer(self, method: str, params: Mapping[str, object]) -> dict[str, object] | None:
        """Return the result of a request, None where there is no such method.

        Raises:
            WireError: it is refused, in words.
        """
        if method == wire.STATUS:
            return self.status()
        if method == wire.RELOAD:
            return self._reload()
        if method == wire.GRANTS:
            return self._grants(params)
        if method == wire.PROMPTS:
            return self._prompts(params)
        return None

    def status(self) -> dict[str, object]:
        """Return what is in force."""
        shared, policy = self._shared, self._shared.ground.book.policy
        return {
            "schema": 1,
            "version": policyd.__version__,
            "pid": os.getpid(),
            "seconds": round(monotonic() - shared.began, 3),
            "tier": self._tier(),
            **stated(policy, path="" if self._who.own else UNTOLD),
            "rules": len(policy.rules),
            "files": [
                {"layer": source.layer.word, "file": source.name if self._who.own else UNTOLD}
                for source in shared.ground.book.sources
            ],
            "lock": {"refuse": sorted(policy.lock.refuse), "settings": sorted(shared.ground.loaded.locked)},
            "prompt": list(shared.settings.prompt),
            "audit": shared.ground.log.path if self._who.own else UNTOLD,
            "durability": shared.settings.audit_durability,
            "mute": shared.mute() if self._who.own else bool(shared.mute()) * UNTOLD,
            "problems": list(shared.problems) if self._who.own else [UNTOLD] * len(shared.problems),
            "connections": shared.connections(),
            "pending": shared.waiting(),
            "prompts": sum(1 for entry in shared.inbox.entries() if not entry.rejected),
        }

    def _reload(self) -> dict[str, object]:
        """Look at the files soon, beside the traffic; `_policyd/changed` tells of a change."""
        self._shared.look_soon()
        return {"revision": self._shared.revision()}

    def _grants(self, params: Mapping[str, object]) -> dict[str, object]:
        place = self._shared.grants_of(self._who.uid)
        revoke = frozenset(wire.listed(params, "revoke"))
        clock, rows, gone = clocks.now(), [], []
        for file in files(place):
            held = file.grants(clock)
            out = {grant.id for grant in file.current().grants if grant.id in revoke}
            denied = any(grant.id in out and grant.effect is Effect.DENY for grant in file.current().grants)
            if denied and (why := self._refusal()):
                raise WireError(f"a remembered no stays: {why}")
            if out:
                file.change(lambda old, out=out: tuple(one for one in old if one.id not in out))  # type: ignore[misc]
                gone += sorted(out)
            rows += [
                {
                    "id": grant.id,
                    "effect": grant.effect.word,
                    "covers": grant.covers,
                    "agent": grant.agent,
                    "scope": grant.scope,
                    "project": file.root,
                    "until": grant.until.isoformat(),
                }
                for grant in held
                if grant.id not in out
            ]
        return {"grants": rows, "revoked": gone}

    # ---- questions ----------------------------------------------------------------------------------

    def _prompts(self, params: Mapping[str, object]) -> dict[str, object]:
        inbox, answer = self._shared.inbox, params.get("answer")
        seen = {entry.id: entry for entry in inbox.entries() if self._who.own or entry.uid == self._who.uid}
        if answer is None:
            return {"prompts": [entry.facts() for entry in seen.values()]}
        if not isinstance(answer, dict):
            raise WireError('write {"answer": {"id": …, "decision": "allow" or "reject"}}')
        ident, decision = wire.text(answer, "id"), wire.text(answer, "decision")
        if why := self._refusal():
            raise WireError(why)
        if ident not in seen:
            raise WireError(f"no question {ident} waits here")
        if decision not in ("allow", "reject"):
            raise WireError("`decision` is allow or reject")
        try:
            inbox.answer(
                ident, decision, option=wire.text(answer, "option") or None, message=wire.text(answer, "message")
            )
        except InboxError as error:
            raise WireError(str(error)) from error
        return {"answered": ident, "decision": decision}

    def _refusal(self) -> str:
        """Say why this peer may not answer for a person; empty if it may."""
        return descent.refusal(self._who, self._shared.agents_above())

    def _tier(self) -> str:
        if self._who.uid == os.getuid():
            return "mediated"
        return "managed" if self._managed() else "isolated"

    def _managed(self) -> bool:
        return any(rule.ref.layer is Layer.MANAGED for rule in self._shared.ground.book.policy.rules)
