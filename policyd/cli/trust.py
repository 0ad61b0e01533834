"""`policyd trust`: let a project's policy loosen, for exactly the bytes that a person has just read.

Rules of this command:

1. It shows every file that would be trusted, and the effect, before it asks.
2. It needs a person: a terminal of its own, not below a running agent. `--show` and `--remove` do not loosen.
3. A project policy with a mistake, or a failing example, is not trusted.
4. Exit code 0: done, or (`--show`) trusted; 1: it is not trusted, or was not, or the person declined; 2: it cannot be
   done.
"""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime

from policyd.actions import Machine
from policyd.authorizer import broken_by, check_examples
from policyd.cli import options, presence
from policyd.cli.ending import DONE, FAILED, NO, counted, failed
from policyd.cli.saying import say, say_results
from policyd.display import safe
from policyd.model import Effect, Layer
from policyd.policy import Policy
from policyd.storage import places, policies
from policyd.storage.filesystem import RealFilesystem
from policyd.storage.places import Places
from policyd.storage.trust import ProjectFiles, TrustStore, read_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `policyd trust`."""
    parser.add_argument("project", nargs="?", default=".", metavar="DIR", help="the project (default: here)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only say whether it is trusted")
    what.add_argument("--remove", action="store_true", help="trust it no more")
    options.add_home(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show, trust or distrust; return the exit code."""
    root = os.path.abspath(os.path.expanduser(args.project))
    where = places.find(home=args.home)
    store = TrustStore(where.trust)
    if args.remove:  # works for unreadable files too
        return removed(args, store, root)
    project = read_project(root)
    if not project.files:
        return failed("trust", f"there is no policy in {project.root}/.policyd")
    return shown(args, store, project) if args.show else asked(args, where, store, project)


def removed(args: argparse.Namespace, store: TrustStore, root: str) -> int:
    """Remove the trust in the project at `root`."""
    was = store.remove(root)
    words = "not trusted any more" if was else "it was not trusted"
    say_results([{"project": root, "trusted": False}], [f"{root}: {words}"], as_json=args.json)
    return DONE if was else NO


def shown(args: argparse.Namespace, store: TrustStore, project: ProjectFiles) -> int:
    """Print whether the project is trusted as it is now."""
    trusted = store.trusts(project)
    noted = store.note(project.root)
    words = "trusted" if trusted else "changed since it was trusted: it only tightens" if noted else "not trusted"
    names = [name for name, _ in project.files]
    facts = {"project": project.root, "trusted": trusted, "digest": project.digest, "files": names}
    said = f"{project.root}: {words} ({counted(len(project.files), 'file')}, {project.digest})"
    say_results([facts], [said], as_json=args.json)
    return DONE if trusted else NO


def asked(args: argparse.Namespace, where: Places, store: TrustStore, project: ProjectFiles) -> int:
    """Show what would be trusted, ask, and record the trust."""
    lines, broken = summary(where, project)
    if broken:
        say(broken, error=True)
        return FAILED
    say(*lines)
    if why := presence.refusal():
        return failed("trust", f"nothing was trusted: {why}")
    if not agreed("Trust exactly these files? Any change of a byte voids it. [y/N] "):
        say("not trusted")
        return NO
    store.add(project, datetime.now(UTC))
    facts = {"project": project.root, "trusted": True, "digest": project.digest}
    say_results([facts], [f"trusted: {project.digest}"], as_json=args.json)
    return DONE


def agreed(question: str) -> bool:
    """Ask the person; the end of input counts as no."""
    try:
        answer = input(question)
    except EOFError:
        say("")
        return False
    return answer.strip().lower() in {"y", "yes"}


def summary(where: Places, project: ProjectFiles) -> tuple[list[str], str]:
    """Return what a person must read (each whole file, then which rules would loosen), and what is wrong with it.

    Raises:
        PolicyError: the files hold mistakes.
    """
    found = policies.managed(where.managed_policies) + policies.as_project(project, trusted=True)
    fs = RealFilesystem()
    policy, broken = policies.compose(found, where, fs)
    broken = broken or broken_by(check_examples(policy, Machine(where.home, fs, where.tmpdir)))
    lines: list[str] = []
    for name, data in project.files:
        lines += [f"--- {project.path(name)}", *(safe(line) for line in data.decode("utf-8", "replace").splitlines())]
    lines.append("--- trusted, these rules and defaults begin to allow: " + (", ".join(looser(policy)) or "none"))
    if why := policy.lock.voids(Layer.PROJECT, trusted=True):
        lines.append(f"--- trusted or not, no rule of a project allows here: {why}")
    lines.append(f"--- {project.digest}")
    return lines, broken


def looser(policy: Policy) -> list[str]:
    """Return what of the project's rules and defaults allows."""
    blocks = [rule for each in policy.defaults for rule in each.rules]
    refs = [rule.ref for rule in (*policy.rules, *blocks) if not rule.void]
    refs += [entry.ref for each in policy.defaults for entry in each.entries.values()]
    return [ref.label for ref in refs if ref.layer is Layer.PROJECT and ref.effect is Effect.ALLOW]
