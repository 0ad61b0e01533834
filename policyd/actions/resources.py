"""The commands, patches, paths and URLs a call names, found through the references of its profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from policyd import paths
from policyd.actions import shell
from policyd.actions.builder import Builder, is_remote, path_kinds
from policyd.actions.fields import Found, each
from policyd.actions.profiles import Profile, ToolSpec
from policyd.actions.readers import Fault, PatchFile, apply_patch, diff_files, prompt_urls, sections
from policyd.model import TABLE, WRITE_KINDS, Action, Reach, Role
from policyd.paths.syntax import expand

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
EDIT = frozenset({"edit"})
EDITOR = frozenset({"read", "edit"})
WIDE = frozenset({"delete", "move", "search"})
TOUCHING = frozenset({"read", "edit", "delete", "move"})
VECTOR = frozenset({"command", "args", "env"})
"""The keys of a command that is a table."""
STATED = {"delete": "delete", "remove": "delete", "deleted": "delete", "move": "move", "rename": "move"}
"""What a diff's own `kind` or `operation` means beside an edit."""


def commands_of(build: Builder, spec: ToolSpec) -> None:
    """Add the actions of every command text and argument vector."""
    found = [item for item in build.said.get("command", ()) if not _is_sort(build, spec, item.value)]
    said: set[object] = set()
    for item in found:
        name = item.value if isinstance(item.value, str) else ("no text", repr(item.value))
        if name in said:
            continue
        said.add(name)
        if not build.spend(1, shell.EXECUTE):
            return
        cwd, known = directories(build, spec)
        if isinstance(item.value, list):
            _words(build, spec, item, cwd, known=known)
        elif spec.table.vectors and isinstance(item.value, TABLE) and item.value.keys() <= VECTOR:
            command, args, env = map(item.value.get, ("command", "args", "env"))
            vector_actions(build, command, args, env, item.origin, cwd, known=known)
        elif not (spec.table.argv and _vector(build, item, cwd, known=known)):
            for text in _texts(build, spec, item.value):
                shell.text_actions(build, text, item.origin, cwd, known=known, stdin=spec.table.stdin)
    if found and build.kinds <= {"other"} and spec.table.kind != "execute":
        _unsaid(build)


def _is_sort(build: Builder, spec: ToolSpec, value: object) -> bool:
    """Say whether a `command` names only what an editor does to the path beside it: `view`, `str_replace`."""
    return value in spec.table.sorts and build.kinds <= EDITOR and bool(build.said.get("path"))


def _texts(build: Builder, spec: ToolSpec, text: object) -> tuple[object, ...]:
    """Return the texts a command may be: if quoted, what the quotes hold, and itself unless it is a whole title.

    Only the agent can tell them apart: a program may have any name, `rm -rf x` among them. What stands between the
    first quote and the last one is such a text only where a title is it.
    """
    if not spec.table.quoted or not isinstance(text, str):
        return (text,)
    titles, inner = build.evidence.titles, shell.quoted_text(text)
    between = shell.quoted_text(f"'{text}'") if inner is None and titles and text not in titles else None
    told = inner or between
    if told is not None and told in titles:
        return (told,)
    return (text,) if inner is None else (inner, text)


def _unsaid(build: Builder) -> None:
    """Note that a command without a kind may be any tool's argument of that name, and run anywhere."""
    if not any(action.opaque for action in build.actions):
        build.opaque("the kind of the request does not say that its command is run", frozenset({"other"}))


def _words(build: Builder, spec: ToolSpec, found: Found, cwd: tuple[str, ...], *, known: bool) -> None:
    """Add the actions of a command that is a list of words."""
    words = found.value if isinstance(found.value, list) else []
    if spec.table.argv and any(build.evidence.raw.get(key) for key in ("args", "env")):
        build.opaque("arguments or variables beside a command that is a list already", shell.EXECUTE, found.origin)
    text = shell.wrapped_text(words) if spec.table.unwrap else None
    if text is not None:
        shell.text_actions(build, text, found.origin, cwd, known=known)
    else:
        shell.argv_actions(build, words, {}, found.origin, cwd, known=known)


