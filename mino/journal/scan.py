"""Bytes → lines → records or bad lines, in batches; no order yet, no I/O of its own.

C code alone takes a batch first: orjson parses it, the schema accepts it, and writing it again gives the very same
bytes. That last step proves what orjson does not check: a duplicate key, an integer over 64 bits (orjson makes it a
float) or a second spelling would come out different. A line that is not proved goes to `strict.parse`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from mino.journal import schema
from mino.journal.findings import NEWER, BadLine
from mino.journal.record import Record
from mino.journal.strict import MAX_DEPTH, Doubt, is_deeper, parse

_NESTED = frozenset({"output", "input", "usage"})  # the fields that may hold many levels

HELD = 1 << 20  # bytes of a line that are held in any case; of a longer one that cannot be JSON no more than these


class Lines(NamedTuple):
    """Lines without their newlines; `whole` is False for a torn tail, which comes alone, in pieces.

    `dropped` bytes of a line that comes alone are left out, because it is too long to be held and cannot be JSON.
    """

    lines: list[bytes]
    whole: bool = True
    dropped: int = 0


def split(chunks: Iterable[bytes], *, hold: bool = False) -> Iterator[Lines]:
    """The lines of `chunks`, some for each chunk; split at byte 0x0A and nothing else.

    A tail of NUL bytes or rubbish can be as long as the disk. So of a long line that cannot be JSON only the beginning
    is held, and a byte that makes it refused; with `hold` all of it.
    """
    pieces: list[bytes] = []
    held = dropped = 0
    doubt: Doubt | None = None
    for chunk in chunks:
        first, newline, rest = chunk.partition(b"\n")
        if dropped:
            dropped += len(first)
            if b"\0" in first and pieces[-1] != b"\0":
                pieces.append(b"\0")  # it decides whether this can be a torn write
                dropped -= 1
        else:
            pieces.append(first)
            held += len(first)
        if not newline:
            # One line over many chunks: joining here each time would take quadratic time.
            if held > HELD and not dropped and not hold:
                new, doubt = ([first], doubt) if doubt else (pieces, Doubt())
                proof = next((proof for proof in map(doubt.take, new) if proof is not None), None)
                if proof is not None:
                    pieces = [b"".join(pieces)[: HELD // 2], proof]
                    dropped = held - len(pieces[0]) - len(proof)
            continue
        lines = rest.split(b"\n")
        last = lines.pop()
        line = b"".join(pieces)
        if dropped:
            yield Lines([line], dropped=dropped)
            if lines:
                yield Lines(lines)
        else:
            yield Lines([line, *lines])
        pieces, held, dropped, doubt = [last], len(last), 0, None
    if held:
        yield Lines(pieces, whole=False, dropped=dropped)


def read(lines: list[bytes]) -> Iterable[Record | BadLine]:
    """The record of each of the whole `lines`, or its flaw."""
    return _trust(lines) or map(read_line, lines)  # not a list: the flaws of a million lines are a lot to hold


def has_record(batch: Lines) -> bool:
    """Whether a line of `batch` is a record, maybe of a newer Mino."""
    if not batch.whole:
        return False
    # Every record has the key `v`. Only lines that may have it are judged, because finding a flaw takes far longer.
    records = read([line for line in batch.lines if b'"v"' in line or b"\\" in line])
    return any(not isinstance(record, BadLine) or record.code in NEWER for record in records)


def number(batches: Iterable[Lines]) -> Iterator[tuple[int, bytes, Record | BadLine]]:
    """Each line of what `split` gives: its number from 1, its bytes with the newline if it has one, its record or flaw.

    Without `hold` the bytes of a long line that cannot be JSON are not all there, as in `split`.
    """
    count = 0
    for lines, whole, _ in batches:
        if not whole:
            yield count + 1, b"".join(lines), BadLine("torn-tail", "an unfinished last line")
            continue
        for line, record in zip(lines, read(lines), strict=True):
            count += 1
            yield count, line + b"\n", record


def read_line(line: bytes) -> Record | BadLine:
    """The record of one whole line, or its flaw."""
    proved = _trust([line])
    if proved:
        return proved[0]
    return explain(line)


def explain(line: bytes) -> Record | BadLine:
    """As `read_line`, by the strict path alone, which judges every line as the fast one does, and can say why."""
    try:
        return schema.check(parse(line))
    except BadLine as flaw:
        return flaw


def _trust(lines: list[bytes]) -> list[Record] | None:
    try:
        # They are parsed as one array, because a call costs as much as parsing a short line. Writing each one again,
        # alone, proves that each line is one value.
        records: list[Record] = orjson.loads(b"[%b]" % b",".join(lines))
        if list(map(orjson.dumps, records)) != lines or not schema.are_valid(records):
            return None
    except (TypeError, ValueError):  # not JSON, or nested deeper than orjson writes
        return None
    # orjson writes more levels than a record may have; each takes two bytes, so a short line needs no check.
    pairs = zip(lines, records, strict=True)
    long = [line for line, record in pairs if len(line) > 2 * MAX_DEPTH and not _NESTED.isdisjoint(record)]
    return None if any(is_deeper(line, MAX_DEPTH) for line in long) else records
