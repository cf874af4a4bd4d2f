"""The last questions of a file: of every turn, whole, and no more of them than a line editor needs."""

import json

import pytest

from mino.journal.questions import last_questions
from tests import homes
from tests.unit.journal.sample import FIRST


def journal(*questions: str) -> bytes:
    return homes.completed(*((question, '答："user_message"') for question in questions))


def test_the_questions_of_all_turns_whole_and_in_order() -> None:
    failed = homes.ended(1, FIRST, "第一行\nsecond 🐕\t\x1b[2J", "failed")
    data = homes.numbered(failed, journal("二", 'ask "user_message"'))
    whole = ["第一行\nsecond 🐕\t\x1b[2J", "二", 'ask "user_message"']
    for size in (1, 7, len(data)):
        assert last_questions(data[at : at + size] for at in range(0, len(data), size)) == whole
    assert last_questions([]) == last_questions([b""]) == []


def test_only_the_last_ones() -> None:
    data = [journal(*(f"问{n}" for n in range(30)))]
    assert last_questions(data, 2) == ["问28", "问29"]
    assert last_questions(data, 30) == last_questions(data, 31) == [f"问{n}" for n in range(30)]
    assert last_questions(data, 30, 9) == ["问27", "问28", "问29"]
    assert last_questions([journal("长" * 10, "短")], 30, 9) == ["短"]
    assert last_questions([journal("短", "长" * 10)], 30, 9) == []


@pytest.mark.parametrize("number", [1, 2**64, 10**400])
def test_an_item_that_names_a_question_is_none(number: int) -> None:
    first, answer, end = journal("问").splitlines(keepends=True)
    item = {"type": "message", "n": number, "inner": {"type": "user_message", "text": "no question"}}
    answer = (json.dumps({**json.loads(answer), "output": [item]}) + "\n").encode()
    assert b'"user_message"' in answer
    assert last_questions([first + answer + end]) == ["问"]