def _vector(build: Builder, found: Found, cwd: tuple[str, ...], *, known: bool) -> bool:
    """Add an argument vector's actions if `rawInput` holds one beside the command; say whether it does."""
    args, env = build.evidence.raw.get("args"), build.evidence.raw.get("env")
    if args in (None, [], "") and env in (None, {}, []):
        return False
    vector_actions(build, found.value, args, env, found.origin, cwd, known=known)
    return True


def vector_actions(
    build: Builder,
    command: object,
    args: object,
    env: object,
    origin: str,
    cwd: tuple[str, ...],
    *,
    known: bool,
    doubtful: bool = True,
) -> None:
    """Add the actions of `command` with `args` (a list) and `env` (a table, or ACP's list of name and value).

    `doubtful`: as of `shell.argv_actions`.
    """
    variables = environment(env)
    if variables is None or not isinstance(args or [], list):
        build.opaque("the arguments or the environment of the command cannot be read", shell.EXECUTE, origin)
    words = [command, *args] if isinstance(args, list) else []
    if args and not variables and (text := shell.wrapped_text(words)) is not None:
        shell.text_actions(build, text, origin, cwd, known=known)
        return
    if args and isinstance(args, list):
        shell.argv_actions(build, [command, *args], variables or {}, origin, cwd, known=known, doubtful=doubtful)
        return
    names = "".join(f"{name}={_quoted(value)} " for name, value in (variables or {}).items())
    shell.text_actions(build, names + command if isinstance(command, str) else command, origin, cwd, known=known)


def environment(value: object) -> dict[str, str] | None:
    """Return variables given as a table, or as ACP's list of name and value; None if they cannot be read.

    An invalid name (`true #`) cannot be read: put before the command text it would be part of the command.
    """
    if value in (None, [], {}):
        return {}
    pairs: list[object] = [*value.items()] if isinstance(value, TABLE) else []
    if isinstance(value, list):
        pairs = [(pair.get("name"), pair.get("value", "")) if isinstance(pair, TABLE) else None for pair in value]
    read = [pair for pair in pairs if isinstance(pair, tuple) and isinstance(pair[0], str) and NAME.fullmatch(pair[0])]
    return {name: str(text) for name, text in read} if read and len(read) == len(pairs) else None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def directories(build: Builder, spec: ToolSpec) -> tuple[tuple[str, ...], bool]:
    """Return the directories a command may run in, absolute, and whether they are known."""
    evidence = build.evidence
    found = [*build.said.get("cwd", ())]
    if evidence.missing:
        found += each(spec.refs["cwd"], replace(evidence, raw=evidence.older, locations=()))
    places, known = resolve_cwd(build, found if evidence.missing else counting(spec, "cwd", found))
    stated = found or build.said.get("cwd_own")
    return places, known and not (spec.table.cwd_stated and not stated)


def counting(spec: ToolSpec, group: str, found: Sequence[Found]) -> list[Found]:
    """Return those of the values found for a group that count: what the first present field leads to.

    If that is a plain field of `rawInput`, other plain fields are spellings of it, and each present one counts.
    """
    refs = spec.refs[group]
    plain = bool(found) and refs[found[0].rank].plain
    return [one for one in found if spec.table.every or one.rank == found[0].rank or (plain and refs[one.rank].plain)]


def resolve_cwd(build: Builder, found: Sequence[Found]) -> tuple[tuple[str, ...], bool]:
    """Return the directories that `found` names, any of which it may be, else where the shell may be."""
    late = bool(build.evidence.missing)
    stated = [item.value for item in found if isinstance(item.value, str)]
    home = build.bases()
    try:
        if len(stated) < len(found):
            raise paths.OpaquePath("it is no text")
        starts: list[tuple[str, ...]] = [(place,) for place in home] or [()]
        places = tuple(dict.fromkeys(build.ref(text, at, Reach.ENTRY).forms[0] for text in stated for at in starts))
    except paths.OpaquePath as error:
        build.opaque(f"the working directory: {error}", shell.EXECUTE)
        return home, False
    if late:
        return tuple(dict.fromkeys([*places, *home])), False
    if places:
        return places, True
    return (build.around.cwds, True) if build.around.cwds else (home, False)


