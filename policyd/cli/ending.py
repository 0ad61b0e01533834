"""How a command ends: one convention for exit codes (`RULE`), one format for error messages.

`policyd decide --exit-code` adds 3 for an ask; `policyd proxy` ends as its agent does.
"""

from __future__ import annotations

from policyd.cli.saying import say

DONE = 0
NO = 1
FAILED = 2
RULE = {
    DONE: "it was done, and the answer is yes; a list may be empty",
    NO: "it was done, and the answer is no: what is named by its id is not there, or there is something to mend",
    FAILED: "it was not done: a wrong option, a file that is not there or cannot be read, a mistake in a policy, "
    "a person who is missing",
}
MORE = (
    "With --exit-code policyd decide ends with 0 for allow, 1 for deny, 3 for ask, whichever is strictest, and with 2 "
    "where nothing was decided. policyd proxy ends as its agent does, with 5 for --fail-on-reject, 126 or 127 where "
    "the agent cannot be started, 2 where policyd did not start, and 70 where it failed later. Whatever is interrupted "
    "ends with 130."
)


class UsageError(Exception):
    """The command cannot do what its arguments ask for."""


class MissingError(UsageError):
    """An id on the command line does not exist."""


def complain(command: str, text: object) -> None:
    """Print a problem on stderr, after the name of the command."""
    say(f"policyd {command}: {text}", error=True)


def expected(error: Exception) -> bool:
    """Say whether an error is about the command's input, and its message is for people."""
    from policyd.policy import PolicyError
    from policyd.storage.inbox import InboxError
    from policyd.storage.places import PlaceError
    from policyd.storage.sockets import SocketError

    return isinstance(error, OSError | UsageError | PolicyError | PlaceError | SocketError | InboxError)


def failed(command: str, error: Exception | str) -> int:
    """Print on stderr why nothing was done; return the exit code.

    Mistakes in policies and settings begin with file and line, as editors expect; all other errors with the command.
    """
    from policyd.policy import PolicyError

    if isinstance(error, FileNotFoundError) and not error.filename:  # only `getcwd` raises it without a name
        error = "the directory it runs in is gone"
    if isinstance(error, PolicyError):
        say(*error.diagnostics, error=True)
        return FAILED
    known = isinstance(error, OSError) and error.filename and error.strerror
    complain(command, f"{error.filename}: {error.strerror}" if known else error)  # type: ignore[union-attr]
    return NO if isinstance(error, MissingError) else FAILED


def counted(count: int, word: str) -> str:
    """Return a number of things in words."""
    return f"{count} {word}{'' if count == 1 else 's'}"
