"""Messages → turns: a question and its answer make one, paired without guessing. No I/O.

A message that cannot be paired is left out and reported with its place: a system or tool message, a question without an
answer, an answer without a question, a message without text, a turn with a NUL. A message that cannot be read ends the
pair that it is in, because its content is not known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mino.text import quote, whole_characters

# Messages of these roles are neither questions nor answers.
_ASIDES = ("system", "developer", "tool", "function")


@dataclass(slots=True)
class Imported:
    """The `(question, answer)` of each turn, and a sentence on each thing that is left out, its place first."""

    turns: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class Message(NamedTuple):
    """The message at `place`: a JSON value, or in `flaw` the reason why it cannot be read."""

    place: str
    value: Any = None
    flaw: str = ""


def number(history: Iterable[Any]) -> Iterator[Message]:
    """The messages of an array, each with its number from 1."""
    for count, value in enumerate(history, 1):
        yield Message(f"message {count}", value)


def pair(messages: Iterable[Message]) -> Imported:
    """The turns of `messages`, and what is left out."""
    imported = Imported()
    # The question that waits for its answer, and its place.
    question, asked_at = "", ""

    def leave_out(place: str, why: str) -> None:
        imported.left_out.append(f"{place}: left out {why}")

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
            if "\0" in question + text:  # which `ask` refuses too
                leave_out(asked_at, "a turn with a NUL in it")
            else:
                imported.turns.append((question, text))
            question = ""
        else:
            drop_question()
            leave_out(message.place, message.flaw or f"{_shown(message.value)}, which is not a message")
    drop_question()
    return imported


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with the role {quote(value['role'])}" if "role" in value else "an object without a role"
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
    return whole_characters(content), missing
