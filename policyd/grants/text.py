"""Grants as TOML, in the policy language with everything literal escaped, and the strict parser. Pure strings.

A file is a header (`version`, `[project]`, `[clock]`) and a `[[grant]]` per remembered answer; its `[[grant.rule]]`
tables are conditions as in a policy, one for each action. Anything that does not parse as exactly a grant is damage: in
a damaged file no allow counts, but every denial that can still be parsed does.

Files are parsed and written grant by grant, and each grant's text is cached: the cost is proportional to the change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache

from msgspec import Struct

from policyd.grants.grant import SCOPES, Grant, grant_id
from policyd.grants.keys import RESOURCES, Key
from policyd.grants.literal import escape, join, split, unescape
from policyd.model import Effect

VERSION = 1
LONGEST_TEXT = 16 * 1024 * 1024
EFFECTS = {"allow": Effect.ALLOW, "deny": Effect.DENY}
ID = re.compile(r"g-[0-9a-f]{12}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OPTIONAL = ("boot_id", "session", "run", "by", "client")
GRANT_KEYS = frozenset({"id", "effect", "scope", "agent", "covers", "created", "until", "boot", "rule", *OPTIONAL})
RULE_KEYS = frozenset({*RESOURCES, "kind", "cwd", "env", "via", "fed", "reach", "arguments", "whole", "more"})
HEAD = frozenset({"version", "project", "clock"})
SIMPLE = re.compile(r"[A-Za-z0-9_%+=:,./-]+(?: [A-Za-z0-9_%+=:,./-]+)*")
BREAK = "\n[[grant]]\n"
TITLE = "# Answers policyd remembers. Change them with `policyd grants`: a grant edited here counts as damaged.\n\n"
CACHED = 32_768

_TEXT = r'"(?P<{0}>[^"\\\x00-\x1f\x7f]*)"'
_TIME = r"(?P<{0}>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{{6}})?\+00:00)"
_MAY = r"(?:{0} = " + _TEXT + r"\n)?"
PLAIN_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f]*')
PLAIN_NUMBER = re.compile(r"\d{1,12}\.\d{1,17}")


@cache
def usual() -> re.Pattern[str]:
    """Return the pattern of a grant in its usual shape, compiled on first use."""
    return re.compile(
        "".join(
            [
                *(f"{name} = {_TEXT.format(name)}\n" for name in ("id", "effect", "scope", "agent", "covers")),
                *(f"{name} = {_TIME.format(name)}\n" for name in ("created", "until")),
                r"(?:boot = (?P<boot>\d{1,12}\.\d{1,17})\n)?",
                *(_MAY.format(name) for name in OPTIONAL),
                r"\n\[\[grant\.rule\]\]\n",
                rf"kind = \[\n    {_TEXT.format('kind')},\n\]\n",
                f"command = {_TEXT.format('command')}\n",
                rf"cwd = \[\n    {_TEXT.format('cwd')},\n\]\n?",
            ]
        )
    )


class Project(Struct, frozen=True):
    """Which directory a file's grants are for."""

    path: str
    """Real path; empty for the file of user scope."""
    device: int = 0
    inode: int = 0


class Loaded(Struct, frozen=True):
    """The contents of a file."""

    grants: tuple[Grant, ...] = ()
    project: Project = Project("")
    seen: datetime | None = None
    """The latest wall-clock time that any policyd process has written to it."""
    damage: tuple[str, ...] = ()
    """What could not be parsed, in words; if anything, `grants` holds denials only."""


def dump(grants: Iterable[Grant], project: Project, seen: datetime) -> str:
    """Return the text of a grants file."""
    import tomli_w

    head: dict[str, object] = {
        "version": VERSION,
        "project": {"path": project.path, "device": project.device, "inode": project.inode},
        "clock": {"seen": seen},
    }
    return "".join([TITLE, tomli_w.dumps(head), *map(_chunk, grants)])


def load(text: str) -> Loaded:
    """Parse `text`; never raises. See `Loaded.damage`."""
    import tomllib

    if len(text) > LONGEST_TEXT:
        return Loaded(_salvage(text[:LONGEST_TEXT]), damage=("the file is larger than any grants file",))
    head, *pieces = text.split(BREAK)
    try:
        return _loaded(tomllib.loads(head), [_read(piece) for piece in pieces])
    except (ValueError, RecursionError) as error:
        return Loaded(_salvage(text), damage=(f"the file is no TOML: {error}",))


def conditions(key: Key) -> dict[str, object]:
    """Return a key as conditions of the policy language, without what the language cannot express."""
    table: dict[str, object] = {"kind": list(key.kinds)} if key.kinds else {}
    if key.resource == "command":
        table["command"] = join(key.words, more=key.more)
        table["cwd"] = [escape(place) for place in key.cwd]
    else:
        table[key.resource] = [escape(word) for word in key.words]
    if key.env:
        table["env"] = [f"{name}={escape(value)}" for name, value in key.env]
    return table


