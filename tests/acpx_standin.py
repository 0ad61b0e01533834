"""Stands in for acpx where that is not installed: `acpx --approve-all --agent 'COMMAND' exec 'TASK'`, nothing else.

Does what acpx does with that: starts the command, opens a session, sends the task, says yes to whatever is asked.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys


def main(words: list[str]) -> int:
    """Run one task."""
    if words[:2] != ["--approve-all", "--agent"] or words[3] != "exec":
        sys.exit(f"no acpx of this kind: {words}")
    agent = subprocess.Popen(shlex.split(words[2]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert agent.stdin and agent.stdout

    def say(**message: object) -> None:
        assert agent.stdin
        print(json.dumps({"jsonrpc": "2.0", **message}), file=agent.stdin, flush=True)

    say(id=0, method="initialize", params={"protocolVersion": 1, "clientInfo": {"name": "acpx", "version": "0.19.1"}})
    for line in agent.stdout:
        message = json.loads(line)
        if message.get("method") == "session/request_permission":
            chosen = next(one for one in message["params"]["options"] if one["kind"] == "allow_once")
            outcome = {"outcome": "selected", "optionId": chosen["optionId"]}
            say(id=message["id"], result={"outcome": outcome})
        elif message.get("id") == 0:
            say(id=1, method="session/new", params={"cwd": os.getcwd(), "mcpServers": []})
        elif message.get("id") == 1:
            prompt = [{"type": "text", "text": words[4]}]
            say(id=2, method="session/prompt", params={"sessionId": message["result"]["sessionId"], "prompt": prompt})
        elif message.get("id") == 2:
            break
        else:
            print(line, end="")
    agent.stdin.close()
    return agent.wait(20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
