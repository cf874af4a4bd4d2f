"""The open session file, and the ways Mino changes a file.

What `Journal.append` guarantees when it returns: the records are in the file in one piece, and the file was synced
after them. When it raises, it is not known which of their bytes are on disk; nothing is retried or rolled back, since
a failed fsync may have dropped the very pages that a second one would then report as clean (Linux marks them so).
The next start reads the file and decides. No file system lets Mino guarantee more than that a sync did not fail.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from mino.errors import AccessRefused, CannotCreate, MinoError, NotThere, StorageFailed, shell_word
from mino.journal.lock import sync
from mino.journal.record import EndStatus, Item, Record, assistant_message, encode, turn_end, user_message

CHUNK = 1 << 17  # the records of a larger one leave the processor's cache before they are checked
TEMPORARY = ".mino-"  # how the name of every temporary file begins


class Journal:
    """A session file opened for appending; its lock is held by the caller.

    `size` is the file's length as this process left it, `seq` the next record's number.
    """

    def __init__(self, path: str, fd: int, size: int, seq: int) -> None:
        self.path = path
        self._fd = fd
        self.size = size
        self.seq = seq

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def begin(self, turn_id: str, text: str) -> None:
        """Append the question. Only when this has returned may the request be sent."""
        self._append(user_message(self.seq, turn_id, text))

    def complete(self, turn_id: str, text: str, output: list[Item] | None) -> None:
        """Append the answer and the turn's end in one write, so that no crash can leave a turn half completed."""
        self._append(assistant_message(self.seq, turn_id, text, output), turn_end(self.seq + 1, turn_id, "completed"))

    def end(self, turn_id: str, status: EndStatus) -> None:
        """Append the end of a turn that has no answer."""
        self._append(turn_end(self.seq, turn_id, status))

    def cut(self, size: int) -> None:
        """Cut the file back to `size` bytes and sync; the caller has made a recovery copy."""
        self._check()
        try:
            os.ftruncate(self._fd, size)
            sync(self._fd)
        except OSError as error:
            raise StorageFailed(f"cannot cut '{self.path}': {error.strerror}") from None
        self.size = size

    def replace(self, data: Iterable[bytes]) -> None:
        """Give the file the content `data` in one rename (see `replace`); this journal cannot append after it."""
        self._check()
        replace(self.path, data)

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes from its beginning."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        return chunks(self._fd, self.path)

    def _append(self, *records: Record) -> None:
        self._check()
        data = b"".join(map(encode, records))
        try:
            written = os.write(self._fd, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(self._fd)
        except OSError as error:
            raise StorageFailed(f"cannot append to '{self.path}': {error.strerror}") from None
        self.size += written
        self.seq += len(records)

    def _check(self) -> None:
        """A lock that the file system ignores, or a hand that deletes the file, must not make Mino write elsewhere."""
        try:
            there, here = os.stat(self.path, follow_symlinks=False), os.fstat(self._fd)
        except OSError as error:
            raise StorageFailed(f"the session file '{self.path}' is gone: {error.strerror}") from None
        if not os.path.samestat(there, here):
            raise StorageFailed(f"the session file '{self.path}' was replaced by another file")
        if here.st_size != self.size:
            found = f"it has {here.st_size} bytes, expected {self.size}"
            raise StorageFailed(f"the session file '{self.path}' was changed by another process: {found}")


def chunks(fd: int, path: str) -> Iterator[bytes]:
    """The bytes of the open file `fd`, at most 128 KiB at a time. Raises StorageFailed, naming `path`."""
    while True:
        try:
            chunk = os.read(fd, CHUNK)
        except OSError as error:
            raise StorageFailed(f"cannot read '{path}': {error.strerror}") from None
        if not chunk:
            return
        yield chunk


def open_regular(path: str, flags: int, *, follow: bool = False) -> int:
    """Open the regular file `path`.

    Raises NotThere, AccessRefused, or StorageFailed where it cannot be opened, is no regular file, or is a symbolic
    link (Mino's own files never are; with `follow` a link is followed, for files that a user names).
    """
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags)
    except OSError as error:
        raise open_failure(path, error) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StorageFailed(f"'{path}' is not a regular file", f"ls -ld {shell_word(path)}")
    return fd


def open_failure(path: str, error: OSError) -> MinoError:
    """The failure of an open of `path` for reading or appending, by kind."""
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return StorageFailed(f"'{path}' is a symbolic link", f"ls -l {shell_word(path)}")
    if isinstance(error, FileNotFoundError):
        return NotThere(f"'{path}' does not exist")
    if isinstance(error, PermissionError):
        return AccessRefused(f"cannot open '{path}': {error.strerror}", f"ls -l {shell_word(path)}")
    return StorageFailed(f"cannot open '{path}': {error.strerror}")


def sync_directory(path: str) -> None:
    """Sync the entries of the directory `path`, so that a new or renamed file survives a power cut.

    Not every system can; that is no error (spec section 7). Raises StorageFailed for a real failure.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise StorageFailed(f"cannot sync the directory '{path}': {error.strerror}") from None


def create(path: str, data: Iterable[bytes]) -> int:
    """Make the new private file `path` with `data`, synced, its directory too; the number of bytes written.

    All or nothing: where it cannot be made whole it is removed again. Raises CannotCreate if it cannot be made (the
    name is taken, no permission), StorageFailed if it cannot be filled; failures of `data` pass through.
    """
    size = 0
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotCreate(f"cannot create '{path}': {error.strerror}") from None
    try:
        try:
            os.fchmod(fd, 0o600)  # whatever the umask took away
            for chunk in data:
                write_all(fd, chunk)
                size += len(chunk)
            sync(fd)
        finally:
            os.close(fd)
        sync_directory(os.path.dirname(path) or ".")
    except BaseException as error:
        with suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise StorageFailed(f"cannot write '{path}': {error.strerror}") from None
        raise
    return size


def replace(path: str, data: Iterable[bytes]) -> int:
    """Give `path` the content `data` in one rename, so that a crash leaves the old file or the new one, whole.

    The number of bytes written. Raises as `create` does.
    """
    directory = os.path.dirname(path)
    temporary = os.path.join(directory, f"{TEMPORARY}{os.urandom(8).hex()}.tmp")
    try:
        size = create(temporary, data)
    except (CannotCreate, StorageFailed) as failure:  # a person knows the file by its own name
        raise type(failure)(failure.message.replace(temporary, path), failure.hint) from None
    try:
        os.rename(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise StorageFailed(f"cannot replace '{path}': {error.strerror}") from None
    sync_directory(directory or ".")
    return size


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`. Raises OSError; a write of no byte is a full disk."""
    view = memoryview(data)
    while view:
        written = os.write(fd, view)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]
