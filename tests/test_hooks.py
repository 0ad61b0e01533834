"""Prompt hooks as real processes: one road to yes, and every fault that is none."""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from policyd.model import Effect
from policyd.prompts import parse_chain
from policyd.service.hooks import AT_ONCE, HookError, Hooks, answer_of, at_once, check, limited
from tests.hookscripts import HEAD, Running, put_to, write
from tests.proxied import gone

SCHEMA = json.loads(Path("policyd/prompts/hook.schema.json").read_text("utf-8"))

GOOD = {
    "plain allow": ("say(a)", Effect.ALLOW),
    "allow with its option": ("a['option'] = 'proceed_once'; say(a)", Effect.ALLOW),
    "allow with a message and blanks around": ("print(); a['message'] = 'go'; say(a); print()", Effect.ALLOW),
    "reject": ("a['decision'] = 'reject'; say(a)", Effect.DENY),
    "reject with its option": ("a['decision'] = 'reject'; a['option'] = 'cancel'; say(a)", Effect.DENY),
    "abstain": ("a['decision'] = 'abstain'; say(a)", Effect.DENY),
}

FAULTS = {
    "prints nothing": "",
    "prints blanks": "print('   ')",
    "prints yes": "print('yes')",
    "prints true": "say(True)",
    "prints a string": "say('allow')",
    "prints a list": "say([a])",
    "prints null": "say(None)",
    "prints a number": "say(1)",
    "two objects": "say(a); say(a)",
    "an object and rubbish": "say(a); print('ok')",
    "rubbish and an object": "print('thinking'); say(a)",
    "half an object": "sys.stdout.write(json.dumps(a)[:-1])",
    "a key twice": 'print(json.dumps(a)[:-1] + \', "decision": "allow"}\')',
    "a trailing comma": "print(json.dumps(a)[:-1] + ',}')",
    "not a number": "print(json.dumps(a)[:-1] + ', \"message\": NaN}')",
    "no UTF-8": "sys.stdout.buffer.write(json.dumps(a).encode() + b'\\xff')",
    "UTF-16": "sys.stdout.buffer.write(json.dumps(a).encode('utf-16'))",
    "deep nesting": "print('[' * 30000 + ']' * 30000)",
    "deep nesting in an object": "print('{\"a\":' * 20000 + '1' + '}' * 20000)",
    "more than 64 KiB": "a['message'] = 'x' * 70000; say(a)",
    "endless output": "\nwhile True: print('x' * 65536)",
    "no nonce": "del a['nonce']; say(a)",
    "another nonce": "a['nonce'] += '0'; say(a)",
    "an empty nonce": "a['nonce'] = ''; say(a)",
    "a nonce of another type": "a['nonce'] = [a['nonce']]; say(a)",
    "no digest": "del a['digest']; say(a)",
    "another digest": "a['digest'] = a['digest'][::-1]; say(a)",
    "no decision": "del a['decision']; say(a)",
    "an empty decision": "a['decision'] = ''; say(a)",
    "decision yes": "a['decision'] = 'yes'; say(a)",
    "decision ALLOW": "a['decision'] = 'ALLOW'; say(a)",
    "decision true": "a['decision'] = True; say(a)",
    "decision in a list": "a['decision'] = ['allow']; say(a)",
    "decision in an object": "a['decision'] = {'allow': 1}; say(a)",
    "an unknown key": "a['decison'] = 'reject'; say(a)",
    "an option that was not offered": "a['option'] = 'proceed_always'; say(a)",
    "an option that says otherwise": "a['option'] = 'cancel'; say(a)",
    "an option of another type": "a['option'] = 0; say(a)",
    "an empty option": "a['option'] = ''; say(a)",
    "a message of another type": "a['message'] = 5; say(a)",
    "abstain with an option": "a['decision'] = 'abstain'; a['option'] = 'proceed_once'; say(a)",
    "exit 1 after yes": "say(a); sys.stdout.flush(); sys.exit(1)",
    "exit 2 after yes": "say(a); sys.stdout.flush(); os._exit(2)",
    "exit 75 after yes": "say(a); sys.exit(75)",
    "exit 127 after yes": "say(a); sys.exit(127)",
    "an exception after yes": "say(a); sys.stdout.flush(); raise SystemError",
    "killed by TERM after yes": "say(a); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGTERM)",
    "killed by KILL after yes": "say(a); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)",
    "aborted after yes": "say(a); sys.stdout.flush(); os.abort()",
    "silent for too long": "time.sleep(60)",
    "yes too late": "time.sleep(1.2); say(a)",
    "yes, then never ends": "say(a); sys.stdout.flush(); time.sleep(60)",
    "yes on stderr only": "print(json.dumps(a), file=sys.stderr)",
    "yes by a child that outlives it": (
        "subprocess.Popen([sys.executable, '-ISc', 'import time; time.sleep(1.2); print(' + repr(json.dumps(a)) + ')'])"
    ),
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP); say(a)",
    "closes its output": "os.close(1); time.sleep(0.1)",
}
SLOW = frozenset({"silent for too long", "yes too late", "yes, then never ends", "stops itself"})