def patches_of(build: Builder, spec: ToolSpec) -> None:
    """Add an edit, delete or move for every file that patch text names."""
    for file, origin in _patched(build, "patch", sections if spec.table.sections else apply_patch):
        kinds = frozenset({file.kind, "edit"}) if file.kind == "move" else frozenset({file.kind})
        build.path(file.path, kinds | (build.kinds - {"other"}), origin)
        _adrift(build, file.path, kinds, origin)


def _adrift(build: Builder, text: str, kinds: frozenset[str], origin: str) -> None:
    """Add an opaque action for a relative path if it is no longer known where it starts."""
    if build.around.adrift and not text.startswith(("/", "~/")):
        build.opaque("the path is relative, and nobody says to what", kinds, origin)


def _patched(
    build: Builder, group: str, read: Callable[[str], tuple[PatchFile, ...]]
) -> Iterator[tuple[PatchFile, str]]:
    """Yield every file that patch text names, and where it was found; text that cannot be read is opaque."""
    for found in build.said.get(group, ()):
        try:
            files = read(found.value if isinstance(found.value, str) else "")
        except Fault as fault:
            build.opaque(str(fault), EDIT, found.origin)
            continue
        for file in files:
            yield file, found.origin


def paths_of(build: Builder, profile: Profile, spec: ToolSpec) -> None:
    """Add the paths of fields, locations and diffs, each with what is done to it."""
    if not spec.names_paths(build.evidence):
        return
    table, evidence = spec.table, build.evidence
    ran = bool([action for action in build.actions if action.command or action.mcp])
    beside = [*build.said.get("mention", ())]
    named = build.said.get("path", ())
    leading = counting(spec, "path", named)
    beside += [found for found in named if found not in leading]
    kinds = path_kinds(build.kinds, table.kind or _written(build, spec))
    targets = {found.value: Target(kinds, found.origin) for found in leading if isinstance(found.value, str)}
    for found in leading:
        if not isinstance(found.value, str):
            build.opaque("a path is no text", build.kinds, found.origin)
            build.mentions(found.value, found.origin, "path")
    _globs(build, spec, targets)
    _changed(build, targets)
    apart = {found.value for found in beside if isinstance(found.value, str)}
    apart |= {found.value for found in build.said.get("url", ()) if is_web(found.value)}
    if evidence.locations:
        _locations(build, spec, targets, apart, ran=ran)
    if evidence.diffs:
        _diffs(build, profile, targets)
    if profile.data.shown and not ran:
        _half_shown(build)
    base = _starts(build, spec, beside, ran=ran)
    for text, target in targets.items():
        _target(build, spec, text, target, base)
    for found in beside:
        build.mentions(found.value, found.origin, "path")
    if table.here and not targets:
        _here(build, spec, base)


def is_web(value: object) -> TypeGuard[str]:
    """Say whether `value` is a web address: a fetch may list it among its locations, where it is no path."""
    return isinstance(value, str) and value[:8].lower().startswith(("http://", "https://"))


def _starts(build: Builder, spec: ToolSpec, beside: list[Found], *, ran: bool) -> tuple[str, ...]:
    """Return where relative paths may start: a directory stated without a command may be meant for them."""
    if spec.table.base:
        return (spec.table.base,)
    if ran or not build.said.get("cwd"):
        return build.bases()
    found = each(tuple(ref for ref in spec.refs["cwd"] if ref.key), build.evidence)
    beside += found
    return tuple(dict.fromkeys((*build.bases(), *(resolve_cwd(build, found)[0] if found else ()))))


def _written(build: Builder, spec: ToolSpec) -> str:
    """Return `edit` if no kind is stated and `rawInput` holds text to write."""
    unstated = not build.evidence.stated and build.kinds == {"other"}
    return "edit" if unstated and any(build.evidence.raw.get(key) for key in spec.table.written) else ""


