"""Every form that a path in a request may stand for.

Rules of this module:

1. The lexical reading of `..` is always accompanied by the kernel's resolution: `link/../x` may be two places.
2. A spelling that an agent may or may not expand (`~/`, `$HOME/`, percent-escapes, `file://`) stands for both.
3. An unknown path is opaque, with the reason in words; nothing is ever assumed to lie inside the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyd.model import BELOW, Filesystem, PathRef, Reach, Workspace
from policyd.paths import globs
from policyd.paths.drives import of_windows, spelled
from policyd.paths.lexical import compose, fold, inside
from policyd.paths.segments import DEEP, CharClass, Segment

LONGEST = 4_096
"""Characters of a path; Linux and macOS open no longer one."""
MATCHES = 1_000
"""Names a glob may expand to before it may lead anywhere."""
SHOWN = 16
"""Existing matches of a glob that become forms of their own."""
LISTED = 400
"""Existing matches of a glob that strict rules are held against one by one."""

_SIMPLE = re.compile(r"[A-Za-z0-9_./@+ -]+\Z")
"""Texts that have one spelling."""
_FILE = re.compile(r"file:(//[^/]*)?(/.*)", re.I | re.S)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(blob|file|memfs|untitled|vscode[a-z-]*):", re.I)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_OTHER_HOME = re.compile(r"~[A-Za-z_][A-Za-z0-9_-]*(/|\Z)")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class OpaquePath(ValueError):  # noqa: N818 - a path can be opaque without anybody's error
    """An unknown path; the message is the reason in words."""

    def __init__(self, reason: str, written: PathRef | None = None) -> None:
        """Keep what is known of the path for deny and ask rules."""
        super().__init__(reason)
        self.written = written
        """The path as written, where only its resolution failed: no allow rule holds for it."""


def ref(
    text: str,
    *,
    base: tuple[str, ...],
    workspace: Workspace,
    fs: Filesystem | None,
    reach: Reach = Reach.ENTRY,
    glob: bool = False,
    uri: bool = False,
    expands: bool = False,
    printed: bool = False,
) -> PathRef:
    """Return a path of a request with all its forms.

    `base` holds every absolute directory a relative path may start at, links unresolved. `uri`: the field holds a
    `file://` URI or a path; any other scheme is refused either way. `expands`: the glob is a whole word a shell expands
    here, for a program that only reads or removes what exists. `printed`: the glob is the shape of what a command
    prints, so that an existing name that matches is no more likely meant than any other.

    Raises:
        OpaquePath: the path is empty, no text, of another scheme, or cannot be resolved; then its `written` may still
            be judged by strict rules.
    """
    if workspace.cwd is not None and not glob and of_windows(workspace.cwd):
        named = spelled(text)
        if named is None:
            raise OpaquePath("a path of Windows that may be another name of a file")
        text = named
    spellings = _spellings(text, base, workspace, glob=glob, uri=uri)
    if [each for each in spellings if each[:1] != "/"]:
        raise OpaquePath("the path starts at a directory that is not known")
    try:
        forms = _glob_forms(spellings, fs, reach, printed=printed) if glob else _forms(spellings, fs)
    except OpaquePath as error:
        forms = tuple(dict.fromkeys(compose(fold(each)) for each in spellings))
        error.written = PathRef(text, forms, reach, glob, folded=workspace.fold_case)
        raise
    if reach in BELOW and not glob and fs is not None and all(_is_file(each, fs) for each in spellings):
        reach = Reach.ENTRY
    if reach is Reach.FILES:
        plain = fs is not None and not glob and all(_no_directory(each, fs) for each in spellings)
        reach = Reach.ENTRY if plain else Reach.CONTENT
    heads = tuple(map(globs.head, forms)) if glob else forms
    lies_inside = bool(workspace.sound) and not [each for each in heads if not inside(each, workspace.sound)]
    found = _found(spellings, fs) if expands and glob and fs is not None and globs.ANYWHERE not in forms else None
    return PathRef(text, forms, reach, glob, lies_inside, workspace.fold_case, found=found)


# ---- spellings: absolute, unfolded -----------------------------------------------------------------


def _spellings(text: str, base: tuple[str, ...], workspace: Workspace, *, glob: bool, uri: bool) -> tuple[str, ...]:
    if not glob and _SIMPLE.match(text) and len(text) <= LONGEST:
        return _from(text, base)
    _refuse(text)
    text = _unquoted(text) if glob else text
    return tuple(dict.fromkeys(_absolute(text, base, workspace, uri=uri, glob=glob)))


def _refuse(text: str) -> None:
    if not text:
        raise OpaquePath("the path is empty")
    if len(text) > LONGEST:
        raise OpaquePath(f"the path is longer than {LONGEST} characters")
    if "\0" in text:
        raise OpaquePath("the path holds a NUL character")
    if not text.isascii() and _SURROGATE.search(text):
        raise OpaquePath("the path is no valid Unicode")
    if _DRIVE.match(text):
        raise OpaquePath("a Windows path is not known on this system")


def _absolute(text: str, base: tuple[str, ...], workspace: Workspace, *, uri: bool, glob: bool) -> Iterator[str]:
    for each in _decoded(_located(text, uri=uri)):
        if not each or "\0" in each:
            raise OpaquePath("the path is empty or holds a NUL character")
        yield from _from(each, tuple(map(globs.quote, base)) if glob else base)
        yield from _homes(each, globs.quote(workspace.home) if glob else workspace.home)


def _located(text: str, *, uri: bool) -> Iterator[str]:
    """The path of a `file:` URI, with and without its fragment; outside a URI field also the literal text."""
    found = _FILE.match(text)
    if found is None:
        scheme = _SCHEME.match(text)
        if scheme is not None:
            raise OpaquePath(f"`{scheme[0]}` names no file on this system")
        yield text
        return
    if (found[1] or "").lower() not in {"", "//", "//localhost"}:
        raise OpaquePath("the file URI names another host")
    yield from (found[2], re.split(r"[?#]", found[2], maxsplit=1)[0])
    if not uri:
        yield text


def _decoded(texts: Iterator[str]) -> Iterator[str]:
    for text in texts:
        yield text
        if "%" in text:
            decoded = _ESCAPES.sub(_characters, text)
            if _SURROGATE.search(decoded):
                raise OpaquePath("the percent-escapes are no valid UTF-8")
            yield decoded


def _characters(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogateescape")


def _from(text: str, base: tuple[str, ...]) -> tuple[str, ...]:
    if text.startswith("/"):
        return (text,)
    if not base:
        raise OpaquePath("the path is relative and the directory it starts at is not known")
    return tuple([f"{directory}/{text}" for directory in base])


def _homes(text: str, home: str) -> Iterator[str]:
    if text[0] not in "~$":
        return
    if _OTHER_HOME.match(text):
        raise OpaquePath("the path starts at another user's home")
    for name in ("~", "$HOME", "${HOME}"):
        if text == name or text.startswith(name + "/"):
            yield home + text[len(name) :]


# ---- forms: absolute, folded, NFC ------------------------------------------------------------------


def _forms(spellings: tuple[str, ...], fs: Filesystem | None) -> tuple[str, ...]:
    forms: dict[str, None] = {}
    for each in spellings:
        folded = fold(each)
        forms[compose(folded)] = None
        if fs is not None:
            forms[compose(walked(each, fs))] = None
            if folded != each:
                forms[compose(walked(folded, fs))] = None
    return tuple(forms)


def walked(path: str, fs: Filesystem) -> str:
    """Return the path as the kernel walks it.

    Raises:
        OpaquePath: it cannot be told.
    """
    try:
        found = fold(fs.resolve(path))
    except OSError as error:
        raise OpaquePath(f"the path cannot be resolved: {error.strerror or error}") from error
    if not found.startswith("/"):
        raise OpaquePath("the path is resolved to none that is absolute")
    if not found.isascii() and _SURROGATE.search(found):
        raise OpaquePath("the path leads to a name that is no valid Unicode")
    return found


def _is_file(path: str, fs: Filesystem) -> bool:
    """Whether it exists and is not a directory, so that nothing can be below."""
    try:
        return fs.identity(path) is not None and _no_directory(path, fs)
    except OSError:
        return False


def _no_directory(path: str, fs: Filesystem) -> bool:
    try:
        return fs.is_dir(path) is False
    except OSError:
        return False


# ---- globs -----------------------------------------------------------------------------------------


def _glob_forms(spellings: tuple[str, ...], fs: Filesystem | None, reach: Reach, *, printed: bool) -> tuple[str, ...]:
    forms: dict[str, None] = {}
    for each in spellings:
        forms[compose(fold(each))] = None
        names = [name for name in each.split("/") if name not in {"", "."}]
        if fs is None:
            continue
        if _climbs(names, deep=reach is not Reach.ENTRY):
            forms[globs.ANYWHERE] = None
        else:
            forms.update(dict.fromkeys(_expanded(each, fs, printed=printed)))
    return tuple(forms)


def _climbs(names: list[str], *, deep: bool) -> bool:
    """Whether a `..` stands behind a wildcard, or may come from one: `.*/x` is `../x` to many shells.

    `deep`: the last name counts too, for what lies below it is reached.
    """
    parts = globs.segments("/".join(names))
    wild = next((i for i, each in enumerate(parts) if each.literal is None), len(parts))
    led = parts if deep else parts[:-1]
    dotted = any(each.literal is None and each.tokens[:1] == (".",) and each.matches("..") for each in led)
    return dotted or any(each.literal == ".." for each in parts[wild:])


def _expanded(form: str, fs: Filesystem, *, printed: bool) -> Iterator[str]:
    """The glob below its resolved directory, links among its matches, and its matches where they are few."""
    parts = globs.segments(form)
    wild = next((i for i, each in enumerate(parts) if each.literal is None), len(parts))
    start, rest = walked("/" + "/".join(each.literal or "" for each in parts[:wild]), fs), parts[wild:]
    yield compose("/".join((globs.quote(start).rstrip("/"), *(each.source for each in rest))) or "/")
    found = _matches(start, rest, fs)
    if found is None:
        yield globs.ANYWHERE
        return
    for path in found if rest else ():
        yield from _match(path, fs, shown=len(found) <= SHOWN and not printed)


def _match(path: str, fs: Filesystem, *, shown: bool) -> Iterator[str]:
    """The forms one existing match of a glob adds; a match that cannot be resolved may lead anywhere."""
    try:
        target = walked(path, fs)
    except OpaquePath:
        yield globs.ANYWHERE
        return
    if target != path:
        yield compose(globs.quote(target))
    if shown and (fs.identity(path) is not None or fs.is_dir(path)):
        yield compose(globs.quote(path))


def _found(spellings: tuple[str, ...], fs: Filesystem) -> tuple[str, ...] | None:
    """The existing paths the globs expand to, below the directory as written and as walked; None: not all are known.

    A range of letters depends on the locale, `**` on the shell, and what matches nothing is left as it is written.
    """
    found: dict[str, None] = {}
    for each in spellings:
        parts = tuple(part for part in globs.segments(each) if part.literal != ".")
        wild = next((i for i, part in enumerate(parts) if part.literal is None), len(parts))
        names, rest = [part.literal or "" for part in parts[:wild]], parts[wild:]
        if ".." in names or any(part is DEEP or _ranged(part) for part in rest):
            return None
        head = "/" + "/".join(names)
        start = walked(head, fs)
        matches = _matches(start, rest, fs) if rest else None
        if not matches or len(matches) > LISTED:
            return None
        ends = [path[len(start.rstrip("/")) :] for path in matches]
        found.update(dict.fromkeys(compose(top.rstrip("/") + end) for top in (head, start) for end in ends))
    return tuple(found)


def _ranged(part: Segment) -> bool:
    return any(isinstance(token, CharClass) for token in part.tokens)


def _matches(directory: str, parts: tuple[Segment, ...], fs: Filesystem) -> list[str] | None:
    """The existing paths a glob expands to; None: more than `MATCHES`, or a directory that cannot be listed."""
    todo = [directory]
    for part in parts:
        after: list[str] = []
        for here in todo:
            names = _listed(here, part, fs)
            if names is None or len(after) + len(names) > MATCHES:
                return None
            after += [f"{here.rstrip('/')}/{name}" for name in names]
        todo = after
    return todo


def _listed(directory: str, part: Segment, fs: Filesystem) -> tuple[str, ...] | None:
    name = part.literal
    if name is not None:
        return (name,)
    names = fs.listing(directory)
    if names is None:
        return None if fs.is_dir(directory) else ()
    return tuple(each for each in names if part.matches(each) and (each[0] != "." or part.tokens[:1] == (".",)))


def _unquoted(glob: str) -> str:
    """Take away quoting that quotes nothing: `\\.` is a dot, and `..` folds however it was quoted."""
    return re.sub(r"\\(.)", lambda found: found[0] if found[1] in "*?[]\\" else found[1], glob, flags=re.S)