@pytest.fixture
def hooks() -> Iterator[tuple[Hooks, queue.Queue[tuple[int, object]]]]:
    """The real runner, and where its answers arrive."""
    answers: queue.Queue[tuple[int, object]] = queue.Queue()
    runner = Hooks(
        replied=lambda number, answer: answers.put((number, answer)),
        failed=lambda number, why: answers.put((number, why)),
    )
    yield runner, answers
    runner.close()


@pytest.mark.parametrize("name", GOOD)
def test_a_hook_that_answers_is_heard(name: str, tmp_path: Path, hooks: Running) -> None:
    body, effect = GOOD[name]
    outcome = put_to(hooks, write(tmp_path / "hook", HEAD + body))
    assert outcome.effect is effect, outcome
    assert outcome.by == ("policyd" if name == "abstain" else "command")


@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_of_a_hook_is_a_yes(name: str, tmp_path: Path, hooks: Running) -> None:
    outcome = put_to(hooks, write(tmp_path / "hook", HEAD + FAULTS[name]), 0.4 if name in SLOW else 20.0)
    assert outcome.effect is Effect.DENY
    assert outcome.offer is None
    assert outcome.reason


def swap_directory(path: Path) -> str:
    path.mkdir()
    return str(path)


def fifo(path: Path) -> str:
    os.mkfifo(path, 0o755)
    return str(path)


def link_to_nothing(path: Path) -> str:
    path.symlink_to(path.parent / "nothing")
    return str(path)


def link_to_itself(path: Path) -> str:
    path.symlink_to(path)
    return str(path)


def in_open_directory(path: Path) -> str:
    place = path.parent / "open"
    place.mkdir()
    found = write(place / "hook", HEAD + "say(a)")
    place.chmod(0o777)
    return found


def through_open_directory(path: Path) -> str:
    place = path.parent / "links"
    place.mkdir()
    (place / "hook").symlink_to(write(path, HEAD + "say(a)"))
    place.chmod(0o777)
    return str(place / "hook")


