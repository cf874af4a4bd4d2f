"""Removing turns for good, in every file of a home that can hold them (mino-history(1), `forget`)."""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mino import disk
from mino.errors import MinoError, NotFound, SessionInUse, UsageMistake
from mino.home import Home, find_session
from mino.journal import forget as journal
from mino.journal.findings import refuse_invalid
from mino.journal.forget import Removal
from mino.journal.loader import Loading
from mino.journal.lock import lock_shared
from mino.journal.order import Turn
from mino.sessions.conversation import open_conversation
from mino.sessions.reading import begins, read_session
from mino.text import Tell, one_line


class Forgotten(NamedTuple):
    """The files and where in them the turns were; `numbers` maps the ids of the session's turns to their numbers.

    `failed` files could not be changed, and may still hold a turn; `others` are files of the user's that name one.
    """

    turn_ids: set[str]
    removals: list[tuple[str, Removal]]
    numbers: dict[str, int]
    failed: list[str]
    others: list[str]


def forget(home: Home, wait: float, wanted: Sequence[str], tell: Tell, *, last: bool, dry_run: bool) -> Forgotten:
    """Remove turns from the session, the saved sessions and the recovery copies; with `dry_run` only find them.

    `wanted` names them by the number that `show` prints, by id, or by an unambiguous beginning of one, and a turn that
    is only in a saved session or a recovery copy by its id; `last` means the last turn. Each file is changed in one
    rename or not at all; a file that cannot be changed does not stop the removal from the others. Raises UsageMistake,
    NotFound, InvalidData if the session itself is damaged, and SessionInUse.
    """
    with _held(home, wait, tell, dry_run) as turns:
        session = find_session(home)
        # The session comes last: after a crash its turns still have their numbers, and the same command continues.
        files = [*_copies(home, session), *([session] if session else [])]
        turn_ids = _choose(turns, files, wanted, last)
        done = Forgotten(turn_ids, [], {turn.turn_id: turn.number for turn in turns}, [], [])
        for path in files:
            try:
                done.removals.extend((path, each) for each in journal.forget(path, turn_ids, dry_run=dry_run))
            except MinoError as failure:
                tell(failure.message)
                done.failed.append(path)
        done.others.extend(_others(home, turn_ids, files))
    return done


@contextmanager
def _held(home: Home, wait: float, tell: Tell, dry_run: bool) -> Iterator[list[Turn]]:
    """The turns of the session, while the lock is held: the writer's lock, or a reader's for a dry run."""
    if not dry_run:
        with open_conversation(home, wait, tell, keep=0) as conversation:
            yield list(Loading(conversation.journal.chunks()))
        return
    lock = lock_shared(home.lock)
    if lock is None:
        raise SessionInUse("the session is in use by another process", "try again when it has ended")
    try:
        reading = read_session(home)
        if reading:
            refuse_invalid(reading.path, reading.report)
        yield reading.turns if reading else []
    finally:
        lock.close()


def _copies(home: Home, session: str | None) -> Iterator[str]:
    """Every other file that can hold a turn: saved sessions, and recovery copies, of saved sessions too."""
    for directory in (home.saved, home.sessions):
        try:
            names = sorted(os.listdir(directory))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise disk.open_failure(directory, error) from None
        paths = (os.path.join(directory, name) for name in names if _is_ours(name))
        yield from (path for path in paths if path != session)


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
    # Each file is read once, however many beginnings of ids are given.
    ids = sorted(set().union(*map(_ids, files))) if any(name not in named for name in wanted) else []
    return {named.get(name) or _find(ids, name) for name in wanted}


def _find(ids: Sequence[str], wanted: str) -> str:
    """The only one of the sorted `ids` that begins with `wanted`, whichever file that turn is in."""
    first = bisect_left(ids, wanted.lower())
    found = [turn_id for turn_id in ids[first : first + 2] if begins(turn_id, wanted)]
    if len(found) > 1:
        raise UsageMistake(f"'{wanted}' is ambiguous: more than one turn id begins with it", "use the whole id")
    if not found:
        raise NotFound(f"there is no turn '{one_line(wanted)}'", "mino history show")
    return found[0]


def _ids(path: str) -> set[str]:
    try:
        with disk.opened(path) as fd:
            return journal.ids_in(disk.chunks(fd, path))
    except MinoError:
        return set()  # reported when the turns are removed
