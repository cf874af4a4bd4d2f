"""Which message of an answer an event is about, told from whatever index and id it has. No I/O.

llama.cpp sends no indexes, open-responses-server no item events, vLLM changed the ids on the way, and a done event may
have the index that the deltas lack. So an index counts most; then an id that was seen before; then the message that is
under way.
"""

from typing import Any


class Messages:
    """Numbers the messages 0, 1, 2 … in the order in which they begin."""

    def __init__(self) -> None:
        self._numbers: dict[int | str, int] = {}  # by index and by id
        self._indexed: set[int] = set()
        self._count = 0
        self._open: int | None = None
        self._announced = False  # the open one began with `output_item.added`

    def begin(self, index: Any, name: Any) -> None:
        """`output_item.added` came for a message."""
        if type(index) is not int or index not in self._numbers:
            self._bind(self._new(), index, name)
        self._announced = True

    def of_piece(self, index: Any, name: Any) -> int:
        """The message of a delta; without an index, a new id begins a message, unless items are announced."""
        return self._find(index, name, begins=isinstance(name, str) and not self._announced)

    def of_whole(self, index: Any, name: Any) -> int:
        """The message of a whole part or item, whose id may be another one than that of its deltas."""
        return self._find(index, name, begins=False)

    def close(self) -> None:
        """`output_item.done` came: the message under way is complete."""
        self._open = None
        self._announced = False

    def _find(self, index: Any, name: Any, begins: bool) -> int:
        number: int | None
        if type(index) is int:
            number = self._numbers.get(index)
            if number is None and self._open not in self._indexed:
                number = self._open
        else:
            number = self._numbers.get(name) if isinstance(name, str) else None
            if number is None and not begins:
                number = self._open
        return self._bind(self._new() if number is None else number, index, name)

    def _new(self) -> int:
        self._count += 1
        self._announced = False
        return self._count - 1

    def _bind(self, number: int, index: Any, name: Any) -> int:
        if type(index) is int:
            self._numbers[index] = number
            self._indexed.add(number)
        if isinstance(name, str):
            self._numbers[name] = number
        self._open = number
        return number
