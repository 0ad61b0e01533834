"""Naive matchers for the reference evaluator: recursion and `fnmatch`, nothing of policyd's.

They know the patterns that `tests/random_policies.py` writes: no globs in the request, constant words with at most one
unknown one, hosts without ports, one workspace `/w`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import chain, product
from typing import Any

from policyd.model import Action, WordKind

NO, MAYBE, YES = 0, 1, 2


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def segments(pattern: list[str], path: list[str], prefix: bool) -> bool:
    """Match segments; `prefix`: what lies below a match matches too."""
    if not pattern:
        return prefix or not path
    if pattern[0] == "**":
        return any(segments(pattern[1:], path[at:], prefix) for at in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and segments(pattern[1:], path[1:], prefix)


def path_matches(pattern: str, form: str, *, strict: bool, widen: bool) -> bool:
    parts = [part for part in form.split("/") if part]
    words = [word for word in pattern.split("/") if word]
    if pattern.startswith("/"):
        return segments(words, parts, widen)
    if strict and (words[0] == "**" or (widen and "/" not in pattern)):
        return segments(["**", *words], parts, widen)
    return parts[:1] == ["w"] and segments(words, parts[1:], widen)


def words_match(pattern: list[str], words: list[str], prefix: bool) -> bool:
    if not pattern:
        return prefix or not words
    if pattern[0] == "**" or (prefix and pattern == ["*"]):
        return any(words_match(pattern[1:], words[at:], prefix) for at in range(len(words) + 1))
    if not words or (words[0].startswith("-") and pattern[0] == "*"):
        return False
    return (pattern[0] in {"*", words[0]}) and words_match(pattern[1:], words[1:], prefix)


def command_truth(pattern: str, action: Action, *, strict: bool, widen: bool) -> int:
    argv = action.command.argv if action.command else ()
    vocabulary = ["frob", "push", "status", "x", "zzz"]
    unknown = [[word] for word in vocabulary]
    choices = [unknown if word.kind is WordKind.UNKNOWN else [[word.text]] for word in argv]
    lines = [list(chain.from_iterable(choice)) for choice in product(*choices)]
    seen = {words_match(pattern.split(), line, widen) for line in lines}
    if strict and True not in seen:  # a program nobody knows may run the words behind it
        starts = [at for at, word in enumerate(argv) if at and word.kind is WordKind.CONST]
        behind = (line[at:] for line in lines for at in starts)
        return MAYBE if any(words_match(pattern.split(), rest, widen) for rest in behind) else NO
    if strict:
        return YES if seen == {True} else MAYBE
    unsure = any(word.kind is WordKind.UNKNOWN for word in argv)
    return YES if seen == {True} and (not unsure or pattern.endswith("**")) else NO


def host_matches(pattern: str, host: str) -> bool:
    pattern = pattern.removeprefix("https://").removesuffix("/**")
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def tool_matches(pattern: str, server: str, tool: str, widen: bool) -> bool:
    if "/" in pattern:
        return bool(server) and fnmatchcase(server, pattern.split("/")[0]) and fnmatchcase(tool, pattern.split("/")[1])
    return pattern == (tool if not server else server if widen else "")
