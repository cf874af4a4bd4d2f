"""Removing turns for good, in every file of a home that can hold them (mino-history(1), `forget`)."""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, suppress
from typing import NamedTuple

from mino import disk
from mino.errors import MinoError, NotFound, UsageMistake
from mino.home import Home
from mino.journal import forget as journal
from mino.journal.findings import refuse_invalid
from mino.journal.forget import Removal
from mino.journal.order import Turn
from mino.sessions.conversation import Conversation, lock
from mino.sessions.place import Place, find, place_of
from mino.sessions.reading import ID_DIGITS, format_some, is_id_part, read_session
from mino.text import Tell, one_line, say_nothing


class Forgotten(NamedTuple):
    """The files and where in them the turns were; `numbers` maps the ids of the conversation's turns to their numbers.

    `failed` files could not be changed, and may still hold a turn; `others` are files of the user's that name one.
    """

    turn_ids: set[str]
    removals: list[tuple[str, Removal]]
    numbers: dict[str, int]
    failed: list[str]
    others: list[str]


class _Found(NamedTuple):
    """Where the turns are: `holders` are the conversations whose locks guard those files."""

    done: Forgotten
    holders: list[Place]
    failures: list[str]
    files: list[str]


def forget(
    home: Home, session: str | None, wait: float, wanted: Sequence[str], tell: Tell, *, last: bool, dry_run: bool
) -> Forgotten:
    """Remove turns from every conversation and recovery copy; with `dry_run` only find them.

    `wanted` names them by the number that `show` prints for the conversation `session` (None: the current one), by id,
    or by an unambiguous beginning or end of one; `last` means the last turn of that conversation. Each file is changed
    in one rename or not at all; a file that cannot be changed does not stop the removal from the others.

    Raises UsageMistake, NotFound, InvalidData if the conversation itself is damaged, and SessionInUse; then nothing was
    changed.
    """
    if dry_run:
        found = _look(home, session, wanted, tell, last)
        return _finish(home, found, tell)
    while True:
        before = _look(home, session, wanted, tell, last)
        with ExitStack() as stack:
            for place in before.holders:
                stack.enter_context(lock(place, wait, tell))
            chosen, path = find(home, session, say_nothing)
            if path and chosen in before.holders:
                Conversation(chosen, path, tell, keep=0).close()  # recovers it, as every writer does
            found = _look(home, session, wanted, say_nothing, last)
            # While this process waited for a lock, a turn may have got into another conversation.
            if set(found.holders) <= set(before.holders) and found.done.turn_ids == before.done.turn_ids:
                _remove(home, found.done, tell)
                return _finish(home, found, tell)


def _look(home: Home, session: str | None, wanted: Sequence[str], tell: Tell, last: bool) -> _Found:
    reading = read_session(home, session, tell)
    if reading:
        refuse_invalid(reading.path, reading.report)
    turns = reading.turns if reading else []
    files = list(_files(home))
    turn_ids = _choose(turns, files, wanted, last)
    done = Forgotten(turn_ids, [], {turn.turn_id: turn.number for turn in turns}, [], [])
    failures, holders = [], set(_writing(home, turn_ids))
    # The conversation comes last: after a crash its turns still have their numbers, and the same command continues.
    for path in sorted(files, key=lambda path: bool(reading and path == reading.path)):
        try:
            removals = journal.forget(path, turn_ids, "", dry_run=True)
        except MinoError as failure:
            failures.append(failure.message)
            done.failed.append(path)
            continue
        done.removals.extend((path, each) for each in removals)
        if removals and (place := place_of(home, path)):
            holders.add(place)
    return _Found(done, sorted(holders, key=lambda place: os.fsencode(place.owner)), failures, files)


def _remove(home: Home, done: Forgotten, tell: Tell) -> None:
    for path in dict.fromkeys(path for path, _ in done.removals):
        place = place_of(home, path)
        try:
            journal.forget(path, done.turn_ids, place.owner if place else "", dry_run=False)
        except MinoError as failure:
            tell(failure.message)
            done.removals[:] = [(each, removal) for each, removal in done.removals if each != path]
            done.failed.append(path)


