"""`policyd grants`: see, revoke, add and share remembered answers.

Revoking an allow only tightens and is always permitted. Adding one, revoking a denial and promoting loosen, and need a
person (`presence`). A grant can be revoked whether it counts at the moment or not.
Exit codes: 0 done, even if there is nothing to list; 1 a grant named by its id does not exist; 2 usage, or refused.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from datetime import timedelta

from msgspec import Struct

from policyd.cli import options, presence
from policyd.cli.ending import DONE, NO, complain, counted, failed
from policyd.cli.grants import elsewhere
from policyd.cli.grants.table import Held, left, print_table
from policyd.cli.options import directory
from policyd.cli.saying import say, say_json, say_verbatim
from policyd.display import safe
from policyd.grants import LONGEST, Clock, Grant, Key, conditions
from policyd.grants.grant import grant_id
from policyd.grants.literal import join, split
from policyd.grants.rules import policy_text, unwritable
from policyd.model import Effect
from policyd.policy import PolicyError
from policyd.storage import clock as clocks
from policyd.storage import places, settings
from policyd.storage.filecache import FileCache
from policyd.storage.grantfile import Change, GrantFile
from policyd.storage.grants import files, grants_cache, merged

PROMOTED = ".policyd/promoted.toml"
ID = "a grant's id as `policyd grants list` shows it, or four letters of its beginning or more"
SHORTEST_ID = 4


class Store(Struct, frozen=True):
    """Where grants are stored, and how long they hold at most."""

    directory: str
    cache: FileCache
    longest: timedelta = LONGEST

    def file(self, root: str) -> GrantFile:
        """Return the file of one project, or (empty) of user scope."""
        return GrantFile(self.directory, root, cache=self.cache)

    def files(self) -> tuple[GrantFile, ...]:
        """Return all files."""
        return files(self.directory, self.cache)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    command = options.subcommands(parser, options.add_home)
    show = command("show", "everything about one grant", run_show)
    listing = command("list", "what is remembered for this project, or for all", run_list)
    listing.add_argument("--all", action="store_true", help="for all projects")
    options.add_json(listing)
    options.add_json(show)
    show.add_argument("id", metavar="ID", help=ID)
    revoke = command("revoke", "forget grants; the next request asks again", run_revoke)
    revoke.add_argument("id", metavar="ID", nargs="*", help=ID)
    revoke.add_argument("--agent", metavar="NAME", help="all grants of this agent")
    revoke.add_argument("--all", action="store_true", help="all grants of this project (with --everywhere: of all)")
    revoke.add_argument("--everywhere", action="store_true", help="in all projects")
    command("prune", "leave out what is over, everywhere", run_prune)
    export = command("export", "print grants as policy rules", run_export)
    export.add_argument("id", metavar="ID", nargs="*", help="only these (default: all of the project)")
    promote = command("promote", f"write a grant as a rule into {PROMOTED}, which then needs trust", run_promote)
    promote.add_argument("id", metavar="ID", nargs="+", help=ID)
    _add_add(command("add", "remember an answer for a limited time", run_add))
    for one in (listing, revoke, export, promote):
        one.add_argument("--cwd", type=directory, metavar="DIR", help="the project (default: here)")


def _add_add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--for", dest="life", required=True, type=duration, metavar="TIME", help="how long: 30m, 8h, 7d; at most 30d")
    add("--agent", required=True, metavar="NAME", help="profile or exact name, as `grants list` and the audit show it")
    add("--deny", action="store_true", help="remember a no instead of a yes")
    add("--cwd", type=directory, metavar="DIR", help="the project, and where the command runs (default: here)")
    add("--in", dest="place", default=".", metavar="DIR", help="where in the project the command runs")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--path", type=directory, metavar="PATH", help="a path instead of a command; with --kind")
    what.add_argument("--tool", metavar="SERVER/TOOL", help="an MCP tool with any input instead of a command")
    add("--kind", default="edit", choices=("read", "edit", "delete", "move", "search"), help="what is done to the path")
    add("words", nargs=argparse.REMAINDER, metavar="-- WORD …", help="the exact command")


def run(args: argparse.Namespace) -> int:
    """Run one subcommand."""
    args.where = found = places.find(home=args.home)
    return int(args.run(args, Store(found.grants, grants_cache(found.cache), longest(found))))


def longest(where: places.Places) -> timedelta:
    """Return `grants.max_age`."""
    try:
        return timedelta(days=settings.in_force(where).settings.grants_max_age)
    except PolicyError:  # grants can be revoked all the same
        return LONGEST


# ---- looking ----------------------------------------------------------------------------------------


def run_list(args: argparse.Namespace, store: Store) -> int:
    """Print the grants of the project, or of all."""
    clock = clocks.now()
    root = None if args.all else project(args)
    found, theirs = list(held(store, clock, root)), elsewhere.rows(args.where, root)
    if args.json:
        say_json(*(facts(one, clock) for one in found), *theirs)
        return DONE
    if found:
        print_table(found, clock, every=args.all)
    say(*elsewhere.lines(theirs))
    if not found and not theirs:
        say("nothing is remembered" + ("" if args.all else " for this project; --all shows others"))
    return DONE


def run_show(args: argparse.Namespace, store: Store) -> int:
    """Print one grant with its conditions."""
    clock = clocks.now()
    found = matching(held(store, clock), [args.id])
    for one in found:
        table = facts(one, clock)
        if args.json:
            say_json(table)
            continue
        for name, value in table.items():
            if value not in ("", None):
                say(f"{name:8} {safe(value if isinstance(value, str) else json.dumps(value))}")
    return DONE if found else missing([args.id])


def facts(one: Held, clock: Clock) -> dict[str, object]:
    """Return a grant as JSON shows it."""
    grant = one.grant
    return {
        "id": grant.id,
        "effect": grant.effect.word,
        "covers": grant.covers,
        "agent": grant.agent,
        "scope": grant.scope,
        "project": one.file.root,
        "created": grant.created.isoformat(),
        "until": grant.until.isoformat(),
        "holds": grant.alive(clock),
        "session": grant.session,
        "by": grant.by,
        "client": grant.client,
        "rules": [conditions(member) for member in grant.members],
    }


# ---- revoking ---------------------------------------------------------------------------------------


def run_revoke(args: argparse.Namespace, store: Store) -> int:
    """Forget the grants that are named."""
    if not (args.id or args.agent or args.all):
        return failed("grants revoke", "name grants by id, or with --agent or --all")
    root = None if args.everywhere or args.id else project(args)
    found = list(held(store, None, root))
    chosen = matching(found, args.id) if args.id else [one for one in found if args.agent in (None, one.grant.agent)]
    denials = [one for one in chosen if one.grant.effect is Effect.DENY]
    why = presence.refusal() if denials else ""
    for one in [one for one in chosen if not (why and one in denials)]:
        one.file.change(without(one.grant.id))
        say(f"revoked {one.grant.id}: {safe(one.grant.covers)}")
    there = revoked_there(args, root)
    if why:
        kept_ids = " ".join(one.grant.id for one in denials)
        return failed("grants revoke", f"{kept_ids} stays: only a person takes back a remembered no: {why}")
    if args.id:
        return unknown([*(one.grant.id for one in chosen), *there], args.id)
    if not chosen and not there:
        say("there was nothing to revoke")
    return DONE


def revoked_there(args: argparse.Namespace, root: str | None) -> list[str]:
    """Revoke grants kept by another user's daemon too; return their ids."""
    rows = elsewhere.rows(args.where, root)
    named = begun(args.id) if args.id else ""
    ids = [str(row["id"]) for row in rows if args.agent in (None, row.get("agent"))]
    gone = elsewhere.revoke(args.where, [one for one in ids if one.startswith(named)]) if ids else ()
    say(*(f"revoked {safe(one)} at the daemon" for one in gone))
    return list(gone)


