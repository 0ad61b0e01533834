"""Literal text in the policy language: every special character escaped, and strict parsing back.

Text that is a pattern is refused by the parser: editing a file of grants never makes one wider.
The one generalisation is the word `**` at the end of a command.
"""

from __future__ import annotations

SPECIAL = frozenset("*?[]{}\\!~$@")
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_%+=:,./-")
MORE = "**"


def escape(text: str) -> str:
    """Return `text` as a pattern that matches only itself."""
    return "".join(f"\\{char}" if char in SPECIAL else char for char in text)


def unescape(pattern: str) -> str:
    """Return the text a literal `pattern` stands for.

    Raises:
        ValueError: the pattern is not literal.
    """
    text, escaped = [], False
    for char in pattern:
        if not escaped and char == "\\":
            escaped = True
        elif not escaped and char in SPECIAL:
            raise ValueError(f"`{char}` is not escaped")
        else:
            text.append(char)
            escaped = False
    if escaped:
        raise ValueError("nothing follows the last backslash")
    return "".join(text)


def join(words: tuple[str, ...], *, more: bool = False) -> str:
    """Return a command's words as one literal pattern under shell quoting; `more` adds the `**` that stays open."""
    return " ".join([*map(_quote, words), *([MORE] if more else [])])


def split(pattern: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of a literal command pattern, and whether it stays open.

    Raises:
        ValueError: a word is no literal, a quote is not closed, or there is no word.
    """
    more = pattern.endswith(f" {MORE}")
    words = tuple(_words(pattern[: -len(MORE) - 1] if more else pattern))
    if not words:
        raise ValueError("no words")
    return words, more


def _quote(word: str) -> str:
    if word and all(char in PLAIN for char in word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _words(text: str) -> list[str]:
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char == " ":
            if word is not None:
                words.append("".join(word))
            word, at = None, at + 1
            continue
        word = [] if word is None else word
        at = _piece(text, at, word)
    if word is not None:
        words.append("".join(word))
    return words


def _piece(text: str, at: int, word: list[str]) -> int:
    """Add the quoted run, escaped quote or plain character at `at` to `word`; return where it ends."""
    if text[at] == "'":
        end = text.find("'", at + 1)
        if end < 0:
            raise ValueError("a quote is not closed")
        word.append(text[at + 1 : end])
        return end + 1
    if text.startswith("\\'", at):
        word.append("'")
        return at + 2
    if text[at] not in PLAIN:
        raise ValueError(f"`{text[at]}` is not quoted")
    word.append(text[at])
    return at + 1
