"""Simple commands, assignments, declarations and tests in the tree.

Rules of this module:

1. Words that touch are one word, wherever the tree divides them; a line that ends between words ends the command.
2. An assignment before a command belongs to it; alone it sets the variable for what follows.
3. `[ … ]` is a program, `[[ … ]]` the shell's own; what either may evaluate is opaque.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from policyd.commands.lexing import quoting
from policyd.commands.lexing.plain import Span, constant
from policyd.commands.lexing.plainwords import NO_PROGRAM
from policyd.commands.lexing.run import SHOWN
from policyd.commands.shell import redirects
from policyd.commands.shell.execute import Call, simple
from policyd.commands.shell.redirects import REDIRECTS
from policyd.commands.shell.tame import echoes
from policyd.commands.shell.words import Scanner, glance
from policyd.commands.state import Pair, State
from policyd.commands.state.arithmetic import is_number
from policyd.model import CONST, UNKNOWN, Assignment, Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from policyd.commands.shell.grammar import Reader
    from policyd.commands.shell.text import Text

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\n]*?\])?(\+?=)")
EVALUATES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})
"""Words of `[[ … ]]` that evaluate a number or a name."""
_QUOTED = re.compile(r"\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_BRACES = re.compile(r"(?<!\$)\{").search
"""What makes several words of one behind `export` and its kin, each of which sets the variable."""
_COMPUTED = re.compile(r"(?<![^\s(])\[(?!(?:0|[1-9][0-9]{0,17})\]\+?=)").search
"""What a word of a list begins with whose place is no plain number; between quotes it may be nothing."""
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
    spans: list[Span] = []
    assignments: list[tuple[Node, int]] = []
    targets: list[Node] = []
    groups: list[Node] = []
    for child in reader.children(node):
        kind = child.type
        if kind == "word" and (spans or not assignments):
            reader.join(spans, child)
        elif kind in REDIRECTS:
            targets.append(child)
        elif kind == "variable_assignment" and not spans:
            assignments.append((child, child.end_byte))
        elif assignments and not spans and assignments[-1][1] == child.start_byte:
            reader.note(child)
            assignments[-1] = (assignments[-1][0], child.end_byte)
        elif kind == "command_name":
            if child.end_byte > child.start_byte:
                for part in child.children:
                    reader.join(spans, part)
        elif kind == "subshell":
            groups.append(child)
        elif kind != "comment":
            reader.join(spans, child)
    shown = reader.text(node.start_byte, node.end_byte)
    pair = call(reader, spans, assignments, targets + behind if behind else targets, shown)
    for group in groups:
        reader.opaque(f"`{shown[:SHOWN]}` is not understood")
        reader.run_node(group)
    return pair


def call(
    reader: Reader, spans: list[Span], assignments: list[tuple[Node, int]], targets: list[Node], shown: str
) -> Pair:
    """Run words with assignments before them and redirections around them."""
    if targets:
        spans = redirects.behind(reader, targets, spans)
    more: list[list[Span]] = []
    if spans and reader.source.find("\n", spans[0][0], spans[-1][1]) >= 0:
        spans, *more = _lines(reader, spans)
    late = _late(reader, spans, assignments, targets) if assignments else []
    argv = tuple(reader.scan(spans))
    env = _environment(reader, assignments, late, prefix=bool(argv)) if assignments else ()
    if assignments and targets and not argv and reader.state.lesser:
        reader.opaque(f"`{shown[:SHOWN]}` is redirected before it sets a variable, or behind that")
    fed, document = reader.fed, reader.document
    uses = redirects.read(reader, targets) if targets else None
    here = reader.state.cwd
    index, pair = -1, (here, here)
    if argv:
        keyword(reader, argv[0])
        made = Call(argv, shown, env, reader.via, reader.fed, reader.document)
        index, pair = simple(reader.run, reader.state, made, reader.script)
        if reader.document is not None and reader.document.literal and echoes(argv, env):
            reader.echoed = reader.document.text
    for words in filter(None, (tuple(reader.scan(line)) for line in more)):  # `{,}` is no word at all
        made = Call(words, shown, (), reader.via, reader.fed)
        pair = simple(reader.run, reader.state, made, reader.script)[1]
    if uses is not None:
        redirects.add(reader, uses, index, here)
    reader.fed, reader.document = fed, document
    return pair


def _lines(reader: Reader, spans: list[Span]) -> list[list[Span]]:
    """Divide words between which the grammar overlooked the end of a line."""
    lines = [[spans[0]]]
    for before, span in itertools.pairwise(spans):
        if reader.source.find("\n", before[1], span[0]) >= 0:
            reader.opaque("a line ends inside what the grammar takes for one command")
            lines.append([])
        lines[-1].append(span)
    return lines


def _late(reader: Reader, spans: list[Span], assignments: list[tuple[Node, int]], targets: list[Node]) -> list[Span]:
    """Take assignments from the front of `spans`, where the tree has words."""
    places = [(node.start_byte, end) for node, end in assignments]
    places += [(node.start_byte, node.end_byte) for node in targets]
    parts = itertools.pairwise(sorted(places + spans[:1]))
    if any(reader.source.find("\n", before[1], behind[0]) >= 0 for before, behind in parts):
        reader.opaque("a line ends inside what the grammar takes for one command")
        for node, end in assignments:
            _assigned(reader, node, end, prefix=False)
    late: list[Span] = []
    while spans and _ASSIGNED.match(reader.source, *spans[0]):
        late.append(spans.pop(0))
    return late


def _environment(
    reader: Reader, assignments: list[tuple[Node, int]], late: list[Span], *, prefix: bool
) -> tuple[Assignment, ...]:
    read = [_assigned(reader, node, end, prefix=prefix) for node, end in assignments]
    return tuple([found for found in read if found is not None]) + environment(reader, late, prefix=prefix)


def keyword(text: Text, word: Word) -> None:
    """Note that a word of the shell stands in the place of a program."""
    if word.text in NO_PROGRAM and word.kind is CONST:
        text.opaque(f"`{word.text}` stands where a command was expected")


def environment(text: Text, places: Iterable[Span], *, prefix: bool) -> tuple[Assignment, ...]:
    """Read `name=value` at every place; without a command behind (`prefix`) they set variables."""
    read = [assignment(text, start, end, prefix=prefix) for start, end in places]
    return tuple([found for found in read if found is not None])


def assignment(
    text: Text, start: int, end: int, *, prefix: bool, items: Sequence[Word] | None = None
) -> Assignment | None:
    """Read `name=value`; without a command behind it, it sets the variable. `items`: the value is a list of those."""
    match = _ASSIGNED.match(text.source, start, end)
    text.run.spend()
    if match is None:
        text.opaque(f"`{text.text(start, end)[:SHOWN]}` is not understood")
        return None
    name = match[1]
    if match[2] and not re.fullmatch(r"\[\d+\]", match[2]):
        text.opaque(f"the subscript in `{text.text(start, end)[:SHOWN]}` is evaluated, which may run something")
        Scanner(text).live(match.start(2), match.end(2), quotes=True)
    elif match[2] and match[2] != f"[{int(match[2][1:-1])}]":
        text.state.forget()  # no number is written so: an error, behind which nothing of the line runs
    if items is not None and not prefix and not match[2]:
        text.state.fill(name, items, more=match[3] == "+=")
        return None
    value = (
        None if items is not None else glance(text.source[match.end() : end]) or Scanner(text).value(match.end(), end)
    )
    if match[2] or match[3] == "+=":
        value = _appended(text.state, name, value) if not match[2] and not prefix else None
    if not prefix:
        text.state.assign(name, value)
        return None
    return Assignment(name, value if value is not None else quoting.unknown(text.text(start, end)))


def _appended(state: State, name: str, value: Word | None) -> Word | None:
    """Return what `name+=value` makes of a variable."""
    before = state.lookup(name)
    if before is None or value is None or before.kind is not CONST or value.kind is not CONST or state.lesser:
        return None
    return constant(before.text + value.text)


def _assigned(reader: Reader, node: Node, end: int, *, prefix: bool) -> Assignment | None:
    """Read an assignment of the tree, up to `end`."""
    start = node.start_byte
    if _ASSIGNED.match(reader.source, start, end) is None:
        reader.hidden(node)
    reader.note(node)
    last = node.children[-1] if end == node.end_byte else None
    listed = last is not None and last.type == "array"
    items: list[Word] | None = None
    if last is not None and listed:
        items = reader.scan(reader.spans([item for item in reader.children(last)[1:-1] if item.type != "comment"]))
        if "=~" in (written := reader.source[last.start_byte : last.end_byte]) or ":~" in written:  # no home here
            items.append(quoting.unknown(quoting.decoded(written)))
        if _COMPUTED(reader.source, last.start_byte + 1, last.end_byte - 1):
            reader.opaque(f"a subscript in `{reader.text(start, end)[:SHOWN]}` is evaluated, which may run something")
    return assignment(reader, start, end, prefix=prefix, items=items)


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
    here, fed, document = reader.state.cwd, reader.fed, reader.document
    uses = redirects.read(reader, behind) if behind else None
    made = Call(tuple(argv), source, (), reader.via, reader.fed, reader.document)
    index, pair = simple(reader.run, reader.state, made, reader.script)
    if uses is not None:
        redirects.add(reader, uses, index, here)
    reader.fed, reader.document = fed, document
    return pair


def _declared(reader: Reader, node: Node) -> Word:
    start, end = node.start_byte, node.end_byte
    return _put(reader, start, end, _assigned(reader, node, end, prefix=True))


def declared(text: Text, start: int, end: int) -> Word | None:
    """Read `name=value` among the words of `export`; None where that is no assignment."""
    if _ASSIGNED.match(text.source, start, end) is None:
        return None
    return _put(text, start, end, assignment(text, start, end, prefix=True))


def _put(text: Text, start: int, end: int, pair: Assignment | None) -> Word:
    """Return the word that an assignment is to the builtin before it."""
    match = _ASSIGNED.match(text.source, start, end)
    head = match[0] if match is not None else ""
    braced = "{" in text.source[start:end] and _BRACES(_QUOTED.sub("", text.source[start:end]))
    if pair is not None and pair.value.kind is CONST and match is not None and match[3] == "=" and not braced:
        return Word(head + pair.value.text)
    return Word(text.text(start, end), UNKNOWN, head)


def statement_assignment(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `name=value` that stands alone, or several; redirections of theirs are expanded last."""
    nodes = [node] if node.type == "variable_assignment" else reader.children(node)
    if behind:
        shown = reader.text(node.start_byte, node.end_byte)
        return call(reader, [], [(child, child.end_byte) for child in nodes], behind, shown)
    for child in nodes:
        _assigned(reader, child, child.end_byte, prefix=False)
    return reader.state.cwd, reader.state.cwd


