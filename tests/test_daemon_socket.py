"""Who may connect to the daemon, where it listens, and what it says to the service manager."""

from __future__ import annotations

import json
import os
import pwd
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policyd.daemon import Options, listen, server
from policyd.daemon.descent import BELOW, UNSEEN, above
from policyd.daemon.listen import Door, ListenError, StrangerError
from policyd.daemon.serve import open_doors
from policyd.daemon.shared import Shared, Who
from policyd.daemon.systemd import Notifier, handed_over
from policyd.storage import places, sockets
from policyd.storage.processes import runs_agent
from policyd.storage.sockets import SocketError
from tests.daemons import Daemon, Manager, activated, chosen, scene, until

OTHER = "policyd-other"


def other() -> pwd.struct_passwd:
    """Return the user without rights."""
    return pwd.getpwnam(OTHER)


def there() -> bool:
    """Say whether there is one."""
    try:
        return bool(other())
    except KeyError:
        return False


needs_other = pytest.mark.skipif(
    os.getuid() != 0 or not there(),
    reason=f"needs root and the user {OTHER} (made by .ci/run) to act as another uid",
)

# ---- listening ----------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of our own."""
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_daemon_that_has_descriptors_for_nobody_does_not_start(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (server.KEPT, server.KEPT))
    path = place / "p.sock"
    with pytest.raises(ListenError, match="ulimit -n"):
        open_doors(Options(socket=str(path)), object.__new__(Shared))
    assert not path.exists()


@pytest.mark.parametrize(("limit", "peers"), [(41, 1), (64, 24), (120, 60), (256, 128), (1_024, 896)])
def test_descriptors_are_kept_for_the_hooks_of_those_that_are_served(
    limit: int, peers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limit, limit))
    assert server.descriptors() == peers


def test_the_socket_is_the_users_alone(place: Path) -> None:
    path = place / "run" / "p.sock"
    with listen.listen(str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["file", "link", "directory", "fifo"])
def test_what_is_no_socket_of_ours_is_left_alone(place: Path, kind: str) -> None:
    path = place / "p.sock"
    (place / "precious").write_text("x")
    make: dict[str, Callable[[], object]] = {
        "file": lambda: path.write_text("x"),
        "link": lambda: path.symlink_to(place / "precious"),
        "directory": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
    }
    make[kind]()
    with pytest.raises(ListenError, match="left alone"):
        listen.listen(str(path))
    assert os.path.lexists(path) and (place / "precious").read_text() == "x"


def test_a_dead_socket_is_taken_over_and_a_live_one_is_not(place: Path) -> None:
    path = str(place / "p.sock")
    listen.listen(path).close()
    with listen.listen(path), pytest.raises(ListenError, match="another policyd"):
        listen.listen(path)


def test_a_directory_others_may_change_is_no_place_for_a_socket(place: Path) -> None:
    for mode in (0o777, 0o720, 0o1777):
        (place / "open").mkdir(exist_ok=True)
        (place / "open").chmod(mode)
        with pytest.raises(ListenError, match="others may change"):
            listen.listen(str(place / "open" / "p.sock"))


def test_no_socket_in_tmp() -> None:
    with pytest.raises(ListenError, match="directory of its own"):
        listen.listen("/tmp/policyd.sock")


def test_the_name_is_taken_away_only_while_it_is_ours(place: Path) -> None:
    path = place / "p.sock"
    with listen.listen(str(path)):
        inode = path.stat().st_ino
        path.rename(place / "moved")
        path.write_text("another's")
        listen.unlink(str(path), inode)
        assert path.exists()
        listen.unlink(str(place / "moved"), inode)
        assert not (place / "moved").exists()


# ---- peers --------------------------------------------------------------------------------------------


def pair(place: Path) -> Iterator[tuple[Door, socket.socket, socket.socket]]:
    """Yield a door and both ends of a connection through it."""
    with listen.listen(str(place / "p.sock")) as listener, socket.socket(socket.AF_UNIX) as mine:
        mine.connect(str(place / "p.sock"))
        theirs, _ = listener.accept()
        with theirs:
            yield Door(listener), mine, theirs


def test_the_kernel_says_who_a_peer_is(place: Path) -> None:
    for door, mine, theirs in pair(place):
        who = door.who(theirs)
        assert (who.uid, who.pid, who.user) == (os.getuid(), os.getpid(), pwd.getpwuid(os.getuid()).pw_name)
        sockets.check_listener(mine, str(place / "p.sock"))


