"""One `policyd.toml`, validated: the schema of settings as `pydantic-settings` reads it.

Imported only where a file exists (`settings.load` says why). The file's shape is the field table of `settings.Settings`
with `audit.*` and `grants.*` as tables; `[lock] settings` is the managed file's alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from policyd.model import Layer
from policyd.policy import Diagnostic, wording
from policyd.policy.errors import nearest
from policyd.policy.file import SETTINGS as LOCKABLE

Step = Annotated[str, StringConstraints(pattern=r"^(client|inbox|command:/.+)$")]
Road = Annotated[str, StringConstraints(pattern=r"^(client|inbox|command(:/.+)?)$")]
Seconds = Annotated[float, Field(gt=0, le=24 * 3600)]
Label = Annotated[str, StringConstraints(max_length=200)]


class Table(BaseModel):
    """A table of the file: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class AuditTable(Table):
    """`[audit]`."""

    path: Annotated[str, StringConstraints(pattern=r"^(/|~/)")] | None = None
    durability: Literal["write", "fsync"] | None = None
    checkpoints: Literal["off", "stderr", "syslog"] | None = None


class GrantsTable(Table):
    """`[grants]`."""

    max_age: Annotated[float, Field(gt=0, le=30, strict=False)] | None = None


class LockTable(Table):
    """`[lock]`: settings that are final."""

    settings: list[str] = []


class SettingsFile(BaseSettings):
    """The whole file. Only what it says itself counts: no variable and no `.env` is looked at."""

    model_config = SettingsConfigDict(extra="forbid", strict=True, case_sensitive=True)

    prompt: list[Step] | None = None
    timeouts: dict[Road, Annotated[Seconds, Field(strict=False)]] | None = None
    agent_mode: Literal["enforce", "warn", "off"] | None = None
    strict: bool | None = None
    fs_read: Literal["allow", "policy"] | None = None
    on_unasked: Literal["record", "cancel"] | None = None
    report: Literal["tool_call", "off"] | None = None
    reload: Literal["live", "tighten"] | None = None
    terminal: Literal["exec", "refuse"] | None = None
    audit: AuditTable | None = None
    grants: GrantsTable | None = None
    labels: dict[str, Label] | None = None
    shell: Literal["bash", "sh", "zsh", "powershell", "cmd"] | None = None
    log_level: Literal["error", "warn", "info", "debug"] | None = None
    color: Literal["auto", "always", "never"] | None = None
    details_after_ms: Annotated[int, Field(ge=0, le=10_000)] | None = None
    human_ms: Annotated[int, Field(ge=0, le=10_000)] | None = None
    lock: LockTable | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the file and nothing else."""
        assert isinstance(init_settings, InitSettingsSource)  # noqa: S101 - the one source that is kept
        return (init_settings,)


NAMES = {
    "": tuple(SettingsFile.model_fields),
    "audit": tuple(AuditTable.model_fields),
    "grants": tuple(GrantsTable.model_fields),
    "lock": tuple(LockTable.model_fields),
}
"""Table -> the keys it may hold."""
PLAIN = ("literal_error", "string_type", "bool_type", "dict_type", "model_type", "model_attributes_type")
"""Mistakes that are told as those of policies are."""
PATTERNS = {
    "timeouts": "no step is called so; write `client`, `inbox`, `command` or `command:/path`",
    "prompt": "write `client`, `inbox` or `command:/path`",
    "audit": "write a full path, or one that begins with `~/`",
}
"""Setting with a pattern -> what it should be."""


def parse(path: str, data: bytes, problems: list[Diagnostic], *, managed: bool) -> dict[str, object]:
    """Return the fields a file sets (`lock` too, if it is managed); append what is wrong to `problems`."""

    def note(line: int, found: str, write: str = "") -> None:
        problems.append(Diagnostic(path, line, "", found, write, Layer.MANAGED if managed else Layer.USER))

    try:
        table = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        note(0, f"is no TOML: {error}")
        return {}
    if not managed and "lock" in table:
        note(line_of(data, "lock"), "only the managed settings file can lock settings")
    own = [key for key in table if key.startswith("_")]  # taken by `BaseSettings` for an option of its own
    for key in own:
        note(line_of(data, key), f"unknown setting `{key}`")
    try:
        file = SettingsFile(**{key: value for key, value in table.items() if key not in own})
    except ValidationError as error:
        for each in error.errors():
            place = each["loc"]
            note(line_of(data, str(place[0]), str(place[1]) if len(place) > 1 else ""), *in_words(each))
        return {}
    for key in file.lock.settings if file.lock else ():
        if key not in LOCKABLE:
            note(line_of(data, "lock"), f"`{key}` is no setting that can be locked", hint(key, LOCKABLE))
    return flat(file)


def flat(file: SettingsFile) -> dict[str, object]:
    """Return the fields as `settings.Settings` names them."""
    values: dict[str, object] = {}
    for name, value in file.model_dump(exclude_unset=True, exclude_none=True).items():
        if name in {"audit", "grants"}:
            values.update({f"{name}_{key}": each for key, each in value.items() if each is not None})
        elif name == "lock":
            values["lock"] = tuple(value["settings"])
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return values


def in_words(error: ErrorDetails) -> tuple[str, str]:
    """Return of one mistake what was found and what to write."""
    place, kind, message = error["loc"], error["type"], error["msg"]
    key = ".".join(str(part) for part in place if part != "[key]")
    if kind == "extra_forbidden":
        names = NAMES.get(str(place[0]) if len(place) > 1 else "", NAMES[""])
        return f"unknown setting `{key}`", hint(str(place[-1]), names) or f"known here: {', '.join(names)}"
    if kind == "string_pattern_mismatch":
        return f"`{key}`: {PATTERNS[str(place[0])]}", ""
    if kind in PLAIN:
        said = wording.in_words(error, key, [], {})
        return said.found, said.write
    wanted = f'a list, `{key} = ["…"]`' if kind == "list_type" else message.removeprefix("Input should be ")
    return f"`{key}` is {wording.described(error['input'])}", f"it should be {wanted.partition(', unable')[0]}"


def hint(word: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest known word, empty where none is near."""
    found = nearest(word, known)
    return f"did you mean `{found}`?" if found else ""


def line_of(data: bytes, key: str, inner: str = "") -> int:
    """Return the line a key stands on, 1 where it is not found."""
    lines = data.decode("utf-8", "replace").splitlines()
    for name in (inner, key):
        pattern = re.compile(rf"\s*\[*\s*[\"']?({re.escape(key)}\.)?{re.escape(name)}[\"']?\s*([=\].]|$)")
        for number, line in enumerate(lines, 1):
            if name and pattern.match(line):
                return number
    return 1


def schema() -> dict[str, object]:
    """Return the JSON Schema of a settings file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SettingsFile.model_json_schema()}
