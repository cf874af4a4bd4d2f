"""The folding where servers leave things out: the documented order, and each part of it missing."""

import json
from typing import Any

import pytest

from mino.responses.answer import AnswerFold
from mino.responses.sse import Event
from tests.server import answer_events, delta, ended, item_done, message
from tests.unit.responses.folding import (
    REASONING,
    Said,
    added,
    answered,
    event,
    part,
)

# The documented order


def test_documented_sequence() -> None:
    answer = answered(*answer_events("你好, Paris 😀"))
    assert (answer.status, answer.text, answer.refusal) == ("completed", "你好, Paris 😀", False)
    assert answer.output == [message("你好, Paris 😀")]
    assert (answer.model, answer.response_id) == ("m-1", "resp_1")
    assert answer.usage == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def test_text_comes_piece_by_piece() -> None:
    folded = AnswerFold()
    assert [folded.add(event(delta(piece))) for piece in ("a", "b", "c")] == ["a", "b", "c"]


# What may be missing


def test_event_lines_missing_type_from_the_json() -> None:
    assert answered(Event("", json.dumps(delta("hi")).encode()), ended()).text == "hi"


def test_type_missing_event_name_counts() -> None:
    said = delta("hi")
    del said["type"]
    assert answered(Event("response.output_text.delta", json.dumps(said).encode()), ended()).text == "hi"


def test_type_in_the_json_counts_more_than_the_event_name() -> None:
    assert answered(Event("response.created", json.dumps(delta("hi")).encode()), ended()).text == "hi"


def test_indexes_missing() -> None:
    item = message("hi there", "msg_x")
    said = [added(item), delta("hi ", None, "msg_x"), delta("there", None, "msg_x"), item_done(item, None)]
    answer = answered(*said, ended(output=[item]))
    assert (answer.text, answer.output) == ("hi there", [item])


def test_indexes_and_ids_missing() -> None:
    said = [{"type": "response.output_text.delta", "delta": piece} for piece in ("a", "b", "c")]
    assert answered(*said, ended()).text == "abc"


def test_index_in_the_done_event_only() -> None:
    said = [delta("a", None, "x"), delta("b", None, "x"), part("output_text", "ab", output_index=0, content_index=0)]
    assert answered(*said, item_done(message("ab"), 0), ended()).text == "ab"


def test_index_in_the_deltas_only() -> None:
    said = [delta("a", 0, "x"), delta("b", 0, "x"), part("output_text", "ab", item_id="y")]
    assert answered(*said, item_done(message("ab", "z"), None), ended()).text == "ab"


def test_deltas_only() -> None:
    answer = answered(delta("a"), delta("b"), ended())
    assert answer.text == "ab"
    assert answer.output == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ab", "annotations": []}],
        }
    ]


def test_output_text_done_only() -> None:
    assert answered(part("output_text", "all of it", output_index=0, content_index=0), ended()).text == "all of it"


def test_content_part_done_only() -> None:
    said = {"type": "response.content_part.done", "part": {"type": "output_text", "text": "all of it"}}
    assert answered(said, ended()).text == "all of it"


def test_item_done_only() -> None:
    answer = answered(item_done(message("all of it")), ended())
    assert (answer.text, answer.output) == ("all of it", [message("all of it")])


def test_completed_output_only() -> None:
    answer = answered(ended(output=[REASONING, message("all of it")]))
    assert (answer.text, answer.output) == ("all of it", [REASONING, message("all of it")])


def test_output_empty_though_items_streamed() -> None:
    answer = answered(item_done(REASONING, 0), delta("hi", 1), item_done(message("hi"), 1), ended(output=[]))
    assert answer.output == [REASONING, message("hi")]


@pytest.mark.parametrize("output", [None, "missing", 7, [None, 3, "x"]])
def test_output_of_a_strange_shape(output: Any) -> None:
    assert answered(delta("hi"), ended(output=output)).text == "hi"


def test_response_missing_in_created_and_completed() -> None:
    said: list[Said] = [{"type": "response.in_progress"}, {"type": "response.created", "response": None}]
    answer = answered(*said, delta("hi"), {"type": "response.completed"})
    assert (answer.text, answer.model, answer.usage) == ("hi", None, None)


def test_content_missing_in_item_added() -> None:
    assert answered(added({"type": "message"}, output_index=0), delta("hi"), ended()).text == "hi"


@pytest.mark.parametrize("item", [None, 5, "x", [], {}, {"type": None}, {"type": "message", "content": None}])
def test_item_of_a_strange_shape(item: Any) -> None:
    assert answered(item_done(item, 1), delta("hi"), ended()).text == "hi"


@pytest.mark.parametrize("text", [None, 5, ["a"], {}])
def test_delta_that_is_no_string(text: Any) -> None:
    assert answered({**delta(""), "delta": text}, delta("hi"), ended()).text == "hi"
