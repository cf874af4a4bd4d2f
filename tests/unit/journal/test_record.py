"""A record and its line, there and back; what a record can hold."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mino.journal import scan
from mino.journal.record import accepted_items, accepted_usage, assistant_message, encode, turn_end, user_message
from tests.unit.journal.sample import FIRST, same

any_text = st.text(st.characters(exclude_categories=["Cs"]))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
any_item = st.dictionaries(any_text, any_json, max_size=3).map(lambda item: {**item, "type": "message"})


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    text=any_text,
    output=st.none() | st.lists(any_item, max_size=3),
    usage=st.none() | st.dictionaries(any_text, any_json, max_size=3),
)
def test_a_record_comes_back_as_it_was_written(
    text: str, output: list[dict[str, Any]] | None, usage: dict[str, Any] | None
) -> None:
    for record in (
        user_message(1, FIRST, text or "?"),
        user_message(1, FIRST, text or "?", output),
        assistant_message(2**70, FIRST, text, output),
        assistant_message(2**70, FIRST, text, output, text, usage),
        turn_end(3, FIRST, "interrupted"),
    ):
        data = encode(record)
        assert data.count(b"\n") == 1 and data.endswith(b"\n")
        assert same(list(scan.read([data[:-1]])), [record])
        assert same(scan.explain(data[:-1]), record)


@pytest.mark.parametrize(
    ("usage", "stored"),
    [
        ({"input_tokens": 3, "n": 2**64, "词": "\ud83d"}, {"input_tokens": 3, "n": 2**64, "词": "\ufffd"}),
        ({}, {}),
        ({"x": float("inf")}, {"x": None}),
        (None, None),
        ([1], None),
        ("5", None),
        ({"n": 10**4000}, None),
        ({"deep": json.loads("[" * 198 + "]" * 198)}, ...),
        ({"deep": json.loads("[" * 199 + "]" * 199)}, None),
    ],
)
def test_the_usage_is_stored_as_received_or_left_out(usage: Any, stored: Any) -> None:
    kept = accepted_usage(usage)
    assert kept == (usage if stored is ... else stored)
    record = assistant_message(1, FIRST, "", None, "m", kept)
    assert scan.explain(encode(record)[:-1]) == record


def test_text_is_written_as_itself() -> None:
    text = '你好 😀 \u2028\u0085 "quoted" \\ \t\n\0'
    data = encode(user_message(1, FIRST, text))
    assert "你好 😀 \u2028\u0085".encode() in data
    assert data.endswith(rb'\"quoted\" \\ \t\n\u0000"}' + b"\n")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("item", "stored"),
    [
        ({"type": "message", "text": "巴黎 😀", "n": [1, 2**64, -(2**80), 1.5, None, True]}, ...),
        ({"type": "message", "n": 10**3999}, ...),
        ({"type": "message", "x": nested(197)}, ...),
        ({"type": "message", "x": nested(198)}, None),
        ({"type": "message", "x": nested(900)}, None),
        ({"type": "message", "n": 10**4000}, None),
        ({"type": "message", "n": 10**9000}, None),
        ({"type": "message", "x": float("nan")}, {"type": "message", "x": None}),
        ({"type": "message", "x": "a\ud83d"}, {"type": "message", "x": "a\ufffd"}),
        ({"type": "message", "x": "\ud83d\ude00"}, {"type": "message", "x": "😀"}),
        ({"type": "\ud83d", "\ude00": 2**70}, {"type": "\ufffd", "\ufffd": 2**70}),
        ({"type": "message"} | dict.fromkeys(("\ud83d", "\ude00")), None),
        ({"type": 1}, None),
        ({"role": "assistant"}, None),
        ("message", None),
        (None, None),
        ([{"type": "message"}], None),
    ],
)
def test_an_item_is_stored_in_a_form_that_the_loader_accepts_or_left_out(item: Any, stored: Any) -> None:
    kept = accepted_items([{"type": "first"}, item, {"type": "last"}])
    expected = item if stored is ... else stored
    assert kept == [{"type": "first"}, *([expected] if expected else []), {"type": "last"}]
    record = assistant_message(1, FIRST, "", kept)
    assert scan.explain(encode(record)[:-1]) == record
