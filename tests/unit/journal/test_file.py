"""The open session file: one write for each append, synced; no write to another file; every failure told."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mino import disk
from mino.errors import StorageFailed
from mino.journal.file import Journal
from mino.journal.record import assistant_message, turn_end, user_message
from tests.unit.journal.calls import fail_sync, watch_calls
from tests.unit.journal.sample import FIRST, ITEM, SECOND, load

QUESTION = user_message(1, FIRST, "法国的首都是哪里？ 🗼")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    path = str(tmp_path / "session.jsonl")
    disk.create(path, ())
    opened = Journal(path, disk.open_regular(path, os.O_RDWR | os.O_APPEND), 0, 1)
    yield opened
    opened.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the journal asks of the system, in order."""
    return watch_calls(monkeypatch)


def test_a_turn_is_two_writes_each_of_them_synced(journal: Journal, calls: list[str]) -> None:
    journal.append(user_message(1, FIRST, "你好 😀"))
    assert calls == ["write", "sync"]
    journal.append(assistant_message(2, FIRST, "巴黎", [ITEM]), turn_end(3, FIRST, "completed"))
    assert calls == ["write", "sync"] * 2
    journal.append(user_message(journal.seq, SECOND, "?"))
    journal.append(turn_end(journal.seq, SECOND, "cancelled"))
    assert calls == ["write", "sync"] * 4
    turns, report = load(Path(journal.path).read_bytes())
    assert [turn.status for turn in turns] == ["completed", "cancelled"] and report.state == "clean"
    assert (journal.size, journal.seq) == (report.bytes, report.next_seq)
    assert b"".join(journal.chunks()) == Path(journal.path).read_bytes()


def test_a_cut_is_synced(journal: Journal, calls: list[str]) -> None:
    journal.append(QUESTION)
    journal.cut(5)
    assert calls == ["write", "sync", "cut", "sync"]
    assert Path(journal.path).stat().st_size == journal.size == 5


def change_all(journal: Journal) -> Iterator[Callable[[], None]]:
    yield lambda: journal.append(QUESTION)
    yield lambda: journal.append(assistant_message(1, FIRST, "!", None), turn_end(2, FIRST, "completed"))
    yield lambda: journal.append(turn_end(1, FIRST, "failed"))
    yield lambda: journal.cut(0)
    yield lambda: journal.replace([b""])


def test_a_file_that_was_deleted_is_not_made_again(journal: Journal) -> None:
    os.unlink(journal.path)
    for change in change_all(journal):
        with pytest.raises(StorageFailed, match=r"session\.jsonl' is gone: No such file"):
            change()
    assert not Path(journal.path).exists()


def test_a_file_that_was_replaced_is_not_written_to(journal: Journal) -> None:
    Path(journal.path + ".new").write_bytes(b"")
    os.rename(journal.path + ".new", journal.path)
    for change in change_all(journal):
        with pytest.raises(StorageFailed, match="was replaced by another file"):
            change()
    assert Path(journal.path).read_bytes() == b""


def test_a_link_in_the_place_of_the_file_is_not_followed(journal: Journal) -> None:
    os.rename(journal.path, journal.path + ".there")
    os.symlink(journal.path + ".there", journal.path)
    with pytest.raises(StorageFailed, match="replaced"):
        journal.append(QUESTION)


@pytest.mark.parametrize("other", [b"x", b"\n" * 1000])
def test_a_file_that_another_process_wrote_to_is_left_alone(journal: Journal, other: bytes) -> None:
    Path(journal.path).write_bytes(other)
    for change in change_all(journal):
        with pytest.raises(StorageFailed, match=f"changed by another process: it has {len(other)} bytes, expected 0"):
            change()
    assert Path(journal.path).read_bytes() == other


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_is_told_and_nothing_goes_on_after_it() -> None:
    full = Journal("/dev/full", os.open("/dev/full", os.O_WRONLY), 0, 1)
    with pytest.raises(StorageFailed, match="cannot append to '/dev/full': No space left on device"):
        full.append(QUESTION)
    assert (full.size, full.seq) == (0, 1)
    full.close()


def test_a_write_that_is_cut_short_is_a_failure(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(StorageFailed, match="No space left"):
        journal.append(QUESTION)
    monkeypatch.undo()
    with pytest.raises(StorageFailed, match="it has 10 bytes, expected 0"):
        journal.append(QUESTION)


@pytest.mark.parametrize("change", [lambda journal: journal.append(QUESTION), lambda journal: journal.cut(0)])
def test_a_sync_that_fails_is_a_failure(
    journal: Journal, change: Callable[[Journal], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "sync", fail_sync)
    with pytest.raises(StorageFailed, match=r"cannot .*session\.jsonl': Input/output error"):
        change(journal)
