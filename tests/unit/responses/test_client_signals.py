"""Signals on real connections end a turn within a second in every state, and leave nothing behind."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType

import pytest

from mino.errors import Interrupted, ServiceFailed
from tests.server import Reply, ScriptedServer, answer_events, completed, delta, ended, error, events, wait_until
from tests.unit.responses.asking import Collecting, client, put, request


@contextmanager
def interrupted_when(ready: Callable[[], object]) -> Iterator[None]:
    """A real signal, which raises Interrupted in this thread, when `ready` has returned; it must end the block."""

    def arrive(signum: int, frame: FrameType | None) -> None:
        raise Interrupted(signum)

    sent_at: list[float] = []

    def send() -> None:
        ready()
        time.sleep(0.05)  # into the wait; whether before or in it, the outcome must be the same
        sent_at.append(time.monotonic())
        signal.pthread_kill(main, signal.SIGUSR1)

    main = threading.get_ident()
    before = signal.signal(signal.SIGUSR1, arrive)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(Interrupted):
            yield
        assert time.monotonic() - sent_at[0] < 1
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def test_signal_while_waiting_for_the_head() -> None:
    with ScriptedServer(Reply(before=[30.0])) as server:
        with interrupted_when(lambda: server.wait_for_requests(1)):
            put(client(server))
        assert server.requests[0].hung_up.wait(5)


def test_signal_while_reading() -> None:
    shown: list[str] = []
    with ScriptedServer(events(delta("half"), 30.0, ended())) as server:
        with interrupted_when(lambda: wait_until(lambda: bool(shown))):
            client(server).ask(request(), Collecting(shown))
        assert shown == ["half"]
        assert server.requests[0].hung_up.wait(5)


def test_signal_while_an_error_is_read() -> None:
    with (
        ScriptedServer(Reply([b"half", 30.0], 500)) as server,
        interrupted_when(lambda: server.wait_for_requests(1)),
    ):
        put(client(server))


def test_signal_in_a_retry_wait() -> None:
    with ScriptedServer(error(429, "slow", headers={"retry-after": "100"})) as server:
        with interrupted_when(lambda: server.wait_for_requests(1)):
            put(client(server, retries=2))
        assert len(server.requests) == 1


def test_signal_in_a_tls_handshake() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        accepted = []
        with interrupted_when(lambda: accepted.append(listener.accept())):
            put(client(f"https://127.0.0.1:{port}/v1"))
        accepted[0][0].close()


def test_signal_in_a_name_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(*args: object, **kwargs: object) -> None:
        asked.set()
        release.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "released")

    # No name server can be made to hang here, so this one look-up is not real.
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with interrupted_when(asked.wait):
        put(client("http://mino.invalid/v1"))
    release.set()


def test_question_is_not_sent_when_the_signal_came_while_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, release = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def hang(*args: object, **kwargs: object) -> object:
        asked.set()
        release.wait(30)
        return real(*args, **kwargs)  # type: ignore[arg-type]

    with ScriptedServer(completed("hi")) as server:
        monkeypatch.setattr(socket, "getaddrinfo", hang)
        with interrupted_when(asked.wait):
            put(client(server))
        release.set()
        wait_until(lambda: server.connections == 1 and not exchange_threads())
        assert server.requests == []


# Nothing left behind


def exchange_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "mino exchange"]


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_no_threads_or_descriptors_are_left_after_many_turns() -> None:
    replies: list[Reply] = []
    for _ in range(15):
        replies += [
            completed("hi"),
            events(*answer_events("hi"), 30.0),
            error(400, "no"),
            events(delta("a"), ending="reset"),
            events(delta("a"), 30.0),
        ]
    with ScriptedServer(*replies) as server:
        asked = client(server, timeout=0.05)
        wait_until(lambda: not exchange_threads())
        before = descriptors()
        for _ in replies:
            put(asked)
        wait_until(lambda: not exchange_threads())
        # The server's own ends are closed by its threads, in their time.
        wait_until(lambda: descriptors() <= before)
        assert len(server.requests) == len(replies)


def test_fast_stream_does_not_run_ahead_of_a_slow_reader() -> None:
    piece = b"".join(
        f'data: {{"type":"response.output_text.delta","delta":"{n:060}"}}\n\n'.encode() for n in range(700)
    )
    sent: list[int] = []

    def counted() -> Iterator[bytes]:
        for n in range(600):
            sent.append(n)
            yield piece

    shown = 0

    def show(text: str) -> None:
        nonlocal shown
        if not shown:
            time.sleep(0.5)  # long enough to send all of it, 50 MB, if nothing held the server back
            assert len(sent) < 300
        shown += len(text)

    steps = _Lazily(counted)
    reply = Reply(steps, headers={"content-type": "text/event-stream"})  # type: ignore[arg-type]
    with ScriptedServer(reply) as server:
        with pytest.raises(ServiceFailed):
            client(server).ask(request(), Collecting([], show))
        assert shown == 600 * 700 * 60


class _Lazily:
    """Steps that are made while they are sent."""

    def __init__(self, make: Callable[[], Iterator[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return self._make()
