"""The pieces actions are made of: paths, URLs, tools, opaque parts, each with where it was found.

A `Builder` gathers the actions of one request. It resolves nothing by itself (`paths.ref` and the file system handed in
do) and never drops a thing it cannot understand: what is not a path, a URL or a tool becomes an opaque action. So does
whatever a request names beyond `MOST`: the time that one request may take is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from policyd import paths, urls
from policyd.actions.evidence import Evidence
from policyd.actions.fields import Found
from policyd.actions.messages import LONGEST_PATH
from policyd.model import TABLE, Action, Filesystem, PathRef, Reach, Role, Tool, Workspace

MENTIONING = (str, list, Mapping)
NOT_PATH = frozenset({"execute", "think", "switch_mode"})
MOST = 5_000
"""Paths and URLs of one call that are looked at."""
GLOB, DEEP = 150, 50
"""For how many a glob counts, and a whole directory: each rule has to look closer at them."""
STEPS = 16
"""Directories of a path that count like another path."""
MOST_TEXTS = 20_000
"""Texts of one call in which mentions are looked for."""
TOO_MANY = "it names more than is looked at"


class Surroundings(Struct, frozen=True):
    """The circumstances of a call: the session's workspace, the machine, the shell."""

    workspace: Workspace
    fs: Filesystem | None = None
    shell: str = "bash"
    reserved: tuple[str, ...] = ()
    """policyd's own files and directories; touching them is guarded."""
    servers: tuple[str, ...] = ()
    """MCP servers the client named."""
    cwds: tuple[str, ...] = ()
    """The directories the agent's shell may be in, absolute; empty = unknown."""
    roams: bool = False
    """Relative paths start there too, not always at the session's cwd."""
    adrift: bool = False
    """It is no longer known where relative paths start."""
    within: tuple[str, ...] = ()
    """The reserved places, each with a slash at its end: the paths inside begin with it."""

    def __post_init__(self) -> None:
        """Prepare what is looked up for every path."""
        force_setattr(self, "within", tuple([place.rstrip("/") + "/" for place in self.reserved]))


