"""Rows of commands, each intent with one policy: nothing unsafe, nothing harmless denied, little noise."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from policyd.commands.nested.buried import ELSEWHERE
from policyd.commands.nested.wrapper_programs import CONTAINERS
from policyd.model import Source
from tests.commandrows import CWD, KEPT, data, decide, rows, table
from tests.rowwise import in_groups

EVERYDAY: dict[str, Any] = table("everyday.toml")
DAILY: dict[str, dict[str, list[str]]] = table("daily.toml")
HOSTILE: dict[str, list[str]] = table("hostile.toml")
NEIGHBOURS: dict[str, list[str]] = table("neighbours.toml")
RULE = '\n[[rule]]\neffect = "allow"\n{rule}\n'
BELOW = 'path = ["/tmp/**", "~/**"]'
READERS = """
version = 1

[[rule]]
effect = "allow"
command = ["@read-only", "@git-read"]
"""


@cache
def _decided() -> list[tuple[dict[str, Any], str]]:
    """Decide every row under the policy of its intent."""
    intents = table("intents.toml")
    found = []
    for row in rows("rows.jsonl"):
        policy = intents[row["intent"]]["policy"]
        decision = decide(policy, row["command"], cwd=row["cwd"], shell=row["shell"], given=row.get("input"))
        assert decision.source is not Source.ERROR, row
        found.append((row, decision.effect.word))
    return found


def test_no_row_is_answered_with_what_is_never_right() -> None:
    assert [(row["id"], row["command"], word) for row, word in _decided() if word in row.get("never", [])] == []


def test_at_most_one_row_in_a_hundred_is_wrong() -> None:
    wrong = [(row["id"], word) for row, word in _decided() if word not in (row["verdict"], *row.get("also", []))]
    assert len(wrong) <= len(_decided()) / 100, wrong


def test_at_most_four_rows_in_a_hundred_ask_for_nothing() -> None:
    noise = [
        row["id"]
        for row, word in _decided()
        if word == "ask" and row["verdict"] == "allow" and "ask" not in row.get("also", [])
    ]
    assert len(noise) <= len(_decided()) / 25, noise


@in_groups((word, text) for word in ("allow", "ask", "deny") for text in EVERYDAY[word])
def test_everyday_commands_get(word: str, command: str) -> None:
    assert decide(EVERYDAY["policy"], command).effect.word == word


def test_most_everyday_commands_run_without_asking() -> None:
    total = sum(len(EVERYDAY[word]) for word in ("allow", "ask", "deny"))
    assert len(EVERYDAY["allow"]) >= 0.7 * total


def test_readme_says_how_many_everyday_commands_run_without_asking() -> None:
    total = sum(len(EVERYDAY[word]) for word in ("allow", "ask", "deny"))
    counts = {word: sum(map(len, groups.values())) for word, groups in DAILY.items()}
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8").replace("\n", " ")
    assert f"{len(EVERYDAY['allow'])} of {total} collected commands" in readme
    shown = [f"{number:,}".replace(",", " ") for number in (counts["allow"], sum(counts.values()))]
    assert " of the ".join(shown) in readme


def _other_than(texts: list[str], *words: str) -> list[str]:
    """Return the commands that get something else under the policy of every day."""
    found = {text: decide(EVERYDAY["policy"], text).effect.word for text in texts}
    return [f"{word}: {text}" for text, word in found.items() if word not in words]


@pytest.mark.parametrize("group", DAILY["allow"])
def test_what_agents_run_all_day_runs_without_asking(group: str) -> None:
    assert _other_than(DAILY["allow"][group], "allow") == []


@pytest.mark.parametrize(("verdict", "group"), [(word, group) for word in ("ask", "wished") for group in DAILY[word]])
def test_what_writes_fetches_or_cannot_be_told_asks(verdict: str, group: str) -> None:
    assert _other_than(DAILY[verdict][group], "ask") == []


@pytest.mark.parametrize("group", NEIGHBOURS)
def test_neighbours_of_what_the_sets_hold_for_are_not_allowed(group: str) -> None:
    assert _other_than(NEIGHBOURS[group], "ask", "deny") == []


@pytest.mark.parametrize(
    ("rule", "command", "word"),
    [
        ('effect = "deny"\ncommand = "rm"\nunless = { command = "docker exec **" }', "docker exec c rm x", "allow"),
        ('effect = "ask"\ncommand = "rm"', "docker exec c rm x", "ask"),
        ('effect = "deny"\nkind = "execute"\nunless = { command = "docker **" }', "docker exec c rm x", "allow"),
        ('effect = "deny"\nkind = "delete"\npath = "out/**"', "docker exec c sh -c 'rm -r .'", "allow"),
        ('effect = "deny"\nkind = "edit"\npath = "**/x"', "docker exec c sh -c 'echo a > x'", "allow"),
        ('effect = "deny"\ncommand = "git push"', "wsl git -C sub push", "deny"),
        ('effect = "deny"\ncommand = "git push --force"', "docker compose exec web git push -uf o m", "deny"),
        ('effect = "deny"\ncommand = "@destructive"', "docker exec c git reset --hard", "deny"),
        ('effect = "deny"\ncommand = "rm"', "docker exec $C rm x", "ask"),
        ('effect = "deny"\ncommand = "rm"', "docker exec --frob c rm x", "ask"),
        ('effect = "deny"\ncommand = "rm"', "kubectl exec p rm x", "ask"),
    ],
)
def test_a_command_that_runs_elsewhere_is_one_to_strict_rules_on_commands(rule: str, command: str, word: str) -> None:
    policy = f"version = 1\n[[rule]]\n{rule}\n" + RULE.format(rule='command = ["docker **", "kubectl **", "wsl **"]')
    assert decide(policy, command).effect.word == word


@pytest.mark.parametrize("command", ["docker exec c rm x", "kubectl exec p -- sh -c 'ls; rm x'", "wsl rm x"])
def test_an_allow_of_a_command_never_holds_for_where_else_it_runs(command: str) -> None:
    policy = "version = 1\n" + RULE.format(rule='command = ["rm **", "ls **", "sh **"]')
    assert decide(policy, command).effect.word == "ask"


@pytest.mark.parametrize(
    ("deny", "word"), [("src/**", "ask"), ("/home/dev/kept/.env", "ask"), ("~/.ssh/**", "allow"), ("/etc/**", "allow")]
)
def test_a_working_tree_that_begins_above_the_workspace_is_looked_at_and_needs_no_allow(deny: str, word: str) -> None:
    rules = "version = 1\n" + RULE.format(rule='command = "git **"')
    strict = f'[[rule]]\neffect = "deny"\nkind = "edit"\npath = "{deny}"\n'
    assert decide(rules, "git am x", cwd=f"{KEPT}/docs").effect.word == "allow"
    assert decide(rules + strict, "git am x", cwd=f"{KEPT}/docs").effect.word == word


def test_whoever_runs_words_elsewhere_is_suspected_where_they_cannot_be_read() -> None:
    assert set(CONTAINERS) <= ELSEWHERE.keys()


def test_code_from_elsewhere_runs_only_where_a_rule_says_so() -> None:
    commands = ["pytest /tmp/x", "uv run pytest ../x", "eslint /tmp/x", "prettier --check /tmp/x"]
    commands += ["python /tmp/x.py", "bash ~/x.sh", "eslint --print-config /tmp/x", "vue-tsc --noEmit -p ../x"]
    reads = EVERYDAY["policy"] + RULE.format(rule='kind = ["read", "search"]\npath = "/**"')
    runs = reads + RULE.format(rule='command = ["python **", "bash **"]')
    for policy, word in (
        (reads, "ask"),
        (runs, "ask"),
        (runs + RULE.format(rule=f'kind = "execute"\n{BELOW}'), "allow"),
    ):
        assert {text: decide(policy, text).effect.word for text in commands} == dict.fromkeys(commands, word)
    assert decide(reads, f"pytest {CWD}/tests").effect.word == "allow"
    assert decide(reads, "cd src && pytest ../tests").effect.word == "allow"


LET_IN = (
    "rg -g '*' x", "rg -g '.e*' x", "rg --glob='.[e]nv' x", "rg --iglob '.E*' x", "rg -g '*nv' x", "rg -g 'src/*' x",
    "rg -g 'src/**' x lib", "rg -t all x", "rg -t sh x", "rg --type-add 'py:.env' -t py x", "rg --ignore-file x y",
    "rg -e x -g '.*' .", "rg -g '{a,.env}' x", "rg -g '[.]env' x", "git grep --untracked x",
    "git grep --untracked --no-exclude-standard x", "git grep -e x --untracked -- src",
    "git grep --untracked x '.e*'", "git grep --untracked x ':(icase).ENV'", "diff -N . lib", "diff lib .",
    "diff a src", "rg -g .d -g '.e*' x docs", "rg -g '*d' -g .env x docs", "rg -g .d/ -g '*nv' x docs",
)  # fmt: skip
KEPT_OUT = (
    "rg x", "rg -g '*.py' x", "rg -g '!*.py' x", "rg -g '!.env' x", "rg -t py x", "rg -t json -t ts x",
    "rg -g 'lib/**' x", "rg --files -g '.e*'", "git grep x", "git grep --untracked x lib",
    "git grep --untracked x '*.py'", "diff lib/a README.md", "rg --iglob '*.MD' x",
    "rg x docs", "rg -g .d x docs", "rg -g '*.ts' -g '*.tsx' x", "rg -g .d -t py x docs",
)  # fmt: skip


@in_groups((word, text) for word, texts in (("ask", LET_IN), ("allow", KEPT_OUT)) for text in texts)
def test_what_a_search_lets_in_is_looked_for_by_name(word: str, command: str) -> None:
    found = decide(EVERYDAY["policy"], command, cwd=KEPT).effect.word
    assert found == word or (word == "ask" and found == "deny")


WHOLE = ("rg x", "grep -rn x .", "rg -t py x", "find . -type f -name '*.py' -exec cat {} +")


@in_groups((command,) for command in WHOLE)
def test_a_search_of_a_project_without_secrets_runs_under_the_policy_that_ships(command: str) -> None:
    default = (Path(__file__).parents[1] / "policies" / "default.toml").read_text("utf-8")
    assert decide(default, command).effect.word == "allow"


OTHER_WAYS = (
    "python -m pytest /tmp/x", "coverage run -m pytest /tmp/x", "python -m unittest /tmp/x/t.py",
    "python manage.py test /tmp/x", "bun test /tmp/x/t.ts", "deno test /tmp/x/t.ts", "bats /tmp/x/t.bats",
    "mix test /tmp/x/t.exs", "dart test /tmp/x", "pnpm jest /tmp/x", "npx --no-install vitest run /tmp/x",
    "npm test -- /tmp/x", "bin/rails test /tmp/x", "timeout 60 python -m pytest /tmp/x",
)  # fmt: skip


@pytest.mark.parametrize("command", OTHER_WAYS)
def test_a_runner_reached_by_another_way_runs_code_from_elsewhere_only_where_a_rule_says_so(command: str) -> None:
    edits = EVERYDAY["policy"] + RULE.format(rule='kind = ["read", "search", "edit"]\npath = "/**"')
    assert decide(edits, command).effect.word == "ask"
    assert decide(edits + RULE.format(rule=f'kind = "execute"\n{BELOW}'), command).effect.word == "allow"
    assert decide(edits, command.replace("/tmp/x", "sub")).effect.word == "allow"


@pytest.mark.parametrize(("command", "reason"), table("reasons.toml")["reason"].items())
def test_an_ask_says_what_it_is_about_and_what_nearly_allowed_it(command: str, reason: str) -> None:
    assert decide(EVERYDAY["policy"], command).reason == reason


@pytest.mark.parametrize(("effect", "word"), [("ask", "asked about"), ("deny", "denied")])
def test_what_a_default_asks_about_or_denies_says_what_nearly_allowed_it_too(effect: str, word: str) -> None:
    found = decide(EVERYDAY["policy"].replace("[defaults]\n", f'[defaults]\n"*" = "{effect}"\n'), "make deploy")
    assert found.effect.word == effect
    assert found.reason == f"{word} by `user:defaults.*`; `@test-runners.make` does not hold: it does not name `deploy`"


@pytest.mark.parametrize("command", HOSTILE["published"])
def test_published_tricks_are_not_allowed_to_readers(command: str) -> None:
    assert decide(READERS, command).effect.word != "allow"


@in_groups((group, text) for group, found in HOSTILE.items() if group != "published" for text in found)
def test_hostile_commands_are_not_allowed(group: str, command: str) -> None:
    assert decide(EVERYDAY["policy"], command).effect.word != "allow"


@in_groups((command,) for command in table("harmless.toml")["allow"])
def test_harmless_commands_are_allowed(command: str) -> None:
    assert decide(EVERYDAY["policy"], command).effect.word == "allow"


def test_rows_are_in_the_projects_own_form() -> None:
    assert len(rows("rows.jsonl")) >= 300
    assert "policy" in data("intents.toml")


def test_the_last_of_many_values_of_a_loop_is_looked_at() -> None:
    command = f"for f in {'a ' * 1_001}$X; do cat $f; done"
    assert decide(EVERYDAY["policy"], command).effect.word == "ask"
