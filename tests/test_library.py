"""policyd inside somebody else's program: importing it does nothing, and a cancelled question leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Coroutine, Generator, Sequence
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from policyd import load
from policyd.policy import PolicyError
from policyd.sdk import Guard

# ---- importing ----------------------------------------------------------------------------------------

WATCHED = """
import json, os, signal, sys, threading
import asyncio, logging, warnings, atexit          # what a program has at hand already

done = []
CODE = (".py", ".pyc", ".so")
HARMLESS = ("import", "exec", "compile", "marshal.", "object.", "sys._getframe", "code.__new__", "builtins.id",
            "ctypes.", "os.listdir", "os.scandir", "cpython.", "_thread.get_ident", "sys.set_", "re2")

def watch(event, given):
    if event == "open":
        path = str(given[0])
        if not path.endswith(CODE) and not isinstance(given[0], int):
            done.append(["open", path])
    elif not event.startswith(HARMLESS):
        done.append([event, repr(given)[:200]])

def state():
    handlers = {number: repr(signal.getsignal(number)) for number in signal.valid_signals()}
    root = logging.getLogger()
    return {
        "signals": handlers, "threads": threading.active_count(), "wakeup": signal.set_wakeup_fd(-1),
        "logging": [root.level, len(root.handlers), logging.raiseExceptions, logging.root.manager.disable],
        "loggers": sorted(name for name in logging.root.manager.loggerDict if name.startswith("policyd")),
        "hooks": [repr(sys.excepthook), repr(threading.excepthook), repr(sys.displayhook), len(sys.meta_path)],
        "loop": repr(asyncio.events._event_loop_policy), "exits": atexit._ncallbacks(),
        "switch": sys.getswitchinterval(), "recursion": sys.getrecursionlimit(), "environ": dict(os.environ),
        "descriptors": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
        "umask": os.umask(os.umask(0)) and os.umask(os.umask(0)),
    }

before = state()
sys.addaudithook(watch)
import importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
seen = list(done)
after = state()
print(json.dumps({"done": seen, "changed": sorted(key for key in before if before[key] != after[key])}))
"""
LIBRARY = ("policyd", "policyd.sdk")
ROOMS = (
    "policyd.acp",
    "policyd.actions",
    "policyd.audit",
    "policyd.authorizer",
    "policyd.engine",
    "policyd.grants",
    "policyd.policy",
    "policyd.service",
    "policyd.session",
    "policyd.daemon",
    "policyd.proxy",
    "policyd.cli",
)


@pytest.mark.parametrize("names", [LIBRARY, (*LIBRARY, *ROOMS)], ids=["library", "every room"])
def test_importing_does_nothing(names: Sequence[str]) -> None:
    """No file but code is opened, no process, thread, signal handler, exit hook or logger is made."""
    words = [sys.executable, "-c", WATCHED, *names]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"done": [], "changed": []} and done.stderr == ""


NOISY = """
import atexit, logging, os, signal, socket, sys, threading
open("/etc/hostname").close()
socket.socket().close()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
threading.Thread(target=threading.Event().wait, daemon=True).start()
logging.basicConfig()
logging.getLogger("policyd.noisy")
atexit.register(print)
os.environ["NOISY"] = "1"
held = os.open("/", os.O_RDONLY)
"""


def test_what_an_import_must_not_do_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    words = [sys.executable, "-c", WATCHED, "noisy"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    found = json.loads(subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, env=env).stdout)
    assert {"open", "socket.__new__"} <= {event for event, _ in found["done"]}
    wanted = {"signals", "threads", "logging", "loggers", "exits", "environ", "descriptors"}
    assert wanted <= set(found["changed"])


# ---- cancelling ---------------------------------------------------------------------------------------

POLICY = """
version = 1
[[rule]]
effect = "allow"
command = "ls"
[[rule]]
effect = "deny"
command = "rm"
[[rule]]
effect = "ask"
command = "git push"
"""
COMMANDS = ("ls", "rm x", "git push", "make", None)
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Suspensions:
    """Counts the suspensions of all tasks of a loop, and cancels the task that makes a given one."""

    def __init__(self) -> None:
        self.count, self.cancel_at = 0, 0

    def task(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        """Make a task, as a loop does."""
        return asyncio.Task(Counted(coro, self), loop=loop, **more)

    def suspended(self) -> None:
        """A task is about to wait."""
        self.count += 1
        task = asyncio.current_task()
        if self.count == self.cancel_at and task is not None:
            task.cancel()


class Counted(Coroutine[Any, Any, Any]):
    """A coroutine whose suspensions are counted."""

    def __init__(self, inner: Coroutine[Any, Any, Any], suspensions: Suspensions) -> None:
        self.inner, self.suspensions = inner, suspensions

    def send(self, value: Any) -> Any:
        found = self.inner.send(value)
        self.suspensions.suspended()
        return found

    def throw(self, *error: Any) -> Any:
        found = self.inner.throw(*error)
        self.suspensions.suspended()
        return found

    def close(self) -> None:
        self.inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.inner.__await__()


class Wire:
    """The agent's end: answers the client's requests, and asks while it is prompted."""

    def __init__(self, requests: Sequence[dict[str, Any]]) -> None:
        self.requests = requests
        self.answers: dict[object, list[dict[str, Any]]] = {}
        self.prompt: object = None
        self.ready: deque[dict[str, Any] | None] = deque()
        self.rung = asyncio.Event()

    def put(self, message: dict[str, Any] | None) -> None:
        """Send to the client."""
        self.ready.append(message)
        self.rung.set()

    async def send(self, message: dict[str, Any]) -> None:
        """Take a message of the client."""
        await asyncio.sleep(0)
        method, ident = message.get("method"), message.get("id")
        result: dict[str, Any] = {"protocolVersion": 1} if method == "initialize" else {"sessionId": "s1"}
        if method is None:
            self.answers.setdefault(ident, []).append(message)
            if len(self.answers) == len(self.requests):
                self.put({"jsonrpc": "2.0", "id": self.prompt, "result": {"stopReason": "end_turn"}})
        elif method == "session/prompt":
            self.prompt = ident
            for number, params in enumerate(self.requests):
                asked = {"id": f"a{number}", "method": "session/request_permission", "params": params}
                self.put({"jsonrpc": "2.0", **asked})
        else:
            self.put({"jsonrpc": "2.0", "id": ident, "result": result})

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message for the client."""
        while not self.ready:
            self.rung.clear()
            await self.rung.wait()
        return self.ready.popleft()

    async def close(self) -> None:
        """End."""
        await asyncio.sleep(0)


