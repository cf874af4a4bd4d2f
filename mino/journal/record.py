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


class _Question(TypedDict):
    v: int
    seq: int
    type: Literal["user_message"]
    turn_id: str
    text: str


class UserMessage(_Question, total=False):
    """A question, written before the request is sent; `input` holds all parts of it, if files were attached."""

    input: list[Item]


class _Answer(TypedDict):
    v: int
    seq: int
    type: Literal["assistant_message"]
    turn_id: str
    text: str


class AssistantMessage(_Answer, total=False):
    """A whole answer; `output` holds the received items, each with a string `type`.

    `model` is its name as the service gave it, `usage` what the service reported.
    """

    output: list[Item]
    model: str
    usage: dict[str, Any]


class TurnEnd(TypedDict):
    """The end of a turn, and its status."""

    v: int
    seq: int
    type: Literal["turn_end"]
    turn_id: str
    status: EndStatus


Record = UserMessage | AssistantMessage | TurnEnd


def user_message(seq: int, turn_id: str, text: str, parts: list[Item] | None = None) -> UserMessage:
    """The record of a question; `parts` are its content as it is sent, if there is more than the text."""
    record: UserMessage = {"v": VERSION, "seq": seq, "type": "user_message", "turn_id": turn_id, "text": text}
    if parts:
        record["input"] = parts
    return record


def assistant_message(
    seq: int,
    turn_id: str,
    text: str,
    output: list[Item] | None,
    model: str | None = None,
    usage: dict[str, Any] | None = None,
) -> AssistantMessage:
    """The record of an answer; a field that is None is left out."""
    record: AssistantMessage = {
        "v": VERSION,
        "seq": seq,
        "type": "assistant_message",
        "turn_id": turn_id,
        "text": text,
    }
    if output is not None:
        record["output"] = output
    if model is not None:
        record["model"] = model
    if usage is not None:
        record["usage"] = usage
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
    items = [item for item in items if isinstance(item, dict) and isinstance(item.get("type"), str)]
    # The record and its `output` are the two levels around it.
    kept = (_accepted(item, MAX_DEPTH - 2) for item in items)
    return [item for item in kept if item is not None]


def accepted_usage(usage: Any) -> dict[str, Any] | None:
    """The received `usage` as a record can hold it; None if it is no object, or exceeds the limits."""
    return _accepted(usage, MAX_DEPTH - 1) if isinstance(usage, dict) else None


def _accepted(value: dict[str, Any], depth: int) -> dict[str, Any] | None:
    try:
        line = _dump(value)
    except UnicodeEncodeError:
        line = whole_characters(json.dumps(value, ensure_ascii=False)).encode()
    except (ValueError, RecursionError):
        return None
    try:
        accepted: dict[str, Any] = parse(line, depth=depth)
    except BadLine:
        return None
    return accepted
