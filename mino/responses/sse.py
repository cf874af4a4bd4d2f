"""Bytes → server-sent events, by the WHATWG rules (HTML Living Standard, section 9.2.6). No I/O.

Lines end with LF, CR or CRLF; pieces may be cut anywhere, inside a character or between CR and LF. One leading byte
order mark is dropped. Only LF and CR end a line: U+2028, U+0085 and friends are text. Beyond the standard, `end` gives
the last event even if its blank line is missing; the caller must check that it is whole.
"""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: the `event:` name, empty if there was none, and the `data:` lines joined by LF, as UTF-8 bytes."""

    name: str
    data: bytes


class Decoder:
    """Turns pieces of a stream into events; any way of cutting the stream gives the same ones."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []  # pieces since the last blank line; joined only when one comes
        self._after_cr = False
        self._started = False

    def feed(self, piece: bytes) -> list[Event]:
        """The events that `piece` completes."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if b"\r" in piece:
            # A CR at the very end ends the line at once: waiting for its LF would delay the event until the next.
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not self._started:
            piece = b"".join([*self._unfinished, piece])
            self._unfinished = [piece]
            if len(piece) < len(_BOM) and _BOM.startswith(piece):
                return []
            self._started = True
            self._unfinished = []
            piece = piece.removeprefix(_BOM)
        if not piece:
            return []
        whole = b"\n\n" in piece or (piece[0] == 10 and self._unfinished and self._unfinished[-1].endswith(b"\n"))
        self._unfinished.append(piece)
        if not whole:
            return []
        blocks = b"".join(self._unfinished).split(b"\n\n")
        rest = blocks.pop()
        self._unfinished = [rest] if rest else []
        return [event for event in map(_event, blocks) if event is not None]

    def end(self) -> list[Event]:
        """The last event, if the stream ended without the event's blank line; it may be cut short."""
        event = _event(b"".join(self._unfinished))
        self._unfinished = []
        return [] if event is None else [event]


def _event(block: bytes) -> Event | None:
    """The event of the lines between two blank lines; None if they hold no data, as comments and pings do."""
    head, newline, rest = block.partition(b"\n")
    if not newline and head.startswith(b"data: "):
        return Event("", head[6:])
    if head.startswith(b"event: ") and rest.startswith(b"data: ") and b"\n" not in rest:
        return Event(head[7:].decode("utf-8", "replace"), rest[6:])  # most servers send this; the rules are below
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return Event(name.decode("utf-8", "replace"), b"\n".join(data)) if data else None
