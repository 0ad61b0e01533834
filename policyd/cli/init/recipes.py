"""Recipes: the settings with which each client starts an agent through `policyd proxy`.

Rules of this module:

1. Every program has an absolute path. Settings reach policyd by arguments, never by variables: clients drop these.
2. JSON is printed ready to paste; notes for the person are separate (`Recipe.notes`).
3. acpx answers every question by its flags, so policyd gets `--prompt none` there and acpx `--approve-all`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping

from msgspec import Struct

from policyd.cli.advice import Advice

ACPX_FLAGS = (
    "run it as `acpx --approve-all …`: policyd answered every question and judged what acpx still approves, the "
    "agent's fs and terminal calls. Any other pair is wrong: without `--prompt none` only acpx's name keeps its flags "
    "from answering what policy wanted asked (its default says yes to every read), and it takes another name for some "
    "agents; without --approve-all acpx refuses the writes and terminals that policy allowed"
)


class Recipe(Struct, frozen=True):
    """Configuration of one client for one agent."""

    text: str
    """The text to paste, or the command to run."""
    file: str = ""
    """The file it belongs in, `~/` for home; empty if no program should write it."""
    table: dict[str, object] | None = None
    """The same as a table, if it can be merged into `file`."""
    why_not: str = ""
    """Why `--write` does not write it."""
    notes: tuple[str, ...] = ()
    comments: bool = False
    """Whether the client reads comments in `file`."""


def proxied(policyd: list[str], agent: list[str], *options: str) -> list[str]:
    """Return the command that starts `agent` under policy."""
    return [*policyd, "proxy", *options, "--", *agent]


def zed(advice: Advice, short: str, policyd: list[str], agent: list[str]) -> Recipe:
    """`agent_servers` of Zed's settings."""
    command, *args = proxied(policyd, agent)
    entry = {"type": "custom", "command": command, "args": args, "env": {}}
    notes = [
        'an agent from Zed\'s registry (`"type": "registry"`) cannot be wrapped: use this entry in its place',
        "`default_mode` and `default_config_options` of the entry cannot leave the asking mode: policyd refuses them",
    ]
    if advice.zed:
        notes.append(f"keep the key `{advice.zed}`: Zed treats it specially")
    table = {"agent_servers": {advice.zed or labelled(advice): entry}}
    return json_recipe(table, "~/.config/zed/settings.json", notes, comments=True)


def jetbrains(advice: Advice, short: str, policyd: list[str], agent: list[str]) -> Recipe:
    """`agent_servers` of the JetBrains IDEs."""
    command, *args = proxied(policyd, agent)
    table = {"agent_servers": {labelled(advice): {"command": command, "args": args, "env": {}}}}
    return json_recipe(table, "~/.jetbrains/acp.json", ["agents the IDE installed itself are not wrapped by this"])


def acpx(advice: Advice, short: str, policyd: list[str], agent: list[str]) -> Recipe:
    """`agents` of acpx."""
    table = {"agents": {short: {"argv": proxied(policyd, agent, "--prompt", "none")}}}
    notes = [
        ACPX_FLAGS,
        "<cwd>/.acpxrc.json overrides this entry: a repository can take the wrapper away; `acpx --agent '…'` cannot be "
        "overridden",
    ]
    return json_recipe(table, "~/.acpx/config.json", notes)


def codecompanion(advice: Advice, short: str, policyd: list[str], agent: list[str]) -> Recipe:
    """An adapter of codecompanion.nvim."""
    adapter = advice.codecompanion or short.replace("-", "_")
    text = f"""require("codecompanion").setup({{
  adapters = {{
    acp = {{
      {adapter} = function()
        return require("codecompanion.adapters").extend("{adapter}", {{
          commands = {{
            default = {lua_list(proxied(policyd, agent), 12)},
          }},
        }})
      end,
    }},
  }},
}})
"""
    notes = [
        "an adapter's other commands (`yolo`) are lists of their own, not wrapped by this: leave them out",
        'its user sees an option\'s kind, never its name: policyd offers one "always", for exactly the action shown',
    ]
    if not advice.codecompanion:
        notes.append(f"codecompanion ships no adapter for {advice.title}: extend the one you use")
    return Recipe(text, why_not="it is Lua, which a program does not merge safely", notes=tuple(notes))


def avante(advice: Advice, short: str, policyd: list[str], agent: list[str]) -> Recipe:
    """A provider of avante.nvim."""
    command, *args = proxied(policyd, agent, "--client", "avante")
    text = f"""require("avante").setup({{
  provider = "{short}",
  acp_providers = {{
    ["{short}"] = {{
      command = {lua(command)},
      args = {lua_list(args, 6)},
      env = {{}},
    }},
  }},
  -- avante answers every question by itself unless this is off.
  behaviour = {{ auto_approve_tool_permissions = false }},
}})
"""
    notes = [
        "avante gives no name of its own: `--client avante` says who asks",
        "avante passes on PATH and this `env`, nothing else: add the variables the agent logs in with",
        "keep `auto_approve_tool_permissions = false`: as it comes, avante answers every question itself",
        'with `confirmation_ui_style = "popup"` its `all` is a rejection: keep the buttons',
    ]
    return Recipe(text, why_not="it is Lua, which a program does not merge safely", notes=tuple(notes))


def toad(advice: Advice, short: str, policyd: list[str], agent: list[str]) -> Recipe:
    """A command line of toad."""
    text = f"toad acp {shlex.quote(shlex.join(proxied(policyd, agent)))}\n"
    notes = ["the agents of toad's own menu are not wrapped, and it has no file to change that"]
    return Recipe(text, why_not="toad takes it on its command line", notes=tuple(notes))


CLIENTS: dict[str, Callable[[Advice, str, list[str], list[str]], Recipe]] = {
    "zed": zed,
    "jetbrains": jetbrains,
    "codecompanion": codecompanion,
    "avante": avante,
    "toad": toad,
    "acpx": acpx,
}
"""Client -> its recipe, from the advice on an agent, its short name, and the commands of policyd and the agent."""


def labelled(advice: Advice) -> str:
    """Return the entry's name, which people see."""
    return f"{advice.title} (policyd)"


def json_recipe(table: Mapping[str, object], file: str, notes: list[str], *, comments: bool = False) -> Recipe:
    """Return a recipe that is merged into a JSON file."""
    return Recipe(dumped(table), file, dict(table), notes=tuple(notes), comments=comments)


def dumped(table: Mapping[str, object]) -> str:
    """Return a table as JSON for people."""
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def lua(text: str) -> str:
    """Return a Lua string; the escapes JSON uses for quotes, backslashes and control characters differ in one."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " else f"\\{ord(char):03d}" for char in quoted) + '"'


def lua_list(words: list[str], indent: int) -> str:
    """Return a Lua list, one word a line, closed at `indent`."""
    space = " " * indent
    return "{\n" + "".join(f"{space}  {lua(word)},\n" for word in words) + space + "}"
