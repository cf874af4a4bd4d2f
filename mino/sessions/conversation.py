"""A conversation opened for writing: lock, load, recover, append, context. `ask` and `chat` hold it while they run."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mino import disk, signals
from mino.errors import InvalidData, SessionInUse
from mino.home import Home, make_home, narrow
from mino.journal.file import Journal
from mino.journal.ids import new_id
from mino.journal.loader import Loading
from mino.journal.lock import Lock, lock_exclusive
from mino.journal.order import Turn
from mino.journal.record import Record
from mino.journal.recovery import Recovery, recover
from mino.sessions import saved
from mino.sessions.place import Place, choose
from mino.sessions.saved import Content
from mino.text import Tell, count, say_nothing


class Conversation:
    """One that is open and locked: its journal, its number of turns, and the completed ones that are its context."""

    def __init__(self, place: Place, path: str, tell: Tell, keep: int | None) -> None:
        self.place = place
        self._tell = tell
        self._keep = keep
        self._open(path)

    def _open(self, path: str) -> None:
        fd = disk.open_regular(path, os.O_RDWR | os.O_APPEND)
        try:
            loading = Loading(disk.chunks(fd, path))
            context = deque((turn for turn in loading if turn.status == "completed"), self._keep)
            report = loading.report
            journal = Journal(path, fd, report.bytes, report.next_seq, self.place.owner)
            with signals.deferred():  # otherwise an unfinished recovery copy could stay
                recovery = recover(journal, report)
            if recovery.is_needed:
                self._tell(f"recovered {self.place}: " + format_recovery(recovery))
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

    def content(self) -> Content:
        """What the conversation holds, for a copy; no turn is unended while this process has it."""
        return Content(self.journal.path, self.journal.fd, self.journal.size, self.turns)

    def append(self, *records: Record) -> None:
        """Save `records`; a completed turn enters the context only once they are synced. Raises StorageFailed."""
        self.journal.append(*records)
        for record in records:
            if record["type"] == "user_message":
                self._turn = Turn(self.turns + 1, record["turn_id"], record["text"], 0, 0, 0, input=record.get("input"))
            elif self._turn and record["type"] == "assistant_message":
                self._turn.assistant, self._turn.output = record["text"], record.get("output")
                self._turn.model, self._turn.usage = record.get("model"), record.get("usage")
            elif self._turn and record["type"] == "turn_end":
                self._turn.status = record["status"]
                self.turns += 1
                if self._turn.status == "completed":
                    self.context.append(self._turn)


@contextmanager
def lock(place: Place, wait: float, tell: Tell) -> Iterator[None]:
    """Hold the lock of the conversation as its one writer; the home and its folder exist then, and are private.

    Raises SessionInUse after `wait` seconds, CannotCreate or StorageFailed if there can be no home.
    """
    told = make_home(place.home)
    disk.make_directory(place.folder)
    held = _lock(place, wait, tell)
    try:
        if held.was_left:
            # A power cut could still undo what the killed writer wrote, made or renamed: the old file would come back,
            # without the turn that is now appended to the new one.
            place.settle()
        place.remove_temporaries()
        for sentence in told + narrow(place.home):
            tell(sentence)
        yield
        held.clear()  # not after a failure or a signal, which can come between a rename and its sync
    finally:
        held.close()


def _lock(place: Place, wait: float, tell: Tell) -> Lock:
    try:
        return lock_exclusive(place.lock, min(wait, 1), str(place))
    except SessionInUse as busy:
        if wait <= 1:
            raise
        tell(f"waiting up to {wait:g} seconds: {busy.message}")
    return lock_exclusive(place.lock, wait - 1, str(place))


@contextmanager
def lock_chosen(home: Home, session: str | None, wait: float, tell: Tell) -> Iterator[Place]:
    """Hold the lock of the conversation called `session`, or without one of the current one.

    Raises as `choose` and `lock`. Another command may have made another conversation current while this one waited.
    """
    while True:
        place = choose(home, session, tell)
        with _offer_another(), lock(place, wait, tell):
            if choose(home, session, say_nothing) == place:
                yield place
                return


@contextmanager
def _offer_another() -> Iterator[None]:
    try:
        yield
    except SessionInUse as busy:
        hint = "wait for it with --wait SECONDS, or use another conversation with --session NAME"
        raise SessionInUse(busy.message, hint) from None


@contextmanager
def open_conversation(
    home: Home, session: str | None, wait: float, tell: Tell, keep: int | None = None
) -> Iterator[Conversation]:
    """Lock, load and recover the conversation called `session`, which is made if it is missing, or the current one.

    Its context is the last `keep` completed turns (None: all). `tell` reports a wait, narrowed modes and a recovery.
    Raises InvalidData, SessionInUse, StorageFailed and the like; then nothing was changed.
    """
    with lock_chosen(home, session, wait, tell) as place, closing(_open(place, tell, keep)) as conversation:
        yield conversation


@contextmanager
def open_place(
    place: Place, wait: float, tell: Tell, keep: int | None = None, *, replace_invalid: bool = False
) -> Iterator[Conversation]:
    """As `open_conversation`, for the conversation at `place`, which is made if it is missing.

    With `replace_invalid` an invalid one is moved whole to a named one, and an empty one takes its place: a damaged
    conversation must not lock a person out of another one.
    """
    with lock(place, wait, tell):
        try:
            conversation = _open(place, tell, keep)
        except InvalidData as damage:
            path = place.find()
            if not replace_invalid or not path:
                raise
            name = saved.set_aside(place.home.saved, path)
            tell(f"{damage.message.removesuffix('; the file is unchanged')}; it is set aside as '{name}'")
            conversation = _open(place, tell, keep)
        with closing(conversation):
            yield conversation


def _open(place: Place, tell: Tell, keep: int | None) -> Conversation:
    return Conversation(place, place.find() or _create(place), tell, keep)


def _create(place: Place) -> str:
    path = saved.path_of(place.folder, new_id() if place.name is None else place.name)
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
