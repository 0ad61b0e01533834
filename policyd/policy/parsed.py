"""A parsed policy file: its blocks, their line numbers, and every mistake found in it."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from policyd.policy.blocks import Table, as_list, heads, plain_resource
from policyd.policy.errors import Diagnostic, Mistake
from policyd.policy.source import PolicySource

if TYPE_CHECKING:
    from policyd.policy.file import PolicyFile
    from policyd.policy.lines import Locator

FILE: dict[str, Any] = {"name": None, "revision": None, "defaults": {}, "sets": {}, "lock": None}


def plain_file(raw: Table) -> PolicyFile:
    """Return a well-formed file without its blocks, in place of a `PolicyFile`: `pydantic` is not needed for it."""
    values = {**FILE, **{key: raw[key] for key in FILE if key in raw}}
    values["sets"] = {name: as_list(texts) for name, texts in values["sets"].items()}
    if values["lock"] is not None:
        values["lock"] = SimpleNamespace(**{"refuse": [], "settings": [], **values["lock"]})
    return cast("PolicyFile", SimpleNamespace(**values))


class Parsed(Struct, dict=True):
    """One file, parsed as far as possible."""

    source: PolicySource
    text: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    file: PolicyFile = field(default_factory=lambda: plain_file({}))
    rules: list[tuple[int, Table]] = field(default_factory=list)
    """Well-formed `[[rule]]` blocks with their number in the file."""
    defaults: list[tuple[int, Table]] = field(default_factory=list)
    partial: set[tuple[str, int]] = field(default_factory=set)
    """Blocks from which malformed keys were left out: only the rest of them is checked."""
    checked: bool = False
    """Exactly these bytes were found free of mistakes before."""
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @cached_property
    def lines(self) -> Locator:
        """Finds lines; built when first needed."""
        from policyd.policy.lines import Locator

        return Locator(self.text)

    @cached_property
    def headers(self) -> dict[str, list[int]]:
        """Lines of the `[[rule]]` and `[[default]]` headers."""
        from policyd.policy.lines import headers

        return headers(self.text)

    @cached_property
    def default_keys(self) -> dict[str, int]:
        """Lines of the keys of `[defaults]`."""
        from policyd.policy.lines import default_keys

        return default_keys(self.text)

    @cached_property
    def resources(self) -> tuple[list[str | None], list[str | None]]:
        """The resource of each block of `rules` and of `defaults`, None for one that is not plain."""
        rules = [self.resource("rule", *one) for one in self.rules]
        return rules, [self.resource("default", *one) for one in self.defaults]

    @cached_property
    def starts(self) -> list[str]:
        """The literal heads of the paths of plain blocks."""
        pairs = ((self.rules, self.resources[0]), (self.defaults, self.resources[1]))
        found = (zip(blocks, resources, strict=True) for blocks, resources in pairs)
        return list(dict.fromkeys(head for each in found for (_, block), kind in each if kind for head in heads(block)))

    def resource(self, name: str, number: int, block: Table) -> str | None:
        """Return the resource of a plain block, None for any other."""
        return None if (name, number) in self.partial else plain_resource(block)

    def line(self, name: str, number: int) -> int:
        """Return the line a block begins at."""
        found = self.headers[name]
        return found[number] if number < len(found) else self.lines.find(name, number)

    def report(self, mistake: Mistake, name: str, number: int | None = None) -> None:
        """Add a mistake in the `number`-th block `name`, or at the top-level key `name`."""
        if number is None:
            line = self.lines.top(name)
            rule = ""
        else:
            line = self.lines.find(name, number, mistake.key, mistake.text)
            rule = block_id(self.raw, name, number)
        self.diagnostics.append(
            Diagnostic(self.source.name, line, rule, mistake.found, mistake.write, self.source.layer)
        )


def block_id(raw: dict[str, Any], name: str, number: int) -> str:
    """Return the id a block claims, empty where it claims none."""
    blocks = raw.get(name)
    block = blocks[number] if isinstance(blocks, list) and number < len(blocks) else None
    found = block.get("id") if isinstance(block, dict) else None
    return found if isinstance(found, str) else ""
