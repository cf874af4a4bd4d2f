"""The request body (spec section 8) and what the steps of the replay ladder make of stored items."""

import copy
import json
from dataclasses import dataclass
from typing import Any

import pytest

from mino.responses.request import (
    AS_RECEIVED,
    MESSAGES_ONLY,
    PLAIN_TEXT,
    WITHOUT_IDS,
    Form,
    Request,
    context_items,
    encode,
    forms,
    newest,
    size_of,
)
from tests.server import message

STEPS = (AS_RECEIVED, WITHOUT_IDS, MESSAGES_ONLY, PLAIN_TEXT)


@dataclass
class Turn:
    user: str
    assistant: str | None
    output: list[dict[str, Any]] | None = None
    input: list[dict[str, Any]] | None = None


def replayed(output: list[dict[str, Any]], step: int, text: str = "answer") -> list[dict[str, Any]]:
    """What is sent back of a turn with these items, without its question; the stored items must stay as they are."""
    before = copy.deepcopy(output)
    question, *items = context_items([Turn("q", text, output)], step)
    assert question == user("q")
    assert output == before
    return items


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def plain(*texts: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "role": "assistant", **more, "content": content}


def text_alone(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", **more, "content": text}


REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
ANSWER = message("answer", "msg_1", phase="final_answer")
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
REFUSAL = message("", "msg_1", content=[{"type": "refusal", "refusal": "No, 不行."}])


def test_body_as_the_specification_has_it() -> None:
    body = Request("gpt-5.6", "Be brief.", [Turn("你好", "Hi 😀")], "And now?").body()
    assert body == {
        "model": "gpt-5.6",
        "instructions": "Be brief.",
        "input": [user("你好"), plain("Hi 😀"), user("And now?")],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


@pytest.mark.parametrize("instructions", [None, ""])
def test_no_instructions_no_key(instructions: str | None) -> None:
    assert "instructions" not in Request("m", instructions, [], "q").body()


def test_only_include_can_be_dropped() -> None:
    request = Request("m", "i", [Turn("q", "a", [ANSWER])], "q")
    for step in STEPS:
        body = request.body(Form(step, include=False))
        assert "include" not in body
        assert body["store"] is False
        assert body["stream"] is True
        assert not {"previous_response_id", "conversation"} & set(body)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("output", [None, []])
def test_turn_without_items_is_sent_as_its_text(output: Any, step: int) -> None:
    assert context_items([Turn("q", "a", output)], step) == [
        user("q"),
        text_alone("a") if step == PLAIN_TEXT else plain("a"),
    ]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("output", [[REASONING], [CALL], [message("")], [REASONING, message("", content=None)]])
def test_items_without_text_though_text_was_shown_are_sent_as_the_text(output: list[dict[str, Any]], step: int) -> None:
    assert replayed(output, step) == [text_alone("answer") if step == PLAIN_TEXT else plain("answer")]


def test_step_0_items_as_received() -> None:
    assert replayed([REASONING, ANSWER], AS_RECEIVED) == [REASONING, ANSWER]


def test_step_0_unknown_and_search_items_as_received() -> None:
    odd = {"type": "something_new", "id": "x", "data": [1, {"a": "b"}]}
    assert replayed([odd, SEARCH, ANSWER], AS_RECEIVED) == [odd, SEARCH, ANSWER]


def test_step_1_ids_dropped_and_nothing_else() -> None:
    bare = [{key: value for key, value in item.items() if key != "id"} for item in (REASONING, SEARCH, ANSWER)]
    assert replayed([REASONING, SEARCH, ANSWER], WITHOUT_IDS) == bare


def test_step_2_messages_only() -> None:
    assert replayed([REASONING, SEARCH, ANSWER], MESSAGES_ONLY) == [plain("answer", phase="final_answer")]


def test_step_2_each_message_and_part_is_kept() -> None:
    commentary = message("", phase="commentary", content=[{"type": "output_text", "text": text} for text in "ab"])
    sent = replayed([commentary, ANSWER], MESSAGES_ONLY)
    assert sent == [plain("a", "b", phase="commentary"), plain("answer", phase="final_answer")]


def test_step_3_the_content_of_each_message_is_its_text() -> None:
    two = message("", content=[{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}])
    sent = replayed([REASONING, SEARCH, two, ANSWER, message("")], PLAIN_TEXT)
    assert sent == [text_alone("ab"), text_alone("answer", phase="final_answer")]


def test_only_forms_that_differ_are_tried() -> None:
    assert list(forms([], AS_RECEIVED)) == [AS_RECEIVED]
    assert list(forms([Turn("q", "a")], AS_RECEIVED)) == [AS_RECEIVED, PLAIN_TEXT]
    whole = [Turn("q", "answer", [REASONING, ANSWER])]
    assert list(forms(whole, AS_RECEIVED)) == list(STEPS)
    assert list(forms(whole, MESSAGES_ONLY)) == [MESSAGES_ONLY, PLAIN_TEXT]
    assert list(forms(whole, PLAIN_TEXT)) == [PLAIN_TEXT, MESSAGES_ONLY]


def test_refusal_is_sent_as_received_then_as_text() -> None:
    assert replayed([REFUSAL], AS_RECEIVED) == [REFUSAL]
    assert replayed([REFUSAL], MESSAGES_ONLY) == [plain("No, 不行.")]


def test_keys_whose_value_is_null_are_left_out_at_any_depth() -> None:
    part = {"type": "output_text", "text": "answer", "logprobs": None, "annotations": [{"url": None, "n": 0}]}
    item = {"type": "message", "phase": None, "status": None, "content": [part, None], "flag": False, "empty": []}
    assert replayed([item], AS_RECEIVED) == [
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "answer", "annotations": [{"n": 0}]}, None],
            "flag": False,
            "empty": [],
        }
    ]