UNFIT: dict[str, Callable[[Path], str]] = {
    "missing": str,
    "a relative path": lambda path: "hook",
    "an empty path": lambda path: "",
    "a path with NUL": lambda path: f"{path}\0x",
    "a directory": swap_directory,
    "a FIFO": fifo,
    "a device": lambda path: "/dev/null",
    "a dangling link": link_to_nothing,
    "a link to itself": link_to_itself,
    "not executable": lambda path: write(path, HEAD + "say(a)", 0o644),
    "writable by the group": lambda path: write(path, HEAD + "say(a)", 0o775),
    "writable by all": lambda path: write(path, HEAD + "say(a)", 0o757),
    "in a directory writable by all": in_open_directory,
    "through a directory writable by all": through_open_directory,
    "a missing interpreter": lambda path: write(path, "#!/nowhere/python\n"),
    "an interpreter that is no program": lambda path: write(path, "#!/etc/passwd\n"),
    "no program at all": lambda path: write(path, "\x01\x02\x03"),
    "a name too long": lambda path: str(path) + "x" * 5000,
    "below a file": lambda path: write(path, HEAD) + "/hook",
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_unfit_program_is_not_a_yes(name: str, tmp_path: Path, hooks: Running) -> None:
    outcome = put_to(hooks, UNFIT[name](tmp_path / "hook")) if name not in NO_STEP else None
    if outcome is None:
        with pytest.raises(ValueError, match=r"absolute path|unknown prompt step"):
            parse_chain([f"command:{UNFIT[name](tmp_path / 'hook')}"])
        return
    assert outcome.effect is Effect.DENY
    assert outcome.by == "policyd"


NO_STEP = frozenset({"a relative path", "an empty path"})


def test_a_question_keeps_the_published_schema(tmp_path: Path, hooks: Running) -> None:
    seen = tmp_path / "seen"
    put_to(hooks, write(tmp_path / "hook", HEAD + f"open({str(seen)!r}, 'w').write(json.dumps(q)); say(a)"))
    question = json.loads(seen.read_text("utf-8"))
    jsonschema.validate(question, {**SCHEMA, "oneOf": [{"$ref": "#/$defs/question"}]})
    assert question["actions"] == ["run npm test  [in /work/project]"]
    assert [one["id"] for one in question["options"]][:2] == ["proceed_once", "cancel"]


@pytest.mark.parametrize("name", ["plain allow", "reject with its option", "abstain"])
def test_good_answers_keep_the_published_schema(name: str) -> None:
    table: dict[str, object] = {"nonce": "n", "digest": "d", "decision": "allow"}
    exec(GOOD[name][0], {"a": table, "say": lambda value: None})  # noqa: S102 - the table above
    jsonschema.validate(table, {**SCHEMA, "oneOf": [{"$ref": "#/$defs/answer"}]})


@pytest.fixture
def blocked() -> Iterator[None]:
    """Signals are blocked in this thread, and in those that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.usefixtures("blocked")
def test_a_hook_sees_a_short_environment_no_open_files_and_every_signal(
    tmp_path: Path, hooks: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    facts = "{'env': dict(os.environ), 'cwd': os.getcwd(), 'fds': os.listdir('/proc/self/fd'), 'argv': len(sys.argv)}"
    facts = facts[:-1] + ", 'blocked': list(signal.pthread_sigmask(signal.SIG_BLOCK, []))}"
    monkeypatch.setenv("LD_PRELOAD_OF_A_REPOSITORY", "x")
    hooks[0].environment = limited(os.environ)
    put_to(hooks, write(tmp_path / "hook", HEAD + f"open({str(seen)!r}, 'w').write(json.dumps({facts})); say(a)"))
    found = json.loads(seen.read_text("utf-8"))
    assert "LD_PRELOAD_OF_A_REPOSITORY" not in found["env"]
    assert found["cwd"] == "/"
    assert found["argv"] == 1
    assert found["blocked"] == []
    assert len(found["fds"]) <= 6, "0, 1, 2, the file written, the directory listed, the end of a leash"
    assert "/nowhere" not in limited({"PATH": "/nowhere", "BASH_ENV": "x"})["PATH"]


def test_the_whole_group_ends_with_the_hook(tmp_path: Path, hooks: Running) -> None:
    pids = tmp_path / "pids"
    child = "import signal, time; signal.signal(15, 1); open(PIDS, 'a').write(str(__import__('os').getpid()) + ' '); "
    body = f"""
code = {child!r}.replace('PIDS', repr({str(pids)!r})) + 'time.sleep(60)'
subprocess.Popen([sys.executable, '-ISc', code])
while not os.path.exists({str(pids)!r}) or not open({str(pids)!r}).read(): time.sleep(0.01)
say(a)
"""
    assert put_to(hooks, write(tmp_path / "hook", HEAD + body)).effect is Effect.ALLOW
    hooks[0].close()
    (pid,) = pids.read_text("utf-8").split()
    assert gone(int(pid))


@pytest.mark.parametrize(("files", "hooks"), [(10, 1), (64, 3), (320, 16), (1_000_000, 16)])
def test_fewer_hooks_run_at_once_where_few_files_may_be_open(
    files: int, hooks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (files, files))
    assert at_once() == hooks


def test_stopped_hooks_say_nothing_and_leave_nothing(tmp_path: Path, hooks: Running) -> None:
    runner, answers = hooks
    pids = tmp_path / "pids"
    body = f"signal.signal(15, signal.SIG_IGN); open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(60)"
    path = write(tmp_path / "hook", HEAD + body)
    for number in range(40):
        runner.start(number, path, {"nonce": "n", "digest": "d"}, 60.0)
    until = time.monotonic() + 30
    while (not pids.exists() or pids.read_text("utf-8").count("\n") < AT_ONCE) and time.monotonic() < until:
        time.sleep(0.01)
    started = [int(line) for line in pids.read_text("utf-8").split()]
    assert len(started) == AT_ONCE, "no more than 16 run at once"
    runner.close(10)
    assert all(map(gone, started))
    assert answers.empty()
    assert not runner._threads


def test_closing_in_a_hurry_leaves_no_hook_behind(tmp_path: Path, hooks: Running) -> None:
    pid = tmp_path / "pid"
    body = f"signal.signal(15, signal.SIG_IGN); open({str(pid)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(60)"
    hooks[0].start(1, write(tmp_path / "hook", HEAD + body), {"nonce": "n", "digest": "d"}, 60.0)
    while not pid.exists() or not pid.read_text("utf-8").endswith("\n"):
        time.sleep(0.01)
    hooks[0].close(0.05)
    assert gone(int(pid.read_text("utf-8")))


def test_more_than_a_thousand_waiting_hooks_fail_at_once(tmp_path: Path) -> None:
    failed: list[int] = []
    runner = Hooks(replied=lambda number, answer: None, failed=lambda number, why: failed.append(number))
    path = write(tmp_path / "hook", HEAD + "time.sleep(60)")
    for number in range(1100):
        runner.start(number, path, {"nonce": "n", "digest": "d"}, 60.0)
    runner.close(10)
    assert len(failed) >= 1100 - 1000 - AT_ONCE


def test_an_answer_is_one_object() -> None:
    assert answer_of(b' {"a": 1}\n') == {"a": 1}
    for bad in (b"", b"\n", b"[]", b"{}{}", b'{"a":1,"a":2}', b"{'a':1}", b'{"a": Infinity}', b"\xef\xbb\xbf{}"):
        with pytest.raises(HookError):
            answer_of(bad)


def test_a_link_to_a_good_program_is_good(tmp_path: Path) -> None:
    target = write(tmp_path / "hook", HEAD)
    (tmp_path / "link").symlink_to(target)
    real, status = check(str(tmp_path / "link"))
    assert (real, status.st_ino) == (os.path.realpath(target), os.stat(target).st_ino)


def test_a_link_that_leads_elsewhere_once_it_was_looked_at_is_not_followed(
    tmp_path: Path, hooks: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, evil = (write(tmp_path / name, HEAD + GOOD[name][0]) for name in ("reject", "plain allow"))
    link = tmp_path / "link"
    link.symlink_to(good)

    class Late(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **more: Any) -> None:
            link.unlink()
            link.symlink_to(evil)
            super().__init__(*words, **more)

    monkeypatch.setattr(subprocess, "Popen", Late)
    outcome = put_to(hooks, str(link))
    assert (outcome.effect, outcome.by) == (Effect.DENY, "command")
