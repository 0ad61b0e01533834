#!/usr/bin/env python3
"""A prompt hook of policyd that asks on the terminal policyd was started from.

    prompt = ["command:/absolute/path/of/terminal.py"]

Copy it to a place only you can write, and make it executable. It opens /dev/tty, so it works while the client speaks
over policyd's standard input and output. Without a terminal it abstains. A hook runs in a process group of its own:
to be allowed to read from the terminal, this one becomes the foreground group, and gives that back.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import termios
from collections.abc import Iterator

KINDS = {"allow_once": "allow", "allow_always": "allow", "reject_once": "reject", "reject_always": "reject"}


def main() -> None:
    question = json.load(sys.stdin)
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        answer(question, "abstain", message="there is no terminal")
        return
    with foreground(terminal), os.fdopen(terminal, "r+b", buffering=0) as tty:
        tty.write(shown(question).encode())
        ask(question, tty.fileno())


@contextlib.contextmanager
def foreground(terminal: int) -> Iterator[None]:
    """Be the terminal's foreground group while asking."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    before = os.tcgetpgrp(terminal)
    os.tcsetpgrp(terminal, os.getpgrp())
    termios.tcflush(terminal, termios.TCIFLUSH)  # what was typed before the question was seen is no answer

    def give_back(*_: object) -> None:
        os.tcsetpgrp(terminal, before)
        os._exit(1)

    signal.signal(signal.SIGTERM, give_back)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY), before)


def shown(question: dict) -> str:
    """Everything of the question; policyd has made all of it safe to display."""
    lines = ["", f"── {question['agent']} asks, in {question['cwd']} ──", question["title"]]
    lines += [f"  {action}" for action in question["actions"]]
    for detail in question["details"]:
        lines += [f"  {detail['name']}".rstrip(), *(f"  │ {line}" for line in detail["text"].split("\n"))]
    lines += [f"because {question['reason']}"]
    lines += [f"  {number}) {option['name']}" for number, option in enumerate(question["options"], 1)]
    return "\r\n".join([*lines, "number, or Enter to reject: "])


def ask(question: dict, terminal: int) -> None:
    """Read a line; only the number of an option is a choice."""
    typed = os.read(terminal, 1024).decode(errors="replace").strip()
    options = question["options"]
    chosen = options[int(typed) - 1] if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(options) else None
    if chosen is None or chosen["kind"] not in KINDS:
        answer(question, "reject", message="rejected at the terminal")
    else:
        answer(question, KINDS[chosen["kind"]], option=chosen["id"])


def answer(question: dict, decision: str, **more: str) -> None:
    print(json.dumps({"nonce": question["nonce"], "digest": question["digest"], "decision": decision, **more}))


if __name__ == "__main__":
    main()
