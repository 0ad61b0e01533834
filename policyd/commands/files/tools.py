"""The program of a project that a package manager runs by its name: `npx prettier --write .`, `pnpm exec eslint --fix`.

What such a program writes is seen as if it were called by itself. A script of the same name may do something else; what
it reads and runs is the package manager's own matter, as before.
"""

from __future__ import annotations

from policyd.commands.argv import programs
from policyd.commands.matching import kin
from policyd.model import CONST, Word

_VERBS = {
    **dict.fromkeys(("npx", "bunx", "pnpx", "uvx"), frozenset({""})),
    **dict.fromkeys(("pnpm", "yarn", "bun"), frozenset({"", "exec", "dlx", "x", "run"})),
    "npm": frozenset({"exec", "x"}),
    "pipx": frozenset({"run"}),
}
"""The words behind which it stands; empty: it may be the first."""
_END = Word("--")
_SWALLOW = frozenset({"yarn", "pnpm"})
"""Those that may not hand on a `--`."""


def run(names: frozenset[str], words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of the program that is run, its name without a version; none where no known one is."""
    found = next((name for name in names if name in _VERBS), "")
    table = programs.find(found) if found else None
    at = programs.first_operand(table.syntax, words) if table is not None else None
    if table is None or at is None or words[at].kind is not CONST:
        return ()
    verbs = _VERBS[found]
    rest = words[at:]
    if rest[0].text in verbs:
        at = programs.first_operand(table.syntax, rest[1:])
        rest = rest[1 + at :] if at is not None else rest[2:] if rest[1:2] == (_END,) else ()
    elif "" not in verbs or (len(verbs) > 1 and rest[0].text in kin.OWN):
        return ()
    if (found == "npm" and rest[1:2] == (_END,)) or (found in _SWALLOW and _END in rest):
        at = rest.index(_END)
        rest = (*rest[:at], *rest[at + 1 :])
    return _named(rest)


def _named(words: tuple[Word, ...]) -> tuple[Word, ...]:
    if not words or words[0].kind is not CONST:
        return ()
    name = words[0].text.rpartition("/")[2].partition("@")[0]
    return (Word(name), *words[1:]) if name not in _VERBS and programs.find(name) is not None else ()
