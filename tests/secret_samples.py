"""Made-up secrets by kind, in the shapes their issuers give them. None of them opens anything."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"

Maker = Callable[[random.Random], str]


def seeded(seed: object) -> random.Random:
    """Return a source that gives the same samples every time."""
    return random.Random(str(seed))  # noqa: S311 - samples, no secrets


def some(rng: random.Random, alphabet: str, length: int) -> str:
    """Return random characters."""
    return "".join(rng.choice(alphabet) for _ in range(length))


def jwt(rng: random.Random) -> str:
    """Return something shaped like a signed token."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(f'{{"sub":"{some(rng, ALNUM, 12)}"}}'.encode()).decode().rstrip("=")
    return f"{head}.{body}.{some(rng, URLSAFE, 43)}"


def pem(rng: random.Random) -> str:
    """Return something shaped like a private key."""
    kind = rng.choice(["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "])
    body = "\n".join(some(rng, ALNUM + "+/", 64) for _ in range(4))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


SHAPED: dict[str, Maker] = {
    "aws-access-key": lambda r: r.choice(["AKIA", "ASIA"]) + some(r, string.ascii_uppercase + "234567", 16),
    "github-token": lambda r: r.choice(["ghp_", "gho_", "ghs_", "ghu_", "ghr_"]) + some(r, ALNUM, 36),
    "github-fine-grained": lambda r: "github_pat_" + some(r, ALNUM, 22) + "_" + some(r, ALNUM, 59),
    "gitlab-token": lambda r: "glpat-" + some(r, URLSAFE, 20),
    "slack-token": lambda r: f"xoxb-{some(r, string.digits, 12)}-{some(r, string.digits, 12)}-{some(r, ALNUM, 24)}",
    "slack-webhook": lambda r: (
        f"https://hooks.slack.com/services/T{some(r, ALNUM, 8)}/B{some(r, ALNUM, 8)}/{some(r, ALNUM, 24)}"
    ),
    "anthropic-key": lambda r: "sk-ant-api03-" + some(r, URLSAFE, 93) + "AA",
    "openai-key": lambda r: r.choice(["sk-", "sk-proj-", "sk-svcacct-"]) + some(r, ALNUM, 48),
    "google-api-key": lambda r: "AIza" + some(r, URLSAFE, 35),
    "google-oauth": lambda r: "ya29." + some(r, URLSAFE, 80),
    "stripe-key": lambda r: r.choice(["sk_live_", "rk_live_", "sk_test_"]) + some(r, ALNUM, 24),
    "twilio-key": lambda r: "SK" + some(r, HEX, 32),
    "sendgrid-key": lambda r: f"SG.{some(r, URLSAFE, 22)}.{some(r, URLSAFE, 43)}",
    "npm-token": lambda r: "npm_" + some(r, ALNUM, 36),
    "pypi-token": lambda r: "pypi-AgEIcHlwaS5vcmc" + some(r, URLSAFE, 60),
    "docker-token": lambda r: "dckr_pat_" + some(r, URLSAFE, 27),
    "huggingface-token": lambda r: "hf_" + some(r, ALNUM, 34),
    "databricks-token": lambda r: "dapi" + some(r, HEX, 32),
    "digitalocean-token": lambda r: "dop_v1_" + some(r, HEX, 64),
    "shopify-token": lambda r: "shpat_" + some(r, HEX, 32),
    "vault-token": lambda r: "hvs." + some(r, URLSAFE, 90),
    "linear-key": lambda r: "lin_api_" + some(r, ALNUM, 40),
    "notion-token": lambda r: "ntn_" + some(r, ALNUM, 46),
    "atlassian-token": lambda r: "ATATT3xFfGF0" + some(r, URLSAFE, 180) + "=" + some(r, HEX.upper(), 8),
    "newrelic-key": lambda r: "NRAK-" + some(r, string.ascii_uppercase + string.digits, 27),
    "grafana-token": lambda r: f"glsa_{some(r, ALNUM, 32)}_{some(r, HEX, 8)}",
    "telegram-token": lambda r: f"{some(r, '123456789', 10)}:AA{some(r, URLSAFE, 33)}",
    "azure-client-secret": lambda r: f"{some(r, ALNUM, 3)}8Q~{some(r, ALNUM + '_~.', 34)}",
    "postman-key": lambda r: f"PMAK-{some(r, HEX, 24)}-{some(r, HEX, 34)}",
    "age-key": lambda r: "AGE-SECRET-KEY-1" + some(r, string.ascii_uppercase + string.digits, 58),
    "airtable-token": lambda r: f"pat{some(r, ALNUM, 14)}.{some(r, HEX, 64)}",
    "alibaba-key": lambda r: "LTAI" + some(r, ALNUM, 20),
    "discord-token": lambda r: f"{r.choice('MNO')}{some(r, ALNUM, 25)}.{some(r, ALNUM, 6)}.{some(r, URLSAFE, 38)}",
    "discord-webhook": lambda r: (
        f"https://discord.com/api/webhooks/{some(r, string.digits, 18)}/{some(r, URLSAFE, 68)}"
    ),
    "doppler-token": lambda r: "dp.pt." + some(r, ALNUM, 43),
    "dropbox-token": lambda r: "sl." + some(r, URLSAFE, 130),
    "facebook-token": lambda r: "EAA" + some(r, ALNUM, 120),
    "figma-token": lambda r: "figd_" + some(r, URLSAFE, 40),
    "fly-token": lambda r: "fo1_" + some(r, URLSAFE, 43),
    "groq-key": lambda r: "gsk_" + some(r, ALNUM, 52),
    "heroku-key": lambda r: "HRKU-" + some(r, HEX, 36),
    "mailchimp-key": lambda r: f"{some(r, HEX, 32)}-us{r.randint(1, 21)}",
    "mailgun-key": lambda r: "key-" + some(r, HEX, 32),
    "nuget-key": lambda r: "oy2" + some(r, string.ascii_lowercase + string.digits, 43),
    "onepassword-token": lambda r: "ops_eyJ" + some(r, ALNUM, 250),
    "perplexity-key": lambda r: "pplx-" + some(r, ALNUM, 48),
    "planetscale-token": lambda r: "pscale_tkn_" + some(r, URLSAFE, 43),
    "replicate-token": lambda r: "r8_" + some(r, ALNUM, 37),
    "rubygems-key": lambda r: "rubygems_" + some(r, HEX, 48),
    "sentry-token": lambda r: "sntrys_" + some(r, ALNUM, 90),
    "square-token": lambda r: "sq0atp-" + some(r, URLSAFE, 22),
    "supabase-key": lambda r: "sbp_" + some(r, HEX, 40),
    "teams-webhook": lambda r: f"https://corp.webhook.office.com/webhookb2/{some(r, HEX, 32)}/IncomingWebhook/x",
    "terraform-token": lambda r: f"{some(r, ALNUM, 14)}.atlasv1.{some(r, ALNUM, 67)}",
    "xai-key": lambda r: "xai-" + some(r, ALNUM, 80),
    "jwt": jwt,
    "private-key": pem,
}
"""Found wherever they stand."""

