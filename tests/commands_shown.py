"""A reading in one line a command, for tables of expectations."""

from __future__ import annotations

from policyd.model import Reading, Role, SimpleCommand, Word, WordKind


def word(found: Word) -> str:
    """Show a word: plain if constant, `*(…)` for a glob, `<…>` for an unknown word, `<…>*` if it may be several."""
    if found.kind is WordKind.CONST:
        return found.text if found.text and not set(found.text) & set(" \t\n<>[]'") else repr(found.text)
    if found.kind is WordKind.GLOB:
        return f"*({found.text})"
    return f"<{found.text}>" + ("*" if found.many else "")


def command(found: SimpleCommand, cwd: tuple[str, ...]) -> str:
    """Show a command with everything that is not as usual behind it in brackets."""
    words = [f"{one.name}={word(one.value)}" for one in found.env] + [word(one) for one in found.argv]
    notes = {
        "via": " ".join(found.via),
        "in": "|".join(found.cwd) or "?" if found.cwd != cwd else "",
        "taint": " ".join(one.name for one in found.taint),
        "tainted": found.tainted,
        "chdir": found.chdir or "",
        "idle": "yes" if found.idle else "",
        "strict": "yes" if found.strict_only else "",
        "fed": found.fed.replace("\n", "\\n"),
        "inner": command(found.inner, cwd) if found.inner is not None else "",
    }
    return " ".join([*words, *[f"[{name} {value}]" for name, value in notes.items() if value]])


def shown(reading: Reading, cwd: tuple[str, ...]) -> list[str]:
    """Show the commands, then the files of redirections, then why something is opaque."""
    lines = [command(one, cwd) for one in reading.commands]
    for use in reading.files:
        if use.role is Role.REDIRECT:
            place = "" if use.cwd == cwd else f" [in {'|'.join(use.cwd) or '?'}]"
            carried = " [carried]" if use.carried else ""
            lines.append(f"{use.kind}: {word(use.word)}{carried}{' [unknown]' if use.unknown else ''}{place}")
    return lines + [f"opaque: {reason}" for reason in reading.opaque]
