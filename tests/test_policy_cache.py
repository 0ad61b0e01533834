"""What is kept of policy files is used only where it fits and is the user's own, and never changes what they mean."""

from __future__ import annotations

import marshal
import os
import re
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd import policy
from policyd.model import Layer
from policyd.policy.policy import Policy
from policyd.storage.filecache import KEPT, FileCache
from tests import random_policies as draw

TEXT = b"""version = 1
name = "kept"
[defaults]
read = "allow"
[sets]
mine = ["git status", "git log **"]
[[rule]]
id = "a"
effect = "allow"
command = ["@mine", "make"]
unless = { agent = "claude" }
match = "execute make"
[[default]]
effect = "ask"
kind = "execute"
"""


class Memory:
    """A cache in memory that counts hits."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.hits = 0

    def get(self, key: str) -> bytes | None:
        found = self.held.get(key)
        self.hits += found is not None
        return found

    def put(self, key: str, data: bytes) -> None:
        self.held[key] = data


def loaded(data: bytes, cache: policy.Cache | None = None, layer: Layer = Layer.USER, version: str = "0.1.0") -> Policy:
    source = policy.PolicySource("/p.toml", data, layer)
    return policy.load([source], home="/home/u", tmpdir="/tmp", version=version, cache=cache)


def said(found: Policy) -> str:
    """Everything a policy says, as text."""
    rules = [*found.rules, *(rule for layer in found.defaults for rule in layer.rules)]
    rows = [
        (rule.ref, rule.effect, rule.rank, rule.resource, rule.conditions, rule.unless, rule.void, rule.number)
        for rule in rules
    ]
    entries = [sorted(layer.entries.items()) for layer in found.defaults]
    asked = [(e.text, e.table, e.wanted, e.line) for e in found.examples]
    text = repr((rows, [dict(r.table) for r in rules], entries, asked, found.lock, found.names, found.revision))
    return re.sub(r" at 0x[0-9a-f]+", "", text)  # of functions made of what was written


def test_a_kept_reading_says_the_same_and_is_used() -> None:
    cache = Memory()
    first = loaded(TEXT, cache)
    assert len(cache.held) == 1
    again = loaded(TEXT, cache)
    assert cache.hits == 1
    assert said(again) == said(first) == said(loaded(TEXT))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**48))
def test_no_policy_changes_by_being_kept(seed: int) -> None:
    cache = Memory()
    sources = draw.sources(draw.files(Random(seed)))  # noqa: S311 - not for secrets
    texts = [said(policy.load(sources, home="/home/u", tmpdir="/tmp", version="0.1.0", cache=cache)) for _ in range(2)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "wrong",
    [b'match = "git push"', b"not_match = 1", b"match = { kind = 1 }", b'cwd = "src"\npath = "a"', b"until = 1"],
)
def test_a_file_with_a_mistake_is_refused_each_time(wrong: bytes) -> None:
    cache = Memory()
    for _ in range(2):
        with pytest.raises(policy.PolicyError):
            loaded(b'version = 1\n[[rule]]\neffect = "deny"\ncommand = "git push"\n' + wrong + b"\n", cache)


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 40, b"\xff" * 4000], ids=["empty", "short", "zeros", "noise"])
def test_what_is_damaged_is_read_anew(data: bytes) -> None:
    cache = Memory()
    first = loaded(TEXT, cache)
    (name, whole), foreign = next(iter(cache.held.items())), marshal.dumps(1)
    vouched = sha256(bytes.fromhex(name) + foreign).digest() + foreign
    for bad in (data, whole[:-1], whole[:40] + b"?" + whole[41:], whole + b"?", vouched):
        cache.held = dict.fromkeys(cache.held, bad)
        assert said(loaded(TEXT, cache)) == said(first)


def test_a_reading_of_other_bytes_or_another_version_does_not_fit() -> None:
    cache = Memory()
    loaded(TEXT, cache)
    other = TEXT.replace(b'effect = "allow"\ncommand', b'effect = "deny"\ncommand')
    (key, data) = next(iter(cache.held.items()))
    loaded(other, cache)
    cache.held = dict.fromkeys(cache.held, data)
    assert loaded(other, cache).rules[0].effect.word == "deny"
    assert key in cache.held
    before = len(cache.held)
    loaded(TEXT, cache, version="0.1.1")
    assert len(cache.held) == before + 1


def test_nothing_of_the_managed_layer_is_kept_or_recalled() -> None:
    cache = Memory()
    loaded(TEXT, cache, Layer.MANAGED)
    assert cache.held == {}


@pytest.mark.parametrize("text", [b'[[rule]]\neffect = "maybe"\n', b'[[rule]]\neffect = "allow"\npath = "a"\n', b"x"])
def test_a_file_with_a_mistake_is_not_kept(text: bytes) -> None:
    cache = Memory()
    for _ in range(2):
        with pytest.raises(policy.PolicyError):
            loaded(text, cache)
    assert cache.held == {}


def test_a_pattern_that_cannot_be_meant_is_told_each_time() -> None:
    cache = Memory()
    told = []
    for _ in range(2):
        with pytest.raises(policy.PolicyError) as caught:
            loaded(b'[[rule]]\nid = "x"\neffect = "deny"\ncommand = "a \'b"\n', cache)
        told.append([str(one) for one in caught.value.diagnostics])
    assert told[0] == told[1] != []


# ---- on disk ---------------------------------------------------------------------------------------


def test_a_file_comes_back_from_a_directory_of_the_users_own(tmp_path: Path) -> None:
    readings = FileCache(str(tmp_path / "a" / "b"))
    assert readings.get("k") is None
    readings.put("k", b"data")
    assert readings.get("k") == b"data"
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755, 0o711])
def test_a_directory_others_may_enter_counts_as_empty(tmp_path: Path, mode: int) -> None:
    readings = FileCache(str(tmp_path / "c"))
    readings.put("k", b"data")
    (tmp_path / "c").chmod(mode)
    assert readings.get("k") is None


@pytest.mark.parametrize("mode", [0o660, 0o606, 0o644])
def test_a_file_others_may_reach_counts_as_nothing(tmp_path: Path, mode: int) -> None:
    readings = FileCache(str(tmp_path / "c"))
    readings.put("k", b"data")
    next((tmp_path / "c").iterdir()).chmod(mode)
    assert readings.get("k") is None


def test_no_link_is_followed_and_nothing_blocks(tmp_path: Path) -> None:
    readings = FileCache(str(tmp_path / "c"))
    readings.put("k", b"data")
    kept = next((tmp_path / "c").iterdir())
    kept.rename(tmp_path / "moved")
    kept.symlink_to(tmp_path / "moved")
    assert readings.get("k") is None
    kept.unlink()
    os.mkfifo(kept, 0o600)
    assert readings.get("k") is None
    (tmp_path / "link").symlink_to(tmp_path / "c")
    assert FileCache(str(tmp_path / "link")).get("k") is None


def test_only_the_newest_stay(tmp_path: Path) -> None:
    readings = FileCache(str(tmp_path / "c"))
    for number in range(KEPT + 5):
        readings.put(f"k{number}", b"data")
    assert len(list((tmp_path / "c").iterdir())) == KEPT
    assert readings.get(f"k{KEPT + 4}") == b"data"


def test_what_cannot_be_kept_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    FileCache(str(tmp_path / "file" / "below")).put("k", b"data")
