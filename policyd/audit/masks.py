"""Masking of secrets before anything is stored.

Rules of this module:

1. A secret is found by its own shape (`TOKENS`: prefixes that issuers chose so that they can be found) or by what
   stands before it (`CONTEXTS`: headers, URLs, options; `ASSIGNMENT`: a name that says so).
2. The mask says what it hides: `[masked:github-token]`. What stood there is not kept, nor its length.
3. Words of a command are judged together, so that `--password hunter2` is caught across two words.
4. Every expression is RE2: linear on whatever an agent sends. One cheap search (`HINT`) rules most texts out.
5. Harmless values stay: variables (`$TOKEN`), paths, placeholders, names like `token_url` or `max_tokens`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

TOKENS: dict[str, str] = {
    "aws-access-key": r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA|APKA|ASCA)[A-Z0-9]{16}\b",
    "alibaba-key": r"\bLTAI[A-Za-z0-9]{12,30}\b",
    "github-token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    "gitlab-token": r"\b(?:gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct|rtr)-|GR1348941)[A-Za-z0-9_.-]{16,}",
    "atlassian-token": r"\bAT[A-Z]TT3[A-Za-z0-9_=-]{20,}|\bATBB[A-Za-z0-9]{24,}",
    "slack-token": r"\bxox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{8,}|\bxapp-\d-[A-Za-z0-9-]{8,}",
    "slack-webhook": r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{10,}",
    "discord-webhook": r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_-]{20,}",
    "teams-webhook": r"https://[A-Za-z0-9.-]+\.webhook\.office\.com/[A-Za-z0-9@/_-]{10,}",
    "discord-token": r"\b[MNO][A-Za-z\d_-]{22,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,40}",
    "telegram-token": r"\b\d{8,10}:[A-Za-z0-9_-]{35}",
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    "openai-key": r"\bsk-(?:(?:proj|svcacct|admin|None|or-v1|live|test|lf)-)?[A-Za-z0-9_-]*"
    r"[A-Za-z0-9]{16,}[A-Za-z0-9_-]*",
    "google-api-key": r"\bAIza[A-Za-z0-9_-]{35}",
    "google-oauth": r"\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\b1//0[A-Za-z0-9_-]{20,}",
    "stripe-key": r"\b(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{16,}",
    "twilio-key": r"\bSK[0-9a-f]{32}\b",
    "sendgrid-key": r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "mailgun-key": r"\bkey-[0-9a-zA-Z]{32}\b",
    "mailchimp-key": r"\b[0-9a-f]{32}-us\d{1,2}\b",
    "npm-token": r"\bnpm_[A-Za-z0-9]{30,}",
    "pypi-token": r"\bpypi-Ag[A-Za-z0-9_-]{16,}",
    "rubygems-key": r"\brubygems_[0-9a-f]{32,}",
    "nuget-key": r"\boy2[a-z0-9]{43}\b",
    "docker-token": r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}",
    "huggingface-token": r"\b(?:hf_|api_org_)[A-Za-z0-9]{20,}",
    "replicate-token": r"\br8_[A-Za-z0-9]{20,}",
    "groq-key": r"\bgsk_[A-Za-z0-9]{20,}",
    "xai-key": r"\bxai-[A-Za-z0-9]{20,}",
    "perplexity-key": r"\bpplx-[A-Za-z0-9]{20,}",
    "databricks-token": r"\bdapi[0-9a-f]{32}(?:-\d)?",
    "digitalocean-token": r"\bdo[oprt]_v1_[0-9a-f]{32,}",
    "shopify-token": r"\bshp(?:at|ca|pa|ss|tka|ua)_[0-9A-Fa-f]{16,}",
    "square-token": r"\bsq0[a-z]{3}-[A-Za-z0-9_-]{16,}|\bEAAA[A-Za-z0-9_-]{50,}",
    "facebook-token": r"\bEAA[A-Za-z0-9]{60,}",
    "vault-token": r"\bhv[sbr]\.[A-Za-z0-9_-]{16,}",
    "terraform-token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{30,}",
    "linear-key": r"\blin_(?:api|oauth)_[A-Za-z0-9]{20,}",
    "notion-token": r"\b(?:secret|ntn)_[A-Za-z0-9]{32,}",
    "newrelic-key": r"\bNR(?:AK|JS|II|RA|BR|AA)-[A-Za-z0-9]{16,}",
    "grafana-token": r"\bgl(?:sa|c)_[A-Za-z0-9+/=_]{20,}",
    "planetscale-token": r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{16,}",
    "doppler-token": r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{16,}",
    "postman-key": r"\bPMAK-[A-Za-z0-9-]{20,}",
    "sentry-token": r"\bsntry[su]_[A-Za-z0-9_+/=-]{20,}",
    "airtable-token": r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{32,}",
    "figma-token": r"\bfigd_[A-Za-z0-9_-]{20,}",
    "supabase-key": r"\bsbp_[0-9a-f]{32,}|\bsb_secret_[A-Za-z0-9_-]{16,}",
    "heroku-key": r"\bHRKU-[A-Za-z0-9_-]{20,}",
    "fly-token": r"\b(?:fo1_|fm[12][ar]?_)[A-Za-z0-9_+/=-]{20,}",
    "onepassword-token": r"\bops_eyJ[A-Za-z0-9_+/=-]{20,}",
    "dropbox-token": r"\bsl\.(?:u\.)?[A-Za-z0-9_-]{60,}",
    "azure-client-secret": r"\b[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
    "age-key": r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
    "private-key": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
    r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
}
"""Kind -> the shape of the whole secret."""

# `.` never crosses a line here; `[^|;&\n]` keeps an option with its own command.
CONTEXTS: dict[str, tuple[str, ...]] = {
    "url-password": (
        r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\"]*:([^\s/@'\"]+)@",
        r"\b[A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9_-]{20,})@",
    ),
    "authorization": (
        r"(?i)\b(?:proxy-)?authorization['\"\\]*\s*[:=]\s*['\"\\]*"
        r"(?:(?:bearer|basic|token|digest|negotiate|apikey|api-key|bot)\s+)?([^\s'\"\\,;]+)",
        r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})",
    ),
    "cookie": (r"(?i)\b(?:set-)?cookie['\"]?\s*:\s*['\"]?([^'\"\r\n]+)",),
    "azure-key": (r"\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{16,})", r"[?&]sig=([A-Za-z0-9%+/=_-]{16,})"),
    "signed-url": (r"(?i)[?&]x-(?:amz|goog)-(?:signature|credential|security-token)=([A-Za-z0-9%+/=_.-]{8,})",),
    "password": (
        r"\bsshpass\s+-p\s*([^\s]+)",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^|;&\n]*?\s-p([^\s-][^\s]*)",
        r"\b(?:curl|http|https|xh|wget)\b[^|;&\n]*?\s(?:-u|--user|--proxy-user|-U|-a|--auth)[\s=]*['\"]?"
        r"[^\s:'\"=]+:([^\s'\"]+)",
        r"\bredis-cli\b[^|;&\n]*?\s-a\s+([^\s]+)",
        r"\b(?:docker|podman|helm|buildah|skopeo|az|oc)\b[^|;&\n]*?\slogin\b[^|;&\n]*?\s-p[\s=]*([^\s]+)",
        r"\bopenssl\b[^|;&\n]*?\spass:([^\s]+)",
        r"\b(?:zip|unzip)\b[^|;&\n]*?\s-P\s*([^\s]+)",
        r"\b7z[ar]?\b[^|;&\n]*?\s-p([^\s]+)",
        r"\bhtpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+[^\s]+\s+[^\s]+\s+([^\s]+)",
        r"(?i)\bidentified\s+by\s+['\"]([^'\"]+)['\"]",
        r"(?i)\bpassword\s+['\"]([^'\"]+)['\"]",
    ),
}
"""Kind -> expressions whose only group is the secret."""


def listed(words: str) -> frozenset[str]:
    """Return the words of a blank-separated list."""
    return frozenset(words.split())


NAME = (
    r"([A-Za-z0-9_.-]*(?:(?i:passw|passphrase|secret|token|apikey|credential)|(?i:pass|pwd|pw|pat|dsn|webhook)|"
    r"(?i:api|access|private|auth|signing|encryption|account|master|client|license|session|shared|deploy|app|storage|service)"
    r"[_-]?(?i:key))[A-Za-z0-9_.-]*)"
)
VALUE = r"\\?(?:\"((?:[^\"\\\n]|\\[^\n])+)\"|'([^'\n]+)'|\"?([^\s'\",;&|<>(){}\\]+))"
ASSIGNMENTS = (
    NAME + r"\\?['\"]?\]?\s*(?::=|=>|=|:)\s*" + VALUE,
    r"--?" + NAME + r"\s+" + VALUE,
)
"""A name, a separator and a value; whether the name says secret is judged by `names_a_secret`."""

SECRET_WORDS = listed(
    "password passwd passphrase pass pw pwd secret secrets token apikey apitoken authtoken accesstoken accesskey "
    "privatekey secretkey clientsecret credential credentials pat dsn webhook"
)
SECRET_PAIRS = listed(
    "api_key access_key private_key secret_key auth_key signing_key encryption_key account_key master_key "
    "client_key license_key session_key shared_key deploy_key app_key storage_key service_key webhook_url"
)
HARMLESS_TAILS = listed(
    "name file filename path dir id ids url uri type length len size count policy field class ttl expiry expires limit "
    "ref version format hint prompt regex pattern manager store env arn endpoint required enabled fd stdin "
    "command cmd source provider helper location issuer audience budget scope scopes label header column var"
)
WEAK_WORDS = frozenset({"pass", "pw", "pwd", "pat", "dsn", "webhook", "webhook_url"})
"""Words that say secret only in an assignment written in capitals (`DB_PASS=…`) or as part of a longer name."""

HARMLESS_VALUES = listed(
    "true false yes no on off null none nil undefined str string int bool bytes any object required optional "
    "prompt env stdin file default example changeme redacted masked hidden"
)
HINT = (
    r"(?i:passw|passphrase|secret|token|apikey|api[_-]key|access[_-]?key|private[_-]?key|account[_-]?key|"
    r"(?:auth|signing|encryption|master|license|session|shared|deploy|app|storage|service|client)[_-]key|"
    r"credential|authorization|bearer|cookie|signature|identified|sshpass|redis-cli|htpasswd|webhook|pass\b|_pw\b|pwd|"
    r"dsn|_pat\b)|://[^\s/]*@|[?&]sig=|pass:|\blogin\b|--?u(?:ser)?\b|\s-[aPUp]|-----BEGIN|"
    r"A(?:K|S|B)IA|ACCA|A[GIN]PA|AIDA|ANVA|AROA|APKA|ASCA|LTAI|gh[pousr]_|github_pat_|\bgl[a-z]{2,5}-|GR13|AT[A-Z]TT3|"
    r"ATBB|xox|xapp-|discord|hooks\.slack|\b[MNO][A-Za-z\d_-]{22}|\d{8}:|\bsk[-_]|[rp]k_|whsec|AIza|ya29|GOCSPX|1//0|SK[0-9a-f]|"
    r"SG\.|key-|-us\d|npm_|pypi-|rubygems|oy2|dckr|hf_|api_org|r8_|gsk_|xai-|pplx|dapi|do[oprt]_v1|shp[a-z]+_|sq0|EAA|"
    r"hv[sbr]\.|atlasv1|lin_|ntn_|NR[A-Z]{2}-|gl(?:sa|c)_|pscale|dp\.|PMAK|sntry|\bpat[A-Za-z0-9]{14}\.|figd|sbp_|HRKU|fo1_|fm[12]|"
    r"ops_|sl\.|Q~|AGE-SEC|eyJ"
)


LONGEST_KNOWN = 128
"""Characters of a text that is looked at once."""


class Match(Protocol):
    """What is used of an RE2 match."""

    def start(self, group: int = 0) -> int:
        """Where `group` begins."""

    def end(self, group: int = 0) -> int:
        """Where `group` ends."""

    def group(self, group: int = 0) -> str:
        """The text of `group`."""


class Expression(Protocol):
    """What is used of an RE2 expression."""

    def search(self, text: str) -> Match | None:
        """Return the first match."""

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of a whole text."""

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield the matches."""

    def findall(self, text: str) -> list[str]:
        """Return the texts of the matches."""


class BytesExpression(Protocol):
    """What is used of an RE2 expression over bytes."""

    def search(self, text: bytes) -> object | None:
        """Return the first match."""


class Span(NamedTuple):
    """A secret in a text."""

    start: int
    end: int
    kind: str


def mask(text: str) -> str:
    """Return `text` with every secret replaced by a mask that names its kind."""
    return replaced(text, find(text))


def mask_words(words: Sequence[str]) -> tuple[str, ...]:
    """Mask the words of one command, judged together."""
    spans = deque(find(" ".join(words)))
    if not spans:
        return tuple(words)
    masked, start = [], 0
    for before, word in zip(("", *words), words, strict=False):
        inside = within(spans, start, start + len(word))
        masked.append(f"[masked:{inside[0].kind}]" if inside and is_secret_option(before) else replaced(word, inside))
        start += len(word) + 1
    return tuple(masked)


def within(spans: deque[Span], start: int, end: int) -> list[Span]:
    """Return what of `spans` lies in a word of a longer text, counted from the word's start; drop what ends before."""
    while spans and spans[0].end <= start:
        spans.popleft()
    inside = []
    for span in spans:
        if span.start >= end:
            break
        inside.append(Span(max(span.start, start) - start, min(span.end, end) - start, span.kind))
    return inside


