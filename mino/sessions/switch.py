"""The live conversation and the saved ones: save, load, open, start, undo, delete; for `mino session` and `mino chat`.

Each function works on a conversation that is open and locked, changes the content of its session file in one rename,
and leaves the conversation on the new content, with its context. The replaced content is saved first. A failure
before the rename leaves everything as it was. `current`, the name of the live conversation, is cleared before the
rename and written after it: a crash in between loses the name, but never saves a conversation under another's name.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Literal, NamedTuple

from mino import disk, signals
from mino.errors import MinoError, NotFound, StorageFailed
from mino.home import Home
from mino.journal.loader import Loading
from mino.journal.order import Turn
from mino.sessions import saved
from mino.sessions.conversation import Conversation
from mino.sessions.saved import Saved
from mino.text import now, shell_word


class Replaced(NamedTuple):
    """What became of the live conversation.

    `action` is `loaded` from the saved session `name`, `started` empty, or `unchanged` if `name` was open already.
    `turns` is the number of turns now. `kept` is the saved copy of the old conversation; None if that was empty.
    """

    action: Literal["loaded", "started", "unchanged"]
    name: str | None
    turns: int
    kept: Saved | None


class Undone(NamedTuple):
    """The turn that was removed, how many are left, and where the conversation with it is saved."""

    turn: Turn
    turns: int
    kept: Saved


def save(home: Home, conversation: Conversation, name: str) -> Saved:
    """Save the conversation as `name`, a checkpoint; an older copy of that name with other content is kept.

    Raises UsageMistake for a bad name; AccessRefused, CannotCreate, StorageFailed; then nothing was changed.
    """
    saved.path_of(home.saved, name)
    disk.make_directory(home.saved)
    return saved.store(home.saved, name, conversation.journal, keep_beginning=True)


def load(home: Home, conversation: Conversation, name: str) -> Replaced:
    """Replace the conversation with the saved session `name`.

    Raises UsageMistake for a bad name, NotFound, InvalidData for a saved session that is not clean, and as `save`.
    """
    name = as_live(home, name)
    with saved.open_clean(home.saved, name) as data:
        before = live_name(home)
        kept = _keep(home, conversation, apart_from=name)
        # A conversation that is loaded again under its own name goes back to its checkpoint, and keeps the name.
        _replace(home, conversation, data, name if name == before else None)
    return Replaced("loaded", name, conversation.turns, kept)


def start(home: Home, conversation: Conversation) -> Replaced:
    """Replace the conversation with an empty one without a name (`/clear`). Raises as `save`."""
    kept = _keep(home, conversation)
    _replace(home, conversation, (), None)
    return Replaced("started", None, 0, kept)


def open_named(home: Home, conversation: Conversation, name: str) -> Replaced:
    """Get or create: continue the saved session `name`, or start empty; the conversation has that name from now on.

    It is saved back under it when another one takes its place. Raises as `load`, but not NotFound.
    """
    name = as_live(home, name)
    if live_name(home) == name:
        return Replaced("unchanged", name, conversation.turns, None)
    exists = os.path.lexists(saved.path_of(home.saved, name))
    with saved.open_clean(home.saved, name) if exists else nullcontext(()) as data:
        kept = _keep(home, conversation)
        _replace(home, conversation, data, name)
    return Replaced("loaded" if exists else "started", name, conversation.turns, kept)


def undo(home: Home, conversation: Conversation) -> Undone:
    """Remove the last turn, whatever its status; the conversation with it is saved first.

    Raises NotFound if there is no turn, and as `save`.
    """
    last = deque(Loading(conversation.journal.chunks()), 1)
    if not last:
        raise NotFound("there is no turn to remove")
    turn = last[0]
    kept = _keep(home, conversation)
    assert kept  # it has a turn
    _replace(home, conversation, _first_bytes(conversation.journal.chunks(), turn.byte), live_name(home))
    return Undone(turn, conversation.turns, kept)


def _first_bytes(chunks: Iterable[bytes], count: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[:count]
        count -= len(chunk)
        if count <= 0:
            return


def delete(home: Home, name: str) -> bool:
    """Delete the saved session `name`, under the lock; returns whether the live conversation had, and loses, the name.

    Raises UsageMistake for a bad name, NotFound, StorageFailed.
    """
    saved.refuse_missing(home.saved, name)
    was_live = live_name(home) == as_live(home, name)
    if was_live:
        # The name goes first, because with it the conversation would bring back the session that the user deletes.
        set_live_name(home, None)
    saved.delete(home.saved, name)
    return was_live


def live_name(home: Home) -> str | None:
    """The name under which the live conversation was opened; None if it has none, or if that is lost."""
    try:
        with disk.opened(home.current) as fd:
            name = os.read(fd, 4096).decode().removesuffix("\n")
    except (MinoError, OSError, UnicodeDecodeError):
        return None
    return None if saved.name_flaw(name) else name


def as_live(home: Home, name: str) -> str:
    """`name`, or the live name if both are one file: on many disks of a Mac, `Foo` and `foo` are the same name.

    Without this the live conversation would be saved over the very checkpoint that is loaded.
    """
    live = live_name(home)
    if live is not None and disk.is_same(saved.path_of(home.saved, live), saved.path_of(home.saved, name)):
        return live
    return name


def set_live_name(home: Home, name: str | None) -> None:
    """Remember the name of the live conversation, or that it has none. Raises CannotCreate, StorageFailed."""
    if name is not None:
        disk.replace(home.current, [name.encode() + b"\n"])
        return
    try:
        os.unlink(home.current)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageFailed(
            f"cannot remove '{home.current}': {error.strerror}", f"ls -l {shell_word(home.current)}"
        ) from None
    disk.sync_directory(home.path)


def _keep(home: Home, conversation: Conversation, apart_from: str | None = None) -> Saved | None:
    """Save the old conversation, unless it is empty: under its name, else under a new one if no saved session is equal.

    The saved session `apart_from` is the one to be loaded: it must not change, so a conversation that continues it is
    kept as another copy of its name.
    """
    if not conversation.turns:
        return None
    disk.make_directory(home.saved)
    name = live_name(home)
    if name is None or name == apart_from:
        equal = saved.find_equal(home.saved, conversation.journal)
        if equal is not None:
            return Saved(equal, is_new=False)
        name = saved.older_name(home.saved, name, now()) if name else saved.automatic_name(home.saved)
    return saved.store(home.saved, name, conversation.journal, keep_beginning=False)


def _replace(home: Home, conversation: Conversation, data: Iterable[bytes], name: str | None) -> None:
    """Give the conversation the records in `data` and the name `name`."""
    # A signal between the rename and the reading of the new file would leave a program that continues (`chat`) with the
    # turns of one conversation and the file of another.
    with signals.deferred():
        before = live_name(home)
        if name != before:
            set_live_name(home, None)
        conversation.journal.replace(data)
        conversation.reopen()
        if name is not None and name != before:
            set_live_name(home, name)
