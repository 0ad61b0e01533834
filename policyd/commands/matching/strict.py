"""The strict reading of a command pattern: what a deny or ask rule has to suspect.

Rules of this module:

1. A pattern is a prefix, a final `*` is `**`. Options in front of a word are skipped; where it is not known whether
   an option takes the next word, both readings count.
2. An option word of a pattern stands for that option anywhere behind the words before it, in every spelling: long,
   short, in a cluster, abbreviated, with its value glued on.
3. A word that is not constant may be anything its constant beginning allows: the match is then `MAYBE`.
4. Where the table does not know an option, `-f` may be `--force` and `--force` may be `-f`; an option in front of the
   words it belongs to may be the one meant.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from policyd.commands.argv.options import Option, Syntax, constant, letters, may_be_option
from policyd.commands.lexing.patternwords import PatternWord, can_match, fits, fold
from policyd.commands.matching.fitting import fit, path
from policyd.commands.matching.views import View, views
from policyd.model import Truth, Word, WordKind

__all__ = ["match", "views"]

CONST, NO, MAYBE, YES = WordKind.CONST, Truth.NO, Truth.MAYBE, Truth.YES
END = Word("--")
"""Behind it nothing is an option."""

# ---- the words of a pattern against a view ---------------------------------------------------------


def match(pattern: tuple[PatternWord, ...], view: View, *, widen: bool) -> Truth:
    """Say whether the command may be what `pattern` means."""
    if widen and view.sure is YES and _written(pattern, view):
        return YES
    start = YES if pattern[0].many else _program(pattern[0], view, widen=widen)
    if start is NO or _other(pattern, view, widen=widen):
        return NO
    found = _match(pattern, view, start, widen=widen)
    if widen and found < view.sure and any(word.option for word in pattern):
        found = max(found, match(pattern, view, widen=False))  # what it says to the letter is never less than meant
    return min(view.sure, found)


def _written(pattern: tuple[PatternWord, ...], view: View) -> bool:
    """Say whether a command begins with the very words of a pattern: what most commands that match one do.

    An option is the one meant only where the pattern says all that is written, or that anything may follow.
    """
    program, words = pattern[0], view.words
    if program.literal != view.program.text or program.path or view.program.kind is not CONST or not program.literal:
        return False
    last = len(pattern) - 1 if pattern[-1].many else len(pattern)
    if last > len(words) + 1:
        return False
    dashes = False
    for word, given in zip(pattern[1:last], words, strict=False):
        if word.literal != given.text or given.kind is not CONST:
            return False
        dashes = dashes or word.option or word.literal == "--"
    return not dashes or (END not in words[: last - 1] and (last < len(pattern) or last == len(words) + 1))


def _other(pattern: tuple[PatternWord, ...], view: View, *, widen: bool) -> bool:
    """Say whether the constant word right behind a constant program is not the one a pattern wants there."""
    if len(pattern) < 2 or pattern[0].many or not view.words or view.program.kind is not CONST:
        return False
    wanted, given = pattern[1], view.words[0]
    if wanted.many or wanted.option or wanted.literal == "--" or given.kind is not CONST:
        return False
    return not given.text.startswith("-") and fit(wanted, given, view, widen=widen) is NO


def _match(pattern: tuple[PatternWord, ...], view: View, start: Truth, *, widen: bool) -> Truth:
    if pattern[0].many:
        words = (view.program, *view.words)
        whole = View(Word("", WordKind.UNKNOWN), words, view.cwd)
        return _walk(pattern, whole, {0: YES}, widen=widen)
    if view.program.kind is WordKind.UNKNOWN and view.program.many:
        return start
    if widen and _anything(view):
        return min(start, MAYBE)
    return _walk(pattern[1:], view, {0: start}, widen=widen)


def _anything(view: View) -> bool:
    """Say whether a view that is never sure begins with a word that may become any words: an alias of git does."""
    if view.sure is YES or not view.words:
        return False
    first = view.words[0]
    return first.kind is WordKind.UNKNOWN and first.many and not first.prefix


def _walk(pattern: tuple[PatternWord, ...], view: View, states: dict[int, Truth], *, widen: bool) -> Truth:
    """Follow the pattern through the words: position behind what was matched -> how sure."""
    at = 0
    while at < len(pattern) and states:
        word, last = pattern[at], at + 1 == len(pattern)
        at += 1
        if word.many or (widen and last and word.any):
            states = _any(states, len(view.words))
        elif widen and word.option:
            value = _value_pattern(word, pattern[at : at + 1], view)
            at += value is not None
            given = _has(word, value, view, min(states))
            if not given and max(states.values()) is MAYBE:
                given = _maybe_short(word, view, min(states))
            states = {place: min(sure, given) for place, sure in states.items()}
        else:
            states = _next(word, view, states, widen=widen)
        states = {place: sure for place, sure in states.items() if sure}
    if not widen:
        states = {place: sure for place, sure in _vanish(states, view).items() if place == len(view.words)}
    return max(states.values()) if states else NO


def _any(states: dict[int, Truth], end: int) -> dict[int, Truth]:
    best, found = NO, {}
    for place in range(min(states), end + 1):
        best = max(best, states.get(place, NO))
        found[place] = best
    return found


def _vanish(states: dict[int, Truth], view: View) -> dict[int, Truth]:
    """Let words go that may become no word at all."""
    found = dict(states)
    for place in range(len(view.words)):
        if place in found and view.words[place].many:
            found[place + 1] = max(found.get(place + 1, NO), MAYBE)
    return found


def _next(word: PatternWord, view: View, states: dict[int, Truth], *, widen: bool) -> dict[int, Truth]:
    found: dict[int, Truth] = {}
    if word.literal == "--":  # wherever it stands: options may be in front of it
        places = iter(dict.fromkeys(range(min(states), len(view.words)), max(states.values())).items())
    else:
        places = _candidates(view, states) if widen else iter(_vanish(states, view).items())
    for index, read in places:
        if index >= len(view.words):
            continue
        truth = min(read, fit(word, view.words[index], view, widen=widen))
        for place in (index, index + 1) if truth and _spreads(view.words[index]) else (index + 1,):
            found[place] = max(found.get(place, NO), truth)
    return found


def _spreads(word: Word) -> bool:
    """Say whether a word may become several, so that the pattern's next word may lie in it too."""
    return word.kind is WordKind.GLOB or (word.kind is WordKind.UNKNOWN and word.many)


