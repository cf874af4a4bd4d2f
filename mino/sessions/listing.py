"""The live conversation and the saved ones, newest first, for `mino session list` and `/sessions`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from mino import disk
from mino.errors import MinoError
from mino.home import Home, find_session
from mino.journal.ids import id_time
from mino.journal.loader import Loading
from mino.journal.lock import lock_shared
from mino.sessions import saved
from mino.sessions.switch import live_name

TITLE_LENGTH = 40  # characters, not bytes


class Entry(NamedTuple):
    """One conversation: `title` is its first question on one line, `created` the time of its first turn if known.

    `state` is the file's state by the loader (mino-record(5), STATES), or `unreadable`; `path` is the file, and `saved`
    its time. `in_progress` is whether a writer has a turn there that has not ended.
    """

    name: str | None
    live: bool
    turns: int
    title: str
    created: datetime | None
    saved: datetime
    bytes: int
    state: str
    path: str
    in_progress: bool = False


def list_sessions(home: Home) -> list[Entry]:
    """The live conversation, if there is one, and the saved ones under other names; newest first.

    It writes nothing. Raises InvalidData if there is more than one session file; a saved session that is broken or
    cannot be read is an entry too.
    """
    lock = lock_shared(home.lock)
    try:
        entries = list(_entries(home, in_use=lock is None))
    finally:
        if lock:
            lock.close()
    return sorted(entries, key=lambda entry: entry.saved, reverse=True)


def _entries(home: Home, *, in_use: bool) -> Iterator[Entry]:
    session, live = find_session(home), live_name(home)
    if session:
        yield from _read(session, live, live=True, in_use=in_use)
    for name in saved.names(home.saved):
        if not (session and name == live):
            yield from _read(saved.path_of(home.saved, name), name, live=False, in_use=False)


def _read(path: str, name: str | None, *, live: bool, in_use: bool) -> Iterator[Entry]:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return  # deleted since the directory was read
    time = datetime.fromtimestamp(saved.file_time(facts), UTC)
    try:
        with disk.opened(path) as fd:
            loading = Loading(disk.chunks(fd, path))
            turns = iter(loading)
            first = next(turns, None)
            for _ in turns:
                pass
    except MinoError:
        yield Entry(name, live, 0, "", None, time, facts.st_size, "unreadable", path)
        return
    report = loading.report
    if in_use:
        report.tolerate_writer()
    title, created = (make_title(first.user), id_time(first.turn_id)) if first else ("", None)
    total, state, progress = report.turns.total(), report.state, report.in_progress
    yield Entry(name, live, total, title, created, time, facts.st_size, state, path, progress)


def make_title(question: str) -> str:
    """`question` as a title: on one line, its first 40 characters, then `…` if there are more."""
    line = " ".join(question[:10_000].split())
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH] + "…"
