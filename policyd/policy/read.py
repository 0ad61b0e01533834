"""Parsing one policy file: from bytes to blocks, with every mistake in its shape reported at its line.

Rules of this module:

1. `requires` and `version` are checked first: of a file for a newer policyd only that is reported.
2. One mistake never hides another: well-formed blocks are passed on even if their neighbours are not.
3. Nothing is repaired. A file with a mistake is parsed only so that all mistakes are reported at once.
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable, Iterator
from sys import intern
from typing import Any

from policyd.model import EFFECT_WORDS, Layer
from policyd.policy.blocks import DEFAULT_KEYS, Table, is_kind
from policyd.policy.errors import Diagnostic, Mistake, listed, nearest
from policyd.policy.parsed import Parsed, plain_file
from policyd.policy.shape import file_fits
from policyd.policy.source import PolicySource

__all__ = ["Parsed", "parse"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REQUIREMENT = re.compile(r"^\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*$")
COMPARISONS: dict[str, Callable[[list[int], list[int]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def parse(source: PolicySource, version: str) -> Parsed:
    """Parse one file; mistakes are in `diagnostics` of the result, never raised."""
    parsed = Parsed(source)
    if source.data.startswith(BYTE_ORDER_MARK):
        parsed.diagnostics.append(unreadable(source, 1, "it begins with a byte order mark", "save it as plain UTF-8"))
        return parsed
    if not source.data.strip(b" \t\r\n\0"):  # what a crash, a full disk or an unfinished save may leave
        parsed.diagnostics.append(unreadable(source, 1, "it is empty", "write `version = 1` if it is to say nothing"))
        return parsed
    try:
        parsed.text = source.data.decode("utf-8")
        parsed.raw = interned(tomllib.loads(parsed.text))
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        parsed.diagnostics.append(unreadable(source, line, "not UTF-8", "save the file as UTF-8"))
    except ValueError as error:  # no TOML, or a number beyond all numbers
        parsed.diagnostics.append(not_toml(source, str(error)))
    except RecursionError:
        parsed.diagnostics.append(unreadable(source, 0, "nested too deeply", "write fewer brackets"))
    else:
        if fits_version(parsed, version):
            shape(parsed)
    return parsed


def interned(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a file with the keys of its blocks interned."""
    for name in ("rule", "default"):
        blocks = raw.get(name)
        if isinstance(blocks, list):
            raw[name] = [interned_block(block) if isinstance(block, dict) else block for block in blocks]
    return raw


