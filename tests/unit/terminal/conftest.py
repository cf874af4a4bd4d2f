"""A terminal and a clock for what is drawn while time passes."""

import os
import pty
import time
import tty
from collections.abc import Callable, Iterator

import pytest

from mino.terminal import output


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """stderr is a terminal; what it was sent, which may arrive in pieces: up to a mark that is sent after it."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    monkeypatch.setattr(output, "STDERR", slave)

    def read() -> str:
        os.write(slave, b"|")
        data = b""
        while not data.endswith(b"|"):
            data += os.read(master, 1 << 20)
        return data[:-1].decode()

    yield read
    os.close(master)
    os.close(slave)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets the clock of the program advance."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def advance(seconds: float) -> None:
        clock[0] += seconds

    return advance
