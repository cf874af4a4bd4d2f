"""SIGINT, SIGTERM and SIGHUP: they interrupt the wire, and wait while the turn is being saved (spec section 7).

Within `held` a signal becomes `Interrupted`, raised in the main thread, once; after it the process is on its way out
and further signals wait for the end. Elsewhere a signal ends the process where it stands: nothing is unfinished there,
and an exception out of nowhere would strike libraries too, some of which do not survive it while they are imported.
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

_holding = False
_pending: int | None = None
_raised = False
_tell: Callable[[], None] | None = None


def catch() -> dict[signal.Signals, Any]:
    """From now on a signal raises Interrupted, if it was not ignored; how each signal was treated before."""
    before = {signum: signal.getsignal(signum) for signum in _SIGNALS}
    for signum, treatment in before.items():
        if treatment is not signal.SIG_IGN:
            signal.signal(signum, _arrive)
    return before


def _arrive(signum: int, frame: FrameType | None) -> None:
    global _pending, _raised
    _pending = _pending or signum
    # Once only: a second Ctrl-C must not interrupt the saving of the cancelled turn.
    if not _holding and not _raised:
        _raised = True
        raise Interrupted(signum)
    if _tell:
        _tell()


@contextmanager
def held() -> Iterator[None]:
    """Signals wait until this block ends; the first that came then raises Interrupted, unless the block failed."""
    global _holding
    treatments = catch()
    _holding, before = True, _holding
    try:
        yield
    finally:
        for signum, treatment in treatments.items():
            signal.signal(signum, treatment)
        _holding = before
    raise_pending()


@contextmanager
def told(tell: Callable[[], None]) -> Iterator[None]:
    """As `held`, and `tell` is called when a signal comes: for an event loop, which swallows what a handler raises."""
    global _tell
    with held():
        _tell = tell
        try:
            yield
        finally:
            _tell = None


@contextmanager
def delivered() -> Iterator[None]:
    """Within `held`: here a signal interrupts at once, one that came before too."""
    global _holding
    _holding = False
    try:
        raise_pending()
        yield
    finally:
        _holding = True


def is_pending() -> bool:
    """Whether a signal came that has not ended the process yet."""
    return _pending is not None


def raise_pending() -> None:
    """Raise Interrupted for a signal that came while signals were held."""
    global _raised
    if _pending is not None and not _holding:
        _raised = True
        raise Interrupted(_pending)


def let_go() -> None:
    """The opposite of `catch`: from now on a signal ends the process where it stands."""
    for signum in _SIGNALS:
        if signal.getsignal(signum) is _arrive:
            signal.signal(signum, signal.SIG_DFL)


def die(signum: int) -> NoReturn:
    """End by `signum`, so that the shell sees it and stops its loop."""
    signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signum])
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # only where the signal is somehow still not deadly
