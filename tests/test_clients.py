"""What each known client's user is offered, and that no client that answers by itself is remembered.

`HABITS` models how clients choose, as their sources do (the profiles' `verified` says which).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from policyd.model import Effect, Option, Request
from policyd.prompts import Choice, Client, Outcome, Prompt, ask, find, parse_chain, usable
from policyd.prompts.clients import CAREFUL, parse, shipped
from tests.asking import ASKS, ROOT, call, context, decision, fetch, request, run, touch

Choices = tuple[Choice, ...]
Habit = Callable[[Choices], str | None]


def first(choices: Choices, *kinds: str) -> str | None:
    """The first option of the first kind there is."""
    return next((one.id for kind in kinds for one in choices if one.kind == kind), None)


def last(choices: Choices, kind: str) -> str | None:
    """The last option of a kind: tables by kind keep that."""
    return next((one.id for one in reversed(choices) if one.kind == kind), None)


HABITS: dict[str, Habit] = {
    "acpx --approve-all": lambda choices: first(choices, "allow_once", "allow_always") or choices[0].id,
    "acpx --deny-all": lambda choices: first(choices, "reject_once", "reject_always"),
    "always first": lambda choices: first(choices, "allow_always", "allow_once") or choices[0].id,
    "gemini.py --yolo": lambda choices: next((one.id for one in choices if one.kind.startswith("allow")), None),
    "options[0]": lambda choices: choices[0].id,
    "the last option": lambda choices: choices[-1].id,
    "avante after an always": lambda choices: last(choices, "allow_always"),
    "codecompanion's yolo": lambda choices: last(choices, "allow_always") or last(choices, "allow_once"),
}

ASKED = {
    "a command": request(run("npm", "run", "test")),
    "a compound": request(run("a"), run("b")),
    "an edit": request(touch("edit", f"{ROOT}/a.py")),
    "a URL": request(fetch("a.org")),
    "a tool": request(call("jira", "get")),
}


def put_to(client: Client, asking: Request, habit: Habit, seconds: float) -> Outcome:
    """Ask a client that chooses by `habit` after `seconds`."""
    question = ask(asking, decision(asking), context(), client, root=ROOT)
    prompt = Prompt(usable(parse_chain(["client"]), client), question, client, "n")
    if prompt.start(0.0):
        option = habit(question.choices)
        prompt.refused(0, "no optionId", seconds) if option is None else prompt.chosen(0, option, seconds)
    assert prompt.outcome is not None
    return prompt.outcome


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("profile", [*shipped(), "", "a client nobody knows"])
def test_nothing_is_remembered_of_a_client_that_answers_by_itself(profile: str, habit: str) -> None:
    for asking in ASKED.values():
        outcome = put_to(find(profile), asking, HABITS[habit], 0.02)
        assert outcome.offer is None
        assert outcome.by != "inbox"


def test_a_headless_client_is_not_asked_at_all() -> None:
    for habit in HABITS.values():
        outcome = put_to(find("acpx"), ASKED["a command"], habit, 60.0)
        assert (outcome.effect, outcome.by) == (Effect.DENY, "policyd")


def test_who_takes_the_first_option_takes_the_least() -> None:
    for profile in shipped().values():
        for asking in ASKED.values():
            choices = ask(asking, decision(asking), context(), profile, root=ROOT).choices
            assert choices[0].kind == "allow_once"
            assert first(choices, "allow_once", "allow_always") == choices[0].id
            always = [at for at, one in enumerate(choices) if one.offer]
            assert always == list(range(len(choices) - len(always), len(choices))), "last in the list"


@pytest.mark.parametrize("profile", [one for one in shipped().values() if not one.shows_option_names] + [CAREFUL])
def test_a_user_who_sees_only_kinds_gets_one_of_each_and_the_exact_action(profile: Client) -> None:
    for asking in ASKED.values():
        choices = ask(asking, decision(asking), context(), profile, root=ROOT).choices
        kinds = [choice.kind for choice in choices]
        assert len(kinds) == len(set(kinds))
        assert not [choice for choice in choices if choice.offer and choice.offer.general]


@pytest.mark.parametrize(
    ("profile", "allows", "scopes"),
    [
        ("zed", 3, {"session", "project"}),
        ("toad", 3, {"session", "project"}),
        ("codecompanion", 1, {"project"}),
        ("jetbrains", 1, {"session"}),
        ("python-sdk", 1, {"session"}),
        ("typescript-sdk", 1, {"session"}),
        ("", 1, {"session"}),
        ("avante", 0, set()),
        ("acpx", 0, set()),
    ],
)
def test_what_each_client_is_offered_to_remember(profile: str, allows: int, scopes: set[str]) -> None:
    asking = ASKED["a command"]
    choices = ask(asking, decision(asking), context(), find(profile), root=ROOT).choices
    always = [choice.offer for choice in choices if choice.offer and choice.offer.effect is Effect.ALLOW]
    assert len(always) == allows
    assert {offer.scope for offer in always} == scopes


def test_an_always_is_never_longer_than_the_rules_that_ask() -> None:
    asking, short = ASKED["a URL"], replace(ASKS, remember="session")
    choices = ask(asking, decision(asking, short), context(), find("zed"), root=ROOT).choices
    assert {choice.offer.scope for choice in choices if choice.offer} == {"session"}
    choices = ask(asking, decision(asking), context(), find("zed"), root=ROOT).choices
    assert "user" in {choice.offer.scope for choice in choices if choice.offer}


def test_avante_understands_only_ids_spelled_like_kinds() -> None:
    options = (Option("proceed_once", "Yes", "allow_once"), Option("no", "No", "reject_once"))
    asking = request(run("x"), options=options)
    choices = ask(asking, decision(asking), context(), find("avante"), root=ROOT).choices
    assert [(one.id, one.option) for one in choices] == [("allow_once", "proceed_once"), ("reject_once", "no")]


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("zed", "zed"),
        ("CodeCompanion.nvim", "codecompanion"),
        ("toad", "toad"),
        ("acpx", "acpx"),
        ("JetBrains IntelliJ IDEA", "jetbrains"),
        ("avante", "avante"),
        ("", "careful"),
        ("Zed ", "careful"),
        ("example-client", "careful"),
    ],
)
def test_a_client_is_known_by_its_exact_name(name: str, profile: str) -> None:
    assert find(name).profile == profile


def test_the_shipped_profiles_keep_their_schema() -> None:
    assert len(shipped()) == 8
    names = [name for profile in shipped().values() for name in profile.names]
    assert len(names) == len(set(names))
    for profile in shipped().values():
        assert profile.verified
        assert profile.behaviour


GOOD: dict[str, object] = {
    "name": ["x"],
    "person": True,
    "shows_option_names": True,
    "options_per_kind": 2,
    "remember": "project",
    "modes_from": ["response"],
    "behaviour": [],
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"persn": True},
        {"person": "yes"},
        {"person": None},
        {"name": "x"},
        {"options_per_kind": 0},
        {"options_per_kind": True},
        {"remember": "ever"},
        {"modes_from": ["hearsay"]},
        {"option_ids": "mine"},
        {"option_kinds": ["allow"]},
        {"option_kinds": "allow_once"},
        {"title_beside_diff": "no"},
    ],
)
def test_a_profile_that_is_not_understood_is_refused(wrong: dict[str, object]) -> None:
    assert parse("x", GOOD).options_per_kind == 2
    with pytest.raises(ValueError, match="x: "):
        parse("x", {**GOOD, **wrong})
