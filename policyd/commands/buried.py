"""Programs among the words of another: what a program nobody knows may run, what `docker exec` runs elsewhere.

Rules of this module:

1. Every constant word that may name a program is taken for one, with the words behind it; so is what stands behind the
   first `=` of an option.
2. A word with blanks is read as shell text, cut at every operator; words that only lead to a program are left out.
3. Behind `MOST` words anything may stand. Whatever is found here is suspected, never known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from policyd.commands import programs
from policyd.commands.builtins import BUILTINS
from policyd.commands.rough import pieces
from policyd.commands.wrappers import marks
from policyd.model import Word, WordKind

MOST = 256
ANY: frozenset[str] = frozenset()
_ENGINES = dict.fromkeys(["docker", "podman", "nerdctl", "docker-compose", "crictl", "ctr"], frozenset({"run", "exec"}))
_PACKAGES = dict.fromkeys(["npm", "pnpm", "yarn", "bun"], frozenset({"exec", "dlx", "x"}))
_OTHERS = ["npx", "bunx", "pnpx", "uvx", "pipx", "screen", "gdb", "pwsh", "powershell", "ansible", "sshpass", "autossh"]
ELSEWHERE: Mapping[str, frozenset[str]] = {
    **_ENGINES,
    **_PACKAGES,
    **dict.fromkeys([*_OTHERS, "osascript", "expect", "socat", "nix-shell", "vagrant"], ANY),
    "flatpak": frozenset({"run"}),
    "snap": frozenset({"run"}),
    "launchctl": frozenset({"submit"}),
    "kubectl": frozenset({"exec", "run", "debug"}),
    "oc": frozenset({"exec", "run", "rsh", "debug"}),
    "lxc": frozenset({"exec"}),
    "heroku": frozenset({"run"}),
    "fly": frozenset({"ssh"}),
    "gcloud": frozenset({"ssh"}),
    "nix": frozenset({"develop", "shell", "run"}),
    "op": frozenset({"run"}),
    "tox": frozenset({"--"}),
    "nox": frozenset({"--"}),
    "perf": frozenset({"stat", "record", "trace"}),
    "cmake": frozenset({"-E"}),
    "tmux": frozenset(
        {
            "new",
            "new-session",
            "new-window",
            "neww",
            "split-window",
            "splitw",
            "send-keys",
            "send",
            "respawn-pane",
            "respawn-window",
            "run-shell",
            "run",
            "if-shell",
            "pipe-pane",
        }
    ),
}
"""Programs that run their words, often in another place, with the subcommands that do; none = whatever their words."""
_NAME = re.compile(r"[A-Za-z0-9_.~/@+][\w.~/@+-]*").fullmatch
_TEXT = re.compile(r"[\s;&|]").search
_LEADS = frozenset({"do", "shell", "script", "spawn", "exec", "system", "run", "send"})
_LONGEST = 16_384
Found = tuple[Word, tuple[Word, ...]]


@lru_cache(2048)
def is_stranger(known: frozenset[str]) -> bool:
    """Say whether nobody knows what a program of these names does with its words."""
    return bool(known) and not any(
        name in BUILTINS or programs.find(name) is not None or marks(name) is not None for name in known
    )


def elsewhere(verbs: frozenset[str], words: tuple[Word, ...]) -> Iterator[Found]:
    """Yield what may be a program behind one of the verbs: where the options end is not known."""
    if verbs:
        start = next((index for index, word in enumerate(words) if word.text in verbs), len(words))
        words = words[start + 1 :]
    yield from among(words)


def among(words: tuple[Word, ...]) -> Iterator[Found]:
    """Yield every word that may name a program, with the words behind it."""
    for index, word in enumerate(words[:MOST]):
        if word.kind is not WordKind.CONST:
            continue
        text = word.text
        if text.startswith("-"):
            text = text.partition("=")[2]
        if _NAME(text):
            yield (word if text == word.text else Word(text)), words[index + 1 :]
        elif _TEXT(text):
            yield from _texts(text)
    if len(words) > MOST:
        yield Word("", WordKind.UNKNOWN, "", many=True), ()


def _texts(text: str) -> Iterator[Found]:
    """Yield the head of every piece of what may be shell text."""
    for piece in pieces(text[:_LONGEST]):
        words = piece
        while len(words) > 1 and words[0].text.lower() in _LEADS:
            words = words[1:]
        head, *more = re.split(r"[:=]", words[0].text)[-1].split() or [""]
        yield Word(head), (*map(Word, more), *words[1:])
