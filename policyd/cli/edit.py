"""`policyd edit [FILE]`: change a policy file as `visudo` changes sudoers.

    lock -> private copy -> editor -> what is wrong, what warns, which decisions change -> save, edit again, or quit

Rules of this command:

1. A file with a mistake is never saved, and nothing can be said to save it all the same. Mistakes that other files had
   before do not keep this one from being mended.
2. What is checked is what is saved: the copy is read once. It takes the place of the file whole, with the file's owner,
   mode and access list, behind a link at the file it leads to. A file that somebody else changed meanwhile stays as it
   is. Whatever keeps the person's text from being saved, it stays in the copy, unless they said that they quit.
3. Its layer is known from its place: managed in `/etc/policyd/policies.d`, a project's in `.policyd`, else the user's.
   It is judged with the layers it counts beside. A link from there to a policy of another place is refused: what would
   be judged is not what would change.
4. Not below a running agent. At a terminal a person decides what becomes of a valid change; without one it is saved.
5. A daemon or proxy is not told: they watch their files.
6. Exit code 0: saved, or nothing was changed; 1: the person quit; 2: it was not saved.
"""

from __future__ import annotations

import argparse
import errno
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from policyd.cli import check, options, presence
from policyd.cli.audit import log_in_force
from policyd.cli.check import Report
from policyd.cli.diff import lines as compared
from policyd.cli.diff.changes import changes, try_recorded
from policyd.cli.diff.recorded import Log
from policyd.cli.ending import DONE, NO, UsageError, complain, counted, failed
from policyd.cli.saying import say
from policyd.cli.trials.tree import Tree
from policyd.cli.trials.trial import Trial
from policyd.model import Layer
from policyd.policy import Diagnostic, PolicyError, PolicySource
from policyd.storage import locks, places, policies
from policyd.storage.places import Places
from policyd.storage.policies import Found
from policyd.storage.private import make_directory, write_whole
from policyd.storage.strictfile import check_name, read_all
from policyd.storage.trust import FOLDER, TrustStore, read_project

