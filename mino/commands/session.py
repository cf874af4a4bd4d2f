"""`mino session new | save | load | open | list | delete | import`, and the sentences that `chat` says too."""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mino import sessions, terminal
from mino.commands.show import local_time, rfc3339
from mino.conversation import lock_home, open_conversation, tell_in_use
from mino.errors import CannotCreate, InvalidData, shell_word
from mino.home import Home, find_session, make_directory
from mino.journal import imports, saved
from mino.journal.file import chunks, open_regular, replace
from mino.journal.saved import Saved
from mino.listing import Entry, list_sessions
from mino.sessions import Replaced, Undone

NAME_COLUMNS = 40  # the widest name that the titles beside it are lined up for


def new(home: Home, wait: float) -> None:
    """Start an empty conversation. Raises as `sessions.start_new`."""
    with open_conversation(home, wait, keep=0) as conversation:
        _tell(say_replaced(sessions.start_new(home, conversation)))


def save(home: Home, wait: float, name: str) -> None:
    """Save the conversation as `name`. Raises as `sessions.save`."""
    saved.path_of(home.saved, name)
    with open_conversation(home, wait, keep=0) as conversation:
        _tell(say_saved(sessions.save(home, conversation, name), conversation.turns))


def load(home: Home, wait: float, name: str) -> None:
    """Go back to the saved session `name`. Raises as `sessions.load`."""
    saved.path_of(home.saved, name)
    with open_conversation(home, wait, keep=0) as conversation:
        _tell(say_replaced(sessions.load(home, conversation, name)))


def go_on(home: Home, wait: float, name: str) -> None:
    """Go on with the saved session `name`, or start it (`session open`). Raises as `sessions.open_named`."""
    saved.path_of(home.saved, name)
    with open_conversation(home, wait, keep=0) as conversation:
        _tell(say_replaced(sessions.open_named(home, conversation, name)))


def list_(home: Home, *, as_json: bool) -> None:
    """Print the live conversation and the saved ones, newest first. Raises as `list_sessions`."""
    entries = list_sessions(home)
    if as_json:
        for entry in entries:
            terminal.show_json(describe_entry(entry))
    else:
        terminal.show_lines(write_entries(entries))
    if any(entry.state == "in-use" for entry in entries):
        tell_in_use()
    if not entries:
        terminal.notice("there is no conversation yet")


def delete(home: Home, wait: float, name: str) -> None:
    """Delete the saved session `name`; the live conversation stays, but loses that name if it was opened under it.

    Raises UsageMistake for a bad name, NotThere, SessionInUse, StorageFailed.
    """
    saved.path_of(home.saved, name)
    with lock_home(home, wait):
        find_session(home)
        saved.refuse_missing(home.saved, name)
        if sessions.live_name(home) == sessions.as_live(home, name):
            # First, for with the name the conversation would bring back what the user wants gone.
            sessions.set_live_name(home, None)
            terminal.notice(f"the live conversation, opened as '{name}', stays and has no name now")
        saved.delete(home.saved, name)
        terminal.notice(f"deleted the saved session '{name}'")


def import_(home: Home, wait: float, name: str, file: str, kind: imports.Kind) -> None:
    """Make the saved session `name` of the messages in `file`; what makes no turn is told and left out.

    Raises UsageMistake for a bad name, CannotCreate where it is taken, InvalidData where the file is not of that kind
    or makes no turn at all, and as `open_regular` and `replace` do. Nothing half-imported stays.
    """
    path = saved.path_of(home.saved, name)
    with lock_home(home, wait):
        find_session(home)
        if os.path.lexists(path):
            raise CannotCreate(f"there is a saved session '{name}' already", "mino session list")
        imported = imports.read(_read_whole(file), file, kind)
        for sentence in imported.left_out:
            terminal.notice(f"'{file}' {sentence}")
        if not imported.turns:
            raise InvalidData(f"'{file}' has no question with an answer; nothing was imported")
        make_directory(home.saved)
        replace(path, imports.records(imported.turns))
    terminal.notice(f"imported {terminal.count(len(imported.turns), 'turn')} as '{name}'")
    terminal.hint(f"mino session load {shell_word(name)}")


def _read_whole(file: str) -> bytes:
    fd = open_regular(file, os.O_RDONLY, follow=True)
    try:
        return b"".join(chunks(fd, file))
    finally:
        os.close(fd)


def say_saved(done: Saved, turns: int) -> Iterator[str]:
    """What `save` did to a conversation of `turns`."""
    if done.is_new:
        yield f"saved {terminal.count(turns, 'turn')} as '{done.name}'"
    else:
        yield f"the saved session '{done.name}' holds this conversation already"
    yield from _say_older(done)


def say_replaced(done: Replaced) -> Iterator[str]:
    """What `load`, `open` or `new` did, what it replaced first."""
    yield from _say_kept(done.kept)
    if done.action == "loaded":
        yield f"loaded '{done.name}': {terminal.count(done.turns, 'turn')}"
    elif done.action == "unchanged":
        yield f"'{done.name}' is open already: {terminal.count(done.turns, 'turn')}"
    else:
        yield "started an empty conversation" + (f", '{done.name}'" if done.name else "")


def say_undone(done: Undone) -> Iterator[str]:
    """What `/undo` did, the saved copy first."""
    yield from _say_kept(done.kept)
    yield f"took turn {done.turn.number} ({done.turn.status}) out: {terminal.count(done.turns, 'turn')} left"


def _say_kept(kept: Saved | None) -> Iterator[str]:
    if kept:
        yield f"the conversation as it was is saved as '{kept.name}'" + ("" if kept.is_new else " already")
        yield from _say_older(kept)


def _say_older(done: Saved) -> Iterator[str]:
    if done.older:
        yield f"an older copy of '{done.name}' is kept as '{done.older}'"


def _tell(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        terminal.notice(sentence)


def write_entries(entries: Sequence[Entry]) -> Iterator[str]:
    """A line an entry: `*` before the live one, time, turns, name (`-` for none), title."""
    names = [entry.name or "-" for entry in entries]
    columns = max((width(name) for name in names if width(name) <= NAME_COLUMNS), default=1)
    for entry, name in zip(entries, names, strict=True):
        mark = "*" if entry.live else " "
        turns = "?" if entry.state == "unreadable" else str(entry.turns)
        padding = " " * (columns - width(name))
        yield f"{mark} {local_time(entry.saved)}  {turns:>5}  {name}{padding}  {_note(entry)}".rstrip()


def _note(entry: Entry) -> str:
    if entry.state in ("clean", "in-use"):
        return entry.title
    return f"({entry.state}: mino history verify {shell_word(entry.path)})"


def width(text: str) -> int:
    """How many columns of a terminal `text` takes (Unicode UAX 11: wide characters take two)."""
    return sum(
        0 if unicodedata.category(character) in ("Mn", "Me", "Cf") else _columns(character) for character in text
    )


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def describe_entry(entry: Entry) -> dict[str, Any]:
    """An entry by `schemas/session.v1.schema.json`."""
    return {
        "name": entry.name,
        "live": entry.live,
        "turns": entry.turns,
        "title": entry.title,
        "created": rfc3339(entry.created),
        "saved": rfc3339(entry.saved),
        "bytes": entry.bytes,
        "state": entry.state,
    }
