"""SIGINT, SIGTERM and SIGHUP: they interrupt the wire, and wait while the turn is being saved (mino(1), SIGNALS).

Within `deferred` a signal becomes `Interrupted`, raised in the main thread, once; the process is then ending, and
further signals wait until it ends. Elsewhere a signal ends the process at once: nothing is unfinished there, and an
exception at any point would hit libraries too, some of which do not survive it while they are imported.
A signal that was ignored when the process started (`nohup`, a background job) stays so.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from mino.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_deferring = False
_pending: int | None = None
_raised = False
_wake: Callable[[], None] | None = None


def install() -> dict[signal.Signals, Any]:
    """From now on a signal raises Interrupted, if it was not ignored; returns how each signal was handled before."""
    before = {signum: signal.getsignal(signum) for signum in _SIGNALS}
    for signum, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(signum, _arrive)
    return before


def uninstall() -> None:
    """The opposite of `install`: from now on a signal ends the process at once."""
    for signum in _SIGNALS:
        if signal.getsignal(signum) is _arrive:
            signal.signal(signum, signal.SIG_DFL)


def _arrive(signum: int, frame: FrameType | None) -> None:
    global _pending, _raised
    _pending = _pending or signum
    # It is raised only once: a second Ctrl+C must not interrupt the saving of the cancelled turn.
    if not _deferring and not _raised:
        _raised = True
        raise Interrupted(signum)
    if _wake:
        _wake()


@contextmanager
def deferred(wake: Callable[[], None] | None = None) -> Iterator[None]:
    """Signals wait until this block ends; the first one then raises Interrupted, unless the block failed.

    `wake` is called when one comes; an event loop needs it, because it swallows the exceptions of a handler.
    """
    global _deferring, _wake
    before = _deferring, _wake
    _deferring, _wake = True, wake  # first, or a signal right after `install` would raise here
    handlers = install()
    try:
        yield
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
        _deferring, _wake = before
    raise_pending()


@contextmanager
def immediate() -> Iterator[None]:
    """Within `deferred`, a signal interrupts this block at once, even one that came before it."""
    global _deferring
    _deferring = False
    try:
        raise_pending()
        yield
    finally:
        _deferring = True


def is_pending() -> bool:
    """Whether a signal came that has not ended the process yet."""
    return _pending is not None


def raise_pending() -> None:
    """Raise Interrupted for a signal that came while signals were deferred."""
    global _raised
    if _pending is not None and not _deferring:
        _raised = True
        raise Interrupted(_pending)


def die(signum: int) -> NoReturn:
    """End by `signum`, so that the shell sees it and stops its loop."""
    signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signum])
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # only if the signal is somehow still not deadly
