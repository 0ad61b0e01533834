"""Command text and argument vectors as actions: one for each simple command, one for each file and URL it names.

The grammar and the knowledge of programs are in `commands`; this module turns a `Reading` into actions, ties operands
to the command they belong to, and says of each command where it runs, what it names outside the workspace and which
files `within` has to hold for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from policyd import commands, paths
from policyd.actions.builder import Builder, Surroundings
from policyd.model import Action, FileUse, PathRef, Reach, Reading, Role, SimpleCommand, Word, WordKind

EXECUTE = frozenset({"execute"})
READING = frozenset({"read", "search", "delete"})
"""What is done only to files that exist."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
QUOTES = ("'", '"')
META = frozenset("|&;<>()$`\\\"'*?[]#~=%{}!^\n\t ")


def text_actions(
    build: Builder,
    text: object,
    origin: str,
    cwd: tuple[str, ...],
    *,
    known: bool = True,
    strict: bool = False,
    doubtful: bool = False,
    stdin: str = "",
) -> None:
    """Add the actions of shell `text`.

    `known`: `cwd` is where it runs, not only where it may. `strict`: one reading of several; `doubtful`: one that is
    only suspected. `stdin`: a made-up program whose last word is typed into a shell in an unknown directory.
    """
    if not isinstance(text, str):
        build.opaque("the command is no text", EXECUTE, origin)
        return
    around, cwd = build.around, _known_as(build, cwd)
    reading = commands.read(text, cwd=cwd, home=around.workspace.home, shell=around.shell, fs=around.fs)
    typing = {at for at, command in enumerate(reading.commands) if stdin and command.argv[:1] == (Word(stdin),)}
    if typing:
        told = tuple(replace(one, idle=True) if at in typing else one for at, one in enumerate(reading.commands))
        beside = tuple(use for use in reading.files if use.command not in typing)
        reading = replace(reading, commands=told, files=beside)
    reading_actions(build, reading, origin, text, known=known, strict=strict, doubtful=doubtful)
    for at in typing:
        words = reading.commands[at].argv
        typed = words[-1].text if len(words) > 1 and words[-1].kind is WordKind.CONST else None
        text_actions(build, typed, f"{origin} {stdin}", cwd, known=False)


def argv_actions(
    build: Builder,
    argv: Sequence[object],
    env: Mapping[str, str],
    origin: str,
    cwd: tuple[str, ...],
    *,
    known: bool = True,
    doubtful: bool = True,
) -> None:
    """Add the actions of an argument vector in both readings: as it is, and joined to text.

    `doubtful`: that a client joins them is only suspected. Many do: for what they run, both readings count alike.
    """
    from policyd.commands.lexing.run import WORDS

    argv = argv[: WORDS + 1]  # one more than are read tells that there are more
    if not argv or not all(isinstance(word, str) for word in argv):
        build.opaque("the command's arguments are no list of texts", EXECUTE, origin)
        return
    words = tuple(str(word) for word in argv)
    around, cwd = build.around, _known_as(build, cwd)
    reading = commands.read_argv(words, env, cwd=cwd, home=around.workspace.home, fs=around.fs)
    reading_actions(build, reading, origin, _written(words), known=known)
    if any(META & set(word) for word in words) and not runs_text(words) and not _joins_alike(words, cwd, around):
        text_actions(build, " ".join(words), f"{origin} joined", cwd, known=known, strict=True, doubtful=doubtful)


def _joins_alike(words: tuple[str, ...], cwd: tuple[str, ...], around: Surroundings) -> bool:
    """Say whether words that are joined to text are read as the words they were."""
    text = " ".join(words)
    read = commands.read(text, cwd=cwd, home=around.workspace.home, shell=around.shell, fs=around.fs)
    if len(read.commands) != 1 or read.opaque:
        return False
    return [(word.text, word.kind) for word in read.commands[0].argv] == [(word, WordKind.CONST) for word in words]


def runs_text(words: Sequence[str]) -> bool:
    """Say whether `words` are a shell with `-c`: joined to text they would be something else entirely."""
    options = [word for word in words[1:] if word.startswith("-") and not word.startswith("--")]
    return words[0].rsplit("/", 1)[-1] in SHELLS and any("c" in option for option in options)


