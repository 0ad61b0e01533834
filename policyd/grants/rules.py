"""Grants as rules of a policy, if the policy language can express exactly what they cover."""

from __future__ import annotations

from collections.abc import Iterable

from policyd.display import in_toml
from policyd.grants.grant import Grant
from policyd.grants.text import conditions

HEAD = "version = 1\n"


def unwritable(grant: Grant) -> str:
    """Return why no rule covers exactly what a grant does, empty if one does."""
    member = grant.members[0]
    if len(grant.members) > 1:
        return "it covers several actions only together; a rule would allow each alone"
    if member.mention or member.via or member.fed or member.reach != "entry":
        return "the policy language cannot express where the action was found"
    if member.arguments:
        return "it covers one input of a tool; write a rule with `input`"
    if member.resource == "url" and any(set(word) & set("*[]{}") for word in member.words):
        return "the URL holds a `*`, bracket or brace, which a rule would read as a pattern"
    if any(place.startswith("/") for place in member.cwd):
        return "its directory lies outside the project"
    return ""


def policy_text(grants: Iterable[Grant], *, head: bool = True) -> str:
    """Return the grants that can be rules as `[[rule]]` tables; `head` adds the beginning of a new file."""
    import tomli_w

    rules = [_rule(grant) for grant in grants if not unwritable(grant)]
    tables = "".join("\n" + in_toml(tomli_w.dumps({"rule": [rule]})) for rule in rules)
    return f"{HEAD}{tables}" if head else tables


def _rule(grant: Grant) -> dict[str, object]:
    member = grant.members[0]
    table = dict(conditions(member))
    if member.resource == "url":
        # A URL pattern has no escapes: only `*` means something in it.
        table["url"] = list(member.words)
    named = {"id": grant.id, "effect": grant.effect.word, "agent": [grant.agent]}
    return {**named, **table, "reason": f"remembered: {grant.covers}"}
