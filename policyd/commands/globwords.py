"""Files that a glob among the words of a search lets in, which it would pass over: of `rg -g`, of a pathspec of git.

Rules of this module:

1. What a glob or a type asks for, `rg` searches though its name is hidden; so it does where types, or lists of files to
   pass over, are made up. A glob behind `!` asks for nothing.
2. `git grep --untracked` searches what nobody committed.
3. A glob that is not read, and a type that is not in the table, may ask for anything.

Sources: rg(1), `rg --type-list`; git-grep(1), gitglossary(7), pathspec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyd.commands.findwords import below, globs
from policyd.commands.options import Parsed
from policyd.model import Reach, Word, WordKind

TYPES = {
    "c": "*.c *.h *.C *.H *.cats *.in",
    "css": "*.css *.scss",
    "go": "*.go",
    "html": "*.ejs *.htm *.html",
    "java": "*.java *.jsp *.jspx *.properties",
    "js": "*.js *.jsx *.cjs *.mjs *.vue",
    "json": "*.json *.lock *.sarif",
    "kotlin": "*.kt *.kts",
    "markdown": "*.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn",
    "php": "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.phtml",
    "py": "*.py *.pyi",
    "rust": "*.rs",
    "sql": "*.psql *.sql",
    "swift": "*.swift",
    "toml": "*.toml *.lock",
    "ts": "*.ts *.tsx *.cts *.mts",
    "txt": "*.txt",
    "yaml": "*.yaml *.yml",
}
TYPES |= {"md": TYPES["markdown"], "python": TYPES["py"], "typescript": TYPES["ts"]}
"""Types whose files have one of a few endings."""
_PLAIN = re.compile(r"/?[\w.-]+(?:/[\w.-]+)*").fullmatch
_PATTERNS = ("-e", "--regexp", "-f", "--file")
_HERE = (Word("."),)
Found = Iterator[tuple[Word, Reach]]


def let_in(parsed: Parsed) -> Found:
    """Yield what `rg` searches though it may be hidden."""
    if parsed.has("--files", "--type-list"):
        return
    starts = parsed.operands[0 if parsed.has(*_PATTERNS) else 1 :] or _HERE
    fold = parsed.has("--glob-case-insensitive")
    asked = [(word, fold) for word in parsed.values("-g")] + [(word, True) for word in parsed.values("--iglob")]
    kinds = [TYPES.get(word.text, "*").split() for word in parsed.values("-t")]
    asked += [(Word(glob), False) for each in kinds for glob in each]
    if parsed.has("--type-add", "--ignore-file"):
        asked.append((Word("*"), False))
    for word, either in asked:
        if word.kind is not WordKind.CONST:
            yield from _all_below(starts)
        elif not word.text.startswith("!"):
            yield from _matching(word.text, starts, fold=either)


def untracked(parsed: Parsed) -> Found:
    """Yield what `git grep --untracked` searches."""
    if not parsed.has("--untracked"):
        return
    for word in parsed.operands[0 if parsed.has("-e", "-f") else 1 :] or _HERE:
        if word.kind is not WordKind.CONST or word.text.startswith(":"):
            yield from _all_below(_HERE)
        elif "*" in word.text:
            yield from _matching(word.text, _HERE, fold=False)
        else:
            yield word, Reach.CONTENT


def _all_below(starts: tuple[Word, ...]) -> Found:
    return ((start, Reach.CONTENT) for start in starts)


def _matching(glob: str, starts: tuple[Word, ...], *, fold: bool) -> Found:
    """Yield what a glob matches, itself or behind directories that it names."""
    head, _, name = glob.rpartition("/")
    if _PLAIN(head) and not fold:
        starts = (Word(head.removeprefix("/")),)
    names = globs(name, fold=fold) if name.strip("*") else []
    if names and all(start.kind is WordKind.CONST for start in starts):
        yield from ((found, Reach.ENTRY) for found in below(starts, names))
    else:
        yield from _all_below(starts)
