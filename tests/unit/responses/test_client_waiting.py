"""Waiting on real connections: the idle limit, signals in every state, a reader that goes, nothing left behind."""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from mino.errors import ReaderGone, ServiceFailed
from tests.server import (
    Reply,
    ScriptedServer,
    answer_events,
    completed,
    delta,
    ended,
    error,
    events,
    message,
    wait_until,
)
from tests.unit.responses.asking import Collecting, ask, client, outcome_of, put, request

PING = b": ping\n\n"


# The idle limit


@pytest.mark.parametrize("heartbeat", [PING, b"data:\n\n", b"event: ping\n\n", b'data: {"type":"keepalive"}\n\n', b":"])
def test_pings_keep_the_stream_alive(heartbeat: bytes) -> None:
    waits = [step for _ in range(8) for step in (0.1, heartbeat)]
    with ScriptedServer(events(PING, *waits, b"\n\n", *answer_events("hi"))) as server:
        assert ask(server, timeout=0.5).text == "hi"


def test_reasoning_keeps_the_stream_alive() -> None:
    waits = [step for _ in range(8) for step in (0.1, {"type": "response.reasoning_text.delta", "delta": "hm"})]
    with ScriptedServer(events(*waits, *answer_events("hi"))) as server:
        assert ask(server, timeout=0.5).text == "hi"


def test_silence_before_the_head_ends_the_turn() -> None:
    with ScriptedServer(Reply(before=[10.0])) as server:
        began = time.monotonic()
        outcome = ask(server, timeout=0.2)
        assert isinstance(outcome.error, ServiceFailed)
        assert outcome.message == f"no data from '{server.url}/responses' for 0.2 s"
        assert outcome.error.hint == "--timeout 0.4 waits longer"
        assert time.monotonic() - began < 2
        assert server.requests[0].hung_up.wait(5)


def test_silence_in_the_stream_ends_the_turn() -> None:
    with ScriptedServer(events(delta("half"), 10.0, ended()), completed("x")) as server:
        outcome = ask(server, timeout=0.2, retries=2)
        assert (outcome.shown, "no data" in outcome.message) == ("half", True)
        assert len(server.requests) == 1


def test_silence_after_the_head_of_an_error_tells_the_error() -> None:
    with ScriptedServer(Reply([b'{"error": "Bad"}', 10.0], 400)) as server:
        assert ask(server, timeout=0.2).message == "the service answered 400: Bad"


@contextmanager
def slow_reader(pace: float) -> Iterator[str]:
    """The address of a server that reads 8 kB in each `pace` seconds, and answers once it has the whole question."""

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                data = b""
                while not data.endswith(b"}") and (piece := connection.recv(8192)):
                    data = data[-1:] + piece
                    time.sleep(pace)
                said = json.dumps(ended(output=[message("hi")])["response"]).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))

    with closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=serve).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the last part, in the system's buffer, does not count")
def test_sending_a_long_question_on_a_slow_line_is_life() -> None:
    with slow_reader(0.02) as url:
        began = time.monotonic()
        assert put(client(url, timeout=0.4), request("x" * 600_000)).text == "hi"
        assert time.monotonic() - began > 0.8  # or the line was not slow


def test_question_that_nobody_reads_is_given_up() -> None:
    with slow_reader(1.0) as url:
        began = time.monotonic()
        assert "no data from" in put(client(url, timeout=0.3), request("x" * 8_000_000)).message
        assert time.monotonic() - began < 3


def test_error_that_never_ends_does_not_hold_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mino.responses.client._ERROR_SECONDS", 0.5)
    steps: list[bytes | float] = [step for _ in range(100) for step in (0.05, b"x")]
    with ScriptedServer(Reply(steps, 400, ending="close")) as server:
        began = time.monotonic()
        assert "400: xx" in ask(server).message
        assert time.monotonic() - began < 3


def test_terminal_event_ends_the_wait_though_the_connection_stays_open() -> None:
    with ScriptedServer(events(*answer_events("hi"), 30.0)) as server:
        began = time.monotonic()
        assert ask(server).text == "hi"
        assert time.monotonic() - began < 2
        assert server.requests[0].hung_up.wait(5)


# The reader of stdout


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        with suppress(OSError):  # the test closed it
            os.close(fd)


def close_when(ready: Callable[[], object], fd: int) -> None:
    def close() -> None:
        ready()
        os.close(fd)

    threading.Thread(target=close).start()


def test_reader_that_goes_while_waiting_for_the_first_word(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    with ScriptedServer(Reply(before=[30.0])) as server:
        close_when(lambda: server.wait_for_requests(1), reader)
        began = time.monotonic()
        with pytest.raises(ReaderGone):
            put(client(server, watch=writer))
        assert time.monotonic() - began < 5
        assert server.requests[0].hung_up.wait(5)


def test_reader_that_goes_between_two_words(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    shown: list[str] = []
    with ScriptedServer(events(delta("half"), 30.0, ended())) as server:
        close_when(lambda: wait_until(lambda: bool(shown)), reader)
        with pytest.raises(ReaderGone):
            client(server, watch=writer).ask(request(), Collecting(shown))


def test_reader_that_goes_in_a_retry_wait(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    with ScriptedServer(error(429, "slow", headers={"retry-after": "100"})) as server:
        close_when(lambda: server.wait_for_requests(1), reader)
        with pytest.raises(ReaderGone):
            put(client(server, watch=writer, retries=2))


def test_reader_that_goes_closes_a_socket_too() -> None:
    ours, theirs = socket.socketpair()
    with ours, ScriptedServer(Reply(before=[30.0])) as server:
        close_when(lambda: server.wait_for_requests(1), theirs.detach())
        with pytest.raises(ReaderGone):
            put(client(server, watch=ours.fileno()))


def test_reader_that_stays_is_no_trouble(pipe: tuple[int, int]) -> None:
    with ScriptedServer(events(0.1, *answer_events("hi"))) as server:
        assert put(client(server, watch=pipe[1])).text == "hi"


@pytest.mark.parametrize("path", ["/dev/null", __file__])
def test_files_are_not_watched(path: str) -> None:
    with open(path, "rb") as file, ScriptedServer(events(0.1, *answer_events("hi"))) as server:
        assert put(client(server, watch=file.fileno())).text == "hi"


def test_closed_stdout_is_not_watched(pipe: tuple[int, int]) -> None:
    os.close(pipe[1])
    with ScriptedServer(completed("hi")) as server:
        assert put(client(server, watch=pipe[1])).text == "hi"


def test_what_show_raises_passes_through_and_the_connection_closes() -> None:
    def show(text: str) -> None:
        raise ReaderGone

    with ScriptedServer(events(delta("half"), 30.0, ended())) as server:
        with pytest.raises(ReaderGone):
            client(server).ask(request(), Collecting([], show))
        assert server.requests[0].hung_up.wait(5)


@pytest.mark.parametrize("start", [b"data: ", b"{", b": "])
def test_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr("mino.responses.body._LONGEST", 1 << 20)
    reply = Reply([start, *([b"x" * 65536] * 40)], headers={"content-type": "text/event-stream"})
    outcome = outcome_of(reply)
    assert outcome.message.endswith("is longer than 1 MiB")