@pytest.mark.parametrize(
    ("found", "let_in"),
    [
        (lambda one: (1, os.getuid(), 0), True),
        (lambda one: (1, 65534, 65534), False),
        (lambda one: (1, 4242, 4242), False),
        (lambda one: 1 / 0, False),
    ],
)
def test_whoever_cannot_be_told_stays_out(
    place: Path, monkeypatch: pytest.MonkeyPatch, found: object, let_in: bool
) -> None:
    def credentials(one: socket.socket) -> tuple[int, int, int]:
        try:
            return found(one)  # type: ignore[operator,no-any-return]
        except ZeroDivisionError:
            raise OSError("gone") from None

    for door, _, theirs in pair(place):
        monkeypatch.setattr(sockets, "credentials", credentials)
        monkeypatch.setattr(sockets, "groups", lambda one: ())
        came = True
        try:
            door.who(theirs)
        except StrangerError:
            came = False
        assert came is let_in
        monkeypatch.undo()


def test_a_peer_has_the_groups_its_process_has(place: Path) -> None:
    for _, _, theirs in pair(place):
        assert set(sockets.groups(theirs)) == set(os.getgroups())


@pytest.mark.parametrize(
    ("credentials", "why"),
    [((1, 4242, 4242), "no group may come in"), ((1, 65534, 65534), "not known")],
)
def test_who_stays_out_is_said_why(
    place: Path, monkeypatch: pytest.MonkeyPatch, credentials: tuple[int, int, int], why: str
) -> None:
    for door, _, theirs in pair(place):
        monkeypatch.setattr(sockets, "credentials", lambda one: credentials)
        monkeypatch.setattr(sockets, "groups", lambda one: ())
        with pytest.raises(StrangerError, match=why) as found:
            door.who(theirs)
        assert found.value.uid == credentials[1]


