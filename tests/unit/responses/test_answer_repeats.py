"""The folding where servers say things twice, contradict themselves, or send several messages or a refusal."""

import json

import pytest

from mino.responses.answer import AnswerFold
from tests.server import delta, ended, item_done, message
from tests.unit.responses.folding import REASONING, Said, added, answered, fold, part, refusal_item

# What may be repeated or contradictory


def test_done_events_repeat_the_text() -> None:
    where = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
    piece = {"type": "response.content_part.done", **where, "part": {"type": "output_text", "text": "ab"}}
    said = [delta("a"), delta("b"), part("output_text", "ab", **where), piece, item_done(message("ab"))]
    assert answered(*said, ended(output=[message("ab")])).text == "ab"


def test_done_goes_on_from_the_deltas() -> None:
    assert answered(delta("ab"), part("output_text", "abcd", output_index=0), ended()).text == "abcd"
    assert answered(delta("ab"), item_done(message("abcd")), ended()).text == "abcd"
    assert answered(delta("ab"), ended(output=[message("abcd")])).text == "abcd"


@pytest.mark.parametrize("text", ["", "something else", "a"])
def test_done_empty_or_different_deltas_stand(text: str) -> None:
    said = [delta("ab"), part("output_text", text, output_index=0), item_done(message(text))]
    assert answered(*said, ended(output=[message(text)])).text == "ab"


def test_items_twice_last_one_wins() -> None:
    again = message("hi", status="incomplete")
    answer = answered(delta("hi"), item_done(message("hi")), item_done(again), ended(output=[message("hi"), again]))
    assert (answer.text, answer.output) == ("hi", [again])


def test_items_twice_without_index() -> None:
    item = message("hi", "msg_1")
    nameless = {key: value for key, value in item.items() if key != "id"}
    assert answered(item_done(item, None), item_done(item, None), ended()).output == [item]
    assert answered(item_done(nameless, None), item_done(nameless, None), ended()).text == "hi"


def test_items_sorted_by_index() -> None:
    answer = answered(item_done(message("hi"), 1), item_done(REASONING, 0), ended())
    assert [item["type"] for item in answer.output] == ["reasoning", "message"]


def test_items_in_order_of_arrival_without_index() -> None:
    answer = answered(item_done(REASONING, None), item_done(message("hi"), None), ended())
    assert [item["type"] for item in answer.output] == ["reasoning", "message"]


def test_ids_that_differ_between_stream_and_final_object() -> None:
    said = [delta("hi", 0, "msg_a"), item_done(message("hi", "msg_b"))]
    answer = answered(*said, ended(id="other", output=[message("hi", "msg_c")]))
    assert (answer.text, answer.output[0]["id"]) == ("hi", "msg_b")


def test_ids_that_differ_without_any_index() -> None:
    said = [delta("h", None, "msg_a"), delta("i", None, "msg_a"), part("output_text", "hi", item_id="msg_b")]
    answer = answered(*said, item_done(message("hi", "msg_c"), None), ended(output=[message("hi", "msg_d")]))
    assert (answer.text, len(answer.output)) == ("hi", 1)


def test_ids_that_change_with_each_delta_where_there_is_an_index() -> None:
    assert answered(delta("a", 0, "x1"), delta("b", 0, "x2"), delta("c", 0, "x3"), ended()).text == "abc"


def test_ids_that_change_with_each_delta_of_an_announced_item() -> None:
    said = [
        added(message("", "x0")),
        delta("a", None, "x1"),
        delta("b", None, "x2"),
        item_done(message("ab", "x3"), None),
    ]
    assert answered(*said, ended()).text == "ab"


def test_item_status_that_differs_from_the_final_object() -> None:
    output = [message("hi", status="incomplete")]
    said = ended("completed", status="incomplete", output=output, incomplete_details={"reason": "max_output_tokens"})
    assert answered(delta("hi"), item_done(message("hi")), said).status == "incomplete"


def test_sequence_numbers_are_never_checked() -> None:
    said = [{**delta(piece), "sequence_number": number} for piece, number in (("a", 9), ("b", 1), ("c", None))]
    assert answered(*said, ended()).text == "abc"


# Several messages


COMMENTARY, FINAL = message("Let me see.", "msg_1", phase="commentary"), message("42", "msg_2", phase="final_answer")


def test_commentary_and_final_answer_with_a_newline_between() -> None:
    said = [
        delta("Let me ", 0),
        delta("see.", 0),
        item_done(COMMENTARY, 0),
        delta("42", 1, "msg_2"),
        item_done(FINAL, 1),
    ]
    answer = answered(*said, ended(output=[COMMENTARY, FINAL]))
    assert answer.text == "Let me see.\n42"
    assert [item.get("phase") for item in answer.output] == ["commentary", "final_answer"]


@pytest.mark.parametrize("index", [None, 0])
def test_two_messages_in_every_manner(index: int | None) -> None:
    second = None if index is None else 1
    deltas = [delta("Let me see.", index, "msg_1"), delta("42", second, "msg_2")]
    dones = [item_done(COMMENTARY, index), item_done(FINAL, second)]
    final = ended(output=[COMMENTARY, FINAL])
    for said in ([*deltas, ended()], [*dones, ended()], [final], [*deltas, final], [*dones, final], [deltas[0], final]):
        assert answered(*said).text == "Let me see.\n42"


