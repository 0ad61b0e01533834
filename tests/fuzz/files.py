"""Laws of what lies in files: policies, grants, and what hooks print."""

from __future__ import annotations

import json
import tomllib

from policyd.actions import Machine
from policyd.authorizer import Authorizer, check_examples
from policyd.grants import dump
from policyd.grants import load as load_grants
from policyd.model import Effect, Layer, Source
from policyd.policy import PolicyError, PolicySource, load
from policyd.prompts import Prompt, ToStep, ask, find, parse_chain
from policyd.service.hooks import HookError, answer_of
from tests.asking import ROOT, context, decision, request, run
from tests.commandrows import CWD, FILES, HOME, OPTIONS
from tests.fuzz.law import hold

MACHINE = Machine(home=HOME, fs=FILES)
ASKED = (
    {"kind": "execute", "rawInput": {"command": "git push --force && cat .env"}},
    {"kind": "edit", "rawInput": {"path": "src/a.py"}},
    {"kind": "fetch", "rawInput": {"url": "https://docs.python.org/3/"}},
    {"kind": "other", "title": "mcp__github__create_issue", "rawInput": {"a": 1}},
)
QUESTION = ask(request(run("npm", "test")), decision(request(run("npm", "test"))), context(), find("zed"), root=ROOT)


def check_policy(data: bytes) -> None:
    """A policy file is refused with diagnostics, or everything can be asked of it."""
    for layer in (Layer.USER, Layer.MANAGED, Layer.PROJECT):
        source = PolicySource("policy.toml", data, layer, root=CWD if layer is Layer.PROJECT else None)
        try:
            policy = load([source], home=HOME, tmpdir="/tmp", fs=FILES, version="0.1.0")
        except PolicyError as error:
            hold(error.diagnostics, "refused without saying why", data)
            hold(all(one.found and one.line >= 0 for one in error.diagnostics), "a diagnostic that says nothing", data)
            continue
        tomllib.loads(data.decode())
        check_examples(policy, MACHINE)
        point = Authorizer(policy, machine=MACHINE, cwd=CWD)
        for call in ASKED:
            found = point.decide({"sessionId": "s", "toolCall": {"toolCallId": "c", **call}, "options": OPTIONS})
            hold(found.source is not Source.ERROR, "a policy that loads fails when asked", found.reason, data)


def check_grants(data: bytes) -> None:
    """A damaged file allows nothing; what is read is written and read the same."""
    text = data.decode("utf-8", "replace")
    found = load_grants(text)
    if found.damage:
        hold(all(grant.effect is Effect.DENY for grant in found.grants), "a damaged file allows", text)
    if found.damage or found.seen is None:
        return
    again = load_grants(dump(found.grants, found.project, found.seen))
    hold(not again.damage and set(again.grants) == set(found.grants), "read otherwise once written", text, again.damage)


def check_hook(data: bytes) -> None:
    """A hook is a yes only if any parser reads an allow with the nonce and digest of the question."""
    prompt = Prompt(parse_chain(["command:/hook"]), QUESTION, find("zed"), "n0nce")
    (step,) = prompt.start(0.0)
    if not isinstance(step, ToStep):
        raise TypeError(step)
    nonce, digest = str(step.payload["nonce"]), str(step.payload["digest"])
    output = data.replace(b"NONCE", nonce.encode()).replace(b"DIGEST", digest.encode())
    try:
        answer = answer_of(output)
    except HookError as error:
        prompt.failed(0, str(error), 1.0)
        hold(prompt.outcome is None or prompt.outcome.effect is Effect.DENY, "a failed hook allows", output)
        return
    prompt.replied(0, answer, 1.0)
    if prompt.outcome is not None and prompt.outcome.effect is not Effect.DENY:
        for said in (json.loads(output), json.loads(output, object_pairs_hook=lambda pairs: dict(reversed(pairs)))):
            right = (said["nonce"], said["digest"], said["decision"]) == (nonce, digest, "allow")
            hold(right, "a hook is a yes that says none", output)
