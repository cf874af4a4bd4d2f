"""What Mino itself lacks: memory, a thread, a file descriptor, a library that loads. The server is never at fault then.

None of it changes by asking again, so none of it is retried.
"""

import errno
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from mino.errors import Exhausted, Interrupted, MinoError, Misconfigured
from mino.text import one_line

_LIMITS = "ulimit -a shows the limits of this shell"
_NO_MEMORY = (errno.ENOMEM, errno.ENOBUFS, socket.EAI_MEMORY)
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
# OpenSSL and the dynamic loader have no error of their own for it, and CPython forgets its own sometimes.
_SAYS_NO_MEMORY = (
    *("malloc failure", "cannot allocate memory", "failed to map segment"),
    *("error return without exception set", "without setting an exception"),
)
_SAYS_NO_THREAD = ("can't start new thread", os.strerror(errno.EAGAIN))  # CPython; the embedded engine
_DESCRIPTORS = 4  # that loading a library or looking up a name takes at the same time, at most


def causes(error: BaseException) -> list[BaseException]:
    """`error` and its causes, the first cause last."""
    chain = [error]
    while (inner := _cause(chain[-1])) is not None and inner not in chain:
        chain.append(inner)
    return chain


def shortage(error: BaseException) -> Exhausted | None:
    """What Mino lacks, if that is the cause of `error`."""
    import ssl

    for link in causes(error):
        number = getattr(link, "errno", None)
        said = str(link).lower().replace("_", " ") if isinstance(link, ImportError | ssl.SSLError | SystemError) else ""
        if isinstance(link, MemoryError) or number in _NO_MEMORY or any(words in said for words in _SAYS_NO_MEMORY):
            return Exhausted("not enough memory", _LIMITS)
        if isinstance(link, RuntimeError) and str(link) in _SAYS_NO_THREAD:
            return Exhausted("no thread can be started: the limit of processes or of memory is reached", _LIMITS)
        if number in _NO_DESCRIPTOR:
            return _no_descriptor(link)
        # The importer takes a folder that it cannot open for an empty one, and the resolver a file for a missing one.
        if isinstance(link, ImportError | socket.gaierror) and (lack := _check_descriptors()):
            return lack
    return None


def start_thread(run: Callable[[], None], name: str) -> None:
    """Start a daemon thread. Raises Exhausted if the system gives none."""
    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:
        raise shortage(error) or error from None


@contextmanager
def loading(library: str) -> Iterator[None]:
    """Import `library` in this block. Raises Misconfigured if it is broken, Exhausted if something is lacking."""
    try:
        yield
    except Interrupted:
        raise
    except BaseException as error:  # a broken library, or a file that has its name, can raise anything
        raise shortage(error) or _broken(library, error) from None


def _broken(library: str, error: BaseException) -> MinoError:
    place = ""
    with suppress(Exception):  # it is broken
        spec = find_spec(library)
        place = spec.origin or "" if spec else ""
    what = f"the library {library}" + (f" in '{place}'" if place else "")
    hint = f"{sys.executable} -m pip install --force-reinstall {library}"
    if place and "-packages" not in place:
        hint = f"it may not be {library} at all: look at PYTHONPATH, and at the current directory"
    return Misconfigured(f"{what} cannot be loaded: {type(error).__name__}: {one_line(str(error))}", hint)


def _check_descriptors() -> Exhausted | None:
    taken: list[int] = []
    try:
        taken.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_DESCRIPTORS))
    except OSError as error:
        return _no_descriptor(error)
    finally:
        for fd in taken:
            os.close(fd)
    return None


def _no_descriptor(error: BaseException) -> Exhausted:
    return Exhausted(f"no file descriptor is free: {getattr(error, 'strerror', None) or error}", _LIMITS)


def _cause(error: BaseException) -> BaseException | None:
    wrapped = error.args[0] if error.args else None  # urllib3 wraps the failure of TLS in a tunnel like this
    return error.__cause__ or error.__context__ or (wrapped if isinstance(wrapped, BaseException) else None)
