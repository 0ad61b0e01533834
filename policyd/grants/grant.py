"""A grant: the remembered answer of a person, its key, its scope and its life. Values only.

1. A grant covers exactly the actions it was given for: its `members`, in order, all of them together. A compound's
   grant neither splits into its parts nor do grants of the parts add up to the compound.
2. It expires by whichever of two clocks runs out first: the wall clock (survives a reboot) and the boot clock (does not
   jump). One that claims to come from the future is void.
3. A `session` grant holds only in the process (`run`) and ACP session it was given in, wherever it is stored; it
   ends when that session is closed, even if one with the same id is opened later.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import astuple, replace

from policyd.digest import sha256
from policyd.grants.keys import Key
from policyd.model import Effect

SCOPES = ("session", "project", "user")
LONGEST = timedelta(days=30)
SESSION_LIFE = timedelta(hours=12)
SKEW = timedelta(seconds=1)


class Clock(Struct, frozen=True):
    """The time by both clocks, as read by the caller."""

    wall: datetime
    """Aware, UTC."""
    boot: float = 0.0
    """Seconds since the machine started, suspend included."""
    boot_id: str = ""
    """Id of this boot of the machine; empty = unknown, then only the wall clock counts."""


class Grant(Struct, frozen=True, gc=False):
    """One remembered answer."""

    id: str
    """`grant_id` of what it covers."""
    effect: Effect
    """ALLOW or DENY."""
    scope: str
    """`session`, `project` or `user`."""
    agent: str
    """Exact wire name of the agent, else its profile."""
    members: tuple[Key, ...]
    """The actions it covers, in the order of the request; never empty."""
    covers: str
    """In words, what the person was shown; safe to display."""
    created: datetime
    until: datetime
    boot: float | None = None
    """Boot clock when it was made; None until storage has stamped it."""
    boot_id: str = ""
    session: str = ""
    """Of a session grant: the ACP session."""
    run: str = ""
    """Of a session grant: the policyd process, a random word."""
    by: str = ""
    """Who answered: `client`, `command`, `inbox`, or `cli`."""
    client: str = ""
    """Name of the client the answer came through, for people."""
    project: str = ""
    """Real path of the project it was given in, which a file of grants holds once for all of them."""

    def __eq__(self, other: object) -> bool:
        """Compare everything but the project, which a file of grants holds once."""
        return isinstance(other, Grant) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        """Hash what it covers."""
        return hash(self.id)

    @property
    def name(self) -> tuple[str, str]:
        """Its identity: sessions of two processes may have the same id, and their grants cover the same."""
        return self.id, self.run

    def capped(self, longest: timedelta) -> Grant:
        """Return the grant with its life limited to `longest`; one beyond `LONGEST` stays void."""
        life = self.until - self.created
        return replace(self, until=self.created + longest) if longest < life <= LONGEST + SKEW else self

    def alive(self, clock: Clock) -> bool:
        """Say whether it still holds at `clock`, by both clocks."""
        if self.created > clock.wall + SKEW or self.until <= clock.wall or self.until - self.created > LONGEST + SKEW:
            return False
        if self.boot is None or not self.boot_id or self.boot_id != clock.boot_id:
            return True
        age = clock.boot - self.boot
        return -SKEW.total_seconds() <= age < (self.until - self.created).total_seconds()


def grant_id(effect: Effect, scope: str, agent: str, members: tuple[Key, ...], session: str) -> str:
    """Return the id of a grant: a digest of what it covers.

    Granting the same again replaces the older grant, and a file in which the two differ is damaged.
    """
    what = (int(effect), scope, agent, tuple(member.parts for member in members), session)
    return "g-" + sha256(ascii(what).encode()).hexdigest()[:12]
