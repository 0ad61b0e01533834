"""How commands end: 0 done and yes, 1 done and no, 2 not done; and why, on stderr, after the command's name."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from policyd.cli import loading, main, presence

ROOT = Path(__file__).parent.parent
OPTION = {"optionId": "y", "name": "Allow", "kind": "allow_once"}
CALL = {"toolCallId": "1", "kind": "execute", "rawInput": {"command": "git status"}}
REQUEST = json.dumps({"sessionId": "s", "toolCall": CALL, "options": [OPTION]})
UPDATE = json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": {}}})
POLICY = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = "git status"\n'
RECORD = {"schema": 1, "seq": 7, "id": "5f3a", "event": "reload", "time": "2026-11-30T00:00:00Z"}

CODES = """
# nothing there: a list may be empty
0  grants list                                  nothing is remembered
0  grants list --all --json
0  grants export                                version = 1
0  grants revoke --all                          nothing to revoke
0  grants prune                                 0 grants left out
0  prompts list                                 no question waits
0  prompts list --json
0  audit show --log LOG --agent nobody
0  audit stats --log LOG --agent nobody         0 decisions
0  audit replay --log LOG                       0 decisions
0  audit suggest --log LOG                      nothing to suggest
0  audit suggest --unused --log LOG             0 allow rules
0  audit show --log MINE                        skipped 4 lines that hold no record
0  audit verify --log EMPTY                     holds no record
0  audit stats --log MINE                       skipped 4 lines that hold no record
0  diff --requests 0 MINE OTHER                 not proved: none was tried
0  check                                        no policy file was found
0  init                                         starter policies
0  schema settings                              "agent_mode"
0  schema hook                                  "nonce"

# the answer is no: what is named by its id is not there, or there is something to mend
1  grants show g-1234                           no grant `g-1234`
1  grants show g                                at least 4 letters
1  grants revoke g-1234                         no grant `g-1234`
1  grants revoke --everywhere g-1234            no grant `g-1234`
1  grants export g-1234                         no grant `g-1234`
1  grants promote g-1234                        no grant `g-1234`
1  prompts answer 5f1c20aa allow                no question `5f1c20aa` waits
1  explain --record 99 --log LOG                has no record `99`
1  trust --remove                               it was not trusted
1  trust --show PROJECT                         not trusted
1  status --policy gone.toml                    a proxy would not start
1  doctor --policy gone.toml                    to mend: 1
1  doctor --agent nobody                        `nobody` has no profile

