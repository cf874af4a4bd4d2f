"""The three record types of format version 1, and the line of each (mino-record(5), FORMAT)."""

import json
from typing import Any, Literal, TypedDict

import orjson

from mino.journal.findings import BadLine
from mino.journal.strict import MAX_DEPTH, parse
from mino.text import whole_characters

VERSION = 1
_ROOM = 1 << 18  # bytes: more than malloc takes from memory that it already has

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
    """The end of a turn, and its status."""

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
    """The line of `record`, newline included; its text is not escaped, because people read these files."""
    return _dump(record) + b"\n"


def _dump(value: object) -> bytes:
    bytearray(_ROOM)  # raises MemoryError; orjson ends the process by SIGSEGV where it gets no memory
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson.JSONEncodeError is one: an integer over 64 bits, deep nesting
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def accepted_items(items: list[Any]) -> list[Item]:
    """The received `items` that a record can hold, in a form that the loader accepts.

    An item is left out if it is not an object with a string `type`, or exceeds the limits of a record.
    """
    kept = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            continue
        try:
            line = _dump(item)
        except UnicodeEncodeError:
            line = whole_characters(json.dumps(item, ensure_ascii=False)).encode()
        except (ValueError, RecursionError):
            continue
        try:
            value = parse(line, depth=MAX_DEPTH - 2)  # the record and its `output` are the two levels around it
        except BadLine:
            continue
        kept.append(value)
    return kept
