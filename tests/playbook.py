"""Playbooks: conversations with the enforcement, as text. Messages in, commands out, both readable.

    agent> permission 5 call-1 "rm -rf build"
        record deny user:no-rm
        client: blocked "rm -rf build"
        agent: answer 5 selected no

A line with `>` is an event, `agent> in t permission …` one of session `t` instead of `s`; the indented lines below it
are all commands that follow, in order. `play` runs one and returns the text as it really went, so that a test compares
two texts. policyd's own ids are shown as `#1`, `#2`, …; `same as #1` is a line that left as it came but for its id.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from policyd import acp
from policyd.model import (
    Action,
    Agent,
    Context,
    Decision,
    Effect,
    Judged,
    Layer,
    Mode,
    Option,
    PathRef,
    Request,
    Role,
    RuleRef,
    SimpleCommand,
    Source,
    Tool,
    Word,
    Workspace,
)
from policyd.session import (
    Ask,
    Closed,
    Command,
    Connection,
    Failed,
    Frame,
    Moment,
    Note,
    Record,
    Reloaded,
    Remember,
    Reply,
    Send,
    Settings,
    Side,
    Tick,
    Withdraw,
)
from policyd.session.ports import Asking, Verdict

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OPTIONS = (("yes", "Allow once", "allow_once"), ("no", "Reject", "reject_once"))
UNSAFE = frozenset({"auto", "yolo"})
WORKSPACE = Workspace("/w", ("/w",), ("/w",), "/home/dev")


def moment(seconds: float) -> Moment:
    """The time so many seconds after the start."""
    return Moment(START + timedelta(seconds=seconds), seconds)


@dataclass
class ScriptedDecider:
    """A decision point that looks up titles, paths and commands in a table; modes as most agents have them."""

    table: dict[str, str] = field(default_factory=dict)
    """What a request is called -> allow, ask, deny or raise."""
    default: str = "ask"
    allowed_modes: frozenset[str] = frozenset()
    fail: frozenset[str] = frozenset()
    """Methods of the decider that raise."""
    seen: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    calls: dict[str, dict[str, object]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    client_name: str = ""
    memory: bool = True

    def _may_fail(self, name: str) -> None:
        if name in self.fail:
            raise RuntimeError(f"{name} failed")

    def observe(self, side: Side, message: Mapping[str, object]) -> None:
        self._may_fail("observe")
        self.seen.append((side.value, message))
        params = message.get("params")
        update = params.get("update") if isinstance(params, dict) else None
        if isinstance(update, dict) and str(update.get("sessionUpdate")).startswith("tool_call"):
            self.calls.setdefault(str(update.get("toolCallId")), {}).update(update)

    def refused(self, session_id: str, call_id: str) -> None:
        self.calls[call_id] = {"title": "broken"}

    def closed(self, session_id: str) -> None:
        self._may_fail("closed")

    def ended(self, session_id: str) -> None:
        self.calls.clear()

    def names(self) -> frozenset[str]:
        return frozenset({"command", "path"})

    def client(self) -> Mapping[str, str]:
        return {"name": self.client_name, "version": "1"}

    def context(self, session_id: str, now: Moment) -> Context:
        self._may_fail("context")
        return Context(WORKSPACE, now.wall, Agent("scripted", "1"))

    def project(self, session_id: str) -> str:
        return "/w"

    def remembers(self) -> bool:
        return self.memory

    def person(self) -> bool:
        self._may_fail("person")
        return True

    def late(self, params: Mapping[str, object]) -> bool:
        self._may_fail("late")
        call = _call(params)
        known = self.calls.get(str(call.get("toolCallId")), {})
        return str(call.get("title", "")).startswith("late") and "rawInput" not in known

    def permission(self, params: Mapping[str, object], now: Moment) -> Verdict:
        self._may_fail("permission")
        call = _call(params)
        self.named.add(str(call.get("toolCallId")))
        known = self.calls.get(str(call.get("toolCallId")), {})
        title = str(call.get("title") or known.get("title") or "")
        options = tuple(Option(one["optionId"], one["name"], one["kind"]) for one in _dicts(params.get("options")))
        request = Request(
            str(params.get("sessionId")), str(call.get("toolCallId")), title, options, self._actions(call, title, now)
        )
        once = [one for one in options if one.kind == "allow_once"]
        return self._verdict(replace(request, menu=len(once) != 1), title, now)

    def _actions(self, call: Mapping[str, object], title: str, now: Moment) -> tuple[Action, ...]:
        if call.get("kind") == "switch_mode":
            return (Action(frozenset({"switch_mode"})),)
        content = call.get("content")
        paths = [str(one.get("path")) for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        if paths:
            return tuple(Action(frozenset({"edit"}), path=_ref(path)) for path in paths)
        return (_command_action(title),)

    def again(self, verdict: Verdict, now: Moment) -> Decision:
        self._may_fail("again")
        return self._verdict(verdict.request, verdict.request.title, now).decision

    def door(self, method: str, params: Mapping[str, object], now: Moment) -> Verdict:
        self._may_fail("door")
        name = str(params.get("path") or " ".join([str(params.get("command")), *_texts(params.get("args"))]))
        kind = {"fs/read_text_file": "read", "fs/write_text_file": "edit"}.get(method, "execute")
        action = _command_action(name) if kind == "execute" else Action(frozenset({kind}), path=_ref(name))
        request = Request(str(params.get("sessionId")), "", name, (), (action,), side_door=method)
        return self._verdict(request, name, now)

    def _verdict(self, request: Request, name: str, now: Moment) -> Verdict:
        word = self.table.get(name, self.default)
        if word == "raise":
            raise RuntimeError("the decision failed")
        effect = Effect[word.upper()]
        rule = RuleRef(
            Layer.USER, f"{word}-rule" if name in self.table else word, effect, default=name not in self.table
        )
        hits = () if rule.default else (rule,)
        actions = tuple(
            Judged(action, effect, hits=hits, defaults=() if hits else (rule,)) for action in request.actions
        )
        decision = Decision(effect, Source.RULE, f"{word} it", (rule,), (rule,), actions, "r1")
        return Verdict(request, decision, self.context(request.session_id, now))

    def servers(self, method: str, params: Mapping[str, object], now: Moment) -> Verdict:
        self._may_fail("servers")
        return self._verdict(Request("", "", method, (), ()), method, now)

    def switch(self, method: str, params: Mapping[str, object], now: Moment) -> Verdict | None:
        self._may_fail("switch")
        mode = str(_mode_of(method, params))
        if mode not in UNSAFE:
            return None
        action = Action(frozenset({"switch_mode"}), mode=Mode(mode))
        effect = Effect.ALLOW if mode in self.allowed_modes else Effect.DENY
        rule = RuleRef(Layer.USER, f"mode-{mode}", effect, default=effect is Effect.DENY)
        decision = Decision(effect, Source.RULE, f"mode {mode}", (rule,), (rule,), (Judged(action, effect),))
        request = Request(str(params.get("sessionId")), "", f"mode {mode}", (), (action,))
        return Verdict(request, decision, self.context(request.session_id, now))

    def chosen(self, verdict: Verdict, option: str, now: Moment) -> Verdict | None:
        mode = option.removeprefix("to-")
        return self.switch("session/set_mode", {"sessionId": verdict.request.session_id, "modeId": mode}, now)

    def asking(self, session_id: str, opened: Mapping[str, object]) -> Asking:
        self._may_fail("asking")
        modes = opened.get("modes")
        current = str(modes.get("currentModeId", "")) if isinstance(modes, dict) else ""
        if current == "stuck":
            return Asking(missing="the agent has no mode that asks")
        if current not in UNSAFE:
            return Asking()
        steps: list[tuple[str, Mapping[str, object]]] = [
            ("session/set_mode", {"sessionId": session_id, "modeId": "default"})
        ]
        if "configOptions" in opened:
            steps.append(("session/set_config_option", {"sessionId": session_id, "configId": "all", "value": "off"}))
        return Asking(tuple(steps), "default", {"mode": "default", "all": "off"})

    def stands_for(self, session_id: str, update: Mapping[str, object]) -> tuple[Action, ...]:
        self._may_fail("stands_for")
        raw = update.get("rawInput")
        return (_command_action(str(raw.get("command"))),) if isinstance(raw, dict) else ()

    def unasked(self, session_id: str, update: Mapping[str, object], now: Moment) -> Verdict | None:
        self._may_fail("unasked")
        call_id = str(update.get("toolCallId"))
        if call_id in self.named:
            return None
        title = str({**self.calls.get(call_id, {}), **update}.get("title", ""))
        return self._verdict(Request(session_id, call_id, title, (), (_command_action(title),)), title, now)


def _call(params: Mapping[str, object]) -> dict[str, object]:
    call = params.get("toolCall")
    return call if isinstance(call, dict) else {}


def _dicts(value: object) -> list[dict[str, str]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _ref(path: str) -> PathRef:
    return PathRef(path, (path,), inside=path.startswith("/w/"))


def _command_action(text: str) -> Action:
    words = tuple(Word(word) for word in (text.split() or ["?"]))
    return Action(
        frozenset({"execute"}), Role.PRIMARY, command=SimpleCommand(words, text), name=Tool("sh"), cwd=("/w",)
    )


def _mode_of(method: str, params: Mapping[str, object]) -> object:
    update = params.get("update")
    if isinstance(update, dict):
        return update.get("currentModeId")
    return params.get("modeId") or params.get("value") or (params.get("_meta") or {}).get("mode")  # type: ignore[attr-defined]


# ---- playing -------------------------------------------------------------------------------------------


class Play:
    """One connection and its clock."""

    def __init__(
        self, decider: ScriptedDecider | None = None, settings: Settings | None = None, *, blocks: bool = False
    ) -> None:
        self.decider = decider or ScriptedDecider()
        self.blocks = blocks
        """Lines come as blocks, as a transport hands them over."""
        self.connection = Connection(self.decider, settings or Settings(), nonce="n")
        self.time = 0.0
        self.commands: list[Command] = []
        self._own: dict[str, str] = {}
        self._asks: list[int] = []
        self._payloads: list[Mapping[str, object]] = []
        self._records: list[int] = []

    def frame(self, side: str, line: bytes) -> list[Command]:
        if self.blocks:
            return self._keep(self.connection.feed(Side(side), line + b"\n", moment(self.time)))
        return self._keep(self.connection.handle(Frame(Side(side), line), moment(self.time)))

    def message(self, side: str, **fields: object) -> list[Command]:
        return self.frame(side, json.dumps({"jsonrpc": "2.0", **fields}).encode())

    def tick(self, seconds: float) -> list[Command]:
        self.time += seconds
        return self._keep(self.connection.handle(Tick(), moment(self.time)))

    def _keep(self, commands: list[Command]) -> list[Command]:
        self.commands += commands
        self._asks += [one.id for one in commands if isinstance(one, Ask)]
        self._payloads += [one.payload for one in commands if isinstance(one, Ask)]
        self._records += [one.key for one in commands if isinstance(one, Record)]
        return commands

    def event(self, who: str, text: str) -> tuple[list[Command], bytes]:
        """Perform one event of a playbook; return what followed and the line that went in."""
        if who in ("agent", "client"):
            line = self._line(who, text)
            return self.frame(who, line), line
        now = moment(self.time)
        if who == "tick":
            return self.tick(float(text)), b""
        if who == "close":
            return self._keep(self.connection.handle(Closed(Side(text)), now)), b""
        if who == "reload":
            return self._keep(self.connection.handle(Reloaded(), now)), b""
        if who == "reply":
            return self._reply(text, now), b""
        if who == "unwritten":
            return self._keep(self.connection.handle(Failed(self._records[-1], text), now)), b""
        if who == "unasked":
            return self._keep(self.connection.handle(Failed(self._asks[-1], text), now)), b""
        if who == "policy":
            name, word = shlex.split(text)
            self.decider.table[name] = word
            return [], b""
        raise ValueError(who)

    def _reply(self, text: str, now: Moment) -> list[Command]:
        payload = self._payloads[-1]
        answer = (
            {"nonce": payload["nonce"], "digest": payload["digest"], **json.loads(text)} if text != "abstain" else None
        )
        return self._keep(self.connection.handle(Reply(self._asks[-1], answer), now))

    def _line(self, who: str, text: str) -> bytes:
        for ident, short in self._own.items():
            text = text.replace(f'"{short}"', json.dumps(ident))
        if text == "raw" or text.startswith("raw "):
            return text[4:].encode()
        if text.startswith("{"):
            return b'{"jsonrpc":"2.0",' + text[1:].encode()
        words = shlex.split(text)
        session = words[1] if words[0] == "in" else ""
        words = words[2:] if session else words
        line = json.dumps({"jsonrpc": "2.0", **MACROS[words[0]](*words[1:])}, separators=(",", ":")).encode()
        return line.replace(b'"sessionId":"s"', f'"sessionId":"{session}"'.encode()) if session else line

    def short(self, ident: str) -> str:
        return self._own.setdefault(ident, f"#{len(self._own) + 1}")

    # ---- rendering ----------------------------------------------------------------------------------

    def render(self, command: Command, line: bytes) -> list[str]:
        match command:
            case Send(side, data, record):
                held = " (after its record)" if record is not None else ""
                return [f"{side.value}: {self._sent(one, line)}{held}" for one in data.splitlines()]
            case Record(_, row):
                return [_recorded(row)]
            case Ask(_, step, payload, _):
                return [f"ask {step} {payload['title']!r}"]
            case Withdraw():
                return ["withdraw"]
            case Remember(grants):
                return [f"remember {grant.effect.word} {grant.covers}" for grant in grants]  # type: ignore[attr-defined]
            case Note(text, loud):
                return [f"{'LOUD' if loud else 'note'} {text}"]
        raise ValueError(command)

    def _sent(self, data: bytes, line: bytes) -> str:
        if data == line:
            return "same"
        message = json.loads(data)
        ident = message.get("id")
        shown = self.short(ident) if isinstance(ident, str) and ident.startswith("policyd:") else json.dumps(ident)
        if "method" in message:
            same = acp.has_method(line) and acp.envelope(data).params == acp.envelope(line).params
            return f"same as {shown}" if same else self._called(message, shown)
        if "error" in message:
            return f"error {shown} {message['error']['message']}"
        outcome = message["result"].get("outcome") if isinstance(message["result"], dict) else None
        if isinstance(outcome, dict):
            return f"answer {shown} {' '.join(outcome.values())}"
        return f"result {shown} {json.dumps(message['result'])}"

    def _called(self, message: dict[str, object], shown: str) -> str:
        method, params = message["method"], message["params"]
        assert isinstance(params, dict)
        if method == "session/request_permission":
            options = " ".join(one["optionId"] for one in params["options"])
            title = re.sub(r" \[(Always|Never).*\]$", "", str(params["toolCall"].get("title")), flags=re.DOTALL)
            return f"permission {shown} {title!r} [{options}]"
        update = params.get("update", {})
        if str(update.get("toolCallId", "")).startswith("policyd-"):
            return f"shown {update['title']!r}"
        if update.get("sessionUpdate") == "current_mode_update":
            return f"mode {update['currentModeId']}"
        body = json.dumps(params)
        for ident, short in self._own.items():
            body = body.replace(ident, short)
        return f"{method} {shown + ' ' if 'id' in message else ''}{body}"


def _recorded(row: Mapping[str, object]) -> str:
    if row["event"] != "decision":
        return f"record {row['event']}"
    rules = row["rules"]
    label = " ".join(str(rule["rule"]) for rule in rules) if isinstance(rules, list) else ""
    return " ".join(str(part) for part in ("record", row["effect"], row["outcome"], row["by"], label) if part)


def permission(ident: str, call: str, title: str, *kinds: str) -> dict[str, object]:
    """A permission request with plain options, or with options `id=kind`."""
    options = [{"optionId": one[0], "name": one[1], "kind": one[2]} for one in OPTIONS]
    if kinds:
        options = [
            {"optionId": one.partition("=")[0], "name": one.partition("=")[0].title(), "kind": one.partition("=")[2]}
            for one in kinds
        ]
    params = {"sessionId": "s", "toolCall": {"toolCallId": call, "title": title}, "options": options}
    return {"id": json.loads(ident), "method": "session/request_permission", "params": params}


def update(call: str, *fields: str) -> dict[str, object]:
    """A `tool_call_update`; fields `name=value`, JSON where it is some."""
    body: dict[str, object] = {"sessionUpdate": "tool_call_update", "toolCallId": call}
    for one in fields:
        name, _, value = one.partition("=")
        body[name] = json.loads(value) if value[:1] in "{[" else value
    return {"method": "session/update", "params": {"sessionId": "s", "update": body}}


def opened(ident: str, mode: str = "", *more: str) -> dict[str, object]:
    """The response that opens session `s` in a mode; `more` = `options`: with config options."""
    result: dict[str, object] = {"sessionId": "s"}
    if mode:
        result["modes"] = {"currentModeId": mode, "availableModes": [{"id": mode}, {"id": "default"}]}
    if more:
        result["configOptions"] = [
            {"id": "mode", "currentValue": mode, "type": "select"},
            {"id": "all", "currentValue": "on"},
            {"id": "model", "currentValue": "big"},
        ]
    return {"id": json.loads(ident), "result": result}


def _edit(ident: str, call: str, path: str, text: str) -> dict[str, object]:
    request = permission(ident, call, f"edit {path}")
    params = request["params"]
    assert isinstance(params, dict)
    params["toolCall"]["content"] = [{"type": "diff", "path": path, "oldText": None, "newText": text}]
    return request


MACROS: dict[str, Callable[..., dict[str, object]]] = {
    "permission": permission,
    "edit": _edit,
    "update": update,
    "opened": opened,
    "new": lambda ident: {"id": json.loads(ident), "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}},
    "load": lambda ident: {
        "id": json.loads(ident),
        "method": "session/load",
        "params": {"sessionId": "s", "cwd": "/w", "mcpServers": []},
    },
    "prompt": lambda ident: {
        "id": json.loads(ident),
        "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]},
    },
    "mode": lambda ident, mode: {
        "id": json.loads(ident),
        "method": "session/set_mode",
        "params": {"sessionId": "s", "modeId": mode},
    },
    "in-mode": lambda mode: {
        "method": "session/update",
        "params": {"sessionId": "s", "update": {"sessionUpdate": "current_mode_update", "currentModeId": mode}},
    },
    "says": lambda text: {
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}},
        },
    },
    "chose": lambda ident, option: {
        "id": json.loads(ident) if not ident.startswith("policyd:") else ident,
        "result": {"outcome": {"outcome": "selected", "optionId": option}},
    },
    "cancelled": lambda ident: {
        "id": json.loads(ident) if not ident.startswith("policyd:") else ident,
        "result": {"outcome": {"outcome": "cancelled"}},
    },
    "ok": lambda ident: {"id": json.loads(ident) if not ident.startswith("policyd:") else ident, "result": {}},
    "error": lambda ident: {
        "id": json.loads(ident) if not ident.startswith("policyd:") else ident,
        "error": {"code": -32603, "message": "no"},
    },
    "cancel": lambda: {"method": "session/cancel", "params": {"sessionId": "s"}},
    "cancel-request": lambda ident: {
        "method": "$/cancel_request",
        "params": {"requestId": json.loads(ident) if not ident.startswith("policyd:") else ident},
    },
    "read": lambda ident, path: {
        "id": json.loads(ident),
        "method": "fs/read_text_file",
        "params": {"sessionId": "s", "path": path},
    },
    "write": lambda ident, path, text: {
        "id": json.loads(ident),
        "method": "fs/write_text_file",
        "params": {"sessionId": "s", "path": path, "content": text},
    },
    "terminal": lambda ident, command, *args: {
        "id": json.loads(ident),
        "method": "terminal/create",
        "params": {"sessionId": "s", "command": command, **({"args": list(args)} if args else {})},
    },
}


def play(text: str, *, blocks: bool = False) -> str:
    """Run a playbook; return it as it really went. `blocks`: as a transport hands lines over.

    Lines that begin with `!` set the stage: `! settings {…}`, `! policy NAME EFFECT`, `! allow-mode MODE`,
    `! fail METHOD`, `! client NAME`, `! memory off`.
    """
    decider, settings, stage, out = ScriptedDecider(), Settings(), None, []
    for row in text.strip().splitlines():
        line = row.strip()
        event = re.match(r"(\w+)>\s*(.*)", line)
        if line.startswith("!"):
            settings = _set(line, decider, settings)
        if line.startswith(("!", "#")) or not line:
            out.append(line)
        if event is None:
            continue
        out.append(line)
        stage = stage or Play(decider, settings, blocks=blocks)
        commands, sent = stage.event(event.group(1), event.group(2))
        out += [f"    {shown}" for command in commands for shown in stage.render(command, sent)]
    return "\n".join(out)


def _set(line: str, decider: ScriptedDecider, settings: Settings) -> Settings:
    _, word, rest = line.split(maxsplit=2)
    if word == "settings":
        fields: dict[str, Any] = json.loads(rest)
        changed: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in fields.items()}
        return replace(settings, **changed)
    if word == "policy":
        name, effect = shlex.split(rest)
        decider.table[name] = effect
    elif word == "allow-mode":
        decider.allowed_modes |= {rest}
    elif word == "fail":
        decider.fail |= {rest}
    elif word == "client":
        decider.client_name = rest
    else:
        decider.memory = False
    return settings


def frame(connection: Connection, side: Side, message: dict[str, object], at: float = 0.0) -> list[Command]:
    line = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return connection.handle(Frame(side, line), moment(at))


def sent(commands: list[Command], side: Side) -> list[dict[str, object]]:
    lines = [line for one in commands if isinstance(one, Send) and one.side is side for line in one.data.splitlines()]
    return [json.loads(line) for line in lines]
