"""Files as Mino opens, makes, replaces and syncs them.

Every file that Mino makes is private, whole and synced, its directory entry too, or it is not there. Every failure is
a MinoError that names the path.
"""

import errno
import fcntl
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from mino.errors import AccessRefused, CannotCreate, InvalidData, MinoError, NotFound, StorageFailed
from mino.text import shell_word

CHUNK = 1 << 17  # the records of a larger one leave the processor's cache before they are checked
MAX_TEXT = 16_000_000  # bytes of instructions or settings; what is longer is another file, named by mistake
# A temporary file: its name ends in the name of the conversation whose lock its writer holds, `-` and that name, which
# may be empty (the unnamed one).
TEMPORARY = re.compile(r"\.mino-[0-9a-f]{16}-(.*)\.tmp", re.DOTALL)


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

    Raises NotFound, AccessRefused, or StorageFailed if it cannot be opened, is not a regular file, or is a symbolic
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


def open_readable(path: str) -> int:
    """Open the regular file or the pipe `path` that a person names, for reading alone; links are followed.

    Raises as `open_regular`: a device has no end, and a directory no content.
    """
    try:
        mode = os.stat(path).st_mode  # before it is opened, which is enough to rewind a tape
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise open_failure(path, error) from None
    raise StorageFailed(f"'{path}' is neither a regular file nor a pipe", f"ls -ld {shell_word(path)}")


def read_text_file(path: str) -> bytes:
    """The bytes of a file that a person writes, at most MAX_TEXT.

    Raises as `open_readable`, and InvalidData if there are more.
    """
    fd = open_readable(path)
    try:
        pieces: list[bytes] = []
        size = 0
        for piece in chunks(fd, path):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_TEXT:
                raise InvalidData(f"'{path}' is too large: more than {MAX_TEXT:,} bytes", f"ls -l {shell_word(path)}")
        return b"".join(pieces)
    finally:
        os.close(fd)


@contextmanager
def opened(path: str, flags: int = os.O_RDONLY, *, follow: bool = False) -> Iterator[int]:
    """The regular file `path`, open within the block. Raises as `open_regular` does."""
    fd = open_regular(path, flags, follow=follow)
    try:
        yield fd
    finally:
        os.close(fd)


def open_failure(path: str, error: OSError) -> MinoError:
    """The failure for an `error` in opening `path` for reading or appending, by kind."""
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return StorageFailed(f"'{path}' is a symbolic link", f"ls -l {shell_word(path)}")
    if isinstance(error, FileNotFoundError):
        return NotFound(f"'{path}' does not exist")
    if isinstance(error, PermissionError):
        return AccessRefused(f"cannot open '{path}': {error.strerror}", f"ls -l {shell_word(path)}")
    return StorageFailed(f"cannot open '{path}': {error.strerror}")


def is_same(path: str, other: str) -> bool:
    """Whether both paths lead to one file or folder; if one is missing, whether they are spelt alike."""
    # Spelling is not enough: in a folder that is a link to another disk, the shell and `find` use that disk's name.
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return path == other


def is_open_as(path: str, fd: int) -> bool:
    """Whether `fd` is the file that `path` names now."""
    with suppress(OSError):
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(fd))
    return False


def sync_directory(path: str) -> None:
    """Sync the entries of the directory `path`, so that a new or renamed file survives a power cut.

    Not every system can, which is not an error (mino-record(5), GUARANTEES). Raises StorageFailed for a real failure.
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


def set_mode(place: int | str, mode: int) -> int:
    """Give the open file or the path `place` the `mode`; the mode that it then has. Raises OSError if it is gone."""
    # Not every file system has modes, and not every one says so: vfat refuses another one, or takes it without effect.
    with suppress(OSError):
        os.chmod(place, mode)
    return stat.S_IMODE(os.stat(place).st_mode)


def sync_entry(path: str) -> None:
    """Sync the entry of `path`, which is there, in the directory above it; nothing if this user cannot have made it.

    Raises StorageFailed.
    """
    directory = os.path.dirname(path) or "."
    if os.access(directory, os.W_OK):
        sync_directory(directory)


def sync_file(path: str) -> None:
    """Sync the file `path` and its entry: whoever made it (a process that was killed, `cp`) may have synced neither.

    Raises as `opened` does, and StorageFailed.
    """
    with opened(path) as fd:
        try:
            sync(fd)
        except OSError as error:
            raise StorageFailed(f"cannot sync '{path}': {error.strerror}") from None
    sync_directory(os.path.dirname(path) or ".")


def make_directory(path: str) -> bool:
    """Make the private directory `path`, and those above it, and sync their entries; returns whether it was missing.

    Raises CannotCreate, and StorageFailed if an entry cannot be synced.
    """
    if os.path.isdir(path):
        if is_empty(path):
            sync_entry(path)  # a process that was killed right after it made the directory has not
        return False
    parent = os.path.dirname(path) or "."
    if not os.path.lexists(path):
        make_directory(parent)
    try:
        os.mkdir(path, 0o700)
        set_mode(path, 0o700)  # whatever the umask took away
    except FileExistsError:
        if os.path.isdir(path):  # another process made it at the same moment, and may be killed before it syncs
            sync_entry(path)
            return False
        raise CannotCreate(
            f"cannot create the directory '{path}': a file of that name exists", f"ls -l {shell_word(path)}"
        ) from None
    except OSError as error:
        raise CannotCreate(f"cannot create the directory '{path}': {error.strerror}") from None
    sync_directory(parent)
    return True


def is_empty(directory: str) -> bool:
    """Whether nothing is in the directory; one that cannot be read is not empty."""
    with suppress(OSError), os.scandir(directory) as entries:
        return next(entries, None) is None
    return False


def create(path: str, data: Iterable[bytes]) -> int:
    """Make the new private file `path` with `data`, and sync it and its directory; returns the number of bytes written.

    If it cannot be made whole, it is removed again. Raises CannotCreate if it cannot be made (the
    name is taken, no permission), StorageFailed if it cannot be filled; failures of `data` pass through.
    """
    size = 0
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotCreate(f"cannot create '{path}': {error.strerror}") from None
    try:
        try:
            set_mode(fd, 0o600)  # whatever the umask took away
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


def replace(path: str, data: Iterable[bytes], owner: str = "") -> int:
    """Give `path` the content `data` in one rename, so that a crash leaves the old file or the new one, whole.

    `owner` is the name of the conversation whose next writer removes a temporary file that a killed one left. Returns
    the number of bytes written. Raises as `create` does.
    """
    directory = os.path.dirname(path)
    temporary = os.path.join(directory, f".mino-{os.urandom(8).hex()}-{owner}.tmp")
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


def rename(path: str, target: str) -> None:
    """Rename `path` within its directory, and sync that. Raises StorageFailed."""
    try:
        os.rename(path, target)
    except OSError as error:
        raise StorageFailed(f"cannot rename '{path}' to '{target}': {error.strerror}") from None
    sync_directory(os.path.dirname(path) or ".")


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`. Raises OSError; a write of no bytes means a full disk."""
    view = memoryview(data)
    while view:
        written = os.write(fd, view)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]


def sync(fd: int) -> None:
    """fsync that reaches the disk: on macOS fsync stops at the drive's cache, and F_FULLFSYNC does not (fsync(2)).

    Raises OSError.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
    os.fsync(fd)
