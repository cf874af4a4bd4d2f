"""Where requests go: base URLs, redirects, proxies."""

import re
from base64 import b64encode
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from mino.errors import Misconfigured, ServiceFailed
from tests.server import Recorded, Reply, ScriptedServer, completed
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
    assert "through the proxy in https_proxy: Connection refused" in outcome.message
    assert outcome.error and outcome.error.hint == "check https_proxy"
    assert "hunter2" not in outcome.message


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "password",
    [
        "Secret#Word",
        "Secret/Word",
        "Secret?Word",
        "Secret\\Word",
        "Secret[Word",
        "Secret Word",
        "Secret\nWord",
        "Secret密Word",
        "1/SecretWord",
        "1#Secret@Word",
    ],
)
def test_no_part_of_a_password_that_breaks_the_url_is_told(
    monkeypatch: pytest.MonkeyPatch, scheme: str, password: str
) -> None:
    monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://ann:{password}@127.0.0.1:1")
    outcome = ask(f"{scheme}://mino.invalid/v1", retries=2)
    assert isinstance(outcome.error, Misconfigured)
    assert outcome.message == f"{scheme.upper()}_PROXY does not name a proxy that can be used"
    assert "%23" in outcome.error.hint
    assert not re.search("ann|Secret|Word|密", outcome.message + outcome.error.hint)


@pytest.mark.parametrize(
    "value", ["http://ann:Secret@", "ftp://ann:Secret@127.0.0.1:1", "http://ann:Secret@127.0.0.1:x"]
)
def test_variable_is_named_and_not_its_value(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    outcome = ask("https://mino.invalid/v1", retries=2)
    assert isinstance(outcome.error, Misconfigured)
    assert outcome.message.startswith("ALL_PROXY ")
    assert "Secret" not in outcome.message + outcome.error.hint


def test_password_in_its_right_form_reaches_the_proxy(proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in ("http://ann:a%23b%2Fc@{}", "ann:a%23b%2Fc@{}"):
        monkeypatch.setenv("http_proxy", form.format(proxy.origin.removeprefix("http://")))
        assert ask("http://mino.invalid/v1").text == "by proxy"
        assert proxy.requests[-1].headers["proxy-authorization"] == "Basic " + b64encode(b"ann:a#b/c").decode()


@pytest.mark.skipif(find_spec("socks") is not None, reason="the package is installed")
@pytest.mark.parametrize("scheme", ["socks4", "socks5", "socks5h", "SOCKS5"])
def test_socks_without_its_package(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("all_proxy", f"{scheme}://ann:Secret@127.0.0.1:1")
    outcome = ask("https://mino.invalid/v1", retries=2)
    assert isinstance(outcome.error, Misconfigured)
    assert outcome.message == "all_proxy names a SOCKS proxy, and the extra socks is not installed"
    assert outcome.error.hint == "in a checkout of Mino: pip install '.[socks]'"


def test_secure_proxy_that_nobody_trusts_is_told_and_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(tls=True) as server:
        monkeypatch.setenv("https_proxy", server.origin)
        outcome = ask("https://mino.invalid/v1", retries=2)
        assert "no secure connection to the proxy in https_proxy: certificate verify failed" in outcome.message
        assert server.connections == 1
