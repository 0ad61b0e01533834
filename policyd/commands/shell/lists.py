"""Lists, pipelines, groups, subshells and functions in the tree.

Rules of this module:

1. Behind `&&` and `||` stands what may not run: only what is the same either way is known afterwards.
2. A redirection that the tree hangs on a list or pipeline belongs to its last command.
3. Lists and pipelines are walked without recursion, however long they are; `|` binds closer than `&&` and `||`,
   however the tree nests them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from policyd.commands.lexing.run import SHOWN
from policyd.commands.shell import redirects
from policyd.commands.shell.redirects import REDIRECTS
from policyd.commands.shell.statements import call, command, conditional, declaration, statement_assignment
from policyd.commands.shell.words import Scanner
from policyd.commands.state import Pair, builtins, then
from policyd.model import MOVERS

if TYPE_CHECKING:
    from tree_sitter import Node

    from policyd.commands.shell.grammar import Reader


Step = tuple[str, "Node", list["Node"]]
"""What joins a statement to the one before, the statement, its redirections."""

_JOINED = frozenset({"list", "pipeline"})
_MOVERS = re.compile(rf"\b(?:{'|'.join(MOVERS)})\b").finditer
_OPERATORS = frozenset({"&&", "||", "|", "|&"})


def redirected(reader: Reader, node: Node) -> Pair:
    """Read a statement with redirections; behind a list or pipeline they belong to its last command."""
    return with_redirects(reader, node, [])


def with_redirects(reader: Reader, body: Node, targets: list[Node]) -> Pair:
    """Read `body`, whose redirections are `targets`."""
    while body.type == "redirected_statement":
        targets = _own(reader, body) + targets
        inner = body.child_by_field_name("body")
        if inner is None:
            return call(reader, [], [], targets, reader.text(body.start_byte, body.end_byte))
        body = inner
    method = _REDIRECTED.get(body.type)
    return _compound(reader, body, targets) if method is None else method(reader, body, targets)


def _own(reader: Reader, node: Node) -> list[Node]:
    return [child for child in reader.children(node) if child.type in REDIRECTS]


def _compound(reader: Reader, body: Node, targets: list[Node]) -> Pair:
    here = reader.state.cwd
    if redirects.behind(reader, targets, []):
        reader.opaque("words stand behind the redirection of a group")
    fed, document = reader.fed, reader.document
    uses = redirects.read(reader, targets)
    first = len(reader.run.commands)
    pair = reader.run_node(body)
    redirects.add(reader, uses, redirects.carrier(reader, first), here)
    reader.fed, reader.document = fed, document
    return pair


def joined(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `a && b || c | d`, however long and however the tree nests it; redirections belong to the last before."""
    steps = _steps(reader, node, behind or [])
    if not steps:
        return reader.hidden(node)
    pair: Pair = (reader.state.cwd, reader.state.cwd)
    for first, pipeline in _pipelines(steps):
        if first in {"&&", "||"}:
            leaves = len(pipeline) == 1 and _leaves(pipeline[0][1])
            pair = then(reader.state, pair, first, partial(_pipeline, reader, pipeline), leaves=leaves)
        else:
            pair = _pipeline(reader, pipeline)
    return pair


def _steps(reader: Reader, node: Node, behind: list[Node]) -> list[Step]:
    """Return the statements of a list or pipeline in order, none where it is not understood."""
    found: list[Step] = []
    operator, stack = "", [(node, behind)]
    while stack:
        here, targets = stack.pop()
        kind = here.type
        if kind in _JOINED:
            parts = [part for part in reader.children(here) if part.type != "comment"]
            if not parts or parts[-1].type in _OPERATORS:
                return []
            stack.append((parts.pop(), targets))
            stack += [(part, []) for part in reversed(parts)]
        elif kind == "redirected_statement" and _redirected_body(here).type in _JOINED | {kind}:
            stack.append((_redirected_body(here), _own(reader, here) + targets))
        elif kind in _OPERATORS:
            operator = kind
        else:
            found.append((operator, here, targets))
    return found


def _pipelines(steps: list[Step]) -> Iterator[tuple[str, list[Step]]]:
    first = 0
    for place in range(1, len(steps) + 1):
        if place == len(steps) or steps[place][0] not in {"|", "|&"}:
            yield steps[first][0], steps[first:place]
            first = place


