"""Asking a person: the chain of steps, what is shown, client profiles, limits. Pure state; time is an argument.

`now` is seconds of a monotonic clock (`Moment.mono`); nonces are passed in.

    profile = clients.find("Zed")                            # unknown or "": the careful default
    steps   = parse_chain(("client", "command:/abs/hook", "inbox"), timeouts={"client": 120.0})
    chain   = usable(steps, profile)                         # without `client` if no person is behind it
    question = ask(request, decision, context, profile, root=…, tool_call=params["toolCall"])
    desk = Desk((Limits(), shared))                          # one per session; `shared` per connection
    match desk.admit(question, waiter, now):                 # waiter: any hashable, the request's id
        Refused(outcome)                                     # over a limit, or rejected thrice: answer it
        Joined(prompt)                                       # an identical one is open: wait for its outcome
        Opened(fingerprint)                                  # then: prompt = Prompt(chain, question, profile, nonce=…)
                                                             #       desk.opened(fingerprint, prompt)
    for command in prompt.start(now): …                      # ToClient | ToStep | Stop
    prompt.chosen(step, option_id, now)                      # the client selected an option
    prompt.refused(step, why, now)                           # the client cancelled, or answered nonsense
    prompt.replied(step, answer, now)                        # another step's JSON object; None = it abstains
    prompt.failed(step, why, now)                            # a step could not be run: it abstains
    prompt.tick(now); prompt.deadline                        # timeouts become rejections
    prompt.withdraw(why)                                     # session/cancel, a closed side, a deny added meanwhile
    prompt.outcome                                           # Outcome(effect, by, reason, option, offer) or None
    desk.close(prompt, now)                                  # -> the waiters to answer, each judged again first

Each call returns the commands it leads to; late or repeated calls are ignored. An empty chain needs no question and
no desk: `unasked(decision.rules, decision.reason, profile)` is the rejection that says so.

1. A yes is only an explicit choice of an offered option, or a step's JSON object with the right nonce and digest and an
   explicit decision. Everything else abstains or rejects, and the end of the chain is a rejection.
2. The outcome's `effect` is an answer, not a decision: the caller judges again under the current policy.
3. An "always" that comes back faster than a person can answer counts once, and its outcome carries no offer.
"""

from __future__ import annotations

from policyd.prompts.chain import Step, parse_chain, usable
from policyd.prompts.clients import Client, find
from policyd.prompts.desk import Desk, Joined, Limits, Opened, Refused
from policyd.prompts.prompt import Outcome, Prompt, PromptCommand, Stop, ToClient, ToStep, unasked
from policyd.prompts.question import Choice, Question, ask

__all__ = [
    "Choice",
    "Client",
    "Desk",
    "Joined",
    "Limits",
    "Opened",
    "Outcome",
    "Prompt",
    "PromptCommand",
    "Question",
    "Refused",
    "Step",
    "Stop",
    "ToClient",
    "ToStep",
    "ask",
    "find",
    "parse_chain",
    "unasked",
    "usable",
]
