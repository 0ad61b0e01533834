"""Past requests, ready to be decided again: request and session of each record, and the policy of each project.

Rules of this module:

1. A record that lacks something a decision needs is `Undecidable`, with the reason; nothing is guessed.
2. A request is decided as of the time it was made, for the recorded agent and person, in the recorded roots.
3. Remembered answers are ignored: only rules are compared.
4. The disk is looked at only for the contents of a whole directory; decisions that depend on it are marked.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from policyd import acp, engine, paths
from policyd.actions import profiles
from policyd.audit import rebuild
from policyd.audit.rebuild import Undecidable
from policyd.cli import loading
from policyd.cli.audit.filters import Record
from policyd.cli.shapes import table, texts
from policyd.model import Action, Agent, Context, Decision, Effect, Mode, Request, Workspace
from policyd.policy import Policy, PolicySource, Rule
from policyd.storage.filesystem import RealFilesystem

UNRECORDED = frozenset({"input", "group"})
"""Conditions on facts that are not recorded: groups, and arguments of anything but tools."""


class Case(Struct, frozen=True):
    """One past request."""

    record: Record
    request: Request
    cwd: str | None
    roots: tuple[str, ...]
    sound: tuple[str, ...]
    now: datetime


class Redecided(Struct, frozen=True):
    """The decision of today's rules on a past request."""

    effect: Effect
    decision: Decision
    looked: bool = False
    """It depends on what a directory holds now."""


class NotingFilesystem(RealFilesystem):
    """The real file system, noting whether it was searched below a directory."""

    looked = False

    def contains(self, directory: str, names: tuple[str, ...]) -> bool | None:
        """Search, and note it."""
        self.looked = True
        return super().contains(directory, names)


class Replayer:
    """Decides past requests, under the policy for the roots of each session."""

    def __init__(self, args: Namespace, more: Iterable[PolicySource] = ()) -> None:
        """Load the layers `args` name (see `add_policies`), and `more` files beside them.

        Raises:
            PolicyError: a managed or user file is invalid.
            PlaceError: no home directory is known.
        """
        own = {"cwd": None, "shell": "bash", "project": None, "home": args.home}
        names = ("policy", "policy_digest", "managed", "no_managed", "no_project")
        self.loaded = loading.load(Namespace(**own, **{name: getattr(args, name) for name in names}))
        self.fs = NotingFilesystem()
        base = self.loaded.base
        self.loaded.base = replace(base, sources=(*base.sources, *more))
        self.loaded.kept.clear()

    def policy(self, case: Case) -> tuple[Policy, str]:
        """Return the policy of a past session, and why everything in it is at least ask."""
        return self.loaded.of(distinct(case.cwd, case.roots))

    def own(self) -> Policy:
        """Return the policy outside of any project."""
        return self.loaded.of(())[0]

    def decide(self, case: Case) -> Redecided:
        """Decide a past request.

        Raises:
            Undecidable: a rule that may hold looks at facts that are not recorded.
        """
        policy, broken = self.policy(case)
        context = self.context(case, policy, broken)
        self.fs.looked = False
        for rule in hidden(policy):
            if may_hold(rule, case.request, context):
                raise Undecidable(f"{rule.ref.label} looks at facts that are not recorded")
        found = engine.decide(case.request, policy, context, self.fs)
        return Redecided(answered_as(case.request, found), found, self.fs.looked)

    def context(self, case: Case, policy: Policy, broken: str) -> Context:
        """Return the context of the session."""
        record = case.record
        stated = table(record.get("agent"))
        name, version, short = (str(stated.get(key) or "") for key in ("name", "version", "profile"))
        agent = Agent(name, version, short, (profiles.named(short) or profiles.generic()).family)
        labels, certain = labels_of(record)
        return Context(
            workspace=self.workspace(case, policy),
            now=case.now,
            agent=agent,
            mode=mode(agent, record.get("mode")),
            interactive=record.get("interactive") is True,
            labels=labels,
            managed_labels=certain,
            user=str(record.get("user") or ""),
            broken=broken,
        )

    def workspace(self, case: Case, policy: Policy) -> Workspace:
        """Return the workspace as it was, with the heads of today's patterns."""
        places = self.loaded.places
        return opened(case.cwd, case.roots, case.sound, places.home, places.tmpdir, policy.heads)


