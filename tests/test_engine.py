"""The decision, sentence by sentence: one policy, one request, one answer, and why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from msgspec.structs import replace

from policyd import engine, paths, policy
from policyd.engine.cache import Verdicts
from policyd.engine.reasons import explained
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
    Role,
    SimpleCommand,
    Source,
    Tool,
    Truth,
    Word,
    WordKind,
)
from policyd.policy import Policy, PolicySource, Rule
from policyd.urls import parse
from tests.fakes import FakeFilesystem

FS = FakeFilesystem({"/w/src/a.py": "", "/w/.env": "", "/w/.env.example": None}, links={"/w/link": "/etc"})
WORKSPACE = paths.open_workspace("/w", (), home="/home/u", fs=FS, heads=("src", "docs", "build"))
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
CONTEXT = Context(WORKSPACE, NOW, Agent("@acp/claude", "0.101.3", "claude"))
ALLOW_ALL = """
[defaults]
"*" = "allow"
outside = "allow"
mcp = "allow"
switch_mode = "allow"
"""


def load(*texts: str, layer: Layer = Layer.USER) -> Policy:
    return load_layers(*((layer, True, text) for text in texts))


def load_layers(*files: tuple[Layer, bool, str]) -> Policy:
    sources = [
        PolicySource(f"{n}.toml", (text or "version = 1").encode(), layer, trust)
        for n, (layer, trust, text) in enumerate(files)
    ]
    return policy.load(sources, home="/home/u", tmpdir="/tmp", fs=FS, version="0.1.0")


def ref(text: str) -> PathRef:
    return paths.ref(text, base=("/w",), workspace=WORKSPACE, fs=FS)


def read(text: str, kind: str = "read") -> Action:
    return Action(frozenset({kind}), path=ref(text), cwd=("/w",), cwd_inside=True)


def led_to(text: str, real: str) -> Action:
    """A read of a path that the kernel walks to another."""
    action, path = read(text), ref(text)
    return replace(action, path=replace(path, forms=(*path.forms, real)))


def run(text: str, *, cwd: str = "/w") -> Action:
    words = tuple(Word(w, WordKind.UNKNOWN if w.startswith("$") else WordKind.CONST) for w in text.split())
    command = SimpleCommand(words, text, cwd=(cwd,))
    return Action(frozenset({"execute"}), command=command, cwd=(cwd,), cwd_inside=cwd.startswith("/w"))


def call(server: str, tool: str, kind: str = "other", **args: object) -> Action:
    name = Tool(f"mcp__{server}__{tool}", ((server, tool),))
    return Action(frozenset({kind}), tool=name, name=name, args=args, mcp=True, cwd=("/w",), cwd_inside=True)


def odd(kind: str = "execute") -> Action:
    return Action(frozenset({kind}), opaque="an open quote", cwd=("/w",), cwd_inside=True)


def mention(text: str) -> Action:
    return Action(frozenset(), Role.MENTION, path=ref(text))


def decide(
    loaded: Policy,
    *actions: Action,
    context: Context = CONTEXT,
    grant: Callable[[Judged], Effect | None] = engine.no_grants,
    menu: bool = False,
) -> Decision:
    found = engine.decide(Request("s", "c", "title", (), actions, menu=menu), loaded, context, FS, grant)
    assert found.source is not Source.ERROR, found.reason
    return found


def effect(loaded: Policy, *actions: Action, context: Context = CONTEXT) -> str:
    return decide(loaded, *actions, context=context).effect.word


# ---- rules and defaults ----------------------------------------------------------------------------


def test_the_strictest_rule_wins_and_is_named() -> None:
    loaded = load(
        '[[rule]]\nid="all"\neffect="allow"\nkind="*"\npath="**"\n'
        '[[rule]]\nid="env"\neffect="deny"\npath=".env"\nreason="use .env.example"\n'
        '[[rule]]\nid="ask"\neffect="ask"\npath="**"\n'
    )
    found = decide(loaded, read(".env"))
    assert (found.effect, found.source, found.reason) == (Effect.DENY, Source.RULE, "use .env.example")
    assert [rule.label for rule in found.rules] == ["user:env"]
    assert sorted(rule.id for rule in found.matched) == ["all", "ask", "env"]
    assert found.revision == loaded.revision


def test_without_a_word_policyd_asks() -> None:
    found = decide(load("version = 1"), read("src/a.py"))
    assert (found.effect, found.source) == (Effect.ASK, Source.DEFAULT)
    assert "no rule applies" in found.reason


def test_a_request_with_nothing_in_it_is_never_allowed() -> None:
    assert effect(load(ALLOW_ALL)) == "ask"
    assert effect(load(ALLOW_ALL), mention("src/a.py")) == "ask"


def test_a_denied_mention_denies_even_without_a_primary_action() -> None:
    assert effect(load(ALLOW_ALL + '[[rule]]\neffect="deny"\npath=".env"'), mention(".env")) == "deny"


@pytest.mark.parametrize(
    ("managed", "user", "want"),
    [
        ('[defaults]\nexecute="deny"', '[[rule]]\neffect="allow"\ncommand="**"', "deny"),
        ('[defaults]\nexecute="ask"\ndelegate=true', '[[rule]]\neffect="allow"\ncommand="**"', "allow"),
        ('[defaults]\nexecute="deny"\ndelegate=true', '[[rule]]\neffect="ask"\ncommand="**"', "ask"),
        ('[defaults]\n"*"="ask"', '[defaults]\nexecute="allow"', "ask"),
        ('[defaults]\n"*"="ask"\ndelegate=true', '[defaults]\nexecute="allow"', "ask"),
        ('[defaults]\n"*"="ask"\nexecute="allow"', '[defaults]\n"*"="deny"\nexecute="allow"', "allow"),
        ('[[rule]]\neffect="allow"\ncommand="ls"', '[defaults]\n"*"="deny"', "allow"),
        ('[[default]]\ncommand="ls"\neffect="ask"\ndelegate=true\n[defaults]\nexecute="deny"', "", "ask"),
        ('[[default]]\ncommand="ls"\neffect="ask"\n[[default]]\ncommand="l*"\neffect="deny"', "", "deny"),
        (
            '[[rule]]\neffect="allow"\ncommand="ls"\n[lock]\nrefuse=["user.allow"]',
            '[[rule]]\neffect="deny"\nkind="*"',
            "deny",
        ),
        ('[lock]\nrefuse=["user.allow"]', '[[rule]]\neffect="allow"\ncommand="ls"', "ask"),
        ('[lock]\nrefuse=["user.allow"]', '[defaults]\nexecute="allow"', "ask"),
        ('[lock]\nrefuse=["project.allow"]', '[[rule]]\neffect="allow"\ncommand="ls"', "allow"),
    ],
)
def test_defaults_yield_to_rules_of_their_layer_or_above(managed: str, user: str, want: str) -> None:
    assert effect(load_layers((Layer.MANAGED, True, managed), (Layer.USER, True, user)), run("ls")) == want


@pytest.mark.parametrize(
    ("project", "trusted", "want"),
    [
        ('[[rule]]\neffect="allow"\ncommand="**"', False, "ask"),
        ('[[rule]]\neffect="allow"\ncommand="**"', True, "allow"),
        ('[defaults]\nexecute="allow"', False, "ask"),
        ('[defaults]\nexecute="allow"', True, "allow"),
        ('[[default]]\ncommand="**"\neffect="allow"', False, "ask"),
        ('[[rule]]\neffect="deny"\ncommand="**"', False, "deny"),
        ('[defaults]\nexecute="deny"', False, "deny"),
    ],
)
def test_an_untrusted_project_only_tightens(project: str, trusted: bool, want: str) -> None:
    assert effect(load_layers((Layer.PROJECT, trusted, project)), run("ls")) == want


def test_an_untrusted_ask_does_not_lift_a_default_deny() -> None:
    ask = '[[rule]]\neffect="ask"\ncommand="**"'
    loaded = load_layers((Layer.USER, True, '[defaults]\n"*"="deny"'), (Layer.PROJECT, False, ask))
    assert effect(loaded, run("ls")) == "deny"


def test_a_match_that_rests_on_an_unknown_word_asks_and_displaces_nothing() -> None:
    loaded = load('[defaults]\nexecute="allow"\n[[rule]]\nid="p"\neffect="deny"\ncommand="git push"')
    found = decide(loaded, run("git $SUB"))
    assert (found.effect, [rule.id for rule in found.rules]) == (Effect.ASK, ["p"])
    assert "possibly denied" in found.reason
    told = decide(load('[[rule]]\nid="p"\neffect="deny"\ncommand="git push"\nreason="Never."'), run("git $SUB"))
    assert "possibly denied by `user:p`: Never." in told.reason
    assert (
        effect(load('[defaults]\nexecute="deny"\n[[rule]]\neffect="ask"\ncommand="git push"'), run("git $SUB"))
        == "deny"
    )


# ---- the ground ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ground", "action", "want"),
    [
        ('"*"="allow"', run("ls"), "allow"),
        ('"*"="allow"', read("src/a.py"), "allow"),
        ('"*"="allow"', read("/etc/passwd"), "ask"),
        ('"*"="allow"', odd(), "ask"),
        ('"*"="allow"', call("jira", "get"), "ask"),
        ('"*"="allow"', Action(frozenset({"switch_mode"}), mode=Mode("plan")), "ask"),
        ('"*"="allow"\nswitch_mode="allow"', Action(frozenset({"switch_mode"}), mode=Mode("plan")), "allow"),
        ('"*"="deny"', odd(), "deny"),
        ('"*"="deny"', call("jira", "get"), "deny"),
        ('"*"="deny"', read("/etc/passwd"), "deny"),
        ('mcp="allow"\nother="deny"', call("jira", "get"), "allow"),
        ('mcp="deny"\nread="allow"', call("jira", "get", "read"), "deny"),
        ('read="allow"\n', call("jira", "list", "read"), "ask"),
        ('read="allow"', read("/etc/passwd"), "ask"),
        ('read="allow"\noutside="allow"', read("/etc/passwd"), "allow"),
        ('read="deny"\noutside="allow"', read("/etc/passwd"), "deny"),
        ('read="ask"\noutside="deny"', read("/etc/passwd"), "deny"),
        ('outside="allow"', read("/etc/passwd"), "ask"),
        ('read="allow"\noutside="allow"', read("/etc/passwd", "delete"), "ask"),
        ('read="allow"\noutside="allow"', read("/etc/passwd", "_own"), "ask"),
        ('"*"="allow"\noutside="allow"', read("/etc/passwd", "delete"), "allow"),
        ('"*"="ask"\noutside="allow"', read("/etc/passwd"), "ask"),
        ('read="deny"\n"*"="allow"', read("src", "search"), "deny"),
        ('delete="deny"\n"*"="allow"', read("src/a.py", "move"), "deny"),
        ('delete="deny"\nmove="allow"', read("src/a.py", "move"), "allow"),
        ('read="deny"\n"*"="allow"', read("src/a.py", "move"), "allow"),
        ('execute="allow"', run("ls", cwd="/etc"), "ask"),
        ('execute="allow"\noutside="allow"', run("ls", cwd="/etc"), "ask"),
        ("think='allow'", Action(frozenset({"think"})), "allow"),
        ("other='deny'", Action(frozenset()), "deny"),
        ("_plan='allow'", Action(frozenset({"_plan"})), "allow"),
        ("read='allow'\nedit='ask'", replace(read("src/a.py"), kinds=frozenset({"read", "edit"})), "ask"),
        ("read='allow'", replace(run("curl x"), kinds=frozenset({"read", "execute"})), "ask"),
        ("read='allow'\nexecute='allow'", replace(run("curl x"), kinds=frozenset({"read", "execute"})), "allow"),
        ("read='allow'\n'*'='allow'", replace(run("curl x"), kinds=frozenset({"read", "execute"})), "allow"),
        ("read='allow'\n'*'='allow'", replace(read("src"), kinds=frozenset({"read", "switch_mode"})), "ask"),
        ("read='allow'", replace(read("src/a.py"), kinds=frozenset({"read", "delete"})), "ask"),
        ("fetch='allow'", Action(frozenset({"fetch", "read"}), url=parse("https://a.test/")), "ask"),
    ],
)
def test_the_ground(ground: str, action: Action, want: str) -> None:
    assert effect(load(f"[defaults]\n{ground}"), action) == want


def test_layers_together_name_the_kinds_of_an_action() -> None:
    both = replace(run("cat x"), kinds=frozenset({"read", "execute"}))
    reads, runs = '[defaults]\nread="allow"', '[defaults]\nexecute="allow"'
    assert effect(load_layers((Layer.MANAGED, True, reads), (Layer.USER, True, runs)), both) == "allow"
    assert effect(load_layers((Layer.USER, True, reads), (Layer.PROJECT, False, runs)), both) == "ask"


def test_what_a_layer_says_is_the_same_however_much_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.policy.layers.KEPT", 2)
    loaded = load('[defaults]\nread="allow"\nedit="deny"')
    for _ in range(2):
        assert [effect(loaded, read("src/a.py", kind)) for kind in ("read", "edit", "search")] == [
            "allow",
            "deny",
            "ask",
        ]


def test_an_allow_of_every_kind_leaves_nothing_unnamed() -> None:
    both = replace(run("cat x"), kinds=frozenset({"read", "execute"}))
    for block in ('[[rule]]\neffect="allow"\ncommand="cat **"', '[[default]]\neffect="allow"\ncommand="cat **"'):
        assert effect(load(f'[defaults]\nread="allow"\n{block}'), both) == "allow"
    partial = '[defaults]\nread="allow"\n[[default]]\neffect="allow"\nkind="execute"'
    assert effect(load(partial), both) == "ask"


def test_a_kind_no_default_names_may_be_remembered() -> None:
    both = replace(run("cat x"), kinds=frozenset({"read", "execute"}))
    found = decide(load('[defaults]\nread="allow"'), both)
    assert (found.effect, found.reason, found.actions[0].floors) == (Effect.ASK, "no rule applies to it", ())


def test_the_same_request_is_told_in_the_same_words() -> None:
    ground = "".join(f'{kind} = "ask"\n' for kind in ("read", "edit", "delete", "fetch", "think"))
    action = Action(frozenset({"think", "fetch", "read", "edit", "delete"}))
    found = decide(load(f"[defaults]\n{ground}"), action)
    assert [rule.id for rule in found.rules] == [f"defaults.{kind}" for kind in sorted(action.kinds)]


# ---- floors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "action", "want"),
    [
        ('kind="execute"', odd(), "ask"),
        ('kind="execute"\nopaque=true', odd(), "allow"),
        ('kind="execute"\nopaque=true', run("ls"), "allow"),
        ('kind="edit"\nopaque=true', odd(), "ask"),
        ('kind="read"', read("/etc/passwd"), "ask"),
        ('kind="read"\npath="/etc/**"', read("/etc/passwd"), "allow"),
        ('kind="read"\npath="@outside"', read("/etc/passwd"), "allow"),
        ('kind="read"\npath="@outside"', read("src/a.py"), "ask"),
        ('kind="read"\npath="**"', read("link/passwd"), "ask"),
        ('kind="read"\npath=["src/**", "lib/**"]', led_to("src/l", "/w/lib/l"), "allow"),
        ('kind="read"\npath=["src/**", "docs/**"]', led_to("src/l", "/w/lib/l"), "ask"),
        ('kind="read"\npath="src/**"', led_to("src/l", "/w/lib/l"), "ask"),
        ('command="ls"', run("ls", cwd="/etc"), "ask"),
        ('command="ls"\ncwd="/etc"', run("ls", cwd="/etc"), "allow"),
        ('command="ls"\ncwd="src/**"', run("ls", cwd="/w"), "ask"),
        ('command="ls"\ncwd="src/**"', run("ls", cwd="/w/src"), "allow"),
        ('command="ls"\ncwd=["src", "lib"]', replace(run("ls"), cwd=("/w/src", "/w/lib")), "allow"),
        ('command="ls"\ncwd=["src", "docs"]', replace(run("ls"), cwd=("/w/src", "/w/lib")), "ask"),
        ('kind="execute"', run("ls", cwd="/etc"), "ask"),
        ('command="make **"', replace(run("make -f /etc/m"), strays=("/etc/m",)), "ask"),
        ('kind="execute"', replace(run("ls"), escalate="sandbox off"), "ask"),
        ('kind="execute"\nescalate=true', replace(run("ls"), escalate="sandbox off"), "allow"),
        ('kind="execute"', replace(run("ls"), guarded="grants"), "ask"),
        ('kind="*"', Action(frozenset({"switch_mode"})), "ask"),
        ('kind=["*", "switch_mode"]', Action(frozenset({"switch_mode"})), "allow"),
        ('kind="read"', call("jira", "list", "read"), "ask"),
        ('kind="other"', call("jira", "list", "read"), "allow"),
        ('tool="jira/*"', call("jira", "list", "read"), "allow"),
        ('tool="jira"', call("jira", "list"), "ask"),
        ('tool="Bash"', replace(run("ls"), name=Tool("Bash")), "allow"),
        ('tool="Bash"', replace(odd(), name=Tool("Bash")), "ask"),
        *(
            (
                rule,
                replace(run("ls"), command=replace(run("ls").command or SimpleCommand((), ""), strict_only=True)),
                want,
            )
            for rule, want in (('command="**"', "ask"), ('kind="execute"', "ask"), ('kind="*"\nopaque=true', "allow"))
        ),
    ],
)
def test_what_is_not_said_in_words_asks(rule: str, action: Action, want: str) -> None:
    assert effect(load(f'[[rule]]\neffect="allow"\n{rule}'), action) == want


def test_a_deny_of_what_lies_outside_is_of_nothing_else() -> None:
    loaded = load(ALLOW_ALL, '[[rule]]\neffect="deny"\npath="@outside"')
    assert effect(loaded, read("/etc/passwd")) == "deny"
    assert effect(loaded, read("link/passwd")) == "deny"
    assert effect(loaded, read("src/a.py")) == "allow"


def test_an_outside_word_is_covered_by_within_or_by_a_path_rule() -> None:
    stray = replace(run("make -f /etc/m"), strays=("/etc/m",), within=(ref("/etc/m"),))
    make = '[[rule]]\neffect="allow"\ncommand="make **"\n'
    assert effect(load(make), stray) == "ask"
    assert effect(load(make + 'within="/etc/**"'), stray) == "allow"
    assert effect(load(make + '[[rule]]\neffect="allow"\nkind=["read","edit"]\npath="/etc/m"'), stray) == "allow"
    assert effect(load(make + '[[rule]]\neffect="allow"\nkind="read"\npath="/etc/m"'), stray) == "ask"
    twice = (stray, replace(stray, within=(None, ref("/etc/m"))), mention("/etc/m"))
    assert effect(load(make + '[[rule]]\neffect="allow"\nkind=["read","edit"]\npath="/etc/m"'), *twice) == "allow"
    assert effect(load(make + '[[rule]]\neffect="allow"\nkind=["read","edit"]'), stray) == "ask"
    assert effect(load(make + '[[rule]]\neffect="allow"\nkind=["read","edit"]'), stray) == "ask"
    known = Action(frozenset({"read"}), Role.OPERAND, path=ref("/etc/m"), cwd=("/w",), cwd_inside=True)
    assert effect(load(make + '[[rule]]\neffect="allow"\nkind="read"\npath="/etc/m"'), stray, known) == "allow"
    assert effect(load(make + '[defaults]\noutside="allow"\nread="allow"'), stray, known) == "allow"
    assert effect(load(make + '[defaults]\noutside="allow"\nread="allow"'), stray) == "ask"
    assert effect(load(make + '[defaults]\noutside="allow"\nread="allow"\nedit="allow"'), stray) == "allow"
    both = (known, replace(known, kinds=frozenset({"edit"})))
    reads = '[[rule]]\neffect="allow"\nkind="read"\npath="/etc/m"\n'
    found = decide(load(make + reads), stray, *both)
    assert found.actions[0].floors == ("it names /etc/m outside the workspace",)


HOMES = """
version = 1

