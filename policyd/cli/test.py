"""`policyd test [FILE|DIR…]`: run the test suites beside policies.

Prints each failure with its explanation, then the rules that no case exercised. Exit code 0: all cases pass; 1: some
fail; 2: a suite or a policy has a mistake, or there is no suite.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

from policyd.cli import options
from policyd.cli.ending import DONE, FAILED, NO, failed
from policyd.cli.saying import say, say_results
from policyd.cli.suite import ENDING, Outcome, Suite, SuiteError, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd test`."""
    what = f"suites (*{ENDING}) or directories, searched all the way down (default: here)"
    parser.add_argument("files", nargs="*", default=["."], metavar="FILE", help=what)
    parser.add_argument("--junit", metavar="FILE", help="also write the results as JUnit XML")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the suites; return the exit code."""
    suites, problems = collect(args.files)
    none = f"there is no suite (*{ENDING}) in {', '.join(args.files)}; name its directory"
    if problems or not suites:
        if args.junit:
            write_junit(args.junit, [], problems or [none])
        say(*problems, error=True)
        return FAILED if problems else failed("test", none)
    for suite in suites:
        suite.run()
    if args.junit:
        write_junit(args.junit, suites)
    say_results(facts(suites), lines(suites), as_json=args.json)
    return NO if any(outcome.failure for suite in suites for outcome in suite.outcomes) else DONE


def collect(names: Iterable[str]) -> tuple[list[Suite], list[str]]:
    """Return the suites found under `names`, and everything that is wrong with any of them."""
    suites, problems = [], []
    for path in found(names):
        try:
            suites.append(read(path))
        except SuiteError as error:
            problems += error.problems
    return suites, problems


def found(names: Iterable[str]) -> Iterator[str]:
    """Yield the suite files under `names`, in a fixed order."""
    for name in names:
        if not os.path.isdir(name):
            yield name
            continue
        for folder, below, files in os.walk(name):
            below[:] = sorted(each for each in below if not each.startswith(".") or each == ".policyd")
            yield from (os.path.join(folder, each) for each in sorted(files) if each.endswith(ENDING))


def unused(suite: Suite) -> list[str]:
    """Return the rules that decided nothing in a suite."""
    used = {label for outcome in suite.outcomes for label in outcome.rules}
    return [rule.ref.label for rule in suite.policy.rules if rule.ref.label not in used]


def lines(suites: list[Suite]) -> Iterator[str]:
    """Yield the results as lines for people."""
    failed = total = 0
    for suite in suites:
        for outcome in suite.outcomes:
            total += 1
            if outcome.failure:
                failed += 1
                yield f"FAIL {suite.path}: {outcome.case}: {outcome.request}: {outcome.failure}"
                yield from (f"     {line}" for line in outcome.explanation.rstrip().splitlines())
        if idle := unused(suite):
            yield f"note {suite.path}: no case made these rules decide: {', '.join(idle)}"
    yield f"{total - failed} passed, {failed} failed"


def facts(suites: list[Suite]) -> Iterator[dict[str, object]]:
    """Yield an object for each request, then one for each suite."""
    for suite in suites:
        for outcome in suite.outcomes:
            asked = {"case": outcome.case, "request": outcome.request, "rules": outcome.rules}
            yield {"suite": suite.path, **asked, "failure": outcome.failure or None}
        yield {"suite": suite.path, "unused": unused(suite)}


def write_junit(path: str, suites: list[Suite], problems: Iterable[str] = ()) -> None:
    """Write the results as JUnit XML, the form CI systems read; `problems`, why nothing ran, are errors in it."""
    root = ElementTree.Element("testsuites")
    for problem in problems:
        node = ElementTree.SubElement(root, "testsuite", {"name": "policyd test", "tests": "1", "errors": "1"})
        case = ElementTree.SubElement(node, "testcase", {"classname": "policyd test", "name": "the suites are read"})
        ElementTree.SubElement(case, "error", {"message": printable(problem)})
    for suite in suites:
        failures = sum(bool(outcome.failure) for outcome in suite.outcomes)
        counts = {"tests": str(len(suite.outcomes)), "failures": str(failures)}
        node = ElementTree.SubElement(root, "testsuite", {"name": suite.path, **counts})
        for outcome in suite.outcomes:
            add_case(node, suite, outcome)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def add_case(node: ElementTree.Element, suite: Suite, outcome: Outcome) -> None:
    """Add one result to a suite of the report."""
    name = f"{outcome.case}: {outcome.request}"
    case = ElementTree.SubElement(node, "testcase", {"classname": suite.path, "name": printable(name)})
    if outcome.failure:
        failure = ElementTree.SubElement(case, "failure", {"message": printable(outcome.failure)})
        failure.text = printable(outcome.explanation)


def printable(text: str) -> str:
    """Return text without the characters XML cannot hold."""
    return "".join(char if char in "\t\n" or char >= " " else "\N{REPLACEMENT CHARACTER}" for char in text)