def _pipeline(reader: Reader, steps: list[Step]) -> Pair:
    """Read `a | b`: each part in a shell of its own, all but the first fed by the one before."""
    if len(steps) == 1:
        return _one(reader, steps[0])
    state, fed, document = reader.state, reader.fed, reader.document
    here = state.cwd
    for number, step in enumerate(steps):
        before = state.known()
        state.cwd = here
        if number:
            reader.fed, reader.document = "|", None
        _one(reader, step)
        state.join(before)
    reader.fed, reader.document = fed, document
    return here, here


def _one(reader: Reader, step: Step) -> Pair:
    _, node, targets = step
    return with_redirects(reader, node, targets) if targets else reader.run_node(node)


def negated(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `! a`."""
    here = reader.state.cwd
    success, failure = here, here
    for child in reader.children(node):
        if child.type != "!":
            success, failure = with_redirects(reader, child, behind) if behind else reader.run_node(child)
    return failure, success


def subshell(reader: Reader, node: Node) -> Pair:
    """Read `( … )`; `((` begins arithmetic to bash, wherever it stands."""
    here = reader.state.cwd
    if reader.source.startswith("((", node.start_byte):
        computed(reader, node)
    reader.apart(reader.enclosed, node)
    return here, here


def group(reader: Reader, node: Node) -> Pair:
    """Read `{ …; }`, `do … done`, or `(( … ))`."""
    nodes = node.children
    if nodes[0].type == "((":
        return evaluated(reader, node)
    if len(nodes) < 3 or nodes[-1].is_missing:  # bash takes `{}` for the name of a program
        return reader.hidden(node)
    return reader.sequence(nodes[1:-1], nodes[0].end_byte, nodes[-1].start_byte)


def evaluated(reader: Reader, node: Node) -> Pair:
    """Read `(( … ))`: arithmetic, which may run a subscript."""
    state, shown = reader.state, reader.text(node.start_byte, node.end_byte)[:SHOWN]
    inner = reader.source[node.start_byte + 2 : node.end_byte - 2]
    closed = reader.source.startswith("))", node.end_byte - 2) and not state.lesser
    builtins.compute(inner if closed else "[", state, reader.opaque, f"`{shown}`")
    reader.note(node)
    Scanner(reader).live(node.start_byte + 2, node.end_byte, quotes=True)
    return state.cwd, state.cwd


def computed(reader: Reader, node: Node) -> None:
    """Note that bash takes for arithmetic what the grammar takes for a list."""
    reader.opaque(f"`{reader.text(node.start_byte, node.end_byte)[:SHOWN]}` is evaluated, which may run something")
    reader.state.names = dict.fromkeys(reader.state.names)


def function(reader: Reader, node: Node) -> Pair:
    """Read a function: its body may run at any later point, in any directory, and may leave for another."""
    here = reader.state.cwd
    reader.state.taint_all("a function may stand in for a program")
    for child in reader.children(node):
        if reader.is_statement(child):
            reader.apart(_function_body, reader, child)
            moves = _moves(reader.source)
            if bisect_left(moves, child.start_byte) < bisect_left(moves, child.end_byte):
                here = ()
        elif child.type in REDIRECTS:
            redirects.add(reader, redirects.read(reader, [child]), -1, ())
        elif child.type == "ERROR":
            reader.hidden(child)
    return here, here


@lru_cache(8)
def _moves(source: str) -> tuple[int, ...]:
    """Return where a text may change the directory; many functions of one text are held against that."""
    return tuple([found.start() for found in _MOVERS(source)])


def _function_body(reader: Reader, node: Node) -> None:
    places, moves = reader.state.cwd, _moves(reader.source)
    outside = bool(moves) and not node.start_byte <= moves[0] <= moves[-1] < node.end_byte
    reader.state.cwd = places if len(places) == 1 and not outside else ()
    reader.run_node(node)


def _redirected_body(node: Node) -> Node:
    """Return what a redirected statement redirects; the node itself where that is nothing."""
    inner = node.child_by_field_name("body")
    return inner if inner is not None else node.children[0]


def _leaves(node: Node) -> bool:
    """Say whether a statement certainly ends the shell (`|| exit 1`)."""
    if node.type == "compound_statement" and node.named_child_count:
        if [child for child in node.children if child.type == "&"]:
            return False
        node = node.named_children[-1]
    name = node.child_by_field_name("name") if node.type == "command" else None
    return name is not None and name.text in {b"exit", b"return"}


_REDIRECTED: dict[str, Callable[[Reader, Node, list[Node]], Pair]] = {
    "command": command,
    "declaration_command": declaration,
    "list": joined,
    "negated_command": negated,
    "pipeline": joined,
    "test_command": conditional,
    "unset_command": declaration,
    "variable_assignment": statement_assignment,
    "variable_assignments": statement_assignment,
}
