"""The turn ids of a file, in little memory: a year of questions must not need a hundred megabytes to be checked."""

_RECENT = 16_384  # ids; blocks of them, for one growing array would be moved, and be in memory twice


class SeenIds:
    """Which ids came before. Mino's own ids rise with time, and then 16 bytes an id and one comparison are enough."""

    def __init__(self) -> None:
        self._highest = ""
        self._recent: list[bytes] = []
        self._blocks: list[bytes] = []  # the ids before them, joined
        self._all: set[bytes] | None = None  # only once an id came that did not rise: by hand, or a clock set back

    def add(self, turn_id: str) -> bool:
        """Add `turn_id`, 32 hex digits; whether it is new."""
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
