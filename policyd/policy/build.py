"""Building one policy from files: locks first, then sets by layer, then rules and defaults, then the examples.

Rules of this module:

1. Locks are read before anything else, so that no order of files matters.
2. Rules are numbered by layer, file name and line: the same files give the same policy, in whatever order they came.
3. A rule that does not count (an untrusted allow, one a lock refuses) stays visible as `void`, outside of every index.
4. Any mistake anywhere refuses everything: half a policy is no policy.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from policyd.digest import sha256
from policyd.model import EFFECTS, KINDS, Effect, Filesystem, Layer, RuleRef
from policyd.policy.blocks import Table, examples_of, is_kind, normal
from policyd.policy.cached import Cache, parse_cached
from policyd.policy.combinations import RESOURCES, mistakes, resource_of
from policyd.policy.compile import Compiler
from policyd.policy.errors import Mistake, PolicyError, listed
from policyd.policy.layers import Entry, LayerDefaults, Lock, merged
from policyd.policy.parsed import Parsed
from policyd.policy.policy import Named, Policy
from policyd.policy.rules import Compiled, Example, Rule
from policyd.policy.sets import NAME, RESERVED, Sets, shipped
from policyd.policy.source import PolicySource

if TYPE_CHECKING:
    from policyd.policy.file import Lock as LockTable

Group = tuple[Layer, bool]
"""Files that see the same sets: a layer, and whether a project's files are trusted."""
DefaultsScope = tuple[Layer, bool, str]
"""Files whose defaults merge: a group, but each untrusted file by itself, so that no file ever loosens another."""
KINDS_ALONE = frozenset({"think", "switch_mode", "other"})
"""Kinds that may stand alone in an example."""


def load(
    sources: Iterable[PolicySource],
    *,
    home: str,
    tmpdir: str,
    fs: Filesystem | None = None,
    version: str,
    cache: Cache | None = None,
    account: str = "",
) -> Policy:
    """Parse, validate and compile policy files into one policy.

    Args:
        sources: the files of all layers, in any order.
        home: absolute home directory, for `~/`.
        tmpdir: the system's temporary directory, for `$TMPDIR/`.
        fs: resolves the literal heads of absolute patterns, once.
        version: of policyd, for `requires` and the revision.
        cache: for parsed files; never used for the managed layer.
        account: home directory of the account, where `home` may be another: in managed rules that tighten, `~/` is
            either. Empty: not known.

    Raises:
        PolicyError: every mistake of every file.
    """
    parsed = [parse_cached(source, version, cache) for source in sorted(sources, key=source_order)]
    lock = merged_lock(parsed)
    builder = Builder(Compiler(home, tmpdir, fs, account), lock, scopes(parsed))
    for one in parsed:
        builder.file(one)
    diagnostics = [diagnostic for one in parsed for diagnostic in one.diagnostics]
    if diagnostics:
        raise PolicyError(diagnostics)
    return builder.policy(revision([one.source for one in parsed], version), named(parsed))


def lock_of(parsed: Parsed) -> LockTable | None:
    """Return the file's `[lock]`, None where it has none that counts."""
    return parsed.file.lock if parsed.source.layer is Layer.MANAGED else None


def source_order(source: PolicySource) -> tuple[Layer, str, bytes]:
    """Return the sort key of a source: the highest layer first, then by name."""
    return Layer(Layer.MANAGED - source.layer), source.name, source.data


def merged_lock(parsed: Iterable[Parsed]) -> Lock:
    """Return the locks of all managed files, merged."""
    locks = [lock for one in parsed if (lock := lock_of(one)) is not None]
    return Lock(
        frozenset(word for lock in locks for word in lock.refuse),
        frozenset(word for lock in locks for word in lock.settings),
    )


def named(parsed: Iterable[Parsed]) -> tuple[Named, ...]:
    """Return name and revision of each file as it states them."""
    return tuple(
        Named(
            one.source.layer.word,
            one.source.name,
            one.file.name or posixpath.basename(one.source.name),
            one.file.revision or "",
        )
        for one in parsed
    )


def revision(sources: Iterable[PolicySource], version: str) -> str:
    """Return the revision: a hash of all files and of the version, whose shipped sets count too."""
    parts = [version.encode()]
    for source in sources:
        about = f"{source.layer.word}\0{source.trusted}\0{source.name}\0"
        parts += (about.encode("utf-8", "surrogatepass"), len(source.data).to_bytes(8, "big"), source.data)
    return f"sha256:{sha256(b''.join(parts)).hexdigest()[:16]}"


def scopes(parsed: Iterable[Parsed]) -> Mapping[Group, Sets]:
    """Return the sets that each group of files can name: its own, then those of the layers above."""
    own: dict[Group, dict[str, tuple[str, ...]]] = {}
    for one in parsed:
        table = own.setdefault(group(one), {})
        for name, texts in one.file.sets.items():
            mistake = set_mistake(name, table)
            if mistake is not None:
                one.report(mistake, f"sets.{name}")
            table.setdefault(name, tuple(texts))
    return {key: Sets(tuple(visible(key, own))) for key in own}


