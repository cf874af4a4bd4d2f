"""A model server on loopback that answers at once, for Mino and for its peers, and keeps what it was last asked.

It speaks the streaming forms of two APIs: `POST …/responses` and `POST …/chat/completions`. Everything that it sends is
made beforehand, so that a measurement is of the client and not of the server.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

ANSWER = "Paris is the capital of France."

Pieces = Iterable[bytes]


class Server:
    """Answers every question with `ANSWER`, until `reply` is given other bytes to send on `/responses`."""

    def __init__(self) -> None:
        self.reply: Callable[[], Pieces] = instant_reply
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._body = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A listener that another thread accepts on is not closed before that call returns; shutdown makes it return.
        with suppress(OSError):  # macOS does not shut listeners down
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def forget(self) -> None:
        """Drop the last question, so that `received_items` can only count what comes from now on."""
        self._body = b""

    def received_items(self) -> int:
        """How many messages the last question had, the question itself included; 0 if none came.

        Messages of the user and the model only: instructions and environment reports of a peer are not history.
        """
        if not self._body:
            return 0
        asked = json.loads(self._body)
        items: list[dict[str, Any]] = asked.get("input") or asked.get("messages") or []
        return sum(item.get("role") in ("user", "assistant") for item in items)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            # Without it a small piece waits for the acknowledgement of the one before (Nagle's algorithm, RFC 896).
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            path, body = _read(connection)
            if path.endswith("/responses"):
                self._body = body
                pieces = self.reply()
            elif path.endswith("/chat/completions"):
                self._body = body
                pieces = _CHAT
            else:
                pieces = _NOT_HERE
            for piece in pieces:
                connection.sendall(piece)


def _read(connection: socket.socket) -> tuple[str, bytes]:
    """The path and the body of one request; an empty path where the client sent none."""
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        piece = connection.recv(65536)
        if not piece:
            return "", b""
        data += piece
    head, body = data[:end].decode("latin-1"), data[end + 4 :]
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    missing = int(headers.get("content-length", "0")) - len(body)
    while missing > 0 and (piece := connection.recv(min(missing, 1 << 20))):
        body += piece
        missing -= len(piece)
    return first.split(" ")[1], bytes(body)


def head(framing: str = "connection: close") -> bytes:
    """The head of a streamed answer; the body ends as `framing` says, or with the connection."""
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{framing}\r\n\r\n".encode()


def event(kind: str, **fields: Any) -> bytes:
    """One event of the Responses API."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def delta(number: int, text: str) -> bytes:
    """The event of one piece of text, with every field that OpenAI's servers put into it."""
    return event(
        "response.output_text.delta",
        sequence_number=number,
        item_id="msg_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b",
        output_index=0,
        content_index=0,
        delta=text,
        logprobs=[],
        obfuscation="wXdQa1GVKoMHBR",
    )


def opening() -> bytes:
    """The events before the first delta."""
    begun = {"id": "resp_1", "object": "response", "model": "bench", "status": "in_progress", "output": []}
    return event("response.created", response=begun) + event("response.in_progress", response=begun)


def closing(text: str) -> bytes:
    """The events after the last delta of the answer `text`."""
    item = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    usage = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 5,
    }
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1790000000,
        "model": "bench",
        "status": "completed",
        "output": [item],
        "usage": usage,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    return event("response.output_item.done", output_index=0, item=item) + event(
        "response.completed", response=response
    )


def chunk(piece: bytes) -> bytes:
    """`piece` as one chunk of a chunked body (RFC 9112 section 7.1)."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def instant_reply() -> Pieces:
    """The whole answer in one piece."""
    return _INSTANT


def _chat_chunk(**choice: Any) -> bytes:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "bench",
        "choices": [{"index": 0, "finish_reason": None, **choice}],
    }
    return f"data: {json.dumps(chunk)}\n\n".encode()


_ADDED = event(
    "response.output_item.added",
    output_index=0,
    item={"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []},
)
_INSTANT = (head() + opening() + _ADDED + delta(1, ANSWER) + closing(ANSWER),)
_CHAT = (
    head()
    + _chat_chunk(delta={"role": "assistant", "content": ANSWER})
    + _chat_chunk(delta={}, finish_reason="stop")
    + b"data: [DONE]\n\n",
)
_NOT_HERE = (
    b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
)
