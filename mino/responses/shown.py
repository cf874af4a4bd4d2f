"""The text of an answer as it was shown, by message and part, and the message that an event is about. No I/O."""

from typing import Any

from mino.responses.values import join_halves
from mino.text import whole_characters

REFUSED = "Model refused: "
TEXT, REFUSAL = "output_text", "refusal"

Part = tuple[int, int, str]  # the number of the message it belongs to, its content index, its kind: TEXT or REFUSAL


class Shown:
    """Takes pieces, and whole texts that repeat or continue them, and returns the new text.

    The results of the methods, joined, are `text`, except for `Model refused: `, which is shown and not stored.
    """

    def __init__(self) -> None:
        self.refusal = False
        self._before_refusal = 0  # pieces
        self._pieces: list[str] = []
        self._parts: dict[Part, list[str]] = {}
        self._part: Part | None = None
        self._of_part: list[str] = []  # the pieces of `_part`
        self._half = ""  # a high surrogate at the end of `_part` whose low half may come with the next piece

    @property
    def text(self) -> str:
        """All that was shown: one message a paragraph, a newline between two of them."""
        return "".join(self._pieces)

    @property
    def whole_text(self) -> str:
        """All that was shown, with `Model refused: `, which `text` is without."""
        if not self.refusal:
            return self.text
        return "".join([*self._pieces[: self._before_refusal], REFUSED, *self._pieces[self._before_refusal :]])

    def more(self, text: str) -> str:
        """A clean piece of the part that had the last one: only the text is new."""
        if self._half:
            return self._release() + self.more(text)
        self._of_part.append(text)
        self._pieces.append(text)
        return text

    def piece(self, part: Part, text: str) -> str:
        """A piece of `part`. Halves of a character that arrive in two pieces become one."""
        before = self._release() if part != self._part else ""
        text, half = join_halves(self._half + text)
        self._half = ""
        if text or half:
            before += self._turn_to(part)
        self._half = half
        return before + self._put(text)

    def whole(self, part: Part, text: str) -> str:
        """All of `part`, of which some or all may have been shown before."""
        return self._catch_up([(part, text)], self._parts.get(part, []))

    def whole_message(self, message: int, texts: list[tuple[str, str]]) -> str:
        """All of `message`: the kind and text of its parts."""
        shown = [piece for part, pieces in self._parts.items() if part[0] == message for piece in pieces]
        return self._catch_up([((message, n, kind), text) for n, (kind, text) in enumerate(texts)], shown)

    def whole_answer(self, messages: list[list[tuple[str, str]]]) -> str:
        """All messages of the answer. Their ids may differ from those in the stream; their order is the same."""
        numbers = list(dict.fromkeys(message for message, _, _ in self._parts))
        numbers += range(max(numbers, default=0) + 1, max(numbers, default=0) + 1 + len(messages))
        texts = [
            ((number, n, kind), text)
            for number, parts in zip(numbers, messages, strict=False)
            for n, (kind, text) in enumerate(parts)
        ]
        shown = [piece for pieces in self._parts.values() for piece in pieces]
        return self._catch_up(texts, shown) + self._release()

    def _catch_up(self, texts: list[tuple[Part, str]], pieces: list[str]) -> str:
        """The part of `texts` beyond the `pieces` shown; nothing if they differ, because shown text cannot change."""
        texts = [(part, whole_characters(text)) for part, text in texts]
        shown = "".join(pieces)
        if not "".join(text for _, text in texts).startswith(shown):
            return ""
        skip = len(shown)
        added = ""
        for part, text in texts:
            rest = text[skip:]
            skip = max(0, skip - len(text))
            if rest:
                if self._part and part[0] == self._part[0]:
                    self._half = ""  # the whole text has the character that it was half of
                added += self._release() + self._turn_to(part) + self._put(rest)
        return added

    def _turn_to(self, part: Part) -> str:
        """Make `part` the current one; a newline goes between two messages, and before a refusal."""
        message, _, kind = part
        refuses = kind == REFUSAL and not self.refusal
        begun = bool(self._pieces)
        other = self._part is not None and message != self._part[0]
        self._part = part
        self._of_part = self._parts.setdefault(part, [])
        self.refusal = self.refusal or refuses
        if begun and (other or refuses):
            self._pieces.append("\n")
        if refuses:
            self._before_refusal = len(self._pieces)
        return "\n" * (begun and (other or refuses)) + REFUSED * refuses

    def _put(self, text: str) -> str:
        if text:
            self._of_part.append(text)
            self._pieces.append(text)
        return text

    def _release(self) -> str:
        """Give up waiting for the other half of a character."""
        if not self._half:
            return ""
        self._half = ""
        return self._put("\ufffd")


class Messages:
    """Numbers the messages 0, 1, 2 … in the order in which they begin.

    llama.cpp sends no indexes, open-responses-server no item events, vLLM changed the ids on the way, and a done event
    may have the index that the deltas lack. So an index counts most; then an id that was seen before; then the message
    that has begun and not ended. The id of a message that has ended may be that of the next one too.
    """

    def __init__(self) -> None:
        self._numbers: dict[int | str, int] = {}  # by index and by id
        self._indexed: set[int] = set()
        self._closed: set[int | None] = set()
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
        """The message of a whole part, whose id may differ from that of its deltas; it may come after the item."""
        return self._find(index, name, begins=False, closed=True)

    def of_item(self, index: Any, name: Any) -> int:
        """The message of a whole item, whose id may differ from that of its deltas."""
        return self._find(index, name, begins=False)

    def close(self) -> None:
        """`output_item.done` came: the message under way is complete."""
        self._closed.add(self._open)
        self._open = None
        self._announced = False

    def _find(self, index: Any, name: Any, begins: bool, closed: bool = False) -> int:
        number: int | None
        if type(index) is int:
            number = self._numbers.get(index)
            if number is None and self._open not in self._indexed:
                number = self._open
        else:
            number = self._numbers.get(name) if isinstance(name, str) else None
            number = number if closed or number not in self._closed else None
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