# it was not done: what is named as a file or a choice is not there
2  audit show                                   nothing was recorded there yet
2  audit follow                                 nothing was recorded there yet
2  audit verify                                 nothing was recorded there yet
2  audit stats --log gone                       nothing was recorded there yet
2  audit verify --checkpoints gone              gone: No such file
2  audit verify --log LOG --checkpoints MINE    holds no checkpoint of
2  audit show -n -1                             `-1` is no number of records
2  audit show -n 9999999999                     is no number of records
2  audit suggest --log LOG --min 0              is no number of answers
2  explain --record 7 --log LOG                 is no decision but `reload`
2  explain --record 7                           nothing was recorded there yet
2  explain gone                                 gone: No such file
2  explain --kind read --input n                `n` is no argument; write KEY=VALUE
2  explain --kind read --input =1               `=1` is no argument; write KEY=VALUE
2  explain --kind reed --path x                 unknown kind `reed`; write `read`
2  explain --path x --command y                 `path` and `command` in one example
2  explain --kind execute                       names no resource
2  decide gone                                  gone: No such file
2  decide --label team                          `team` is no label; write KEY=VALUE
2  decide --prompt nobody                       `nobody` is no prompt; write none, client
2  decide --policy-digest sha256:0              `sha256:0` is no digest; write sha256:
2  check gone.toml                              gone.toml: cannot be read
2  edit                                         there is no policy of yours yet
2  edit gone/x.toml                             x.toml: No such file
2  edit x.txt                                   is no policy file
2  diff gone.toml gone.toml                     gone.toml: cannot be read
2  diff --managed-old gone.toml MINE MINE       gone.toml: no policy lies here
2  diff --requests -1 MINE MINE                 `-1` is no number of requests
2  check --cwd gone                             `gone` is no directory
2  check --project gone                         `gone` is no directory
2  serve --policy=                              needs a value
2  status --cwd gone                            `gone` is no directory
2  doctor --cwd gone                            `gone` is no directory
2  explain --project gone --kind read           `gone` is no directory
2  test                                         there is no suite
2  test gone_test.toml                          gone_test.toml
2  trust                                        there is no policy in
2  trust --show                                 there is no policy in
2  init nothing                                 no starter policy `nothing`
2  init --write                                 which starter policy?
2  init zed                                     write `policyd init --client zed`
2  init claude                                  write `policyd init --agent claude`
2  init --agent nobody                          no agent `nobody` is known
2  init --agent codex x                         a command behind `--` goes with `--client`
2  doctor --client nobody                       no client `nobody` is known
2  grants revoke                                name grants by id
2  grants show                                  required: ID
2  grants                                       required: COMMAND
2  audit                                        required: COMMAND
2  prompts                                      required: COMMAND
2  prompts list --socket gone                   gone
2  status --socket gone                         gone
2  nothing                                      unknown command `nothing`; `policyd help`
2  chek                                         did you mean `check`?
2  lint                                         did you mean `check`?
2  daemon                                       did you mean `serve`?
2  help nothing                                 unknown command `nothing`
"""
ROWS = [
    re.split(r"\s{2,}", line, maxsplit=2) for line in CODES.strip().splitlines() if line and not line.startswith("#")
]


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing in it, a log of one record, a project with a policy, and a person at the terminal."""
    for name in ("home", "here", "project/.policyd"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "log.jsonl").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "project/.policyd/team.toml").write_text(POLICY)
    (tmp_path / "mine.toml").write_text(POLICY)
    (tmp_path / "empty").touch()
    (tmp_path / "other.toml").write_text(POLICY.replace("status", "log"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "POLICYD_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(presence, "refusal", lambda: "")
    return tmp_path


def ended(words: list[str]) -> int:
    """Run a command; return its exit code, argparse's own too."""
    try:
        return main(words)
    except SystemExit as end:
        return int(str(end.code))


@pytest.mark.parametrize("row", ROWS, ids=[row[1] for row in ROWS])
def test_nothing_there_a_no_and_a_failure_end_alike_in_every_command(
    row: list[str], ground: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, words, *said = row
    places = {"LOG": "log.jsonl", "PROJECT": "project", "MINE": "mine.toml", "OTHER": "other.toml", "EMPTY": "empty"}
    places = {word: str(ground / name) for word, name in places.items()}
    assert ended([places.get(word, word) for word in words.split()]) == int(code)
    out, err = capsys.readouterr()
    assert all(text in out + err for text in said), out + err
    assert "Traceback" not in err
    command = f"policyd {words.split()[0]}"
    if code == "2" and not err.startswith("policyd: unknown command") and ".toml" not in words:
        assert any(line.startswith(command) for line in err.splitlines()), err


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("", 2, "standard input: nothing was read"),
        ("\n\n", 2, "standard input: nothing was read"),
        (UPDATE, 2, "standard input: there is no request in it"),
        ("nonsense", 2, "line 1 is left out"),
        (REQUEST, 0, ""),
        (REQUEST.replace("git status", "git push"), 3, ""),
        (f"{REQUEST}\nnonsense", 2, "line 2 is left out"),
    ],
)
def test_input_without_a_request_is_told_and_never_counts_as_an_allow(
    given: str,
    code: int,
    said: str,
    ground: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, expected in ((["--exit-code"], code), ([], 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        policy = ["--policy", str(ground / "mine.toml"), "--cwd", str(ground / "here"), "--no-managed"]
        assert main(["decide", *policy, *words]) == expected
        err = capsys.readouterr().err
        assert said in err if said else not err


def test_of_several_transcripts_one_without_a_request_is_no_allow(ground: Path) -> None:
    for name, text in (("full", REQUEST), ("empty", "")):
        (ground / name).write_text(text)
    policy = ["--policy", str(ground / "mine.toml"), "--cwd", str(ground / "here"), "--no-managed"]
    full, empty = str(ground / "full"), str(ground / "empty")
    assert main(["decide", *policy, "--exit-code", full]) == 0
    assert main(["decide", *policy, "--exit-code", full, empty]) == 2


def test_explain_says_that_nothing_was_read(
    ground: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["explain"]) == 0
    assert "policyd explain: standard input: nothing was read" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["grants --home HOME list", "grants list --home HOME", "prompts list --home HOME"])
def test_the_home_may_be_named_before_and_behind_a_subcommand(words: str, ground: Path) -> None:
    assert main([word.replace("HOME", str(ground / "home")) for word in words.split()]) == 0


HOMELESS = (
    "check\nstatus\ndoctor\ntrust\ngrants list\nprompts list\naudit show\ndecide x\nexplain --kind read --path x\n"
    "diff x y\ninit default --write\ninit --client zed --agent claude"
)


@pytest.mark.parametrize("words", HOMELESS.splitlines())
def test_without_a_home_nothing_is_done_and_the_option_is_named(
    words: str, ground: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", "relative")
    assert ended(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"policyd {words.split()[0]}: no home directory is known")


def test_a_fault_of_policyd_itself_is_no_answer(
    ground: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(loading, "load", broken)
    (ground / "full").write_text(REQUEST)
    assert main(["decide", "--exit-code", str(ground / "full")]) == 2
    assert "RuntimeError: not foreseen" in capsys.readouterr().err
