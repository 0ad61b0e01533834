"""A policy file as it was found: bytes, and where they come from."""

from __future__ import annotations

from msgspec import Struct

from policyd.model import Layer


class PolicySource(Struct, frozen=True):
    """One policy file as it was found: bytes and where they come from."""

    name: str
    """Its path, as messages show it."""
    data: bytes
    layer: Layer
    trusted: bool = False
    """Of a project file: a person trusted exactly these bytes. Without meaning elsewhere."""
    root: str | None = None
    """Of a project file: the workspace root it lies in."""

    @property
    def rank(self) -> Layer:
        """The layer it counts as: trusted, a project ranks as the user."""
        return Layer.USER if self.layer is Layer.PROJECT and self.trusted else self.layer
