"""The recovery copy, the cut, the end of an open turn; the same for every writer (mino-record(5), RECOVERY).

The order is the guarantee: the copy of the whole file is on disk before the first byte is cut, so that a crash at
any point leaves the original bytes in the file or in the copy.
"""

import errno
import os
import re
from typing import NamedTuple

from mino import disk
from mino.errors import CannotCreate, StorageFailed
from mino.journal.file import Journal
from mino.journal.findings import Report, State, refuse_invalid
from mino.journal.record import turn_end
from mino.text import now, utc_stamp

# The name of a recovery copy without its ending, of a session or of a saved one; `copy_whole` makes such names.
COPY_NAME = re.compile(r"(.+)-recovery-\d{8}T\d{6}Z-[0-9a-f]{8}")


class Recovery(NamedTuple):
    """What recovery did, or would do: `state` is the state before it, `copy` the path of the recovery copy."""

    state: State
    cut_bytes: int = 0
    copy: str | None = None
    closed_turn: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.cut_bytes or self.closed_turn)


def plan(report: Report) -> Recovery:
    """What recovery of a file with this `report` has to do; nothing for a clean one."""
    return Recovery(report.state, cut_bytes=report.bytes - report.end, closed_turn=report.open_turn)


def recover(journal: Journal, report: Report) -> Recovery:
    """Make `journal` clean: copy the whole file, cut its unfinished end, end its open turn as interrupted.

    It never repeats a request. Raises InvalidData if the file is beyond recovery, and StorageFailed or CannotCreate
    if a step fails; the file is then as it was, or cut with its copy made.
    """
    refuse_invalid(journal.path, report)
    planned = plan(report)
    copy = copy_whole(journal) if planned.cut_bytes else None
    try:
        if planned.cut_bytes:
            journal.cut(report.end)
        if planned.closed_turn:
            # The next request leaves this turn out, so it must not look later as if it could still be answered.
            journal.append(turn_end(journal.seq, planned.closed_turn, "interrupted"))
    except StorageFailed as failure:
        where = f"; the whole file is in '{copy}'" if copy else ""
        raise StorageFailed(failure.message + where, failure.hint) from None
    return Recovery(planned.state, planned.cut_bytes, copy, planned.closed_turn)


def copy_whole(journal: Journal) -> str:
    """Make the recovery copy of the whole file beside it, private and synced; returns its path.

    Raises CannotCreate or StorageFailed; a copy that is not whole is removed.
    """
    stem = journal.path.removesuffix(".jsonl")
    copy = f"{stem}-recovery-{utc_stamp(now())}-{os.urandom(4).hex()}.jsonl"
    try:
        if os.path.lexists(copy):
            raise CannotCreate(f"cannot create '{copy}': {os.strerror(errno.EEXIST)}")
        # Not `create`: half a copy of a process that died would bear the name of a whole one.
        disk.replace(copy, journal.chunks(), journal.owner)
    except (CannotCreate, StorageFailed) as failure:
        raise type(failure)(f"{failure.message}; '{journal.path}' is unchanged", failure.hint) from None
    return copy
