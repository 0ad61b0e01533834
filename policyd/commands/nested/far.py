"""What a program runs on another machine or in a container: `docker exec c rm x`, `kubectl exec p -- rm x`, `wsl rm x`.

Rules of this module:

1. The table says where the command begins: a `command` among the operands takes the words as they are, a `shell` joins
   them; where options do not end at the first operand, it is only what stands behind `--`. An option may name the
   program (`entry`) or be the text (`text`).
2. Nothing is told where a word in front is not constant or an option not known: what stands behind is then suspected
   only (see `buried.py`).
3. What is found needs no allow of its own, for that of the program is for all it does there; a deny or ask rule on a
   command holds for it. Its paths are those of another machine.
"""

from __future__ import annotations

from policyd.commands.argv.options import Parsed, parse
from policyd.commands.argv.programs import Called, called
from policyd.commands.nested.inner import Inner, Words, joined
from policyd.model import CONST, Word

_DASHES = Word("--")
_STARTS = frozenset({"command*", "shell*"})


def runs(name: str, words: Words) -> Inner | None:
    """Return what the program `name` runs elsewhere, None where it runs nothing or that cannot be told."""
    call = called(name, words)
    if call is None:
        return None
    parsed = parse(call.program.syntax, call.after)
    if not (_is_read(parsed) and _is_read(parse(call.outer.syntax, call.before))):
        return None
    via = " ".join((name, *call.path))
    text = next((item.value for item in parsed.given if item.role == "text"), None)
    if text is not None:
        return Inner(via, script=text, far=True)
    command = _command(call, parsed)
    if any(word.kind is not CONST for word in words[: len(words) - len(command)]):
        return None
    entry = [item.value for item in parsed.given if item.role == "entry" and item.value and item.value.text]
    argv = (*entry[-1:], *command)
    if not argv:
        return None
    if "shell*" in call.program.operands:
        return Inner(via, script=joined(argv), far=True)
    return Inner(via, argv, far=True)


def _is_read(parsed: Parsed) -> bool:
    return not parsed.unknown and all(item.exact for item in parsed.given)


def _command(call: Called, parsed: Parsed) -> Words:
    """Return the words of the command."""
    roles = call.program.operands
    at = next((at for at, role in enumerate(roles) if role in _STARTS), len(parsed.operands))
    if not call.program.syntax.posix:
        at = max(at, parsed.split) if parsed.split >= 0 else len(parsed.operands)
    words = parsed.operands[at:]
    return words[1:] if words[:1] == (_DASHES,) else words
