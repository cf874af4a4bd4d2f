"""Output items of the Responses API: their kinds, their texts, and the form in which Mino keeps them. No I/O."""

from collections.abc import Iterable
from typing import Any

from mino.responses.values import clean

# Items that wait for an output of ours, and these outputs: every server refuses one without the other.
OURS_TO_ANSWER = frozenset(
    {
        *("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"),
        "mcp_approval_request",
    }
)
OUR_ANSWERS = frozenset({f"{kind}_output" for kind in OURS_TO_ANSWER} | {"mcp_approval_response"})


def clean_item(item: Any) -> dict[str, Any] | None:
    """An output item in a form that a record accepts; None if there is no such form."""
    cleaned = clean(item)
    if not isinstance(cleaned, dict):
        return None
    if not isinstance(cleaned.get("type"), str):
        if cleaned.get("role") != "assistant":
            return None
        cleaned["type"] = "message"
    return cleaned


def text_parts(item: dict[str, Any]) -> list[tuple[str, str]]:
    """The `(kind, text)` of each part of a message that has text; the kind is `output_text` or `refusal`."""
    if item.get("type") != "message":
        return []
    content = item.get("content")
    if isinstance(content, str):  # the short form that some servers also use in their output
        return [("output_text", content)] if content else []
    parts = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and part.get("type") in ("output_text", "refusal"):
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            text = part.get("refusal" if kind == "refusal" else "text")
            if isinstance(text, str) and text:
                parts.append((kind, text))
    return parts


def message_item(texts: Iterable[str], phase: Any = None) -> dict[str, Any]:
    """An assistant message in the shape that every known server takes back: no id, no status, plain text parts."""
    item: dict[str, Any] = {"type": "message", "role": "assistant"}
    if phase is not None:  # newer models take commentary for the final answer when it is missing
        item["phase"] = phase
    item["content"] = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return item
