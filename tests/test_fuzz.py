"""Fuzzing: a few seconds a target on every run; for longer runs see `tests/fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import seeds, shell, talk
from tests.fuzz.law import LawBroken, Target, broken
from tests.fuzz.run import keeper, mutate
from tests.fuzz.targets import TARGETS

SECONDS = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_break_a_law(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", str(SECONDS), "--crashes", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_seeds_that_hold(name: str) -> None:
    seeds = TARGETS[name].seeds()
    assert len(set(seeds)) >= 5
    for data in seeds[:: max(1, len(seeds) // 10)]:
        assert broken(TARGETS[name], data, slack=5.0) is None, data


def test_what_breaks_a_law_is_found_shortened_and_kept(tmp_path: Path) -> None:
    def check(data: bytes) -> None:
        if b"!" in data:
            raise LawBroken("a mark")

    target = Target(check, lambda: [b"some words", b"and others"], (b"!",))
    assert mutate(target, keeper(target, tmp_path, "mutate"), 0.5, seed=1) > 2
    (text,) = tmp_path.glob("*.txt")
    assert text.with_suffix("").read_bytes() == b"!"
    assert "LawBroken" in text.read_text("utf-8")


def test_the_laws_of_conversations_notice_an_allow() -> None:
    def noticed(data: bytes) -> str:
        try:
            talk.say(data, talk.policy("allow"))
        except LawBroken as error:
            return str(error).partition(":")[0]
        return ""

    found = [noticed(data) for data in seeds.conversations()[::5]]
    assert found.count("an allow is answered") > len(found) / 3


@pytest.mark.parametrize("place", ['"content":[{"type":{}}]', '"status":{}', '"kind":[]', '"locations":[{"path":{}}]'])
def test_a_field_of_another_type_is_no_failure(place: str) -> None:
    call = f'"toolCall":{{"toolCallId":"c",{place}}}'
    asks = f'a{{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{{"sessionId":"s",{call}}}}}'
    update = f'{{"sessionUpdate":"tool_call_update","toolCallId":"c",{place}}}'
    tells = f'a{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}'
    talk.check(f"{asks}\n{tells}".encode())


def test_the_laws_of_shell_text_notice_an_rm() -> None:
    with pytest.raises(LawBroken, match="is allowed"):
        shell.check_under(shell.POLICY.replace('"deny"', '"allow"'), b"ls; rm x")
