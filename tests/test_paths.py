"""Path patterns against paths: what an allow rule reaches, what a strict rule catches."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec import structs

from policyd.model import PathRef, Reach, Truth
from policyd.paths import OpaquePath, PathIndex, PathPattern, PatternError, escape, open_workspace, ref
from tests.fakes import FakeFilesystem
from tests.path_scenes import APP, FILES, HOME, LINKS, Scene, scene

YES, MAYBE, NO = Truth.YES, Truth.MAYBE, Truth.NO

# pattern, path, surely, widely (deny and ask), unwidened (`unless` of allow)
MATCHES = [
    ("src/**", "src/a.py", True, YES, YES),
    ("src/**", "src/deep/er/a.py", True, YES, YES),
    ("src/**", "src", True, YES, YES),
    ("src/**", "src2/a.py", False, NO, NO),
    ("src/**", "src.py", False, NO, NO),
    ("src/", "src/a.py", True, YES, YES),
    ("src/**/", "src/a.py", True, YES, YES),
    ("src", "src/a.py", False, YES, NO),
    ("src", "src", True, YES, YES),
    ("src", "x/src/y", False, YES, NO),
    ("./src", "x/src", False, NO, NO),
    ("./src", "src/a.py", False, YES, NO),
    ("src/*", "src/a.py", True, YES, YES),
    ("src/*", "src/sub/b.py", False, YES, NO),
    ("*", "a", True, YES, YES),
    ("*", ".hidden", True, YES, YES),
    ("*", "a/b", False, YES, NO),
    ("*", "/usr/x", False, YES, NO),
    ("**", "a/b", True, YES, YES),
    ("**", ".", True, YES, YES),
    ("**", "/usr/x", False, YES, YES),
    ("./**", "/usr/x", False, NO, NO),
    (".", ".", True, YES, YES),
    (".", "x", False, YES, NO),
    ("**/x", "x", True, YES, YES),
    ("**/x", "a/b/x", True, YES, YES),
    ("**/x", "/usr/x", False, YES, YES),
    ("**/x", "/usr/x/below", False, YES, NO),
    ("**/build/**", "rebuild/x", False, NO, NO),
    ("**/build/**", "a/build/x", True, YES, YES),
    ("a/**/z", "a/z", True, YES, YES),
    ("a/**/z", "a/b/c/z", True, YES, YES),
    ("a/**/z", "a/b/c/y", False, NO, NO),
    ("a/**/b/*/c", "a/x/b/b/b/y/c", True, YES, YES),
    ("a/**/b/*/c", "a/x/b/b/c", True, YES, YES),
    ("a/**/b/*/c", "a/x/b/c", False, NO, NO),
    (".env", "server/.env", False, YES, NO),
    (".env", "/elsewhere/.env", False, YES, NO),
    (".env", ".env.local", False, NO, NO),
    ("*.pem", "a/b.pem", False, YES, NO),
    ("*.pem", "b.pem", True, YES, YES),
    ("*.pem", "b.pemx", False, NO, NO),
    (".env*", ".envrc", True, YES, YES),
    ("a*b*c", "axxbyyc", True, YES, YES),
    ("a*b*c", "abc", True, YES, YES),
    ("a*b*c", "acb", False, NO, NO),
    ("a*a", "a", False, NO, NO),
    ("a?c", "abc", True, YES, YES),
    ("a?c", "a/c", False, NO, NO),
    ("z??", "zb", False, NO, NO),
    ("[a-c]x", "bx", True, YES, YES),
    ("[a-c]x", "dx", False, NO, NO),
    ("[!b].txt", "a.txt", True, YES, YES),
    ("[!b].txt", "b.txt", False, NO, NO),
    ("[^b].txt", "b.txt", False, NO, NO),
    ("[]]x", "]x", True, YES, YES),
    ("[a\\-c]", "b", False, NO, NO),
    ("[a\\-c]", "-", True, YES, YES),
    ("x*[0-9]?", "xa1b", True, YES, YES),
    ("x*[0-9]y*", "x0z1yq", True, YES, YES),
    ("{a,b}/*.py", "b/x.py", True, YES, YES),
    ("{a,b/{c,d}}", "b/d", True, YES, YES),
    ("x{,y}", "x", True, YES, YES),
    ("{src,/etc}/**", "/etc/hosts", True, YES, YES),
    ("app/\\[id\\]/**", "app/[id]/p.tsx", True, YES, YES),
    ("app/\\[id\\]/**", "app/i/p.tsx", False, NO, NO),
    ("app/[[]id]/**", "app/[id]/p.tsx", True, YES, YES),
    ("a\\*b", "a*b", True, YES, YES),
    ("secret[s]/", "secrets/k", True, YES, YES),
    ("a\\*b", "axb", False, NO, NO),
    ("\\!x", "!x", True, YES, YES),
    ("\\~x", "./~x", True, YES, YES),
    ("My Docs/**", "My Docs/x", True, YES, YES),
    ("a ", "a ", True, YES, YES),
    ("a ", "a", False, NO, NO),
    ("a/../b", "b", True, YES, YES),
    ("/etc/**", "/etc/hosts", True, YES, YES),
    ("/etc/**", "//etc//hosts", True, YES, YES),
    ("/etc", "/etc/hosts", False, YES, NO),
    ("/etc/*", "/etc/ssl/key.pem", False, YES, NO),
    ("/**/*.pem", "/etc/ssl/key.pem", True, YES, YES),
    ("~/notes/**", "/home/dev/notes/n.md", True, YES, YES),
    ("$HOME/notes", "/home/dev/notes/n.md", False, YES, NO),
    ("~", "/home/dev/x", False, YES, NO),
    ("$TMPDIR/**", "/tmp/x", True, YES, YES),
    ("/", "/x/y", False, YES, NO),
    ("gehälter/**", "geha\u0308lter/k", True, YES, YES),
    ("**/.DS_Store", ".cache/.DS_Store", True, YES, YES),
    ("secrets/**", "\u0455ecrets/k", False, NO, NO),
]


@pytest.mark.parametrize(("pattern", "path", "surely", "widely", "plainly"), MATCHES)
def test_an_allow_reads_narrow_and_a_deny_wide(
    pattern: str, path: str, surely: bool, widely: Truth, plainly: Truth
) -> None:
    here = scene(pattern)
    compiled, given = here.pattern(pattern), here.path(path)
    assert compiled.sure(given, here.workspace) is surely
    assert compiled.maybe(given, here.workspace, here.fs, widen=True) is widely
    assert compiled.maybe(given, here.workspace, here.fs, widen=False) is plainly


# pattern, path, surely, widely: links, spellings, detours
SPELLINGS = [
    ("src/**", "src/../../other", False, NO),
    ("src/**", "src/../src/a.py", True, YES),
    ("src/**", "src/..", False, NO),
    ("secrets/**", "docs/../secrets/k.pem", True, YES),
    ("secrets/**", "alias/k.pem", False, YES),
    ("alias/**", "alias/k.pem", True, YES),
    ("alias/**", "secrets/k.pem", True, YES),
    ("**", "alias/k.pem", True, YES),
    ("**", "out/hosts", False, YES),
    ("out/**", "out/hosts", False, YES),
    ("out/**", "/etc/hosts", False, YES),
    ("out", "/etc/hosts", False, YES),
    ("/home/dev/app/out/**", "out/hosts", False, YES),
    ("/home/dev/app/out/**", "/etc/hosts", False, YES),
    ("/home/dev/link/secrets/**", "secrets/k.pem", True, YES),
    ("/etc/**", "out/hosts", False, YES),
    ("src/**", "lib/a.py", False, YES),
    ("lib/**", "lib/a.py", True, YES),
    ("src/**", "src/up/x.md", False, YES),
    ("docs/**", "src/up/x.md", False, YES),
    ("**", "src/up/../x", True, YES),
    ("src/**", "src/up/../a.py", False, YES),
    ("/etc/**", "out/../hosts", False, NO),
    ("**", "out/../etc/hosts", False, YES),
    ("**", "%2e%2e/x", False, YES),
    ("src/**", "src/%2e%2e/x", False, YES),
    ("secrets/**", "secret%73/k", False, YES),
    ("**", "a%20b", True, YES),
    ("~/notes/**", "~/notes/n.md", False, YES),
    ("**", "~/notes/n.md", False, YES),
    ("~/.ssh/**", "$HOME/.ssh/id", False, YES),
    ("~/.ssh/**", "${HOME}/.ssh/id", False, YES),
    ("src/**", "file:///home/dev/app/src/a.py", False, YES),
    (".env", "file:///home/dev/app/.env", False, YES),
    ("/etc/**", "file:/etc/hosts", False, YES),
    ("secrets/**", "/home/dev/link/secrets/k.pem", False, YES),
    ("secrets/**", " /home/dev/app/secrets/k", False, NO),
]


@pytest.mark.parametrize(("pattern", "path", "surely", "widely"), SPELLINGS)
def test_every_spelling_counts(pattern: str, path: str, surely: bool, widely: Truth) -> None:
    here = scene(pattern)
    compiled, given = here.pattern(pattern), here.path(path)
    assert compiled.sure(given, here.workspace) is surely
    assert compiled.maybe(given, here.workspace, here.fs, widen=True) is widely


@pytest.mark.parametrize("path", ["a", "src/a.py", "/home/dev/link/src/a.py"])
def test_a_linked_root_counts_in_both_spellings(path: str) -> None:
    here = scene("**", cwd="/home/dev/link")
    given = here.path(path, base="/home/dev/link")
    assert given.inside
    assert here.pattern("**").sure(given, here.workspace)


def test_a_file_uri_is_decoded_where_the_field_holds_uris() -> None:
    here = scene("My Docs/**")
    given = here.path("file:///home/dev/app/My%20Docs/x#L3", uri=True)
    assert "/home/dev/app/My Docs/x" in given.forms
    assert here.pattern("src/**").sure(here.path("file://localhost/home/dev/app/src/a", uri=True), here.workspace)


OPAQUE = [
    "",
    "a\0b",
    "a%00b",
    "a\ud800b",
    "%ff",
    "x" * 20_000,
    "odd/loop/x",
    "untitled:Untitled-1",
    "file:.env",
    "FILE:secrets/k",
    "vscode-remote://ssh/home/dev/app/src/a.py",
    "https://example.com/x",
    "file://server/share/x",
    "C:\\proj\\src\\a.py",
    "C:/proj/src/a.py",
    "\\\\server\\share",
    "~kim/x",
]


@pytest.mark.parametrize("path", OPAQUE)
def test_a_path_that_cannot_be_told_is_opaque(path: str) -> None:
    with pytest.raises(OpaquePath) as caught:
        scene().path(path)
    assert str(caught.value)


def test_a_relative_path_without_a_directory_is_opaque() -> None:
    here = scene()
    with pytest.raises(OpaquePath):
        ref("a", base=(), workspace=here.workspace, fs=here.fs)


def test_a_denied_directory_makes_the_path_opaque() -> None:
    here = scene()
    with pytest.raises(OpaquePath, match="denied"):
        ref("/closed/x", base=(), workspace=here.workspace, fs=FakeFilesystem(errors=frozenset({"/closed"})))


def test_a_path_that_cannot_be_resolved_is_still_known_as_written() -> None:
    here = scene("odd/**", ".env")
    with pytest.raises(OpaquePath) as caught:
        here.path("odd/loop/.env")
    written = caught.value.written
    assert written is not None
    assert not written.inside
    assert here.pattern(".env").maybe(written, here.workspace, here.fs, widen=True) is YES


def test_every_possible_directory_counts() -> None:
    here = scene("src/**")
    given = ref("a.py", base=(f"{APP}/src", f"{APP}/docs"), workspace=here.workspace, fs=here.fs)
    assert len(given.forms) == 2
    assert not here.pattern("src/**").sure(given, here.workspace)
    assert here.pattern("src/**").maybe(given, here.workspace, here.fs, widen=True) is YES


# pattern, path, reach, widely
CONTENT, ENTRY, LINK, NAMES, UNTOLD = Reach.CONTENT, Reach.ENTRY, Reach.LINK, Reach.NAMES, Reach.UNTOLD
REACHED = [
    ("secrets/**", ".", CONTENT, YES),
    ("secrets/**", "/home/dev", CONTENT, YES),
    ("secrets/**", "/", CONTENT, YES),
    ("secrets/*.pem", "secrets", CONTENT, YES),
    ("secrets/**", "src", CONTENT, NO),
    ("secrets/**", ".", NAMES, NO),
    ("secrets/**", "secrets", NAMES, YES),
    ("~/.ssh/**", "~", CONTENT, YES),
    ("*.pem", ".", CONTENT, MAYBE),
    ("*.pem", "secrets", CONTENT, MAYBE),
    ("*.pem", "src", CONTENT, NO),
    ("**/*.pem", "out", CONTENT, MAYBE),
    ("*.pem", ".", NAMES, NO),
    (".env", ".", CONTENT, MAYBE),
    (".env", "docs", CONTENT, NO),
    ("src/**/x.md", "src", CONTENT, YES),
    ("src/**/b.py", "src/sub", CONTENT, MAYBE),
    ("src/**/c.py", "src/sub", CONTENT, NO),
    ("*/k.pem", ".", CONTENT, MAYBE),
    ("*/k.pem", "/home/dev", CONTENT, MAYBE),
    ("secrets/**", ".", UNTOLD, MAYBE),
    ("secrets/**", "secrets", UNTOLD, YES),
    ("secrets/**", "src", UNTOLD, NO),
    (".env", "docs", UNTOLD, MAYBE),
    (".env", "src/a.py", UNTOLD, NO),
    ("src/**/c.py", "src/sub", UNTOLD, MAYBE),
    ("~/.ssh/**", ".", UNTOLD, NO),
    ("secrets/**", "secrets", LINK, YES),
    ("gen/*.py", "gen", LINK, MAYBE),
    ("a/b/*.py", "a", LINK, MAYBE),
    ("**/.vscode/tasks.json", "src/.vscode", LINK, MAYBE),
    ("**/.vscode/tasks.json", "src/vscode", LINK, NO),
    ("**/node_modules/.bin/**", "node_modules", LINK, MAYBE),
    (".env", "docs", LINK, NO),
    ("**/*.pem", "docs", LINK, NO),
    ("src/**/b.py", "src/sub", LINK, MAYBE),
    ("src/**/b.py", "docs", LINK, NO),
    ("*/k.pem", "docs", LINK, MAYBE),
    ("~/.config/nvim/**", "~/.config", LINK, MAYBE),
]


@pytest.mark.parametrize(("pattern", "path", "reach", "widely"), REACHED)
def test_what_an_operation_reaches_below_counts(pattern: str, path: str, reach: Reach, widely: Truth) -> None:
    here = scene(pattern)
    given = here.path(path, reach=reach)
    assert here.pattern(pattern).maybe(given, here.workspace, here.fs, widen=True) is widely


HIDDEN = [
    (".env", ".", NO),
    ("**/.ssh/*.pem", ".", NO),
    (".git/hooks/**", ".", NO),
    ("~/.ssh/**", "~", NO),
    ("*.pem", ".", MAYBE),
    ("secrets/**", ".", YES),
    (".env", ".env", YES),
    (".git/hooks/**", ".git", YES),
]


@pytest.mark.parametrize(("pattern", "path", "widely"), HIDDEN)
def test_a_search_that_skips_hidden_names_reaches_none(pattern: str, path: str, widely: Truth) -> None:
    here = scene(pattern)
    given = structs.replace(here.path(path, reach=CONTENT), skips_hidden=True)
    assert here.pattern(pattern).maybe(given, here.workspace, here.fs, widen=True) is widely


@pytest.mark.parametrize(
    ("pattern", "path", "beside", "widely"),
    [
        (".env", ".", "/home/dev/app/.rgignore", MAYBE),
        (".env", ".", "/home/dev/app/src/.ignore", MAYBE),
        (".env", ".", "/home/dev/.ignore", MAYBE),
        (".env", ".", "/home/dev/app/.gitignore", NO),
        (".env", ".", "/home/other/.ignore", NO),
        ("**/.none", ".", "/home/dev/app/.ignore", NO),
        ("config/.env", ".", "/home/dev/app/.ignore", YES),
    ],
)
def test_a_list_of_what_to_pass_over_may_bring_hidden_names_back(
    pattern: str, path: str, beside: str, widely: Truth
) -> None:
    here = scene(pattern)
    fs = FakeFilesystem({**FILES, beside: "!.env"}, LINKS)
    given = structs.replace(here.path(path, reach=CONTENT), skips_hidden=True)
    assert here.pattern(pattern).maybe(given, here.workspace, fs, widen=True) is widely


class _Blind(FakeFilesystem):
    """A file system that cannot look below a directory."""

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        return None


def test_where_nobody_can_look_for_such_a_list_one_may_be_there() -> None:
    here = scene(".env")
    given = structs.replace(here.path(".", reach=CONTENT), skips_hidden=True)
    assert here.pattern(".env").maybe(given, here.workspace, _Blind(FILES, LINKS), widen=True) is not NO


ENDED = [
    (".env", ".", NO),
    ("config/.env", ".", NO),
    ("*.pem", ".", NO),
    ("**/.e*", ".", NO),
    ("secrets/**", ".", YES),
    ("src/a.py", ".", YES),
    ("src/none.py", ".", YES),
    ("src/none.pem", ".", NO),
    ("*.py", ".", MAYBE),
    ("**/b*", ".", MAYBE),
    ("src", ".", MAYBE),
    (".env", ".env", YES),
]


@pytest.mark.parametrize(("pattern", "path", "widely"), ENDED)
def test_what_works_on_files_of_one_language_reaches_no_other(pattern: str, path: str, widely: Truth) -> None:
    here = scene(pattern)
    given = structs.replace(here.path(path, reach=CONTENT), endings=(".py", ".pyi"))
    assert here.pattern(pattern).maybe(given, here.workspace, here.fs, widen=True) is widely


@pytest.mark.parametrize("pattern", [".env", "config/.env", "*.py"])
def test_without_a_look_it_may_reach_any(pattern: str) -> None:
    here = scene(pattern)
    given = structs.replace(here.path(".", reach=CONTENT), endings=(".py",))
    assert here.pattern(pattern).maybe(given, here.workspace, None, widen=True) is not NO


@pytest.mark.parametrize(
    ("pattern", "glob", "widely"),
    [
        (".env", "**/.*.py", NO),
        ("**/.env/**", "docs/**/.*.py", NO),
        ("docs/.env", "**/.py", NO),
        (".venv/lib", "**/.*.py", NO),
        (".env", "**/.e*", MAYBE),
        (".env", "**/.env", YES),
        ("secrets", "**/.*.py", MAYBE),
        (".x.py/**", "**/.*.py", MAYBE),
        (".github/**", ".github/**/.*.py", YES),
        (".env", "**/.env/*", YES),
        (".env", "/**", MAYBE),
    ],
)
def test_hidden_directories_are_passed_over_unless_the_last_name_asks_for_them(
    pattern: str, glob: str, widely: Truth
) -> None:
    here = scene(pattern)
    given = structs.replace(here.path(glob, glob=True), skips_hidden=True)
    assert here.pattern(pattern).maybe(given, here.workspace, None, widen=True) is widely


@pytest.mark.parametrize(
    ("path", "glob", "reach"),
    [("src", False, CONTENT), ("src/a.py", False, ENTRY), ("src/none", False, ENTRY), ("s*", True, CONTENT)],
)
def test_what_is_there_says_whether_a_file_or_a_directory_is_read(path: str, glob: bool, reach: Reach) -> None:
    here = scene()
    assert here.path(path, reach=Reach.FILES, glob=glob).reach is reach
    assert Scene(here.workspace, None).path(path, reach=Reach.FILES, glob=glob).reach is CONTENT


@dataclasses.dataclass
class _Unsure(FakeFilesystem):
    """A file system that cannot say what one place is."""

    place: str = ""

    def is_dir(self, path: str) -> bool | None:
        return None if path == self.place else super().is_dir(path)


@pytest.mark.parametrize(
    ("fs", "reached"),
    [
        (FakeFilesystem({f"{APP}/src/a.py": ""}), NO),
        (FakeFilesystem({f"{APP}/src/a.py": "", f"{APP}/vault/x": ""}), YES),
        (FakeFilesystem({f"{APP}/src/a.py": "", f"{APP}/vault": ""}), YES),  # a file
        (_Unsure({f"{APP}/src/a.py": ""}, place=f"{APP}/vault"), YES),
        (_Unsure({f"{APP}/src/a.py": ""}, place=APP), YES),
        (None, YES),
    ],
    ids=["nothing", "a directory", "a file", "nobody knows", "nobody knows where", "no look"],
)
def test_what_only_reads_reaches_no_place_at_which_certainly_nothing_lies(
    fs: FakeFilesystem | None, reached: Truth
) -> None:
    here = scene("vault/**")
    given, pattern = here.path(".", reach=Reach.CONTENT), here.pattern("vault/**")
    assert pattern.maybe(given, here.workspace, fs, widen=True, only_read=True) is reached
    assert pattern.maybe(given, here.workspace, fs, widen=True) is YES


def test_without_a_look_what_floats_may_be_below() -> None:
    here = scene(".env")
    given = here.path("docs", reach=CONTENT)
    assert here.pattern(".env").maybe(given, here.workspace, None, widen=True) is MAYBE


@pytest.mark.parametrize(
    ("pattern", "path", "surely"),
    [
        ("src/**", "src", True),
        ("src/*", "src/sub", False),
        ("src", "src", False),
        ("*.py", "a.py", False),
        ("src/a.py", "src/a.py", True),
        ("**", ".", True),
    ],
)
def test_an_allow_of_whole_trees_must_say_so(pattern: str, path: str, surely: bool) -> None:
    here = scene(pattern)
    assert here.pattern(pattern).sure(here.path(path, reach=CONTENT), here.workspace) is surely


# pattern, glob, surely, widely
GLOBS = [
    (".env", "cat/.e*", False, MAYBE),
    (".env", ".en?", False, YES),
    (".env", ".en[v]", False, YES),
    (".env", "*", False, NO),
    (".env", "?env", False, NO),
    (".env", "[.]env", False, NO),
    (".env", "src/*", False, NO),
    ("*.pem", "new/*", False, MAYBE),
    ("new/**", "new/*", True, YES),
    ("new/*", "new/*", True, YES),
    ("new/*.py", "new/*", False, MAYBE),
    ("new/*.py", "new/*.py", True, YES),
    ("new/*.py", "new/a*.py", True, YES),
    ("new/a*", "new/*.py", False, MAYBE),
    ("new/?", "new/[ab]", True, YES),
    ("new/?", "new/*", False, MAYBE),
    ("new/[a-c]", "new/b", True, YES),
    ("new/**", "new/\\*", True, YES),
    ("new/\\*", "new/\\*", True, YES),
    ("new/x", "new/\\*", False, NO),
    ("secrets/**", "s*", False, YES),
    ("secrets/**", "secrets/*", True, YES),
    ("**", "*/x", False, YES),
    ("**", "src/*", True, YES),
    ("src/**", "src/*", False, YES),
    ("**", "*/../x", False, YES),
    ("/etc/**", "*/../x", False, MAYBE),
    ("**", "o*/x", False, YES),
    ("/etc/**", "o*/x", False, YES),
    ("**", "new/*/../../../etc/x", False, YES),
    ("**", "new/**", True, YES),
    ("**/.env", "new/**/.env", True, YES),
    ("new/*", "new/**", False, MAYBE),
]


@pytest.mark.parametrize(("pattern", "path", "surely", "widely"), GLOBS)
def test_a_glob_is_judged_by_what_it_can_match(pattern: str, path: str, surely: bool, widely: Truth) -> None:
    here = scene(pattern)
    compiled, given = here.pattern(pattern), here.path(path, glob=True)
    assert compiled.sure(given, here.workspace) is surely
    assert compiled.maybe(given, here.workspace, here.fs, widen=True) is widely


@pytest.mark.parametrize(
    ("pattern", "path", "plainly"),
    [
        ("new/x", "new/**", MAYBE),
        ("new/x/*", "**", MAYBE),
        ("new/x", "new/*/**", MAYBE),
        ("new/x", "other/**", NO),
        ("new/**", "new/**", YES),
    ],
)
def test_an_exception_may_be_what_a_glob_leads_to(pattern: str, path: str, plainly: Truth) -> None:
    here = scene(pattern)
    for fs in (here.fs, None):
        assert here.pattern(pattern).maybe(here.path(path, glob=True), here.workspace, fs, widen=False) is plainly


# pattern, glob, what exists, widely
EXPANDED = [
    ("*.pem", "src/*", [], NO),
    ("*.pem", "s*/*", ["secrets/k.pem"], YES),
    ("*.pem", "s[q-r]c/*", [], MAYBE),
    ("*.pem", "src/**", [], NO),
    ("*.pem", "src/**", ["src/d/x.pem"], MAYBE),
    ("*.pem", "src/**/*.py", ["src/d/x.pem"], NO),
    ("*.pem", "src/**/*.py", ["src/x.pem/d/a.py"], MAYBE),
    ("*.pem", "src/**/x*", ["src/d/x.pem"], YES),
    ("*.pem", "nodir/*", [], MAYBE),
    ("*.pem", "docs/*", ["docs/.x.pem"], NO),
    ("*.pem", "docs/.*", ["docs/.x.pem", "docs/.y"], YES),
    ("*.pem", "docs/*", ["docs/x.pem"], YES),
    ("*.pem", "docs/*", [f"docs/{n}" for n in range(401)], MAYBE),
    ("*.pem", "docs/*", [*(f"docs/{n}" for n in range(300)), "docs/x.pem"], YES),
    ("docs/*.pem", "docs/*", [], MAYBE),
    ("k.pem", "alias/*", [], YES),
    ("alias/**", "alias/*", [], YES),
    ("**/alias/*.pem", "alias/*", [], YES),
    ("**/alias/*.key", "alias/*", [], NO),
    ("b.py", "src/*", [], NO),
    ("x.md", "src/*/x*", [], MAYBE),
]


@pytest.mark.parametrize(("pattern", "path", "files", "widely"), EXPANDED)
def test_a_floating_pattern_sees_what_a_glob_expands_to(
    pattern: str, path: str, files: list[str], widely: Truth
) -> None:
    here = scene(pattern)
    assert isinstance(here.fs, FakeFilesystem)
    here.fs.files = {**here.fs.files, **{f"{APP}/{name}": "" for name in files}}
    given = ref(path, base=(APP,), workspace=here.workspace, fs=here.fs, glob=True, expands=True)
    assert here.pattern(pattern).maybe(given, here.workspace, here.fs, widen=True) is widely


def test_what_lies_below_the_matches_of_a_glob_is_reached() -> None:
    here = scene("b.py", "*.pem")
    given = ref("s*/*", base=(APP,), workspace=here.workspace, fs=here.fs, glob=True, reach=CONTENT, expands=True)
    assert here.pattern("b.py").maybe(given, here.workspace, here.fs, widen=True) is MAYBE
    given = ref("src/*", base=(APP,), workspace=here.workspace, fs=here.fs, glob=True, reach=CONTENT, expands=True)
    assert here.pattern("*.pem").maybe(given, here.workspace, here.fs, widen=True) is NO


class _Crowded(FakeFilesystem):
    """A file system with a directory too large to list."""

    def listing(self, directory: str) -> tuple[str, ...] | None:
        return None if directory == f"{APP}/crowd" else super().listing(directory)

    def is_dir(self, path: str) -> bool | None:
        return path == f"{APP}/crowd" or super().is_dir(path)


@pytest.mark.parametrize("text", ["many/*", "crowd/*", "*/x", "odd/*", "[[:alpha:]]*/../x"])
def test_a_glob_whose_matches_cannot_be_told_may_lead_anywhere(text: str) -> None:
    files = dict.fromkeys([f"{APP}/many/{number}" for number in range(1_200)], "")
    fs = _Crowded(files={**files, f"{APP}/x/crowd": None}, links={f"{APP}/odd/loop": f"{APP}/odd/loop"})
    fs = dataclasses.replace(fs, files={**fs.files, **{f"{APP}/d{n}/y": "" for n in range(1_001)}})
    workspace = open_workspace(APP, [], home=HOME, fs=fs)
    given = ref(text, base=(APP,), workspace=workspace, fs=fs, glob=True)
    assert "/**" in given.forms
    assert not given.inside
    pattern = PathPattern.compile("**", home=HOME, tmpdir="/tmp", fs=fs)
    assert not pattern.sure(given, workspace)
    assert pattern.maybe(given, workspace, fs, widen=True) is YES


def test_a_glob_in_a_root_with_odd_letters_is_read_literally() -> None:
    fs = FakeFilesystem(files={"/home/dev/a[1]/x.py": ""})
    workspace = open_workspace("/home/dev/a[1]", [], home=HOME, fs=fs)
    given = ref("*.py", base=("/home/dev/a[1]",), workspace=workspace, fs=fs, glob=True)
    assert given.inside
    assert given.forms[0] == "/home/dev/a\\[1\\]/*.py"
    assert PathPattern.compile("*.py", home=HOME, tmpdir="/tmp", fs=fs).sure(given, workspace)


@pytest.mark.parametrize(("glob", "name"), [("[z-a]x", "qx"), ("[[:alpha:]]x", "qx"), ("[\\]]x", "]x"), ("[x", "[x")])
def test_an_odd_class_of_a_glob_may_be_any_character(glob: str, name: str) -> None:
    here = scene(escape(name))
    given = here.path("new/" + glob, glob=True)
    assert here.pattern(escape(name)).maybe(given, here.workspace, here.fs, widen=True) is not NO


def test_without_a_file_system_a_glob_keeps_its_written_form() -> None:
    here = scene("src/*")
    given = ref("src/*.py", base=(APP,), workspace=here.workspace, fs=None, glob=True)
    assert given.forms == (f"{APP}/src/*.py",)


def test_quoting_does_not_hide_a_way_up() -> None:
    given = scene().path("a/\\.\\./\\.\\./x*", glob=True)
    assert given.forms[0] == "/home/dev/x*"


def test_a_glob_removes_below_what_it_can_match() -> None:
    here = scene("secrets/**", ".env", "deep/er/**")
    given = here.path("*", glob=True, reach=CONTENT)
    assert here.pattern("secrets/**").maybe(given, here.workspace, here.fs, widen=True) is YES
    assert here.pattern("deep/er/**").maybe(given, here.workspace, here.fs, widen=True) is not NO
    assert not here.pattern("*").sure(given, here.workspace)


def test_case_is_folded_for_strict_rules_only() -> None:
    here = scene("**/.env", "SRC/**", "[a-c]x", fold_case=True)
    assert here.pattern("**/.env").maybe(here.path(".ENV"), here.workspace, here.fs, widen=True) is YES
    assert here.pattern("SRC/**").maybe(here.path("src/a"), here.workspace, here.fs, widen=True) is YES
    assert here.pattern("[a-c]x").maybe(here.path("BX"), here.workspace, here.fs, widen=True) is YES
    assert here.pattern("[A-C]X").maybe(here.path("bx"), here.workspace, here.fs, widen=True) is YES
    assert not here.pattern("SRC/**").sure(here.path("src/a"), here.workspace)
    assert here.pattern("src/**").maybe(here.path("S*", glob=True), here.workspace, here.fs, widen=True) is not NO


# ---- roots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ("/", "whole disk"),
        ("/home/dev", "home directory"),
        ("/home", "above the home"),
        ("/home/dev/rootlink", "whole disk"),
        ("/home/dev/.config/policyd", "files of policyd"),
        ("/home/dev/.config", "files of policyd"),
        ("/home/dev/.config/policyd/policies.d", "files of policyd"),
        ("relative", "absolute"),
        ("/closed/app", "resolved"),
    ],
)
def test_some_directories_are_no_workspace_for_allow(root: str, why: str) -> None:
    fs = FakeFilesystem(links={"/home/dev/rootlink": "/"}, errors=frozenset({"/closed"}))
    workspace = open_workspace(root, [], home=HOME, fs=fs, reserved=["/home/dev/.config/policyd"])
    assert workspace.sound == ()
    assert why in workspace.unsound[0]
    pattern = PathPattern.compile("**", home=HOME, tmpdir="/tmp", fs=fs)
    given = ref("/home/dev/x", base=(), workspace=workspace, fs=fs)
    assert not given.inside
    assert not pattern.sure(given, workspace)
    assert pattern.maybe(given, workspace, fs, widen=True) is YES


def test_a_sound_root_stays_sound_beside_an_unsound_one() -> None:
    here = scene("**", additional=("/",))
    assert here.workspace.sound == (APP,)
    assert here.pattern("**").sure(here.path("src/a.py"), here.workspace)
    assert not here.pattern("**").sure(here.path("/etc/hosts"), here.workspace)


def test_additional_directories_are_roots() -> None:
    here = scene("src/**", additional=("/home/dev/second",))
    assert here.pattern("src/**").sure(here.path("/home/dev/second/src/a"), here.workspace)
    assert here.path("/home/dev/second/src/a").inside


def test_no_workspace_without_a_file_system_is_sound() -> None:
    workspace = open_workspace(APP, [], home=HOME, fs=None)
    assert workspace.sound == ()
    assert workspace.roots == (APP,)


def test_an_unknown_home_is_an_error() -> None:
    with pytest.raises(ValueError, match="home"):
        open_workspace(APP, [], home="", fs=None)


def test_a_session_without_a_directory_has_no_roots() -> None:
    workspace = open_workspace(None, [], home=HOME, fs=None)
    assert workspace.roots == ()


def test_a_pattern_follows_the_session_it_is_asked_about() -> None:
    here, there = scene("src/**"), scene("src/**", cwd="/home/dev/second")
    pattern = here.pattern("src/**")
    for _ in range(2):
        assert pattern.sure(here.path("src/a.py"), here.workspace)
        assert not pattern.sure(here.path("src/a.py"), there.workspace)


def test_a_head_that_became_a_link_later_leads_nowhere() -> None:
    here = scene("src/**")
    later = FakeFilesystem(links={f"{APP}/src": "/etc"})
    given = ref("src/hosts", base=(APP,), workspace=here.workspace, fs=later)
    assert not here.pattern("src/**").sure(given, here.workspace)


# ---- what is refused -------------------------------------------------------------------------------

REFUSED = [
    ("", "empty"),
    ("   ", "empty"),
    ("!build/keep.log", "unless"),
    ("build\\core", "`/`"),
    ("src\\", "`/`"),
    ("%USERPROFILE%/x", "$HOME/"),
    ("C:\\x", "Windows"),
    ("C:/x", "Windows"),
    ("/^src/", "regular"),
    ("/.*secret/i", "regular"),
    ("/secret$/", "regular"),
    ("/\\.env/", "regular"),
    (".*\\.env$", "regular"),
    ("^src", "regular"),
    ("re:x", "prefixes"),
    ("glob:**/*.py", "prefixes"),
    ("file:///etc", "url"),
    ("https://example.com", "url"),
    ("Bash(git *)", "kind"),
    ("Read(./.env)", "kind"),
    ("~kim/x", "absolute"),
    ("$FOO/x", "$TMPDIR/"),
    ("${HOME}/x", "$HOME/"),
    ("../x", "absolute"),
    ("a/*/../b", "absolute"),
    ("a[b", "\\["),
    ("a[]", "\\["),
    ("a[x/y]", "\\["),
    ("**.pem", "`**/*`"),
    ("src/**.py", "`**/*`"),
    ("a**", "`**/*`"),
    ("src/***", "`**/*`"),
    ("src/** ", "`**/*`"),
    ("[z-a]", "a-z"),
    ("[[:alpha:]]", "a-z"),
    ("a{b", "\\{"),
    ("a}", "\\}"),
    ("{a}", "\\{"),
    ("{1..3}", "\\{"),
    ("{a,}", "empty"),
    ("a\nb", "control"),
    ("a\0", "control"),
    ("\ud800", "Unicode"),
    ("{a,b}" * 9, "braces"),
    ("a" * 5000, "longer"),
    ("a/" * 300, "segments"),
]


@pytest.mark.parametrize(("pattern", "advice"), REFUSED)
def test_a_foreign_spelling_is_an_error_that_says_what_to_write(pattern: str, advice: str) -> None:
    with pytest.raises(PatternError) as caught:
        scene().pattern(pattern)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        *[
            "a$b",
            "app/$id.tsx",
            "$id.tsx",
            "(group)/x",
            "a+b",
            "/srv/a.*/x",
            "/srv/(a)/x",
            "x|y",
            "a:b",
            "#x",
            "@types",
        ],
        *["a%b", "/etc/", "a!", "a~", "a\\ b", "re", "**/*"],
    ],
)
def test_odd_names_are_patterns_all_the_same(pattern: str) -> None:
    assert scene().pattern(pattern).source == pattern


@pytest.mark.parametrize("name", ["a*b", "[slug]", "{x}", "!x", "~", "$HOME", "^a", "a,b", "a b", "ü?", "a-b", "#"])
def test_an_escaped_name_is_the_name_and_nothing_else(name: str) -> None:
    text = "dir/" + escape(name)
    here = scene(text)
    assert here.pattern(text).sure(here.path(f"{APP}/dir/{name}"), here.workspace)
    assert here.pattern(text).heads == (f"dir/{name}",)
    assert not here.pattern(text).sure(here.path(f"{APP}/dir/{name}x"), here.workspace)


def test_a_pattern_tells_what_the_policy_needs_to_know() -> None:
    pattern = scene().pattern("{src/a*,~/x,**/k,b}")
    assert pattern.relative
    assert pattern.heads == ("src", "b")
    assert pattern.head == "src"
    assert scene().pattern("/etc/x").head == ""


def test_hostile_texts_are_answered_at_once() -> None:
    here = scene("*a" * 200 + "b", "**/a/" * 40)
    long_name = here.path("a" * 4_000)
    deep_path = here.path("a/" * 2_000)
    for text in ("*a" * 200 + "b", "**/a/" * 40 + "b", "?" * 200 + "*" + "[bc]" * 200):
        pattern = here.pattern(text)
        for given in (long_name, deep_path):
            assert not pattern.sure(given, here.workspace)
    for text in ("[" * 4_000, "[:" * 2_000 + "]", "*/" * 2_000, "?[ab]" * 800):
        assert (
            here.pattern("**/*a*/**/b").maybe(here.path(text, glob=True), here.workspace, here.fs, widen=True)
            is not YES
        )
    glob = here.path("*a" * 2_000, glob=True)
    assert here.pattern("*a" * 200 + "b").maybe(glob, here.workspace, here.fs, widen=True) is not YES


def test_a_reference_keeps_what_was_stated() -> None:
    given = scene().path("src/../src/a.py")
    assert given.text == "src/../src/a.py"
    assert given.forms == (f"{APP}/src/a.py",)
    assert structs.replace(given, inside=False) != given


def test_a_relative_directory_to_start_at_is_opaque_and_ends() -> None:
    space = open_workspace("app", (), home="/home/dev", fs=FakeFilesystem({}))
    with pytest.raises(OpaquePath):
        ref("src/a", base=("app",), workspace=space, fs=FakeFilesystem({}))
    index = PathIndex([(PathPattern.compile(".env", home="/home/dev", tmpdir="/tmp"), 1)])
    assert 1 in index.candidates(PathRef("x/.env", ("x/.env",), Reach.ENTRY), space)


@pytest.mark.parametrize(
    ("source", "pattern", "truth"),
    [
        ("build", ".env", Truth.NO),
        ("conf", ".env", Truth.MAYBE),
        ("conf", "**/*.pem", Truth.NO),
        ("none", ".env", Truth.NO),
    ],
)
def test_a_directory_that_is_filled_holds_what_fills_it(source: str, pattern: str, truth: Truth) -> None:
    fs = FakeFilesystem({f"{APP}/build/o": "", f"{APP}/conf/.env": "", f"{APP}/new/.env": ""})
    space = open_workspace(APP, (), home=HOME, fs=fs)
    place = ref("new", base=(APP,), workspace=space, fs=fs, reach=Reach.CONTENT)
    filled = structs.replace(place, filled_from=(f"{APP}/{source}",))
    compiled = PathPattern.compile(pattern, home=HOME, tmpdir="/tmp")
    assert compiled.maybe(filled, space, fs, widen=True) is truth
    assert compiled.maybe(place, space, fs, widen=True) is (Truth.MAYBE if pattern == ".env" else Truth.NO)
    assert compiled.maybe(filled, space, None, widen=True) is Truth.MAYBE


@pytest.mark.parametrize(
    ("text", "reach", "inside"),
    [
        (".*/x", Reach.ENTRY, False),
        (".?/x", Reach.ENTRY, False),
        ("src/.*", Reach.CONTENT, False),
        ("src/.*", Reach.ENTRY, True),
        (".e*/x", Reach.ENTRY, True),
        ("*/x", Reach.ENTRY, True),
        ("*/../x", Reach.ENTRY, False),
        ("[ab]/../src/*", Reach.ENTRY, False),
    ],
)
def test_a_glob_that_may_be_two_dots_may_lead_out(text: str, reach: Reach, inside: bool) -> None:
    fs = FakeFilesystem({f"{APP}/src/a": ""})
    space = open_workspace(APP, (), home=HOME, fs=fs)
    assert ref(text, base=(APP,), workspace=space, fs=fs, reach=reach, glob=True).inside is inside
