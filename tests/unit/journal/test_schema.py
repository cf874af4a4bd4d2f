"""The record schema and its two judges: jsonschema-rs decides, jsonschema explains, and they never disagree."""

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from mino.journal import schema
from mino.journal.findings import NEWER, BadLine
from tests.unit.journal.sample import FIRST, ITEM, answer, end, question

GOOD: list[dict[str, Any]] = [
    json.loads(line)
    for line in (
        question(1, FIRST),
        answer(2, FIRST),
        answer(2, FIRST, text="", output=[]),
        answer(2, FIRST, output=[ITEM, {"type": "reasoning", "summary": [], "encrypted_content": "x" * 99}]),
        *(end(3, FIRST, status) for status in ("completed", "failed", "cancelled", "interrupted")),
        question(1, FIRST, input=[{"type": "input_image", "image_url": "data:…"}, {"type": "input_text", "text": "?"}]),
        answer(2, FIRST, model="模型", usage={"input_tokens": 3, "details": {"cached": None}}),
    )
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 1.0, 1.5, 2.0, 1e300, 2**63, 2**64, -(2**64), 10**30, 10**3999, -0.0),
    *("", "1", "x", "你好", "😀", FIRST, FIRST.upper(), FIRST[:-1], FIRST + "0", FIRST + "\n", FIRST[:-1] + "\n"),
    *(" " + FIRST[1:], "g" * 32, "٣" * 32, "user_message", "assistant_message", "turn_end", "Turn_end", "note"),
    *("completed", "failed", "COMPLETED", "done", [], {}, [1], [[]], [None], {"type": "m"}, [{"type": "m"}]),
    *([{"type": 1}], [{}], [{"type": "m"}, {"type": None}], [{"type": "m", "x": {"type": 1}}], [FIRST], ["m"]),
]
FIELDS = ("v", "seq", "type", "turn_id", "text", "status", "output", "input", "model", "usage", "at", "V", "")


def good_records() -> Iterator[dict[str, Any]]:
    """Thousands of good records, with any numbers, texts and items."""
    choice = random.Random(1)
    for record in GOOD * 300:
        record = {**record, "seq": choice.choice((1, 2, choice.randrange(1, 2**70)))}
        record["turn_id"] = f"{choice.randrange(16**32):032x}"
        if "text" in record:
            record["text"] = "".join(choice.choices('aé你😀 \n"\\\0', k=choice.randrange(1, 9)))
        fields = [str(field) for field in (*FIELDS, "内容")]
        for name in {"output", "input"} & record.keys():
            items = [{choice.choice(fields): choice.choice(VALUES), "type": "m"} for _ in range(choice.randrange(4))]
            record[name] = items
        if "usage" in record:
            record["usage"] = {choice.choice(fields): choice.choice(VALUES)}
        yield record


def mutations() -> Iterator[Any]:
    """Good records, and what becomes of them when one field or two are missing, wrong, or too many."""
    yield from GOOD
    yield from good_records()
    yield from VALUES
    for record in GOOD:
        for field in record:
            yield {name: value for name, value in record.items() if name != field}
        for field, value in itertools.product(FIELDS, VALUES):
            yield {**record, field: value}
        for one, other in itertools.combinations(record, 2):
            yield {name: value for name, value in record.items() if name not in (one, other)}
            yield {**record, one: record[other], other: record[one]}
        yield dict(reversed(record.items()))


MUTATIONS = list(mutations())


def test_there_are_thousands_of_good_and_broken_records() -> None:
    by_rust = jsonschema_rs.validator_for(schema.load("record.v1"))
    good = sum(by_rust.is_valid(value) for value in MUTATIONS)
    assert good > 2000 and len(MUTATIONS) - good > 3000


def test_both_validators_agree_on_every_record() -> None:
    by_rust = jsonschema_rs.validator_for(schema.load("record.v1"))
    by_python = jsonschema.Draft202012Validator(schema.load("record.v1"))
    for value in MUTATIONS:
        assert by_rust.is_valid(value) is by_python.is_valid(value), value


def test_the_check_is_the_schema_and_integers_written_as_integers() -> None:
    by_rust = jsonschema_rs.validator_for(schema.load("record.v1"))
    for value in MUTATIONS:
        written_as_integers = not isinstance(value, dict) or all(
            type(value.get(field, 1)) is int for field in ("v", "seq")
        )
        assert schema.are_valid([value]) is (by_rust.is_valid(value) and written_as_integers), value
        assert schema.are_valid([GOOD[0], value, GOOD[1]]) is schema.are_valid([value]), value


def test_a_refused_record_is_explained_and_only_a_refused_one() -> None:
    for value in MUTATIONS:
        try:
            assert schema.check(value) is value
        except BadLine as flaw:
            assert not schema.are_valid([value])
            assert flaw.code in (*NEWER, "bad-record", "bad-turn-id")
            assert ("found " in flaw.message or "is missing" in flaw.message) and len(flaw.message) < 200
        else:
            # Which integer comes next is a matter of order, not of the record.
            assert schema.are_valid([value]) or (value["seq"] < 1 and schema.are_valid([{**value, "seq": 1}]))


