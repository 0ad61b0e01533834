"""Grants: what was granted holds, nothing else does, and a denial wins. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from policyd.grants import Clock, Grant, GrantBook, key, offers
from policyd.grants.literal import escape, join, split, unescape
from policyd.grants.offers import MOST_MEMBERS
from policyd.grants.programs import covered, prefix
from policyd.model import (
    Action,
    Agent,
    Assignment,
    Context,
    Effect,
    Judged,
    Mode,
    PathRef,
    Reach,
    Request,
    Role,
    SimpleCommand,
    Tool,
    Word,
    WordKind,
)
from tests.asking import (
    ASKED,
    ASKS,
    CLOCK,
    NOW,
    ROOT,
    RUN,
    asked,
    call,
    context,
    decision,
    fetch,
    grant,
    offered,
    request,
    run,
    touch,
)


def settled(
    book: GrantBook, asking: Request, where: Context | None = None, clock: Clock = CLOCK, rule: object = ASKS
) -> Effect | None:
    """What a book makes of a request every action of which is asked about: as the engine does it."""
    settle = book.bind(asking, where or context(), clock)
    judged = [asked(action, rule) for action in asking.actions]  # type: ignore[arg-type]
    found = [settle(one) for one in judged]
    if Effect.DENY in found:
        return Effect.DENY
    return Effect.ALLOW if found and all(one is Effect.ALLOW for one in found) else None


def book(*grants: Grant, root: str = ROOT, run_id: str = RUN) -> GrantBook:
    """A book of these grants."""
    return GrantBook(root, grants, run_id)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("scope", ["session", "project"])
def test_the_same_request_is_settled_again(name: str, scope: str) -> None:
    given_ = grant(ASKED[name], scope=scope)
    assert settled(book(given_), replace(ASKED[name], call_id="another call")) is Effect.ALLOW
    assert settled(book(), ASKED[name]) is None


@pytest.mark.parametrize("name", ASKED)
def test_a_denial_wins_over_every_allow(name: str) -> None:
    allow, deny = grant(ASKED[name]), grant(ASKED[name], effect=Effect.DENY)
    for order in ((allow, deny), (deny, allow)):
        assert settled(book(*order), ASKED[name]) is Effect.DENY


def test_a_denial_counts_where_the_policy_refuses_grants() -> None:
    asking = ASKED["a command"]
    both = book(grant(asking), grant(asking, effect=Effect.DENY))
    assert both.bind(asking, context(), CLOCK, allows=False)(asked(asking.actions[0])) is Effect.DENY
    only = book(grant(asking))
    assert only.bind(asking, context(), CLOCK, allows=False)(asked(asking.actions[0])) is None
    assert {one.effect for one in offered(asking, allows=False)} == {Effect.DENY}


# ---- near misses ----------------------------------------------------------------------------------

WORDS = [
    "npm",
    "make",
    "git",
    "deploy",
    "test",
    "--force",
    "-v",
    "a b",
    "x'y",
    "src/a.py",
    "**",
    "*",
    "~",
    "$X",
    "@net",
]


def some_command(dice: random.Random) -> Action:
    words = [dice.choice(WORDS) for _ in range(dice.randint(1, 4))]
    env = {"CI": dice.choice("01")} if dice.random() < 0.3 else {}
    return run(*words, env=env, cwd=dice.choice([ROOT, f"{ROOT}/sub"]))


def some_action(dice: random.Random) -> Action:
    made: list[Callable[[], Action]] = [
        lambda: some_command(dice),
        lambda: some_command(dice),
        lambda: touch(dice.choice(["read", "edit", "delete"]), f"{ROOT}/{dice.choice('abc')}/f{dice.randint(0, 9)}.py"),
        lambda: fetch(f"{dice.choice('abc')}.example.org", f"/{dice.randint(0, 9)}"),
        lambda: call("srv", dice.choice(["get", "put"]), {"n": dice.randint(0, 9)}),
    ]
    return dice.choice(made)()


def changed_command(command: SimpleCommand, how: str) -> SimpleCommand:
    words = command.argv
    table: dict[str, Callable[[], SimpleCommand]] = {
        "another word": lambda: replace(command, argv=(*words[:-1], Word(words[-1].text + "x"))),
        "one word more": lambda: replace(command, argv=(*words, Word("--more"))),
        "an empty word more": lambda: replace(command, argv=(*words, Word(""))),
        "one word less": lambda: replace(command, argv=words[:-1]),
        "two words joined": lambda: replace(command, argv=(Word(" ".join(word.text for word in words) + " "),)),
        "another program": lambda: replace(command, argv=(Word("./" + words[0].text), *words[1:])),
        "an assignment more": lambda: replace(command, env=(*command.env, Assignment("LD_PRELOAD", Word("x")))),
        "a variable set before": lambda: replace(command, taint=(Assignment("PATH", Word("/evil")),)),
        "all tainted": lambda: replace(command, tainted="alias"),
        "a wrapper": lambda: replace(command, via=(*command.via, "sudo")),
        "fed by a pipe": lambda: replace(command, fed="|"),
        "fed by a text": lambda: replace(command, fed="rm -rf ~\n"),
        "a glob": lambda: replace(command, argv=(*words[:-1], replace(words[-1], kind=WordKind.GLOB))),
        "an unknown word": lambda: replace(command, argv=(*words[:-1], replace(words[-1], kind=WordKind.UNKNOWN))),
        "for strict rules only": lambda: replace(command, strict_only=True),
    }
    return table[how]()


COMMAND_MISSES = [
    "another word",
    "one word more",
    "an empty word more",
    "one word less",
    "two words joined",
    "another program",
    "an assignment more",
    "a variable set before",
    "all tainted",
    "a wrapper",
    "fed by a pipe",
    "fed by a text",
    "a glob",
    "an unknown word",
    "for strict rules only",
]


def other_resource(action: Action) -> Iterator[Action]:
    """Actions that are nearly `action`: its resource differs."""
    if action.command is not None:
        yield from (replace(action, command=changed_command(action.command, how)) for how in COMMAND_MISSES)
        for place in (f"{ROOT}/other", "/tmp", f"{ROOT}2", ROOT + "/sub/sub"):
            yield replace(action, cwd=(place,))
        yield replace(action, cwd=(*action.cwd, "/tmp"))
        yield replace(action, cwd=())
    if action.path is not None:
        for form in (action.path.text + "x", action.path.text[:-1], f"{ROOT}/a", ROOT, "/etc/passwd"):
            yield replace(action, path=PathRef(form, (form,)))
        yield replace(action, path=replace(action.path, forms=(*action.path.forms, "/etc/passwd")))
        yield replace(action, path=replace(action.path, reach=Reach.CONTENT))
        yield replace(action, path=replace(action.path, glob=True))
    if action.url is not None:
        for more in (
            {"host": "evil.org"},
            {"scheme": "http"},
            {"port": 8443},
            {"paths": ("/x", "/y")},
            {"query": "a=1"},
        ):
            yield replace(action, url=replace(action.url, **more))
    if action.tool is not None:
        for args in ({}, {"n": 11}, {"n": "1"}, {"n": 1.5}, {**(action.args or {}), "more": True}, None):
            yield replace(action, args=args)
        yield replace(action, tool=Tool("mcp__other__get", (("other", "get"),)))
        yield replace(action, tool=Tool("x", (*action.tool.splits, ("srv_put", "all"))))
        yield replace(action, tool=Tool("srv/get"))


def misses(action: Action) -> Iterator[tuple[Request, Context]]:
    """Requests that are nearly the one for `action` alone."""
    for other in other_resource(action):
        yield request(other), context()
    for agent in ("codex", "claude-code2", ""):
        yield request(action), context(agent)
    yield request(action), replace(context(), agent=Agent("claude-cod", "1.0", "claude"))
    for kinds in (frozenset({"move"}), action.kinds | {"delete", "edit"}, frozenset[str]()):
        if not action.mcp:
            yield request(replace(action, kinds=kinds)), context()
    for more in ({"opaque": "x"}, {"guarded": "grants"}, {"escalate": "sandbox"}, {"mode": Mode("yolo")}):
        yield request(replace(action, **more)), context()
    for beside in (
        run("rm", "-rf", "."),
        touch("edit", f"{ROOT}/x"),
        action,
        Action(frozenset({"execute"}), opaque="?"),
    ):
        yield request(action, beside), context()
        yield request(beside, action), context()
    yield request(action, menu=True), context()
    yield request(replace(action, role=Role.MENTION)), context()
    yield request(replace(action, idle=True)), context()


def test_no_near_miss_of_500_grants_is_a_hit() -> None:
    dice, checked = random.Random(20261129), 0  # noqa: S311 - a repeatable table
    for _ in range(500):
        action = some_action(dice)
        holds = grant(request(action))
        found = book(holds)
        assert settled(found, request(action)) is Effect.ALLOW
        for asking, where in misses(action):
            if (asking, where) != (request(action), context()):
                checked += 1
                assert settled(found, asking, where) is None, (holds, asking)
        assert settled(book(holds, root="/work/other"), request(action), context(cwd="/work/other")) is None or (
            action.command is None and action.path is None
        )
    assert checked >= 500 * 20


def test_no_grant_of_a_compound_holds_for_less_more_or_another_order() -> None:
    parts = [run("a"), run("b"), touch("edit", f"{ROOT}/out", role=Role.REDIRECT)]
    found = book(grant(request(*parts)))
    for other in (parts[:1], parts[:2], parts[1:], [*parts, run("c")], parts[::-1], [*parts, parts[0]], []):
        assert settled(found, request(*other)) is None, other


def test_grants_of_the_parts_do_not_add_up_to_the_compound() -> None:
    found = book(grant(request(run("a"))), grant(request(run("b"))))
    assert settled(found, request(run("a"), run("b"))) is None


def test_a_mention_counts_only_if_it_was_asked_about_too() -> None:
    secret = touch("", f"{ROOT}/.env", role=Role.MENTION)
    without, with_it = request(run("grep", "x")), request(run("grep", "x"), secret)
    assert settled(book(grant(without)), with_it) is None
    assert settled(book(grant(with_it)), without) is Effect.ALLOW
    quiet = offers(with_it, replace(decision(with_it), actions=(asked(with_it.actions[0]),)), context(), root=ROOT)
    assert all(len(one.members) == 1 for one in quiet)


def test_both_spellings_of_the_root_are_one_project() -> None:
    linked, real = "/home/dev/link", ROOT
    holds = grant(request(run("make")))
    again = request(run("make", cwd=linked))
    assert settled(book(holds), again, context(cwd=linked)) is Effect.ALLOW
    path = PathRef("a", (f"{linked}/a", f"{real}/a"))
    asking = request(replace(touch("edit", f"{ROOT}/a"), path=path))
    assert settled(book(grant(request(touch("edit", f"{ROOT}/a")))), asking, context(cwd=linked)) is Effect.ALLOW


def test_a_path_that_resolves_elsewhere_now_is_another_path() -> None:
    before = request(touch("edit", f"{ROOT}/link"))
    moved = request(replace(before.actions[0], path=PathRef(f"{ROOT}/link", (f"{ROOT}/link", f"{ROOT}/secret"))))
    assert settled(book(grant(before)), moved) is None


# ---- denials read wide ----------------------------------------------------------------------------


def test_a_denial_catches_what_hides_the_same_thing() -> None:
    denied = book(grant(request(run("git", "push")), effect=Effect.DENY))
    push = run("git", "push")
    inner = SimpleCommand((Word("timeout"), Word("5"), *push.command.argv), "", cwd=(ROOT,), inner=push.command)  # type: ignore[union-attr]
    caught = [
        request(push, run("ls")),
        request(run("ls"), push),
        request(run("git", "push", env={"A": "1"})),
        request(replace(push, command=replace(push.command, via=("sudo",)))),  # type: ignore[type-var]
        request(replace(push, command=inner)),
        request(replace(push, cwd=(ROOT, "/tmp"))),
        request(replace(push, cwd=())),
        request(replace(push, kinds=frozenset({"execute", "delete"}))),
    ]
    for asking in caught:
        assert settled(denied, asking) is Effect.DENY, asking
    for asking in (request(run("git", "pull")), request(run("git", "push", "-n")), request(run("ls"))):
        assert settled(denied, asking) is None


def test_a_denial_of_a_compound_needs_all_its_parts() -> None:
    denied = book(grant(request(run("a"), run("b")), effect=Effect.DENY))
    assert settled(denied, request(run("b"), run("c"), run("a"))) is Effect.DENY
    assert settled(denied, request(run("a"))) is None


def test_a_denied_path_is_denied_by_any_of_its_spellings() -> None:
    asking = request(touch("read", f"{ROOT}/x"))
    by_link = request(replace(touch("read", ""), path=PathRef("y", (f"{ROOT}/y", f"{ROOT}/x"))))
    by_other = request(replace(touch("read", ""), path=PathRef("w", (f"{ROOT}/w", f"{ROOT}/x"))))
    for denied in (asking, by_link, by_other):
        forbidding = book(grant(denied, effect=Effect.DENY))
        assert [settled(forbidding, again) for again in (asking, by_link, by_other)] == 3 * [Effect.DENY]


# ---- caps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("remember", "scope", "effect"),
    [
        ("project", "project", Effect.ALLOW),
        ("project", "session", Effect.ALLOW),
        ("session", "session", Effect.ALLOW),
        ("session", "project", None),
        ("never", "session", None),
        ("never", "project", None),
        ("", "project", Effect.ALLOW),
    ],
)
def test_a_grant_holds_within_the_memory_of_the_rules_asking_now(
    remember: str, scope: str, effect: Effect | None
) -> None:
    asking = ASKED["a command"]
    assert settled(book(grant(asking, scope=scope)), asking, rule=replace(ASKS, remember=remember)) is effect


def test_the_smallest_memory_of_several_rules_counts() -> None:
    asking = ASKED["a command"]
    settle = book(grant(asking)).bind(asking, context(), CLOCK)
    strict = replace(ASKS, id="strict", remember="never")
    action = asking.actions[0]
    assert settle(Judged(action, Effect.ASK, hits=(ASKS,), possible=(strict,))) is None
    assert settle(Judged(action, Effect.ASK, hits=(ASKS, strict))) is None
    assert settle(Judged(action, Effect.ASK, defaults=(replace(ASKS, default=True, remember=""),))) is Effect.ALLOW


def test_what_a_default_says_of_memory_counts_as_what_a_rule_says() -> None:
    action = ASKED["a command"].actions[0]
    brief = replace(ASKS, remember="session", default=True)
    never = replace(brief, remember="never")
    found = [Judged(action, Effect.ASK, hits=(ASKS,), defaults=refs).memory for refs in ((), (brief,), (brief, never))]
    assert found == ["project", "session", "never"]


def test_an_ask_with_a_floor_is_never_settled_nor_offered() -> None:
    asking = ASKED["a command"]
    floored = Judged(asking.actions[0], Effect.ASK, hits=(ASKS,), floors=("outside",))
    assert book(grant(asking)).bind(asking, context(), CLOCK)(floored) is None
    found = offers(asking, replace(decision(asking), actions=(floored,)), context(), root=ROOT)
    assert all(one.effect is Effect.DENY for one in found)


def test_a_grant_changes_an_ask_and_nothing_else() -> None:
    asking = ASKED["a command"]
    settle = book(grant(asking)).bind(asking, context(), CLOCK)
    assert settle(replace(asked(asking.actions[0]), effect=Effect.DENY)) is None
    assert settle(replace(asked(asking.actions[0]), effect=Effect.ALLOW)) is None


def test_a_session_grant_holds_in_its_session_and_process_only() -> None:
    asking = ASKED["a command"]
    holds = grant(asking, scope="session")
    assert settled(book(holds), request(*asking.actions, session="s2")) is None
    assert settled(book(holds, run_id="another"), asking) is None
    assert settled(book(replace(holds, run=""), run_id=""), asking) is None


# ---- offers ---------------------------------------------------------------------------------------


def names(asking: Request, **more: object) -> list[str]:
    return [one.name for one in offered(asking, **more)]  # type: ignore[arg-type]


def test_offers_say_what_they_cover() -> None:
    assert names(request(run("npm", "run", "test"))) == [
        "Always allow `npm run test` in this session",
        "Always allow `npm run test` in this project",
        "Always allow `npm run test …` with any further words in this project",
        "Never allow `npm run test` in this session",
        "Never allow `npm run test` in this project",
    ]
    assert names(request(run("rm", "a b", cwd=f"{ROOT}/sub", env={"X": "1"})))[1] == (
        "Always allow `X=1 rm 'a b'` (run in sub) in this project"
    )
    assert names(request(run("a"), run("b")))[1] == "Always allow exactly these 2 together: `a`, `b` in this project"
    assert names(request(touch("edit", f"{ROOT}/a.py")))[1] == "Always allow editing `a.py` in this project"
    assert names(request(touch("read", "/etc/hosts")))[2] == "Always allow reading `/etc/hosts` in every project"
    assert names(request(fetch("a.org", "/x")))[2] == "Always allow fetching `https://a.org:443/x` in every project"
    assert names(request(call("jira", "get", {"a": 1})))[-3:] == [
        "Always allow `jira/get` with any input in this project",
        "Never allow `jira/get` with this input in this session",
        "Never allow `jira/get` with this input in this project",
    ]


@pytest.mark.parametrize(
    "action",
    [
        Action(frozenset({"execute"}), opaque="?"),
        run("x", guarded="policyd's grants"),
        run("x", escalate="sandbox"),
        run("x", mode=Mode("yolo")),
        Action(frozenset({"switch_mode"}), tool=Tool("ExitPlanMode"), args={}),
        Action(frozenset({"other"}), tool=Tool("x"), args=None),
        replace(run("x"), cwd=()),
        replace(touch("read", "/a"), path=PathRef("/a*", ("/a*",), glob=True)),
    ],
)
def test_what_has_no_key_is_not_offered(action: Action) -> None:
    assert key(action, (ROOT,)) is None
    assert offered(request(action)) == ()
    assert offered(request(run("fine"), action)) == ()


def test_nothing_is_offered_for_menus_nor_where_a_rule_forbids_it() -> None:
    asking = ASKED["a command"]
    assert offered(replace(asking, menu=True)) == ()
    assert offers(asking, decision(asking, replace(ASKS, remember="never")), context(), root=ROOT) == ()
    short = offers(asking, decision(asking, replace(ASKS, remember="session")), context(), root=ROOT)
    assert {one.scope for one in short} == {"session"}
    assert offers(asking, replace(decision(asking), effect=Effect.DENY), context(), root=ROOT) == ()


def test_nothing_is_offered_for_more_than_a_person_can_know() -> None:
    assert offered(request(*(run("make", str(at)) for at in range(MOST_MEMBERS))))
    assert not offered(request(*(run("make", str(at)) for at in range(MOST_MEMBERS + 1))))


def test_user_scope_is_never_offered_for_commands_or_project_paths() -> None:
    for name in ("a command", "a compound", "an edit"):
        assert "user" not in {one.scope for one in offered(ASKED[name])}


def test_an_agent_that_cannot_be_told_from_others_is_remembered_for_the_session() -> None:
    nobody = replace(context(), agent=Agent())
    for asking in ASKED.values():
        assert {one.scope for one in offered(asking, nobody)} <= {"session"}
    for agent in (Agent("mine"), Agent(profile="claude")):
        assert "project" in {one.scope for one in offered(ASKED["a command"], replace(context(), agent=agent))}


def test_text_from_the_agent_is_safe_in_an_offer() -> None:
    shown = names(request(run("echo", "a\x1b[2Jb\u202ec" + "x" * 5000, "end")))[1]
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 400
    assert "end" in shown


# ---- generalisations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "lead"),
    [
        ("npm run test", "npm run test"),
        ("npm run test -- -x", "npm run test"),
        ("npm run build:all", "npm run build:all"),
        ("npm run --silent test", None),
        ("npm run test --script-shell=/tmp/x", None),
        ("npm install left-pad", None),
        ("pytest -q tests", "pytest"),
        ("pytest -p evil", None),
        ("pytest -pevil", None),
        ("pytest --rootd=/", None),
        ("python -m pytest", "python -m pytest"),
        ("python -m http.server", None),
        ("cargo test", "cargo test"),
        ("cargo test --config x", None),
        ("pytest @options", None),
        ("pytest tests/@a.py", "pytest"),
        ("tsc @options", None),
        ("npm run test -- @a/b", "npm run test"),
        ("go test -exec=sh", None),
        ("go test --exec sh", None),
        ("git push", None),
        ("rm -rf", None),
        ("bash -c x", None),
    ],
)
def test_only_known_programs_take_further_words(words: str, lead: str | None) -> None:
    assert prefix(tuple(words.split())) == (tuple(lead.split()) if lead else None)


def test_a_generalised_grant_covers_further_words_and_nothing_else() -> None:
    found = book(grant(request(run("pytest", "-q")), general=True))
    for words in ("pytest", "pytest -x tests/a.py", "pytest -k 'a or b'"):
        assert settled(found, request(run(*words.split()))) is Effect.ALLOW, words
    for words in ("pytest -p evil", "pytest --basetemp=/", "py.test", "python -m pytest", "pytestx", "rm pytest"):
        assert settled(found, request(run(*words.split()))) is None, words
    for asking in (
        request(run("pytest", cwd=f"{ROOT}/sub")),
        request(run("pytest", env={"PYTEST_ADDOPTS": "-p evil"})),
        request(run("pytest"), run("ls")),
        request(run("pytest"), touch("edit", f"{ROOT}/out", role=Role.REDIRECT)),
        request(run("pytest", "/etc", strays=("/etc",))),
        request(run("pytest", cwd_inside=False)),
        request(replace(run("pytest"), command=replace(run("pytest").command, fed="|"))),  # type: ignore[type-var]
    ):
        assert settled(found, asking) is None, asking


def test_a_generalised_tool_covers_any_input_of_that_tool() -> None:
    found = book(grant(request(call("jira", "get", {"a": 1})), general=True))
    assert settled(found, request(call("jira", "get", {"b": 2}))) is Effect.ALLOW
    assert settled(found, request(call("jira", "get", None), call("jira", "get"))) is None
    assert settled(found, request(call("jira", "put", {"a": 1}))) is None
    assert settled(found, request(replace(call("jira", "get"), args=None))) is None


def test_a_lead_that_is_no_longer_listed_covers_nothing() -> None:
    assert covered(("pytest", "-q"), ("pytest",))
    assert not covered(("sh", "-c", "x"), ("sh",))
    assert not covered(("npm", "run", "evil"), ("npm", "run"))


# ---- time -----------------------------------------------------------------------------------------

HOUR, DAY, YEARS = timedelta(hours=1), timedelta(days=1), timedelta(days=3653)


@pytest.mark.parametrize(
    ("wall", "boot", "same_boot", "alive"),
    [
        (timedelta(0), 0.0, True, True),
        (HOUR, 3600.0, True, True),
        (timedelta(days=29, hours=23), 86400 * 29.9, True, True),
        (timedelta(days=30), 86400 * 30.0, True, False),
        (-DAY, 3600.0, True, False),
        (-YEARS, 3600.0, True, False),
        (YEARS, 3600.0, True, False),
        (DAY, 86400 * 31.0, True, False),
        (timedelta(0), 86400 * 30.0, True, False),
        (timedelta(0), 8 * 3600.0, True, True),
        (HOUR, -500.0, True, False),
        (HOUR, -500.0, False, True),
        (-HOUR, -500.0, False, False),
        (timedelta(days=31), -500.0, False, False),
        (-YEARS, 0.0, False, False),
    ],
)
def test_a_grant_dies_by_whichever_clock_runs_out_first(
    wall: timedelta, boot: float, same_boot: bool, alive: bool
) -> None:
    holds = grant(ASKED["a command"])
    clock = Clock(NOW + wall, CLOCK.boot + boot, "boot-1" if same_boot else "boot-2")
    assert holds.alive(clock) is alive
    assert (settled(book(holds), ASKED["a command"], clock=clock) is Effect.ALLOW) is alive


def test_a_grant_never_lives_longer_than_thirty_days() -> None:
    holds = replace(grant(ASKED["a command"]), until=NOW + YEARS)
    assert not holds.alive(CLOCK)
    session = grant(ASKED["a command"], scope="session")
    assert session.until - session.created <= timedelta(hours=12)


def test_a_broken_boot_clock_kills_a_grant() -> None:
    holds = grant(ASKED["a command"])
    assert not replace(holds, boot=float("nan")).alive(CLOCK)
    assert not replace(holds, boot=float("inf")).alive(CLOCK)
    assert not replace(holds, boot=float("-inf")).alive(CLOCK)


# ---- literal text ---------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), st.booleans())
def test_words_survive_the_policy_language(words: list[str], more: bool) -> None:
    assert split(join(tuple(words), more=more)) == (tuple(words), more)


@given(st.text())
def test_text_survives_escaping(text: str) -> None:
    assert unescape(escape(text)) == text


@pytest.mark.parametrize(
    "text", ["npm *", "a {b,c}", "~/x", "$HOME", "@git-read", "a;b", 'a "b"', "'a", "** a", "", " **"]
)
def test_a_pattern_is_no_literal_command(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        split(text)


@pytest.mark.parametrize("text", ["src/**", "~/x", "$HOME/x", "@docs", "a?", "[ab]", "{a,b}", "!x", "x\\"])
def test_a_pattern_is_no_literal_text(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unescape(text)


def test_without_a_project_only_the_session_remembers() -> None:
    asking = ASKED["a URL"]
    found = offers(asking, decision(asking), context(), root="")
    assert {one.scope for one in found} == {"session", "user"}
    asking = ASKED["an outside path"]
    assert {one.scope for one in offers(asking, decision(asking), context(), root="")} == {"session", "user"}
