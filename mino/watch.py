"""Waiting that notices when nobody reads stdout any more, so that `mino ask … | head -1` ends at once."""

import math
import os
import select
import stat
import time
from collections.abc import Callable

from mino.errors import ReaderGone

_GONE = select.POLLERR | select.POLLHUP
_SLICE = 1.0  # seconds between two ticks
_LONGEST = 3600.0  # poll takes milliseconds in a C int


class Watch:
    """Watches stdout's descriptor while Mino waits for something else; it does not watch files and None.

    `tick` is called about once a second while it waits.
    """

    def __init__(self, fd: int | None, tick: Callable[[], None] | None = None) -> None:
        self._tick = tick
        self._due = time.monotonic() + _SLICE
        self._fd = fd if fd is not None and _has_reader(fd) else None
        # macOS reports nothing unless an event is asked for. For a terminal or a socket it would then report input,
        # again and again; the write end of a pipe has none.
        self._asked = select.POLLHUP if self._fd is not None and stat.S_ISFIFO(os.fstat(self._fd).st_mode) else 0

    def sleep(self, seconds: float) -> None:
        """Wait `seconds`. Raises ReaderGone at once when the reader goes."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.wait(left)

    def wait(self, seconds: float, bell: int | None = None) -> bool:
        """Wait until the descriptor `bell` is readable or about `seconds`; returns whether it is. Raises ReaderGone.

        It is looked at even if `seconds` are over.
        """
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            ready = self._wait(min(left, _SLICE) if self._tick else left, bell)
            # Also if it is ready each time: what comes may be nothing that is shown.
            if self._tick and time.monotonic() >= self._due:
                self._due = time.monotonic() + _SLICE
                self._tick()
            if ready or not self._tick or left <= _SLICE:
                return ready

    def _wait(self, seconds: float, bell: int | None) -> bool:
        poll = select.poll()
        if bell is not None:
            poll.register(bell, select.POLLIN)
        if self._fd is not None:
            poll.register(self._fd, self._asked)
        # A negative time would be endless.
        ready = dict(poll.poll(math.ceil(max(0.0, min(seconds, _LONGEST)) * 1000)))
        if self._fd in ready:
            if ready[self._fd] & _GONE:
                raise ReaderGone
            self._fd = None  # not pollable on this system; without this the wait would spin
        return bell in ready


def _has_reader(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
    except OSError:
        return False
