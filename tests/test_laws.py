"""The laws of the decision, each a property test named after it; those of wire and session stand with their rooms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from policyd import engine, policy
from policyd.model import Action, Context, Decision, Effect, Judged, Layer, PathRef, Request, Role, Source, Truth
from policyd.service.change import tightened
from tests import random_policies as draw
from tests import reference
from tests.ground import File

SEEDS = st.integers(0, 2**48).map(Random)
LAW = settings(max_examples=150, deadline=None)
ASKS = 8
"""Requests a policy is tried on: loading one costs more than a hundred decisions."""


def decide(
    loaded: policy.Policy, asked: Request, context: Context, grant: engine.Grants = engine.no_grants
) -> Decision:
    """Decide, and refuse to take an error for an answer."""
    found = engine.decide(asked, loaded, context, grant=grant)
    assert found.source is not Source.ERROR, found.reason
    return found


def requests(rng: Random) -> list[tuple[Request, Context]]:
    """Draw requests with their sessions."""
    return [(draw.request(rng), draw.context(rng)) for _ in range(ASKS)]


def never_loosens(before: policy.Policy, after: policy.Policy, rng: Random) -> None:
    """Assert that no request is answered more loosely by `after`."""
    for asked, context in requests(rng):
        assert decide(after, asked, context).effect >= decide(before, asked, context).effect


def with_file(files: list[File], layer: int, trusted: bool, table: dict[str, Any], rng: Random) -> list[File]:
    """Add a file somewhere among others."""
    at = rng.randint(0, len(files))
    return [*files[:at], (layer, trusted, table), *files[at:]]


@settings(LAW, max_examples=60)
@given(SEEDS)
def test_a_policy_that_is_only_tightened_allows_nothing_that_one_of_both_does_not(rng: Random) -> None:
    files = draw.files(rng)
    others = rng.sample(files, rng.randint(0, len(files))) + draw.files(rng)
    old, new = draw.load(files), draw.load(others)
    both = tightened(old, new)
    for asked, context in requests(rng):
        if decide(both, asked, context).effect is Effect.ALLOW:
            assert {decide(one, asked, context).effect for one in (old, new)} == {Effect.ALLOW}


@LAW
@given(SEEDS)
def test_order_never_changes_a_decision(rng: Random) -> None:
    files = draw.files(rng)
    shuffled = [(layer, trusted, reordered(table, rng)) for layer, trusted, table in rng.sample(files, len(files))]
    one, other = draw.load(files), draw.load(shuffled)
    for asked, context in requests(rng):
        order = rng.sample(range(len(asked.actions)), len(asked.actions))
        turned = replace(asked, actions=moved(asked.actions, order))
        first, second = decide(one, asked, context), decide(other, turned, context)
        assert (first.effect, first.source, first.remember) == (second.effect, second.source, second.remember)
        assert sorted(j.effect for j in first.actions) == sorted(j.effect for j in second.actions)


def reordered(table: dict[str, Any], rng: Random) -> dict[str, Any]:
    """Shuffle blocks, keys and lists of a file."""
    found = {
        key: rng.sample([dict(rng.sample(list(b.items()), len(b))) for b in value], len(value))
        if key in {"rule", "default"}
        else value
        for key, value in table.items()
    }
    return dict(rng.sample(list(found.items()), len(found)))


def moved(actions: tuple[Action, ...], order: list[int]) -> tuple[Action, ...]:
    """Return the actions in another order, carriers still pointing at their commands."""
    place = {old: new for new, old in enumerate(order)}
    found = (actions[old] for old in order)
    return tuple(a if a.carrier is None else replace(a, carrier=place[a.carrier]) for a in found)


@LAW
@given(SEEDS)
def test_adding_a_deny_never_loosens(rng: Random) -> None:
    files = draw.files(rng)
    layer, trusted = rng.choice(((2, True), (1, True), (0, True), (0, False)))
    more = with_file(files, layer, trusted, {"rule": [draw.rule(rng, "deny")]}, rng)
    never_loosens(draw.load(files), draw.load(more), rng)


@LAW
@given(SEEDS)
def test_adding_an_untrusted_project_file_never_loosens(rng: Random) -> None:
    files = draw.files(rng)
    more = with_file(files, 0, False, draw.table(rng, 0), rng)
    never_loosens(draw.load(files), draw.load(more), rng)


@LAW
@given(SEEDS)
def test_adding_a_user_file_never_loosens_what_managed_said(rng: Random) -> None:
    files: list[File] = [(2, True, draw.table(rng, 2)) for _ in range(rng.randint(1, 3))]
    managed = draw.load(files)
    both = draw.load(with_file(files, rng.choice((0, 1)), True, draw.table(rng, 1), rng))
    for asked, context in requests(rng):
        said = max(
            (managed_word(one, managed) for one in decide(managed, asked, context).actions), default=Effect.ALLOW
        )
        assert decide(both, asked, context).effect >= said


def managed_word(judged: Judged, managed: policy.Policy) -> Effect:
    """What the managed layer says of an action in so many words, leaving out what it delegates."""
    every: list[policy.Entry | policy.Rule] = [
        *(e for layer in managed.defaults for e in layer.entries.values()),
        *(r for layer in managed.defaults for r in layer.rules),
    ]
    delegated = {(one.ref.file, one.ref.line) for one in every if one.delegate}
    refs = [*judged.hits, *(ref for ref in judged.defaults if (ref.file, ref.line) not in delegated)]
    asks = [Effect.ASK] if judged.possible else []
    return max([ref.effect for ref in refs] + asks, default=Effect.ALLOW)


@LAW
@given(SEEDS)
def test_a_grant_changes_an_ask_and_nothing_else(rng: Random) -> None:
    loaded = draw.load(draw.files(rng))
    for asked, context in requests(rng):
        before = decide(loaded, asked, context)
        answers = {n: rng.choice((None, Effect.ALLOW, Effect.ALLOW, Effect.DENY)) for n in range(len(asked.actions))}
        numbers = {id(action): n for n, action in enumerate(asked.actions)}
        after = decide(loaded, asked, context, remembered(answers, numbers))
        if before.effect is not Effect.ASK:
            assert after.effect is before.effect
        elif Effect.DENY in answers.values():
            assert after.effect is Effect.DENY
        elif after.effect is Effect.ALLOW:
            assert not asked.menu
            assert not any(one.floors for one in before.actions if one.effect is Effect.ASK)
            assert "grants" not in loaded.lock.refuse
            assert before.remember != "never"


def remembered(answers: dict[int, Effect | None], numbers: dict[int, int]) -> engine.Grants:
    """Return grants that answer as given, by the number of the action."""
    return lambda one: answers[numbers[id(one.action)]]


@LAW
@given(SEEDS, st.sampled_from(["ask", "deny"]))
def test_an_unless_that_holds_for_one_form_only_never_loosens(rng: Random, effect: str) -> None:
    spared, other = "/w/docs/x.md", rng.choice(["/w/.env", "/etc/x", "/w/secrets/k"])
    forms = (spared, other) if rng.random() < 0.5 else (other, spared)
    ref = PathRef(spared, forms, inside=all(form.startswith("/w/") for form in forms))
    asked = Request("s", "c", "t", (), (Action(frozenset({"read"}), path=ref),))
    rule: dict[str, Any] = {"effect": effect, "path": ["**"]}
    without = draw.load([(1, True, {"defaults": {"read": "allow", "outside": "allow"}, "rule": [rule]})])
    spare = {**rule, "unless": {"path": rng.choice(["docs/**", "**/*.md", "/w/docs/x.md"])}}
    excepted = draw.load([(1, True, {"defaults": {"read": "allow", "outside": "allow"}, "rule": [spare]})])
    context = replace(draw.context(rng), resolved=True, broken="")
    assert decide(excepted, asked, context).effect == decide(without, asked, context).effect


@LAW
@given(SEEDS)
def test_an_opaque_action_is_never_allowed_without_the_word(rng: Random) -> None:
    files = draw.files(rng)
    for _, _, table in files:
        for rule in table["rule"]:
            rule.pop("opaque", None)
    loaded = draw.load(files)
    for asked, context in requests(rng):
        odd = replace(draw.action(rng), role=Role.PRIMARY, path=None, command=None, url=None, tool=None, opaque="odd")
        more = replace(asked, actions=(*asked.actions, replace(odd, idle=False)))
        assert decide(loaded, more, context).effect is not Effect.ALLOW


@LAW
@given(SEEDS)
def test_a_naive_reference_evaluator_agrees(rng: Random) -> None:
    compare(rng)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_naive_reference_evaluator_agrees_on_twenty_thousand_cases() -> None:
    for seed in range(20_000 // ASKS):
        compare(Random(seed))  # noqa: S311 - not for secrets


def compare(rng: Random) -> None:
    """Assert that engine and reference give the same effect."""
    files = draw.files(rng)
    loaded = draw.load(files)
    for asked, context in requests(rng):
        assert decide(loaded, asked, context).effect == reference.decide(asked, files, context)


@LAW
@given(SEEDS)
def test_the_index_leaves_out_no_rule_that_may_hold(rng: Random) -> None:
    loaded = draw.load(draw.files(rng))
    for asked, context in requests(rng):
        for action in asked.actions:
            found = loaded.candidates(action, context)
            holding = [r for r in loaded.index.every if r.holds(action, context) is not Truth.NO]
            assert [rule for rule in holding if rule not in found] == []


@LAW
@given(SEEDS)
def test_a_mention_asks_for_nothing_and_is_never_allowed_anything(rng: Random) -> None:
    loaded = draw.load([(1, True, {"defaults": {"*": "deny", "outside": "deny"}, "rule": []})])
    ref = draw.ref(rng)
    mention = Action(frozenset(), Role.MENTION, path=ref)
    request = Request("s", "t", "", (), (mention,))
    (judged,) = engine.decide(request, loaded, replace(draw.context(rng), broken="")).actions
    assert judged.effect is Effect.ALLOW
    assert not (judged.hits or judged.defaults or judged.floors)


@pytest.mark.parametrize(
    "change",
    [
        lambda context: replace(context, broken="bad"),
        lambda context: replace(context, resolved=False),
    ],
    ids=["broken project policy", "paths unresolved"],
)
@LAW
@given(SEEDS)
def test_knowing_less_never_allows_more(change: Callable[[Context], Context], rng: Random) -> None:
    loaded = draw.load(draw.files(rng))
    for asked, context in requests(rng):
        less = decide(loaded, asked, change(context)).effect
        more = decide(loaded, asked, replace(context, broken="", resolved=True)).effect
        assert more is Effect.ALLOW or less is not Effect.ALLOW


def test_layers_are_ordered() -> None:
    assert Layer.MANAGED > Layer.USER > Layer.PROJECT


@LAW
@given(SEEDS)
def test_what_was_judged_before_changes_no_decision(rng: Random) -> None:
    files = draw.files(rng)
    warm, fresh = draw.load(files), draw.load(files)
    asked = requests(rng)
    facts = [replace(asked[0][1], now=moment) for moment in (draw.NOW, draw.NOW + timedelta(days=400))]
    grants: list[engine.Grants] = [engine.no_grants, lambda judged: Effect.ALLOW, lambda judged: Effect.DENY]
    for _ in range(4 * ASKS):
        request, context = rng.choice(asked)[0], rng.choice((*facts, rng.choice(asked)[1]))
        again = replace(request, menu=rng.random() < 0.1, actions=tuple(replace(one) for one in request.actions))
        grant = rng.choice(grants)
        fresh.memory.clear()
        assert decide(warm, again, context, grant) == decide(fresh, again, context, grant)


@settings(LAW, max_examples=60)
@given(SEEDS)
def test_what_was_judged_of_one_action_is_not_said_of_another(rng: Random) -> None:
    files = draw.files(rng)
    warm, fresh = draw.load(files), draw.load(files)
    action, context = draw.action(rng), draw.context(rng)
    asked = Request("s", "c", "t", (), (action, draw.action(rng)) if rng.random() < 0.3 else (action,))
    decide(warm, asked, context)
    for name in Action.__struct_fields__:
        value = getattr(draw.action(rng), name) if name != "carrier" else None
        other = not value if isinstance(value, bool) else value
        again = replace(asked, actions=(replace(action, **{name: other}), *asked.actions[1:]))
        fresh.memory.clear()
        assert decide(warm, again, context) == decide(fresh, again, context)
