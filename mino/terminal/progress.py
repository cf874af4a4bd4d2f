"""How far a long check is: one line on stderr, which only a person at a terminal sees, and only after half a second."""

import time

from mino.terminal import output

_PATIENCE = 0.5  # seconds without a word
_PERIOD = 0.1  # seconds between two pictures; a terminal over a slow line must not hold the work up


class Progress:
    """Progress of `what` towards `total`; where that is 0 or unknown there is nothing to show."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._next = time.monotonic() + _PATIENCE if total and output.is_terminal(output.STDERR) else float("inf")
        self._columns = 0

    def advance(self, size: int) -> None:
        """`size` more of the total is done."""
        self._done += size
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PERIOD
            self._columns = output.draw(f"{self._what}: {min(100, 100 * self._done // self._total)} %", self._columns)

    def clear(self) -> None:
        """Take the line away, so that other words can stand there."""
        if self._columns:
            self._columns = output.draw("", self._columns)
