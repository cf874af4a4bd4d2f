"""The strict loader of every command: bytes → turns, state and findings, in one pass and with no I/O of its own.

loading = Loading(chunks)
completed = [turn for turn in loading if turn.status == "completed"]
loading.report.state  # "clean", "recoverable" or "invalid"
"""

from collections.abc import Iterable, Iterator

from mino.journal import scan
from mino.journal.findings import INVALID, BadLine, Finding, Report
from mino.journal.order import Order, Turn


class Loading:
    """One reading of a session file, as an iterable of its turns; `report` is whole when the iteration has ended.

    A turn comes when it ends; a last turn without an end comes last, with status `open`. Loading stops at the first
    finding that makes the file invalid; with `all_findings` it goes on to the end (spec section 4, `verify`).
    """

    def __init__(self, chunks: Iterable[bytes], *, all_findings: bool = False) -> None:
        self.report = Report()
        self._chunks = chunks
        self._all = all_findings
        self._order = Order(go_on=all_findings)
        self._line = 0
        # The last line so far, if it is not JSON: only when no line follows is it a tail.
        self._doubtful: Finding | None = None

    def __iter__(self) -> Iterator[Turn]:
        for lines, whole in scan.split(self._chunks):
            yield from self._take(lines) if whole else self._tear(lines[0])
            if self._is_over():
                break
        report, order = self.report, self._order
        if self._doubtful and not self._is_over():
            self._find("tail-syntax", self._doubtful.line, self._doubtful.byte, self._doubtful.message)
        report.next_seq = order.next_seq
        if order.turn:
            report.open_turn = order.turn
            report.turns["open"] += 1
            if order.certain and not self._is_over():
                message = f"turn {order.turn.turn_id} has no end"
                self._find("open-turn", order.turn.first_line, order.turn.byte, message)
            yield order.turn

    def _take(self, lines: list[bytes]) -> Iterator[Turn]:
        report, order = self.report, self._order
        for line, record in zip(lines, scan.read(lines), strict=True):
            self._line += 1
            byte, report.bytes = report.bytes, report.bytes + len(line) + 1
            if self._doubtful:
                self._find("bad-json", self._doubtful.line, self._doubtful.byte, self._doubtful.message)
                self._doubtful = None
                if self._is_over():
                    return
            if isinstance(record, BadLine):
                order.skip_line()
                if record.code == "bad-json":
                    self._doubtful = Finding(record.code, self._line, byte, record.message)
                    continue
                self._find(record.code, self._line, byte, record.message)
            else:
                turn = order.take(record, self._line, byte)
                report.records += 1
                report.end = report.bytes
                if order.flaw:
                    self._find(order.flaw.code, self._line, byte, order.flaw.message)
                elif turn:
                    report.turns[turn.status] += 1
                    yield turn
            if self._is_over():
                return

    def _tear(self, tail: bytes) -> Iterator[Turn]:
        if self._doubtful:
            self._find("bad-json", self._doubtful.line, self._doubtful.byte, self._doubtful.message)
            self._doubtful = None
        byte, self.report.bytes = self.report.bytes, self.report.bytes + len(tail)
        if not self._is_over():
            message = f"found {len(tail)} bytes without a newline, expected a whole record"
            self._find("torn-tail", self._line + 1, byte, message)
        return iter(())

    def _find(self, code: str, line: int, byte: int, message: str) -> None:
        self.report.add(Finding(code, line, byte, message))

    def _is_over(self) -> bool:
        """Whether loading stops here: at the first finding of an invalid file."""
        return not self._all and bool(self.report.findings) and self.report.findings[-1].code in INVALID