def conditional(reader: Reader, node: Node, behind: list[Node] | None = None) -> Pair:
    """Read `[ … ]` as a program and `[[ … ]]` as the shell's own."""
    atoms = list(_atoms(reader, node))
    if atoms and atoms[0].type == "[":
        shown = reader.text(node.start_byte, node.end_byte)
        return call(reader, reader.spans(atoms), [], behind or [], shown)
    here = reader.state.cwd
    tested(reader, reader.spans(atoms[1:-1]), reader.text(node.start_byte, node.end_byte))
    if behind:
        if redirects.behind(reader, behind, []):
            reader.opaque("words stand behind the redirection of a test")
        fed, document = reader.fed, reader.document
        uses = redirects.read(reader, behind)
        redirects.add(reader, uses, -1, here)
        reader.fed, reader.document = fed, document
    return here, here


def tested(text: Text, spans: Iterable[Span], shown: str) -> None:
    """Read what the words of `[[ … ]]` may run."""
    places = tuple(spans)
    words = [text.source[start:end] for start, end in places]
    for at, word in enumerate(words):
        if word in EVALUATES and not _compares(words[at - 1 : at + 2], text.state):
            text.opaque(f"`{shown[:SHOWN]}` evaluates a number or name, which may run something")
        elif "[" in word:
            text.opaque(f"`{shown[:SHOWN]}` may evaluate a subscript, which may run something")
        Scanner(text).live(*places[at], quotes=False)


def _compares(words: Sequence[str], state: State) -> bool:
    """Say whether two numbers stand around an operator."""
    return len(words) == 3 and words[1] not in {"-v", "-R"} and all(is_number(one, state.number) for one in words[::2])


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
