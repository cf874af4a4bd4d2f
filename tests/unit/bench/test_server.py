"""The benchmark's server: both APIs, and what it says of the history that it got."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from bench.rows.stream import Held, long_answer
from bench.server import ANSWER, Server, instant_reply
from mino.responses.answer import AnswerFold
from mino.responses.sse import Decoder


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def post(url: str, body: Any) -> bytes:
    """The body of the answer."""
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=30) as answer:
        data: bytes = answer.read()
    return data


def read(stream: bytes) -> str:
    """The text of a stream, by Mino's own reading of it; the answer must be whole."""
    fold = AnswerFold()
    shown = "".join(fold.add(event) for event in Decoder().feed(stream))
    assert fold.finish().text == shown
    return shown


def test_it_speaks_the_responses_api_and_counts_what_it_got(server: Server) -> None:
    assert server.received_items() == 0
    developer, user = {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "法国的首都？"}
    assert read(post(f"{server.url}/responses", {"input": [developer, user, {"role": "assistant"}, user]})) == ANSWER
    assert server.received_items() == 3
    server.forget()
    assert server.received_items() == 0


def test_it_speaks_the_chat_completions_api(server: Server) -> None:
    stream = post(f"{server.url}/chat/completions", {"messages": [{"role": "system"}, {"role": "user"}]})
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == ANSWER
    assert stream.endswith(b"data: [DONE]\n\n")
    assert server.received_items() == 1


@pytest.mark.parametrize("chunked", [True, False])
def test_a_long_answer_is_whole_in_both_framings(server: Server, chunked: bool) -> None:
    reply = long_answer(1500, chunked)
    server.reply = lambda: reply
    text = read(post(f"{server.url}/responses", {}))
    assert text.count("capital ") == 108
    assert "。🗼\n" in text
    server.reply = instant_reply
    assert read(post(f"{server.url}/responses", {})) == ANSWER


@pytest.mark.parametrize("chunked", [True, False])
def test_a_held_answer_goes_on_when_it_is_told(server: Server, chunked: bool) -> None:
    held = Held(3, chunked)
    held.go_on.wait = lambda timeout=None: True  # type: ignore[method-assign]
    server.reply = held.pieces
    assert read(post(f"{server.url}/responses", {})) == "xxx"
    assert len(held.sent) == 3