def _candidates(view: View, states: dict[int, Truth]) -> Iterator[tuple[int, Truth]]:
    """Yield where the next word that is no option may be, both readings of unknown options followed."""
    todo = list(states.items())
    seen: dict[int, Truth] = {}
    while todo:
        index, sure = todo.pop()
        if index >= len(view.words) or seen.get(index, NO) >= sure:
            continue
        seen[index] = sure
        word = view.words[index]
        if word == END:
            if index + 1 < len(view.words):
                yield index + 1, sure
        elif word.kind is CONST and word.text.startswith("-") and word.text != "-":
            todo.extend((index + step, sure) for step in _steps(word.text, view.syntax(index)))
        else:
            yield index, sure
            if word.kind is not CONST and may_be_option(word):
                todo.extend((index + step, min(sure, MAYBE)) for step in (1, 2))


def _steps(text: str, syntax: Syntax) -> tuple[int, ...]:
    """Return how many words an option may take, itself included."""
    option = syntax.options.get(text)
    if option is not None:
        return (2,) if option.takes_next else (1,)
    if "=" in text and text.startswith("--"):
        return (1,)
    if text.startswith("--") or syntax.dash or not syntax.known:
        return (1, 2)
    for index, letter in enumerate(letters(text)):
        option = syntax.options.get(letter)
        if option is None:
            return (1, 2)
        if option.value:
            return (2,) if option.takes_next and index + 2 == len(text) else (1,)
    return (1,)


# ---- the program -----------------------------------------------------------------------------------


