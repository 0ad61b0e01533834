"""Colour for people at a terminal. What is coloured was made safe to show before; nothing is said by colour alone."""

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
    """Say whether standard output is a terminal whose user did not say no (`NO_COLOR`, `POLICYD_COLOR`)."""
    said = os.environ.get("POLICYD_COLOR", "").lower()
    if said in {"never", "0", "no", "false", "off"} or "NO_COLOR" in os.environ:
        return False
    return said in {"always", "1", "yes", "true", "on"} or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def of_effect(word: str, text: str) -> str:
    """Return `text` in the colour of an effect."""
    return f"{COLOURS[word]}{text}{RESET}"


def painted(text: str) -> str:
    """Colour an explanation: effects by what they are, labels quietly, the first line and ways out plainly."""
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
