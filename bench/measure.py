"""Running whole processes, alternately, and what their times say: medians and quartiles of ratios.

Two programs are compared only within one round, in which each runs once, one right after the other: whatever else the
machine does then slows both. The order within a round turns from round to round, so that no program always has the
warmer caches.
"""

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

LEAST_ROUNDS = 9


class Failed(Exception):
    """A command did not do what it should have done; the message says what, for the table."""


class TookTooLong(Failed):
    """A command was ended at its limit."""

    def __init__(self, command: "Command") -> None:
        super().__init__(f"{command.name} took over {command.limit:g} s")
        self.command = command


@dataclass(frozen=True, slots=True)
class Run:
    """What one process and its children took: wall and CPU seconds (user and system), and its peak RSS in bytes."""

    wall: float
    cpu: float
    rss: int


@dataclass(frozen=True)
class Command:
    """One program to measure.

    Its environment is `environ`, PATH and a UTF-8 locale. `prepare` runs before each measurement and is not measured;
    `limit` is in seconds. An exit status other than `status` is a failure.
    """

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] | None = None
    limit: float = 600.0
    status: int = 0
    cwd: str | None = None

    def run(self) -> Run:
        """Run once. Raises Failed with the end of stderr, TookTooLong at the limit."""
        if self.prepare:
            self.prepare()
        environ = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **self.environ}
        with tempfile.TemporaryFile() as errors:
            begin = time.perf_counter()
            process = subprocess.Popen(
                self.argv,
                env=environ,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # the limit ends the children of a launcher too
            )
            over = threading.Event()
            timer = threading.Timer(self.limit, _end, (process.pid, over))
            timer.start()
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begin
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            if over.is_set():
                raise TookTooLong(self)
            if process.returncode != self.status:
                errors.seek(0)
                said = errors.read().decode("utf-8", "replace").strip().splitlines()
                raise Failed(f"{self.name} ended with {process.returncode}: {said[-1][:200] if said else 'no message'}")
        unit = 1 if os.uname().sysname == "Darwin" else 1024  # getrusage(2): bytes there, kilobytes on Linux
        return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def _end(pid: int, over: threading.Event) -> None:
    over.set()
    os.killpg(pid, 9)


def alternately(commands: Sequence[Command], rounds: int) -> list[list[Run]]:
    """The runs of each command, one a round, after one round that only warms caches and is not counted.

    Raises Failed. At least `LEAST_ROUNDS` rounds are run, whatever is asked for.
    """
    for command in commands:
        command.run()
    runs: list[list[Run]] = [[] for _ in commands]
    for number in range(max(rounds, LEAST_ROUNDS)):
        shift = number % len(commands)
        for index in [*range(shift, len(commands)), *range(shift)]:
            runs[index].append(commands[index].run())
    return runs


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the quartiles of some figures."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)}-{_short(self.high)})"


def spread(figures: Sequence[float]) -> Spread:
    """The spread of at least two figures."""
    low, median, high = statistics.quantiles(figures, n=4, method="inclusive")
    return Spread(low, median, high)


def ratios(one: Sequence[float], other: Sequence[float]) -> Spread:
    """The spread of `one` by `other`, round by round."""
    return spread([a / b for a, b in zip(one, other, strict=True)])


def walls(runs: Sequence[Run]) -> list[float]:
    """The wall seconds of `runs`."""
    return [run.wall for run in runs]


def cpus(runs: Sequence[Run]) -> list[float]:
    """The CPU seconds of `runs`."""
    return [run.cpu for run in runs]


def added(more: Sequence[float], less: Sequence[float]) -> list[float]:
    """What the greater task cost more than the smaller one, round by round; never less than a microsecond.

    A difference of noise can be negative, and a ratio with it would say nothing.
    """
    return [max(a - b, 1e-6) for a, b in zip(more, less, strict=True)]


def _short(figure: float) -> str:
    return f"{figure:.3g}" if figure < 100 else f"{figure:.0f}"
