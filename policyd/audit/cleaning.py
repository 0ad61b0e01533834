"""Cleaning records: secrets are masked and long parts cut, each with a note in their place.

A secret found in one field is masked in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policyd.audit import masks

TEXT_LIMIT = 2048
"""Characters kept of one string."""
LIST_LIMIT = 200
"""Entries kept of one list."""
LONGEST_MASKED = 16 * 1024
"""Characters of one string that are searched for secrets; what is cut before lies far from what is kept."""
SEARCHED = 40 * 1024
"""Characters of one member of a record that are searched for secrets; longer texts behind them are not kept."""
SHORT = 64
"""Characters of a text that is always searched, and kept."""
VALUES_LISTED = 5_000
"""Values of one member of a record that are kept."""
SECRETS_KEPT = 64
"""Secrets of one record that are looked for in all its fields."""


def tidy(row: Mapping[str, object]) -> dict[str, object]:
    """Return `row` with secrets masked and long parts cut."""
    found = Findings()
    cleaned = found.clean_row(row)
    if found.secrets:
        cleaned = found.clean_row(row)  # again: what one field showed to be secret is masked in all of them
    if found.kinds:
        cleaned["masked"] = sorted(found.kinds)
    return cleaned


class Findings:
    """The secrets of one record."""

    def __init__(self) -> None:
        """Start with none."""
        self.secrets: dict[str, str] = {}
        self.kinds: set[str] = set()
        self._spans: dict[str, Sequence[masks.Span]] = {}
        """Text -> where its secrets stand: the same names and paths stand in a record many times."""
        self._room = SEARCHED
        self._values = VALUES_LISTED

    def clean_row(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the members of a record cleaned, each as if it were the only one to be long."""
        cleaned: dict[str, object] = {}
        for name, value in row.items():
            self._room, self._values = SEARCHED, VALUES_LISTED
            cleaned[self.clean_text(name, "")] = self.clean(value, name)
        return cleaned

    def clean(self, value: object, key: str = "") -> object:
        """Return `value` masked and cut. `key` is the name it stands under."""
        self._values -= 1
        if self._values < 0 and not isinstance(value, int | float | None):
            return "[cut]"
        if isinstance(value, str):
            return self.clean_text(value, key)
        if isinstance(value, Mapping):
            items = list(value.items())[:LIST_LIMIT]
            return {self.clean_text(str(name), ""): self.clean(item, str(name)) for name, item in items}
        if isinstance(value, Sequence):
            return self.clean_list(value, key)
        return value if isinstance(value, int | float | None) else self.clean_text(str(value), key)

    def clean_list(self, values: Sequence[object], key: str) -> list[object]:
        """Return the entries cleaned; the words of a command are judged together."""
        kept = values[:LIST_LIMIT]
        if key == "command":
            words = [masks.clean(cut(str(word), LONGEST_MASKED)) for word in kept]
            words = [word if self._fits(word) else f"[cut {len(word)} characters]" for word in words]
            for kind, secret in masks.find_words(words):
                self.learn(secret, kind)
            cleaned: list[object] = [self.without_known(word) for word in masks.mask_words(words)]
        else:
            cleaned = [self.clean(item, key) for item in kept]
        return [*cleaned, f"[{len(values) - LIST_LIMIT} more]"] if len(values) > LIST_LIMIT else cleaned

    def clean_text(self, text: str, key: str) -> str:
        """Return one string cleaned."""
        if len(text) > SHORT or not text.isascii():
            text = masks.clean(cut(text, LONGEST_MASKED))
            if not self._fits(text):
                return f"[cut {len(text)} characters]"
        if key and text and masks.names_a_secret(key) and masks.is_secret_value(text):
            self.learn(text, "secret-value")
        spans = self._spans.get(text)
        if spans is None:
            spans = self._spans[text] = masks.find(text)
        for span in spans:
            self.learn(text[span.start : span.end], span.kind)
        return self.without_known(masks.replaced(text, spans) if spans else text)

    def _fits(self, text: str) -> bool:
        """Say whether a text is searched: it is short, or there is room."""
        if len(text) <= SHORT:
            return True
        self._room -= len(text)
        return self._room >= 0

    def without_known(self, text: str) -> str:
        """Return a text, masked by itself, without what other texts showed to be secret, and cut."""
        for secret, kind in self.secrets.items():
            if secret in text:
                text = text.replace(secret, f"[masked:{kind}]")
        return cut(text)

    def learn(self, secret: str, kind: str) -> None:
        """Remember a secret, so that it is masked wherever else it stands."""
        self.kinds.add(kind)
        if len(secret) >= 6 and len(self.secrets) < SECRETS_KEPT:
            self.secrets[secret] = kind


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return `text` with the middle of what is too long replaced by its length; both ends stay."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}[cut {len(text) - 2 * half} characters]{text[-half:]}"
