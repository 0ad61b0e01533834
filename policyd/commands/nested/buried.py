"""Programs among the words of another: of a stranger, of `docker exec`, in code with a `system`, in variables.

Rules of this module:

1. Every constant word that may name a program is taken for one, with the words behind it; so is what stands behind the
   first `=` of an option.
2. A word with blanks is read as shell text, cut at every operator; words that only lead to a program are left out.
3. So is the value of a variable in front of a command, of one that is exported, and of one whose name says that it is
   run (`PAGER`, `PS4`).
4. In code, and in commands of an editor, a debugger or a database's shell, that name a way to run programs, every name
   may be one.
5. Behind `MOST` words, pieces or names, and behind what is read of a long text, anything may stand. Whatever is found
   here is suspected, never known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from policyd.commands.argv import programs
from policyd.commands.lexing.rough import pieces
from policyd.commands.nested.inner import MORE_INPUT
from policyd.commands.nested.wrapper_programs import has_code, language
from policyd.commands.nested.wrapper_table import INTERPRETERS
from policyd.commands.nested.wrappers import marks
from policyd.commands.state.builtins import BUILTINS
from policyd.commands.state.taint import loose
from policyd.commands.state.variables import HARMLESS
from policyd.model import SimpleCommand, Word, WordKind

MOST = 256
_ELSEWHERE = """
docker nerdctl docker-compose crictl ctr: run exec create debug
podman: run exec create unshare ssh
buildah: run unshare
lxc incus: exec
limactl: shell
distrobox: enter
kubectl: exec run debug config node-shell ssh iexec
oc: exec run rsh debug config
flatpak snap: run
npm yarn pnpm: exec dlx x pkg config explore
git: config --exec --httpd web--browse
bun: exec dlx x run
opam cabal stack nx terragrunt jj ip gem: exec
composer: exec config
brew: exec sh
dotnet go: tool
deno: --eval x
mix: cmd
meson: devenv
firebase: emulators:exec
netlify: dev:exec dev
nix: develop shell run
heroku: run run:detached local:run
fly flyctl: ssh console
minikube gcloud doctl az: ssh run-command
gh glab: codespace cs alias config
aws: send-command execute-command configure start-session
op: run
tox: -- -x --override
nox: --
perf: stat record trace
cmake: -E --
cargo: --config watch
bazel bazelisk: --run_under
ctest: --test-command
gpg gpg2: --photo-viewer
mutt: -e
keyctl: session
launchctl: submit asuser bsexec
tcpdump: -z
helm: --post-renderer
rclone: --password-command
hg: --config
svn: --diff-cmd --diff3-cmd --merge-cmd --editor-cmd --config-option
npx bunx pnpx uvx pipx screen tmux byobu zellij dtach abduco gdb lldb rr dtrace pwsh powershell cmd ansible sshpass:
autossh sftp osascript expect socat nix-shell vagrant:
wsl wsl.exe adb lxc-attach lima multipass colima toolbox apptainer singularity systemd-nspawn arch-chroot:
devcontainer flatpak-spawn:
"""
_LINES = (line.partition(":") for line in _ELSEWHERE.splitlines())
ELSEWHERE: Mapping[str, frozenset[str]] = {
    name: frozenset(verbs.split()) for names, _, verbs in _LINES for name in names.split()
}
"""Programs that run their words, elsewhere or later, with the subcommands that do; none = whatever their words."""
SPEAKS = frozenset(
    """
    vi vim nvim gvim view rvim vimdiff ex ed emacs emacsclient less more man lldb sqlite3 psql mysql mariadb lftp
    duckdb mongo mongosh dc smbclient make gmake rpm apt apt-get dpkg zip mvn rake puppet
    """.split()  # noqa: SIM905
)
"""Programs that take commands in a language of their own, which can run programs."""
_CODED = frozenset("julia elixir erl ghc ocaml sbcl swift clj scala java deno bun".split())  # noqa: SIM905
"""Languages in whose code, which may be any word, names matter only beside a way to run programs."""
_TELLING = frozenset(["info", "tldr", "apropos", "whatis", "cheat", "last"])
"""Programs that tell about the programs their words name, or that are names of something else."""
_RUNS = re.compile(
    r"[`!]|[%$]\(|\b(?:system|shell\w*|exec\w*|popen\w*|spawn\w*|call|run|sh|bash|cmd|command|subprocess|child_process|"
    r"process|program|invoke|terminal|jobstart|open|qx|os|lua|py3?|on(?:outofmemory)?error)\b",
    re.IGNORECASE,
).search
"""What code has that runs a program; names only matter where it is there."""
_TOKEN = re.compile(r"[\w./~+@-]+").findall
_BEHIND = 16
"""How many names behind one are taken for its words."""
_NAME = re.compile(r"[A-Za-z0-9_.~/@+][\w.~/@+-]*").fullmatch
_RELEASE = re.compile(
    r"^(?:npm:|jsr:|[^#]*#)|(?<=.)(?:@(?:[~^=v]?[0-9][\w.+-]*|latest|next|beta|canary|lts)|==[\w.]+)$"
)
"""What a name of a package says beside the program: `npm@10`, `npm:npm`, `nixpkgs#curl`, `black==24`."""
_TEXT = re.compile(r"[\s;&|]").search
_NAMED = re.compile(r"[\w.:-]+=").match
_LEADS = frozenset({"()", "{", "(){", "do", "shell", "script", "spawn", "exec", "system", "run", "send", "silent"})
_RUN = re.compile(
    r".*(?:PAGER|EDITOR|BROWSER|COMMAND|ASKPASS|SSH|RSH|DIFF|WRAPPER|RUNNER)|VISUAL|SHELL|PS[0-4]|LESS(?:OPEN|CLOSE)|"
    r"(?:BASH_)?ENV"
).fullmatch
"""Variables whose value a shell or a program runs; one of the environment is exported again wherever it is set."""
_SIGILS = "!:+%@["
"""What a language of its own puts before a program to run it."""
_LONGEST = 16_384
Found = tuple[Word, tuple[Word, ...]]
_ANYTHING: Found = (MORE_INPUT, ())
_END = Word("--")


@lru_cache(2048)
def is_stranger(known: frozenset[str]) -> bool:
    """Say whether nobody knows what a program of these names does with its words."""
    return bool(known) and not any(
        name in _TELLING or name in BUILTINS or programs.find(name) is not None or marks(name) is not None
        for name in known
    )


def elsewhere(verbs: frozenset[str], words: tuple[Word, ...]) -> Iterator[Found]:
    """Yield what may be a program behind one of the verbs: where the options end is not known."""
    if verbs:
        start = _first(verbs, words)
        words = words[start + ("=" not in words[start].text) :] if start < len(words) else ()
    yield from among(words)
    if _END in words:  # `npm exec eslint -- --fix` hands on what is behind
        yield from among(tuple(word for word in words if word != _END))


def _first(verbs: frozenset[str], words: tuple[Word, ...]) -> int:
    """Return the index of the first word that is one of the verbs, or one with its value; their number without one."""
    for at, word in enumerate(words):
        text = word.text
        if text in verbs or ("=" in text and text.partition("=")[0] in verbs):
            return at
    return len(words)


def among(words: tuple[Word, ...]) -> Iterator[Found]:
    """Yield every word that may name a program, with the words behind it."""
    for index, word in enumerate(words[:MOST]):
        if word.kind is not WordKind.CONST:
            continue
        text = word.text
        if text.startswith("-"):
            text = text.partition("=")[2]
        if not _TEXT(text):
            text = _RELEASE.sub("", text)
        if _NAME(text):
            yield (word if text == word.text else Word(text)), words[index + 1 :]
        elif _TEXT(text):
            yield from _texts(text)
    if len(words) > MOST:
        yield _ANYTHING


def _texts(text: str) -> Iterator[Found]:
    """Yield the head of every piece of what may be shell text, itself or behind a name: `commands=rm x`."""
    named = _NAMED(text)
    found = (*pieces(text[:_LONGEST]), *(pieces(text[named.end() : _LONGEST]) if named else ()))
    for piece in found[:MOST]:
        words = piece
        while len(words) > 1 and words[0].text.lower().lstrip(".:") in _LEADS:
            words = words[1:]
        head, *more = re.split(r"[:=]", words[0].text)[-1].split() or [""]
        yield Word(head.lstrip(_SIGILS)), (*map(Word, more), *words[1:])
    if len(found) > MOST or len(text) > _LONGEST:
        yield _ANYTHING


def in_variables(command: SimpleCommand) -> Iterator[Found]:
    """Yield what may be a program in the variables a command is given."""
    given = [one for one in command.env if one.name not in HARMLESS and not loose(one.name)]
    for one in (*given, *(one for one in command.taint if one.exported or _RUN(one.name))):
        text = one.value.text if one.value.kind is WordKind.CONST else one.value.text.strip("\"'")
        yield from among(tuple(map(Word, text.split())) if text.startswith("-") else (Word(text),))
        yield from _called(text)


def speaks(known: frozenset[str]) -> bool:
    """Say whether a program of these names may run a program that is named in text it is given."""
    return not known.isdisjoint(SPEAKS | _CODED) or any(language(name) in INTERPRETERS for name in known)


def spoken(known: frozenset[str], words: tuple[Word, ...]) -> Iterator[Found]:
    """Yield every word that may name a program in the text that a program of these names is given."""
    commands = not known.isdisjoint(SPEAKS)
    every = commands or not known.isdisjoint(_CODED)
    given = words if every else tuple(_code(known, words))
    for word in given[:MOST]:
        text = word.text if word.kind is WordKind.CONST else word.prefix
        if commands and _TEXT(text):
            yield from _texts(text)
        yield from _called(text)
    if len(given) > MOST:
        yield _ANYTHING


def _called(text: str) -> Iterator[Found]:
    """Yield every name in code that runs programs."""
    if _RUNS(text):
        names = tuple(map(Word, _TOKEN(text)[: MOST + 1]))
        yield from ((name, names[at + 1 : at + _BEHIND]) for at, name in enumerate(names[:MOST]))
        if len(names) > MOST:
            yield _ANYTHING


def _code(known: frozenset[str], words: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the words that are an interpreter's program: behind an option that says so, or glued to it."""
    specs = [INTERPRETERS[found] for name in known if (found := language(name)) in INTERPRETERS]
    for index, word in enumerate(words):
        text = word.text if word.kind is WordKind.CONST else word.prefix
        if not text.startswith("-"):
            if index and not words[index - 1].text.startswith("-"):
                return
        elif any(has_code(text, spec.code) for spec in specs):
            yield from words[index : index + 2]