class Target(Struct, frozen=True):
    """What is done to a path, and where it was found."""

    kinds: frozenset[str]
    origin: str
    glob: bool = False


Targets = dict[str, Target]
_AWAY = re.compile(r"[/~\\]|.:[/\\]|file:", re.IGNORECASE)
"""Beginnings of a glob that lead away from where the search starts, beside `..` inside it."""
_AWAY_INSIDE = re.compile(r"[{,](?:[/~\\]|\.\.|file:)|[(|](?:~?/|\.\./|file:)", re.IGNORECASE)
"""A part of a glob that does, in syntax other than braces around commas."""


def _globs(build: Builder, spec: ToolSpec, targets: Targets) -> None:
    """Add a glob that leads away from where the search starts as a place of its own, with the paths it mentions."""
    for found in build.said.get("glob", ()):
        if not isinstance(found.value, str):
            build.opaque("a glob pattern is no text", build.kinds, found.origin)
            continue
        parts = _alternatives(found.value)
        if any(map(_AWAY_INSIDE.search, parts)):
            build.opaque("a part of a glob pattern may lead elsewhere", build.kinds, found.origin)
        elif any(_AWAY.match(part) or ".." in part for part in parts):
            target = Target(path_kinds(build.kinds, spec.table.kind), found.origin, glob=True)
            targets.update({part: target for part in parts if part and part not in targets})


def _alternatives(text: str) -> list[str]:
    try:
        return expand(text) if "{" in text else [text]
    except paths.PatternError:  # as one text, in which a part that leads elsewhere is seen
        return [text]


def _changed(build: Builder, targets: Targets) -> None:
    """Add what fields and diffs say will be deleted or moved."""
    for refs, kind in (("deletes", "delete"), ("moves", "move")):
        for found in build.said.get(refs, ()):
            if not isinstance(found.value, str):
                build.opaque("a path is no text", EDIT | {kind}, found.origin)
            else:
                _change(targets, found.value, kind, found.origin)
    for file, origin in _patched(build, "diff", diff_files):
        _change(targets, file.path, file.kind, origin)


def _change(targets: Targets, path: str, kind: str, origin: str) -> None:
    known = targets.get(path) or Target(EDIT, origin)
    targets[path] = replace(known, kinds=known.kinds | {kind})


def _locations(build: Builder, spec: ToolSpec, targets: Targets, apart: set[str], *, ran: bool) -> None:
    meaning = spec.table.locations or ("mention" if ran else "path")
    for at, text in enumerate(build.evidence.locations):
        origin = f"locations[{at}].path"
        if meaning == "path" and text not in apart:
            targets.setdefault(text, Target(path_kinds(build.kinds, spec.table.kind), origin))
        elif meaning == "read":
            _read_beside(build, text, origin)
        elif meaning == "mention":
            build.path(text, frozenset(), origin, role=Role.MENTION)


def _read_beside(build: Builder, text: str, origin: str) -> None:
    """Add a read of a path beside a command, unless the command itself names it as read or changed."""
    try:
        ref = build.ref(text, build.bases(), Reach.ENTRY)
    except paths.OpaquePath as error:
        build.opaque(str(error), frozenset({"read"}), origin)
        return
    known = [action for form in ref.forms for action in build.named.get(form, ())]
    same = [action for action in known if action.carrier is not None]
    if any(action.role is Role.REDIRECT or action.kinds & TOUCHING for action in known):
        return
    carrier = same[0].carrier if same else None
    role = Role.OPERAND if same else Role.PRIMARY
    build.add(
        Action(frozenset({"read"}), role, path=ref, name=build.name, args=build.args, carrier=carrier, origin=origin)
    )


