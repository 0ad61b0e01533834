"""Simple commands, assignments, declarations and tests in the tree.

Rules of this module:

1. Words that touch are one word, wherever the tree divides them; a line that ends between words ends the command.
2. An assignment before a command belongs to it; alone it sets the variable for what follows.
3. `[ … ]` is a program, `[[ … ]]` the shell's own; what either may evaluate is opaque.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import tree_sitter

from policyd.commands import quoting, redirects
from policyd.commands.execute import Call, simple
from policyd.commands.plain import KEYWORDS
from policyd.commands.redirects import REDIRECTS
from policyd.commands.run import SHOWN
from policyd.commands.state import Pair
from policyd.commands.tame import echoes
from policyd.commands.words import Scanner
from policyd.model import Assignment, Word, WordKind

if TYPE_CHECKING:
    from policyd.commands.grammar import Reader

Node = tree_sitter.Node

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\n]*?\])?(\+?=)")
_TESTS_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_TESTS_NAMES = frozenset({"-v", "-R"})
_READ_ELSEWHERE = frozenset({"time", "coproc", "noglob", "nocorrect"})
_TEST_TREES = frozenset(
    {
        "test_command",
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
        "ternary_expression",
        "postfix_expression",
    }
)


def command(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read a simple command; `behind` are redirections that the tree hangs on what is around it."""
    words: list[Node] = []
    assignments: list[tuple[Node, int]] = []
    targets: list[Node] = []
    groups: list[Node] = []
    for child in reader.children(node):
        kind = child.type
        if kind in REDIRECTS:
            targets.append(child)
        elif kind == "variable_assignment" and not words:
            assignments.append((child, child.end_byte))
        elif assignments and not words and assignments[-1][1] == child.start_byte:
            reader.note(child)
            assignments[-1] = (assignments[-1][0], child.end_byte)
        elif kind == "command_name":
            if child.end_byte > child.start_byte:
                words += child.children
        elif kind == "subshell":
            groups.append(child)
        elif kind != "comment":
            words.append(child)
    source = reader.text(node.start_byte, node.end_byte)
    pair = call(reader, words, assignments, targets + (behind or []), source)
    for group in groups:
        reader.opaque(f"`{source[:SHOWN]}` is not understood")
        reader.run_node(group)
    return pair


def call(
    reader: Reader, words: list[Node], assignments: list[tuple[Node, int]], targets: list[Node], source: str
) -> Pair:
    """Run words with assignments before them and redirections around them."""
    spans = reader.spans(words)
    if targets:
        spans = redirects.behind(reader, targets, spans)
    more: list[list[tuple[int, int]]] = []
    if spans and reader.source.find("\n", spans[0][0], spans[-1][1]) >= 0:
        spans, *more = _lines(reader, spans)
    if assignments and spans and reader.source.find("\n", assignments[-1][1], spans[0][0]) >= 0:
        reader.opaque("a line ends inside what the grammar takes for one command")
        for child, end in assignments:
            assignment(reader, child, end, prefix=False)
    late: list[tuple[int, int]] = []
    while spans and (assignments or late) and _ASSIGNED.match(reader.source, *spans[0]):
        late.append(spans.pop(0))
    argv = reader.scan(spans)
    read = [assignment(reader, child, end, prefix=bool(argv)) for child, end in assignments]
    read += [assignment(reader, None, end, start=start, prefix=bool(argv)) for start, end in late]
    env = [found for found in read if found is not None]
    fed, document = reader.fed, reader.document
    uses = redirects.read(reader, targets) if targets else None
    here = reader.state.cwd
    index = len(reader.run.commands)
    pair: Pair = (here, here)
    if argv:
        _keyword(reader, argv[0])
        made = Call(tuple(argv), source, tuple(env), reader.via, reader.fed, reader.document)
        index, pair = simple(reader.run, reader.state, made, reader.script)
        if reader.document is not None and reader.literal and not uses and echoes(argv, env):
            reader.echoed = reader.document
    for line in more:
        pair = simple(
            reader.run, reader.state, Call(tuple(reader.scan(line)), source, (), reader.via, reader.fed), reader.script
        )[1]
    if uses is not None:
        redirects.add(reader, uses, index if argv else -1, here)
    reader.fed, reader.document = fed, document
    return pair


