"""The same command in other words: `docker container rm x` is `docker rm x`, `make a deploy` makes `deploy` too.

Which words mean the same is in `kin.toml`, beside what is said of each table there.

Rules of this module:

1. It is for strict rules only: what a program does under several names, or beside something else, is seen as each.
2. A name stands for another program only where both are one (`gmake` is make); no program that runs its words is here,
   since what it runs is found by its own name.
3. Which option takes the next word need not be known: both readings count.
4. Some programs take the beginning of a word for the word; that a strict rule may mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from policyd.commands.argv import programs
from policyd.commands.argv.options import unbundled
from policyd.commands.nested.inner import MORE_INPUT
from policyd.model import CONST, Word

Table = Mapping[str, Any]
Words = tuple[Word, ...]
_Phrase = tuple[str, ...]
_Same = Mapping[_Phrase, tuple[_Phrase, ...]]
_DEEP = 8
_MOST = 64
"""Goals that are looked at one by one."""


def _classes(table: Table) -> Iterator[tuple[str, list[_Phrase]]]:
    """Yield programs, each with phrases of it that mean the same."""
    for family in table["family"]:
        pairs = [[(sub,), (family["word"], sub)] for sub in family["before"].split()]
        yield from ((name, pair) for name in family["programs"].split() for pair in pairs)
    for alike in table["alike"]:
        lists = [[tuple(phrase.split()) for phrase in phrases.split(", ")] for phrases in alike["phrases"]]
        yield from ((name, phrases) for name in alike["programs"].split() for phrases in lists)


def _same(table: Table) -> Mapping[str, Mapping[str, _Same]]:
    """Return, for each program and first word, phrases with those that mean the same."""
    found: dict[str, dict[str, dict[_Phrase, tuple[_Phrase, ...]]]] = {}
    for name, text in table["leading"].items():
        for phrase in map(str.split, text.split(", ")):
            found.setdefault(name, {}).setdefault(phrase[0], {})[tuple(phrase)] = ((),)
    for name, phrases in _classes(table):
        for one in phrases:
            others = tuple(other for other in phrases if other != one)
            found.setdefault(name, {}).setdefault(one[0], {})[one] = others
    return found


def _set(key: str) -> frozenset[str]:
    return frozenset(_TABLE[key].split())


_TABLE: Table = tomllib.loads((resources.files("policyd") / "commands/matching/kin.toml").read_text("utf-8"))
ABBREVIATES = _set("abbreviates")
_GNU, _GOALS, _TOOLCHAINED, _BUNDLED, _BINARIES, _SCRIPTS, OWN = map(
    _set, ("gnu", "goals", "toolchained", "bundled", "binaries", "scripts", "own")
)
_KEYS = {key.lower(): key for key in _set("keys")}
_NAMES = {name: names for names in map(str.split, _TABLE["twins"]) for name in names}
_LONG = {name: text.split() for name, text in _TABLE["short"].items()}
_PROGRAMS = {tuple(text.split()): other for text, other in _TABLE["programs"].items()}
_NAMING = {tuple(text.split()) for text in _TABLE["naming"]}
_WORDS = {
    name: {word: names.split() for names in classes for word in names.split()}
    for name, classes in _TABLE["words"].items()
}
_SAME = _same(_TABLE)
_MODE = re.compile(r"0*[0-7]?([0-7]{3})|([augo]*)([+=])([rwx]+)").fullmatch
_CLAUSE = re.compile(r"([augo]+)[+=]([rwx]+)").findall
_BITS = {"r": 4, "w": 2, "x": 1}
KNOWN = (
    frozenset({"chmod", "redis-cli", *_SAME, *_LONG, *_WORDS})
    | _BUNDLED
    | _GOALS
    | _TOOLCHAINED
    | {name for name, _ in (*_NAMING, *_PROGRAMS)}
)
"""Programs that have kin."""


def twins(name: str) -> tuple[str, ...]:
    """Return the other names of the program called `name`."""
    return (*_NAMES.get(name, ()), *((name[1:],) if name[:1] == "g" and name[1:] in _GNU else ()))


def kin(name: str, words: Words) -> Iterator[tuple[str, Words]]:
    """Yield the program and the words of every command that `name` with these words is, or does, beside itself."""
    if name in _TOOLCHAINED and words and words[0].kind is CONST and words[0].text.startswith("+"):
        yield name, words[1:]
        return
    yield from _whole(name, words)
    for at in _places(words):
        text = words[at].text
        if (name, text) in _PROGRAMS:
            yield _PROGRAMS[name, text], words[at + 1 :]
        if name in _SCRIPTS and text[:1] != "-":
            yield name, (*words[:at], Word("run"), *words[at:])
        if (name, text) in _NAMING:
            yield name, (*words[:at], *words[at + 2 :])
        for phrase, others in _SAME.get(name, {}).get(text, {}).items():
            rest = _behind(words[at:], phrase)
            if rest is not None:
                yield from ((name, (*words[:at], *map(Word, other), *rest)) for other in others)


def _whole(name: str, words: Words) -> Iterator[tuple[str, Words]]:
    """Yield what a command is by its name, or by any of its words."""
    if name in _LONG:
        first, *rest = _LONG[name]
        yield first, (*map(Word, rest), *words)
    if name == "git":
        yield from ((name, other) for other in _git(words))
    if name == "chmod":
        yield from ((name, other) for other in _modes(words))
    if name == "redis-cli" and all(word.kind is CONST for word in words):
        yield from ((name, tuple(Word(to(word.text)) for word in words)) for to in (str.lower, str.upper))
    if name in _GOALS:
        yield from ((name, other) for other in _goals(name, words))
    if name in _WORDS:
        yield from ((name, other) for other in _reworded(_WORDS[name], words))
    if name in _BUNDLED and (table := programs.find(name)) is not None:
        yield name, unbundled(table.syntax, words)


def _reworded(alike: Mapping[str, list[str]], words: Words) -> Iterator[Words]:
    """Yield the words with one of them in its other forms, what stands behind its `/` apart."""
    for at, word in enumerate(words[:_MOST]):
        kind, slash, name = word.text.partition("/") if word.kind is CONST else ("", "", "")
        rest = (*((Word(name),) if slash else ()), *words[at + 1 :])
        yield from ((*words[:at], Word(other), *rest) for other in alike.get(kind, ()) if slash or other != kind)


def _modes(words: Words) -> Iterator[Words]:
    """Yield the words with a mode for all written as three digits, and one for somebody as one for all.

    `a+rwx` and `0777` are `777`, and `u+x` is `+x` for those it names.
    """
    for at, word in enumerate(words[:_MOST]):
        mode = _MODE(_one_mode(word.text)) if word.kind is CONST else None
        if mode is not None and (mode[1] or mode[2] in {"", "a", "ugo"}):
            digits = mode[1] or 3 * str(sum({_BITS[letter] for letter in mode[4]}))
            yield (*words[:at], Word(digits), *words[at + 1 :])
        if mode is not None and mode[3] == "+":
            yield (*words[:at], Word("+" + mode[4]), *words[at + 1 :])


def _one_mode(text: str) -> str:
    """Return `u=rwx,go=rwx` as the digits it is where it says what everybody may, another mode as it is."""
    given: dict[str, int] = {}
    for who, bits in _CLAUSE(text):
        given.update(dict.fromkeys(who.replace("a", "ugo"), sum({_BITS[letter] for letter in bits})))
    return "".join([str(given[who]) for who in "ugo"]) if "," in text and given.keys() >= set("ugo") else text


def _git(words: Words) -> Iterator[Words]:
    """Yield what a push says by its refspecs, `branch -D` by two options, and a key of any case, in other words."""
    texts = [word.text if word.kind is CONST else "" for word in words]
    for at, (key, equals, value) in enumerate(text.partition("=") for text in texts[:_MOST]):
        usual = _KEYS.get(key.lower(), key)
        if usual != key:
            yield (*words[:at], Word(usual + equals + value), *words[at + 1 :])
    if "push" in texts:
        at = texts.index("push") + 1
        for place in range(at, min(len(texts), at + _MOST)):
            yield from _pushed(words, at, place)
    elif "branch" in texts:
        short = {letter for text in texts if text[:1] == "-" and text[:2] != "--" for letter in text[1:]}
        if "D" in short:
            yield (*words, Word("--delete"), Word("--force"))
        if (short & {"d"} or "--delete" in texts) and (short & {"f"} or "--force" in texts):
            yield (*words, Word("-D"))


def _pushed(words: Words, at: int, place: int) -> Iterator[Words]:
    """Yield a push whose refspec at `place` is written as the branch it changes, in front of the others."""
    text = words[place].text if words[place].kind is CONST else ""
    if not text or text.startswith("-"):
        return
    source, colon, target = text.removeprefix("+").rpartition(":")
    options = [Word("--force")] if text.startswith("+") else []
    options += [Word("--delete")] if colon and not source else []
    branch = Word(target.removeprefix("refs/heads/"))
    if options or branch.text != text:
        yield (*words[:place], branch, *words[place + 1 :], *options)
    if place > at + 1:
        yield (*words[: at + 1], branch, *words[at + 1 : place], *words[place + 1 :], *options)


def binaries(known: frozenset[str], words: Words) -> Iterator[tuple[Word, Words]]:
    """Yield the program of the project that `pnpm eslint --fix` runs, if one of it is called so."""
    if not known.isdisjoint(_BINARIES):
        for at in _places(words):
            if words[at].text == "run" and at + 1 < len(words):
                yield words[at + 1], words[at + 2 :]
            elif not words[at].text.startswith("-") and words[at].text not in OWN:
                yield words[at], words[at + 1 :]


def _behind(words: Words, phrase: _Phrase) -> Words | None:
    """Return what `words` hold behind a phrase, None where they do not begin with it."""
    if len(phrase) > 1 and phrase[-1].startswith("-") and not phrase[0].startswith("-"):
        found = (at for at, word in enumerate(words[:_MOST]) if word.kind is CONST and _is_option(word, phrase[-1]))
        at = next(found, len(words))
        return _behind((*words[:at], *words[at + 1 :]), phrase[:-1]) if at < len(words) else None
    begins = len(words) >= len(phrase) and all(
        word.kind is CONST and word.text == text for word, text in zip(words, phrase, strict=False)
    )
    return words[len(phrase) :] if begins else None


def _is_option(word: Word, option: str) -> bool:
    return word.text == option or word.text.startswith(option + "=")


def _places(words: Words) -> Iterator[int]:
    """Yield where the first word that is no option may stand, and the options before it."""
    todo = {0}
    for at, word in enumerate(words[:_DEEP]):
        if at not in todo or word.kind is not CONST:
            continue
        yield at
        if word.text.startswith("-"):
            todo |= {at + 1, at + 2}


def _goals(name: str, words: Words) -> Iterator[Words]:
    """Yield the words with each one that may be a goal in front, the part of a build it belongs to left out."""
    if len(words) > _MOST:
        yield (MORE_INPUT,)
        return
    table = programs.find(name)
    known = table.syntax.options if table is not None else {}
    taken = False
    for at, word in enumerate(words):
        text = word.text if word.kind is CONST else ""
        option = known.get(text)
        is_goal, taken = not taken and not text.startswith("-"), option is not None and option.takes_next
        rest = (*words[at + 1 :], *words[:at])
        if is_goal and at:
            yield (word, *rest)
        if is_goal and ":" in text:
            yield (Word(text.rpartition(":")[2]), *rest)
