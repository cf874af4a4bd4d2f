"""The progress of a long check: one line on stderr, shown only on a terminal, and only after half a second."""

import time

from mino.terminal import output

_PATIENCE = 0.5  # seconds without a word
_PERIOD = 0.1  # seconds between two updates; a terminal on a slow line must not delay the work


class Progress:
    """Progress of `what` towards `total`; nothing is shown if that is 0 or unknown."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._next = time.monotonic() + _PATIENCE if total and output.is_terminal(output.STDERR) else float("inf")
        self._is_shown = False

    def advance(self, size: int) -> None:
        """Count `size` more of the total as done. The line is redrawn at once if other output has removed it."""
        self._done += size
        now = time.monotonic()
        if now >= self._next or (self._is_shown and not output.is_drawn()):
            self._next = now + _PERIOD
            self._is_shown = True
            output.draw(f"{self._what}: {min(100, 100 * self._done // self._total)} %")

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            self._is_shown = False
            output.clear_passing()