def visible(key: Group, own: Mapping[Group, Mapping[str, tuple[str, ...]]]) -> Iterator[Mapping[str, tuple[str, ...]]]:
    """Yield the sets of a group, then of each higher layer."""
    yield own[key]
    for layer in Layer:
        if layer > key[0] and (layer, True) in own:
            yield own[layer, True]


def group(parsed: Parsed) -> Group:
    """Return the group of a file."""
    source = parsed.source
    return source.layer, source.layer is not Layer.PROJECT or source.trusted


def defaults_scope(parsed: Parsed) -> DefaultsScope:
    """Return the scope in which a file's defaults merge."""
    layer, trusted = group(parsed)
    return layer, trusted, "" if trusted else parsed.source.name


def set_mistake(name: str, table: Mapping[str, object]) -> Mistake | None:
    """Return what is wrong with the name of a set."""
    if not NAME.match(name):
        return Mistake(f"a set cannot be named `{name}`", "use lower-case letters, digits and `-`")
    if name in shipped() or name in RESERVED:
        return Mistake(f"`@{name}` is a set of policyd", "choose another name")
    if name in table:
        return Mistake(f"set `@{name}` is defined twice in this layer", "rename one, or merge them")
    return None


class FileContext(NamedTuple):
    """What the blocks of one file have in common."""

    parsed: Parsed
    sets: Sets
    rank: Layer
    void: str
    """Why its allow rules do not count."""


class Builder(Struct, dict=True):
    """Collects what the files of all layers say."""

    compiler: Compiler
    lock: Lock
    sets: Mapping[Group, Sets]
    rules: list[Rule] = field(default_factory=list)
    defaults: list[tuple[DefaultsScope, Rule]] = field(default_factory=list)
    entries: dict[DefaultsScope, dict[str, Entry]] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    ids: dict[tuple[Layer, str], tuple[str, int]] = field(default_factory=dict)
    """Layer and id -> file and line where it was first used."""

    def file(self, parsed: Parsed) -> None:
        """Add one file; mistakes go to its diagnostics."""
        key, scope = group(parsed), defaults_scope(parsed)
        self.add_defaults(parsed, scope)
        context = FileContext(parsed, self.sets[key], parsed.source.rank, self.lock.voids(key[0], trusted=key[1]))
        self.compiler.heads.update(dict.fromkeys(parsed.starts))
        for (number, block), resource in zip(parsed.defaults, parsed.resources[1], strict=True):
            self.defaults.append((scope, self.block(context, "default", number, block, resource)))
        for (number, block), resource in zip(parsed.rules, parsed.resources[0], strict=True):
            rule = self.block(context, "rule", number, block, resource)
            self.rules.append(rule)
            if "match" in block or "not_match" in block:
                self.examples += examples(parsed, number, block, rule)

    def block(self, context: FileContext, name: str, number: int, block: Table, resource: str | None) -> Rule:
        """Return the rule of one `[[rule]]` or `[[default]]`; its conditions are compiled now unless it is plain."""
        parsed, _, rank, void = context
        source, own, get = parsed.source, block.get("id"), block.get
        line, effect = parsed.line(name, number), EFFECTS[block["effect"]]
        if own is None:
            own = f"{posixpath.basename(source.name)}:{line}"
        else:
            self.unique(parsed, name, number, own, line)
        reason, memory = get("reason", ""), get("remember", "")
        ref = RuleRef(source.layer, own, effect, source.name, line, reason, memory, name == "default")
        void = void if effect is Effect.ALLOW else ""
        at, table = len(self.rules) + len(self.defaults), parsed.raw[name][number]
        if resource is not None:
            return Rule(ref, effect, rank, resource, self.compiler.plain, void=void, number=at, table=table)
        return Rule(
            ref,
            effect,
            rank,
            resource_of(block),
            self.compile_now(context, name, number, block, ref),
            opaque="opaque" in block,
            escalate="escalate" in block,
            encloses="within" in block,
            delegate=get("delegate") is True,
            void=void,
            number=at,
            table=table,
        )

    def compile_now(
        self, context: FileContext, name: str, number: int, block: Table, ref: RuleRef
    ) -> Callable[[Table, RuleRef], Compiled]:
        """Check and compile a block that is not plain; every mistake in it is reported."""
        parsed, sets, *_ = context

        def report(mistake: Mistake) -> None:
            parsed.report(mistake, name, number)

        if not parsed.checked and (name, number) not in parsed.partial:
            for mistake in mistakes(normal(block)):
                report(mistake)
        return self.compiler.now(block, ref, sets, report)

    def unique(self, parsed: Parsed, name: str, number: int, own: str, line: int) -> None:
        """Report an id that its layer already has, or that names an entry of `[defaults]`."""
        here = parsed.source.name, line
        if own.startswith("defaults."):
            found = f"the id `{own}` is the name of an entry of `[defaults]`"
            parsed.report(Mistake(found, "choose another", key="id"), name, number)
        first = self.ids.setdefault((parsed.source.layer, own), here)
        if first != here:
            found = f"the id `{own}` is taken by {first[0]}:{first[1]}"
            parsed.report(Mistake(found, "give each rule of a layer an id of its own", key="id"), name, number)

    def add_defaults(self, parsed: Parsed, key: DefaultsScope) -> None:
        """Add `[defaults]`, without the allows that do not count."""
        table = {name: word for name, word in parsed.file.defaults.items() if isinstance(word, str) and word in EFFECTS}
        void = self.lock.voids(key[0], trusted=key[1])
        delegate = parsed.file.defaults.get("delegate") is True
        found: dict[str, Entry] = {}
        for name, word in table.items():
            effect = EFFECTS[word]
            if void and effect is Effect.ALLOW:
                continue
            line = parsed.default_keys.get(name) or parsed.lines.top(f"defaults.{name}")
            ref = RuleRef(parsed.source.layer, f"defaults.{name}", effect, parsed.source.name, line, default=True)
            found[name] = Entry(ref, effect, delegate, outside=name == "outside")
        self.entries[key] = merged(self.entries.get(key, {}), found)

    def policy(self, name: str, names: tuple[Named, ...]) -> Policy:
        """Return the policy."""
        groups = dict.fromkeys([*self.entries, *(key for key, _ in self.defaults)])
        return Policy(
            rules=tuple(self.rules),
            defaults=tuple(
                LayerDefaults(
                    Layer.USER if key[0] is Layer.PROJECT and key[1] else key[0],
                    self.entries.get(key, {}),
                    tuple(rule for owner, rule in self.defaults if owner == key and not rule.void),
                )
                for key in groups
            ),
            lock=self.lock,
            revision=name,
            names=names,
            heads=tuple(self.compiler.heads),
            examples=tuple(self.examples),
        )


