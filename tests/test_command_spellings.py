"""Further spellings of commands under the policies of the intents: none harmful allowed, none harmless denied."""

from __future__ import annotations

from typing import Any

import pytest

from policyd.model import Source
from tests.commandrows import CWD, decide, table

INTENTS: dict[str, Any] = table("intents.toml")
SPELLINGS: dict[str, dict[str, list[str]]] = table("spellings.toml")
SHELLS = {"ZSH": "zsh", "PWSH": "powershell", "CMDEXE": "cmd"}
PROJECT = {"PWSH": "C:\\proj\\app", "CMDEXE": "C:\\proj\\app"}
FITS = {
    "allow": {"allow"},
    "quiet": {"allow", "ask"},
    "stop": {"ask", "deny"},
    "deny": {"deny"},
    "hold": {"deny", "ask"},
}


@pytest.mark.parametrize(("intent", "kind"), [(name, kind) for name, kinds in SPELLINGS.items() for kind in kinds])
def test_every_spelling_gets_what_is_meant(intent: str, kind: str) -> None:
    policy, shell = INTENTS[intent]["policy"], SHELLS.get(intent, "bash")
    wrong = []
    for command in SPELLINGS[intent][kind]:
        decision = decide(policy, command, shell=shell, cwd=PROJECT.get(intent, CWD))
        if decision.effect.word not in FITS[kind] or decision.source is Source.ERROR:
            wrong.append((command, decision.effect.word))
    assert wrong == []
