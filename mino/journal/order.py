"""Records → turns: order, turn ids and seq, and how checking continues after a bad line (mino-record(5), FINDINGS)."""

from dataclasses import dataclass
from typing import Any, Literal

from mino.journal.findings import BadLine
from mino.journal.ids import SeenIds
from mino.journal.record import AssistantMessage, EndStatus, Item, Record, UserMessage
from mino.text import quote

TurnStatus = Literal["completed", "failed", "cancelled", "interrupted", "open"]


@dataclass(slots=True)
class Turn:
    """One question and its outcome; `first_line` and `last_line` count from 1, `byte` is the offset of the first.

    `input`, `output`, `model` and `usage` are as in the records, None where they are not there.
    """

    number: int
    turn_id: str
    user: str
    first_line: int
    last_line: int
    byte: int
    assistant: str | None = None
    output: list[Item] | None = None
    input: list[Item] | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    status: TurnStatus = "open"


class Order:
    """The rules between records, which it takes one at a time.

    `flaw` is the fault of the last record, or None; the caller that reads it resets it. With `go_on`, checking
    continues after a flaw so that one fault makes one finding: see `_several` and `certain`. Without it a flawed
    record does not change `turn`.
    """

    def __init__(self, *, go_on: bool) -> None:
        self._go_on = go_on
        self.turn: Turn | None = None
        self.flaw: BadLine | None = None
        self.turns = 0
        # The seq that must come next; None after a bad line, which may have taken one or none: see `_several`.
        self._next: int | None = 1
        self._several: tuple[range, ...] = ()
        # False after an unreadable line, and after a record in the wrong place: it is not known what the record was, so
        # the order is not checked until a turn begins or ends.
        self.certain = True
        self._ids = SeenIds()

    @property
    def next_seq(self) -> int:
        """The seq of the next record; exact while no line was bad."""
        return self._expected()[0].start

    def _expected(self) -> tuple[range, ...]:
        return self._several if self._next is None else (range(self._next, self._next + 1),)

    def skip_line(self) -> None:
        """Pass over a bad line, which may have been any record, and may have taken a seq."""
        self._several = tuple(range(seqs.start, seqs.stop + 1) for seqs in self._expected())
        self._next = None
        self.certain = False

    def take(self, record: Record, line: int, byte: int) -> Turn | None:
        """Take the next record, at `line` and `byte`; returns the turn that it ends, if it ends one."""
        before, ended = self.turn, None
        seq = record["seq"]
        if seq == self._next:
            self._next = seq + 1
        else:
            self.flaw = self._take_other_seq(seq)
            if self.flaw and not self._go_on:
                return None
        if record["type"] == "user_message":
            self._begin(record, line, byte)
        elif record["type"] == "assistant_message":
            self._answer(record, line)
        else:
            ended = self._end(record["turn_id"], record["status"], line)
        if self.flaw and not self._go_on:
            self.turn = before
        return ended

    def _take_other_seq(self, seq: int) -> BadLine | None:
        expected = self._expected()
        if any(seq in seqs for seqs in expected):
            self._next = seq + 1
            return None
        first = expected[0]
        # Either count may continue: a record was lost, or this one number is wrong.
        self._next, self._several = None, (range(first.start + 1, first.stop + 1), range(seq + 1, seq + 2))
        return BadLine("bad-seq", f"found seq {quote(seq)}, expected {' or '.join(map(_quote_range, expected))}")

    def _begin(self, record: UserMessage, line: int, byte: int) -> None:
        turn_id = record["turn_id"]
        certain, self.certain = self.certain, True
        if self.turn and certain:
            self._find("bad-order", f"found a user_message, expected the end of turn {self.turn.turn_id} first")
        if not self._ids.add(turn_id):
            self._find("reused-turn-id", f"found the turn id {turn_id} again, expected a new one")
        self.turns += 1
        self.turn = Turn(self.turns, turn_id, record["text"], line, line, byte, input=record.get("input"))

    def _answer(self, record: AssistantMessage, line: int) -> None:
        turn, turn_id = self.turn, record["turn_id"]
        if not self.certain:
            return
        if turn is None:
            self._find("bad-order", "found an assistant_message, expected a user_message first")
        elif turn.turn_id != turn_id:
            self._find("bad-order", f"found turn id {turn_id}, expected {turn.turn_id}: that turn has not ended")
        elif turn.assistant is not None:
            self._find("bad-order", "found a second assistant_message, expected the end of the turn")
        else:
            turn.assistant, turn.output, turn.last_line = record["text"], record.get("output"), line
            turn.model, turn.usage = record.get("model"), record.get("usage")

    def _end(self, turn_id: str, status: EndStatus, line: int) -> Turn | None:
        turn, certain = self.turn, self.certain
        self.turn, self.certain = None, True
        if not certain:
            if turn is None or turn.turn_id != turn_id:
                return None
            turn.status, turn.last_line = status, line
            return turn
        if turn is None:
            self._find("bad-order", "found a turn_end, expected a user_message first")
        elif turn.turn_id != turn_id:
            self._find("bad-order", f"found turn id {turn_id}, expected {turn.turn_id}: that turn has not ended")
        elif status == "completed" and turn.assistant is None:
            self._find("bad-order", "found turn_end completed, expected an assistant_message first")
        elif status in ("failed", "cancelled") and turn.assistant is not None:
            self._find("bad-order", f"found turn_end {status} after an answer, expected completed or interrupted")
        else:
            turn.status, turn.last_line = status, line
            return turn
        return None

    def _find(self, code: str, message: str) -> None:
        """Note a record that cannot be in this place; its turn is not known until one begins or ends."""
        self.flaw = self.flaw or BadLine(code, message)
        self.certain = False


def _quote_range(seqs: range) -> str:
    return quote(seqs.start) if len(seqs) == 1 else f"{quote(seqs.start)} to {quote(seqs.stop - 1)}"
