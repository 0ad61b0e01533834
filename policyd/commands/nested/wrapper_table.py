"""Programs that run the words behind them, with the options they take. Data only.

Each entry is read from the program's own manual (GNU coreutils 9, findutils 4.9, util-linux 2.38, sudo 1.9, OpenSSH 9,
bash 5.2, GNU parallel, procps, strace; the manuals of the language tools named). An option that is not listed may or
may not take the next word; both are read then, and the command is opaque.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct


class Wrapper(Struct, frozen=True):
    """How a wrapper reads its words."""

    flags: frozenset[str] = frozenset()
    """Options without a value, or with one that counts only when glued on."""
    valued: frozenset[str] = frozenset()
    """Options that take the next word (or a glued value)."""
    plain: frozenset[str] = frozenset()
    """The options with which an allow rule may look through it; the others change what it does."""
    transparent: bool = False
    """An allow rule may look through it at all."""
    scripts: frozenset[str] = frozenset()
    """Options whose value is shell text that it runs."""
    places: frozenset[str] = frozenset()
    """Options whose value is the directory it runs in."""
    empty: frozenset[str] = frozenset()
    """Options with which it runs nothing (`command -v`)."""
    skip: int = 0
    """Operands before the command; `ALL`: its operands are no command."""
    assigns: bool = False
    """`NAME=value` words may stand before the command."""
    joined: bool = False
    """The words are joined with blanks and given to a shell."""
    input: bool = False
    """It adds words that it reads."""
    away: bool = False
    """It runs the command in a place that cannot be told."""
    here: bool = False
    """The command runs in this very shell."""
    shell: bool = False
    """Without a command it starts a shell."""
    numbers: bool = False
    """`-10` is an option."""


ALL = 99


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _wrapper(
    flags: str = "",
    valued: str = "",
    *,
    plain: str = "",
    transparent: bool = False,
    scripts: str = "",
    places: str = "",
    empty: str = "",
    skip: int = 0,
    kind: str = "",
) -> Wrapper:
    """Make an entry; `kind` lists the boolean fields that are true."""
    kinds = _set(kind)
    return Wrapper(
        _set(flags) | _set(empty),
        _set(valued) | _set(scripts) | _set(places),
        _set(plain),
        transparent,
        _set(scripts),
        _set(places),
        _set(empty),
        skip,
        "assigns" in kinds,
        "joined" in kinds,
        "input" in kinds,
        "away" in kinds,
        "here" in kinds,
        "shell" in kinds,
        "numbers" in kinds,
    )


_SUDO_FLAGS = """
-A -b -B -E -H -i -K -k -l -n -N -P -S -s -v -e --askpass --background --bell --preserve-env --set-home --login
--remove-timestamp --reset-timestamp --list --non-interactive --no-update --preserve-groups --stdin --shell --validate
--edit
"""
_SUDO_VALUED = """
-C -g -h -p -r -T -t -u -U --close-from --group --host --prompt --role --command-timeout --type --user --other-user -R
--chroot
"""
_XARGS_FLAGS = """
-0 -o -p -r -t -x -i -l -e --null --open-tty --interactive --no-run-if-empty --verbose --exit --replace --max-lines
--eof --show-limits
"""
_XARGS_VALUED = """
-a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var
"""
_PARALLEL_FLAGS = """
-0 -k -X -m -u -t -v -q -r --bar --citation --dry-run --dryrun --eta --group --halt-on-error --keep-order --line-buffer
--lb --no-notice --no-run-if-empty --null --pipe --progress --quote --resume --tag --tty --ungroup --verbose --will-cite
--xargs --plus --linebuffer
"""
_PARALLEL_VALUED = """
-a -C -d -I -j -L -n -N -P -S -s --arg-file --block --colsep --delay --delimiter --halt --jobs --joblog --load
--max-args --max-procs --max-replace-args --memfree --nice --recend --recstart --results --retries --rpl --sshlogin
--tagstring --timeout --tmpdir --workdir --wd --env
"""
_SSH_VALUED = "-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w"
_SSH_FLAGS = "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y"
_UNSHARE_FLAGS = """
-C -c -f -i -m -n -p -r -T -u -U --cgroup --fork --ipc --keep-caps --kill-child --map-auto --map-current-user
--map-root-user --mount --mount-proc --net --pid --time --user --uts
"""
_UNSHARE_VALUED = "-G -R -S -w --boottime --monotonic --propagation --root --setgid --setgroups --setuid --wd"
_STRACE_FLAGS = (
    "-A -c -C -d -D -DD -DDD -f -F -ff -h -i -k -n -N -q -qq -qqq -r -t -tt -ttt -T -v -V -w -x -xx -y -yy -z -Z"
)
_STRACE_VALUED = "-a -b -e -E -I -o -O -p -P -s -S -u -U -X --trace --output --string-limit --user"
_SETPRIV_VALUED = """
--ambient-caps --bounding-set --egid --euid --gid --groups --inh-caps --pdeathsig --regid --reuid --rgid --ruid
--securebits --selinux-label --apparmor-profile
"""
_RUN_UNIT_VALUED = """
-p -u -M -H -E -d --description --gid --host --machine --nice --property --setenv --slice --unit --uid
--working-directory --on-active --on-calendar --on-boot --on-startup --on-unit-active --service-type
"""
_RUN_UNIT_FLAGS = "-t -P -S -q -r -G --collect --pipe --pty --quiet --scope --shell --system --user --wait --no-block"
_LOGIN_FLAGS = "-l -m -p -P --login --preserve-environment --pty"
_LOGIN_VALUED = "-g -G -s -w --group --supp-group --shell --whitelist-environment"

_TIMEOUT = _wrapper(
    "-f -p -v --foreground --preserve-status --verbose",
    "-k -s --kill-after --signal",
    plain="-f -p -v --foreground --preserve-status --verbose -k -s --kill-after --signal",
    transparent=True,
    skip=1,
)

WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        # transparent: an allow rule may look through them, with the options listed as plain
        "time": _wrapper(
            "-p -a -v -q -l -h --append --verbose --portability --quiet",
            "-f -o --format --output",
            plain="-p",
            transparent=True,
            kind="here assigns",
        ),
        **dict.fromkeys(("timeout", "gtimeout"), _TIMEOUT),
        "nice": _wrapper("", "-n --adjustment", plain="-n --adjustment", transparent=True, kind="numbers"),
        "nohup": _wrapper(transparent=True),
        "stdbuf": _wrapper(
            "",
            "-i -o -e --input --output --error",
            plain="-i -o -e --input --output --error",
            transparent=True,
        ),
        "env": _wrapper(
            "- -i -0 -v --ignore-environment --null --debug --block-signal --default-signal --ignore-signal "
            "--list-signal-handling",
            "-u -a -P -S --unset --argv0 --split-string",
            plain="- -i -u -v -C --ignore-environment --unset --debug --chdir",
            places="-C --chdir",
            transparent=True,
            kind="assigns",
        ),
        "command": _wrapper("-p", plain="-p", empty="-v -V", transparent=True, kind="here"),
        "exec": _wrapper("-c -l", "-a", transparent=True),
        # the shell's own
        "builtin": _wrapper(kind="here"),
        "eval": _wrapper(kind="joined here"),
        "nocorrect": _wrapper(kind="here assigns"),
        "noglob": _wrapper(kind="here assigns"),
        "coproc": _wrapper(kind="assigns"),
        # other rights
        "sudo": _wrapper(_SUDO_FLAGS, _SUDO_VALUED, places="-D --chdir", empty="-V --version", kind="assigns shell"),
        "doas": _wrapper("-L -n -s", "-a -C -u", kind="shell"),
        "pkexec": _wrapper("--disable-internal-agent --keep-cwd", "--user", kind="shell"),
        "su": _wrapper(
            "- -f " + _LOGIN_FLAGS, _LOGIN_VALUED, scripts="-c --command --session-command", skip=ALL, kind="shell"
        ),
        "runuser": _wrapper("- -f " + _LOGIN_FLAGS, _LOGIN_VALUED + " -u --user", scripts="-c --command"),
        "sg": _wrapper("-", scripts="-c", skip=1, kind="shell joined"),
        "gosu": _wrapper(skip=1),
        "su-exec": _wrapper(skip=1),
        "setpriv": _wrapper(
            "-d --clear-groups --dump --init-groups --keep-groups --no-new-privs --nnp --reset-env", _SETPRIV_VALUED
        ),
        "capsh": _wrapper("--print", scripts="-c", kind="shell"),
        # words from elsewhere
        "xargs": _wrapper(_XARGS_FLAGS, _XARGS_VALUED, kind="input"),
        "gxargs": _wrapper(_XARGS_FLAGS, _XARGS_VALUED, kind="input"),
        "parallel": _wrapper(_PARALLEL_FLAGS, _PARALLEL_VALUED, kind="input joined shell"),
        "entr": _wrapper("-a -c -d -n -p -r -x -z", scripts="-s", kind="input"),
        # another place
        "ssh": _wrapper(_SSH_FLAGS, _SSH_VALUED, skip=1, kind="joined away shell"),
        "mosh": _wrapper(skip=1, kind="away shell"),
        "chroot": _wrapper("--skip-chdir", "--groups --userspec", skip=1, kind="away shell"),
        "unshare": _wrapper(_UNSHARE_FLAGS, _UNSHARE_VALUED, kind="shell"),
        "nsenter": _wrapper(
            "-a -m -u -i -n -p -C -U -T -r -w -F --all --mount --uts --ipc --net --pid --user --no-fork --root --wd",
            "-t -S -G --target --setuid --setgid",
            kind="away shell",
        ),
        "bwrap": _wrapper(
            "--unshare-all --share-net --die-with-parent --new-session", "--proc --dev --tmpfs", kind="away"
        ),
        "firejail": _wrapper(kind="shell"),
        "sandbox-exec": _wrapper("", "-f -n -p -D"),
        "proot": _wrapper("", "-r -b -w -q", kind="away shell"),
        # time, priority, terminals, sessions
        "watch": _wrapper(
            "-b -c -C -d -e -g -p -r -t -w -x --beep --color --no-color --differences --errexit --chgexit --precise "
            "--no-rerun --no-title --no-wrap --exec",
            "-n -q --interval --equexit",
            kind="joined",
        ),
        "setsid": _wrapper("-c -f -w --ctty --fork --wait"),
        "ionice": _wrapper("-t --ignore", "-c -n -p -P -u --class --classdata --pid --pgid --uid"),
        "chrt": _wrapper("-a -b -d -f -i -m -o -r -R -v --all-tasks --batch --fifo --idle --other --rr", skip=1),
        "taskset": _wrapper("-a -c --all-tasks --cpu-list", "-p --pid", skip=1),
        "numactl": _wrapper("-a -l --all --localalloc", "-C -N -m -i -p --cpunodebind --membind --physcpubind"),
        "choom": _wrapper("", "-n -p --adjust --pid"),
        "prlimit": _wrapper("--noheadings --raw --verbose", "-p -o --pid --output"),
        **dict.fromkeys(
            ("setarch", "linux32", "linux64", "uname26", "i386", "i686", "x86_64"),
            _wrapper(
                "-B -F -I -L -R -S -T -X -Z -3 -v --32bit --fdpic-funcptrs --short-inode --addr-compat-layout --3gb "
                "--4gb --addr-no-randomize --whole-seconds --sticky-timeouts --read-implies-exec --mmap-page-zero "
                "--uname-2.6 --verbose",
                "-p --pid",
                kind="shell",
            ),
        ),
        "arch": _wrapper("-32 -64 -x86_64 -arm64 -i386", "-arch -e -d"),
        "flock": _wrapper(
            "-e -F -n -o -s -u -x --close --exclusive --no-fork --nonblock --shared --unlock --verbose",
            "-E -w --conflict-exit-code --timeout --wait",
            scripts="-c --command",
            skip=1,
        ),
        "script": _wrapper(
            "-a -e -f -q --append --return --flush --force --quiet",
            "-B -E -I -m -o -O -t -T --log-io --echo --log-in --log-out --logging-format --output-limit --log-timing",
            scripts="-c --command",
            skip=1,
            kind="shell",
        ),
        "unbuffer": _wrapper("-p"),
        "setuidgid": _wrapper(skip=1),
        "chpst": _wrapper("-v -P -0 -1 -2", "-u -U -b -e -/ -C -n -l -L -m -d -o -p -f -c -r -t"),
        "systemd-run": _wrapper(_RUN_UNIT_FLAGS, _RUN_UNIT_VALUED, kind="away"),
        "systemd-inhibit": _wrapper("--list", "--what --who --why --mode"),
        "dbus-run-session": _wrapper("", "--config-file --dbus-daemon"),
        "xvfb-run": _wrapper("-a -l --auto-servernum --listen-tcp", "-e -f -n -p -s -w --server-args --server-num"),
        "caffeinate": _wrapper("-d -i -m -s -u", "-t -w"),
        "fakeroot": _wrapper("-u -v", "-b -i -l -s --lib --faked"),
        "eatmydata": _wrapper(),
        "chronic": _wrapper("-v -e"),
        "torsocks": _wrapper("-d -i -q", "-a -P -p -u"),
        "torify": _wrapper(),
        "proxychains": _wrapper("-q", "-f"),
        "proxychains4": _wrapper("-q", "-f"),
        "dumb-init": _wrapper("-c -v --single-child", "-r --rewrite"),
        "tini": _wrapper("-g -s -v -w", "-e -p"),
        "ssh-agent": _wrapper("-c -D -d -k -s", "-a -E -O -P -t", kind="shell"),
        "daemonize": _wrapper("-a -v", "-c -e -E -l -o -p -u"),
        # tracing
        "strace": _wrapper(_STRACE_FLAGS, _STRACE_VALUED),
        "ltrace": _wrapper("-b -c -C -f -h -i -L -r -S -t -tt -T", "-a -A -D -e -F -l -n -o -p -s -u -w -x"),
        "valgrind": _wrapper("-q -v --quiet --verbose"),
        "catchsegv": _wrapper(),
        # many programs in one
        "busybox": _wrapper(empty="--list --help"),
        "toybox": _wrapper(),
        # environments of language tools
        "cross-env": _wrapper(kind="assigns"),
        "dotenvx": _wrapper(),
    }
)
"""Program name -> how it reads its words."""

SUBCOMMANDS: Mapping[tuple[str, str], Wrapper] = MappingProxyType(
    {
        ("bundle", "exec"): _wrapper("--keep-file-descriptors"),
        **{
            (name, "run"): _wrapper("-v --no-capture-output --live-stream", "-n -p --name --prefix", places="--cwd")
            for name in ("conda", "mamba", "micromamba")
        },
        ("direnv", "exec"): _wrapper(skip=1),
        ("git", "bisect run"): _wrapper(),
        ("hatch", "run"): _wrapper(),
        **{("mise", verb): _wrapper("-q -v -y", "-j") for verb in ("exec", "x")},
        ("npm", "exec"): _wrapper("-y --yes --no", "-p --package -w --workspace", scripts="-c --call", skip=ALL),
        ("npm", "x"): _wrapper("-y --yes --no", "-p --package -w --workspace", scripts="-c --call", skip=ALL),
        ("pdm", "run"): _wrapper("-s -v"),
        ("pipenv", "run"): _wrapper(),
        **{
            ("pixi", verb): _wrapper("-v -q --list", "-s --spec -w --with -c --channel -p --platform")
            for verb in ("exec", "x")
        },
        ("pixi", "run"): _wrapper("-v -q", "-e --environment --manifest-path"),
        ("poetry", "run"): _wrapper("-q -v -n"),
        ("rbenv", "exec"): _wrapper(),
        ("pyenv", "exec"): _wrapper(),
        ("rye", "run"): _wrapper("-v -q"),
        ("sops", "exec-env"): _wrapper("--background --pristine", "--user", skip=1, kind="joined"),
        ("sops", "exec-file"): _wrapper("--background --no-fifo", "--user --filename", skip=1, kind="joined"),
        ("uv", "run"): _wrapper(
            "-q -v --quiet --verbose --no-sync --frozen --locked --isolated --all-extras --dev --no-dev --offline "
            "--no-project --active --exact --all-packages --no-cache",
            "-p --python --with --with-editable --with-requirements --extra --group --env-file --package --project",
            places="--directory",
        ),
    }
)
"""(program, subcommand) -> how the rest is read."""

SCRIPT_OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "npx": _set("-c --call"),
        "nix-shell": _set("--run --command"),
        "vagrant": _set("-c --command"),
        "mapfile": _set("-C"),
        "readarray": _set("-C"),
        "compgen": _set("-C -W"),
        "complete": _set("-C -W"),
        "bind": _set("-x"),
    }
)
"""Other programs with options whose value is shell text."""

BASH_LIKE = _set("sh bash dash ash ksh ksh93 mksh oksh pdksh rbash yash posh")
"""Shells whose text is read as bash text; the text of the others is only seen by strict rules."""

SHELLS = BASH_LIKE | _set("zsh fish csh tcsh xonsh nu elvish osh ysh")
"""Programs that read shell text."""


class Interpreter(Struct, frozen=True):
    """How a language's interpreter finds its program."""

    code: frozenset[str]
    """Options whose value is the program."""
    valued: frozenset[str] = frozenset()
    quiet: frozenset[str] = frozenset({"--version", "-V", "-v", "--help", "-h"})
    """Options with which it runs nothing."""
    finds: frozenset[str] = frozenset()
    """Options with which it looks for programs itself where none is named."""


