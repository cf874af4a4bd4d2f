"""Removing turns for good from every file of a home that can hold them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from mino.errors import InvalidData, MinoError, NotFound, SessionInUse, UsageMistake
from mino.home import Home
from mino.journal import forget as journal
from mino.journal.forget import Removal
from mino.journal.lock import lock_shared
from mino.sessions.forget import Forgotten, forget
from tests.homes import (
    case,
    completed,
    hold,
    numbered,
    open_home,
    questions,
    refuse_telling,
    saved_in,
    session_of,
    session_path,
    turns_of,
    write,
)

KEPT, SECRET = completed(("公开", "open")), completed(("秘密 🔑", "secret"))
LIVE = numbered(KEPT, SECRET)
KEPT_ID, SECRET_ID = (turn.turn_id for turn in turns_of(LIVE))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that holds the secret in its session, in a saved session and in a recovery copy."""
    home = open_home(tmp_path / "home", LIVE, 检查点=SECRET, other=KEPT)
    write(copy_of(home), SECRET[:-1])
    return home


def copy_of(home: Home) -> Path:
    return session_path(home).with_name(f"{session_path(home).stem}-recovery-20260101T000000Z-01234567.jsonl")


def take(home: Home, *wanted: str, last: bool = False, dry_run: bool = False) -> Forgotten:
    """Forget where nothing is to be told."""
    return forget(home, 0, wanted, refuse_telling, last=last, dry_run=dry_run)


def contents(home: Home) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(home.path).rglob("*.jsonl")}


@pytest.mark.parametrize("wanted", [("2",), (SECRET_ID,), (SECRET_ID[:20].upper(),), (SECRET_ID, "2"), ()])
def test_a_turn_is_removed_from_every_file_and_where_it_was_is_known(home: Home, wanted: Sequence[str]) -> None:
    expected = Forgotten(
        {SECRET_ID},
        [
            (f"{home.saved}/检查点.jsonl", Removal(SECRET_ID, 1, 3)),
            (str(copy_of(home)), Removal(SECRET_ID, 1, 3)),
            (str(session_path(home)), Removal(SECRET_ID, 4, 6)),
        ],
        {KEPT_ID: 1, SECRET_ID: 2},
        failed=[],
        others=[],
    )
    before = contents(home)
    assert take(home, *wanted, last=not wanted, dry_run=True) == expected
    assert contents(home) == before and not os.path.exists(home.lock)
    assert take(home, *wanted, last=not wanted) == expected
    assert questions(session_of(Path(home.path))) == ["公开"]
    assert saved_in(Path(home.path)) == {"检查点": b"", "other": KEPT}
    assert copy_of(home).read_bytes() == b""


def test_a_turn_that_is_only_in_a_saved_session_is_named_by_its_id(home: Home) -> None:
    session_path(home).write_bytes(KEPT)
    with pytest.raises(NotFound, match="no turn '2'"):
        take(home, "2")
    done = take(home, SECRET_ID[:20])
    assert done.turn_ids == {SECRET_ID} and done.numbers == {KEPT_ID: 1}
    assert [path for path, _ in done.removals] == [f"{home.saved}/检查点.jsonl", str(copy_of(home))]
    assert session_path(home).read_bytes() == KEPT


def test_what_names_no_turn_or_more_than_one_changes_nothing(home: Home) -> None:
    before = contents(home)
    failures: list[tuple[str, type[MinoError]]] = [("3", NotFound), ("0193", NotFound), ("0193a0b1c2d3", UsageMistake)]
    for dry_run in (True, False):
        for wanted, failure in failures:
            with pytest.raises(failure):
                take(home, "1", wanted, dry_run=dry_run)
        session_path(home).write_bytes(b"")
        with pytest.raises(NotFound, match="no turn to forget"):
            take(home, last=True, dry_run=dry_run)
        session_path(home).write_bytes(LIVE)
    assert contents(home) == before


def test_a_file_that_cannot_be_changed_keeps_no_turn_in_the_others(home: Home) -> None:
    link = Path(home.saved, "a link.jsonl")
    link.symlink_to("检查点.jsonl")
    told: list[str] = []
    done = forget(home, 0, ["2"], told.append, last=False, dry_run=False)
    assert told == [f"'{link}' is a symbolic link"] and done.failed == [str(link)]
    assert len(done.removals) == 3 and questions(session_of(Path(home.path))) == ["公开"]


def test_the_users_own_files_that_name_a_turn_are_named_and_stay(home: Home) -> None:
    backup = write(Path(home.saved, "检查点.jsonl~"), SECRET)
    write(Path(home.saved, "notes.txt"), "秘密".encode())
    assert take(home, "2").others == [str(backup)]
    assert backup.read_bytes() == SECRET


@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_removed_while_another_process_holds_the_session(home: Home, dry_run: bool) -> None:
    before = contents(home)
    with hold(home), pytest.raises(SessionInUse):
        take(home, "2", dry_run=dry_run)
    assert contents(home) == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_invalid_session_stops_it(tmp_path: Path, dry_run: bool) -> None:
    home = open_home(tmp_path, case("seq-gap"), 检查点=SECRET)
    before = contents(home)
    with pytest.raises(InvalidData):
        take(home, SECRET_ID, dry_run=dry_run)
    assert contents(home) == before
    lock = lock_shared(home.lock)
    assert lock  # let go, whatever happened
    lock.close()


def test_before_the_first_conversation_there_is_nothing_to_forget(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "missing"), False)
    with pytest.raises(NotFound):
        take(home, "1", dry_run=True)
    assert os.listdir(tmp_path) == []


def test_each_file_is_read_once_for_its_ids_however_many_beginnings_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each beginning every file was read anew: 2,000 of them took 43 s where they take 0.2 s now."""
    home = open_home(tmp_path / "home", numbered(*(completed((f"问题 {n}", "🔑")) for n in range(200))), other=KEPT)
    read: list[str] = []
    ids_in = journal.ids_in

    def counted(chunks: Iterable[bytes]) -> set[str]:
        read.append("")
        return ids_in(chunks)

    monkeypatch.setattr(journal, "ids_in", counted)
    ids = [turn.turn_id for turn in turns_of(session_path(home).read_bytes())]
    done = take(home, *(turn_id[:31] for turn_id in ids[:100]), dry_run=True)
    assert done.turn_ids == set(ids[:100])
    assert len(read) == 2
