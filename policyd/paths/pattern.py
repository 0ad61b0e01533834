"""Path patterns, and the two ways to match them.

Rules of this module:

1. `sure` loosens: every form of the path must match, exactly as written; a relative pattern starts at the roots that
   are a workspace for allow rules, and never leads out of them.
2. `maybe` tightens: one form is enough. Widened (the conditions of deny and ask rules), a pattern without `/` holds
   at any depth on the machine, one that begins with `**` holds everywhere, and everything below a match matches.
   Inside `unless` nothing is widened, but `**…` still holds everywhere: it reads so, and there it tightens.
3. An operation that reaches content below a directory also reaches a pattern *below* it. At or above the literal head
   of a pattern that is a match, except for a mere read if nothing exists at that head; a floating pattern is reached as
   MAYBE, unless a search finds nothing.
   An operation that skips hidden names reaches no name with a leading dot that it does not name, unless its own ignore
   files may re-include some; one that is limited to some endings reaches no other files. A name with an ending is taken
   for a file's, and so is `.env`, unless a directory of that name exists at the top.
   `sure` then requires a pattern that covers everything below. If data decides what is written below, every pattern
   below is reached as MAYBE, and no search helps, as the file may be created. The same holds for a link and a pattern
   that begins with its name: what is below a floating name is found at the link's target.
4. A shell glob that may match is MAYBE, one whose every match is covered is YES. If the expansion of the glob is known,
   a floating pattern is compared with it; if it reaches any depth, with a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from policyd.model import BELOW, Filesystem, PathRef, Reach, Truth, Workspace
from policyd.paths import globs
from policyd.paths.lexical import below, caseless, inside, resolved
from policyd.paths.segments import DEEP, Segment, literal, meets
from policyd.paths.syntax import Written, read
from policyd.paths.tails import Tail, tail_of

_FILE_NAME = re.compile(r"\.env.*|.+\.[^.]+").fullmatch


class Place:
    """An absolute directory with what a pattern says below it."""

    __slots__ = ("_whole", "anchored", "directory", "matches", "size", "start", "tail")

    def __init__(self, directory: str, tail: Tail, *, anchored: bool = True) -> None:
        self.directory = directory
        self.tail = tail
        self.anchored = anchored
        """Whether the directory is the literal head of a pattern that does not float."""
        self.start = directory if directory == "/" else directory + "/"
        self.size = len(self.start)
        self.matches = tail.matches
        self._whole: Tail | None = None

    def below(self, form: str) -> str | None:
        """Return `form` relative to the directory, None if it does not lie there."""
        if form.startswith(self.start):
            return form[self.size :]
        return "" if form == self.directory else None

    def above(self, form: str) -> bool:
        """Say whether `form` is the directory or an ancestor of it."""
        return below(form, self.directory) is not None

    def from_root(self) -> Tail:
        """Return the whole as one tail below `/`; made once, for many globs are held against it."""
        if self._whole is None:
            heads = (literal(name) for name in self.directory.split("/") if name)
            self._whole = Tail((*heads, *self.tail.segments))
        return self._whole

    def fold(self) -> Place:
        """Return the place for forms that are case-folded."""
        return Place(caseless(self.directory), self.tail.fold(), anchored=self.anchored)


View = tuple[Workspace, tuple[Place, ...]]


class Alternative:
    """One alternative of a pattern, compiled."""

    __slots__ = ("floats", "head", "places", "relative", "tail")

    def __init__(self, written: Written, fs: Filesystem | None) -> None:
        self.relative = not written.absolute
        self.head = "/".join(written.head)
        self.tail = tail_of(written.tail)
        self.floats: Tail | None = None
        self.places = () if self.relative else resolved("/" + self.head, fs)
        if written.floats:
            whole = (*map(literal, written.head), *written.tail)
            self.floats = Tail(whole if whole[0] is DEEP else (DEEP, *whole)).widened

    def sure(self, workspace: Workspace) -> list[Place]:
        """The places where it loosens."""
        return [Place(each, self.tail) for each in self._directories(workspace) if self._loosens(each, workspace)]

    def strict(self, workspace: Workspace, *, widen: bool) -> Iterator[Place]:
        """The places where it tightens."""
        tail = self.tail.widened if widen else self.tail
        floats = self.floats is not None and (widen or self._everywhere())
        if self.head or not floats:
            literal_head = not floats and bool(self.head or not self.relative)
            yield from (Place(each, tail, anchored=literal_head) for each in self._directories(workspace))
        if floats and self.floats is not None:
            yield Place("/", self.floats if widen else self.tail, anchored=False)

    def _everywhere(self) -> bool:
        """Whether it begins with `**` at no place."""
        return self.floats is not None and not self.head and self.tail.segments[:1] == (DEEP,)

    def _directories(self, workspace: Workspace) -> tuple[str, ...]:
        if not self.relative:
            return self.places
        if not self.head:
            return workspace.roots
        starts = [f"{root.rstrip('/')}/{self.head}" for root in workspace.roots]
        return tuple(dict.fromkeys((*starts, *workspace.heads.get(self.head, ()))))

    def _loosens(self, directory: str, workspace: Workspace) -> bool:
        """A link in the workspace never carries an allow pattern out of it."""
        if self.relative or inside(self.places[0], workspace.roots):
            return inside(directory, workspace.sound) or (not self.relative and directory == self.places[0])
        return True


class PathPattern(Struct, frozen=True):
    """A pattern of the policy language, ready to be judged.

    Compiled from its text alone; what `~/` means and the links in the head of an absolute pattern are settled then.
    """

    source: str
    alternatives: tuple[Alternative, ...]
    _views: dict[str, View] = field(default_factory=dict)
    """What the pattern stands for in the last session it was asked about, by polarity."""

    def __eq__(self, other: object) -> bool:
        """Compare what was written, and where it begins: what is made of it follows."""
        return isinstance(other, PathPattern) and self.source == other.source and self._starts() == other._starts()

    @classmethod
    def compile(cls, text: str, *, home: str, tmpdir: str, fs: Filesystem | None = None) -> PathPattern:
        """Read a pattern.

        Raises:
            PatternError: it cannot be meant as written; the message says what to write.
        """
        return cls(text, tuple(Alternative(each, fs) for each in read(text, home=home, tmpdir=tmpdir)))

    def beside(self, other: PathPattern) -> PathPattern:
        """Return a pattern that matches what either does, written as this one."""
        return PathPattern(self.source, (*self.alternatives, *other.alternatives))

    def _starts(self) -> list[tuple[str, ...]]:
        return [each.places for each in self.alternatives]

    @property
    def relative(self) -> bool:
        """Whether some alternative starts at the workspace."""
        return any(each.relative for each in self.alternatives)

    @property
    def head(self) -> str:
        """The literal head of the first relative alternative that has one, else empty."""
        return next(iter(self.heads), "")

    @property
    def heads(self) -> tuple[str, ...]:
        """The literal heads of all relative alternatives, for `open_workspace`."""
        return tuple(each.head for each in self.alternatives if each.relative and each.head)

    def sure(self, ref: PathRef, workspace: Workspace) -> bool:
        """Say whether every form matches as written (allow rules; `unless` of deny and ask rules)."""
        places = self._places("sure", workspace)
        if ref.reach in BELOW:
            places = tuple(place for place in places if place.tail.whole())
        if ref.glob:
            return all(any(_glob_covered(place, form) for place in places) for form in ref.forms)
        if len(ref.forms) == 1:
            return _matched(ref.forms[0], places)
        return all(_matched(form, places) for form in ref.forms)

    def maybe(
        self, ref: PathRef, workspace: Workspace, fs: Filesystem | None, *, widen: bool, only_read: bool = False
    ) -> Truth:
        """Say whether some form matches (deny and ask rules: `widen`; `unless` of allow rules: not).

        `only_read`: what is not there is not reached.
        """
        look = fs if only_read and ref.reach is Reach.CONTENT and not ref.glob else None
        truth = _some(ref, ref.forms, _there(self._places("wide" if widen else "plain", workspace), ref, look), fs)
        if truth is Truth.YES or not ref.folded:
            return truth
        folded = _there(self._places("wide folded" if widen else "plain folded", workspace), ref, look)
        return max(truth, _some(ref, tuple(map(caseless, ref.forms)), folded, fs))

    def _places(self, view: str, workspace: Workspace) -> tuple[Place, ...]:
        found = self._views.get(view)
        if found is None or found[0] is not workspace:
            places: list[Place] = []
            for each in self.alternatives:
                places += _seen(each, view, workspace)
            found = self._views[view] = (workspace, tuple(places))
        return found[1]


def _seen(alternative: Alternative, view: str, workspace: Workspace) -> Iterable[Place]:
    if view == "sure":
        return alternative.sure(workspace)
    places = alternative.strict(workspace, widen=view.startswith("wide"))
    return (place.fold() for place in places) if view.endswith("folded") else places


def _there(places: tuple[Place, ...], ref: PathRef, fs: Filesystem | None) -> tuple[Place, ...]:
    """Return the places without those below `ref` at which nothing lies, as far as that can be seen."""
    below = [place for place in places if place.anchored and _below(place, ref)] if fs is not None else []
    if fs is None or not below or not all(fs.is_dir(form) for form in ref.forms):
        return places
    return tuple(place for place in places if place not in below or not _empty(place, fs))


def _below(place: Place, ref: PathRef) -> bool:
    return any(map(place.above, ref.forms)) and not any(place.below(form) for form in ref.forms)


def _empty(place: Place, fs: Filesystem) -> bool:
    is_directory = fs.is_dir(place.directory)
    if is_directory:
        return bool(names := place.tail.below("")) and fs.contains(place.directory, names) is False
    return is_directory is False and fs.identity(place.directory) is None


# ---- one form against the places -------------------------------------------------------------------


def _matched(form: str, places: tuple[Place, ...]) -> bool:
    for place in places:
        if form.startswith(place.start):
            if place.matches(form[place.size :]):
                return True
        elif form == place.directory and place.matches(""):
            return True
    return False


def _some(ref: PathRef, texts: tuple[str, ...], places: tuple[Place, ...], fs: Filesystem | None) -> Truth:
    """The widest truth over all forms and places; `texts` are the forms as they are compared."""
    if not ref.glob:
        for text in texts:
            if _matched(text, places):
                return Truth.YES
        if ref.reach not in BELOW and ref.reach is not Reach.LINK:
            return Truth.NO
    hit = _glob_hit if ref.glob else _reached
    pairs = tuple(zip(texts, ref.forms, strict=True))
    return max((hit(place, *pair, ref, fs) for pair in pairs for place in places), default=Truth.NO)


def _glob_covered(place: Place, form: str) -> bool:
    tail = place.from_root()
    return tail.ends(tail.run_glob(globs.segments(form), sure=True))


def _reached(place: Place, text: str, form: str, ref: PathRef, fs: Filesystem | None) -> Truth:
    """What a plain path that does not match reaches below it."""
    if ref.reach is Reach.LINK:
        return Truth.MAYBE if _begins(place, text) else Truth.NO
    way = below(text, place.directory)
    if way is not None and ref.skips_hidden and _hidden(way) and not _brought_back(fs, form):
        return Truth.NO
    if way is not None and ref.endings and place.tail.segments == (DEEP,) and _spared(way, place, form, ref, fs):
        return Truth.NO
    if way is not None and place.anchored:
        return Truth.MAYBE if ref.reach is Reach.UNTOLD else Truth.YES
    rest = place.below(text)
    if rest is None:
        return Truth.NO if way is None else Truth.MAYBE
    return _look(fs, form, _shown(place.tail.below(rest), ref, fs, form), ref)


def _begins(place: Place, text: str) -> bool:
    """Whether a path is the beginning of a pattern, of more of it than a `**` at its start."""
    if place.anchored and place.above(text):
        return True
    rest, tail = place.below(text), place.tail
    floating = not place.anchored and tail.segments[:1] == (DEEP,)
    return rest is not None and any(floating < at < len(tail.segments) for at in tail.run(rest))


_LISTS = (".ignore", ".rgignore")
"""What searches alone read; `.gitignore`, which nearly every tree has, is taken for one that brings nothing back."""


def _brought_back(fs: Filesystem | None, directory: str) -> bool:
    """Whether a list below a directory, in it or above it may bring hidden names back (`!.env`)."""
    if fs is None:
        return False
    names = directory.split("/")
    above = ["/".join(names[:end]) for end in range(1, len(names) + 1)]
    return fs.contains(directory, tuple(f"**/{name}" for name in _LISTS)) is not False or any(
        fs.identity(f"{place}/{name}") is not None for place in above for name in _LISTS
    )


def _hidden(way: str) -> bool:
    """Whether a path or pattern leads through a name with a leading dot."""
    return way.startswith(".") or "/." in way


def _spared(way: str, place: Place, form: str, ref: PathRef, fs: Filesystem | None) -> bool:
    """Whether what a pattern without wildcards names is no directory and no file of those that are worked on."""
    name = way.rpartition("/")[2]
    named = "." in name or not place.anchored
    return named and not name.endswith(ref.endings) and fs is not None and fs.is_dir(f"{form}/{way}") is False


def _shown(names: tuple[str, ...], ref: PathRef, fs: Filesystem | None, directory: str) -> tuple[str, ...]:
    """Return what of patterns below a directory an operation reaches that may leave out some names."""
    if ref.skips_hidden:
        hidden = tuple(filter(_hidden, names))
        if not hidden or fs is None or fs.contains(directory, hidden) is False or not _brought_back(fs, directory):
            names = tuple(name for name in names if name not in hidden)
    if not ref.endings:
        return names
    shown: list[str] = []
    for name in names:
        last, ended = name.rpartition("/")[2], tuple(_that_end(name, ref.endings))
        if fs is None or not _FILE_NAME(last) or fs.is_dir(f"{directory}/{last}"):
            shown += [f"{name}/*", *ended]
        elif ended and fs.contains(directory, ended):
            shown += ended
    return tuple(dict.fromkeys(shown))


def _that_end(name: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield what of a pattern can match a name with one of the endings."""
    if name.endswith(("?", "]", "**", "?*", "]*", *endings)):
        yield name
    elif name.endswith("*"):
        stem = name[:-1].rpartition("/")[2]
        for end in endings:
            meet = any(stem.endswith(end[:size]) for size in range(1, len(end) + 1))
            yield name if meet or not stem else name + end


