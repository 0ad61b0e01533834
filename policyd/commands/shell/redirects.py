"""Redirections: the files they read and write, and what they feed to a command.

Rules of this module:

1. `< f` is a read, carried by an allow of the command like an operand (of a group: of its first that is more than the
   shell's own business); any other file is an edit that nothing carries.
2. `/dev/null`, `/dev/std*`, `/dev/fd/N` and copies of descriptors are nothing; `/dev/tcp/…` is a connection: opaque.
3. A redirection that fails keeps what it belongs to from running: what that sets is not known afterwards.
4. The tree hangs words that stand behind a redirection on it; they are words of the command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from policyd.commands.lexing.plain import Span
from policyd.commands.lexing.quoting import decoded
from policyd.commands.lexing.run import SHOWN
from policyd.commands.lexing.source import BOTH, STRING, TOKEN, Document, Input
from policyd.commands.shell.words import Scanner
from policyd.commands.state import Cwd
from policyd.model import CONST, UNKNOWN, FileUse, Role, UrlUse, Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from policyd.commands.shell.grammar import Reader
    from policyd.commands.shell.text import Text

REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
"""Node types of redirections."""

_READS = frozenset({"<"})
_KNOWN = _READS | {">", ">>", ">|", "&>", "&>>", "<>", ">&"}
_CLOSES = frozenset({">&-", "<&-"})
_NOTHING = re.compile(r"/dev/(?:null|stdin|stdout|stderr|fd/\d+)").fullmatch
_NULL = Word("/dev/null")
_COPY = re.compile(r"\d+-?|-").fullmatch
_OPEN = frozenset({"-", "0", "1", "2"})
_STANDARD = frozenset({b"0", b"1", b"2"})
"""Descriptors that are open until one is closed: a copy of it fails from there on."""
_ONCE = re.compile(r"[A-Za-z0-9_./@%+:,=-]+").fullmatch
"""A name that expands to itself: bash expands what stands behind `>&` a second time, what was quoted in it too."""
_NETWORK = re.compile(r"/dev/(tcp|udp)/([^/]*)/?(.*)", re.DOTALL).match
_DOCUMENT = re.compile(f"{TOKEN}(\\d+){TOKEN}")
_DIGITS = 9
"""How many digits the number of a descriptor has at most; to a shell that is less than bash, one."""
_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?\}").fullmatch


class Use(Struct, frozen=True):
    """A file of a redirection, or a descriptor that may not be open (`kind` is then empty)."""

    kind: str
    word: Word
    before: Mapping[str, Word | None]
    """What was known of variables when it was opened."""
    unknown: str = ""


def _parts(source: str, node: Node) -> tuple[str, list[list[Node]]]:
    """Return the operator of a redirection and the words behind it, its own first (what touches is one word)."""
    operator = ""
    groups: list[list[Node]] = []
    for child in node.children:
        if child.type == "file_descriptor":
            continue
        if not operator:
            operator = child.type
            if operator in _CLOSES:
                groups.append([])
        elif child.type == "ERROR" and not groups:
            operator += source[child.start_byte : child.end_byte]
        elif groups and groups[-1] and groups[-1][-1].end_byte == child.start_byte:
            groups[-1].append(child)
        else:
            groups.append([child])
    return operator, groups


def behind(reader: Reader, targets: list[Node], spans: list[Span]) -> list[Span]:
    """Return the places of a command's words with those the tree hung on its redirections."""
    found = list(spans)
    starts = {start for start, _ in spans}
    for node in targets:
        _before(reader, found, node)
        if node.end_byte in starts:
            reader.opaque(f"what touches `{reader.text(node.start_byte, node.end_byte)[:SHOWN]}` may belong to it")
        if node.type != "heredoc_redirect":
            for group in _parts(reader.source, node)[1][1:]:
                found += reader.spans(group)
    return sorted(found)


def _before(reader: Reader, spans: list[Span], node: Node) -> None:
    """See to what touches a redirection: digits that belong to a word, a variable for the descriptor's number."""
    first = node.children[0]
    if first.type != "file_descriptor":
        held = next((span for span in spans if span[1] == node.start_byte), None)
        if held is not None:
            _variable(reader, spans, held)
        return
    start, end = first.start_byte, first.end_byte
    if end - start > (1 if reader.state.lesser else _DIGITS):
        reader.opaque(f"`{reader.text(start, end)[:SHOWN]}` before a redirection is a word to some shells")
    held = next((span for span in spans if span[1] == start), None)
    if held is not None:
        spans[spans.index(held)] = (held[0], end)
    elif not reader.source[start:end].isdigit():
        spans.append((start, end))
        _variable(reader, spans, (start, end))


def _variable(reader: Reader, spans: list[Span], held: Span) -> None:
    """`{fd}> f` puts the descriptor's number into a variable."""
    text = reader.source[held[0] : held[1]]
    name = _VARIABLE(text)
    if name is None or reader.source.startswith("&", held[1]):  # `{fd}&> f` is a word
        if text[-1:].isdigit() and text.isdigit():
            reader.opaque(f"`{decoded(text)}` before a redirection is read differently by shells")
        return
    spans.remove(held)
    reader.state.assign(name[1], None)
    if name[2]:
        reader.opaque(f"the subscript in `{decoded(text)}` is evaluated, which may run something")


