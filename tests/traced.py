"""What command lines really do: each run in a small workspace under `strace`, told as what they touched.

They run as nobody where the tests are root, without a network, each in a process group that is ended.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from policyd import Authorizer, policy
from policyd.actions import Machine
from policyd.model import Layer
from policyd.storage.filesystem import RealFilesystem
from tests import traced_runner

DATA = tomllib.loads((Path(__file__).parent / "data" / "commands" / "traced.toml").read_text())
RUNNER = Path(traced_runner.__file__)
NOBODY = 65_534
CALLS = (
    "execve,openat,open,creat,unlink,unlinkat,rmdir,rename,renameat,renameat2,mkdir,mkdirat,link,linkat,symlink,"
    "symlinkat,truncate,ftruncate,chmod,fchmodat,chown,lchown,fchownat,mknod,mknodat,utimensat,setxattr,connect,sendto"
)
POLICY = """
version = 1

[[rule]]
effect = "deny"
path   = ["**/.env"]

[[rule]]
effect  = "allow"
command = ["@git-read", "@read-only"]
"""
SECRET = "x PROTECTED\n"
LIMIT = 600
"""Seconds after which a tracer is ended; each line has an end of its own."""


def reason_not_to() -> str:
    """Return why nothing can be traced here, nothing where it can."""
    missing = [name for name in ("strace", "unshare", "setpriv", "git", "bash") if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is missing"
    if _python() == "":
        return "no Python that anybody may run"
    done = subprocess.run([*_traced(Path("/dev/null")), "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"nothing can be traced: {done.stderr.decode()[:80]}"


def _python() -> str:
    return next((name for name in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(name, os.X_OK)), "")


def _traced(trace: Path) -> list[str]:
    """Return the words before a command that take the network and all rights away, and trace it."""
    root = os.geteuid() == 0
    away = ["unshare", "-n", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [
        *(away if root else ["unshare", "--map-root-user", "-n"]),
        *("strace", "-f", "-y", "-s", "4096", "--seccomp-bpf", "-e", f"trace={CALLS}", "-e", "signal=none"),
        *("-o", str(trace)),
    ]


# ---- the workspace ---------------------------------------------------------------------------------


class Ground:
    """A workspace, what lies beside it, and who decides in it."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="traced-", dir="/tmp"))
        self.base.chmod(0o755)
        kept = self.base / "kept"
        _build(kept)
        for tree in traced_runner.TREES:
            shutil.copytree(kept / tree, self.base / tree, symlinks=True)
        if os.geteuid() == 0:
            for folder, _, names in os.walk(self.base):
                for name in [".", *names]:
                    os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)
        self.protected = {str(self.base / name) for name in ("app/.env", "app/conf/.env", "outside/secret")}
        self._authorizer = _authorizer(self.base)

    def allows(self, line: str) -> bool:
        """Say whether the shipped sets allow a command line here."""
        options = [{"optionId": "y", "name": "y", "kind": "allow_once"}]
        call = {"toolCallId": "c", "kind": "execute", "title": line, "rawInput": {"command": line}}
        request = {"sessionId": "s", "toolCall": call, "options": options}
        return self._authorizer.decide(request).effect.word == "allow"

    def faults(self, lines: Sequence[str]) -> list[tuple[str, str]]:
        """Run lines; return those that do more than read what they may, each with what it did."""
        given, report, trace = (self.base / name for name in ("lines", "report", "trace"))
        runner = self.base / RUNNER.name
        given.write_text(json.dumps(lines))
        shutil.copy(RUNNER, runner)
        for file in (report, trace):
            file.touch()
            file.chmod(0o666)
        argv = [*_traced(trace), _python(), "-E", "-S", str(runner), str(self.base), str(given), str(report)]
        _ended(argv)
        told = json.loads(report.read_text())
        found = [(lines[at], what) for at, what in self._touched(trace, lines)]
        for line, (changed, printed) in zip(lines, told, strict=True):
            found += [(line, f"changed {name}") for name in changed if not _own(name)]
            found += [(line, "printed what is protected")] if printed else []
        return list(dict.fromkeys(found))

    def _touched(self, trace: Path, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
        for at, call, words, result, opened in events(trace):
            line = lines[at]
            program = next(word for word in re.split(r"[\s/]+", line.rpartition("&& ")[2]) if "=" not in word)
            if call == "execve":
                fault = result == "0" and not _may_start(program, words)
            elif call in {"open", "openat"} and not _WRITES(words):
                fault = opened in self.protected and program not in DATA["opened_only"]
            elif call in {"connect", "sendto"}:
                fault = "AF_INET" in words and program not in DATA["asks_for_own_name"]
            else:
                fault = not _own(words)
            if fault:
                yield at, f"{call}({words[:120]})"


_WRITES = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)").search
_OWN = re.compile("|".join(DATA["own"])).search
_STARTED = re.compile(r'"((?:[^"\\]|\\.)*)"').match


