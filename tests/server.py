"""A real HTTP server on a loopback port that answers what a test has scripted, and remembers what it was asked.

    with ScriptedServer(completed("Paris"), error(429, "slow down", headers={"retry-after": "1"})) as server:
        ...  # ask server.url, which ends in /v1
    assert server.requests[0].json["model"] == "m"

It is made of plain sockets, because it must also do what no HTTP library allows: cut a chunk in the middle, reset the
connection, answer nonsense, or keep silent until a test says so.
"""

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Literal, Self

PATIENCE = 30.0  # seconds that a gate stays closed at most, so that a failed test ends

Step = bytes | float | threading.Event
"""What a reply does next: send bytes, wait that many seconds, or wait until the event is set."""

Ending = Literal["chunked", "length", "close", "cut", "reset"]
"""`chunked` and `length` end as HTTP says, `close` ends with the connection, `cut` breaks off inside a chunk, `reset`
does so with a TCP reset."""


@dataclass(frozen=True)
class Reply:
    """One answer. `before` happens before the head. With `raw` the steps are all there is: no head, no framing."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "chunked"
    before: Sequence[Step] = ()
    raw: bool = False


@dataclass
class Recorded:
    """One request as it arrived; `headers` have lower-case names. `hung_up` is set when the client closed early."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    time: float
    hung_up: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


Script = Reply | Callable[[Recorded], Reply]


class ScriptedServer:
    """Answers the first request with the first reply, and so on; one request a connection.

    A request beyond the script gets a 400 that says so, and is in `requests` like any other. A script entry may be a
    function from the request to its reply; `always`, if given, answers whatever is beyond the script.
    """

    def __init__(self, *script: Script, always: Script | None = None, host: str = "127.0.0.1") -> None:
        self.requests: list[Recorded] = []
        self.connections = 0
        self._script = list(script)
        self._always = always
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port: int = self._listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{self.port}"
        self.url = f"{self.origin}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take no further connections; new ones are refused from now on."""
        self._closed = True
        # A listener that another thread accepts on is not closed before that call returns; shutdown makes it return.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # macOS does not shut listeners down
        self._listener.close()

    def wait_for_requests(self, count: int) -> None:
        """Wait until `count` requests have arrived."""
        wait_until(lambda: len(self.requests) >= count)

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(PATIENCE)
                request = _read(connection)
                if request is None:
                    return
                with self._lock:
                    self.requests.append(request)
                    beyond = self._always or error(400, "the test's script has ended")
                    entry = self._script.pop(0) if self._script else beyond
                _send(connection, request, entry(request) if callable(entry) else entry)
        except OSError:
            pass  # the client hung up, which is its right


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until `condition` holds; an AssertionError if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


def _read(connection: socket.socket) -> Recorded | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    pieces = [body]
    missing = int(headers.get("content-length", "0")) - len(body)
    while missing > 0:
        pieces.append(piece := connection.recv(min(missing, 1 << 20)))
        if not piece:
            return None
        missing -= len(piece)
    return Recorded(method, path, headers, b"".join(pieces), time.monotonic())


def _send(connection: socket.socket, request: Recorded, reply: Reply) -> None:
    chunked = not reply.raw and reply.ending in ("chunked", "cut", "reset")
    if not all(_do(connection, request, step, chunked=False) for step in reply.before):
        return
    if not reply.raw:
        connection.sendall(_head(reply))
    if not all(_do(connection, request, step, chunked) for step in reply.steps):
        return
    if reply.ending == "cut":
        connection.sendall(b"ff\r\nhalf a chunk")
    elif reply.ending == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif chunked:
        connection.sendall(b"0\r\n\r\n")


def _head(reply: Reply) -> bytes:
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = {"connection": "close", **reply.headers}
    if reply.ending == "length":
        headers["content-length"] = str(sum(len(step) for step in reply.steps if isinstance(step, bytes)))
    elif reply.ending != "close":
        headers["transfer-encoding"] = "chunked"
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _do(connection: socket.socket, request: Recorded, step: Step, chunked: bool) -> bool:
    """Do one step; whether the client is still there."""
    if isinstance(step, bytes):
        if step:
            connection.sendall(b"%x\r\n%s\r\n" % (len(step), step) if chunked else step)
        return True
    gate = step if isinstance(step, threading.Event) else threading.Event()
    deadline = time.monotonic() + (step if isinstance(step, float) else PATIENCE)
    while not gate.is_set() and (left := deadline - time.monotonic()) > 0:
        if select.select([connection], [], [], min(left, 0.01))[0] and not connection.recv(1, socket.MSG_PEEK):
            request.hung_up.set()
            return False
    return True


# Replies that tests want again and again


def sse(*events: Mapping[str, Any] | bytes, named: bool = True) -> list[bytes]:
    """Each event as the bytes of a stream: its `event:` line (unless not `named`), its JSON, its blank line.

    Bytes stand for themselves: `b": ping\\n\\n"`.
    """
    return [event if isinstance(event, bytes) else _one(event, named) for event in events]


def _one(event: Mapping[str, Any], named: bool) -> bytes:
    name = f"event: {event['type']}\n" if named and "type" in event else ""
    # ASCII, so that a lone surrogate arrives as the escape that a server would send.
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def events(*events: Mapping[str, Any] | Step, named: bool = True, ending: Ending = "chunked", status: int = 200) -> Reply:
    """A reply of these events, one chunk each, with pauses and gates between them."""
    steps: list[Step] = []
    for event in events:
        steps += sse(event, named=named) if isinstance(event, Mapping) else [event]
    return Reply(steps, status, {"content-type": "text/event-stream; charset=utf-8"}, ending)


def delta(text: str, index: int | None = 0, item_id: str = "msg_1") -> dict[str, Any]:
    """A piece of text; without the indexes that llama.cpp does not send if `index` is None."""
    where = {} if index is None else {"output_index": index, "content_index": 0}
    return {"type": "response.output_text.delta", "item_id": item_id, **where, "delta": text}


def message(text: str, item_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    """A message item with one text part."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content, **more}


def item_done(item: Mapping[str, Any], index: int | None = 0) -> dict[str, Any]:
    """The event that gives an output item whole."""
    where = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.done", **where, "item": item}


def ended(kind: str = "completed", **response: Any) -> dict[str, Any]:
    """A terminal event, whose response has what a test names besides id, model, status, output and usage."""
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    whole = {"id": "resp_1", "object": "response", "model": "m-1", "status": kind, "output": [], "usage": usage}
    return {"type": f"response.{kind}", "response": {**whole, **response}}


def answer_events(text: str, *, output: Sequence[Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The documented sequence of events for `text`, a few characters a delta; `output` are the items, else a message."""
    items = [message(text)] if output is None else [dict(item) for item in output]
    pieces = [text[n : n + 5] for n in range(0, len(text), 5)]
    begun = {"id": "resp_1", "object": "response", "model": "m-1", "status": "in_progress", "output": []}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *({"type": "response.output_item.added", "output_index": n, "item": item} for n, item in enumerate(items)),
        *(delta(piece, len(items) - 1) for piece in pieces),
        *(item_done(item, n) for n, item in enumerate(items)),
        ended(output=items),
    ]


def completed(text: str, *, output: Sequence[Mapping[str, Any]] | None = None) -> Reply:
    """A whole, successful, streamed answer."""
    return events(*answer_events(text, output=output))


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON body."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Reply([body], status, {"content-type": "application/json", **(headers or {})}, "length")


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    """An error in OpenAI's shape; `more` are further keys of it, `code` and `param` among them."""
    whole = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    return json_reply({"error": whole}, status, headers)
