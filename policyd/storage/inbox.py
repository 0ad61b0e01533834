"""The inbox: questions that wait for `policyd prompts answer`, one file each, with the answers beside them.

Rules of this module:

1. The directory is the user's alone (0700, files 0600). A question's file holds everything that a person has to see,
   and the nonce and digest that an answer must repeat: whoever cannot read it cannot answer.
2. The first answer counts: it is linked into place, never over another.
3. Each question names a lock held by the process that asked. A question whose process is gone is listed as rejected,
   as no answer has an effect any more. The next process that asks removes its files.
4. A question that cannot be written is a failure of the step; an answer that cannot be read is none.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from policyd import acp
from policyd.storage.private import make_directory

LONGEST = 4 * 1024 * 1024
MOST = 1_000
KEPT = timedelta(days=1)
"""How long a rejected question is still shown."""
HIDDEN = frozenset({"nonce", "digest"})


class InboxError(Exception):
    """A question could not be put, or an answer not be given."""


class Entry(Struct, frozen=True):
    """One question in the inbox."""

    id: str
    uid: int
    """Whose agent asks."""
    asked: datetime
    until: datetime
    question: Mapping[str, object]
    """What `policyd.prompts` gives every step, nonce and digest included."""
    rejected: str = ""
    """Why it can no longer be answered; empty: it is open."""

    def facts(self) -> dict[str, object]:
        """Return the question as it is listed: without what only its answer may know."""
        question = {name: value for name, value in self.question.items() if name not in HIDDEN}
        return {
            "id": self.id,
            "uid": self.uid,
            "asked": self.asked.isoformat(),
            "until": self.until.isoformat(),
            "rejected": self.rejected or None,
            "question": question,
        }


class Inbox:
    """The inbox of one user, as one process uses it."""

    def __init__(self, directory: str) -> None:
        """Touch nothing yet."""
        self.directory = directory
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock: int | None = None

    # ---- asking -------------------------------------------------------------------------------------

    def put(self, question: Mapping[str, object], seconds: float, *, uid: int) -> str:
        """Put a question in the inbox for `seconds`; return its id.

        Raises:
            InboxError: it cannot be written, or too many wait.
        """
        ident, now = secrets.token_hex(4), datetime.now(UTC)
        until = now + timedelta(seconds=max(0.0, seconds))
        row = {
            "schema": 1,
            "id": ident,
            "owner": self._owner,
            "uid": uid,
            "asked": now.isoformat(),
            "until": until.isoformat(),
            "question": dict(question),
        }
        try:
            self._hold()
            if len(self._names()) >= MOST and sum(not one.rejected for one in self.entries()) >= MOST:
                raise InboxError(f"{MOST} questions wait in the inbox already")
            self._write(self._path(ident), json.dumps(row).encode())
        except OSError as error:
            raise InboxError(f"the inbox {self.directory} cannot be written: {error.strerror}") from error
        return ident

    def answered(self, ident: str) -> Mapping[str, object] | None:
        """Return the answer to a question, None while there is none. An unreadable one is an empty answer."""
        path = self._answer(ident)
        if not os.path.lexists(path):
            return None
        return read_object(path) or {}

    def remove(self, ident: str) -> None:
        """Take a question, and its answer, out of the inbox."""
        for path in (self._path(ident), self._answer(ident)):
            with suppress(OSError):
                os.unlink(path)

    def close(self) -> None:
        """Release the lock: open questions are rejected from now on."""
        if self._lock is not None:
            with suppress(OSError):
                os.unlink(self._owner_path(self._owner))
            os.close(self._lock)
            self._lock = None

    # ---- answering ----------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Yield what is in the inbox, oldest first; what cannot be read is left out."""
        found = (self._entry(name, read_object(self._path(name)) or {}) for name in self._names())
        yield from sorted(filter(None, found), key=lambda entry: entry.asked)

    def abandoned(self) -> list[Entry]:
        """Mark the questions whose process is gone as rejected; return those that were not marked before."""
        fresh = []
        for entry in self.entries():
            row = read_object(self._path(entry.id)) or {}
            if entry.rejected and not row.get("rejected"):
                with suppress(OSError):
                    self._write(self._path(entry.id), json.dumps({**row, "rejected": entry.rejected}).encode())
                    fresh.append(entry)
        self._clear()
        return fresh

    def answer(self, ident: str, decision: str, *, option: str | None = None, message: str = "") -> None:
        """Answer a question: `allow`, `reject` or `abstain`, and which option.

        Raises:
            InboxError: there is no such open question, it was answered already, or it cannot be written.
        """
        entry = next((one for one in self.entries() if one.id == ident), None)
        if entry is None:
            raise InboxError(f"no question {ident} waits here")
        if entry.rejected:
            raise InboxError(f"the question {ident} was rejected: {entry.rejected}")
        answer = answer_to(entry.question, decision, option, message)
        path = self._answer(ident)
        try:
            self._write(path, json.dumps(answer).encode(), fresh=True)
        except FileExistsError:
            raise InboxError(f"the question {ident} was answered already") from None
        except OSError as error:
            raise InboxError(f"the answer cannot be written: {error.strerror}") from error

    # ---- files --------------------------------------------------------------------------------------

    def _entry(self, ident: str, row: Mapping[str, object]) -> Entry | None:
        question, owner = row.get("question"), row.get("owner")
        if row.get("id") != ident or not isinstance(question, dict):
            return None
        try:
            asked, until = (datetime.fromisoformat(str(row.get(name))) for name in ("asked", "until"))
            uid = int(str(row.get("uid")))
            now = datetime.now(UTC)
            rejected = str(row.get("rejected") or "")
            if not rejected and (not isinstance(owner, str) or not self._alive(owner)):
                rejected = "policyd ended before it was answered"
            if not rejected and now > until:
                rejected = "nobody answered in time"
        except (ValueError, TypeError):
            return None
        return Entry(ident, uid, asked, until, question, rejected)

    def _alive(self, owner: str) -> bool:
        """Say whether the process that asked still holds its lock; where it does not, take that away."""
        if owner == self._owner:
            return self._lock is not None
        if "/" in owner:
            return False
        try:
            fd = os.open(self._owner_path(owner), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        with suppress(OSError):
            os.unlink(self._owner_path(owner))
        return False

    def _hold(self) -> None:
        if self._lock is not None:
            return
        make_directory(self.directory)
        draft = self._draft()
        self._lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(draft, self._owner_path(self._owner))  # locked already: nobody takes its holder for dead
        self._clear()

    def _clear(self) -> None:
        """Take away what processes that were killed left: locks, drafts, and questions that were shown long enough."""
        now = datetime.now(UTC)
        for entry in self.entries():
            if entry.rejected and now - entry.until > KEPT:
                self.remove(entry.id)
        for name in self._listed():
            if name.endswith(".lock"):
                self._alive(name.removesuffix(".lock"))
            elif name.startswith("."):
                with suppress(OSError):
                    if now.timestamp() - os.lstat(f"{self.directory}/{name}").st_mtime > KEPT.total_seconds():
                        os.unlink(f"{self.directory}/{name}")

    def _draft(self) -> str:
        return f"{self.directory}/.{secrets.token_hex(8)}"

    def _write(self, path: str, data: bytes, *, fresh: bool = False) -> None:
        """Write a file whole or not at all; `fresh`: only if there is none."""
        draft = self._draft()
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            if fresh:
                os.link(draft, path)
            else:
                os.rename(draft, path)
        finally:
            with suppress(OSError):
                os.unlink(draft)

    def _listed(self) -> list[str]:
        try:
            return os.listdir(self.directory)
        except OSError:
            return []

    def _names(self) -> list[str]:
        idents = (name.removesuffix(".json") for name in self._listed() if name.endswith(".json"))
        return [ident for ident in idents if is_plain(ident)]

    def _path(self, ident: str) -> str:
        return f"{self.directory}/{plain(ident)}.json"

    def _answer(self, ident: str) -> str:
        return f"{self.directory}/{plain(ident)}.answer"

    def _owner_path(self, owner: str) -> str:
        return f"{self.directory}/{owner}.lock"


def answer_to(
    question: Mapping[str, object], decision: str, option: str | None = None, message: str = ""
) -> dict[str, object]:
    """Return the answer object to a question, with its nonce and digest."""
    answer: dict[str, object] = {"nonce": question.get("nonce"), "digest": question.get("digest"), "decision": decision}
    if option:
        answer["option"] = option
    if message:
        answer["message"] = message
    return answer


def is_plain(ident: str) -> bool:
    """Say whether an id names a file in one directory and nothing else."""
    return 0 < len(ident) <= 64 and set(ident) <= set("0123456789abcdef")


def plain(ident: str) -> str:
    """Return an id that is plain; InboxError for any other."""
    if not is_plain(ident):
        raise InboxError(f"`{ident[:64]}` is no id of a question")
    return ident


def read_object(path: str) -> dict[str, object] | None:
    """Return the one JSON object a file of this user's holds, None if it holds none, or may be read as another."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if status.st_uid not in {os.getuid(), 0} or status.st_mode & 0o022:
                return None
            return acp.strict_object(file.read(LONGEST))
    except (OSError, ValueError):
        return None