def _own(text: str) -> bool:
    """Say whether what is written is a program's own, or nothing."""
    return _OWN(text) is not None


def _may_start(program: str, words: str) -> bool:
    path = _STARTED(words)
    name = os.path.basename(path[1]) if path else ""
    return name in {program, "bash", *DATA["starts"].get(program, ())} or "/git-core/" in words


def _ended(argv: list[str]) -> None:
    """Run what traces, all of it ended then."""
    started = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _, said = started.communicate(timeout=LIMIT)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, said.decode()[-2000:]


# ---- the trace -------------------------------------------------------------------------------------

_CALL = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(?:<(.*?)>)?(?: .*)?").fullmatch
_BEGINS = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>").fullmatch
_GOES_ON = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)").fullmatch
_MARKED = re.compile(f'"{traced_runner.MARK}(\\w+)"').search


def events(trace: Path) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield the calls of a trace: number of the line, name, arguments, result, the file that was opened."""
    at, half = -1, dict[str, str]()
    for raw in trace.read_text("latin-1").splitlines():
        begun, more = _BEGINS(raw), _GOES_ON(raw)
        if begun:
            half[begun[1]] = begun[2]
            continue
        found = _CALL(f"{more[1]} {half.pop(more[1], '')}{more[2]}" if more else raw)
        marked = found and _MARKED(found[3])
        if marked:
            at = -1 if marked[1] == "end" else int(marked[1])
        elif found and at >= 0:
            yield at, found[2], found[3], found[4], found[5] or ""


# ---- what lies there -------------------------------------------------------------------------------


def _authorizer(base: Path) -> Authorizer:
    fs = RealFilesystem()
    source = policy.PolicySource("/p.toml", POLICY.encode(), Layer.USER)
    home, tmp = str(base / "home"), str(base / "tmp")
    loaded = policy.load([source], home=home, tmpdir=tmp, version="0.1.0", fs=fs)
    machine = Machine(home=home, fs=fs, tmpdir=tmp, shell="bash", reserved=())  # noqa: S604
    made = Authorizer(loaded, machine=machine)
    opened = {"id": 1, "method": "session/new", "params": {"cwd": str(base / "app"), "mcpServers": []}}
    made.conversation.observe("c2a", opened)
    made.conversation.observe("a2c", {"id": 1, "result": {"sessionId": "s"}})
    return made


def _build(kept: Path) -> None:
    """Make the workspace: files, links to what may not be read, archives, a repository."""
    app = kept / "app"
    for tree in traced_runner.TREES:
        (kept / tree).mkdir(parents=True)
    (kept / "outside/secret").write_text(SECRET)
    for name, text in {**DATA["files"], ".env": SECRET, "conf/.env": SECRET}.items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(text.replace("\\0", "\0"))
    (app / "x.sh").chmod(0o755)
    for name, target in DATA["links"].items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).symlink_to(target)
    with tarfile.open(app / "a.tar", "w") as archive:
        member = tarfile.TarInfo("f")
        archive.addfile(member, io.BytesIO())
    for program, ending in (("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz"), ("zstd", "zst")):
        if shutil.which(program):
            packed = subprocess.run([program, "-c", "f"], cwd=app, capture_output=True, check=True)
            (app / f"f.{ending}").write_bytes(packed.stdout)
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}
    subprocess.run(["bash", "-ec", DATA["repository"]], cwd=app, env=quiet, capture_output=True, check=True)
