#!/bin/sh
# Let policyd decide from a shell script: a command goes in, the status says what came of it.
#
#     decide.sh CWD COMMAND          0 allowed, 1 anything else
#
# `serve --stdio` is a whole daemon for one question. A script that decides often connects to the socket instead
# (`socat - UNIX-CONNECT:"$XDG_RUNTIME_DIR/policyd/policyd.sock"`); the messages are the same. POLICYD names the program.
set -eu
[ $# -eq 2 ] || { echo "usage: decide.sh CWD COMMAND" >&2; exit 1; }
answer=$(jq -nc --arg cwd "$1" --arg command "$2" '
    {protocol: 1, client: {name: "decide.sh"}} as $hello
    | {sessionId: "sh", cwd: $cwd} as $session
    | {sessionId: "sh", toolCall: {toolCallId: "1", kind: "execute", title: $command, rawInput: {command: $command}},
       options: [{optionId: "yes", name: "Allow", kind: "allow_once"}, {optionId: "no", name: "Reject", kind: "reject_once"}]}
      as $request
    | ["_policyd/hello", $hello], ["_policyd/session", $session], ["_policyd/decide", $request]
    | {jsonrpc: "2.0", id: .[0], method: .[0], params: .[1]}' |
    ${POLICYD:-policyd serve --stdio} | jq -c 'select(.id == "_policyd/decide").result // empty')
printf '%s\n' "$answer" | jq -r '"\(.effect): \(.reason)"' >&2
[ "$(printf '%s' "$answer" | jq -r .effect)" = allow ]