def test_whose_groups_the_kernel_does_not_tell_stays_out(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deny rule may be about a group that is not told."""

    def groups(one: socket.socket) -> tuple[int, ...]:
        raise OSError(34, "Numerical result out of range")

    for door, _, theirs in pair(place):
        monkeypatch.setattr(sockets, "groups", groups)
        with pytest.raises(StrangerError, match="does not say its groups"):
            door.who(theirs)
        monkeypatch.undo()


def test_a_group_that_is_not_there_is_an_error(place: Path) -> None:
    with listen.listen(str(place / "p.sock")) as listener, pytest.raises(ListenError, match="no group"):
        Door(listener, ["no-such-group"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every socket has a path")
def test_a_handed_over_socket_without_a_path_brings_no_group() -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0policyd-{os.urandom(8).hex()}")
        listener.listen()
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(listener.getsockname())
            peer, _ = listener.accept()
            with peer:
                who = Door(listener, handed=True).who(peer)
    assert who.own


def test_a_client_trusts_no_listener_of_another_user(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listen.listen(str(place / "p.sock")):
        monkeypatch.setattr(sockets, "credentials", lambda one: (1, 4242, 4242))
        with pytest.raises(SocketError, match="not policyd's"):
            sockets.connect(str(place / "p.sock"))


def test_the_users_own_socket_is_found_in_the_runtime_directory(place: Path) -> None:
    where = places.find(home=str(place), environ={"XDG_RUNTIME_DIR": str(place)})
    with pytest.raises(SocketError, match="no daemon"):
        sockets.find(where)
    with listen.listen(f"{place}/policyd/policyd.sock"):
        assert sockets.find(where) == f"{place}/policyd/policyd.sock"
    assert sockets.find(where, "/elsewhere/p.sock") == "/elsewhere/p.sock"


AS_OTHER = """
import os, socket, sys
uid, gid, *groups = map(int, sys.argv[2:])
os.setgroups(groups); os.setgid(gid); os.setuid(uid)
with socket.socket(socket.AF_UNIX) as one:
    one.settimeout(10)
    one.connect(sys.argv[1])  # the mode lets it in: what keeps it out is the daemon
    try:
        one.sendall(b'{"jsonrpc":"2.0","id":1,"method":"_policyd/hello","params":{"protocol":1}}\\n')
        print("told", len(one.recv(1000)))
    except OSError as error:
        print("kept out", type(error).__name__)
"""


def open_way(daemon: Daemon) -> None:
    """Let everybody reach the directory of the socket."""
    for parent in Path(daemon.path).parents:
        if parent not in (Path("/"), Path("/tmp")):
            parent.chmod(0o755)


@needs_other
def test_another_uid_stays_out_even_if_the_mode_lets_it_in(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        os.chmod(daemon.path, 0o666)  # noqa: S103
        open_way(daemon)
        assert kept_out(said_to(daemon, other().pw_gid))
        assert chosen(daemon.peer().ask("ls")) == "yes"
        log = (daemon.scene.root / "daemon.log").read_text()
        assert f"turned a connection of user {other().pw_uid} away: no group may come in" in log


def said_to(daemon: Daemon, *groups: int) -> str:
    """Return what the daemon says to another user with these groups, the primary one first."""
    words = [sys.executable, "-c", AS_OTHER, daemon.path, str(other().pw_uid), *map(str, groups)]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def kept_out(said: str) -> bool:
    """Say whether a connection was closed without a word."""
    return said.startswith("kept out") or said == "told 0"


@needs_other
def test_members_of_a_named_group_are_let_in(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path), options=["--group", OTHER]) as daemon:
        open_way(daemon)
        member, stranger = other().pw_gid, 65_533
        assert not kept_out(said_to(daemon, member))
        assert not kept_out(said_to(daemon, stranger, member))
        assert kept_out(said_to(daemon, stranger))


# ---- limits -------------------------------------------------------------------------------------------


def test_a_message_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    with Daemon(scene(tmp_path)) as daemon:
        peer, another = daemon.peer(), daemon.peer()
        block = b"x" * (1 << 20)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            peer.write(block * 20)
        assert peer.ended() and chosen(another.ask("ls")) == "yes"
        peer.close()
        another.close()


def test_a_uid_that_is_not_the_daemons_own_has_fewer_connections() -> None:
    own, foreign = (Who(uid, 0, 1, "x") for uid in (os.getuid(), os.getuid() + 4242))
    most = server.Server._most
    assert most(None, own) == server.MOST and most(None, foreign) == server.MOST_OF_ONE  # type: ignore[arg-type]


def test_requests_beyond_what_a_user_may_have_open_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from policyd.daemon import peer as peers
    from policyd.daemon.shared import Shared
    from policyd.service import Choices
    from tests.daemons import params

    here = scene(tmp_path)
    monkeypatch.setattr(peers, "PENDING", 2)
    monkeypatch.setenv("HOME", str(here.root / "home"))
    shared = Shared(Choices(policies=(str(here.policy),), transport="daemon"), lambda text: None)
    out: list[bytes] = []
    one = peers.Peer(shared, listen.myself(), out.append)
    one.line(b'{"jsonrpc":"2.0","id":0,"method":"_policyd/hello","params":{"protocol":1,"person":true}}')
    for number in range(1, 4):
        given = params(f"npm run {number}", call=f"c{number}")
        message = {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": given}
        one.line(json.dumps(message).encode())
    assert b"pending already" in out[-1] and b'"id":3' in out[-1]
    one.close()
    one.forget()
    assert shared.pending[os.getuid()] == 0


def test_where_files_lie_is_told_to_the_daemons_own_user_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from policyd.daemon.control import Control
    from policyd.daemon.shared import Shared
    from policyd.service import Choices

    here = scene(tmp_path)
    monkeypatch.setenv("HOME", str(here.root / "home"))
    shared = Shared(Choices(policies=(str(here.policy),), transport="daemon"), lambda text: None)
    shared.problems = (f"{here.policy}:3: wrong",)
    own, other = (Control(shared, Who(uid, 0, 1, "x")).status() for uid in (os.getuid(), os.getuid() + 1))
    assert str(here.root) in json.dumps(own) and str(here.root) not in json.dumps(other)
    assert other.keys() == own.keys() and other["revision"] == own["revision"]
    assert other["problems"] and other["problems"] != own["problems"]


def test_the_home_of_who_asks_is_theirs_not_the_daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/` in a rule, home directories that are no workspace, `~` in a command: also after the files changed."""
    from policyd.daemon.shared import Shared
    from policyd.daemon.wire import Hello
    from policyd.service import Choices

    mine, theirs = tmp_path / "daemon", tmp_path / "dev"
    for home in (mine, theirs):
        (home / ".ssh").mkdir(parents=True)
        (home / "app").mkdir()
    policy = tmp_path / "p.toml"
    ground = '[defaults]\nread = "allow"\n[[rule]]\neffect = "allow"\ncommand = "cat *"\nwithin = "/**"\n'
    keys = '[[rule]]\nid = "keys"\neffect = "deny"\npath = "~/.ssh"\nmatch = ["read ~/.ssh/x", "read HOME/.ssh/x"]\n'
    keys = keys.replace("HOME", str(mine))
    policy.write_text(f"version = 1\n{ground}{keys}")
    monkeypatch.setenv("HOME", str(mine))
    shared = Shared(Choices(policies=(str(policy),), transport="daemon"), lambda text: None)
    point = shared.authorizer(Who(4242, 0, 1, "dev", home=str(theirs)), Hello(), "run", interactive=True)
    shared._performers[object()] = point  # type: ignore[index]

    def effects(cwd: str) -> list[str]:
        opened = {"method": "session/new", "id": cwd, "params": {"cwd": cwd, "mcpServers": []}}
        point.observe("c2a", opened)
        point.observe("a2c", {"id": cwd, "result": {"sessionId": cwd}})
        reads = (f"{theirs}/.ssh/x", f"{cwd}/a")
        asked: list[dict[str, object]] = [{"kind": "read", "locations": [{"path": path}]} for path in reads]
        asked.append({"kind": "execute", "rawInput": {"command": "cat ~/.ssh/x"}})
        offered = [{"optionId": "y", "name": "", "kind": "allow_once"}]
        named: list[dict[str, object]] = [{"toolCallId": "c", **one} for one in asked]
        calls = [{"sessionId": cwd, "toolCall": one, "options": offered} for one in named]
        return [point.decide(call).effect.word for call in calls]

    inside, at_home = ["deny", "allow", "deny"], ["deny", "ask", "deny"]
    assert effects(f"{theirs}/app") == inside and effects(str(theirs)) == at_home
    policy.write_text(f"version = 1\n{ground}{keys.replace('keys', 'no-keys')}")
    change = shared.ground.book.look()
    assert change is not None
    shared._reloaded(change, [])
    assert effects(f"{theirs}/app") == inside and effects(str(theirs)) == at_home


# ---- descent ------------------------------------------------------------------------------------------


def test_what_runs_below_a_program_that_asks_is_not_a_person() -> None:
    assert above(os.getpid(), set()) in ("", BELOW)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert above(child.pid, {os.getpid()}) == BELOW
    assert above(child.pid, {child.pid}) == above(os.getpid(), set())
    child.communicate()


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 5])
def test_a_process_that_cannot_be_seen_is_not_taken_for_a_person(pid: int) -> None:
    assert above(pid, set()) == UNSEEN


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["policyd", "proxy", "--", "agent"], True),
        (["python3", "-m", "policyd", "proxy"], True),
        (["/usr/bin/policyd", "serve", "--stdio"], True),
        (["policyd", "prompts", "answer"], False),
        (["/bin/sh", "-c", "policyd proxy"], False),
        (["bash"], False),
        ([], False),
    ],
)
def test_a_policyd_with_an_agent_below_it_is_known_by_its_words(words: list[str], found: bool) -> None:
    assert runs_agent(words) is found


