"""The open session file: append, cut, replace.

When `Journal.append` returns, the records are in the file in one piece, and the file was synced after them.
When it raises, it is not known which of their bytes are on disk; nothing is retried or rolled back, because a failed
fsync may have dropped the pages, and a second one would then report success (Linux marks the pages clean).
The next start reads the file and decides. On any file system, Mino can guarantee only that a sync did not fail.
"""

import errno
import os
from collections.abc import Iterable, Iterator

from mino import disk
from mino.errors import StorageFailed
from mino.journal.record import Record, encode


class Journal:
    """A session file opened for appending; the caller holds its lock.

    `size` is the file's length as this process left it, `seq` the next record's number. `owner` is the name of the
    conversation whose lock is held, for temporary files.
    """

    def __init__(self, path: str, fd: int, size: int, seq: int, owner: str = "") -> None:
        self.path = path
        self.owner = owner
        self.fd = fd
        self.size = size
        self.seq = seq

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)

    def append(self, *records: Record) -> None:
        """Append `records`, which are numbered from `seq` on, in one write, and sync.

        It is one write so that no crash can leave a whole answer without the end of its turn. Raises StorageFailed;
        then a question must not be sent, and an answer does not count.
        """
        self._check()
        data = b"".join(map(encode, records))
        try:
            written = os.write(self.fd, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            disk.sync(self.fd)
        except OSError as error:
            raise StorageFailed(f"cannot append to '{self.path}': {error.strerror}") from None
        self.size += written
        self.seq += len(records)

    def cut(self, size: int) -> None:
        """Cut the file back to `size` bytes and sync; the caller has made a recovery copy."""
        self._check()
        try:
            os.ftruncate(self.fd, size)
            disk.sync(self.fd)
        except OSError as error:
            raise StorageFailed(f"cannot cut '{self.path}': {error.strerror}") from None
        self.size = size

    def replace(self, data: Iterable[bytes]) -> None:
        """Give the file the content `data` in one rename (see `disk.replace`); this journal cannot append after it."""
        self._check()
        disk.replace(self.path, data, self.owner)

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes from its beginning."""
        os.lseek(self.fd, 0, os.SEEK_SET)
        return disk.chunks(self.fd, self.path)

    def _check(self) -> None:
        """A lock that the file system ignores, or a user who deletes the file, must not make Mino write elsewhere."""
        try:
            there, here = os.stat(self.path, follow_symlinks=False), os.fstat(self.fd)
        except OSError as error:
            raise StorageFailed(f"the session file '{self.path}' is gone: {error.strerror}") from None
        if not os.path.samestat(there, here):
            raise StorageFailed(f"the session file '{self.path}' was replaced by another file")
        if here.st_size != self.size:
            found = f"it has {here.st_size} bytes, expected {self.size}"
            raise StorageFailed(f"the session file '{self.path}' was changed by another process: {found}")
