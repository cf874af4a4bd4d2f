"""`mino history forget`: take turns out for good, wherever in the home they are kept."""

import os
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress

from mino import terminal
from mino.commands.show import begins, pick
from mino.conversation import open_conversation, read_session
from mino.errors import MinoError, NotThere, SessionInUse, StorageFailed, UsageMistake, shell_word
from mino.home import Home, find_session
from mino.journal.file import chunks, open_failure, open_regular
from mino.journal.forget import Removal, ids_in
from mino.journal.forget import forget as forget_in
from mino.journal.loader import Loading
from mino.journal.lock import lock_shared
from mino.journal.order import Turn
from mino.journal.recovery import refuse_invalid


def forget(home: Home, wait: float, wanted: Sequence[str], *, last: bool, dry_run: bool) -> None:
    """Remove turns from the session, the saved sessions and the recovery copies; print where each was.

    `wanted` names them: by the number that `show` prints, by id, or by an unambiguous beginning of one; a turn that
    is only in a saved session or a recovery copy by its id. Each file is changed in one rename or not at all; one
    that cannot be does not keep the turn in the others. Raises UsageMistake, NotThere, InvalidData where the session
    itself is damaged, SessionInUse, and StorageFailed where a file still holds a turn.
    """
    if bool(wanted) == last:
        raise UsageMistake("name the turns to forget, or give --last", "mino history show")
    with _held(home, wait, dry_run) as turns:
        session = find_session(home)
        # The session last: after a crash on the way its turns still have their numbers, and the same command goes on.
        files = [*_copies(home, session), *([session] if session else [])]
        turn_ids = _choose(turns, files, wanted, last)
        done: list[tuple[str, Removal]] = []
        failed: list[str] = []
        for path in files:
            try:
                done += ((path, removal) for removal in forget_in(path, turn_ids, dry_run=dry_run))
            except MinoError as failure:
                terminal.notice(failure.message)
                failed.append(path)
        others = list(_others(home, turn_ids))
    verb = "would remove" if dry_run else "removed"
    numbers = {turn.turn_id: f"{turn.number} " for turn in turns}
    terminal.show_lines(
        f"{path}:{removal.first_line}-{removal.last_line}: "
        f"{verb} turn {numbers.get(removal.turn_id, '')}{removal.turn_id}"
        for path, removal in done
    )
    for path in others:
        terminal.notice(f"'{path}' is not a file of Mino's, and it still names a turn")
        terminal.hint(f"rm {shell_word(path)}")
    if failed:
        still = ", ".join(f"'{path}'" for path in failed)
        raise StorageFailed(f"may still hold a turn: {still}", f"mino history forget {' '.join(sorted(turn_ids))}")


@contextmanager
def _held(home: Home, wait: float, dry_run: bool) -> Iterator[list[Turn]]:
    """The turns of the session, while the lock is held: as the one writer, for a dry run as a reader."""
    if not dry_run:
        with open_conversation(home, wait, keep=0) as conversation:
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
            raise open_failure(directory, error) from None
        paths = (os.path.join(directory, name) for name in names if name.endswith(".jsonl"))
        yield from (path for path in paths if path != session)


def _others(home: Home, turn_ids: Set[str]) -> Iterator[str]:
    """Files beside Mino's own that name one of the turns, an editor's backup say. They are the user's, and stay."""
    for directory in (home.saved, home.sessions):
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                    with suppress(OSError), open(entry.path, "rb") as file:
                        data = file.read()
                        if any(turn_id.encode() in data for turn_id in turn_ids):
                            yield entry.path


def _choose(turns: Sequence[Turn], files: Sequence[str], wanted: Sequence[str], last: bool) -> set[str]:
    """The ids of the turns that are meant."""
    if last:
        if not turns:
            raise NotThere("there is no turn to forget")
        return {turns[-1].turn_id}
    return {_find(turns, files, name) for name in wanted}


def _find(turns: Sequence[Turn], files: Sequence[str], wanted: str) -> str:
    """The id of the turn `wanted`; a beginning must name one turn alone, in whatever file that is."""
    missing, found = None, set()
    try:
        turn = pick(turns, wanted)
        if wanted in (str(turn.number), turn.turn_id):
            return turn.turn_id
        found.add(turn.turn_id)
    except NotThere as failure:
        missing = failure
    found |= {turn_id for path in files for turn_id in _ids(path) if begins(turn_id, wanted)}
    if len(found) > 1:
        raise UsageMistake(f"'{wanted}' is the beginning of more than one turn", "name it by its whole id")
    if missing and not found:
        raise missing
    return found.pop()


def _ids(path: str) -> set[str]:
    try:
        fd = open_regular(path, os.O_RDONLY)
    except MinoError:
        return set()  # told when the turns are taken out
    try:
        return ids_in(chunks(fd, path))
    finally:
        os.close(fd)
