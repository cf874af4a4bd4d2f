"""Reads a session: its turns, the turn that a person names, and all findings of `verify`. It never writes."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mino import disk
from mino.errors import InvalidData, NotFound, UsageMistake
from mino.home import Home, wide_file, wide_places
from mino.journal import scan
from mino.journal.findings import Finding, Report, advice, place
from mino.journal.loader import Loading
from mino.journal.lock import lock_shared
from mino.journal.order import Turn
from mino.journal.scan import Lines
from mino.sessions.place import Place, find, place_of
from mino.text import Tell, one_line

if TYPE_CHECKING:
    from mino.journal.salvage import Salvage

ID_DIGITS = 32
MIN_ID_DIGITS = 8  # fewer digits without a letter are the number of a turn
IN_USE = "the session is in use by another process; its unfinished end is not reported as damage"


class Reading(NamedTuple):
    """A conversation as a reader finds it: its file, its turns, and the report on it.

    `salvaged` is there if the file is invalid and a salvage was wanted: then `turns` are those that one would keep.
    `elsewhere`: the file is in no home.
    """

    path: str
    turns: list[Turn]
    report: Report
    salvaged: "Salvage | None" = None
    elsewhere: bool = False


@contextmanager
def open_for_reading(place: Place, path: str) -> Iterator[tuple[int, bool]]:
    """The file at `path` opened for reading, and whether a writer has the conversation; a shared lock while it is open.

    It never writes, creates or narrows anything.
    """
    lock = lock_shared(place.lock)
    try:
        with disk.opened(path) as fd:
            yield fd, lock is None
    finally:
        if lock:
            lock.close()


def read_session(
    home: Home,
    session: str | None,
    tell: Tell,
    keep: int | None = None,
    *,
    completed: bool = False,
    with_salvage: bool = False,
) -> Reading | None:
    """The conversation called `session`, or the current one, with its last `keep` turns (`completed`: completed turns).

    `with_salvage`: of an invalid file the turns that a salvage would keep.
    None if there is no unnamed conversation yet. The lock is released before the caller prints anything: a pager that
    waits must not stop a writer. Raises as `place.find`.
    """
    place, path = find(home, session, tell)
    if path is None:
        return None
    with open_for_reading(place, path) as (fd, in_use):
        wanted = Wanted(keep, completed, with_salvage)
        return _read(path, disk.chunks(fd, path), wanted, in_use=in_use, elsewhere=False)


class Wanted(NamedTuple):
    """Which turns of a conversation a reader holds; see `read_session`."""

    keep: int | None = None
    completed: bool = False
    with_salvage: bool = False


def read_file(home: Home, path: str, wanted: Wanted) -> Reading:
    """The conversation in the file or the pipe at `path`, which a person named; a file of a home as `read_session`.

    Another one that has no record in it gets the finding `not-a-session`. Raises NotFound, AccessRefused or
    StorageFailed.
    """
    place, known = _guarded(home, path)
    if not place:
        with _readable(path) as fd:
            return read_chunks(path, disk.chunks(fd, path), wanted)
    with open_for_reading(place, known) as (fd, in_use):
        return _read(path, disk.chunks(fd, path), wanted, in_use=in_use and place.is_at(known), elsewhere=False)


def read_chunks(path: str, chunks: Iterable[bytes], wanted: Wanted) -> Reading:
    """The conversation that `chunks` are, from anywhere; `path` is its name in messages."""
    return _read(path, chunks, wanted, in_use=False, elsewhere=True)


def _guarded(home: Home, path: str) -> tuple[Place | None, str]:
    """As `place_of`, with the path of the file itself: a link elsewhere may lead to a file in a home."""
    place = place_of(home, path)
    if place or not os.path.islink(path):
        return place, path
    target = os.path.realpath(path)
    return place_of(home, target), target


def _read(path: str, chunks: Iterable[bytes], wanted: Wanted, *, in_use: bool, elsewhere: bool) -> Reading:
    loading, batches = Loading(), scan.split(chunks)
    salvage = None
    if wanted.with_salvage:
        from mino.journal.salvage import Salvage

        salvage = Salvage(path, _watched(loading, batches))
    loaded = _salvaged(loading, salvage, in_use) if salvage else _until_over(loading, batches, elsewhere)
    limit = None if wanted.keep is None else min(wanted.keep, sys.maxsize)  # deque takes no more
    turns = deque((turn for turn in loaded if not wanted.completed or turn.status == "completed"), limit)
    report = loading.report
    if in_use:
        report.tolerate_writer()
    if elsewhere and not (salvage.records if salvage else loading.over):
        report.refuse_stranger()
    return Reading(path, list(turns), report, salvage if report.state == "invalid" else None, elsewhere)


def _until_over(loading: Loading, batches: Iterator[Lines], elsewhere: bool) -> Iterator[Turn]:
    for batch in batches:
        yield from loading.take(batch)
        if loading.over:
            break
    yield from loading.finish()
    # A file that begins with a bad line is a session all the same if any line after it is a record.
    is_doubtful = elsewhere and loading.over and not loading.report.records
    if is_doubtful and not any(map(scan.has_record, chain((batch,), batches))):
        loading.report.refuse_stranger()


def _watched(loading: Loading, batches: Iterable[Lines]) -> Iterator[Lines]:
    """`batches`, which `loading` judges in passing: a pipe can be read only once."""
    for batch in batches:
        if not loading.over:
            for _ in loading.take(batch):
                pass
        yield batch


def _salvaged(loading: Loading, salvage: "Salvage", in_use: bool) -> Iterator[Turn]:
    """The turns that `salvage` keeps, and of a file that is not invalid the open turn too, which recovery ends."""
    kept = Loading(salvage)
    yield from kept
    for turn in loading.finish():
        if not loading.over and not in_use:
            turn.status = "interrupted"
        if not loading.over:
            yield turn
    if loading.over:
        loading.report.turns = kept.report.turns  # what was counted up to the damage is not what is read here


def tell_state(path: str, report: Report, tell: Tell, outlook: str = "; the next question recovers it") -> None:
    """Report why the conversation is not clean. If it is invalid, raises InvalidData with that finding and a hint.

    `outlook` ends the notice of a recoverable file.
    """
    if report.in_progress:
        tell(IN_USE)
    if report.state == "invalid":
        raise InvalidData(place(path, report.worst), advice(path, report))
    for finding in report.findings:
        tell(f"{place(path, finding)}{outlook}")


def pick(turns: Sequence[Turn], wanted: str, hint: str = "mino history show") -> Turn:
    """The turn that `wanted` names: its number, its id, or an unambiguous beginning or end of its id.

    Ids begin with the time, so the first digits are the same in all turns of a minute; the last ones are random.
    Raises NotFound with the `hint`, or UsageMistake if more than one id begins or ends so.
    """
    if wanted.isdecimal():
        for turn in turns:
            if str(turn.number) == wanted:
                return turn
    part = wanted.lower()
    found = [
        turn for turn in turns if is_id_part(part) and (turn.turn_id.startswith(part) or turn.turn_id.endswith(part))
    ]
    if len(found) > 1:
        ambiguous = f"'{wanted}' is ambiguous: the ids of turns {format_some(turn.number for turn in found)}"
        raise UsageMistake(f"{ambiguous} begin or end with it", "use the number of the turn")
    if not found:
        raise NotFound(f"there is no turn '{one_line(wanted)}'", hint)
    return found[0]


def is_id_part(wanted: str) -> bool:
    """Whether `wanted` can be a beginning or an end of an id.

    A few digits are always a number: `forget 0` must not remove the only turn there is.
    """
    return bool(wanted) and not (wanted.isdecimal() and len(wanted) < MIN_ID_DIGITS)


def format_some(found: Iterable[object]) -> str:
    """The first ten of `found`, and a sign that there are more."""
    texts = [str(each) for each in found]
    return ", ".join(texts[:10]) + ", …" * (len(texts) > 10)


def shown_status(turn: Turn, in_use: bool) -> str:
    """The status as `show` prints it: the open turn of a session that a writer holds is in progress."""
    return "in-progress" if in_use and turn.status == "open" else turn.status


def check(home: Home, path: str, advance: Callable[[int], None]) -> Report:
    """The report on the file at `path`, with all findings; `advance` gets the number of bytes of each piece read.

    An unfinished end is no finding while a writer has it. Raises NotFound, AccessRefused or StorageFailed.
    """
    place, known = _guarded(home, path)
    if place:
        with open_for_reading(place, known) as (fd, in_use):
            report = _judge(fd, path, advance)
        is_session = place.is_at(known)
        if in_use and is_session:
            report.tolerate_writer()
        for wide_path, mode, wanted in (*wide_file(known), *(wide_places(place.home) if is_session else ())):
            message = f"'{wide_path}' has mode {mode:04o}, expected {wanted:04o}"
            report.findings.insert(0, Finding("wide-permissions", 0, 0, message))
        return report
    with _readable(path) as fd:
        report = _judge(fd, path, advance)
    report.refuse_stranger()  # in a home it is a session whatever it holds; elsewhere only if a record is in it
    return report


@contextmanager
def _readable(path: str) -> Iterator[int]:
    fd = disk.open_readable(path)
    try:
        yield fd
    finally:
        os.close(fd)


def _judge(fd: int, path: str, advance: Callable[[int], None]) -> Report:
    return Loading(_counted(disk.chunks(fd, path), advance), all_findings=True).judge()


def _counted(chunks: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        advance(len(chunk))
