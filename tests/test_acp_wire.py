"""The wire: framing, envelopes, strict decoding."""

from __future__ import annotations

import json
import random
from base64 import b64decode
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from policyd import acp
from policyd.acp import FrameLimitError, Lines, NotJsonError, ProtocolError, shapes
from policyd.acp.json import CONTAINERS, FREE, NAMES

TRANSCRIPT = (
    '{"jsonrpc":"2.0","id":0,"method":"a"}\n\n{"t":"one\u2028two\u0085three\x0bfour\x0cfive"}\r\n'
    "  \nplain text\r with lone CR\n"
    '{"jsonrpc":"2.0","method":"session/update","params":{"x":"\u00e9\U0001f600"}}\n'
).encode()


# ---- framing -----------------------------------------------------------------------------------------


def test_a_transcript_split_at_every_offset_gives_the_same_lines() -> None:
    for cut in range(len(TRANSCRIPT) + 1):
        lines = Lines()
        assert lines.feed(TRANSCRIPT[:cut]) + lines.feed(TRANSCRIPT[cut:]) == TRANSCRIPT
        assert lines.finish() == b""


@given(st.binary(max_size=300), st.randoms(use_true_random=False))
def test_what_was_fed_comes_out_whatever_the_chunks(data: bytes, rng: random.Random) -> None:
    lines, out, at = Lines(), [], 0
    while at < len(data):
        step = rng.randint(1, 40)
        block = lines.feed(data[at : at + step])
        assert not block or block.endswith(b"\n")
        out.append(block)
        at += step
    assert b"".join(out) + lines.finish() == data


def test_only_a_line_feed_ends_a_line() -> None:
    line = "a\rb\u2028c\u2029d\u0085e\x0bf\x0cg".encode()
    assert Lines().feed(line + b"\n") == line + b"\n"
    assert Lines().feed(line) == b""


def test_a_large_line_costs_no_more_per_byte_than_a_small_one() -> None:
    lines, chunk = Lines(), b"x" * 65536
    for _ in range(1000):
        assert lines.feed(chunk) == b""
    assert len(lines.feed(b"\n")) == 65536 * 1000 + 1


@pytest.mark.parametrize("chunks", [[b"x" * 11], [b"x" * 6, b"x" * 6], [b"x" * 11 + b"\n"], [b"x" * 8, b"yyy\nz"]])
def test_a_line_over_the_limit_is_never_returned(chunks: list[bytes]) -> None:
    lines = Lines(limit=10)
    for chunk in chunks[:-1]:
        assert lines.feed(chunk) == b""
    with pytest.raises(FrameLimitError):
        lines.feed(chunks[-1])


def test_the_limit_counts_a_line_not_a_block() -> None:
    assert Lines(limit=10).feed(b"x" * 10 + b"\n" + b"y" * 10 + b"\n") == b"x" * 10 + b"\n" + b"y" * 10 + b"\n"
    with pytest.raises(FrameLimitError):
        Lines(limit=10).feed(b"x" * 10 + b"\n" + b"y" * 11 + b"\n")


# ---- envelopes ---------------------------------------------------------------------------------------

IDS = [
    b"0",
    b"1",
    b"-7",
    b"1.5",
    b"null",
    b'"x"',
    b'""',
    b'"\\u0041"',
    b"12345678901234567890123",
    b"1e3",
    b'"policyd"',
]


@pytest.mark.parametrize("raw", IDS)
def test_an_id_keeps_its_bytes(raw: bytes) -> None:
    found = acp.envelope(b'{"jsonrpc":"2.0","id":' + raw + b',"method":"m","params":{}}')
    assert found.id == raw
    assert acp.messages.permission(raw, "a").startswith(b'{"jsonrpc":"2.0","id":' + raw + b",")


def test_ids_are_equal_by_value_and_distinct_by_type() -> None:
    assert acp.id_key(b"1") == acp.id_key(b"1.0") == acp.id_key(b"1e0")
    assert acp.id_key(b'"A"') == acp.id_key(b'"\\u0041"')
    assert len({acp.id_key(raw) for raw in (b"0", b'"0"', b"null", b'"null"', b'""')}) == 5


@pytest.mark.parametrize("raw", [b"[]", b"{}", b"true", b"false"])
def test_an_id_that_is_no_scalar_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        acp.envelope(b'{"id":' + raw + b',"method":"m"}')


