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
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from tests.replies import (
    Ending,
    Reply,
    Step,
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

__all__ = [
    "CERTIFICATE",
    "Ending",
    "Recorded",
    "Reply",
    "ScriptedServer",
    "Step",
    "answer_events",
    "body",
    "completed",
    "delta",
    "ended",
    "error",
    "events",
    "item_done",
    "json_reply",
    "message",
    "sse",
    "wait_until",
]

CERTIFICATE = Path(__file__).parent / "data" / "tls" / "certificate.pem"
PATIENCE = 30.0  # seconds that a gate stays closed at most, so that a failed test ends


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
    function from the request to its reply; `always`, if given, answers whatever is beyond the script. With `tls` it is
    an https server, whose certificate nobody trusts but who trusts CERTIFICATE.
    """

    def __init__(
        self, *script: Script, always: Script | None = None, host: str = "127.0.0.1", tls: bool = False
    ) -> None:
        self.requests: list[Recorded] = []
        self.connections = 0
        self._script = list(script)
        self._always = always
        self._lock = threading.Lock()
        self._closed = False
        self._tls: ssl.SSLContext | None = None
        if tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(CERTIFICATE, CERTIFICATE.with_name("key.pem"))
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port: int = self._listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"{'https' if tls else 'http'}://{shown}:{self.port}"
        self.url = f"{self.origin}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no further connections; new ones are refused from now on."""
        self._closed = True
        # A listener that another thread accepts on is not closed before that call returns; shutdown makes it return.
        with suppress(OSError):  # macOS does not shut listeners down
            self._listener.shutdown(socket.SHUT_RDWR)
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
                if self._tls:
                    with self._tls.wrap_socket(connection, server_side=True) as secured:
                        self._answer(secured)
                else:
                    self._answer(connection)
        except OSError:
            pass  # the client hung up, which is its right

    def _answer(self, connection: socket.socket) -> None:
        request = _read(connection)
        if request is None:
            return
        with self._lock:
            self.requests.append(request)
            beyond = self._always or error(400, "the test's script has ended")
            entry = self._script.pop(0) if self._script else beyond
        try:
            _send(connection, request, entry(request) if callable(entry) else entry)
        except OSError:  # a client that leaves something unread resets the connection
            request.hung_up.set()
            raise


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
        connection.sendall(b"ff\r\n")
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
        readable = select.select([connection], [], [], min(left, 0.01))[0]
        if readable and (isinstance(connection, ssl.SSLSocket) or not connection.recv(1, socket.MSG_PEEK)):
            request.hung_up.set()
            return False
    return True
