"""The process: signals, warnings, garbage collection, the exit. `python -m mino` and the command `mino` begin here.

Importing this module or any other of Mino changes nothing; `main` does, once.
"""

import gc
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line, and end the process with its exit status, or by the signal that ended the work.

    The interpreter is not taken down: that would be a sixth of the time of a short command, nothing waits for it, and
    the embedded engine's threads can crash in it.
    """
    set_up()
    status = run()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # a closed one has nothing to lose
            stream.flush()
    os._exit(status)


def set_up() -> None:
    """Set the process up for a command; before anything else is imported, because that takes time."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl+C ends the process like any signal while nothing has to be saved, and not in a traceback: mino.signals.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A short command makes little garbage and many objects that stay: looking through them again and again is a tenth
    # of its time. Garbage is still found, in larger heaps.
    gc.set_threshold(200_000)
    # The libraries' own warnings are for programmers, and every line on stderr is Mino's.
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    # PYTHONINTMAXSTRDIGITS may set it lower than the 4,000 digits of a record, and a valid record would not be read.
    if 0 < sys.get_int_max_str_digits() < sys.int_info.default_max_str_digits:
        sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)


def run() -> int:
    """Run the command line; its exit status. Ends the process if a signal ended the work."""
    _occupy_standard_descriptors()
    from mino import signals
    from mino.errors import Interrupted, ReaderGone

    try:
        status = _run()
        signals.uninstall()  # an exception while the process ends would be a traceback
    except ReaderGone:
        signals.die(signal.SIGPIPE)
    except Interrupted as interrupted:
        signals.die(interrupted.signum)
    return status


def _run() -> int:
    from mino import cli, signals
    from mino.errors import MinoError, ReaderGone, StorageFailed
    from mino.terminal import output

    try:
        return cli.run()
    except MinoError as failure:
        output.show_failure(failure)
        if not isinstance(failure, StorageFailed):  # which outranks a signal that waited while the turn was ended
            signals.raise_pending()
        return failure.status
    except ReaderGone:
        raise
    except SystemExit as end:  # click's own: after a shell completion, or 1 for a pipe that closed under a help text
        if not end.code:
            return 0
        raise ReaderGone from None
    except OSError as error:  # of a help text too: what Mino itself reads and writes has its own sentences
        from io import StringIO

        sys.stdout = StringIO()  # or the rest of the text would be written again, and fail again, at exit
        output.notice(f"reading or writing failed: {error.strerror or error}")
        return StorageFailed.status
    except Exception:
        import traceback

        output.notice("a defect in Mino; please report it with these lines")
        traceback.print_exc()
        return 70


def _occupy_standard_descriptors() -> None:
    """Open what was closed (`>&-`): the session file would get stdout's number, and the answer be written into it."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest free number is `fd`; writing to it fails, as it should


if __name__ == "__main__":
    main()
