"""Laws of path patterns and of their index, against naive twins."""

from __future__ import annotations

import itertools
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd.model import PathRef, Reach, Truth, Workspace
from policyd.paths import OpaquePath, PathIndex, PathPattern, open_workspace, ref
from policyd.paths.globs import segments as glob_segments
from policyd.paths.segments import DEEP, Segment, covers, meets
from policyd.paths.syntax import expand, segment
from policyd.paths.tails import Tail
from tests.fakes import FakeFilesystem
from tests.path_scenes import APP, HOME, scene

NAMES = st.sampled_from(["a", "b", "ab", ".a", "app", "x.py", "A", "\u00df", "a\u200b", "ss"])
PARTS = st.sampled_from(
    ["a", "b", "*", "**", "a*", "*b", "?", "[ab]", "{a,b}", ".a", "*.py", "a*b", "*a*", "[!a]?", "B", "\u00df"]
)
PATTERNS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["", "", "/", "~/", "./", "/home/dev/app/", "{a/,/}"]),
    st.lists(PARTS, min_size=1, max_size=4),
)
PATHS = st.builds(
    lambda start, names: start + "/".join(names),
    st.sampled_from(["/", "/home/dev/app/", "/home/dev/app/", "/home/dev/", "/home/dev/app/a/"]),
    st.lists(NAMES, max_size=4),
)
GLOBS = st.lists(st.sampled_from(["a", "*", "?", "*b", "[ab]", ".*", "**", "a*"]), min_size=1, max_size=3)
FS = FakeFilesystem(links={f"{APP}/a": "/home/dev/b", f"{APP}/b": "ab", "/x": APP})


def _session(patterns: list[PathPattern], fold_case: bool) -> Workspace:
    heads = [head for each in patterns for head in each.heads]
    return open_workspace(APP, ["/home/dev/b"], home=HOME, fs=FS, heads=heads, fold_case=fold_case)


def _compile(text: str) -> PathPattern:
    return PathPattern.compile(text, home=HOME, tmpdir="/tmp", fs=FS)


def _refs(path: str, glob: list[str], workspace: Workspace) -> list[PathRef]:
    plain = [ref(path, base=(APP,), workspace=workspace, fs=FS, reach=reach) for reach in Reach]
    text = path.rstrip("/") + "/" + "/".join(glob)
    return [*plain, *(ref(text, base=(APP,), workspace=workspace, fs=FS, reach=r, glob=True) for r in Reach)]


def _may(pattern: PathPattern, path: PathRef, workspace: Workspace) -> bool:
    """Whether a pattern matches in some polarity."""
    strict = (pattern.maybe(path, workspace, None, widen=widen) for widen in (True, False))
    return pattern.sure(path, workspace) or any(truth is not Truth.NO for truth in strict)


@settings(max_examples=150, deadline=None)
@given(st.lists(PATTERNS, max_size=8), st.lists(PATHS, min_size=1, max_size=4), GLOBS, st.booleans())
def test_the_index_names_every_pattern_that_may_match(
    texts: list[str], paths: list[str], glob: list[str], fold_case: bool
) -> None:
    patterns = [_compile(text) for text in texts]
    items = [(pattern, number) for number, pattern in enumerate(patterns)]
    workspace = _session(patterns, fold_case)
    index = PathIndex(items)
    for path in paths:
        for each in _refs(path, glob, workspace):
            found = list(index.candidates(each, workspace))
            assert {number for pattern, number in items if _may(pattern, each, workspace)} <= set(found)
            assert len(found) == len(set(found))


@settings(max_examples=300, deadline=None)
@given(PATTERNS, PATHS, GLOBS, st.booleans())
def test_what_an_allow_reaches_a_deny_catches(text: str, path: str, glob: list[str], fold_case: bool) -> None:
    pattern = _compile(text)
    workspace = _session([pattern], fold_case)
    for each in _refs(path, glob, workspace):
        if pattern.sure(each, workspace):
            assert pattern.maybe(each, workspace, FS, widen=True) is Truth.YES


@settings(max_examples=300, deadline=None)
@given(PATTERNS, PATHS)
def test_a_pattern_agrees_with_its_naive_translation(text: str, path: str) -> None:
    workspace = open_workspace(APP, [], home=HOME, fs=FakeFilesystem())
    given_path = PathRef(path, (path.rstrip("/") or "/",))
    pattern = PathPattern.compile(text, home=HOME, tmpdir="/tmp")
    assert pattern.sure(given_path, workspace) is _naively(text, given_path.forms[0])