PASSWORD = ALNUM + "!#%+,-.:=@^_~"

IN_CONTEXT: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "url password": lambda r: (s := some(r, ALNUM + "!+-._~", 16), f"psql postgres://app:{s}@db.example/app")[::-1],
    "bearer header": lambda r: (s := some(r, ALNUM, 40), f'curl -H "Authorization: Bearer {s}" https://x.example')[
        ::-1
    ],
    "basic header": lambda r: (s := some(r, ALNUM, 24), f"curl -H 'Authorization: Basic {s}' https://x.example")[::-1],
    "key header": lambda r: (s := some(r, ALNUM, 32), f"curl -H 'X-Api-Key: {s}' https://x.example")[::-1],
    "cookie": lambda r: (s := some(r, ALNUM, 32), f"curl -H 'Cookie: session={s}' https://x.example")[::-1],
    "curl user": lambda r: (s := some(r, ALNUM, 12), f"curl -u deploy:{s} https://x.example")[::-1],
    "variable": lambda r: (s := some(r, ALNUM, 20), f"export DB_PASSWORD={s} && ./run")[::-1],
    "quoted variable": lambda r: (s := "a " + some(r, PASSWORD, 14), f'API_KEY="{s}" make')[::-1],
    "json": lambda r: (s := some(r, ALNUM, 20), f'{{"client_secret": "{s}", "n": 1}}')[::-1],
    "escaped json": lambda r: (s := some(r, ALNUM, 20), f'{{"x": "{{\\"apiKey\\": \\"{s}\\"}}"}}')[::-1],
    "option": lambda r: (s := some(r, ALNUM, 18), f"tool login --password {s} --verbose")[::-1],
    "option with equals": lambda r: (s := some(r, ALNUM, 18), f"tool --access-token={s} --verbose")[::-1],
    "mysql": lambda r: (s := some(r, ALNUM, 14), f"mysql -u root -p{s} app")[::-1],
    "sshpass": lambda r: (s := some(r, ALNUM, 14), f"sshpass -p {s} ssh host")[::-1],
    "redis": lambda r: (s := some(r, ALNUM, 20), f"redis-cli -h cache -a {s} ping")[::-1],
    "azure connection": lambda r: (
        s := some(r, ALNUM + "+/", 86) + "==",
        f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={s};EndpointSuffix=core.windows.net",
    )[::-1],
    "yaml": lambda r: (s := some(r, ALNUM, 16), f"database:\n  password: {s}\n  port: 5432\n")[::-1],
    "aws secret": lambda r: (s := some(r, ALNUM + "+/", 40), f"aws_secret_access_key = {s}")[::-1],
    "signed link": lambda r: (s := some(r, HEX, 64), f"curl 'https://b.s3.example/k?X-Amz-Signature={s}'")[::-1],
    "docker login": lambda r: (s := some(r, ALNUM, 20), f"docker login -u me -p {s} registry.example")[::-1],
}
"""Found by what stands before them: the text, and the secret in it."""
