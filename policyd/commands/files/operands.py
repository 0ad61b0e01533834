"""The files and URLs a simple command names, and what it does to them.

Rules of this module:

1. For a program of the table, operands have the role the table gives them; options with a file value likewise. What is
   known to be data is nothing; other words are mentions.
2. For a stranger (a name not in the table, or a path outside the system directories) every word that may be a path is a
   mention, whole and in pieces (see `mentions.py`).
3. An allow of a reader carries reads and searches, an allow of a writer whatever its operands are for; what an option
   makes a reader write is carried by nothing.
4. An operand that is not constant is `unknown`, an option that runs a program is opaque.
"""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct, field
from msgspec.structs import replace

from policyd.commands.argv import scripts, values
from policyd.commands.argv.options import Given, Parsed, constant, is_long, key, parse, tail, unread
from policyd.commands.argv.programs import Called, Program, called
from policyd.commands.dialects import foreign
from policyd.commands.files import gitplaces, mentions, ondisk, sentwords, tools, untold
from policyd.commands.files.mentions import PIECES, file_url, mounted, one_piece
from policyd.commands.files.roles import peeks, reach_of, slots
from policyd.commands.files.targets import LINKED, Targets, put, targets
from policyd.commands.lexing.quoting import PRINTED
from policyd.commands.matching import views
from policyd.commands.matching.patterns import plain_name
from policyd.model import (
    READ_KINDS,
    WRITE_KINDS,
    Filesystem,
    FileUse,
    Reach,
    Role,
    SimpleCommand,
    UrlUse,
    Word,
    WordKind,
)

FILE_ROLES = frozenset({"read", "search", "edit", "delete", "move"})
PLACES = {**{role: role for role in FILE_ROLES}, "place": "search"}
"""Values of options that name files, and what is done to them; `place` is a directory to run in."""
_NAMING = FILE_ROLES | LINKED
_NAMED_BESIDE = frozenset({"mention", "rev", "package", "command", "shell", "text"})
"""Words that may name a file, whatever is done to it: those of a command that runs elsewhere among them."""
_NO_FILE = re.compile(r"-?|/dev/(?:null|zero|tty|std(?:in|out|err)|fd/[0-9]+)").fullmatch
"""Operands that name no file: standard input, the null device, an open descriptor (`<(…)` becomes one)."""
_BLANK = re.compile(r"\s").search
_NAMED = re.compile(r"(?![0-9,.-]+\Z).*\w", re.DOTALL).match
"""Values that may name a file: no numbers, no signs."""
_LEADS_AWAY = re.compile(r"[/~]|(?:.*/)?\.\.(?:/|$)").match
"""Paths that may lie outside the directory the command runs in."""
Found = tuple[list[FileUse], list[UrlUse], list[str]]