def test_items_that_need_no_change_are_not_copied() -> None:
    [sent] = replayed([ANSWER], AS_RECEIVED)
    assert sent is ANSWER


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call", "computer_call", "mcp_approval_request"])
@pytest.mark.parametrize("step", STEPS)
def test_items_that_need_an_output_of_ours_are_never_sent_back(kind: str, step: int) -> None:
    call = {"type": kind, "id": "x"}
    output = {"type": f"{kind}_output", "id": "y"}
    assert [item["type"] for item in replayed([ANSWER, call, output], step)] == ["message"]


@pytest.mark.parametrize(
    "reasoning",
    [{"id": "rs", "type": "reasoning", "summary": []}, {"id": "rs", "type": "reasoning", "encrypted_content": ""}],
)
def test_reasoning_without_its_content_is_left_out_and_with_it_the_ids_of_its_turn(reasoning: dict[str, Any]) -> None:
    [sent] = replayed([reasoning, ANSWER], AS_RECEIVED)
    assert sent == {key: value for key, value in ANSWER.items() if key != "id"}


def test_reasoning_with_open_content_is_sent_back() -> None:
    open_reasoning = {"id": "rs", "type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert replayed([open_reasoning, ANSWER], AS_RECEIVED) == [open_reasoning, ANSWER]


def test_trailing_reasoning_is_left_out() -> None:
    assert [item["type"] for item in replayed([REASONING, ANSWER, REASONING], AS_RECEIVED)] == ["reasoning", "message"]


def test_reasoning_that_led_to_a_call_is_left_out_with_it() -> None:
    assert [item["type"] for item in replayed([ANSWER, REASONING, CALL], AS_RECEIVED)] == ["message"]


def test_ids_of_other_turns_stay() -> None:
    torn = [{"id": "rs", "type": "reasoning", "summary": []}, ANSWER]
    items = context_items([Turn("1", "answer", torn), Turn("2", "answer", [ANSWER])], AS_RECEIVED)
    assert ["id" in item for item in items if item.get("role") == "assistant"] == [False, True]


def test_integers_over_64_bits_keep_their_value() -> None:
    assert json.loads(encode({"n": 2**70, "text": "你好 \u2028"})) == {"n": 2**70, "text": "你好 \u2028"}


def test_lone_surrogate_is_sent_as_a_replacement_character() -> None:
    assert json.loads(encode({"text": "a\ud83db😀"})) == {"text": "a\ufffdb😀"}


def test_text_is_sent_as_itself() -> None:
    assert encode({"a": "é\u2028"}) == '{"a":"é\u2028"}'.encode()
    assert encode({"a": "é\u2028", "n": 2**65}) == f'{{"a":"é\u2028","n":{2**65}}}'.encode()


@pytest.mark.parametrize("step", STEPS)
def test_ten_thousand_turns(step: int) -> None:
    part: dict[str, Any] = {"type": "output_text", "text": "answer", "annotations": [], "logprobs": None}
    turns = [Turn(f"question {n}", "answer", [REASONING, message("", content=[part])]) for n in range(10_000)]
    assert len(encode(Request("m", None, turns, "q").body(Form(step)))) > 1_000_000


def test_as_many_whole_turns_as_the_bytes_hold_from_the_newest_on() -> None:
    turns = [Turn("q", "a"), Turn("很长的问题 🗼" * 50, "a"), Turn("q", "a"), Turn("q", "answer", [REASONING, ANSWER])]
    sizes = [
        len(json.dumps(context_items([each], AS_RECEIVED), ensure_ascii=False, separators=(",", ":")).encode())
        - 2
        - len(context_items([each], AS_RECEIVED))
        + 1
        for each in turns
    ]  # no brackets, no commas
    assert [size_of(context_items([each], AS_RECEIVED)) for each in turns] == sizes
    assert newest(turns, None) == turns and newest([], None) == newest([], 9) == []
    for kept in range(5):
        needed = sum(sizes[len(turns) - kept :])
        assert newest(turns, needed) == turns[len(turns) - kept :]
        if kept:
            assert newest(turns, needed - 1) == turns[len(turns) - kept + 1 :]
    # The first turn would fit, but not the one after it: there is no gap.
    assert newest(turns, sum(sizes) - sizes[1]) == turns[2:]
    assert newest(iter(turns), 10**15) == turns


def test_what_is_not_sent_has_no_size() -> None:
    whole = Turn("q", "answer", [REASONING, ANSWER, CALL])
    assert newest([whole], size_of([user("q"), REASONING, ANSWER])) == [whole]
    null = Turn("q", "answer", [{**ANSWER, "status": None}])
    assert newest([null], size_of([user("q"), ANSWER])) == [null]
