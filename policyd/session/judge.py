"""The decider of a real connection: an `Authorizer`, and the modes as the agent's profile describes them.

1. A mode the profile does not list is unsafe; for an agent without a profile, a mode or option is unsafe if its name
   means "no asking" in any spelling.
2. An asking mode is set by the method the profile names; an agent without a profile is put into a mode whose name
   means asking. If the mode an agent states is no evidence (`stated = false`), it is set again even if it asks.
3. No exception is caught here: it reaches the enforcement, which refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from policyd.actions import Profile
from policyd.actions.profiles import GENERIC, spelled
from policyd.actions.servers import started
from policyd.actions.sessions import FORGOTTEN
from policyd.authorizer import Authorizer
from policyd.model import Action, Context, Decision, Mode, Request, Source, Tool
from policyd.session.doors import TERMINAL
from policyd.session.events import Moment, Side
from policyd.session.ports import Asking, Message, Verdict
from policyd.session.servers import NAMING, as_asked_by_client
from policyd.session.state import OPENINGS

DIRECTION = {Side.AGENT: "a2c", Side.CLIENT: "c2a"}
NO_ASKING = (
    "yolo",
    "bypass",
    "autoapprove",
    "acceptedit",
    "acceptall",
    "autoaccept",
    "autoedit",
    "dontask",
    "noask",
    "neverask",
    "fullaccess",
    "fullauto",
    "allowall",
    "autopilot",
    "dangerous",
    "skippermission",
    "alwaysallow",
    "alwaysapprove",
    "trustall",
    "unrestricted",
    "unattended",
)
ASKING = ("ask", "default", "manual", "prompt", "askfirst", "alwaysask", "normal")
UNOPENED = "policyd: a session that is not open yet"
ON = frozenset({"true", "on", "yes", "all", "always", "enabled", "1"})


class Judge:
    """Decides by an `Authorizer` and what it has observed."""

    def __init__(self, authorizer: Authorizer, person: Callable[[], bool] = lambda: True) -> None:
        """Use an authorizer that observes this connection alone; `person` as in `Decider`."""
        self.authorizer = authorizer
        self.person = person

    @property
    def _profile(self) -> Profile:
        return self.authorizer.conversation.profile

    # ---- observing ----------------------------------------------------------------------------------

    def observe(self, side: Side, message: Message) -> None:
        """Take in a message from `side` as it passes."""
        self.authorizer.conversation.observe(DIRECTION[side], message)

    def refused(self, session_id: str, call_id: str) -> None:
        """Take in that an update of this call was refused."""
        self.authorizer.conversation.refuse(session_id, call_id, "one of its updates was refused")

    def forgot(self, session_id: str, calls: Iterable[str]) -> None:
        """Note that messages about these calls may be missing."""
        self.authorizer.conversation.forgot(session_id, calls, FORGOTTEN)

    def closed(self, session_id: str) -> None:
        """Take in that a session was closed: what was remembered for it alone ends."""
        if self.authorizer.end_grants is not None:
            self.authorizer.end_grants(session_id)

    def ended(self, session_id: str) -> None:
        """Forget a session that was closed."""
        self.authorizer.conversation.forget(session_id)

    def names(self) -> frozenset[str]:
        """Return the field names the agent's profile reads in `rawInput`."""
        return claimed(self._profile.short)

    def client(self) -> Mapping[str, str]:
        """Return `name` and `version` of the client as it states them."""
        name, version = self.authorizer.conversation.client
        return {"name": name, "version": version}

    def context(self, session_id: str, now: Moment) -> Context:
        """Return what is true of the session now."""
        return self.authorizer.context(session_id, now.wall)

    def project(self, session_id: str) -> str:
        """Return the real path of the session's project, `""` if none is known."""
        conversation = self.authorizer.conversation
        cwd = conversation.workspace(session_id).cwd
        if not cwd or conversation.machine.fs is None:
            return cwd or ""
        try:
            return conversation.machine.fs.resolve(cwd)
        except OSError:
            return cwd

    def remembers(self) -> bool:
        """Say whether the policy lets people's answers be remembered as an allow."""
        return not self.authorizer.policy.lock.grants

    # ---- deciding -----------------------------------------------------------------------------------

    def late(self, params: Message) -> bool:
        """Say whether details of this permission request race it and have not come."""
        return bool(self.authorizer.conversation.waits(params))

    def permission(self, params: Message, now: Moment) -> Verdict:
        """Decide a `session/request_permission`."""
        return self._verdict(self.authorizer.request(params), now)

    def again(self, verdict: Verdict, now: Moment) -> Decision:
        """Decide the same request under the policy of this moment."""
        return self.authorizer.settle(verdict.request, now=now.wall)

    def door(self, method: str, params: Message, now: Moment) -> Verdict:
        """Decide a call through a side door."""
        request = self.authorizer.side_door(method, params)
        return self._verdict(replace(request, title=door_title(method, params)), now)

    def stands_for(self, session_id: str, update: Message) -> tuple[Action, ...]:
        """Return what a call would do going by one update of it alone."""
        return self.authorizer.request({"sessionId": session_id, "toolCall": update, "options": []}).actions

    def unasked(self, session_id: str, update: Message, now: Moment) -> Verdict | None:
        """Decide a call that this update reports as completed, if no request named or covered it."""
        conversation, ident = self.authorizer.conversation, update.get("toolCallId")
        session = conversation.sessions.get(session_id)
        if session is None or not isinstance(ident, str) or not self._profile.data.statuses:
            return None
        call = session.calls.get(ident)
        if session.replaying or (call is not None and call.asked):
            return None
        request = self.authorizer.request({"sessionId": session_id, "toolCall": update, "options": []})
        verdict = self._verdict(replace(request, title=request.title or (call.first_title if call else "")), now)
        return None if verdict.decision.source is Source.ERROR else verdict

    def _verdict(self, request: Request, now: Moment) -> Verdict:
        return Verdict(request, *self.authorizer.settle_at(request, now.wall))

    def servers(self, method: str, params: Message, now: Moment) -> Verdict:
        """Decide the MCP servers that a request to open a session starts, as if it were open."""
        conversation = self.authorizer.conversation
        conversation.open(UNOPENED, params)
        try:
            policy, _ = self.authorizer.in_force(UNOPENED)
            request = Request(UNOPENED, "", method, (), started(method, params, conversation.around(UNOPENED)))
            found = self._verdict(request, now)
        finally:
            conversation.forget(UNOPENED)
        named = {rule.ref for rule in policy.rules if rule.resource in NAMING}
        request = replace(request, session_id=str(params.get("sessionId", "")))
        return as_asked_by_client(replace(found, request=request), named)

    # ---- modes --------------------------------------------------------------------------------------

    def switch(self, method: str, params: Message, now: Moment) -> Verdict | None:
        """Decide a change that would switch asking off, from whichever door; None = it does not."""
        unsafe = tuple(dict.fromkeys(self._unsafe(method, params)))
        return self._switching(str(params.get("sessionId", "")), method, unsafe, now) if unsafe else None

    def chosen(self, verdict: Verdict, option: str, now: Moment) -> Verdict | None:
        """Decide the mode an option of a `switch_mode` request leads to; None = to none that is unsafe."""
        request = verdict.request
        leads = self._profile.data.mode.leads.get(option)
        kind = next((one.kind for one in request.options if one.id == option), "")
        if not any("switch_mode" in action.kinds for action in request.actions):
            return None
        if leads is None and kind != "allow_always":
            return None
        if leads is not None and not self._unsafe_mode(leads):
            return None
        return self._switching(request.session_id, "session/request_permission", (leads or option,), now)

    def _switching(self, session_id: str, method: str, modes: tuple[str, ...], now: Moment) -> Verdict:
        kinds = frozenset({"switch_mode"})
        actions = tuple(Action(kinds, mode=Mode(mode), name=Tool(method), origin=method) for mode in modes)
        return self._verdict(Request(session_id, "", f"switch to {', '.join(modes)}", (), actions), now)

    def _unsafe(self, method: str, params: Message) -> Iterator[str]:
        """Yield every mode or `option=value` of a message that switches asking off."""
        if method == "session/set_mode":
            yield from self._modes(params.get("modeId"))
        elif method == "session/set_config_option":
            yield from self._option(params.get("configId"), params.get("value"))
        elif method in OPENINGS:
            yield from self._meta(params.get("_meta"))
        elif method == "session/update":
            update = params.get("update")
            fields = update if isinstance(update, Mapping) else {}
            if fields.get("sessionUpdate") == "current_mode_update":
                yield from self._modes(fields.get("currentModeId"))
            for option in listed(fields.get("configOptions")):
                yield from self._option(option.get("id"), option.get("currentValue"))

    def _modes(self, mode: object) -> Iterator[str]:
        if not isinstance(mode, str) or self._unsafe_mode(mode):
            yield str(mode)

    def _option(self, option: object, value: object) -> Iterator[str]:
        if not isinstance(option, str):
            yield f"{option}={spelled(value)}"
        elif option == self._profile.data.mode.option:
            yield from self._modes(value)
        elif self._unsafe_option(option, value):
            yield f"{option}={spelled(value)}"

    def _meta(self, meta: object) -> Iterator[str]:
        for key in self._profile.data.mode.unsafe_meta:
            value: object = meta
            for part in key.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value and not (isinstance(value, str) and not self._unsafe_mode(value)):
                yield value if isinstance(value, str) else key

    def _unsafe_mode(self, mode: str) -> bool:
        table = self._profile.data.mode
        if self._profile.short == GENERIC or not table.asking:
            return mode in table.unsafe or means_no_asking(mode)
        return self._profile.mode(mode).unsafe

    def _unsafe_option(self, option: str, value: object) -> bool:
        if self._profile.unsafe_option(option, value):
            return True
        if option in (*self._profile.data.mode.safe_options, *self._profile.data.mode.unsafe_options):
            return False
        return (means_no_asking(option) and spelled(value) in ON) or holds_no_asking(spelled(value))

    def asking(self, session_id: str, opened: Message) -> Asking:
        """Return what to set in a session whose opening response has this result."""
        current, offered = current_mode(opened, self._profile.data.mode.option)
        steps: list[tuple[str, Mapping[str, object]]] = []
        values: dict[str, object] = {}
        mode, missing = self._wanted(current, offered)
        if missing:
            return Asking(missing=missing)
        if mode:
            steps.append(self._step(session_id, mode))
            values[self._profile.data.mode.option] = mode
        for option in listed(opened.get("configOptions")):
            ident = str(option.get("id", ""))
            if ident == self._profile.data.mode.option or not self._unsafe_option(ident, option.get("currentValue")):
                continue
            value = self._off(option)
            if value is None:
                return Asking(missing=f"the option `{ident}` has no value that asks")
            steps.append(("session/set_config_option", {"sessionId": session_id, "configId": ident, "value": value}))
            values[ident] = value
        return Asking(tuple(steps), mode, values)

    def _wanted(self, current: str, offered: tuple[str, ...]) -> tuple[str, str]:
        """Return the mode to set (`""` = none), and why asking cannot be set."""
        table = self._profile.data.mode
        if self._profile.short == GENERIC or not table.asking or table.door == "none":
            if not current or not self._unsafe_mode(current):
                return "", ""
            known = next((mode for mode in offered if letters(mode) in ASKING), "")
            return (known, "") if known else ("", f"it is in mode `{current}`, and no other mode is known to ask")
        safe = not self._unsafe_mode(current or table.start)
        if safe and table.stated:
            return "", ""
        wanted = current if current and safe else table.asking
        if offered and wanted not in offered:
            return "", f"it offers no mode `{wanted}`"
        return wanted, ""

    def _step(self, session_id: str, mode: str) -> tuple[str, Mapping[str, object]]:
        table = self._profile.data.mode
        if table.door == "set_config_option":
            return "session/set_config_option", {"sessionId": session_id, "configId": table.option, "value": mode}
        return "session/set_mode", {"sessionId": session_id, "modeId": mode}

    def _off(self, option: Mapping[str, object]) -> object:
        """Return a value of an option under which the agent asks, None if there is none."""
        ident, current = str(option.get("id", "")), option.get("currentValue")
        if isinstance(current, bool):
            return None if self._unsafe_option(ident, not current) else not current
        values = [one.get("value") for one in listed(option.get("options"))]
        return next((value for value in values if value is not None and not self._unsafe_option(ident, value)), None)


