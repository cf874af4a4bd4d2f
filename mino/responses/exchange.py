"""One HTTP exchange: a POST and the answer's head and body, as they come. The only module that knows requests.

getaddrinfo and a TLS handshake cannot be interrupted by a signal handler. So a daemon thread does all of the network
and nothing else; the main thread waits for its reports, and a signal, a reader that is gone or the idle limit ends that
wait at once. Closing shuts the connection down under the thread, which then ends; one that cannot (it may hang in a
name look-up) never keeps the process from exiting.
"""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from mino import __version__
from mino.errors import MinoError, Misconfigured, ServiceFailed
from mino.responses.watch import Watch

CONNECT_SECONDS = 10.0
_PIECE = 65536
_AHEAD = 64  # pieces that the thread may be ahead of a reader who paused the terminal


class Broke(Exception):
    """The connection could not be made, or broke; the message says why. It may work the next time."""


class FellSilent(Exception):
    """Nothing came for as long as the idle limit; the server may still be working on it."""


@dataclass(frozen=True, slots=True)
class Head:
    """The status and headers of an answer; `headers` knows no case."""

    status: int
    headers: Mapping[str, str]


class Exchange:
    """A POST of `body` to `url`. `idle` is in seconds, without a byte from the server, from the first wait on."""

    def __init__(self, url: str, body: bytes, key: str | None, idle: float, watch: Watch) -> None:
        self._url = url
        self._idle = idle
        self._watch = watch
        self._reports: deque[Head | bytes | Exception] = deque()
        self._ahead = threading.Semaphore(_AHEAD)
        # The thread alone closes its end: if the main thread did, the number could by then be another file's.
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        self._stopped = False
        self._connection: Any = None
        threading.Thread(target=self._run, args=(body, key), name="mino exchange", daemon=True).start()

    def head(self) -> Head:
        """The head of the answer. Raises Broke, FellSilent, ReaderGone; a MinoError for a bad URL or certificate."""
        report = self._next(self._idle)
        assert isinstance(report, Head)
        return report

    def pieces(self) -> Iterator[bytes]:
        """The body, decompressed, as it arrives. Raises Broke, FellSilent, ReaderGone."""
        while piece := self._piece(self._idle):
            yield piece

    def rest(self, limit: int, seconds: float) -> bytes:
        """What comes of the body within `limit` bytes and `seconds`, for an error that is told whatever its end."""
        body = bytearray()
        deadline = time.monotonic() + min(seconds, self._idle)
        with suppress(Broke, FellSilent):
            while len(body) < limit and (piece := self._piece(deadline - time.monotonic())):
                body += piece
        return bytes(body[:limit])

    def close(self) -> None:
        """Close the connection, so that the server sees it and the thread ends."""
        self._stopped = True
        self._ahead.release()
        connection = self._connection
        if connection is not None and (sock := connection.sock) is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._bell.close()

    # The main thread

    def _piece(self, seconds: float) -> bytes:
        piece = self._next(seconds)
        assert isinstance(piece, bytes)
        self._ahead.release()
        return piece

    def _next(self, seconds: float) -> Head | bytes:
        deadline = time.monotonic() + seconds
        while not self._reports:
            left = deadline - time.monotonic()
            if left <= 0:
                raise FellSilent
            if self._watch.wait(left, self._bell.fileno()):
                with suppress(BlockingIOError):
                    self._bell.recv(4096)
        report = self._reports.popleft()
        if isinstance(report, Exception):
            raise report
        return report

    # The thread

    def _run(self, body: bytes, key: str | None) -> None:
        try:
            self._talk(body, key)
        except Exception as error:
            self._report(_explain(error, self._url))
        finally:
            self._ringer.close()

    def _report(self, report: Head | bytes | Exception) -> None:
        self._reports.append(report)
        with suppress(OSError):  # the bell is full, so it rings already; or the main thread is gone
            self._ringer.send(b"\0")

    def _talk(self, body: bytes, key: str | None) -> None:
        import requests
        from requests.adapters import HTTPAdapter

        exchange = self

        class Adapter(HTTPAdapter):
            def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
                pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
                pool.ConnectionCls = exchange._tracked(pool.ConnectionCls)
                return pool

        headers = {
            "User-Agent": f"mino/{__version__}",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",  # a proxy that compresses holds words back until it has enough of them
            "Content-Type": "application/json",
        }
        if key:
            headers["Authorization"] = f"Bearer {key}"
        # No session: a session would read ~/.netrc, and read the body of a redirect to follow it.
        request = requests.Request("POST", self._url, data=body, headers=headers).prepare()
        adapter = Adapter()
        try:
            response = adapter.send(
                request,
                stream=True,
                # No read time-out: the main thread keeps the idle limit, and its shutdown ends any read.
                timeout=(min(CONNECT_SECONDS, self._idle), None),
                verify=os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True,
                proxies=_proxies(self._url),
            )
            with response:
                self._report(Head(response.status_code, response.headers))
                piece = b"-"
                while piece and not self._stopped:
                    self._ahead.acquire()
                    # Not iter_content: it holds a body that ends with the connection back until its end.
                    piece = response.raw.read1(_PIECE, decode_content=True)
                    self._report(piece)
        finally:
            adapter.close()

    def _tracked(self, kind: Any) -> Any:
        """The connection class `kind`, known to `close` from the moment it connects."""

        def connect(connection: Any) -> None:
            self._connection = connection
            kind.connect(connection)
            if self._stopped:  # while it connected; without this the question would still be sent
                raise ConnectionAbortedError("stopped")

        return type(kind.__name__, (kind,), {"connect": connect})