def _program(pattern: PatternWord, view: View, *, widen: bool) -> Truth:
    word = view.program
    if word.kind is not CONST:
        return MAYBE if pattern.any or _may_name(pattern, word) else NO
    if not word.text:
        return NO
    if pattern.any:
        return YES
    if pattern.path:
        return _path_program(pattern, view)
    known = view.names if widen else {posixpath.basename(fold(word.text)) if "/" in word.text else word.text}
    if pattern.literal in known:
        return YES
    for name in known:
        if fits(pattern, name, cross=widen):
            return YES
    caseless = widen and pattern.literal is not None and pattern.literal.lower() in {name.lower() for name in known}
    return MAYBE if caseless else NO


def _path_program(pattern: PatternWord, view: View) -> Truth:
    text = view.program.text
    if "/" not in text:
        # a bare name may be looked up to that very file
        return YES if pattern.literal and posixpath.basename(pattern.literal) == text else NO
    return path(pattern, text, view)


def _may_name(pattern: PatternWord, word: Word) -> bool:
    head = posixpath.basename(constant(word)) if "/" in constant(word) else constant(word)
    if pattern.literal is None:
        return True
    name = posixpath.basename(pattern.literal)
    if word.kind is WordKind.GLOB:
        return can_match(posixpath.basename(word.text), name)
    return word.many or name.startswith(head)


# ---- options ---------------------------------------------------------------------------------------


def _value_pattern(word: PatternWord, following: tuple[PatternWord, ...], view: View) -> PatternWord | None:
    """Return the pattern word that is the value of the option `word`."""
    if word.literal is None or not following or following[0].option or following[0].many:
        return None
    option = _option(word.literal, view) or _last(word.literal, view)
    return following[0] if option is not None and option.takes_next else None


def _last(name: str, view: View) -> Option | None:
    """Return the option a cluster of short ones ends with, None for a word that is no such cluster."""
    options = [_option(letter, view) for letter in letters(name)] if name[1:2] != "-" else []
    return options[-1] if options and not any(one is not None and one.value for one in options[:-1]) else None


def _option(name: str, view: View) -> Option | None:
    if view.called is None:
        return None
    inner, outer = view.called.program.syntax.options, view.called.outer.syntax.options
    return inner.get(name) or outer.get(name)


def _has(word: PatternWord, value: PatternWord | None, view: View, place: int) -> Truth:
    """Say whether the option `word` is among the words from `place` on."""
    if word.literal is None:
        return max((_like(word, view, index) for index in range(place, len(view.words))), default=NO)
    name, equals, glued = word.literal.partition("=")
    if equals:
        value = PatternWord(((glued, False),), glued, "/" in glued)
    whole = max(_present(name, value, view, place), _unread(name, view, place))
    cluster = len(name) > 2 and name[1] != "-" and _option(name, view) is None
    if whole is YES or not cluster or any(view.syntax(i).dash for i in range(place, place + 1)):
        return whole
    return max(whole, _cluster(name, value, view, place))


def _unread(name: str, view: View, place: int) -> Truth:
    """Suspect an option nobody knows: the one meant in its other form, or in front of the words it stands behind."""
    inner = view.called.program.syntax.options.get(name) if view.called is not None else None
    spellings, outer = inner.names if inner is not None else (name,), view.syntax(0).options
    unknown = _option(name, view) is None
    for index, word in enumerate(view.words):
        if word == END:
            break
        if word.kind is not CONST or word.text[:1] not in {"-", "+"}:
            continue
        text = word.text.partition("=")[0]
        if index < place and text in spellings and outer.get(text) in (None, inner):
            return MAYBE if inner is None else YES
        if index >= place and unknown and _other_form(name, text, view.syntax(index)):
            return MAYBE
    return NO


def _other_form(name: str, text: str, syntax: Syntax) -> bool:
    """Say whether a word may be the long form of the short option `name`, or the other way round."""
    if not text.startswith("-") or name.startswith("--") == text.startswith("--"):
        return False
    if text.startswith("--"):
        return len(name) == 2 and text[2:3].lower() == name[1].lower() and text not in syntax.options
    same = (letter for letter in letters(text) if letter[1].lower() == name[2:3].lower())
    return not syntax.dash and any(letter not in syntax.options for letter in same)


