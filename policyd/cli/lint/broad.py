"""Allows that are broader than they look. Every warning shows a request that this policy, as a whole, really allows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from policyd.cli import shapes
from policyd.cli.findings import Review, shown
from policyd.cli.replay import Asked
from policyd.cli.trials import hazards
from policyd.cli.trials.drafting import leading
from policyd.cli.trials.standins import kind_of, written
from policyd.cli.trials.trial import suited
from policyd.commands.lexing.patternwords import PatternWord
from policyd.commands.matching.patterns import CommandPattern
from policyd.commands.sets import advice
from policyd.model import Effect, Layer
from policyd.policy import Rule
from policyd.policy.conditions import CommandCondition, ToolCondition, UrlCondition

MOST_SHOWN = 2
HARMLESS = frozenset({"think", "read", "search"})
LATER = (
    ("pytest", "conftest.py"),
    ("npm test", "package.json"),
    ("cargo test", "build.rs"),
    ("make test", "Makefile"),
    ("tox", "tox.ini"),
)
"""A test runner, and a file that decides what it runs."""
BROAD_DEFAULTS: tuple[tuple[Asked, str, tuple[str, ...]], ...] = (
    ("execute zqx0 x", "every command that can be understood", ("execute", "*")),
    ({"tool": "zqx0/x"}, "every tool of every MCP server", ("mcp",)),
)
"""An unknown request, what it stands for, and the defaults that may allow it."""
WIDE_PATHS = {"/**": "everything on the machine", "/": "everything on the machine", "~/**": "the whole home directory"}


def check(review: Review) -> None:
    """Find allows that reach further than their text suggests."""
    for rule in review.rules():
        if rule.effect is Effect.ALLOW:
            kinds_alone(review, rule)
            wide_resources(review, rule)
            for condition in rule.conditions:
                if isinstance(condition, CommandCondition):
                    commands(review, rule, condition)
    defaults(review)
    runs_later(review)


def allows(review: Review, rule: Rule, request: str) -> bool:
    """Say whether the policy as a whole allows a request, by this rule among others."""
    actions = review.trial.actions(request, rule.resource)
    decision = review.trial.decide(review.policy, actions, suited(review.trial.context(), rule))
    return decision.effect is Effect.ALLOW and any(rule.ref in judged.hits for judged in decision.actions)


# ---- commands --------------------------------------------------------------------------------------


def commands(review: Review, rule: Rule, condition: CommandCondition) -> None:
    """Check the command patterns of an allow."""
    for entry in condition.entries:
        if isinstance(entry, CommandPattern):
            last_star(review, rule, entry)
            if entry.programs is None:
                any_program(review, rule, entry)
            else:
                harms(review, rule, entry)


def last_star(review: Review, rule: Rule, pattern: CommandPattern) -> None:
    """Warn about a last word `*`, by which people mean any arguments."""
    ends = [words for words in pattern.alternatives if len(words) > 1 and words[-1].any]
    if ends and not all(words[-2].option for words in ends):  # whose value the `*` plainly is
        found = f"`{pattern.source}`: the last `*` is exactly one argument that is no option"
        wider = pattern.source.rstrip()[:-1] + "**"
        review.warn("last-star", rule.ref, found, f"write `{wider}` for any", key="command", text=pattern.source)


def any_program(review: Review, rule: Rule, pattern: CommandPattern) -> None:
    """Warn about a pattern whose first word is any program."""
    if allows(review, rule, "execute zqx0 x") or allows(review, rule, "execute zqx0"):
        found = f"`{pattern.source}` allows every program there is"
        review.warn("broad", rule.ref, found, "name the programs", key="command", text=pattern.source)


def harms(review: Review, rule: Rule, pattern: CommandPattern) -> None:
    """Warn about what an open-ended pattern lets its program run or write."""
    found: dict[str, str] = {}
    for words in pattern.alternatives:
        for text, what in tries(words):
            if len(found) < MOST_SHOWN and text not in found and allows(review, rule, f"execute {text}"):
                found[text] = what
    if found:
        examples = " and ".join(f"`{text}` ({what})" for text, what in found.items())
        better = advice(pattern).rpartition("; write ")
        closed = f"write {better[2]}, which leaves them out; or " if better[1] else ""
        write = f"{closed}name the subcommands and options you mean, or take those out with `unless` or a deny rule"
        named = f"`{pattern.source}` also allows {examples}"
        review.warn("broad", rule.ref, named, write, key="command", text=pattern.source)


def tries(words: tuple[PatternWord, ...]) -> Iterator[tuple[str, str]]:
    """Yield commands that an open-ended pattern may match and that do more than it says, and what they do."""
    if not any(word.any or word.many for word in words[1:]):
        return
    lead = tuple(leading(words))
    front = shlex.join(lead)
    for ending, what in hazards.endings(lead):
        yield f"{front} {ending}".rstrip(), what


# ---- kinds and other resources ---------------------------------------------------------------------


def kinds_alone(review: Review, rule: Rule) -> None:
    """Warn about an allow on kinds alone: in the managed layer always, elsewhere if it runs or changes things."""
    if rule.resource:
        return
    kinds = kind_of(rule)
    if kinds is None or rule.opaque or rule.escalate or (not kinds.every and kinds.kinds <= {"think"}):
        return
    if kinds.kinds == {"switch_mode"} and names_modes(rule):
        return
    if rule.ref.layer is Layer.MANAGED:
        found = "a managed allow on kinds alone: it holds for every agent, person and project"
        write = "name a path, command, URL or tool; or write a `[[default]]` with `delegate`, which users can tighten"
        review.warn("kind-alone", rule.ref, found, write, key="kind")
    elif kinds.every or not kinds.kinds <= HARMLESS:
        every = "every kind there is" if kinds.every else ", ".join(f"`{kind}`" for kind in sorted(kinds.kinds))
        found = f"it allows all of {every} in the workspace"
        review.warn("kind-alone", rule.ref, found, "name a path, command, URL or tool, or write a default", key="kind")


def names_modes(rule: Rule) -> bool:
    """Say whether a rule names modes, which are to `switch_mode` what a path is to a read."""
    modes = written(rule.table, "mode")
    return bool(modes) and not any("*" in mode or mode == "@unsafe" for mode in modes)


def wide_resources(review: Review, rule: Rule) -> None:
    """Warn about URLs, tools and paths that stand for all of them."""
    for condition in rule.conditions:
        if isinstance(condition, UrlCondition) and rule.resource == "url":
            for url in condition.patterns:
                if url.host == "*" and not rule.table.get("input"):
                    wide(review, rule, "url", url.source, "every host there is", "name the hosts")
        if isinstance(condition, ToolCondition) and rule.resource == "tool":
            for tool in condition.patterns:
                if tool.server is not None and not tool.server.strip("*"):
                    wide(review, rule, "tool", tool.source, "tools of every MCP server", "name the servers")
    for text in written(rule.table, "path"):
        if text in WIDE_PATHS and kind_of(rule) is not None:
            where = WIDE_PATHS[text] + (", keys and start-up files included" if text != "/" else "")
            wide(review, rule, "path", text, where, "name the directories you mean")


def wide(review: Review, rule: Rule, key: str, text: str, what: str, write: str) -> None:
    """Warn about one pattern that stands for everything."""
    review.warn("broad", rule.ref, f"`{text}` is {what}", write, key=key, text=text)


def defaults(review: Review) -> None:
    """Warn about defaults that allow every command, or every MCP tool."""
    for parsed in review.files:
        table = shapes.table(parsed.raw.get("defaults"))
        for request, what, keys in BROAD_DEFAULTS:
            key = next((key for key in keys if key in table), "")
            if table.get(key) == "allow" and review.decide(request).effect is Effect.ALLOW:
                found = f"`{key}` allows {what} in the workspace"
                write = 'write "ask", and allow by rules what you know'
                review.warn_top("broad", parsed, f"defaults.{key}", found, write)


# ---- what runs later -------------------------------------------------------------------------------


def runs_later(review: Review) -> None:
    """Warn if an agent may both start a test runner and edit a file that decides what it runs."""
    for command, file in LATER:
        decision, edit = review.decide(f"execute {command}"), review.decide(f"edit {file}")
        if decision.effect is not Effect.ALLOW or edit.effect is not Effect.ALLOW:
            continue
        rule = next((ref for judged in decision.actions for ref in judged.hits if ref.effect is Effect.ALLOW), None)
        if rule is None or "command" not in review.block(rule).table:
            continue
        by = next((shown(ref) for judged in edit.actions for ref in (*judged.hits, *judged.defaults)), "a default")
        found = f"it allows `{command}`, and {by} allows editing `{file}`, which decides what that runs"
        write = 'add a rule `effect = "ask"`, `kind = "@write"`, `path = ["@auto-run"]`'
        review.warn("runs-later", rule, found, write, key="command")
        return