def _written(words: Sequence[str]) -> str:
    """Return `words` as a person would type them."""
    quoted = (word if word and not META & set(word) else "'" + word.replace("'", "'\\''") + "'" for word in words)
    return " ".join(quoted)


def quoted_text(text: str) -> str | None:
    """Return the text that `text` quotes as one word; None where it is no such word, or needed no quotes."""
    if text[:1] not in QUOTES or text[-1:] not in QUOTES:
        return None
    reading = commands.read(text, cwd=(), home="")
    argv = reading.commands[0].argv if len(reading.commands) == 1 else ()
    alone = len(argv) == 1 and argv[0].kind is WordKind.CONST and reading.commands[0].text == text
    return argv[0].text if alone and not reading.opaque and META & set(argv[0].text) else None


def wrapped_text(words: Sequence[object]) -> str | None:
    """Return the text of `bash -lc TEXT` and its kin, the form in which agents run a line; None for anything else."""
    if len(words) != 3 or not all(isinstance(word, str) for word in words):
        return None
    program, option, text = (str(word) for word in words)
    plain = program.rsplit("/", 1)[-1] in {"sh", "bash"} and program.startswith(("/bin/", "/usr/bin/", "sh", "bash"))
    return text if plain and option in {"-c", "-lc"} else None


def reading_actions(
    build: Builder,
    reading: Reading,
    origin: str,
    whole: str,
    *,
    known: bool,
    strict: bool = False,
    doubtful: bool = False,
) -> None:
    """Add the actions of `reading`, which is that of the text, or of the words, `whole`."""
    uses = [(use, _ref(build, use, _expands(use, reading), _printed(use, reading))) for use in reading.files]
    own: dict[int, list[tuple[FileUse, PathRef | str]]] = {}
    for use, ref in uses:
        own.setdefault(use.command, []).append((use, ref))
    made = [
        _command(build, command, own.get(index, []), origin, known=known, strict=strict, doubtful=doubtful)
        for index, command in enumerate(reading.commands)
    ]
    if sum(not action.idle for action in made) > 1:
        made = [replace(action, whole=whole) for action in made]
    at = {index: build.add(action) for index, action in enumerate(made)}
    for use, ref in uses:
        _file(build, use, ref, None if strict else at.get(use.command), origin, doubtful=doubtful)
    for found in reading.urls:
        build.url(found.text, frozenset({"fetch"}), origin, role=found.role)
    for why in reading.opaque:
        build.opaque(why, EXECUTE, origin)
    if not reading.commands and not reading.opaque:
        build.opaque("the command text runs nothing", EXECUTE, origin)


def _command(
    build: Builder,
    command: SimpleCommand,
    uses: list[tuple[FileUse, PathRef | str]],
    origin: str,
    *,
    known: bool,
    strict: bool,
    doubtful: bool,
) -> Action:
    forms, inside = _runs_in(build, command)
    told = [(use, ref) for use, ref in uses if isinstance(ref, PathRef)]
    strays = tuple(use.word.text for use, ref in told if _names(use) and not ref.inside)
    if _foreign(command) and inside:
        strays = ()
    unknown = any(not isinstance(ref, PathRef) and use.role is not Role.MENTION for use, ref in uses)
    return Action(
        EXECUTE | (build.kinds - {"other"}),
        command=replace(command, strict_only=True) if strict else command,
        name=build.name,
        args=build.args,
        cwd=forms if known else (),
        cwd_inside=known and inside,
        strays=strays,
        within=(*(ref for _, ref in told), *((None,) if unknown else ())),
        idle=command.idle or _stays(build, command),
        doubtful=doubtful,
        origin=origin,
    )


def _runs_in(build: Builder, command: SimpleCommand) -> tuple[tuple[str, ...], bool]:
    """Return where the command, and what a wrapper runs, may run: `env -C /tmp make` runs `make` elsewhere."""
    places = command.cwd
    while command.inner is not None and places:
        command = command.inner
        places = (*places, *command.cwd) if command.cwd else ()
    forms, inside = _places(build, tuple(dict.fromkeys(places)))
    return forms, inside or (_foreign(command) and places == build.bases() and _is_project(places))


def _foreign(command: SimpleCommand) -> bool:
    """Say whether the command is a plain one for PowerShell or cmd: its words do not lead out of its directory."""
    return len(command.via) == 1 and command.via[0] in commands.FOREIGN


