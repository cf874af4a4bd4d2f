"""Waiting that ends when the reader of a pipe is gone."""

import os
import pty
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mino import watch as module
from mino.errors import ReaderGone
from mino.watch import Watch

LONG = 30.0  # seconds; whoever waits so long did not notice


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe: its reading end, which a test may close, and its writing end."""
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(write_end)


def test_a_reader_that_is_gone_already_is_noticed_at_once(pipe: tuple[int, int]) -> None:
    read_end, write_end = pipe
    watch = Watch(write_end)
    assert watch.wait(0) is False
    os.close(read_end)
    for wait in (watch.sleep, watch.wait):
        with pytest.raises(ReaderGone):
            wait(LONG)


def test_a_reader_that_goes_ends_the_wait(pipe: tuple[int, int]) -> None:
    read_end, write_end = pipe
    bell, ringing = os.pipe()
    threading.Timer(0.05, os.close, [read_end]).start()
    start = time.monotonic()
    with pytest.raises(ReaderGone):
        Watch(write_end).wait(LONG, bell)
    assert time.monotonic() - start < LONG / 2
    os.close(bell)
    os.close(ringing)


def test_a_socket_and_a_terminal_have_readers_too() -> None:
    ours, theirs = socket.socketpair()
    watch = Watch(ours.fileno())
    theirs.send("输入 🐢".encode())  # what can be read is no reason to wake
    assert watch.wait(0.01) is False
    theirs.close()
    with pytest.raises(ReaderGone):
        watch.wait(LONG)
    ours.close()
    master, slave = pty.openpty()
    watch = Watch(slave)
    assert watch.wait(0) is False
    os.close(master)
    with pytest.raises(ReaderGone):
        watch.wait(LONG)
    os.close(slave)


def test_a_bell_ends_the_wait_and_stays(pipe: tuple[int, int]) -> None:
    read_end, write_end = pipe
    bell, ringing = os.pipe()
    watch = Watch(write_end)
    assert watch.wait(0, bell) is False
    os.write(ringing, "叮 🔔".encode())
    assert watch.wait(LONG, bell) is True and watch.wait(LONG, bell) is True
    assert os.read(bell, 100).decode() == "叮 🔔"
    assert watch.wait(0, bell) is False
    for fd in (read_end, bell, ringing):
        os.close(fd)


def test_it_sleeps_as_long_as_it_was_told(pipe: tuple[int, int]) -> None:
    read_end, write_end = pipe
    for watch in (Watch(write_end), Watch(None)):
        start = time.monotonic()
        watch.sleep(0.05)
        assert 0.05 <= time.monotonic() - start < LONG
    os.close(read_end)


def test_a_file_is_not_watched(tmp_path: Path) -> None:
    """On some systems a poll of a file comes back at once, and the wait would spin."""
    with open(tmp_path / "输出", "wb") as file:
        watch = Watch(file.fileno())
        start = time.process_time(), time.monotonic()
        assert watch.wait(0.2) is False
        assert time.monotonic() - start[1] >= 0.2
        assert time.process_time() - start[0] < 0.1


def test_a_closed_descriptor_is_not_watched() -> None:
    assert Watch(1 << 20).wait(0.001) is False


def test_a_descriptor_that_cannot_be_polled_is_watched_no_more(pipe: tuple[int, int]) -> None:
    """As that of a terminal on some systems: each poll reports an error at once, and the wait would spin."""
    read_end, write_end = pipe
    watch = Watch(write_end)
    os.close(read_end)
    copy = os.dup(write_end)
    os.close(write_end)  # POLLNVAL
    start = time.monotonic()
    watch.sleep(0.05)
    assert time.monotonic() - start >= 0.05
    os.dup2(copy, write_end)
    os.close(copy)
    assert watch.wait(0) is False


def test_it_ticks_about_once_a_second_while_it_waits(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SLICE", 0.02)
    ticks: list[float] = []
    watch = Watch(pipe[1], lambda: ticks.append(time.monotonic()))
    bell, ringing = os.pipe()
    assert watch.wait(0, bell) is False
    for seconds in (0.3, 0.02, 0.02, 0.02, 0.02):  # in one piece, or in pieces as long as a tick
        assert watch.wait(seconds, bell) is False
    assert 5 <= len(ticks) <= 25
    before = len(ticks)
    watch.sleep(0.3)
    assert len(ticks) > before
    os.write(ringing, b"x")
    before = len(ticks)
    while len(ticks) == before:
        assert watch.wait(LONG, bell) is True  # at once, and it ticks all the same
    os.close(pipe[0])
    with pytest.raises(ReaderGone):
        watch.wait(LONG)
    os.close(bell)
    os.close(ringing)