SMUGGLED = [
    b'{"jsonrpc":"2.0","method":"session/update","Method":"session/request_permission","id":1,"params":{}}',
    b'{"jsonrpc":"2.0","METHOD":"session/request_permission","id":1,"params":{}}',
    b'{"jsonrpc":"2.0","method":"session/update","method":"session/request_permission","id":1,"params":{}}',
    b'{"jsonrpc":"2.0","method":"session/update","meth\\u006fd":"session/request_permission","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"params":{"b":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"Params":{"b":1}}',
    '{"jsonrpc":"2.0","method":"session/update","param\u017f":{"b":1},"params":{}}'.encode(),
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}',
    b'{"jsonrpc":"2.0","id":1,"ID":2,"method":"x"}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"result":{"outcome":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{},"error":{}}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","method":7}',
    b'{"jsonrpc":"2.0","method":null,"id":1}',
    b'[{"jsonrpc":"2.0","method":"session/request_permission","id":1,"params":{}}]',
    b"[]",
    b'{"method":"session/update","method":"session/request_permission","params":{}}',
]


LOOSE = [b"NaN", b'"\\ud800"', b'"\xff"', b"[" * 3_000 + b"]" * 3_000, b"[" * 100_000 + b"]" * 100_000]
ASKED = b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"a":%s}}'


@pytest.mark.parametrize("value", LOOSE, ids=range(len(LOOSE)))
def test_a_request_only_some_parsers_read_is_refused_under_its_id(value: bytes) -> None:
    line = ASKED % value
    with pytest.raises(ProtocolError):
        acp.strict_object(acp.envelope(line).params or b"")
    assert acp.readable_id(line) == b"7"
    assert acp.has_method(line)
    assert acp.claims(line, "session/request_permission")


@pytest.mark.parametrize("tail", [b"", b'"' + b'\\"' * 100_000])
def test_a_torn_line_nested_deep_is_no_message_at_any_length(tail: bytes) -> None:
    line = b'{"id":7,"method":"x","params":' + b"[" * 100_000 + tail
    with pytest.raises(acp.NotJsonError):
        acp.envelope(line)


@pytest.mark.parametrize("line", SMUGGLED)
def test_an_envelope_two_parsers_could_route_differently_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        acp.envelope(line)
    assert [seen[1:] for seen in acp.skim(line + b"\n")] == [(None, None)]


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"  ", b"plain text", b"{", b'{"a":1} x', b'"text"', b"7", b"\xef\xbb\xbf{}", b'{"a":NaN}', b'{"a":1,}'),
        *(b'{"a":01}', '{"method":"a"}'.encode("utf-16")),
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_line_that_is_no_json_object_is_told_apart(line: bytes) -> None:
    with pytest.raises(NotJsonError):
        acp.envelope(line)
    assert all(method is None for _, method, _ in acp.skim(line + b"\n"))


def test_escapes_in_a_method_do_not_hide_it() -> None:
    for spelling in (b"session\\/request_permission", b"\\u0073ession/request_permission"):
        line = b'{"jsonrpc":"2.0","id":1,"method":"' + spelling + b'","params":{}}'
        assert acp.envelope(line).method == "session/request_permission"


def test_the_glance_agrees_with_the_envelope() -> None:
    lines = [
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}',
        b'{"jsonrpc": "2.0", "method": "session/update", "params": {"a": [1, 2]}}',
        b'{"method":"x","params":{},"jsonrpc":"2.0"}\r',
        b'{"jsonrpc":"2.0","method":"x/\xc3\xa9","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","method":"x"}',
        b'{"jsonrpc":"2.0","method":"x","params":{},"_meta":{}}',
        b'{"jsonrpc":"1.0","method":"x","params":{}}',
    ]
    glances = list(acp.skim(b"".join(line + b"\n" for line in lines)))
    assert [method for _, method, _ in glances[:3]] == ["session/update", "session/update", "x"]
    assert all(method is None for _, method, _ in glances[4:])
    for line, (_, method, params) in zip(lines, glances, strict=True):
        if method is not None:
            whole = acp.envelope(line)
            assert (whole.method, whole.params, whole.id) == (method, params, None)


_names = st.sampled_from(["method", "params", "id", "jsonrpc", "result", "Method", "meth\u006fd", "x", "PARAMS", "Id"])
_values = st.sampled_from(
    ['"2.0"', '"session/update"', '"x"', "0", "{}", "[]", '{"params":{}}', '"method"', '"a":', "null"]
)