def run_prune(_: argparse.Namespace, store: Store) -> int:
    """Remove expired and void grants; denials stay even if their project is gone, as it may come back."""
    count = 0
    for file in store.files():
        before, after = len(file.current().grants), len(file.change(lambda grants: grants))
        count += before - after
        if not after and file.root and not os.path.isdir(file.root):
            os.unlink(file.path)
    say(f"{counted(count, 'grant')} left out")
    return DONE


# ---- adding and sharing -----------------------------------------------------------------------------


def run_add(args: argparse.Namespace, store: Store) -> int:
    """Remember an answer for a limited time."""
    why = "" if args.deny else presence.refusal() or locked(args.home)
    if args.life > store.longest:
        why = why or f"`grants.max_age` lets an answer last {left(store.longest)} at most; write a shorter time"
    try:
        members = (wanted(args),)
    except ValueError as error:
        why = why or str(error)
    if why:
        return failed("grants add", why)
    clock, effect = clocks.now(), Effect.DENY if args.deny else Effect.ALLOW
    new = Grant(
        id=grant_id(effect, "project", args.agent, members, ""),
        effect=effect,
        scope="project",
        agent=args.agent,
        members=members,
        covers=f"{described(members[0])} in this project",
        created=clock.wall,
        until=clock.wall + args.life,
        boot=clock.boot if clock.boot_id else None,
        boot_id=clock.boot_id,
        by="cli",
    )
    store.file(project(args)).change(lambda old: merged(old, [new]))
    say(f"{new.id}: {effect.word} {new.covers} for {left(args.life)}")
    return DONE


