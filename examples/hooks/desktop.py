#!/usr/bin/env python3
"""A prompt hook of policyd that asks with a desktop notification (Linux) or a dialog (macOS).

    prompt = ["command:/absolute/path/of/desktop.py", "client"]

Copy it to a place only you can write, and make it executable. On Linux it needs `notify-send` (libnotify 0.8 or newer)
and a notification service that shows buttons. A notification is small: what does not fit is counted, and then only
"Reject" and "Show it in the client" are offered, which hands the question to the next step of the chain.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

LONGEST = 600
KINDS = {"allow_once": "allow", "allow_always": "allow", "reject_once": "reject", "reject_always": "reject"}
LATER = {"id": "later", "name": "Show it in the client", "kind": "abstain"}
DIALOG = """on run argv
  set names to items 3 thru -1 of argv
  set picked to choose from list names with title (item 1 of argv) with prompt (item 2 of argv)
  if picked is false then return ""
  return item 1 of picked
end run"""


def main() -> None:
    question = json.load(sys.stdin)
    text = "\n".join([question["title"], *question["actions"], *diffs(question), f"because {question['reason']}"])
    options = [one for one in question["options"] if one["kind"] in KINDS]
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n… {len(text) - LONGEST} characters more …\n{text[-LONGEST // 2 :]}"
        options = [*(one for one in options if KINDS[one["kind"]] == "reject"), LATER]
    title = f"{question['agent']} asks in {question['project']}"
    chosen = (dialog if sys.platform == "darwin" else notification)(title, text, options, question["seconds"])
    if chosen is None:
        answer(question, "abstain", message="no notification can be shown")
    elif not chosen:
        answer(question, "reject", message="the notification was closed")
    elif chosen["kind"] == "abstain":
        answer(question, "abstain", message="too long for a notification")
    else:
        answer(question, KINDS[chosen["kind"]], option=chosen["id"])


def diffs(question: dict) -> list[str]:
    return [f"{detail['name']}\n{detail['text']}" for detail in question["details"]]


def notification(title: str, text: str, options: list[dict], seconds: float) -> dict | None:
    """Show a notification with one button an option; {} = closed, None = cannot be shown."""
    program = shutil.which("notify-send")
    if program is None:
        return None
    buttons = [f"--action={number}={option['name']}" for number, option in enumerate(options)]
    words = [
        program,
        "--wait",
        "--urgency=critical",
        "--app-name=policyd",
        *buttons,
        "--",
        escaped(title),
        escaped(text),
    ]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=max(1.0, seconds - 1))
    except subprocess.TimeoutExpired:
        return {}
    number = said.stdout.strip()
    if said.returncode != 0:
        return None
    return options[int(number)] if number.isascii() and number.isdigit() and int(number) < len(options) else {}


def dialog(title: str, text: str, options: list[dict], _: float) -> dict | None:
    """Show a list to choose from; {} = cancelled, None = cannot be shown."""
    words = ["/usr/bin/osascript", "-e", DIALOG, title, text, *(option["name"] for option in options)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        return None
    name = said.stdout.rstrip("\n")
    return next((option for option in options if option["name"] == name), {})


def escaped(text: str) -> str:
    """Notification bodies may be read as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def answer(question: dict, decision: str, **more: str) -> None:
    print(json.dumps({"nonce": question["nonce"], "digest": question["digest"], "decision": decision, **more}))


if __name__ == "__main__":
    main()
