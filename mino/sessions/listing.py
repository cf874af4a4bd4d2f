"""All conversations, newest first, for `mino session list` and `/sessions`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from mino import disk
from mino.errors import MinoError, NotFound
from mino.home import Home
from mino.journal.ids import id_time
from mino.journal.loader import Loading
from mino.sessions import saved
from mino.sessions.place import Place, current_name
from mino.sessions.reading import open_for_reading
from mino.text import Tell

TITLE_LENGTH = 40  # characters, not bytes


class Entry(NamedTuple):
    """One conversation: `title` is its first question on one line, `created` the time of its first turn if known.

    `name` is None for the unnamed one. `state` is the file's state by the loader (mino-record(5), STATES), `in-use`
    while a writer has it, or `unreadable`; `path` is the file, and `saved` its time. `in_progress` is whether a writer
    has a turn there that has not ended.
    """

    name: str | None
    current: bool
    turns: int
    title: str
    created: datetime | None
    saved: datetime
    bytes: int
    state: str
    path: str
    in_progress: bool = False


def list_sessions(home: Home, tell: Tell) -> list[Entry]:
    """All conversations, newest first; one that is broken or cannot be read is an entry too. It writes nothing."""
    current = current_name(home, tell)
    paths = {name: saved.path_of(home.saved, name) for name in saved.names(home.saved)}
    unnamed = Place(home, None)
    entries: list[Entry] = []
    for name in unnamed.session_names():
        entries += _read(unnamed, os.path.join(home.sessions, name), current)
    for name, path in paths.items():
        entries += _read(Place(home, name), path, current)
    return sorted(entries, key=lambda entry: entry.saved, reverse=True)


def _read(place: Place, path: str, current: str | None) -> Iterator[Entry]:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return  # deleted since the directory was read
    name, is_current = place.name, place.name == current
    time = datetime.fromtimestamp(saved.file_time(facts), UTC)
    try:
        with open_for_reading(place, path) as (fd, in_use):
            loading = Loading(disk.chunks(fd, path))
            turns = iter(loading)
            first = next(turns, None)
            for _ in turns:
                pass
    except NotFound:
        return
    except MinoError:
        yield Entry(name, is_current, 0, "", None, time, facts.st_size, "unreadable", path)
        return
    report = loading.report
    if in_use:
        report.tolerate_writer()
    title, created = (make_title(first.user), id_time(first.turn_id)) if first else ("", None)
    total, state, progress = report.turns.total(), report.state, report.in_progress
    yield Entry(name, is_current, total, title, created, time, facts.st_size, state, path, progress)


def make_title(question: str) -> str:
    """`question` as a title: on one line, its first 40 characters, then `…` if there are more."""
    line = " ".join(question[:10_000].split())
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH] + "…"
