"""Commands for tests of patterns and programs, spelled in a small notation instead of a shell's.

Words are split as a shell splits them. A word with `$` is unknown from there on, with `$$` it may also become several
words; `?`, `*` and `[` outside quotes make a glob; `NAME=value` in front is an assignment.
"""

from __future__ import annotations

import re

from policyd.model import Assignment, SimpleCommand, Word, WordKind

_SPLIT = re.compile(r"""((?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)""", re.S)


def word(token: str) -> Word:
    """Read one token."""
    text, glob, wild, quote, position = "", "", False, "", 0
    while position < len(token):
        char = token[position]
        position += 1
        if quote and char == quote:
            quote = ""
            continue
        if not quote and char in "'\"":
            quote = char
            continue
        quoted = bool(quote)
        if char == "\\" and quote != "'" and position < len(token):
            char, quoted = token[position], True
            position += 1
        if char == "$" and quote != "'" and not (quoted and not quote):
            return Word(token, WordKind.UNKNOWN, text, token[position : position + 1] == "$")
        wild = wild or (not quoted and (char in "*?" or (char == "[" and "]" in token[position:])))
        text += char
        glob += "\\" + char if quoted and char in "*?[\\" else char
    return Word(glob, WordKind.GLOB) if wild else Word(text)


def command(text: str, *, cwd: str = "/home/dev/app", inner: str = "") -> SimpleCommand:
    """Read a simple command."""
    tokens = _SPLIT.findall(text)
    env = []
    while tokens and re.match(r"[A-Za-z_]\w*=", tokens[0]):
        name, _, value = tokens.pop(0).partition("=")
        env.append(Assignment(name, word(value)))
    within = command(inner, cwd=cwd) if inner else None
    return SimpleCommand(tuple(map(word, tokens)), text, env=tuple(env), cwd=(cwd,), inner=within)
