"""The request itself: where it goes, through which proxy, what its failures mean. Only this module knows requests."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mino import __version__
from mino.errors import MinoError, Misconfigured, ServiceFailed
from mino.responses.server import is_loopback
from mino.responses.surroundings import causes, loading, shortage

if TYPE_CHECKING:
    import ssl

    from requests import PreparedRequest, Response

_INSTALL_SOCKS = "in a checkout of Mino: pip install '.[socks]'"
_PART = 65536
_PROXIES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_TLS_RECORD = "\x15\x03"  # an alert, of any version
_CHECK_HOST = "check the host in --base-url"
_CHECK_CLOCK = "check the clock of this machine; only the server can renew its certificate"
_VERIFY_HINTS = {62: _CHECK_HOST, 64: _CHECK_HOST, 9: _CHECK_CLOCK, 10: _CHECK_CLOCK}  # by OpenSSL's X509_V_ERR_…
_OWN_CA = "set REQUESTS_CA_BUNDLE to the file of your own CA"


class ConnectionLost(Exception):
    """The connection could not be made, or broke; the message says why. It may work the next time.

    `hint` is what to check, if it is not the server.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def load() -> None:
    """Load the libraries, before a thread needs them. Raises Misconfigured for broken ones, and Exhausted."""
    with loading("requests"):
        import requests.adapters  # noqa: F401  # it needs all the others


@contextmanager
def send(
    url: str,
    body: bytes | None,
    key: str | None,
    connect_seconds: float,
    connected: Callable[[socket.socket], None],
    sent: Callable[[], None],
) -> Iterator["Response"]:
    """POST `body`, or GET, and yield the answer, its body unread; the connection closes at the end of the block.

    `connected` gets the socket before anything is sent, and may raise to stop that; `sent` is called for each part of
    the request that has gone. There is no read time-out: shutting the socket down ends any read. `explain` takes the
    exceptions of this and of the reading.
    """
    import requests
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
            try:
                pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
            except ValueError:  # of requests or urllib3; it may repeat a part of the proxy's password
                if variable:
                    raise _bad_proxy(variable) from None
                raise
            pool.ConnectionCls = _telling(pool.ConnectionCls, connected, sent)
            return pool

    headers = {
        "User-Agent": f"mino/{__version__}",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # a proxy that compresses holds words back until it has enough of them
        **({} if body is None else {"Content-Type": "application/json"}),
    }

    def authorize(request: "PreparedRequest") -> "PreparedRequest":
        if key:
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    # The key goes in here: requests lets ~/.netrc replace a header, but not an `auth`. There is no session, because it
    # would read the body of a redirect to follow it.
    request = requests.Request(
        "GET" if body is None else "POST", url, data=body, headers=headers, auth=authorize
    ).prepare()
    variable, proxies = _proxy(url)
    verify = _authorities() if url.lower().startswith("https:") else True
    adapter = Adapter()
    try:
        timeout = (connect_seconds, None)
        with adapter.send(request, stream=True, timeout=timeout, verify=verify, proxies=proxies) as response:
            yield response
    finally:
        adapter.close()


def _telling(kind: Any, connected: Callable[[socket.socket], None], sent: Callable[[], None]) -> Any:
    """The class `kind`, whose connections pass their socket on: urllib3 forgets it as soon as the head is read."""

    def connect(connection: Any) -> None:
        kind.connect(connection)
        connection.sock.settimeout(None)  # it was that of connecting, and a long question would fail by it
        connected(getattr(connection.sock, "socket", connection.sock))  # TLS in TLS wraps a socket, and is none

    def send_parts(connection: Any, data: bytes) -> None:
        for start in range(0, len(data), _PART):
            kind.send(connection, data[start : start + _PART])
            sent()

    more = {"connect": connect, "send": send_parts, "response_class": _final(kind.response_class)}
    return type(kind.__name__, (kind,), more)


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


def _proxy(url: str) -> tuple[str, dict[str, str]]:
    """The variable that names the proxy for `url`, and the proxy; `""` and `{}` if there is none.

    Loopback never has one, whatever NO_PROXY says. Raises Misconfigured, with no part of any value in it.
    """
    from requests.utils import get_environ_proxies, select_proxy

    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        return "", {}
    try:
        proxy = (select_proxy(url, get_environ_proxies(url)) or "").strip()
    except ValueError:
        raise Misconfigured("cannot read the proxy settings in the environment", "check NO_PROXY") from None
    if not proxy:
        return "", {}
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    variable = next((name for name in names if os.environ.get(name, "").strip() == proxy), "the system's settings")
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme, _, rest = proxy.partition("://")
    try:
        usable = bool(urlsplit(proxy).hostname)
    except ValueError:
        usable = False
    if not usable or scheme.lower() not in _PROXIES or re.search(r"[\s/?#\\]", rest.rpartition("@")[0]):
        raise _bad_proxy(variable)
    if scheme.lower().startswith("socks") and not find_spec("socks"):
        raise Misconfigured(f"{variable} names a SOCKS proxy, and the extra socks is not installed", _INSTALL_SOCKS)
    return variable, {parts.scheme: proxy}


def _bad_proxy(variable: str) -> Misconfigured:
    return Misconfigured(
        f"{variable} does not name a proxy that can be used",
        "it has the form http://host:port or http://user:password@host:port; "
        "a special character in the password is written as % and two digits, # as %23 and / as %2F",
    )


