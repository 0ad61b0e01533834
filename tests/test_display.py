"""Text for people: no effect on a terminal or page, nothing hidden, nothing cut in silence."""

from __future__ import annotations

import html
import itertools
import re
import tomllib
import unicodedata
from collections.abc import Iterator

import pyte
import pytest
import tomli_w
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyd.display import SHORTEST, in_toml, safe, sentences
from tests.rowwise import in_groups

END = "rm -rf ~/END"
WIDTH, HEIGHT = 200, 50
INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180e\u200b\u200c\u200d\u2060\u2064\u2800\u3164\ufeff\uffa0"
ATTACKS = ("\x1b[8m", "\r", "\b\b", "\x9b2K")
SEQUENCES = (
    *["[2J", "[H", "[1;31m", "[8m", "[1A", "[200D", "[K", "[?25l", "[?1049h", "[6n", "c", "7", "(0", "P+q\x1b\\"],
    *["]0;title\x07", "]2;title\x1b\\", "]8;;https://evil.example\x1b\\", "]52;c;cm0=\x07", "]1337;x\x07"],
    "_x\x1b\\",
)


def _corpus() -> Iterator[str]:
    """Texts that hide, move, colour, flood or pad, each with a command at its end."""
    for code in (*range(0x20), *range(0x7F, 0xA1)):
        yield f"ls {chr(code)} {END}"
        yield f"{chr(code) * 3}x{chr(code)}{END}"
    for invisible in "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180e\u200b\u200c\u200d\u2060\u2064\u2800\u3164\ufeff\uffa0":
        yield f"git{invisible}push {END}"
        yield invisible * 40 + END
    for direction in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069":
        yield f"a {direction}txt.sh{direction} {END}"
        yield f"{direction}\x1b[31m{direction}" * 20 + END
    for blank in "\u00a0\u1680\u2000\u2003\u2007\u2028\u2029\u202f\u205f\u3000\u0085":
        yield f"a{blank}b {END}"
        yield "ls" + blank * 300 + END
    for code in (
        0xE0001,
        *range(0xE0020, 0xE0080, 3),
        0xFE00,
        0xFE0F,
        0xE0100,
        0xE01EF,
        0xFFF9,
        0xFFFC,
        0xF8FF,
        0xFFFF,
    ):
        yield f"tag{chr(code)} {END}"
    for sequence in SEQUENCES:
        yield f"echo \x1b{sequence} {END}"
        yield f"echo \x9b{sequence[1:]} {END}"
        yield f"\x1b{sequence}" * 100 + END
    for count in (5, 50, 5_000):
        yield "a" + "\u0301" * count + " " + END
        yield "a" + "\u20dd\u0489" * count + END
    for count in (17, 10_000):
        yield "ls" + " " * count + END
        yield "ls" + "\t" * count + END
        yield "ls" + "\n" * count + END
    for low in range(0xE0041, 0xE005B):
        yield "ok" + chr(low) + chr(low + 0x20) + END
    for attack, hidden in itertools.product(
        ("\x1b[8m", "\r", "\b\b", "\x9b2K"), "\u202e\u2066\u200b\u00ad\u3000\u034f"
    ):
        yield f"{hidden}safe{attack}{hidden}{END}"
        yield f"{attack}{hidden}" * 30 + " " + END
    yield "safe\r" + END
    yield "\b" * 50 + END
    yield "a\ud800b " + END
    yield "⟨U+202E⟩ ⏎ ⟨5 characters cut⟩ " + END
    yield "x" * 1_000_000 + END
    yield "\u202e" * 1_000_000 + END
    yield "héllo wörld 日本語 😀 " + END


CORPUS = list(_corpus())


def test_the_corpus_is_large() -> None:
    assert len(set(CORPUS)) >= 400


def _shown_on_a_terminal(text: str) -> tuple[pyte.Screen, str]:
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.Stream(screen)
    stream.feed("before ")
    stream.feed(text)
    return screen, "".join(line.rstrip("\n") for line in screen.display)


@in_groups((text,) for text in CORPUS)
def test_a_terminal_only_prints(text: str) -> None:
    shown = safe(text, limit=2_000)
    screen, printed = _shown_on_a_terminal(shown)
    assert screen.title == ""
    assert not screen.cursor.hidden
    cells = [cell for line in screen.buffer.values() for cell in line.values()]
    assert {(cell.fg, cell.bg, cell.bold, cell.reverse, cell.underscore) for cell in cells} == {
        ("default", "default", False, False, False)
    }
    assert printed.startswith("before ")
    assert printed.rstrip().endswith(END)


