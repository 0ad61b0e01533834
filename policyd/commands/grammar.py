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
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import tree_sitter
import tree_sitter_bash
from msgspec.structs import replace

from policyd.commands import lists, loops, redirects, statements
from policyd.commands.execute import Call, simple
from policyd.commands.plain import constant
from policyd.commands.quoting import decoded, working
from policyd.commands.redirects import REDIRECTS
from policyd.commands.rough import pieces
from policyd.commands.run import DEPTH, SHOWN, Run
from policyd.commands.source import odd_characters, prepare, stand_in
from policyd.commands.state import NO_NAMES, Pair, State, union
from policyd.commands.tame import mark
from policyd.commands.words import QUICK, Scanner
from policyd.model import Word, WordKind

Node = tree_sitter.Node

_GAPS = frozenset({"", " ", "\n", "  ", "\t", "\n\n", "\n  ", "\n    "})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_STATEMENT_ENDS = frozenset({";", "\n", "&", "comment"})
_MARKS = re.compile(r"\$[(\[{]|`|[<>]\(")
_LITERAL_ARITHMETIC = re.compile(r"[0-9\s+\-*/%()<>=!&|^~?:,]*")
_ARITHMETIC_NAME = re.compile(r"\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_CHUNK = 256


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def script(run: Run, text: str, state: State, via: tuple[str, ...]) -> Pair:
    """Read a whole shell text into `run`; return the directories after it."""
    text, reason = odd_characters(text)
    if reason:
        run.opaque(reason)
    source, problems, ends = prepare(text.encode("utf-8", "replace").decode("latin-1"), run.documents)
    for problem in problems:
        run.opaque(problem)
    return Reader(run, source, state, via, "", ends).read()


class Reader:
    """Reads one source text."""

    def __init__(
        self,
        run: Run,
        source: str,
        state: State,
        via: tuple[str, ...],
        fed: str = "",
        ends: Mapping[int, int] | None = None,
    ) -> None:
        self.run = run
        self.source = source
        self.state = state
        self.via = via
        self.fed = fed
        self.document: str | None = None
        self.ends = ends
        self.shown = True
        self.literal = False
        """Whether `document` is what the command is fed, with nothing in it to expand."""
        self.echoed: str | None = None
        """What a `cat` read last prints."""
        self.printed = ""
        self.nodes: dict[int, Node] = {}
        self.opaque = run.opaque
        self.script = script
        self.statements = READERS

    def read(self) -> Pair:
        """Read the whole text."""
        root = _parser().parse(stand_in(self.source)).root_node
        if root.has_error:
            self.opaque("the text is not complete shell syntax, or holds syntax that is not understood")
        pair = self.sequence(root.children, 0, len(self.source))
        if root.has_error:
            self._rough(self.source)
        return pair

    def _rough(self, text: str) -> None:
        """Let strict rules see the words of a text that could not be parsed."""
        strict, self.run.strict = self.run.strict, True
        for words in pieces(decoded(text)):
            simple(self.run, self.state.fork(), Call(words, " ".join([word.text for word in words])), script)
        self.run.strict = strict

    def text(self, start: int, end: int) -> str:
        """Return source text for people."""
        return decoded(self.source[start:end])

    def gap(self, start: int, end: int) -> None:
        """Check that nothing but blanks stands between two parts."""
        between = self.source[start:end]
        if between not in _GAPS and between.strip(" \t\n"):
            self.opaque(f"`{decoded(between)[:SHOWN].strip()}` is not understood")

    def children(self, node: Node) -> Iterator[Node]:
        """Yield the parts of a node, checking what stands between them."""
        at = node.start_byte
        for child in node.children:
            if child.start_byte != at:
                self.gap(at, child.start_byte)
            at = child.end_byte
            yield child
        if at != node.end_byte:
            self.gap(at, node.end_byte)

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
        """Read statements one after the other."""
        here = self.state.cwd
        pair: Pair = (here, here)
        at, last = start, len(nodes)
        for number, node in enumerate(nodes):
            if node.start_byte != at:
                self.gap(at, node.start_byte)
            at = node.end_byte
            kind = node.type
            if kind in _STATEMENT_ENDS:
                continue
            self.state.cwd = union(*pair)
            begun = self.state.cwd
            if number + 1 < last and nodes[number + 1].type == "&":
                before = dict(self.state.names) if self.state.names else NO_NAMES
                self.run_node(node)
                self.state.join(before)
                pair = (begun, begun)
            else:
                pair = self.run_node(node)
        self.gap(at, end)
        return pair

    def spans(self, nodes: list[Node]) -> list[tuple[int, int]]:
        """Return where the words of adjacent nodes begin and end: what touches is one word."""
        found: list[tuple[int, int]] = []
        for node in nodes:
            if found and found[-1][1] == node.start_byte:
                found[-1] = (found[-1][0], node.end_byte)
            else:
                found.append((node.start_byte, node.end_byte))
            self.note(node)
        return found

    def note(self, node: Node) -> None:
        """Remember where the substitutions and expansions inside a word stand."""
        if not node.child_count or _MARKS.search(self.source, node.start_byte, node.end_byte) is None:
            return
        stack = [node]
        while stack:
            here = stack.pop()
            if here.type in _SUBSTITUTIONS or here.type == "expansion":
                self.nodes[here.start_byte] = here
                if here.type in {"command_substitution", "process_substitution"}:
                    continue
            stack += here.children

    def scan(self, spans: list[tuple[int, int]]) -> list[Word]:
        """Return the words at the places given."""
        found: list[Word] = []
        for start, end in spans:
            quick = QUICK(self.source, start, end)
            if quick is None:
                found += Scanner(self).words(start, end)
            else:
                text = quick[quick.lastindex or 0]
                found.append(constant(text if text.isascii() else decoded(text)))
        return found

    def value(self, node: Node | None, start: int, end: int) -> Word:
        """Return the value an assignment gives."""
        if node is not None:
            self.note(node)
        return Scanner(self).value(start, end)

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
            self.apart(lambda: self.inside(node))
        return node.end_byte

    def inside(self, node: Node) -> None:
        nodes = node.children
        if len(nodes) < 2 or nodes[-1].is_missing:
            self.opaque("a substitution is not closed")
        elif nodes[1].type in REDIRECTS and len(nodes) == 3:
            redirects.only(self, nodes[1])
        else:
            self.sequence(nodes[1:-1], nodes[0].end_byte, nodes[-1].start_byte)

    def apart(self, read: Callable[[], object]) -> None:
        """Read a part that runs in a shell of its own, and note what it prints."""
        state, document, first = self.state, self.document, len(self.run.commands)
        self.state, self.echoed = state.fork(), None
        self.run.deeper()
        try:
            read()
        finally:
            self.run.depth -= 1
            self.state, self.document = state, document
        self.printed = self._prints(first) if len(self.run.commands) == first + 1 else ""

    def _prints(self, index: int) -> str:
        """Return what stands for the output of the only command of a substitution."""
        command = self.run.commands[index]
        if self.echoed is None or command.tainted or command.taint or command.strict_only:
            return mark(command)
        self.run.commands[index] = replace(command, idle=True)
        return working(constant(self.echoed.rstrip("\n")))

    def _unseen(self, start: int, end: int) -> int:
        """Read a substitution the grammar does not show, from its own beginning."""
        if self.shown:
            self.opaque("a substitution stands where a grammar does not show it")
        self.run.spend()
        found, size = None, _CHUNK
        while found is None and size < 8 * (end - start + _CHUNK):
            rest = self.source[start : min(end, start + size)]
            found, size = _first(rest), size * 8
        if found is None:
            self._rough(self.source[start:end])
            return end
        reader = Reader(self.run, f": {rest}", self.state, self.via, self.fed)
        reader.nodes[2] = found
        reader.substitution(2, len(reader.source))
        return start + found.end_byte - 2

    def body(self, text: str) -> None:
        """Read what is expanded in the text of a here-document."""
        reader = Reader(self.run, text, self.state, self.via, self.fed)
        reader.shown = False
        Scanner(reader).live(0, len(text), quotes=True)

    def backticks(self, inner: str) -> None:
        """Read the text between backticks."""
        text, problems, ends = prepare(inner, self.run.documents)
        for problem in problems:
            self.opaque(problem)
        self.apart(lambda: Reader(self.run, text, self.state, self.via, self.fed, ends).read())

    def _arithmetic(self, node: Node) -> None:
        inner = self.source[node.start_byte + 2 : node.end_byte - 1].strip("()")
        if _LITERAL_ARITHMETIC.fullmatch(inner):
            return
        constants = _ARITHMETIC_NAME.sub(self._number, inner)
        if _LITERAL_ARITHMETIC.fullmatch(constants) and not re.search(r"(?<![<>=!])=(?!=)|\+\+|--", inner):
            return
        self.opaque(f"`{self.text(node.start_byte, node.end_byte)[:SHOWN]}` is evaluated, which may run something")
        self.state.names = dict.fromkeys(self.state.names)
        Scanner(self).live(node.start_byte + 2, node.end_byte, quotes=True)

    def _number(self, name: re.Match[str]) -> str:
        value = self.state.lookup(name[1])
        known = value is not None and value.kind is WordKind.CONST and re.fullmatch(r"\d{1,18}", value.text)
        return value.text if known and value is not None else name[0]


def _first(rest: str) -> Node | None:
    """Return the complete substitution that `rest` begins with."""
    root = _parser().parse(stand_in(f": {rest}")).root_node
    node = root.descendant_for_byte_range(2, 3)
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