def locked(home: str | None) -> str:
    """Return why a remembered allow would not count, empty if it would."""
    from policyd.policy import PolicyError
    from policyd.storage import policies
    from policyd.storage.filesystem import RealFilesystem

    where, fs = places.find(home=home), RealFilesystem()
    try:
        found = policies.managed(where.managed_policies)
        policy = policies.loaded_at(where, found.sources, fs)
    except PolicyError as error:
        return f"the managed policy cannot be read: {error}"
    return "the managed policy refuses remembered answers" if policy.lock.grants else ""


def wanted(args: argparse.Namespace) -> Key:
    """Return the key that the options of `add` name; ValueError with a message if they name none."""
    words = tuple(args.words[1:] if args.words[:1] == ["--"] else args.words)
    if bool(words) == bool(args.path or args.tool):
        raise ValueError("name one thing: the words of a command behind `--`, --path or --tool")
    if args.tool:
        server, slash, tool = args.tool.partition("/")
        if not server or not slash or not tool or "/" in tool:
            raise ValueError("a tool is named SERVER/TOOL")
        return Key(("other",), "tool", (args.tool,), more=True)
    root = project(args)
    if args.path:
        forms = {relative_to(root, args.path), relative_to(root, os.path.realpath(args.path))}
        return Key((args.kind,), "path", tuple(sorted(forms)))
    split(join(words))
    return Key(
        ("execute",), "command", words, cwd=(relative_to(root, os.path.realpath(os.path.join(root, args.place))),)
    )


def run_export(args: argparse.Namespace, store: Store) -> int:
    """Print grants as rules of a policy."""
    clock = clocks.now()
    found = list(held(store, clock, None if args.id else project(args)))
    chosen = matching(found, args.id) if args.id else found
    say_verbatim(policy_text([one.grant for one in chosen if one.grant.alive(clock)]))
    for one in chosen:
        if why := unwritable(one.grant):
            complain("grants export", f"{one.grant.id} is left out: {why}")
    return unknown([one.grant.id for one in chosen], args.id)


