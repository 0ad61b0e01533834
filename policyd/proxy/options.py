"""The options of `policyd proxy`, parsed without argparse, as little may be imported before the agent runs.

Rules of this module:

1. Everything after `--` is the agent's command, unchanged. Without `--` it begins at the first word that is no option.
2. No option names, moves or skips the managed layer: those exist offline only, and are refused here by name.
"""

from __future__ import annotations

USAGE = """usage: policyd proxy [options] -- AGENT [ARG...]

Run AGENT between its ACP client (on stdin and stdout) and the policy.

  --connect[=SOCKET]       let the daemon decide (default: where its socket usually is)
  --policy FILE            policy file or directory, instead of the user's (repeatable)
  --policy-digest DIGEST   sha256:... of a policy file that lies in the workspace: it may loosen too (repeatable)
  --prompt STEP            who is asked: none, client, inbox, command:/path (repeatable, in order)
  --agent NAME             which agent this is, until it names itself
  --client NAME            which client this is, instead of what it says
  --label KEY=VALUE        a label that rules may name (repeatable)
  --cwd DIR                start the agent in DIR
  --shell NAME             the shell the agent runs commands with: bash, sh, zsh, powershell, cmd
  --home DIR               home directory, with everything policyd keeps below it
  --audit PATH             the audit log, a file or a directory
  --no-grants              remembered answers count for nothing
  --fail-on-reject         exit 5 if the agent ended with 0 and something was refused
  -h, --help               this text
"""

VALUES = {
    "--policy": "policies",
    "--policy-digest": "digests",
    "--prompt": "prompt",
    "--label": "labels",
    "--agent": "agent",
    "--client": "client",
    "--cwd": "cwd",
    "--shell": "shell",
    "--home": "home",
    "--audit": "audit",
}
FLAGS = {"--no-grants": "no_grants", "--fail-on-reject": "fail_on_reject", "--help": "help", "-h": "help"}
SHELLS = ("bash", "sh", "zsh", "powershell", "cmd")
OFFLINE = ("--managed", "--project", "--no-managed", "--no-project", "--unattended")


HERE = ("policies", "digests", "prompt", "shell", "audit", "no_grants")
"""What only counts where policy is loaded."""


class UsageError(Exception):
    """The command line is wrong; the text says how."""


class Options:
    """What the command line said. A list is empty, a text None where nothing was said."""

    __slots__ = (
        "agent",
        "audit",
        "client",
        "command",
        "connect",
        "cwd",
        "digests",
        "fail_on_reject",
        "help",
        "home",
        "labels",
        "no_grants",
        "policies",
        "prompt",
        "shell",
    )

    def __init__(self) -> None:
        """Nothing was said."""
        self.policies: list[str] = []
        self.digests: list[str] = []
        self.prompt: list[str] = []
        self.labels: list[str] = []
        self.agent: str | None = None
        self.client: str | None = None
        self.connect: str | None = None
        """The daemon's socket; empty: where it usually is; None: policy is loaded here."""
        self.cwd: str | None = None
        self.shell: str | None = None
        self.home: str | None = None
        self.audit: str | None = None
        self.no_grants = False
        self.fail_on_reject = False
        self.help = False
        self.command: list[str] = []
        """The agent and its arguments."""


def parse(words: list[str]) -> Options:
    """Read the words behind `policyd proxy`; UsageError says what is wrong."""
    options, rest = Options(), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            options.command = rest
            break
        if not word.startswith("-") or word == "-":
            options.command = [word, *rest]
            break
        take(options, word, rest)
    given = next((name for name in HERE if getattr(options, name)), None)
    if options.connect is not None and given:
        name = next(word for word, field in {**VALUES, **FLAGS}.items() if field == given)
        raise UsageError(f"`{name}` is the daemon's with `--connect`; give it to `policyd serve`")
    return options


def take(options: Options, word: str, rest: list[str]) -> None:
    """Read one option; its value may be the next word."""
    name, equals, value = word.partition("=")
    if name in FLAGS and not equals:
        setattr(options, FLAGS[name], True)
        return
    if name == "--connect":
        # A socket may follow as a word of its own only where `--` says where the agent begins.
        options.connect = value if equals else socket_word(rest)
        return
    if name in OFFLINE:
        raise UsageError(
            f"`{name}` is for offline commands (decide, explain, check); the proxy always loads all layers"
        )
    if name not in VALUES:
        raise UsageError(f"unknown option `{name}`; `policyd proxy --help` lists them")
    if not equals and rest:
        value = rest.pop(0)
    if not value:  # a variable that is not set must not stand for a default, or for this directory
        raise UsageError(f"`{name}` needs a value")
    if name == "--label" and value.find("=") < 1:
        raise UsageError(f"`--label {value}`: write --label KEY=VALUE")
    if name == "--policy-digest" and not is_digest(value):
        raise UsageError(f"`--policy-digest {value}`: write sha256: and the 64 hex digits that `sha256sum FILE` prints")
    if name == "--shell" and value not in SHELLS:
        raise UsageError(f"`--shell {value}`: write one of {', '.join(SHELLS)}")
    kept = getattr(options, VALUES[name])
    if isinstance(kept, list):
        kept.append(value)
    else:
        setattr(options, VALUES[name], value)


def is_digest(text: str) -> bool:
    """Say whether `text` is `sha256:` and a hash as policies are compared by."""
    return text.startswith("sha256:") and len(text) == 71 and not text[7:].strip("0123456789abcdef")


def socket_word(rest: list[str]) -> str:
    """Take the socket's word from what follows `--connect`, empty if there is none."""
    return rest.pop(0) if "--" in rest and rest[0] != "--" and not rest[0].startswith("-") else ""
