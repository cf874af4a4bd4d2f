"""Bytes → lines → records or bad lines, in batches; no order yet, no I/O of its own.

C code alone takes a batch first: orjson parses it, the schema accepts it, and writing it again gives the very same
bytes. That last step proves what orjson does not check: a duplicate key, an integer over 64 bits (orjson makes it a
float) or a second spelling would come out different. A line that is not proved goes to `strict.parse`.
"""

from collections.abc import Iterable, Iterator

import orjson

from mino.journal import schema
from mino.journal.findings import BadLine
from mino.journal.record import Record
from mino.journal.strict import MAX_DEPTH, is_deeper, parse


def split(chunks: Iterable[bytes]) -> Iterator[tuple[list[bytes], bool]]:
    """The lines of `chunks` without their newlines, a list for each chunk; split at byte 0x0A and nothing else.

    The last list is the torn tail, if there is one; it comes with False, because its newline is missing.
    """
    pieces: list[bytes] = []
    for chunk in chunks:
        first, newline, rest = chunk.partition(b"\n")
        pieces.append(first)
        if not newline:
            continue  # one line over many chunks: joining here each time would take quadratic time
        lines = rest.split(b"\n")
        last = lines.pop()
        yield [b"".join(pieces), *lines], True
        pieces = [last]
    tail = b"".join(pieces)
    if tail:
        yield [tail], False


def read(lines: list[bytes]) -> Iterable[Record | BadLine]:
    """The record of each of the whole `lines`, or its flaw."""
    return _trust(lines) or map(read_line, lines)  # not a list: the flaws of a million lines are a lot to hold


def number(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes, Record | BadLine]]:
    """Each line of `chunks`: its number from 1, its bytes with the newline if it has one, and its record or flaw."""
    count = 0
    for lines, whole in split(chunks):
        records = read(lines) if whole else [BadLine("torn-tail", "an unfinished last line")]
        for line, record in zip(lines, records, strict=True):
            count += 1
            yield count, line + b"\n" if whole else line, record


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
    long = [line for line, record in pairs if len(line) > 2 * MAX_DEPTH and "output" in record]
    return None if any(is_deeper(line, MAX_DEPTH) for line in long) else records