@in_groups((text, limit) for text in CORPUS for limit in (0, SHORTEST, 200, 2_000))
def test_nothing_is_hidden_and_the_end_is_seen(text: str, limit: int) -> None:
    shown = safe(text, limit=limit)
    assert len(shown) <= max(limit, SHORTEST)
    assert shown.endswith(END)
    assert not any(_hidden(char) for char in shown)
    assert re.search(r"⟨\d+ (characters|blanks|marks) cut⟩", shown) or len(shown) >= len(text)


def _hidden(char: str) -> bool:
    return char != " " and unicodedata.category(char)[0] in "CZ"


@in_groups((text,) for text in CORPUS)
def test_a_page_or_chat_shows_the_same_text(text: str) -> None:
    shown = safe(text, limit=2_000)
    assert html.unescape(html.escape(shown)) == shown
    assert shown.splitlines() == [shown]
    assert shown.encode("utf-8").decode("utf-8") == shown


PLAIN = ["", "git status", "cat a\\ b 'c' \"d\" $X", "naïve café", "日本語", "x  y", "printf '\\n'"]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert safe(text) == text
    assert safe(text, limit=80) == text


WRITTEN = [
    ("a\nb", "a⏎b"),
    ("a\tb", "a⇥b"),
    ("a\rb", "a⟨U+000D⟩b"),
    ("\x1b[2J", "⟨U+001B⟩[2J"),
    ("a\u202eb", "a⟨U+202E⟩b"),
    ("a\U000e0041b", "a⟨U+E0041⟩b"),
    ("a\ud800", "a⟨U+D800⟩"),
    ("⟨9 characters cut⟩", "⟨U+27E8⟩9 characters cut⟨U+27E9⟩"),
    ("a⏎b", "a⟨U+23CE⟩b"),
    ("a" + " " * 17 + "b", "a⟨17 blanks cut⟩b"),
    ("a" + " " * 16 + "b", "a" + " " * 16 + "b"),
    ("a" + "\u0301" * 9 + "b", "a⟨9 marks cut⟩b"),
    ("e\u0301", "e\u0301"),
]


@pytest.mark.parametrize(("text", "shown"), WRITTEN)
def test_what_hides_is_written_out(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_what_is_cut_is_counted() -> None:
    shown = safe("A" * 500 + "B" * 500, limit=100)
    found = re.fullmatch(r"(A+)⟨(\d+) characters cut⟩(B+)", shown)
    assert found is not None
    assert len(found[1]) + int(found[2]) + len(found[3]) == 1_000
    assert len(found[3]) > len(found[1])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.integers(min_value=0, max_value=300))
def test_any_text_is_one_visible_line_within_its_limit(text: str, limit: int) -> None:
    shown = safe(text, limit=limit)
    assert len(shown) <= max(limit, SHORTEST)
    assert not any(_hidden(char) for char in shown)
    assert safe(text, limit=limit) == shown


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=60), st.text(alphabet=st.characters(), max_size=60))
def test_two_texts_never_look_alike(left: str, right: str) -> None:
    floods = any(unicodedata.category(char)[0] == "M" for char in left + right) or " " * 17 in left + right
    if left != right and not floods:
        assert safe(left) != safe(right)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=9), st.text(max_size=20), max_size=3))
@example({"a\u202e": "\x9b31m\u2028 é\u200b", "\x1b": "\U000e0041\r\n"})
def test_toml_that_others_wrote_hides_nothing_and_means_the_same(table: dict[str, str]) -> None:
    text = in_toml(tomli_w.dumps(table))
    assert tomllib.loads(text) == table
    assert not any(_hidden(char) for char in text.replace("\n", ""))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), ""),
        (("", ""), ""),
        (("no rule applies to it",), "no rule applies to it"),
        (("asked about by `a`", "", "asked about by `b`"), "asked about by `a`; asked about by `b`"),
        (
            ("Never push.", "Say what is missing.", "by `a`", "why?", "so"),
            "Never push. Say what is missing. by `a`; why? so",
        ),
    ],
)
def test_reasons_in_a_row_have_one_mark_between_them(parts: tuple[str, ...], text: str) -> None:
    assert sentences(parts) == text
