"""Saved sessions: named copies of a journal, one file each in one directory (mino-session(1)).

Every file appears under its name in one rename, whole and synced, or not at all. The caller holds the home's lock.
"""

import filecmp
import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mino import disk
from mino.errors import InvalidData, MinoError, NotFound, StorageFailed, UsageMistake
from mino.journal.file import Journal
from mino.journal.findings import place
from mino.journal.ids import new_id
from mino.journal.loader import Loading
from mino.journal.record import assistant_message, encode, turn_end, user_message
from mino.journal.recovery import COPY_NAME
from mino.text import LAST_TIME, now, shell_word, utc_stamp

SUFFIX = ".jsonl"
MAX_NAME_BYTES = 200  # with its additions, a name stays below the 255 bytes of most file systems
_OLDER = re.compile(r"\.~\d{8}T\d{6}Z(?:-\d+)?~$")


class Saved(NamedTuple):
    """A conversation that is saved as `name`.

    If it is not `is_new`, a saved session of that name held these very records before, and nothing was written. `older`
    is the name under which another copy that had this name is kept.
    """

    name: str
    is_new: bool = True
    older: str | None = None


def name_flaw(name: str) -> str | None:
    """Why `name` cannot be the name of a saved session, as the end of a sentence; None if it can."""
    base = _OLDER.sub("", name)
    if not name.strip():
        return "it is empty"
    if name[0] in ".-":
        return f"it begins with `{name[0]}`"
    if "/" in name:
        return "it contains `/`"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "it contains a control character, or bytes that are not UTF-8"
    if len(base.encode()) > MAX_NAME_BYTES:
        return f"it has {len(base.encode())} bytes, more than {MAX_NAME_BYTES}"
    if COPY_NAME.fullmatch(name):  # `history recover FILE` leaves one beside a saved session
        return "it is the name of a recovery copy"
    return None


def path_of(directory: str, name: str) -> str:
    """The file of the saved session `name`. Raises UsageMistake if no session can have that name."""
    flaw = name_flaw(name)
    if flaw:
        raise UsageMistake(f"'{name[:60]}' cannot be the name of a session: {flaw}", "mino session --help")
    return os.path.join(directory, name + SUFFIX)


def names(directory: str) -> list[str]:
    """The names of the saved sessions in `directory`, sorted; none if it is missing."""
    try:
        files = os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise disk.open_failure(directory, error) from None
    found = [file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX)]
    return sorted(name for name in found if not name_flaw(name))


@contextmanager
def open_clean(directory: str, name: str) -> Iterator[Iterator[bytes]]:
    """The bytes of the saved session `name`, which the strict loader checks before the first of them is given.

    Raises NotFound, InvalidData if the file is not clean (it is left as it is), and as `disk.open_regular` does.
    """
    path = path_of(directory, name)
    with _open(path, name) as fd:
        report = Loading(disk.chunks(fd, path)).judge()
        if report.state != "clean":
            command = "recover" if report.state == "recoverable" else "verify"
            raise InvalidData(
                f"{place(path, report.worst)}; nothing was loaded", f"mino history {command} {shell_word(path)}"
            )
        os.lseek(fd, 0, os.SEEK_SET)
        yield disk.chunks(fd, path)


@contextmanager
def _open(path: str, name: str) -> Iterator[int]:
    try:
        fd = disk.open_regular(path, os.O_RDONLY)
    except NotFound:
        raise NotFound(f"there is no saved session '{name}'", "mino session list") from None
    try:
        yield fd
    finally:
        os.close(fd)


def find_equal(directory: str, journal: Journal) -> str | None:
    """The name of a saved session that holds the very records of `journal`, synced; None if there is none."""
    for name in names(directory):
        path = path_of(directory, name)
        # A file that cannot be read counts as different: then one copy too many is made, not one too few.
        with suppress(OSError, MinoError):
            if os.path.getsize(path) == journal.size and begins_with(journal, path):
                disk.sync_file(path)  # it is to be relied on, and a copy that a user made may be on no disk yet
                return name
    return None


def begins_with(journal: Journal, path: str) -> bool:
    """Whether `journal` begins with all that is in the file at `path`. Raises as `disk.open_regular` does."""
    with disk.opened(path) as fd:
        ours = journal.chunks()
        return all(next(ours, b"").startswith(theirs) for theirs in disk.chunks(fd, path))


