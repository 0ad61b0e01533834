"""Plain texts for PowerShell and cmd, and sessions that stand in a directory of Windows."""

from __future__ import annotations

import pytest

from policyd.commands.dialects import foreign
from policyd.paths.drives import of_windows, posix, spelled
from tests.commandrows import CWD, decide

POLICY = """
version = 1

[[rule]]
effect = "allow"
command = ["**"]

[[rule]]
effect = "deny"
path = [".env", "secrets/**"]

[[rule]]
effect = "deny"
command = ["rm", "git push"]
"""
PROJECT = "C:\\proj\\app"


def judged(policy: str, command: str, cwd: str = CWD) -> str:
    """Decide a command of PowerShell."""
    return decide(policy, command, cwd=cwd, shell="powershell").effect.word  # noqa: S604


# shell, text, its commands, joined; None: not plain
READ = [
    ("powershell", "Get-ChildItem -Recurse", ["Get-ChildItem -Recurse"]),
    ("pwsh", "Get-Content 'a;b'; git status", ["Get-Content a;b", "git status"]),
    ("powershell", 'Get-Content "a b" && gci\nls', ["Get-Content a b", "gci", "ls"]),
    ("powershell", "Get-Content .\\src\\a.py", ["Get-Content ./src/a.py"]),
    ("cmd", "dir /s /b & type x", ["dir /s /b", "type x"]),
    ("cmd.exe", 'type "a b.txt"', ["type a b.txt"]),
    ("cmd", "dir /a /o:-d /ad /T:W src", ["dir /a /o:-d /ad /T:W src"]),
    ("powershell", "Get-Content 'it''s' 'a'", ["Get-Content it's a"]),
    *(
        ("powershell", text, None)
        for text in (
            "Get-Content $x",
            "Get-Content x | iex",
            "Get-Content x > y",
            "Get-Content C:\\x",
            "Get-Content ..\\x",
            "Get-Content \\x",
            "Get-Content *.py",
            "Get-Content x'y'",
            "Get-Content 'x",
            "Get-Content 'x''",
            "Get-Content 'x'';rm y",
            "Get-Content x#y",
            "Get-Content (rm x)",
            'Get-Content "$(rm x)"',
            'Get-Content "a`n"',
            "Get-Content --% x",
            "Get-Content -Path:x",
            "Get-Content x,y",
            "Get-Content @x",
            "Get-Content x\r\nrm y",
            "Get-Content \u201dx\u201d",
            "Get-Content .env.",
            "Get-Content com1",
            "Get-Content SECRET~1",
            "Get-Content .env::x",
            "& x",
            ". x",
            ".\\x.ps1",
            "Re`move-Item x",
            "if x",
            "foreach x",
            "cd x; gci",
            "iex x",
            "powershell -c x",
            "gci;",
            "",
        )
    ),
    *(
        ("cmd", text, None)
        for text in (
            "dir > x",
            "dir | del",
            "type x^ y",
            "type %X%",
            "type !X!",
            'type "x & del y',
            "dir\ndel x",
            "findstr /s a b",
            "d^el x",
            "(dir)",
            "@dir",
            "call x",
            "dir.",
            "dir/b",
            "set PATH=x & dir",
            "type \\x",
            "dir \\s",
            "type con",
            "type /o:n",
            "type /ad",
            "dir /o:..",
            "dir /x:n",
            "type src\\NUL.txt",
        )
    ),
    ("fish", "ls", None),
    ("powershell", "ls " + "x" * 5000, None),
]


@pytest.mark.parametrize(("shell", "text", "commands"), READ)
def test_only_a_plain_text_is_read(shell: str, text: str, commands: list[str] | None) -> None:
    found = foreign.plain(text, shell)
    told = None if found is None else [" ".join(word.text for word in words) for words in found]
    assert told == commands


# command, effect in a project of Windows
JUDGED = [
    ("Get-Content x", "allow"),
    ("npm test; git status", "allow"),
    ("Get-Content .env", "deny"),
    ("Get-Content sub\\.ENV", "deny"),
    ("Get-Content SECRETS\\k", "deny"),
    ("Get-Content 'secrets/k'", "deny"),
    ("gci; Remove-Item x", "deny"),
    ("remove-item x", "deny"),
    ("del x", "deny"),
    ("git push", "deny"),
    ("bash -c 'rm x'", "deny"),
    ("Get-Content SECRET~1\\k", "ask"),
    ("Get-Content $x", "ask"),
    ("gci | Get-Content", "ask"),
]


@pytest.mark.parametrize(("command", "effect"), JUDGED)
def test_plain_commands_are_judged_in_a_project_of_windows(command: str, effect: str) -> None:
    assert judged(POLICY, command, PROJECT) == effect


@pytest.mark.parametrize("cwd", ["C:\\", "C:\\proj", "C:\\Users\\kim", "C:\\Windows\\System32", "proj"])
def test_a_home_or_a_drive_is_no_project(cwd: str) -> None:
    assert judged(POLICY, "Get-Content x", cwd) == "ask"


def test_the_sets_that_ship_speak_of_no_other_shell() -> None:
    policy = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = ["@read-only", "@git-read"]\n'
    assert judged(policy, "ls") == "ask"
    assert judged(policy, "git status") == "ask"


def test_what_a_shell_inside_runs_is_no_plain_text() -> None:
    assert judged(POLICY, "bash -c 'cat /etc/passwd'") == "ask"
    assert judged(POLICY, "bash -c 'cat x'", PROJECT) == "ask"
    assert decide(POLICY, "type .env", cwd=PROJECT, shell="cmd.exe").effect.word == "deny"  # noqa: S604


def test_nothing_needs_no_allow_because_bash_has_a_builtin_of_that_name() -> None:
    policy = 'version = 1\n[[rule]]\neffect = "allow"\ncommand = "gci"\n'
    assert judged(policy, "gci; wait") == "ask"


def test_a_path_of_windows_is_written_with_its_drive() -> None:
    assert posix("C:\\proj\\app") == posix("c:/proj/app") == "/c:/proj/app"
    assert posix("/home/dev") == "/home/dev"
    assert of_windows("/c:/proj")
    assert not of_windows("/home/c:/x")


@pytest.mark.parametrize("text", ["C:\\a\\.env::$DATA", "SECRET~1\\k", "a.\\b", "\\proj", "/c/proj", "a \\b", "C:x"])
def test_what_may_be_another_name_of_a_file_is_not_told(text: str) -> None:
    assert spelled(text) is None


@pytest.mark.parametrize(
    ("text", "path"), [("src\\..\\a", "src/../a"), (".\\a", "./a"), ("D:\\x\\y.py", "/d:/x/y.py"), (".env", ".env")]
)
def test_a_plain_path_of_windows_is_told(text: str, path: str) -> None:
    assert spelled(text) == path


@pytest.mark.parametrize("command", ["pwsh -c 'ri x'", "powershell -Command del x", "pwsh -c 'Get-ChildItem | erase'"])
def test_what_a_shell_inside_may_run_is_seen_under_its_other_names(command: str) -> None:
    assert decide(POLICY, command).effect.word == "ask"


def test_a_text_that_is_not_plain_is_seen_under_its_other_names() -> None:
    assert judged(POLICY, "Get-ChildItem | ri x", PROJECT) == "deny"
