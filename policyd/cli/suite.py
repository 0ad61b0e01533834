"""Test suites beside policies: `*_test.toml`, isolated from the machine and the user's own layers.

    policies = ["default.toml"]              # user layer, relative to the suite; also managed = […], project = […]
    [session]
    cwd = "/home/dev/app"                    # all of this has defaults
    [files]
    "src/app.py" = ""                        # a described disk: relative paths are below cwd
    [links]
    "link" = "/etc"
    [[case]]
    name    = "looking is free"
    request = ["read src/app.py", "execute git status"]      # or a table, or transcript = "file.jsonl"
    effect  = "allow"
    rule    = "user:look"                    # optional: must be among the rules that decided

Rules of this module:

1. A suite sees only the files it names and the disk it describes, so the result is the same everywhere.
2. A case with another decision than it states fails, with the explanation. A case cannot pass by deciding nothing: a
   transcript without a request fails.
3. A mistake in a suite or its policies is an error, not a failure.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import Struct, field
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

import policyd
from policyd.actions import Machine
from policyd.authorizer import Authorizer, Claims, check_examples
from policyd.cli.explain.text import explain
from policyd.cli.replay import Replay, Result
from policyd.cli.trials.tree import Tree, reserved
from policyd.model import Layer
from policyd.policy import Policy, PolicyError, PolicySource, load
from policyd.policy.build import example_mistake
from policyd.policy.file import as_several
from policyd.policy.lines import Locator
from policyd.policy.wording import in_words
from policyd.storage.policies import read_plain

ENDING = "_test.toml"
HINTS = {
    "expect": "write `effect`",
    "requests": "write `request`",
    "rules": "write `rule`",
    "cases": "write `[[case]]`",
    "policy": "write `policies`",
}
"""Likely misspellings -> what to write."""


class SuiteError(Exception):
    """A suite that cannot be run; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        """Keep what was found."""
        self.problems = problems
        super().__init__("\n".join(problems))


Texts = Annotated[list[str], BeforeValidator(as_several)]


