"""Messages for every way a file can be malformed: `pydantic`'s errors in the terms of the policy language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, time
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from policyd.policy.blocks import DEFAULT_KEYS, is_kind
from policyd.policy.errors import Mistake, nearest
from policyd.policy.file import DefaultBlock, Lock, Named, PolicyFile, RuleBlock, Unless
from policyd.policy.hints import EFFECTS, KEYS, TOP, unknown_key, unknown_kind

BLOCKS: dict[str, type[Named]] = {"rule": RuleBlock, "default": DefaultBlock}
TABLES = ("defaults", "sets", "lock")
TYPO = 0.75
"""How similar a word must be to be suggested alone where only a few are known: `forever` is not `never`."""


def mistakes_of(error: ValidationError, raw: dict[str, Any]) -> Iterator[tuple[str, int | None, Mistake]]:
    """Yield block name (or top-level key), block number and mistake for each error."""
    for detail in error.errors(include_url=False, include_context=True):
        where = detail["loc"]
        name = str(where[0]) if where else ""
        if name in BLOCKS and len(where) >= 2 and isinstance(where[1], int):
            yield name, where[1], in_block(detail, name, where[2:])
        else:
            yield at_top(detail, name, where, raw)


def in_block(detail: ErrorDetails, name: str, where: tuple[int | str, ...]) -> Mistake:
    """Say what is wrong inside a `[[rule]]` or `[[default]]`."""
    keys = [str(part) for part in where if isinstance(part, str)]
    text = detail["input"] if isinstance(detail["input"], str) and detail["type"] != "extra_forbidden" else ""
    mistake = in_words(detail, keys[-1] if keys else name, known_keys(name, keys), KEYS | elsewhere(name, keys))
    mistake.key, mistake.text = ".".join(keys), text
    return mistake


def known_keys(name: str, keys: list[str]) -> list[str]:
    """Return the known keys of the table an error is in."""
    if len(keys) > 1 and keys[0] == "unless":
        return list(Unless.model_fields)
    return list(BLOCKS[name].model_fields)


def elsewhere(name: str, keys: list[str]) -> dict[str, str]:
    """Return hints for keys that belong in another table, for which no similar key should be suggested."""
    if len(keys) > 1:
        rest = RuleBlock.model_fields.keys() - Unless.model_fields.keys()
        return dict.fromkeys(rest, "put it beside `unless`: an exception holds conditions only")
    other = "default" if name == "rule" else "rule"
    rest = BLOCKS[other].model_fields.keys() - BLOCKS[name].model_fields.keys()
    return dict.fromkeys(rest, f"it belongs in a `[[{other}]]`")


def at_top(
    detail: ErrorDetails, name: str, where: tuple[int | str, ...], raw: dict[str, Any]
) -> tuple[str, int | None, Mistake]:
    """Say what is wrong outside of the blocks."""
    place = ".".join(str(part) for part in where if isinstance(part, str))
    if name in BLOCKS and isinstance(raw.get(name), dict):
        return name, None, Mistake(f"`[{name}]` is one table", f"write `[[{name}]]`, one for each")
    if name in TABLES and isinstance(raw.get(name), list):
        return name, None, Mistake(f"`{name}` is a list", f"write one table, `[{name}]`")
    known, hints = list(PolicyFile.model_fields), TOP
    if name == "lock" and len(where) > 1:
        known, hints = list(Lock.model_fields), {"allow": 'write `refuse = ["user.allow", "project.allow"]`'}
    return place, None, in_words(detail, place.rpartition(".")[2], known, hints)


def in_words(detail: ErrorDetails, key: str, known: list[str], hints: dict[str, str]) -> Mistake:
    """Return the mistake for one error."""
    kind, value = detail["type"], detail["input"]
    match kind:
        case "extra_forbidden":
            return Mistake(f"unknown key `{key}`", unknown_key(key, known, hints))
        case "missing":
            words = {"effect": 'write `effect = "allow"`, `"ask"` or `"deny"`'}
            return Mistake(f"no `{key}`", words.get(key, f"write `{key}`"))
        case "literal_error":
            return wrong_word(key, value, str((detail.get("ctx") or {}).get("expected", "")))
        case "too_short" | "string_too_short":
            empty = (
                "an empty text" if isinstance(value, str) else "empty" if isinstance(value, dict) else "an empty list"
            )
            return Mistake(f"`{key}` is {empty}", "name at least one, or remove the key")
        case "timezone_aware" | "datetime_type":
            return Mistake(f"`{key}` is {described(value)}", "write a moment with its offset, `2026-12-01T18:00:00Z`")
        case "string_pattern_mismatch" if value == "":
            return Mistake(f"`{key}` is an empty text", "write a name, or remove the key")
        case "string_too_long":
            return Mistake(f"`{key}` is longer than 100 characters", "write a shorter one")
        case "string_pattern_mismatch":
            return Mistake(f"`{key}` holds characters that a name cannot have", "use letters, digits, `-`, `.`")
    return Mistake(f"`{key}` is {described(value)}", wanted(kind, key))


def wanted(kind: str, key: str) -> str:
    """Say what a value of the wrong type should have been."""
    if key == "unless":
        return "write a table of conditions, `unless = { path = … }`, or a list of them"
    if kind == "list_type" and key == "refuse":
        return 'write a list, `refuse = ["grants"]`'
    if kind == "list_type":
        return f'write a text in quotes, or a list of them: `{key} = ["…"]`'
    if kind == "string_type":
        return "write a text in quotes"
    if kind == "bool_type":
        return "write `true` or `false`, without quotes"
    if kind in {"dict_type", "model_type", "model_attributes_type"}:
        return "write a table: `{ name = value }`"
    return "see the policy reference for this key"


def described(value: object) -> str:
    """Name the type of a TOML value as people do."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, list):
        return "a list"
    if isinstance(value, date | time):
        return f"`{value}`, a time"
    return "a table" if isinstance(value, dict) else "nothing"


def wrong_word(key: str, value: object, expected: str) -> Mistake:
    """Return the mistake of a word that is not among those known."""
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    found = f'`{key} = "{value}"` is not known' if isinstance(value, str) else f"`{key}` is {described(value)}"
    if words in (["True"], ["1"]):
        quotes = ", without quotes" if isinstance(value, str) else ""
        return Mistake(found, f"remove it, or write `{key} = {words[0].lower()}`{quotes}")
    near = ""
    if isinstance(value, str):
        near = (EFFECTS.get(value.lower(), "") if "allow" in words else "") or nearest(value, words, cutoff=TYPO)
    return Mistake(found, f'write `"{near}"`' if near else f"write {quoted(words)}")


def quoted(words: Sequence[str]) -> str:
    """Return alternatives in quotes: `"a"`, `"b"` or `"c"`."""
    *most, last = [f'`"{word}"`' for word in words]
    return f"{', '.join(most)} or {last}" if most else last


def default_mistake(key: str, value: object) -> Mistake:
    """Return the mistake of an invalid entry of `[defaults]`."""
    if key == "delegate":
        return Mistake("`delegate` is not `true` or `false`", "write it without quotes")
    if key not in DEFAULT_KEYS and not is_kind(key):
        return Mistake(f"unknown kind `{key}` in `[defaults]`", unknown_kind(key, DEFAULT_KEYS))
    return wrong_word(key, value, "'allow', 'ask' or 'deny'")
