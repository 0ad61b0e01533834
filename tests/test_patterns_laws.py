"""Laws of command patterns, on random patterns and commands of a small alphabet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policyd.commands.matching.patterns import CommandPattern, program_names
from policyd.commands.sets import SetEntry, shipped
from policyd.model import SimpleCommand, Truth, Word, WordKind

PROGRAMS = ["git", "rm", "tool", "/usr/bin/git", "./git", "busybox", "python3", "docker"]
WORDS = [
    "push",
    "commit",
    "-f",
    "--force",
    "-rf",
    "-C",
    "x",
    "a/b",
    "../y",
    "--",
    "-m",
    "--forc",
    "-uf",
    "run",
    "rm",
    "-",
]
PATTERN_WORDS = [*WORDS, "*", "**", "a/*", "-*", "*x", "src/**"]
CONST = st.sampled_from(WORDS).map(Word)
UNKNOWN = st.builds(
    Word, st.just("$X"), st.just(WordKind.UNKNOWN), st.sampled_from(["", "-", "--fo", "pu", "a/"]), st.booleans()
)
GLOB = st.sampled_from(["*", "-*", "a/*", "p*"]).map(lambda text: Word(text, WordKind.GLOB))


@st.composite
def commands(draw: st.DrawFn) -> SimpleCommand:
    program = Word(draw(st.sampled_from(PROGRAMS)))
    words = draw(st.lists(st.one_of(CONST, CONST, CONST, UNKNOWN, GLOB), max_size=5))
    inner = draw(st.none() | commands()) if draw(st.integers(0, 5)) == 0 else None
    return SimpleCommand((program, *words), "", cwd=("/home/dev/app",), inner=inner)


@st.composite
def patterns(draw: st.DrawFn) -> CommandPattern:
    program = draw(st.sampled_from([*PROGRAMS, "*", "**", "g*"]))
    words = draw(st.lists(st.sampled_from(PATTERN_WORDS), max_size=4))
    return CommandPattern.compile(" ".join([program, *words]), home="/home/dev")


@given(patterns(), commands())
def test_what_an_allow_rule_is_sure_of_a_strict_rule_catches(pattern: CommandPattern, command: SimpleCommand) -> None:
    if pattern.sure(command):
        assert pattern.maybe(command, widen=True) is not Truth.NO
        assert pattern.maybe(command, widen=False) is not Truth.NO


@given(patterns(), commands())
def test_widening_never_loses_a_match(pattern: CommandPattern, command: SimpleCommand) -> None:
    assert pattern.maybe(command, widen=True) >= pattern.maybe(command, widen=False)


@given(patterns(), commands())
def test_the_index_names_every_command_a_pattern_may_hold_for(pattern: CommandPattern, command: SimpleCommand) -> None:
    if pattern.maybe(command, widen=True) or pattern.sure(command):
        names = program_names(command)
        assert pattern.programs is None or names is None or names & pattern.programs


@given(patterns(), commands(), st.lists(CONST, max_size=3))
def test_more_words_behind_a_strict_match_stay_a_match(
    pattern: CommandPattern, command: SimpleCommand, more: list[Word]
) -> None:
    longer = SimpleCommand((*command.argv, *more), "", cwd=command.cwd, inner=command.inner)
    if pattern.maybe(command, widen=True) is Truth.YES:
        assert pattern.maybe(longer, widen=True) is not Truth.NO


@given(commands())
def test_no_entry_of_a_set_is_sure_of_what_its_patterns_do_not_catch(command: SimpleCommand) -> None:
    for found in shipped().values():
        for entry in found.entries.values():
            if isinstance(entry, SetEntry) and entry.sure(command):
                assert entry.maybe(command, widen=True) is not Truth.NO


@given(st.text(max_size=60))
def test_any_text_is_a_pattern_or_an_error_in_words(text: str) -> None:
    try:
        found: object = CommandPattern.compile(text, home="/home/dev").alternatives
    except ValueError as error:
        found = str(error)
    assert found
