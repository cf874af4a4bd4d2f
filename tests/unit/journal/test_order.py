"""The rules between records, and how checking goes on after a flaw so that one damage makes one finding."""

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from mino.journal.order import Order
from tests.unit.journal.sample import FIRST, SECOND, THIRD, answer, end, file_of, found, load, question, turn, two_turns

STATUSES = ("completed", "failed", "cancelled", "interrupted")
NEW = "0193a0b1c2d3700080000000000000ff"
IDS = [f"0193a0b1c2d37000800000000000000{number}" for number in range(1, 6)]
HISTORY = [
    *(question(1, IDS[0]), answer(2, IDS[0]), end(3, IDS[0])),
    *(question(4, IDS[1]), end(5, IDS[1], "failed")),
    *(question(6, IDS[2]), answer(7, IDS[2]), end(8, IDS[2], "interrupted")),
    *(question(9, IDS[3]), end(10, IDS[3], "cancelled")),
    *(question(11, IDS[4]), answer(12, IDS[4]), end(13, IDS[4])),
]


def changed(line: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}, ensure_ascii=False).encode()


def id_of(line: bytes) -> str:
    return str(json.loads(line)["turn_id"])


# One damage to one line of HISTORY, or at it.
DAMAGES: dict[str, Callable[[bytes], list[bytes]]] = {
    "lost": lambda line: [],
    "twice": lambda line: [line, line],
    "its seq too high": lambda line: [changed(line, seq=json.loads(line)["seq"] + 1)],
    "its seq far too high": lambda line: [changed(line, seq=10**30)],
    "its seq too low": lambda line: [changed(line, seq=json.loads(line)["seq"] - 1)],
    "its seq negative": lambda line: [changed(line, seq=-1)],
    "its seq a float": lambda line: [changed(line, seq=1.0)],
    "another turn id": lambda line: [changed(line, turn_id=NEW)],
    "a bad turn id": lambda line: [changed(line, turn_id="x")],
    "another version": lambda line: [changed(line, v=2)],
    "another field": lambda line: [changed(line, at=1)],
    "rubbish": lambda line: [b"rubbish"],
    "cut": lambda line: [line[:40]],
    "blank": lambda line: [b""],
    "rubbish before it": lambda line: [b"rubbish", line],
    "a blank line before it": lambda line: [b"", line],
    "a record without a seq before it": lambda line: [b'{"v":1}', line],
    "its type another": lambda line: [
        answer(json.loads(line)["seq"], id_of(line))
        if b"user_message" in line
        else question(json.loads(line)["seq"], NEW)
    ],
    "an end instead": lambda line: [
        end(json.loads(line)["seq"], id_of(line), "completed" if b'"completed"' not in line else "failed")
    ],
}


# An interrupted turn with an answer may as well have been a completed one.
@pytest.mark.parametrize(
    ("damage", "number"),
    [(damage, number) for damage in DAMAGES for number in range(12) if (damage, number) != ("an end instead", 7)],
)
def test_one_damage_makes_one_finding(damage: str, number: int) -> None:
    lines = HISTORY[:number] + DAMAGES[damage](HISTORY[number]) + HISTORY[number + 1 :]
    [(_, line)] = found(file_of(lines))
    assert line in (number + 1, number + 2)