def _finish(home: Home, found: _Found, tell: Tell) -> Forgotten:
    for message in found.failures:
        tell(message)
    found.done.others.extend(_others(home, found.done.turn_ids, found.files))
    return found.done


def _files(home: Home) -> Iterator[str]:
    """Every file that can hold a turn: conversations, and recovery copies of them."""
    for directory in (home.saved, home.sessions):
        yield from (path for path in _paths(directory) if _is_ours(os.path.basename(path)))


def _writing(home: Home, turn_ids: Set[str]) -> Iterator[Place]:
    """The conversations of which a copy with one of the turns is being written, or was when its writer was killed."""
    named_in = journal.naming(turn_ids)
    for path in (*_paths(home.saved), *_paths(home.sessions)):
        temporary = disk.TEMPORARY.fullmatch(os.path.basename(path))
        if temporary:
            with suppress(MinoError):  # it has got its name meanwhile
                if _names(path, named_in):
                    yield Place(home, temporary[1] or None)


def _paths(directory: str) -> list[str]:
    try:
        return [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise disk.open_failure(directory, error) from None


def _is_ours(name: str) -> bool:
    """Whether a file of Mino's can have that name; with a dot before it, it is an editor's, such as a lock link."""
    return name.endswith(".jsonl") and not name.startswith(".")


def _others(home: Home, turn_ids: Set[str], files: Sequence[str]) -> Iterator[str]:
    """Files under the home, but for `files`, that name one of the turns: the user's, who may have moved one there."""
    named_in = journal.naming(turn_ids)
    for folder, folders, names in os.walk(home.path):
        folders.sort()
        for path in (os.path.join(folder, name) for name in sorted(names)):
            with suppress(MinoError):  # a link, a pipe, a file that others keep to themselves
                if path not in files and _names(path, named_in):
                    yield path


def _names(path: str, named_in: Callable[[bytes], str | None]) -> bool:
    with disk.opened(path) as fd:
        end = b""  # of the chunk before, because an id may begin in it
        for chunk in disk.chunks(fd, path):
            if named_in(end + chunk):
                return True
            end = chunk[-31:]
    return False


def _choose(turns: Sequence[Turn], files: Sequence[str], wanted: Sequence[str], last: bool) -> set[str]:
    """The ids of the turns to forget."""
    if last:
        if not turns:
            raise NotFound("there is no turn to forget")
        return {turns[-1].turn_id}
    named = {str(turn.number): turn.turn_id for turn in turns} | {turn.turn_id: turn.turn_id for turn in turns}
    # Each file is read once, however many parts of ids are given.
    ids = sorted(set().union(*map(_ids, files))) if any(name not in named for name in wanted) else []
    return {named.get(name) or _find(ids, name) for name in wanted}


def _find(ids: Sequence[str], wanted: str) -> str:
    """The only one of the sorted `ids` that begins or ends with `wanted`, whichever file that turn is in."""
    part = wanted.lower()
    found: set[str] = set()
    if is_id_part(part):
        found.update(ids[bisect_left(ids, part) : bisect_left(ids, part + "g")])  # g comes after every digit of an id
        if len(part) < ID_DIGITS:
            found.update(turn_id for turn_id in ids if turn_id.endswith(part))
    if len(found) > 1:
        ambiguous = f"'{wanted}' is ambiguous: turns {format_some(sorted(found))} begin or end with it"
        raise UsageMistake(ambiguous, "use the whole id")
    if not found:
        raise NotFound(f"there is no turn '{one_line(wanted)}'", "mino history show")
    return found.pop()


def _ids(path: str) -> set[str]:
    try:
        with disk.opened(path) as fd:
            return journal.ids_in(disk.chunks(fd, path))
    except MinoError:
        return set()  # reported when the turns are removed
