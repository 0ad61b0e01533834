"""Links that a text makes, moves or copies, and what it reaches through them."""

from __future__ import annotations

import pytest

from policyd.commands import read
from tests.commandrows import decide
from tests.fakes import FakeFilesystem

DISK = FakeFilesystem(
    {"/w/app/src/a.py": "", "/w/app/p/q/f": "", "/w/app/docs/f": "", "/w/app/d/f": "", "/w/other/secret": ""},
    {"/w/app/d/out": "../../other", "/w/app/l": "src"},
)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("ln -s package.json y && tee y", True),
        ("ln -s src y; cp a y/b", True),
        ("ln --symb src y; cp a y/b", True),
        ("ln -s src y; sed -i s/a/b/ $F", True),
        ("ln -s p x/l && ln -s ../../other x/l/z", True),
        ("ln -s src y && cat y/a.py", False),
        ("ln -s src y && ln -s docs z", False),
        ("ln src/a.py y && tee y", False),
        ("cp -P l docs/l && tee docs/l/a.py", True),
        ("cp -P l docs/l && cat docs/l/a.py", True),
        ("cp -a l docs && cat docs/l/a.py", True),
        ("mv l docs/l && sed -n p docs/l/a.py", True),
        ("mv d n && cat n/out/secret", True),
        ("mv d n && tee n/out/x", True),
        ("mv d n && cd n/out && make test", True),
        ("mv d n && mv n m && cat m/out/secret", True),
        ("mv m k; mv n m; mv d n; cat k/out/secret", True),
        ("mkdir -p e && mv d e && cat e/d/out/secret", True),
        ("mv d/* docs && cat docs/out/secret", True),
        ("cp -r d/. n && cat n/out/secret", True),
        ("cp -r src d docs && cat docs/d/out/secret", True),
        ("git mv d n && cat n/out/secret", True),
        ("mv d n && cat n/*/secret", True),
        ("mv d n && cat n/[o]ut/f", True),
        ("mv d n && cat n/**", True),
        ("cp -r d n; for f in n/*; do cat $f/secret; done", True),
        ("cp -rT d docs && cat docs/out/secret", True),
        ("mv [d] n && cat n/out/secret", True),
        ("mv docs x && mv ? docs && cat docs/out/secret", True),
        ("mv d n && python -m pytest n/out", True),
        ("mv d n && ln -s n y && cat y/out/secret", True),
        ("mv d n && cat n/f", False),
        ("mv d n && cat n/f*", False),
        ("mv src lib && ls lib/*.py && pytest lib", False),
        ("cp -r d n && ls n", False),
        ("cd docs && mv ../l .", False),
        ("mv l n", False),
        ("cp l/a.py docs/b.py && sed -i s/a/b/ docs/b.py", False),
        ("cp -r src n && cat n/a.py && rm -r n", False),
        ("mv src/* docs/ && ls docs", False),
        ("sort -o docs/o src/a.py && cat docs/o", False),
    ],
)
def test_what_lies_behind_a_link_of_the_same_text_cannot_be_told(text: str, hidden: bool) -> None:
    found = read(text, cwd=("/w/app",), home="/h", fs=DISK).opaque
    assert bool([reason for reason in found if "may lead through a link" in reason]) == hidden, found


class _Unseen(FakeFilesystem):
    """A file system whose directories cannot be listed."""

    def listing(self, directory: str) -> tuple[str, ...] | None:
        return None


def test_what_a_wildcard_may_find_where_nobody_can_look_may_be_a_link() -> None:
    found = read("mv d n && cat n/*/x", cwd=("/w/app",), home="/h", fs=_Unseen(DISK.files, DISK.links)).opaque
    assert [reason for reason in found if "may lead through a link that is moved" in reason], found


def test_a_double_star_may_find_what_lies_deeper() -> None:
    disk = FakeFilesystem({"/w/app/d/a/f": "", "/w/other/secret": ""}, {"/w/app/d/a/out": "../../../other"})
    found = read("mv d n && cat n/**/secret", cwd=("/w/app",), home="/h", fs=disk).opaque
    assert [reason for reason in found if "may lead through a link that is moved" in reason], found


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("ln -s ../../other p/z", {"/w/other"}),
        ("ln -s ../../other p/q/z", {"/w/app/other"}),
        ("ln -s ../src docs/s", {"/w/app/src"}),
        ("ln -s ../src docs", {"/w/src", "/w/app/src"}),
        ("ln -st docs ../src", {"/w/app/src"}),
        ("ln -s ../other/a ../other/b docs", {"/w/app/other/a", "/w/app/other/b"}),
        ("ln -sr src docs/s", {"/w/app/src"}),
        ("ln -s /etc docs/s", {"/etc"}),
        ("ln -s ../other/x", {"/w/other/x"}),
        ("ln src/a.py docs/s", {"/w/app/src/a.py"}),
    ],
)
def test_what_a_symbolic_link_leads_to_begins_where_it_lies(text: str, places: set[str]) -> None:
    files = read(text, cwd=("/w/app",), home="/h", fs=DISK).files
    joined = {
        FakeFilesystem().resolve(f"{cwd}/{use.word.text}") for use in files if use.kind == "read" for cwd in use.cwd
    }
    absolute = {use.word.text for use in files if use.kind == "read" and use.word.text.startswith("/")}
    assert (absolute or joined) == places


POLICY = """
version = 1
defaults = { read = "allow", edit = "allow", move = "allow" }

[[rule]]
effect = "allow"
command = "@files"

[[rule]]
effect = "ask"
path = "@auto-run"
"""


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("ln -s src .vscode", "ask"),
        ("ln -s src web/.github", "ask"),
        ("ln -s src node_modules", "ask"),
        ("ln -s src lib", "allow"),
        ("cp -b -S .json src/a package", "ask"),
        ("mv --suffix=.json src/a package", "ask"),
        ("cp -b -S .bak src/a src/b", "allow"),
        ("cp -S $X src/a src/b", "ask"),
    ],
)
def test_a_name_that_is_made_is_judged_with_what_may_lie_below_and_with_its_copy(text: str, effect: str) -> None:
    assert decide(POLICY, text).effect.word == effect
