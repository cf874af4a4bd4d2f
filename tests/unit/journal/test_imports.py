"""Foreign conversations: every shape is read, nothing is paired by guessing, and nothing is left out in silence."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mino.errors import InvalidData
from mino.journal.imports import Kind, read, records
from tests.homes import turns_of

MESSAGES = [{"role": "user", "content": "说一种颜色。"}, {"role": "assistant", "content": "蓝色 🔵"}]
CHECKPOINT = {"savedAt": "2026-03-24T10:00:00.000Z", "turnCount": 1, "history": MESSAGES}
LINES = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in MESSAGES)
HEADER = '{"type":"session","id":"x","created_at":"2026-03-24T10:00:00Z"}\n'


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("eino", HEADER + LINES),
        ("eino", "\n" + HEADER + "\n\n" + LINES),
        ("eino", "\ufeff" + HEADER + LINES.rstrip("\n")),
        ("json", json.dumps(CHECKPOINT)),
        ("json", json.dumps(CHECKPOINT, indent=2, ensure_ascii=False)),
        ("messages", json.dumps(MESSAGES)),
        ("messages", "\n\t " + json.dumps(MESSAGES, indent=2, ensure_ascii=False)),
        ("messages", LINES),
        ("messages", LINES.replace("\n", "\r\n\r\n")),
        ("messages", "\ufeff" + json.dumps(MESSAGES)),
    ],
)
def test_every_shape(kind: Kind, text: str) -> None:
    imported = read(text.encode(), "f", kind)
    assert imported.turns == [("说一种颜色。", "蓝色 🔵")]
    assert imported.left_out == []


def say(*roles: Any) -> Any:
    """Read messages as JSON Lines: `u1` is the user saying 1, other words are roles, the rest stands as it is."""
    messages: list[Any] = []
    for role in roles:
        if isinstance(role, str):
            name = {"u": "user", "a": "assistant"}.get(role[0], role)
            messages.append({"role": name if role[1:].isdecimal() else role, "content": role[1:]})
        else:
            messages.append(role)
    return read("".join(json.dumps(message) + "\n" for message in messages).encode(), "f", "messages")


@pytest.mark.parametrize(
    ("roles", "turns", "left_out"),
    [
        (["u1", "a2", "u3", "a4"], ["12", "34"], []),
        (["system", "u1", "a2"], ["12"], ["line 1: a system message"]),
        (["u1", "tool", "a2"], ["12"], ["line 2: a tool message"]),
        (["u1", "u2", "a3"], ["23"], ["line 1: a question without an answer"]),
        (["u1", "a2", "a3"], ["12"], ["line 3: an answer without a question before it"]),
        (["a1", "u2"], [], ["line 1: an answer without a question before it", "line 2: a question without an answer"]),
        (
            ["u1", {"role": "user"}, "a2"],
            [],
            ["line 1: a question w", "line 2: a question without text", "line 3: an ans"],
        ),
        (
            ["u1", {"role": "assistant", "content": None, "tool_calls": []}, "a2"],
            ["12"],
            ["line 2: an answer without text"],
        ),
        (
            ["u1", {"role": "user", "content": " \n"}, "a2"],
            [],
            ["line 1: ", "line 2: a question without text", "line 3: "],
        ),
        # What cannot be read may have been the answer, or a question: it ends the pair.
        (
            ["u1", 7, "a2"],
            [],
            ["line 1: a question without", "line 2: found 7, expected a message", "line 3: an answer"],
        ),
        (
            ["u1", {"role": "human", "content": "x"}, "a2"],
            [],
            ["line 1: ", 'line 2: found the role "human"', "line 3: "],
        ),
        (["u1", {"content": "x"}, "a2"], [], ["line 1: ", "line 2: found an object without a role", "line 3: "]),
        (["u1", {"role": ["user"]}, "a2"], [], ["line 1: ", 'line 2: found the role ["user"]', "line 3: "]),
    ],
)
def test_pairing(roles: Sequence[Any], turns: list[str], left_out: list[str]) -> None:
    imported = say(*roles)
    assert ["".join(turn) for turn in imported.turns] == turns
    assert len(imported.left_out) == len(left_out)
    for told, expected in zip(imported.left_out, left_out, strict=True):
        assert told.startswith(expected)
        assert told.endswith(", left out")


def test_parts_of_a_message() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:…"}}
    parts = [{"type": "text", "text": "看"}, image, {"type": "input_text", "text": "这个"}]
    imported = say(
        {"role": "user", "content": parts}, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}
    )
    assert imported.turns == []
    assert imported.left_out == [
        'line 1: a part that is not text ("image_url"), left out',
        'line 2: a part that is not text ("refusal"), left out',
        "line 2: an answer without text, left out",
        "line 1: a question without an answer, left out",
    ]
    assert say({"role": "user", "content": parts}, "a1").turns == [("看这个", "1")]


def test_a_broken_line_of_an_eino_file_ends_its_pair() -> None:
    text = HEADER + '{"role":"user","content":"1"}\n{"role":"assistant","con\n{"role":"assistant","content":"2"}\n'
    imported = read(text.encode(), "f", "eino")
    assert imported.turns == []
    assert imported.left_out == [
        "line 2: a question without an answer, left out",
        "line 3: it is not JSON, left out",
        "line 4: an answer without a question before it, left out",
    ]


@pytest.mark.parametrize(("count", "told"), [(1, []), (None, []), (7, ["says turnCount 7, found 1 whole turns"])])
def test_the_turn_count_is_compared(count: int | None, told: list[str]) -> None:
    assert read(json.dumps({**CHECKPOINT, "turnCount": count}).encode(), "f", "json").left_out == told


@pytest.mark.parametrize(
    ("kind", "data", "where"),
    [
        ("messages", b'[\n{"role":"user"x}]', "line 2 (byte 14 of the line) is not JSON"),
        ("messages", '{}\n{"角色":1,x}'.encode(), "line 2 (byte 12 of the line) is not JSON"),
        ("messages", b'[\n{"role":"user","content":"\xff"}]', "is not UTF-8: 0xff at byte 28 (line 2)"),
        ("messages", b"\xef\xbb\xbf[\xff]", "is not UTF-8: 0xff at byte 4 (line 1)"),
        ("messages", "[]".encode("utf-16"), "is not UTF-8: 0xff at byte 0 (line 1)"),
        ("messages", b"[" * 100_000, "deep nesting"),
        ("messages", b"{}\n" + b"1" * 5000, "line 2 is JSON beyond what Mino reads: huge numbers"),
        ("json", b"[]", "has no array `history`"),
        ("json", b'{"history":{}}', "has no array `history`"),
        ("json", b"nonsense", "line 1 (byte 0 of the line) is not JSON"),
        ("json", b"", "line 1 (byte 0 of the line) is not JSON"),
        ("eino", b"", "line 1 (byte 0 of the line) is not JSON"),
        ("eino", b"{]\n", "line 1 (byte 1 of the line) is not JSON"),
        ("eino", LINES.encode(), "line 1: found {"),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else None,
)
def test_a_file_of_another_kind_is_refused(kind: Kind, data: bytes, where: str) -> None:
    with pytest.raises(InvalidData) as caught:
        read(data, "f", kind)
    assert where in caught.value.message
    assert caught.value.message.startswith("'f' ")


def test_the_records_are_a_clean_journal_for_any_text() -> None:
    wild = '\ud83d \x00 \u2028 \x85 \r\n \\ " 😀 ' + "长" * 100_000
    text = json.dumps([{"role": "user", "content": wild}, {"role": "assistant", "content": wild}] * 3)
    turns = turns_of(b"".join(records(read(text.encode(), "f", "messages").turns)))
    assert [turn.number for turn in turns] == [1, 2, 3]
    assert {turn.user for turn in turns} == {turn.assistant for turn in turns} == {wild.replace("\ud83d", "\ufffd")}
    assert len({turn.turn_id for turn in turns}) == 3
