"""`policyd proxy`: runs an agent under policy, standing between the agent and its client.

    main(["--policy", "ci.toml", "--", "agent", "--acp"]) -> exit code

Rules of this package:

1. The agent is started before anything heavy is imported (this module, `options` and `agent` need `os`, `sys` and C
   modules alone); policyd loads while the agent boots.
2. Not one byte passes either way until the policy is loaded. A policy that cannot be loaded ends the agent: exit 2.
3. An error in the loop ends the agent too: nothing passes without the enforcement.
4. Everything that is not a matter of policy works as without policyd: bytes, standard error, ends of files, signals,
   the exit status (a signal that ended the agent ends policyd).

Exit codes: the agent's; 2 usage, settings or policy; 5 with `--fail-on-reject`; 126, 127 the agent cannot be started;
70 policyd failed.
"""

from __future__ import annotations

import os
import sys

from policyd.proxy.options import USAGE, Options, UsageError, parse

FAILED = 70


def main(argv: list[str]) -> int:
    """Run the words behind `policyd proxy`; return the exit code."""
    try:
        options = parse(argv)
        enter(options)
    except UsageError as error:
        return say(f"policyd proxy: {error}", 2)
    except OSError as error:
        return say(f"policyd proxy: --cwd {options.cwd}: {error.strerror}", 2)
    if options.help:
        sys.stdout.write(USAGE)
        return 0
    if not options.command:
        from policyd.proxy.alone import answer_alone

        return answer_alone(USAGE)
    if os.isatty(0) and os.isatty(1):
        from policyd.proxy.terminal import become

        return become(options)
    from policyd.proxy.agent import cannot_start, start

    try:
        agent = start(options.command)
    except OSError as error:
        code, text = cannot_start(options.command, error)
        return say(text, code)
    try:
        import gc

        gc.disable()  # what is imported and loaded now stays; the run turns it on again
        spare_imports()
        from policyd.proxy.run import run

        return leave(run(agent, options))
    except BaseException as error:
        agent.end()
        if isinstance(error, KeyboardInterrupt):
            return say("policyd: interrupted before the policy was loaded; the agent was ended", 130)
        import traceback

        traceback.print_exc()
        return leave(say("policyd: failed, and has ended the agent", FAILED))


def spare_imports() -> None:
    """Import `msgspec` without slow imports that it does not need here.

    It works without `typing_extensions`; before Python 3.13 `uuid` imports `platform` only for the name of the system;
    only its JSON Schemas, which are not used here, need `textwrap`.
    """
    if {"msgspec", "typing_extensions", "platform", "textwrap"} & sys.modules.keys():
        return
    from types import SimpleNamespace

    spared = {
        "typing_extensions": None,
        "platform": SimpleNamespace(system=lambda: os.uname().sysname),
        "textwrap": SimpleNamespace(dedent=str),
    }
    modules: dict[str, object] = sys.modules  # type: ignore[assignment]
    modules.update(spared)
    try:
        import msgspec  # noqa: F401
    finally:
        for name in spared:
            del modules[name]


def leave(code: int) -> int:
    """End this process at once: everything is written, and no thread that watches files is waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def enter(options: Options) -> None:
    """Make the names of files absolute, then go where the agent is to start."""
    options.policies = [os.path.abspath(policy) for policy in options.policies]
    options.home = options.home and os.path.abspath(options.home)
    if options.audit:
        options.audit = os.path.abspath(options.audit) + ("/" if options.audit.endswith("/") else "")
    if options.cwd is not None:
        os.chdir(options.cwd)


def say(text: str, code: int) -> int:
    """Write a line to standard error; return `code`."""
    sys.stderr.write(text + "\n")
    return code
