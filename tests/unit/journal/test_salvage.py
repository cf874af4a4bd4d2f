"""The way out of an invalid file: every whole turn is kept, and what is dropped is told with its questions."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from mino import disk
from mino.errors import CannotCreate, InvalidData, StorageFailed
from mino.journal import recovery
from mino.journal.file import Journal
from mino.journal.salvage import Salvage, find_question, rehearse, salvage
from mino.journal.scan import split
from tests.unit.journal.sample import CASES, FIRST, SECOND, THIRD, answer, end, file_of, load, question, turn, two_turns

FOURTH = "0193a0b1c2d370008000000000000004"
REGION = tuple[int, int, str, str | None]


def salvage_lines(lines: list[bytes]) -> tuple[bytes, Salvage]:
    salvaged = Salvage("session.jsonl", split([file_of(lines)]))
    return b"".join(salvaged), salvaged


def regions(salvaged: Salvage) -> list[tuple[int, int, str | None]]:
    return [(region.first_line, region.last_line, region.question) for region in salvaged.dropped]


@pytest.mark.parametrize(
    ("lines", "kept", "dropped", "why"),
    [
        (two_turns(), [FIRST, SECOND], [], ""),
        ([b"x", *two_turns()], [FIRST, SECOND], [(1, 1, None)], "not JSON"),
        ([*turn(1, FIRST), b"", b"\0", b"x", *turn(4, SECOND)], [FIRST, SECOND], [(4, 6, None)], "an empty line"),
        # Rubbish inside a turn whose records are all there is dropped alone.
        ([question(1, FIRST), b"x", answer(2, FIRST), end(3, FIRST)], [FIRST], [(2, 2, None)], "not JSON"),
        # Numbers are not looked at.
        ([question(9, FIRST), answer(9, FIRST), end(1, FIRST), *turn(0, SECOND)], [FIRST, SECOND], [], ""),
        ([question(1, FIRST, "谁？"), answer(2, FIRST)], [], [(1, 2, "谁？")], "has no end"),
        ([question(1, FIRST, "谁？"), *turn(2, SECOND)], [SECOND], [(1, 1, "谁？")], "has no end"),
        (
            [question(1, FIRST, "谁？"), b"x", end(3, FIRST)],
            [],
            [(1, 3, "谁？")],
            "without a readable answer; not JSON",
        ),
        ([question(1, FIRST), b"x", end(3, FIRST, "failed")], [FIRST], [(2, 2, None)], "not JSON"),
        ([question(1, FIRST), answer(2, FIRST), end(3, FIRST, "interrupted")], [FIRST], [], ""),
        (
            [question(1, FIRST, "?"), answer(2, FIRST), end(3, FIRST, "failed")],
            [],
            [(1, 3, "?")],
            "failed, with an answer",
        ),
        (
            [question(1, FIRST, "?"), answer(2, FIRST), answer(3, FIRST), end(4, FIRST)],
            [],
            [(1, 4, "?")],
            "two answers",
        ),
        ([answer(1, FIRST), end(2, FIRST), *turn(3, SECOND)], [SECOND], [(1, 2, None)], "without its question"),
        ([*turn(1, FIRST), question(4, FIRST, "?"), end(5, FIRST, "failed")], [FIRST], [(4, 5, "?")], "used before"),
        # A turn that could not be kept has not used up its id.
        ([question(1, FIRST, "?"), *turn(2, FIRST)], [FIRST], [(1, 1, "?")], "has no end"),
        (
            [question(1, FIRST, "?"), answer(2, SECOND), answer(3, FIRST), end(4, FIRST)],
            *([FIRST], [(2, 2, None)], "assistant_message without its question"),
        ),
        # The questions of turns that were swallowed by the damage are told too.
        (
            [question(1, FIRST, "甲？"), question(2, SECOND, "乙？")[:-1] + b',"seq":2}', answer(3, SECOND)],
            *([], [(1, 3, "甲？"), (2, 3, "乙？")], "has no end; found the key"),
        ),
        (
            [question(1, FIRST, "甲？")[:30] + question(2, SECOND, "乙？"), *turn(3, THIRD)],
            *([THIRD], [(1, 1, "乙？")], "not JSON"),
        ),
    ],
)
def test_what_is_kept_and_what_is_dropped(
    lines: list[bytes], kept: list[str], dropped: list[tuple[int, int, str | None]], why: str
) -> None:
    data, salvaged = salvage_lines(lines)
    turns, report = load(data, all_findings=True)
    assert report.state == "clean"
    assert [turn.turn_id for turn in turns] == kept and salvaged.kept == len(kept)
    assert regions(salvaged) == dropped
    assert why in "".join(region.why for region in salvaged.dropped)


def test_a_kept_turn_keeps_every_value() -> None:
    items = [{"type": "m", "n": 10**30, "x": [1.5, -0.0, None, "\u2028 😀"]}]
    lines = [question(7, FIRST, "你\0好"), answer(8, FIRST, output=items).replace(b",", b" , "), end(9, FIRST), b""]
    data, _ = salvage_lines([b"x", *lines])
    [kept], _ = load(data)
    assert (kept.user, kept.output, kept.assistant) == ("你\0好", items, "Paris. 巴黎 😀")
    assert str(kept.output) == str(items)


def test_a_torn_last_line_is_dropped_with_the_rest() -> None:
    salvaged = Salvage("x", split([file_of([b"x", *two_turns()]) + question(9, THIRD)[:60]]))
    data = b"".join(salvaged)
    assert load(data)[1].state == "clean" and salvaged.kept == 2
    assert [(region.first_line, region.why) for region in salvaged.dropped][-1] == (8, "an unfinished last line")


def test_a_block_of_rubbish_is_held_and_told_once() -> None:
    salvaged = Salvage("x", split([b"\n" * 100_000, file_of(two_turns()), question(9, THIRD) + b"\n", b"x\n" * 50_000]))
    assert sum(1 for _ in salvaged) == 6
    assert regions(salvaged) == [(1, 100_000, None), (100_007, 150_007, "法国的首都是哪里？ 🗼")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (question(1, FIRST, "谁？"), "谁？"),
        (b'{"v":1,"seq":4,"ty' + question(1, FIRST, "谁？"), "谁？"),
        (b'{"text":"\xe8\xb0\x81", "type" : "user_message" , "v":3}', "谁"),
        (b'{ "v":1,"type":"user_message","text":"x\\ud83d"}', "x\ufffd"),
        (b'{"v":1,"type":"user_message","text":"x\xff"}', "x\ufffd"),
        (question(1, FIRST, "谁？")[:-3], None),
        (answer(1, FIRST), None),
        (b'{"v":1,"type":"user_message","text":7}', None),
        (b"", None),
        (b'{"v":' * 100_000, None),
        (b'{"v":' + b"9" * 100_000 + b"}", None),
        (b'{"v":1}' * 100_000, None),
    ],
)
def test_a_question_is_found_wherever_it_stands_in_a_bad_line(line: bytes, expected: str | None) -> None:
    assert find_question(line) == expected


def open_session(path: Path) -> Journal:
    return Journal(str(path), disk.open_regular(str(path), os.O_RDWR | os.O_APPEND), path.stat().st_size, 1)


@pytest.mark.parametrize("name", ["newer-version", "unknown-field", "unknown-type"])
def test_a_file_of_a_newer_mino_is_refused_before_a_copy_is_made(name: str, tmp_path: Path) -> None:
    path = tmp_path / "it.jsonl"
    data = (CASES / f"{name}.jsonl").read_bytes()
    path.write_bytes(data)
    with pytest.raises(
        InvalidData, match=r"it\.jsonl' line 4: unknown-.*by a newer Mino.*; nothing was salvaged"
    ) as caught:
        salvage(open_session(path))
    assert f"sed -n 4p '{path}'" in caught.value.hint
    assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


def test_a_rehearsal_changes_nothing_and_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "it.jsonl"
    path.write_bytes((CASES / "fused-records.jsonl").read_bytes())
    before = path.read_bytes()
    rehearsed = rehearse(str(path), open_session(path).chunks())
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    _, salvaged = salvage(open_session(path))
    assert (rehearsed.kept, rehearsed.dropped) == (salvaged.kept, salvaged.dropped)
    assert salvaged.kept == 1 and salvaged.dropped[0].question


def test_a_salvage_without_a_copy_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it.jsonl"
    path.write_bytes(b"x\n" + file_of(two_turns()))
    replace = disk.replace

    def refuse_a_copy(path: str, data: Iterable[bytes], owner: str) -> int:
        if recovery.COPY_NAME.fullmatch(Path(path).stem):
            raise CannotCreate(f"cannot create '{path}'")
        return replace(path, data, owner)

    monkeypatch.setattr(disk, "replace", refuse_a_copy)
    with pytest.raises(CannotCreate):
        salvage(open_session(path))
    assert path.read_bytes().startswith(b"x\n") and list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_replaced_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "it.jsonl"
    path.write_bytes(b"x\n" + file_of(two_turns()))
    journal = open_session(path)
    path.rename(tmp_path / "old")
    path.write_bytes(b"new")
    with pytest.raises(StorageFailed, match="replaced by another file"):
        salvage(journal)
    assert path.read_bytes() == b"new"
