"""Records → turns: order, turn ids and seq (spec section 3), and how checking goes on after a bad line (section 4)."""

from dataclasses import dataclass
from typing import Literal

from mino.journal.findings import BadLine
from mino.journal.record import EndStatus, Item, Record

TurnStatus = Literal["completed", "failed", "cancelled", "interrupted", "open"]


@dataclass(slots=True)
class Turn:
    """One question and what became of it; `lines` are its first and last line in the file, `byte` the first's place."""

    number: int
    turn_id: str
    user: str
    first_line: int
    last_line: int
    byte: int
    assistant: str | None = None
    output: list[Item] | None = None
    status: TurnStatus = "open"


class Order:
    """The rules that hold between records, fed one record at a time.

    After each `take`, `flaw` is what was wrong with that record, or None. With `go_on`, checking goes on after a flaw
    so that one damage makes one finding: see `expected` and `certain`. Without it a flawed record changes nothing.
    """

    def __init__(self, *, go_on: bool) -> None:
        self._go_on = go_on
        self.turn: Turn | None = None
        self.flaw: BadLine | None = None
        self.turns = 0
        # The seqs that may come next; several after a bad line, which may have taken one or none.
        self.expected: tuple[range, ...] = (range(1, 2),)
        # False after an unreadable line: what it was is not known, so nothing is out of order until a turn
        # begins or ends.
        self.certain = True
        self._ids: set[bytes] = set()

    @property
    def next_seq(self) -> int:
        """The seq of the next record; exact while no line was bad."""
        return self.expected[0].start

    def skip_line(self) -> None:
        """A bad line stands here: it may have been any record, and may have taken a seq."""
        self.expected = tuple(range(seqs.start, seqs.stop + 1) for seqs in self.expected)
        self.certain = False

    def take(self, record: Record, line: int, byte: int) -> Turn | None:
        """Take the next record, at `line` and `byte`; the turn that it ends, if it ends one."""
        before, ended = self.turn, None
        self.flaw = self._take_seq(record["seq"])
        if self.flaw and not self._go_on:
            return None
        if record["type"] == "user_message":
            self._begin(record["turn_id"], record["text"], line, byte)
        elif record["type"] == "assistant_message":
            self._answer(record["turn_id"], record["text"], record.get("output"), line)
        else:
            ended = self._end(record["turn_id"], record["status"], line)
        if self.flaw and not self._go_on:
            self.turn = before
        return ended

    def _take_seq(self, seq: int) -> BadLine | None:
        if any(seq in seqs for seqs in self.expected):
            self.expected = (range(seq + 1, seq + 2),)
            return None
        first = self.expected[0]
        wanted = " or ".join(str(seqs.start) for seqs in self.expected)
        # Either count may be the one that goes on: a record was lost, or this one number is wrong.
        self.expected = (range(first.start + 1, first.stop + 1), range(seq + 1, seq + 2))
        return BadLine("bad-seq", f"found seq {str(seq)[:40]}, expected {wanted}")

    def _begin(self, turn_id: str, text: str, line: int, byte: int) -> None:
        if self.turn and self.certain:
            self._find("bad-order", f"found a user_message, expected the end of turn {self.turn.turn_id} first")
        self.certain = True
        identifier = bytes.fromhex(turn_id)  # a third of the string's memory, for as many turns as the file has
        if identifier in self._ids:
            self._find("reused-turn-id", f"found the turn id {turn_id} again, expected a new one")
        self._ids.add(identifier)
        self.turns += 1
        self.turn = Turn(self.turns, turn_id, text, line, line, byte)

    def _answer(self, turn_id: str, text: str, output: list[Item] | None, line: int) -> None:
        turn = self.turn
        if not self.certain:
            return
        if turn is None:
            self._lose("found an assistant_message, expected a user_message first")
        elif turn.turn_id != turn_id:
            self._lose(f"found turn id {turn_id}, expected {turn.turn_id}: that turn has not ended")
        elif turn.assistant is not None:
            self._find("bad-order", "found a second assistant_message, expected the end of the turn")
        else:
            turn.assistant, turn.output, turn.last_line = text, output, line

    def _end(self, turn_id: str, status: EndStatus, line: int) -> Turn | None:
        turn, certain = self.turn, self.certain
        self.turn, self.certain = None, True
        if not certain:
            return None
        if turn is None:
            self._find("bad-order", "found a turn_end, expected a user_message first")
        elif turn.turn_id != turn_id:
            self._lose(f"found turn id {turn_id}, expected {turn.turn_id}: that turn has not ended")
        elif status == "completed" and turn.assistant is None:
            self._find("bad-order", "found turn_end completed, expected an assistant_message first")
        elif status in ("failed", "cancelled") and turn.assistant is not None:
            self._find("bad-order", f"found turn_end {status} after an answer, expected completed or interrupted")
        else:
            turn.status, turn.last_line = status, line
            return turn
        return None

    def _lose(self, message: str) -> None:
        """A record that cannot belong here; whose it is stays open until a turn begins or ends."""
        self._find("bad-order", message)
        self.certain = False

    def _find(self, code: str, message: str) -> None:
        self.flaw = self.flaw or BadLine(code, message)
