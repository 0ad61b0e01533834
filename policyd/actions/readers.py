"""Readers of text that carries facts: JSON in a string, patch text, literal templates.

Rules: a reader takes the whole text or refuses it; it never searches prose. A text that is cut short, that holds a
key twice or that does not fit is a `Fault` with the reason in words, so that the caller can add an opaque action.
Linear in the length of the text; no regular expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct

PATCH_HEADS = {"*** Add File: ": "edit", "*** Update File: ": "edit", "*** Delete File: ": "delete"}
MOVE_HEAD = "*** Move to: "
LONGEST_PART = 512
"""The most characters of a text's first part, if the text repeats it."""
RENAME_HEAD = "*** Move File: "
NOTHING = "/dev/null"
"""What a diff writes for a file that does not exist."""
DIFF_HEADS = (("\ndiff --git", "\n--- a"), ("\n--- a", "\n+++ b"), ("\n+++ b", ""))
"""How the lines that name a diff's files begin, and what ends them."""
URL_SIGNS = frozenset("-._~:/?#@!$&*+=%")
"""Characters a URL in a prompt may have beside ASCII letters and digits."""
SENTENCE = ".,:;!?"
"""Characters that may end a word of a prompt."""
HEX = frozenset("0123456789abcdefABCDEF")
"""Characters of a section's tag."""
AROUND = ("%%bash", "apply_patch", "EOF", "```")
"""Beginnings of lines around a patch that are ignored."""


class Fault(ValueError):  # noqa: N818 - the text is at fault, not the reader
    """The text is not of the reader's format; the message says why."""


class PatchFile(Struct, frozen=True):
    """One file a patch names."""

    path: str
    kind: str
    """edit, delete or move."""


