"""Folding events in a test, and what came of them. What was shown must be what is stored, always."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mino.errors import ServiceFailed
from mino.responses.answer import Answer, AnswerFold
from mino.responses.sse import Event
from tests.server import message

Said = Mapping[str, Any] | Event


def event(said: Said) -> Event:
    return said if isinstance(said, Event) else Event("", json.dumps(said).encode())


def fold(*said: Said) -> tuple[AnswerFold, str]:
    folded = AnswerFold()
    return folded, "".join(folded.add(event(one)) for one in said)


def answered(*said: Said) -> Answer:
    """The answer that these events make; what was shown on the way is its text."""
    folded, shown = fold(*said)
    answer = folded.finish()
    assert shown.replace("Model refused: ", "", 1 if answer.refusal else 0) == answer.text
    return answer


def failure(*said: Said) -> str:
    """The sentence of the failure that these events make."""
    folded, _ = fold(*said)
    with pytest.raises(ServiceFailed) as caught:
        folded.finish()
    return caught.value.message


def part(kind: str, text: str, **where: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.done", **where, "refusal" if kind == "refusal" else "text": text}


def added(item: Mapping[str, Any], **where: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", **where, "item": item}


def refusal_item(text: str) -> dict[str, Any]:
    return message("", content=[{"type": "refusal", "refusal": text}])


REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}