def _grant_table(grant: Grant) -> dict[str, object]:
    table: dict[str, object] = {"id": grant.id, "effect": grant.effect.word, "scope": grant.scope, "agent": grant.agent}
    table |= {"covers": grant.covers, "created": grant.created, "until": grant.until}
    if grant.boot is not None:
        table["boot"] = float(grant.boot)
    words = {
        "boot_id": grant.boot_id,
        "session": grant.session,
        "run": grant.run,
        "by": grant.by,
        "client": grant.client,
    }
    table |= {name: word for name, word in words.items() if word}
    return {**table, "rule": [_rule_table(member) for member in grant.members]}


def _rule_table(key: Key) -> dict[str, object]:
    table = conditions(key)
    extra = {"via": list(key.via), "fed": key.fed, "arguments": key.arguments, "whole": key.whole}
    table |= {name: value for name, value in extra.items() if value}
    if key.resource == "path" and key.reach != "entry":
        table["reach"] = key.reach
    if key.resource == "tool" and key.more:
        table["more"] = True
    return table


@lru_cache(CACHED)
def _chunk(grant: Grant) -> str:
    table = _grant_table(grant)
    return _usual_text(table) or _any_text(table)


def _any_text(table: Mapping[str, object]) -> str:
    import tomli_w

    return "\n" + tomli_w.dumps({"grant": [table]})


def _usual_text(table: dict[str, object]) -> str:
    """Return the same as `_any_text`, faster, for a grant of the usual shape; empty for any other."""
    (rule, *others) = _tables(table["rule"])
    if others or list(rule) != ["kind", "command", "cwd"]:
        return ""
    lines = [_line(name, value) for name, value in table.items() if name != "rule"]
    rule_lines = [_line("kind", rule["kind"]), _line("command", rule["command"]), _line("cwd", rule["cwd"])]
    if not all(lines) or not all(rule_lines):
        return ""
    return "".join([BREAK, *lines, "\n[[grant.rule]]\n", *rule_lines])


def _line(name: str, value: object) -> str:
    """Return one value, or a list of one text, as TOML; empty if that needs quoting."""
    if type(value) is str and PLAIN_TEXT.fullmatch(value):
        return f'{name} = "{value}"\n'
    if type(value) is datetime:
        return f"{name} = {value}\n"
    if type(value) is list and len(value) == 1 and PLAIN_TEXT.fullmatch(value[0]):
        return f'{name} = [\n    "{value[0]}",\n]\n'
    return f"{name} = {value}\n" if type(value) is float and PLAIN_NUMBER.fullmatch(str(value)) else ""


@lru_cache(CACHED)
def _read(piece: str) -> Grant | str:
    """Return the grant a piece of a file holds, or what is wrong with it.

    Raises:
        ValueError: the piece is no TOML.
    """
    import tomllib

    if quick := usual().fullmatch(piece):
        return _checked(lambda: _usual(*quick.groups()))
    table = tomllib.loads(f"[[grant]]\n{piece}")
    entries = _tables(table.get("grant"))
    if set(table) != {"grant"} or len(entries) != 1:
        return "a table that is no grant"
    return _checked(lambda: _grant(entries[0]))


def _usual(*found: str) -> Grant:
    """Return a grant of the usual shape, parsed by a pattern for speed."""
    name, effect, scope, agent, covers, created, until, boot, *optional, kind, command, cwd = found
    words, more = (tuple(command.split(" ")), False) if SIMPLE.fullmatch(command) else split(command)
    place = unescape(cwd) if cwd != "." else cwd
    boot_id, session, run, by, client = (text or "" for text in optional)
    grant = Grant(
        id=name,
        effect=EFFECTS[effect],
        scope=scope,
        agent=agent,
        members=(Key((kind,), "command", words, cwd=(place,), more=more),),
        covers=covers,
        created=datetime.fromisoformat(created),
        until=datetime.fromisoformat(until),
        boot=float(boot) if boot else None,
        boot_id=boot_id,
        session=session,
        run=run,
        by=by,
        client=client,
    )
    _check(grant)
    return grant


def _checked(read: Callable[[], Grant]) -> Grant | str:
    try:
        return read()
    except KeyError as error:
        return f"{error} is missing, or no word it may have"
    except (ValueError, TypeError) as error:
        return str(error)


def _loaded(head: Mapping[str, object], entries: Iterable[Grant | str]) -> Loaded:
    grants = [entry for entry in entries if isinstance(entry, Grant)]
    damage = [entry for entry in entries if isinstance(entry, str)]
    project, seen = _project(head.get("project")), _seen(head.get("clock"))
    if head.get("version") != VERSION or set(head) != HEAD or project is None or seen is None:
        damage.append("the header is not one this policyd writes")
    if len({grant.name for grant in grants}) != len(grants):
        damage.append("an id occurs twice")
    kept = tuple(grant for grant in grants if not damage or grant.effect is Effect.DENY)
    return Loaded(kept, project or Project(""), seen, tuple(damage))