def _lines(reader: Reader, spans: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Divide words between which the grammar overlooked the end of a line."""
    lines = [[spans[0]]]
    for before, span in itertools.pairwise(spans):
        if reader.source.find("\n", before[1], span[0]) >= 0:
            reader.opaque("a line ends inside what the grammar takes for one command")
            lines.append([])
        lines[-1].append(span)
    return lines


def _keyword(reader: Reader, word: Word) -> None:
    if (
        word.kind is WordKind.CONST
        and (word.text in KEYWORDS or word.text in {"{", "}", "!"})
        and word.text not in _READ_ELSEWHERE
    ):
        reader.opaque(f"`{word.text}` stands where a command was expected")


def assignment(reader: Reader, node: Node | None, end: int, *, start: int = 0, prefix: bool) -> Assignment | None:
    """Read `name=value` up to `end`; without a command behind it, it sets the variable."""
    start = node.start_byte if node is not None else start
    match = _ASSIGNED.match(reader.source, start, end)
    reader.run.spend()
    if match is None:
        reader.opaque(f"`{reader.text(start, end)[:SHOWN]}` is not understood")
        if node is not None:
            reader.hidden(node)
        return None
    name = match[1]
    if match[2] and not re.fullmatch(r"\[\d+\]", match[2]):
        reader.opaque(f"the subscript in `{reader.text(start, end)[:SHOWN]}` is evaluated, which may run something")
        if node is not None:
            reader.note(node)
        Scanner(reader).live(match.start(2), match.end(2), quotes=True)
    value: Word | None = None
    last = node.children[-1] if node is not None and end == node.end_byte else None
    if last is not None and last.type == "array":
        reader.scan(reader.spans(list(last.children[1:-1])))
    else:
        value = reader.value(node, match.end(), end)
    if match[2] or match[3] == "+=":
        value = None
    if not prefix:
        reader.state.assign(name, value)
        return None
    return Assignment(name, value if value is not None else quoting.unknown(reader.text(start, end)))


def declaration(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `export`, `declare`, `local`, `readonly`, `typeset`, `unset` and their words."""
    argv: list[Word] = []
    words: list[Node] = []
    for child in reader.children(node):
        if child.type == "variable_assignment":
            argv += reader.scan(reader.spans(words))
            words = []
            argv.append(_declared(reader, child))
        else:
            words.append(child)
    spans = reader.spans(words)
    spans = redirects.behind(reader, behind, spans) if behind else spans
    argv += reader.scan(spans)
    source = reader.text(node.start_byte, node.end_byte)
    here = reader.state.cwd
    uses = redirects.read(reader, behind) if behind else None
    made = Call(tuple(argv), source, (), reader.via, reader.fed, reader.document)
    index, pair = simple(reader.run, reader.state, made, reader.script)
    if uses is not None:
        redirects.add(reader, uses, index, here)
    return pair


def _declared(reader: Reader, node: Node) -> Word:
    start, end = node.start_byte, node.end_byte
    pair = assignment(reader, node, end, prefix=True)
    match = _ASSIGNED.match(reader.source, start, end)
    head = match[0] if match is not None else ""
    if pair is not None and pair.value.kind is WordKind.CONST and match is not None and match[3] == "=":
        return Word(head + pair.value.text)
    return Word(reader.text(start, end), WordKind.UNKNOWN, head)


def statement_assignment(reader: Reader, node: Node) -> Pair:
    """Read `name=value` that stands alone, or several."""
    nodes = [node] if node.type == "variable_assignment" else list(reader.children(node))
    for child in nodes:
        assignment(reader, child, child.end_byte, prefix=False)
    return reader.state.cwd, reader.state.cwd


def conditional(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `[ … ]` as a program and `[[ … ]]` as the shell's own."""
    atoms = list(_atoms(reader, node))
    if atoms and atoms[0].type == "[":
        return call(reader, atoms, [], behind or [], reader.text(node.start_byte, node.end_byte))
    spans = reader.spans(atoms[1:-1])
    shown = reader.text(node.start_byte, node.end_byte)[:SHOWN]
    here = reader.state.cwd
    for start, end in spans:
        text = reader.source[start:end]
        if text in _TESTS_ARITHMETIC or text in _TESTS_NAMES:
            reader.opaque(f"`{shown}` evaluates a number or name, which may run something")
        elif "[" in text:
            reader.opaque(f"`{shown}` may evaluate a subscript, which may run something")
        Scanner(reader).live(start, end, quotes=False)
    if behind:
        if redirects.behind(reader, behind, []):
            reader.opaque("words stand behind the redirection of a test")
        uses = redirects.read(reader, behind)
        redirects.add(reader, uses, -1, here)
    return here, here


def _atoms(reader: Reader, node: Node) -> Iterator[Node]:
    """Yield the words of a test, whatever tree the grammar makes of them."""
    stack = [node]
    at = node.start_byte
    while stack:
        here = stack.pop()
        if here.type in _TEST_TREES:
            stack += reversed(here.children)
            continue
        if here.start_byte > at:
            reader.gap(at, here.start_byte)
        at = here.end_byte
        yield here
