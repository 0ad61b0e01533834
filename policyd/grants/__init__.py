"""Remembered answers: keys, grants, which "always" may be offered, and when a grant settles an ask. Pure.

Time is an argument (`Clock`), files are strings (`dump`, `load`); `policyd.storage.grantfile` stores them.

    book = GrantBook(root="/real/path/of/project", grants=(…), run="random word of this process")
    book.bind(request, context, clock)         -> Callable[[Judged], Effect | None]   for `engine.decide(grant=…)`
    offers(request, decision, context, root=…) -> tuple[Offer, ...]                   what an "always" may cover
    offer.grant(clock=…, session=…, run=…, by=…, client=…) -> Grant                   for `session.Remember`

Rules, each with its test:

1. A grant changes an ask and nothing else. A deny grant turns an ask into a deny and wins over every allow grant.
2. An allow grant holds for exactly the actions of the request it was given for, all of them, in order; only a deny
   grant reads wide (its members among others, any order, behind wrappers and assignments).
3. It settles an action only if its scope is within the smallest `remember` of the rules asking *now*.
4. Opaque, guarded, menu and escalation asks, and every ask with a floor, have no key and are never settled.
5. A generalisation (`npm run test **`) exists only for programs listed in `programs.toml`, exactly as it was shown.
6. User scope exists only for URLs, tools and absolute paths.
"""

from __future__ import annotations

from policyd.grants.book import GrantBook
from policyd.grants.grant import LONGEST, SCOPES, Clock, Grant
from policyd.grants.keys import Key, agent_name, key
from policyd.grants.offers import Offer, offers
from policyd.grants.text import Loaded, Project, conditions, dump, load

__all__ = [
    "LONGEST",
    "SCOPES",
    "Clock",
    "Grant",
    "GrantBook",
    "Key",
    "Loaded",
    "Offer",
    "Project",
    "agent_name",
    "conditions",
    "dump",
    "key",
    "load",
    "offers",
]
