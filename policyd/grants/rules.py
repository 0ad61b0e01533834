"""Grants written as rules of a policy, where the policy language can say exactly what they cover."""

from __future__ import annotations

from collections.abc import Iterable

from policyd.display import in_toml
from policyd.grants.grant import Grant
from policyd.grants.text import conditions

HEAD = "version = 1\n"


def unwritable(grant: Grant) -> str:
    """Return why a grant cannot be a rule that covers no more than it, empty if it can."""
    member = grant.members[0]
    if len(grant.members) > 1:
        return "it covers several actions only together; a rule would allow each alone"
    if member.mention or member.via or member.fed or member.reach != "entry":
        return "the policy language has no words for where the action was found"
    if member.arguments:
        return "it covers one input of a tool; write a rule with `input`"
    if member.resource == "url" and any(set(word) & set("*[]{}") for word in member.words):
        return "the URL holds a `*`, bracket or brace, which a rule would read as a pattern"
    if any(place.startswith("/") for place in member.cwd):
        return "its directory lies outside the project"
    return ""


def policy_text(grants: Iterable[Grant], *, head: bool = True) -> str:
    """Return the grants as `[[rule]]` tables, those that can be; `head` adds what a new file begins with."""
    import tomli_w

    rules = [_rule(grant) for grant in grants if not unwritable(grant)]
    tables = "".join("\n" + in_toml(tomli_w.dumps({"rule": [rule]})) for rule in rules)
    return f"{HEAD}{tables}" if head else tables


def _rule(grant: Grant) -> dict[str, object]:
    member = grant.members[0]
    told = dict(conditions(member))
    if member.resource == "url":
        # A URL pattern has no escapes: only `*` means something in it.
        told["url"] = list(member.words)
    named = {"id": grant.id, "effect": grant.effect.word, "agent": [grant.agent]}
    return {**named, **told, "reason": f"remembered: {grant.covers}"}
