"""`mino session`: whole conversations, by name; and the sentences that `chat` prints too."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Literal

from mino import disk
from mino.errors import CannotCreate, InvalidData
from mino.formats import eino, messages
from mino.formats.pairs import Imported
from mino.home import Home
from mino.sessions import saved, switch
from mino.sessions.clean import clean as remove_copies
from mino.sessions.conversation import lock, open_place
from mino.sessions.listing import Entry, list_sessions
from mino.sessions.place import Place, choose, is_current, set_current
from mino.sessions.reading import IN_USE
from mino.sessions.saved import Saved
from mino.sessions.switch import Undone
from mino.terminal import output
from mino.terminal.prompt import read_stdin
from mino.text import count, local_time, rfc3339, say_nothing, shell_word, width

Kind = Literal["eino", "json", "messages"]
READERS: dict[Kind, Callable[[bytes, str], Imported]] = {
    "eino": eino.read,
    "json": messages.read_checkpoint,
    "messages": messages.read,
}

NAME_COLUMNS = 40  # the titles are aligned for names up to this width


def new(home: Home, wait: float) -> None:
    """Empty the unnamed conversation, and make it current. Raises as `switch.start`."""
    with open_place(Place(home, None), wait, output.notice, keep=0, replace_invalid=True) as conversation:
        kept = switch.start(conversation)
        set_current(home, None)
    _tell(format_started(kept))
    _tell_variable()


def save(home: Home, wait: float, name: str) -> None:
    """Save the current conversation as `name`. Raises as `switch.save`, and InvalidData if it is damaged."""
    saved.path_of(home.saved, name)
    place = choose(home, None, output.notice)
    if is_current(home, name, say_nothing):  # `choose` has said what is wrong with it
        output.notice(f"'{name}' is the current conversation; there is nothing to save")
        return
    path = place.find()
    with saved.open_ended(path) if path else nullcontext(saved.NOTHING) as content:
        _tell(format_saved(switch.save(home, name, wait, output.notice, content)))


def load(home: Home, wait: float, name: str) -> None:
    """Make the unnamed conversation a copy of the one called `name`, and current. Raises as `switch.load`."""
    with (
        saved.open_ended(switch.find(home, name)) as found,  # before anything changes
        open_place(Place(home, None), wait, output.notice, keep=0, replace_invalid=True) as conversation,
        saved.renewed(found) as content,
    ):
        kept = switch.load(conversation, content)
        set_current(home, None)
    _tell(format_loaded(name, content.turns, kept))
    _tell_variable()


def open_(home: Home, wait: float, name: str | None) -> None:
    """Make the conversation called `name` current, which is made if it is missing; without a name the unnamed one.

    Raises UsageMistake for a bad name, CannotCreate, StorageFailed, and SessionInUse where one is being made.
    """
    if name is not None and os.path.lexists(saved.path_of(home.saved, name)):
        disk.sync_directory(home.saved)  # whoever made it may have been killed before that
    elif name is not None:
        with open_place(Place(home, name), wait, output.notice, keep=0):
            pass
    set_current(home, name)
    output.notice("the unnamed conversation is current" if name is None else f"the conversation '{name}' is current")
    _tell_variable()


def list_(home: Home, *, as_json: bool) -> None:
    """Print all conversations, newest first. Raises InvalidData if more than one of them is unnamed."""
    entries = list_sessions(home, output.notice)
    if as_json:
        for entry in entries:
            output.show_json(entry_json(entry))
    else:
        output.show_lines(format_entries(entries))
    if any(entry.in_progress for entry in entries):
        output.notice(IN_USE)
    if not entries:
        output.notice("there is no conversation yet")
    Place(home, None).find()


def rename(home: Home, wait: float, old: str, new: str) -> None:
    """Call the conversation `old` `new`. Raises as `switch.rename`."""
    switch.rename(home, old, new, wait, output.notice)
    output.notice(f"renamed '{old}' to '{new}'")


def clean(home: Home, days: float, *, dry_run: bool) -> None:
    """Remove the copies that Mino made more than `days` ago, and print each. Raises as `sessions.clean`."""
    removed = remove_copies(home, days * 86400, output.notice, dry_run=dry_run)
    for each in removed:
        output.show(f"{each.path}: {'would remove' if dry_run else 'removed'} {count(each.bytes, 'byte')}\n")
    if not removed:
        output.notice(f"there is no copy older than {days:g} days")


def delete(home: Home, wait: float, name: str) -> None:
    """Delete the conversation called `name`. Raises as `switch.delete`."""
    if switch.delete(home, name, wait, output.notice):
        output.notice(f"'{name}' was the current conversation; the unnamed one is current now")
    output.notice(f"deleted the conversation '{name}'")


def import_(home: Home, wait: float, name: str, file: str, kind: Kind) -> None:
    """Make the conversation `name` from the messages in `file` (`-`: standard input); the rest is reported.

    Raises UsageMistake for a bad name, CannotCreate if it is taken, InvalidData if the file is not of that kind or
    makes no turn at all, and as `disk.opened` and `disk.replace` do. Nothing half-imported stays.
    """
    _refuse_taken(home, name)
    content = _read_file(file)  # without the lock: what writes into a pipe may take its time, and may be a `mino` too
    imported = READERS[kind](content, file)
    for sentence in imported.left_out:
        output.notice(f"'{file}' {sentence}")
    if not imported.turns:
        raise InvalidData(f"'{file}' has no question with an answer; nothing was imported")
    with lock(Place(home, name), wait, output.notice):
        _refuse_taken(home, name)
        saved.store_turns(home.saved, name, imported.turns)
    output.notice(f"imported {count(len(imported.turns), 'turn')} as '{name}'")
    output.hint(f"mino session open {shell_word(name)}")


def _refuse_taken(home: Home, name: str) -> None:
    if os.path.lexists(saved.path_of(home.saved, name)):
        raise CannotCreate(f"a conversation '{name}' exists already", "mino session list")


def _read_file(file: str) -> bytes:
    """All of `file`, which may be a pipe (`<(…)`), or `-` for standard input. Raises as `disk.open_readable` does."""
    if file == "-":
        return read_stdin()
    fd = disk.open_readable(file)
    try:
        return b"".join(disk.chunks(fd, file))
    finally:
        os.close(fd)


def format_saved(done: Saved) -> Iterator[str]:
    """What `save` did."""
    if done.is_new:
        yield f"saved {count(done.turns, 'turn')} as '{done.name}'"
    else:
        yield f"'{done.name}' holds this conversation already"
    if done.older:
        yield f"what '{done.name}' held is kept as '{done.older}'"


def format_started(kept: Saved | None) -> Iterator[str]:
    """What `new` did, the saved copy first."""
    yield from _format_kept(kept)
    yield "started an empty conversation"


def format_loaded(name: str, turns: int, kept: Saved | None) -> Iterator[str]:
    """What `load` did, the saved copy first."""
    yield from _format_kept(kept)
    yield f"loaded '{name}': {count(turns, 'turn')}"


def format_undone(done: Undone) -> Iterator[str]:
    """What `/undo` did, the saved copy first."""
    yield from _format_kept(done.kept)
    yield f"removed turn {done.turn.number} ({done.turn.status}): {count(done.turns, 'turn')} left"


def _format_kept(kept: Saved | None) -> Iterator[str]:
    if kept:
        yield f"the previous conversation is {'' if kept.is_new else 'already '}saved as '{kept.name}'"


def _tell_variable() -> None:
    """A person who exported MINO_SESSION would wonder why the next question goes on with another conversation."""
    if name := os.environ.get("MINO_SESSION"):
        output.notice(f"MINO_SESSION={shell_word(name)} still decides in this shell")
        output.hint("unset MINO_SESSION")


def _tell(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        output.notice(sentence)


def format_entries(entries: Sequence[Entry]) -> Iterator[str]:
    """A line for each entry: `*` before the current one, time, turns, name (`-` for none), title."""
    names = [entry.name or "-" for entry in entries]
    columns = max((width(name) for name in names if width(name) <= NAME_COLUMNS), default=1)
    for entry, name in zip(entries, names, strict=True):
        mark = "*" if entry.current else " "
        turns = "?" if entry.state == "unreadable" else str(entry.turns)
        padding = " " * (columns - width(name))
        yield f"{mark} {local_time(entry.saved)}  {turns:>5}  {name}{padding}  {_note(entry)}".rstrip()


def _note(entry: Entry) -> str:
    if entry.state == "in-use":
        return f"(in use) {entry.title}"
    if entry.state == "clean":
        return entry.title
    return f"({entry.state}: mino history verify {shell_word(entry.path)})"


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry by `schemas/session.v1.schema.json`."""
    return {
        "name": entry.name,
        "session_id": os.path.basename(entry.path).removesuffix(saved.SUFFIX) if entry.name is None else None,
        "current": entry.current,
        "turns": entry.turns,
        "title": entry.title,
        "created": rfc3339(entry.created),
        "saved": rfc3339(entry.saved),
        "bytes": entry.bytes,
        "state": entry.state,
    }
