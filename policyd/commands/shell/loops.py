"""`if`, `case`, `for`, `while` in the tree; what they do to the shell is said by `branching`.

Rules of this module:

1. `for ((i = 0; i < 3; i++))` over numbers as they stand is a loop over constants, if its body only looks at `$i`; any
   other arithmetic may run something.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from policyd.commands.lexing.plain import constant
from policyd.commands.shell.words import Scanner
from policyd.commands.state import NUMBER, Cwd, Pair, branching, union
from policyd.model import Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from policyd.commands.shell.grammar import Reader

_NUMBER = r"(0|[1-9][0-9]{0,3})"
"""A decimal number: with a zero before it, it would be an octal one."""
_COUNTS = re.compile(
    rf"for\s*\(\(\s*([a-z])\s*=\s*{_NUMBER}\s*;\s*\1\s*(<=?)\s*{_NUMBER}\s*;\s*(?:\1\+\+|\+\+\1)\s*\)\)"
)
_COUNTED = 100
_ITEM_ENDS = frozenset({";;", ";&", ";;&"})
_FALLS = frozenset({";&", ";;&"})
"""What a list ends with behind which another may run."""
_WORDS_OF_IF = frozenset({"if", "then", "elif", "else", "fi"})


def _sequence(reader: Reader, nodes: list[Node]) -> Pair:
    if not nodes:
        return reader.state.cwd, reader.state.cwd
    return reader.sequence(nodes, nodes[0].start_byte, nodes[-1].end_byte)


def branches(reader: Reader, node: Node) -> Pair:
    """Read `if … elif … else … fi`."""
    segments: list[tuple[str, list[Node]]] = []
    for child in reader.children(node):
        inner = reader.children(child) if child.type in {"elif_clause", "else_clause"} else [child]
        for part in inner:
            if part.type in _WORDS_OF_IF:
                segments.append((part.type, []))
            elif segments:
                segments[-1][1].append(part)
    return branching.branches(reader.state, [(word, partial(_sequence, reader, nodes)) for word, nodes in segments])


def cases(reader: Reader, node: Node) -> Pair:
    """Read `case … in … esac`: any of its lists may run, or none, and one behind `;&` or `;;&` behind another."""
    state, here = reader.state, reader.state.cwd
    ends: list[Cwd] = [here]
    names: list[dict[str, Word | None]] = []
    falls = False
    for child in reader.children(node):
        if child.type == "case_item":
            before = dict(state.names)
            state.cwd = branching.after(state, ends, names)[0] if falls else here
            ends.append(union(*_item(reader, child)))
            names.append(state.names)
            state.names = before
            falls = falls or bool(child.children and child.children[-1].type in _FALLS)
        elif child.type not in {"case", "in", "esac", ";", "comment"}:
            _pattern(reader, child)
    return branching.after(state, ends, names)


def _item(reader: Reader, node: Node) -> Pair:
    parts = reader.children(node)
    end = next((number for number, part in enumerate(parts) if part.type == ")"), len(parts) - 1)
    for part in parts[:end]:
        if part.type not in {"(", "|"}:
            _pattern(reader, part)
    return _sequence(reader, [part for part in parts[end + 1 :] if part.type not in _ITEM_ENDS])


def _pattern(reader: Reader, node: Node) -> None:
    text = reader.source[node.start_byte : node.end_byte]
    spans = reader.spans([node])
    if "'" in text or '"' in text:
        reader.scan(spans)
    else:
        Scanner(reader).live(node.start_byte, node.end_byte, quotes=False)


def each(reader: Reader, node: Node) -> Pair:
    """Read `for name in words` and `select name in words`."""
    variable = node.child_by_field_name("variable")
    body = node.child_by_field_name("body")
    values: list[Node] = []
    listed = select = False
    for child in reader.children(node):
        select |= child.type == "select"
        if child.type == "in":
            listed = True
        elif listed and child.type not in {";", "\n", "comment", "do_group", "compound_statement"}:
            values.append(child)
    if variable is None or body is None:
        return reader.hidden(node)
    name = reader.text(variable.start_byte, variable.end_byte)
    words = reader.scan(reader.spans(values))
    reader.state.assign(name, None)
    text, once = _text(reader, node), partial(reader.run_node, body)
    if listed and not select:
        return branching.each(reader.state, name, words, text, once)
    return branching.repeat(reader.state, text, once)


def _text(reader: Reader, node: Node) -> str:
    return reader.source[node.start_byte : node.end_byte]


def repeated(reader: Reader, node: Node) -> Pair:
    """Read `while … do … done` and `until …`."""
    parts = reader.children(node)
    body = node.child_by_field_name("body")
    if body is None or not parts:
        return reader.hidden(node)
    condition = partial(_sequence, reader, [part for part in parts[1:] if part.start_byte < body.start_byte])
    once = partial(reader.run_node, body)
    return branching.repeated(reader.state, _text(reader, node), condition, once, until=parts[0].type == "until")


def counted(reader: Reader, node: Node) -> Pair:
    """Read `for ((…)); do … done`: the numbers are evaluated."""
    body = node.child_by_field_name("body")
    steps = _steps(reader, node, body)
    if not steps:
        shown = reader.text(node.start_byte, node.end_byte)[:40]
        reader.opaque(f"`{shown}` evaluates numbers, which may run something")
    for child in reader.children(node):
        if body is not None and child.start_byte < body.start_byte and child.child_count:
            reader.note(child)
            Scanner(reader).live(child.start_byte, child.end_byte, quotes=True)
            assigned = re.match(r"[A-Za-z_]\w*", reader.source[child.start_byte : child.end_byte])
            if assigned is not None:
                reader.state.assign(assigned[0], None)
    if body is None:
        return reader.hidden(node)
    text, once = _text(reader, node), partial(reader.run_node, body)
    if steps:
        return branching.unrolled(
            reader.state, steps[0].text, steps[1:], text, partial(_kept, reader, steps[0].text, once)
        )
    return branching.repeat(reader.state, text, once)


def _kept(reader: Reader, name: str, once: Callable[[], Pair]) -> Pair:
    """Read a body and see that it leaves the counter alone, under whatever name: the shell computes with it again."""
    names = reader.state.names
    before = names[name] = names.get(name) or NUMBER
    pair = once()
    if reader.state.names.get(name) is not before:
        reader.opaque(f"the counter `{name}` is set in its loop, and evaluated behind it, which may run something")
    return pair


def _steps(reader: Reader, node: Node, body: Node | None) -> list[Word]:
    """Return the variable and the numbers of a loop that only counts, nothing for any other."""
    found = _COUNTS.match(reader.source, node.start_byte, node.end_byte)
    if found is None or body is None:
        return []
    name, state = found[1], reader.state
    seen = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", "", reader.source[body.start_byte : body.end_byte])
    if state.tainted or name in state.names or name in state.fixed or re.search(rf"\b{name}\b", seen):
        return []
    numbers = range(int(found[2]), int(found[4]) + (found[3] == "<="))
    return [constant(name), *(constant(str(number)) for number in numbers)] if 0 < len(numbers) <= _COUNTED else []
