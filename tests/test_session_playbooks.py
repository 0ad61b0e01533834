"""Every road through the enforcement, as conversations: `tests/data/wire/playbooks/*.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playbook import play

FOLDER = Path(__file__).parent / "data" / "wire" / "playbooks"
PLAYBOOKS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("blocks", [False, True], ids=["frames", "blocks"])
@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_conversation_goes_as_written(path: Path, *, blocks: bool) -> None:
    written = path.read_text("utf-8").strip()
    assert play(written, blocks=blocks) == written


def test_there_is_a_playbook_for_each_road() -> None:
    assert len(PLAYBOOKS) >= 20