@given(st.lists(st.tuples(_names, _values), max_size=7), st.booleans())
def test_what_the_glance_accepts_has_each_envelope_key_once(members: list[tuple[str, str]], roomy: bool) -> None:
    comma, colon = (", ", ": ") if roomy else (",", ":")
    line = "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"
    for _, method, params in acp.skim(line.encode() + b"\n"):
        if method is None:
            continue
        keys = [name.casefold() for name, _ in members]
        assert keys.count("method") == keys.count("params") == 1
        assert "id" not in keys
        assert params is not None


@given(st.lists(st.tuples(_names, _values), max_size=7))
def test_an_envelope_that_is_accepted_reads_the_same_first_last_and_folded(members: list[tuple[str, str]]) -> None:
    line = ("{" + ",".join(f'"{name}":{value}' for name, value in members) + "}").encode()
    try:
        found = acp.envelope(line)
    except (ProtocolError, NotJsonError):
        return
    last = dict(members)
    first = dict(reversed(members))
    folded = {name.casefold(): value for name, value in members}
    for key, raw in (("method", None), ("params", found.params), ("id", found.id), ("result", found.result)):
        assert last.get(key) == first.get(key) == folded.get(key)
        if raw is not None:
            assert raw.decode() == last[key]


_members = st.tuples(_names, st.sampled_from(["1", '"x"', "{}", '"session/update"', "null"]))


@given(st.data())
def test_a_member_put_into_a_message_is_refused_or_changes_no_reading(data: st.DataObject) -> None:
    names = data.draw(st.sampled_from([("method", "params"), ("id", "method", "params"), ("id", "result"), ("id",)]))
    drawn = {
        "method": '"x"',
        "params": '{"id":2}',
        "id": data.draw(st.sampled_from(["1", '"a"', "null"])),
        "result": "{}",
    }
    members = [("jsonrpc", '"2.0"'), *((name, drawn[name]) for name in names)]
    members.insert(data.draw(st.integers(0, len(members))), data.draw(_members))
    line = "{" + ",".join(f'"{name}":{value}' for name, value in members) + "}"
    try:
        found = acp.envelope(line.encode())
    except (ProtocolError, NotJsonError):
        return
    said = [(name, value) for name, value in members if name.casefold() in {"method", "params", "id", "result"}]
    assert len({name.casefold() for name, _ in said}) == len(said)
    read = {"method": found.method and f'"{found.method}"', "params": found.params, "id": found.id}
    assert all(read[name] in (value, value.encode()) for name, value in said if name != "result")


def test_a_carriage_return_inside_of_a_message_is_refused_and_one_at_its_end_is_not() -> None:
    inner = b'{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}'
    for outer in (b'{"jsonrpc":"2.0","id":5,"result":%b}', b'{"jsonrpc":"2.0","method":"session/update","params":%b}'):
        hidden = outer % (b'{"a":\r' + inner + b"\r}")
        with pytest.raises(ProtocolError, match="carriage return"):
            acp.envelope(hidden)
        assert acp.envelope(outer % inner + b"\r") == acp.envelope(outer % inner)
        assert [method for _, method, _ in acp.skim(hidden + b"\n")] == [None]
        assert not any(passes for _, passes in acp.runs(hidden + b"\n", frozenset()))


STREAMED = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"{\\"tool_call\\":1}"}}}}'
)
UPDATE_CALL = b'{"sessionUpdate":"tool_call","toolCallId":"c"}'


def test_what_an_agent_streams_is_told_in_one_go() -> None:
    spaced = STREAMED.replace(b":", b" : ", 3).replace(b",", b" , ", 2)
    assert acp.streams(STREAMED + b"\n" + spaced + b"\n" + STREAMED + b"\n")


HEAD, TAIL = STREAMED.split(b'{"type":"text","text":"{\\"tool_call\\":1}"}')
ASKS = b'{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","x":"essionUpdate"}}'
TOLD = STREAMED.replace(b"text", b"t" * len(ASKS))