def store(directory: str, name: str, journal: Journal, *, keep_beginning: bool) -> Saved:
    """Save `journal` as `name`. An older copy of that name with other content is kept under a name of its own.

    Without `keep_beginning` it is not kept if the journal continues it: then all its records are in the new copy.
    Raises UsageMistake, CannotCreate, StorageFailed, AccessRefused; then the older copy is as it was.
    """
    path = path_of(directory, name)
    older = None
    if os.path.lexists(path):
        goes_on = begins_with(journal, path)
        if goes_on and os.path.getsize(path) == journal.size:
            disk.sync_file(path)
            return Saved(name, is_new=False)
        if keep_beginning or not goes_on:
            older = _keep_older(directory, name, path)
    disk.replace(path, journal.chunks())
    return Saved(name, older=older)


def store_turns(directory: str, name: str, turns: Iterable[tuple[str, str]]) -> None:
    """Save completed turns, each a question and its answer, as `name`. Raises as `store`."""
    disk.replace(path_of(directory, name), _records(turns))


def _records(turns: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    for number, (question, answer) in enumerate(turns):
        turn_id, seq = new_id(), 3 * number + 1
        yield encode(user_message(seq, turn_id, question))
        yield encode(assistant_message(seq + 1, turn_id, answer, None))
        yield encode(turn_end(seq + 2, turn_id, "completed"))


def _keep_older(directory: str, name: str, path: str) -> str:
    """Copy it and do not rename it: after a crash between the two steps the name must still have its session.

    A copy of an earlier attempt is used again, because a job that saves on a full disk would otherwise fill it.
    """
    with _open(path, name) as fd:
        names = _candidates(_older_stem(name, file_time(os.fstat(fd))), "~")
        older = next(each for each in names if not _is_another(path_of(directory, each), path))
        if os.path.lexists(path_of(directory, older)):
            disk.sync_file(path_of(directory, older))
        else:
            disk.replace(path_of(directory, older), disk.chunks(fd, path))
    return older


def _is_another(copy: str, path: str) -> bool:
    """Whether something other than the content of `path` has the name `copy`; a link counts, whatever it leads to."""
    if not os.path.lexists(copy):
        return False
    try:
        return os.path.islink(copy) or not filecmp.cmp(path, copy, shallow=False)
    except OSError:
        return True


def file_time(facts: os.stat_result) -> float:
    """When a file was written, in seconds since 1970, limited to what datetime holds: a backup can bring any time."""
    return min(max(facts.st_mtime, 0.0), LAST_TIME)


def older_name(directory: str, name: str, saved: float) -> str:
    """A free name for a copy of `name` that was saved at `saved` (seconds since 1970)."""
    return _free(directory, _older_stem(name, saved), "~")


def _older_stem(name: str, saved: float) -> str:
    return _OLDER.sub("", name) + ".~" + utc_stamp(saved)


def automatic_name(directory: str) -> str:
    """A free name for a conversation that has none."""
    return _free(directory, "auto-" + utc_stamp(now()), "")


def _free(directory: str, stem: str, end: str) -> str:
    names = _candidates(stem, end)
    return next(name for name in names if not os.path.lexists(os.path.join(directory, name + SUFFIX)))


def _candidates(stem: str, end: str) -> Iterator[str]:
    yield stem + end
    yield from (f"{stem}-{count}{end}" for count in itertools.count(2))


def set_aside(directory: str, path: str) -> str:
    """Move the file at `path` whole, whatever it holds, to a saved session with an automatic name; returns the name.

    It is copied, and only then removed: after a power cut a rename may be in one directory and not in the other, and
    the two may be on different disks. Raises CannotCreate, StorageFailed.
    """
    disk.make_directory(directory)
    name = automatic_name(directory)
    with disk.opened(path) as fd:
        disk.replace(path_of(directory, name), disk.chunks(fd, path))
    _remove(path)
    return name


def refuse_missing(directory: str, name: str) -> None:
    """Raise NotFound if there is no saved session `name`, StorageFailed if its file is a link or not a regular file."""
    path = path_of(directory, name)
    try:
        mode = os.stat(path, follow_symlinks=False).st_mode
    except FileNotFoundError:
        raise NotFound(f"there is no saved session '{name}'", "mino session list") from None
    except OSError as error:
        raise disk.open_failure(path, error) from None
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise StorageFailed(f"'{path}' is {kind}", f"ls -ld {shell_word(path)}")


def delete(directory: str, name: str) -> None:
    """Delete the saved session `name`, which exists, and sync the directory. Raises StorageFailed."""
    _remove(path_of(directory, name))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise StorageFailed(f"cannot delete '{path}': {error.strerror}", f"ls -l {shell_word(path)}") from None
    disk.sync_directory(os.path.dirname(path))
