"""The value types that all other packages share: effects, paths, commands, actions, decisions.

Rules of this module:

1. Values only. Nothing here opens a file, reads a clock or decides anything.
2. Everything is frozen: an action that was judged is the action that is recorded.
3. "Not known" has a value of its own (`Truth.MAYBE`, `WordKind.UNKNOWN`, `Action.opaque`); no field's default means
   "harmless".
"""

from __future__ import annotations

from policyd.model.decisions import Decision, Judged, RuleRef
from policyd.model.files import BELOW, Filesystem, PathRef, Reach, Workspace
from policyd.model.requests import Action, Agent, Context, Mode, Option, Request, Tool, Url
from policyd.model.shell import (
    CONST,
    GLOB,
    MOVERS,
    UNKNOWN,
    Assignment,
    FileUse,
    Reading,
    SimpleCommand,
    UrlUse,
    Word,
    WordKind,
)
from policyd.model.words import (
    EFFECT_WORDS,
    EFFECTS,
    EMPTY,
    KINDS,
    MEMORY,
    READ_KINDS,
    TABLE,
    WRITE_KINDS,
    Effect,
    Layer,
    Role,
    Source,
    Truth,
)

__all__ = [
    "BELOW",
    "CONST",
    "EFFECTS",
    "EFFECT_WORDS",
    "EMPTY",
    "GLOB",
    "KINDS",
    "MEMORY",
    "MOVERS",
    "READ_KINDS",
    "TABLE",
    "UNKNOWN",
    "WRITE_KINDS",
    "Action",
    "Agent",
    "Assignment",
    "Context",
    "Decision",
    "Effect",
    "FileUse",
    "Filesystem",
    "Judged",
    "Layer",
    "Mode",
    "Option",
    "PathRef",
    "Reach",
    "Reading",
    "Request",
    "Role",
    "RuleRef",
    "SimpleCommand",
    "Source",
    "Tool",
    "Truth",
    "Url",
    "UrlUse",
    "Word",
    "WordKind",
    "Workspace",
]
