"""What in one word may be a path: the whole, every piece of it, the file of a `file:` URL, the source of a mount.

Rules of this module:

1. A word is cut at every `=`, `:`, `,`, `;` and `@`; what stands before `=` or `@` is a name and no piece. What follows
   the first of each is a piece as well, what is glued to a short option or a cluster of two, and a piece without the
   quotes, brackets and signs around it (`<.env`, `{"file":".env"}`).
2. At most `PIECES` pieces of a word are looked at; `parts` says whether there are more.
3. A `file:` URL is its path, percent-escapes decoded, whatever host it names.
4. In code a string may be a path, if it holds a `.` or a `/`. Addresses of pages begin at the root too: what does is a
   path only where a machine has its files, and where the command itself runs.
5. What is behind the name of a protocol that leads to another machine (`s3://…`) names nothing here, unless it holds
   a `..`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from policyd.commands.argv.options import constant, tail
from policyd.model import Word, WordKind

PIECES = 64
ADDRESSES = frozenset({"url", "hosts", "urls"})
"""Roles of an option's value that is a URL, holds hosts (`HOST:PORT:HOST`), or is a file of URLs."""
_MARKS = "=@:,;"
_AROUND = "\"'`<>[](){}|&!^$"
_CUTS = re.compile(rf"[{_MARKS}]+")
_PIECE = re.compile(rf"(?<![^{_MARKS}])[^{_MARKS}-][^{_MARKS}]*+(?![=@])")
_FILE_URL = re.compile(r"file:(?://[^/]*)?(/[^?#]*)", re.IGNORECASE)
_BURIED = re.compile(r"file:/", re.IGNORECASE)
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_COMMIT = re.compile(r"@[~^][~^0-9]*(?:\.\.|\Z)").match
"""The commit in front of the current one and its like: no home directory, for `@~` has no path behind it."""
_HOSTS = re.compile(r"\[[0-9A-Fa-f:.]+\]|[\w-]+(?:\.[\w-]+)+").findall
begins_url = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@]*@)?([^/?#@:]+)(?::[0-9]*)?[/?#]").match
"""The beginning of a URL whose host is all there."""
_PLACES = ("/", ".", "~", "$")
_REMOTE = re.compile(
    r"(?<![\w.+-])(?:[a-z]{2,8}\+)?(?:https?|wss?|ftps?|sftp|ssh|git|svn|rsync|s3|gs|gcs|abfss?|wasbs?|hdfs|oci|docker|"
    r"rediss?|postgres(?:ql)?|mysql|mariadb|mongodb|amqps?|nats|mqtts?|kafka|ldaps?|smtps?|imaps?|tcp|udp|grpcs?|rtsp)"
    r"(?:\+[a-z]{2,8})?://[\w\[][^\s,;|'\"<>(){}`]*",
    re.IGNORECASE,
)


_QUOTES = re.compile(r"[\"'`]").search
_CALLS = re.compile(r"[\w.]\(\s*[\"'`]|\A\.[a-z]+\s").search
_STRINGS = re.compile(r"([\"'`])(?:[<>+]{1,3}|/(?=\.\w))?((?:\.\.?/)*\.?\w[\w./+@-]*)\1").findall
_ROOTED = re.compile(r"([\"'`])(~(?:/[\w.@+-]+)+/?|(?:/[\w.@+-]+){2,}/?)\1").findall
_TOPS = frozenset(
    """
    Applications Library System Users Volumes bin boot dev etc home lib media mnt opt private proc root run sbin srv sys
    tmp usr var
    """.split()  # noqa: SIM905
)
"""Directories at the root of usual machines."""
_WORDS = re.compile(r"[^\s=]+").findall
_PATH = re.compile(r"(?:\.\.?/)*\.\w[\w./+@-]*|\w[\w.+@-]*/[\w./+@-]+").fullmatch
one_piece = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+%-]*").fullmatch
"""A word in which nothing is marked off: `parts` of it is the word itself."""


def parts(word: Word, *, whole: bool = False) -> Iterator[Word]:
    """Yield what in a word may be a path; a last, unknown word if there is more than is looked at.

    `whole`: it is of the form `NAME:PATH`, as git names what is in a commit, and not cut into pieces.
    """
    if word.kind is WordKind.UNKNOWN:
        if "/" in word.prefix and not word.prefix.startswith("-"):
            yield Word(_escaped(word.prefix) + "*", WordKind.GLOB)
        return
    addresses, word = _addresses(word)
    yield from addresses
    seen: set[str] = set()
    for part in _pieces(word, whole=whole):
        if not part.text or part.text in seen:
            continue
        if len(seen) >= PIECES:
            yield Word(word.text, WordKind.UNKNOWN)
            return
        seen.add(part.text)
        yield part


def _pieces(word: Word, *, whole: bool) -> Iterator[Word]:
    text = word.text
    path = file_url(word)
    if path is not None:
        yield path
    for start in _starts(text):
        yield tail(word, start)
    if whole:
        yield from (tail(word, end) for end in _path_starts(text))
    else:
        yield from (Word(found[0], word.kind) for found in _PIECE.finditer(text))
        if word.kind is WordKind.CONST:
            yield from (Word(found[0].strip(_AROUND)) for found in _PIECE.finditer(text))


def _starts(text: str) -> Iterator[int]:
    if not text.startswith("-"):
        yield 0
    elif not text.startswith("--") and len(text) > 2:
        yield 2
        if text[2].isalpha() and len(text) > 3:
            yield 3
    for mark in _MARKS:
        place = text.find(mark)
        if 0 <= place < len(text) - 1 and not (place == 0 and _COMMIT(text)):
            yield place + 1


def _path_starts(text: str) -> Iterator[int]:
    """Yield where the path begins in `:0:PATH` and `:(top)PATH`: behind what says which entry, or how it is meant."""
    yield text.rfind(":") + 1
    if text.startswith(":("):
        yield text.find(")") + 1


def _escaped(text: str) -> str:
    return "".join("\\" + char if char in "*?[]\\" else char for char in text)


def file_url(word: Word) -> Word | None:
    """Return the path of a `file:` URL in the word, None without one."""
    buried = _BURIED.search(word.text) if word.kind is WordKind.CONST else None
    found = _FILE_URL.match(word.text, buried.start()) if buried else None
    return Word(_decoded(found[1])) if found else None


def is_remote(word: Word) -> bool:
    """Say whether a word begins with a URL of another machine."""
    return "/.." not in word.text and _REMOTE.match(constant(word)) is not None


def addresses(text: str) -> list[str]:
    """Return the URLs of other machines in a text."""
    return _REMOTE.findall(text) if "://" in text else []


def addressed(role: str, value: Word) -> list[Word]:
    """Return what the value of an option of a role in `ADDRESSES` leads to; what a file says is not known."""
    if role == "hosts" and value.kind is WordKind.CONST:
        return [Word(host) for host in _HOSTS(value.text)[:PIECES]]
    return [value if role == "url" else Word("", WordKind.UNKNOWN)]


def quoted(text: str) -> list[str]:
    """Return what in code may be the path of a file: a string of it, or a word that looks so where there is none."""
    found = [name for _, name in _STRINGS(text)] if _QUOTES(text) else [name for name in _WORDS(text) if _PATH(name)]
    return list(dict.fromkeys(name for name in found if "." in name or "/" in name))


def is_code(text: str) -> bool:
    """Say whether a word calls something by a string, or tells a database's shell to: `f('a')`, `.read a`."""
    return _CALLS(text) is not None


def rooted(text: str) -> list[str]:
    """Return the strings of code that begin at the root, or at home, and may be the path of a file."""
    return list(dict.fromkeys(name for _, name in _ROOTED(text))) if "/" in text else []


def is_place(path: str, places: Iterable[str]) -> bool:
    """Say whether `path` begins as the paths of files on usual machines do, or as one of `places`."""
    top = path.split("/", 2)[1]
    return top in _TOPS or any(place.startswith(f"/{top}/") or place == f"/{top}" for place in places)


def _addresses(word: Word) -> tuple[list[Word], Word]:
    """Take the URLs of other machines out of a word; return them, and what is left of it."""
    text = word.text
    found = addresses(text) if "/.." not in text else []
    if not found or len(found) > PIECES:
        return [], word
    return [Word(url, word.kind) for url in found], Word(_REMOTE.sub("", text), word.kind)


def _decoded(text: str) -> str:
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)


def mounted(value: Word) -> tuple[Word, bool] | None:
    """Return the directory of this machine that `-v SOURCE:TARGET[:ro]` or `--mount type=bind,src=…` gives away.

    Second is whether it may be written. None: a named volume, or not constant.
    """
    text = constant(value)
    if not _CUTS.search(text):
        return None
    if text.startswith(("type=", "src=", "source=", "dst=", "target=", "destination=", "bind-")) or ",src=" in text:
        pairs = dict(piece.partition("=")[::2] for piece in text.split(","))
        source = pairs.get("src") or pairs.get("source")
        writes = not {"readonly", "ro"} & pairs.keys()
    else:
        source, _, rest = text.partition(":")
        writes = "ro" not in rest.rpartition(":")[2].split(",")
    if not source or not (source.startswith(_PLACES) or "/" in source):
        return None
    return Word(source), writes