def _salvage(text: str) -> tuple[Grant, ...]:
    """Return the denials of a text that is not TOML as a whole, parsed table by table."""
    found: dict[tuple[str, str], Grant] = {}
    for piece in text.split("[[grant]]\n")[1:]:
        try:
            grant = _read(piece)
        except (ValueError, RecursionError):  # damage, which is reported for the whole file
            continue
        if isinstance(grant, Grant) and grant.effect is Effect.DENY:
            found[grant.name] = grant
    return tuple(found.values())


def _grant(table: Mapping[str, object]) -> Grant:
    if strange := set(table) - GRANT_KEYS:
        raise ValueError(f"unknown key `{min(strange)}`")
    grant = Grant(
        id=_word(table, "id"),
        effect=EFFECTS[_word(table, "effect")],
        scope=_word(table, "scope"),
        agent=_word(table, "agent"),
        members=tuple(_member(rule) for rule in _tables(table["rule"])),
        covers=_word(table, "covers"),
        created=_time(table["created"]),
        until=_time(table["until"]),
        boot=_number(table["boot"]) if "boot" in table else None,
        **{name: _word(table, name) for name in OPTIONAL if name in table},
    )
    _check(grant)
    return grant


def _check(grant: Grant) -> None:
    if not ID.fullmatch(grant.id):
        raise ValueError("the id is none of policyd's")
    if grant.scope not in SCOPES or not grant.agent or not grant.members or grant.until <= grant.created:
        raise ValueError("scope, agent, rules or times are not those of a grant")
    if grant.scope == "session" and not (grant.session and grant.run):
        raise ValueError("a session grant names no session")
    if len(grant.members) != 1 and any(member.more for member in grant.members):
        raise ValueError("a compound has no generalisation")
    own = grant_id(grant.effect, grant.scope, grant.agent, grant.members, grant.session)
    if grant.effect is Effect.ALLOW and grant.id != own:
        raise ValueError("the id is not that of what it covers")
    if grant.effect is Effect.ALLOW and all(member.mention for member in grant.members):
        raise ValueError("it covers nothing")


def _member(table: Mapping[str, object]) -> Key:
    if strange := set(table) - RULE_KEYS:
        raise ValueError(f"unknown condition `{min(strange)}`")
    resources = [name for name in RESOURCES if name in table]
    if len(resources) != 1:
        raise ValueError("a rule names exactly one resource")
    words, more = _resource(table, resources[0])
    return Key(
        kinds=tuple(sorted(set(_list(table, "kind")))),
        resource=resources[0],
        words=words,
        cwd=tuple(sorted(set(map(unescape, _list(table, "cwd"))))),
        env=tuple(_assignment(text) for text in _list(table, "env")),
        via=_list(table, "via"),
        fed=_optional(table, "fed"),
        reach=_optional(table, "reach") or "entry",
        arguments=_optional(table, "arguments"),
        whole=_optional(table, "whole"),
        more=more,
    )


def _resource(table: Mapping[str, object], name: str) -> tuple[tuple[str, ...], bool]:
    if name == "command":
        if "cwd" not in table or "more" in table:
            raise ValueError("a command names its directory, and stays open by `**` only")
        return split(_word(table, name))
    words = tuple(sorted(set(map(unescape, _list(table, name)))))
    more = table.get("more", False)
    if not words or not isinstance(more, bool) or (more and name != "tool"):
        raise ValueError(f"`{name}` is empty, or `more` is not for it")
    if name == "tool" and more == bool(table.get("arguments")):
        raise ValueError("a tool has a digest of its arguments, or `more = true`")
    return words, more


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not NAME.fullmatch(name):
        raise ValueError(f"`{text}` is no assignment")
    return name, unescape(value)


def _project(table: object) -> Project | None:
    if not isinstance(table, dict) or set(table) != {"path", "device", "inode"}:
        return None
    path, device, inode = table["path"], table["device"], table["inode"]
    if not isinstance(path, str) or not isinstance(device, int) or not isinstance(inode, int):
        return None
    return Project(path, device, inode)


def _seen(table: object) -> datetime | None:
    if not isinstance(table, dict) or set(table) != {"seen"}:
        return None
    try:
        return _time(table["seen"])
    except ValueError:
        return None


def _tables(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list):
        return []
    return [item if isinstance(item, dict) else {} for item in value]


def _word(table: Mapping[str, object], name: str) -> str:
    value = table[name]
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is no text")
    return value


def _optional(table: Mapping[str, object], name: str) -> str:
    return _word(table, name) if name in table else ""


def _list(table: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"`{name}` is no list of texts")
    return tuple(value)


def _time(value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("a time without an offset")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time out of range") from error


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("`boot` is no number")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError("`boot` is out of range") from error