def test_the_history_itself_is_clean() -> None:
    turns, report = load(file_of(HISTORY))
    assert report.findings == []
    assert [turn.status for turn in turns] == ["completed", "failed", "interrupted", "cancelled", "completed"]
    assert [(turn.number, turn.first_line, turn.last_line) for turn in turns] == [
        *((1, 1, 3), (2, 4, 5), (3, 6, 8), (4, 9, 10), (5, 11, 13)),
    ]
    assert [turn.assistant is not None for turn in turns] == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("lines", "code", "line", "words"),
    [
        ([answer(1, FIRST)], "bad-order", 1, "found an assistant_message, expected a user_message first"),
        ([end(1, FIRST)], "bad-order", 1, "found a turn_end, expected a user_message first"),
        ([question(1, FIRST), question(2, SECOND)], "bad-order", 2, f"expected the end of turn {FIRST} first"),
        ([question(1, FIRST), question(2, FIRST)], "bad-order", 2, f"expected the end of turn {FIRST} first"),
        ([question(1, FIRST), answer(2, SECOND)], "bad-order", 2, f"found turn id {SECOND}, expected {FIRST}"),
        ([question(1, FIRST), end(2, SECOND, "failed")], "bad-order", 2, f"found turn id {SECOND}, expected {FIRST}"),
        ([question(1, FIRST), answer(2, FIRST), answer(3, FIRST)], "bad-order", 3, "a second assistant_message"),
        (
            [question(1, FIRST), end(2, FIRST)],
            "bad-order",
            2,
            "found turn_end completed, expected an assistant_message",
        ),
        ([question(1, FIRST), answer(2, FIRST), end(3, FIRST, "failed")], "bad-order", 3, "failed after an answer"),
        (
            [question(1, FIRST), answer(2, FIRST), end(3, FIRST, "cancelled")],
            "bad-order",
            3,
            "cancelled after an answer",
        ),
        ([*turn(1, FIRST), question(4, FIRST)], "reused-turn-id", 4, f"found the turn id {FIRST} again"),
        ([*turn(1, FIRST), end(4, FIRST)], "bad-order", 4, "expected a user_message first"),
        ([question(2, FIRST)], "bad-seq", 1, "found seq 2, expected 1"),
        ([question(0, FIRST)], "bad-seq", 1, "found seq 0, expected 1"),
        ([question(1, FIRST), answer(1, FIRST)], "bad-seq", 2, "found seq 1, expected 2"),
    ],
)
def test_a_wrong_order_stops_a_loading_with_a_sentence(lines: list[bytes], code: str, line: int, words: str) -> None:
    _, report = load(file_of(lines))
    assert report.state == "invalid"
    assert (report.findings[-1].code, report.findings[-1].line) == (code, line)
    assert words in report.findings[-1].message
    assert (code, line) in found(file_of(lines))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # A bad line may have taken one seq or none, each of several lines.
        ([*turn(1, FIRST), b"x", *turn(4, SECOND)], [("bad-json", 4)]),
        ([*turn(1, FIRST), b"x", *turn(5, SECOND)], [("bad-json", 4)]),
        ([*turn(1, FIRST), b"x", b"y", *turn(4, SECOND)], [("bad-json", 4), ("bad-json", 5)]),
        ([*turn(1, FIRST), b"x", b"y", *turn(6, SECOND)], [("bad-json", 4), ("bad-json", 5)]),
        ([*turn(1, FIRST), b"x", *turn(6, SECOND)], [("bad-json", 4), ("bad-seq", 5)]),
        ([*turn(1, FIRST), b"x", *turn(3, SECOND)], [("bad-json", 4), ("bad-seq", 5)]),
        # After a wrong seq both counts may go on, and only the one that did.
        ([*turn(1, FIRST), *turn(5, SECOND), *turn(8, THIRD)], [("bad-seq", 4)]),
        ([*turn(1, FIRST), question(9, SECOND), *turn(4, SECOND)[1:], *turn(7, THIRD)], [("bad-seq", 4)]),
        ([*turn(1, FIRST), *turn(5, SECOND), *turn(7, THIRD)], [("bad-seq", 4), ("bad-seq", 7)]),
        (
            [*turn(1, FIRST), b"x", question(9, SECOND), answer(6, SECOND), end(7, SECOND)],
            [("bad-json", 4), ("bad-seq", 5)],
        ),
        # After an unreadable line nothing is out of order before a turn begins or ends.
        ([*turn(1, FIRST), b"x", answer(5, SECOND), end(6, SECOND)], [("bad-json", 4)]),
        ([*turn(1, FIRST), b"x", answer(5, SECOND), answer(6, THIRD), end(7, NEW)], [("bad-json", 4)]),
        ([question(1, FIRST), b"x", end(3, FIRST), *turn(4, SECOND)], [("bad-json", 2)]),
        ([question(1, FIRST), b"x", *turn(3, SECOND)], [("bad-json", 2)]),
        (
            [question(1, FIRST), b"x", answer(3, SECOND), end(4, SECOND), end(5, THIRD)],
            [("bad-json", 2), ("bad-order", 5)],
        ),
        # ... but a turn that begins or ends makes it certain again.
        ([b"x", question(1, FIRST), question(2, SECOND)], [("bad-json", 1), ("bad-order", 3)]),
        ([b"x", end(2, FIRST), answer(3, SECOND), end(4, SECOND)], [("bad-json", 1), ("bad-order", 3)]),
        ([b"x", *turn(1, FIRST), question(4, FIRST)], [("bad-json", 1), ("reused-turn-id", 5)]),
        # A wrong place says nothing about the turns that follow.
        ([question(1, FIRST), *turn(2, SECOND), end(5, THIRD)], [("bad-order", 2), ("bad-order", 5)]),
    ],
)
def test_checking_goes_on_after_a_flaw(lines: list[bytes], expected: list[tuple[str, int]]) -> None:
    assert found(file_of(lines)) == expected


