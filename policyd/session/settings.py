"""The settings of the enforcement. Every default is the strict one, or the one that README names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct, field


class Settings(Struct, frozen=True):
    """Settings of one connection, with locks and layers already applied."""

    agent_mode: str = "enforce"
    """`enforce`, `warn` or `off`: whether the agent is put, and kept, in a mode that asks."""
    strict: bool = False
    """A session whose asking mode cannot be confirmed gets no prompt."""
    fs_read: str = "allow"
    """`allow`: reads through `fs/read_text_file` inside the workspace that no strict rule matches pass; `policy`."""
    on_unasked: str = "record"
    """`record` or `cancel`: what follows a completed call that was never asked though policy denies it."""
    report: str = "tool_call"
    """`tool_call` or `off`: whether a refusal is shown to the person as a synthetic failed tool call."""
    details_after_ms: int = 250
    """How long a request waits for details its agent sends late."""
    hold_s: float = 10.0
    """How long a session's first response is held for the asking mode."""
    prompt: tuple[str, ...] = ("client",)
    """The prompt chain, in order; empty = an ask is rejected at once."""
    prompt_timeouts: Mapping[str, float] = field(default_factory=dict)
    """Seconds by step or kind of step (`policyd.prompts.parse_chain`)."""
    client: str = ""
    """Client profile by name, where the person who starts policyd gives one; else as the client names itself."""
    run: str = ""
    """Random word of this process, for session grants; empty = they are not remembered."""
    grants_max_age: timedelta = timedelta(days=30)
    human_ms: int = 400
    """An "always" that comes back faster counts once and is not remembered."""
    side_doors: bool = True
    """Whether `fs/*` and `terminal/create` are judged."""
    calls_kept: int = 10_000
    """Tool calls remembered a session."""
    open_prompts: int = 8
    """Questions open at once in a session, and in all sessions of a connection together."""
    prompts_a_minute: int = 20
