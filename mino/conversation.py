"""The live session: lock, load, recover, append, context. What `ask` and `chat` hold while they run."""

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mino import signals, terminal
from mino.errors import SessionInUse
from mino.home import Home, find_session, make_directory, make_home, narrow, remove_temporaries
from mino.journal.file import Journal, chunks, create, open_regular
from mino.journal.findings import Report
from mino.journal.loader import Loading
from mino.journal.lock import Lock, lock_exclusive, lock_shared
from mino.journal.order import Turn
from mino.journal.record import EndStatus, Item, new_id, storable
from mino.journal.recovery import Recovery, recover


class Conversation:
    """The session opened for writing: its journal, and the completed turns that are its context."""

    def __init__(self, path: str, keep: int | None) -> None:
        self._keep = keep
        self._open(path)

    def _open(self, path: str) -> None:
        fd = open_regular(path, os.O_RDWR | os.O_APPEND)
        try:
            loading = Loading(chunks(fd, path))
            context = deque((turn for turn in loading if turn.status == "completed"), self._keep)
            report = loading.report
            journal = Journal(path, fd, report.bytes, report.next_seq)
            with signals.held():  # or a recovery copy could stay that is not whole
                recovery = recover(journal, report)
            tell_recovery(recovery)
        except BaseException:
            os.close(fd)
            raise
        self.journal, self.context, self.turns = journal, context, report.turns.total()

    def take_up(self) -> None:
        """Go on with the file that has replaced the session file: its records, turns and context.

        Raises as `open_conversation` does; the journal then refuses to append, for its file is no longer there.
        """
        old = self.journal
        self._open(old.path)
        old.close()

    def close(self) -> None:
        """Close the session file."""
        self.journal.close()

    def begin(self, turn_id: str, question: str) -> None:
        """Save the question. Raises StorageFailed; then no request may be sent."""
        self.journal.begin(turn_id, question)

    def complete(self, turn_id: str, question: str, text: str, output: list[Item]) -> None:
        """Save the answer and the end of the turn; only when that is synced does the turn enter the context."""
        items = storable(output)
        self.journal.complete(turn_id, text, items or None)
        self.turns += 1
        self.context.append(Turn(self.turns, turn_id, question, 0, 0, 0, text, items or None, "completed"))

    def end(self, turn_id: str, status: EndStatus) -> None:
        """Save the end of a turn without an answer; it stays out of the context."""
        self.journal.end(turn_id, status)
        self.turns += 1


@contextmanager
def lock_home(home: Home, wait: float) -> Iterator[None]:
    """Hold the home's lock as its one writer, with the directories there and private.

    Raises SessionInUse after `wait` seconds, CannotCreate or StorageFailed where there can be no home.
    """
    told = make_home(home)
    lock = _lock(home, wait)
    try:
        make_directory(home.sessions)
        remove_temporaries(home)
        for sentence in told + narrow(home):
            terminal.notice(sentence)
        yield
    finally:
        lock.close()


def _lock(home: Home, wait: float) -> Lock:
    try:
        return lock_exclusive(home.lock, min(wait, 1))
    except SessionInUse as busy:
        if wait <= 1:
            raise
        terminal.notice(f"waiting up to {wait:g} seconds: {busy.message}")
    return lock_exclusive(home.lock, wait - 1)


@contextmanager
def open_conversation(home: Home, wait: float, keep: int | None = None) -> Iterator[Conversation]:
    """Lock, load and recover the session; its context is the last `keep` completed turns (None: all).

    Raises InvalidData, SessionInUse, StorageFailed and the like; then nothing was changed.
    """
    with lock_home(home, wait):
        path = find_session(home)
        if path is None:
            path = os.path.join(home.sessions, f"{new_id()}.jsonl")
            create(path, ())
        conversation = Conversation(path, keep)
        try:
            yield conversation
        finally:
            conversation.close()


def tell_size(conversation: Conversation, limit: int, way_out: str) -> None:
    """Say that the context is large, from `limit` turns on (0: never), and the way out; nothing is ever cut."""
    turns = len(conversation.context)
    if limit and turns >= limit:
        terminal.notice(f"the context is large: {turns} turns are sent with every question")
        terminal.hint(way_out)


def tell_in_use() -> None:
    """Say that a writer holds the session, so that what it has not finished is no finding (spec section 6)."""
    terminal.notice("the session is in use by another process; what it has not finished is not shown as damage")


def tell_recovery(recovery: Recovery) -> None:
    """One line on what recovery did; none where there was nothing to do."""
    if recovery.is_needed:
        terminal.notice("recovered the session: " + describe(recovery))


def describe(recovery: Recovery, *, planned: bool = False) -> str:
    """What `recovery` did as one clause, or what it would do."""
    parts = []
    if recovery.cut_bytes:
        copy = f", the whole file is in '{recovery.copy}'" if recovery.copy else ""
        parts.append(f"cut an unfinished end of {terminal.count(recovery.cut_bytes, 'byte')}{copy}")
    if recovery.closed_turn:
        parts.append(f"{'end' if planned else 'ended'} the open turn {recovery.closed_turn} as interrupted")
    return " and ".join(parts)


@contextmanager
def open_for_reading(home: Home, path: str) -> Iterator[tuple[int, bool]]:
    """The file at `path` opened for reading, and whether a writer holds the session; a shared lock while it is open.

    Never writes, creates or narrows anything.
    """
    lock = lock_shared(home.lock)
    try:
        fd = open_regular(path, os.O_RDONLY)
        try:
            yield fd, lock is None
        finally:
            os.close(fd)
    finally:
        if lock:
            lock.close()


class Reading(NamedTuple):
    """What a reader finds of the session: its file, its turns, and the report on it."""

    path: str
    turns: list[Turn]
    report: Report


def read_session(home: Home, keep: int | None = None, *, completed: bool = False) -> Reading | None:
    """The session with its last `keep` turns (`completed`: of those); None where there is no session file yet.

    The lock is let go before the caller prints a word: a pager that waits must not stop a writer.
    """
    path = find_session(home)
    if path is None:
        return None
    limit = None if keep is None else min(keep, sys.maxsize)  # deque takes no more
    with open_for_reading(home, path) as (fd, in_use):
        loading = Loading(chunks(fd, path))
        turns = deque((turn for turn in loading if not completed or turn.status == "completed"), limit)
        if in_use:
            loading.report.tolerate_writer()
    return Reading(path, list(turns), loading.report)
