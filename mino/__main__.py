"""The process: signals, warnings, garbage collection, the exit. `python -m mino` and the command `mino` begin here.

Importing this module or any other of Mino changes nothing; `main` does, once.
"""

import errno
import gc
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line, and end the process with its exit status, or by the signal that ended the work.

    The interpreter is not shut down: that would take a sixth of the time of a short command, nothing waits for it, and
    the embedded engine's threads can crash during it.
    """
    set_up()
    try:
        status = run()
    except (MemoryError, ImportError, SystemError) as error:
        status = _give_up(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # a closed one has nothing to lose
            stream.flush()
    os._exit(status)


def set_up() -> None:
    """Set the process up for a command, before anything else is imported, because that takes time."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While nothing has to be saved, Ctrl+C ends the process like any signal, without a traceback: see mino.signals.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A short command makes little garbage and many objects that stay: scanning them again and again takes a tenth of
    # its time. Garbage is still collected, in larger heaps.
    gc.set_threshold(200_000)
    # The libraries' own warnings are for programmers, and every line on stderr is Mino's.
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    # PYTHONINTMAXSTRDIGITS may set a limit below the 4,000 digits of a record; a valid record could then not be read.
    if 0 < sys.get_int_max_str_digits() < sys.int_info.default_max_str_digits:
        sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)


def run() -> int:
    """Run the command line and return its exit status. Ends the process if a signal ended the work."""
    _occupy_standard_descriptors()
    from mino import signals
    from mino.errors import Interrupted, ReaderGone

    try:
        status = _run()
        signals.uninstall()  # an exception while the process ends would print a traceback
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
        if not isinstance(failure, StorageFailed):  # it outranks a signal that waited while the turn was ended
            signals.raise_pending()
        return failure.status
    except ReaderGone:
        raise
    except SystemExit as end:  # click raises it: after a shell completion, or with 1 if a help text's pipe closed
        if not end.code:
            return 0
        raise ReaderGone from None
    except OSError as error:  # from a help text, for example: Mino's own reads and writes have their own sentences
        if error.errno == errno.ENOMEM:
            raise MemoryError from None
        from io import StringIO

        sys.stdout = StringIO()  # otherwise the rest of the text would be written again at exit, and fail again
        output.notice(f"reading or writing failed: {error.strerror or error}")
        return StorageFailed.status
    except Exception as error:
        if isinstance(error, MemoryError) or _is_lost_one(error) or _is_broken_library(error):
            raise
        import traceback

        output.notice("a defect in Mino; please report it with these lines")
        traceback.print_exc()
        return 70


def _is_lost_one(error: Exception) -> bool:
    """Whether `error` was a MemoryError: CPython loses some, on their way to `main` too, and says just so."""
    lost = ("without setting an exception", "without exception set")
    return isinstance(error, SystemError) and any(words in str(error) for words in lost)


def _is_broken_library(error: Exception) -> bool:
    return isinstance(error, ImportError) and not (error.name or "").startswith("mino")


def _give_up(error: MemoryError | ImportError | SystemError) -> int:
    """Say that memory ran out, or that a library is broken; nothing of Mino's can be relied on for that."""
    said = b"mino: not enough memory\nhint: ulimit -a shows the limits of this shell\n"
    status = 74
    if isinstance(error, ImportError) and "failed to map segment" not in str(error):  # that is how the loader says it
        said = f"mino: a library cannot be loaded: {error}\nhint: install mino again\n".encode(errors="replace")
        status = 78
    fd = 2
    with suppress(AttributeError, OSError, ValueError):  # it may be closed, or replaced
        fd = sys.stderr.fileno()  # not always 2: the embedded engine writes there
    os.write(fd, said)
    return status


def _occupy_standard_descriptors() -> None:
    """Open closed ones (`>&-`): the session file would get stdout's number, and the answer would be written into it."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest free number is `fd`; writing to it fails, as it should


if __name__ == "__main__":
    main()
