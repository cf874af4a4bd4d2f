"""The rows of the decision table that end in an answer, over real HTTP, named after the row.

Failures, retries, the ladder, waiting and keys have their own files.
"""

import gzip
import json
import zlib

import pytest

from mino.errors import AccessRefused
from tests.server import (
    Reply,
    ScriptedServer,
    answer_events,
    body,
    completed,
    delta,
    ended,
    error,
    events,
    item_done,
    json_reply,
    message,
    sse,
)
from tests.unit.responses.asking import ask, client, outcome_of, put
from tests.unit.responses.folding import CALL

STREAM = b"".join(sse(*answer_events("你好 😀")))


def streamed(*data: bytes) -> Reply:
    return Reply(data, headers={"content-type": "text/event-stream"})


def early(heads: bytes) -> Reply:
    """Heads of interim answers, and then a whole one."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return Reply([heads, head, STREAM], raw=True)


ANSWERS: dict[str, tuple[Reply, str]] = {
    "2xx event stream": (completed("你好 😀"), "你好 😀"),
    "2xx event stream that claims another charset": (body(STREAM, "text/event-stream; charset=iso-8859-1"), "你好 😀"),
    "2xx event stream with CRLF": (streamed(STREAM.replace(b"\n", b"\r\n")), "你好 😀"),
    "2xx event stream with CR": (streamed(STREAM.replace(b"\n", b"\r")), "你好 😀"),
    "2xx event stream with a byte order mark": (streamed(b"\xef\xbb\xbf" + STREAM), "你好 😀"),
    "2xx event stream byte by byte": (streamed(*(STREAM[n : n + 1] for n in range(len(STREAM)))), "你好 😀"),
    "2xx event stream that ends with the connection": (events(*answer_events("a"), ending="close"), "a"),
    "2xx without a type, body starts like an event stream": (body(STREAM, None), "你好 😀"),
    "2xx without a type, body starts with a comment": (body(b": hi\n\n" + STREAM, None), "你好 😀"),
    "2xx of another type, body starts like an event stream": (body(STREAM, "text/plain"), "你好 😀"),
    "201 event stream": (events(*answer_events("a"), status=201), "a"),
    "2xx application/json": (json_reply(ended(output=[message("all 全部")])["response"]), "all 全部"),
    "2xx whole response of another type": (
        body(b'{"output": [' + json.dumps(message("a")).encode() + b"]}", None),
        "a",
    ),
    "compressed with gzip": (
        body(gzip.compress(STREAM), "text/event-stream", headers={"content-encoding": "gzip"}),
        "你好 😀",
    ),
    "compressed with deflate": (
        body(zlib.compress(STREAM), "text/event-stream", headers={"content-encoding": "deflate"}),
        "你好 😀",
    ),
    "100, then the answer": (early(b"HTTP/1.1 100 Continue\r\n\r\n"), "你好 😀"),
    "102 and 103, then the answer": (
        early(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"),
        "你好 😀",
    ),
    "103, 100 and 103, then the answer": (
        early(b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\n\r\n"),
        "你好 😀",
    ),
    "comment line": (streamed(b": ping\n\n:\n\n", STREAM), "你好 😀"),
    "empty data, data that is only a heartbeat, event without data": (
        streamed(b"data:\n\ndata: :\n\ndata: : keep-alive\n\ndata: ping\n\nevent: x\n\n", STREAM),
        "你好 😀",
    ),
    "blank lines as a sign of life, megabytes of them": (streamed(*[b"\n" * 65536] * 120, b"\r\n", STREAM), "你好 😀"),
    "[DONE] after the terminal event": (streamed(STREAM, b"data: [DONE]\n\n"), "你好 😀"),
    "JSON without type, SSE event name given": (
        streamed(b'event: response.output_text.delta\ndata: {"delta": "hi"}\n\n', *sse(ended())),
        "hi",
    ),
    "unknown type, keepalive": (events({"type": "keepalive", "sequence_number": 1}, delta("a"), ended()), "a"),
    "created, queued, in_progress without response": (
        events({"type": "response.queued"}, {"type": "response.in_progress"}, delta("a"), ended()),
        "a",
    ),
    "output_item.added that never was": (events(delta("a"), item_done(message("a")), ended()), "a"),
    "output_text.delta with all else missing": (
        events({"type": "response.output_text.delta", "delta": "a"}, ended()),
        "a",
    ),
    "different messages separated by a newline": (events(delta("a", 0), delta("b", 1), ended()), "a\nb"),
    "output_text.done from a server without deltas": (
        events({"type": "response.output_text.done", "text": "a"}, {"type": "response.completed"}),
        "a",
    ),
    "output_text.done empty or different": (
        events(delta("ab"), {"type": "response.output_text.done", "output_index": 0, "text": ""}, ended()),
        "ab",
    ),
    "refusal": (events({"type": "response.refusal.delta", "delta": "No."}, ended()), "No."),
    "reasoning events": (events({"type": "response.reasoning_text.delta", "delta": "hm"}, delta("a"), ended()), "a"),
    "annotations, logprobs, obfuscation": (
        events(
            {**delta("a"), "logprobs": [], "obfuscation": "x"},
            {"type": "response.output_text.annotation.added"},
            ended(),
        ),
        "a",
    ),
    "tool events": (events({"type": "response.web_search_call.searching"}, delta("a"), ended()), "a"),
    "output_item.done": (events(item_done(message("a")), ended()), "a"),
    "completed with the only text in response.output": (events(ended(output=[message("a")])), "a"),
    "completed without a status": (events(delta("a"), ended(status=None)), "a"),
    "events after a terminal event": (events(delta("a"), ended(), {"type": "error", "message": "late"}), "a"),
    "EOF with an event lacking its blank line": (streamed(STREAM.rstrip(b"\n")), "你好 😀"),
    "cut after a last event lacking its blank line": (
        Reply([STREAM.rstrip(b"\n")], headers={"content-type": "text/event-stream"}, ending="cut"),
        "你好 😀",
    ),
    "sequence_number, response.id and item ids odd": (
        events({**delta("a", 0, "x"), "sequence_number": -1}, item_done(message("a", "y")), ended(id="z")),
        "a",
    ),
    "lone surrogate": (streamed(*sse(delta("a\ud83db"), ended())), "a\ufffdb"),
    "two halves in two deltas": (streamed(*sse(delta("a\ud83d"), delta("\ude00b"), ended())), "a😀b"),
}


@pytest.mark.parametrize("row", ANSWERS)
def test_answer(row: str) -> None:
    reply, text = ANSWERS[row]
    outcome = outcome_of(reply)
    assert outcome.text == text
    assert outcome.answer
    assert outcome.answer.status == "completed"


CUT_SHORT: dict[str, tuple[Reply, str, str | None]] = {
    "response.incomplete": (events(delta("a"), ended("incomplete", incomplete_details={"reason": "x"})), "a", "x"),
    "completed with status incomplete": (events(delta("a"), ended(status="incomplete")), "a", None),
    "incomplete without text": (
        events(ended("incomplete", incomplete_details={"reason": "content_filter"})),
        "",
        "content_filter",
    ),
    "whole response that is incomplete": (
        json_reply({"status": "incomplete", "output": [message("half")]}),
        "half",
        None,
    ),
}


@pytest.mark.parametrize("row", CUT_SHORT)
def test_incomplete_answer(row: str) -> None:
    reply, text, reason = CUT_SHORT[row]
    outcome = outcome_of(reply)
    assert outcome.answer
    assert (outcome.answer.status, outcome.text, outcome.answer.reason) == ("incomplete", text, reason)


@pytest.mark.parametrize("status", [401, 403])
def test_401_and_403_are_a_key_problem(status: int) -> None:
    outcome = outcome_of(error(status, "no"), key="sk-secret")
    assert isinstance(outcome.error, AccessRefused)
    assert "OPENAI_API_KEY" in outcome.message


def test_refusal_is_shown_after_a_prefix_and_stored_without() -> None:
    outcome = outcome_of(events({"type": "response.refusal.delta", "delta": "No."}, ended()))
    assert (outcome.shown, outcome.text) == ("Model refused: No.", "No.")


def test_function_call_with_text_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = outcome_of(events(delta("hi", 0), item_done(message("hi"), 0), item_done(CALL, 1), ended()))
    assert outcome.text == "hi"
    assert "mino: the model asked to call 'get_weather'" in capfd.readouterr().err


def test_request_as_the_specification_has_it() -> None:
    with ScriptedServer(completed("hi")) as server:
        ask(server)
        [asked] = server.requests
    assert (asked.method, asked.path) == ("POST", "/v1/responses")
    assert asked.headers["content-type"] == "application/json"
    assert "authorization" not in asked.headers
    question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What? 什么?"}]}
    assert asked.json == {
        "model": "m",
        "input": [question],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_gzip_stream_is_shown_as_it_comes() -> None:
    packer = zlib.compressobj(wbits=31)
    steps = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in sse(*answer_events("a" * 50))]
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    outcome = outcome_of(Reply([*steps, packer.flush()], headers=headers))
    assert outcome.text == "a" * 50


def test_nothing_is_shown_before_the_end_without_show() -> None:
    with ScriptedServer(completed("hi")) as server:
        assert put(client(server), streamed=False).text == "hi"
