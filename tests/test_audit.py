"""Audit records: what is masked, what stays, what a line looks like, how the chain shows a change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyd import audit
from policyd.audit import masks
from policyd.audit.cleaning import SEARCHED, SHORT, VALUES_LISTED, tidy
from policyd.audit.masks import CONTEXTS, TOKENS, find
from policyd.model import (
    Action,
    Agent,
    Context,
    Decision,
    Effect,
    Judged,
    Layer,
    Mode,
    PathRef,
    Request,
    RuleRef,
    SimpleCommand,
    Source,
    Tool,
    Word,
    Workspace,
)
from tests.secret_samples import IN_CONTEXT, SHAPED, seeded

NOW = datetime(2026, 11, 29, 22, 57, 58, 123456, tzinfo=UTC)
WORKSPACE = Workspace(cwd="/w", roots=("/w",), sound=("/w",), home="/home/dev")
CONTEXT = Context(workspace=WORKSPACE, now=NOW, agent=Agent("claude", "1.0", "claude"), user="dev")
RULE = RuleRef(Layer.USER, "tests", Effect.ALLOW, "a.toml", 12)
FRAMES = ("{}", "echo {} > f", 'x="{}"', "a {} b", "https://x.example/?q={}", '{{"k": "{}"}}', "line\n{}\nline", "[{}]")


def command(*argv: str) -> Action:
    """Return an execute action."""
    words = tuple(Word(word) for word in argv)
    return Action(frozenset({"execute"}), command=SimpleCommand(words, " ".join(argv)), cwd=("/w",))


def a_record(*actions: Action, title: str = "t", reason: str = "because", **fields: object) -> dict[str, object]:
    """Return the record of an allowed request."""
    judged = tuple(Judged(action, Effect.ALLOW, (RULE,)) for action in actions)
    decision = Decision(Effect.ALLOW, Source.RULE, reason, (RULE,), (RULE,), judged, "rev")
    request = Request("s", "c", title, (), actions)
    return audit.record(decision, request, CONTEXT, id="d1", extra=fields)


# ---- masking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPED)
def test_a_secret_of_a_known_shape_is_masked_wherever_it_stands(kind: str) -> None:
    rng = seeded(kind)
    missed = []
    for frame in 3 * FRAMES:
        secret = SHAPED[kind](rng)
        text = frame.format(secret)
        masked = audit.mask(text)
        if secret in masked or secret[-12:] in masked:
            missed.append(text)
    assert missed == []


@pytest.mark.parametrize("kind", IN_CONTEXT)
def test_a_secret_is_masked_by_what_stands_before_it(kind: str) -> None:
    rng = seeded(kind)
    missed = [text for text, secret in (IN_CONTEXT[kind](rng) for _ in range(80)) if secret in audit.mask(text)]
    assert missed == []


def test_every_kind_of_secret_has_samples() -> None:
    shaped = {span.kind for make in SHAPED.values() for span in find(make(seeded(1)))}
    placed = {span.kind for make in IN_CONTEXT.values() for span in find(make(seeded(1))[0])}
    assert {*TOKENS, *CONTEXTS} <= shaped | placed


def test_the_mask_names_what_it_hides() -> None:
    assert audit.mask("echo ghp_" + "a" * 36) == "echo [masked:github-token]"
    assert audit.mask("postgres://u:s3cret@h/x") == "postgres://u:[masked:url-password]@h/x"


HARMLESS = (
    "git push --force-with-lease origin main",
    "grep -rn 'password' src/",
    "pytest tests/test_token.py -k 'token and not secret'",
    "export API_KEY=$(cat ~/.key)",
    "export TOKEN=$GITHUB_TOKEN",
    "docker run --env PASSWORD app",
    "curl https://example.com/login?next=/home",
    "mypy --strict --max-tokens 4096",
    "kubectl get secret db -o yaml",
    "aws secretsmanager list-secrets --max-items 5",
    "python -c 'token: str = None'",
    "npm run build -- --token-type=bearer",
    "sed -n 's/secret_name: .*/x/p' chart.yaml",
    "git log --format=%H -n 1 0123456789abcdef0123456789abcdef01234567",
    "cat /etc/passwd",
    "vim config/credentials.yml",
    "echo password=<your password>",
    "openssl rand -hex 32",
    "ssh-keygen -t ed25519 -f key-main",
    "PWD=/work/app OLDPWD=/work make",
    "terraform plan -var-file=prod.tfvars",
    "rg 'sk-' docs/",
    "sha256sum dist/app-1.2.3.tar.gz",
    "docker pull registry.example/app@sha256:" + "0123456789abcdef" * 4,
    "uv pip install pydantic-settings==2.6.0",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_command_is_left_as_it_is(text: str) -> None:
    assert audit.mask(text) == text


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


def test_few_harmless_commands_are_altered() -> None:
    rng = seeded(7)
    parts = words(
        "git npm run test src/auth/token.py --max-count=5 -p 8080 key login src/key.ts https://example.com/a?c=d && "
        "| cat grep -rn secret 'x y' user@host:/srv KEY A=1 deadbeefcafe 2026-11-29 passwords.txt --user root -u -a "
        "id: 7 sk- tokens bearer cookie auth src/secrets/mod.rs"
    )
    texts = [" ".join(rng.choice(parts) for _ in range(rng.randint(2, 9))) for _ in range(10_000)]
    altered = [text for text in texts if find(text)]
    assert len(altered) <= 200, altered[:20]


def test_a_secret_across_two_words_of_a_command_is_masked() -> None:
    assert audit.mask_words(["tool", "--password", "hun ter2", "-v"]) == (
        "tool",
        "--password",
        "[masked:secret-value]",
        "-v",
    )


def test_what_one_field_shows_to_be_secret_is_masked_in_all() -> None:
    row = a_record(command("tool", "--password", "hunter22"), reason="ran with hunter22", title="say hunter22")
    body = audit.body(row)
    assert b"hunter22" not in body
    assert json.loads(body)["masked"] == ["secret-value"]


def test_a_secret_under_a_telling_key_of_tool_arguments_is_masked() -> None:
    call = Action(
        frozenset({"other"}), tool=Tool("jira", (("jira", "login"),)), args={"auth": {"apiToken": "hunter22"}}
    )
    assert b"hunter22" not in audit.body(a_record(call))


def test_masking_survives_lone_surrogates() -> None:
    assert audit.mask("\ud800 password=hunter22") == "\ud800 password=[masked:secret-value]"


# ---- records and lines -----------------------------------------------------------------------------


def test_a_record_says_what_was_decided_and_by_which_rule() -> None:
    row = a_record(command("npm", "test"), Action(frozenset({"read"}), path=PathRef("a", ("/w/a", "/real/a"))))
    assert row["schema"] == 1 and row["effect"] == "allow" and row["source"] == "rule" and row["kind"] == "execute"
    assert row["rules"] == [{"rule": "user:tests", "effect": "allow", "file": "a.toml", "line": 12}]
    assert row["time"] == "2026-11-29T22:57:58.123456Z"
    actions = row["actions"]
    assert isinstance(actions, list)
    first, second = actions
    assert first["command"] == ["npm", "test"] and second["path"] == "a" and second["real"] == "/real/a"


@given(st.lists(st.text(max_size=60), min_size=1, max_size=5), st.text(max_size=3000))
def test_any_text_in_any_field_yields_one_plain_json_line(argv: Sequence[str], title: str) -> None:
    data = audit.line(audit.body(a_record(command(*argv), title=title, reason=title, note=list(argv))), 1, audit.FIRST)
    assert data.endswith(b"\n") and len(data.decode().splitlines()) == 1
    assert json.loads(data)["seq"] == 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u200b\ufeff\u2028" for c in data.decode()[:-1])


def test_a_line_is_at_most_16_kib_and_says_what_was_cut() -> None:
    row = a_record(*(command("echo", "x" * 3000) for _ in range(300)), title="y" * 1_000_000, deep=nested(100))
    data = audit.line(audit.body(row), 1, audit.FIRST)
    assert len(data) <= audit.LINE_LIMIT
    kept = json.loads(data)
    assert "[cut " in kept["title"] and kept["actions_cut"] > 0 and kept["whole"].startswith("sha256:")


def test_a_record_with_more_fields_than_fit_a_line_keeps_what_names_it() -> None:
    row = a_record(command("ls"), **{f"field {number}": "x" * 60 for number in range(500)})
    data = audit.line(audit.body(row), 1, audit.FIRST)
    assert len(data) <= audit.LINE_LIMIT
    assert json.loads(data).keys() >= {"id", "effect", "revision", "seq", "prev", "whole"}


def test_what_is_no_text_for_json_is_recorded_all_the_same() -> None:
    row = a_record(command("cat", "\udcff"), title="a\udcffb", note=frozenset({"x"}))
    data = json.loads(audit.line(audit.body(row), 1, audit.FIRST))
    assert data["effect"] == "allow" and "a" in data["title"] and "x" in data["note"]


def test_what_rules_may_ask_about_a_session_is_recorded() -> None:
    space = Workspace("/w", ("/w", "/v"), ("/w",), "/home/dev")
    context = Context(space, NOW, mode=Mode("plan"), interactive=True, labels={"a": "1"}, managed_labels={"b": "2"})
    judged = Judged(command("ls"), Effect.ASK, granted=Effect.ALLOW)
    row = audit.record(Decision(Effect.ASK, Source.DEFAULT, "", actions=(judged,)), None, context, id="d")
    told = {key: row[key] for key in ("mode", "labels", "roots", "sound", "interactive", "managed_labels")}
    assert told == {
        "mode": "plan",
        "labels": {"a": "1", "b": "2"},
        "roots": ["/w", "/v"],
        "sound": ["/w"],
        "interactive": True,
        "managed_labels": ["b"],
    }
    assert isinstance(row["actions"], list) and row["actions"][0]["granted"] == "allow"


@pytest.mark.slow
@pytest.mark.timeout(30)
def test_a_flood_of_secrets_is_masked_in_reasonable_time() -> None:
    text = " ".join(f"password=hunter{number}" for number in range(20_000))
    row = a_record(*(command("echo", *(f"--token=s3cret{n}" for n in range(300))) for _ in range(300)), title=text)
    data = audit.line(audit.body(row), 1, audit.FIRST)
    assert len(data) <= audit.LINE_LIMIT and b"hunter" not in data and b"s3cret" not in data


def test_of_very_many_rules_the_first_are_named_and_the_rest_counted() -> None:
    rules = tuple(RuleRef(Layer.USER, f"r{number}", Effect.ASK) for number in range(1_000))
    judged = (Judged(command("a"), Effect.ASK, (), rules),)
    row = audit.record(Decision(Effect.ASK, Source.RULE, "", rules[:500], rules, judged), None, CONTEXT, id="d")
    actions, listed, others = row["actions"], row["rules"], row["matched"]
    assert isinstance(actions, list) and isinstance(listed, list) and isinstance(others, list)
    assert actions[0]["rules"][-1] == "[950 more]" and others[0] == "user:r500"
    assert len(listed) == 50 and row["rules_cut"] == 450


def nested(depth: int) -> object:
    """Return lists in lists."""
    value: object = "x" * 500
    for _ in range(depth):
        value = [value, "y" * 500]
    return value


def test_a_changed_line_breaks_the_chain() -> None:
    first = audit.line(audit.body(a_record(command("a"))), 1, audit.FIRST)
    second = audit.line(audit.body(a_record(command("b"))), 2, audit.digest(first))
    assert audit.broken(second, 2, audit.digest(first)) == ""
    assert audit.broken(second, 2, audit.digest(first.replace(b"allow", b"allaw"))) != ""
    assert "number 2, expected 3" in audit.broken(second, 3, audit.digest(first))
    assert audit.broken(b"not json", 3, audit.digest(first)) == "no JSON record"


@pytest.mark.parametrize(
    "row",
    [
        {"input": {f"p{at}": [f"password=hunter{at} " * 3_000] for at in range(100)}},
        {"actions": [{"command": ["x", f"password=hunter{at} " * 15_000]} for at in range(100)]},
        {"input": {f"a{at}": {f"b{below}": ["w"] * 200 for below in range(100)} for at in range(100)}},
        {"title": "password=hunter22 " * 400_000},
        {f"k{at}": "secret=" + "x" * 200_000 for at in range(20)},
    ],
    ids=["texts", "commands", "values", "title", "members"],
)
def test_however_much_a_record_says_so_much_of_it_is_searched_and_nothing_else_is_kept(
    row: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    def counted(text: str) -> Sequence[masks.Span]:
        searched.append(len(text))
        return find(text)

    monkeypatch.setattr(masks, "find", counted)
    kept = json.dumps(tidy({**row, "outcome": "selected"}))
    assert sum(searched) <= 5 * SEARCHED * len(row) + 5 * SHORT * VALUES_LISTED
    assert "hunter" not in kept and '"outcome": "selected"' in kept and len(kept) < 2_000_000
