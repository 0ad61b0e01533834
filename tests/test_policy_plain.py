"""The quick looks at a policy file say yes only where the thorough ones find nothing."""

from __future__ import annotations

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from policyd import policy
from policyd.model import Effect, Layer, RuleRef
from policyd.policy import file, shape
from policyd.policy.blocks import PLAIN, heads, normal, plain_resource
from policyd.policy.combinations import mistakes
from policyd.policy.compile import Compiler
from policyd.policy.errors import Mistake
from policyd.policy.sets import Sets

SPECIAL = "aB0/.*-_ :@+=%,~$!^\\(){}[]|&;<>'\"\n\u00e9"
TRICKY = (
    "..", "a/../b", "**", "a**", "**/*.py", "./x", "a//b", "/etc/x", "~/x", "re:x", "mcp__a__b", "a.*", "/a.*/",
    "git:*", "Bash(x)", "@files", "!x", "a b", " a", "*", "src/", "localhost", "a.b", "1.2", "a-b.com",
    "-a.com", "http://a.b/c", "x/y", "x/", "/x", "a.com/**", "a" * 300, "a/" * 99, "https://a.com./", "*.com", "a\n",
    "", "execute", "@read", "bash",
)  # fmt: skip
TEXT = st.sampled_from(TRICKY) | st.text(SPECIAL, max_size=12)
TEXTS = TEXT | st.lists(TEXT, max_size=3)
WORD = st.sampled_from([each for each in TRICKY if each]) | st.text("aB0/.*-_ :@=", min_size=1, max_size=8)
FILLED = WORD | st.lists(WORD, min_size=1, max_size=2)
VALUES = (
    TEXTS
    | st.booleans()
    | st.integers(-1, 1)
    | st.dictionaries(st.sampled_from(["path", "kind", "a"]), TEXTS, max_size=2)
    | st.lists(
        st.dictionaries(st.sampled_from([*shape.Conditions.__struct_fields__, "id"]), TEXTS, max_size=2), max_size=2
    )
)
KEYS = st.sampled_from([*file.RuleBlock.model_fields, "delegate", "priority"])
EFFECT = st.sampled_from(["allow", "ask", "deny"])


def is_right(model: type[BaseModel], table: object) -> bool:
    try:
        model.model_validate(table)
    except ValidationError:
        return False
    return True


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4), EFFECT)
def test_the_quick_look_at_a_shape_takes_nothing_that_the_thorough_one_refuses(
    block: dict[str, object], effect: str
) -> None:
    table = {"effect": effect, **block}
    for name, model in (("rule", file.RuleBlock), ("default", file.DefaultBlock)):
        if shape.file_fits({name: [table]}):
            assert is_right(model, table)


@pytest.mark.parametrize(("quick", "slow"), [(shape.PolicyFile, file.PolicyFile), (shape.RuleBlock, file.RuleBlock),
    (shape.DefaultBlock, file.DefaultBlock), (shape.Conditions, file.Unless), (shape.Lock, file.Lock),
    (shape.ExampleTable, file.ExampleTable)])  # fmt: skip
def test_both_looks_know_the_same_keys(quick: type[Struct], slow: type[BaseModel]) -> None:
    assert set(quick.__struct_fields__) == set(slow.model_fields)


@pytest.mark.parametrize(
    "table",
    [
        {"version": 2}, {"name": ""}, {"requires": 1}, {"defaults": []}, {"sets": {"a": []}},
        {"lock": {"refuse": ["x"]}}, {"lock": {"refuse": []}}, {"lock": {"settings": [""]}}, {"rule": {}},
        {"rules": []}, {"rule": [{"effect": "allow", "id": "a\n"}]}, {"rule": [{"effect": "allow", "id": "a" * 101}]},
        {"rule": [{"effect": "allow", "opaque": False}]}, {"rule": [{}]},
        {"default": [{"effect": "ask", "delegate": 1}]},
    ],
)  # fmt: skip
def test_a_wrong_shape_is_taken_by_neither(table: dict[str, object]) -> None:
    assert not shape.file_fits(table)
    assert not is_right(file.PolicyFile, table)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(PLAIN)), FILLED, EFFECT, st.sampled_from(["", "read", "execute"]))
def test_nothing_is_wrong_with_a_plain_block(key: str, value: str | list[str], effect: str, kind: str) -> None:
    block = {"effect": effect, **({"kind": kind} if kind else {}), key: value}
    if plain_resource(block) is None:
        return
    found: list[Mistake] = [*mistakes(normal(block))]
    compiler = Compiler("/home/dev", "/tmp")
    ref = RuleRef(Layer.USER, "x", next(one for one in Effect if one.word == effect))
    compiler.tables(block, ref, Sets(), found.append)
    assert found == []
    assert list(dict.fromkeys(heads(block))) == list(compiler.heads)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(PLAIN)), TEXTS, max_size=2), EFFECT)
def test_a_policy_that_loads_compiles(block: dict[str, object], effect: str) -> None:
    data = tomli_w.dumps({"rule": [{"effect": effect, **block}]}).encode()
    try:
        loaded = policy.load([policy.PolicySource("p", data, Layer.USER)], home="/h", tmpdir="/tmp", version="0.1")
    except policy.PolicyError:
        return
    assert loaded.rules[0].conditions


def test_a_rule_that_cannot_be_compiled_fails_whoever_asks() -> None:
    ref = RuleRef(Layer.USER, "x", Effect.DENY)
    with pytest.raises(RuntimeError, match="plain rule"):
        Compiler("/home/dev", "/tmp").plain({"effect": "deny", "path": ["a", "b{"]}, ref)
