"""The plainest texts for PowerShell and cmd: commands of literal words, one after the other.

Rules of this module:

1. A text is read only if every word is plain: letters, digits and `_./-=` (a backslash is a `/`), or printable text in
   one pair of quotes in which nothing acts. A variable, wildcard, bracket, pipe, redirection, comment, escape, drive,
   `..` or leading `/`: nothing is read, and the text stays opaque.
2. What is read holds for literal patterns only: the sets that ship and the table of programs speak of other programs of
   the same name. Every word may be a path, for strict rules.
3. A command is also called by its other names (`rm`, `del`, `Remove-Item`): strict rules see each.
"""

from __future__ import annotations

import re

from policyd.commands.lexing.plain import constant
from policyd.model import Word

SHELLS = {"powershell": "powershell", "pwsh": "powershell", "cmd": "cmd"}
"""How a shell is called -> whose language it reads."""

_CUT = {"powershell": re.compile(r"[ \t]*(?:&&|\|\||;|\n)"), "cmd": re.compile(r"[ \t]*(?:&&|\|\||&)")}
_WORD = {
    "powershell": re.compile(
        r"[ \t]*(?:([A-Za-z0-9_./\\=-]+)|'((?:[ -&(-~]|'')*)'|\"([ !#%-_a-~]*)\")(?=[ \t;&|\n]|\Z)"
    ),
    "cmd": re.compile(r"[ \t]*(?:(/[aotAOT]:-?[A-Za-z]+|/?[A-Za-z0-9_.\\-]+)|\"([ #$'*-;=?-\]_-~]*)\")(?=[ \t&|]|\Z)"),
}
_LONGEST = 4_096
_PROGRAM = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z]+)?").fullmatch
_OPTION = {"powershell": re.compile(r"-[A-Za-z][A-Za-z-]*").fullmatch, "cmd": re.compile(r"/[A-RT-Za-rt-z]").fullmatch}
"""Options that are no path; `/s` of cmd looks into every directory below and is read of `dir` only."""
_SORTS = re.compile(r"/[aot]:?-?[a-z]{1,6}", re.IGNORECASE).fullmatch
"""How cmd's `dir` is told what to list, in which order: `/ad`, `/o:-d`."""
_DEVICE = re.compile(r"(?:.*/)?(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:[. ].*)?", re.IGNORECASE).fullmatch
"""Names that are a device in every directory."""
_ODD = re.compile(r"[:~*?\[\]]|\.\.|[. ](?:/|\Z)|\A[/ ]|\A\Z")
"""What makes a path of Windows more than the names it shows."""
_NOT_PLAIN = frozenset(
    """
    begin break call catch cd chdir class cmd configuration continue data do dynamicparam else elseif end enum exit
    filter finally for foreach from function goto hidden if in inlinescript parallel param path popd process prompt
    pushd pwsh powershell rem return sequence set setlocal sl static switch throw trap try until using var while
    workflow set-location push-location pop-location set-alias new-alias iex invoke-expression
    """.split()  # noqa: SIM905
)
"""Keywords, and commands after which a word or a path means something else."""
_NAMES = (
    ("Remove-Item", "rm", "del", "erase", "rd", "ri", "rmdir"),
    ("Get-Content", "cat", "gc", "type"),
    ("Get-ChildItem", "ls", "dir", "gci"),
    ("Copy-Item", "cp", "copy", "cpi"),
    ("Move-Item", "mv", "move", "mi"),
    ("Rename-Item", "ren", "rni", "rename"),
    ("Set-Content", "sc"),
    ("Add-Content", "ac"),
    ("New-Item", "ni", "mkdir", "md"),
    ("Invoke-WebRequest", "curl", "wget", "iwr"),
    ("Invoke-RestMethod", "irm"),
    ("Start-Process", "saps", "start"),
    ("Stop-Process", "kill", "spps"),
    ("Select-String", "sls"),
    ("Write-Output", "echo", "write"),
    ("Tee-Object", "tee"),
)
_ALIKE = {name.lower(): family for family in _NAMES for name in family}


def plain(text: str, shell: str) -> list[tuple[Word, ...]] | None:
    """Return the commands of a plain text, None where it is anything else."""
    language = SHELLS.get(shell.lower().removesuffix(".exe"))
    if language is None or not text.isascii() or len(text) > _LONGEST:
        return None
    found: list[tuple[Word, ...]] = []
    words: list[Word] = []
    at, end = 0, len(text.rstrip(" \t\n"))
    while at < end:
        cut = _CUT[language].match(text, at, end)
        match = None if cut else _WORD[language].match(text, at, end)
        if cut is not None and words:
            found.append(tuple(words))
            words, at = [], cut.end()
        elif match is not None and (word := _word(match, language, words)) is not None:
            words.append(word)
            at = match.end()
        else:
            return None
    return [*found, tuple(words)] if words else None


def others(words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    """Return the command under its other names."""
    name = words[0].text.lower()
    return [(constant(other), *words[1:]) for other in _ALIKE.get(name, (name,)) if other != words[0].text]


def _word(match: re.Match[str], language: str, before: list[Word]) -> Word | None:
    """Return the word, None where it is not plain; `before` are those of its command."""
    bare, raw = match[1] is not None, match[match.lastindex or 0]
    raw = raw.replace("''", "'") if match.lastindex == 2 and language == "powershell" else raw
    text = raw.replace("\\", "/")
    if not before:
        fine = bare and bool(_PROGRAM(text)) and text.lower() not in _NOT_PLAIN
    elif bare and language == "cmd" and raw.lower() == "/s":
        fine = before[0].text.lower() == "dir"
    elif bare and language == "cmd" and _SORTS(raw) and before[0].text.lower() == "dir":
        fine = True
    else:
        odd = _ODD.search(text.removeprefix("./")) is not None or (bare and text.startswith("--"))
        fine = _DEVICE(text) is None and (not odd or (bare and bool(_OPTION[language](raw))))
    return constant(text) if fine else None