@cache
def claimed(short: str) -> frozenset[str]:
    """Return the field names that the profile of this short name reads in `rawInput`."""
    from policyd.actions import profiles

    profile = profiles.named(short) or profiles.generic()
    specs = [*profile.tools.values(), *profile.kinds.values(), *(spec for _, spec in profile.patterns)]
    return frozenset(name for spec in specs for name in spec.claimed if name)


def door_title(method: str, params: Message) -> str:
    """Return what a side-door call does, as one line for people."""
    if method != TERMINAL:
        return f"{method} {params.get('path', '')}"
    args = params.get("args")
    words = [params.get("command", ""), *(args if isinstance(args, list) else [])]
    return " ".join(str(word) for word in words)


def current_mode(opened: Message, option: str) -> tuple[str, tuple[str, ...]]:
    """Return the mode a session response or update names, and the modes it offers."""
    modes = opened.get("modes")
    if isinstance(modes, Mapping) and isinstance(modes.get("currentModeId"), str):
        return str(modes["currentModeId"]), tuple(str(one.get("id", "")) for one in listed(modes.get("availableModes")))
    for one in listed(opened.get("configOptions")):
        if one.get("id") == option:
            return str(one.get("currentValue", "")), tuple(
                str(item.get("value", "")) for item in listed(one.get("options"))
            )
    return "", ()


def listed(value: object) -> list[Mapping[str, object]]:
    """Return the tables of a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def letters(name: str) -> str:
    """Return the letters of a name, case folded."""
    return "".join(char for char in name.casefold() if char.isalpha())


def means_no_asking(name: str) -> bool:
    """Say whether a name of a mode or option means that nobody is asked, in any spelling."""
    return letters(name) == "auto" or holds_no_asking(name)


def holds_no_asking(name: str) -> bool:
    """Say whether a name contains words that mean so; `auto` alone may describe anything (a theme, a model)."""
    plain = letters(name)
    return any(word in plain for word in NO_ASKING)
