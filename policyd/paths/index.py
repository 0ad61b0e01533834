"""Which patterns may match a path: a filter in front of the exact match.

Rules of this module:

1. `PathIndex.candidates` returns a superset of the patterns that may match in either polarity.
2. All patterns are in two tries over path components: relative ones, and those that start at `/` or float. A walk
   begins at `/`; at a root of the session, or at another directory that the head of a relative pattern resolves to, one
   begins in the relative trie as well. A case-insensitive file system has tries of its own.
3. A wildcard is filed under its longest literal part: a prefix, a suffix, or an inner part.
4. A walk stores nothing: no input of an agent makes the index grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from policyd.model import BELOW, PathRef, Reach, Workspace
from policyd.paths import globs
from policyd.paths.lexical import below, caseless
from policyd.paths.pattern import Alternative, PathPattern
from policyd.paths.segments import DEEP, Matcher, Segment

SESSIONS = 16
"""Sessions whose places are remembered."""
FEW = 8
"""Nodes of a walk that are not worth looking for doubles among."""


Table = dict[int, dict[str, "Node"]]
"""Length of a text -> text -> where it leads."""
Tables = dict[str, Table]
"""The first or last `KEY` characters of a text -> the texts that open or close so: most names are in no table."""
KEY, SHORT = 4, ""


NAMES: dict[str, Node] = {}
TABLE: Table = {}
TEXTS: Tables = {}
WILDS: dict[Segment, tuple[Matcher, Node]] = {}
"""Stand in for the tables of the many places where nothing is filed; never written to."""


class Node:
    """A place in a trie: where each kind of next component leads, and the patterns that match here and below.

    Most names are in none of the tables of most places: so much is told by two look-ups, of how a name begins and ends.
    """

    __slots__ = (
        "_all",
        "closing",
        "deep",
        "holding",
        "ids",
        "literals",
        "loops",
        "opening",
        "rare",
        "tells",
        "wild",
        "wilds",
    )

    def __init__(self, *, loops: bool = False) -> None:
        self.loops = loops
        """A `**`: every component leads here again."""
        self.tells = False
        """A pattern ends here, or a `**` follows."""
        self.ids: Sequence[int] = ()
        self.literals: dict[str, Node] = NAMES
        self.wild = False
        """Something is filed in one of the next four."""
        self.rare = False
        """Something is filed elsewhere than under the first or last characters of a text."""
        self.opening: Tables = TEXTS
        self.closing: Tables = TEXTS
        self.holding: Tables = TEXTS
        self.wilds: dict[Segment, tuple[Matcher, Node]] = WILDS
        """Wildcards without any text."""
        self.deep: Node | None = None
        self._all: tuple[int, ...] | None = None

    def child(self, segment: Segment) -> Node:
        """Return the node behind `segment`, made if it is not there."""
        if segment is DEEP:
            self.tells, self.deep = True, self.deep or Node(loops=True)
            return self.deep
        name = segment.literal
        if name is not None:
            return self.named(name)
        text, opens, closes = telling(segment)
        if not self.wild:
            self.wild, self.opening, self.closing, self.holding, self.wilds = True, {}, {}, {}, {}
        if text:
            tables = self.opening if opens else self.closing if closes else self.holding
            key = SHORT if len(text) < KEY or not (opens or closes) else text[:KEY] if opens else text[-KEY:]
            self.rare = self.rare or key == SHORT
            return tables.setdefault(key, {}).setdefault(len(text), {}).setdefault(text, Node())
        self.rare = True
        return self.wilds.setdefault(segment, (segment.matches, Node()))[1]

    def named(self, name: str) -> Node:
        """Return the node behind a name, made if it is not there."""
        found = self.literals.get(name)
        if found is None:
            found = Node()
            if self.literals:
                self.literals[name] = found
            else:
                self.literals = {name: found}
        return found

    def file(self, each: int) -> None:
        """Note a pattern that ends here."""
        self.tells = True
        if isinstance(self.ids, list):
            self.ids.append(each)
        else:
            self.ids = [each]

    def fitting(self, name: str, nodes: list[Node]) -> None:
        """Add the nodes behind wildcards that may fit `name`."""
        key = name[:KEY]
        if key in self.opening:
            for size, texts in self.opening[key].items():
                if name[:size] in texts:
                    nodes.append(texts[name[:size]])
        key = name[-KEY:]
        if key in self.closing:
            for size, texts in self.closing[key].items():
                if name[-size:] in texts:
                    nodes.append(texts[name[-size:]])
        if self.rare:
            self._rare(name, nodes)

    def _rare(self, name: str, nodes: list[Node]) -> None:
        """Add those behind short texts, behind texts inside and behind wildcards without any."""
        for size, texts in self.opening.get(SHORT, TABLE).items():
            if name[:size] in texts:
                nodes.append(texts[name[:size]])
        for size, texts in self.closing.get(SHORT, TABLE).items():
            if name[-size:] in texts:
                nodes.append(texts[name[-size:]])
        for size, texts in self.holding.get(SHORT, TABLE).items():
            held = {name[at : at + size] for at in range(len(name) - size + 1)}
            nodes += [texts[text] for text in held if text in texts]
        for matches, node in self.wilds.values():
            if matches(name):
                nodes.append(node)

    def everything(self) -> tuple[int, ...]:
        """The patterns of this node and all below it."""
        if self._all is None:
            below_here = [each for node in self.children() for each in node.everything()]
            self._all = tuple(dict.fromkeys((*self.ids, *below_here)))
        return self._all

    def children(self) -> Iterator[Node]:
        """Yield every node right behind this one."""
        yield from self.literals.values()
        for tables in (self.opening, self.closing, self.holding):
            for sizes in tables.values():
                for table in sizes.values():
                    yield from table.values()
        yield from (node for _, node in self.wilds.values())
        if self.deep is not None:
            yield self.deep


@lru_cache(1024)
def telling(segment: Segment) -> tuple[str, bool, bool]:
    """Return the longest text of a wildcard, and whether it opens or closes with it; empty: it holds none."""
    best, at = ("", False, False), 0
    for text, tokens in groupby(segment.tokens, lambda token: isinstance(token, str)):
        run = tuple(tokens)
        if text and len(run) > len(best[0]):
            best = "".join(map(str, run)), at == 0, at + len(run) == len(segment.tokens)
        at += len(run)
    return best


def walk(here: list[Node], names: Iterable[str], met: set[int]) -> list[Node]:
    """Follow `names` from where one is; return where that leads, with the patterns met on the way added to `met`."""
    for name in names:
        after: list[Node] = []
        for node in here:
            if node.loops:
                after.append(node)
            if name in node.literals:
                after.append(node.literals[name])
            if node.wild:
                node.fitting(name, after)
        if not after:
            return after
        here = arrive(after, met)
    return here


def arrive(nodes: list[Node], met: set[int]) -> list[Node]:
    """Be at some nodes, and behind the `**` that may follow each; nodes that are met often stay few."""
    for node in nodes:
        if node.tells:
            met.update(node.ids)
            if node.deep is not None:
                nodes.append(node.deep)
    return nodes if len(nodes) < FEW else list(dict.fromkeys(nodes))


class Start:
    """A directory at which walks begin, with the nodes one is at there."""

    __slots__ = ("below", "ids", "nodes", "place")

    def __init__(self, place: str, nodes: Iterable[Node]) -> None:
        self.place, self.below = place, place if place == "/" else place + "/"
        self.ids: set[int] = set()
        """The patterns that are met there, and on the way there."""
        self.nodes = arrive(list(nodes), self.ids)

    def walk(self, path: str, met: set[int]) -> list[Node]:
        """Walk from here to a path that lies here."""
        met.update(self.ids)
        rest = path[len(self.below) :]
        return walk(self.nodes, rest.split("/") if rest else (), met)

    def down(self, start: Start) -> Start:
        """Return `start`, which lies here, with what leads to it from here."""
        both = Start(start.place, ())
        both.nodes = [*self.walk(start.place, both.ids), *start.nodes]
        both.ids |= start.ids
        return both


class _Places:
    """Where walks begin in one session."""

    def __init__(self, workspace: Workspace, tries: _Tries) -> None:
        self.workspace = workspace
        self.relative = tries.relative
        self.top = Start("/", [tries.top] if tries.top is not None else [])
        self.roots = [Start(root, [self.relative]) for root in dict.fromkeys(map(tries.text, workspace.roots))]
        self.both = [self.top.down(start) for start in self.roots]
        """At each root, what starts at it and what came down to it from `/`."""
        self.elsewhere: dict[str, list[Node]] = {}
        """Directories that heads of relative patterns lead to through links."""
        for head, directories in workspace.heads.items():
            node = tries.heads.get(head)
            if node is not None and head:
                usual = {start.below + tries.text(head) for start in self.roots}
                for directory in map(tries.text, directories):
                    if directory not in usual:
                        self.elsewhere.setdefault(directory, []).append(node)

    def ids(self, path: str) -> set[int]:
        """The patterns that match `path` or a directory above it."""
        met: set[int] = set()
        self._walked(path, met)
        return met

    def reached(self, path: str) -> set[int]:
        """The patterns that match `path`, a directory above it, or something below it."""
        met: set[int] = set()
        nodes = self._walked(path, met)
        nodes += [self.relative for start in self.roots if below(path, start.place) is not None]
        nodes += [node for place, some in self.elsewhere.items() if below(path, place) is not None for node in some]
        for node in nodes:
            met.update(node.everything())
        return met

    def _walked(self, path: str, met: set[int]) -> list[Node]:
        """Walk from each place that `path` lies in; return where that leads."""
        nodes: list[Node] = []
        starts = self.both
        for number, start in enumerate(self.roots):
            if path.startswith(start.below) or path == start.place:
                nodes += starts[number].walk(path, met)
                starts = self.roots
        if starts is self.both:
            nodes += self.top.walk(path, met)
        end = len(path) if self.elsewhere else 0
        while end > 0:
            if path[:end] in self.elsewhere:
                nodes += Start(path[:end], self.elsewhere[path[:end]]).walk(path, met)
            end = path.rfind("/", 0, end)
        return nodes


class _Tries:
    """The tries over many patterns, over names as they are or case-folded."""

    def __init__(self, items: Iterable[tuple[PathPattern, int]], *, folded: bool) -> None:
        self._fold = folded
        self.top: Node | None = None
        """What starts at `/` or floats; None while nothing does."""
        self.relative = Node()
        self.heads: dict[str, Node] = {}
        for pattern, each in items:
            for alternative in pattern.alternatives:
                self._add(alternative, each)

    def text(self, path: str) -> str:
        """Return a path as these tries spell it."""
        return caseless(path) if self._fold else path

    def _add(self, alternative: Alternative, each: int) -> None:
        if alternative.floats is not None:
            self.top = self.top or Node()
            self._put(self.top, alternative.floats.segments, each)
        for place in alternative.places:
            self.top = self.top or Node()
            self._put(self._named(self.top, place), alternative.tail.segments, each)
        if alternative.relative and (alternative.floats is None or alternative.head):
            node = self.heads[alternative.head] = self._named(self.relative, alternative.head)
            self._put(node, alternative.tail.segments, each)

    def _named(self, node: Node, path: str) -> Node:
        """Walk down the names of a path, making nodes."""
        for name in self.text(path).split("/"):
            if name:
                node = node.named(name)
        return node

    def _put(self, node: Node, segments: Iterable[Segment], each: int) -> None:
        """Walk down, making nodes; note the pattern at the end."""
        for segment in segments:
            node = node.child(segment.fold() if self._fold and segment is not DEEP else segment)
        node.file(each)


class PathIndex:
    """A filter over many patterns."""

    def __init__(self, items: Iterable[tuple[PathPattern, int]]) -> None:
        self._items = tuple(items)
        self._exact = _Tries(self._items, folded=False)
        self._folded: _Tries | None = None
        """Made when a session first needs it: a case-folding file system is the exception."""
        self._places: dict[int, _Places] = {}
        self._folded_places: dict[int, _Places] = {}

    def candidates(self, ref: PathRef, workspace: Workspace) -> set[int]:
        """Return the ids of all patterns that may match `ref`, and some that do not; the set is the caller's."""
        places = self._places.get(id(workspace))
        if places is None or places.workspace is not workspace:
            places = kept(self._places, _Places(workspace, self._exact))
        forms, deep = ref.forms, ref.glob or ref.reach in BELOW or ref.reach is Reach.LINK
        if len(forms) == 1 and not deep and not ref.folded and forms[0].startswith("/"):
            return places.ids(forms[0])
        forms = tuple(map(globs.head, forms)) if ref.glob else forms
        forms = tuple(form if form.startswith("/") else f"/{form}" for form in forms)
        found = set().union(*map(places.reached if deep else places.ids, forms))
        if ref.folded:
            places = self._caseless(workspace)
            found = found.union(*map(places.reached if deep else places.ids, map(caseless, forms)))
        return found

    def parts(self) -> Iterator[Node]:
        """Yield every place of every trie, each before those behind it."""
        for tries in (self._exact, self._folded):
            todo = [node for node in (tries.top, tries.relative) if node is not None] if tries is not None else []
            while todo:
                node = todo.pop()
                yield node
                todo += node.children()

    def _caseless(self, workspace: Workspace) -> _Places:
        self._folded = self._folded or _Tries(self._items, folded=True)
        found = self._folded_places.get(id(workspace))
        if found is None or found.workspace is not workspace:
            found = kept(self._folded_places, _Places(workspace, self._folded))
        return found


def kept(places: dict[int, _Places], fresh: _Places) -> _Places:
    """Remember the places of one more session, few at most."""
    if len(places) >= SESSIONS:
        places.clear()
    places[id(fresh.workspace)] = fresh
    return fresh
