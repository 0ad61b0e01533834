"""The walk over the tree of a shell text.

Rules of this module:

1. The tree says what is a command, a list, a loop; the bytes of a word are read by `words`.
2. Every byte between the parts of a node must be blank; a node this walk does not know makes its text opaque, and the
   commands inside it are read all the same.
3. What reads a kind of node (`statements`, `lists`, `loops`) begins in `state.cwd` and returns the directories after
   success and after failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import field
from tree_sitter import Node

from policyd.commands.lexing.plain import Span, counts, divide
from policyd.commands.lexing.plainwords import single
from policyd.commands.lexing.quoting import decoded
from policyd.commands.lexing.rough import pieces
from policyd.commands.lexing.run import DEPTH, SHOWN, Run
from policyd.commands.shell import lists, loops, redirects, statements
from policyd.commands.shell.execute import Call, simple
from policyd.commands.shell.flat import flat, script
from policyd.commands.shell.parsing import beginning, parsed
from policyd.commands.shell.redirects import REDIRECTS
from policyd.commands.shell.text import Text
from policyd.commands.shell.words import Scanner
from policyd.commands.state import Pair, union
from policyd.commands.state.arithmetic import is_over, value
from policyd.model import Word

_GAPS = frozenset({"", " ", "\n", "  ", "\t", "\n\n", "\n  ", "\n    "})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_STATEMENT_ENDS = frozenset({";", "\n", "&", "comment"})
_MARKS = re.compile(r"\$[(\[{]|`|[<>]\(")
_CHUNK = 256


def tree(text: Text, ends: Mapping[int, int] | None) -> Pair:
    """Read a whole text; return the directories after it. `ends` is where its substitutions end."""
    reader = Reader(text.run, text.source, text.state, text.via, script, text.fed, ends=ends)
    reader.document = text.document
    pair = reader.read()
    text.echoed = reader.echoed
    return pair


def body(text: Text, source: str) -> None:
    """Read what is expanded in the text of a here-document."""
    reader = Reader(text.run, source, text.state, text.via, script, text.fed, shown=False)
    Scanner(reader).live(0, len(source), quotes=True)


class Reader(Text):
    """Reads one source text by the tree of the grammar."""

    ends: Mapping[int, int] | None = None
    """Where its substitutions end."""
    nodes: dict[int, Node] = field(default_factory=dict)
    marked: bool = False
    """A substitution may be somewhere."""
    sound: bool = False
    """The grammar took the whole text for complete."""

    def __post_init__(self) -> None:
        """See whether there is anything to remember about nodes."""
        self.marked = _MARKS.search(self.source) is not None

    def read(self) -> Pair:
        """Read the whole text."""
        root = parsed(self.run, self.source)
        if root is None:
            return self._begun()
        broken = root.has_error
        self.sound = not broken
        if broken:
            self.opaque("the text is not complete shell syntax, or holds syntax that is not understood")
        pair = self._statements(root.children, 0, len(self.source))
        if broken:
            self._rough(self.source)
        return pair

    def _begun(self) -> Pair:
        """Read the beginning of a text that may not be parsed as a whole; return that its directory is not known."""
        self.opaque("the text is too long, or too far from shell syntax, to be parsed; its plain words were looked at")
        first = beginning(self.source)
        root = parsed(self.run, first) if first else None
        if root is not None:
            self._statements(root.children, 0, len(first))
        self._rough(self.source)
        return (), ()

    def _rough(self, text: str) -> None:
        """Let strict rules see the words of a text that could not be parsed."""
        strict, self.run.strict = self.run.strict, True
        for words in pieces(decoded(text)):
            simple(self.run, self.state.fork(), Call(words, " ".join([word.text for word in words])), script)
        self.run.strict = strict

    def gap(self, start: int, end: int) -> None:
        """Check that nothing but blanks stands between two parts."""
        between = self.source[start:end]
        if between not in _GAPS and between.strip(" \t\n"):
            self.opaque(f"`{decoded(between)[:SHOWN].strip()}` is not understood")

    def children(self, node: Node) -> list[Node]:
        """Return the parts of a node; what stands between them is blank."""
        children, source, at = node.children, self.source, node.start_byte
        for child in children:
            start = child.start_byte
            if start != at and source[at:start] != " ":
                self.gap(at, start)
            at = child.end_byte
        if at != node.end_byte:
            self.gap(at, node.end_byte)
        return children

    def run_node(self, node: Node) -> Pair:
        """Read a statement."""
        method = READERS.get(node.type)
        if method is None:
            return self.hidden(node)
        run = self.run
        if run.depth >= DEPTH:
            run.deeper()
        run.depth += 1
        pair = method(self, node)
        run.depth -= 1
        return pair

    def is_statement(self, node: Node) -> bool:
        """Say whether a node is read as a statement."""
        return node.type in READERS

    def hidden(self, node: Node) -> Pair:
        """Read the commands inside a node that is not understood."""
        here = self.state.cwd
        if node.type != "ERROR":
            self.run.spend()
            self.opaque(f"`{self.text(node.start_byte, node.end_byte)[:SHOWN]}` is not understood")
        for child in node.children:
            self.state.cwd = here
            if child.type in READERS or child.type == "ERROR":
                self.run_node(child)
            elif child.type in _SUBSTITUTIONS:
                self.nodes[child.start_byte] = child
                self.substitution(child.start_byte, child.end_byte)
            elif child.child_count:
                self.hidden(child)
        return (), ()

    def sequence(self, nodes: list[Node], start: int, end: int) -> Pair:
        """Read the statements inside another, one after the other."""
        parts = divide(self.source[start:end]) if self.sound else None
        if parts is None:
            return self._statements(nodes, start, end)
        text = self.inside(self.source[start:end])
        pair = flat(text, parts)
        self.echoed = text.echoed
        return pair

    def _statements(self, nodes: list[Node], start: int, end: int) -> Pair:
        state, at, last = self.state, start, len(nodes)
        pair: Pair = (state.cwd, state.cwd)
        for number, node in enumerate(nodes, 1):
            begin = node.start_byte
            if begin != at:
                self.gap(at, begin)
            at = node.end_byte
            if node.type in _STATEMENT_ENDS:
                continue
            here = state.cwd = union(*pair)
            if number < last and nodes[number].type == "&":
                before = state.known()
                self.run_node(node)
                state.join(before)
                pair = (here, here)
            else:
                pair = self.run_node(node)
        self.gap(at, end)
        return pair

    def spans(self, nodes: list[Node]) -> list[Span]:
        """Return where the words of adjacent nodes begin and end: what touches is one word."""
        found: list[Span] = []
        for node in nodes:
            self.join(found, node)
        return found

    def join(self, spans: list[Span], node: Node) -> None:
        """Add a node to the words before it; what touches is one word."""
        start = node.start_byte
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], node.end_byte)
        else:
            spans.append((start, node.end_byte))
        if self.marked and node.child_count:
            self.note(node)

    def note(self, node: Node) -> None:
        """Remember where the substitutions and expansions inside a word stand."""
        if _MARKS.search(self.source, node.start_byte, node.end_byte) is None:
            return
        stack = [node]
        while stack:
            here = stack.pop()
            if here.type in _SUBSTITUTIONS or here.type == "expansion":
                self.nodes[here.start_byte] = here
                if here.type in {"command_substitution", "process_substitution"}:
                    continue
            stack += here.children

    def spelled(self, text: str, start: int) -> list[Word]:
        """Return the words that the `text` at `start` becomes."""
        return Scanner(self).words(start, start + len(text))

    def ends_at(self, start: int) -> int:
        """Return where the grammar ends the substitution at `start`."""
        node = self.nodes.get(start)
        return node.end_byte if node is not None else 0

    def closing(self, start: int, end: int) -> int:
        """Return where the `${…}` at `start` ends."""
        node = self.nodes.get(start)
        return node.end_byte if node is not None and node.type == "expansion" and node.end_byte <= end else 0

    def substitution(self, start: int, end: int) -> int:
        """Read the substitution at `start`; return where it ends."""
        node = self.nodes.get(start)
        self.printed = ""
        if node is None or node.end_byte > end or node.type not in _SUBSTITUTIONS:
            return self._unseen(start, end)
        if self.ends is not None and self.ends.get(start, node.end_byte) != node.end_byte:
            self.opaque(f"`{self.text(start, node.end_byte)[:SHOWN]}` may end elsewhere")
            self._rough(self.source[start:end])
        if node.type == "arithmetic_expansion":
            self._arithmetic(node)
        else:
            if self.source.startswith("$((", start) and self.source.startswith("))", node.end_byte - 2):
                lists.computed(self, node)  # a list to the grammar where it stands in `${x:-…}`, and arithmetic to bash
            self.apart(self._substituted_node, node)
        return node.end_byte

    def _substituted_node(self, node: Node) -> None:
        inner = self.source[node.start_byte + 2 : node.end_byte - 1]
        self.lose(inner)
        self.enclosed(node)
        self.single, self.counts = single(inner), counts(inner)

    def enclosed(self, node: Node) -> None:
        """Read what stands between parentheses."""
        nodes = node.children
        if len(nodes) < 2 or nodes[-1].is_missing:
            self.opaque("a substitution is not closed")
        elif nodes[1].type in REDIRECTS and len(nodes) == 3:
            redirects.only(self, nodes[1])
        else:
            self.sequence(nodes[1:-1], nodes[0].end_byte, nodes[-1].start_byte)

    def _unseen(self, start: int, end: int) -> int:
        """Read a substitution the grammar does not show, from its own beginning."""
        if self.shown:
            self.opaque("a substitution stands where a grammar does not show it")
        self.run.spend()
        found, size = None, _CHUNK
        while found is None and size < 8 * (end - start + _CHUNK):
            rest = self.source[start : min(end, start + size)]
            found, size = _first(self.run, rest), size * 8
        if found is None:
            self.opaque("a substitution cannot be followed")
            self._rough(self.source[start:end])
            return end
        reader = Reader(self.run, f": {rest}", self.state, self.via, script, self.fed)
        reader.nodes[2] = found
        reader.substitution(2, len(reader.source))
        return start + found.end_byte - 2

    def _arithmetic(self, node: Node) -> None:
        inner = self.source[node.start_byte + 2 : node.end_byte - 1].removeprefix("(").removesuffix(")")
        if is_over(inner, self.state.number):
            found = value(inner, self.state.number)
            if found is None:
                self.state.forget()  # it may be an error, behind which nothing of the line runs
            else:
                self.printed = found
            return
        self.opaque(f"`{self.text(node.start_byte, node.end_byte)[:SHOWN]}` is evaluated, which may run something")
        self.state.names = dict.fromkeys(self.state.names)
        Scanner(self).live(node.start_byte + 2, node.end_byte, quotes=True)


def _first(run: Run, rest: str) -> Node | None:
    """Return the complete substitution that `rest` begins with."""
    root = parsed(run, f": {rest}")
    node = root.descendant_for_byte_range(2, 3) if root is not None else None
    while node is not None and node.type not in _SUBSTITUTIONS:
        node = node.parent
    return node if node is not None and node.start_byte == 2 and not node.has_error else None


READERS: dict[str, Callable[[Reader, Node], Pair]] = {
    "c_style_for_statement": loops.counted,
    "case_statement": loops.cases,
    "command": statements.command,
    "compound_statement": lists.group,
    "declaration_command": statements.declaration,
    "do_group": lists.group,
    "for_statement": loops.each,
    "function_definition": lists.function,
    "if_statement": loops.branches,
    "list": lists.joined,
    "negated_command": lists.negated,
    "pipeline": lists.joined,
    "redirected_statement": lists.redirected,
    "subshell": lists.subshell,
    "test_command": statements.conditional,
    "unset_command": statements.declaration,
    "variable_assignment": statements.statement_assignment,
    "variable_assignments": statements.statement_assignment,
    "while_statement": loops.repeated,
}
"""Node type -> what reads it."""
