"""policyd answers an agent's permission requests from written policies.

The packages, in layers (a module imports only from rows below its own):

    cli                          commands for people and scripts
    proxy | daemon | sdk         transports: bytes, processes, other people's SDKs
    service                      performs commands; owns clock, reload, files
    session | storage            enforcement as a pure state machine | the only package that touches files
    prompts                      asking a person: the chain, client profiles, the hooks' JSON
    authorizer | acp             the decision point | the wire, without I/O
    engine | grants | audit      decide | remember | record
    policy | actions             load, validate, compile | evidence to actions, with agents/*.toml
    paths | commands | urls | tools   matchers; commands holds grammar and program knowledge
    model | display | digest | leash    value types | text made safe to show | hashes | child processes end with policyd

`Authorizer` and `load` are the library's interface, `Effect` and `PolicyError` what they return and raise; importing
this package touches no file and starts nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would cost an agent behind the proxy milliseconds
if TYPE_CHECKING:
    from policyd.authorizer import Authorizer
    from policyd.model import Effect
    from policyd.policy import PolicyError
    from policyd.storage import load

__version__ = "0.1.0"
__all__ = ["Authorizer", "Effect", "PolicyError", "__version__", "load"]

PUBLIC = {"Authorizer": "authorizer", "Effect": "model", "PolicyError": "policy", "load": "storage"}
"""Public name -> its module."""


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that the proxy starts fast."""
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"policyd.{PUBLIC[name]}"), name)