# ---- systemd ------------------------------------------------------------------------------------------


def test_a_daemon_tells_readiness_reload_heartbeat_and_its_end(tmp_path: Path) -> None:
    here = scene(tmp_path)
    manager = Manager(tmp_path)
    here.environ |= {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"}
    with Daemon(here) as daemon:
        assert "in force" in manager.until("READY")["STATUS"]
        assert manager.until("WATCHDOG") and manager.until("WATCHDOG")
        daemon.process.send_signal(1)
        assert int(manager.until("RELOADING")["MONOTONIC_USEC"]) > 0
        assert manager.until("READY")
        assert daemon.stop() == 0
        assert manager.until("STOPPING") == {"STOPPING": "1"}
    manager.socket.close()


def test_a_daemon_that_cannot_record_does_not_feed_the_watchdog(tmp_path: Path) -> None:
    here = scene(tmp_path)
    manager = Manager(tmp_path)
    here.environ |= {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"}
    with Daemon(here, options=["--audit", "/dev/full"]) as daemon:
        manager.until("READY")
        log = here.root / "daemon.log"
        until(lambda: "self-check failed" in log.read_text(), "the self-check fails")
        manager.socket.settimeout(0.6)
        with pytest.raises(TimeoutError):
            manager.until("WATCHDOG")
        assert daemon.process.poll() is None
    manager.socket.close()


def test_the_watchdog_of_another_process_is_not_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "1", "LISTEN_FDS": "1", "LISTEN_PID": "1"}.items():
        monkeypatch.setenv(name, value)
    assert Notifier().interval is None and handed_over() == []
    assert "LISTEN_FDS" not in os.environ and "WATCHDOG_USEC" not in os.environ


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_a_restart_under_socket_activation_refuses_no_connection(tmp_path: Path, times: int) -> None:
    daemon = Daemon(scene(tmp_path))
    cwd = str(daemon.scene.work)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(daemon.path)
        listener.listen(1024)
        for _ in range(times):
            with activated(daemon, listener) as process:
                peers = [daemon.stranger() for _ in range(5)]
                assert [chosen(peer.greet(cwd=cwd).ask("ls")) for peer in peers] == ["yes"] * 5
                process.terminate()
                late = daemon.stranger()
                assert process.wait(20) == 0 and all(peer.ended() for peer in peers)
                assert Path(daemon.path).is_socket()
            with activated(daemon, listener):
                assert chosen(late.greet(cwd=cwd).ask("ls")) == "yes"
            for peer in (*peers, late):
                peer.close()