class Table(BaseModel):
    """A table of a suite: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SessionTable(Table):
    """`[session]`: what is true while the cases are judged."""

    cwd: str = "/home/dev/app"
    home: str = "/home/dev"
    additional: Texts = Field(default_factory=list)
    agent: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    user: str = ""
    groups: Texts = Field(default_factory=list)
    interactive: bool = True
    now: AwareDatetime = datetime(2026, 1, 1, tzinfo=UTC)


class CaseTable(Table):
    """`[[case]]`: requests and what must be decided of each."""

    name: str = ""
    request: Annotated[list[Any], BeforeValidator(as_several)] = Field(default_factory=list)
    transcript: str = ""
    effect: Literal["allow", "ask", "deny"]
    rule: str = ""


class SuiteTable(Table):
    """A whole suite."""

    policies: Texts = Field(default_factory=list)
    managed: Texts = Field(default_factory=list)
    project: Texts = Field(default_factory=list)
    trusted: bool = False
    session: SessionTable = Field(default_factory=SessionTable)
    files: dict[str, str] = Field(default_factory=dict)
    links: dict[str, str] = Field(default_factory=dict)
    case: Annotated[list[CaseTable], Field(min_length=1)]


class Outcome(Struct, frozen=True):
    """The result of one request of one case."""

    case: str
    request: str
    failure: str = ""
    """What was decided instead, empty if the case passes."""
    explanation: str = ""
    rules: tuple[str, ...] = ()
    """Labels of the rules that decided."""


class Suite(Struct):
    """A suite that can be run."""

    path: str
    table: SuiteTable
    policy: Policy
    machine: Machine
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self) -> list[Outcome]:
        """Decide every request of every case; return the results."""
        for number, case in enumerate(self.table.case, 1):
            name = case.name or f"case {number}"
            found = list(self.results(case))
            self.outcomes += [self.outcome(name, case, text, result, point) for text, result, point in found]
            if not found:
                self.outcomes.append(Outcome(name, case.transcript, "it holds no request"))
        return self.outcomes

    def results(self, case: CaseTable) -> Iterator[tuple[str, Result, Authorizer]]:
        """Yield each request of a case with its title, its result and the decision point."""
        for request in case.request:
            replay = self.replay()
            yield str(request), replay.written(request), replay.authorizer
        if case.transcript:
            replay = self.replay()
            with open(os.path.join(os.path.dirname(self.path), case.transcript), "rb") as lines:
                for result in replay.run(lines):
                    yield result.request.title or f"line {result.line.number}", result, replay.authorizer

    def replay(self) -> Replay:
        """Return a fresh decision point in a session that was just opened."""
        session = self.table.session
        claims = Claims(session.labels, {}, session.user, tuple(session.groups), session.interactive)
        point = Authorizer(self.policy, machine=self.machine, claims=claims, agent=session.agent, cwd=session.cwd)
        opened = {"cwd": session.cwd, "additionalDirectories": session.additional, "mcpServers": []}
        point.observe("c2a", {"id": 0, "method": "session/new", "params": opened})
        point.observe("a2c", {"id": 0, "result": {"sessionId": ""}})
        return Replay(point, now=session.now)

    def outcome(self, name: str, case: CaseTable, text: str, result: Result, point: Authorizer) -> Outcome:
        """Compare a result with what the case expects."""
        rules = tuple(rule.label for rule in result.decision.rules)
        effect = result.answer.effect.word
        failure = ""
        if effect != case.effect:
            failure = f"decided {effect}, not {case.effect}"
        elif case.rule and case.rule not in rules:
            failure = f"decided by {', '.join(rules) or 'no rule'}, not {case.rule}"
        return Outcome(name, text, failure, explain(result, (), point) if failure else "", rules)


def read(path: str) -> Suite:
    """Read a suite and the policies it names.

    Raises:
        SuiteError: everything that is wrong with it.
    """
    text = ""
    try:
        text = read_plain(path).decode()
        table = SuiteTable.model_validate(tomllib.loads(text))
    except OSError as error:
        raise SuiteError([f"{path}: {error.strerror}" if error.strerror else str(error)]) from error
    except ValidationError as error:
        lines = Locator(text)
        found = sorted(mistake(each, lines) for each in error.errors())
        raise SuiteError([f"{path}:{line}: {worded}" for line, worded in found]) from error
    except (ValueError, RecursionError) as error:
        raise SuiteError([f"{path}: {error}"]) from error
    return compile_suite(path, table)


def mistake(error: ErrorDetails, lines: Locator) -> tuple[int, str]:
    """Return the line and the message of a mistake, worded as for policies."""
    first, *rest = error["loc"]
    keys = [str(part) for part in rest if isinstance(part, str)]
    if first == "case" and rest:
        line, known = lines.find("case", int(rest[0]), ".".join(keys)), CaseTable.model_fields
    else:
        line = lines.top(".".join([str(first), *keys])) or 1
        known = SessionTable.model_fields if first == "session" and keys else SuiteTable.model_fields
    worded = in_words(error, keys[-1] if keys else str(first), list(known), HINTS)
    return line, worded.found + (f"; {worded.write}" if worded.write else "")


def compile_suite(path: str, table: SuiteTable) -> Suite:
    """Load the policies of a suite; SuiteError with every mistake."""
    session = table.session
    tree = Tree(
        {place(session.cwd, name): text for name, text in table.files.items()},
        {place(session.cwd, name): target for name, target in table.links.items()},
        session.home,
    )
    machine = Machine(session.home, tree, reserved=reserved(session.home))
    try:
        policy = load(sources(path, table), home=session.home, tmpdir="/tmp", fs=tree, version=policyd.__version__)
        wrong = check_examples(policy, machine)
    except PolicyError as error:
        wrong = list(error.diagnostics)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.strerror else error
        raise SuiteError([f"{path}: {why}"]) from error
    if wrong:
        raise SuiteError([str(mistake) for mistake in wrong])
    problems = list(unreadable(path, table))
    if problems:
        raise SuiteError(problems)
    return Suite(path, table, policy, machine)


def unreadable(path: str, table: SuiteTable) -> Iterator[str]:
    """Yield what is wrong with the cases of a suite."""
    for number, case in enumerate(table.case, 1):
        name = case.name or f"case {number}"
        if bool(case.request) == bool(case.transcript):
            yield f"{path}: {name}: write `request` or `transcript`"
        wrong = (example_mistake("request", request) for request in case.request)
        yield from (f"{path}: {name}: {one.found}; {one.write}" for one in wrong if one)
        if case.transcript and not os.path.isfile(os.path.join(os.path.dirname(path), case.transcript)):
            yield f"{path}: {name}: there is no file {case.transcript}"


def sources(path: str, table: SuiteTable) -> Iterator[PolicySource]:
    """Yield the policy files of a suite, read from beside it."""
    layers = ((Layer.MANAGED, table.managed), (Layer.USER, table.policies), (Layer.PROJECT, table.project))
    for layer, names in layers:
        for name in names:
            file = os.path.normpath(os.path.join(os.path.dirname(path), name))
            root = table.session.cwd if layer is Layer.PROJECT else None
            yield PolicySource(file, read_plain(file), layer, trusted=table.trusted, root=root)


def place(cwd: str, name: str) -> str:
    """Return the absolute path of a described file."""
    return os.path.normpath(os.path.join(cwd, name))
