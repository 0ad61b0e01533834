"""Recorded requests of real agents, and what grants make of them."""

from __future__ import annotations

from policyd import engine
from policyd.grants import GrantBook, Offer, offers
from policyd.model import Context, Decision, Effect, Layer, Request
from policyd.policy import Policy, PolicySource, load
from tests.asking import CLOCK
from tests.fakes import FakeFilesystem

POLICY: Policy = load(
    [PolicySource("user.toml", b'version = 1\n[defaults]\n"*" = "ask"\n', Layer.USER)],
    home="/home/dev",
    tmpdir="/tmp",
    version="0.1.0",
)
FILES = FakeFilesystem()


def exact(request: Request, decision: Decision, context: Context) -> Offer | None:
    """The exact "always" of the project, where there is one."""
    for offer in offers(request, decision, context, root=root(context)):
        if (offer.effect, offer.scope, offer.general) == (Effect.ALLOW, "project", False):
            return offer
    return None


def root(context: Context) -> str:
    return context.workspace.cwd or ""


def decided(offer: Offer, request: Request, context: Context, project: str) -> Effect:
    """What is decided of a request once the offer was taken."""
    book = GrantBook(project, (offer.grant(clock=CLOCK),), "run")
    return engine.decide(request, POLICY, context, FILES, book.bind(request, context, CLOCK)).effect
