"""TLS: whom to trust, and what is told when there is no secure connection."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from mino.errors import Misconfigured, ServiceFailed
from tests.server import CERTIFICATE, ScriptedServer, answer_events, completed, events
from tests.unit.responses.asking import ask


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


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/nonexistent/ca.pem", "does not exist"),
        (__file__, "has no certificates that can be read"),
        (str(CERTIFICATE.with_name("key.pem")), "has no certificates that can be read"),
        ("/dev/zero", "is neither a file nor a directory"),
    ],
)
def test_wrong_file_of_authorities_is_told_before_anything_else(
    monkeypatch: pytest.MonkeyPatch, variable: str, path: str, what: str
) -> None:
    monkeypatch.setenv(variable, path)
    with ScriptedServer(tls=True) as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, Misconfigured)
        assert outcome.message == f"{variable} names '{path}', which {what}"
        assert outcome.error.hint == f"unset {variable}"
        assert server.connections == 0


def test_broken_file_of_the_usual_authorities_is_not_the_servers_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", __file__)
    monkeypatch.setattr("certifi.where", lambda: __file__)
    with ScriptedServer(tls=True) as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, Misconfigured)
        assert "certifi has no certificates that can be read" in outcome.message
        assert server.connections == 1


def test_certificate_of_another_host_gets_no_hint_about_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with ScriptedServer(tls=True, host="0.0.0.0") as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, ServiceFailed)
        assert "certificate is not valid for '0.0.0.0'" in outcome.message
        assert outcome.error.hint == "check the host in --base-url"
        assert server.connections == 1


@contextmanager
def plain_server(said: bytes) -> Iterator[str]:
    """The address of a server that says `said` to whatever comes, to one connection only."""

    def refuse() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(said)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=refuse).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"<!DOCTYPE HTML>", b"220 mail\r\n"])
def test_https_to_a_server_without_tls(said: bytes) -> None:
    with plain_server(said) as place:
        outcome = ask(f"https://{place}", retries=2)
    assert isinstance(outcome.error, ServiceFailed)
    assert outcome.message == f"'https://{place}/responses' did not answer with TLS, as https needs it"
    assert outcome.error.hint == f"if it has none: --base-url http://{place}"


def test_http_to_a_server_with_tls() -> None:
    with plain_server(b"\x15\x03\x03\x00\x02\x02\x46") as place:
        outcome = ask(f"http://{place}", retries=2)
    assert isinstance(outcome.error, ServiceFailed)
    assert outcome.message == f"'http://{place}/responses' answered with TLS"
    assert outcome.error.hint == f"--base-url https://{place}"


def test_another_version_of_tls_is_told_and_not_retried() -> None:
    with plain_server(b"\x15\x03\x01\x00\x02\x02\x46") as place:
        outcome = ask(f"https://{place}", retries=2)
    assert outcome.message == f"no secure connection to 'https://{place}/responses': tlsv1 alert protocol version"


def test_https_to_a_server_that_waits_for_more_is_a_connection_that_may_be_retried() -> None:
    with ScriptedServer() as server:
        outcome = ask(server.url.replace("http:", "https:"), timeout=0.2, retries=1)
        assert isinstance(outcome.error, ServiceFailed)
        assert outcome.message == f"cannot connect to '{server.url.replace('http:', 'https:')}/responses': timed out"
        assert server.connections == 2


def test_early_close_of_a_secure_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with ScriptedServer(events(*answer_events("hi"), 30.0), tls=True) as server:
        assert ask(server).text == "hi"
