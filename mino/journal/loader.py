"""The strict loader of every command: bytes → turns, state and findings, in one pass and with no I/O of its own.

loading = Loading(chunks)
completed = [turn for turn in loading if turn.status == "completed"]
loading.report.state  # "clean", "recoverable" or "invalid"
"""

from collections.abc import Iterable, Iterator

from mino.journal import scan
from mino.journal.findings import INVALID, BadLine, Finding, Report
from mino.journal.order import Order, Turn
from mino.journal.record import Record
from mino.journal.scan import Lines
from mino.text import count


class Loading:
    """One reading of a session file, as an iterable of its turns; `report` is complete when the iteration has ended.

    A turn comes when it ends; a last turn without an end comes last, with status `open`. Loading stops at the first
    finding that makes the file invalid; with `all_findings` it continues to the end (mino-record(5), FINDINGS).

    Who needs the lines for something else too gives them by `take` until it is `over`, and then calls `finish`.
    """

    def __init__(self, chunks: Iterable[bytes] = (), *, all_findings: bool = False) -> None:
        self.report = Report()
        self._chunks = chunks
        self._all = all_findings
        self._order = Order(go_on=all_findings)
        self._line = 0
        # The last line so far, if it is not JSON: it is a tail only if no line follows.
        self._doubtful: Finding | None = None
        self._doubtful_has_nul = False
        # The line after it, if both may be the torn write of an answer and its end: then no further line follows.
        self._second: tuple[Record | BadLine, Finding] | None = None
        self.over = False  # the file is invalid, and nobody asked for the rest

    def judge(self) -> Report:
        """Read to the end for the report alone."""
        for _ in self:
            pass
        return self.report

    def __iter__(self) -> Iterator[Turn]:
        for batch in scan.split(self._chunks):
            yield from self.take(batch)
            if self.over:
                break
        yield from self.finish()

    def take(self, batch: Lines) -> Iterator[Turn]:
        """Read the next lines; the turns that end in them."""
        return self._take(batch.lines, batch.dropped) if batch.whole else self._tear(batch.lines, batch.dropped)

    def finish(self) -> Iterator[Turn]:
        """Complete the report; a last turn without an end."""
        report, order = self.report, self._order
        if self._doubtful and not self.over:
            self._find(self._doubtful._replace(code="torn-write" if self._second else "tail-syntax"))
        report.next_seq = order.next_seq
        if order.turn:
            report.open_turn = order.turn.turn_id
            report.turns["open"] += 1
            if order.certain and not self.over:
                message = f"turn {order.turn.turn_id} has no end"
                self._find(Finding("open-turn", order.turn.first_line, order.turn.byte, message))
            yield order.turn

    def _take(self, lines: list[bytes], dropped: int) -> Iterator[Turn]:
        report, order = self.report, self._order
        # These are local, because the loop runs once for every record of a long history; its end writes them back.
        number, end, bad = self._line, report.bytes, 0
        for line, record in zip(lines, scan.read(lines), strict=True):
            if self._doubtful:
                if self._is_torn_write(record, b"\0" in line):
                    number, bad = number + 1, bad + 1
                    self._second = record, Finding("bad-json", number, end, getattr(record, "message", ""))
                    end += len(line) + 1 + dropped
                    continue
                yield from self._settle_doubt()
                if self.over:
                    break
            number += 1
            byte, end = end, end + len(line) + 1 + dropped
            if isinstance(record, BadLine):
                bad += 1
                self._doubtful_has_nul = b"\0" in line
                self._refuse(record, Finding(record.code, number, byte, record.message))
            else:
                turn = order.take(record, number, byte)
                if order.flaw:
                    self._find(Finding(order.flaw.code, number, byte, order.flaw.message))
                    order.flaw = None
                if turn:
                    report.turns[turn.status] += 1
                    yield turn
            if self.over:
                break
        report.records += number - self._line - bad
        self._line, report.bytes = number, end
        report.end = self._doubtful.byte if self._doubtful else end

    def _refuse(self, flaw: BadLine, finding: Finding) -> None:
        if flaw.code == "bad-json":
            self._doubtful = finding
        else:
            self._order.skip_line()
            self._find(finding)

    def _is_torn_write(self, record: Record | BadLine | None, has_nul: bool) -> bool:
        """Whether this line may be the second half of one write, of which a sector was lost and reads as zeros.

        The doubtful line before it must follow the question of an open turn. `record` is None for a torn tail.
        """
        doubtful, turn, order = self._doubtful, self._order.turn, self._order
        if self._second or not doubtful or not turn or not order.certain or turn.first_line + 1 != doubtful.line:
            return False
        if record is None or (isinstance(record, BadLine) and record.code == "bad-json"):
            return self._doubtful_has_nul or has_nul
        if isinstance(record, BadLine) or record["type"] != "turn_end":
            return False
        return self._doubtful_has_nul and (record["turn_id"], record["seq"]) == (turn.turn_id, order.next_seq + 1)

    def _settle_doubt(self) -> Iterator[Turn]:
        """Another line follows, so the line that is not JSON is not a tail; it may have been any record."""
        second, self._second = self._second, None
        self._order.skip_line()
        if self._doubtful:
            self._find(self._doubtful)
            self._doubtful = None
        if not second or self.over:
            return
        record, finding = second
        if isinstance(record, BadLine):
            self._order.skip_line()
            self._find(finding)
            return
        self.report.records += 1
        turn = self._order.take(record, finding.line, finding.byte)
        if turn:
            self.report.turns[turn.status] += 1
            yield turn

    def _tear(self, tail: list[bytes], dropped: int) -> Iterator[Turn]:
        report, size = self.report, sum(map(len, tail)) + dropped
        if self._doubtful and self._is_torn_write(None, any(b"\0" in piece for piece in tail)):
            self._second = BadLine("bad-json", ""), self._doubtful
            report.bytes += size
            return
        if self._doubtful:
            yield from self._settle_doubt()
        report.end, report.bytes = report.bytes, report.bytes + size
        if not self.over:
            message = f"found {count(size, 'byte')} without a newline, expected a whole record"
            self._find(Finding("torn-tail", self._line + 1, report.end, message))

    def _find(self, finding: Finding) -> None:
        self.report.add(finding)
        self.over = not self._all and finding.code in INVALID