def _authorities() -> str | bool:
    """The file or directory of certificates that the environment names, as for curl; True: the usual ones."""
    for variable in _AUTHORITIES:
        if path := os.environ.get(variable):
            _check_authorities(path, f"{variable} names '{path}', which", f"unset {variable}")
            return path
    return True


def _check_authorities(path: str, subject: str, hint: str) -> None:
    """Raise Misconfigured if no certificate can be read from `path`."""
    import ssl

    if not os.path.exists(path):
        raise Misconfigured(f"{subject} does not exist", hint)
    if os.path.isdir(path):
        return
    if not os.path.isfile(path):  # reading a device may never end
        raise Misconfigured(f"{subject} is neither a file nor a directory", hint)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise shortage(error) or Misconfigured(f"{subject} has no certificates that can be read", hint) from None
    except PermissionError:
        raise Misconfigured(f"{subject} may not be read", hint) from None


def explain(error: Exception, url: str, *, connected: bool) -> Exception:
    """The exception to raise in the main thread for `error`, of requests, urllib3, http.client, ssl or a socket."""
    try:
        return _explain(error, url, connected)
    except Exception as another:  # the thread that calls this must have something to report
        return another


def _explain(error: Exception, url: str, connected: bool) -> Exception:
    if isinstance(error, MinoError):
        return error
    if lack := shortage(error):
        return lack
    import ssl
    from http.client import BadStatusLine, HTTPException

    import requests.exceptions as known
    from urllib3.exceptions import DecodeError, HTTPError, LocationParseError

    chain = causes(error)
    variable, _ = _proxy(url)
    through_proxy = isinstance(error, known.ProxyError)
    if not connected:
        for link in chain:
            if isinstance(link, ssl.SSLError) and (found := _insecure(link, url, variable if through_proxy else "")):
                return found
    if isinstance(error, known.Timeout):  # also of a TLS handshake; the reading of an answer has none
        way = f" through the proxy in {variable}" if variable else ""
        return ConnectionLost(f"cannot connect to '{url}'{way}: timed out", f"check {variable}" if variable else "")
    if through_proxy:
        return ConnectionLost(
            f"cannot connect to '{url}' through the proxy in {variable}: {_reason(chain)}", f"check {variable}"
        )
    if isinstance(error, known.ConnectionError):
        if any(str(link).startswith(_TLS_RECORD) for link in chain if isinstance(link, BadStatusLine)):
            return ServiceFailed(f"'{url}' answered with TLS", f"--base-url https{_base(url).removeprefix('http')}")
        what = f"'{url}' did not answer" if connected else f"cannot connect to '{url}'"
        return ConnectionLost(f"{what}: {_reason(chain)}")
    if isinstance(error, DecodeError):
        return ServiceFailed(f"cannot decompress the answer from '{url}'")
    if isinstance(error, known.RequestException | LocationParseError | UnicodeError):
        # The library's message may repeat the URL of a proxy, with its password.
        reason = "" if variable else f": {error}"
        return Misconfigured(f"cannot make a request to '{url}'{reason}", f"check {variable or '--base-url'}")
    if isinstance(error, OSError | HTTPException | HTTPError):
        return ConnectionLost(_reason(chain))
    return error  # a defect, which no other attempt mends


def _insecure(error: "ssl.SSLError", url: str, variable: str) -> MinoError | None:
    """The failure for `error` of a TLS handshake, with the proxy in `variable` if one is named.

    None if another attempt may succeed. It is not the server's if the file of authorities cannot be read.
    """
    import ssl

    whom = f"the proxy in {variable}" if variable else f"'{url}'"
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = _VERIFY_HINTS.get(error.verify_code, _OWN_CA)
        if hint is _CHECK_HOST and variable:
            hint = f"check {variable}"
        return ServiceFailed(f"no secure connection to {whom}: certificate verify failed: {error.verify_message}", hint)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
        return None
    if not any(map(os.environ.get, _AUTHORITIES)):
        from requests import adapters

        path = adapters.DEFAULT_CA_BUNDLE_PATH
        _check_authorities(path, f"the file '{path}' of the package certifi", "pip install --force-reinstall certifi")
    if error.reason in _NOT_TLS:
        plain = f"{variable}=http://…" if variable else f"--base-url http{_base(url).removeprefix('https')}"
        return ServiceFailed(f"{whom} did not answer with TLS, as https needs it", f"if it has none: {plain}")
    return ServiceFailed(f"no secure connection to {whom}: {_reason([error])}")


def _base(url: str) -> str:
    return url.removesuffix("/responses")


def _reason(chain: list[BaseException]) -> str:
    """The words of the operating system, if it has any; the libraries' own are for programmers."""
    import ssl

    from requests.exceptions import RequestException

    for link in reversed(chain):
        if isinstance(link, TimeoutError):
            return "timed out"
        if isinstance(link, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return "the connection was closed in the middle of TLS"
        if isinstance(link, ssl.SSLError) and link.reason:
            return link.reason.replace("_", " ").lower()
        if isinstance(link, OSError) and not isinstance(link, RequestException):
            return link.strerror or str(link) or type(link).__name__
    return "the connection was lost"
