"""Work that may take for ever, or end its process: done in a child process, and given up after a while.

A check of JSON by a schema of somebody else's is such work. A signal handler that raises would do for a regular
expression, but not in the libraries: one of them, in Rust, aborts the process if it is left in that way.
"""

import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from mino import signals
from mino.errors import Exhausted

Outcome = TypeVar("Outcome")


class GivenUp(Exception):
    """The work was not finished; `in_time` is False if it took too long, True if the process died of it."""

    def __init__(self, *, in_time: bool) -> None:
        super().__init__()
        self.in_time = in_time


def run_apart(work: Callable[[], Outcome], seconds: float) -> Outcome:
    """What `work` returns, which must be picklable; an exception of it is a death. Raises GivenUp, and Exhausted.

    It forks, so `work` must not use what another thread may have locked: it computes, and does nothing else.
    """
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(reading)
        os.close(writing)
        raise Exhausted(
            f"no process can be started: {error.strerror}", "ulimit -a shows the limits of this shell"
        ) from None
    if not pid:
        _work(work, seconds, writing)
    os.close(writing)
    try:
        with open(reading, "rb") as pipe:
            said = pipe.read()
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # if a signal ended the wait; it does nothing to one that has ended
        status = _status(pid)
    try:
        return cast(Outcome, pickle.loads(said))
    except Exception:  # whatever came of half an outcome
        raise GivenUp(in_time=status != -signal.SIGALRM) from None


def _status(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # whoever started Mino ignores SIGCHLD
        return 0


def _work(work: Callable[[], Any], seconds: float, writing: int) -> None:
    """In the child: the kernel ends it when the time is over, and nothing that a library prints is seen."""
    try:
        signals.uninstall()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.setitimer(signal.ITIMER_REAL, seconds)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        with open(writing, "wb") as pipe:
            pickle.dump(work(), pipe)
    finally:
        os._exit(0)  # whatever happened: the rest of the program belongs to the first process