class _Uses(Struct):
    """What has been found so far, without the place of the command."""

    fed: bool = False
    program: Program | None = None
    skips_hidden: bool = False
    endings: tuple[str, ...] = ()
    files: list[FileUse] = field(default_factory=list)
    urls: list[UrlUse] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    targets: Targets | None = None
    changed: untold.Changed | None = None
    afar: bool = False
    """What is copied comes from another machine."""
    rooted: list[str] = field(default_factory=list)
    """Strings of code that begin at the root: mentions where files may lie there."""

    def file(self, kind: str, word: Word, reach: Reach = Reach.ENTRY) -> None:
        """Note a file operand, which may be a list of options (`@list`), or code that names files."""
        if word.kind is WordKind.CONST and _NO_FILE(word.text):
            return
        self.files.append(
            FileUse(
                kind,
                word,
                Role.OPERAND,
                0,
                reach,
                carried=self.carries(kind),
                unknown=f"{unread(word)} is not known before it runs" if word.kind is WordKind.UNKNOWN else "",
                skips_hidden=self.skips_hidden and kind in READ_KINDS,
                endings=self.endings if reach is Reach.CONTENT else (),
            )
        )
        head = constant(word)
        if head[:1] == "@":
            self.mention(tail(word, 1))
        elif "(" in head and mentions.is_code(head):
            self.code(word)

    def carries(self, kind: str) -> bool:
        """Say whether an allow of the command carries an operand of this kind."""
        return kind in READ_KINDS or (self.program is not None and self.program.role == "writer")

    def mention(self, word: Word, *, shown: bool = False) -> None:
        """Note every path and URL a word may stand for; `shown`: git shows it, or `REVISION:PATH`, and no more."""
        kind = "search" if shown else "read"
        if word.kind is WordKind.CONST and one_piece(word.text):
            self.files.append(FileUse(kind, word, Role.MENTION, 0, known=shown))
            return
        if mentions.is_code(constant(word)):
            self.code(word)
        for part in mentions.parts(word, whole=shown):
            if part.kind is WordKind.UNKNOWN:
                self.opaque.append(f"`{part.text[:40]}` names more than is looked at")
                return
            self._address(part, sure=False)
            if not mentions.is_remote(part):
                self.files.append(FileUse(kind, part, Role.MENTION, 0, known=shown))

    def code(self, word: Word, *, shown: bool = False) -> None:
        """Note every URL in the text of a program, and every path in it that may lie below; `shown`: it only prints."""
        code = constant(word)
        texts, names, absolute = mentions.addresses(code), mentions.quoted(code), mentions.rooted(code)
        if max(map(len, (texts, names, absolute))) > PIECES:
            self.opaque.append(f"`{word.text[:40]}` names more than is looked at")
        self.urls.extend(UrlUse(text, Role.MENTION, 0) for text in texts[:PIECES])
        kind = "search" if shown else "read"
        self.files.extend(FileUse(kind, Word(name), Role.MENTION, 0, known=shown) for name in names[:PIECES])
        self.rooted.extend(absolute[:PIECES])

    def url(self, word: Word, *, sure: bool) -> None:
        """Note a URL, or the file of a `file:` URL; `sure` = the word is one even without a scheme."""
        path = file_url(word)
        for file in () if path is None else sentwords.expanded(path):
            self.file("read", file)
        self._address(word, sure=sure)

    def addressed(self, role: str, value: Word) -> None:
        """Note the URLs that the value of an option names, and the file that holds them."""
        if role == "urls":
            self.file("read", value)
        for word in mentions.addressed(role, value):
            self.url(word, sure=True)

    def addresses(self, word: Word) -> None:
        """Note the URLs in a word that is no text but one address, or a name with one."""
        text = constant(word)
        if "://" in text and not _BLANK(text):
            self.urls.extend(UrlUse(found, Role.MENTION, 0) for found in mentions.addresses(text)[:PIECES])

    def _address(self, word: Word, *, sure: bool) -> None:
        text = constant(word)
        if sure and word.kind is WordKind.UNKNOWN:
            host = mentions.begins_url(text)
            self.urls.append(UrlUse(f"unknown://{host[1] if host else 'anywhere'}/", Role.MENTION, 0))
        elif "://" in text:
            self.urls.append(UrlUse(text, Role.MENTION, 0))
        elif sure and text and not text.startswith(("/", ".", "-")):
            self.urls.append(UrlUse("http://" + text, Role.MENTION, 0))


def uses(command: SimpleCommand, index: int, *, home: str = "", fs: Filesystem | None = None) -> Found:
    """Return the files, the URLs and the opaque parts of one simple command.

    `index` is its place in `Reading.commands`. Transparent wrappers are looked through.
    """
    inner = command
    fed = bool(command.fed)
    while inner.inner is not None:
        inner = inner.inner
        fed = fed or bool(inner.fed)
    if not inner.argv:
        return [], [], []
    found = _strange(inner.argv) if inner.via and inner.via[0] in foreign.SHELLS else _kept(inner.argv, fed)
    files, urls = list(found.files), list(found.urls)
    for name in found.rooted:
        path = f"{home}{name[1:]}" if name.startswith("~") else name
        files += [FileUse("read", Word(path), Role.MENTION, 0)] if mentions.is_place(path, (*inner.cwd, home)) else []
    if found.targets is not None:
        files = list(put(found.targets, files, inner.cwd, fs, carried=found.carries("edit")))
    placed = [replace(use, command=index, cwd=inner.cwd) for use in files]
    if gitplaces.is_git(inner.argv) and [word for word in inner.argv if ":" in word.text or word.text == "-C"]:
        placed = [replace(use, command=index) for use in gitplaces.placed(placed, inner.argv, inner.cwd, fs)]
    if found.changed is not None:
        below = untold.below(found.changed, inner, found.carries("edit"), fs)
        placed += [replace(use, command=index) for use in below]
    opaque = [*found.opaque, *ondisk.odd(found.program, inner, fs)]
    return placed, [replace(url, command=index) for url in urls] if index else urls, opaque


_FOUND: dict[object, _Uses] = {}
_FOUND_KEPT = 4096
_WORDS_KEPT = 64


def _kept(argv: tuple[Word, ...], fed: bool) -> _Uses:
    """Look the words up among those met before (bounded)."""
    if len(argv) > _WORDS_KEPT:
        return _look(argv, fed)
    name = (key(argv), fed)
    found = _FOUND.get(name)
    if found is None:
        found = _look(argv, fed)
        if is_long(argv):
            return found
        if len(_FOUND) >= _FOUND_KEPT:
            _FOUND.clear()
        _FOUND[name] = found
    return found


def _strange(argv: tuple[Word, ...]) -> _Uses:
    """Take every word for one that may be a path: what a program of this name does is not known."""
    found = _Uses()
    for word in argv[1:]:
        found.mention(word)
    return found


