"""One session of two turns, written by the journal itself; a damage; and what must become of it."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mino import disk
from mino.errors import InvalidData
from mino.journal.file import Journal
from mino.journal.findings import CODES, INVALID, NEWER, NOTICES, RECOVERABLE, Report
from mino.journal.loader import Loading
from mino.journal.order import Turn
from mino.journal.record import assistant_message, turn_end, user_message
from mino.journal.recovery import recover
from mino.journal.salvage import Region, salvage
from tests.unit.journal.sample import FIRST, ITEM, SECOND, found

Damage = Callable[[list[bytes]], bytes]


def write_session(path: Path) -> None:
    path.touch(0o600)
    journal = open_journal(path)[0]
    journal.append(user_message(1, FIRST, "法国的首都？"))
    journal.append(assistant_message(2, FIRST, "巴黎 😀", [ITEM]), turn_end(3, FIRST, "completed"))
    journal.append(user_message(4, SECOND, "And of\nItaly?"))
    journal.append(assistant_message(5, SECOND, "Rome", None), turn_end(6, SECOND, "completed"))
    journal.close()


def open_journal(path: Path, *, all_findings: bool = False) -> tuple[Journal, list[Turn], Report]:
    """The session at `path` as a writer opens it; with `all_findings` as `history recover` does."""
    fd = disk.open_regular(str(path), os.O_RDWR | os.O_APPEND)
    loading = Loading([path.read_bytes()], all_findings=all_findings)
    turns = list(loading)
    return Journal(str(path), fd, loading.report.bytes, loading.report.next_seq), turns, loading.report


def cut(number: int, size: int) -> Damage:
    """The file ends `size` bytes into line `number`."""
    return lambda lines: b"".join(lines[: number - 1]) + lines[number - 1][:size]


def instead(number: int, replacement: bytes) -> Damage:
    return lambda lines: b"".join([*lines[: number - 1], replacement, *lines[number:]])


def change(number: int, old: bytes, new: bytes) -> Damage:
    def damage(lines: list[bytes]) -> bytes:
        assert lines[number - 1].count(old) == 1
        return instead(number, lines[number - 1].replace(old, new))(lines)

    return damage


def append(data: bytes) -> Damage:
    return lambda lines: b"".join(lines) + data


TORN_WRITE = [("torn-write", 5), ("open-turn", 4)]

# damage, the findings, and the turns after recovery, as letters: c completed, i interrupted.
RECOVERED: dict[str, tuple[Damage, list[tuple[str, int]], str]] = {
    "no damage": (append(b""), [], "cc"),
    "the last newline is gone": (cut(6, -1), [("torn-tail", 6), ("open-turn", 4)], "ci"),
    "the last end is half there": (cut(6, 20), [("torn-tail", 6), ("open-turn", 4)], "ci"),
    "the answer is half there": (cut(5, 60), [("torn-tail", 5), ("open-turn", 4)], "ci"),
    "the question is half there": (cut(4, 60), [("torn-tail", 4)], "c"),
    "the end was never written": (cut(6, 0), [("open-turn", 4)], "ci"),
    "the answer was never written": (cut(5, 0), [("open-turn", 4)], "ci"),
    "the second turn was never written": (cut(4, 0), [], "c"),
    "half a Chinese character": (cut(1, 87), [("torn-tail", 1)], ""),
    "nothing but one byte": (cut(1, 1), [("torn-tail", 1)], ""),
    "an empty file": (cut(1, 0), [], ""),
    "zeros at the end": (append(b"\0" * 4096), [("torn-tail", 7)], "cc"),
    "zeros and a newline": (append(b"\0" * 511 + b"\n"), [("tail-syntax", 7)], "cc"),
    "zeros for the last line": (instead(6, b"\0" * 100 + b"\n"), [("tail-syntax", 6), ("open-turn", 4)], "ci"),
    "half a record and a newline": (append(b'{"v":1,"seq":7,"ty\n'), [("tail-syntax", 7)], "cc"),
    "a whole record without its newline": (append(b"{}"), [("torn-tail", 7)], "cc"),
    "a blank last line": (append(b"\n"), [("tail-syntax", 7)], "cc"),
    "bytes that are not UTF-8": (append(b"\xff\xfe\n"), [("tail-syntax", 7)], "cc"),
    "a lost sector in the answer": (change(5, b"_message", b"\0" * 8), TORN_WRITE, "ci"),
    "a lost sector over all of the answer": (instead(5, b"\0" * 512 + b"\n"), TORN_WRITE, "ci"),
    "lost sectors in the answer and its end": (
        lambda lines: b"".join([*lines[:4], *(line.replace(b"turn_id", b"\0" * 7) for line in lines[4:])]),
        TORN_WRITE,
        "ci",
    ),
    "a lost sector in the answer, and half of its end": (
        lambda lines: b"".join(lines[:4]) + lines[4].replace(b"Rome", b"\0\0\0\0") + lines[5][:30],
        TORN_WRITE,
        "ci",
    ),
    # What closes the brackets is lost, and the line seems to be nested deeper than a record may be.
    "a lost sector in an answer with many brackets": (
        lambda lines: b"".join(lines[:4]) + b'{"v":1,"output":[' + b"[" * 300 + b"\0" * 300 + b"]}\n" + lines[5],
        TORN_WRITE,
        "ci",
    ),
    "a lost sector over the newline between both": (
        lambda lines: b"".join(lines)[:-110] + b"\0" * 30 + b"".join(lines)[-80:],
        [("tail-syntax", 5), ("open-turn", 4)],
        "ci",
    ),
    "a lost sector in the end": (change(6, b"completed", b"\0" * 9), [("tail-syntax", 6), ("open-turn", 4)], "ci"),
    # The writer was killed, the next one ended the turn, and then the power went, before the answer was on disk.
    "a lost sector in the answer of an interrupted turn": (
        lambda lines: b"".join(lines[:4]) + b"\0" * 50 + b"\n" + lines[5].replace(b"completed", b"interrupted"),
        TORN_WRITE,
        "ci",
    ),
}

# damage, the findings, and the turns that a salvage keeps.
REFUSED: dict[str, tuple[Damage, list[tuple[str, int]], str]] = {
    "a torn record was written on": (change(4, b'"text"', b'"te{"v'), [("bad-json", 4)], "c"),
    "a blank line in the middle": (instead(4, b"\n"), [("bad-json", 4)], "c"),
    "zeros in the middle": (instead(2, b"\0" * 512 + b"\n"), [("bad-json", 2)], "c"),
    "zeros for the last question": (instead(4, b"\0" * 512 + b"\n"), [("bad-json", 4)], "c"),
    "zeros in the last answer, and a further turn": (
        lambda lines: b"".join(lines[:4]) + b"\0\n" + lines[5] + lines[3].replace(SECOND.encode(), b"f" * 32),
        [("bad-json", 5), ("bad-seq", 7), ("open-turn", 7)],
        "c",
    ),
    "zeros in the last answer, and the end of another turn": (
        lambda lines: b"".join(lines[:4]) + b"\0\n" + lines[5].replace(SECOND.encode(), FIRST.encode()),
        [("bad-json", 5)],
        "c",
    ),
    "zeros in the last answer, and a wrong seq in the end": (
        lambda lines: b"".join(lines[:4]) + b"\0\n" + lines[5].replace(b'"seq":6', b'"seq":9'),
        [("bad-json", 5), ("bad-seq", 6)],
        "c",
    ),
    "a broken last answer without a zero": (change(5, b'"Rome"', b'"Rome'), [("bad-json", 5)], "c"),
    "a broken last answer without a zero, and half of its end": (
        lambda lines: b"".join(lines[:4]) + b"{\n" + lines[5][:30],
        [("bad-json", 5), ("torn-tail", 6)],
        "c",
    ),
    "two blank lines at the end": (append(b"\n\n"), [("bad-json", 7), ("tail-syntax", 8)], "cc"),
    "a bad byte in an answer": (change(2, "黎".encode(), b"\xe9"), [("bad-json", 2)], "c"),
    "a key twice": (change(2, b'"seq":2', b'"seq":2,"seq":2'), [("duplicate-key", 2)], "c"),
    "a line is lost": (instead(2, b""), [("bad-seq", 2)], "c"),
    "a line stands twice": (lambda lines: b"".join([*lines[:4], *lines[3:]]), [("bad-seq", 5)], "cc"),
    "another seq": (change(4, b'"seq":4', b'"seq":9'), [("bad-seq", 4)], "cc"),
    "another seq at the end": (change(6, b'"seq":6', b'"seq":9'), [("bad-seq", 6)], "cc"),
    "a seq of another kind": (change(6, b'"seq":6', b'"seq":6.0'), [("bad-record", 6)], "c"),
    "a text that is none": (change(4, b'"And of\\nItaly?"', b"null"), [("bad-record", 4)], "c"),
    "half a character as an escape": (change(5, b"Rome", b"Rome \\ud83d"), [("bad-record", 5)], "c"),
    "a turn id of another form": (change(6, SECOND.encode(), SECOND.upper().encode()), [("bad-turn-id", 6)], "c"),
    "the turn id of another turn": (change(5, SECOND.encode(), FIRST.encode()), [("bad-order", 5)], "c"),
    "a turn id again": (
        lambda lines: b"".join(lines).replace(SECOND.encode(), FIRST.encode()),
        [("reused-turn-id", 4)],
        "c",
    ),
    "a question too many": (
        append(b'{"v":1,"seq":7,"type":"turn_end","turn_id":"%s","status":"failed"}\n' % SECOND.encode()),
        [("bad-order", 7)],
        "cc",
    ),
    "an answer that failed": (change(6, b"completed", b"failed"), [("bad-order", 6)], "c"),
}

# Written by a newer Mino, or edited by hand: neither recovered nor salvaged.
NEVER: dict[str, tuple[Damage, list[tuple[str, int]], str]] = {
    "a version to come": (change(4, b'"v":1', b'"v":2'), [("unknown-version", 4)], ""),
    "another shape of another version": (append(b'{"v":2,"kind":"note"}\n'), [("unknown-version", 7)], ""),
    "a type to come": (append(b'{"v":1,"seq":7,"type":"note","turn_id":"x"}\n'), [("unknown-type", 7)], ""),
    "a field to come": (change(6, b'"status"', b'"at":1,"status"'), [("unknown-field", 6)], ""),
}


def apply(damage: Damage, path: Path) -> bytes:
    write_session(path)
    data = damage(path.read_bytes().splitlines(keepends=True))
    path.write_bytes(data)
    return data


def statuses(path: Path) -> str:
    loading = Loading([path.read_bytes()], all_findings=True)
    letters = "".join(turn.status[0] for turn in loading)
    assert loading.report.state == "clean" and loading.report.findings == []
    return letters


@pytest.mark.parametrize("name", RECOVERED)
def test_recovery_makes_it_clean_and_loses_no_byte(name: str, tmp_path: Path) -> None:
    damage, findings, after = RECOVERED[name]
    path = tmp_path / "session.jsonl"
    data = apply(damage, path)
    assert found(data) == findings
    journal, turns, report = open_journal(path)
    done = recover(journal, report)
    # What the request is made of was known before recovery, and is the same after it.
    assert [turn.status[0] for turn in turns if turn.status == "completed"] == list(after.replace("i", ""))
    assert statuses(path) == after
    copies = [other for other in tmp_path.iterdir() if other != path]
    assert done.cut_bytes == len(data) - report.end
    if done.cut_bytes:
        assert [str(copy) for copy in copies] == [done.copy]
        assert copies[0].read_bytes() == data and copies[0].stat().st_mode & 0o777 == 0o600
    else:
        assert copies == [] and done.copy is None
    assert path.read_bytes().startswith(data[: report.end])
    # The journal goes on where recovery left it.
    journal.append(user_message(journal.seq, "f" * 32, "再来一个问题"))
    journal.append(turn_end(journal.seq, "f" * 32, "failed"))
    assert statuses(path) == after + "f"


@pytest.mark.parametrize("name", REFUSED | NEVER)
def test_what_is_invalid_is_left_as_it_is_and_told(name: str, tmp_path: Path) -> None:
    damage, findings, _ = (REFUSED | NEVER)[name]
    path = tmp_path / "session.jsonl"
    data = apply(damage, path)
    assert found(data) == findings
    journal, _, report = open_journal(path)
    with pytest.raises(InvalidData) as caught:
        recover(journal, report)
    code, line = findings[0]
    place = f"'{path}' line {line} (byte {len(b''.join(data.splitlines(keepends=True)[: line - 1]))}): {code}: "
    assert caught.value.message.startswith(place) and caught.value.message.endswith("; the file is unchanged")
    assert str(path) in caught.value.hint
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", REFUSED)
def test_salvage_keeps_every_whole_turn(name: str, tmp_path: Path) -> None:
    damage, _, after = REFUSED[name]
    path = tmp_path / "session.jsonl"
    data = apply(damage, path)
    copy, salvaged = salvage(open_journal(path, all_findings=True)[0])
    assert statuses(path) == after and salvaged.kept == len(after)
    assert Path(copy).read_bytes() == data and Path(copy).stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == sorted([path, Path(copy)])
    assert path.stat().st_mode & 0o777 == 0o600
    if after == "c":
        assert salvaged.dropped
    for region in salvaged.dropped:
        assert isinstance(region, Region) and region.first_line <= region.last_line and region.why


@pytest.mark.parametrize("name", NEVER)
def test_salvage_refuses_what_it_cannot_know(name: str, tmp_path: Path) -> None:
    damage, [(code, line)], _ = NEVER[name]
    path = tmp_path / "session.jsonl"
    data = apply(damage, path)
    with pytest.raises(
        InvalidData, match=f"line {line}: {code}: .*written by a newer Mino.*nothing was salvaged"
    ) as caught:
        salvage(open_journal(path, all_findings=True)[0])
    assert f"sed -n {line}p '{path}'" in caught.value.hint
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_every_code_has_a_damage() -> None:
    damages = [findings for _, findings, _ in (RECOVERED | REFUSED | NEVER).values()]
    elsewhere = {*NOTICES, "not-a-session"}  # these depend on where the file lies
    assert {code for findings in damages for code, _ in findings} == {*RECOVERABLE, *INVALID, *NOTICES} - elsewhere
    assert {*RECOVERABLE, *INVALID, *NOTICES} == {*CODES}
    assert {code for _, findings, _ in NEVER.values() for code, _ in findings} == {*NEWER}


@pytest.mark.parametrize("sector", [8, 16, 64])
def test_no_lost_sectors_of_the_last_write_make_an_invalid_file(sector: int, tmp_path: Path) -> None:
    """Of one write each sector reaches the disk or reads as zeros, and the file may be shorter than it was to be."""
    write_session(tmp_path / "session.jsonl")
    data = (tmp_path / "session.jsonl").read_bytes()
    begin = data.index(b'{"v":1,"seq":5')
    choice = random.Random(sector)
    for _ in range(2000):
        size = choice.choice([len(data), choice.randrange(begin, len(data) + 1)])
        lost = {place for place in range(begin // sector, size // sector + 1) if choice.random() < 0.3}
        torn = bytes(0 if at >= begin and at // sector in lost else byte for at, byte in enumerate(data[:size]))
        loading = Loading([torn])
        completed = [turn.user for turn in loading if turn.status == "completed"]
        assert loading.report.state in ("clean", "recoverable"), torn
        assert len(completed) == 2 if torn == data else len(completed) == 1, torn