class Builder(Struct):
    """The actions of one call, as they are found."""

    evidence: Evidence
    around: Surroundings
    name: Tool | None = None
    args: Mapping[str, object] | None = None
    said: Mapping[str, Sequence[Found]] = field(default_factory=dict)
    """What the tool's table reads of the call, by group of references (`ToolSpec.read`)."""
    actions: list[Action] = field(default_factory=list)
    named: dict[str, list[Action]] = field(default_factory=dict)
    """Spelling of a path -> the actions whose path has it: a request may name thousands."""
    looked: dict[tuple[object, ...], PathRef] = field(default_factory=dict)
    """Paths that were looked at for this call: every command of a compound runs in the same directory."""
    left: int = MOST
    texts: int = MOST_TEXTS
    full: set[frozenset[str]] = field(default_factory=set)
    """The kinds of what was no longer looked at."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds stated of the call."""
        return self.evidence.kinds

    def add(self, action: Action) -> int:
        """Keep `action` and return its index; of more paths than are looked at, only that there are more."""
        path = action.path
        if path is not None:
            weight = GLOB if path.glob else DEEP if path.reach is not Reach.ENTRY else 1 + path.text.count("/") // STEPS
            if not self.spend(weight, action.kinds):
                return len(self.actions) - 1
            for form in path.forms:
                self._name(form, action)
        self.actions.append(action)
        return len(self.actions) - 1

    def _name(self, form: str, action: Action) -> None:
        """Note that `action` is of a path spelled so, unless one like it is noted."""
        known = self.named.setdefault(form, [])
        if not any(_alike(action, other) for other in known):
            known.append(action)

    def spend(self, weight: int, kinds: frozenset[str] = frozenset()) -> bool:
        """Count something that is looked at; beyond the limit, note once for its kinds that there is more."""
        self.left -= weight
        if self.left >= 0:
            return True
        if kinds not in self.full:
            self.full.add(kinds)
            self.actions.append(Action(kinds or self.kinds, opaque=TOO_MANY, name=self.name, args=self.args))
        return False

    def opaque(self, why: str, kinds: frozenset[str], origin: str = "") -> None:
        """Add an opaque action: something that cannot be understood, and why."""
        kinds = kinds or self.kinds
        if self.spend(1, kinds):
            self.actions.append(Action(kinds, opaque=why, name=self.name, args=self.args, origin=origin))

    def ref(
        self,
        text: object,
        base: tuple[str, ...],
        reach: Reach,
        *,
        glob: bool = False,
        expands: bool = False,
        printed: bool = False,
    ) -> PathRef:
        """Return the path `text` in every form; OpaquePath says why not."""
        if not isinstance(text, str) or len(text) > LONGEST_PATH:
            raise paths.OpaquePath("a path is no text, or longer than any path")
        key = (text, base, reach, glob, expands, printed)
        if key not in self.looked:
            if not self.spend(1 + text.count("/") // STEPS):
                raise paths.OpaquePath(TOO_MANY)
            self.looked[key] = paths.ref(
                text,
                base=base,
                workspace=self.around.workspace,
                fs=self.around.fs,
                reach=reach,
                glob=glob,
                uri=text[:7].lower() == "file://",
                expands=expands,
                printed=printed,
            )
        return self.looked[key]

    def path(
        self,
        text: object,
        kinds: frozenset[str],
        origin: str,
        *,
        role: Role = Role.PRIMARY,
        reach: Reach = Reach.ENTRY,
        base: tuple[str, ...] | None = None,
        glob: bool = False,
    ) -> int | None:
        """Add a path action and return its index; a mention that is no path is nothing, any other is opaque."""
        try:
            base = self.bases() if base is None else base
            ref = self.ref(text, base, reach, glob=glob)
            for other in otherwise(text):
                ref = joined(ref, self.ref(other, base, reach, glob=glob))
        except paths.OpaquePath as error:
            if role is not Role.MENTION:
                self.opaque(str(error), kinds, origin)
            if error.written is not None:
                # Where it leads cannot be told; what it is called can, and a deny of that name must see it.
                self.add(
                    Action(frozenset(), Role.MENTION, path=error.written, name=self.name, args=self.args, origin=origin)
                )
            return None
        said = frozenset() if role is Role.MENTION else kinds
        for action in self.named.get(ref.forms[0], ()):
            if action.path and set(action.path.forms) >= set(ref.forms) and said in (frozenset(), action.kinds):
                return None
        return self.add(Action(said, role, path=ref, name=self.name, args=self.args, origin=origin))

    def url(self, text: object, kinds: frozenset[str], origin: str, *, role: Role = Role.PRIMARY) -> None:
        """Add a URL action; an odd URL is opaque unless it is only a mention, and a mention of what it likely means."""
        if not self.spend(1, kinds):
            return
        text = text if isinstance(text, str) else ""
        try:
            url = urls.parse(text)
        except urls.OddUrl as error:
            if role is not Role.MENTION:
                self.opaque(str(error), kinds, origin)
            likely = urls.meant(text)
            if likely is None:
                return
            url, role = likely, Role.MENTION
        said = frozenset() if role is Role.MENTION else kinds
        self.add(Action(said, role, url=url, name=self.name, args=self.args, origin=origin))

    def mentions(self, value: object, origin: str, key: str = "") -> None:
        """Add every path-like and URL-like text inside `value` (a table, list or text) as a mention."""
        if isinstance(value, TABLE):
            for name, item in value.items():
                if isinstance(item, MENTIONING):
                    self.mentions(item, f"{origin}.{name}", str(name))
                    if self.texts < 0:
                        return
        elif isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, MENTIONING):
                    self.mentions(item, f"{origin}[{at}]", key)
                    if self.texts < 0:
                        return
        elif isinstance(value, str) and value:
            self._mentioned(value, origin, key)

    def _mentioned(self, value: str, origin: str, key: str) -> None:
        self.texts -= 1
        if self.texts < 0 and not self.spend(self.left + 1):
            return
        if "://" in value:
            self.prose(value, origin)
        if path_like(value, key):
            self.path(value, frozenset(), origin, role=Role.MENTION)

    def prose(self, text: str, origin: str) -> None:
        """Add the URLs in free text as mentions."""
        for url in urls.find_urls(text):
            self.url(url, frozenset(), origin, role=Role.MENTION)
            if self.left < 0:
                return

    def bases(self) -> tuple[str, ...]:
        """Return where relative paths start: the session's cwd, or where its shell may be; nothing if unknown."""
        if self.around.roams:
            return self.around.cwds
        cwd = self.around.workspace.cwd
        return (cwd,) if cwd else ()


def _alike(one: Action, other: Action) -> bool:
    """Say whether two actions on a path differ only in the command they belong to."""
    carried = (one.carrier is None) is (other.carrier is None)
    return carried and one.kinds == other.kinds and one.role is other.role and one.path == other.path


def otherwise(text: object) -> tuple[str, ...]:
    """Return how tools read the text of a path field too: without blanks around it, without the `@` of a mention."""
    if not isinstance(text, str) or not (text[:1] == "@" or text != text.strip()):
        return ()
    bare = text.strip()
    return tuple(dict.fromkeys(each for each in (bare, bare.removeprefix("@")) if each and each != text))


def joined(one: PathRef, other: PathRef) -> PathRef:
    """Return one path that may be either of both."""
    forms = tuple(dict.fromkeys((*one.forms, *other.forms)))
    return replace(one, forms=forms, inside=one.inside and other.inside)


def is_remote(text: str) -> bool:
    """Say whether a path may be on another machine, as scp writes it: `user@host:x`, `host:/x`."""
    host, _, rest = text.partition(":")
    if not rest or "/" in host or rest.startswith("//") or host.lower() == "file":
        return False
    return "@" in host or rest[0] in "/~"


def path_like(text: str, key: str = "") -> bool:
    """Say whether `text`, the value of argument `key`, may name a file."""
    if len(text) > LONGEST_PATH or "\n" in text or text != text.strip():
        return False
    if "://" in text:
        return text[:7].lower() == "file://"
    named = any(part in key.lower() for part in ("path", "file", "dir", "cwd"))
    return named or "/" in text or text[0] in ".~"


def path_kinds(kinds: frozenset[str], fallback: str = "") -> frozenset[str]:
    """Return those of the stated kinds that apply to a path; `fallback` (or `other`) if none does."""
    said = kinds - NOT_PATH - {"other"}
    return said or frozenset({fallback or "other"})
