"""Seeds: the data the other tests use, as the bytes a target reads."""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from policyd.grants import dump
from tests.asking import GRANTS, NOW, PROJECT
from tests.playbook import Play

TESTS = Path(__file__).parent.parent
DATA = TESTS / "data"


def commands() -> list[bytes]:
    """Every shell text of the command tests."""
    rows = [json.loads(line)["command"] for line in (DATA / "commands/rows.jsonl").read_text("utf-8").splitlines()]
    cases = [case["text"] for case in _table("commands/reading.toml")["case"]]  # type: ignore[attr-defined]
    return _unique([*rows, *cases, *_texts(_table("commands/hostile.toml")), *_texts(_table("commands/harmless.toml"))])


def patterns() -> list[bytes]:
    """Command patterns, each with a command, on two lines."""
    texts = [text for text in _texts(_table("commands/patterns.toml")) if "\n" not in text]
    return _unique([f"{one}\n{two}" for one, two in pairwise(texts)])


def lines() -> list[bytes]:
    """Lines of the wire: recorded ones, and the JSON everybody's parsers are tried with."""
    suite = [json.loads(row) for row in (DATA / "wire/json_suite.jsonl").read_text("utf-8").splitlines()]
    return [*_wire(), *(base64.b64decode(row[1]) for row in suite)]


def policies() -> list[bytes]:
    """Policy files: those that ship, and every mistake."""
    cases = _table("policies/mistakes.toml")["case"]
    texts = [case["text"] for case in cases if isinstance(case.get("text"), str)]  # type: ignore[attr-defined]
    shipped = [path.read_text("utf-8") for path in sorted((TESTS.parent / "policies").rglob("*.toml"))]
    return _unique([*texts, *shipped])


def grants() -> list[bytes]:
    """Grants files as policyd writes them."""
    return [dump(GRANTS[at : at + 2], PROJECT, NOW).encode() for at in range(0, len(GRANTS), 2)]


def hooks() -> list[bytes]:
    """Answers of hooks; `NONCE` and `DIGEST` stand for those of the question."""
    good = {"nonce": "NONCE", "digest": "DIGEST", "decision": "allow"}
    return [
        json.dumps(one).encode()
        for one in (
            good,
            {**good, "option": "proceed_once"},
            {**good, "option": "cancel", "decision": "reject"},
            {**good, "decision": "abstain", "message": "later"},
            {**good, "message": "x", "decision": "reject"},
        )
    ]


def conversations() -> list[bytes]:
    """Conversations: each line begins with `a` or `c`, who says it, or `t`, time that passes."""
    found = []
    for path in sorted((DATA / "captures").glob("*.jsonl")):
        for row in path.read_text("utf-8").splitlines():
            found += [b"\n".join(_said(json.loads(row)["lines"]))]
    for path in sorted(DATA.glob("wire/doors/*.jsonl")):
        found += [b"\n".join(_said([json.loads(row) for row in path.read_text("utf-8").splitlines()]))]
    for path in sorted(DATA.glob("wire/playbooks/*.txt")):
        found += _playbook(path.read_text("utf-8"))
    return [one for one in dict.fromkeys(found) if len(one) < 4096]


def paths() -> list[bytes]:
    """A pattern and a path, on two lines."""
    found = []
    for row in json.loads((DATA / "paths/rows.json").read_text("utf-8")):
        wanted = [*row.get("allow", []), *row.get("deny", []), "**"]
        found += [f"{wanted[0]}\n{path}" for path in row.get("paths", []) if isinstance(path, str)]
    return _unique([str(one) for one in found])


def urls() -> list[bytes]:
    """A pattern and a URL, on two lines."""
    text = (TESTS / "test_urls.py").read_text("utf-8")
    found = [one for one in re.findall(r'"((?:[^"\\\n])+)"', text) if "." in one or ":" in one]
    return _unique(
        [f"docs.python.org/3/**\n{one}" for one in found] + [f"{one}\nhttps://docs.python.org/3/x?y" for one in found]
    )


def _wire() -> Iterator[bytes]:
    for text in conversations()[::7]:
        yield from (line[1:] for line in text.split(b"\n") if line[:1] in b"ac")


def _said(rows: list[dict[str, object]]) -> Iterator[bytes]:
    for row in rows:
        message = row["msg"]
        whole = {"jsonrpc": "2.0", **message} if isinstance(message, dict) else message
        yield str(row["dir"])[:1].encode() + json.dumps(whole, separators=(",", ":")).encode()


def _playbook(text: str) -> Iterator[bytes]:
    for scene in re.split(r"\n\s*\n", text):
        play, found = Play(), []
        for who, said in re.findall(r"^(agent|client)>\s*(.*)", scene, re.MULTILINE):
            try:
                found.append(who[:1].encode() + play._line(who, said))
            except (ValueError, KeyError, TypeError):
                continue
        yield b"\n".join(found)


def _table(name: str) -> dict[str, object]:
    return tomllib.loads((DATA / name).read_text("utf-8"))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _unique(texts: list[str]) -> list[bytes]:
    return list(dict.fromkeys(text.encode("utf-8", "replace")[:4096] for text in texts))
