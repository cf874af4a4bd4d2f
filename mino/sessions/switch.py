"""What `mino session` and `mino chat` do with whole conversations: empty, load, undo, save, rename, delete.

A function that is given an open conversation changes its content in one rename, and leaves it on the new content, with
its context. What it held is saved first, and a failure before the rename leaves everything as it was. The others take
the locks that they need. Only `rename` and `delete` change which conversation is current.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

from mino import disk, signals
from mino.errors import CannotCreate, NotFound, StorageFailed
from mino.home import Home
from mino.journal.loader import Loading
from mino.journal.order import Turn
from mino.journal.recovery import COPY_NAME
from mino.sessions import saved
from mino.sessions.conversation import Conversation, lock
from mino.sessions.place import Place, is_current, missing, set_current
from mino.sessions.saved import Content, Saved
from mino.text import Tell, shell_word


class Undone(NamedTuple):
    """The turn that was removed, how many are left, and where the conversation with it is saved."""

    turn: Turn
    turns: int
    kept: Saved


def start(conversation: Conversation) -> Saved | None:
    """Empty the conversation; returns the saved copy of what it held, None if that was nothing.

    Raises CannotCreate, StorageFailed, AccessRefused; then nothing was changed.
    """
    kept = keep(conversation)
    replace(conversation, ())
    return kept


def load(conversation: Conversation, content: Content) -> Saved | None:
    """Give the conversation the `content` of another, which stays as it is; returns and raises as `start`."""
    kept = keep(conversation)
    replace(conversation, content.chunks())
    return kept


def undo(conversation: Conversation) -> Undone:
    """Remove the last turn, whatever its status. Raises NotFound if there is none, and as `start`."""
    last = deque(Loading(conversation.journal.chunks()), 1)
    if not last:
        raise NotFound("there is no turn to remove")
    turn = last[0]
    kept = keep(conversation)
    assert kept  # it has a turn
    replace(conversation, conversation.content()._replace(size=turn.byte).chunks())
    return Undone(turn, conversation.turns, kept)


def keep(conversation: Conversation) -> Saved | None:
    """Save what the conversation holds, before something else takes its place (see `saved.keep`)."""
    place = conversation.place
    return saved.keep(place.home.saved, conversation.content(), place.name)


def replace(conversation: Conversation, data: Iterable[bytes]) -> None:
    """Give the conversation the records in `data`."""
    # A signal between the rename and the reading of the new file would leave a program that continues (`chat`) with the
    # turns of one conversation and the file of another.
    with signals.deferred():
        conversation.journal.replace(data)
        conversation.reopen()


def save(home: Home, name: str, wait: float, tell: Tell, content: Content) -> Saved:
    """Save `content`, the ended turns of a conversation, as `name`. Raises SessionInUse, and as `saved.store`."""
    saved.path_of(home.saved, name)  # before the lock, whose path a bad name would lead out of the home
    with lock(Place(home, name), wait, tell), saved.renewed(content) as now_there:
        return saved.store(home.saved, name, now_there)


def find(home: Home, name: str) -> str:
    """The path of the conversation called `name`.

    Raises UsageMistake for a bad name, NotFound, StorageFailed if it is a link or anything but a regular file.
    """
    path = saved.path_of(home.saved, name)
    try:
        mode = os.stat(path, follow_symlinks=False).st_mode
    except FileNotFoundError:
        raise missing(name) from None
    except OSError as error:
        raise disk.open_failure(path, error) from None
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise StorageFailed(f"'{path}' is {kind}", f"ls -ld {shell_word(path)}")
    return path


def rename(home: Home, old: str, new: str, wait: float, tell: Tell) -> None:
    """Call the conversation `old` `new`; its recovery copies go along, and so does being current.

    Raises UsageMistake, NotFound, CannotCreate if `new` is taken, SessionInUse, StorageFailed.
    """
    source, target = find(home, old), saved.path_of(home.saved, new)
    is_one = disk.is_same(source, target)  # two spellings, where the file system takes them for one name
    with ExitStack() as stack:
        for name in sorted({old} if is_one else {old, new}, key=os.fsencode):
            stack.enter_context(lock(Place(home, name), wait, tell))
        find(home, old)
        if os.path.lexists(target) and not is_one:
            raise CannotCreate(f"a conversation '{new}' exists already", "mino session list")
        for copy in _recovery_copies(home, old):
            disk.rename(copy, os.path.join(home.saved, new + os.path.basename(copy).removeprefix(old)))
        if is_current(home, old, tell):
            set_current(home, new)  # before the file: the same command, given again after a crash, ends what it began
        disk.rename(source, target)
        if not is_one:
            saved.remove(Place(home, old).lock)


def delete(home: Home, name: str, wait: float, tell: Tell) -> bool:
    """Delete the conversation called `name`, with its recovery copies and its lock; returns whether it was current.

    The unnamed conversation is current then. Raises UsageMistake, NotFound, SessionInUse, StorageFailed.
    """
    path, place = saved.path_of(home.saved, name), Place(home, name)
    if os.path.lexists(path) or not os.path.lexists(place.lock):  # a lock alone: another deletion was killed
        find(home, name)
    with lock(place, wait, tell):
        was_current = is_current(home, name, tell)
        if was_current:
            set_current(home, None)
        for each in (*_recovery_copies(home, name), path, place.lock):
            if os.path.lexists(each):
                saved.remove(each)
    return was_current


def _recovery_copies(home: Home, name: str) -> Iterator[str]:
    for file in sorted(os.listdir(home.saved)):
        copy = COPY_NAME.fullmatch(file.removesuffix(saved.SUFFIX))
        if copy and copy[1] == name:
            yield os.path.join(home.saved, file)
