"""Shell text read into a run: plain lists here, everything else by `grammar`.

Rules of this module:

1. What is read here is read exactly as the grammar's tree would be: the same words, state, files and reasons.
2. Lists and pipelines are walked without recursion, however long they are.
3. The grammar is loaded when a text first needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policyd.commands import redirects
from policyd.commands.execute import Call, simple
from policyd.commands.plain import Part, divide
from policyd.commands.run import PARTS, FullError, Run
from policyd.commands.source import odd_characters, prepare
from policyd.commands.state import Pair, State, then, union
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


def flat(text: Text, parts: list[Part]) -> Pair:
    """Read a plain list; return the directories after it.

    Raises:
        FullError: there are more than `PARTS`.
    """
    if len(parts) == 1 and not parts[0].after:
        return _command(text, parts[0])
    state = text.state
    pair: Pair = (state.cwd, state.cwd)
    for chain in _chains(parts):
        here = state.cwd = union(*pair)
        if chain[-1].after == "&":
            before = state.known()
            _chain(text, chain)
            state.join(before)
            pair = (here, here)
        else:
            pair = _chain(text, chain)
    if len(parts) > PARTS:
        raise FullError(f"more than {PARTS} parts")
    return pair


def _chains(parts: list[Part]) -> Iterator[list[Part]]:
    """Yield what stands between the ends of lists."""
    first = 0
    for place, part in enumerate(parts, 1):
        if part.after not in _JOINED:
            yield parts[first:place]
            first = place


def _pipelines(parts: list[Part]) -> Iterator[list[Part]]:
    first = 0
    for place, part in enumerate(parts, 1):
        if part.after != "|":
            yield parts[first:place]
            first = place


def _chain(text: Text, parts: list[Part]) -> Pair:
    """Read `a && b | c || d` from the left."""
    if len(parts) == 1:
        return _command(text, parts[0])
    first, *more = _pipelines(parts)
    pair = _pipeline(text, first)
    for pipeline in more:
        leaves = len(pipeline) == 1 and _head(text, pipeline[0]) in _LEAVES
        pair = then(text.state, pair, pipeline[0].before, partial(_pipeline, text, pipeline), leaves=leaves)
    return pair


def _head(text: Text, part: Part) -> str:
    return text.source[slice(*part.words[0])] if part.words else ""


def _pipeline(text: Text, parts: list[Part]) -> Pair:
    if len(parts) == 1:
        return _command(text, parts[0])
    state = text.state
    here = state.cwd
    for part in parts:
        before = state.known()
        state.cwd = here
        _command(text, part)
        state.join(before)
    return here, here


def _command(text: Text, part: Part) -> Pair:
    state = text.state
    argv = tuple(text.scan(part.words))
    env = environment(text, part.assigned, prefix=bool(argv)) if part.assigned else ()
    fed, document = text.fed, text.document
    if part.before == "|":
        text.fed, text.document = "|", None
    uses: list[redirects.Use] = []
    for operator, place in part.redirects:
        uses += redirects.opened(text, operator, place)
    here = state.cwd
    index, pair = -1, (here, here)
    if argv:
        keyword(text, argv[0])
        source = text.text((part.assigned or part.words)[0][0], part.words[-1][1])
        call = Call(argv, source, env, text.via, text.fed, text.document)
        index, pair = simple(text.run, state, call, text.script)
        if text.document is not None and text.literal and not uses and echoes(argv, env):
            text.echoed = text.document
    if uses:
        redirects.add(text, uses, index, here)
    text.fed, text.document = fed, document
    return pair
