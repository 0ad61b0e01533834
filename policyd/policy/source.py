"""A policy file before it is parsed."""

from __future__ import annotations

from msgspec import Struct

from policyd.model import Layer


class PolicySource(Struct, frozen=True):
    """The bytes of a policy file, and where they come from."""

    name: str
    """Its path, as messages show it."""
    data: bytes
    layer: Layer
    trusted: bool = False
    """Of a project file: a person trusted exactly these bytes. Ignored in other layers."""
    root: str | None = None
    """Of a project file: the workspace root it lies in."""

    @property
    def rank(self) -> Layer:
        """The layer it counts as: a trusted project file counts as the user's."""
        return Layer.USER if self.layer is Layer.PROJECT and self.trusted else self.layer
