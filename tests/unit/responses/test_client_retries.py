"""Retries, over real HTTP: before the first shown word, for what may pass, as often and as late as the server says."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from mino.errors import ServiceFailed
from mino.responses import client as client_module
from mino.responses import exchange
from tests.server import Reply, ScriptedServer, completed, delta, ended, error, events, json_reply
from tests.unit.responses.asking import ask

SOON = {"retry-after-ms": "1"}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own waits are half a second and more; their length has its test in test_retry."""
    monkeypatch.setattr(client_module, "own_wait", lambda failures: 0.01 * failures)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_status_worth_retrying(status: int) -> None:
    with ScriptedServer(error(status, "later", headers=SOON), completed("hi")) as server:
        assert ask(server, retries=2).text == "hi"
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_status_not_worth_retrying(status: int) -> None:
    with ScriptedServer(error(status, "no", headers=SOON), completed("hi")) as server:
        assert ask(server, retries=2).error
        assert len(server.requests) == 1


BREAKS = {
    "closed without an answer": Reply([], raw=True),
    "reset without an answer": Reply([], raw=True, ending="reset"),
    "no HTTP": Reply([b"hello\r\n\r\n"], raw=True),
    "cut before anything was shown": events({"type": "response.created"}, ending="cut"),
    "reset before anything was shown": events({"type": "response.created"}, ending="reset"),
    "EOF without terminal event before anything was shown": events({"type": "response.created"}),
    "[DONE] before anything was shown": events(b"data: [DONE]\n\n"),
    "empty body": Reply([], headers={"content-type": "text/event-stream"}, ending="length"),
    "empty body without a type": Reply([], ending="length"),
    "204": Reply([], 204, ending="close"),
}


@pytest.mark.parametrize("row", BREAKS)
def test_break_before_anything_was_shown_is_retried(row: str) -> None:
    with ScriptedServer(BREAKS[row], completed("hi")) as server:
        outcome = ask(server, retries=1)
        assert (outcome.text, outcome.shown) == ("hi", "hi")
        assert len(server.requests) == 2


@pytest.mark.parametrize("ending", ["cut", "reset", "chunked"])
def test_nothing_is_retried_after_the_first_shown_byte(ending: str) -> None:
    broken = events(delta("half"), ending=ending)  # type: ignore[arg-type]
    with ScriptedServer(broken, completed("hi")) as server:
        outcome = ask(server, retries=2)
        assert isinstance(outcome.error, ServiceFailed)
        assert outcome.shown == "half"
        assert len(server.requests) == 1


def test_without_show_nothing_is_shown_before_the_end_so_a_break_is_retried() -> None:
    with ScriptedServer(events(delta("half"), ending="cut"), completed("whole")) as server:
        assert ask(server, streamed=False, retries=1).text == "whole"


def test_retries_end() -> None:
    with ScriptedServer(always=error(503, "overloaded", headers=SOON)) as server:
        outcome = ask(server, retries=2)
        assert outcome.message == "the service answered 503: overloaded"
        assert len(server.requests) == 3


def test_no_retries_when_none_are_wanted() -> None:
    with ScriptedServer(error(503, "no", headers=SOON), completed("hi")) as server:
        assert ask(server, retries=0).error
        assert len(server.requests) == 1


def test_refused_connection_is_retried_then_told() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    outcome = ask(f"http://127.0.0.1:{port}/v1", retries=2)
    assert outcome.message == f"cannot connect to 'http://127.0.0.1:{port}/v1/responses': Connection refused"
    assert outcome.error
    assert outcome.error.hint