def is_loopback(host: str) -> bool:
    """Whether `host`, as written in a URL, is this machine: localhost, 127.0.0.0/8 or ::1."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _proxies(url: str) -> dict[str, str]:
    """The proxies that the environment names for `url`; never one for loopback, whatever NO_PROXY says."""
    from requests.utils import get_environ_proxies

    if is_loopback(urlsplit(url).hostname or ""):
        return {}
    try:
        return dict(get_environ_proxies(url))
    except ValueError as error:
        raise Misconfigured(f"the environment's proxy settings cannot be read: {error}") from None


def _explain(error: Exception, url: str) -> Exception:
    """What the main thread raises for `error`, which came from requests, urllib3, http.client, ssl or a socket."""
    import ssl

    import requests.exceptions as known
    from urllib3.exceptions import DecodeError, LocationParseError

    if isinstance(error, MinoError):
        return error
    chain = _chain(error)
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        return ServiceFailed(
            f"no secure connection to '{url}': {_reason(chain)}", "REQUESTS_CA_BUNDLE names your own CA"
        )
    if isinstance(error, known.ConnectTimeout):
        return Broke(f"cannot connect to '{url}': no answer within {CONNECT_SECONDS:g} s")
    if isinstance(error, known.ProxyError):
        return Broke(f"cannot connect to '{url}' through the proxy: {_reason(chain)}")
    if isinstance(error, known.ConnectionError):
        return Broke(f"cannot connect to '{url}': {_reason(chain)}")
    if isinstance(error, DecodeError):
        return ServiceFailed(f"the answer of '{url}' cannot be decompressed")
    if isinstance(error, known.RequestException | LocationParseError | UnicodeError | FileNotFoundError):
        return Misconfigured(f"no request can be made to '{url}': {error}", "check --base-url and the proxy variables")
    return Broke(_reason(chain))


def _chain(error: BaseException) -> list[BaseException]:
    """`error` and what led to it, the first cause last."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    return chain


def _reason(chain: list[BaseException]) -> str:
    """The words of the operating system, where it has any; the libraries' own are for programmers."""
    from requests.exceptions import RequestException

    for link in reversed(chain):
        if isinstance(link, OSError) and not isinstance(link, RequestException):
            return link.strerror or str(link) or type(link).__name__
    return "the connection was cut"