def _maybe_short(word: PatternWord, view: View, place: int) -> Truth:
    """Suspect every short option where the subcommand is not known: it may be a spelling of the one meant."""
    if word.literal is None or _option(word.literal.partition("=")[0], view) is not None:
        return NO
    behind = (given.text for given in view.words[place:] if given.kind is CONST)
    return MAYBE if any(text[:1] == "-" and text[:2] not in ("-", "--") for text in behind) else NO


def _cluster(name: str, behind: PatternWord | None, view: View, place: int) -> Truth:
    """Say whether every option of the cluster `name` is given, in whatever words; `behind` is the value of the last."""
    found = YES
    for position, letter in enumerate(letters(name), 2):
        option = _option(letter, view)
        rest = name[position:] if option is not None and option.value else ""
        value = PatternWord(((rest, False),), rest, "/" in rest) if rest else behind if position == len(name) else None
        found = min(found, _present(letter, value, view, place))
        if rest:
            break
    return found


def _like(word: PatternWord, view: View, index: int) -> Truth:
    given = view.words[index]
    if given.kind is CONST:
        return YES if given.text.startswith("-") and fits(word, given.text, cross=True) else NO
    return MAYBE if may_be_option(given) else NO


def _present(name: str, value: PatternWord | None, view: View, place: int) -> Truth:
    """Say whether option `name` (with a fitting value) is given at or behind `place`."""
    option = _option(name, view)
    spellings = option.names if option is not None else (name,)
    found, index, sure = NO, place, YES
    while index < len(view.words):
        word = view.words[index]
        if word == END:
            if sure is YES:
                break
        elif word.kind is not CONST:
            if may_be_option(word) and _may_start(word, spellings):
                found = max(found, MAYBE)
        elif word.text.startswith("-") and word.text != "-":
            syntax = view.syntax(index)
            given, glued = _given(word.text, spellings, syntax)
            if given and value is not None:
                given = min(given, _valued(value, glued, view, index))
            found = max(found, given)
            steps = _steps(word.text, syntax)
            if len(steps) > 1 and view.words[index + 1 : index + 2] == (END,):
                sure = MAYBE
            index += min(steps) - 1
        index += 1
    return found


def _may_start(word: Word, spellings: tuple[str, ...]) -> bool:
    head = constant(word)
    if word.many or not head:
        return True
    return any(name.startswith(head) or head.startswith(name) or not head.startswith("--") for name in spellings)


def _valued(value: PatternWord, glued: str | None, view: View, index: int) -> Truth:
    if glued is not None:
        return YES if fits(value, glued, cross=True) else NO
    if index + 1 >= len(view.words):
        return NO
    return fit(value, view.words[index + 1], view, widen=True)


def _given(text: str, spellings: tuple[str, ...], syntax: Syntax) -> tuple[Truth, str | None]:
    """Say whether the option word `text` gives one of the spellings, and with which glued value."""
    name, equals, glued = text.partition("=")
    if text in spellings:
        return YES, None
    if equals and name in spellings:
        return YES, glued
    if text.startswith("--") or syntax.dash:
        return _long(name, glued if equals else None, spellings, syntax)
    return _short(text, spellings, syntax)


def _long(name: str, glued: str | None, spellings: tuple[str, ...], syntax: Syntax) -> tuple[Truth, str | None]:
    if name in syntax.options:
        return NO, None
    if syntax.dash and any(name.lstrip("-") == spelling.lstrip("-") for spelling in spellings):
        return YES, glued
    short = len(name) > 2 and any(spelling.startswith(name) for spelling in spellings)
    return (YES if short and (syntax.known or len(name) > 4) else MAYBE if short else NO), glued


def _short(text: str, spellings: tuple[str, ...], syntax: Syntax) -> tuple[Truth, str | None]:
    """Look for a one-letter spelling in a cluster; a letter that takes a value ends it."""
    found: tuple[Truth, str | None] = (NO, None)
    for position, letter in enumerate(letters(text), 2):
        if letter in spellings:
            rest = text[position:]
            return (YES if syntax.known or len(text) <= 4 else MAYBE), rest or None
        option = syntax.options.get(letter)
        if option is not None and option.value:
            break
    return found
