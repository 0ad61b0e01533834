"""Colour at a terminal. The text was made safe to show before; colour alone carries no information."""

from __future__ import annotations

import os
import re
import sys

RESET = "\x1b[0m"
COLOURS = {"allow": "\x1b[32m", "ask": "\x1b[33m", "deny": "\x1b[31m"}
QUIET, STRONG, HINT = "\x1b[2m", "\x1b[1m", "\x1b[36m"
EFFECT = re.compile(r"^( +(?:\d+\.|decision) +|record [^:]*: [^:]*: )(allow|ask|deny)\b")
LABEL = re.compile(r"^( {2}(?:agent|call|decision|answer|way out) | {11}(?:found in|runs in|nearly|default|rule) )")


def wanted() -> bool:
    """Say whether standard output is a terminal and colour is not switched off (`NO_COLOR`, `POLICYD_COLOR`)."""
    setting = os.environ.get("POLICYD_COLOR", "").lower()
    if setting in {"never", "0", "no", "false", "off"} or "NO_COLOR" in os.environ:
        return False
    return setting in {"always", "1", "yes", "true", "on"} or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def of_effect(word: str, text: str) -> str:
    """Return `text` in the colour of an effect."""
    return f"{COLOURS[word]}{text}{RESET}"


def painted(text: str) -> str:
    """Colour an explanation: effects by their kind, labels dim, the first line bold, ways out highlighted."""
    lines = text.split("\n")
    return "\n".join(line_painted(line, first=number == 0) for number, line in enumerate(lines))


def line_painted(line: str, *, first: bool) -> str:
    """Colour one line."""
    if match := EFFECT.match(line):
        lead, word = match[1], match[2]
        return f"{lead}{COLOURS[word]}{STRONG}{word}{RESET}{line[match.end() :]}"
    if first and line:
        return f"{STRONG}{line}{RESET}"
    if line.startswith("  way out "):
        return f"{HINT}{line}{RESET}"
    if match := LABEL.match(line):
        return f"{QUIET}{match[1]}{RESET}{line[match.end() :]}"
    return line