def find_words(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return kind and text of every secret in the words of one command, judged together."""
    joined = " ".join(words)
    return [(span.kind, joined[span.start : span.end]) for span in find(joined)]


def is_secret_option(word: str) -> bool:
    """Say whether the whole next word is this word's secret value: `--password`, `-token`."""
    return word.startswith("-") and "=" not in word and names_a_secret(word.lstrip("-"))


def suspicious_json(data: bytes) -> bool:
    """Say cheaply whether ASCII JSON may hold a secret at all: False is certain."""
    if b"\\" in data:  # an escape is no part of a word
        data = data.replace(b"\\n", b" ").replace(b"\\t", b" ").replace(b"\\r", b" ").replace(b"\\", b" ")
    return hint_bytes().search(data) is not None


def find(text: str) -> Sequence[Span]:
    """Return every secret in `text`, in order, without overlaps (the widest wins)."""
    text = clean(text)
    return found_before(text) if len(text) <= LONGEST_KNOWN else found(text)


@lru_cache(maxsize=4096)
def found_before(text: str) -> tuple[Span, ...]:
    """Return the same of a short text: names of fields, directories and programs are in record after record."""
    return found(text)


def found(text: str) -> tuple[Span, ...]:
    """Search a text that RE2 can read."""
    if hint().search(text) is None:
        return ()
    spans = sorted((*tokens_in(text), *contexts_in(text), *assignments_in(text)), key=lambda s: (s.start, -s.end))
    kept: list[Span] = []
    for span in spans:
        if kept and span.start < kept[-1].end:
            last = kept[-1]
            kept[-1] = last if span.end <= last.end else Span(last.start, span.end, last.kind)
        else:
            kept.append(span)
    return tuple(kept)


def replaced(text: str, spans: Sequence[Span]) -> str:
    """Return `text` with each span, in order and apart, replaced by its mask."""
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += (text[at : span.start], f"[masked:{span.kind}]")
        at = span.end
    return "".join((*parts, text[at:])) if spans else text


def clean(text: str) -> str:
    """Return `text` without lone surrogates, which RE2 cannot read; same length."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def tokens_in(text: str) -> Iterator[Span]:
    """Yield secrets known by their own shape."""
    for match in tokens().finditer(text):
        yield Span(match.start(), match.end(), token_kind(match.group()))


def contexts_in(text: str) -> Iterator[Span]:
    """Yield secrets known by what stands before them."""
    if any_context().search(text) is None:
        return
    for kind, expression in contexts():
        for match in expression.finditer(text):
            if is_secret_value(match.group(1)):
                yield Span(match.start(1), match.end(1), kind)


def assignments_in(text: str) -> Iterator[Span]:
    """Yield values of names that say they are secret: `API_KEY=…`, `"password": "…"`, `--token …`."""
    for spaced, expression in enumerate(assignments()):
        for match in expression.finditer(text):
            group = next(n for n in (2, 3, 4) if match.group(n) is not None)
            value = match.group(group)
            if names_a_secret(match.group(1)) and is_secret_value(value) and not (spaced and value.startswith("-")):
                yield Span(match.start(group), match.end(group), "secret-value")


@lru_cache(maxsize=1024)
def names_a_secret(name: str) -> bool:
    """Say whether a variable, key or option of this name holds a secret: `DB_PASSWORD`, `apiKey`, not `token_url`."""
    words = [word.lower() for word in name_words().findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in HARMLESS_TAILS:
        return False
    pairs = {f"{a}_{b}" for a, b in pairwise(words)}
    strong = (set(words) & SECRET_WORDS) | (pairs & SECRET_PAIRS)
    if strong - WEAK_WORDS or "apikey" in name.lower():
        return True
    return bool(strong) and len(words) > 1 and name.upper() != "OLDPWD"


def is_secret_value(value: str) -> bool:
    """Say whether a value can be a secret: no variable, path, placeholder, mask or plain word of configuration."""
    if len(value) < 3 or value[0] in "$<%{([@`" or value.startswith(("./", "../", "~/", "\\$", "\\(")):
        return False
    if value[0] == "/" and not any(is_random(part) for part in value.split("/")):
        return False
    bare = value.strip("'\"\\").rstrip(".,;:)]}").lower()
    return len(bare) >= 3 and bare not in HARMLESS_VALUES and set(bare) - {"*", "x", "."} != set()


def is_random(part: str) -> bool:
    """Say whether a part between slashes is no name of a directory: Base64 has slashes too."""
    return (
        len(part) >= 12 and any(map(str.isupper, part)) and any(map(str.islower, part)) and any(map(str.isdigit, part))
    )


@cache
def hint() -> Expression:
    """The cheap search in front of all others."""
    return compiled(HINT)


@cache
def hint_bytes() -> BytesExpression:
    """The same for bytes."""
    import re2

    expression: BytesExpression = re2.compile(HINT.encode())
    return expression


@cache
def tokens() -> Expression:
    """One alternation of all token shapes, without groups: RE2 would fill those by a machine fifty times slower."""
    return compiled("|".join(f"(?:{shape})" for shape in TOKENS.values()))


def token_kind(secret: str) -> str:
    """Return the kind of a whole secret: the first whose shape it has."""
    return next((kind for kind in TOKENS if token_shape(kind).fullmatch(secret) is not None), "token")


@cache
def token_shape(kind: str) -> Expression:
    """The shape of one kind."""
    return compiled(TOKENS[kind])


@cache
def contexts() -> tuple[tuple[str, Expression], ...]:
    """Every context expression with its kind."""
    return tuple((kind, compiled(shape)) for kind, shapes in CONTEXTS.items() for shape in shapes)


@cache
def any_context() -> Expression:
    """One alternation of all of them: nearly no text has any."""
    return compiled("|".join(f"(?:{shape})" for shapes in CONTEXTS.values() for shape in shapes))


@cache
def assignments() -> tuple[Expression, Expression]:
    """The expressions of `ASSIGNMENTS`: with a separator, and an option before its value."""
    return compiled(ASSIGNMENTS[0]), compiled(ASSIGNMENTS[1])


@cache
def name_words() -> Expression:
    """Splits a name at case changes, underscores and dashes."""
    return compiled(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def compiled(shape: str) -> Expression:
    """Compile one expression with RE2."""
    import re2

    expression: Expression = re2.compile(shape)
    return expression