def examples(parsed: Parsed, number: int, block: Table, rule: Rule) -> Iterator[Example]:
    """Yield the examples of a rule; a mistake in one is reported."""
    for key, wanted in (("match", True), ("not_match", False)):
        for value in examples_of(block, key):
            text = value if isinstance(value, str) else ""
            line = parsed.lines.find("rule", number, key, text or longest(value))
            mistake = example_mistake(key, value)
            if mistake is not None:
                parsed.report(mistake, "rule", number)
            else:
                table = value if isinstance(value, dict) else {}
                yield Example(rule, text, table, wanted, parsed.source.name, line)


def example_mistake(key: str, value: object) -> Mistake | None:
    """Return what is wrong with one example: `KIND RESOURCE`, or a table of known keys."""
    if isinstance(value, str):
        kind, _, rest = value.partition(" ")
        if is_kind(kind):
            if rest.strip() or kind in KINDS_ALONE:
                return None
            return Mistake(f'the example "{value}" names no resource', f'write it as "{kind} …"', key=key, text=value)
        from policyd.policy import hints

        wanted = f'write it as "{hints.KINDS.get(kind.lower(), "execute")} …"'
        return Mistake(f'the example "{value}" does not begin with a kind', wanted, key=key, text=value)
    if not isinstance(value, dict):
        return Mistake("an example is a text or a table", 'write `"execute git status"`', key=key)
    from policyd.policy import shape

    return table_mistake(key, value) if shape.fits(value, shape.ExampleTable) else misshapen(key, value)


def misshapen(key: str, value: Table) -> Mistake | None:
    """Return what is wrong with an example table that may be of the wrong shape."""
    from pydantic import ValidationError

    from policyd.policy.file import ExampleTable
    from policyd.policy.wording import in_words

    try:
        ExampleTable.model_validate(value)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        mistake = in_words(detail, str(detail["loc"][0]), list(ExampleTable.model_fields), {})
        mistake.key, mistake.text = key, longest(value)
        return mistake
    return table_mistake(key, value)


def longest(value: object) -> str:
    """Return the longest text in the table of an example, by which its line is found."""
    held = list(value.values()) if isinstance(value, dict) else []
    texts = [text for each in held for text in (each if isinstance(each, list) else [each]) if isinstance(text, str)]
    return max(texts, key=len, default="")


def table_mistake(key: str, table: Table) -> Mistake | None:
    """Return what is wrong with a well-formed example table that no request could match."""
    kind = table.get("kind", "other")
    named = [name for name in RESOURCES if name in table]
    if not is_kind(kind):
        from policyd.policy import hints

        return Mistake(f"unknown kind `{kind}`", hints.unknown_kind(kind, KINDS), key=key, text=kind)
    if len(named) > 1:
        both = " and ".join(f"`{name}`" for name in named)
        found = f"{both} in one example: an action has one resource"
        return Mistake(found, "write an example of each", key=key, text=longest(table))
    if not named and "mode" not in table and ("kind" not in table or kind not in KINDS_ALONE):
        wanted = f"name one of {listed(RESOURCES)}"
        return Mistake("an example that names no resource", wanted, key=key, text=longest(table))
    return None
