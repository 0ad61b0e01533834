"""Values that make an option harmless which is not so with any other.

Rules of this module:

1. Only a constant value is known. A role the table of programs names is a closed list of values, or a rule here.
2. A `place` is a directory below the one the command runs in: no more than a `cd` there would do.
3. A name from a list is what the program itself brings along (`format`), or what it would take anyway (`conf`); another
   name may be a module to load.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyd.commands import scripts
from policyd.model import Word, WordKind


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FORMATS = _set(
    """
    basic checkstyle codeframe compact default doc documentation dot emacs failures github github-actions grouped
    hanging-process html json json-with-metadata junit line list min nyan parsable parseable pretty progress quiet
    simple spec standard stylish tap tap-flat teamcity text txt unix verbose visualstudio
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
    "vet": _set("off all"),
}
"""Role -> the values that do no harm."""


def harmless_value(role: str, value: Word | None) -> bool:
    """Say whether an option that may harm does not with this value."""
    if value is None or value.kind is not WordKind.CONST:
        return role == "pretty" and value is None
    if role in LISTS:
        return value.text in LISTS[role]
    if role == "pretty":
        return "%G" not in value.text and "%(signature" not in value.text
    if role == "config":
        return not scripts.git_config(value)
    if role == "plugin":
        return value.text.startswith("no:")
    if role == "place":
        return not value.text.startswith(("/", "~", "-")) and ".." not in value.text.split("/")
    if role == "term":
        return value.text.startswith("term") or not value.text
    return role == "undotted" and "." not in value.text
