"""Line numbers of tables, keys and values in a TOML text, which `tomllib` does not report.

The text has already been read by `tomllib`, so it is well formed. Strings and comments are blanked out first, then
headers and keys are read line by line. Every pattern is linear: a project's file may be hostile.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

HEADER = re.compile(r"^[ \t]*\[\[[ \t]*\"?(rule|default)\"?[ \t]*\]\]", re.MULTILINE)
TOKENS = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL,
)
DEFAULTS = re.compile(r"^[ \t]*\[[ \t]*defaults[ \t]*\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)
LINE = re.compile(r"[^\n]*(?:\n|\Z)")
TABLE = re.compile(r"^[ \t]*\[\[?([^\[\]=]+)\]")
KEY = re.compile(
    r"^[ \t]*((?:\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)(?:[ \t]*\.[ \t]*(?:\"[^\"]*\"|[A-Za-z0-9_-]+))*)[ \t]*="
)


def headers(text: str) -> dict[str, list[int]]:
    """Return the lines of the `[[rule]]` and `[[default]]` headers in order, by name."""
    if '"""' in text or "'''" in text:
        text = blank(text)
    found: dict[str, list[int]] = {"rule": [], "default": []}
    line, seen = 1, 0
    for match in HEADER.finditer(text):
        line += text.count("\n", seen, match.start(1))
        seen = match.start(1)
        found[match[1]].append(line)
    return found


def default_keys(text: str) -> dict[str, int]:
    """Return the lines of the keys of a plain `[defaults]` table; empty where it is written another way."""
    if '"""' in text or "'''" in text:
        text = blank(text)
    header = DEFAULTS.search(text)
    if header is None:
        return {}
    number = text.count("\n", 0, header.end()) + 1
    found: dict[str, int] = {}
    for at, line in enumerate(LINE.finditer(text, header.end())):
        if line[0].lstrip().startswith("["):
            break
        if key := KEY.match(line[0]):
            found[plain(key[1])] = number + at
    return found


def blank(text: str) -> str:
    """Return `text` with strings of several lines and comments blanked, every line where it was."""

    def mask(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == "#" or token[:3] in {'"""', "'''"}:
            return '""' + "\n" * token.count("\n") if token[0] != "#" else ""
        return re.sub(r"[\[\]{}=]", "_", token)

    return TOKENS.sub(mask, text)


class Table(Struct):
    """One table of the file: the line of its header and of each key in it."""

    name: str
    line: int
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    """First and last line of each key's value."""


class Locator:
    """Finds lines in one file; built only where there is something to report."""

    def __init__(self, text: str) -> None:
        """Read the tables and keys of `text`."""
        self.lines = text.splitlines() if "\r" not in text else text.replace("\r\n", "\n").split("\n")
        self.tables = list(read_tables(blank(text)))

    def block(self, name: str, number: int) -> list[Table]:
        """Return the `number`-th (0-based) `[[name]]` table and the sub-tables that follow it."""
        count, found = -1, []
        for table in self.tables:
            if table.name == name:
                count += 1
                if count == number:
                    found.append(table)
            elif count == number and table.name.startswith(name + "."):
                found.append(table)
        return found or [table for table in self.tables if table.name == "" and name in table.keys]

    def find(self, name: str, number: int, key: str = "", text: str = "") -> int:
        """Return the line of `text` in the value of `key` in a block, the nearest that is known otherwise."""
        tables = self.block(name, number)
        head, _, below = key.partition(".")
        for table in tables:
            if table.name == f"{name}.{head}":
                span = table.keys.get(below)
                return self.inside(span, text) if span else table.line
            if (span := table.keys.get(key) or table.keys.get(head)) and head:
                return self.inside(span, text)
        if tables and tables[0].name == "":
            return tables[0].keys[name][0]
        return tables[0].line if tables else 0

    def inside(self, span: tuple[int, int], text: str) -> int:
        """Return the line within `span` that holds `text`, else its first."""
        if text:
            for line in range(span[0], span[1] + 1):
                if text in self.lines[line - 1]:
                    return line
        return span[0]

    def top(self, key: str) -> int:
        """Return the line of a top-level table or key, `defaults` or `defaults.read`; 0 where it is not found."""
        for table in self.tables:
            prefix = table.name + "." if table.name else ""
            if table.name == key or (table.name and table.name.startswith(key + ".")):
                return table.line
            if key.startswith(prefix) and (span := table.keys.get(key[len(prefix) :])):
                return span[0]
        return self.top(key.rpartition(".")[0]) if "." in key else 0


def read_tables(text: str) -> list[Table]:
    """Read headers and keys of a blanked text."""
    tables, depth, key = [Table("", 1)], 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if depth == 0 and (header := TABLE.match(line)) and "=" not in line:
            tables.append(Table(plain(header[1]), number))
            key = ""
            continue
        if depth == 0 and (match := KEY.match(line)):
            key = plain(match[1])
        if key:
            first = tables[-1].keys.get(key, (number, number))[0]
            if depth > 0 or line.strip():
                tables[-1].keys[key] = (first, number)
        depth = max(0, depth + sum(line.count(c) for c in "[{") - sum(line.count(c) for c in "]}"))
    return tables


def plain(name: str) -> str:
    """Return a dotted name without quotes and blanks."""
    return ".".join(part.strip().strip("\"'") for part in name.strip().split("."))