def _look(fs: Filesystem | None, directory: str, names: tuple[str, ...], ref: PathRef) -> Truth:
    """What is known of patterns below a directory: at most MAYBE, for the look is not the moment of the deed."""
    if not names:
        return Truth.NO
    if ref.reach is Reach.UNTOLD:
        return Truth.MAYBE
    if ref.filled_from:
        names = tuple(dict.fromkeys(each for name in names for each in _ends(name)))
    places = ref.filled_from or (directory,)
    nothing = fs is not None and all(fs.contains(place, names) is False for place in places)
    return Truth.NO if nothing else Truth.MAYBE


def _ends(name: str) -> Iterator[str]:
    """Yield a pattern and its ends: its first names may be the directory itself, put there under its own name."""
    parts = name.split("/")
    yield from ("/".join(parts[at:]) for at in range(len(parts)) if parts[at:] != ["**"] or at == 0)


def _deep_names(tail: Tail, segments: tuple[Segment, ...]) -> tuple[str, ...]:
    """Return what to look for where a glob may lead to any depth: what it can match, or holds what it can match."""
    count = next(at for at, segment in enumerate(segments) if segment.literal is None)
    names = tail.residue(tail.run_glob(segments[:count], sure=False)) or ("**",)
    last, own = segments[-1], tail.segments[:-1] if tail.whole() else tail.segments
    if last is DEEP or not own or own[-1] is DEEP:
        return names
    here = names if meets(own[-1], last) else ()
    return (*here, *(f"{name}/**/{last.source}" for name in names if tail.whole()))


