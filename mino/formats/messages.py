"""Messages of role and content, as chat programs write them: a JSON array, one a line, or inside a checkpoint.

A message is an object with `role` and `content`: a string, or an array of parts of which those with `text` count.
"""

from collections.abc import Iterable
from typing import Any

from mino.errors import InvalidData
from mino.formats.pairs import Imported, Message, number, pair
from mino.formats.source import decode, lines, parse
from mino.text import quote


def read(data: bytes, file: str) -> Imported:
    """The turns of `file` with the content `data`: a JSON array of messages, or one a line. Raises InvalidData."""
    text = decode(data, file)
    if text.lstrip().startswith("["):
        return pair(number(parse(text, file)))
    return pair(Message(f"line {line}", parse(each, file, line)) for line, each in lines(text))


def read_checkpoint(data: bytes, file: str) -> Imported:
    """The turns of one object with `savedAt`, `turnCount` and `history`, an array of messages. Raises InvalidData."""
    checkpoint = parse(decode(data, file), file)
    history = checkpoint.get("history") if isinstance(checkpoint, dict) else None
    if not isinstance(history, list):
        raise InvalidData(
            f"'{file}' has no array `history`, expected an object with savedAt, turnCount and history",
            "use --from messages",
        )
    imported = pair(number(history))
    told = checkpoint.get("turnCount")
    if told is not None and told != len(imported.turns):
        imported.left_out.append(f"has turnCount {quote(told)}, but {len(imported.turns)} whole turns")
    return imported


def messages_json(turns: Iterable[tuple[Any, str]]) -> list[dict[str, Any]]:
    """`turns`, each the content of a question and its answer, as an array of messages."""
    roles = ("user", "assistant")
    return [{"role": role, "content": content} for turn in turns for role, content in zip(roles, turn, strict=True)]


def chat_content(parts: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The content `parts` of a question of the Responses API as Chat Completions has them; None if there are none."""
    return [_chat_part(part) for part in parts] if parts else None


def _chat_part(part: dict[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "input_text":
            return {"type": "text", "text": part.get("text")}
        case "input_image":
            picture = {"url": part.get("image_url"), "detail": part.get("detail")}
            return {"type": "image_url", "image_url": {key: value for key, value in picture.items() if value}}
        case "input_file":
            return {"type": "file", "file": {key: value for key, value in part.items() if key != "type"}}
    return part