def _diffs(build: Builder, profile: Profile, targets: Targets) -> None:
    """Add what diffs state: an edit each, a delete or move where the diff says so or the profile infers it."""
    places = set(build.evidence.locations)
    names = {place.rsplit("/", 1)[-1]: place for place in places} if profile.data.bare else {}
    moved = _moved(build, places, {diff.path for diff in build.evidence.diffs}) if profile.data.moves else set()
    for at, diff in enumerate(build.evidence.diffs):
        path = names.get(diff.path, diff.path) if len(names) == len(places) else diff.path
        known = targets.get(path) or Target(build.kinds & WIDE, f"content diff {at}")
        stated = {STATED[diff.kind]} if diff.kind in STATED else set()
        targets[path] = replace(known, kinds=known.kinds - {"other"} | EDIT | stated)
    for text in moved & set(targets):
        targets[text] = replace(targets[text], kinds=targets[text].kinds | {"move"})


def _moved(build: Builder, places: set[str], shown: set[str]) -> set[str]:
    """Return both ends of a move: one is only named, the other only shown; two spellings of one file are no move."""
    named = {_spelled_out(build, text) for text in places - shown}
    seen = {_spelled_out(build, text) for text in shown - places}
    if not (named - seen and seen - named):
        return set()
    return {text for text in places ^ shown if _spelled_out(build, text) in named ^ seen}


def _spelled_out(build: Builder, text: str) -> str:
    """Return `text` as an absolute path in the session's directory, as written; `text` itself if it is no path."""
    cwd = build.around.workspace.cwd
    try:
        return build.ref(text, (cwd,) if cwd else (), Reach.ENTRY).forms[0]
    except paths.OpaquePath:
        return text


def _half_shown(build: Builder) -> None:
    """Add an opaque change if a file is named but not shown, or the reverse: perhaps a deletion or half a move.

    A diff that says it is a move shows both ends; a location names the first.
    """
    places, diffs = set(build.evidence.locations), build.evidence.diffs
    shown = {diff.path for diff in diffs}
    alone = {diff.path for diff in diffs if STATED.get(diff.kind) != "move"} - places
    if build.kinds & WRITE_KINDS and bool(places - shown) is not bool(alone):
        build.opaque("the change of a file it names is not shown", build.kinds, "locations")


def _target(build: Builder, spec: ToolSpec, text: str, target: Target, base: tuple[str, ...]) -> None:
    table, kinds, origin = spec.table, target.kinds, target.origin
    reach = Reach(table.reach) if table.reach else Reach.CONTENT if kinds & WIDE else Reach.ENTRY
    build.path(text, kinds, origin, reach=reach, base=base, glob=target.glob)
    _adrift(build, text, kinds, origin)
    if is_remote(text):
        build.opaque("the path may be one of another machine", kinds, origin)
    if kinds == {"other"}:
        build.opaque("the kind of the request does not say what is done to the path", kinds, origin)


def _here(build: Builder, spec: ToolSpec, base: tuple[str, ...]) -> None:
    """Add the cwd as the place of a call that names none; if nothing was stated, it may be another."""
    if not build.evidence.detailed or ("search" in build.kinds and not build.evidence.raw):
        build.opaque("where it searches is not stated", build.kinds)
    kinds = path_kinds(build.kinds, spec.table.kind)
    for cwd in base:
        reach = Reach(spec.table.reach) if spec.table.reach else Reach.CONTENT
        build.path(cwd, kinds, "the session's cwd", reach=reach)


def urls_of(build: Builder) -> None:
    """Add the URL of a fetch, or the file it names.

    URLs inside text that is more than words and URLs are mentions beside an opaque fetch.
    """
    stated = build.kinds - {"other", "execute", "think"}
    kinds = frozenset({"fetch"}) | stated
    for found in build.said.get("url", ()):
        if isinstance(found.value, str) and found.value[:5].lower() == "file:":
            build.path(found.value, stated | {"read"}, found.origin)
        else:
            build.url(found.value, kinds, found.origin)
    for found in build.said.get("prose", ()):
        if isinstance(found.value, str):
            _prompted(build, found.value, kinds, found.origin)


def _prompted(build: Builder, prompt: str, kinds: frozenset[str], origin: str) -> None:
    try:
        for url in prompt_urls(prompt):
            build.url(url, kinds, origin)
    except Fault:
        build.prose(prompt, origin)
        build.opaque("the tool takes its URLs from free text", kinds, origin)
