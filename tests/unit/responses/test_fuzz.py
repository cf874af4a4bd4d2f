"""Random streams: real recordings with garbage in them and cut anywhere. Nothing but a MinoError, and never a hang."""

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mino.errors import MinoError
from mino.responses.answer import AnswerFold
from mino.responses.body import fold_body
from mino.responses.exchange import Head
from mino.responses.failure import read_body
from mino.responses.post import ConnectionLost
from tests import captures
from tests.server import Reply, ScriptedServer
from tests.unit.responses.asking import ask

GARBAGE = [
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"data",
    b"data:",
    b"data: \n\n",
    b"data: {\n\n",
    b"event: error\n",
    b":\n\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\xbd",
    b"\xe2\x80\xa8",
    b"data: null\n\n",
    b"data: [DONE]\n\n",
    b"<html>",
    b"\\ud83d",
    b'"',
    b"{}",
    b'data: {"type": "error"}\n\n',
    b'data: {"error": true}\n\n',
    b'data: {"type": "response.completed"}\n\n',
    b"[" * 2000,
    b"9" * 5000,
]
KINDS = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
    "x",
    None,
    7,
]
KEYS = [
    "delta",
    "text",
    "refusal",
    "item",
    "part",
    "response",
    "output",
    "error",
    "message",
    "code",
    "param",
    "content",
    "role",
    "output_index",
    "content_index",
    "item_id",
    "id",
    "status",
    "usage",
    "incomplete_details",
    "reason",
    "model",
    "type",
    "name",
]


def value(chance: random.Random, depth: int = 0) -> Any:
    """A value that no schema has thought of."""
    kind = chance.randrange(12 if depth < 4 else 8)
    if kind < 8:
        leaves = [
            "a",
            "",
            "\ud83d",
            "\ude00b",
            "message",
            "output_text",
            "refusal",
            "reasoning",
            "function_call",
            "completed",
        ]
        return chance.choice([*leaves, "failed", "你好", 0, 1, -1, 2**70, 1.5, True, False, None, KINDS[5]])
    if kind < 11:
        return {chance.choice(KEYS): value(chance, depth + 1) for _ in range(chance.randrange(5))}
    return [value(chance, depth + 1) for _ in range(chance.randrange(4))]


def event(chance: random.Random) -> bytes:
    """An event of a known type with anything in it."""
    said = {chance.choice(KEYS): value(chance) for _ in range(chance.randrange(7))}
    said["type"] = chance.choice(KINDS)
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def stream(chance: random.Random) -> bytes:
    """A recording with events and garbage put in and pieces taken out."""
    name = chance.choice(captures.names())
    body = captures.load(name).body
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(body) + 1)
        if chance.random() < 0.5:  # between two events, where it is not lost in the middle of another
            at = max(body.rfind(b"\n\n", 0, at) + 2, 0) if b"\n\n" in body[:at] else at
        taken = chance.choice([0, 0, 1, chance.randrange(300)])
        body = body[:at] + chance.choice([event(chance), chance.choice(GARBAGE)]) + body[at + taken :]
    return body


def pieces(chance: random.Random, body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        size = chance.choice([1, 2, 3, 50, 1000, 65536])
        yield body[at : at + size]
        at += size
    if chance.random() < 0.2:
        raise ConnectionLost("cut")


def check(chance: random.Random, body: bytes) -> None:
    head = Head(200, {"content-type": chance.choice(["text/event-stream", "application/json", "text/html", ""])})
    fold = AnswerFold("sk-1")
    shown = ""
    try:
        for text in fold_body("http://h", head, pieces(chance, body), fold, "sk-1"):
            shown += text
        answer = fold.finish()
    except (MinoError, ConnectionLost) as error:
        assert "\n" not in str(error)
        return
    assert shown.replace("Model refused: ", "", 1 if answer.refusal else 0) == answer.text
    answer.text.encode()
    json.dumps(answer.output, ensure_ascii=False).encode()
    assert all(isinstance(item["type"], str) for item in answer.output)


@pytest.mark.parametrize("seed", range(4))
def test_recordings_with_garbage(seed: int) -> None:
    chance = random.Random(seed)
    until = time.monotonic() + 20
    for _ in range(500):
        check(chance, stream(chance))
        assert time.monotonic() < until


@pytest.mark.parametrize("seed", range(4))
def test_events_with_anything_in_them(seed: int) -> None:
    chance = random.Random(1000 + seed)
    for _ in range(1000):
        check(chance, b"".join(event(chance) for _ in range(chance.randrange(1, 12))))


def test_error_bodies_with_anything_in_them() -> None:
    chance = random.Random(5)
    for _ in range(2000):
        body = json.dumps(value(chance)).encode() if chance.random() < 0.5 else stream(chance)
        sentence = read_body(body).sentence("sk-1")
        assert len(sentence) <= 200
        assert "\n" not in sentence


def test_over_http() -> None:
    chance = random.Random(6)
    for _ in range(60):
        ending = chance.choice(["chunked", "length", "close", "cut", "reset"])
        steps = [piece for piece in [stream(chance)[:2000], event(chance), chance.choice(GARBAGE)] if piece]
        status = chance.choice([200, 200, 200, 400, 401, 404, 500, 302, 999])
        raw = chance.random() < 0.1
        reply = Reply(steps, status, {"content-type": "text/event-stream"}, ending, raw=raw)  # type: ignore[arg-type]
        with ScriptedServer(always=reply) as server:
            began = time.monotonic()
            outcome = ask(server, timeout=3)
            assert outcome.answer or outcome.message
            assert time.monotonic() - began < 10