def json_text(text: str) -> object:
    """Return the one complete JSON value that `text` is.

    Raises:
        Fault: not JSON, cut short, a key twice at any depth, NaN or infinity, nested too deep.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except Fault:
        raise
    except (ValueError, RecursionError) as error:
        raise Fault(f"not one complete JSON value ({type(error).__name__})") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise Fault("a key stands twice in JSON text")
    return table


def _refuse(name: str) -> object:
    raise Fault(f"`{name}` in JSON text")


def apply_patch(text: str) -> tuple[PatchFile, ...]:
    """Return the files of patch text between `*** Begin Patch` and `*** End Patch`.

    A file that is updated and moved gives its source as a move and its destination as a move.

    Raises:
        Fault: the frame is missing, a `***` line is unknown, a path is empty, or no file is named.
    """
    lines = unwrapped(text.replace("\r\n", "\n").split("\n"))
    if len(lines) < 2 or lines[0].strip() != "*** Begin Patch" or lines[-1].strip() != "*** End Patch":
        raise Fault("not a whole patch")
    found: list[PatchFile] = []
    for line in lines[1:-1]:
        if line.startswith("***"):
            _patch_head(line, found)
    if not found:
        raise Fault("the patch names no file")
    return tuple(found)


def unwrapped(lines: list[str]) -> list[str]:
    """Return the lines of a patch without a shell command or code block around them."""
    beside = [at for at, line in enumerate(lines) if line.strip() and not line.startswith(AROUND)]
    return lines[beside[0] : beside[-1] + 1] if beside else []


def _patch_head(line: str, found: list[PatchFile]) -> None:
    if line.strip() == "*** End of File":
        return
    if line.startswith(MOVE_HEAD) and found and found[-1].kind == "edit":
        found[-1] = PatchFile(found[-1].path, "move")
        found.append(PatchFile(_patch_path(line[len(MOVE_HEAD) :]), "move"))
        return
    if line.startswith(RENAME_HEAD) and "->" in line:
        source, _, target = line[len(RENAME_HEAD) :].partition("->")
        found += [PatchFile(_patch_path(part), "move") for part in (source, target)]
        return
    for head, kind in PATCH_HEADS.items():
        if line.startswith(head):
            found.append(PatchFile(_patch_path(line[len(head) :]), kind))
            return
    raise Fault(f"an unknown line in the patch: `{line[:60]}`")


def _patch_path(text: str) -> str:
    path = text.strip()
    if not path:
        raise Fault("the patch names a file without a path")
    return path


def sections(text: str) -> tuple[PatchFile, ...]:
    """Return the files of patch text whose sections begin `[PATH#TAG]`; of any other, those of `apply_patch`.

    Below such a head stand `PUT` and `CUT` with rows that begin `+`, `REM` for its deletion, or `MV DEST`.

    Raises:
        Fault: an unknown line, a path whose end is not sure, a file that is deleted and moved, no file at all.
    """
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    if lines[0] == "*** Begin Patch" and lines[-1] == "*** End Patch":
        lines = lines[1:-1]
    if not lines or not lines[0].startswith("["):
        return apply_patch(text)
    found: list[PatchFile] = []
    for line in lines:
        if line.startswith("["):
            found.append(PatchFile(_section_path(line), "edit"))
        elif line == "REM" or line.startswith("MV "):
            if found[-1].kind != "edit":
                raise Fault("a file is deleted and moved, or moved twice")
            path = found.pop().path
            moved = [path, _sure_path(line[3:])] if line != "REM" else [path]
            found += [PatchFile(each, "move" if line != "REM" else "delete") for each in moved]
        elif line.strip() and not line.startswith(("+", "PUT ", "CUT ")):
            raise Fault(f"an unknown line in the patch: `{line[:60]}`")
    return tuple(found)


def _section_path(head: str) -> str:
    path, mark, tag = head[1:-1].rpartition("#")
    if not head.endswith("]") or not mark or len(tag) != 4 or not set(tag) <= HEX:
        raise Fault(f"an unknown head in the patch: `{head[:60]}`")
    return _sure_path(path)


def _sure_path(path: str) -> str:
    """Return a path of a patch that is taken literally: nothing around it might be stripped."""
    if not path or path != path.strip() or not path.isprintable() or not set(path).isdisjoint("[]#'\"`*"):
        raise Fault(f"a path in the patch whose end is not sure: `{path[:60]}`")
    return path


def prompt_urls(text: str) -> tuple[str, ...]:
    """Return the URLs of a prompt that a tool would fetch: the prompt is only plain words and whole URLs.

    Raises:
        Fault: cut short, no URL, or a word that may be more or less than one: `a.b`, `(https://a.b)`, `https://a.b.`.
    """
    if not text.isprintable() or text.endswith("..."):
        raise Fault("the prompt is cut short, or is more than one line of words")
    words = text.split(" ")
    found = tuple(word for word in words if "://" in word)
    plain = (word.rstrip(SENTENCE) for word in words if "://" not in word)
    if not found or not all(map(_whole_url, found)):
        raise Fault("the prompt has no URL, or one whose end is not sure")
    if not all(part.isalnum() for word in plain if word for part in word.split("-")):
        raise Fault("the prompt has a word that may be an address")
    return found


def _whole_url(word: str) -> bool:
    """Say whether `word` is one URL as the tool asks for it; of a file on GitHub it asks another server."""
    scheme, _, rest = word.partition("://")
    signs = all(char in URL_SIGNS or (char.isascii() and char.isalnum()) for char in rest)
    unlike = "://" in rest or "/blob/" in rest or rest.endswith(tuple(SENTENCE))
    return scheme.lower() in ("http", "https") and bool(rest) and signs and not unlike


def diff_files(text: str) -> tuple[PatchFile, ...]:
    """Return the files of a unified diff of one file, by its headers: one edited or deleted, or both ends of a move.

    A header is `a` or `b` and an absolute path, which may contain anything, even line ends.

    Raises:
        Fault: the heads are missing, stand there twice or do not say the same.
    """
    head = text.lstrip("\n").partition("\n@@ ")[0].rstrip("\n")
    before, old, new = (_between(head, mark, end) for mark, end in DIFF_HEADS)
    if not all(path.startswith("/") for path in (old, new)) or old == new == NOTHING:
        raise Fault("the heads of a diff name no absolute path")
    if before.partition(f" b{new}")[0] != f" a{new if old == NOTHING else old}":
        raise Fault("the heads of a diff do not name the same files")
    if NOTHING in (old, new):
        return (PatchFile(old, "delete") if new == NOTHING else PatchFile(new, "edit"),)
    return (PatchFile(new, "edit"),) if old == new else (PatchFile(old, "move"), PatchFile(new, "move"))


def _between(head: str, mark: str, end: str) -> str:
    """Return the part of `head` between two marks, each of which must occur once, as must `end`."""
    found = f"\n{head}".split(mark)
    if len(found) != 2 or (end and found[1].count(end) != 1):
        raise Fault("a diff without its heads, or with more than one file")
    return found[1].partition(end)[0] if end else found[1]


class Template(Struct, frozen=True):
    """A literal text with named holes: `{tool} ({server} MCP Server)`.

    The first literal must begin the text, the last must end it; a literal between two holes is taken where it first
    occurs. `{}` is a hole without a name. A hole is never empty. A hole written `{name!}` has unambiguous ends: it does
    not contain the first character of the literals around it (apart from leading blanks), nor does the literal after it
    occur in another hole. If the first two holes have the same name, they hold the same text: the first literal is the
    one that has this text on both sides.
    """

    literals: tuple[str, ...]
    names: tuple[str, ...]
    sole: frozenset[str] = frozenset()
    """Names of the holes whose end must be unambiguous."""

    @classmethod
    def compile(cls, source: str) -> Template:
        """Return the compiled template `source`; ValueError if braces do not pair or there is no hole."""
        literals, names, rest = [], [], source
        while "{" in rest:
            literal, _, rest = rest.partition("{")
            name, closed, rest = rest.partition("}")
            if not closed:
                raise ValueError(f"template `{source}`: a brace is not closed")
            literals.append(literal)
            names.append(name)
        if not names:
            raise ValueError(f"template `{source}`: no hole")
        sole = frozenset(name[:-1] for name in names if name.endswith("!"))
        return cls((*literals, rest), tuple(name.removesuffix("!") for name in names), sole)

    def match(self, text: str) -> dict[str, str] | None:
        """Return what the holes hold, or None if the whole text does not fit."""
        first, last = self.literals[0], self.literals[-1]
        if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
            return None
        body = text[len(first) : len(text) - len(last)]
        twice = len(self.names) > 2 and self.names[0] == self.names[1]
        parts = (_twice if twice else _split)(body, self.literals[1:-1])
        if parts is None or not all(parts):
            return None
        if self.sole and any(self._doubtful(at, parts) for at in range(len(parts))):
            return None
        return dict(zip(self.names, parts, strict=True))

    def _doubtful(self, at: int, parts: list[str]) -> bool:
        front, behind = self.literals[at].lstrip(), self.literals[at + 1]
        if self.names[at] not in self.sole:
            return False
        if (front and front[0] in parts[at]) or (behind and behind[0] in parts[at]):
            return True
        others = parts[:at] + parts[at + 1 :] if at + 1 < len(parts) else []
        return bool(behind) and any(behind in part for part in others)


def _twice(body: str, between: Sequence[str]) -> list[str] | None:
    """Split a text that repeats its first part; a part longer than any name does not count."""
    at = body.find(between[0], 1, LONGEST_PART)
    while at > 0:
        part, rest = body[:at], body[at + len(between[0]) :]
        if rest.startswith(part + between[1]):
            tail = _split(rest[at + len(between[1]) :], between[2:])
            return [part, part, *tail] if tail is not None else None
        at = body.find(between[0], at + 1, LONGEST_PART)
    return None


def _split(body: str, between: Iterable[str]) -> list[str] | None:
    parts = []
    for literal in between:
        part, found, body = body.partition(literal)
        if not found:
            return None
        parts.append(part)
    return [*parts, body]
