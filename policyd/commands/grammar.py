"""The walk over the tree of a shell text.

Rules of this module:

1. The tree says what is a command, a list, a loop; the bytes of a word are read by `words`.
2. Every byte between the parts of a node must be blank; a node this walk does not know makes its text opaque, and the
   commands inside it are read all the same.
3. Each method reads one kind of node from `state.cwd` and returns the directories after success and after failure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import tree_sitter
import tree_sitter_bash

from policyd.commands import loops, quoting, redirects
from policyd.commands.execute import Call, simple
from policyd.commands.plain import KEYWORDS, constant
from policyd.commands.quoting import decoded
from policyd.commands.rough import pieces
from policyd.commands.run import DEPTH, Run
from policyd.commands.source import odd_characters, prepare
from policyd.commands.state import NO_NAMES, Pair, State, then, union
from policyd.commands.words import QUICK, Scanner
from policyd.model import Assignment, Word, WordKind

Node = tree_sitter.Node

_GAPS = frozenset({"", " ", "\n", "  ", "\t", "\n\n", "\n  ", "\n    "})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_STATEMENT_ENDS = frozenset({";", "\n", "&", ";;", ";&", ";;&", "comment"})
_MARKS = re.compile(r"\$[(\[{]|`|[<>]\(")
_LITERAL_ARITHMETIC = re.compile(r"[0-9\s+\-*/%()<>=!&|^~?:,]*")
_ARITHMETIC_NAME = re.compile(r"\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\n]*?\])?(\+?=)")
_TESTS_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_TESTS_NAMES = frozenset({"-v", "-R"})
_READ_ELSEWHERE = frozenset({"time", "coproc", "noglob", "nocorrect"})
_SHOWN = 60
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
        self.nodes: dict[int, Node] = {}
        self.opaque = run.opaque

    def read(self) -> Pair:
        """Read the whole text."""
        root = _parser().parse(self.source.encode("latin-1")).root_node
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

    # ---- what nodes are made of ----

    def text(self, start: int, end: int) -> str:
        """Return source text for people."""
        return decoded(self.source[start:end])

    def gap(self, start: int, end: int) -> None:
        """Check that nothing but blanks stands between two parts."""
        between = self.source[start:end]
        if between not in _GAPS and between.strip(" \t\n"):
            self.opaque(f"`{decoded(between)[:_SHOWN].strip()}` is not understood")

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
        method = _METHODS.get(node.type)
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
            self.opaque(f"`{self.text(node.start_byte, node.end_byte)[:_SHOWN]}` is not understood")
        for child in node.children:
            self.state.cwd = here
            if child.type in _METHODS or child.type == "ERROR":
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

    # ---- words ----

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

    # ---- what a scanner asks ----

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
        if node is None or node.end_byte > end or node.type not in _SUBSTITUTIONS:
            return self._unseen(start, end)
        if self.ends is not None and self.ends.get(start, node.end_byte) != node.end_byte:
            self.opaque(f"`{self.text(start, node.end_byte)[:_SHOWN]}` may end elsewhere")
            self._rough(self.source[start:end])
        if node.type == "arithmetic_expansion":
            self._arithmetic(node)
        else:
            self._apart(lambda: self._inside(node))
        return node.end_byte

    def _inside(self, node: Node) -> None:
        nodes = node.children
        if len(nodes) < 2 or nodes[-1].is_missing:
            self.opaque("a substitution is not closed")
        elif nodes[1].type in _REDIRECTS and len(nodes) == 3:
            redirects.only(self, nodes[1])
        else:
            self.sequence(nodes[1:-1], nodes[0].end_byte, nodes[-1].start_byte)

    def _apart(self, read: Callable[[], object]) -> None:
        """Read a part that runs in a shell of its own."""
        state, document = self.state, self.document
        self.state = state.fork()
        self.run.deeper()
        try:
            read()
        finally:
            self.run.depth -= 1
            self.state, self.document = state, document

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
        self._apart(lambda: Reader(self.run, text, self.state, self.via, self.fed, ends).read())

    def _arithmetic(self, node: Node) -> None:
        inner = self.source[node.start_byte + 2 : node.end_byte - 1].strip("()")
        if _LITERAL_ARITHMETIC.fullmatch(inner):
            return
        constants = _ARITHMETIC_NAME.sub(self._number, inner)
        if _LITERAL_ARITHMETIC.fullmatch(constants) and not re.search(r"(?<![<>=!])=(?!=)|\+\+|--", inner):
            return
        self.opaque(f"`{self.text(node.start_byte, node.end_byte)[:_SHOWN]}` is evaluated, which may run something")
        self.state.names = dict.fromkeys(self.state.names)
        Scanner(self).live(node.start_byte + 2, node.end_byte, quotes=True)

    def _number(self, name: re.Match[str]) -> str:
        value = self.state.lookup(name[1])
        known = value is not None and value.kind is WordKind.CONST and re.fullmatch(r"\d{1,18}", value.text)
        return value.text if known and value is not None else name[0]

    # ---- commands ----

    def command(self, node: Node, behind: list[Node] | None = None) -> Pair:
        """Read a simple command; `behind` are redirections that the tree hangs on what is around it."""
        words: list[Node] = []
        assignments: list[tuple[Node, int]] = []
        targets: list[Node] = []
        groups: list[Node] = []
        for child in self.children(node):
            kind = child.type
            if kind in _REDIRECTS:
                targets.append(child)
            elif kind == "variable_assignment" and not words:
                assignments.append((child, child.end_byte))
            elif assignments and not words and assignments[-1][1] == child.start_byte:
                self.note(child)
                assignments[-1] = (assignments[-1][0], child.end_byte)
            elif kind == "command_name":
                if child.end_byte > child.start_byte:
                    words += child.children
            elif kind == "subshell":
                groups.append(child)
            elif kind != "comment":
                words.append(child)
        source = self.text(node.start_byte, node.end_byte)
        pair = self.call(words, assignments, targets + (behind or []), source)
        for group in groups:
            self.opaque(f"`{source[:_SHOWN]}` is not understood")
            self.run_node(group)
        return pair

    def call(self, words: list[Node], assignments: list[tuple[Node, int]], targets: list[Node], source: str) -> Pair:
        """Run words with assignments before them and redirections around them."""
        spans = self.spans(words)
        if targets:
            spans = redirects.behind(self, targets, spans)
        more: list[list[tuple[int, int]]] = []
        if spans and self.source.find("\n", spans[0][0], spans[-1][1]) >= 0:
            spans, *more = self._lines(spans)
        if assignments and spans and self.source.find("\n", assignments[-1][1], spans[0][0]) >= 0:
            self.opaque("a line ends inside what the grammar takes for one command")
            for child, end in assignments:
                self.assignment(child, end, prefix=False)
        late: list[tuple[int, int]] = []
        while spans and (assignments or late) and _ASSIGNED.match(self.source, *spans[0]):
            late.append(spans.pop(0))
        argv = self.scan(spans)
        read = [self.assignment(child, end, prefix=bool(argv)) for child, end in assignments]
        read += [self.assignment(None, end, start=start, prefix=bool(argv)) for start, end in late]
        env = [found for found in read if found is not None]
        fed, document = self.fed, self.document
        uses = redirects.read(self, targets) if targets else None
        here = self.state.cwd
        index = len(self.run.commands)
        pair: Pair = (here, here)
        if argv:
            self._keyword(argv[0])
            call = Call(tuple(argv), source, tuple(env), self.via, self.fed, self.document)
            index, pair = simple(self.run, self.state, call, script)
        for line in more:
            pair = simple(self.run, self.state, Call(tuple(self.scan(line)), source, (), self.via, self.fed), script)[1]
        if uses is not None:
            redirects.add(self, uses, index if argv else -1, here)
        self.fed, self.document = fed, document
        return pair

    def _lines(self, spans: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """Divide words between which the grammar overlooked the end of a line."""
        lines = [[spans[0]]]
        for before, span in itertools.pairwise(spans):
            if self.source.find("\n", before[1], span[0]) >= 0:
                self.opaque("a line ends inside what the grammar takes for one command")
                lines.append([])
            lines[-1].append(span)
        return lines

    def _keyword(self, word: Word) -> None:
        if (
            word.kind is WordKind.CONST
            and (word.text in KEYWORDS or word.text in {"{", "}", "!"})
            and word.text not in _READ_ELSEWHERE
        ):
            self.opaque(f"`{word.text}` stands where a command was expected")

    def assignment(self, node: Node | None, end: int, *, start: int = 0, prefix: bool) -> Assignment | None:
        """Read `name=value` up to `end`; without a command behind it, it sets the variable."""
        start = node.start_byte if node is not None else start
        match = _ASSIGNED.match(self.source, start, end)
        self.run.spend()
        if match is None:
            self.opaque(f"`{self.text(start, end)[:_SHOWN]}` is not understood")
            if node is not None:
                self.hidden(node)
            return None
        name = match[1]
        if match[2] and not re.fullmatch(r"\[\d+\]", match[2]):
            self.opaque(f"the subscript in `{self.text(start, end)[:_SHOWN]}` is evaluated, which may run something")
            if node is not None:
                self.note(node)
            Scanner(self).live(match.start(2), match.end(2), quotes=True)
        value: Word | None = None
        last = node.children[-1] if node is not None and end == node.end_byte else None
        if last is not None and last.type == "array":
            self.scan(self.spans(list(last.children[1:-1])))
        else:
            value = self.value(node, match.end(), end)
        if match[2] or match[3] == "+=":
            value = None
        if not prefix:
            self.state.assign(name, value)
            return None
        return Assignment(name, value if value is not None else quoting.unknown(self.text(start, end)))

    def declaration(self, node: Node, behind: list[Node] | None = None) -> Pair:
        """Read `export`, `declare`, `local`, `readonly`, `typeset`, `unset` and their words."""
        argv: list[Word] = []
        words: list[Node] = []
        for child in self.children(node):
            if child.type == "variable_assignment":
                argv += self.scan(self.spans(words))
                words = []
                argv.append(self._declared(child))
            else:
                words.append(child)
        spans = self.spans(words)
        spans = redirects.behind(self, behind, spans) if behind else spans
        argv += self.scan(spans)
        source = self.text(node.start_byte, node.end_byte)
        here = self.state.cwd
        uses = redirects.read(self, behind) if behind else None
        call = Call(tuple(argv), source, (), self.via, self.fed, self.document)
        index, pair = simple(self.run, self.state, call, script)
        if uses is not None:
            redirects.add(self, uses, index, here)
        return pair

    def _declared(self, node: Node) -> Word:
        start, end = node.start_byte, node.end_byte
        pair = self.assignment(node, end, prefix=True)
        match = _ASSIGNED.match(self.source, start, end)
        head = match[0] if match is not None else ""
        if pair is not None and pair.value.kind is WordKind.CONST and match is not None and match[3] == "=":
            return Word(head + pair.value.text)
        return Word(self.text(start, end), WordKind.UNKNOWN, head)

    # ---- lists and groups ----

    def redirected(self, node: Node) -> Pair:
        """Read a statement with redirections; behind a list or pipeline they belong to its last command."""
        return self.with_redirects(node, [])

    def with_redirects(self, body: Node, targets: list[Node]) -> Pair:
        """Read `body`, whose redirections are `targets`."""
        while body.type == "redirected_statement":
            targets = self._own(body) + targets
            inner = body.child_by_field_name("body")
            if inner is None:
                return self.call([], [], targets, self.text(body.start_byte, body.end_byte))
            body = inner
        method = _REDIRECTED.get(body.type)
        return self._compound(body, targets) if method is None else method(self, body, targets)

    def _compound(self, body: Node, targets: list[Node]) -> Pair:
        here = self.state.cwd
        if redirects.behind(self, targets, []):
            self.opaque("words stand behind the redirection of a group")
        fed, document = self.fed, self.document
        uses = redirects.read(self, targets)
        first = len(self.run.commands)
        pair = self.run_node(body)
        redirects.add(self, uses, first if len(self.run.commands) > first else -1, here)
        self.fed, self.document = fed, document
        return pair

    def chain(self, node: Node, behind: list[Node] | None = None) -> Pair:
        """Read `a && b || c`, from the left, however long; redirections between belong to the last part before."""
        steps: list[tuple[str, Node, list[Node]]] = []
        targets = list(behind or [])
        while True:
            if node.type == "redirected_statement" and _body(node).type in {"list", "redirected_statement"}:
                targets = self._own(node) + targets
                node = _body(node)
            elif node.type == "list":
                left, operator, right = self._list(node)
                if left is None:
                    return self.hidden(node)
                steps.append((operator, right, targets))
                node, targets = left, []
            else:
                break
        pair = self.with_redirects(node, targets) if targets else self.run_node(node)
        for operator, right, own in reversed(steps):
            pair = self._then(pair, operator, right, own)
        return pair

    def _own(self, node: Node) -> list[Node]:
        return [child for child in self.children(node) if child.type in _REDIRECTS]

    def _list(self, node: Node) -> tuple[Node | None, str, Node]:
        parts = [child for child in self.children(node) if child.type != "comment"]
        if len(parts) != 3 or parts[1].type not in {"&&", "||"}:
            return None, "", node
        return parts[0], parts[1].type, parts[2]

    def _then(self, pair: Pair, operator: str, node: Node, behind: list[Node]) -> Pair:
        return then(
            self.state,
            pair,
            operator,
            lambda: self.with_redirects(node, behind) if behind else self.run_node(node),
            leaves=operator == "||" and _leaves(node),
        )

    def pipeline(self, node: Node, behind: list[Node] | None = None) -> Pair:
        """Read `a | b`: each part in a shell of its own, all but the first fed by the one before."""
        parts: list[tuple[Node, list[Node]]] = []
        targets = list(behind or [])
        while True:
            if node.type == "redirected_statement" and _body(node).type in {"pipeline", "redirected_statement"}:
                targets = self._own(node) + targets
                node = _body(node)
            elif node.type == "pipeline":
                inside = [child for child in self.children(node) if child.type not in {"|", "|&", "comment"}]
                parts.append((inside[-1], targets))
                parts += [(part, []) for part in reversed(inside[1:-1])]
                node, targets = inside[0], []
            else:
                parts.append((node, targets))
                break
        here, fed, document = self.state.cwd, self.fed, self.document
        for number, (part, own) in enumerate(reversed(parts)):
            before = dict(self.state.names) if self.state.names else NO_NAMES
            self.state.cwd = here
            if number:
                self.fed, self.document = "|", None
            if own:
                self.with_redirects(part, own)
            else:
                self.run_node(part)
            self.state.join(before)
        self.fed, self.document = fed, document
        return here, here

    def negated(self, node: Node, behind: list[Node] | None = None) -> Pair:
        """Read `! a`."""
        here = self.state.cwd
        success, failure = here, here
        for child in self.children(node):
            if child.type != "!":
                success, failure = self.with_redirects(child, behind) if behind else self.run_node(child)
        return failure, success

    def subshell(self, node: Node) -> Pair:
        """Read `( … )`."""
        here = self.state.cwd
        self._apart(lambda: self._inside(node))
        return here, here

    def group(self, node: Node) -> Pair:
        """Read `{ …; }`, `do … done`, or `(( … ))`."""
        nodes = node.children
        if nodes[0].type == "((":
            return self.evaluated(node)
        if len(nodes) < 2 or nodes[-1].is_missing:
            return self.hidden(node)
        return self.sequence(nodes[1:-1], nodes[0].end_byte, nodes[-1].start_byte)

    def evaluated(self, node: Node) -> Pair:
        """Read `(( … ))`: arithmetic, which may run a subscript."""
        self.opaque(f"`{self.text(node.start_byte, node.end_byte)[:_SHOWN]}` is evaluated, which may run something")
        for name in re.findall(
            r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)", self.text(node.start_byte, node.end_byte)
        ):
            self.state.assign(name, None, plain=True)
        self.state.names = dict.fromkeys(self.state.names)
        self.note(node)
        Scanner(self).live(node.start_byte + 2, node.end_byte, quotes=True)
        return self.state.cwd, self.state.cwd

    def statement_assignment(self, node: Node) -> Pair:
        """Read `name=value` that stands alone, or several."""
        nodes = [node] if node.type == "variable_assignment" else list(self.children(node))
        for child in nodes:
            self.assignment(child, child.end_byte, prefix=False)
        return self.state.cwd, self.state.cwd

    # ---- tests ----

    def test(self, node: Node, behind: list[Node] | None = None) -> Pair:
        """Read `[ … ]` as a program and `[[ … ]]` as the shell's own."""
        atoms = list(self._atoms(node))
        if atoms and atoms[0].type == "[":
            return self.call(atoms, [], behind or [], self.text(node.start_byte, node.end_byte))
        spans = self.spans(atoms[1:-1])
        shown = self.text(node.start_byte, node.end_byte)[:_SHOWN]
        here = self.state.cwd
        for start, end in spans:
            text = self.source[start:end]
            if text in _TESTS_ARITHMETIC or text in _TESTS_NAMES:
                self.opaque(f"`{shown}` evaluates a number or name, which may run something")
            elif "[" in text:
                self.opaque(f"`{shown}` may evaluate a subscript, which may run something")
            Scanner(self).live(start, end, quotes=False)
        if behind:
            if redirects.behind(self, behind, []):
                self.opaque("words stand behind the redirection of a test")
            uses = redirects.read(self, behind)
            redirects.add(self, uses, -1, here)
        return here, here

    def _atoms(self, node: Node) -> Iterator[Node]:
        """Yield the words of a test, whatever tree the grammar makes of them."""
        stack = [node]
        at = node.start_byte
        while stack:
            here = stack.pop()
            if here.type in _TEST_TREES:
                stack += reversed(here.children)
                continue
            if here.start_byte > at:
                self.gap(at, here.start_byte)
            at = here.end_byte
            yield here

    # ---- compound statements, in `loops` ----

    def branches(self, node: Node) -> Pair:
        """Read `if`."""
        return loops.branches(self, node)

    def cases(self, node: Node) -> Pair:
        """Read `case`."""
        return loops.cases(self, node)

    def each(self, node: Node) -> Pair:
        """Read `for … in` and `select`."""
        return loops.each(self, node)

    def counted(self, node: Node) -> Pair:
        """Read `for ((…))`."""
        return loops.counted(self, node)

    def repeated(self, node: Node) -> Pair:
        """Read `while` and `until`."""
        return loops.repeated(self, node)

    def function(self, node: Node) -> Pair:
        """Read a function: its body may run at any later point, in any directory."""
        here = self.state.cwd
        self.state.taint_all("a function may stand in for a program")
        for child in self.children(node):
            if child.type in _METHODS:
                self._apart(lambda child=child: self._body(child))  # type: ignore[misc]
            elif child.type in _REDIRECTS:
                redirects.add(self, redirects.read(self, [child]), -1, ())
            elif child.type == "ERROR":
                self.hidden(child)
        return here, here

    def _body(self, node: Node) -> None:
        places = self.state.cwd
        self.state.cwd = places if len(places) == 1 else ()
        self.run_node(node)


