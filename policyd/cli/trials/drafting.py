"""Requests generated from policies: for each pattern some that match and some near misses, and everyday ones.

Requests are written like examples in policies, ready for `policyd explain --example`. Their order is fixed: the same
policies give the same requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from policyd.cli.replay import Asked
from policyd.cli.trials import hazards
from policyd.cli.trials.standins import kind_of, patterns_of
from policyd.commands.argv.programs import Program, find
from policyd.commands.lexing.patternwords import PatternWord
from policyd.commands.matching.patterns import CommandPattern
from policyd.model import KINDS
from policyd.paths import syntax
from policyd.paths.segments import DEEP, CharClass, Segment, Wild
from policyd.policy import Rule
from policyd.policy.blocks import examples_of
from policyd.policy.conditions import CommandCondition, Condition, PathCondition, ToolCondition, UrlCondition
from policyd.urls import UrlPattern

FILES = ("read", "search", "edit", "delete", "move")
USUAL: tuple[Asked, ...] = (
    *(
        f"{kind} {path}"
        for kind in FILES
        for path in ("src/app.py", "README.md", ".env", "/etc/hosts", "~/.ssh/id_rsa")
    ),
    *(f"{kind} {path}" for kind in FILES for path in (".git/hooks/pre-commit", "package.json", "/tmp/x", "docs/a.md")),
    *("execute ls", "execute cat src/app.py", "execute git status", "execute git push", "execute git push --force"),
    *("execute npm test", "execute npm install left-pad", "execute pytest", "execute make", "execute rm -rf build"),
    *(
        "execute curl https://example.com",
        "execute sudo ls",
        "execute python x.py",
        "execute zqx0 x",
        "execute (( x ))",
    ),
    *("execute cat .env", "execute cat /etc/hosts", "execute echo x > src/app.py", "execute cd .. && ls", "execute $X"),
    *("execute sh -c 'git push'", "execute find . -delete", "execute docker run x", "execute policyd trust"),
    *("fetch https://example.com/", "fetch https://docs.python.org/3/", "fetch http://localhost:8080/"),
    {"tool": "zqx0/get_x"},
    {"tool": "jira/get_issue"},
    {"tool": "Bash"},
    *(f"{kind}" for kind in KINDS if kind not in {"execute", "fetch"}),
    "switch_mode plan",
    "switch_mode bypassPermissions",
    "_custom x",
)
PLAIN = re.compile(r"[A-Za-z0-9_./~ =:@%+,-]+")


def drafted(changed: Sequence[Rule], others: Sequence[Rule]) -> Iterator[Asked]:
    """Yield each request once: examples of changed rules, the usual requests, then drafts for all rules in turn."""
    seen: set[str] = set()
    named = in_turn([examples_in(rule) for rule in changed])
    for asked in chain(named, USUAL, *(in_turn([of_rule(rule) for rule in group]) for group in (changed, others))):
        if repr(asked) not in seen:
            seen.add(repr(asked))
            yield asked


def in_turn(sources: list[Iterator[Asked]]) -> Iterator[Asked]:
    """Yield from all sources in turn (round robin)."""
    while sources:
        left = []
        for source in sources:
            asked = next(source, None)
            if asked is not None:
                left.append(source)
                yield asked
        sources = left


def of_rule(rule: Rule) -> Iterator[Asked]:
    """Yield requests about a rule: from its conditions, its exceptions, and its own examples."""
    for table in (rule.conditions, *rule.unless):
        for condition in table:
            yield from of_condition(condition, rule)
    yield from examples_in(rule)
    if not rule.resource:
        yield from (f"{kind}" for kind in rule_kinds(rule) if kind not in {"execute", "fetch"})
        yield from (asked for asked in USUAL if isinstance(asked, str) and asked.split(" ")[0] in rule_kinds(rule))


def examples_in(rule: Rule) -> Iterator[Asked]:
    """Yield the examples of a rule."""
    yield from (*examples_of(rule.table, "match"), *examples_of(rule.table, "not_match"))


def rule_kinds(rule: Rule) -> tuple[str, ...]:
    """Return the kinds a rule names, all kinds if it names none."""
    named = kind_of(rule)
    return KINDS if named is None or named.every else tuple(sorted(named.kinds))


def of_condition(condition: Condition, rule: Rule) -> Iterator[Asked]:
    """Yield requests about one condition."""
    match condition:
        case PathCondition(patterns=patterns):
            for pattern in patterns:
                yield from path_requests(pattern.source)
        case CommandCondition(entries=entries):
            for one in (pattern for entry in entries for pattern in patterns_of(entry)):
                yield from command_requests(one)
        case UrlCondition(patterns=urls):
            for url in urls:
                yield from (f"fetch {text}" for text in url_texts(url))
                yield f"execute curl {next(url_texts(url))}"
        case ToolCondition(patterns=tools):
            for tool in tools:
                yield from tool_requests(tool.server, tool.tool, rule.table.get("input"))
    if condition.name == "mode":
        names = [name.replace("*", "x") for name in getattr(condition, "names", ())]
        yield from (f"switch_mode {name}" for name in (*names, "plan", "zqx0") if not name.startswith("@"))


# ---- paths -----------------------------------------------------------------------------------------


def path_requests(source: str) -> Iterator[Asked]:
    """Yield requests about the paths of a pattern, by tools and by commands."""
    texts = list(dict.fromkeys(path_texts(source)))
    for number, text in enumerate(texts):
        yield from ({"kind": kind, "path": text} for kind in (FILES if number == 0 else ("read", "edit", "delete")))
    for text in texts[:2]:
        if PLAIN.fullmatch(text):
            yield from (f"execute {verb} '{text}'" for verb in ("cat", "rm", "touch", "zqx0"))
            yield f"execute echo x > '{text}'"


def path_texts(source: str) -> Iterator[str]:
    """Yield paths that match a pattern, paths below and above one, and paths that nearly match."""
    for written in syntax.read(source, home="~", tmpdir="/tmp"):
        for deep in ("x", "", "x/y"):
            names = [*written.head, *(one_name(each) if each is not DEEP else deep for each in written.tail)]
            text = "/".join(name for name in names if name) or "x"
            lead = "" if text.startswith("~") or not written.absolute else "/"
            yield lead + text
            yield f"{lead}{text}/x"
            if written.floats:
                yield f"sub/{text}"
            if "/" in text:
                yield lead + text.rpartition("/")[0]
            yield f"{lead}{text}z"


def one_name(segment: Segment) -> str:
    """Return a name that a segment matches."""
    found = ""
    for token in segment.tokens:
        if isinstance(token, str):
            found += token
        elif isinstance(token, CharClass) and token.ranges and not token.negated:
            found += token.ranges[0][0]
        else:
            found += "x" if token in (Wild.STAR, Wild.ONE) else "0"
    return found


# ---- commands --------------------------------------------------------------------------------------


def command_requests(pattern: CommandPattern) -> Iterator[Asked]:
    """Yield commands a pattern matches, longer and shorter ones, wrapped ones, and ones with hazardous options."""
    for words in pattern.alternatives[:MOST_ALTERNATIVES]:
        texts = list(dict.fromkeys(command_texts(words)))
        yield from (f"execute {text}" for text in texts)
        first = texts[0]
        yield from (f"execute {lead}{first}" for lead in ("sudo ", "env X=1 ", "cd src && ", "timeout 9 ", "cd / && "))
        yield f"execute {first} > out.txt"
        yield f"execute {first} /etc/hosts"
        lead = tuple(leading(words))
        if lead and len(lead) < len(words):
            yield from (f"execute {' '.join(lead)} {ending}" for ending, _ in hazards.endings(lead))
        program = find(lead[0].rsplit("/", 1)[-1]) if lead else None
        if program is not None:
            yield from (f"execute {text}" for text in examples(program, lead))


MOST_ALTERNATIVES = 24


def leading(words: tuple[PatternWord, ...]) -> Iterator[str]:
    """Yield the words in front of the first wildcard."""
    for word in words:
        if word.literal is None:
            return
        yield word.literal


def command_texts(words: tuple[PatternWord, ...]) -> Iterator[str]:
    """Yield commands that match the words of a pattern, and near misses."""
    for many in ("x", "", "--zqx0 x y"):
        made = [many if word.many else shown(word) for word in words]
        yield " ".join(word for word in made if word) or "zqx0 x"
    plain = " ".join(shown(word) for word in words if not word.many) or "zqx0"
    yield f"{plain} x"
    yield f"{plain} -x"
    yield f"{plain}z"
    yield plain.split(" ")[0]


def shown(word: PatternWord) -> str:
    """Return a word that a pattern word matches, quoted if needed."""
    text = "".join("x" if wild else text for text, wild in word.pieces)
    return text if PLAIN.fullmatch(text) and " " not in text else "'" + text.replace("'", "'\\''") + "'"


def examples(program: Program, lead: tuple[str, ...]) -> Iterator[str]:
    """Yield the examples in the table of programs that begin with `lead`."""
    begin = " ".join(lead)
    for one in (program, *{id(sub): sub for sub in program.subs.values()}.values()):
        texts = (*examples_of(one.examples, "match"), *examples_of(one.examples, "not_match"))
        yield from (text for text in texts if text.startswith(begin))


# ---- URLs and tools --------------------------------------------------------------------------------


def url_texts(pattern: UrlPattern) -> Iterator[str]:
    """Yield URLs that match a pattern, and near misses."""
    scheme = "https" if pattern.scheme == "*" else pattern.scheme
    host = "x" + pattern.host if pattern.host[0] == "." else pattern.host.replace("*", "zqx0.example")
    port = "" if not pattern.port else f":{pattern.port}"
    path = pattern.path.replace("**", "x/y").replace("*", "x") or "/"
    query = "" if pattern.query is None else "?" + pattern.query.replace("*", "x")
    yield f"{scheme}://{host}{port}{path}{query}"
    yield f"{scheme}://{host}{port}{path.rstrip('/')}/below"
    yield f"{scheme}://{host}{port}/"
    yield f"{scheme}://sub.{host}{port}{path}"
    yield f"http://{host}:8080{path}"
    yield f"{scheme}://{host.partition('.')[2] or host}{port}{path}"


def tool_requests(server: str | None, tool: str, given: object) -> Iterator[Asked]:
    """Yield calls of a tool, with arguments that match and that do not."""
    name = tool.replace("*", "x")
    names = [name] if server is None else [f"{server.replace('*', 'x')}/{name}", f"{server.replace('*', 'x')}/zqx0"]
    if server is None:
        names.append(f"{name}/zqx0")
    arguments = argument_tables(given) if isinstance(given, Mapping) else ({},)
    for each in names:
        for args in arguments:
            yield {"tool": each, **({"input": args} if args else {})}


def argument_tables(given: Mapping[str, object]) -> tuple[dict[str, object], ...]:
    """Return arguments that match an `input` condition, and others."""
    fitting = {key: fitting_value(value) for key, value in given.items()}
    return fitting, dict.fromkeys(given, "zqx0"), {}


def fitting_value(value: object) -> object:
    """Return a value that one entry of `input` matches, if possible."""
    if isinstance(value, list):
        return fitting_value(value[0])
    if isinstance(value, Mapping):
        return value.get("max", "x")
    return value.replace("*", "x") if isinstance(value, str) else value
