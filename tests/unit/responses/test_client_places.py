"""Where requests go: base URLs, redirects, proxies, TLS."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from mino.errors import Misconfigured, ServiceFailed
from tests.server import CERTIFICATE, Recorded, Reply, ScriptedServer, answer_events, completed, events
from tests.unit.responses.asking import ask

# The path


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/a/b%20c/v1"])
def test_path_is_the_base_urls_and_responses(path: str) -> None:
    with ScriptedServer(completed("hi")) as server:
        assert ask(server.origin + path).text == "hi"
        assert server.requests[0].path == path.removesuffix("/") + "/responses"


def test_ipv6_loopback() -> None:
    try:
        server = ScriptedServer(completed("hi"), host="::1")
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        assert ask(server).text == "hi"


# Redirects


@pytest.mark.parametrize("status", [307, 308])
def test_redirect_to_the_same_origin_is_followed(status: int) -> None:
    moved = Reply([b"moved"], status, {"location": "/other/responses"})
    with ScriptedServer(moved, completed("hi")) as server:
        assert ask(server, key="sk-1").text == "hi"
        first, second = server.requests
        assert (second.method, second.path, second.body) == ("POST", "/other/responses", first.body)
        assert second.headers["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize("status", [301, 302, 303])
def test_other_redirects_are_not_followed(status: int) -> None:
    with ScriptedServer(Reply([], status, {"location": "/other"}), completed("hi")) as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, ServiceFailed)
        assert f"redirects ({status}) to '{server.origin}/other'" in outcome.message
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        "",
        "https://127.0.0.1/v1",
        "http://localhost/v1",
        "http://127.0.0.1:1/v1",
        "//elsewhere.invalid/v1",
        "http://[broken",
        "http://host:port/",
        "javascript:alert(1)",
        "http://bob:pw@127.0.0.1/",
        "/\x1b[2J",
    ],
)
def test_redirect_to_anywhere_else_is_an_error(location: str) -> None:
    with ScriptedServer(always=Reply([], 307, {"location": location})) as server:
        outcome = ask(server)
        assert isinstance(outcome.error, ServiceFailed)
        assert "\x1b" not in outcome.message


def test_redirect_in_a_circle() -> None:
    def again(asked: Recorded) -> Reply:
        return Reply([], 307, {"location": asked.path})

    with ScriptedServer(always=again) as server:
        assert "redirects more than 5 times" in ask(server).message


def test_redirect_whose_body_never_ends_is_followed_at_once() -> None:
    with ScriptedServer(Reply([b"x", 30.0], 307, {"location": "/v2/responses"}), completed("hi")) as server:
        assert ask(server).text == "hi"


# Proxies. 0.0.0.0 reaches this machine, but is no loopback address by its looks.


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer(always=completed("by proxy")) as server:
        for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(variable, server.origin)
        yield server


def test_proxy_of_the_environment_is_used(proxy: ScriptedServer) -> None:
    assert ask("http://mino.invalid/v1").text == "by proxy"
    assert proxy.requests[0].path == "http://mino.invalid/v1/responses"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1.2.3"])
def test_proxy_is_never_used_for_loopback(proxy: ScriptedServer, host: str) -> None:
    with ScriptedServer(completed("direct")) as server:
        outcome = ask(f"http://{host}:{server.port}/v1")
        # macOS has no 127.1.2.3; what counts is that the proxy was not asked.
        assert outcome.error or outcome.text == "direct"
    assert proxy.connections == 0


def test_no_proxy_is_obeyed(proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(always=completed("direct"), host="0.0.0.0") as server:
        for value in ("0.0.0.0", "*", "a.example, 0.0.0.0", "0.0.0.0/8", " 0.0.0.0 "):
            monkeypatch.setenv("no_proxy", value)
            assert ask(server).text == "direct", value


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        ",",
        ",,,",
        "10.0.0.0/99",
        "10.0.0.0/x",
        "::1/128",
        "[::1]:80",
        "0.0.0.0:80",
        "a b c",
        "é,\u2028",
        "/",
        ":",
        "http://x",
    ],
)
def test_odd_no_proxy_is_no_error(proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("no_proxy", value)
    assert ask("http://mino.invalid/v1").text == "by proxy"


@pytest.mark.parametrize("value", ["nonsense", "http://", "http://[::1", "socks9://x", "http://x:port", "://", " "])
def test_odd_proxy_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    for variable in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(variable, value.replace("nonsense", "127.0.0.1:1"))
    outcome = ask("http://0.0.0.0:1/v1")
    assert outcome.error
    assert outcome.message


def test_proxy_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://bob:hunter2@127.0.0.1:1")
    outcome = ask("https://mino.invalid/v1")
    assert "through the proxy: Connection refused" in outcome.message
    assert "hunter2" not in outcome.message


# TLS


def test_certificate_that_nobody_trusts_is_told_and_not_retried() -> None:
    with ScriptedServer(completed("hi"), tls=True) as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, ServiceFailed)
        assert "no secure connection" in outcome.message
        assert "certificate verify failed" in outcome.message
        assert "REQUESTS_CA_BUNDLE" in outcome.error.hint
        assert (server.connections, server.requests) == (1, [])


def test_own_certificate_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with ScriptedServer(completed("你好")) as server, ScriptedServer(completed("你好"), tls=True) as secure:
        assert ask(server).text == ask(secure).text == "你好"


def test_certificate_authority_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent/ca.pem")
    with ScriptedServer(completed("hi"), tls=True) as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, Misconfigured)
        assert "/nonexistent/ca.pem" in outcome.message


def test_https_to_a_server_that_speaks_plain_http() -> None:
    def refuse() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=refuse).start()
        outcome = ask(f"https://127.0.0.1:{listener.getsockname()[1]}/v1")
    assert "cannot connect to" in outcome.message
    assert "SSL" in outcome.message


def test_early_close_of_a_secure_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with ScriptedServer(events(*answer_events("hi"), 30.0), tls=True) as server:
        assert ask(server).text == "hi"
