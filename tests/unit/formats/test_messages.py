"""Messages as an array, one a line, and inside a checkpoint: every shape is read, and another kind is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mino.errors import InvalidData
from mino.formats.messages import messages_json, read, read_checkpoint
from mino.formats.pairs import Imported
from mino.sessions.saved import store_turns
from tests.homes import turns_of

Read = Callable[[bytes, str], Imported]

MESSAGES = [{"role": "user", "content": "说一种颜色。"}, {"role": "assistant", "content": "蓝色 🔵"}]
CHECKPOINT = {"savedAt": "2026-03-24T10:00:00.000Z", "turnCount": 1, "history": MESSAGES}
LINES = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in MESSAGES)


@pytest.mark.parametrize(
    ("read_file", "text"),
    [
        (read_checkpoint, json.dumps(CHECKPOINT)),
        (read_checkpoint, json.dumps(CHECKPOINT, indent=2, ensure_ascii=False)),
        (read, json.dumps(MESSAGES)),
        (read, "\n\t " + json.dumps(MESSAGES, indent=2, ensure_ascii=False)),
        (read, LINES),
        (read, LINES.replace("\n", "\r\n\r\n")),
        (read, "\ufeff" + json.dumps(MESSAGES)),
    ],
)
def test_every_shape(read_file: Read, text: str) -> None:
    imported = read_file(text.encode(), "f")
    assert imported.turns == [("说一种颜色。", "蓝色 🔵")]
    assert imported.left_out == []


@pytest.mark.parametrize(
    ("read_file", "text", "place"),
    [
        (read_checkpoint, json.dumps({"history": [7, *MESSAGES]}), "message 1"),
        (read, json.dumps([7, *MESSAGES]), "message 1"),
        (read, "\n7\n" + LINES, "line 2"),
    ],
)
def test_what_is_left_out_has_its_place(read_file: Read, text: str, place: str) -> None:
    imported = read_file(text.encode(), "f")
    assert imported.turns == [("说一种颜色。", "蓝色 🔵")]
    assert imported.left_out == [f"{place}: left out 7, which is not a message"]


@pytest.mark.parametrize(("count", "told"), [(1, []), (None, []), (7, ["has turnCount 7, but 1 whole turns"])])
def test_the_turn_count_is_compared(count: int | None, told: list[str]) -> None:
    assert read_checkpoint(json.dumps({**CHECKPOINT, "turnCount": count}).encode(), "f").left_out == told


@pytest.mark.parametrize(
    ("read_file", "data", "where"),
    [
        (read, b'[\n{"role":"user"x}]', "line 2 (byte 14 of the line) is not JSON"),
        (read, '{}\n{"角色":1,x}'.encode(), "line 2 (byte 12 of the line) is not JSON"),
        (read, b'[\n{"role":"user","content":"\xff"}]', "is not UTF-8: 0xff at byte 28 (line 2)"),
        (read, b"[" * 100_000, "deep nesting"),
        (read, b"{}\n" + b"1" * 5000, "line 2 is JSON beyond what Mino reads: huge numbers"),
        (read_checkpoint, b"[]", "has no array `history`"),
        (read_checkpoint, b'{"history":{}}', "has no array `history`"),
        (read_checkpoint, b"nonsense", "line 1 (byte 0 of the line) is not JSON"),
        (read_checkpoint, b"", "line 1 (byte 0 of the line) is not JSON"),
        (read_checkpoint, b'{"history":"\xff"}', "is not UTF-8: 0xff at byte 12 (line 1)"),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else None,
)
def test_a_file_of_another_kind_is_refused(read_file: Read, data: bytes, where: str) -> None:
    with pytest.raises(InvalidData) as caught:
        read_file(data, "f")
    assert where in caught.value.message
    assert caught.value.message.startswith("'f' ")


def test_the_turns_make_a_clean_journal_for_any_text(tmp_path: Path) -> None:
    wild = '\ud83d \x01 \u2028 \x85 \r\n \\ " 😀 ' + "长" * 100_000
    text = json.dumps([{"role": "user", "content": wild}, {"role": "assistant", "content": wild}] * 3)
    store_turns(str(tmp_path), "狂野", read(text.encode(), "f").turns)
    turns = turns_of((tmp_path / "狂野.jsonl").read_bytes())
    assert [turn.number for turn in turns] == [1, 2, 3]
    assert {turn.user for turn in turns} == {turn.assistant for turn in turns} == {wild.replace("\ud83d", "\ufffd")}
    assert len({turn.turn_id for turn in turns}) == 3


def test_turns_as_messages_are_read_back_as_they_were() -> None:
    turns = [("说一种颜色。", "蓝色 🔵"), ("two\nlines", ' \\ " ')]
    messages = messages_json(turns)
    assert messages[:2] == MESSAGES
    assert [list(message) for message in messages] == [["role", "content"]] * 4
    assert read(json.dumps(messages).encode(), "f") == Imported(turns, [])
    assert messages_json([]) == []