@pytest.mark.parametrize(
    "block",
    [
        HEAD + b"\n" + ASKS + b"\n" + TAIL + b"\n",
        HEAD + b"[{},\r\n" + ASKS + b"\r\n]" + TAIL + b"\n",
        HEAD + b"\n" + ASKS + b"\n" + TAIL + TOLD + TOLD + b"\n",
        HEAD + b'{"a":{}\n,"b":\n' + ASKS + b"\n}" + TAIL + TOLD + TOLD + TOLD + b"\n",
        HEAD + b"\n" + ASKS + b"\n" + TAIL + TOLD + b"\n" + TOLD + TOLD + b"\n",
    ],
)
def test_a_line_inside_another_message_is_looked_at_as_a_line(block: bytes) -> None:
    assert not acp.streams(block)
    seen = [line for line, passes in acp.runs(block, frozenset({"tool_call"})) if not passes]
    assert ASKS in [line.strip() for line in seen]
    assert all(method is None for line, method, _ in acp.skim(block) if line.strip() == ASKS)


@given(st.lists(st.sampled_from([STREAMED, TOLD, HEAD, TAIL, ASKS, b"[", b"]", b" ", b"\n", b"\r", b"{}"])))
def test_however_a_block_is_put_together_each_line_is_judged_as_whoever_reads_lines_sees_it(parts: list[bytes]) -> None:
    block = b"".join((*parts, b"\n"))
    cut = list(acp.runs(block, frozenset({"tool_call"})))
    passes = [block] if acp.streams(block) else [piece for piece, plain in cut if plain]
    for line in b"".join(passes).split(b"\n")[:-1]:
        assert json.loads(line)["method"] == "session/update"
    assert b"".join(piece if plain else piece + b"\n" for piece, plain in cut) == block
    assert [line for line, *_ in acp.skim(block)] == block.split(b"\n")[:-1]


def test_two_messages_on_a_line_do_not_stream() -> None:
    assert not acp.streams(STREAMED + STREAMED + b"\n")
    assert not acp.streams(STREAMED + b"\r" + STREAMED + b"\n" + STREAMED + b"\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"agent_message_chunk"', b'"tool_call"'),
        (b'"agent_message_chunk"', b'"tool_call_update"'),
        (b'"agent_message_chunk"', b'"current_mode_update"'),
        (b'"agent_message_chunk"', b'"config_option_update"'),
        (b'"agent_message_chunk"', b'"new_kind"'),
        (b'"agent_message_chunk"', b"1"),
        (b'"sessionUpdate"', b'"SessionUpdate"'),
        (b'"sessionUpdate":', b'"SESSIONUPDATE":"tool_call","sessionUpdate":'),
        (b'"sessionUpdate":', b'"sessionUpdate":"tool_call","sessionUpdate":'),
        (b'"sessionUpdate":', b'"session\\u0055pdate":"tool_call","sessionUpdate":'),
        (b'"content":', b'"sessionUpdate":"tool_call","content":'),
        (b'"content":', b'"toolCallId":"c","content":'),
        (b'"update":', b'"update":' + UPDATE_CALL + b',"update":'),
        (b'"update":', b'"Update":' + UPDATE_CALL + b',"update":'),
        (b'"method":', b'"id":1,"method":'),
        (b'"method":', b'"method":"session/request_permission","method":'),
        (b'"method":', b'"Method":"session/request_permission","method":'),
        (b'"params":', b'"params":{"update":' + UPDATE_CALL + b'},"params":'),
        (b'"params":', b'"Params":{},"params":'),
        (b'"session/update"', b'"session/request_permission"'),
        (b'"jsonrpc":"2.0"', b'"jsonrpc":"1.0"'),
        (b'{"jsonrpc"', b'[{"jsonrpc"'),
        (b'{"jsonrpc"', b'x{"jsonrpc"'),
        (b'"content":', b'"content":\r'),
    ],
)
def test_a_line_that_any_parser_reads_as_more_than_streaming_is_looked_at(old: bytes, new: bytes) -> None:
    line = STREAMED.replace(old, new, 1)
    assert line != STREAMED
    assert not acp.streams(line + b"\n")
    assert not acp.streams(STREAMED + b"\n" + line + b"\n")
    assert not acp.streams(line + b"\n" + STREAMED + b"\n")


@pytest.mark.parametrize(
    ("line", "ident"),
    [
        (b'{"id":5,"method":"x","method":"y"}', b"5"),
        (b'{"id":"a","Method":"y"}', b'"a"'),
        (b'{"id":5,"id":6,"method":"x"}', None),
        (b'{"id":5,"Id":6,"method":"x"}', None),
        (b'{"method":"x"}', None),
        (b"[1]", None),
        (b"{", None),
    ],
)
def test_the_id_of_a_refused_line_is_read_only_if_there_is_one(line: bytes, ident: bytes | None) -> None:
    assert acp.readable_id(line) == ident


