"""Side doors: what an agent does through its client without a permission request.

1. The same rules judge them. A denial is a JSON-RPC error with the reason, written for the model.
2. A permission already given settles one ask: for the same path and text, or for the same commands in the same order
   with the same input, environment and directory, and no further file or URL. Several commands must also be the same
   text (`a && b` is not `a || b`). It is then used up; at the latest it ends with the turn. The permission for a
   command or a move never settles the text written to a file.
3. A read inside the workspace that no strict rule matches passes (`fs_read`): agents read before they ask to edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policyd.actions import SIDE_DOORS
from policyd.digest import sha256
from policyd.model import Action, Effect, Judged, Option, Role, SimpleCommand
from policyd.session.core import text_of
from policyd.session.ports import Verdict
from policyd.session.settings import Settings
from policyd.session.state import PERMITS_KEPT, Permit, Session

READ, WRITE, TERMINAL = SIDE_DOORS
SHELL_OPTIONS = ("-c", "-lc")
SHELL_ARGS = 2
DOORS = frozenset(SIDE_DOORS)
OPTIONS = (Option("policyd-allow", "Allow once", "allow_once"), Option("policyd-reject", "Reject", "reject_once"))


def passes_unasked(verdict: Verdict, settings: Settings) -> bool:
    """Say whether this is a read inside the workspace about which only a default asks."""
    if verdict.request.side_door != READ or settings.fs_read != "allow" or verdict.decision.effect is not Effect.ASK:
        return False
    judged = verdict.decision.actions
    return bool(judged) and all(_free(one) for one in judged)


def _free(judged: Judged) -> bool:
    """Say whether no rule and no floor asks about an action inside the workspace."""
    path = judged.action.path
    asks = judged.possible or judged.floors or any(rule.effect is not Effect.ALLOW for rule in judged.hits)
    return path is not None and path.inside and not asks


# ---- permissions given ---------------------------------------------------------------------------------


def give(session: Session, verdict: Verdict, call_id: str, params: Mapping[str, object]) -> None:
    """Store what a permission allows, for one use each."""
    shown = {**session.diffs.get(call_id, {}), **diff_digests(params.get("toolCall"))}
    actions = [one for one in verdict.request.actions if one.role is not Role.MENTION]
    if any(action.opaque for action in actions):
        return
    for action in actions:
        if action.role is Role.PRIMARY:  # a command's operands show no text
            session.permits += _path_permits(action, shown)
    commands = [action for action in actions if action.command is not None]
    if commands:
        texts = frozenset({*_titles(verdict.request.title), *_texts(params.get("toolCall"))})
        permit = Permit("command", commands=_commands(commands), uses=_uses(actions), texts=texts, cwd=_cwd(commands))
        session.permits.append(permit)
    del session.permits[:-PERMITS_KEPT]


def _path_permits(action: Action, shown: Mapping[str, str]) -> list[Permit]:
    path = action.path
    if path is None:
        return []
    forms = frozenset(path.forms)
    unknown = "" if shown else None  # texts of other files were shown, so no text is allowed for this one
    digest = next((text for name, text in shown.items() if name in forms or name == path.text), unknown)
    found = [Permit("write", forms, digest)] if "edit" in action.kinds or digest else []
    return found + ([Permit("read", forms)] if action.kinds & {"read", "search", "edit"} else [])


def settle(session: Session, verdict: Verdict, params: Mapping[str, object]) -> tuple[bool, bool]:
    """Use up a permission that settles this ask; return whether one did, and whether one differs in its text only."""
    wanted = _wanted(verdict, params)
    changed = False
    for at, permit in enumerate(session.permits):
        fits, same = _fits(permit, wanted)
        if fits and same:
            del session.permits[at]
            return True, False
        changed = changed or fits
    return False, changed


def _wanted(verdict: Verdict, params: Mapping[str, object]) -> Permit | None:
    request = verdict.request
    actions = [one for one in request.actions if one.role is not Role.MENTION]
    if not actions or any(action.opaque for action in actions if not _strict_only(action)):
        return None
    if request.side_door == TERMINAL:
        return _wanted_command(actions, params)
    paths = [action.path for action in actions if action.path is not None]
    if len(paths) != 1:
        return None
    if request.side_door == READ:
        return Permit("read", frozenset(paths[0].forms))
    return Permit("write", frozenset(paths[0].forms), text_digest(text_of(params, "content")))


def _wanted_command(actions: list[Action], params: Mapping[str, object]) -> Permit | None:
    commands = [action for action in actions if action.command is not None]
    text, args = params.get("command"), params.get("args")
    if isinstance(args, list) and args:
        shell = len(args) == SHELL_ARGS and args[0] in SHELL_OPTIONS
        text = args[1] if shell else None
    texts = frozenset({text}) if isinstance(text, str) else frozenset()
    found = Permit("command", commands=_commands(commands), uses=_uses(actions), texts=texts, cwd=_cwd(commands))
    return found if commands else None


def _fits(permit: Permit, wanted: Permit | None) -> tuple[bool, bool]:
    """Say whether a permit is for the same thing, and whether for the same text."""
    if wanted is None or permit.kind != wanted.kind:
        return False, False
    if wanted.kind == "command":
        same = bool(permit.commands) and permit.commands == wanted.commands and permit.cwd == wanted.cwd
        same = same and wanted.uses <= permit.uses
        same = same and (len(wanted.commands) == 1 or bool(wanted.texts & permit.texts))
        return same, same
    return permit.forms == wanted.forms, permit.digest is None or permit.digest == wanted.digest


def _commands(actions: list[Action]) -> tuple[object, ...]:
    """Return the commands in comparable form, without interpretations that only strict rules see."""
    return tuple(_command(one.command) for one in actions if one.command is not None and not _strict_only(one))


def _strict_only(action: Action) -> bool:
    return action.command is not None and action.command.strict_only


def _uses(actions: list[Action]) -> frozenset[object]:
    """Return the files and URLs of the actions in comparable form."""
    paths = {(one.kinds, one.path.forms) for one in actions if one.path is not None}
    return frozenset({*paths, *((one.kinds, one.url.text) for one in actions if one.url is not None)})


def _titles(title: str) -> tuple[str, ...]:
    """Return the command a title may state, as `COMMAND` or as `Shell: COMMAND`."""
    return title.strip("`"), title.partition(": ")[2]


def _texts(call: object) -> Iterator[str]:
    """Yield the texts in which a tool call may state its command: the values of `rawInput` and of lists in it."""
    raw = call.get("rawInput") if isinstance(call, Mapping) else None
    for value in raw.values() if isinstance(raw, Mapping) else ():
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


def _command(command: SimpleCommand) -> object:
    words = tuple((word.text, word.kind) for word in command.argv)
    names = tuple(sorted((one.name, one.value.text, one.value.kind) for one in (*command.env, *command.taint)))
    return words, names, command.via, command.tainted, command.fed


def _cwd(actions: list[Action]) -> tuple[str, ...]:
    return tuple(sorted({place for action in actions for place in action.cwd}))


# ---- texts shown ---------------------------------------------------------------------------------------


def diff_digests(call: object) -> dict[str, str]:
    """Return path -> digest of the new text, for every diff of a tool call or update."""
    content = call.get("content") if isinstance(call, Mapping) else None
    found = {}
    for block in content if isinstance(content, list) else []:
        if isinstance(block, Mapping) and block.get("type") == "diff":
            path, text = block.get("path"), block.get("newText")
            if isinstance(path, str) and isinstance(text, str):
                found[path] = text_digest(text)
    return found


def text_digest(text: str) -> str:
    """Return the digest of a file's text, without the newlines at its end (agents drop them)."""
    return sha256(text.rstrip("\n").encode("utf-8", "surrogatepass")).hexdigest()


# ---- asking the client ---------------------------------------------------------------------------------


def tool_call(number: int, verdict: Verdict, params: Mapping[str, object]) -> dict[str, object]:
    """Return the tool call that policyd's own permission request shows for a side-door call."""
    method = verdict.request.side_door
    call: dict[str, object] = {
        "toolCallId": f"policyd-{number}",
        "title": verdict.request.title or method,
        "kind": {READ: "read", WRITE: "edit", TERMINAL: "execute"}[method],
        "status": "pending",
    }
    path = text_of(params, "path")
    if path:
        call["locations"] = [{"path": path}]
    if method == WRITE:
        call["content"] = [{"type": "diff", "path": path, "oldText": None, "newText": text_of(params, "content")}]
    if method == TERMINAL:
        call["rawInput"] = {key: params[key] for key in ("command", "args", "cwd", "env") if key in params}
    return call
