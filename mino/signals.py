"""SIGINT, SIGTERM and SIGHUP: they interrupt the wire, and wait while the turn is being saved (spec section 7).

A signal becomes `Interrupted`, raised in the main thread, once; after it the process is on its way out and further
signals wait for the end. A signal that was ignored when the process started (`nohup`, a background job) stays so.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from mino.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_holding = False
_pending: int | None = None
_raised = False


def catch() -> None:
    """From now on a signal raises Interrupted instead of ending the process where it stands."""
    for signum in _SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _arrive)


def _arrive(signum: int, frame: FrameType | None) -> None:
    global _pending, _raised
    _pending = _pending or signum
    # Once only: a second Ctrl-C must not interrupt the saving of the cancelled turn.
    if not _holding and not _raised:
        _raised = True
        raise Interrupted(signum)


@contextmanager
def held() -> Iterator[None]:
    """Signals wait until this block ends; the first that came then raises Interrupted, unless the block failed."""
    global _holding
    _holding, before = True, _holding
    try:
        yield
    finally:
        _holding = before
    raise_pending()


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


def raise_pending() -> None:
    """Raise Interrupted for a signal that came while signals were held."""
    if _pending is not None and not _holding:
        raise Interrupted(_pending)


def die(signum: int) -> NoReturn:
    """End by `signum`, so that the shell sees it and stops its loop."""
    signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signum])
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # only where the signal is somehow still not deadly
