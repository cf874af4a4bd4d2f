"""Which turns a summary replaces, and the records that are then in the file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mino.errors import InvalidData, StorageFailed
from mino.journal.record import assistant_message, encode, turn_end, user_message
from mino.sessions.compact import Part, choose, is_summary, replace
from mino.sessions.conversation import open_conversation
from tests.homes import (
    completed,
    ended,
    numbered,
    open_home,
    questions,
    refuse_telling,
    saved_in,
    session_of,
    session_path,
    turns_of,
)

A, B, C, D = (completed((f"问题 {n} 🙂", f"答 {n}")) for n in "ABCD")
FAILED = [ended(1, f"0193a0b1c2d3700080000000000000{n}", f"failed {n}", "failed") for n in ("a1", "a2", "a3")]


def part_of(tmp_path: Path, content: bytes, keep: int) -> Part | None:
    """What would be summed up of a conversation with this content."""
    home = open_home(tmp_path / "home", content)
    with open_conversation(home, None, 0, refuse_telling, keep=0) as conversation:
        return choose(conversation, keep)


def compacted(tmp_path: Path, content: bytes, keep: int, summary: str = "总结 📝\n第二行") -> bytes:
    """The content after it was compacted."""
    home = open_home(tmp_path / "home", content)
    with open_conversation(home, None, 0, refuse_telling, keep=None) as conversation:
        part = choose(conversation, keep)
        assert part
        done = replace(conversation, part, summary)
        new = session_of(Path(home.path))
        assert (done.turns, done.kept, done.before, done.after) == (len(part.turns), part.kept, len(content), len(new))
        assert saved_in(Path(home.path)) == {done.saved.name: content}
        # The open conversation goes on with it.
        assert [turn.turn_id for turn in conversation.context] == [
            turn.turn_id for turn in turns_of(new) if turn.status == "completed"
        ]
        conversation.append(user_message(conversation.journal.seq, "f" * 32, "next"))
        conversation.append(turn_end(conversation.journal.seq, "f" * 32, "failed"))
    assert session_of(Path(home.path)).startswith(new)
    assert questions(session_of(Path(home.path)))[-1] == "next"
    return new


@pytest.mark.parametrize(
    ("turns", "keep", "summed_up", "kept"),
    [
        ([A, B, C, D], 0, "ABCD", 0),
        ([A, B, C, D], 1, "ABC", 1),
        ([A, B, C, D], 3, "A", 3),
        ([A], 0, "A", 0),
        ([FAILED[0], A, FAILED[1], B, FAILED[2], C], 1, "AB", 1),
    ],
)
def test_all_completed_turns_but_the_last_ones_are_summed_up(
    tmp_path: Path, turns: list[bytes], keep: int, summed_up: str, kept: int
) -> None:
    part = part_of(tmp_path, numbered(*turns), keep)
    assert part
    assert [turn.user for turn in part.turns] == [f"问题 {n} 🙂" for n in summed_up]
    assert part.kept == kept


@pytest.mark.parametrize("keep", [4, 5, 10**30])
def test_with_no_more_turns_than_are_kept_there_is_nothing_to_sum_up(tmp_path: Path, keep: int) -> None:
    assert part_of(tmp_path, numbered(FAILED[0], A, B, FAILED[1], C, D), keep) is None


@pytest.mark.parametrize("content", [b"", numbered(*FAILED)])
def test_without_a_completed_turn_there_is_nothing_to_sum_up(tmp_path: Path, content: bytes) -> None:
    assert part_of(tmp_path, content, 0) is None


def test_the_summary_is_one_ordinary_turn_and_the_others_stay(tmp_path: Path) -> None:
    items: list[Any] = [
        {"type": "reasoning", "encrypted_content": "opaque 🔒", "n": 2**70, "f": 1e-7, "null": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "C\u2028\x00é"}]},
    ]
    rich = encode(user_message(1, "c" * 32, "问 C")) + encode(assistant_message(2, "c" * 32, "C\u2028\x00é", items))
    rich += encode(turn_end(3, "c" * 32, "completed"))
    before = numbered(FAILED[0], A, FAILED[1], B, FAILED[2], rich, D)

    new = compacted(tmp_path, before, 2)

    first, *rest = turns_of(new)
    explanation = "The answer is a summary of the earlier turns of this conversation, and takes their place."
    assert first.user == f"Summary: 问题 A 🙂\n\n{explanation}"
    assert is_summary(first.user) and not is_summary("Summary: 问题 A 🙂")
    assert (first.status, first.assistant, first.output) == ("completed", "总结 📝\n第二行", None)
    assert first.turn_id not in {turn.turn_id for turn in turns_of(before)}
    # What comes after is byte for byte what it was, but for its numbers.
    length = len(numbered(FAILED[2], rich, D).splitlines())
    old = [json.loads(line) | {"seq": seq} for seq, line in enumerate(before.split(b"\n")[-length - 1 : -1], 4)]
    assert [json.loads(line) for line in new.split(b"\n")[3:-1]] == old
    assert [turn.turn_id for turn in rest] == [turn.turn_id for turn in turns_of(before)[4:]]
    assert rest[1].output == items


def test_a_summary_is_summed_up_with_what_follows_and_keeps_its_title(tmp_path: Path) -> None:
    once = compacted(tmp_path / "1", numbered(A, B, C), 1)
    again = compacted(tmp_path / "2", once, 0)
    assert questions(again) == questions(once)[:1]
    assert turns_of(again)[0].turn_id != turns_of(once)[0].turn_id


def test_a_summary_alone_is_nothing_to_sum_up(tmp_path: Path) -> None:
    once = numbered(compacted(tmp_path / "1", numbered(A, B), 0), FAILED[0], C)
    assert part_of(tmp_path / "2", once, 1) is None
    assert part_of(tmp_path / "3", once, 0)


@pytest.mark.parametrize("question", ["long " * 30, "\n\n", "Summary: ", "\x00\x1b[31m\u2028\ud7ff", "🙂" * 200])
def test_any_question_makes_a_title(tmp_path: Path, question: str) -> None:
    (turn,) = turns_of(compacted(tmp_path, completed((question, "a")), 0))
    assert is_summary(turn.user) and len(turn.user) < 150 and turn.user.count("\n") == 2


def test_a_copy_that_is_there_is_enough(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", numbered(A, B), mine=numbered(A, B))
    with open_conversation(home, None, 0, refuse_telling, keep=0) as conversation:
        part = choose(conversation, 0)
        assert part
        done = replace(conversation, part, "s")
    assert (done.saved.name, done.saved.is_new) == ("mine", False)
    assert saved_in(Path(home.path)) == {"mine": numbered(A, B)}


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """The lock keeps Mino's own processes away, and no editor."""
    home = open_home(tmp_path / "home", numbered(A, B, C))
    with open_conversation(home, None, 0, refuse_telling, keep=0) as conversation:
        part = choose(conversation, 1)
        assert part
        changed = numbered(A, B, C).replace(b'"completed"', b'"completes"')
        session_path(home).write_bytes(changed)
        with pytest.raises(InvalidData, match="bad-record"):
            choose(conversation, 1)
        with pytest.raises(StorageFailed, match="changed by another process"):
            replace(conversation, part, "s")
    assert session_of(Path(home.path)) == changed
    assert not [name for name in os.listdir(home.sessions) if name.startswith(".mino-")]
