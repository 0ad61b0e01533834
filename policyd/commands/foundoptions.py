"""Options that nobody wrote: a file called `-R` where a command runs, which a glob among its words finds.

`grep x *` then reads what lies behind links, `sort *` writes what a name says. Words behind `--` are no options; where
the directory cannot be listed nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyd.commands.options import may_be_option
from policyd.commands.patternwords import can_match
from policyd.commands.state import Cwd
from policyd.model import Filesystem, Word, WordKind


def found_options(words: tuple[Word, ...], cwd: Cwd, fs: Filesystem) -> Iterator[str]:
    """Yield the names in the directories of a command that a glob among its words hands over as options."""
    ends = words.index(Word("--")) if Word("--") in words else len(words)
    globs = [word.text.partition("/")[0] for word in words[:ends] if word.kind is WordKind.GLOB and may_be_option(word)]
    for place in cwd if globs else ():
        dashed = [name for name in fs.listing(place) or () if name.startswith("-")]
        yield from (name for name in dashed if any(can_match(glob, name) for glob in globs))
