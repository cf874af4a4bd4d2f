"""Recovery: the whole file is copied and synced before a byte of it is cut, and what it makes verifies clean."""

import os
from pathlib import Path

import pytest

from mino import disk
from mino.errors import CannotCreate, StorageFailed
from mino.journal import recovery
from mino.journal.file import Journal
from mino.journal.findings import Report
from mino.journal.loader import Loading
from mino.journal.recovery import Recovery, plan, recover
from tests.unit.journal.calls import fail_sync, watch_calls
from tests.unit.journal.sample import CASES, FIRST, SECOND, file_of, load, two_turns

RECOVERABLE = ["torn-40-bytes", "torn-last-newline", "torn-half-character", "nul-tail", "nul-tail-with-newline"]
RECOVERABLE += ["blank-last-line", "tail-half-character-with-newline", "open-question", "open-answer"]


def open_session(path: Path) -> tuple[Journal, Report]:
    fd = disk.open_regular(str(path), os.O_RDWR | os.O_APPEND)
    loading = Loading(disk.chunks(fd, str(path)))
    for _ in loading:
        pass
    return Journal(str(path), fd, loading.report.bytes, loading.report.next_seq), loading.report


def recover_file(path: Path) -> Recovery:
    journal, report = open_session(path)
    try:
        return recover(journal, report)
    finally:
        journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{FIRST}.jsonl"


def completed(data: bytes) -> list[str]:
    return [turn.turn_id for turn in load(data)[0] if turn.status == "completed"]


def test_every_cut_of_a_history_is_recovered_clean_and_no_context_grows_by_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "sync", lambda fd: None)  # thousands of them; when they happen is tested below
    data = file_of(two_turns())
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        boundary = data.rfind(b"\n", 0, cut) + 1
        before = completed(data[:cut])
        done = recover_file(path)
        after = path.read_bytes()
        turns, report = load(after, all_findings=True)
        assert report.state == "clean" and report.findings == []
        assert after.startswith(data[:boundary])
        assert completed(after) == before == [FIRST, SECOND][: data[:cut].count(b"\n") // 3]
        assert done.cut_bytes == cut - boundary
        assert done.closed_turn == (turns[-1].turn_id if turns and turns[-1].status == "interrupted" else None)
        if done.copy:
            assert Path(done.copy).read_bytes() == data[:cut]
            os.unlink(done.copy)
        assert [other.name for other in path.parent.iterdir()] == [path.name]
        # A second start finds nothing to do.
        assert not recover_file(path).is_needed and path.read_bytes() == after


@pytest.mark.parametrize("name", RECOVERABLE)
def test_a_recoverable_case(name: str, path: Path) -> None:
    data = (CASES / f"{name}.jsonl").read_bytes()
    path.write_bytes(data)
    done = recover_file(path)
    assert done.state == "recoverable" and done.is_needed
    assert load(path.read_bytes(), all_findings=True)[1].state == "clean"
    assert completed(path.read_bytes()) == completed(data)
    assert (done.copy is None) is name.startswith("open-")
    if done.copy:
        assert Path(done.copy).parent == path.parent and recovery.COPY_NAME.fullmatch(Path(done.copy).stem)
        assert Path(done.copy).read_bytes() == data
    if name == "open-question":
        assert path.read_bytes()[len(data) :].startswith(b'{"v":1,"seq":5,"type":"turn_end"')
    if name == "open-answer":
        assert path.read_bytes().endswith(
            b'"seq":6,"type":"turn_end","turn_id":"%s","status":"interrupted"}\n' % SECOND_ID
        )


SECOND_ID = b"0193a0b1c2d300000000000000000002"


def test_the_copy_is_synced_with_its_directory_before_the_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes((CASES / "torn-last-newline.jsonl").read_bytes())
    calls = watch_calls(monkeypatch)
    recover_file(path)
    steps = ["write", "sync", "sync directory", "rename", "sync directory", "cut", "sync", "write", "sync"]
    assert calls == steps


def test_without_a_copy_nothing_is_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the copy is taken: a real failure to make it, as a full or read-only disk would be."""
    data = (CASES / "torn-last-newline.jsonl").read_bytes()
    path.write_bytes(data)
    monkeypatch.setattr(os, "urandom", lambda size: b"\1" * size)
    monkeypatch.setattr(recovery, "now", lambda: 1_796_119_200.0)
    taken = path.parent / f"{FIRST}-recovery-20261201T100000Z-01010101.jsonl"
    taken.write_bytes(b"another copy")
    with pytest.raises(CannotCreate, match="File exists"):
        recover_file(path)
    assert path.read_bytes() == data and taken.read_bytes() == b"another copy"


def test_a_copy_that_cannot_be_synced_does_not_stay_and_nothing_is_cut(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (CASES / "torn-40-bytes.jsonl").read_bytes()
    path.write_bytes(data)
    monkeypatch.setattr(disk, "sync", fail_sync)
    with pytest.raises(StorageFailed, match=r"cannot write '.*-recovery-.*': Input/output error"):
        recover_file(path)
    assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_grew_while_it_was_copied_is_not_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (CASES / "torn-40-bytes.jsonl").read_bytes()
    path.write_bytes(data)
    journal, report = open_session(path)
    path.write_bytes(data + b"more")
    with pytest.raises(StorageFailed, match="changed by another process"):
        recover(journal, report)
    assert path.read_bytes() == data + b"more"


@pytest.mark.parametrize("length", [1, 70_000, 5_000_000])
def test_a_torn_record_of_any_length_is_cut_at_the_right_place(path: Path, length: int) -> None:
    """The search for the end of the last complete record has no window."""
    whole = file_of(two_turns())
    path.write_bytes(whole + b'{"v":1' + b"x" * length)
    done = recover_file(path)
    assert done.cut_bytes == length + 6
    assert path.read_bytes() == whole


def test_a_plan_says_what_recovery_will_do(path: Path) -> None:
    for name in RECOVERABLE:
        path.write_bytes((CASES / f"{name}.jsonl").read_bytes())
        planned = plan(open_session(path)[1])
        done = recover_file(path)
        assert (planned.state, planned.cut_bytes, planned.closed_turn) == (done.state, done.cut_bytes, done.closed_turn)
        assert planned.copy is None and planned.is_needed