_PYTHON = Interpreter(_set("-c -m"), _set("-W -X -Q --check-hash-based-pycs"), _set("--version -V -VV --help -h -?"))
_NODE = Interpreter(
    _set("-e --eval -p --print -pe"),
    _set("-r --require --import --loader --experimental-loader -C --conditions --env-file --title"),
    _set("--version -v --help -h --v8-options"),
    _set("--test"),
)

INTERPRETERS: Mapping[str, Interpreter] = MappingProxyType(
    {
        **dict.fromkeys(_set("python python2 python3 pypy pypy3 ipython"), _PYTHON),
        **dict.fromkeys(_set("node nodejs deno bun ts-node tsx"), _NODE),
        **dict.fromkeys(
            _set("Rscript groovy groovysh ghci runghc runhaskell wish pry iex bpython ptpython clj clojure swift"),
            Interpreter(_set("-e")),
        ),
        **dict.fromkeys(_set("tclsh jshell"), Interpreter(_set(""))),
        "perl": Interpreter(_set("-e -E"), _set("-I")),
        "ruby": Interpreter(_set("-e"), _set("-I -r -C -E"), _set("--version -v --help -h")),
        "php": Interpreter(_set("-r -B -R -f"), _set("-c -d -S -t -z"), _set("--version -v --help -h -i -m")),
        "lua": Interpreter(_set("-e"), _set("-l"), _set("-v")),
        "luajit": Interpreter(_set("-e"), _set("-l -j -b"), _set("-v")),
        "osascript": Interpreter(_set("-e"), _set("-l -s")),
        "guile": Interpreter(_set("-c"), _set("-L -l")),
        "expect": Interpreter(_set("-c")),
        "irb": Interpreter(_set(""), _set("-I -r")),
        "R": Interpreter(_set("-e"), _set("-f -g"), _set("--version --help")),
        "julia": Interpreter(_set("-e -E"), _set("-L -t -p -J")),
        "elixir": Interpreter(_set("-e"), _set("-r -pa -pz -S")),
        "scala": Interpreter(_set("-e"), _set("-cp -classpath")),
        "racket": Interpreter(_set("-e"), _set("-l -t")),
        "ocaml": Interpreter(_set("-e"), _set("-I")),
        "sbcl": Interpreter(_set("--eval"), _set("--load --core")),
        "octave": Interpreter(_set("--eval"), _set("-p")),
        "gnuplot": Interpreter(_set("-e"), _set("-c")),
    }
)
"""Program name (a version such as `3.11` at its end is ignored) -> how it finds its program."""

FEEDS = _set(
    "at batch crontab newgrp nix-shell m4 gdb lldb ed ex vi vim nvim view ftp sftp lftp cmd cmd.exe powershell pwsh "
    "dc sqlite3 duckdb psql mysql mariadb mongo mongosh smbclient"
)
"""Programs that take commands that run programs, some of them later, from their input."""