def _look(argv: tuple[Word, ...], fed: bool) -> _Uses:
    found = _Uses(fed=fed)
    program, words = argv[0], argv[1:]
    if views.names(program) & views.BOXES and words:
        program, words = words[0], words[1:]
    names = sorted(views.names(program), reverse=True)
    known = next(filter(None, [called(name, words) for name in names]), None)
    if known is not None:
        found.program = known.program
        _known(found, known)
        writes = found.targets is not None or any(use.kind not in READ_KINDS for use in found.files)
        if writes and any(word.many and word.kind is WordKind.GLOB for word in words):
            found.opaque.append("a word may become none at all, and those behind it mean something else")
    if known is None or not plain_name(program):
        for word in words:
            found.mention(word)
    tool = tools.run(views.names(program), words)
    if tool:
        written = [use for use in _look(tool, fed).files if use.kind in WRITE_KINDS and use.role is not Role.MENTION]
        found.files += [replace(use, carried=True) for use in written]
    return found


def _known(found: _Uses, call: Called) -> None:
    parsed = parse(call.program.syntax, call.after)
    if call.before:
        _options(found, call.outer, parse(call.outer.syntax, call.before))
    finding = scripts.check(call, parsed)
    _options(found, call.program, parsed, only_runs=finding.handled)
    found.opaque.extend(finding.opaque)
    found.endings = call.program.ended(parsed)
    for use in finding.uses:
        found.skips_hidden = use.skips_hidden
        found.file(use.kind, use.word, use.reach)
    found.changed = untold.changed(call, parsed)
    found.skips_hidden = bool(call.program.hidden) and not parsed.has(*call.program.hidden)
    if not finding.handled:
        _operands(found, call.program, parsed)
        if parsed.unknown:
            _swallowed(found, call, parsed)


def _swallowed(found: _Uses, call: Called, parsed: Parsed) -> None:
    """Mention what an option nobody knows may take for its value, where it would be mere data else."""
    long = "" if call.path else "--"
    unknown = [word for word in parsed.unknown if "=" not in word.text and word.text.startswith(long)]
    behind = [word for option, word in pairwise(call.after) if option in unknown]
    for role, word in slots(call.program, parsed):
        if role in {"data", "host"} and word in behind:
            found.mention(word)


def _options(found: _Uses, program: Program, parsed: Parsed, *, only_runs: bool = False) -> None:
    for given in parsed.given:
        if given.value is not None:
            _value(found, program, given, given.value, only_runs=only_runs)
            if given.role == "data" and program.role != "reader":
                found.addresses(given.value)
            if given.apart and given.role not in FILE_ROLES and not only_runs:
                _spread(found, program, given.value, reach_of(program, parsed))
                if program.ordered and parsed.mixed and _NAMED(given.value.text):
                    found.file("read", given.value)
    if not only_runs:
        for word in parsed.unknown:
            found.mention(word)


def _value(found: _Uses, program: Program, given: Given, value: Word, *, only_runs: bool) -> None:
    role = given.role
    if role == "run" or (role == "plugin" and not constant(value).startswith("no:")):
        found.opaque.append(f"`{constant(given.word) or given.word.text}` makes {program.name} run a program")
        found.mention(value)
    elif role == "config":
        reason = scripts.git_config(value)
        found.opaque.extend([reason] if reason else [])
    elif role in sentwords.ROLES:
        for file in sentwords.files(role, value, constant(value)):
            found.file("read", file)
    elif role in mentions.ADDRESSES:
        found.addressed(role, value)
    elif role in _NAMED_BESIDE or (role == "goal" and "/" in constant(value)):
        found.mention(value)
    elif role == "lines":
        found.mention(tail(value, value.text.rfind(":") + 1) if value.kind is WordKind.CONST else value, shown=True)
    elif role in {"code", "imports", "asked", "printed"}:
        found.code(value, shown=values.harmless_value(role, value))
    elif role == "mount":
        _mount(found, value)
    elif role in PLACES and not only_runs:
        found.file(PLACES[role], value)
    elif role == "tests":
        _code(found, value)


def _mount(found: _Uses, value: Word) -> None:
    """Note what a container may read and write of this machine."""
    source = mounted(value)
    if source is None:
        found.mention(value)
        return
    found.file("read", source[0], Reach.CONTENT)
    if source[1]:
        found.file("edit", source[0], Reach.CONTENT)


