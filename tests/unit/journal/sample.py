"""The history that the tests of the record layer start from, and ways to read and to bend it."""

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mino.journal.findings import Report
from mino.journal.loader import Loading
from mino.journal.order import Turn

CASES = Path(__file__).parents[2] / "data" / "cases"

FIRST = "0193a0b1c2d370008000000000000001"
SECOND = "0193a0b1c2d370008000000000000002"
THIRD = "0193a0b1c2d370008000000000000003"

ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "你好 😀"}]}


def line(seq: int, kind: str, turn_id: str, **fields: Any) -> bytes:
    """A record as Mino writes it, without its newline."""
    record = {"v": 1, "seq": seq, "type": kind, "turn_id": turn_id, **fields}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def question(seq: int, turn_id: str, text: str = "法国的首都是哪里？ 🗼", **fields: Any) -> bytes:
    return line(seq, "user_message", turn_id, text=text, **fields)


def answer(seq: int, turn_id: str, text: str = "Paris. 巴黎 😀", **fields: Any) -> bytes:
    return line(seq, "assistant_message", turn_id, text=text, **fields)


def end(seq: int, turn_id: str, status: str = "completed") -> bytes:
    return line(seq, "turn_end", turn_id, status=status)


def turn(seq: int, turn_id: str) -> list[bytes]:
    """The three lines of a completed turn."""
    return [question(seq, turn_id), answer(seq + 1, turn_id, output=[ITEM]), end(seq + 2, turn_id)]


def two_turns() -> list[bytes]:
    """The six lines of two completed turns."""
    return turn(1, FIRST) + turn(4, SECOND)


def file_of(lines: Iterable[bytes]) -> bytes:
    """The file of `lines`, each with its newline."""
    return b"".join(line + b"\n" for line in lines)


def load(data: bytes | Iterable[bytes], *, all_findings: bool = False) -> tuple[list[Turn], Report]:
    """What the loader makes of `data`, in one chunk or in the chunks that are given."""
    loading = Loading([data] if isinstance(data, bytes) else data, all_findings=all_findings)
    return list(loading), loading.report


def found(data: bytes) -> list[tuple[str, int]]:
    """Code and line of everything that `history verify` finds."""
    return [(finding.code, finding.line) for finding in load(data, all_findings=True)[1].findings]


def same(one: object, other: object) -> bool:
    """Equal in type and value: 1 is not True and not 1.0, -0.0 is not 0.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def random_chunks(data: bytes, choice: random.Random) -> Iterator[bytes]:
    """`data` in pieces of random lengths, some of them empty."""
    position = 0
    while position < len(data):
        length = choice.choice((0, 1, 2, 3, 7, 64, 300))
        yield data[position : position + length]
        position += length
