"""Client profiles: whether a person answers, and what the user gets to see. Data in `policyd/clients/*.toml`.

A client is identified by `clientInfo.name`, or by the profile's short name if the person who starts policyd gives one.
An unknown or nameless client gets the careful default: one option of each kind, for the exact action, remembered for
the session at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

Memory = Literal["never", "session", "project", "user"]
Mode = Literal["none", "response", "current_mode_update", "config_option_update"]
Kind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class Client(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a client. The defaults are the careful ones."""

    profile: str = "careful"
    """Short name: the file's."""
    names: tuple[str, ...] = ()
    """Exact values of `clientInfo.name`; a final `*` stands for anything."""
    person: bool = True
    """Whether a person may be behind an answer; if not, the step `client` abstains."""
    shows_option_names: bool = False
    """Whether its user sees the options' names, not only their kinds."""
    options_per_kind: Annotated[int, Meta(ge=1, le=9)] = 1
    """How many options of one kind its user can tell apart."""
    option_kinds: tuple[Kind, ...] = get_args(Kind)
    """Which kinds of options its user gets to see at all."""
    title_beside_diff: bool = True
    """Whether its user sees the title of a call with a diff."""
    remember: Memory = "session"
    """The longest memory its answers may have; `never`: no "always" is offered."""
    modes_from: tuple[Mode, ...] = ("response",)
    """The messages from which it learns the session's mode."""
    option_ids: Literal["agent", "kind"] = "agent"
    """`kind`: it understands only ids that equal the kind."""
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


def at_most(client: Client, longest: Memory) -> Client:
    """Return a profile whose answers are remembered no longer than that."""
    return replace(client, remember=min(client.remember, longest, key=get_args(Memory).index))


@cache
def shipped() -> Mapping[str, Client]:
    """Return the shipped profiles by short name.

    Raises:
        ValueError: a profile does not fit the schema; tests keep that from being shipped.
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
    named = {"names" if key == "name" else key: value for key, value in table.items()}
    try:
        return convert({**named, "profile": profile}, Client)
    except ValidationError as error:
        raise ValueError(f"{profile}: {error}") from error


def _fits(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
