"""The rows of the decision table that end in a failure, over real HTTP, named after the row."""

import pytest

from mino.errors import ServiceFailed
from tests.server import (
    Reply,
    body,
    delta,
    ended,
    error,
    events,
    item_done,
    json_reply,
)
from tests.unit.responses.asking import outcome_of
from tests.unit.responses.folding import CALL, REASONING

CHUNK = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "a"}}]}
BROKEN = "the answer broke off"


FAILURES: dict[str, tuple[Reply, str, str]] = {
    "2xx HTML": (
        body(b"<!DOCTYPE html><title>Welcome</title>", "text/html"),
        "",
        "/v1/responses' is not a Responses server: it answered 200 with text/html: Welcome",
    ),
    "2xx HTML without a type": (body(b"<html>hi</html>", None), "", "it answered 200 with no content type: hi"),
    "2xx text": (body(b"pong\x1b[2J", "text/plain"), "", "with text/plain: pong\\x1b[2J"),
    "2xx JSON that is no response": (json_reply({"choices": []}), "", "not an event of the Responses API"),
    "2xx JSON list": (json_reply([1]), "", "with application/json: [1]"),
    "2xx JSON cut short": (body(b'{"output": [', "application/json"), "", "not an event of the Responses API"),
    "2xx JSON error object": (json_reply({"error": {"message": "Bad."}}), "", "the service failed: Bad"),
    "2xx JSON failed": (json_reply({"status": "failed", "error": None}), "", "the service failed: no reason given"),
    "data that is not JSON": (events(delta("a"), b"data: {oops\n\n"), "a", "not an event of the Responses API: {oops"),
    "data that is not an object": (events(delta("a"), b"data: [1]\n\n"), "a", "not an event of the Responses API: [1]"),
    "JSON without type, with top-level error": (
        events(delta("a"), {"error": {"message": "Bad"}}),
        "a",
        "the service failed: Bad",
    ),
    "completed with status failed": (
        events(delta("a"), ended(status="failed")),
        "a",
        "the service failed: no reason given",
    ),
    "completed with status cancelled": (events(delta("a"), ended(status="cancelled")), "a", "the service failed"),
    "response.failed": (events(ended("failed", error={"message": "Bad"})), "", "the service failed: Bad"),
    "response.failed without error": (events(ended("failed", error=None)), "", "the service failed: no reason given"),
    "completed with no text: reasoning only": (events(item_done(REASONING), ended()), "", "only reasoning"),
    "completed with no text: empty": (events(ended()), "", "an empty answer"),
    "completed with no text: function call": (events(item_done(CALL), ended()), "", "'get_weather'"),
    "an event of Chat Completions": (
        events(CHUNK, CHUNK, b"data: [DONE]\n\n"),
        "",
        "another protocol, not that of the Responses API: it sent 'chat.completion.chunk'",
    ),
    "an event of Chat Completions without its object": (
        events({"id": "x", "choices": [{"delta": {"content": "a"}}]}),
        "",
        "another protocol, not that of the Responses API",
    ),
    "an event of Completions": (events({"object": "text_completion"}), "", "it sent 'text_completion'"),
    "an event of Anthropic's": (events({"type": "message_start", "message": {}}), "", "it sent 'message_start'"),
    "an event of Gemini's": (events({"candidates": [{"content": {}}]}), "", "another protocol"),
    "2xx JSON of Chat Completions": (
        json_reply({"object": "chat.completion", "choices": [{"message": {"content": "a"}}]}),
        "",
        "it sent 'chat.completion'",
    ),
    "error event flat": (
        events(delta("a"), {"type": "error", "code": 500, "message": "Bad"}),
        "a",
        "the service failed: Bad",
    ),
    "error event nested": (
        events({"type": "error", "error": {"message": "Bad", "code": None}}),
        "",
        "the service failed: Bad",
    ),
    "error event, then response.failed": (
        events({"type": "error", "message": "first"}, ended("failed", error={"message": "second"})),
        "",
        "the service failed: first",
    ),
    "error event, then the end of the stream": (
        events({"type": "error", "code": "server_is_overloaded"}),
        "",
        "server_is_overloaded",
    ),
    "EOF without terminal event": (events(delta("a")), "a", f"{BROKEN}: the stream ended early"),
    "EOF inside an event": (events(delta("a"), b'data: {"type": "resp'), "a", f"{BROKEN}: the stream ended early"),
    "[DONE] before a terminal event": (
        events(delta("a"), b"data: [DONE]\n\n"),
        "a",
        f"{BROKEN}: the stream ended early",
    ),
    "cut chunked body": (events(delta("a"), ending="cut"), "a", BROKEN),
    "connection reset": (events(delta("a"), ending="reset"), "a", BROKEN),
    "compressed body that is none": (
        body(b"\x1f\x8bno", "text/event-stream", headers={"content-encoding": "gzip"}),
        "",
        "cannot decompress the answer",
    ),
    "400 JSON error object": (error(400, "Bad."), "", "the service answered 400: Bad"),
    "400 JSON error string": (json_reply({"error": "Bad"}, 400), "", "the service answered 400: Bad"),
    "422 detail": (json_reply({"detail": "Bad"}, 422), "", "the service answered 422: Bad"),
    "400 with a request id": (error(400, "Bad", headers={"x-request-id": "req_1"}), "", "Bad (request id req_1)"),
    "500 HTML": (Reply([b"<h1>Bad Gateway</h1>"], 502, {"content-type": "text/html"}), "", "502: Bad Gateway"),
    "500 text": (
        Reply([b"Internal Server Error"], 500, {"content-type": "text/plain"}),
        "",
        "500: Internal Server Error",
    ),
    "500 with an event stream": (
        events({"error": {"message": "Bad", "code": "500"}}, b"data: [DONE]\n\n", status=500),
        "",
        "500: Bad",
    ),
    "500 whose body is cut": (Reply([b"half"], 500, ending="cut"), "", "500: half"),
    "500 without a body": (Reply([], 500, ending="length"), "", "500: Internal Server Error"),
    "404": (error(404, "Not Found"), "", "/v1/responses' answered 404: Not Found"),
    "context overflow": (
        error(400, "x", code="context_length_exceeded"),
        "",
        "the conversation is too long for the model: x",
    ),
    "304": (Reply([], 304, ending="length"), "", "the service answered 304"),
    "no HTTP at all": (Reply([b"SSH-2.0-OpenSSH_9.6\r\n"], raw=True), "", "did not answer: "),
}


@pytest.mark.parametrize("row", FAILURES)
def test_failure(row: str) -> None:
    reply, shown, sentence = FAILURES[row]
    outcome = outcome_of(reply, retries=int("protocol" in sentence))  # which no further attempt would change
    assert isinstance(outcome.error, ServiceFailed)
    assert sentence in outcome.message
    assert outcome.shown == shown
    assert "\n" not in outcome.message + outcome.error.hint