def _first(rest: str) -> Node | None:
    """Return the complete substitution that `rest` begins with."""
    root = _parser().parse(f": {rest}".encode("latin-1")).root_node
    node = root.descendant_for_byte_range(2, 3)
    while node is not None and node.type not in _SUBSTITUTIONS:
        node = node.parent
    return node if node is not None and node.start_byte == 2 and not node.has_error else None


def _body(node: Node) -> Node:
    """Return what a redirected statement redirects; the node itself where that is nothing."""
    inner = node.child_by_field_name("body")
    return inner if inner is not None else node.children[0]


def _leaves(node: Node) -> bool:
    """Say whether a statement certainly ends the shell (`|| exit 1`)."""
    if node.type == "compound_statement" and node.named_child_count:
        node = node.named_children[-1]
    name = node.child_by_field_name("name") if node.type == "command" else None
    return name is not None and name.text in {b"exit", b"return"}


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

_METHODS: dict[str, Callable[[Reader, Node], Pair]] = {
    "c_style_for_statement": Reader.counted,
    "case_statement": Reader.cases,
    "command": Reader.command,
    "compound_statement": Reader.group,
    "declaration_command": Reader.declaration,
    "do_group": Reader.group,
    "for_statement": Reader.each,
    "function_definition": Reader.function,
    "if_statement": Reader.branches,
    "list": Reader.chain,
    "negated_command": Reader.negated,
    "pipeline": Reader.pipeline,
    "redirected_statement": Reader.redirected,
    "subshell": Reader.subshell,
    "test_command": Reader.test,
    "unset_command": Reader.declaration,
    "variable_assignment": Reader.statement_assignment,
    "variable_assignments": Reader.statement_assignment,
    "while_statement": Reader.repeated,
}

_REDIRECTED: dict[str, Callable[[Reader, Node, list[Node]], Pair]] = {
    "command": Reader.command,
    "declaration_command": Reader.declaration,
    "list": Reader.chain,
    "negated_command": Reader.negated,
    "pipeline": Reader.pipeline,
    "test_command": Reader.test,
    "unset_command": Reader.declaration,
}

__all__ = ["Reader", "script"]
