"""What Mino itself lacks is told as that, at once, and by a thread that can hardly speak too."""

import errno
import socket
import ssl
import time

import pytest

from mino.errors import Exhausted, Misconfigured
from mino.responses.surroundings import loading, shortage
from tests.server import ScriptedServer, completed
from tests.unit.responses.asking import ask


def wrapped(inner: BaseException) -> Exception:
    """As the libraries wrap it."""
    try:
        raise ConnectionError("Max retries exceeded") from inner
    except ConnectionError as error:
        return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (wrapped(MemoryError()), "not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory"),
        (OSError(errno.ENOBUFS, "No buffer space available"), "not enough memory"),
        (socket.gaierror(socket.EAI_MEMORY, "Memory allocation failure"), "not enough memory"),
        (ImportError("libz.so.1: failed to map segment from shared object"), "not enough memory"),
        (ssl.SSLError("[X509] malloc failure (_ssl.c:4149)"), "not enough memory"),
        (wrapped(OSError(errno.EMFILE, "Too many open files")), "no file descriptor is free: Too many open files"),
        (OSError(errno.ENFILE, "Too many open files in system"), "no file descriptor is free"),
        (RuntimeError("can't start new thread"), "no thread can be started"),
        (RuntimeError("Resource temporarily unavailable"), "no thread can be started"),
    ],
)
def test_what_is_lacking(error: Exception, said: str) -> None:
    lack = shortage(error)
    assert isinstance(lack, Exhausted) and said in lack.message and lack.hint


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ECONNREFUSED, "Connection refused"),
        OSError(errno.EAGAIN, "Resource temporarily unavailable"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ImportError("No module named 'x'"),
        RuntimeError("dictionary changed size during iteration"),
        ConnectionError("the server said: cannot allocate memory"),
        ssl.SSLError("wrong version number"),
    ],
)
def test_what_is_not_for_lack_of_anything(error: Exception) -> None:
    assert shortage(error) is None


def test_library_that_raises_anything_is_told_with_its_place() -> None:
    with pytest.raises(Misconfigured) as caught, loading("json"):
        raise KeyError("odd")
    assert "the library json in '" in caught.value.message and "KeyError: 'odd'" in caught.value.message


def test_memory_that_runs_out_in_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("mino.responses.exchange.send", fail)
    with ScriptedServer(completed("hi")) as server:
        outcome = ask(server, retries=2)
    assert isinstance(outcome.error, Exhausted) and server.connections == 0


def test_thread_that_cannot_even_say_why_ends_the_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("mino.responses.exchange.send", fail)
    monkeypatch.setattr("mino.responses.exchange.explain", fail)
    began = time.monotonic()
    with ScriptedServer(completed("hi")) as server, pytest.raises(MemoryError):
        ask(server, retries=2)
    assert time.monotonic() - began < 5


def test_defect_in_the_thread_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fail(*_: object, **__: object) -> None:
        calls.append(1)
        raise AttributeError("no such thing")

    monkeypatch.setattr("mino.responses.exchange.send", fail)
    with ScriptedServer(completed("hi")) as server, pytest.raises(AttributeError):
        ask(server, retries=2)
    assert len(calls) == 1
