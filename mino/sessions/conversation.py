"""The session opened for writing: lock, load, recover, append, context. `ask` and `chat` hold it while they run."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mino import disk, signals
from mino.errors import InvalidData, SessionInUse
from mino.home import Home, find_session, make_home, narrow, remove_temporaries, settle
from mino.journal.file import Journal
from mino.journal.ids import new_id
from mino.journal.loader import Loading
from mino.journal.lock import Lock, lock_exclusive
from mino.journal.order import Turn
from mino.journal.record import Record
from mino.journal.recovery import Recovery, recover
from mino.sessions import saved
from mino.text import Tell, count


class Conversation:
    """One session, open and locked: its journal, its number of turns, and the completed ones that are its context."""

    def __init__(self, path: str, tell: Tell, keep: int | None) -> None:
        self._tell = tell
        self._keep = keep
        self._open(path)

    def _open(self, path: str) -> None:
        fd = disk.open_regular(path, os.O_RDWR | os.O_APPEND)
        try:
            loading = Loading(disk.chunks(fd, path))
            context = deque((turn for turn in loading if turn.status == "completed"), self._keep)
            report = loading.report
            journal = Journal(path, fd, report.bytes, report.next_seq)
            with signals.deferred():  # otherwise an unfinished recovery copy could stay
                recovery = recover(journal, report)
            if recovery.is_needed:
                self._tell("recovered the session: " + format_recovery(recovery))
        except BaseException:
            os.close(fd)
            raise
        self.journal, self.context, self.turns = journal, context, report.turns.total()
        self._turn: Turn | None = None

    def reopen(self) -> None:
        """Continue with the file that has replaced the session file: its records, turns and context.

        Raises as `open_conversation` does; the journal then refuses to append, because its file is no longer there.
        """
        old = self.journal
        self._open(old.path)
        old.close()

    def close(self) -> None:
        """Close the session file."""
        self.journal.close()

    def append(self, *records: Record) -> None:
        """Save `records`; a completed turn enters the context only once they are synced. Raises StorageFailed."""
        self.journal.append(*records)
        for record in records:
            if record["type"] == "user_message":
                self._turn = Turn(self.turns + 1, record["turn_id"], record["text"], 0, 0, 0)
            elif self._turn and record["type"] == "assistant_message":
                self._turn.assistant, self._turn.output = record["text"], record.get("output")
            elif self._turn and record["type"] == "turn_end":
                self._turn.status = record["status"]
                self.turns += 1
                if self._turn.status == "completed":
                    self.context.append(self._turn)


@contextmanager
def lock_home(home: Home, wait: float, tell: Tell) -> Iterator[None]:
    """Hold the home's lock as its one writer; the directories exist then, and are private.

    Raises SessionInUse after `wait` seconds, CannotCreate or StorageFailed if there can be no home.
    """
    told = make_home(home)
    lock = _lock(home, wait, tell)
    try:
        if lock.was_left:
            # A power cut could still undo what the killed writer wrote, made or renamed: the old file would come back,
            # without the turn that is now appended to the new one.
            settle(home)
        disk.make_directory(home.sessions)
        remove_temporaries(home)
        for sentence in told + narrow(home):
            tell(sentence)
        yield
        lock.clear()  # not after a failure or a signal, which can come between a rename and its sync
    finally:
        lock.close()


def _lock(home: Home, wait: float, tell: Tell) -> Lock:
    try:
        return lock_exclusive(home.lock, min(wait, 1))
    except SessionInUse as busy:
        if wait <= 1:
            raise
        tell(f"waiting up to {wait:g} seconds: {busy.message}")
    return lock_exclusive(home.lock, wait - 1)


@contextmanager
def open_conversation(
    home: Home, wait: float, tell: Tell, keep: int | None = None, *, replace_invalid: bool = False
) -> Iterator[Conversation]:
    """Lock, load and recover the session; its context is the last `keep` completed turns (None: all).

    With `replace_invalid` an invalid session is moved whole to the saved ones, and an empty one takes its place: a
    damaged conversation must not lock a person out of another one. `tell` reports that, a wait, narrowed modes and a
    recovery. Raises InvalidData, SessionInUse, StorageFailed and the like; then nothing was changed.
    """
    with lock_home(home, wait, tell):
        path = find_session(home) or _create(home)
        try:
            conversation = Conversation(path, tell, keep)
        except InvalidData as damage:
            if not replace_invalid:
                raise
            name = saved.set_aside(home.saved, path)
            tell(f"{damage.message.removesuffix('; the file is unchanged')}; it is set aside as '{name}'")
            conversation = Conversation(_create(home), tell, keep)
        try:
            yield conversation
        finally:
            conversation.close()


def _create(home: Home) -> str:
    path = os.path.join(home.sessions, f"{new_id()}.jsonl")
    disk.create(path, ())
    return path


def format_recovery(recovery: Recovery, *, planned: bool = False) -> str:
    """What `recovery` did, or with `planned` would do, as one clause."""
    parts = []
    if recovery.cut_bytes:
        copy = f", the whole file is in '{recovery.copy}'" if recovery.copy else ""
        parts.append(f"cut an unfinished end of {count(recovery.cut_bytes, 'byte')}{copy}")
    if recovery.closed_turn:
        parts.append(f"{'end' if planned else 'ended'} the open turn {recovery.closed_turn} as interrupted")
    return " and ".join(parts)
