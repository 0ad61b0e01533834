#!/usr/bin/env python3
"""A prompt hook of policyd that asks a service over HTTPS, both ways signed.

    prompt = ["command:/absolute/path/of/webhook.py"]

Copy it to a place only you can write, and make it executable. Beside it lies `webhook.json`, mode 0600:

    {"url": "https://approvals.example.com/policyd", "secret": "at least 32 random characters"}

The question is sent as it is, with `X-Policyd-Time` (seconds since 1970) and `X-Policyd-Signature: sha256=…`, the
HMAC-SHA256 of time, a dot, and the body. The service answers with status 200 and
`{"decision": "allow" | "reject" | "abstain", "option": …, "message": …}`, and a signature made the same way over nonce,
a dot, and the body: only who knows the secret, and answers this question, is heard. Everything else is a failure, which
policyd takes as an abstention; at the end of the chain it is a rejection.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import stat
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

LONGEST = 60_000
LOCAL = {"127.0.0.1", "::1", "localhost"}


def main() -> None:
    raw = sys.stdin.buffer.read()
    question = json.loads(raw)
    settings = configured(Path(__file__).resolve().with_name("webhook.json"))
    status, signature, body = post(settings["url"], raw, settings["secret"].encode(), question["seconds"])
    wanted = sign(settings["secret"].encode(), question["nonce"], body)
    if status != 200 or not hmac.compare_digest(signature, wanted):
        sys.exit(f"the service answered {status} without a signature that fits")
    said = json.loads(body)
    kept = {name: said[name] for name in ("decision", "option", "message") if name in said}
    print(json.dumps({"nonce": question["nonce"], "digest": question["digest"], **kept}))


def configured(path: Path) -> dict[str, str]:
    """Read the settings; they hold a secret, so nobody else may read them."""
    status = path.stat()
    if status.st_uid not in {0, os.getuid()} or stat.S_IMODE(status.st_mode) & 0o077:
        sys.exit(f"{path} must be readable by you alone (chmod 600)")
    settings = json.loads(path.read_text("utf-8"))
    if len(settings["secret"]) < 32:
        sys.exit("the secret is too short")
    return settings


def sign(secret: bytes, prefix: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret, prefix.encode() + b"." + body, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, secret: bytes, seconds: float) -> tuple[int, str, bytes]:
    """Send the signed question; return status, signature and body of the answer. No redirects."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=seconds)
    elif parts.scheme == "http" and host in LOCAL:
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
    else:
        sys.exit("the service must be https, or on this machine")
    now = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Policyd-Time": now,
        "X-Policyd-Signature": sign(secret, now, body),
    }
    connection.request("POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers.get("X-Policyd-Signature", ""), answer.read(LONGEST)


if __name__ == "__main__":
    main()