[[rule]]
effect = "deny"
path = "~/.ssh"

[[rule]]
effect = "deny"
command = "~/bin/x **"

[[rule]]
effect = "allow"
kind = "read"
path = "~/src/**"
unless = { path = "$HOME/src/own" }
"""


@pytest.mark.parametrize(
    ("path", "managed", "user"),
    [
        ("/fake/.ssh/id", "deny", "deny"),
        ("/home/u/.ssh/id", "deny", "ask"),
        ("/home/w/.ssh/id", "ask", "ask"),
        ("/fake/src/a", "allow", "allow"),
        ("/home/u/src/a", "ask", "ask"),
        ("/fake/src/own", "ask", "ask"),
        ("/fake/bin/x a", "deny", "deny"),
        ("/home/u/bin/x a", "deny", "ask"),
        ("/srv/fake/id", "deny", "deny"),
        ("/srv/own/id", "deny", "ask"),
    ],
)
def test_no_other_home_takes_anything_out_of_what_is_managed(path: str, managed: str, user: str) -> None:
    user_file, managed_file = (PolicySource("/p", HOMES.encode(), layer) for layer in (Layer.USER, Layer.MANAGED))
    action = run(path) if " " in path else read(path)

    def told(*sources: PolicySource) -> str:
        linked = FakeFilesystem(links={"/fake/.ssh": "/srv/fake", "/home/u/.ssh": "/srv/own"})
        rules = policy.load(sources, home="/fake", account="/home/u", tmpdir="/tmp", fs=linked, version="1")
        return effect(rules, action)

    assert told(managed_file) == managed
    assert told(user_file) == user
    assert told(user_file, managed_file) == managed


def test_policyds_own_things_need_a_managed_rule() -> None:
    own = replace(read("src/a.py"), guarded="policies")
    rule = '[[rule]]\neffect="allow"\nkind="read"\npath="**"'
    found = decide(load(rule), own)
    assert (found.effect, found.source, found.remember) == (Effect.ASK, Source.GUARD, "never")
    assert effect(load(rule, layer=Layer.MANAGED), own) == "allow"
    assert effect(load(rule, layer=Layer.MANAGED), run("ls"), replace(mention("src/a.py"), guarded="policies")) == "ask"


def test_only_the_guard_is_the_guard() -> None:
    found = decide(load('[defaults]\nread="allow"'), read("/etc/passwd"))
    assert (found.effect, found.source, found.remember) == (Effect.ASK, Source.DEFAULT, "never")
    assert found.reason == "outside the workspace"


def test_a_broken_project_asks_about_everything() -> None:
    broken = replace(CONTEXT, broken=".policyd/x.toml:3: not TOML")
    found = decide(load(ALLOW_ALL), read("src/a.py"), context=broken, grant=lambda _: Effect.ALLOW)
    assert found.effect is Effect.ASK
    assert ".policyd/x.toml:3" in found.reason
    assert effect(load('[[rule]]\neffect="deny"\npath="**"'), read("src/a.py"), context=broken) == "deny"


@pytest.mark.parametrize(
    ("text", "action", "want"),
    [
        ('[defaults]\nread="allow"', read("src/a.py"), "ask"),
        ('[[rule]]\neffect="allow"\nkind="read"\npath="**"', read("src/a.py"), "ask"),
        ('[[rule]]\neffect="allow"\nkind="read"', read("src/a.py"), "ask"),
        ('[[rule]]\neffect="allow"\ncommand="ls"', run("ls"), "allow"),
        ('[[rule]]\neffect="deny"\npath="src"', read("src/a.py"), "deny"),
    ],
)
def test_without_a_resolver_no_path_rule_and_no_default_allows(text: str, action: Action, want: str) -> None:
    assert effect(load(text), action, context=replace(CONTEXT, resolved=False)) == want


# ---- commands and their files ----------------------------------------------------------------------


def operand(text: str, kind: str = "read") -> Action:
    return Action(frozenset({kind}), Role.OPERAND, path=ref(text), carrier=0, cwd=("/w",), cwd_inside=True)


@pytest.mark.parametrize(
    ("rules", "files", "want"),
    [
        ("", (operand("src/a.py"),), "allow"),
        ("", (operand("/etc/passwd"),), "ask"),
        ("", (operand("src/a.py"), operand(".env")), "allow"),
        ('[[rule]]\neffect="deny"\npath=".env"', (operand("src/a.py"), operand(".env")), "deny"),
        ('[[rule]]\neffect="ask"\nkind="read"\npath="src"', (operand("src/a.py"),), "ask"),
        ("", (replace(operand("src/a.py"), carrier=None),), "ask"),
        ("", (replace(operand("src/a.py"), path=None, opaque="unknown"),), "ask"),
        ('[defaults]\noutside="allow"', (operand("/etc/passwd"),), "ask"),
        ('[defaults]\n"*"="deny"', (operand("src/a.py"),), "allow"),
        ('[defaults]\n"*"="deny"', (replace(operand("src/a.py"), carrier=None),), "deny"),
    ],
)
def test_an_allowed_command_carries_its_operands_inside(rules: str, files: tuple[Action, ...], want: str) -> None:
    assert effect(load('[[rule]]\neffect="allow"\ncommand="cat **"\n', rules), run("cat"), *files) == want


def test_what_a_command_carries_is_asked_once_however_many_files_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Action] = []
    carries = Rule.carries

    def counted(rule: Rule, action: Action) -> bool:
        asked.append(action)
        return carries(rule, action)

    monkeypatch.setattr(Rule, "carries", counted)
    files = [operand(f"src/{at}.py") for at in range(20)]
    assert effect(load('[[rule]]\neffect = "allow"\ncommand = "cat **"'), run("cat src/1.py"), *files) == "allow"
    assert len(asked) == 1


def test_a_rule_for_what_is_not_understood_carries_no_operand_that_is_not() -> None:
    loaded = load('[[rule]]\neffect="allow"\nkind="execute"\nopaque=true')
    assert effect(loaded, run("cat"), operand("src/a.py")) == "allow"
    assert effect(loaded, run("cat"), replace(operand("src/a.py"), opaque="a glob too wide")) == "ask"


def test_within_says_which_files_a_command_may_name() -> None:
    loaded = load('[[rule]]\neffect="allow"\ncommand="rm **"\nwithin=["build/**", "/srv/x/**"]')
    for name, want in (("build/a", "allow"), ("src/a.py", "ask"), ("/srv/x/y", "allow"), ("/srv/z", "ask")):
        named = replace(run(f"rm {name}"), within=(ref(name),))
        assert effect(loaded, named, operand(name, "delete")) == want
    assert effect(loaded, replace(run("rm $X"), within=(None,))) == "ask"
    assert effect(loaded, run("rm")) == "ask"


def test_a_set_may_say_that_its_commands_carry_nothing() -> None:
    loaded = load('[[rule]]\neffect="allow"\ncommand="@files"')
    assert effect(loaded, run("mkdir out")) == "allow"
    assert effect(loaded, run("mkdir out"), operand("out", "edit")) == "ask"


def test_idle_commands_need_no_allow_beside_one_that_does() -> None:
    loaded = load('[[rule]]\neffect="allow"\ncommand="ls"\n[[rule]]\neffect="deny"\ncommand="cd /etc"')
    idle = replace(run("cd src"), idle=True)
    assert effect(loaded, idle, run("ls")) == "allow"
    assert effect(loaded, idle) == "ask"
    assert effect(loaded, idle, mention("src")) == "ask"
    assert effect(loaded, replace(run("cd /etc"), idle=True), run("ls")) == "deny"


# ---- mentions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        ('effect="deny"\npath=".env"', "deny"),
        ('effect="deny"\nkind="read"\npath=".env"', "deny"),
        ('effect="deny"\nkind="edit"\npath=".env"', "ask"),
        ('effect="deny"\nkind="edit"', "allow"),
        ('effect="deny"\nkind="read"', "allow"),
        ('effect="ask"\nkind="@read"\npath=".env"', "ask"),
        ('effect="deny"\npath=".env"\nunless={ path=".env.example" }', "deny"),
    ],
)
def test_mentions_are_matched_only_through_their_resource(rule: str, want: str) -> None:
    loaded = load(f'[[rule]]\neffect="allow"\ncommand="tool **"\n[[rule]]\n{rule}')
    assert effect(loaded, run("tool .env"), mention(".env")) == want


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        ('effect="deny"\npath=".env"', "deny"),
        ('effect="deny"\nkind="edit"\npath=".env"', "deny"),
        ('effect="deny"\nkind="@read"\npath=".env"', "allow"),
        ('effect="deny"\nkind="edit"', "allow"),
        ('effect="deny"\npath=".env"\nunless={ kind="edit" }', "allow"),
        ('effect="allow"\nkind="edit"\npath=".env"', "ask"),
    ],
)
def test_a_mention_of_which_it_is_said_what_is_done_is_judged_as_that_kind_only(rule: str, want: str) -> None:
    loaded = load(f'[[rule]]\n{rule}\n[[rule]]\neffect="allow"\ncommand="tool **"')
    told = replace(mention(".env"), kinds=frozenset({"edit"}))
    assert effect(loaded, *([run("tool .env")] if want != "ask" else []), told) == want


def test_the_exception_of_an_allow_on_kinds_is_tested_on_the_mentions_too() -> None:
    loaded = load('[[rule]]\neffect="allow"\nkind=["execute","read"]\nunless={ path=".env" }')
    assert effect(loaded, run("tool x"), mention("src/a.py")) == "allow"
    assert effect(loaded, run("tool .env"), mention(".env")) == "ask"


# ---- exceptions ------------------------------------------------------------------------------------


def linked(*forms: str) -> Action:
    return Action(frozenset({"read"}), path=PathRef(forms[0], forms, inside=True), cwd=("/w",), cwd_inside=True)


@pytest.mark.parametrize(
    ("rule", "action", "want"),
    [
        ('effect="deny"\npath="**/.env*"\nunless={ path="**/.env.example" }', linked("/w/.env.example"), "allow"),
        (
            'effect="deny"\npath="**/.env*"\nunless={ path="**/.env.example" }',
            linked("/w/.env.example", "/w/.env"),
            "deny",
        ),
        (
            'effect="deny"\npath="**/.env*"\nunless=[{ path="**/.env.example" }, { mode="plan" }]',
            linked("/w/.env.example"),
            "allow",
        ),
        ('effect="deny"\nkind="read"\nunless={ mode="plan" }', linked("/w/a"), "deny"),
        ('effect="deny"\nkind="execute"\nunless={ command="ls **" }', run("ls src"), "allow"),
        ('effect="deny"\nkind="execute"\nunless={ command="ls **" }', run("rm src"), "deny"),
        ('effect="deny"\nkind="execute"\nunless={ command="ls **" }', odd(), "deny"),
        (
            'effect="deny"\ncommand="rm"\nunless={ command="rm **", within="build/**" }',
            replace(run("rm x"), within=(ref("build/x"),)),
            "allow",
        ),
        (
            'effect="deny"\ncommand="rm"\nunless={ command="rm **", within="build/**" }',
            replace(run("rm x"), within=(ref("x"),)),
            "deny",
        ),
        ('effect="deny"\npath="**"\nunless={ path="@outside" }', read("/etc/x"), "allow"),
    ],
)
def test_the_exception_of_a_strict_rule_must_be_sure(rule: str, action: Action, want: str) -> None:
    opaque = '[[rule]]\neffect="allow"\nkind="*"\nopaque=true\n'
    assert effect(load(ALLOW_ALL, f"{opaque}[[rule]]\n{rule}"), action) == want


def test_the_exception_of_a_strict_rule_does_not_ask_where_a_command_runs() -> None:
    loaded = load('[[rule]]\neffect="deny"\ncommand="kubectl"\nunless={ command="kubectl get **" }')
    assert effect(loaded, run("kubectl get x", cwd="/etc")) == "ask"
    assert effect(loaded, run("kubectl delete x", cwd="/etc")) == "deny"
    narrow = load('[[rule]]\neffect="deny"\ncommand="rm"\nunless={ command="rm **", cwd="build/**" }')
    assert effect(narrow, run("rm x", cwd="/w/build")) == "ask"
    assert effect(narrow, run("rm x", cwd="/w")) == "deny"
    assert effect(narrow, replace(run("rm x"), cwd=())) == "deny"


@pytest.mark.parametrize(
    ("rule", "action", "want"),
    [
        ('kind="read"\npath="**"\nunless={ path=".env" }', linked("/w/a"), "allow"),
        ('kind="read"\npath="**"\nunless={ path=".env" }', linked("/w/a", "/w/.env"), "ask"),
        ('command="git **"\nunless={ command="git push **" }', run("git status"), "allow"),
        ('command="git **"\nunless={ command="git push **" }', run("git push x"), "ask"),
        ('command="git **"\nunless={ command="git push **" }', run("git $X"), "ask"),
        ('kind="execute"\nopaque=true\nunless={ command="rm **" }', odd(), "ask"),
        ('kind="read"\nopaque=true\nunless={ path=".env" }', odd("read"), "ask"),
        ('kind="fetch"\nopaque=true\nunless={ url="a.test" }', odd("fetch"), "ask"),
        ('kind="read"\nunless={ mode="yolo" }', read("src/a.py"), "ask"),
        ('kind="read"\nunless={ tool="Read" }', read("src/a.py"), "ask"),
        ('kind="@write"\nunless={ kind="delete" }', read("src/a.py", "edit"), "allow"),
        ('kind="@write"\nunless={ kind="delete" }', read("src/a.py", "move"), "ask"),
    ],
)
def test_the_exception_of_an_allow_rule_holds_where_it_may(rule: str, action: Action, want: str) -> None:
    assert effect(load(f'[[rule]]\neffect="allow"\n{rule}'), action) == want


def test_a_rule_on_reads_is_about_what_is_moved_too() -> None:
    loaded = load('[defaults]\nread="allow"\nmove="allow"\n[[rule]]\neffect="deny"\nkind="read"\npath="src/a.py"')
    assert effect(loaded, read("src/a.py", "move")) == "deny"
    assert effect(loaded, read("src/b.py", "move")) == "allow"


# ---- conditions on session and person --------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "context", "allow", "deny"),
    [
        ('agent="claude"', CONTEXT, True, True),
        ('agent="codex"', CONTEXT, False, False),
        ('agent="claude@0.101.*"', CONTEXT, True, True),
        ('agent="claude@0.102.*"', CONTEXT, False, False),
        ('agent="@acp/claude"', CONTEXT, True, True),
        ('agent="claude"', replace(CONTEXT, agent=Agent()), False, True),
        ('agent="claude@1.*"', replace(CONTEXT, agent=Agent("x", "", "claude")), False, True),
        ('agent="vibe"', replace(CONTEXT, agent=Agent("x", "2.1", "vibe-2", "vibe")), True, True),
        ('agent="vibe@3.*"', replace(CONTEXT, agent=Agent("x", "2.1", "vibe-2", "vibe")), False, False),
        ('mode="plan"', CONTEXT, False, True),
        ('mode="plan"', replace(CONTEXT, mode=Mode("plan")), True, True),
        ('mode="@unsafe"', replace(CONTEXT, mode=Mode("new")), True, True),
        ('mode="@asking"', replace(CONTEXT, mode=Mode("new")), False, False),
        ('mode="@asking"', replace(CONTEXT, mode=Mode("default", asking=True, unsafe=False)), True, True),
        ('label={ env="ci" }', replace(CONTEXT, labels={"env": "ci"}), True, True),
        ('label={ env="ci" }', replace(CONTEXT, labels={"env": "dev"}), False, False),
        ('label={ env="ci", team="a" }', replace(CONTEXT, labels={"env": "ci"}), False, False),
        ('label={ env="ci", team="a" }', replace(CONTEXT, labels={"env": "ci", "team": "a"}), True, True),
        ('label={ env=["ci","dev"] }', replace(CONTEXT, labels={"env": "dev"}), True, True),
        ('label={ env="ci" }', replace(CONTEXT, labels={"env": "ci"}, managed_labels={"env": "dev"}), False, True),
        ('user="eve"', replace(CONTEXT, user="eve"), True, True),
        ('user="eve"', CONTEXT, False, True),
        ('group="data"', replace(CONTEXT, user="eve", groups=("data",)), True, True),
        ('group="data"', replace(CONTEXT, user="eve", groups=("web",)), False, False),
        ("until=2026-11-29T13:00:00Z", CONTEXT, True, True),
        ("until=2026-11-29T11:00:00Z", CONTEXT, False, False),
        ("until=2026-11-29T13:30:00+02:00", CONTEXT, False, False),
    ],
)
def test_what_is_unknown_of_the_session_holds_for_strict_rules_only(
    condition: str, context: Context, allow: bool, deny: bool
) -> None:
    assert effect(load(f'[[rule]]\neffect="allow"\nkind="think"\n{condition}'), think(), context=context) == (
        "allow" if allow else "ask"
    )
    strict = load('[defaults]\nthink="allow"', f'[[rule]]\neffect="deny"\nkind="think"\n{condition}')
    assert effect(strict, think(), context=context) == ("deny" if deny else "allow")


def think() -> Action:
    return Action(frozenset({"think"}))


def test_a_managed_allow_trusts_managed_labels_only() -> None:
    rule = '[[rule]]\neffect="allow"\nkind="think"\nlabel={ env="ci" }'
    loaded = load(rule, layer=Layer.MANAGED)
    assert effect(loaded, think(), context=replace(CONTEXT, labels={"env": "ci"})) == "ask"
    assert effect(loaded, think(), context=replace(CONTEXT, managed_labels={"env": "ci"})) == "allow"


def test_interactive_means_that_a_prompt_is_configured() -> None:
    loaded = load('[[default]]\nkind="*"\neffect="deny"\ninteractive=false\nreason="nobody to ask"')
    assert decide(loaded, think()).reason == "nobody to ask"
    assert effect(loaded, think(), context=replace(CONTEXT, interactive=True)) == "ask"


def test_the_mode_a_switch_leads_to_counts_for_a_switch() -> None:
    loaded = load('[[rule]]\neffect="deny"\nkind="switch_mode"\nmode="@unsafe"')
    safe = replace(CONTEXT, mode=Mode("plan", asking=True, unsafe=False))
    assert effect(loaded, Action(frozenset({"switch_mode"}), mode=Mode("yolo")), context=safe) == "deny"
    assert effect(loaded, Action(frozenset({"switch_mode"})), context=safe) == "deny"
    assert effect(loaded, Action(frozenset({"switch_mode"}), mode=safe.mode)) == "ask"


@pytest.mark.parametrize(
    ("args", "allow", "deny"),
    [({"b": "release/1"}, True, True), ({"b": "main"}, False, False), ({}, False, False), (None, False, None)],
)
def test_arguments_that_are_missing_count_against_the_requester(
    args: dict[str, object] | None, allow: bool, deny: bool | None
) -> None:
    action = replace(call("git", "push"), args=args)
    rule = 'tool="git/push"\ninput={ b="release/*" }'
    assert effect(load(f'[[rule]]\neffect="allow"\n{rule}'), action) == ("allow" if allow else "ask")
    strict = effect(load('[defaults]\nmcp="allow"', f'[[rule]]\neffect="deny"\n{rule}'), action)
    assert strict == ("ask" if deny is None else "deny" if deny else "allow")


def test_a_url_rule() -> None:
    url = Action(frozenset({"fetch"}), url=parse("https://docs.python.org/3/x"), cwd=("/w",), cwd_inside=True)
    assert effect(load('[[rule]]\neffect="allow"\nurl="docs.python.org"'), url) == "allow"
    assert effect(load('[[rule]]\neffect="allow"\nurl="*.python.org"'), url) == "allow"
    assert effect(load('[defaults]\nfetch="allow"', '[[rule]]\neffect="deny"\nurl="docs.python.org"'), url) == "deny"
    hidden = replace(url, url=parse("https://a.test/docs/%2e%2e/admin"))
    assert effect(load('[[rule]]\neffect="allow"\nurl="a.test/docs/**"'), hidden) == "ask"
    assert effect(load('[[rule]]\neffect="allow"\nurl=["a.test/docs/**", "a.test/admin"]'), hidden) == "ask"
    assert effect(load('[defaults]\nfetch="allow"', '[[rule]]\neffect="deny"\nurl="a.test/admin"'), hidden) == "deny"


def test_a_deny_of_what_one_of_several_readings_holds_asks() -> None:
    policy = load('[defaults]\nfetch="allow"', '[[rule]]\neffect="deny"\nurl="a.test"')
    url = Action(frozenset({"fetch"}), url=parse("https://a.test/"))
    assert (effect(policy, url), effect(policy, replace(url, doubtful=True))) == ("deny", "ask")


# ---- menus, grants, memory -------------------------------------------------------------------------


def test_a_menu_asks_and_no_grant_settles_it() -> None:
    loaded = load('[[rule]]\neffect="allow"\ncommand="ls"')
    found = decide(loaded, run("ls"), menu=True, grant=lambda _: Effect.ALLOW)
    assert (found.effect, found.remember) == (Effect.ASK, "never")
    assert decide(load('[[rule]]\neffect="deny"\ncommand="ls"'), run("ls"), menu=True).effect is Effect.DENY


@pytest.mark.parametrize(
    ("text", "granted", "want", "source"),
    [
        ("", Effect.ALLOW, Effect.ALLOW, Source.GRANT),
        ("", Effect.DENY, Effect.DENY, Source.GRANT),
        ("", None, Effect.ASK, Source.DEFAULT),
        ('[[rule]]\neffect="deny"\ncommand="ls"', Effect.ALLOW, Effect.DENY, Source.RULE),
        ('[[rule]]\neffect="allow"\ncommand="ls"', Effect.DENY, Effect.ALLOW, Source.RULE),
        ('[[rule]]\neffect="ask"\ncommand="ls"\nremember="never"', Effect.ALLOW, Effect.ASK, Source.RULE),
        ('[[rule]]\neffect="ask"\ncommand="ls"\nremember="never"', Effect.DENY, Effect.DENY, Source.GRANT),
        ('[[rule]]\neffect="ask"\ncommand="ls"\nremember="session"', Effect.ALLOW, Effect.ALLOW, Source.GRANT),
    ],
)
def test_a_grant_settles_an_ask_only(text: str, granted: Effect | None, want: Effect, source: Source) -> None:
    found = decide(load(text), run("ls"), grant=lambda _: granted)
    assert (found.effect, found.source) == (want, source)


def test_a_managed_lock_refuses_grants() -> None:
    loaded = load('[lock]\nrefuse=["grants"]', layer=Layer.MANAGED)
    assert decide(loaded, run("ls"), grant=lambda _: Effect.ALLOW).effect is Effect.ASK
    assert decide(loaded, run("ls"), grant=lambda _: Effect.DENY).effect is Effect.DENY


def test_every_action_of_a_request_needs_its_own_grant() -> None:
    loaded = load("")
    only = run("ls")

    def remembers(one: Judged) -> Effect | None:
        return Effect.ALLOW if one.action is only else None

    assert decide(loaded, only, run("pwd"), grant=remembers).effect is Effect.ASK
    ruled = load('[[rule]]\neffect="allow"\ncommand="pwd"')
    assert decide(ruled, only, run("pwd"), grant=remembers).effect is Effect.ALLOW


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_equal_defaults_of_one_layer_the_one_that_does_not_delegate_counts(order: int) -> None:
    ground = '[defaults]\nexecute="ask"\n'
    strict, lenient = ((Layer.MANAGED, True, text) for text in (ground, f"{ground}delegate=true"))
    allows = (Layer.USER, True, '[[rule]]\neffect="allow"\ncommand="**"')
    assert effect(load_layers(*(strict, lenient)[::order], allows), run("ls")) == "ask"
    assert effect(load_layers(lenient, allows), run("ls")) == "allow"


@pytest.mark.parametrize("other", [None, Effect.ALLOW])
def test_a_remembered_denial_of_one_action_denies_the_request(other: Effect | None) -> None:
    never = run("make")
    found = decide(load(""), run("ls"), never, grant=lambda one: Effect.DENY if one.action is never else other)
    assert (found.effect, found.source) == (Effect.DENY, Source.GRANT)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "project"),
        ('[[rule]]\neffect="ask"\ncommand="ls"\nremember="session"', "session"),
        ('[[rule]]\neffect="ask"\ncommand="ls"\nremember="session"\n[[rule]]\neffect="ask"\ncommand="**"', "session"),
        ('[[rule]]\neffect="ask"\ncommand="ls"\nremember="never"\n[[rule]]\neffect="ask"\ncommand="**"', "never"),
        ('[[rule]]\neffect="ask"\ncommand="rm"\nremember="never"', "project"),
    ],
)
def test_the_longest_memory_is_the_least_of_the_asking_rules(text: str, want: str) -> None:
    assert decide(load(text), run("ls")).remember == want


# ---- failing ---------------------------------------------------------------------------------------


def test_an_exception_is_a_deny() -> None:
    def broken(_: Judged) -> Effect | None:
        raise RuntimeError("secret")

    found = engine.decide(Request("s", "c", "t", (), (run("ls"),)), load(""), CONTEXT, FS, broken)
    assert (found.effect, found.source) == (Effect.DENY, Source.ERROR)
    assert "secret" not in found.reason
    nothing = engine.decide(cast("Request", None), cast("Policy", None), CONTEXT)
    assert nothing.effect is Effect.DENY


def test_a_carrier_that_does_not_exist_is_a_deny() -> None:
    wrong = replace(operand("src/a.py"), carrier=7)
    assert engine.decide(Request("s", "c", "t", (), (run("ls"), wrong)), load(ALLOW_ALL), CONTEXT).effect is Effect.DENY


# ---- examples --------------------------------------------------------------------------------------


def test_an_example_asks_whether_the_conditions_hold() -> None:
    loaded = load('[[rule]]\neffect="allow"\ncommand="git push **"\nagent="other"\nmode="x"\nmatch="execute git push"')
    (example,) = loaded.examples
    assert (example.text, example.wanted, example.line) == ("execute git push", True, 6)
    assert engine.rule_holds(example.rule, (run("git push"),), CONTEXT, FS)
    assert not engine.rule_holds(example.rule, (run("git pull"),), CONTEXT, FS)
    assert not engine.rule_holds(example.rule, (run("git push"), run("rm x")), CONTEXT, FS)
    assert engine.rule_holds(example.rule, (replace(run("cd x"), idle=True), run("git push")), CONTEXT, FS)
    assert loaded.rules[0].holds(run("git push"), CONTEXT, FS) is Truth.NO
    assert loaded.rules[0].failed_conditions(run("git push"), CONTEXT, FS) == ("agent", "mode")


def test_a_rule_ends_when_its_time_is_over() -> None:
    loaded = load('[[rule]]\neffect="allow"\ncommand="ls"\nuntil=2026-11-29T12:00:00Z')
    assert effect(loaded, run("ls"), context=replace(CONTEXT, now=NOW - timedelta(seconds=1))) == "allow"
    assert effect(loaded, run("ls"), context=replace(CONTEXT, now=NOW)) == "ask"


def test_what_was_judged_is_bounded_and_holds_no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyd.engine.cache.KEPT", 3)
    loaded = load('[[rule]]\neffect="allow"\npath="src/**"\nkind="read"')
    args = {"content": object()}
    before = sys.getrefcount(args)
    for name in "abcdecbaab":
        asked = (Action(frozenset({"read"}), path=ref(f"src/{name}"), args=args),)
        decision = engine.decide(Request("s", "c", "t", (), asked), loaded, CONTEXT, FS)
        assert (decision.effect.word, decision.actions[0].action) == ("allow", asked[0])
    del decision, asked
    kept = [held for held in loaded.memory.values() if isinstance(held, Verdicts)]
    assert [sum(map(len, held.known.values())) for held in kept] == [2]
    assert sys.getrefcount(args) == before


def test_a_long_command_is_not_kept_nor_one_that_is_no_text() -> None:
    loaded = load(f'{ALLOW_ALL}[[rule]]\neffect="allow"\ncommand="echo **"')
    for asked, kept in (
        (run("echo short"), 1),
        (run("echo " + 5000 * "x"), 1),
        (run("echo \udcff"), 1),
        (read("a"), 2),
    ):
        decision = engine.decide(Request("s", "c", "t", (), (asked,)), loaded, CONTEXT, FS)
        assert decision.effect is Effect.ALLOW
        assert [held.size for held in loaded.memory.values() if isinstance(held, Verdicts)] == [kept]


def test_a_strict_rules_example_holds_where_the_rule_may() -> None:
    (rule,) = load('[[rule]]\neffect="deny"\ncommand="git push"').rules
    assert engine.rule_holds(rule, (run("git $X"),), CONTEXT, FS)
    assert engine.rule_holds(rule, (run("ls"), run("git push")), CONTEXT, FS)
    assert not engine.rule_holds(rule, (run("ls"),), CONTEXT, FS)
    assert not engine.rule_holds(rule, (), CONTEXT, FS)


def test_an_exception_by_the_session_is_left_out_of_examples() -> None:
    spare = 'unless=[{ mode="plan", kind="*" }, { command="git log **" }]'
    (rule,) = load(f'[[rule]]\neffect="deny"\ncommand="git"\n{spare}').rules
    plan = replace(CONTEXT, mode=Mode("plan"))
    assert rule.holds(run("git push"), plan, FS) is Truth.NO
    assert engine.rule_holds(rule, (run("git push"),), plan, FS)
    assert not engine.rule_holds(rule, (run("git log x"),), plan, FS)


def test_a_rule_says_what_kept_it_from_holding() -> None:
    allow, deny = load(
        '[[rule]]\neffect="allow"\nkind="execute"\ncommand="git **"\nunless={ command="git push" }\n'
        '[[rule]]\neffect="deny"\npath=".env"\nkind="edit"\nunless={ path="a/.env" }'
    ).rules
    assert allow.failed_conditions(run("git push"), CONTEXT, FS) == ("unless",)
    assert allow.failed_conditions(run("ls"), CONTEXT, FS) == ("command",)
    assert allow.failed_conditions(read("a"), CONTEXT, FS) == ("kind", "command")
    assert allow.failed_conditions(mention(".env"), CONTEXT, FS) == ("resource",)
    assert deny.failed_conditions(mention(".env"), CONTEXT, FS) == ()
    assert deny.failed_conditions(read("a/.env", "edit"), CONTEXT, FS) == ("unless",)
    assert deny.failed_conditions(read("b"), CONTEXT, FS) == ("kind", "path")


def test_a_tool_rule_is_not_about_calls_without_a_name() -> None:
    loaded = load('[defaults]\nexecute="allow"', '[[rule]]\neffect="deny"\ntool="Bash"')
    assert effect(loaded, run("ls")) == "allow"
    assert effect(loaded, replace(run("ls"), name=Tool("Bash"))) == "deny"
    assert effect(loaded, replace(odd(), name=Tool("Bash"))) == "deny"
    assert effect(load('[[rule]]\neffect="allow"\ntool="*"'), run("ls")) == "ask"


def test_of_very_many_reasons_the_first_are_told_and_what_nearly_held_is_looked_for_as_often() -> None:
    looked: list[Action] = []

    def about(action: Action) -> tuple[Rule, ...]:
        looked.append(action)
        return ()

    judged = tuple(
        Judged(Action(frozenset({"execute"}), command=SimpleCommand((Word(f"x{at}"),), f"x{at}")), Effect.ASK)
        for at in range(1_000)
    )
    found = explained(Effect.ASK, judged, about=about)
    assert "x0" in found.reason and "980 more" in found.reason and len(found.reason) < 2_000
    assert len(looked) == 20
