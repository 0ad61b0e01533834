"""How a command ends: one rule for exit codes (`RULE`), one form for saying why.

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
    """What the command line asks for cannot be done."""


class MissingError(UsageError):
    """What the command line names by an id is not there."""


def complain(command: str, text: object) -> None:
    """Say on stderr what is wrong, after the name of the command."""
    say(f"policyd {command}: {text}", error=True)


def expected(error: Exception) -> bool:
    """Say whether an error is about what a command was given or found, and says in words what."""
    from policyd.policy import PolicyError
    from policyd.storage.inbox import InboxError
    from policyd.storage.places import PlaceError
    from policyd.storage.sockets import SocketError

    return isinstance(error, OSError | UsageError | PolicyError | PlaceError | SocketError | InboxError)


def failed(command: str, error: Exception | str) -> int:
    """Say on stderr why nothing was done; return the exit code.

    The mistakes of policies and settings begin with their file and line, as editors want; all else with the command.
    """
    from policyd.policy import PolicyError

    if isinstance(error, FileNotFoundError) and not error.filename:  # nothing but `getcwd` names none
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
