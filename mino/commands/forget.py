"""`mino history forget`: remove turns for good, and say where each was."""

from collections.abc import Sequence

from mino.errors import StorageFailed, UsageMistake
from mino.home import Home
from mino.sessions import forget as sessions
from mino.terminal import output
from mino.text import shell_word


def forget(home: Home, session: str | None, wait: float, wanted: Sequence[str], *, last: bool, dry_run: bool) -> None:
    """Remove the turns in `wanted`, or the last one, from every file of the home, and print where each was.

    Raises UsageMistake, as `sessions.forget`, and StorageFailed if a file still holds a turn.
    """
    if bool(wanted) == last:
        raise UsageMistake("name the turns to forget, or give --last", "mino history show")
    done = sessions.forget(home, session, wait, wanted, output.notice, last=last, dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    for path, removal in done.removals:
        number = f"{done.numbers[removal.turn_id]} " if removal.turn_id in done.numbers else ""
        lines = f"{removal.first_line}-{removal.last_line}"
        output.show(f"{path}:{lines}: {verb} turn {number}{removal.turn_id}\n")
    for path in done.others:
        output.notice(f"'{path}' is not a file of Mino's, and it still names a turn")
        output.hint(f"rm {shell_word(path)}")
    if done.failed:
        still = ", ".join(f"'{path}'" for path in done.failed)
        raise StorageFailed(f"may still hold a turn: {still}", f"mino history forget {' '.join(sorted(done.turn_ids))}")
