"""Characters and numbers that servers send and UTF-8, doubles or records cannot hold."""

import json
from typing import Any

from mino.responses.answer import AnswerFold
from mino.responses.sse import Event
from tests.server import delta, ended, item_done, message
from tests.unit.responses.folding import (
    answered,
    event,
    part,
)

# Characters and numbers


def escaped(text: str) -> Event:
    """A delta in which `text`, an escape of JSON, stands as it is."""
    return Event("", json.dumps(delta("TEXT")).replace("TEXT", text).encode())


def test_lone_surrogate_becomes_a_replacement_character() -> None:
    for text in (r"a\ud83db", r"a\ude00b"):
        assert answered(escaped(text), ended()).text == "a\ufffdb"


def test_two_halves_in_two_deltas_are_one_character() -> None:
    folded = AnswerFold()
    assert folded.add(escaped(r"a\ud83d")) == "a"
    assert folded.add(escaped(r"\ude00b")) == "😀b"
    folded.add(event(ended()))
    assert folded.finish().text == "a😀b"


def test_half_at_the_end_becomes_a_replacement_character() -> None:
    assert answered(escaped(r"a\ud83d"), ended()).text == "a\ufffd"
    assert answered(escaped(r"\ud83d"), ended()).text == "\ufffd"


def test_half_before_a_plain_delta_becomes_a_replacement_character() -> None:
    assert answered(delta("a"), escaped(r"\ud83d"), delta("b"), delta("c"), ended()).text == "a\ufffdbc"


def test_half_before_another_message_stays_in_its_own() -> None:
    assert answered(delta("a", 0), escaped(r"\ud83d"), delta("b", 1), ended()).text == "a\ufffd\nb"


def test_half_whose_whole_character_is_in_the_done_event() -> None:
    whole = part("output_text", "a😀b", output_index=0, content_index=0)
    assert answered(escaped(r"a\ud83d"), whole, ended()).text == "a😀b"
    assert answered(escaped(r"a\ud83d"), ended(output=[message("a😀b")])).text == "a😀b"


def test_items_hold_no_lone_surrogate() -> None:
    said = Event("", json.dumps(item_done(message("TEXT"))).replace("TEXT", r"a\ud83d").encode())
    answer = answered(said, ended())
    assert answer.text == "a\ufffd"
    assert answer.output == [message("a\ufffd")]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert (
        answered(Event("", json.dumps(delta("TEXT")).encode().replace(b"TEXT", b"a\xffb")), ended()).text == "a\ufffdb"
    )


def test_items_keep_the_value_of_every_number() -> None:
    numbers: dict[str, Any] = {"big": 2**70, "negative": -(2**64), "float": 0.1, "id": 18446744073709551615}
    answer = answered(item_done(message("hi", **numbers)), ended(usage={"n": 10**30}))
    assert answer.output == [message("hi", **numbers)]
    assert type(answer.output[0]["big"]) is int
    assert answer.usage == {"n": 10**30}


def test_number_that_no_record_can_hold_becomes_null() -> None:
    for number in ("1e400", "-1e999", "9" * 4001):
        said = json.dumps(item_done(message("hi", odd="ODD"))).replace('"ODD"', number)
        assert answered(Event("", said.encode()), ended()).output == [message("hi", odd=None)]


def test_item_nested_deeper_than_a_record_can_hold_is_left_out() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: Any = "x"
        for _ in range(levels - 1):
            value = [value]
        return {"type": "odd", "value": value}

    answer = answered(
        delta("hi", 0), item_done(nested(198), 1), item_done(nested(199), 2), item_done(nested(900), 3), ended()
    )
    assert answer.output == [nested(198)]


def test_item_without_type_is_a_message_if_it_is_the_assistants() -> None:
    item = {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    answer = answered(ended(output=[item, {"role": "other"}]))
    assert (answer.text, answer.output) == ("hi", [{**item, "type": "message"}])
