"""Characters and numbers that servers send and UTF-8, doubles or records cannot hold."""

import json
from typing import Any

import pytest

from mino.responses.answer import AnswerFold
from mino.responses.sse import Event
from mino.responses.values import read_json
from tests.server import delta, ended, item_done, message
from tests.unit.responses.folding import (
    answered,
    event,
    failure,
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


DEPTHS = [1500, 100_000]  # beyond the parsers: orjson takes 1024 levels, and json as many as the stack allows


def deep(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + '"]\\"[{"' + closing * levels


def with_deep(said: dict[str, Any], value: str) -> Event:
    """The event in which `value`, JSON that no library here writes, stands for DEEP."""
    return Event("", json.dumps(said).replace('"DEEP"', value).encode())


@pytest.mark.parametrize("levels", DEPTHS)
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[0,{"]":', ',"b":1}, 2]')])
def test_what_is_nested_deeper_than_a_parser_takes_is_left_out(levels: int, opening: str, closing: str) -> None:
    nested = deep(levels, opening, closing)
    answer = answered(
        with_deep({"type": "response.new", "value": "DEEP"}, nested),
        with_deep({"type": "response.created", "response": {"model": "m-9", "tools": "DEEP"}}, nested),
        with_deep({**delta("hi"), "logprobs": "DEEP"}, nested),
        with_deep(item_done({"type": "odd", "value": ["DEEP"]}, 1), nested),
        item_done(message("hi")),
        with_deep(ended(model=None, tools="DEEP", output=["DEEP", message("hi")]), nested),
    )
    assert (answer.text, answer.output, answer.model) == ("hi", [message("hi")], "m-9")


@pytest.mark.parametrize("levels", DEPTHS)
def test_terminal_event_is_read_without_the_item_that_is_nested_too_deeply(levels: int) -> None:
    usage = {"total_tokens": 2**70}
    said = ended(output=[{"type": "odd", "value": "DEEP"}, message("hi")], usage=usage)
    answer = answered(with_deep(said, deep(levels)))
    assert (answer.text, answer.output, answer.usage) == ("hi", [message("hi")], usage)


@pytest.mark.parametrize("levels", DEPTHS)
def test_whole_body_is_read_without_the_item_that_is_nested_too_deeply(levels: int) -> None:
    body = {"status": "completed", "output": [{"type": "odd", "value": "DEEP"}, message("hi")]}
    folded = AnswerFold()
    assert folded.add_whole(with_deep(body, deep(levels)).data) == "hi"
    assert folded.finish().output == [message("hi")]


TAILS = ["", "]" * 1999, "]" * 1999 + "}", "]" * 2001, "]" * 2000 + ",", '"' + '\\"' * 500_000]


@pytest.mark.parametrize("tail", TAILS)
def test_deep_nesting_that_is_not_json_is_refused(tail: str) -> None:
    assert read_json(("[" * 2000 + tail).encode()) is None
    assert "not an event" in failure(Event("", ("{" + '"a":[' * 2000 + tail).encode()))


def test_deep_event_whose_error_must_be_understood() -> None:
    said = with_deep({"type": "error", "message": "Bad", "details": "DEEP"}, deep(5000))
    assert failure(said) == "the service failed: Bad"


def test_item_without_type_is_a_message_if_it_is_the_assistants() -> None:
    item = {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    answer = answered(ended(output=[item, {"role": "other"}]))
    assert (answer.text, answer.output) == ("hi", [{**item, "type": "message"}])
