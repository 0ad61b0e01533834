"""Words for which a program may ask the network: the name of a host to `ss` and `lsof`, a release to `go list`.

Source: ss(8), iproute2; lsof(8). A name that is asked for leaves the machine: `ss dst SECRET.x.invalid` tells it to
whoever answers for `x.invalid`. Numbers, ports and the words of a filter name none.
"""

from __future__ import annotations

import re

from policyd.model import Word, WordKind

_FILTER = frozenset(
    """
    state exclude all connected synchronized bucket big established syn-sent syn-recv fin-wait-1 fin-wait-2 time-wait
    closed close-wait last-ack listening listen closing sport dport src dst and or not eq ne neq ge le gt lt geq leq
    tcp udp inet inet6 ip ip6
    """.split()  # noqa: SIM905
)
_NUMBERS = re.compile(
    r"[=<>!&|]+|(?:[0-9][0-9./]*|\*|\[[0-9A-Fa-f:.*]*\])?(?::[\w*-]*)?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*"
).fullmatch
"""Operators, addresses written as numbers, ports."""
PORTS = re.compile(r"[46]?[A-Za-z]*(?:@[0-9.]+)?(?::[A-Za-z0-9,_-]+)?").fullmatch
"""What of `lsof -i` names no host."""


def of_filter(words: tuple[Word, ...]) -> str:
    """Return what in the filter of `ss` may be the name of a host, nothing where all of it is known not to be."""
    for word in words:
        if word.kind is not WordKind.CONST:
            return word.text
        for token in re.split(r"[\s()]+", word.text):
            if token not in _FILTER and not _NUMBERS(token):
                return token
    return ""


def of_files(words: tuple[Word, ...]) -> str:
    """Return what among the words of `lsof` may be an address with a host, as `-i` takes it from the next word."""
    names = (word.text for word in words if "@" in word.text and "/" not in word.text.partition("@")[0])
    return next((name for name in names if not PORTS(name)), "")


def of_packages(words: tuple[Word, ...]) -> str:
    """Return what among the words of `go list` may be fetched, of a release that it names."""
    return next((word.text for word in words if word.kind is not WordKind.CONST or "@" in word.text), "")