RECENT = 1_000
"""Recorded requests that are tried, the newest."""
DRAFTED = 1_000
NEW = b"version = 1\n"
"""What a file that is not there yet begins with."""
ACCESS = "system.posix_acl_access"
USUAL = "vi"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd edit`."""
    what = (
        "the policy file (default: the user's, if there is one only); a name without a slash may be one of the user's"
    )
    parser.add_argument("file", nargs="?", type=options.named, metavar="FILE", help=what)
    parser.add_argument("--log", metavar="PATH", help="where the recent requests are (default: this user's audit log)")
    options.add_home(parser)


def run(args: argparse.Namespace) -> int:
    """Edit one file; return the exit code."""
    if why := presence.below_agent():
        return failed("edit", why)
    where = places.find(home=args.home)
    target = aim(chosen(args.file, where), where)
    folder = os.path.dirname(target.real)
    if target.layer is Layer.USER:
        make_directory(folder)
    with locked(folder) as place:
        target = aim(target.path, where)  # whoever held the lock may have changed it
        with copied(target, where) as copy:
            return attempts(args, target, copy, place, where)


@contextmanager
def locked(folder: str) -> Iterator[int]:
    """Keep others from editing policies in a directory, and keep it open."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            locks.lock(descriptor, brief=True)
        except BlockingIOError:
            raise UsageError(f"somebody else edits a policy in {folder}; try again when they are done") from None
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def copied(target: Target, where: Places) -> Iterator[str]:
    """Make a copy that is the person's alone; where what they wrote was not saved, it stays."""
    make_directory(where.edits)
    beside, keep = tempfile.mkdtemp(dir=where.edits), False
    copy = os.path.join(beside, os.path.basename(target.real))
    try:
        write_whole(copy, target.content)
        yield copy
    except BaseException:  # an interruption too: comparing may take long
        keep = is_unsaved(copy, target)
        if keep:
            complain("edit", f"{target.path} was not saved; your text is in {copy}")
        raise
    finally:
        if not keep:
            shutil.rmtree(beside, ignore_errors=True)


def is_unsaved(copy: str, target: Target) -> bool:
    """Say whether a copy, or what an editor that died left beside it, may hold what is nowhere else."""
    try:
        written = content(copy)
        if written not in (None, target.content):
            return written != content(target.real)
        return bool({*os.listdir(os.path.dirname(copy))} - {os.path.basename(copy)})
    except OSError:
        return True


# ---- which file ------------------------------------------------------------------------------------


class Target(Struct, frozen=True):
    """The file that is edited, as it was found."""

    path: str
    """As the policies of its layer are named."""
    real: str
    """The file it leads to."""
    layer: Layer
    root: str
    """The project it belongs to, if it does."""
    before: bytes | None
    """What it holds; None: it is not there."""

    @property
    def content(self) -> bytes:
        """What the editor is given."""
        return NEW if self.before is None else self.before

    def found(self, data: bytes | None, where: Places) -> tuple[Found, list[Diagnostic]]:
        """Return the layers this file counts in as they would be if it held `data`, and what cannot be read of them."""
        managed, user = where.managed_policies, where.user_policies
        readers = [lambda: policies.managed(managed)]
        if self.layer is Layer.PROJECT:
            readers += [lambda: policies.user(user), lambda: policies.whole_project(self.root, TrustStore(where.trust))]
        elif self.layer is Layer.USER and os.path.dirname(self.path) == user:
            readers.append(lambda: policies.user(user))
        found, faults = policies.together(*readers)
        sources = {one.name: one for one in found.sources}
        if data != self.before:  # any change of a byte voids the trust in a project
            sources = {name: replace(one, trusted=False) for name, one in sources.items()}
        if data is None:
            sources.pop(self.path, None)
        elif self.path in sources:
            sources[self.path] = replace(sources[self.path], data=data)
        else:
            sources[self.path] = PolicySource(self.path, data, self.layer, root=self.root or None)
        return Found((*sources.values(),)), faults

    @property
    def name(self) -> str:
        """Its name in its directory."""
        return os.path.basename(self.real)

    def check(self, place: int) -> None:
        """Raise FileExistsError where the file is not as it was found."""
        if os.path.realpath(self.path) != self.real or self.now(place) != self.before:
            raise FileExistsError(errno.EEXIST, "somebody else changed it meanwhile", self.path)

    def now(self, place: int) -> bytes | None:
        """Return what the file holds in its open directory, None where it is not there."""
        try:
            descriptor = self.open(place)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb"):
            return read_all(descriptor, self.real)

    def open(self, place: int) -> int:
        """Open the file in its open directory."""
        return os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)

    def save(self, data: bytes, place: int) -> str:
        """Put `data` in the place of the file; return why a crash may undo that, empty where it may not.

        All by descriptors, and by names in the directory that was opened at first: whoever may write above it may put
        a link in the place of any name.

        Raises:
            OSError: the file is not as it was found, or another cannot be put there.
        """
        self.check(place)
        new = f".{self.name}.{secrets.token_hex(8)}"
        try:
            write_whole(new, data, lambda descriptor: self.dress(descriptor, place), folder=place)
            self.check(place)
            if self.before is None:
                os.link(new, self.name, src_dir_fd=place, dst_dir_fd=place)  # fails where somebody made one
            else:
                os.rename(new, self.name, src_dir_fd=place, dst_dir_fd=place)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=place)
        try:
            os.fsync(place)
        except OSError as error:
            return str(error.strerror)
        return ""

    def dress(self, descriptor: int, place: int) -> None:
        """Give an open file what the one it replaces has; a new one is the user's alone, or for all to read."""
        if self.before is None:
            os.fchmod(descriptor, 0o600 if self.layer is Layer.USER else 0o644)
            return
        old = self.open(place)
        try:
            status = os.fstat(old)
            os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, status.st_mode & 0o7777)
            if access := access_list(old):  # without it the mode says something else
                os.setxattr(descriptor, ACCESS, access)
        finally:
            os.close(old)


def access_list(descriptor: int) -> bytes:
    """Return the POSIX access list of an open file, empty where it has none."""
    if sys.platform != "linux":
        return b""
    try:
        return os.getxattr(descriptor, ACCESS)
    except OSError as error:
        if error.errno not in {errno.ENODATA, errno.ENOTSUP}:
            raise
        return b""


def chosen(name: str | None, where: Places) -> str:
    """Return the path of the file that is meant; UsageError where that is not one policy file."""
    own = where.user_policies
    if name is None:
        names = [one for one in sorted(os.listdir(own)) if policies.is_policy(one)] if os.path.isdir(own) else []
        if len(names) != 1:
            none = "there is no policy of yours yet; `policyd init default --write` writes one"
            raise UsageError(f"which one? {own} holds {', '.join(names)}" if names else none)
        return os.path.join(own, names[0])
    here = "/" in name or os.path.exists(name)
    path = os.path.abspath(os.path.expanduser(name)) if here else os.path.join(own, name)
    if os.path.isdir(path) or not policies.is_policy(os.path.basename(path)):
        raise UsageError(f"{path} is no policy file: those end in {policies.ENDING}, suites in {policies.SUITE}")
    check_name(path)
    if name == policies.SETTINGS or path in (where.user_settings, *where.managed_settings):
        raise UsageError(f"{name} holds settings, not rules; edit it as any file, then `policyd check`")
    return path


def aim(path: str, where: Places) -> Target:
    """Look at the file of a path; its layer is that of its place."""
    folder, name = os.path.split(path)
    layer, root, homes = Layer.USER, "", (*where.managed_policies, where.user_policies)
    for home in homes:
        if os.path.realpath(folder) == os.path.realpath(home):
            layer, folder = Layer.USER if home == where.user_policies else Layer.MANAGED, home
            break
    else:
        if os.path.basename(folder) == FOLDER:
            layer, root = Layer.PROJECT, os.path.dirname(folder)
    path = os.path.join(folder, name)
    real = os.path.realpath(path)
    beside = os.path.dirname(real)
    leads = next((home for home in homes if os.path.realpath(home) == beside), folder)
    if leads != folder or (root and real != os.path.join(os.path.realpath(root), FOLDER, name)):
        raise UsageError(f"{path} is a link to {real}; name the policy it leads to")
    before = content(real)
    if before is None and (os.path.islink(path) or (folder not in homes and not root)):
        raise FileNotFoundError(2, "No such file or directory", path)
    return Target(path, real, layer, root, before)


def content(path: str) -> bytes | None:
    """Return what a file holds, None where there is none."""
    try:
        return policies.read_plain(path)
    except FileNotFoundError:
        return None


# ---- editing ---------------------------------------------------------------------------------------


def attempts(args: argparse.Namespace, target: Target, copy: str, place: int, where: Places) -> int:
    """Let the person edit the copy until it is saved or left; return the exit code."""
    while True:
        open_editor(copy)
        data = policies.read_plain(copy)
        if data == target.content:
            say(f"{target.path}: unchanged")
            return DONE
        report = judged(target, data, where)
        check.show(report)
        if not report.mistakes:
            say(*difference(target, data, where, recent_log(args, where)))
        answer = asked(valid=not report.mistakes)
        if answer == "save":
            why = target.save(data, place)
            say(f"{target.path}: saved", *trust_lost(target, where))
            if why:
                complain("edit", f"the disk may not keep it through a crash: {why}")
            return DONE
        if answer == "quit":
            say(f"{target.path}: not saved")
            return NO
        if answer == "refuse":
            return failed("edit", f"{target.path} was not saved: {counted(len(report.mistakes), 'mistake')}")


def open_editor(copy: str) -> None:
    """Run the person's editor on the copy; UsageError where it cannot be run or fails. Ctrl-C is the editor's."""
    words = editor()
    sys.stdout.flush()
    numbers = (signal.SIGINT, signal.SIGQUIT)
    before = [signal.signal(number, lambda *_: None) for number in numbers]
    try:
        code = subprocess.call([*words, copy])
    except OSError as error:
        raise UsageError(f"the editor `{words[0]}` cannot be run: {error.strerror}; set VISUAL or EDITOR") from error
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    if code:
        raise UsageError(f"the editor `{words[0]}` ended with {code}: nothing was saved")


def editor() -> list[str]:
    """Return the words of the person's editor."""
    for variable in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(os.environ.get(variable, "")):
                return words
        except ValueError as error:
            raise UsageError(f"{variable} is no command: {error}") from error
    return [USUAL]


def asked(*, valid: bool) -> str:
    """Return what is to be done: `save`, `edit`, `quit`, or without a person `save` or `refuse`."""
    if not presence.has_terminal():
        return "save" if valid else "refuse"
    words = ("save", "edit", "quit") if valid else ("edit", "quit")
    question = ", ".join(f"({word[0]}){word[1:]}" for word in words).replace("(e)dit", "(e)dit again")
    while True:
        try:
            answer = input(f"what now? {question}: ").strip().lower()
        except EOFError:
            say("")
            return "quit"
        for word in words:
            if answer in {word, word[0]}:
                return word


# ---- judging ---------------------------------------------------------------------------------------


def judged(target: Target, data: bytes, where: Places) -> Report:
    """Return what `policyd check` finds in the file: its mistakes, those it brings to others, its warnings."""
    report = check.loaded(*target.found(data, where), where)
    mine = partial(is_of, target.path)
    others = [one for one in report.mistakes if not mine(one)]
    if others:
        known = check.loaded(*target.found(target.before, where), where).mistakes
        others = [one for one in others if one not in known]
        if len(others) + sum(map(mine, report.mistakes)) == 0:  # what others have wrong hides nothing of this one
            alone = Found((PolicySource(target.path, data, target.layer, root=target.root or None),))
            report = check.loaded(alone, [], where)
            report.notes += ("other policy files have mistakes: this one was looked at alone",)
    report.mistakes = [one for one in report.mistakes if mine(one)] + others
    report.warnings = [one for one in check.warned(report, where) if mine(one.at)]
    return report


def is_of(path: str, found: Diagnostic) -> bool:
    """Say whether something was found in a file, or in what it leads to."""
    return found.file == path or found.file.startswith(f"{path} (")


def difference(target: Target, data: bytes, where: Places, log: str) -> Iterator[str]:
    """Yield which decisions change, told by the texts, by drafted requests and by recent ones."""
    sides = []
    for each in (target.before, data):
        try:
            sides.append(policies.loaded_at(where, target.found(each, where)[0].sources, Tree()))
        except PolicyError:
            yield "which decisions change cannot be told: there were mistakes before, or are in other files"
            return
    old, new = sides
    trial = Trial.open(where.home, {*old.heads, *new.heads}, now=datetime.now(UTC))
    found = changes(old, new, trial, most=DRAFTED)
    recent = Log(log, trial.conversation, (*old.heads, *new.heads), newest=RECENT)
    if os.path.isfile(recent.file):
        try_recorded(found, old, new, trial, recent)
    yield from compared(found, old, new)


def recent_log(args: argparse.Namespace, where: Places) -> str:
    """Return the log with the recent requests."""
    try:
        return args.log or log_in_force(args.home)
    except (PolicyError, UsageError):  # that is no fault of this file
        return f"{where.audit}/"


def trust_lost(target: Target, where: Places) -> Iterator[str]:
    """Yield what a person should know of the trust in a project whose files changed."""
    store = TrustStore(where.trust)
    if not target.root or not store.note(target.root):
        return
    try:
        trusted = store.trusts(read_project(target.root))
    except OSError:  # what cannot be read is not trusted
        trusted = False
    if not trusted:
        yield f"the project is not trusted any more: its rules only tighten until `policyd trust {target.root}`"
