"""Policy inside a client built on the official Python SDK (`agent-client-protocol`).

    guard = Guard(load(["policy.toml"]))
    async with acp.spawn_agent_process(guard.wrap(MyClient()), "agent", observers=[guard.observe]) as (agent, _):
        ...

    settled(Authorizer(…), params)      # one request, without any SDK and event loop

This is the advisory tier: only what the agent asks for is judged, by rules instead of a constant answer.

1. Requests that policy settles never reach the wrapped client; an *ask* does, and its answer is judged once more, by
   all that is known by then.
2. The request is judged as it was on the wire. Without `observe` there is less evidence: until a `session/new` was seen
   no rule with `path` allows, and after a failed observation everything is denied.
3. The agent is told `allow_once` where the person chose "always": memory belongs to the client, not to the agent.
4. Importing this module imports no SDK and starts nothing; cancelling a request leaves nothing behind: a later one for
   the same call is never judged by what the cancelled one said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from policyd.acp import Answer, answer, mislabelled, unsound
from policyd.authorizer import Authorizer, Claims
from policyd.model import Decision, Effect, Request, Source
from policyd.policy import Policy
from policyd.storage import places
from policyd.storage.filesystem import RealFilesystem

MOST_WAITING = 1_000


class Guard:
    """One connection's policy: `observe` goes to the SDK's `observers`, `wrap` around the client."""

    def __init__(
        self, policy: Policy, *, home: str | None = None, claims: Claims | None = None, launched: str | None = None
    ) -> None:
        """Judge by `policy`, resolving paths on this machine.

        Args:
            policy: what `policyd.load` returned.
            home: the home directory `~/` stands for; default the process's user's.
            claims: labels and identity that rules may ask for.
            launched: the directory the agent is started in, as `Authorizer` takes it.

        Raises:
            PlaceError: no home directory is known.
        """
        where = places.find(home=home)
        self.authorizer = Authorizer(
            policy, resolve=RealFilesystem(), home=where.home, claims=claims, launched=launched
        )
        self.broken = ""
        self._waiting: deque[tuple[object, Mapping[str, object]]] = deque(maxlen=MOST_WAITING)
        """Permission requests that were seen and neither taken up nor answered: id and params."""

    def observe(self, event: Any) -> None:  # noqa: ANN401
        """Observe one `acp.connection.StreamEvent`; an exception here denies everything after it."""
        try:
            direction = "a2c" if event.direction.value == "incoming" else "c2a"
            method, ident = event.message.get("method"), event.message.get("id")
            if direction == "a2c" and method == "session/request_permission":
                self._forget(ident)
                self._waiting.append((ident, event.message["params"]))
            elif direction == "c2a" and method is None:
                self._forget(ident)
            self.authorizer.observe(direction, event.message)
        except Exception as error:
            self.broken = f"a message could not be taken in: {type(error).__name__}"

    def wrap(self, client: Any) -> Any:  # noqa: ANN401
        """Return a client that answers permission requests by policy and leaves the rest to `client`."""
        return GuardedClient(self, client)

    def request(self, params: Mapping[str, object]) -> Request:
        """Return a request as actions; `params` as on the wire."""
        return self.authorizer.request(params)

    def decide(self, request: Request) -> Decision:
        """Decide a request at this moment."""
        return self.authorizer.settle(request, now=datetime.now(UTC))

    def again(self, request: Request, params: Mapping[str, object]) -> Decision:
        """Decide again what a person was asked about: both as it was shown, and by all that is known by now."""
        if self.broken:
            return Decision(Effect.DENY, Source.ERROR, self.broken)
        try:
            now = self.request(params)
        except Exception as error:
            return Decision(Effect.DENY, Source.ERROR, unreadable(error))
        return max(self.decide(request), self.decide(now), key=lambda decision: decision.effect)

    def _forget(self, ident: object) -> None:
        """Drop a request that was answered, or whose id is reused."""
        for one in [one for one in self._waiting if one[0] == ident]:
            self._waiting.remove(one)

    def stated(self, session_id: str, call_id: str, read: Mapping[str, object]) -> Mapping[str, object]:
        """Return the wire's own form of a request that the SDK read as `read`; `read` where nobody observed.

        Raises:
            ValueError: requests for this call were observed, and none says this, or several that differ elsewhere.
        """
        mine = [one for one in self._waiting if about(one[1], session_id, call_id)]
        found = [one for one in mine if says(one[1], read)]
        if not mine:
            return read
        if not found or any(one[1] != found[0][1] for one in found):
            raise ValueError("it cannot be told which of the requests that were observed it is")
        self._waiting.remove(found[0])
        return found[0][1]


class GuardedClient:
    """A client of the SDK with policy in front of its `request_permission`; everything else is the wrapped one's."""

    def __init__(self, guard: Guard, client: Any) -> None:  # noqa: ANN401
        self._guard = guard
        self._client = client

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._client, name)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Answer by policy; ask the wrapped client only where policy says *ask*."""
        dumped = {
            "sessionId": session_id,
            "toolCall": dump(tool_call),
            "options": [dump(option) for option in options],
        }
        if self._guard.broken:
            return respond(None, {"effect": "deny", "reason": self._guard.broken})
        try:
            params = self._guard.stated(session_id, tool_call.tool_call_id, dumped)
            request = self._guard.request(params)
        except Exception as error:
            return respond(None, {"effect": "deny", "reason": unreadable(error)})
        decision = self._guard.decide(request)
        chosen = chosen_by(decision, request)
        if chosen.effect is not Effect.ASK:
            return respond(chosen.option, meta(decision, chosen.effect))
        said = await self._client.request_permission(
            session_id=session_id, tool_call=tool_call, options=options, **extra
        )
        option = person_chose(request, getattr(getattr(said, "outcome", None), "option_id", None))
        if option is None or refuses(request, option):
            return respond(option, meta(decision, Effect.DENY))
        again = self._guard.again(request, params)
        if again.effect is Effect.DENY:
            rejected = answer(Effect.DENY, request.options, final=again.final, refusal=request.refusal)
            return respond(rejected.option, meta(again, Effect.DENY))
        return respond(option, meta(decision, Effect.ALLOW))


def settled(point: Authorizer, params: Mapping[str, object]) -> dict[str, object] | None:
    """Return the result to send for a `session/request_permission`, with no SDK; None where a person is to be asked.

    Never raises for what the params hold; a result without an allow stands for whatever fails.
    """
    try:
        request = point.request(params)
    except Exception as error:
        return result(None, {"effect": "deny", "reason": unreadable(error)})
    decision = point.settle(request, now=datetime.now(UTC))
    chosen = chosen_by(decision, request)
    return None if chosen.effect is Effect.ASK else result(chosen.option, meta(decision, chosen.effect))


def result(option_id: str | None, said: Mapping[str, object]) -> dict[str, object]:
    """Return a result for the wire: the option, or `cancelled`, with policyd's reason in `_meta`."""
    picked = {"outcome": "cancelled"} if option_id is None else {"outcome": "selected", "optionId": option_id}
    return {"outcome": picked, "_meta": {"policyd": dict(said)}}


