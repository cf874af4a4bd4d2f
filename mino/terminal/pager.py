"""Long output on a terminal, a screen at a time: MINO_PAGER, else PAGER, else `less -FRX` (mino-history(1))."""

import os
import re
import signal
from collections.abc import Iterable
from contextlib import suppress

from mino import signals
from mino.terminal import output
from mino.text import width

_LESS = "less -FRX"
_CANNOT_RUN = (126, 127)  # how a shell says so


def show(pieces: Iterable[str]) -> None:
    """Write `pieces` to stdout as they are; through the pager if that is a terminal, and they are longer than it.

    It is no error if the pager is missing, fails or is left early. Raises as `output.show` does, and Interrupted for a
    SIGTERM or SIGHUP that ended the pager too.
    """
    if output.is_terminal(output.STDOUT):
        pieces = ["".join(pieces)]
        pager = _find_pager() if _is_long(pieces[0]) else None
        if pager and _page(pager, pieces[0]):
            return
    for piece in pieces:
        output.write(piece)


def _find_pager() -> str | None:
    from shutil import which  # what is imported here costs a short command a tenth of its time

    chosen = os.environ.get("MINO_PAGER") or os.environ.get("PAGER")
    return chosen or (_LESS if not output.is_dumb() and which("less") else None)


def _is_long(text: str) -> bool:
    """Whether `text`, with a prompt below it, is more than the terminal shows."""
    try:
        columns, rows = os.get_terminal_size(output.STDOUT)
    except OSError:
        return False
    if not columns or not rows:  # the size is unknown
        return False
    for line in re.sub(r"\x1b\[\d*m", "", text).removesuffix("\n").split("\n"):
        rows -= max(1, -(-width(line.expandtabs()) // columns))
        if rows < 1:
            return True
    return False


def _page(pager: str, text: str) -> bool:
    """Show `text` in `pager`; whether that could be run."""
    from subprocess import PIPE, Popen

    process: Popen[bytes] | None = None
    # The colour of heads must not depend on what else the user has set for less.
    environ = {**os.environ, "LESS": f"-R {os.environ['LESS']}" if os.environ.get("LESS") else "-FRX"}
    with signals.deferred(lambda: process.terminate() if process else None):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            # Ctrl+C is for the pager, which gets it too. SIG_IGN instead of a function would be inherited by it.
            signal.signal(signal.SIGINT, lambda _signum, _frame: None)
        try:
            process = Popen(["sh", "-c", pager], stdin=PIPE, env=environ)
        except OSError:
            return False
        if signals.is_pending():  # it came before there was anything to end
            process.terminate()
        assert process.stdin
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(text.encode("utf-8", "replace"))
        return process.wait() not in _CANNOT_RUN
