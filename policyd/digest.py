"""SHA-256: of few bytes by the interpreter's built-in code, of many by OpenSSL, which is faster but slow to load.

An interpreter without built-in code always uses OpenSSL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash
    from hashlib import sha256 as own
else:
    try:
        from _sha256 import sha256 as own  # Python 3.11
    except ImportError:
        try:
            from _sha2 import sha256 as own  # from Python 3.12 on
        except ImportError:
            from hashlib import sha256 as own

MANY = 192 * 1024
"""About where loading OpenSSL takes less time than doing without it."""


def sha256(data: bytes) -> _Hash:
    """Return the hash of `data`, to be asked for its `digest` or `hexdigest`."""
    if len(data) < MANY:
        return own(data)
    import hashlib

    return hashlib.sha256(data)
