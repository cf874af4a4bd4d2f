"""Work in a process of its own: its outcome, or that there is none."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from mino.apart import GivenUp, run_apart
from mino.errors import Exhausted


def children() -> list[int]:
    """Those that were not waited for."""
    try:
        return [os.waitpid(-1, os.WNOHANG)[0]]
    except ChildProcessError:
        return []


def test_the_outcome_comes_back(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> tuple[str, int]:
        os.write(1, b"seen")
        os.write(2, b"seen")
        return "结果 🙂" * 100_000, os.getpid()

    text, pid = run_apart(work, 10)
    assert text == "结果 🙂" * 100_000 and pid != os.getpid()
    assert run_apart(lambda: None, 10) is None
    assert capfd.readouterr() == ("", "") and children() == []


def fail() -> None:
    raise ZeroDivisionError


def recurse() -> None:
    recurse()


@pytest.mark.parametrize("work", [fail, recurse, os.abort, lambda: os.kill(os.getpid(), 9), lambda: lambda: 1])
def test_a_process_that_dies_is_told(work: Callable[[], object]) -> None:
    with pytest.raises(GivenUp) as caught:
        run_apart(work, 10)
    assert caught.value.in_time and children() == []


def test_what_takes_too_long_is_given_up_whatever_it_does() -> None:
    def forever() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        while True:
            pass

    for work in (forever, lambda: time.sleep(60)):
        with pytest.raises(GivenUp) as caught:
            run_apart(work, 0.1)
        assert not caught.value.in_time and children() == []


def test_a_wait_that_is_left_leaves_no_process() -> None:
    class Left(BaseException):
        pass

    def leave(*args: object) -> None:
        raise Left

    before = signal.signal(signal.SIGALRM, leave)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Left):
            run_apart(lambda: time.sleep(60), 60)
        assert children() == []
    finally:
        signal.signal(signal.SIGALRM, before)


def test_no_process_to_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(Exhausted, match="no process can be started: Resource temporarily unavailable"):
        run_apart(lambda: None, 1)
