"""What allowed programs can be made to do beside what they look like: data, tried against the policy by `lintbroad`.

For each program the words that, behind it, run or write something else, and what that is in words. The options that do
so are not listed here: they come from the table of programs (`policyd/sets/programs*.toml`). Sources are the manuals
named there, and https://gtfobins.github.io for programs that start others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policyd.commands.options import Option
from policyd.commands.programs import Program, find

CODE = "runs any code that is written behind it"
SCRIPT = "runs any script of the workspace, which may have been written a moment ago"
FETCHES = "fetches and runs a package of any name"
SETUP = "runs the set-up code of any package"
SCRIPTS = "runs the install scripts of any package"
INNER = "runs the program behind it"
BUILD = "runs whatever the project's build files say, and takes commands on its line"
HAZARDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("python", "python3", "pypy", "pypy3"), (("-c x", CODE), ("-m pip install x", SETUP))),
    **dict.fromkeys(("node", "bun", "deno", "tsx", "perl", "ruby", "lua", "Rscript", "php"), (("-e x", CODE),)),
    **dict.fromkeys(("bash", "sh", "zsh", "dash", "ksh", "fish"), (("./x.sh", SCRIPT),)),
    **dict.fromkeys(("npx", "bunx", "uvx", "pnpx", "pipx"), (("x", FETCHES),)),
    **dict.fromkeys(("make", "gmake", "just", "task", "rake", "ninja"), (("x", BUILD),)),
    **dict.fromkeys(
        ("env", "nice", "nohup", "timeout", "stdbuf", "command", "time", "watch", "flock"), (("rm x", INNER),)
    ),
    **dict.fromkeys(("pip", "pip3"), (("install x", SETUP),)),
    "npm": (
        ("exec x", FETCHES),
        ("install x", SCRIPTS),
        ("run x", "runs any script"),
    ),
    "pnpm": (("dlx x", FETCHES), ("add x", SCRIPTS), ("run x", "runs any script")),
    "yarn": (("dlx x", FETCHES), ("add x", SCRIPTS), ("run x", "runs any script")),
    "uv": (("run x", CODE), ("tool run x", FETCHES), ("pip install x", SETUP)),
    "go": (("run x", CODE), ("generate", "runs the commands that source files name")),
    "cargo": (("run", CODE), ("install x", FETCHES)),
    "poetry": (("run x", INNER),),
    "git": (
        ("push --force", "rewrites what others have"),
        ("reset --hard", "throws away work"),
        ("clean -fdx", "deletes files git does not know"),
        ("config core.pager x", "makes git run a program from then on"),
        ("-c core.fsmonitor=x status", "runs a program"),
    ),
    "docker": (("run x", "runs any image, with any directory of the machine"),),
    "podman": (("run x", "runs any image, with any directory of the machine"),),
    "kubectl": (("delete x", "deletes from the cluster"), ("exec x", "runs programs in the cluster")),
    "terraform": (("destroy", "destroys infrastructure"), ("apply", "changes infrastructure")),
    "aws": (("s3 rm x", "changes what runs in the cloud"),),
    "gcloud": (("projects delete x", "changes what runs in the cloud"),),
    "gh": (("api -X DELETE x", "calls any method of the API"), ("repo delete x", "deletes repositories")),
    "curl": (("-d x https://example.com", "sends data to any host"), ("-o x https://example.com", "writes a file")),
    "wget": (
        ("https://example.com", "writes a file"),
        ("--post-file=x https://example.com", "sends files to any host"),
    ),
    "scp": (("x y:", "copies files to another machine"),),
    "rsync": (("x y:", "copies files to another machine"),),
    "find": ((". -delete", "deletes files"),),
    "rm": (("-rf .", "deletes all of the workspace"),),
    "sed": (("-i s/a/b/ x", "changes files"), ("-n '1e x'", "runs a program")),
    "awk": (("'BEGIN{system(\"x\")}'", "runs a program"),),
    "vi": (("-c '!x'", "runs a program"),),
    "vim": (("-c '!x'", "runs a program"),),
    "tar": (("-xf x -C ..", "writes files outside"), ("-cf x --checkpoint-action=exec=x .", "runs a program")),
    "psql": (("-c 'DROP TABLE x'", "changes the database"),),
    "sqlite3": (("x '.shell x'", "runs a program"),),
    "mysql": (("-e 'DROP TABLE x'", "changes the database"),),
}
MOST_OPTIONS = 8
ORDER = {"run": 0, "code": 0, "delete": 1, "edit": 1}
"""Options whose harm is plain come first."""


def endings(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield words to put behind `words` (a program and subcommands written out), and what the whole then does."""
    yield from told(words)
    program = known(words)
    if program is not None:
        yield from harmful(program)


def told(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the hazards of the table that begin with what is already written."""
    name, *written = words
    for text, what in HAZARDS.get(name.rsplit("/", 1)[-1], ()):
        parts = text.split(" ")
        if parts[: len(written)] == written:
            yield " ".join(parts[len(written) :]), what


def known(words: tuple[str, ...]) -> Program | None:
    """Return the program or subcommand that `words` name; None for what is not in the table."""
    program = find(words[0].rsplit("/", 1)[-1])
    for word in words[1:]:
        program = program.subs.get(word) if program is not None else None
    return program


def harmful(program: Program) -> Iterator[tuple[str, str]]:
    """Yield the options of a program that make it run or write something else."""
    options = {option.names: option for option in program.syntax.options.values() if option.harms}
    plainest = sorted(options.values(), key=lambda option: ORDER.get(option.value, len(ORDER)))
    for option in plainest[:MOST_OPTIONS]:
        yield spelled(option), f"`{option.names[-1]}` makes it {deed(option)}"


def deed(option: Option) -> str:
    """Say what an option makes its program do."""
    if option.value in {"run", "code"}:
        return "run a program"
    return {"edit": "write a file", "delete": "delete files"}.get(option.value, "write or run something else")


def spelled(option: Option) -> str:
    """Return an option with a value, as one writes it."""
    name = option.names[-1]
    if not option.value:
        return name
    return f"{name}=x" if name.startswith("--") or option.glued else f"{name} x"
