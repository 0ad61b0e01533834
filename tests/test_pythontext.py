"""A Python text that only imports and prints: what Python itself reads in it decides whether that is so."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyd.commands.argv.pythontext import only_imports

HARMLESS = [
    "import sys; print(sys.version)",
    "import fastapi,sys; print(fastapi.__version__)",
    "from src.api.main import app; print('Import successful')",
    "\nfrom a.b import C, D as E\nimport json\n\n# a check\nprint('ok', json.__file__)\n",
    'import numpy, aiohttp; print("deps ok")',
    "import platform; print(platform.python_version())",
    "import sys\nprint(sys.path)",
    "import a\nprint('✓ imported')",
]
MORE = [
    "print(open('x').read())",
    "import os; print(os.environ)",
    "from os import system as print; print('rm x')",
    "from os import print",
    "import os as print; print('x')",
    "from x import platform; print(platform.python_version())",
    "import os as platform; print(platform.python_version())",
    "import antigravity",
    "import test.__main__",
    "from a import *",
    "from os import environ; print(environ)",
    "print(f'{x}')",
    "print('a' 'b', file=x)",
    "import a; b()",
    "import a\\\n; b()",
    "print('a\\'); b('')",
    "print('a') # \rb()",
    "print('a')\x0cb()",
    "",
]
PIECES = ["import a", "import os as print", "from a import b", " as print", "print", "('x')", "(a.__version__)", "(a)"]
PIECES += [";", "\n", " ", "\\", "#", ",", '"', "'", "__main__", "a.b", "()", "\r", "\x0c"]
PIECES += ["platform.python_version()", "import platform"]


@pytest.mark.parametrize("text", HARMLESS)
def test_imports_and_prints_of_versions_are_harmless(text: str) -> None:
    assert only_imports(text)


@pytest.mark.parametrize("text", MORE)
def test_anything_else_is_not(text: str) -> None:
    assert not only_imports(text)


def _calls(tree: ast.Module) -> list[str]:
    """Return what a program calls, as written, once it is nothing but imports, prints and `pass`."""
    for statement in tree.body:
        assert isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Expr)), ast.dump(statement)
    return [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("import a;print('x')")
@settings(max_examples=300)
def test_what_is_let_through_calls_nothing_but_print(text: str) -> None:
    if not only_imports(text):
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return  # it runs nothing at all
    assert set(_calls(tree)) <= {"print", "platform.python_version"}
    bound = [name for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for name in node.names]
    assert not any((name.asname or name.name) == "print" for name in bound)
