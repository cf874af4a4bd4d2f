"""Output items: the texts in them, and the form in which they are kept."""

from typing import Any

import pytest

from mino.responses.items import clean_item, message_item, text_parts


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("巴黎 🗼", [("output_text", "巴黎 🗼")]),  # the short form
        ("", []),
        ([{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}], None),
        ([{"type": "output_text", "text": ""}, {"type": "output_text", "text": 7}, "x", None, {"text": "y"}], []),
        (None, []),
        (7, []),
    ],
)
def test_texts_of_a_message(content: Any, parts: list[tuple[str, str]] | None) -> None:
    expected = [("output_text", "a"), ("refusal", "no")] if parts is None else parts
    assert text_parts({"type": "message", "content": content}) == expected
    assert text_parts({"type": "reasoning", "content": content}) == []


def test_a_message_is_made_in_the_shape_that_every_server_takes() -> None:
    assert message_item(["你好"], "final") == {
        "type": "message",
        "role": "assistant",
        "phase": "final",
        "content": [{"type": "output_text", "text": "你好", "annotations": []}],
    }
    assert "phase" not in message_item([])


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        ({"type": "message", "x": "a\ud83d"}, {"type": "message", "x": "a\ufffd"}),
        ({"role": "assistant", "content": "你"}, {"role": "assistant", "content": "你", "type": "message"}),
        ({"role": "user", "content": "x"}, None),
        ({"type": 7}, None),
        ("message", None),
        (None, None),
        ([], None),
    ],
)
def test_an_item_in_a_form_that_a_record_accepts_or_not_at_all(item: Any, kept: Any) -> None:
    assert clean_item(item) == kept
