"""The targets by name."""

from __future__ import annotations

from tests.fuzz import files, places, seeds, shell, talk, wire
from tests.fuzz.law import Target
from tests.fuzz.twist import twisted

JSON = (
    *(
        b'{ } [ ] : , " \\ \\u0041 \\ud800 null '
        b'true NaN 1e999 -0 1.0 "id":1 "id":"x" "ID": "method": "params": "result": '
        b'"error": "session/update" "session/request_permission" "sessionUpdate":"tool_call" "fs/write_text_file" '
        b'"terminal/create" "toolCall":{ "toolCallId":"c" '
        b'"options":[ "kind":"allow_once" "optionId":"yes" "rawInput":{ '
        b'"command":"ls" "sessionId":"s" '
        b'"_meta":{ "outcome":{"outcome":"selected","optionId":"yes"} "session/set_mode" '
        b'"content":[ "locations":[ "status":"completed" "$/cancel_request" "session/cancel" "configOptions":[ '
    ).split(),
    b"\r",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\na",
    b"\nc",
    b"\nt",
    b"\xff",
    b"\n",
    b"[" * 200,
    b'{"a":' * 200,
)
TOML = (
    *(
        b'[[rule]] [defaults] effect="allow" effect="deny" kind="*" command="git '
        b'**" path="**" unless={ url= tool= input={ '
        b'match=[ not_match=[ "@read-only" "@secrets.x" version=1 '
        b"until=2026-01-01 remember= id= [[grant]] [[grant.rule]] "
        b'[project] [clock] """ \'\'\' # = [ ] { } , env=["*"] args= cwd= agent="*" labels={ mode= within=true nan inf '
        b"1979-05-27T07:32:00Z \\u0000 \\U0010FFFF {a,b} [a] ~/ $TMPDIR/ ** *"
    ).split(),
    b"\n",
    b"\r\n",
    b"\x00",
    b"\xff",
)
PLACES = (
    *(
        b"/ // /../ . .. ~ ~/ ~root $HOME $TMPDIR * ** ? "
        b"[ ] [!a] {a,b} { } \\ %2e %2f %00 file:/// file://localhost/ a "
        b".env l/ loop /x/ /etc/passwd /home/dev/app/ https:// http:// :443 @ # ? & = [::1] 127.0.0.1 0x7f.1 xn-- . "
        b"docs.python.org \xc3\x9f \xef\xbd\x81 \xe3\x80\x82 \xcc\x81 \xe2\x80\x8b \xed\xa0\x80"
    ).split(),
    b"\n",
    b"\x00",
    b" ",
    b"\t",
)

SHELL = tuple(word.encode() for word in shell.WORDS)

TARGETS = {
    "shell": Target(shell.check, seeds.commands, SHELL),
    "pattern": Target(shell.check_pattern, seeds.patterns, (*SHELL, b"**", b"@read-only")),
    "wire": Target(wire.check, seeds.lines, JSON, twisted),
    "policy": Target(files.check_policy, seeds.policies, TOML, seconds=3.0),
    "grants": Target(files.check_grants, seeds.grants, TOML),
    "hook": Target(files.check_hook, seeds.hooks, (*JSON, b"NONCE", b"DIGEST", b'"decision":"allow"'), twisted),
    "session": Target(talk.check, seeds.conversations, JSON, twisted, seconds=3.0),
    "path": Target(places.check_path, seeds.paths, PLACES),
    "url": Target(places.check_url, seeds.urls, PLACES),
}
