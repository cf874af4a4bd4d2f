"""Waiting on real connections: the idle limit, signals in every state, a reader that goes, nothing left behind."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from mino.errors import ReaderGone, ServiceFailed
from tests.server import Reply, ScriptedServer, answer_events, completed, delta, ended, error, events, wait_until
from tests.unit.responses.asking import ask, client, outcome_of, put, request

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
            client(server, watch=writer).ask(request(), shown.append)


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
            client(server).ask(request(), show)
        assert server.requests[0].hung_up.wait(5)


@pytest.mark.parametrize("start", [b"data: ", b"{", b": "])
def test_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr("mino.responses.body._LONGEST", 1 << 20)
    reply = Reply([start, *([b"x" * 65536] * 40)], headers={"content-type": "text/event-stream"})
    outcome = outcome_of(reply)
    assert outcome.message.endswith("is longer than 1 MiB")