USER, REPLY, ENDING = GOOD[0], GOOD[1], GOOD[4]


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ([], "bad-record", "found [], expected an object"),
        ("x", "bad-record", 'found "x", expected an object'),
        ({}, "bad-record", 'the field "v" is missing'),
        ({"v": 1}, "bad-record", 'the field "type" is missing'),
        ({**USER, "v": 2}, "unknown-version", "found format version 2, expected 1"),
        ({**USER, "v": 0, "type": 1, "at": 1}, "unknown-version", "found format version 0"),
        # Another version may name its fields otherwise; nothing else about it can be judged.
        ({"v": 2}, "unknown-version", "written by a newer Mino, or edited by hand"),
        ({"v": 2, "kind": "question", "n": 1.0}, "unknown-version", "format version 2"),
        ({**USER, "v": True}, "bad-record", 'found true in the field "v", expected the integer 1'),
        ({**USER, "v": 1.0}, "bad-record", 'found 1.0 in the field "v"'),
        ({**USER, "v": "1"}, "bad-record", 'found "1" in the field "v"'),
        ({**USER, "type": "note"}, "unknown-type", 'of type "note": written by a newer Mino'),
        ({"v": 1, "type": "note"}, "unknown-type", "note"),
        ({**USER, "type": None}, "bad-record", 'found null in the field "type", expected a string'),
        ({**USER, "at": 1}, "unknown-field", 'the field "at" in a user_message: written by a newer Mino'),
        ({**ENDING, "text": "x"}, "unknown-field", 'the field "text" in a turn_end'),
        ({**USER, "output": []}, "unknown-field", 'the field "output" in a user_message'),
        ({**USER, "usage": {}}, "unknown-field", 'the field "usage" in a user_message'),
        ({**REPLY, "input": []}, "unknown-field", 'the field "input" in a assistant_message'),
        ({**ENDING, "model": "m"}, "unknown-field", 'the field "model" in a turn_end'),
        ({**USER, "input": None}, "bad-record", 'found null in the field "input", expected a value of type array'),
        ({**USER, "input": [ITEM, {"text": "?"}]}, "bad-record", 'the field "input.1.type" is missing'),
        ({**REPLY, "model": 5}, "bad-record", 'found 5 in the field "model", expected a value of type string'),
        ({**REPLY, "usage": [1]}, "bad-record", 'found [1] in the field "usage", expected a value of type object'),
        ({"v": 1, "type": "turn_end", "時": 1}, "unknown-field", '"時"'),
        ({**USER, "seq": 1.0}, "bad-record", 'found 1.0 in the field "seq", expected an integer'),
        ({**USER, "seq": True}, "bad-record", 'found true in the field "seq"'),
        ({**USER, "seq": "1"}, "bad-record", 'found "1" in the field "seq"'),
        ({**USER, "seq": None}, "bad-record", 'found null in the field "seq"'),
        ({**USER, "seq": 0, "text": ""}, "bad-record", "at least one character"),
        ({**USER, "turn_id": FIRST.upper()}, "bad-turn-id", "expected 32 lower-case hex digits"),
        ({**USER, "turn_id": FIRST + "\n"}, "bad-turn-id", r"\n"),
        ({**USER, "turn_id": ""}, "bad-turn-id", 'found the turn id ""'),
        ({**USER, "turn_id": "x", "seq": -1}, "bad-turn-id", 'found the turn id "x"'),
        ({**USER, "turn_id": 5}, "bad-record", 'found 5 in the field "turn_id", expected a value of type string'),
        ({**USER, "text": ""}, "bad-record", 'found "" in the field "text", expected at least one character'),
        ({**USER, "text": ["你好"]}, "bad-record", 'found ["你好"] in the field "text"'),
        ({**REPLY, "output": None}, "bad-record", 'found null in the field "output", expected a value of type array'),
        ({**REPLY, "output": [ITEM, {"id": 1}]}, "bad-record", 'the field "output.1.type" is missing'),
        ({**REPLY, "output": [ITEM, 7]}, "bad-record", 'found 7 in the field "output.1"'),
        ({**REPLY, "output": [{"type": 7}]}, "bad-record", 'found 7 in the field "output.0.type"'),
        ({**ENDING, "status": "done"}, "bad-record", "expected one of completed, failed, cancelled, interrupted"),
        ({**ENDING, "status": None}, "bad-record", 'found null in the field "status"'),
        *(
            ({name: value for name, value in record.items() if name != field}, "bad-record", f'"{field}" is missing')
            for record in (USER, REPLY, ENDING)
            for field in record
        ),
    ],
)
def test_the_code_and_the_sentence(value: object, code: str, words: str) -> None:
    with pytest.raises(BadLine) as caught:
        schema.check(value)
    assert caught.value.code == code
    assert words in caught.value.message


def test_the_items_of_an_answer_may_be_anything_with_a_string_type() -> None:
    items = [{"type": ""}, {"type": "m", "v": 2, "seq": 1.0, "type ": None, "content": [[], {}, 1.5, 10**30]}]
    assert schema.check({**REPLY, "output": items}) == {**REPLY, "output": items}


def test_a_million_wrong_items_are_one_flaw_that_is_found_at_once() -> None:
    with pytest.raises(BadLine, match=r"output\.0"):
        schema.check({**REPLY, "output": [1] * 1_000_000})


def test_what_the_schema_refuses_is_refused_even_if_nothing_explains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the two validators ever to disagree, the record must not come in unexplained."""
    monkeypatch.setattr(schema, "are_valid", lambda records: False)
    with pytest.raises(BadLine, match="no user_message by the schema"):
        schema.check(USER)
