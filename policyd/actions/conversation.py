"""One agent connection as observed: which agent it is, which sessions are open, what is known of every tool call.

`observe` takes every message of either side in order; `request` turns a `session/request_permission` into a
`model.Request`, `side_door` a call of the client's `fs/*` and `terminal/*`. Nothing here decides, and nothing reads a
file but through the `Filesystem` handed in.

1. An agent is what it calls itself at `initialize`. A name given from outside counts only if the agent states none; a
   contradiction is kept in `contradiction` for the caller to refuse.
2. Between a `session/load` and its answer every update is history: it opens no call and supports no request.
3. A call's evidence is old once a request that named (or covered) it was answered, or the call finished.
4. The number of sessions and calls kept, and their size, is bounded. A request about a call that was forgotten finds
   nothing, and its own fields do not count as a complete description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from policyd import paths
from policyd.actions import away, messages, profiles
from policyd.actions.builder import Surroundings
from policyd.actions.derive import shifted
from policyd.actions.doors import door_actions
from policyd.actions.evidence import TELLING, Call, Evidence, contradicted, merge, says_more
from policyd.actions.identity import identify, renamed
from policyd.actions.messages import allows, current_mode, id_key, listed, name_version, options_of, tool_call
from policyd.actions.profiles import Profile
from policyd.actions.seen import Seen
from policyd.actions.sessions import FORGOTTEN, Machine, Session, stated
from policyd.actions.toolcall import keyed
from policyd.model import EMPTY, TABLE, Action, Agent, Mode, Request, Workspace

MOST_SESSIONS = 1_000
MOST_BYTES = 128 * 1024 * 1024
"""About how many bytes are kept of the calls of all sessions together."""
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
ASKING = "session/request_permission"


class _Waiting(Struct, gc=False):
    """A request of one side whose answer has not been seen."""

    method: str
    params: Mapping[str, object]
    session: str = ""
    calls: tuple[str, ...] = ()


class Conversation:
    """The observed state of one connection between a client and an agent."""

    def __init__(self, machine: Machine, *, agent: str = "", cwd: str | None = None) -> None:
        """Begin with nothing observed.

        `agent`: profile or wire name to assume until the agent names itself. `cwd`: of sessions never seen to open.
        """
        self.machine = machine
        self.client: tuple[str, str] = ("", "")
        self.sessions: dict[str, Session] = {}
        self.contradiction = ""
        self._cwd = cwd
        self._given = agent
        self._waiting: dict[tuple[str, object], _Waiting] = {}
        self._size = 0
        """About how many bytes are kept of all calls."""
        self._forgot = False
        """Some session was forgotten, for there are too many: one that was not seen to open may be it."""
        known = profiles.named(agent) if agent else None
        if known:
            self.profile = known
        short, family = (known.short, known.family) if known else (profiles.GENERIC, profiles.GENERIC)
        self._agent = Agent(agent, "", short, family)

    @property
    def agent(self) -> Agent:
        """The agent as it names itself, or as it was named from outside."""
        return self._agent

    @cached_property
    def profile(self) -> Profile:
        """The profile in force; `generic`, for an unknown agent, is read when first needed."""
        return profiles.generic()

    # ---- observing -------------------------------------------------------------------------------

    def observe(self, direction: str, message: Mapping[str, object]) -> None:
        """Record one message; `direction` is `a2c` (agent to client) or `c2a`."""
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            self._answered(direction, message)
            return
        fields = params if isinstance(params, TABLE) else {}
        if "id" in message:
            self._waiting[direction, id_key(message["id"])] = self._asked(method, fields)
        elif method == "session/update" and direction == "a2c":
            self._update(fields)

    def _asked(self, method: str, params: Mapping[str, object]) -> _Waiting:
        ident = str(params.get("sessionId", ""))
        if method == "initialize":
            info = params.get("clientInfo") or params.get("info")
            self.client = name_version(info)
        elif method == "session/load" and ident:
            self._load(ident, params)
        elif method == ASKING:
            asked, session = tool_call(params)[0], self.session(ident)
            calls = self._named(session, asked)
            for call in calls:
                call.asked, call.later = True, call.later or EMPTY
                if self.profile.data.sticky_cwd:
                    session.follow(call.call_id, {"rawInput": asked.get("rawInput")}, self.machine)
            return _Waiting(method, params, ident, tuple([call.call_id for call in self._settles(calls, asked)]))
        return _Waiting(method, params, ident)

    def _answered(self, direction: str, message: Mapping[str, object]) -> None:
        other = "c2a" if direction == "a2c" else "a2c"
        asked = self._waiting.pop((other, id_key(message.get("id"))), None)
        result = message.get("result")
        if asked is None:
            return
        if asked.method == ASKING:
            self._settle(asked, message)
        elif asked.method == "initialize" and isinstance(result, TABLE):
            self._named_itself(*name_version(result.get("agentInfo") or result.get("info")), result.get("authMethods"))
        elif asked.method in OPENING:
            self._opened(asked, result)
        elif isinstance(result, TABLE) or "result" in message:
            self._set(asked)

    def _named_itself(self, name: str, version: str, methods: object) -> None:
        if not name:
            profile = profiles.unnamed(methods) if methods else profiles.generic()
            if profile.short != profiles.GENERIC and (not self._given or profile.same_agent(self.profile)):
                self.profile, self._agent = profile, Agent(self._given, "", profile.short, profile.family)
            return
        profile = profiles.find(name, version)
        if self._given and self.profile.short != profiles.GENERIC and not profile.same_agent(self.profile):
            self.contradiction = f"the agent calls itself `{name}`, not `{self._given}`"
        self.profile, self._agent = profile, Agent(name, version, profile.short, profile.family)

    def _opened(self, asked: _Waiting, result: object) -> None:
        fields = result if isinstance(result, TABLE) else {}
        ident = str(fields.get("sessionId") or asked.session)
        known = self.sessions.get(asked.session)
        if known and asked.method == "session/load":
            self._size -= known.size
            done = isinstance(result, TABLE)
            known.loaded(done=done)
            known.lost |= self.profile.data.sticky_cwd and not done
            if done and known.place[:3] != stated(asked.session, asked.params, self._cwd).place[:3]:
                known = self.open(asked.session, asked.params)  # another load came between, and elsewhere
        if not ident or not isinstance(result, TABLE):
            return
        session = known if known and asked.method == "session/load" else self.open(ident, asked.params)
        session.goes_on(known)
        session.lost |= self.profile.data.adrift and asked.method != "session/new"
        if not self.profile.data.mode.stated:
            session.mode = ""
        self._stated(session, current_mode(fields, self.profile.data.mode.option))

    def _load(self, ident: str, params: Mapping[str, object]) -> None:
        """Start a session afresh because it is being loaded; if that fails, it works where it did before."""
        known = self.session(ident)
        before = known.before if known.before is not None else known.place
        self.open(ident, params).loading(before, known)

    def open(self, ident: str, params: Mapping[str, object]) -> Session:
        """Open session `ident` as the params of `session/new` say; a known session of this id is forgotten."""
        return self._put(stated(ident, params, self._cwd))

    def _put(self, session: Session) -> Session:
        """Open `session`; a known session of its id is forgotten."""
        if self.profile.data.launched:
            session.launched(self.machine.launched)
        session.workspace = self._workspace(session)
        self.forget(session.id)
        while len(self.sessions) >= MOST_SESSIONS:
            self.forget(next(iter(self.sessions)))
            self._forgot = True
        self.sessions[session.id] = session
        return session

    def forget(self, ident: str) -> None:
        """Forget session `ident`."""
        gone = self.sessions.pop(ident, None)
        self._size -= gone.size if gone else 0

    def _keep(self, session: Session, more: int) -> None:
        """Update the size of what is kept; beyond the limit the oldest calls of the largest session are forgotten."""
        self._size += more
        while self._size > MOST_BYTES:
            largest = max(self.sessions.values(), key=lambda one: one.size)
            if not largest.calls:
                break
            self._size -= largest.forget_one()

    def _workspace(self, session: Session) -> Workspace:
        machine = self.machine
        return paths.open_workspace(
            session.cwd,
            session.additional,
            home=machine.home,
            fs=machine.fs,
            tmpdir=machine.tmpdir,
            reserved=machine.reserved,
            heads=machine.heads if session.heads is None else session.heads,
            fold_case=machine.fold_case,
        )

    def session(self, ident: str) -> Session:
        """Return session `ident`; one that was never seen to open has the cwd given from outside, or none."""
        found = self.sessions.get(ident)
        if found is None:
            found = self.open(ident, {})
            found.forgetful = found.bereft = self._forgot
        return found

    def workspace(self, ident: str) -> Workspace:
        """Return the workspace of session `ident`."""
        return self._opened_workspace(self.session(ident))

    def _opened_workspace(self, session: Session) -> Workspace:
        if session.workspace is None:
            session.workspace = self._workspace(session)
        elif session.stale:
            heads = self.machine.heads if session.heads is None else session.heads
            session.workspace = paths.with_heads(session.workspace, heads, self.machine.fs)
        session.stale = False
        return session.workspace

    def use_heads(self, ident: str, heads: tuple[str, ...]) -> None:
        """Resolve the relative patterns of the policy in force for session `ident`, once for each policy."""
        session = self.session(ident)
        before = self.machine.heads if session.heads is None else session.heads
        session.stale |= before != heads
        session.heads = heads

    def reopen(self, machine: Machine) -> None:
        """Switch to the `heads` of another policy; where sessions work stays as it was when they opened."""
        self.machine = machine
        for session in self.sessions.values():
            session.stale = True

    def mode(self, ident: str) -> Mode | None:
        """Return the mode session `ident` is in, None if it was never stated."""
        name = self.session(ident).mode
        return self.profile.mode(name) if name else None

    def _stated(self, session: Session, name: str) -> None:
        """Record the mode an agent says it is in; if its word is no evidence, only a mode that does not ask."""
        if name and (self.profile.data.mode.stated or self.profile.mode(name).unsafe):
            session.mode = name

    def _set(self, asked: _Waiting) -> None:
        """Record that the agent accepted a mode or config option."""
        session, option = self.sessions.get(asked.session), self.profile.data.mode.option
        if session and asked.method == "session/set_mode":
            session.mode = str(asked.params.get("modeId", ""))
        elif session and asked.method == "session/set_config_option" and asked.params.get("configId") == option:
            session.mode = str(asked.params.get("value", ""))

    def _update(self, params: Mapping[str, object]) -> None:
        update, ident = params.get("update"), str(params.get("sessionId", ""))
        if not isinstance(update, TABLE):
            return
        session, sort = self.session(ident), update.get("sessionUpdate")
        if sort == "current_mode_update":
            self._stated(session, str(update.get("currentModeId", "")))
        elif sort == "config_option_update":
            self._stated(session, current_mode(update, self.profile.data.mode.option))
        elif sort == "subagent_update":
            self._adopt(session, update)
        elif sort in TELLING and session.replaying:
            away.went(session, update, self.profile)
        elif sort in TELLING and isinstance(call_id := update.get("toolCallId"), str):
            if self.profile.data.sticky_cwd:
                session.follow(call_id, update, self.machine)
            session.lost |= self.profile.data.adrift and update.get("kind") == "execute"
            self._keep(session, session.told(call_id, keyed(update, self.profile.data.freeform)))
            away.entered(session, call_id, self.profile)

    def _adopt(self, parent: Session, update: Mapping[str, object]) -> None:
        """Record that `parent` made a session; what was observed of that session before is kept."""
        if isinstance(ident := update.get("sessionId"), str) and ident:
            if (child := self.sessions.get(ident)) is None:
                child = self._put(parent.child(ident))
                child.forgetful = child.bereft = self._forgot
            child.placed(parent, update)

    def refuse(self, session_id: str, call_id: str, why: str) -> None:
        """Record that an update of the call was refused: what is known of it no longer counts."""
        self.session(session_id).call(call_id).broken = why

    def forgot(self, session_id: str, calls: Iterable[str], why: str) -> None:
        """Record that updates of these calls were missed: nothing is known of them, nor of where they took a shell."""
        for call_id in calls:
            self.refuse(session_id, call_id, why)
            if self.profile.data.sticky_cwd:
                self.session(session_id).lost = True

    # ---- requests --------------------------------------------------------------------------------

    def _named(self, session: Session, asked: Mapping[str, object]) -> list[Call]:
        """Return the calls a request is about: the one it names, and all open ones if the profile says so."""
        call_id = asked.get("toolCallId")
        if self.profile.data.covers:
            calls = session.calls.values()
            return [call for call in calls if call.call_id == call_id or (call.open and not call.settled)]
        return [session.call(call_id)] if isinstance(call_id, str) and call_id else []

    def _settles(self, calls: list[Call], asked: Mapping[str, object]) -> list[Call]:
        """Return those of a request's calls that its answer settles: which others it was about is not stated."""
        named = [call for call in calls if call.call_id == asked.get("toolCallId")] if len(calls) > 1 else calls
        return named or calls

    def waits(self, params: Mapping[str, object]) -> tuple[str, ...]:
        """Return the fields of a request's details that are still to come, as the profile says."""
        asked, _ = tool_call(params)
        calls = self._named(self.session(str(params.get("sessionId", ""))), asked) if self._races() else []
        return tuple(place for call in calls for place in self._late(call, merge(call, asked, ())))

    def _races(self) -> bool:
        """Say whether details of any call may arrive after its request."""
        return self.profile.races or profiles.generic().races

    def _late(self, call: Call, found: Evidence) -> tuple[str, ...]:
        _, spec = identify(found, self.profile)
        return tuple(place for place in (spec.table.late if spec else ()) if place not in call.arrived)

    def evidence(self, params: Mapping[str, object]) -> tuple[Evidence, ...]:
        """Return what is known of each call a `session/request_permission` is about."""
        asked, fault = tool_call(params)
        calls = [] if fault else self._named(self.session(str(params.get("sessionId", ""))), asked)
        return tuple(self._found(calls, asked, listed(params.get("options"))))

    def _found(self, calls: list[Call], asked: Mapping[str, object], options: list[object]) -> list[Evidence]:
        covers = bool(self.profile.data.covers)
        found = [self._merged(call, asked, options, covers=covers) for call in calls]
        since = [(call, told) for call in calls if call.later and (told := contradicted(call, asked)) is not None]
        found += [self._merged(call, told, options, covers=covers) for call, told in since]
        if (covers or "toolCallId" not in asked) and asked.get("toolCallId") not in [call.call_id for call in calls]:
            found += [merge(Call(""), asked, options)] if says_more(asked) else []
        return found

    def _merged(self, call: Call, asked: Mapping[str, object], options: list[object], *, covers: bool) -> Evidence:
        covered = covers and asked.get("toolCallId") != call.call_id
        found = merge(call, {} if covered else asked, options)
        if self._races() and (late := self._late(call, merge(call, asked, options) if covered else found)):
            found = replace(found, missing=frozenset(late))
        doubt = call.broken or (renamed(call, asked, self.profile) if call.announced and not covered else "")
        return replace(found, fault=doubt) if doubt else found

    def request(self, params: Mapping[str, object]) -> Request:
        """Return what a `session/request_permission` stands for."""
        asked, fault = tool_call(params)
        ident, options = str(params.get("sessionId", "")), listed(params.get("options"))
        profile = profiles.generic() if messages.is_command(params) else self._reader(options)
        session = self.session(ident)
        actions: list[Action] = []
        before: list[str] = []
        evidence = self._found([] if fault else self._named(session, asked), asked, options)
        for found in evidence:
            derived = self._seen(session, before, found).derive(found, profile)
            before.append(found.call_id)
            actions += shifted(derived, len(actions)) if actions else derived
        if profile.data.covers and session.bereft:
            actions.append(Action(frozenset({"other"}), opaque=FORGOTTEN))
        if params.get("toolCall") is not None and params.get("subject") is not None:
            fault = fault or "it speaks of two things at once"
            actions += [Action(frozenset({"other"}), opaque=fault)] if actions else []
        if not actions:
            kinds = merge(Call(""), asked, ()).kinds
            actions = [Action(kinds, opaque=fault or "it names no tool call that is known to be open")]
        request = self._request(ident, asked, options, tuple(actions))
        shown = tuple([(diff.path, *diff.texts) for found in evidence for diff in found.diffs])
        return replace(request, shown=shown) if shown else request

    def _reader(self, options: list[object]) -> Profile:
        """Return the profile that reads a request; an agent without a name may be known by the options it offers."""
        profile = self.profile
        if self._agent.name or profile.short != profiles.GENERIC:
            return profile
        return profiles.nameless(option.id for option in options_of(options))

    def around(self, ident: str) -> Surroundings:
        """Return the surroundings of session `ident`; each root's `.policyd` counts as policyd's own too."""
        return self._seen(self.session(ident)).around

    def _seen(self, session: Session, before: Iterable[str] = (), found: Evidence | None = None) -> Seen:
        machine, workspace = self.machine, self._opened_workspace(session)
        apart = found is not None and away.elsewhere(found, session, self.sessions, self.profile)
        stands, known = () if apart else self._stands(session, before), session.seen
        lost = apart or (self.profile.data.adrift and session.lost)
        if known and (known.around.cwds, known.around.adrift) == (stands, lost) and known.around.workspace is workspace:
            return known
        reserved = (*machine.reserved, *(f"{root.rstrip('/')}/.policyd" for root in workspace.roots))
        roams = self.profile.data.sticky_files or self.profile.data.shared
        around = Surroundings(workspace, machine.fs, machine.shell, reserved, session.servers, stands, roams, lost)
        session.seen = Seen(around)
        return session.seen

    def _stands(self, session: Session, before: Iterable[str]) -> tuple[str, ...]:
        """Return where a session's shell may be: if all sessions share one shell, wherever any of them may be."""
        own = session.stands(before)
        if not self.profile.data.shared:
            return own
        others = [other for other in self.sessions.values() if other.cwd and other is not session]
        every = [own, *(other.stands() for other in others)]
        return tuple(dict.fromkeys(place for places in every for place in places)) if all(every) else ()

    def _request(
        self, ident: str, asked: Mapping[str, object], options: list[object], actions: tuple[Action, ...]
    ) -> Request:
        offered = options_of(options)
        data, title = self.profile.data, asked.get("title")
        plain = self.profile.plain([option.id for option in offered]) if data.menu else None
        once = [option for option in offered if option.kind == "allow_once"]
        refusals = [option.id for option in offered if option.kind.startswith("reject")] if data.refuse else []
        return Request(
            ident,
            str(asked.get("toolCallId", "")),
            title if isinstance(title, str) else "",
            offered,
            actions,
            menu=plain is None and len(once) != 1,
            plain=plain,
            refusal=next((ref for ref in data.refuse if ref in refusals), None) if refusals else None,
        )

    def side_door(self, method: str, params: Mapping[str, object]) -> Request:
        """Return what a call of `fs/*` or `terminal/create` stands for."""
        ident = str(params.get("sessionId", ""))
        return Request(ident, "", method, (), door_actions(method, params, self.around(ident)), side_door=method)

    def _settle(self, asked: _Waiting, message: Mapping[str, object]) -> None:
        """Record the answer to a permission request."""
        session = self.sessions.get(asked.session)
        if session is None or (self.profile.data.covers and "error" in message):
            return
        for ident in asked.calls:
            self._size += session.settle(ident)
        if session.leaving:
            yes = allows(asked.params, message)
            for ident in asked.calls:
                session.may_run(ident, yes=yes)
