"""The same work on many items, on all processors, with the outcomes in the order of the items.

Each process takes every n-th item and writes its outcomes into a pipe of its own. This process does the work of one
that could not be started or was killed: a lost process costs time, but no outcome, and does not cause a hang.
"""

import os
import pickle
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import BinaryIO, TypeVar

from mino import signals

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def count_processors() -> int:
    """The processors that this process may use: in a container, or under taskset, not all of the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(work: Callable[[Item], Outcome], items: Sequence[Item]) -> Generator[Outcome]:
    """The outcome of `work` for each of `items`; it must be picklable. Exceptions of `work` pass through.

    It forks, so there must be no other thread.
    """
    count = min(count_processors(), len(items))
    started: list[tuple[int, BinaryIO]] = []
    try:
        with suppress(OSError):  # no more processes, or files: the work is done here
            while len(started) < count:
                started.append(_start(work, items[len(started) :: count], [pipe for _, pipe in started]))
        for number, item in enumerate(items):
            try:
                outcome: Outcome = pickle.load(started[number % count][1])
            except (EOFError, IndexError, pickle.UnpicklingError):
                outcome = work(item)
            yield outcome
    finally:
        for pid, pipe in started:
            pipe.close()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def _start(work: Callable[[Item], object], items: Sequence[Item], others: list[BinaryIO]) -> tuple[int, BinaryIO]:
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid:
        os.close(writing)
        return pid, open(reading, "rb")
    try:
        signals.uninstall()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody waits for the rest
        os.close(reading)
        for pipe in others:
            os.close(pipe.fileno())
        with open(writing, "wb") as outcomes:
            for item in items:
                pickle.dump(work(item), outcomes)
                outcomes.flush()
    finally:
        os._exit(0)  # whatever happened: the rest of the program belongs to the first process
