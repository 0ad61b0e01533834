"""A model that is a script: four wire formats on loopback, no reasoning, no network.

A script is a list of turns, a turn a list of `Call`s. The server counts the turns that already stand in the
conversation it is sent, so it holds no state and agents may retry. After the last turn it says "Done.".
Requests without tools (titles, classifiers, summaries) get a fixed text and never disturb a script.
"""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Reply = list[tuple[str, Json]] | Json
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True)
class Call:
    """One tool call: a name and arguments, or (`raw`) the free text of a custom tool."""

    name: str
    arguments: Json = field(default_factory=dict)
    raw: str | None = None


class ModelServer:
    """Serves one script until closed; `url` has no trailing slash."""

    def __init__(self, turns: list[list[Call]]) -> None:
        self.turns = turns
        self.numbers = itertools.count(1)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def turn(self, done: int, *, tools: bool) -> list[Call]:
        """Return the calls of turn `done`, none when the script is over or the request has no tools."""
        return self.turns[done] if tools and done < len(self.turns) else []

    def answer(self, path: str, body: Json) -> Reply:
        """Return a list of server-sent events, or one object, for a request."""
        if path.endswith("/messages"):
            return self.anthropic(body)
        if path.endswith("/responses"):
            return self.responses(body)
        if path.endswith("/chat/completions"):
            return self.chat(body)
        if "enerateContent" in path:
            return self.gemini(body, stream="stream" in path)
        return {"input_tokens": 10, "totalTokens": 10}

    def anthropic(self, body: Json) -> Reply:
        """Anthropic Messages."""
        blocks = [
            message["content"]
            for message in body.get("messages", [])
            if message.get("role") == "assistant" and isinstance(message.get("content"), list)
        ]
        done = sum(any(part.get("type") == "tool_use" for part in parts) for parts in blocks)
        calls = self.turn(done, tools=len(body.get("tools") or []) > 4)
        content: list[Json] = [{"type": "text", "text": "Working." if calls else "Done."}]
        for call in calls:
            name = {"type": "tool_use", "id": f"toolu_{next(self.numbers):024d}", "name": call.name}
            content.append({**name, "input": call.arguments})
        stop = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": 100, "output_tokens": 20}
        message = {
            "id": f"msg_{next(self.numbers):024d}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            return {**message, "content": content, "stop_reason": stop}
        events: list[tuple[str, Json]] = [
            ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
            *anthropic_blocks(content),
            ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}),
            ("message_stop", {}),
        ]
        return [(name, {"type": name, **data}) for name, data in events]

    def responses(self, body: Json) -> Reply:
        """OpenAI Responses, always streamed."""
        items = body.get("input") or []
        items = items if isinstance(items, list) else []
        marks = {
            item["call_id"].split("-")[1]
            for item in items
            if item.get("type") in {"function_call", "custom_tool_call"} and item.get("call_id", "").startswith("call-")
        }
        number = next(self.numbers)
        out: list[Json] = []
        for index, call in enumerate(self.turn(len(marks), tools=bool(body.get("tools")))):
            ids = {"id": f"fc_{number}_{index}", "call_id": f"call-{number}-{index}", "status": "completed"}
            if call.raw is not None:
                out.append({"type": "custom_tool_call", "name": call.name, "input": call.raw, **ids})
            else:
                text = json.dumps(call.arguments)
                out.append({"type": "function_call", "name": call.name, "arguments": text, **ids})
        if not out:
            part = {"type": "output_text", "text": "Done.", "annotations": []}
            base = {"type": "message", "role": "assistant", "id": f"msg_{number}", "status": "completed"}
            out.append({**base, "content": [part]})
        head: Json = {"id": f"resp_{number}"}
        events: list[tuple[str, Json]] = [
            ("response.created", {"response": {**head, "status": "in_progress", "output": []}})
        ]
        for index, item in enumerate(out):
            events.append(("response.output_item.added", {"output_index": index, "item": item}))
            events.append(("response.output_item.done", {"output_index": index, "item": item}))
        used = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        finished: Json = {"response": {**head, "status": "completed", "output": out, "usage": used}}
        events.append(("response.completed", finished))
        return [(name, {"type": name, **data}) for name, data in events]

    def chat(self, body: Json) -> Reply:
        """OpenAI chat completions."""
        done = sum(bool(message.get("tool_calls")) for message in body.get("messages", []))
        number = next(self.numbers)
        calls: list[Json] = [
            {
                "index": index,
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for index, call in enumerate(self.turn(done, tools=bool(body.get("tools"))))
        ]
        text = "Working." if calls else "Done."
        finish = "tool_calls" if calls else "stop"
        base = {"id": f"chatcmpl-{number}", "created": 1_700_000_000, "model": body.get("model", "scripted")}
        if not body.get("stream"):
            message: Json = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return {**base, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        deltas: list[Json] = [{"role": "assistant", "content": text}]
        deltas += [{"tool_calls": [call]} for call in calls]
        chunks: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        chunks.append({"index": 0, "delta": {}, "finish_reason": finish})
        rows = [{**base, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
        rows[-1]["usage"] = USAGE
        return [("", row) for row in rows] + [("[DONE]", {})]

    def gemini(self, body: Json, *, stream: bool) -> Reply:
        """Gemini generateContent."""
        contents = body.get("contents", [])
        turns = [c.get("parts") or [] for c in contents if c.get("role") == "model"]
        done = sum(any("functionCall" in part for part in parts) for parts in turns)
        declared = any(tool.get("functionDeclarations") for tool in body.get("tools") or [])
        calls = self.turn(done, tools=declared)
        parts: list[Json] = [{"functionCall": {"name": call.name, "args": call.arguments}} for call in calls]
        reply = {
            "candidates": [
                {
                    "content": {"role": "model", "parts": parts or [{"text": guess(body)}]},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
            "modelVersion": "scripted",
        }
        return [("", reply)] if stream else reply


def guess(body: Json) -> str:
    """Return a text that fits the schema the request asks for, if it asks for one."""
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
    if not schema:
        return "Done."
    return json.dumps({key: plausible(key, rule) for key, rule in schema.get("properties", {}).items()})


def plausible(key: str, rule: Json) -> object:
    """Return a value of the type that `rule` names."""
    if key == "next_speaker":
        return "user"
    if "enum" in rule:
        return rule["enum"][-1]
    return {"number": 1, "integer": 1, "boolean": False, "array": []}.get(str(rule.get("type", "")).lower(), "none")


def anthropic_blocks(content: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the stream events of content blocks."""
    for index, block in enumerate(content):
        if block["type"] == "text":
            start: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": index, "content_block": start}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}


def handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    """Return a request handler bound to `server`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def do_HEAD(self) -> None:
            self.send("application/json", b"")

        def do_GET(self) -> None:
            models = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "local"}]
            self.send("application/json", json.dumps({"object": "list", "data": models, "models": []}).encode())

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            body = json.loads(raw or b"{}")
            reply = server.answer(self.path.split("?")[0], body)
            if isinstance(reply, dict):
                self.send("application/json", json.dumps(reply).encode())
                return
            lines = [sse(name, data) for name, data in reply]
            self.send("text/event-stream", "".join(lines).encode())

        def send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def sse(name: str, data: Json) -> str:
    """Return one server-sent event."""
    if name == "[DONE]":
        return "data: [DONE]\n\n"
    event = f"event: {name}\n" if name else ""
    return f"{event}data: {json.dumps(data)}\n\n"
