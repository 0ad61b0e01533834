"""Files that a glob among the words of a search lets in, which it would pass over: of `rg -g`, of a pathspec of git.

Rules of this module:

1. What a glob or a type asks for, `rg` searches though its name is hidden; so it does where types, or lists of files to
   pass over, are made up. A glob behind `!` asks for nothing.
2. `git grep --untracked` searches what nobody committed.
3. Hidden directories are passed over all the same, but those whose own name a glob matches; of two globs one may name
   the directory, the other a file in it. A glob that ends in `/` names no file.
4. A glob that is not read, and a type that is not in the table, may ask for anything.

Sources: rg(1), `rg --type-list`; git-grep(1), gitglossary(7), pathspec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyd.commands.argv.findwords import below, globs
from policyd.commands.argv.options import Parsed
from policyd.commands.lexing.quoting import TooManyError, UnsureError, braces
from policyd.model import Reach, Word, WordKind

_TYPES = """
bazel: *.BUILD *.bazel *.bazelrc *.bzl *BUILD *WORKSPACE*
c: *.c *.h *.C *.H *.cats *.in
clojure: *.clj*
cmake: *.cmake CMakeLists.txt
cpp: *.C *.H *.cc *.hh *.cpp *.hpp *.cxx *.hxx *.h *.inl *.in
cs csharp: *.cs
css: *.css *.scss
csv: *.csv
dart: *.dart
docker: *Dockerfile*
elixir: *.ex *.eex *.exs *.heex *.leex *.livemd
erlang: *.erl *.hrl
fsharp: *.fs *.fsx *.fsi
go: *.go
gradle groovy: *.groovy *.gradle* gradle*
graphql: *.graphql *.graphqls
h: *.h *.hh *.hpp
haskell: *.hs *.hsc *.lhs *.cpphs *.c2hs
html: *.ejs *.htm *.html
java: *.java *.jsp *.jspx *.properties
js: *.js *.jsx *.cjs *.mjs *.vue
json: *.json *.lock *.sarif
jsonl: *.jsonl
jupyter: *.ipynb *.jpynb
kotlin: *.kt *.kts
less: *.less
lua: *.lua
make: *.mak *.mk *akefile*
markdown md: *.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn
nix: *.nix
ocaml: *.ml *.mli *.mll *.mly
php: *.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml
protobuf: *.proto
py python: *.py *.pyi
r: *.R *.r *.Rmd *.rmd *.Rnw *.rnw
rst: *.rst
ruby: *.rb *.rbw *.gemspec *.rake *.ru .irbrc Gemfile Rakefile
rust: *.rs
sass: *.sass *.scss
scala: *.scala *.sbt
solidity: *.sol
sql: *.psql *.sql
svelte: *.svelte *.svelte.ts
svg: *.svg
swift: *.swift
tex: *.tex *.ltx *.cls *.sty *.bib *.dtx *.ins
toml: *.toml *.lock
ts typescript: *.ts *.tsx *.cts *.mts
txt: *.txt
vue: *.vue
xml: *.xml *.xml.dist *.dtd *.xsl *.xslt *.xsd *.xjb *.rng *.sch *.xhtml
yaml: *.yaml *.yml
zig: *.zig
"""
_ROWS = (row.partition(": ")[::2] for row in _TYPES.split("\n") if row)
TYPES = {name: endings.split() for names, endings in _ROWS for name in names.split()}
"""Types whose files have one of a few endings in any version of `rg`; `sh`, which lets in `.env`, is none."""
_PLAIN = re.compile(r"/?[\w.-]+(?:/[\w.-]+)*").fullmatch
_PATTERNS = ("-e", "--regexp", "-f", "--file")
_HERE = (Word("."),)
Found = Iterator[tuple[Word, Reach, bool]]
"""What is searched, how far below it, and whether hidden directories on the way are passed over."""


def let_in(parsed: Parsed) -> Found:
    """Yield what `rg` searches though it may be hidden."""
    if parsed.has("--files", "--type-list"):
        return
    starts = parsed.operands[0 if parsed.has(*_PATTERNS) else 1 :] or _HERE
    fold = parsed.has("--glob-case-insensitive")
    asked = [(word, fold) for word in parsed.values("-g")] + [(word, True) for word in parsed.values("--iglob")]
    asked = [
        (word, either) for word, either in asked if not word.text.startswith("!") or word.kind is not WordKind.CONST
    ]
    passes = len(asked) < 2
    kinds = [TYPES.get(word.text, ["*"]) for word in parsed.values("-t")]
    asked += [(Word(glob), False) for each in kinds for glob in each]
    if parsed.has("--type-add", "--ignore-file"):
        asked.append((Word("*"), False))
    for word, either in asked:
        if word.kind is not WordKind.CONST:
            yield from _all_below(starts)
        elif not word.text.endswith("/"):
            yield from _matching(word.text, starts, fold=either, passes=passes)


def untracked(parsed: Parsed) -> Found:
    """Yield what `git grep --untracked` searches."""
    if not parsed.has("--untracked"):
        return
    for word in parsed.operands[0 if parsed.has("-e", "-f") else 1 :] or _HERE:
        if word.kind is not WordKind.CONST or word.text.startswith(":"):
            yield from _all_below(_HERE)
        elif "*" in word.text:
            yield from _matching(word.text, _HERE, fold=False, passes=False)
        else:
            yield word, Reach.CONTENT, False


def _all_below(starts: tuple[Word, ...]) -> Found:
    return ((start, Reach.CONTENT, False) for start in starts)


def _matching(glob: str, starts: tuple[Word, ...], *, fold: bool, passes: bool) -> Found:
    """Yield what a glob matches, itself or behind directories that it names.

    `passes`: hidden directories are passed over, and of the others only hidden names are of interest.
    """
    head, _, name = glob.rpartition("/")
    if _PLAIN(head) and not fold:
        starts = (Word(head.removeprefix("/")),)
    read = [globs(each, fold=fold) if each.strip("*") else [] for each in _alternatives(name)]
    if all(read) and all(start.kind is WordKind.CONST for start in starts):
        names = [one for each in read for one in each if one.startswith(".") or not passes]
        yield from ((found, Reach.ENTRY, passes) for found in below(starts, names) if found not in starts)
    else:
        yield from _all_below(starts)


def _alternatives(name: str) -> list[str]:
    """Return what braces in a name stand for; braces that are not read stay, and no glob with them is read."""
    try:
        return braces(name)
    except (TooManyError, UnsureError):
        return [name]
