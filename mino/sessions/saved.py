"""Named conversations and copies of conversations: one file each in one directory (mino-session(1)).

Every file appears under its name in one rename, whole and synced, or not at all. The caller holds a lock: of the name
that it writes, or for a copy of the conversation that is copied.
"""

import filecmp
import itertools
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mino import disk
from mino.errors import MinoError, StorageFailed, UsageMistake
from mino.journal.findings import refuse_invalid
from mino.journal.ids import new_id
from mino.journal.loader import Loading
from mino.journal.record import assistant_message, encode, turn_end, user_message
from mino.journal.recovery import COPY_NAME
from mino.text import LAST_TIME, now, shell_word, utc_stamp

SUFFIX = ".jsonl"
MAX_NAME_BYTES = 200  # with its additions, a name stays below the 255 bytes of most file systems
_OLDER = re.compile(r"\.~\d{8}T\d{6}Z(?:-\d+)?~$")
_AUTOMATIC = re.compile(r"auto-\d{8}T\d{6}Z(?:-\d+)?")


class Saved(NamedTuple):
    """A conversation that is saved as `name`, with so many turns.

    If it is not `is_new`, that name held these very records before, and nothing was written. `older` is the name under
    which other content that had this name is kept.
    """

    name: str
    turns: int
    is_new: bool = True
    older: str | None = None


class Content(NamedTuple):
    """The ended turns of an open session file: its first `size` bytes, which no writer changes."""

    path: str
    fd: int
    size: int
    turns: int

    def chunks(self) -> Iterator[bytes]:
        if not self.size:
            return
        os.lseek(self.fd, 0, os.SEEK_SET)
        left = self.size
        for chunk in disk.chunks(self.fd, self.path):
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return


def name_flaw(name: str) -> str | None:
    """Why `name` cannot be the name of a conversation, as the end of a sentence; None if it can."""
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
    if COPY_NAME.fullmatch(name):  # recovery leaves one beside a named conversation
        return "it is the name of a recovery copy"
    return None


def is_automatic(name: str) -> bool:
    """Whether Mino itself gives such a name, to a copy of what a command replaces."""
    return bool(_AUTOMATIC.fullmatch(name) or _OLDER.search(name))


def path_of(directory: str, name: str) -> str:
    """The file of the conversation called `name`. Raises UsageMistake if none can have that name."""
    flaw = name_flaw(name)
    if flaw:
        raise UsageMistake(f"'{name[:60]}' cannot be the name of a conversation: {flaw}", "mino session --help")
    return os.path.join(directory, name + SUFFIX)


def names(directory: str) -> list[str]:
    """The names of the conversations in `directory`, sorted; none if it is missing."""
    try:
        files = os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise disk.open_failure(directory, error) from None
    found = [file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX)]
    return sorted(name for name in found if not name_flaw(name))


NOTHING = Content("", -1, 0, 0)  # what a conversation that is not there yet holds


@contextmanager
def open_ended(path: str) -> Iterator[Content]:
    """The ended turns of the conversation at `path`, which needs no lock: no writer changes them.

    Raises InvalidData if the strict loader finds more than an unfinished end, and as `disk.opened` does.
    """
    with disk.opened(path) as fd:
        yield ended(path, fd)


@contextmanager
def renewed(content: Content) -> Iterator[Content]:
    """`content` as it is now, for a command that had to wait for a lock: a turn may have been forgotten meanwhile.

    Raises as `open_ended`.
    """
    if content.fd < 0 or disk.is_open_as(content.path, content.fd):
        yield content
    else:
        with open_ended(content.path) as now_there:
            yield now_there


def ended(path: str, fd: int) -> Content:
    """As `open_ended`, of the file that is open as `fd`."""
    os.lseek(fd, 0, os.SEEK_SET)
    loading = Loading(disk.chunks(fd, path))
    turns, unended = 0, None
    for turn in loading:
        if turn.status == "open":
            unended = turn.byte
        else:
            turns += 1
    refuse_invalid(path, loading.report)
    size = loading.report.end if unended is None else unended
    return Content(path, fd, size, turns)


def find_equal(directory: str, content: Content, apart_from: str | None) -> str | None:
    """The name of a conversation that holds the very records of `content`, synced; None if there is none."""
    for name in names(directory):
        path = path_of(directory, name)
        # A file that cannot be read counts as different: then one copy too many is made, not one too few.
        with suppress(OSError, MinoError):
            if name != apart_from and os.path.getsize(path) == content.size and begins_with(content, path):
                disk.sync_file(path)  # it is to be relied on, and a copy that a user made may be on no disk yet
                return name
    return None


def begins_with(content: Content, path: str) -> bool:
    """Whether `content` begins with all that is in the file at `path`. Raises as `disk.opened` does."""
    with disk.opened(path) as fd:
        ours = content.chunks()
        return all(next(ours, b"").startswith(theirs) for theirs in disk.chunks(fd, path))


def store(directory: str, name: str, content: Content) -> Saved:
    """Save `content` as `name`. What had that name is kept under a name of its own, unless `content` continues it.

    Raises UsageMistake, CannotCreate, StorageFailed, AccessRefused; then what had the name is as it was.
    """
    path = path_of(directory, name)
    older = None
    if os.path.lexists(path):
        if not begins_with(content, path):
            older = _keep_older(directory, name, path)
        elif os.path.getsize(path) == content.size:
            disk.sync_file(path)
            return Saved(name, content.turns, is_new=False)
    disk.replace(path, content.chunks(), name)
    return Saved(name, content.turns, older=older)


def keep(directory: str, content: Content, name: str | None) -> Saved | None:
    """Save `content` of the conversation called `name`, before another takes its place, unless it is empty.

    It gets a new name, or none if a named conversation holds these very records. Raises CannotCreate, StorageFailed.
    """
    if not content.turns:
        return None
    equal = find_equal(directory, content, apart_from=name)
    if equal is not None:
        return Saved(equal, content.turns, is_new=False)
    disk.make_directory(directory)
    copy = older_name(directory, name, now()) if name else automatic_name(directory)
    disk.replace(path_of(directory, copy), content.chunks(), name or "")
    return Saved(copy, content.turns)


def store_turns(directory: str, name: str, turns: Iterable[tuple[str, str]]) -> None:
    """Save completed turns, each a question and its answer, as `name`. Raises as `store`."""
    disk.replace(path_of(directory, name), _records(turns), name)


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
    with disk.opened(path) as fd:
        names = _candidates(_older_stem(name, file_time(os.fstat(fd))), "~")
        older = next(each for each in names if not _is_another(path_of(directory, each), path))
        if os.path.lexists(path_of(directory, older)):
            disk.sync_file(path_of(directory, older))
        else:
            disk.replace(path_of(directory, older), disk.chunks(fd, path), name)
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
    """Move the file at `path` whole, whatever it holds, to a conversation with an automatic name; returns the name.

    It is copied, and only then removed: after a power cut a rename may be in one directory and not in the other, and
    the two may be on different disks. Raises CannotCreate, StorageFailed.
    """
    disk.make_directory(directory)
    name = automatic_name(directory)
    with disk.opened(path) as fd:
        disk.replace(path_of(directory, name), disk.chunks(fd, path))
    remove(path)
    return name


def remove(path: str) -> None:
    """Delete the file at `path`, and sync its directory. Raises StorageFailed."""
    try:
        os.unlink(path)
    except OSError as error:
        raise StorageFailed(f"cannot delete '{path}': {error.strerror}", f"ls -l {shell_word(path)}") from None
    disk.sync_directory(os.path.dirname(path))