def test_what_was_expected_is_said_in_full_and_in_short() -> None:
    messages = [
        finding.message
        for lines in (
            [*turn(1, FIRST), b"x", question(7, SECOND)],
            [*turn(1, FIRST), question(9, SECOND), answer(20, SECOND)],
            [question(10**3999, FIRST), answer(10**3000, FIRST)],
        )
        for finding in load(file_of(lines), all_findings=True)[1].findings
        if finding.code == "bad-seq"
    ]
    assert messages[0] == "found seq 7, expected 4 to 5"
    assert messages[2] == "found seq 20, expected 5 or 10"
    assert all(len(message) < 300 for message in messages) and len(messages) == 5


KINDS: dict[str, dict[str, str]] = {
    "u": {"type": "user_message", "text": "?"},
    "a": {"type": "assistant_message", "text": "!"},
    **{letter: {"type": "turn_end", "status": status} for letter, status in zip("cfxi", STATUSES, strict=True)},
}


def is_beginning(letters: str, owners: str) -> bool:
    """Whether records of these kinds and turns are the beginning of some history: the rules as one expression."""
    if not re.fullmatch(r"(u(a[ci]|[fxi]))*(ua?)?", letters):
        return False
    turns = re.findall(r"ua?[cfxi]?", letters)
    ends = [sum(map(len, turns[: number + 1])) for number in range(len(turns))]
    parts = [owners[end - len(turn) : end] for turn, end in zip(turns, ends, strict=True)]
    return all(len(set(part)) == 1 for part in parts) and len({part[0] for part in parts}) == len(parts)


def test_every_short_sequence_of_records_is_judged_as_the_rules_say() -> None:
    """All 22,621 sequences of at most four records in two turns."""
    kinds = [(letter, owner) for letter in KINDS for owner in "12"]
    beginnings = 0
    for length in range(5):
        for sequence in itertools.product(kinds, repeat=length):
            letters, owners = "".join(kind for kind, _ in sequence), "".join(owner for _, owner in sequence)
            order = Order(go_on=False)
            flawed = 0
            for number, (kind, owner) in enumerate(sequence, start=1):
                record: Any = {"v": 1, "seq": number, "turn_id": owner * 32, **KINDS[kind]}
                order.take(record, number, 0)
                if order.flaw:
                    flawed = number
                    break
            good = [is_beginning(letters[:number], owners[:number]) for number in range(length + 1)]
            assert flawed == (0 if all(good) else good.index(False)), sequence
            beginnings += all(good)
    assert beginnings > 20


def test_a_turn_that_ended_is_counted_whatever_was_damaged_inside() -> None:
    lines = [*turn(1, FIRST), question(4, SECOND), b"x", end(6, SECOND), *turn(7, THIRD)]
    _, report = load(file_of(lines), all_findings=True)
    assert dict(report.turns) == {"completed": 3}
    _, report = load(file_of([*two_turns()[:5], end(9, SECOND)]), all_findings=True)
    assert dict(report.turns) == {"completed": 2}


@pytest.mark.parametrize(
    "bad",
    [question(3, SECOND), answer(3, FIRST, "another"), end(3, FIRST, "failed"), end(3, SECOND), end(4, FIRST)],
)
def test_a_flawed_record_changes_nothing_where_loading_stops(bad: bytes) -> None:
    order = Order(go_on=False)
    for number, line in enumerate([question(1, FIRST), answer(2, FIRST)], start=1):
        assert order.take(json.loads(line), number, 0) is None and order.flaw is None
    before = order.turn
    assert order.take(json.loads(bad), 3, 0) is None
    assert order.flaw is not None
    assert order.turn is before and before is not None and before.status == "open"
