"""One line to one JSON value, by RFC 8259 and the limits of a record (mino-record(5), Limits).

Two paths read a line. The fast one (`mino.journal.scan`) is orjson; a line that it cannot vouch for comes to `parse`
here, which is strict and slower, and says what is wrong. Both give the same value for every line.
"""

import json
import math
import re
from codecs import getincrementaldecoder
from collections import Counter
from typing import Any

from mino.journal.findings import BadLine
from mino.text import json_flaw, one_line, quote

MAX_DEPTH = 200
MAX_DIGITS = 4000


_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
# It is possessive, so that a string of a hundred megabytes needs no memory for backtracking.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[{\]}]")
_NO_BEGINNING = re.compile(rb'[ \t\r]*+[^ \t\r\[{"\-0-9tfn]')  # of any JSON value


def parse(line: bytes, depth: int = MAX_DEPTH) -> Any:
    """The JSON value of `line` (no newline), by RFC 8259 and the limits of a record.

    Raises BadLine: `bad-json` if it is not JSON in UTF-8; `duplicate-key` or `bad-record` if it is JSON that no record
    may hold.
    """
    if not line.strip(b" \t\r"):
        raise BadLine("bad-json", "found an empty line, expected a record")
    if line.startswith(b"\xef\xbb\xbf"):
        raise BadLine("bad-json", "found a byte order mark before the record, expected `{`")
    if b"\0" in line:
        raise BadLine("bad-json", "found NUL bytes, expected a record")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise BadLine("bad-json", f"found the byte {line[error.start]:#04x}, which is not UTF-8") from None
    # Only now: a line that cannot be JSON, such as one in which a lost sector hides brackets, is none that is too deep.
    if not _NO_BEGINNING.match(line) and is_deeper(line, depth):
        raise BadLine("bad-record", f"found more than {MAX_DEPTH} levels of nesting")

    flaw: BadLine | None = None

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal flaw
        value = dict(pairs)
        if len(value) < len(pairs) and not flaw:
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            flaw = BadLine("duplicate-key", f"found the key {quote(twice)} twice in one object")
        return value

    def integer(digits: str) -> int:
        nonlocal flaw
        if len(digits.lstrip("-")) > MAX_DIGITS:
            flaw = flaw or BadLine("bad-record", f"found an integer of more than {MAX_DIGITS} digits")
            return 0
        return int(digits)

    def double(digits: str) -> float:
        nonlocal flaw
        value = float(digits)
        if math.isinf(value):
            flaw = flaw or BadLine("bad-record", f"found the number {digits[:40]}, which no finite double can hold")
        return value

    def constant(name: str) -> None:
        raise BadLine("bad-json", f"found {name}, which is not JSON")

    try:
        value = json.loads(
            text, object_pairs_hook=unique, parse_int=integer, parse_float=double, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        # What stands before it, and no second offset: the finding has that of the line.
        after = f" after `{one_line(text[: error.pos][-30:])}`" if error.pos else ""
        raise BadLine("bad-json", f"not JSON: {json_flaw(error)}{after}") from None
    # It is raised only now: a line that has a flaw and is not JSON either is broken, or a tail at the end of a file.
    if flaw:
        raise flaw
    if _SURROGATE_ESCAPE.search(line) and not _is_text(value):
        raise BadLine("bad-record", "found an escaped surrogate without its other half")
    return value


class Doubt:
    """The pieces of one line, looked at as they come: `take` returns whether no JSON can be in a line of these bytes.

    What `parse` refuses as `bad-json` for its bytes alone, whatever else is in the line, need not be held.
    """

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")()
        self._blank = True

    def take(self, piece: bytes) -> bytes | None:
        """Bytes to be put behind the beginning of the line, so that `parse` refuses it too; None if it may be JSON."""
        if b"\0" in piece:
            return b"\0"
        if self._blank:
            if _NO_BEGINNING.match(piece):
                return b""
            self._blank = not piece.strip(b" \t\r")
        try:
            self._decoder.decode(piece)
        except UnicodeDecodeError:
            return b"\xff"
        return None


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_deeper(line: bytes, depth: int) -> bool:
    """Whether the brackets of `line` outside its strings nest more than `depth` levels."""
    if line.count(b"[") + line.count(b"{") <= depth:
        return False
    level = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", line)):
        level += 1 if bracket[0] in b"[{" else -1
        if level > depth:
            return True
    return False