@lru_cache(256)
def opened(
    cwd: str | None,
    roots: tuple[str, ...],
    sound: tuple[str, ...],
    home: str,
    tmpdir: str,
    heads: tuple[str, ...],
) -> Workspace:
    """Open a workspace with these roots."""
    space = paths.open_workspace(cwd, roots, home=home, fs=RealFilesystem(), tmpdir=tmpdir, heads=heads)
    return replace(space, roots=roots, sound=sound)


@lru_cache(256)
def distinct(cwd: str | None, roots: tuple[str, ...]) -> tuple[str, ...]:
    """Return the roots whose project files count, without different spellings of the same."""
    fs, found = RealFilesystem(), dict[str, str]()
    for root in (cwd, *roots):
        if root:
            found.setdefault(real(root, fs), root)
    return tuple(found.values())


def real(path: str, fs: RealFilesystem) -> str:
    """Return the real path, or the path itself if it cannot be resolved."""
    try:
        return fs.resolve(path)
    except OSError:
        return path


def case(record: Record) -> Case:
    """Return the request and session of a record.

    Raises:
        Undecidable: it lacks something a decision needs.
    """
    held = [record.get(name) for name in ("cwd", "roots", "sound", "labels", "agent", "user", "mode")]
    if found := next(rebuild.altered(held), ""):
        raise Undecidable(f"something that rules look at is not in the record: {found}")
    if not table(record.get("agent")):
        raise Undecidable("it does not say which agent asked")
    cwd = record.get("cwd")
    here = cwd if isinstance(cwd, str) else None
    roots = texts(record.get("roots")) if "roots" in record else ((here,) if here else ())
    sound = texts(record.get("sound")) if "sound" in record else roots
    if any("\0" in root for root in (here or "", *roots, *sound)):
        raise Undecidable("its directory is no path")
    try:
        now = datetime.fromisoformat(str(record.get("time")))
    except ValueError as error:
        raise Undecidable("it says no time") from error
    return Case(record, rebuild.request(record), here, roots, sound, now)


def cases(records: Iterable[Record]) -> Iterator[Case | tuple[Record, str]]:
    """Yield the decisions among `records` as cases, or with the reason why they cannot be decided."""
    for record in records:
        if record.get("event") == "decision":
            try:
                yield case(record)
            except Undecidable as error:
                yield record, str(error)


def labels_of(record: Record) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of a record, and those of them that are managed."""
    labels = {name: str(value) for name, value in table(record.get("labels")).items()}
    return labels, {name: labels[name] for name in texts(record.get("managed_labels")) if name in labels}


def mode(agent: Agent, name: object) -> Mode | None:
    """Return a session's mode as the agent's profile describes it."""
    if not isinstance(name, str):
        return None
    return (profiles.named(agent.profile) or profiles.generic()).mode(name)


def answered_as(request: Request, decision: Decision) -> Effect:
    """Return the effect of a decision, given the options of the request."""
    if request.side_door or not request.options:
        return decision.effect
    return acp.answer(decision.effect, request.options, plain=request.plain).effect


@lru_cache(64)
def hidden(policy: Policy) -> tuple[Rule, ...]:
    """Return the rules of a policy that look at facts that are not recorded."""
    grounds = (rule for layer in policy.defaults for rule in layer.rules)
    return tuple(rule for rule in (*policy.rules, *grounds) if not rule.void and looks(rule))


def looks(rule: Rule) -> bool:
    """Say whether a rule looks at facts that are not recorded; arguments of tools are."""
    names = {condition.name for condition in (*rule.conditions, *(one for each in rule.unless for one in each))}
    return "group" in names or ("input" in names and rule.resource != "tool")


def may_hold(rule: Rule, request: Request, context: Context) -> bool:
    """Say whether a rule would hold for a request if all facts that are not recorded fitted it."""
    return any(bool(rule.holds(action, context, met=UNRECORDED)) for action in request.actions)


def signature(one: Case) -> tuple[object, ...]:
    """Return a key that is equal for the same actions in the same place by the same agent."""
    record = one.record
    agent = table(record.get("agent"))
    who: tuple[object, ...] = (agent.get("name"), agent.get("profile"), record.get("user"), record.get("mode"))
    return (one.cwd, one.roots, who, one.request.menu, one.request.side_door, *map(frozen, one.request.actions))


def frozen(action: Action) -> tuple[object, ...]:
    """Return an action as a hashable value."""
    args = repr(sorted(action.args.items())) if isinstance(action.args, Mapping) else ""
    return (args, replace(action, args=None))
