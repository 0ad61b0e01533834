"""From what an agent sent to what it would do: evidence, agent profiles, actions.

    conversation = Conversation(Machine(home="/home/dev", fs=fs))
    conversation.observe("c2a", message)                    # every message of both sides, in order
    while conversation.waits(params): …                     # details on their way, as the profile says
    request = conversation.request(params)                  # model.Request with its actions
    request = conversation.side_door("terminal/create", params)

`profiles.find(name, version)` chooses the profile; `policyd/agents/*.toml` are the profiles, as data.
"""

from __future__ import annotations

from policyd.actions import profiles
from policyd.actions.builder import Surroundings
from policyd.actions.conversation import ASKING, OPENING, Conversation
from policyd.actions.derive import derive
from policyd.actions.doors import SIDE_DOORS
from policyd.actions.evidence import Call, Evidence, merge
from policyd.actions.profiles import Profile
from policyd.actions.sessions import Machine, Session

__all__ = [
    "ASKING",
    "OPENING",
    "SIDE_DOORS",
    "Call",
    "Conversation",
    "Evidence",
    "Machine",
    "Profile",
    "Session",
    "Surroundings",
    "derive",
    "merge",
    "profiles",
]