def _is_project(places: tuple[str, ...]) -> bool:
    """Say whether a Windows directory is deep enough to be a project, not a home or the system's own."""
    names = places[0].lower().strip("/").split("/") if places and paths.of_windows(places[0]) else []
    own = {"windows", "program files", "program files (x86)", "programdata"}
    return len(names) > (3 if names[1:2] == ["users"] else 2) and names[1] not in own


def _places(build: Builder, cwd: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return every form of every directory of `cwd`, and whether all lie inside the workspace."""
    try:
        refs = [build.ref(place, (), Reach.ENTRY) for place in cwd]
    except paths.OpaquePath:
        return (), False
    forms = tuple(dict.fromkeys(form for ref in refs for form in ref.forms))
    return forms, bool(refs) and all(ref.inside for ref in refs)


def _known_as(build: Builder, cwd: tuple[str, ...]) -> tuple[str, ...]:
    """Return directories by every name that a shell started there may use: a link, and where it leads."""
    forms = _places(build, cwd)[0]
    return tuple(dict.fromkeys((*cwd, *forms))) if len(forms) > len(cwd) else cwd


def _stays(build: Builder, command: SimpleCommand) -> bool:
    return command.chdir is not None and _places(build, (command.chdir,))[1]


def _names(use: FileUse) -> bool:
    """Say whether the file is one that a word only happens to name, for an unknown purpose."""
    return use.role is Role.MENTION and use.reach is not Reach.UNTOLD


def _expands(use: FileUse, reading: Reading) -> bool:
    """Say whether this shell replaces a glob by existing names, and nothing is written under others.

    What runs behind a wrapper may be expanded on another machine; a part of a word is expanded by its program, if at
    all; a loop's value may have been extended, which matters if a file is created.
    """
    if use.word.kind is not WordKind.GLOB or use.kind not in READING or not use.cwd:
        return False
    if not 0 <= use.command < len(reading.commands):
        return False
    command = reading.commands[use.command]
    if command.via or command.tainted or command.taint or use.word not in command.argv:
        return False
    return use.role is not Role.MENTION or use.word.text in command.text


def _printed(use: FileUse, reading: Reading) -> bool:
    """Say whether a glob stands for what `$(…)` prints, which no shell matches against names."""
    if use.word.kind is not WordKind.GLOB or use.command >= len(reading.commands):
        return False
    from policyd.commands.lexing.quoting import NAME

    return NAME in use.word.text and (use.command < 0 or NAME not in reading.commands[use.command].text)


def _ref(build: Builder, use: FileUse, expands: bool, printed: bool) -> PathRef | str:
    """Return the path of `use`, or why it is unknown."""
    if use.unknown or use.word.kind is WordKind.UNKNOWN:
        return use.unknown or "a word of the command is not constant"
    glob = use.word.kind is WordKind.GLOB
    try:
        ref = build.ref(use.word.text, use.cwd, use.reach, glob=glob, expands=expands, printed=printed)
    except paths.OpaquePath as error:
        return str(error)
    if use.filled_from:
        return _filled(build, use, ref)
    limited = use.skips_hidden or use.endings
    return replace(ref, skips_hidden=use.skips_hidden, endings=use.endings) if limited else ref


def _filled(build: Builder, use: FileUse, ref: PathRef) -> PathRef:
    """Return the destination of a copy or move, with the directories that fill it; files put nothing below it."""
    try:
        sources = [build.ref(text, use.cwd, Reach.CONTENT) for text in use.filled_from]
    except paths.OpaquePath:
        return ref
    deep = tuple(form for source in sources if source.reach is Reach.CONTENT for form in source.forms)
    return replace(ref, filled_from=deep) if deep else replace(ref, reach=Reach.ENTRY)


def _file(
    build: Builder, use: FileUse, ref: PathRef | str, carrier: int | None, origin: str, *, doubtful: bool
) -> None:
    mention = use.role is Role.MENTION
    if isinstance(ref, str):
        if not mention:
            build.opaque(ref, frozenset({use.kind}), origin)
        return
    kinds: frozenset[str] = frozenset() if _names(use) and not use.known else frozenset({use.kind})
    build.add(
        Action(
            kinds,
            use.role,
            path=ref,
            name=build.name,
            args=build.args,
            carrier=carrier if use.carried else None,
            doubtful=doubtful,
            origin=origin,
        )
    )