def test_two_announced_messages_with_the_same_id_and_no_index() -> None:
    said: list[Said] = []
    for text in ("one", "two"):
        said += [added(message("", "msg_0")), delta(text, None, "msg_0"), item_done(message(text, "msg_0"), None)]
    assert answered(*said, ended()).text == "one\ntwo"


SAME = [message("one", "msg_0"), message("two", "msg_0"), message("two and more", "msg_0")]
THOUGHTS = [{**REASONING, "encrypted_content": text} for text in ("a", "b")]


@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("in_deltas", [False, True])
@pytest.mark.parametrize("parts", [False, True])
def test_items_of_one_id_are_all_kept(index: int | None, announced: bool, in_deltas: bool, parts: bool) -> None:
    said: list[Said] = [item_done(thought, n if index is not None else None) for n, thought in enumerate(THOUGHTS)]
    for n, item in enumerate(SAME, 2):
        where = n if index is not None else None
        place = {"item_id": "msg_0"} | ({} if where is None else {"output_index": where, "content_index": 0})
        text = item["content"][0]["text"]
        said += [added(message("", "msg_0"), **place)] * announced
        said += [delta(text[:2], where, "msg_0"), delta(text[2:], where, "msg_0")] * in_deltas
        said += [part("output_text", text, **place)] * (parts and (in_deltas or announced))
        said.append(item_done(item, where))
    for output in ([], [*THOUGHTS, *SAME]):
        answer = answered(*said, ended(output=output))
        assert (answer.text, answer.output) == ("one\ntwo\ntwo and more", [*THOUGHTS, *SAME])


@pytest.mark.parametrize("shown", [[], [delta("one", None, "msg_0")]])
def test_items_of_one_id_are_all_kept_where_the_response_alone_has_them(shown: list[Said]) -> None:
    answer = answered(*shown, ended(output=[*THOUGHTS, *SAME, THOUGHTS[0], SAME[0]]))
    assert (answer.text, answer.output) == ("one\ntwo\ntwo and more", [*THOUGHTS, *SAME])


def test_equal_items_are_one_whatever_the_order_of_their_keys() -> None:
    turned = dict(reversed(SAME[0].items()))
    assert answered(ended(output=[SAME[0], turned])).output == [SAME[0]]
    assert answered(item_done(SAME[0], None), item_done(turned, None), ended()).output == [SAME[0]]


def test_whole_part_that_comes_after_its_item_adds_nothing() -> None:
    said = [delta("one", None, "msg_0"), item_done(SAME[0], None), part("output_text", "one", item_id="msg_0")]
    assert answered(*said, ended()).text == "one"


def test_whole_body_with_two_messages_of_one_id() -> None:
    folded = AnswerFold()
    shown = folded.add_whole(json.dumps({"status": "completed", "output": SAME}).encode())
    assert (shown, folded.finish().output) == ("one\ntwo\ntwo and more", SAME)


def test_empty_message_between_makes_no_newline() -> None:
    said = [delta("a", 0), added(message("", "x"), output_index=1), item_done(message("", "x"), 1), delta("b", 0)]
    assert answered(*said, ended()).text == "ab"


def test_two_parts_of_a_message_are_one_text() -> None:
    item = message("", content=[{"type": "output_text", "text": text} for text in ("a", "b")])
    parts = [{**delta("a"), "content_index": 0}, {**delta("b"), "content_index": 1}]
    assert answered(*parts, item_done(item), ended(output=[item])).text == "ab"
    assert answered(item_done(item), ended(output=[item])).text == "ab"


def test_two_parts_without_content_index() -> None:
    item = message("", content=[{"type": "output_text", "text": text} for text in ("a", "b")])
    parts = [{"type": "response.output_text.delta", "output_index": 0, "delta": text} for text in ("a", "b")]
    assert answered(*parts, item_done(item), ended(output=[item])).text == "ab"


# Refusals


def test_refusal() -> None:
    said = [{"type": "response.refusal.delta", "output_index": 0, "delta": piece} for piece in ("I ", "can't.")]
    folded, shown = fold(
        *said, part("refusal", "I can't.", output_index=0), item_done(refusal_item("I can't.")), ended()
    )
    answer = folded.finish()
    assert shown == "Model refused: I can't."
    assert (answer.status, answer.refusal, answer.text) == ("completed", True, "I can't.")


@pytest.mark.parametrize(
    "said",
    [
        [part("refusal", "No.", output_index=0), ended()],
        [item_done(refusal_item("No.")), ended()],
        [ended(output=[refusal_item("No.")])],
        [{"type": "response.content_part.done", "part": {"type": "refusal", "refusal": "No."}}, ended()],
    ],
)
def test_refusal_without_deltas(said: list[Said]) -> None:
    folded, shown = fold(*said)
    assert (shown, folded.finish().text) == ("Model refused: No.", "No.")


def test_refusal_after_text_begins_a_line() -> None:
    folded, shown = fold(delta("Well."), {"type": "response.refusal.delta", "output_index": 0, "delta": "No."}, ended())
    assert (shown, folded.finish().text) == ("Well.\nModel refused: No.", "Well.\nNo.")
