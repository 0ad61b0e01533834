"""Files that the value of an option names in a way of its own: `curl -F NAME=@FILE`, `-T '{a,b}'`, `file:///[ab]`.

Rules of this module:

1. A role of the table says which way; every file that may be meant is yielded, also where the text may be no file.
2. What curl expands in a name is a glob, or as many names as its braces say; beyond `MOST` it is anything at all.

Source: curl(1), `--data`, `--data-urlencode`, `--form`, `--cookie`, `--upload-file`, URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from policyd.commands.argv.options import tail
from policyd.model import Word, WordKind

MOST = 64
_PARTS = re.compile(r'[^,;"]+').findall
_LABEL = re.compile(r"\s*(?:type|filename|encoder|format)=").match
_HEADERS = re.compile(r"\s*headers=[@<]?").match
_BRACES = re.compile(r"\{([^{}]*)\}").search


def _at(text: str) -> Iterator[int]:
    """Find `@FILE` and `NAME=@FILE`."""
    at = text.find("@")
    if at == 0 or (at > 0 and "=" in text[:at]):
        yield at + 1


def _named(text: str) -> Iterator[int]:
    """Find `@FILE` and `NAME@FILE`."""
    at = text.find("@")
    if at >= 0 and "=" not in text[:at]:
        yield at + 1


def _jar(text: str) -> Iterator[int]:
    """Find a file of cookies: what is no cookie itself."""
    if "=" not in text:
        yield 0


_STARTS: Mapping[str, Callable[[str], Iterator[int]]] = {"at": _at, "named": _named, "jar": _jar, "form": _at}
ROLES = frozenset({*_STARTS, "upload"})


def files(role: str, value: Word, known: str) -> Iterator[Word]:
    """Yield every file a value names, of which the beginning `known` is constant."""
    if role == "upload":
        yield from expanded(value)
    elif role == "form" and value.kind is WordKind.CONST:
        yield from (Word(name) for name in _form(known))
    else:
        yield from (tail(value, start) for start in _STARTS[role](known))


def _form(text: str) -> Iterator[str]:
    """Yield the files of `NAME=@FILE,FILE;type=x;headers=@FILE` and `NAME=<FILE`, each in quotes or not."""
    content = text.partition("=")[2]
    for number, part in enumerate(_PARTS(content)):
        headers = _HEADERS(part)
        if headers is not None and number:
            yield part[headers.end() :]
        elif content[:1] in {"@", "<"} and not (number and _LABEL(part)):
            yield part[1:] if not number else part


def expanded(word: Word) -> Iterator[Word]:
    """Yield a name, and what braces and brackets in it stand for."""
    yield word
    if word.kind is not WordKind.CONST or not _marked(word.text):
        return
    todo, done = [word.text], 0
    while todo and done < MOST:
        text, done = todo.pop(), done + 1
        found = _BRACES(text)
        if found is None:
            yield Word(text, WordKind.GLOB if "[" in text else WordKind.CONST)
        else:
            todo += [text[: found.start()] + each + text[found.end() :] for each in found[1].split(",")]
    if todo:
        yield Word(word.text, WordKind.UNKNOWN, word.text[: _first_mark(word.text)], many=True)


def _marked(text: str) -> bool:
    return "{" in text or "[" in text


def _first_mark(text: str) -> int:
    return min(place for place in (text.find("{"), text.find("[")) if place >= 0)
