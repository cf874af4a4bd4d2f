"""The POST itself: where it goes, through which proxy, what its failures mean. Only this module knows requests."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mino import __version__
from mino.errors import MinoError, Misconfigured, ServiceFailed
from mino.responses.server import is_loopback

if TYPE_CHECKING:
    from requests import PreparedRequest, Response


class ConnectionLost(Exception):
    """The connection could not be made, or broke; the message says why. It may work the next time."""


@contextmanager
def post(
    url: str, body: bytes, key: str | None, connect_seconds: float, connected: Callable[[socket.socket], None]
) -> Iterator["Response"]:
    """POST `body` and yield the answer, its body unread; the connection closes at the end of the block.

    `connected` gets the socket before anything is sent, and may raise to stop that. There is no read time-out:
    shutting the socket down ends any read. `explain` takes the exceptions of this and of the reading.
    """
    import requests
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
            pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
            pool.ConnectionCls = _telling(pool.ConnectionCls, connected)
            return pool

    headers = {
        "User-Agent": f"mino/{__version__}",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # a proxy that compresses holds words back until it has enough of them
        "Content-Type": "application/json",
    }

    def authorize(request: "PreparedRequest") -> "PreparedRequest":
        if key:
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    # The key goes in here: requests lets ~/.netrc replace a header, but not an `auth`. There is no session, because it
    # would read the body of a redirect to follow it.
    request = requests.Request("POST", url, data=body, headers=headers, auth=authorize).prepare()
    adapter = Adapter()
    try:
        timeout = (connect_seconds, None)
        with adapter.send(
            request, stream=True, timeout=timeout, verify=_authorities(), proxies=_proxies(url)
        ) as response:
            yield response
    finally:
        adapter.close()


def _telling(kind: Any, connected: Callable[[socket.socket], None]) -> Any:
    """The class `kind`, whose connections pass their socket on: urllib3 forgets it as soon as the head is read."""

    def connect(connection: Any) -> None:
        kind.connect(connection)
        connected(connection.sock)

    return type(kind.__name__, (kind,), {"connect": connect, "response_class": _final(kind.response_class)})


def _final(kind: Any) -> Any:
    """The class `kind` of http.client, which takes 103 Early Hints for the answer (RFC 9110, section 15.2)."""
    from http.client import parse_headers

    def read_status(response: Any) -> Any:
        while True:
            version, status, reason = kind._read_status(response)
            if not 100 < status < 200 or status == 101:  # 100 it knows, and 101 is an answer
                return version, status, reason
            parse_headers(response.fp)

    return type(kind.__name__, (kind,), {"_read_status": read_status})


def _proxies(url: str) -> dict[str, str]:
    """The proxies that the environment names for `url`; never one for loopback, whatever NO_PROXY says."""
    from requests.utils import get_environ_proxies

    if is_loopback(urlsplit(url).hostname or ""):
        return {}
    try:
        return dict(get_environ_proxies(url))
    except ValueError as error:
        raise Misconfigured(f"cannot read the proxy settings in the environment: {error}") from None


def _authorities() -> str | bool:
    """The file of certificate authorities that the environment names, as for curl; True: the usual ones."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if path := os.environ.get(variable):
            if not os.path.exists(path):
                raise Misconfigured(f"{variable} names '{path}', which does not exist", f"unset {variable}")
            return path
    return True


def explain(error: Exception, url: str, *, connected: bool) -> Exception:
    """The exception to raise in the main thread for `error`, of requests, urllib3, http.client, ssl or a socket."""
    import ssl

    import requests.exceptions as known
    from urllib3.exceptions import DecodeError, LocationParseError

    if isinstance(error, MinoError):
        return error
    chain = _chain(error)
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        return ServiceFailed(
            f"no secure connection to '{url}': {_reason(chain)}", "set REQUESTS_CA_BUNDLE to the file of your own CA"
        )
    if isinstance(error, known.ConnectTimeout):
        return ConnectionLost(f"cannot connect to '{url}': timed out")
    if isinstance(error, known.ProxyError):
        return ConnectionLost(f"cannot connect to '{url}' through the proxy: {_reason(chain)}")
    if isinstance(error, known.ConnectionError):
        what = f"'{url}' did not answer" if connected else f"cannot connect to '{url}'"
        return ConnectionLost(f"{what}: {_reason(chain)}")
    if isinstance(error, DecodeError):
        return ServiceFailed(f"cannot decompress the answer from '{url}'")
    if isinstance(error, known.RequestException | LocationParseError | UnicodeError):
        # The library's message may repeat the URL of a proxy, with its password.
        reason = f": {error}" if "@" not in str(error) else ""
        return Misconfigured(f"cannot make a request to '{url}'{reason}", "check --base-url and the proxy variables")
    return ConnectionLost(_reason(chain))


def _chain(error: BaseException) -> list[BaseException]:
    """`error` and its causes, the first cause last."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    return chain


def _reason(chain: list[BaseException]) -> str:
    """The words of the operating system, if it has any; the libraries' own are for programmers."""
    from requests.exceptions import RequestException

    for link in reversed(chain):
        if isinstance(link, OSError) and not isinstance(link, RequestException):
            return link.strerror or str(link) or type(link).__name__
    return "the connection was lost"