def run_promote(args: argparse.Namespace, store: Store) -> int:
    """Write grants as rules into the project."""
    if why := presence.refusal():
        return failed("grants promote", why)
    root = project(args)
    chosen = matching(held(store, clocks.now(), root), args.id)
    if unknown([one.grant.id for one in chosen], args.id):
        return NO
    found = [*{one.grant.id: one.grant for one in chosen}.values()]
    for grant in found:
        if why := unwritable(grant):
            return failed("grants promote", f"{grant.id}: {why}")
    path = os.path.join(root, PROMOTED)
    try:
        append(path, found)
    except OSError as error:
        return failed("grants promote", f"{path} cannot be written: {error.strerror}")
    say(f"written to {path}; it counts once `policyd trust` was run on it")
    return DONE


def append(path: str, found: Sequence[Grant]) -> None:
    """Add grants as rules to a file of the project; links are refused, as they could lead to a trusted policy.

    Raises:
        OSError: it cannot be written, or it or its directory is a link.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    place = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(os.path.basename(path), how, 0o644, dir_fd=place)
    finally:
        os.close(place)
    with open(descriptor, "a", encoding="utf-8") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EINVAL, "it is no file of its own", path)
        file.write(policy_text(found, head=status.st_size == 0))


# ---- selecting -------------------------------------------------------------------------------------


def project(args: argparse.Namespace) -> str:
    """Return the real path of the project."""
    return os.path.realpath(args.cwd or os.getcwd())


def held(store: Store, clock: Clock | None, root: str | None = None) -> Iterator[Held]:
    """Yield the grants of user scope and one project, or of all projects; with a `clock`, those that may count."""
    for file in store.files() if root is None else (store.file(""), store.file(root)):
        grants = file.current().grants if clock is None else file.grants(clock)
        shown = (grant.capped(store.longest) for grant in grants)
        yield from (Held(grant, file) for grant in shown if clock is None or grant.until > clock.wall)
        for problem in file.take_problems():
            complain("grants", safe(problem))


def matching(found: Iterator[Held] | Sequence[Held], names: Sequence[str]) -> list[Held]:
    """Return the grants whose id begins with one of `names`, at least four characters of them."""
    return [one for one in found if one.grant.id.startswith(begun(names))]


def begun(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that are long enough to be the beginning of an id."""
    return tuple(name for name in names if len(name) >= SHORTEST_ID)


def without(gone: str) -> Change:
    """Return the change that removes one grant."""
    return lambda old: [grant for grant in old if grant.id != gone]


def unknown(ids: Sequence[str], names: Sequence[str]) -> int:
    """Return the exit code of a command that names grants; report those that do not exist."""
    gone = [name for name in names if not any(one.startswith(begun([name])) for one in ids)]
    return missing(gone) if gone else DONE


def missing(names: Sequence[str]) -> int:
    """Report grants that do not exist; return the exit code."""
    short = any(len(name) < SHORTEST_ID for name in names)
    more = f"; write at least {SHORTEST_ID} letters of an id" if short else ""
    listed = " ".join(f"`{safe(name)}`" for name in names)
    complain("grants", f"no grant {listed}; `policyd grants list --all` shows what there is{more}")
    return NO


def described(key: Key) -> str:
    """Describe what a key covers."""
    if key.resource == "command":
        place = "" if key.cwd == (".",) else f" (run in {safe(key.cwd[0])})"
        return f"`{safe(join(key.words))}`{place}"
    return (
        f"{key.kinds[0]} `{safe(key.words[0])}`" if key.resource == "path" else f"`{safe(key.words[0])}` with any input"
    )


def relative_to(root: str, path: str) -> str:
    """Return `path`, relative to the project if it lies inside."""
    inside = os.path.relpath(path, root)
    return path if inside == ".." or inside.startswith("../") else inside


def duration(text: str) -> timedelta:
    """Parse how long an answer is remembered."""
    life = options.span(text) or timedelta(0)
    if not timedelta(0) < life <= LONGEST:
        raise argparse.ArgumentTypeError(f"`{text}` is no time; write 30m, 8h or 7d, at most 30d")
    return life