def test_a_refused_line_claims_every_method_it_spells() -> None:
    line = b'{"id":5,"method":"x","Method":"session/request_permission"}'
    assert acp.claims(line, "session/request_permission")
    assert acp.claims(line, "x")
    assert not acp.claims(line, "y")
    assert not acp.claims(b"{", "y")


# ---- strict decoding ---------------------------------------------------------------------------------

REFUSED = {
    "duplicate": b'{"a":1,"a":2}',
    "duplicate after unescaping": b'{"a":1,"\\u0061":2}',
    "duplicate below": b'{"x":[{"rawInput":{"command":"ls","command":"rm -rf ~"}}]}',
    "case variant of a protocol name": b'{"toolCall":{"ToolCallId":"c"}}',
    "case variant of another": b'{"OPTIONS":[]}',
    "folded by more than ascii": '{"sess\u0131onId":1,"option\u017f":[]}'.encode(),
    "two keys that differ in case, where names are free": b'{"rawInput":{"Path":"a","path":"b"}}',
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "-Infinity": b'{"a":-Infinity}',
    "overflow": b'{"a":1e999}',
    "lone surrogate": b'{"a":"\\ud800"}',
    "lone low surrogate in a key": b'{"\\udc00":1}',
    "surrogates in the wrong order": b'{"a":"\\udc00\\ud800"}',
    "bad UTF-8": b'{"a":"\xff"}',
    "overlong UTF-8": b'{"a":"\xc0\xaf"}',
    "UTF-8 of a surrogate": b'{"a":"\xed\xa0\x80"}',
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "UTF-16": '{"a":1}'.encode("utf-16-le"),
    "raw control": b'{"a":"\x01"}',
    "raw tab": b'{"a":"\t"}',
    "raw NUL": b'{"a":"\x00"}',
    "trailing bytes": b'{"a":1} {}',
    "trailing comma": b'{"a":1,}',
    "comment": b'{"a":1 /* x */}',
    "single quotes": b"{'a':1}",
    "leading zero": b'{"a":01}',
    "plus": b'{"a":+1}',
    "no fraction digits": b'{"a":1.}',
    "hexadecimal": b'{"a":0x1}',
    "huge integer": b'{"a":' + b"9" * 4301 + b"}",
    "bad escape": b'{"a":"\\x41"}',
    "deep": b'{"a":' + b"[" * 128 + b"]" * 128 + b"}",
    "very deep": b"[" * 200_000 + b"]" * 200_000,
    "many values": b"[" + b"0," * 500_000 + b"0]",
    "many empty lists": b"[" + b"[]," * CONTAINERS + b"[]]",
    "nothing": b"",
    "torn": b'{"a":',
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_strict_decoding_refuses(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        acp.strict(raw)


ACCEPTED = [
    b'{"a":1}',
    b' { "a" : [ 1 , 2.5e3 ] } ',
    b'{"a":"\\u00e9\\ud83d\\ude00\\n\\/"}',
    '{"a":"\u2028\u0085 \U0001f600"}'.encode(),
    b'{"a":123456789012345678901234567890}',
    b'{"rawInput":{"Kind":"x","Title":"y"},"_meta":{"ID":1},"custom":{"Query":1}}',
    b'{"a":' + b"[" * 126 + b"]" * 126 + b"}",
    b'["' + b"," * 600_000 + b'"]',
    b'{"a":"\\\\ud800"}',
    b"[" + b"1.5e300," * 1_000 + b"1]",
    b"null",
]


@pytest.mark.parametrize("raw", ACCEPTED, ids=lambda raw: raw[:20].decode())
def test_strict_decoding_reads_what_every_parser_reads(raw: bytes) -> None:
    assert acp.strict(raw) == json.loads(raw)


def test_names_of_a_profile_have_no_variants_at_the_top_of_raw_input() -> None:
    raw = b'{"rawInput":{"Command":"rm"}}'
    assert acp.strict(raw) == json.loads(raw)
    with pytest.raises(ProtocolError, match="case variant"):
        acp.strict(raw, names=["command"])
    nested = b'{"rawInput":{"arguments":{"Command":"x"}}}'
    assert acp.strict(nested, names=["command"]) == json.loads(nested)


USUAL = {
    "sessionId": "s",
    "toolCall": {
        "toolCallId": "c",
        "title": "t",
        "rawInput": {"path": "/a", "lines": [1, 2], "deep": None},
        "locations": [{"path": "/a", "line": 1}],
        "content": [{"type": "content", "content": {"type": "text", "text": "x"}}, {"type": "diff", "oldText": None}],
    },
    "update": {
        "sessionUpdate": "tool_call",
        "rawInput": {"path": "/a"},
        "rawOutput": "x",
        "_meta": {"agent": {"tool": "t", "lines": [1, 2]}, "deep": None},
    },
    "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
}


def tables(value: Any) -> list[dict[str, Any]]:
    """Every table inside a value, itself too."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict) else []) + [table for one in inner for table in tables(one)]


def test_the_usual_shape_hides_no_second_spelling_of_a_key() -> None:
    call, update = USUAL["toolCall"], USUAL["update"]
    assert isinstance(call, dict) and isinstance(update, dict)
    meta = update["_meta"]
    assert shapes.free_tables(USUAL) == ([call["rawInput"], update["rawInput"]], [meta, meta["agent"]])
    assert acp.strict(json.dumps(USUAL).encode(), names=["path"]) == USUAL
    for at, usual in enumerate(tables(USUAL)):
        for key in usual:
            for added in (True, False):
                changed = deepcopy(USUAL)
                table = tables(changed)[at]
                value = table[key] if added else table.pop(key)
                table[key.upper()] = value if isinstance(value, str) else "x"
                free = not added and ("lines" in usual or "agent" in usual or key == "_meta") and key != "path"
                with nullcontext() if free else pytest.raises(ProtocolError, match=r"case"):
                    acp.strict(json.dumps(changed).encode(), names=["path"])


def test_every_name_of_the_usual_shape_is_one_of_the_protocol() -> None:
    found = [thing for thing in vars(shapes).values() if isinstance(thing, type) and issubclass(thing, Struct)]
    assert {name for shape in found for name in shape.__struct_encode_fields__} <= NAMES | FREE


def test_only_an_object_is_an_object() -> None:
    assert acp.strict_object(b'{"a":1}') == {"a": 1}
    with pytest.raises(ProtocolError):
        acp.strict_object(b"[1]")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8).map(str.casefold), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_json, st.booleans())
def test_strict_decoding_agrees_with_json(value: object, ascii_only: bool) -> None:
    try:
        raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        return
    try:
        found = acp.strict(raw)
    except ProtocolError:
        return
    assert found == json.loads(raw)


@given(_json)
def test_a_key_said_twice_is_refused_wherever_it_stands(value: object) -> None:
    try:
        inner = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    for raw in (b'{"zz":' + inner + b',"zz":0}', b'[{"y":{"zz":0,"zz":' + inner + b"}}]"):
        with pytest.raises(ProtocolError):
            acp.strict(raw)


# ---- the public JSON test suite (MIT, Nicolas Seriot: json_suite.LICENSE) -----------------------------

SUITE = Path(__file__).parent / "data" / "wire" / "json_suite.jsonl"
LARGE = {
    "n_structure_100000_opening_arrays": b"[" * 100_000,
    "n_structure_open_array_object": b'[{"":' * 50_000,
}
NUMBERS: tuple[str, ...] = ("i_number_double_huge_neg_exp", "i_number_real_underflow", "i_number_too_big_neg_int")
NUMBERS += ("i_number_too_big_pos_int", "i_number_very_big_negative_int")
"""What the standard leaves open and every parser reads as a number of some precision."""


def _suite() -> dict[str, bytes]:
    rows = [json.loads(row) for row in SUITE.read_text("ascii").splitlines()]
    return {name: b64decode(data) for name, data in rows} | LARGE


def test_strict_decoding_reads_of_the_public_suite_only_what_has_one_reading() -> None:
    suite, read = _suite(), set()
    for name, raw in suite.items():
        try:
            acp.strict(raw)
        except ProtocolError:
            continue
        read.add(name)
    twice = {name for name in suite if name.startswith("y_object_duplicated_key")}
    assert len(suite) == 318
    assert read == {name for name in suite if name.startswith("y_")} - twice | set(NUMBERS)


def test_no_line_of_the_public_suite_disturbs_an_envelope() -> None:
    for raw in _suite().values():
        line = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + raw.replace(b"\n", b" ") + b"}"
        try:
            found = acp.envelope(line)
        except (ProtocolError, NotJsonError):
            continue
        assert (found.method, found.id) == ("x", b"1")