class Person:
    """A client whose dialogs take some turns of the loop and hold a descriptor while they are open."""

    def __init__(self, kinds: Sequence[str], turns: int) -> None:
        self.kinds, self.turns, self.open = kinds, turns, 0
        self.agreed: set[str] = set()

    def on_connect(self, conn: Any) -> None:
        """Nothing."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Nothing."""

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        """Show a dialog."""
        reading, writing = os.pipe()
        self.open += 1
        try:
            for _turn in range(self.turns):
                await asyncio.sleep(0)
            kind = self.kinds[int(tool_call.tool_call_id) % len(self.kinds)]
            if kind == "fails":
                raise RuntimeError("the dialog failed")
            if kind in ("yes", "always"):
                self.agreed.add(tool_call.tool_call_id)
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=kind))
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        finally:
            self.open -= 1
            os.close(reading)
            os.close(writing)


def request(number: int, command: str | None) -> dict[str, Any]:
    """Return the params of one permission request."""
    told = {"rawInput": {"command": command}, "kind": "execute"} if command else {}
    return {"sessionId": "s1", "toolCall": {"toolCallId": str(number), "title": "x", **told}, "options": OPTIONS}


async def give_up(waiting: asyncio.Task[Any]) -> None:
    """Cancel a task when the loop has turned so often that nothing can come any more: whoever read was cancelled."""
    for _ in range(1_000):
        await asyncio.sleep(0)
    waiting.cancel()


class Run:
    """One conversation, cancelled somewhere."""

    def __init__(self, policy: Any, seed: int) -> None:
        rng = random.Random(seed)  # noqa: S311
        self.commands = [rng.choice(COMMANDS) for _ in range(rng.randint(1, 4))]
        self.person = Person(rng.sample(("yes", "always", "none", "fails"), 2), rng.randint(0, 3))
        self.policy, self.suspensions = policy, Suspensions()

    def play(self, home: str, cancel_at: int) -> int:
        """Play it; return how often anything was suspended. Whatever is left behind is a failure."""
        self.suspensions.cancel_at = cancel_at
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            loop.set_task_factory(self.suspensions.task)
            try:
                runner.run(self._talk(home))
            except (asyncio.CancelledError, ConnectionError, acp.RequestError):
                assert cancel_at
            assert not [task for task in asyncio.all_tasks(loop) if not task.done()]
        assert self.person.open == 0 and len(self.guard._waiting) <= len(self.commands)
        for ident, answers in self.wire.answers.items():
            assert len(answers) == 1
            self._check(int(str(ident)[1:]), answers[0])
        return self.suspensions.count

    def _check(self, number: int, answer: dict[str, Any]) -> None:
        """Hold one answer against policy and person."""
        outcome = answer.get("result", {}).get("outcome", {})
        if outcome.get("optionId") in ("yes", "always"):
            may_ask = self.commands[number] not in ("ls", "rm x")
            assert self.commands[number] == "ls" or (may_ask and str(number) in self.person.agreed)

    async def _talk(self, home: str) -> None:
        self.wire = Wire([request(number, command) for number, command in enumerate(self.commands)])
        self.guard = Guard(self.policy, home=home)
        agent = acp.connect_to_agent(self.guard.wrap(self.person), self.wire, observers=[self.guard.observe])
        mine = asyncio.current_task()
        assert mine
        idle = asyncio.Task(give_up(mine), loop=asyncio.get_running_loop())  # not counted
        try:
            await agent.initialize(protocol_version=1, client_info=Implementation(name="tests", version="1"))
            session = await agent.new_session(cwd=home, mcp_servers=[])
            await agent.prompt(session.session_id, [acp.text_block("go")])
        finally:
            idle.cancel()
            await agent.close()


