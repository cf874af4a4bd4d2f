"""Foreign conversations → turns: the files of other programs, read strictly, paired without guessing. No I/O.

A question with its answer makes a completed turn. What cannot be paired is left out and told, each with its place: a
system or tool message, a question without an answer, an answer without a question, a message without text. A message
that cannot be read ends the pair it stands in, for what it said is not known.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from mino.errors import InvalidData, shell_word
from mino.journal.record import assistant_message, encode, new_id, quote, turn_end, user_message, whole_text

Kind = Literal["eino", "json", "messages"]

# Roles that say something about a conversation and are neither its questions nor its answers.
_ASIDES = ("system", "developer", "tool", "function")


@dataclass(slots=True)
class Imported:
    """The `(question, answer)` of each turn, and a sentence on each thing that is left out, its place first."""

    turns: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class _Message(NamedTuple):
    """What stands at `place`: a JSON value, or `flaw`, why it cannot be read."""

    place: str
    value: Any = None
    flaw: str = ""


def read(data: bytes, file: str, kind: Kind) -> Imported:
    """The turns of the file `file` with the content `data`.

    `eino`: JSON Lines, a header `{"type": "session", …}` and then a message a line, where a broken line is told and
    left out. `json`: one object with `savedAt`, `turnCount` and `history`, an array of messages. `messages`: a JSON
    array of messages, or one a line. A message is an object with `role` and `content`: a string, or an array of
    parts of which those with `text` count. Raises InvalidData where the file is not of that kind.
    """
    text = _decode(data, file)
    if kind == "eino":
        return _pair(_read_eino(text, file))
    if kind == "json":
        return _read_checkpoint(text, file)
    if text.lstrip().startswith("["):
        return _pair(_number(_parse(text, file)))
    return _pair(_Message(f"line {line}", _parse(each, file, line)) for line, each in _lines(text))


def records(turns: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """The lines of a journal of completed `turns`."""
    for number, (question, answer) in enumerate(turns):
        turn_id, seq = new_id(), 3 * number + 1
        yield encode(user_message(seq, turn_id, question))
        yield encode(assistant_message(seq + 1, turn_id, answer, None))
        yield encode(turn_end(seq + 2, turn_id, "completed"))


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode().removeprefix("\ufeff")  # Windows programs write a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"{data[error.start]:#04x} at byte {error.start} (line {line})"
        raise InvalidData(f"'{file}' is not UTF-8: {found}", f"file {shell_word(file)}") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for line, each in enumerate(text.split("\n"), 1):
        if each.strip():
            yield line, each


def _parse(text: str, file: str, line: int = 1) -> Any:
    """The JSON value of `text`, which begins at `line` of `file`. Raises InvalidData, naming line and byte."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        byte = len(text[: error.pos].encode()) - len(text[: error.pos - error.colno + 1].encode())
        where = f"line {line + error.lineno - 1} (byte {byte} of the line)"
        raise InvalidData(f"'{file}' {where} is not JSON: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except (ValueError, RecursionError):
        raise InvalidData(
            f"'{file}' line {line} is JSON beyond what Mino reads: huge numbers or deep nesting"
        ) from None


def _number(history: Iterable[Any]) -> Iterator[_Message]:
    for number, value in enumerate(history, 1):
        yield _Message(f"message {number}", value)


def _read_eino(text: str, file: str) -> Iterator[_Message]:
    lines = _lines(text)
    line, first = next(lines, (1, ""))
    header = _parse(first, file, line)
    if not isinstance(header, dict) or header.get("type") != "session":
        expected = 'a header, {"type":"session",…}'
        raise InvalidData(f"'{file}' line {line}: found {quote(header)}, expected {expected}", "use --from messages")
    for line, each in lines:
        try:
            yield _Message(f"line {line}", json.loads(each))
        except (ValueError, RecursionError):
            yield _Message(f"line {line}", flaw="it is not JSON")


def _read_checkpoint(text: str, file: str) -> Imported:
    checkpoint = _parse(text, file)
    history = checkpoint.get("history") if isinstance(checkpoint, dict) else None
    if not isinstance(history, list):
        raise InvalidData(
            f"'{file}' has no array `history`, expected an object with savedAt, turnCount and history",
            "use --from messages",
        )
    imported = _pair(_number(history))
    told = checkpoint.get("turnCount")
    if told is not None and told != len(imported.turns):
        imported.left_out.append(f"says turnCount {quote(told)}, found {len(imported.turns)} whole turns")
    return imported


def _pair(messages: Iterable[_Message]) -> Imported:
    imported = Imported()
    # The question that waits for its answer, and where it stands.
    question, asked_at = "", ""

    def leave_out(place: str, why: str) -> None:
        imported.left_out.append(f"{place}: {why}, left out")

    def drop_question() -> None:
        nonlocal question
        if question:
            leave_out(asked_at, "a question without an answer")
        question = ""

    for message in messages:
        role = message.value.get("role") if isinstance(message.value, dict) else None
        if role in _ASIDES:
            leave_out(message.place, f"a {role} message")
            continue
        text, missing = _text(message.value.get("content")) if role in ("user", "assistant") else ("", [])
        for part in missing:
            leave_out(message.place, part)
        if role == "user":
            drop_question()
            question, asked_at = text, message.place
            if not text:
                leave_out(message.place, "a question without text")
        elif role == "assistant" and not text:
            leave_out(message.place, "an answer without text")
        elif role == "assistant" and not question:
            leave_out(message.place, "an answer without a question before it")
        elif role == "assistant":
            imported.turns.append((question, text))
            question = ""
        else:
            drop_question()
            leave_out(message.place, message.flaw or f"found {_shown(message.value)}, expected a message")
    drop_question()
    return imported


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"the role {quote(value['role'])}" if "role" in value else "an object without a role"
    return quote(value)


def _text(content: Any) -> tuple[str, list[str]]:
    """The text of a message's content, empty if it is blank, and a phrase for each part that has none."""
    missing = []
    if isinstance(content, list):
        texts = []
        for part in content:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                texts.append(text)
            else:
                kind = part.get("type") if isinstance(part, dict) else part
                missing.append(f"a part that is not text ({quote(kind)})")
        content = "".join(texts)
    if not isinstance(content, str) or not content.strip():
        return "", missing
    return whole_text(content), missing
