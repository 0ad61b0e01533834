"""Client profiles: what is behind a client's answers, and what its user gets to see. Data in `policyd/clients/*.toml`.

A client is known by `clientInfo.name`, or by the profile's short name where the person who starts policyd gives one.
An unknown client, and one that names itself as nothing, gets the careful default: one option a kind, the exact
action, remembered for the session at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

MEMORIES = ("never", "session", "project", "user")
MODES = ("none", "response", "current_mode_update", "config_option_update")
IDS = ("agent", "kind")
KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
KEYS = frozenset(
    {
        "name",
        "person",
        "shows_option_names",
        "options_per_kind",
        "option_kinds",
        "title_beside_diff",
        "remember",
        "modes_from",
        "option_ids",
        "verified",
        "behaviour",
    }
)


class Client(Struct, frozen=True):
    """What is known of a client. The defaults are the careful ones."""

    profile: str = "careful"
    """Short name: the file's."""
    names: tuple[str, ...] = ()
    """Exact values of `clientInfo.name`; a final `*` stands for anything."""
    person: bool = True
    """Whether a person may be behind an answer; if not, the step `client` abstains."""
    shows_option_names: bool = False
    """Whether its user sees the options' names, not only their kinds."""
    options_per_kind: int = 1
    """How many options of one kind its user can tell apart."""
    option_kinds: tuple[str, ...] = KINDS
    """Which kinds of options its user gets to see at all."""
    title_beside_diff: bool = True
    """Whether its user sees a call's title where the call carries a diff."""
    remember: str = "session"
    """The longest memory its answers may have; `never`: no "always" is offered."""
    modes_from: tuple[str, ...] = ("response",)
    """From what it learns the session's mode."""
    option_ids: str = "agent"
    """`kind`: it understands only ids that are spelled like the kind."""
    verified: str = ""
    """How its behaviour is known."""
    behaviour: tuple[str, ...] = ()
    """What it does, in words, for `doctor` and the README."""


CAREFUL = Client()


def find(name: str) -> Client:
    """Return the profile of the client that calls itself `name`, or has that short name; else the careful default."""
    profiles = shipped()
    named = [profile for profile in profiles.values() if any(_fits(one, name) for one in profile.names)]
    return named[0] if name and named else profiles.get(name, CAREFUL)


@cache
def shipped() -> Mapping[str, Client]:
    """Return the shipped profiles by short name.

    Raises:
        ValueError: a profile does not keep the schema; tests keep that from being shipped.
    """
    import tomllib
    from importlib.resources import files

    folder = files("policyd").joinpath("clients")
    texts = {entry.name: entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".toml")}
    return {name[:-5]: parse(name[:-5], tomllib.loads(text)) for name, text in sorted(texts.items())}


def parse(profile: str, table: Mapping[str, object]) -> Client:
    """Return the profile a file's `table` describes.

    Raises:
        ValueError: an unknown key or a value outside its range.
    """
    if strange := set(table) - KEYS:
        raise ValueError(f"{profile}: unknown key `{min(strange)}`")
    return Client(
        profile=profile,
        names=_texts(profile, table, "name"),
        person=_flag(profile, table, "person"),
        shows_option_names=_flag(profile, table, "shows_option_names"),
        options_per_kind=_count(profile, table, "options_per_kind"),
        option_kinds=tuple(
            _each(profile, kind, KINDS) for kind in _texts(profile, {"option_kinds": [*KINDS], **table}, "option_kinds")
        ),
        title_beside_diff=_flag(profile, {"title_beside_diff": True, **table}, "title_beside_diff"),
        remember=_one_of(profile, table, "remember", MEMORIES),
        modes_from=tuple(_each(profile, mode, MODES) for mode in _texts(profile, table, "modes_from")),
        option_ids=_one_of(profile, {"option_ids": "agent", **table}, "option_ids", IDS),
        verified=str(table.get("verified", "")),
        behaviour=_texts(profile, table, "behaviour"),
    )


def _fits(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _texts(profile: str, table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{profile}: `{key}` must be a list of texts")
    return tuple(value)


def _flag(profile: str, table: Mapping[str, object], key: str) -> bool:
    value = table.get(key)
    if not isinstance(value, bool):
        raise ValueError(f"{profile}: `{key}` must be true or false")
    return value


def _count(profile: str, table: Mapping[str, object], key: str) -> int:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 9:
        raise ValueError(f"{profile}: `{key}` must be a number from 1 to 9")
    return value


def _one_of(profile: str, table: Mapping[str, object], key: str, words: tuple[str, ...]) -> str:
    return _each(profile, table.get(key), words)


def _each(profile: str, value: object, words: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{profile}: `{value}` is none of {', '.join(words)}")
    return value
