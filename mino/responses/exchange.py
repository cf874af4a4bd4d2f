"""One HTTP exchange: a POST and the answer's head and body, as they come.

getaddrinfo and a TLS handshake cannot be interrupted by a signal handler. So a daemon thread does all of the network
and nothing else; the main thread waits for its reports, and a signal, a reader that is gone or the idle limit ends that
wait at once. Closing shuts the connection down, which ends the thread; a thread that is still connecting ends once
it has connected or failed. It never keeps the process from exiting.
"""

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from mino.responses.post import ConnectionLost, explain, load, send
from mino.responses.server import without_query
from mino.responses.surroundings import shortage, start_thread
from mino.watch import Watch

CONNECT_SECONDS = 10.0  # for one address
_CONNECTING = 30.0  # seconds in all, for what CONNECT_SECONDS does not cover: the name look-up, several addresses
_PIECE = 65536
_LOOKS = 8  # times that a wait looks whether bytes move
_GRACE = 0.5  # seconds that the thread gets to report what had come when the time was over: Mino may have been stopped
_AHEAD = 256  # pieces that the thread may be ahead of a reader who paused the terminal


class IdleTimeout(Exception):
    """Nothing came for as long as the idle limit; the server may still be working on it."""


class _Ended(Exception):
    """The body is complete."""


class Head(NamedTuple):
    """The status and headers of an answer; `headers` ignores case."""

    status: int
    headers: Mapping[str, str]


class Exchange:
    """A POST of `body` to `url`, or without a body a GET.

    `idle` limits the seconds without a byte in either direction, once it is connected.
    """

    def __init__(self, url: str, body: bytes | None, key: str | None, idle: float, watch: Watch) -> None:
        """Raises Misconfigured if a library is broken, Exhausted if there is no thread, descriptor or memory."""
        load()
        self._target = url
        self._url = without_query(url)  # for messages
        self._idle = idle
        self._connect_seconds = min(CONNECT_SECONDS, idle)
        self._watch = watch
        self._reports: deque[Head | bytes | Exception] = deque()
        self._ahead = threading.Semaphore(_AHEAD)
        # The thread alone closes its end: if the main thread did, the number could by then be another file's.
        try:
            self._bell, self._ringer = socket.socketpair()
        except OSError as error:
            raise shortage(error) or error from None
        self._ringing = False
        self._stopped = False
        self._sock: socket.socket | None = None
        self._sent = 0  # parts of the question
        start_thread(lambda: self._run(body, key), "mino exchange")

    def head(self) -> Head:
        """The head of the answer.

        Raises ConnectionLost, IdleTimeout, ReaderGone, and a MinoError for a bad URL or certificate.
        """
        deadline = time.monotonic() + _CONNECTING
        # The idle limit does not cover connecting, which may be retried; silence after it may not be.
        while self._sock is None and not self._reports:
            if not self._listen(deadline - time.monotonic()) and not self._listen(_GRACE):
                raise ConnectionLost(f"cannot connect to '{self._url}': timed out")
        report = self._next(self._idle)
        assert isinstance(report, Head)
        return report

    def pieces(self) -> Iterator[bytes]:
        """The body, decompressed, as it arrives. Raises ConnectionLost, IdleTimeout, ReaderGone."""
        with suppress(_Ended):
            while True:
                yield self._piece(self._idle)

    def rest(self, limit: int, seconds: float) -> bytes:
        """The part of the body within `limit` bytes and `seconds`, for an error that is reported in any case."""
        body = bytearray()
        deadline = time.monotonic() + min(seconds, self._idle)
        with suppress(ConnectionLost, IdleTimeout, _Ended):
            while len(body) < limit:
                body += self._piece(deadline - time.monotonic(), lively=False)
        return bytes(body[:limit])

    def close(self) -> None:
        """Close the connection, so that the server sees it and the thread ends."""
        self._stopped = True
        self._ahead.release()
        if self._sock is not None:
            with suppress(OSError):  # the server closed it first
                self._sock.shutdown(socket.SHUT_RDWR)
        self._bell.close()

    # The main thread

    def _piece(self, seconds: float, *, lively: bool = True) -> bytes:
        """The part of the body that has come, in one piece, because many servers send one word in each chunk."""
        piece = self._next(seconds, lively)
        assert isinstance(piece, bytes)
        pieces = [piece]
        while self._reports and isinstance(more := self._reports[0], bytes):
            pieces.append(more)
            self._reports.popleft()
        self._ahead.release(len(pieces))
        return b"".join(pieces)

    def _next(self, seconds: float, lively: bool = True) -> Head | bytes:
        """The next report, within `seconds`; if `lively`, they begin again whenever a byte moves."""
        since, moved, last_look = time.monotonic(), self._moved(), False
        while not self._reports:
            left = since + seconds - time.monotonic()
            self._listen(min(left, seconds / _LOOKS, 1.0))
            before, moved = moved, self._moved()
            if lively and moved != before:
                since = time.monotonic()
            elif left <= 0 and not self._reports:
                if last_look or not self._has_come():
                    raise IdleTimeout
                since, seconds, last_look = time.monotonic(), _GRACE, True
        report = self._reports.popleft()
        if isinstance(report, Exception):
            raise report
        return report

    def _listen(self, seconds: float) -> bool:
        """Wait for the bell, at most `seconds`; whether it rang."""
        rang = self._watch.wait(seconds, self._bell.fileno())
        if rang:
            if not self._bell.recv(4096) and not self._reports:
                raise MemoryError  # the thread ended, and could not even say why
            self._ringing = False  # reset before the reports are read, so that a later one rings again
        return rang

    def _moved(self) -> tuple[int, bytes]:
        """Something that changes whenever bytes have left or come. A long question may take longer than `idle`."""
        counters = b""
        with suppress(AttributeError, OSError):  # macOS has no TCP_INFO; the thread closed the socket
            if self._sock:
                counters = self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)[120:]  # acked, received
        return self._sent, counters

    def _has_come(self) -> bool:
        """Whether there is something that the thread has not read yet."""
        fd = self._sock.fileno() if self._sock else -1
        return fd < 0 or self._watch.wait(0, fd)

    # The thread

    def _run(self, body: bytes | None, key: str | None) -> None:
        end: Exception = _Ended()
        try:
            with suppress(MemoryError):
                try:
                    self._talk(body, key)
                except Exception as error:
                    end = explain(error, self._url, connected=self._sock is not None)
                self._report(end)
        finally:
            self._ringer.close()

    def _report(self, report: Head | bytes | Exception) -> None:
        self._reports.append(report)
        self._ring()

    def _ring(self) -> None:
        if not self._ringing:
            self._ringing = True
            with suppress(OSError):  # the main thread is gone
                self._ringer.send(b"\0")

    def _talk(self, body: bytes | None, key: str | None) -> None:
        with send(self._target, body, key, self._connect_seconds, self._connected, self._count) as response:
            self._report(Head(response.status_code, response.headers))
            # iter_content would hold back a body that ends with the connection until its end.
            while piece := response.raw.read1(_PIECE, decode_content=True):
                self._report(piece)
                self._ahead.acquire()
                if self._stopped:
                    return

    def _count(self) -> None:
        self._sent += 1

    def _connected(self, sock: socket.socket) -> None:
        self._sock = sock
        self._ring()
        if self._stopped:  # while it connected; without this the question would still be sent
            raise ConnectionAbortedError("stopped")
