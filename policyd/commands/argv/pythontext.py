"""The text of `python -c` that only imports modules and prints what they call themselves.

What it imports runs, as it does in the project's tests; nothing else it says may. Rules of this module:

1. Statements are imports of plain dotted names, and `print` of string literals and of a few attributes that hold a
   version or a place. Nothing is called but `print`, so no import may give that name to something else.
2. A module whose import does something of its own (`__main__`, a game, a browser) is not imported.
3. What is not matched to the last character is not known. Every pattern is matched once, from left to right.
"""

from __future__ import annotations

import re

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_DOTTED = rf"{_NAME}(?:\.{_NAME})*"
_AS = rf"(?: +as +{_NAME})?"
_HOLDS = r"(?:__(?:version|version_info|file|path|name|doc)__|version|version_info|VERSION|executable|prefix|platform)"
_ATTRIBUTE = rf"{_DOTTED}\.{_HOLDS}"
_SHOWN = rf"(?:'[^'\\\n]*'|\"[^\"\\\n]*\"|{_ATTRIBUTE}|sys\.path|platform\.python_version\(\))"
_IMPORTED = re.compile(rf"({_DOTTED})(?: +as +({_NAME}))?")
_STATEMENT = re.compile(
    rf"[ \t]*(?:(?:import +(?P<modules>{_DOTTED}{_AS}(?:, *{_DOTTED}{_AS})*)"
    rf"|from +(?P<module>{_DOTTED}) +import +(?P<names>{_NAME}{_AS}(?:, *{_NAME}{_AS})*)"
    rf"|print\((?:{_SHOWN}(?:, *{_SHOWN})*)?\)|pass)[ \t]*)?(?:#[^\n]*)?(?:;|\n|\Z)"
)
_CALLED = frozenset({"print", "platform"})
"""Names that what is printed may call, or call something of."""
_ACTS = frozenset({"__main__", "antigravity", "idlelib", "test", "this", "turtle", "turtledemo"})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]").search
"""Characters that end a line for one reader and not for another."""
_LONGEST = 4_096


def only_imports(text: str) -> bool:
    """Say whether a Python program only imports and prints versions, places and texts of its own."""
    if len(text) > _LONGEST or _CONTROL(text):
        return False
    at = 0
    while at < len(text):
        found = _STATEMENT.match(text, at)
        if found is None or not _imports(found):
            return False
        at = found.end()
    return bool(text.strip())


def _imports(found: re.Match[str]) -> bool:
    """Say whether what a statement imports, if anything, does nothing of its own and takes no name that is called."""
    for module, name in _IMPORTED.findall(found["modules"] or ""):
        if not _plain(module) or (name or module.partition(".")[0]) in _CALLED - {module}:
            return False
    if found["module"] is None:
        return True
    names = [name or given for given, name in _IMPORTED.findall(found["names"])]
    return _plain(found["module"]) and not _CALLED & {*names}


def _plain(module: str) -> bool:
    return not any(part in _ACTS or part.startswith("_") for part in module.split("."))
