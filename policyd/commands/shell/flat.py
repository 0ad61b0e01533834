"""Shell text read into a run: plain lists here, everything else by `grammar`.

Rules of this module:

1. What is read here is read exactly as the grammar's tree would be: the same words, state, files and reasons.
2. Lists and pipelines are walked without recursion, however long they are.
3. The grammar is loaded when a text first needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from policyd.commands.argv.findwords import printed
from policyd.commands.lexing import plainwords
from policyd.commands.lexing.plain import Part, bare, divide
from policyd.commands.lexing.quoting import shown
from policyd.commands.lexing.run import PARTS, FullError, Run
from policyd.commands.lexing.source import Document, cut, odd_characters, prepare
from policyd.commands.shell import redirects
from policyd.commands.shell.execute import Call, listed, simple
from policyd.commands.shell.statements import EVALUATES, declared, environment, keyword, tested
from policyd.commands.shell.tame import echoes
from policyd.commands.shell.text import Text
from policyd.commands.state import Pair, State, branching, joined, union
from policyd.model import Assignment, SimpleCommand, Word

_JOINED = frozenset({"&&", "||", "|"})
_ENDS = frozenset({";", "\n", ""})
_LEAVES = frozenset({"exit", "return"})
_SORTS = re.compile(r"sort +-[urVfn]*z[urVfn]*").fullmatch
"""What hands on the names it is fed as they are."""


def script(run: Run, text: str, state: State, via: tuple[str, ...]) -> Pair:
    """Read a whole shell text into `run`; return the directories after it."""
    if not (text.isascii() and text.isprintable()):
        text, reason = odd_characters(text)
        if reason:
            run.opaque(reason)
        text = text.encode("utf-8", "replace").decode("latin-1")
    return whole(Text(run, text, state, via, script))


def whole(text: Text) -> Pair:
    """Read a whole text as it was written."""
    if text.state.lesser:
        _lesser(text)
    words = bare(text.source) if text.run.depth else None  # what stands in another text is mostly one plain command
    if words is not None:
        return _words(text, Part("", text.source.rstrip(), words))
    parts, ends = taken_apart(text)
    if parts is not None:
        return flat(text, parts)
    from policyd.commands.shell.grammar import tree

    return tree(text, ends)


Text.whole = whole


def _lesser(text: Text) -> None:
    from policyd.commands.dialects.posix import difference

    if why := difference(text.source):
        text.opaque(why)


def taken_apart(text: Text) -> tuple[Sequence[Part] | None, Mapping[int, int] | None]:
    """Return the commands of a whole text that is a plain list, of any other None and where its substitutions end.

    Either is said of `text.source`, which is left without continuations and here-documents where that was needed.
    """
    written, documents = text.source, text.run.documents
    if "$(cat <<" in written:
        kept = len(documents)
        text.source = cut(written, documents)
        parts = divide(text.source)
        if parts is not None:
            return parts, None
        del documents[kept:]
        text.source = written  # a place in the one is another in the other
    parts = divide(written)
    if parts is not None:
        return parts, None
    text.source, problems, ends = prepare(written, documents)
    for problem in problems:
        text.opaque(problem)
    return divide(text.source) if text.source != written else None, ends


def flat(text: Text, parts: Sequence[Part]) -> Pair:
    """Read a plain list; return the directories after it.

    Raises:
        FullError: there are more than `PARTS`.
    """
    state, place, count = text.state, 0, len(parts)
    if count == 1 and parts[0].after != "&":
        return _command(text, parts[0])
    here = state.cwd
    pair: Pair = (here, here)
    before: Mapping[str, Word | None] | None = None
    began: Mapping[str, Word | None] | None = None
    while place < count:
        part = parts[place]
        joint = part.before
        if joint:
            state.cwd = pair[0] if joint == "&&" else pair[1]
            before = state.known()
        else:
            here = state.cwd = pair[0] if pair[0] is pair[1] else union(*pair)
            began = state.known() if part.after not in _ENDS and _is_behind(parts, place) else None
        if part.after == "|":
            place, after = _pipeline(text, parts, place)
            leaves = False
        else:
            after = _command(text, part)
            leaves = joint == "||" and _leaves(part)
        if before is not None:
            state.join(before)
            before, pair = None, joined(pair, joint, after, leaves=leaves)
        else:
            pair = after
        if began is not None and parts[place].after == "&":
            state.join(began)
            pair = (here, here)
        place += 1
    if count > PARTS:
        raise FullError(f"more than {PARTS} parts")
    return pair


def _is_behind(parts: Sequence[Part], place: int) -> bool:
    """Say whether the list that begins at `place` runs beside what follows it."""
    while parts[place].after in _JOINED:
        place += 1
    return parts[place].after == "&"


def _leaves(part: Part) -> bool:
    """Say whether a command certainly ends the shell (`|| exit 1`)."""
    if part.group == "{" and not part.negated:
        part = part.inner[-1]
        if part.before:  # it may not run
            return False
    return bool(part.words) and part.words[0] in _LEAVES and not part.negated and part.after != "&"


def _pipeline(text: Text, parts: Sequence[Part], place: int) -> tuple[int, Pair]:
    """Read `a | b` from `place` on, each part in a shell of its own; return the place of the last with its pair."""
    state = text.state
    here = state.cwd
    while True:
        before = state.known()
        state.cwd = here
        first = len(text.run.commands)
        _command(text, parts[place])
        state.join(before)
        if parts[place].after != "|":
            text.files = ()
            return place, (here, here)
        finds = text.files or parts[place].words[:1] == ["find"]
        text.files = _listed(text, text.run.commands[first:], parts[place]) if finds else ()
        place += 1


def _listed(text: Text, commands: Sequence[SimpleCommand], part: Part) -> tuple[Word, ...]:
    """Return the files whose names, each with a NUL behind it, are all that a part of a pipeline prints."""
    if len(commands) != 1 or part.mixed or part.assigned:
        return ()
    if text.files and not part.redirects and _SORTS(part.text):
        return text.files
    return printed(commands[0].argv[1:]) if part.words[:1] == ["find"] else ()


def _command(text: Text, part: Part) -> Pair:
    """Read one command with its redirections."""
    if not part.more and part.before != "|":
        return _words(text, part)
    pair = _more(text, part)
    return (pair[1], pair[0]) if part.negated else pair


def _more(text: Text, part: Part) -> Pair:
    """Read a command that is fed from a pipe, or is more than words."""
    fed, document = text.fed, text.document
    if part.before == "|":
        text.fed, text.document = "|", None
    if part.group:
        pair = _group(text, part)
    elif part.redirects or part.assigned or part.declares:
        pair = _simple(text, part)
    else:
        pair = _words(text, part)
    text.fed, text.document = fed, document
    return pair


def _words(text: Text, part: Part) -> Pair:
    """Read a command that is words and nothing else."""
    state = text.state
    here = state.cwd
    argv = text.words(part.words)
    if not argv:
        return here, here
    source = shown(part.text)
    if text.document is None and not text.files and listed(text.run, state, argv, source, text.via, text.fed) >= 0:
        return here, here
    return _run(text, argv, source)[1]


def _run(text: Text, argv: tuple[Word, ...], source: str, env: tuple[Assignment, ...] = ()) -> tuple[int, Pair]:
    """Run words; return the index of the command and where it leaves."""
    keyword(text, argv[0])
    files = text.files if text.fed == "|" else ()
    call = Call(argv, source, env, text.via, text.fed, text.document, files)
    found = simple(text.run, text.state, call, text.script)
    if text.document is not None and text.document.literal and echoes(argv, env):
        text.echoed = text.document.text
    return found


def _simple(text: Text, part: Part) -> Pair:
    """Read a command with what stands before and behind its words."""
    argv = text.words(part.words) if not part.declares else _declared(text, part.words)
    env = environment(text, part.assigned, prefix=bool(argv)) if part.assigned else ()
    uses = _redirects(text, part) if part.redirects else None
    here = text.state.cwd
    index, pair = -1, (here, here)
    if argv:
        source = shown(part.text)
        if text.document is None and not text.files:
            index = listed(text.run, text.state, argv, source, text.via, text.fed, env)
        if index < 0:
            index, pair = _run(text, argv, source, env)
    if uses:
        redirects.add(text, uses, index, here)
    return pair


def _declared(text: Text, spellings: Sequence[str]) -> tuple[Word, ...]:
    """Return the words of `export` and its kin."""
    words: list[Word] = []
    for spelled in spellings:
        word = declared(text.inside(spelled), 0, len(spelled))
        words += [word] if word is not None else text.words([spelled])
    return tuple(words)


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
    uses = _redirects(text, part) if part.redirects else None
    first = len(run.commands)
    pair: Pair = (here, here)
    if part.group == "{":
        pair = _nested(text, part)
    elif part.group == "(":
        text.apart(_nested, text, part)
    else:
        pair = _compound(text, part)
    if uses:
        redirects.add(text, uses, redirects.carrier(text, first), here)
    return pair


def _nested(text: Text, part: Part) -> Pair:
    return flat(text.inside(part.text), part.inner)


def _compound(text: Text, part: Part) -> Pair:
    """Read `if`, `for`, `select`, `while`, `until` and `[[ … ]]`."""
    state, keyword = text.state, part.group
    if keyword == "[[":
        return _test(text.inside(part.text))
    lists = [(word, partial(_list, text, parts)) for word, parts in part.lists]
    if keyword == "if":
        return branching.branches(state, lists)
    if keyword in {"while", "until"}:
        (_, condition), (_, body) = lists
        return branching.repeated(state, part.text, condition, body, until=keyword == "until")
    name, words, body = part.words[1], text.words(part.words[3:]), lists[0][1]
    state.assign(name, None)
    if keyword == "for":
        return branching.each(state, name, words, part.text, body)
    return branching.repeat(state, part.text, body)


def _test(text: Text) -> Pair:
    """Read a text that is `[[ … ]]`."""
    here, source = text.state.cwd, text.source
    nests = "(" in source or "`" in source
    if nests or not EVALUATES.isdisjoint(source.split()):
        spans = [found.span() for found in plainwords.atoms(nests)(source, 2)]
        tested(text, spans, text.text(0, len(source)))
    return here, here


def _list(text: Text, parts: Sequence[Part]) -> Pair:
    """Read a list that stands in the same text."""
    return flat(text.inside(text.source), parts)