def interned_block(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block with its keys and its effect interned."""
    return {intern(key): intern(word) if key == "effect" and type(word) is str else word for key, word in block.items()}


def unreadable(source: PolicySource, line: int, found: str, write: str) -> Diagnostic:
    """Return the diagnostic of a file that cannot be read at all."""
    return Diagnostic(source.name, line, "", found, write, source.layer)


def not_toml(source: PolicySource, message: str) -> Diagnostic:
    """Return the diagnostic of a file that is not TOML."""
    place = re.search(r" ?\(at line (\d+), column (\d+)\)", message)
    line = int(place[1]) if place else source.data.count(b"\n") + 1
    words = message.replace(place[0], "") if place else message.replace(" (at end of document)", " at its end")
    write = "each key and each table stands once" if words == "Cannot overwrite a value" else "correct the syntax"
    return unreadable(source, line, f"not TOML: {words[:1].lower()}{words[1:]}", write)


def fits_version(parsed: Parsed, version: str) -> bool:
    """Say whether the file is for this policyd; if not, that is its only diagnostic."""
    wanted, number = parsed.raw.get("requires"), parsed.raw.get("version", 1)
    mistake: Mistake | None = None
    name = "requires"
    if isinstance(wanted, str):
        mistake = too_old(wanted, version)
    if mistake is None and isinstance(number, int) and not isinstance(number, bool) and number != 1:
        mistake = Mistake(f"`version = {number}` is not known here", "write `version = 1`, or update policyd")
        name = "version"
    if mistake is not None:
        parsed.report(mistake, name)
    return mistake is None


def too_old(wanted: str, version: str) -> Mistake | None:
    """Return what is wrong with `requires` under this version."""
    own = numbers(re.sub(r"[^0-9.].*$", "", version))
    for part in wanted.split(","):
        match = REQUIREMENT.match(part)
        if match is None:
            return Mistake(f'`requires = "{wanted}"` cannot be read', 'write a bound such as `">=0.1"`')
        theirs = numbers(match[2])
        width = max(len(own), len(theirs))
        if not COMPARISONS[match[1]](own + [0] * (width - len(own)), theirs + [0] * (width - len(theirs))):
            return Mistake(f"the file requires policyd {wanted}, this is {version}", "update policyd")
    return None


def numbers(text: str) -> list[int]:
    """Return a dotted version as numbers."""
    return [int(part) for part in text.split(".") if part]


def shape(parsed: Parsed) -> None:
    """Check the shape of the whole file; on a mistake, of each block by itself."""
    check_defaults(parsed)
    check_lock(parsed)
    if file_fits(parsed.raw) or is_whole(parsed):
        parsed.rules = list(enumerate(parsed.raw.get("rule", ())))
        parsed.defaults = list(enumerate(parsed.raw.get("default", ())))
        parsed.file = plain_file(parsed.raw)
    else:
        parsed.rules = list(well_formed(parsed, "rule"))
        parsed.defaults = list(well_formed(parsed, "default"))
        parsed.file = plain_file(salvage(parsed.raw))


def is_whole(parsed: Parsed) -> bool:
    """Say whether a file is well formed; report what is wrong with it."""
    from pydantic import ValidationError

    from policyd.policy.file import PolicyFile
    from policyd.policy.wording import mistakes_of

    try:
        PolicyFile.model_validate(parsed.raw)
    except ValidationError as error:
        for name, number, mistake in mistakes_of(error, parsed.raw):
            parsed.report(mistake, name, number)
        return False
    return True


def well_formed(parsed: Parsed, name: str) -> Iterator[tuple[int, Table]]:
    """Yield every block, without the keys that are malformed."""
    from pydantic import ValidationError

    from policyd.policy.wording import BLOCKS

    blocks = parsed.raw.get(name)
    for number, block in enumerate(blocks if isinstance(blocks, list) else ()):
        try:
            BLOCKS[name].model_validate(block)
        except ValidationError as error:
            if not isinstance(block, dict):
                continue
            bad = {detail["loc"][0] for detail in error.errors() if detail["loc"]}
            parsed.partial.add((name, number))
            kept = {"effect": "deny", **{key: value for key, value in block.items() if key not in bad}}
            BLOCKS[name].model_validate(kept)
            yield number, kept
        else:
            yield number, block


def salvage(raw: dict[str, Any]) -> dict[str, Any]:
    """Return what is still needed of a malformed file to check the rest: its sets."""
    sets = raw.get("sets")
    if not isinstance(sets, dict):
        return {}
    texts = {name: [value] if isinstance(value, str) else value for name, value in sets.items()}
    return {"sets": {n: [str(v) for v in value] if isinstance(value, list) else [] for n, value in texts.items()}}


def check_defaults(parsed: Parsed) -> None:
    """Check `[defaults]`: keys are kinds and a few other words, values are effects."""
    table = parsed.raw.get("defaults")
    for key, value in table.items() if isinstance(table, dict) else ():
        if not is_default(key, value):
            from policyd.policy.wording import default_mistake

            parsed.report(default_mistake(key, value), f"defaults.{key}")


def is_default(key: str, value: object) -> bool:
    """Say whether an entry of `[defaults]` is valid."""
    if key == "delegate":
        return isinstance(value, bool)
    return (key in DEFAULT_KEYS or is_kind(key)) and value in EFFECT_WORDS


def check_lock(parsed: Parsed) -> None:
    """Check that `[lock]` is in a managed file and every setting it names exists: a misspelt one would lock nothing."""
    table = parsed.raw.get("lock")
    if table is not None and parsed.source.layer is not Layer.MANAGED:
        instead = "remove it: only the managed layer locks (`--managed DIR` tries one, as does `diff --layer managed`)"
        parsed.report(Mistake("`[lock]` outside of a managed file", instead), "lock")
    names = table.get("settings") if isinstance(table, dict) else None
    if not names:
        return
    from policyd.policy.file import SETTINGS

    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and name not in SETTINGS:
            near = nearest(name, SETTINGS)
            write = f"write `{near}`" if near else f"known are {listed(SETTINGS)}"
            parsed.report(Mistake(f"unknown setting `{name}` in `[lock]`", write), "lock.settings")
