"""Hashes come out the same whoever makes them."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from policyd.digest import MANY, sha256


@pytest.mark.parametrize("size", [0, 1, 1000, MANY - 1, MANY, MANY + 1])
def test_few_bytes_and_many_hash_as_in_the_standard_library(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    assert sha256(data[:size]).digest() == hashlib.sha256(data[:size]).digest()
    assert sha256(data[:size]).hexdigest() == hashlib.sha256(data[:size]).hexdigest()


@pytest.mark.parametrize("missing", [(), ("_sha2", "_sha256")])
def test_an_interpreter_without_code_of_its_own_hashes_too(missing: tuple[str, ...]) -> None:
    code = f"import sys; sys.modules |= dict.fromkeys({missing})\nfrom policyd.digest import sha256\n"
    found = subprocess.run(
        [sys.executable, "-c", code + "print(sha256(b'x').hexdigest())"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == hashlib.sha256(b"x").hexdigest()