@pytest.mark.parametrize("runs", [60, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_a_client_cancelled_at_any_await_leaves_nothing_and_allows_nothing(
    tmp_path: Path, runs: int, caplog: pytest.LogCaptureFixture
) -> None:
    """For many conversations, one run for each time anything is suspended, in which just that is cancelled."""
    (tmp_path / "policy.toml").write_text(POLICY)
    policy, home, before = load(tmp_path / "policy.toml"), str(tmp_path), set(os.listdir("/proc/self/fd"))
    done = seed = 0
    reached: Counter[bool] = Counter()
    while done < runs:
        seed += 1
        suspensions = Run(policy, seed).play(home, 0)
        for at in range(1, suspensions + 1):
            count = Run(policy, seed).play(home, at)
            reached[count >= at] += 1
        done += suspensions
    print(f"\n{done} runs over {seed} conversations; {reached[True]} were cancelled")
    assert reached[True] == done and set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("several", [False, True])
def test_a_program_that_loads_a_policy_has_its_examples_tried(several: bool, tmp_path: Path) -> None:
    wrong = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = "ls"\nmatch = "execute rm x"\n'
    (tmp_path / "a.toml").write_text(wrong)
    (tmp_path / "b.toml").write_text(wrong if several else POLICY)
    with pytest.raises(PolicyError) as found:
        load(tmp_path, home=str(tmp_path))
    assert len(found.value.diagnostics) == 1 + several
    assert "a.toml:5" in str(found.value) and "`execute rm x` does not match" in str(found.value)


def test_a_request_that_was_cancelled_is_not_what_a_later_one_is_judged_by(tmp_path: Path) -> None:
    """The task of the first was cancelled before it ran; the second is about the same call and says another thing."""
    (tmp_path / "policy.toml").write_text(POLICY)
    guard = Guard(load(tmp_path / "policy.toml"), home=str(tmp_path))
    person = Person(("yes",), 0)
    for ident, command in enumerate(("ls", "rm x")):
        guard.observe(seen({"id": ident, "method": "session/request_permission", "params": request(0, command)}))
    assert chosen(guard, person, "rm x") == "no"
    guard.observe(seen({"id": 1, "method": "session/request_permission", "params": request(0, "ls")}))
    assert chosen(guard, person, "git push") is None, "nobody observed that one"
    assert chosen(guard, person, "ls") == "yes"


def test_of_requests_that_differ_where_the_sdk_does_not_look_none_is_taken_for_the_other(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    guard = Guard(load(tmp_path / "policy.toml"), home=str(tmp_path))
    for ident, more in enumerate(({}, {"surprise": "rm x"})):
        params = {**request(0, "ls"), **more}
        guard.observe(seen({"id": ident, "method": "session/request_permission", "params": params}))
    assert chosen(guard, Person(("yes",), 0), "ls") is None


def seen(message: dict[str, Any]) -> acp.connection.StreamEvent:
    """Return a message of the agent as observers see it."""
    return acp.connection.StreamEvent(acp.connection.StreamDirection.INCOMING, {"jsonrpc": "2.0", **message})


def chosen(guard: Guard, person: Person, command: str) -> str | None:
    """Return the option a request of call 0 is answered with."""
    call = ToolCallUpdate(tool_call_id="0", title="x", kind="execute", raw_input={"command": command})
    options = [PermissionOption.model_validate(one) for one in OPTIONS]
    said = asyncio.run(guard.wrap(person).request_permission("s1", call, options))
    option: str | None = getattr(said.outcome, "option_id", None)
    return option
