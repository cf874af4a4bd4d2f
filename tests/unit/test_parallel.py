"""The same work on many items: every outcome, in order, whatever becomes of the processes."""

import os
import signal

import pytest

from mino import parallel
from mino.parallel import map_in_order


def children() -> bool:
    """Whether there are child processes that nobody has waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_outcomes_in_order(count: int) -> None:
    assert list(map_in_order(lambda item: f"{item} 你好 🐕", range(count))) == [f"{n} 你好 🐕" for n in range(count)]
    assert not children()


def test_more_than_a_pipe_holds() -> None:
    assert [len(outcome) for outcome in map_in_order(lambda item: b"x" * 300_000, range(8))] == [300_000] * 8


def test_the_work_is_done_by_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "count_processors", lambda: 3)
    assert os.getpid() not in set(map_in_order(lambda _: os.getpid(), range(9)))


def test_what_a_killed_process_did_not_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "count_processors", lambda: 2)
    here = os.getpid()

    def work(item: int) -> int:
        if item == 4 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert list(map_in_order(work, range(10))) == list(range(10))


def test_work_that_raises_is_repeated_here_and_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "count_processors", lambda: 2)
    outcomes = map_in_order(lambda item: 10 // (item - 3), range(10))
    assert [next(outcomes) for _ in range(3)] == [-4, -5, -10]
    with pytest.raises(ZeroDivisionError):
        next(outcomes)
    assert not children()


def test_without_new_processes_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/dev/fd"))
    assert list(map_in_order(lambda _: os.getpid(), range(5))) == [os.getpid()] * 5
    assert len(os.listdir("/dev/fd")) == before


def test_whoever_stops_early_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "count_processors", lambda: 2)
    outcomes = map_in_order(lambda item: signal.pause() if item > 1 else item, range(9))
    assert next(outcomes) == 0
    outcomes.close()
    assert not children()