def _naively(text: str, path: str) -> bool:
    """Translate to a regular expression, one alternative at a time."""
    for each in expand(text):
        absolute = each.replace("~/", HOME + "/", 1) if each.startswith("~/") else each
        start = "" if absolute.startswith("/") else APP
        names = [name for name in absolute.split("/") if name not in {"", "."}]
        body = "".join("(?:/[^/]+)*" if n == "**" else "/" + re.sub(r"\*+", "*", n) for n in names)
        body = re.sub(r"(?<![)\]])\*", "[^/]*", body).replace("?", ".").replace("(.:", "(?:").replace("[!", "[^")
        if re.fullmatch(re.escape(start) + body.replace(".py", r"\.py"), "" if path == "/" else path):
            return True
    return False


TEXTS = st.text(alphabet="ab./~$%2eE*[]\\\u00e9\u0301 :-", min_size=1, max_size=24)


@settings(max_examples=500, deadline=None)
@given(TEXTS, st.booleans(), st.booleans())
def test_any_text_is_opaque_or_a_path_in_folded_forms(text: str, glob: bool, uri: bool) -> None:
    workspace = _session([], fold_case=False)
    try:
        told = ref(text, base=(APP,), workspace=workspace, fs=FS, glob=glob, uri=uri)
    except OpaquePath:
        return
    for form in told.forms:
        assert form.startswith("/")
        assert glob or not {"", ".", ".."} & set(form[1:].split("/") if form != "/" else ())
        assert unicodedata.normalize("NFC", form) == form
    assert _compile("**").sure(told, workspace) is told.inside


SEGMENTS = st.lists(st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]"]), min_size=1, max_size=4).map("".join)
WORLD = ["".join(chars) for size in (1, 2, 3, 4) for chars in itertools.product("ab.", repeat=size)]


@settings(max_examples=400, deadline=None)
@given(SEGMENTS, SEGMENTS)
def test_two_wildcards_meet_and_cover_as_their_names_do(left: str, right: str) -> None:
    left, right = re.sub(r"\*+", "*", left), re.sub(r"\*+", "*", right)
    pattern, glob = segment(left, left), _one(right)
    expanded = [name for name in WORLD if glob.matches(name) and (name[0] != "." or right[0] == ".")]
    hits = [name for name in expanded if pattern.matches(name)]
    assert not hits or meets(pattern, glob)
    if covers(pattern, glob):
        assert hits == expanded


def _one(text: str) -> Segment:
    return glob_segments("/" + text)[0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", "*b", "**", "**"]), max_size=3), st.lists(NAMES, max_size=3))
def test_what_may_match_below_a_path_is_what_is_left_behind_it(parts: list[str], names: list[str]) -> None:
    tail, rest = Tail(tuple(DEEP if part == "**" else segment(part, part) for part in parts)), "/".join(names)
    end = len(parts) - (parts[-1:] == ["**"])
    left = tuple("/".join(parts[at:end]) for at in sorted(tail.run(rest)) if at < end)
    assert tail.below(rest) == left


def test_meeting_is_exact_where_dots_decide() -> None:
    for pattern, glob, meet in [
        (".env", "*", False),
        (".env", ".*", True),
        (".env", "?env", False),
        ("*", "*", True),
        ("?env", "*nv", True),
        (".*", "*", False),
        ("*.pem", "*", True),
        ("a*", "b*", False),
    ]:
        assert meets(segment(pattern, pattern), _one(glob)) is meet, (pattern, glob)


def test_the_index_remembers_a_bounded_number_of_sessions_and_directories() -> None:
    here = scene("src/**")
    index = PathIndex([(here.pattern("src/**"), 7)])
    for number in range(40):
        other = scene("src/**", cwd=f"/home/dev/p{number}")
        assert list(index.candidates(other.path(f"/home/dev/p{number}/src/a"), other.workspace)) == [7]
    for number in range(5_000):
        assert list(index.candidates(here.path(f"d{number}/x"), here.workspace)) == []
    assert list(index.candidates(here.path("src/a.py"), here.workspace)) == [7]


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/f{}*.py", "src/f123-x.py"),
        ("src/f*x{}x.py", "src/f-x123x.py"),
        ("src/*x{}x*", "src/a-x123x-b"),
        ("**/?x{}x*/a", "src/.x123x/a"),
        ("**/[ab]-{}-?", "src/x/a-123-c"),
    ],
)
def test_a_wildcard_is_filed_by_the_longest_text_in_it(pattern: str, path: str) -> None:
    here = scene()
    patterns = [here.pattern(pattern.format(number)) for number in range(100, 300)]
    index = PathIndex((pattern, number) for number, pattern in enumerate(patterns, 100))
    assert list(index.candidates(here.path(path), here.workspace)) == [123]
