"""What lies where a command runs and makes it more than its words say.

Rules of this module:

1. A file called `-R`, which a glob among the words finds, is an option: `grep x *` then reads what lies behind links,
   `sort *` writes what a name says. Words behind `--` are none; where the directory cannot be listed nothing is found.
2. A repository inside another one came with its files, its configuration with it (see `gitplaces`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from policyd.commands.argv.options import may_be_option
from policyd.commands.argv.programs import Program
from policyd.commands.files import gitplaces
from policyd.commands.lexing.patternwords import can_match
from policyd.commands.state import Cwd
from policyd.model import Filesystem, SimpleCommand, Word, WordKind


def lying(program: Program | None, command: SimpleCommand, fs: Filesystem) -> Iterator[str]:
    """Yield what there is that a command would take for an option of its own, or for code."""
    if program is None or not (program.words or program.inert):
        for name in islice(_options(command.argv, command.cwd, fs), 1):
            yield f"`{name}` lies where it runs and becomes an option"
    if gitplaces.is_git(command.argv):
        for place in gitplaces.embedded(command.argv, command.cwd, fs):
            yield f"`{place}` is a repository inside another one, and git runs what its configuration names"


def _options(words: tuple[Word, ...], cwd: Cwd, fs: Filesystem) -> Iterator[str]:
    ends = words.index(Word("--")) if Word("--") in words else len(words)
    globs = [word.text.partition("/")[0] for word in words[:ends] if word.kind is WordKind.GLOB and may_be_option(word)]
    for place in cwd if globs else ():
        dashed = [name for name in fs.listing(place) or () if name.startswith("-")]
        yield from (name for name in dashed if any(can_match(glob, name) for glob in globs))