def _operands(found: _Uses, program: Program, parsed: Parsed) -> None:
    reach = reach_of(program, parsed)
    deep = bool(program.deep) and parsed.has(*program.deep)
    paired = list(slots(program, parsed))
    before = len(found.files)
    for role, word in paired:
        if role in LINKED:
            soft = parsed.has("-s")
            _linked(
                found, word, Reach.CONTENT if soft else reach, hard=parsed.has("-l") if role == "copy" else not soft
            )
            continue
        _operand(found, program.deep_as if deep and program.deep_as and role == "read" else role, word, reach)
        if program.beside:
            _runs(found, word)
        if role == "data":
            _spread(found, program, word, reach)
        if role in {"data", "script"} and program.role != "reader":
            found.addresses(word)
    if program.fixes and parsed.has(*program.fixes):
        _fixes(found, [word for role, word in paired if role in {"tests", "read", "search", "package"}])
    told = len(found.files) > before and any(role != "package" for role, _ in paired)
    bare = not told and not any(role in _NAMING for role, _ in paired)
    if program.empty and bare and not (program.fed and found.fed) and (deep or not program.deep):
        kind, _, path = program.empty.partition(" ")
        found.file("search" if peeks(program, parsed) else kind, Word(path), reach)
    if program.target:
        found.targets = targets(program, parsed, paired)


def _fixes(found: _Uses, words: list[Word]) -> None:
    """Note that what is checked is written, or what lies here; an allow of the command carries that."""
    written = _Uses(endings=found.endings)
    for word in words or [Word(".")]:
        written.file("edit", word, Reach.CONTENT)
    found.files += [replace(use, carried=True) for use in written.files]


def _spread(found: _Uses, program: Program, word: Word, reach: Reach) -> None:
    """Note what a glob finds that stands where a pattern or a value is meant: all but the first are operands."""
    if word.kind is not WordKind.GLOB:
        return
    roles = {role.rstrip("*") for role in program.operands}
    kinds = {"read", "edit"} if roles & LINKED else roles & FILE_ROLES
    for kind in sorted(kinds):
        found.file(kind, word, reach)
    if not kinds and roles - {"data"}:
        found.mention(word)


def _operand(found: _Uses, role: str, word: Word, reach: Reach) -> None:
    if role in FILE_ROLES:
        found.file(role, word, reach)
    elif role in {"tests", "program"}:
        cut = role == "tests" and word.kind is WordKind.CONST
        _code(found, Word(word.text.partition("::")[0]) if cut else word)
    elif role in _NAMED_BESIDE or (role == "goal" and "/" in constant(word)):
        if role != "rev" or word != PRINTED:
            found.mention(word, shown=role == "rev")
    elif role == "code":
        found.mention(word)
        found.code(word)
    elif role == "script" and constant(word).startswith("-"):
        found.mention(word)
    elif role == "script":
        found.files.append(FileUse("read", word, Role.MENTION, 0))
    elif role == "url":
        _remote(found, word)
    elif role == "host":
        host = constant(word).rpartition("@")[2]
        if "/" in host:
            found.mention(word)
        found.urls.append(UrlUse(f"ssh://{host}", Role.MENTION, 0))
    elif role.startswith("remote-"):
        _copied(found, role.removeprefix("remote-"), word, reach)


def _copied(found: _Uses, kind: str, word: Word, reach: Reach) -> None:
    """Note an operand that may be one of another machine; what comes from there fills a directory with any names."""
    if _remote(found, word):
        found.afar = True
    else:
        found.file(kind, word, Reach.UNTOLD if found.afar and kind == "edit" and reach is Reach.CONTENT else reach)


def _code(found: _Uses, word: Word) -> None:
    """Note a file that is read and whose code, or whose directory's settings, run: where it lies matters for both."""
    found.file("read", word)
    _runs(found, word)


def _runs(found: _Uses, word: Word) -> None:
    """Note that what lies here, or beside it, runs, where it may lie outside the workspace."""
    if _LEADS_AWAY(constant(word)):
        found.files.append(FileUse("execute", word, Role.OPERAND, 0, carried=True))


def _linked(found: _Uses, word: Word, reach: Reach, *, hard: bool) -> None:
    """Note what `cp` and `ln` take; through a hard link it can be written as well."""
    found.file("read", word, reach)
    if hard:
        found.file("edit", word, reach)


def _remote(found: _Uses, word: Word) -> bool:
    """Note a URL or `[user@]host:path`; say whether it was one."""
    text = constant(word)
    if word.kind is WordKind.UNKNOWN and (word.many or not text or "://" in text):
        found.url(word, sure=True)
        return "://" in text
    if text.startswith("ext::"):
        found.opaque.append(f"`{text}` makes git run a program")
    host, colon, path = text.partition(":")
    if "://" in text or file_url(word) is not None:
        found.url(word, sure=True)
        return True
    if colon and host and "/" not in host:
        name = host.rpartition("@")[2]
        found.urls.append(UrlUse(f"ssh://{name}/{path.lstrip('/')}", Role.MENTION, 0))
        return True
    if "." in text and not text.startswith((".", "/", "~")):
        found.url(word, sure=True)
    found.mention(word)
    return False
