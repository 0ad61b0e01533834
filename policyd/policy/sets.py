"""Named lists: `@name` in a condition, looked up in the own layer, then in the layers above, then among those shipped.

Rules of this module:

1. A set belongs to the layer that defines it; nobody below can change what a rule above means by a name.
2. The names of shipped sets and the engine's own words are taken; a name is defined once a layer.
3. A text is a set exactly when it is `@` and `[a-z0-9-]+`, then optionally `.` and an entry of a shipped set; a
   directory of such a name is written `./@name`.
4. Sets have no type of their own: entries are judged where they are used. A shipped set has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from policyd.policy.conditions import CommandMatcher
from policyd.policy.errors import Mistake, nearest

if TYPE_CHECKING:
    from policyd.commands.sets import ShippedSet

REFERENCE = re.compile(r"^@([a-z0-9-]+)(?:\.(.+))?$", re.DOTALL)
NAME = re.compile(r"^[a-z0-9-]+$")
RESERVED = frozenset({"outside", "write", "read", "unsafe", "asking"})
OUTSIDE = "@outside"


def shipped() -> Mapping[str, ShippedSet]:
    """Return the sets that ship; read when a policy first names one."""
    from policyd.commands.sets import shipped as read

    return read()


class Sets(Struct, frozen=True):
    """The sets visible to one layer, nearest first."""

    scopes: tuple[Mapping[str, tuple[str, ...]], ...] = field(default=())

    def expand(
        self, key: str, texts: list[str], report: Callable[[Mistake], None], seen: tuple[str, ...] = ()
    ) -> Iterator[str | CommandMatcher]:
        """Replace the sets among `texts` by their entries; `@outside` of paths stays.

        An unknown set, a set of another type and a set that holds itself go to `report`.
        """
        for text in texts:
            match = REFERENCE.match(text)
            if match is None or (key == "path" and text == OUTSIDE):
                yield text
            elif (own := self.find(match[1])) is not None and not match[2]:
                if text in seen:
                    report(Mistake(f"`{text}` holds itself", "remove one of the references", key=key, text=text))
                else:
                    yield from self.expand(key, list(own), report, (*seen, text))
            else:
                try:
                    yield from entries(key, text, match[1], match[2], self.names())
                except Mistake as mistake:
                    report(mistake)

    def find(self, name: str) -> tuple[str, ...] | None:
        """Return the entries of the nearest set of that name."""
        return next((scope[name] for scope in self.scopes if name in scope), None)

    def names(self) -> set[str]:
        """Return every name visible to this layer."""
        return {*shipped(), *(name for scope in self.scopes for name in scope)}


def entries(key: str, text: str, name: str, entry: str | None, known: set[str]) -> Iterator[str | CommandMatcher]:
    """Yield the entries of a shipped set, or one of them."""
    found = shipped().get(name)
    if found is None:
        near = nearest(name, known)
        wanted = f"write `@{near}`" if near else "define it in `[sets]`, or write `./@…` for a directory"
        raise Mistake(f"unknown set `@{name}`", wanted, key=key, text=text)
    if found.kind != ("path" if key in {"cwd", "within"} else key):
        raise Mistake(f"`@{name}` is a set for `{found.kind}`", f"use it in `{found.kind}`", key=key, text=text)
    if entry is None:
        yield from found.entries.values()
    elif entry in found.entries:
        yield found.entries[entry]
    else:
        near = nearest(entry, found.entries)
        wanted = f"write `@{name}.{near}`" if near else f"`policyd check --expand` lists the entries of `@{name}`"
        raise Mistake(f"`@{name}` has no entry `{entry}`", wanted, key=key, text=text)
