"""Windows paths, as far as they are judged here: by name, for strict rules.

Rules of this module:

1. `C:/proj/app`, with slashes of either kind, is `/c:/proj/app`. A session whose directory is such a path uses Windows
   paths.
2. Refused as ambiguous: a name that Windows takes for another (`SECRET~1`, `.env::$DATA`, a dot or blank at its end),
   the root of the current drive, and spellings of other systems.
"""

from __future__ import annotations

import re

_DRIVE = re.compile(r"([A-Za-z]):[\\/]+(.*)", re.DOTALL).fullmatch
_OURS = re.compile(r"/[a-z]:(?:/|\Z)").match
_ODD = re.compile(r"[:~\x00-\x1f]|[. ](?:/|\Z)")
_DOTS = re.compile(r"(?:\A|(?<=/))\.\.?(?=/|\Z)")


def of_windows(path: str) -> bool:
    """Say whether an absolute path, in the form used here, is a Windows path."""
    return path[2:3] == ":" and _OURS(path) is not None


def posix(path: str) -> str:
    """Return an absolute path of Windows as it is written here; any other as it is."""
    found = _DRIVE(path)
    return f"/{found[1].lower()}:/{found[2]}".replace("\\", "/") if found else path


def spelled(text: str) -> str | None:
    """Return a path from a session on Windows in the form used here, None if it is ambiguous."""
    path = posix(text).replace("\\", "/")
    rest = path[3:] if of_windows(path) else path
    if (rest is path and path.startswith("/")) or _ODD.search(_DOTS.sub("", rest)):
        return None
    return path