@pytest.fixture
def full_listener() -> Iterator[int]:
    """The port of a listener whose queue is full: a further connection gets no answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for connection in waiting:
            connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse when the queue is full")
@pytest.mark.parametrize(("limit", "idle"), [(0.2, 10), (10, 0.2), (0.2, 0.2)])
def test_connect_time_out_is_retried_then_told(
    full_listener: int, monkeypatch: pytest.MonkeyPatch, limit: float, idle: float
) -> None:
    monkeypatch.setattr(exchange, "CONNECT_SECONDS", limit)
    began = time.monotonic()
    outcome = ask(f"http://127.0.0.1:{full_listener}/v1", retries=1, timeout=idle)
    assert outcome.message.endswith("timed out")
    assert 0.4 <= time.monotonic() - began < 5


def test_look_up_that_hangs_ends_as_a_connect_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*args: object, **kwargs: object) -> None:
        release.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "released")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(exchange, "_CONNECTING", 0.2)
    assert ask("http://mino.invalid/v1", retries=1).message.endswith("timed out")
    release.set()


def test_read_time_out_is_not_retried() -> None:
    with ScriptedServer(Reply(before=[5.0]), completed("hi")) as server:
        outcome = ask(server, retries=2, timeout=0.2)
        assert "no data" in outcome.message
        assert len(server.requests) == 1


def test_error_event_is_not_retried() -> None:
    with ScriptedServer(events({"type": "error", "code": "server_error", "message": "x"}), completed("hi")) as server:
        assert ask(server, retries=2).error
        assert len(server.requests) == 1


def test_failed_response_is_not_retried() -> None:
    with ScriptedServer(events(ended("failed", error=None)), completed("hi")) as server:
        assert ask(server, retries=2).error
        assert len(server.requests) == 1


def test_data_that_is_no_json_is_not_retried() -> None:
    with ScriptedServer(events(b"data: oops\n\n"), completed("hi")) as server:
        assert ask(server, retries=2).error
        assert len(server.requests) == 1


def test_insufficient_quota_is_not_retried() -> None:
    with ScriptedServer(error(429, "pay", code="insufficient_quota", headers=SOON), completed("hi")) as server:
        assert ask(server, retries=2).message == "the service answered 429: pay"
        assert len(server.requests) == 1


def test_x_should_retry_is_obeyed() -> None:
    with ScriptedServer(error(500, "no", headers={**SOON, "x-should-retry": "false"}), completed("hi")) as server:
        assert ask(server, retries=2).error
    with ScriptedServer(error(400, "no", headers={**SOON, "X-Should-Retry": "true"}), completed("hi")) as server:
        assert ask(server, retries=2).text == "hi"


@pytest.mark.parametrize(("headers", "least"), [({"retry-after-ms": "300"}, 0.3), ({"Retry-After": "0.3"}, 0.3)])
def test_retry_after_is_waited_for(headers: dict[str, str], least: float) -> None:
    with ScriptedServer(error(429, "slow", headers=headers), completed("hi")) as server:
        assert ask(server, retries=1).text == "hi"
        first, second = server.requests
        assert second.time - first.time >= least


@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, {"retry-after-ms": "121000"}])
def test_longer_retry_after_gives_up_and_says_the_wait(headers: dict[str, str]) -> None:
    with ScriptedServer(error(429, "slow", headers=headers), completed("hi")) as server:
        outcome = ask(server, retries=2)
        seconds = "3600" if "Retry-After" in headers else "121"
        assert outcome.message == f"the service answered 429: slow; it asks to wait {seconds} s"
        assert len(server.requests) == 1


def test_retry_after_that_makes_no_sense_is_not_obeyed() -> None:
    for value in ("-5", "nan", "soon", "1e999"):
        with ScriptedServer(error(503, "x", headers={"retry-after": value}), completed("hi")) as server:
            assert ask(server, retries=1).text == "hi"


def test_each_further_attempt_is_reported_to_a_person() -> None:
    told: list[str] = []
    with ScriptedServer(error(503, "busy", headers=SOON), error(500, "oh", headers=SOON), completed("hi")) as server:
        ask(server, retries=2, tell_attempt=told.append)
    assert told == [
        "the service answered 503: busy; attempt 2 of 3 in 0.0 s",
        "the service answered 500: oh; attempt 3 of 3 in 0.0 s",
    ]


def test_waits_are_not_told_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(error(503, "busy", headers=SOON), completed("hi")) as server:
        ask(server, retries=2)
    assert capfd.readouterr().err == ""


def test_each_attempt_sends_the_same_body() -> None:
    with ScriptedServer(json_reply({"error": "x"}, 500, SOON), completed("hi")) as server:
        ask(server, retries=1)
        first, second = server.requests
        assert first.body == second.body
