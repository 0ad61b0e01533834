"""The starter policies that ship, and the purpose of each."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

SCHEMA = "policy.schema.json"
SCHEMA_HERE, SCHEMA_ABOVE = f"#:schema ./{SCHEMA}", f"#:schema ../{SCHEMA}"
"""Schema directives for editors: the file lies beside the shipped policies, but above a user's own directory."""
PRESETS = {
    "default": "a developer at a screen",
    "read-only": "look, never touch",
    "ci": "headless: nobody is there to click",
    "docs-only": "writes documentation, nothing else",
    "infra": "plans freely, applies with a person",
}


def folder() -> Path:
    """Return the directory of the starter policies: in the installed package, else in the checkout."""
    installed = Path(str(files("policyd"))) / "presets"
    return installed if installed.is_dir() else Path(str(files("policyd"))).parent / "policies"


def text(name: str) -> str:
    """Return the text of a starter policy."""
    return (folder() / f"{name}.toml").read_text(encoding="utf-8")
