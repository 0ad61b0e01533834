"""`policyd schema`: JSON Schemas, so that editors complete and check TOML as it is typed.

`policy` (the default) is a policy file, `settings` a `policyd.toml`, `hook` what a prompt program reads and answers.
A schema checks shapes only; `policyd check` checks everything.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files

from policyd.cli.saying import say_verbatim

NAMES = ("policy", "settings", "hook")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd schema`."""
    parser.add_argument("name", nargs="?", default="policy", choices=NAMES, help="which one (default: policy)")


def run(args: argparse.Namespace) -> int:
    """Print a schema; return the exit code."""
    say_verbatim(json.dumps(schema(args.name), indent=2, ensure_ascii=False) + "\n")
    return 0


def schema(name: str) -> dict[str, object]:
    """Return the schema of this name."""
    if name == "policy":
        from policyd.policy.file import schema as policy_schema

        return policy_schema()
    if name == "settings":
        from policyd.storage.settings_file import schema as settings_schema

        return settings_schema()
    text = files("policyd.prompts").joinpath("hook.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
