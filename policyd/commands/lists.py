"""Lists, pipelines, groups, subshells and functions in the tree.

Rules of this module:

1. Behind `&&` and `||` stands what may not run: only what is the same either way is known afterwards.
2. A redirection that the tree hangs on a list or pipeline belongs to its last command.
3. Lists and pipelines are walked without recursion, however long they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import tree_sitter

from policyd.commands import redirects
from policyd.commands.redirects import REDIRECTS
from policyd.commands.run import SHOWN
from policyd.commands.state import NO_NAMES, Pair, then
from policyd.commands.statements import call, command, conditional, declaration
from policyd.commands.words import Scanner

if TYPE_CHECKING:
    from policyd.commands.grammar import Reader

Node = tree_sitter.Node


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
    redirects.add(reader, uses, first if len(reader.run.commands) > first else -1, here)
    reader.fed, reader.document = fed, document
    return pair


def chain(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `a && b || c`, from the left, however long; redirections between belong to the last part before."""
    steps: list[tuple[str, Node, list[Node]]] = []
    targets = list(behind or [])
    while True:
        if node.type == "redirected_statement" and _redirected_body(node).type in {"list", "redirected_statement"}:
            targets = _own(reader, node) + targets
            node = _redirected_body(node)
        elif node.type == "list":
            left, operator, right = _list(reader, node)
            if left is None:
                return reader.hidden(node)
            steps.append((operator, right, targets))
            node, targets = left, []
        else:
            break
    pair = with_redirects(reader, node, targets) if targets else reader.run_node(node)
    for operator, right, own in reversed(steps):
        pair = _then(reader, pair, operator, right, own)
    return pair


def _list(reader: Reader, node: Node) -> tuple[Node | None, str, Node]:
    parts = [child for child in reader.children(node) if child.type != "comment"]
    if len(parts) != 3 or parts[1].type not in {"&&", "||"}:
        return None, "", node
    return parts[0], parts[1].type, parts[2]


def _then(reader: Reader, pair: Pair, operator: str, node: Node, behind: list[Node]) -> Pair:
    return then(
        reader.state,
        pair,
        operator,
        lambda: with_redirects(reader, node, behind) if behind else reader.run_node(node),
        leaves=operator == "||" and _leaves(node),
    )


def pipeline(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `a | b`: each part in a shell of its own, all but the first fed by the one before."""
    parts: list[tuple[Node, list[Node]]] = []
    targets = list(behind or [])
    while True:
        if node.type == "redirected_statement" and _redirected_body(node).type in {"pipeline", "redirected_statement"}:
            targets = _own(reader, node) + targets
            node = _redirected_body(node)
        elif node.type == "pipeline":
            inside = [child for child in reader.children(node) if child.type not in {"|", "|&", "comment"}]
            parts.append((inside[-1], targets))
            parts += [(part, []) for part in reversed(inside[1:-1])]
            node, targets = inside[0], []
        else:
            parts.append((node, targets))
            break
    here, fed, document = reader.state.cwd, reader.fed, reader.document
    for number, (part, own) in enumerate(reversed(parts)):
        before = dict(reader.state.names) if reader.state.names else NO_NAMES
        reader.state.cwd = here
        if number:
            reader.fed, reader.document = "|", None
        if own:
            with_redirects(reader, part, own)
        else:
            reader.run_node(part)
        reader.state.join(before)
    reader.fed, reader.document = fed, document
    return here, here


def negated(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `! a`."""
    here = reader.state.cwd
    success, failure = here, here
    for child in reader.children(node):
        if child.type != "!":
            success, failure = with_redirects(reader, child, behind) if behind else reader.run_node(child)
    return failure, success


def subshell(reader: Reader, node: Node) -> Pair:
    """Read `( … )`."""
    here = reader.state.cwd
    reader.apart(lambda: reader.inside(node))
    return here, here


def group(reader: Reader, node: Node) -> Pair:
    """Read `{ …; }`, `do … done`, or `(( … ))`."""
    nodes = node.children
    if nodes[0].type == "((":
        return evaluated(reader, node)
    if len(nodes) < 2 or nodes[-1].is_missing:
        return reader.hidden(node)
    return reader.sequence(nodes[1:-1], nodes[0].end_byte, nodes[-1].start_byte)


def evaluated(reader: Reader, node: Node) -> Pair:
    """Read `(( … ))`: arithmetic, which may run a subscript."""
    reader.opaque(f"`{reader.text(node.start_byte, node.end_byte)[:SHOWN]}` is evaluated, which may run something")
    for name in re.findall(
        r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)", reader.text(node.start_byte, node.end_byte)
    ):
        reader.state.assign(name, None, plain=True)
    reader.state.names = dict.fromkeys(reader.state.names)
    reader.note(node)
    Scanner(reader).live(node.start_byte + 2, node.end_byte, quotes=True)
    return reader.state.cwd, reader.state.cwd


def function(reader: Reader, node: Node) -> Pair:
    """Read a function: its body may run at any later point, in any directory."""
    here = reader.state.cwd
    reader.state.taint_all("a function may stand in for a program")
    for child in reader.children(node):
        if child.type in reader.statements:
            reader.apart(lambda child=child: _function_body(reader, child))  # type: ignore[misc]
        elif child.type in REDIRECTS:
            redirects.add(reader, redirects.read(reader, [child]), -1, ())
        elif child.type == "ERROR":
            reader.hidden(child)
    return here, here


def _function_body(reader: Reader, node: Node) -> None:
    places = reader.state.cwd
    reader.state.cwd = places if len(places) == 1 else ()
    reader.run_node(node)


def _redirected_body(node: Node) -> Node:
    """Return what a redirected statement redirects; the node itself where that is nothing."""
    inner = node.child_by_field_name("body")
    return inner if inner is not None else node.children[0]


def _leaves(node: Node) -> bool:
    """Say whether a statement certainly ends the shell (`|| exit 1`)."""
    if node.type == "compound_statement" and node.named_child_count:
        node = node.named_children[-1]
    name = node.child_by_field_name("name") if node.type == "command" else None
    return name is not None and name.text in {b"exit", b"return"}


_REDIRECTED: dict[str, Callable[[Reader, Node, list[Node]], Pair]] = {
    "command": command,
    "declaration_command": declaration,
    "list": chain,
    "negated_command": negated,
    "pipeline": pipeline,
    "test_command": conditional,
    "unset_command": declaration,
}