def chosen_by(decision: Decision, request: Request) -> Answer:
    """Return the answer of a decision, given the options of its request."""
    return answer(decision.effect, request.options, final=decision.final, plain=request.plain, refusal=request.refusal)


def unreadable(error: Exception) -> str:
    """Return why a request is refused that could not be read."""
    why = str(error)[:200] if isinstance(error, ValueError) else ""
    return f"the request cannot be read: {why or type(error).__name__}"


def about(params: object, session_id: str, call_id: str) -> bool:
    """Say whether a request is about this call of this session."""
    call = params.get("toolCall") if isinstance(params, Mapping) else None
    known = isinstance(params, Mapping) and params.get("sessionId") == session_id
    return known and isinstance(call, Mapping) and call.get("toolCallId") == call_id


def says(wire: object, read: object) -> bool:
    """Say whether the wire says all that the SDK read from it; the SDK leaves out what it does not know."""
    if isinstance(read, Mapping) and isinstance(wire, Mapping):
        return all(key in wire and says(wire[key], value) for key, value in read.items())
    if isinstance(read, list) and isinstance(wire, list):
        return len(read) == len(wire) and all(map(says, wire, read))
    return read == wire


def person_chose(request: Request, option_id: object) -> str | None:
    """Return the option to send for the person's choice; None (`cancelled`) for what was not offered.

    "Always" becomes the plain `allow_once`, except in a menu, where every choice is the person's own.
    """
    chosen = next((option for option in request.options if option.id == option_id), None)
    if chosen is None or unsound(request.options):
        return None
    once = [option.id for option in request.options if option.kind == "allow_once"]
    if chosen.kind == "allow_always" and len(once) == 1 and not request.menu and not mislabelled(request.options):
        switches = any("switch_mode" in action.kinds for action in request.actions)
        return chosen.id if switches else once[0]
    return chosen.id


def refuses(request: Request, option_id: str) -> bool:
    """Say whether the option of this id rejects."""
    return any(option.id == option_id and option.kind.startswith("reject") for option in request.options)


def meta(decision: Decision, effect: Effect) -> dict[str, object]:
    """Return what the answer carries for the model: effect, rules and reason."""
    return {"effect": effect.word, "rules": [rule.label for rule in decision.rules], "reason": decision.reason}


def dump(value: Any) -> Any:  # noqa: ANN401
    """Return a model of the SDK as the JSON it came from."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True) if hasattr(value, "model_dump") else value


def respond(option_id: str | None, said: Mapping[str, object]) -> Any:  # noqa: ANN401
    """Return a result as the SDK's own response."""
    from acp.schema import RequestPermissionResponse

    return RequestPermissionResponse.model_validate(result(option_id, said))
