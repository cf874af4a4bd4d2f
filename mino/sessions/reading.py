"""Reads a session: its turns, the turn that a person names, and all findings of `verify`. It never writes."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from mino import disk
from mino.errors import InvalidData, NotFound, UsageMistake
from mino.home import Home, wide_file, wide_places
from mino.journal.findings import Finding, Report, advice, place
from mino.journal.loader import Loading
from mino.journal.lock import lock_shared
from mino.journal.order import Turn
from mino.sessions.place import Place, find, place_of
from mino.text import Tell, one_line

ID_DIGITS = 32
MIN_ID_DIGITS = 8  # fewer digits without a letter are the number of a turn
IN_USE = "the session is in use by another process; its unfinished end is not reported as damage"


class Reading(NamedTuple):
    """A conversation as a reader finds it: which, its file, its turns, and the report on it."""

    place: Place
    path: str
    turns: list[Turn]
    report: Report


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
    home: Home, session: str | None, tell: Tell, keep: int | None = None, *, completed: bool = False
) -> Reading | None:
    """The conversation called `session`, or the current one, with its last `keep` turns (`completed`: completed turns).

    None if there is no unnamed conversation yet. The lock is released before the caller prints anything: a pager that
    waits must not stop a writer. Raises as `place.find`.
    """
    place, path = find(home, session, tell)
    if path is None:
        return None
    limit = None if keep is None else min(keep, sys.maxsize)  # deque takes no more
    with open_for_reading(place, path) as (fd, in_use):
        loading = Loading(disk.chunks(fd, path))
        turns = deque((turn for turn in loading if not completed or turn.status == "completed"), limit)
        if in_use:
            loading.report.tolerate_writer()
    return Reading(place, path, list(turns), loading.report)


def tell_state(path: str, report: Report, tell: Tell) -> None:
    """Report why the conversation is not clean. If it is invalid, raises InvalidData with that finding and a hint."""
    if report.in_progress:
        tell(IN_USE)
    if report.state == "invalid":
        raise InvalidData(place(path, report.worst), advice(path, report))
    for finding in report.findings:
        tell(f"{place(path, finding)}; the next question recovers it")


def pick(turns: Sequence[Turn], wanted: str) -> Turn:
    """The turn that `wanted` names: its number, its id, or an unambiguous beginning or end of its id.

    Ids begin with the time, so the first digits are the same in all turns of a minute; the last ones are random.
    Raises NotFound, or UsageMistake if more than one id begins or ends so.
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
        raise NotFound(f"there is no turn '{one_line(wanted)}'", "mino history show")
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
    place = place_of(home, path)
    if place:
        with open_for_reading(place, path) as (fd, in_use):
            report = _judge(fd, path, advance)
        is_session = place.is_at(path)
        if in_use and is_session:
            report.tolerate_writer()
        for wide_path, mode, wanted in (*wide_file(path), *(wide_places(place.home) if is_session else ())):
            message = f"'{wide_path}' has mode {mode:04o}, expected {wanted:04o}"
            report.findings.insert(0, Finding("wide-permissions", 0, 0, message))
        return report
    fd = disk.open_readable(path)
    try:
        report = _judge(fd, path, advance)
    finally:
        os.close(fd)
    report.refuse_stranger()  # in a home it is a session whatever it holds; elsewhere only if a record is in it
    return report


def _judge(fd: int, path: str, advance: Callable[[int], None]) -> Report:
    return Loading(_counted(disk.chunks(fd, path), advance), all_findings=True).judge()


def _counted(chunks: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        advance(len(chunk))
