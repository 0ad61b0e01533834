"""Shell text read into a run: plain lists here, everything else by `grammar`.

Rules of this module:

1. What is read here is read exactly as the grammar's tree would be: the same words, state, files and reasons.
2. Lists and pipelines are walked without recursion, however long they are.
3. The grammar is loaded when a text first needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from policyd.commands import redirects
from policyd.commands.execute import Call, simple
from policyd.commands.plain import Part, divide
from policyd.commands.quoting import decoded
from policyd.commands.run import PARTS, FullError, Run
from policyd.commands.source import Document, odd_characters, prepare
from policyd.commands.state import Pair, State, joined, union
from policyd.commands.statements import environment, keyword
from policyd.commands.tame import echoes
from policyd.commands.text import Text

_JOINED = frozenset({"&&", "||", "|"})
_LEAVES = frozenset({"exit", "return"})


def script(run: Run, text: str, state: State, via: tuple[str, ...]) -> Pair:
    """Read a whole shell text into `run`; return the directories after it."""
    text, reason = odd_characters(text)
    if reason:
        run.opaque(reason)
    source = text if text.isascii() else text.encode("utf-8", "replace").decode("latin-1")
    return whole(Text(run, source, state, via, script))


def whole(text: Text) -> Pair:
    """Read a whole text as it was written."""
    parts = divide(text.source)
    if parts is not None:
        return flat(text, parts)
    written = text.source
    text.source, problems, ends = prepare(written, text.run.documents)
    for problem in problems:
        text.opaque(problem)
    text.exact = text.exact and text.source == written
    parts = divide(text.source) if text.source != written else None
    if parts is not None:
        return flat(text, parts)
    from policyd.commands.grammar import tree

    return tree(text, ends)


def flat(text: Text, parts: Sequence[Part]) -> Pair:
    """Read a plain list; return the directories after it.

    Raises:
        FullError: there are more than `PARTS`.
    """
    state, first = text.state, 0
    pair: Pair = (state.cwd, state.cwd)
    while first < len(parts):
        end = first
        while parts[end].after in _JOINED:
            end += 1
        end += 1
        here = state.cwd = union(*pair)
        if parts[end - 1].after == "&":
            before = state.known()
            _chain(text, parts, first, end)
            state.join(before)
            pair = (here, here)
        else:
            pair = _chain(text, parts, first, end)
        first = end
    if len(parts) > PARTS:
        raise FullError(f"more than {PARTS} parts")
    return pair


def _chain(text: Text, parts: Sequence[Part], first: int, end: int) -> Pair:
    """Read `a && b | c || d` from the left: the parts from `first` to `end`."""
    state = text.state
    pair: Pair = (state.cwd, state.cwd)
    while first < end:
        part, last = parts[first], first
        while parts[last].after == "|":
            last += 1
        operator = part.before
        if operator:
            state.cwd = pair[0] if operator == "&&" else pair[1]
            before = state.known()
        after = _command(text, part) if last == first else _pipeline(text, parts, first, last + 1)
        if operator:
            state.join(before)
            pair = joined(pair, operator, after, leaves=last == first and _leaves(part))
        else:
            pair = after
        first = last + 1
    return pair


def _leaves(part: Part) -> bool:
    """Say whether a command certainly ends the shell (`|| exit 1`)."""
    if part.group == "{":
        part = part.inner[-1]
    return bool(part.words) and part.words[0] in _LEAVES


def _pipeline(text: Text, parts: Sequence[Part], first: int, end: int) -> Pair:
    state = text.state
    here = state.cwd
    for place in range(first, end):
        before = state.known()
        state.cwd = here
        _command(text, parts[place])
        state.join(before)
    return here, here


def _command(text: Text, part: Part) -> Pair:
    """Read one command with its redirections."""
    if part.group:
        return _group(text, part)
    state = text.state
    fed, document = text.fed, text.document
    if part.before == "|":
        text.fed, text.document = "|", None
    argv = text.words(part)
    env = environment(text, part.assigned, prefix=bool(argv)) if part.assigned else ()
    uses = _redirects(text, part) if part.redirects else []
    here = state.cwd
    index, pair = -1, (here, here)
    if argv:
        keyword(text, argv[0])
        source = part.text if part.text.isascii() else decoded(part.text)
        call = Call(argv, source, env, text.via, text.fed, text.document)
        index, pair = simple(text.run, state, call, text.script)
        if text.document is not None and text.literal and not uses and echoes(argv, env):
            text.echoed = text.document
    if uses:
        redirects.add(text, uses, index, here)
    text.fed, text.document = fed, document
    return (pair[1], pair[0]) if part.negated else pair


def _redirects(text: Text, part: Part) -> list[redirects.Use]:
    """Return the files of redirections; what they feed is left in `text.fed` and `text.document`."""
    uses: list[redirects.Use] = []
    for operator, what in part.redirects:
        if isinstance(what, Document):
            redirects.feed(text, what)
        else:
            uses += redirects.opened(text, operator, what)
    return uses


def _group(text: Text, part: Part) -> Pair:
    """Read `( … )` and `{ …; }`."""
    here, run = text.state.cwd, text.run
    fed, document = text.fed, text.document
    if part.before == "|":
        text.fed, text.document = "|", None
    uses = _redirects(text, part) if part.redirects else []
    first = len(run.commands)
    pair: Pair = (here, here)
    if part.group == "{":
        pair = _nested(text, part)
    else:
        text.apart(lambda: _nested(text, part))
    redirects.add(text, uses, first if len(run.commands) > first else -1, here)
    text.fed, text.document = fed, document
    return (pair[1], pair[0]) if part.negated else pair


def _nested(text: Text, part: Part) -> Pair:
    inner = text.inside(part.text)
    pair = flat(inner, part.inner)
    text.echoed = inner.echoed
    return pair
