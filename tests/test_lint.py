"""The warnings of `policyd check`: each mistake in a policy that loads is found, in its line, and no other."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from policyd.cli.findings import Finding
from policyd.cli.lint import lint
from policyd.cli.trials.covering import Coverer
from policyd.cli.trials.standins import StandIns
from policyd.model import Layer, Truth
from policyd.policy import PolicySource, load
from tests import random_policies as draw

HERE = Path(__file__).parent
CASES = tomllib.loads((HERE / "data/mistakes/warnings.toml").read_text())["case"]
NOW = datetime(2026, 11, 29, tzinfo=UTC)
HOME = "/home/dev"
LAYERS = {"managed": Layer.MANAGED, "text": Layer.USER, "project": Layer.PROJECT}


def findings(texts: dict[str, str], cwd: str = "") -> list[Finding]:
    """Lint files given by layer: `managed`, `text` (the user's), `project`."""
    sources = [
        PolicySource(f"{'user' if key == 'text' else key}.toml", text.encode(), LAYERS[key], root="/w")
        for key, text in texts.items()
    ]
    policy = load(sources, home=HOME, tmpdir="/tmp", version="0.1.0")
    return lint(policy, sources, home=HOME, tmpdir="/tmp", now=NOW, cwd=cwd)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_mistake_is_found_in_its_line(case: dict[str, Any], tmp_path: Path) -> None:
    for name in case.get("files", ()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    texts = {key: "\n" + case[key].removeprefix("\n") for key in LAYERS if key in case}
    said = [f"{f.at.line}: {f.name}: {f.at.found}; {f.at.write}" for f in findings(texts, str(tmp_path))]
    assert len(said) == len(case["said"]), said
    for got, wanted in zip(said, case["said"], strict=True):
        line, name, part = wanted.split(": ", 2)
        assert got.startswith(f"{line}: {name}: "), said
        assert part in got, said


# ---- at random -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_what_is_said_to_cover_holds_wherever_the_other_does(first: int) -> None:
    pairs = 0
    for seed in range(first, first + 40):
        rng = Random(seed)  # noqa: S311
        rules = draw.load([(1, True, {"version": 1, "rule": [draw.rule(rng) for _ in range(12)]})]).rules
        coverer = Coverer(StandIns("/home/u"), draw.NOW, exact=True)
        for wide, narrow in permutations(rules, 2):
            stand_ins = coverer.stand_ins.of(narrow)
            if not stand_ins or not all(coverer.covers(wide, narrow, one) for one in stand_ins):
                continue
            pairs += 1
            for _ in range(30):
                action, context = draw.action(rng), draw.context(rng)
                if narrow.holds(action, context) is Truth.YES:
                    assert wide.holds(action, context) is Truth.YES, (dict(wide.table), dict(narrow.table), action)
    assert pairs


def test_a_rule_for_one_port_does_not_cover_one_for_every_port() -> None:
    urls = ("http://a.test", "http://a.test:*")
    table = {"version": 1, "rule": [{"effect": "allow", "url": url} for url in urls]}
    one, every = draw.load([(1, True, table)]).rules
    coverer = Coverer(StandIns("/home/u"), draw.NOW, exact=True)
    for wide, narrow, wanted in ((one, every, False), (every, one, True)):
        assert all(coverer.covers(wide, narrow, each) for each in coverer.stand_ins.of(narrow) or ()) is wanted


def test_any_policy_that_loads_can_be_linted() -> None:
    for seed in range(60):
        files = draw.sources(draw.files(Random(seed)))  # noqa: S311
        policy = load(files, home=HOME, tmpdir="/tmp", version="0.1.0")
        for finding in lint(policy, files, home=HOME, tmpdir="/tmp", now=NOW):
            assert finding.at.line > 0, finding
            assert finding.at.found and finding.at.write, finding
