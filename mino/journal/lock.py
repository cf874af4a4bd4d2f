"""The lock of one conversation: one writer, or any number of readers (mino(1), LOCKING).

A flock belongs to the open file, so the kernel releases it when the process ends, however it ends; a leftover file is
never an error. A writer writes its pid and command into the file, and empties it when it ends in order. A free lock
that is not empty means that the last writer was killed, and may have left directory entries that nobody has synced.
"""

import errno
import fcntl
import os
import stat
import sys
import time
from contextlib import suppress

from mino import disk
from mino.errors import AccessRefused, CannotCreate, SessionInUse, StorageFailed
from mino.text import shell_word

_POLL = 0.02  # seconds between two tries; a turn takes far longer, and flock has no time-out of its own
_READERS_WAIT = 2.0  # seconds a writer waits if only readers are in the way (mino(1), LOCKING)
_HOLDER_BYTES = 300


class Lock:
    """An open and locked file; the lock ends with `close`, or with the process.

    `was_left` says that the writer before this one did not end in order.
    """

    def __init__(self, fd: int, *, was_left: bool = False) -> None:
        self._fd = fd
        self.was_left = was_left

    def clear(self) -> None:
        """Say that this writer ends in order: it has synced every directory entry that it made or found."""
        with suppress(OSError):  # the next writer then syncs what needs no sync
            os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Release the lock. The file stays: deleting it without the lock would let two processes lock two files."""
        os.close(self._fd)


def lock_shared(path: str) -> Lock | None:
    """A reader's lock on `path`, or a dummy if there is nothing to lock; None while a writer holds the lock.

    It never waits and never creates: readers work in a read-only home. Raises StorageFailed if `path` is a link.
    """
    try:
        fd = _open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return Lock(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise StorageFailed(f"cannot open '{path}': {error.strerror}", f"ls -ld {shell_word(path)}") from None
    try:
        if _try(fd, fcntl.LOCK_SH, path):
            return Lock(fd)
    except StorageFailed:  # a file system without locks must not prevent reading
        return Lock(fd)
    os.close(fd)
    return None


def lock_exclusive(path: str, patience: float, what: str = "the session") -> Lock:
    """The writer's lock on `path`, which is made if needed; waits `patience` seconds for another writer.

    `what` is the conversation in words, for the message.

    Raises SessionInUse if another process still holds it, and StorageFailed, CannotCreate or AccessRefused if there
    can be no lock.
    """
    start = time.monotonic()
    while True:
        try:
            fd = _open(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if not os.path.lexists(path):
                raise CannotCreate(f"cannot create '{path}': {error.strerror}") from None
            kind = AccessRefused if isinstance(error, PermissionError) else StorageFailed
            raise kind(f"cannot open '{path}': {error.strerror}", f"ls -l {shell_word(path)}") from None
        if _try(fd, fcntl.LOCK_EX, path):
            if disk.is_open_as(path, fd):
                if os.fstat(fd).st_mode & 0o600 != 0o600:
                    with suppress(OSError):  # another user owns the file, which this process could still open
                        os.fchmod(fd, 0o600)  # the umask took it away, and no other process could open it
                was_left = os.fstat(fd).st_size > 0
                _sign(fd)
                return Lock(fd, was_left=was_left)
            os.close(fd)  # somebody replaced the file between open and flock: this lock guards nothing
            continue
        only_readers = _try(fd, fcntl.LOCK_SH, path)
        holder = _holder(fd)
        os.close(fd)
        waited = time.monotonic() - start
        if waited >= (max(patience, _READERS_WAIT) if only_readers else patience):
            busy = f"other processes keep reading {what}" if only_readers else f"{what} is in use by {holder}"
            raise SessionInUse(busy, "wait for it with --wait SECONDS")
        time.sleep(_POLL)


def _open(path: str, flags: int) -> int:
    # O_NONBLOCK: a pipe of this name must be refused, not waited for.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise StorageFailed(f"the lock '{path}' is a symbolic link", f"rm {shell_word(path)}") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StorageFailed(f"the lock '{path}' is not a regular file", f"ls -ld {shell_word(path)}")
    return fd


def _try(fd: int, kind: int, path: str) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageFailed(f"cannot lock '{path}': {error.strerror}", "put MINO_HOME on a local disk") from None
    return True


def _sign(fd: int) -> None:
    """Write who holds the lock. A full disk must not undo a lock that is already held.

    The file is never empty on the way: a kill between two steps would hide that the writer before was killed too.
    """
    command = " ".join(["mino", *sys.argv[1:2]])
    holder = f"{os.getpid()} {command}\n".encode("utf-8", "replace")[:_HOLDER_BYTES]
    with suppress(OSError):
        os.ftruncate(fd, len(holder))  # needs no space, so that on a full disk too the file is not empty
        os.pwrite(fd, holder, 0)


def _holder(fd: int) -> str:
    pid, _, command = os.pread(fd, _HOLDER_BYTES, 0).decode("utf-8", "replace").strip().partition(" ")
    return f"process {pid} ({command})" if pid.isdecimal() and command else "another process"
