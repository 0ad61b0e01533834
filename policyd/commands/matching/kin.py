"""The same command in other words: `docker container rm x` is `docker rm x`, `make a deploy` makes `deploy` too.

Rules of this module:

1. It is for strict rules only: what a program does under several names, or beside something else, is seen as each.
2. A name stands for another program only where both are one (`gmake` is make); no program that runs its words is here,
   since what it runs is found by its own name.
3. Which option takes the next word need not be known: both readings count.
4. Some programs take the beginning of a word for the word; that a strict rule may mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from policyd.commands.argv import programs
from policyd.commands.nested.inner import MORE_INPUT
from policyd.model import CONST, Word

Words = tuple[Word, ...]
_Phrase = tuple[str, ...]

_TWINS = """
make gmake
node nodejs
gradle gradlew
mvn mvnw
fly flyctl
terraform tofu opentofu
nc ncat netcat nc.openbsd nc.traditional
7z 7za 7zz 7zr
mysql mariadb
python py
powershell pwsh
apt apt-get
"""
_GNU = frozenset(
    """
    cat chgrp chmod chown cp date dd df du echo grep head install kill ln ls mkdir mktemp mv od readlink realpath rm
    rmdir sed shred sort stat tac tail tar tee touch truncate uniq unlink wc
    """.split()  # noqa: SIM905
)
"""Programs that systems with tools of their own install with a `g` in front."""
_ALIKE = """
docker podman nerdctl: ps container.ls container.list container.ps
docker podman nerdctl: rm container.remove container.rm
docker podman nerdctl: images image.ls image.list
docker podman nerdctl: rmi image.rm image.remove
docker podman nerdctl: build image.build builder.build buildx.build buildx.b
helm: uninstall delete del un
brew: uninstall rm remove
dnf yum: remove erase rm
dnf yum: install in
zypper: install in
zypper: remove rm
conda mamba micromamba: remove uninstall
cargo: build b
cargo: check c
cargo: doc d
cargo: run r
cargo: test t
cargo: remove rm
npm: test t tst run.test
yarn: publish npm.publish
docker podman nerdctl: volume.rm volume.remove
docker podman nerdctl: network.rm network.remove
git: remote.remove remote.rm
pnpm bun: remove rm un uninstall
pnpm bun: install i
bun: add a
svn: commit ci
svn: checkout co
svn: switch sw
svn: update up
svn: delete del remove rm
svn: move mv rename ren
hg: commit ci
hg: update up checkout co
terraform tofu: destroy apply.-destroy apply.--destroy
kill pkill killall: -9 -KILL -SIGKILL -s.9 -s.KILL -s.SIGKILL -n.9 --signal.9 --signal.KILL --signal=9 --signal=KILL
"""
"""Programs, and words of theirs that mean the same; a dot stands for a blank."""
_FAMILIES = """
docker podman nerdctl: container: attach commit cp create diff exec export kill logs pause port rename restart
docker podman nerdctl: container: run start stats stop top unpause update wait
docker podman nerdctl: image: history import load pull push save tag
npm pnpm yarn bun: run: test start stop restart
"""
"""Programs with a word that may stand before some of their subcommands, or not."""
_LEADING = """
gcloud: alpha beta
pnpm: recursive multi m run exec
composer: global
yarn: run exec
bun: run
"""
"""Programs with words that say how, not what: what stands behind them is the subcommand."""
_NAMING = {("yarn", "workspace")}
"""Those behind which a name comes first."""
_SHORT = """
npx: npm exec
pnpx: pnpm dlx
bunx: bun x
uvx: uv tool run
rgrep: grep -r
"""
"""Programs that are another with its first words."""
_PROGRAMS = {("uv", "pip"): "pip", ("docker", "compose"): "docker-compose", ("podman", "compose"): "podman-compose"}
"""Programs with a subcommand that is another program."""
_GOALS = frozenset("make rake gradle mvn ant just task inv invoke gulp grunt sbt scons ninja mage jake fab".split())  # noqa: SIM905
"""Programs that do each of the things they are told, in turn."""
ABBREVIATES = frozenset("npm composer artisan gradle hg ip tmux gem bundle nmcli vagrant".split())  # noqa: SIM905
"""Programs that take the beginning of a subcommand for it."""
_TOOLCHAINED = frozenset("cargo rustc rustdoc".split())  # noqa: SIM905
"""Programs before whose words a toolchain may be named (`cargo +nightly`)."""
_BINARIES = frozenset("yarn pnpm bun".split())  # noqa: SIM905
"""Programs that run a program of the project by its bare name."""
_OWN = frozenset("rm ls ln link unlink env test install set patch import info search pack exec".split())  # noqa: SIM905
"""Their own subcommands that are called as programs are."""
_DEEP = 8
_MOST = 64
"""Goals that are looked at one by one."""


def _named(text: str) -> Iterator[tuple[list[str], list[str]]]:
    for line in text.strip().splitlines():
        names, _, words = line.partition(": ")
        yield names.split(), words.split()


def _alike() -> Mapping[str, Mapping[str, Sequence[tuple[_Phrase, tuple[_Phrase, ...]]]]]:
    """Return, for each program and first word, phrases with those that mean the same."""
    found: dict[str, dict[_Phrase, tuple[_Phrase, ...]]] = {}
    families = _named(_FAMILIES)
    classes = [(names, [(sub,), (head.rstrip(":"), sub)]) for names, (head, *subs) in families for sub in subs]
    classes += [(names, [tuple(word.split(".")) for word in words]) for names, words in _named(_ALIKE)]
    for names, words in _named(_LEADING):
        for name in names:
            found.setdefault(name, {}).update({(word,): ((),) for word in words})
    for names, phrases in classes:
        for name in names:
            table = found.setdefault(name, {})
            table.update({one: tuple(other for other in phrases if other != one) for one in phrases})
    filed: dict[str, dict[str, list[tuple[_Phrase, tuple[_Phrase, ...]]]]] = {}
    for name, table in found.items():
        for phrase, others in table.items():
            filed.setdefault(name, {}).setdefault(phrase[0], []).append((phrase, others))
    return filed


_SAME = _alike()
_NAMES = {name: names for names in map(str.split, _TWINS.strip().splitlines()) for name in names}
_LONG = {name: (first, tuple(map(Word, rest))) for (name,), (first, *rest) in _named(_SHORT)}
_MODE = re.compile(r"0*[0-7]?([0-7]{3})|([augo]*)([+=])([rwx]+)").fullmatch
_BITS = {"r": 4, "w": 2, "x": 1}
KNOWN = (
    frozenset(_SAME)
    | frozenset({"chmod", "redis-cli"})
    | _GOALS
    | _TOOLCHAINED
    | _LONG.keys()
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
    if name in _LONG:
        first, rest = _LONG[name]
        yield first, (*rest, *words)
    if name == "git":
        yield from ((name, other) for other in _git(words))
    if name == "chmod":
        yield from ((name, other) for other in _modes(words))
    if name == "redis-cli" and all(word.kind is CONST for word in words):
        yield from ((name, tuple(Word(to(word.text)) for word in words)) for to in (str.lower, str.upper))
    if name in _GOALS:
        yield from ((name, other) for other in _goals(name, words))
    for at in _places(words):
        text = words[at].text
        if (name, text) in _PROGRAMS:
            yield _PROGRAMS[name, text], words[at + 1 :]
        if (name, text) in _NAMING:
            yield name, (*words[:at], *words[at + 2 :])
        for phrase, others in _SAME.get(name, {}).get(text, ()):
            if _is_phrase(words[at : at + len(phrase)], phrase):
                rest = words[at + len(phrase) :]
                yield from ((name, (*words[:at], *map(Word, other), *rest)) for other in others)


def _modes(words: Words) -> Iterator[Words]:
    """Yield the words with a mode for all written as three digits, and one for somebody as one for all.

    `a+rwx` and `0777` are `777`, and `u+x` is `+x` for those it names.
    """
    for at, word in enumerate(words[:_MOST]):
        mode = _MODE(word.text) if word.kind is CONST else None
        if mode is not None and (mode[1] or mode[2] in {"", "a", "ugo"}):
            digits = mode[1] or 3 * str(sum({_BITS[letter] for letter in mode[4]}))
            yield (*words[:at], Word(digits), *words[at + 1 :])
        if mode is not None and mode[3] == "+":
            yield (*words[:at], Word("+" + mode[4]), *words[at + 1 :])


def _git(words: Words) -> Iterator[Words]:
    """Yield what a push says by its refspecs, and what `branch -D` says by two options, in the other words for it."""
    texts = [word.text if word.kind is CONST else "" for word in words]
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
            elif not words[at].text.startswith("-") and words[at].text not in _OWN:
                yield words[at], words[at + 1 :]


def _is_phrase(words: Words, phrase: _Phrase) -> bool:
    return len(words) == len(phrase) and all(
        word.kind is CONST and word.text == text for word, text in zip(words, phrase, strict=True)
    )


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
