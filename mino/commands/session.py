"""`mino session new | save | load | open | list | delete | import`, and the sentences that `chat` prints too."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from mino import disk
from mino.errors import CannotCreate, InvalidData
from mino.formats import eino, messages
from mino.formats.pairs import Imported
from mino.home import Home, find_session
from mino.sessions import saved, switch
from mino.sessions.conversation import lock_home, open_conversation
from mino.sessions.listing import Entry, list_sessions
from mino.sessions.reading import IN_USE
from mino.sessions.saved import Saved
from mino.sessions.switch import Replaced, Undone
from mino.terminal import output
from mino.terminal.prompt import read_stdin
from mino.text import count, local_time, rfc3339, shell_word, width

Kind = Literal["eino", "json", "messages"]
READERS: dict[Kind, Callable[[bytes, str], Imported]] = {
    "eino": eino.read,
    "json": messages.read_checkpoint,
    "messages": messages.read,
}

NAME_COLUMNS = 40  # the titles are aligned for names up to this width


def new(home: Home, wait: float) -> None:
    """Start an empty conversation. Raises as `switch.start`."""
    with open_conversation(home, wait, output.notice, keep=0, replace_invalid=True) as conversation:
        _tell(format_replaced(switch.start(home, conversation)))


def save(home: Home, wait: float, name: str) -> None:
    """Save the conversation as `name`. Raises as `switch.save`."""
    saved.path_of(home.saved, name)
    with open_conversation(home, wait, output.notice, keep=0) as conversation:
        _tell(format_saved(switch.save(home, conversation, name), conversation.turns))


def load(home: Home, wait: float, name: str) -> None:
    """Go back to the saved session `name`. Raises as `switch.load`."""
    saved.refuse_missing(home.saved, name)  # before an invalid conversation is set aside for it
    with open_conversation(home, wait, output.notice, keep=0, replace_invalid=True) as conversation:
        _tell(format_replaced(switch.load(home, conversation, name)))


def open_(home: Home, wait: float, name: str) -> None:
    """Continue the saved session `name`, or start it. Raises as `switch.open_named`."""
    saved.path_of(home.saved, name)
    with open_conversation(home, wait, output.notice, keep=0, replace_invalid=True) as conversation:
        _tell(format_replaced(switch.open_named(home, conversation, name)))


def list_(home: Home, *, as_json: bool) -> None:
    """Print the live conversation and the saved ones, newest first. Raises as `list_sessions`."""
    entries = list_sessions(home)
    if as_json:
        for entry in entries:
            output.show_json(entry_json(entry))
    else:
        output.show_lines(format_entries(entries))
    if any(entry.in_progress for entry in entries):
        output.notice(IN_USE)
    if not entries:
        output.notice("there is no conversation yet")


def delete(home: Home, wait: float, name: str) -> None:
    """Delete the saved session `name`; the live conversation stays. Raises SessionInUse, and as `switch.delete`."""
    saved.path_of(home.saved, name)
    with lock_home(home, wait, output.notice):
        find_session(home)
        if switch.delete(home, name):
            output.notice(f"the live conversation was opened as '{name}'; it stays, and has no name now")
        output.notice(f"deleted the saved session '{name}'")


def import_(home: Home, wait: float, name: str, file: str, kind: Kind) -> None:
    """Make the saved session `name` from the messages in `file` (`-`: standard input); the rest is reported.

    Raises UsageMistake for a bad name, CannotCreate if it is taken, InvalidData if the file is not of that kind or
    makes no turn at all, and as `disk.opened` and `disk.replace` do. Nothing half-imported stays.
    """
    path = saved.path_of(home.saved, name)
    content = _read_file(file)  # without the lock: what writes into a pipe may take its time, and may be a `mino` too
    with lock_home(home, wait, output.notice):
        find_session(home)
        if os.path.lexists(path):
            raise CannotCreate(f"a saved session '{name}' exists already", "mino session list")
        imported = READERS[kind](content, file)
        for sentence in imported.left_out:
            output.notice(f"'{file}' {sentence}")
        if not imported.turns:
            raise InvalidData(f"'{file}' has no question with an answer; nothing was imported")
        disk.make_directory(home.saved)
        saved.store_turns(home.saved, name, imported.turns)
    output.notice(f"imported {count(len(imported.turns), 'turn')} as '{name}'")
    output.hint(f"mino session load {shell_word(name)}")


def _read_file(file: str) -> bytes:
    """All of `file`, which may be a pipe (`<(…)`), or `-` for standard input. Raises as `disk.open_readable` does."""
    if file == "-":
        return read_stdin()
    fd = disk.open_readable(file)
    try:
        return b"".join(disk.chunks(fd, file))
    finally:
        os.close(fd)


def format_saved(done: Saved, turns: int) -> Iterator[str]:
    """What `save` did to a conversation of `turns`."""
    if done.is_new:
        yield f"saved {count(turns, 'turn')} as '{done.name}'"
    else:
        yield f"the saved session '{done.name}' holds this conversation already"
    yield from _format_older(done)


def format_replaced(done: Replaced) -> Iterator[str]:
    """What `load`, `open` or `new` did, the saved copy first."""
    yield from _format_kept(done.kept)
    if done.action == "loaded":
        yield f"loaded '{done.name}': {count(done.turns, 'turn')}"
    elif done.action == "unchanged":
        yield f"'{done.name}' is open already: {count(done.turns, 'turn')}"
    else:
        yield "started an empty conversation" + (f" '{done.name}'" if done.name else "")


def format_undone(done: Undone) -> Iterator[str]:
    """What `/undo` did, the saved copy first."""
    yield from _format_kept(done.kept)
    yield f"removed turn {done.turn.number} ({done.turn.status}): {count(done.turns, 'turn')} left"


def _format_kept(kept: Saved | None) -> Iterator[str]:
    if kept:
        yield f"the previous conversation is {'' if kept.is_new else 'already '}saved as '{kept.name}'"
        yield from _format_older(kept)


def _format_older(done: Saved) -> Iterator[str]:
    if done.older:
        yield f"an older copy of '{done.name}' is kept as '{done.older}'"


def _tell(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        output.notice(sentence)


def format_entries(entries: Sequence[Entry]) -> Iterator[str]:
    """A line for each entry: `*` before the live one, time, turns, name (`-` for none), title."""
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


def entry_json(entry: Entry) -> dict[str, Any]:
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
