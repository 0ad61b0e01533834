"""Reading untrusted JSON: a value of another shape than expected counts as empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def listed(value: object) -> Sequence[object]:
    """Return a list, empty for anything else."""
    return value if isinstance(value, list) else ()


def table(value: object) -> Mapping[str, object]:
    """Return a table, empty for anything else."""
    return value if isinstance(value, dict) else {}


def values(value: object, *keys: str) -> list[object]:
    """Return the values of a table under these keys, None for a missing one."""
    return [value.get(key) for key in keys] if isinstance(value, dict) else []


def unlisted(table: Mapping[str, object]) -> dict[str, object]:
    """Return a table with each list of one item replaced by the item, as people write conditions."""
    return {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in table.items()}


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    return tuple(each for each in listed(value) if isinstance(each, str))


def tables(value: object) -> list[Mapping[str, object]]:
    """Return the tables of a list."""
    return [each for each in listed(value) if isinstance(each, dict)]
