"""One action as a row of an audit record, with everything that a rule may look at: `rebuild` parses it again.

Rules of this module:

1. Usual values are left out: a plain command in the workspace is recorded as its words and directory only.
2. No text is written twice, as it could be masked in one place but not in the other: facts about a word that is not
   constant are recorded beside it as marks, by its position.
3. Only tools' arguments are recorded. Those of other calls hold whole files; a rule on them cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from policyd.model import KINDS, Action, Assignment, PathRef, Reach, SimpleCommand, Word, WordKind

Row = dict[str, object]


def action_row(action: Action) -> Row:
    """Return one action: its kinds, its role, its resource, and where it would happen."""
    kinds = [*action.kinds] if len(action.kinds) < 2 else in_order(action.kinds)
    row: Row = {"kind": kinds[0] if kinds else None, "role": str(action.role)}
    if len(kinds) > 1:
        row["kinds"] = kinds
    if action.path:
        add_path(row, action.path)
    if action.command:
        add_command(row, action.command, action.cwd)
    if action.cwd or action.command:
        row["cwd"] = list(action.cwd)
    if action.url:
        row["url"] = action.url.text
    if action.tool:
        row["tool"] = action.tool.name
        if action.tool.splits:
            row["splits"] = [list(pair) for pair in action.tool.splits]
    if action.args is not None and action.tool:
        row["input"] = action.args
    add_said(row, action, "opaque", "escalate", "guarded")
    add_standing(row, action)
    return row


def add_said(row: Row, source: Action | PathRef | SimpleCommand, *names: str) -> None:
    """Add the fields that are not empty, each under its own name."""
    for name in names:
        if value := getattr(source, name):
            row[name] = list(value) if isinstance(value, tuple) else value


def in_order(kinds: Collection[str]) -> list[str]:
    """Return several kinds in the order of `KINDS`, those of an agent's own behind."""
    return [*[kind for kind in KINDS if kind in kinds], *sorted({*kinds}.difference(KINDS))]


def add_standing(row: Row, action: Action) -> None:
    """Add what is unusual about where and how an action would happen."""
    if action.cwd and not action.cwd_inside:
        row["cwd_outside"] = True
    add_said(row, action, "strays")
    if action.within:
        row["within"] = [None if ref is None else add_path({}, ref) for ref in action.within]
    if action.carrier is not None:
        row["carrier"] = action.carrier
    if action.mode:
        row["mode"] = {"name": action.mode.name, "asking": action.mode.asking, "unsafe": action.mode.unsafe}
    add_said(row, action, "idle", "mcp", "doubtful")


def add_path(row: Row, ref: PathRef) -> Row:
    """Add a path as it was written, and its other forms; return the row."""
    row["path"] = ref.text
    if ref.forms[1:] and ref.forms[1] != ref.forms[0]:
        row["real"] = ref.forms[1]
    if ref.forms != (ref.text,):
        row["forms"] = list(ref.forms)
    if ref.reach is not Reach.ENTRY:
        row["reach"] = ref.reach.value
    if not ref.inside:
        row["outside"] = True
    add_said(row, ref, "glob", "folded", "skips_hidden", "endings", "filled_from")
    return row


def add_command(row: Row, command: SimpleCommand, cwd: Sequence[str] = ()) -> Row:
    """Add a command as its words, one that is not constant with its source text too; return the row.

    `cwd`: the directories the action has already; the command's own are added where they differ.
    """
    row["command"] = [word.text for word in command.argv]
    marks: list[list[object]] = [
        [at, *word_marks(word)] for at, word in enumerate(command.argv) if word.kind is not WordKind.CONST
    ]
    if marks:
        if any(word.kind is WordKind.UNKNOWN for word in command.argv):
            row["text"] = command.text
        row["marks"] = marks
    for name in ("env", "taint"):
        if items := getattr(command, name):
            row.update(assigned(name, items))
    add_said(row, command, "via", "behind")
    if command.texts:
        row["texts"] = [list(words) for words in command.texts]
    if command.cwd != tuple(cwd):
        row["runs_in"] = list(command.cwd)
    add_said(row, command, "tainted", "fed", "chdir", "strict_only")
    if command.idle:
        row["idle_command"] = True
    add_nested(row, command)
    return row


def add_nested(row: Row, command: SimpleCommand) -> None:
    """Add what a transparent wrapper runs, and what a program runs elsewhere."""
    if command.inner:
        row["inner"] = add_command({}, command.inner, command.cwd)
    if command.far:
        row["far"] = [add_command({}, other) for other in command.far]


def word_marks(word: Word) -> list[object]:
    """Return what is known of a word that is not constant; nothing for one that is."""
    return [] if word.kind is WordKind.CONST else [word.kind.value, word.prefix, word.many]


def assigned(name: str, items: Sequence[Assignment]) -> Mapping[str, object]:
    """Return assignments as `NAME=value`, and what is unusual about them by position."""
    row: Row = {name: [f"{each.name}={each.value.text}" for each in items]}
    marks = [
        [at, *(word_marks(each.value) or [WordKind.CONST.value, "", False]), each.exported]
        for at, each in enumerate(items)
        if each.exported or each.value.kind is not WordKind.CONST
    ]
    if marks:
        row[f"{name}_marks"] = marks
    return row
