"""The shipped units are valid and as closed as promised."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

UNITS = Path(__file__).parent.parent / "systemd"
SYSTEM = ["policyd.service", "policyd.socket"]
USER = ["user/policyd.service", "user/policyd.socket"]


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("systemd-analyze")
    assert tool, "systemd-analyze is missing: install Debian's `systemd`, as .ci/run does"
    with tempfile.TemporaryDirectory() as runtime:
        places = {**os.environ, "XDG_RUNTIME_DIR": runtime}
        return subprocess.run([tool, *words], capture_output=True, text=True, timeout=60, check=False, env=places)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units with a program that exists, since verify looks for it."""
    program = tmp_path / "policyd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in SYSTEM + USER:
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_text((UNITS / name).read_text().replace("/usr/bin/policyd", str(program)))
    return tmp_path


@pytest.mark.parametrize(("scope", "names"), [("--system", SYSTEM), ("--user", USER)])
def test_systemd_finds_nothing_wrong_with_the_units(installed: Path, scope: str, names: list[str]) -> None:
    said = analyze("verify", scope, "--man=no", *(str(installed / name) for name in names))
    ours = [line for line in said.stderr.splitlines() if "policyd" in line and str(installed) in line]
    assert ours == []
    assert "Failed to initialize manager" not in said.stderr


@pytest.mark.parametrize(("scope", "name", "tenths"), [("--system", SYSTEM[0], 6), ("--user", USER[0], 60)])
def test_exposure_stays_under_its_gate(installed: Path, scope: str, name: str, tenths: int) -> None:
    words = ("security", scope, "--offline=true", f"--threshold={tenths}", "--no-pager", str(installed / name))
    said = analyze(*words)
    assert said.returncode == 0, said.stdout[-600:] + said.stderr


HOMES = (UNITS / "policyd.service.d/homes.conf").read_text()


@pytest.mark.parametrize(
    ("text", "tenths"),
    [(HOMES, 6), (HOMES.replace("\n#Cap", "\nCap").replace("\n#Amb", "\nAmb"), 8)],
    ids=["homes are read", "closed homes are read"],
)
def test_exposure_stays_under_its_gate_where_homes_are_read(installed: Path, text: str, tenths: int) -> None:
    places = installed / "policyd.service.d"
    places.mkdir()
    (places / "homes.conf").write_text(text)
    unit = str(installed / "policyd.service")
    words = ("security", "--system", "--offline=true", "--json=short", "--no-pager", unit)
    rows = {row["name"]: row for row in json.loads(analyze(*words).stdout)}
    assert "read-only" in rows["ProtectHome="]["description"], "the drop-in was not read"
    said = analyze("security", "--system", "--offline=true", f"--threshold={tenths}", "--no-pager", unit)
    assert said.returncode == 0, said.stdout[-600:] + said.stderr
    verified = analyze("verify", "--system", "--man=no", unit)
    assert [line for line in verified.stderr.splitlines() if str(installed) in line] == []


def test_every_drop_in_says_where_it_belongs() -> None:
    for place in (UNITS / "policyd.service.d").iterdir():
        assert f"/etc/systemd/system/policyd.service.d/{place.name}" in place.read_text()


def test_the_way_to_install_them_names_every_file_and_none_that_is_not_there() -> None:
    told = (UNITS / "README.md").read_text()
    named = {word.removeprefix(" systemd/") for word in re.findall(r" systemd/[\w./-]+\.(?:conf|service|socket)", told)}
    there = {str(path.relative_to(UNITS)) for path in UNITS.rglob("*.*") if path.is_file() and path.suffix != ".md"}
    assert named | {"policyd.service.d/notify-reload.conf"} == there


def test_peers_keep_their_uid() -> None:
    """With PrivateUsers=yes every peer would be uid 65534."""
    for name in [SYSTEM[0], USER[0]]:
        lines = (UNITS / name).read_text().splitlines()
        assert not [line for line in lines if line.strip().lower().startswith("privateusers")]


def test_the_sockets_directory_outlives_the_service() -> None:
    service = (UNITS / "policyd.service").read_text()
    listen = re.search(r"ListenStream=/run/(\w+)/", (UNITS / "policyd.socket").read_text())
    assert listen
    assert f"RuntimeDirectory={listen[1]}\n" not in service


def test_every_hardening_option_of_the_system_unit_is_on() -> None:
    said = analyze(
        "security", "--system", "--offline=true", "--json=short", "--no-pager", str(UNITS / "policyd.service")
    )
    rows = {row["name"]: row for row in json.loads(said.stdout)}
    for option in ("ProtectSystem=", "NoNewPrivileges=", "MemoryDenyWriteExecute=", "PrivateNetwork=", "UMask="):
        assert rows[option]["set"] is True, option
