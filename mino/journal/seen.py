"""The turn ids of a file, in little memory: a year of questions must not need a hundred megabytes to be checked."""


class SeenIds:
    """Which ids came before. Mino's own ids rise with time, and then 16 bytes an id and one comparison are enough."""

    def __init__(self) -> None:
        self._highest = ""
        self._rising = bytearray()
        self._all: set[bytes] | None = None  # only once an id came that did not rise: by hand, or a clock set back

    def add(self, turn_id: str) -> bool:
        """Add `turn_id`, 32 hex digits; whether it is new."""
        identifier = bytes.fromhex(turn_id)
        if self._all is None:
            if turn_id > self._highest:
                self._highest = turn_id
                self._rising += identifier
                return True
            rising = bytes(self._rising)
            self._all = {rising[start : start + 16] for start in range(0, len(rising), 16)}
            self._rising.clear()
        if identifier in self._all:
            return False
        self._all.add(identifier)
        return True
