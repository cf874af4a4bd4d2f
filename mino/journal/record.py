"""The three record types of format version 1: one line to one record, and back (spec section 3).

Two paths read a line. The fast one (`mino.journal.scan`) is orjson; whatever it cannot vouch for comes to `parse`
here, which is strict, slower, and says what is wrong. Both give the same record for every line.
"""

import json
import math
import os
import re
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict

import orjson

from mino.journal.findings import BadLine

VERSION = 1
MAX_DEPTH = 200
MAX_DIGITS = 4000

EndStatus = Literal["completed", "failed", "cancelled", "interrupted"]
Item = dict[str, Any]


class UserMessage(TypedDict):
    """A question, written before the request is sent."""

    v: int
    seq: int
    type: Literal["user_message"]
    turn_id: str
    text: str


class _Answer(TypedDict):
    v: int
    seq: int
    type: Literal["assistant_message"]
    turn_id: str
    text: str


class AssistantMessage(_Answer, total=False):
    """A whole answer; `output` holds the received items, each with a string `type`."""

    output: list[Item]


class TurnEnd(TypedDict):
    """What became of the turn."""

    v: int
    seq: int
    type: Literal["turn_end"]
    turn_id: str
    status: EndStatus


Record = UserMessage | AssistantMessage | TurnEnd


def user_message(seq: int, turn_id: str, text: str) -> UserMessage:
    """The record of a question."""
    return {"v": VERSION, "seq": seq, "type": "user_message", "turn_id": turn_id, "text": text}


def assistant_message(seq: int, turn_id: str, text: str, output: list[Item] | None) -> AssistantMessage:
    """The record of an answer; without `output` the field is left out."""
    record: AssistantMessage = {
        "v": VERSION,
        "seq": seq,
        "type": "assistant_message",
        "turn_id": turn_id,
        "text": text,
    }
    if output is not None:
        record["output"] = output
    return record


def turn_end(seq: int, turn_id: str, status: EndStatus) -> TurnEnd:
    """The record that ends a turn."""
    return {"v": VERSION, "seq": seq, "type": "turn_end", "turn_id": turn_id, "status": status}


def encode(record: Record) -> bytes:
    """The line of `record`, newline included; text as itself, not as escapes, for people read these files."""
    return _dump(record) + b"\n"


def _dump(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson.JSONEncodeError is one: an integer over 64 bits, deep nesting
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def whole_text(text: str) -> str:
    """`text` with surrogate halves joined, and U+FFFD for those that have no other half.

    A model can send `"\\ud83d"`; UTF-8 has no form for it (RFC 3629 section 3), and a record must be UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable(items: list[Any]) -> list[Item]:
    """The received `items` that a record can hold, in a form the loader accepts; the others are left out.

    Left out: what is no object with a string `type`, or is beyond the limits of a record.
    """
    kept = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            continue
        try:
            line = _dump(item)
        except UnicodeEncodeError:
            line = whole_text(json.dumps(item, ensure_ascii=False)).encode()
        except (ValueError, RecursionError):
            continue
        try:
            value = parse(line, depth=MAX_DEPTH - 2)  # the record and its `output` are the two levels around it
        except BadLine:
            continue
        kept.append(value)
    return kept


_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
# Possessive, so that a string of a hundred megabytes needs no memory for going back.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[{\]}]")


def parse(line: bytes, depth: int = MAX_DEPTH) -> Any:
    """The JSON value of `line` (no newline), by RFC 8259 and the limits of spec section 3.

    Raises BadLine: `bad-json` where it is not JSON in UTF-8; `duplicate-key` or `bad-record` where it is JSON that
    no record may hold.
    """
    if not line.strip(b" \t\r"):
        raise BadLine("bad-json", "found an empty line, expected a record")
    if is_deeper(line, depth):
        raise BadLine("bad-record", f"found more than {MAX_DEPTH} levels of nesting")
    if line.startswith(b"\xef\xbb\xbf"):
        raise BadLine("bad-json", "found a byte order mark before the record, expected `{`")
    if line.strip(b"\0") == b"":
        raise BadLine("bad-json", f"found {len(line)} NUL bytes, expected a record")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        where = f"byte {error.start} of the line"
        raise BadLine("bad-json", f"found {line[error.start]:#04x} at {where}, which is not UTF-8") from None

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
        at = len(text[: error.pos].encode())
        raise BadLine("bad-json", f"not JSON at byte {at} of the line: {_reason(error)}") from None
    # Only now: a line with a flaw that is not even JSON is a broken line, and at the end of a file a tail.
    if flaw:
        raise flaw
    if _SURROGATE_ESCAPE.search(line) and not _is_text(value):
        raise BadLine("bad-record", "found an escaped surrogate without its other half")
    return value


def _reason(error: json.JSONDecodeError) -> str:
    return error.msg[:1].lower() + error.msg[1:]


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


def quote(value: object) -> str:
    """`value` for a message: as JSON, cut at 60 characters, so that a huge line makes a short sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = whole_text(text)
    return text if len(text) <= 60 else text[:59] + "…"


def new_id() -> str:
    """A new id for a turn or a session: a UUID of version 7 (RFC 9562 section 5.7) as 32 hex digits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    high = milliseconds << 16 | 0x7000 | random >> 68
    low = 0x8000_0000_0000_0000 | random & 0x3FFF_FFFF_FFFF_FFFF
    return f"{high:016x}{low:016x}"


_FIRST_TIME = datetime(2020, 1, 1, tzinfo=UTC)
_LAST_TIME = datetime(2200, 1, 1, tzinfo=UTC)


def id_time(identifier: str) -> datetime | None:
    """When `identifier` was made, to the millisecond; None if it is no plausible UUID of version 7."""
    if identifier[12] != "7" or identifier[16] not in "89ab":
        return None
    seconds = int(identifier[:12], 16) / 1000
    if not _FIRST_TIME.timestamp() <= seconds < _LAST_TIME.timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)


# PYTHONINTMAXSTRDIGITS may set it lower than a record's limit, and a legal record would then raise ValueError.
sys.set_int_max_str_digits(max(sys.get_int_max_str_digits(), MAX_DIGITS + 300) if sys.get_int_max_str_digits() else 0)
