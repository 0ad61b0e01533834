"""Values that make an option harmless which is not so with any other.

Rules of this module:

1. Only a constant value is known. A role the table of programs names is a closed list of values, or a rule here.
2. A `place` is a directory below the one the command runs in: no more than a `cd` there would do. It may be a pattern
   with several alternatives, so that `..` stands nowhere in it.
3. A name from a list is what the program itself brings along (`format`), or what it would take anyway (`conf`); another
   name may be a module to load.
4. A `member` of a workspace is a name, a place below, or a filter of either (`web...`, `{packages/*}`).
5. Some programs hand the name of a `commit` to a shell, or to git where it may be an option: it is a plain name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from policyd.commands.argv import hostwords, scripts
from policyd.model import Word, WordKind


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FORMATS = _set(
    """
    basic checkstyle clang codeframe compact default doc documentation dot emacs failures github github-actions grouped
    hanging-process html json json-with-metadata junit line list min nyan offenses parsable parseable pretty progress
    quiet simple spec standard stylish tap tap-flat teamcity text txt unix verbose visualstudio
    """
)
LISTS: Mapping[str, frozenset[str]] = {
    # a way to report that comes with the program, and the letters of those
    "format": _FORMATS,
    "letter": _FORMATS | _set("d p j f s"),
    # the project's own configuration by the name under which the program looks for it anyway
    "conf": _set(
        """
        . .eslintrc.cjs .eslintrc.js .eslintrc.json .eslintrc.yml .flake8 .mypy.ini .pylintrc .rubocop.yml .ruff.toml
        .yamllint .yamllint.yml eslint.config.cjs eslint.config.js eslint.config.mjs eslint.config.ts jest.config.cjs
        jest.config.js jest.config.json jest.config.mjs jest.config.ts mypy.ini phpstan.neon phpstan.neon.dist
        phpunit.xml phpunit.xml.dist playwright.config.js playwright.config.ts pylintrc pyproject.toml pytest.ini
        ruff.toml setup.cfg tox.ini tsconfig.json vite.config.js vite.config.mjs vite.config.mts vite.config.ts
        vitest.config.js vitest.config.mjs vitest.config.mts vitest.config.ts
        """
    ),
    # a log to the terminal
    "console": _set(
        "console console;verbosity=quiet console;verbosity=minimal console;verbosity=normal console;verbosity=detailed"
    ),
    # a task that tests or lints
    "task": _set("check lint test tests type-check typecheck unit"),
    "off": _set("false 0 no"),
    "never": _set("never"),
    "mode": _set("prepend append importlib"),
    "preset": _set("default relaxed"),
    "cat": _set("cat"),
    "switch": _set("true false"),
    "vet": _set("off all"),
    # what `python -X` only says more about, or reads otherwise; another one names a place to write to
    "talk": _set("dev utf8 utf8=0 utf8=1 importtime faulthandler tracemalloc no_debug_ranges showrefcount"),
}
"""Role -> the values that do no harm."""
REFUSED: Mapping[str, str] = {
    "place": "leads somewhere else",
    "member": "leads somewhere else",
    "conf": "is not the name under which the project's own configuration is looked for",
    "format": "may name code to load",
    "letter": "may name code to load",
    "commit": "is no plain name of a commit",
    "count": "is no number",
    "names": "is evaluated, and more than names",
}
"""Role -> what is wrong with a value that is not harmless."""
BARE = frozenset({"pretty", "commit", "switch", "ports", "most"})
"""Roles of options that do no harm without a value either."""
_COMMIT = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@^~-]*").fullmatch
_FILTER = re.compile(r"\A\.\.\.\^?|\^?\.\.\.\Z")
"""What pnpm and turbo write for dependents and dependencies around the name of a package."""
_ASKED = (
    r"(?:process\.(?:version|versions(?:\.node)?|platform|arch|cwd\(\))"
    r"|require\((?:'(?:\.|{0})/package\.json'|\"(?:\.|{0})/package\.json\")\)"
    r"(?:\.(?:version|name|type|engines|scripts|dependencies|devDependencies))?)"
).format(r"(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
"""What `node -p` prints without running anything of its own: where it runs, and what a package says of itself."""
_NAMES = re.compile(r"[A-Za-z0-9_ ()-]+").fullmatch
"""What holds no attribute where it is evaluated: names, `and`, `or`, `not`."""
_COUNT = re.compile(r"[0-9]+%?").fullmatch
_SIGNED = re.compile(r"%[-+ ]?G|%\(\*?signature").search
"""What of a format asks a program whether a signature is good; so does an order by it."""


def _below(text: str) -> bool:
    return not text.startswith(("/", "~", "-")) and ".." not in text


def _only_imports(text: str) -> bool:
    # loaded here: its expressions take long to make, and hardly a command needs them
    from policyd.commands.argv.pythontext import only_imports

    return only_imports(text)


_RULES: Mapping[str, Callable[[str], object]] = {
    "commit": _COMMIT,
    "asked": re.compile(_ASKED).fullmatch,
    "printed": re.compile(rf"console\.log\({_ASKED}\);?").fullmatch,
    "count": _COUNT,
    "edit": "/dev/null".__eq__,
    "imports": _only_imports,
    "most": _COUNT,
    "names": _NAMES,
    "member": lambda text: not text.startswith(("/", "~", "-")) and ".." not in _FILTER.sub("", text),
    "place": _below,
    "ports": hostwords.PORTS,
    "plugin": lambda text: text.startswith("no:"),
    "columns": lambda text: "env" not in text.lower(),
    "order": lambda text: "signature" not in text,
    "pretty": lambda text: not _SIGNED(text),
    "term": lambda text: text.startswith("term") or not text,
    "undotted": lambda text: "." not in text,
}
"""Role -> whether a constant value is harmless, by its shape."""


def harmless_value(role: str, value: Word | None) -> bool:
    """Say whether an option that may harm does not with this value."""
    if value is None or value.kind is not WordKind.CONST:
        return role in BARE and value is None
    if role in LISTS:
        return (value.text.removeprefix("./") if role == "conf" else value.text) in LISTS[role]
    if role == "config":
        return not scripts.git_config(value)
    rule = _RULES.get(role)
    return rule is not None and bool(rule(value.text))
