"""The sign of life while an answer is waited for: one line on stderr, which goes away without a trace."""

import time
from contextlib import suppress

from mino.errors import ReaderGone, StorageFailed
from mino.terminal import output

_PATIENCE = 2.0  # seconds without a word


class Waiting:
    """Says on a terminal what is waited for, and how long; nothing of it goes into a pipe.

    Whoever waits calls `tick` about once a second.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._since = 0.0
        self._is_on = False

    def begin(self) -> None:
        """The question goes out."""
        self._is_on = output.is_terminal(output.STDERR)
        self._since = time.monotonic()

    def tick(self) -> None:
        """Show the line, if nothing has come for two seconds."""
        seconds = time.monotonic() - self._since
        if self._is_on and seconds >= _PATIENCE:
            output.draw(f"waiting for {self._what}: {seconds:.0f} s")

    def take_word(self) -> None:
        """A word has come that is shown. The line goes away, and comes back only if stdout is no terminal."""
        self._clear()
        self._is_on = self._is_on and not output.is_terminal(output.STDOUT)
        self._since = time.monotonic()

    def end(self) -> None:
        """The answer is whole, or will not come."""
        self._clear()
        self._is_on = False

    def _clear(self) -> None:
        if self._is_on:
            with suppress(ReaderGone, StorageFailed):  # the terminal is gone, and the answer may go into a file
                output.clear_passing()