def _entered(names: tuple[str, ...], segments: tuple[Segment, ...]) -> tuple[str, ...]:
    """Return those of `names` that a search reaches which enters no hidden directory but one its last name asks for."""
    if segments[-2:-1] != (DEEP,) or any(segment.literal is None for segment in segments[:-2]):
        return names
    ways = [(name, globs.segments(name)[:-1]) for name in names]
    return tuple(name for name, way in ways if all(_enters(segment, segments[-1]) for segment in way))


def _enters(directory: Segment, last: Segment) -> bool:
    return directory is DEEP or directory.tokens[:1] != (".",) or meets(directory, last)


def _glob_hit(place: Place, text: str, form: str, ref: PathRef, fs: Filesystem | None) -> Truth:
    tail, segments = place.from_root(), globs.segments(text)
    states = tail.run_glob(segments, sure=False)
    if tail.ends(states):
        if tail.ends(tail.run_glob(segments, sure=True)):
            return Truth.YES
        if ref.found is None and DEEP in segments:
            names = _deep_names(tail, segments)
            if ref.skips_hidden and not _brought_back(fs, globs.head(form)):
                names = _entered(names, segments)
            if not (names and place.anchored):
                return _look(fs, globs.head(form), names, ref)
        if ref.found is None or place.anchored:
            return Truth.MAYBE
        if any(_matched(path, (place,)) or (ref.folded and _matched(caseless(path), (place,))) for path in ref.found):
            return Truth.YES
    if ref.reach not in BELOW or not states:
        return Truth.NO
    directory = globs.head(form)
    count = sum(map(bool, directory.split("/")))
    if place.anchored:
        sure = ref.reach is Reach.CONTENT and count == len(segments) and place.above(globs.head(text))
        return Truth.YES if sure else Truth.MAYBE
    names = tail.residue(tail.run_glob(segments[:count], sure=False))
    return _look(fs, directory, _shown(names, ref, fs, directory), ref)