_LIVE = re.compile(r"[$`\\]").search


def read(reader: Reader, targets: list[Node]) -> list[Use]:
    """Return the files of redirections; what they feed is left in `reader.fed` and `reader.document`."""
    uses: list[Use] = []
    for node in targets:
        for child in reader.children(node):
            if child.type == "heredoc_body" or node.type == "heredoc_redirect":
                reader.opaque("a here-document stands where it cannot be followed")
                reader.hidden(node)
                break
        if node.type == "herestring_redirect":
            groups = _parts(reader.source, node)[1]
            for start, end in reader.spans(groups[0] if groups else []):
                _string(reader, start, end)
        elif node.type == "file_redirect":
            uses += _file(reader, node)
    return uses


def _string(text: Text, start: int, end: int) -> None:
    word = Scanner(text).value(start, end)
    text.fed = text.text(start, end)
    text.document = Input(word.text + "\n", literal=True) if word.kind is CONST else None


def _document_number(text: Text, start: int, end: int) -> int:
    found = _DOCUMENT.fullmatch(text.source, start, end)
    return int(found[1]) if found is not None else -1


def feed(text: Text, document: Document) -> None:
    """Note that a here-document is what the command reads."""
    if not document.quoted:
        text.body(document.body)
    body = decoded(document.body)
    text.document = Input(body, literal=document.quoted or _LIVE(document.body) is None)
    text.fed = body or "\n"


def _file(reader: Reader, node: Node) -> list[Use]:
    operator, groups = _parts(reader.source, node)
    if operator in _CLOSES:
        if node.children[0].type != "file_descriptor" or node.children[0].text in _STANDARD:
            reader.state.forget()
        return []
    if not groups:
        reader.opaque("a redirection has no file")
        return []
    return opened(reader, operator, reader.spans(groups[0])[0])


def opened(text: Text, operator: str, place: Span) -> list[Use]:
    """Return the file at `place` that a redirection opens; what it feeds is left in `text.fed`, `text.document`."""
    start, end = place
    mark = text.source[start : start + 1]
    if mark == TOKEN and operator == "<":
        number = _document_number(text, start, end)
        if 0 <= number < len(text.run.documents):
            feed(text, text.run.documents[number])
            return []
    elif mark == STRING:
        _string(text, start + 1, end)
        return []
    elif mark == BOTH:
        place = (start + 1, end)
    shown = text.text(*place)
    words = text.scan([place])
    word = words[0] if len(words) == 1 else Word(shown, UNKNOWN)
    if operator == "<":
        text.fed, text.document = "", None
    if operator in {">&", "<&"} and word.kind is CONST and _COPY(word.text):
        if word.text[-1] == "-":
            text.state.forget()
        return [] if word.text in _OPEN else [Use("", word, text.state.known())]
    if operator in {">&", "<&"} and shown[:1] == "-":  # it closes the descriptor, and what is behind is a word
        text.opaque(f"`{operator}{shown}` is read differently by shells")
        return []
    if operator == "<&":
        text.opaque(f"`<&{shown}` is not a constant descriptor")
        return []
    if operator == ">&" and not (word.kind is CONST and _ONCE(word.text)):
        text.opaque(f"`>&{shown}` is expanded twice")
    if operator not in _KNOWN:
        text.opaque(f"the redirection `{operator} {shown}` is not understood")
    return [Use("read" if operator in _READS else "edit", word, text.state.known(), _unknown(word, shown))]


def _unknown(word: Word, shown: str) -> str:
    return f"the file `{shown}` of a redirection is not constant" if word.kind is UNKNOWN else ""


def add(text: Text, uses: list[Use], index: int, cwd: Cwd) -> None:
    """Add the files to the reading, as named by the command at `index` (-1: by none)."""
    for use in uses:
        if use.word != _NULL:
            text.state.join(use.before)
        if not use.kind:
            continue
        name = use.word.text if use.word.kind is CONST else use.word.prefix
        device = name.startswith("/dev/")
        network = _NETWORK(name) if device else None
        if network is not None:
            text.opaque(f"`{name}` is a network connection")
            text.run.urls.append(UrlUse(f"{network[1]}://{network[2]}:{network[3]}", Role.PRIMARY, index))
        elif use.word.kind is not CONST or not (device and _NOTHING(name)):
            carried = use.kind == "read" and index >= 0
            found = FileUse(use.kind, use.word, Role.REDIRECT, index, carried=carried, cwd=cwd, unknown=use.unknown)
            text.run.files.append(found)


def carrier(text: Text, first: int) -> int:
    """Return the command that carries what a group is fed, whose commands begin at `first`; -1: none."""
    commands = text.run.commands
    if len(commands) == first:
        return -1
    return next((at for at in range(first, len(commands)) if not commands[at].idle), first)


def only(reader: Reader, node: Node) -> None:
    """Read `$(< f)`: a redirection and no command; the command around it is fed with what it was."""
    fed, document = reader.fed, reader.document
    add(reader, read(reader, [node]), -1, reader.state.cwd)
    reader.fed, reader.document = fed, document
