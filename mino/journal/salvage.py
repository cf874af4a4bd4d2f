"""The way out of an invalid file, if a person asks for it: keep every whole turn, and report what was dropped.

The rules are in mino-record(5), RECOVERY.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mino.errors import InvalidData
from mino.journal import scan
from mino.journal.file import Journal
from mino.journal.findings import NEWER, BadLine, mend
from mino.journal.record import EndStatus, Record, encode
from mino.journal.recovery import copy_whole
from mino.journal.scan import Lines
from mino.text import whole_characters


@dataclass(slots=True)
class Region:
    """Lines that the new journal does not get: the first and the last, the reason, and the question in them, if any."""

    first_line: int
    last_line: int
    why: str
    question: str | None = None


@dataclass(slots=True)
class _Candidate:
    """A turn that has begun; `inside` are the dropped lines between its records."""

    first_line: int
    records: list[Record]
    why_not: str = ""
    inside: list[Region] = field(default_factory=list)

    @property
    def turn_id(self) -> str:
        return self.records[0]["turn_id"]

    def add(self, record: Record) -> None:
        answered = len(self.records) > 1
        if record["type"] == "assistant_message" and answered:
            self.why_not = "it has two answers"
        elif record["type"] == "turn_end":
            self.why_not = self.why_not or _misfit(record["status"], answered)
        if not self.why_not:  # a turn that is not kept need not be held, however many records it has
            self.records.append(record)


def _misfit(status: EndStatus, answered: bool) -> str:
    if status == "completed" and not answered:
        return "it ended as completed, without a readable answer"
    if status in ("failed", "cancelled") and answered:
        return f"it ended as {status}, with an answer"
    return ""


class Salvage:
    """One reading of a file at `path`: iterating gives the new journal's lines and completes `kept` and `dropped`.

    `lines` are as `scan.split` gives them. `records` counts the valid ones, kept or not.
    """

    def __init__(self, path: str, lines: Iterable[Lines]) -> None:
        self.records = 0
        self.kept = 0
        self.dropped: list[Region] = []
        self._path = path
        self._lines = lines
        self._ids: set[str] = set()
        self._seq = 1

    def __iter__(self) -> Iterator[bytes]:
        """The lines of the new journal, renumbered.

        Raises InvalidData at a record of a newer Mino: its meaning is not known here, so nothing is dropped.
        """
        turn: _Candidate | None = None
        last = 0
        for last, line, record in scan.number(self._lines):
            self.records += not isinstance(record, BadLine)
            if isinstance(record, BadLine):
                self._refuse_newer(record, last)
                region = Region(last, last, record.message, find_question(line))
                _add(turn.inside if turn else self.dropped, region)
            elif record["type"] == "user_message":
                if turn:
                    self._drop(turn, last - 1, "it has no end")
                turn = _Candidate(last, [record])
            elif turn is None or record["turn_id"] != turn.turn_id:
                region = Region(last, last, f"{record['type']} without its question")
                _add(turn.inside if turn else self.dropped, region)
            else:
                turn.add(record)
                if record["type"] == "turn_end":
                    yield from self._end(turn, last)
                    turn = None
        if turn:
            self._drop(turn, last, "it has no end")

    def _end(self, turn: _Candidate, last_line: int) -> Iterator[bytes]:
        if turn.turn_id in self._ids:
            turn.why_not = "its turn id was used before"
        if turn.why_not:
            self._drop(turn, last_line, turn.why_not)
            return
        self._ids.add(turn.turn_id)
        for region in turn.inside:
            _add(self.dropped, region)
        self.kept += 1
        for record in turn.records:
            record["seq"] = self._seq
            self._seq += 1
            yield encode(record)

    def _drop(self, turn: _Candidate, last_line: int, why: str) -> None:
        reasons = [f"turn {turn.turn_id}: {why}", *(region.why for region in turn.inside)]
        question = turn.records[0].get("text")
        self.dropped.append(Region(turn.first_line, last_line, "; ".join(reasons[:5]), str(question)))
        # Other questions among its lines may be all that is left of turns that the damage destroyed.
        self.dropped += [region for region in turn.inside if region.question is not None]

    def _refuse_newer(self, flaw: BadLine, line: int) -> None:
        if flaw.code in NEWER:
            raise InvalidData(
                f"'{self._path}' line {line}: {flaw.code}: {flaw.message}; nothing was salvaged",
                mend(self._path, line),
            )


def salvage(journal: Journal, way_out: str = "") -> tuple[str, Salvage]:
    """Reduce `journal` to its whole turns; returns the path of the recovery copy, and what was kept and dropped.

    The copy is made first. Raises InvalidData, with the hint `way_out`, if no turn would be left, and as `rehearse`,
    `copy_whole` and `Journal.replace` do; the file is then unchanged.
    """
    # A record of a newer Mino is refused before a copy is made, and so is a file of which nothing would be left.
    refuse_empty(journal.path, rehearse(journal.path, journal.chunks()), way_out)
    copy = copy_whole(journal)
    salvaged = Salvage(journal.path, scan.split(journal.chunks()))
    journal.replace(salvaged)
    return copy, salvaged


def rehearse(path: str, chunks: Iterable[bytes]) -> Salvage:
    """What a salvage of the file at `path` would keep and drop; changes nothing. Raises InvalidData as it would."""
    salvaged = Salvage(path, scan.split(chunks))
    for _ in salvaged:
        pass
    return salvaged


def refuse_empty(path: str, salvaged: Salvage, way_out: str = "") -> None:
    """Raise InvalidData, with the hint `way_out`, if `salvaged` keeps no turn: it would empty the file."""
    if not salvaged.kept:
        raise InvalidData(f"no turn of '{path}' can be kept; the file is unchanged", way_out)


def _add(regions: list[Region], region: Region) -> None:
    """Add `region`; without a question it joins its neighbour: a block of rubbish is held, and reported, once."""
    if regions and region.question is None and region.first_line == regions[-1].last_line + 1:
        regions[-1].last_line = region.last_line
    else:
        regions.append(region)


_RECORD_START = re.compile(r'\{\s*"(?:v|seq|type|turn_id|text)"\s*:')


def find_question(line: bytes) -> str | None:
    """The text of a question in a bad line: in a record with a flaw, or in a whole one after a fragment."""
    text = line.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    for start in [match.start() for match in _RECORD_START.finditer(text)][:100]:
        try:
            value: Any = decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        if value.get("type") == "user_message" and isinstance(value.get("text"), str):
            return whole_characters(value["text"])
    return None
