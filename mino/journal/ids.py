"""Ids of turns and sessions: new ones, the time in them, and those that a file already has.

A new id is a UUID of version 7 (RFC 9562), so it contains the time when it was made (mino-record(5), Ids).
"""

import os
from datetime import UTC, datetime

from mino.text import now

_FIRST_TIME = datetime(2020, 1, 1, tzinfo=UTC)
_LAST_TIME = datetime(2200, 1, 1, tzinfo=UTC)
_RECENT = 16_384  # ids in a block; one growing array would be moved, and be in memory twice


def new_id() -> str:
    """A new id for a turn or a session: a UUID of version 7 (RFC 9562 section 5.7) as 32 hex digits.

    A clock that is before 1970 or beyond 48 bits (the year 10889) makes an id of the first or the last millisecond: an
    id with a sign or a digit more would make the conversation invalid, or its file none of Mino's.
    """
    milliseconds = min(max(int(now() * 1000), 0), (1 << 48) - 1)
    random = int.from_bytes(os.urandom(10))
    high = milliseconds << 16 | 0x7000 | random >> 68
    low = 0x8000_0000_0000_0000 | random & 0x3FFF_FFFF_FFFF_FFFF
    return f"{high:016x}{low:016x}"


def id_time(identifier: str) -> datetime | None:
    """When `identifier` was made, to the millisecond; None if it is not a plausible UUID of version 7."""
    if identifier[12] != "7" or identifier[16] not in "89ab":
        return None
    seconds = int(identifier[:12], 16) / 1000
    if not _FIRST_TIME.timestamp() <= seconds < _LAST_TIME.timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)


class SeenIds:
    """The ids that came before. Mino's own ids rise with time, so 16 bytes and one comparison are enough for each."""

    def __init__(self) -> None:
        self._highest = ""
        self._recent: list[bytes] = []
        self._blocks: list[bytes] = []  # the ids before them, joined
        self._all: set[bytes] | None = None  # set once an id does not rise: it was edited, or a clock was set back

    def add(self, turn_id: str) -> bool:
        """Add `turn_id`, 32 hex digits; returns whether it is new."""
        identifier = bytes.fromhex(turn_id)
        if self._all is None:
            if turn_id > self._highest:
                self._highest = turn_id
                self._recent.append(identifier)
                if len(self._recent) == _RECENT:
                    self._blocks.append(b"".join(self._recent))
                    self._recent.clear()
                return True
            self._all = {block[start : start + 16] for block in self._blocks for start in range(0, len(block), 16)}
            self._all.update(self._recent)
            self._blocks.clear()
        if identifier in self._all:
            return False
        self._all.add(identifier)
        return True
