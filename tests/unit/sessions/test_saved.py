"""Names and files of saved sessions."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from mino import disk
from mino.errors import InvalidData, NotFound, StorageFailed, UsageMistake
from mino.journal.file import Journal
from mino.sessions import saved
from tests.homes import completed, turns_of
from tests.unit.journal.calls import watch_calls

OLD = completed(("旧", "old"))
LONGER = OLD + completed(("新", "new")).replace(b'"seq":1', b'"seq":4')


@pytest.mark.parametrize(
    "name",
    ["a", "检查点", "a b", " a", "a.b", "a-", "~", "é", "e\u0301", "🙂", "名" * 66, "x" * 200, "a.~20260101T000000Z~"],
)
def test_good_names(name: str) -> None:
    assert saved.name_flaw(name) is None
    assert saved.path_of("d", name) == f"d/{name}.jsonl"
    assert len(os.fsencode(f"{name}.~20260101T000000Z-99~.jsonl")) <= 255


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (".", "begins with `.`"),
        ("..", "begins with `.`"),
        ("-n", "begins with `-`"),
        ("a/b", "`/`"),
        ("../x", "begins with `.`"),
        ("a\nb", "control"),
        ("a\0b", "control"),
        ("a\x7f", "control"),
        ("a\x9b", "control"),
        ("a\udcff", "not UTF-8"),
        ("x" * 201, "201 bytes, more than 200"),
        ("名" * 67, "201 bytes"),
        ("x-recovery-20260101T000000Z-0123abcd", "recovery copy"),
    ],
)
def test_bad_names(name: str, why: str) -> None:
    assert why in (saved.name_flaw(name) or "")
    with pytest.raises(UsageMistake):
        saved.path_of("d", name)


def journal(tmp_path: Path, content: bytes) -> Journal:
    path = tmp_path / "live.jsonl"
    path.write_bytes(content)
    return Journal(str(path), os.open(path, os.O_RDWR | os.O_APPEND), len(content), 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "saved"
    made.mkdir()
    return made


def test_names_are_those_of_saved_sessions_alone(directory: Path) -> None:
    for file in (
        "b.jsonl",
        "a.jsonl",
        ".x.jsonl",
        "notes",
        ".mino-00.tmp",
        "a-recovery-20260101T000000Z-0123abcd.jsonl",
    ):
        (directory / file).touch()
    os.mkdir(os.path.join(os.fsencode(directory), b"\xff.jsonl"))
    assert saved.names(str(directory)) == ["a", "b"]
    assert saved.names(str(directory / "nowhere")) == []


@pytest.mark.parametrize("keep_beginning", [True, False])
def test_an_older_copy_is_kept_where_the_new_one_does_not_hold_it(
    tmp_path: Path, directory: Path, keep_beginning: bool
) -> None:
    place = str(directory)
    assert saved.store(place, "n", journal(tmp_path, OLD), keep_beginning=keep_beginning) == saved.Saved("n")
    same = saved.store(place, "n", journal(tmp_path, OLD), keep_beginning=keep_beginning)
    assert same == saved.Saved("n", is_new=False)
    longer = saved.store(place, "n", journal(tmp_path, LONGER), keep_beginning=keep_beginning)
    assert (longer.older is not None) == keep_beginning
    shorter = saved.store(place, "n", journal(tmp_path, OLD), keep_beginning=keep_beginning)
    assert shorter.older
    assert (directory / f"{shorter.older}.jsonl").read_bytes() == LONGER
    assert (directory / "n.jsonl").read_bytes() == OLD


def test_an_older_copy_is_made_once_however_often_the_new_one_fails(tmp_path: Path, directory: Path) -> None:
    """A job that saved on a full disk kept the same older copy again each time, until the disk was full of them."""
    place = str(directory)
    saved.store(place, "n", journal(tmp_path, OLD), keep_beginning=True)
    replace = disk.replace

    def fail(path: str, data: Iterable[bytes]) -> int:
        if path.endswith("/n.jsonl"):
            raise StorageFailed("No space left on device")
        return replace(path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "replace", fail)
        for _ in range(3):
            with pytest.raises(StorageFailed):
                saved.store(place, "n", journal(tmp_path, LONGER), keep_beginning=True)
    [older] = {path.name for path in directory.iterdir()} - {"n.jsonl"}
    assert (directory / older).read_bytes() == (directory / "n.jsonl").read_bytes() == OLD
    assert saved.store(place, "n", journal(tmp_path, LONGER), keep_beginning=True).older == older.removesuffix(".jsonl")
    # A link to what is about to be replaced is no copy of it.
    os.unlink(directory / older)
    (directory / older).symlink_to("n.jsonl")
    os.utime(directory / "n.jsonl", (0, 0))
    (directory / "n.~19700101T000000Z~.jsonl").symlink_to("n.jsonl")
    kept = saved.store(place, "n", journal(tmp_path, OLD), keep_beginning=True).older
    assert kept == "n.~19700101T000000Z-2~"
    assert (directory / f"{kept}.jsonl").read_bytes() == LONGER


@pytest.mark.parametrize(
    ("seconds", "kept"),
    [
        (-1e11, 0.0),
        (0.0, 0.0),
        (1.7e9, 1.7e9),
        (253_402_300_800.0, 253_402_128_000.0),
        (1e18, 253_402_128_000.0),
    ],
)
def test_a_file_may_have_any_time(seconds: float, kept: float) -> None:
    """A backup or a broken clock made a file of the year 10000, and the list ended in a traceback."""
    facts = os.stat_result((0o600, 0, 0, 1, 0, 0, 0, 0, seconds, 0))
    assert saved.file_time(facts) == kept


def test_the_older_copy_of_an_older_copy_has_no_longer_name(directory: Path) -> None:
    assert saved.older_name(str(directory), "n.~20260101T000000Z-2~", 0) == "n.~19700101T000000Z~"


def test_a_copy_that_holds_the_same_is_found(tmp_path: Path, directory: Path) -> None:
    for name, content in {"a": LONGER, "b": OLD.swapcase(), "c": OLD}.items():
        (directory / f"{name}.jsonl").write_bytes(content)
    (directory / "0.jsonl").symlink_to(directory / "c.jsonl")
    assert saved.find_equal(str(directory), journal(tmp_path, OLD)) == "c"
    assert saved.find_equal(str(directory), journal(tmp_path, OLD + OLD)) is None


def test_only_a_clean_session_is_opened(directory: Path) -> None:
    (directory / "good.jsonl").write_bytes(OLD)
    with saved.open_clean(str(directory), "good") as data:
        assert b"".join(data) == OLD
    (directory / "torn.jsonl").write_bytes(OLD[:-1])
    with pytest.raises(InvalidData, match="torn-tail"), saved.open_clean(str(directory), "torn"):
        pass
    with pytest.raises(NotFound, match="no saved session 'x'"), saved.open_clean(str(directory), "x"):
        pass


def test_turns_are_saved_as_completed_ones(directory: Path) -> None:
    pairs = [("巴黎在哪里？ 🗼", "In France.\n在法国。"), ("still?", "是的")]
    saved.store_turns(str(directory), "导入", iter(pairs))
    turns = turns_of((directory / "导入.jsonl").read_bytes())
    assert [(turn.user, turn.assistant, turn.status) for turn in turns] == [(*pair, "completed") for pair in pairs]
    assert len({turn.turn_id for turn in turns}) == 2
    with pytest.raises(UsageMistake):
        saved.store_turns(str(directory), "-n", pairs)
    assert os.listdir(directory) == ["导入.jsonl"]


def test_a_session_is_deleted_or_that_is_told(directory: Path) -> None:
    (directory / "旧的.jsonl").write_bytes(OLD)
    saved.refuse_missing(str(directory), "旧的")
    saved.delete(str(directory), "旧的")
    assert os.listdir(directory) == []
    with pytest.raises(NotFound, match="no saved session '旧的'"):
        saved.refuse_missing(str(directory), "旧的")
    with pytest.raises(StorageFailed, match=r"cannot delete '.*旧的\.jsonl': No such file"):
        saved.delete(str(directory), "旧的")


def test_a_folder_that_is_a_file_is_not_a_missing_session(tmp_path: Path) -> None:
    """A copy that cannot be reached was reported as one that does not exist."""
    (tmp_path / "saved").write_bytes(b"")
    with pytest.raises(StorageFailed, match="Not a directory"), saved.open_clean(str(tmp_path / "saved"), "检查点"):
        pass


def test_a_copy_that_is_there_already_is_synced_before_it_is_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever put it there (`cp`, a writer that was killed) may not have synced it."""
    directory = tmp_path / "saved"
    directory.mkdir()
    (directory / "a.jsonl").write_bytes(OLD)
    calls = watch_calls(monkeypatch)
    assert saved.find_equal(str(directory), journal(tmp_path, OLD)) == "a"
    assert not saved.store(str(directory), "a", journal(tmp_path, OLD), keep_beginning=True).is_new
    assert calls == ["sync", "sync directory"] * 2

    older = saved.older_name(str(directory), "a", os.path.getmtime(directory / "a.jsonl"))
    (directory / f"{older}.jsonl").write_bytes(OLD)
    del calls[:]
    assert saved.store(str(directory), "a", journal(tmp_path, LONGER), keep_beginning=True).older == older
    assert calls[:2] == ["sync", "sync directory"] and calls.count("rename") == 1
