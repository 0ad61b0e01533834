"""Which patterns a path may concern: a filter in front of the exact judgement.

Rules of this module:

1. `PathIndex.candidates` names every pattern that may match in either polarity, and some that do not; its linear
   twin names exactly those that do.
2. All patterns lie in three tries over path components: absolute ones, relative ones, and those that float. A walk
   starts at `/`; at a root of the session, or at a directory the head of a relative pattern leads to, it goes on in the
   relative trie as well. A file system that folds case has tries of its own beside these.
3. The walk is remembered a directory, bounded, for the last sessions that asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct

from policyd.model import PathRef, Reach, Truth, Workspace
from policyd.paths import globs
from policyd.paths.lexical import below, caseless
from policyd.paths.pattern import Alternative, PathPattern
from policyd.paths.segments import DEEP, Matcher, Segment, literal

DIRECTORIES = 4_096
"""Directories whose walk is remembered a session."""
SESSIONS = 16
"""Sessions whose walks are remembered."""


class Linear(Struct, frozen=True):
    """Every pattern, judged one after the other."""

    items: tuple[tuple[PathPattern, int], ...]

    def candidates(self, ref: PathRef, workspace: Workspace) -> Iterable[int]:
        """Return the ids of the patterns that may match `ref` in some polarity."""
        return [each for pattern, each in self.items if _may(pattern, ref, workspace)]


def _may(pattern: PathPattern, ref: PathRef, workspace: Workspace) -> bool:
    if pattern.sure(ref, workspace):
        return True
    return any(pattern.maybe(ref, workspace, None, widen=widen) is not Truth.NO for widen in (True, False))


def linear(items: Iterable[tuple[PathPattern, int]]) -> Linear:
    """Return the naive twin of `PathIndex`."""
    return Linear(tuple(items))


class Node:
    """A place in a trie: where each kind of next component leads, and the patterns that match here and below."""

    __slots__ = ("_all", "deep", "ids", "literals", "loops", "prefixes", "suffixes", "wild")

    def __init__(self, *, loops: bool = False) -> None:
        self.loops = loops
        """A `**`: every component leads here again."""
        self.ids: list[int] = []
        self.literals: dict[str, Node] = {}
        self.prefixes: dict[int, dict[str, Node]] = {}
        self.suffixes: dict[int, dict[str, Node]] = {}
        self.wild: dict[Segment, tuple[Matcher, Node]] = {}
        self.deep: Node | None = None
        self._all: tuple[int, ...] | None = None

    def child(self, segment: Segment) -> Node:
        """Return the node behind `segment`, made if it is not there."""
        if segment is DEEP:
            self.deep = self.deep or Node(loops=True)
            return self.deep
        name = segment.literal
        if name is not None:
            return self.literals.setdefault(name, Node())
        table, affix = self._affix(segment)
        if affix:
            return table.setdefault(len(affix), {}).setdefault(affix, Node())
        return self.wild.setdefault(segment, (segment.matches, Node()))[1]

    def _affix(self, segment: Segment) -> tuple[dict[int, dict[str, Node]], str]:
        """The table of what a wildcard opens or closes with, and that text; empty: it does neither.

        `a*b` is filed as `a*` is: the index may be wide.
        """
        texts = [token if isinstance(token, str) else "" for token in segment.tokens]
        opening, closing = "".join(takewhile(bool, texts)), "".join(takewhile(bool, reversed(texts)))[::-1]
        return (self.prefixes, opening) if opening else (self.suffixes, closing)

    def after(self, name: str) -> Iterator[Node]:
        """The nodes behind the component `name`."""
        if self.loops:
            yield self
        if name in self.literals:
            yield self.literals[name]
        yield from self.fitting(name)

    def fitting(self, name: str) -> list[Node]:
        """The nodes behind wildcards that fit `name`."""
        nodes = [table[name[:size]] for size, table in self.prefixes.items() if name[:size] in table]
        nodes += [table[name[-size:]] for size, table in self.suffixes.items() if name[-size:] in table]
        nodes += [node for matches, node in self.wild.values() if matches(name)]
        return nodes

    def everything(self) -> tuple[int, ...]:
        """The patterns of this node and all below it."""
        if self._all is None:
            below_here = [each for node in self._children() for each in node.everything()]
            self._all = tuple(dict.fromkeys((*self.ids, *below_here)))
        return self._all

    def _children(self) -> Iterator[Node]:
        yield from self.literals.values()
        for table in (*self.prefixes.values(), *self.suffixes.values()):
            yield from table.values()
        yield from (node for _, node in self.wild.values())
        if self.deep is not None:
            yield self.deep


Step = tuple[tuple[Node, ...], tuple[int, ...]]
"""The nodes a walk is at, and the patterns met on the way."""
Tables = tuple[tuple[dict[str, Node], ...], tuple[Node, ...], tuple[int, ...]]
"""Of a directory: what its names lead to, the nodes with wildcards, and the patterns met on the way."""


def _arrive(nodes: Iterable[Node], ids: Iterable[int]) -> Step:
    active: list[Node] = []
    met = list(ids)
    for node in nodes:
        active.append(node)
        met += node.ids
        if node.deep is not None:
            active.append(node.deep)
            met += node.deep.ids
    return tuple(dict.fromkeys(active)), tuple(dict.fromkeys(met))


class _Walks:
    """The walks of one session, remembered a directory."""

    def __init__(self, workspace: Workspace, starts: dict[str, list[Node]]) -> None:
        self.workspace = workspace
        self.starts = starts
        self.known: dict[str, Step] = {}
        self.tables: dict[str, Tables] = {}

    def ids(self, path: str) -> tuple[int, ...]:
        """The patterns that match `path` or a directory above it."""
        if path in self.starts:
            return self._step(path)[1]
        parent, _, name = path.rpartition("/")
        tables = self.tables.get(parent)
        literals, wild, ids = self._tabled(parent) if tables is None else tables
        after = [table[name] for table in literals if name in table]
        for node in wild:
            after += node.fitting(name)
        return _arrive(after, ids)[1] if after else ids

    def _tabled(self, parent: str) -> Tables:
        nodes, ids = self._directory(parent or "/")
        literals = tuple(node.literals for node in nodes if node.literals)
        wild = tuple(node for node in nodes if node.prefixes or node.suffixes or node.wild)
        if len(self.tables) >= DIRECTORIES:
            self.tables.clear()
        self.tables[parent] = literals, wild, ids
        return self.tables[parent]

    def reached(self, path: str) -> Iterator[int]:
        """The patterns that match `path`, a directory above it, or something below it."""
        nodes, ids = self._step(path)
        yield from ids
        for node in nodes:
            yield from node.everything()
        for start, some in self.starts.items():
            if below(path, start) is not None:
                for node in some:
                    yield from node.everything()

    def _step(self, path: str) -> Step:
        if path == "/":
            return self._directory(path)
        parent, _, name = path.rpartition("/")
        nodes, ids = self._directory(parent or "/")
        after = [child for node in nodes for child in node.after(name)]
        if path in self.starts:
            after += self.starts[path]
        return _arrive(after, ids) if after else ((), ids)

    def _directory(self, path: str) -> Step:
        found = self.known.get(path)
        if found is None:
            found = _arrive(self.starts["/"], ()) if path == "/" else self._walk(path)
            if len(self.known) >= DIRECTORIES:
                self.known.clear()
            self.known[path] = found
        return found

    def _walk(self, path: str) -> Step:
        """From the nearest directory above that is known, without recursion: paths may be long."""
        here = path
        while here not in self.known and here != "/":
            here = here.rpartition("/")[0] or "/"
        nodes, ids = self._directory(here)
        while here != path:
            end = path.find("/", len(here) + (here != "/"))
            name = path[len(here.rstrip("/")) + 1 : end if end > 0 else None]
            here = f"{here.rstrip('/')}/{name}"
            after = [child for node in nodes for child in node.after(name)]
            nodes, ids = _arrive((*after, *self.starts.get(here, ())), ids)
        return nodes, ids


class _Tries:
    """The tries over many patterns, over names as they are or case-folded."""

    def __init__(self, items: Iterable[tuple[PathPattern, int]], *, folded: bool) -> None:
        self._fold = folded
        self._absolute, self._relative, self._floating = Node(), Node(), Node()
        self._heads: dict[str, Node] = {}
        for pattern, each in items:
            for alternative in pattern.alternatives:
                self._add(alternative, each)

    def walks(self, workspace: Workspace) -> _Walks:
        """Return the walks of a session, none taken yet."""
        starts: dict[str, list[Node]] = {"/": [self._absolute, self._floating]}
        for root in workspace.roots:
            starts.setdefault(self._text(root), []).append(self._relative)
        for head, node in self._heads.items():
            for directory in workspace.heads.get(head, ()) if head else ():
                starts.setdefault(self._text(directory), []).append(node)
        return _Walks(workspace, starts)

    def _text(self, path: str) -> str:
        return caseless(path) if self._fold else path

    def _add(self, alternative: Alternative, each: int) -> None:
        if alternative.floats is not None:
            self._put(self._floating, alternative.floats.segments, each)
        for place in alternative.places:
            self._put(self._absolute, (*_names(place), *alternative.tail.segments), each)
        if alternative.relative and (alternative.floats is None or alternative.head):
            node = self._put(self._relative, _names(alternative.head), None)
            self._heads[alternative.head] = node
            self._put(node, alternative.tail.segments, each)

    def _put(self, node: Node, segments: Iterable[Segment], each: int | None) -> Node:
        """Walk down, making nodes; note the pattern at the end."""
        for segment in segments:
            node = node.child(segment.fold() if self._fold and segment is not DEEP else segment)
        if each is not None:
            node.ids.append(each)
        return node


class PathIndex:
    """A filter over many patterns."""

    def __init__(self, items: Iterable[tuple[PathPattern, int]]) -> None:
        self._items = tuple(items)
        self._exact = _Tries(self._items, folded=False)
        self._folded: _Tries | None = None
        """Made when a session first needs it: a case-folding file system is the exception."""
        self._walks: dict[tuple[int, bool], _Walks] = {}

    def candidates(self, ref: PathRef, workspace: Workspace) -> Iterable[int]:
        """Return the ids of all patterns that may match `ref`, each once, and some that do not."""
        walks = self._session(workspace, folded=False)
        if (
            len(ref.forms) == 1
            and ref.forms[0].startswith("/")
            and not ref.glob
            and not ref.folded
            and ref.reach is not Reach.CONTENT
        ):
            return walks.ids(ref.forms[0])
        paths = tuple(map(globs.head, ref.forms)) if ref.glob else ref.forms
        paths = tuple(path if path.startswith("/") else "/" + path for path in paths)
        find = walks.reached if ref.glob or ref.reach is Reach.CONTENT else walks.ids
        found = dict.fromkeys(each for path in paths for each in find(path))
        if ref.folded:
            walks = self._session(workspace, folded=True)
            find = walks.reached if ref.glob or ref.reach is Reach.CONTENT else walks.ids
            found.update(dict.fromkeys(each for path in paths for each in find(caseless(path))))
        return found

    def _session(self, workspace: Workspace, *, folded: bool) -> _Walks:
        found = self._walks.get((id(workspace), folded))
        if found is None or found.workspace is not workspace:
            if len(self._walks) >= SESSIONS:
                self._walks.clear()
            found = self._walks[id(workspace), folded] = self._tries(folded=folded).walks(workspace)
        return found

    def _tries(self, *, folded: bool) -> _Tries:
        if not folded:
            return self._exact
        self._folded = self._folded or _Tries(self._items, folded=True)
        return self._folded


def _names(path: str) -> tuple[Segment, ...]:
    return tuple(literal(name) for name in path.split("/") if name)
