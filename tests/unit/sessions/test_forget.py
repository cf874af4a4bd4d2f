"""Removing turns for good from every file of a home that can hold them."""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from mino.errors import InvalidData, MinoError, NotFound, SessionInUse, UsageMistake
from mino.home import Home
from mino.journal import forget as journal
from mino.journal.forget import Removal
from mino.journal.lock import lock_shared
from mino.sessions import forget as module
from mino.sessions.conversation import lock
from mino.sessions.forget import Forgotten, forget
from mino.sessions.place import Place, set_current
from mino.text import Tell
from tests.homes import (
    EACH_KIND,
    case,
    completed,
    hold,
    home_with,
    numbered,
    open_home,
    path_in,
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
    """A home that holds the secret in its unnamed conversation, in a named one and in a recovery copy."""
    home = open_home(tmp_path / "home", LIVE, 检查点=SECRET, other=KEPT)
    write(copy_of(home), SECRET[:-1])
    return home


def copy_of(home: Home) -> Path:
    return session_path(home).with_name(f"{session_path(home).stem}-recovery-20260101T000000Z-01234567.jsonl")


def take(home: Home, *wanted: str, last: bool = False, dry_run: bool = False) -> Forgotten:
    """Forget where nothing is to be told."""
    return forget(home, None, 0, wanted, refuse_telling, last=last, dry_run=dry_run)


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
    assert contents(home) == before
    assert not os.path.exists(home.lock) and not os.path.exists(Place(home, "检查点").lock)
    assert take(home, *wanted, last=not wanted) == expected
    assert questions(session_of(Path(home.path))) == ["公开"]
    assert saved_in(Path(home.path)) == {"检查点": b"", "other": KEPT}
    assert copy_of(home).read_bytes() == b""


def test_a_turn_that_is_only_in_another_conversation_is_named_by_its_id(home: Home) -> None:
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
    done = forget(home, None, 0, ["2"], told.append, last=False, dry_run=False)
    assert told == [f"'{link}' is a symbolic link"] and done.failed == [str(link)]
    assert len(done.removals) == 3 and questions(session_of(Path(home.path))) == ["公开"]


def test_the_users_own_files_that_name_a_turn_are_named_and_stay(home: Home) -> None:
    backup = write(Path(home.saved, "检查点.jsonl~"), SECRET)
    write(Path(home.saved, "notes.txt"), "秘密".encode())
    assert take(home, "2").others == [str(backup)]
    assert backup.read_bytes() == SECRET


@pytest.mark.parametrize("busy", [None, "检查点"])
def test_nothing_is_removed_while_one_that_holds_the_turn_is_in_use(home: Home, busy: str | None) -> None:
    before = contents(home)
    with hold(home, busy):
        with pytest.raises(SessionInUse, match=f"^{Place(home, busy)} is in use"):
            take(home, "2")
        assert len(take(home, "2", dry_run=True).removals) == 3  # a reader needs no lock
        assert contents(home) == before
    for name in (None, "检查点"):  # let go, whatever happened
        with hold(home, name):
            assert contents(home) == before
    take(home, "2")
    assert "秘密".encode() not in b"".join(contents(home).values())


def test_one_that_does_not_hold_the_turn_may_be_in_use(home: Home) -> None:
    with hold(home, "other"):
        assert len(take(home, "2").removals) == 3
    assert not os.path.exists(Place(home, "其他").lock)


def test_the_turns_of_another_conversation_are_numbered_from_it(home: Home) -> None:
    """`--session`, or what is current, decides what number 1 is; removed it is everywhere."""
    with pytest.raises(NotFound, match="no turn '2'"):
        forget(home, "检查点", 0, ["2"], refuse_telling, last=False, dry_run=False)
    done = forget(home, "检查点", 0, ["1"], refuse_telling, last=False, dry_run=True)
    assert done.turn_ids == {SECRET_ID} and done.numbers == {SECRET_ID: 1}
    assert done.removals[-1][0] == str(path_in(home, "检查点"))  # last: after a crash its numbers are still right
    set_current(home, "other")
    assert take(home, last=True).turn_ids == {KEPT_ID}
    assert questions(session_of(Path(home.path))) == ["秘密 🔑"] and saved_in(Path(home.path))["other"] == b""
    with pytest.raises(NotFound, match="no conversation '没有'"):
        forget(home, "没有", 0, ["1"], refuse_telling, last=False, dry_run=False)


def test_locks_are_taken_in_the_order_of_the_names_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that took them in different orders would wait for each other."""
    names = ["a", "B", "ａ", "🏕", "e\u0301", "é", "中", "~", "a b"]
    home = open_home(tmp_path, SECRET, **dict.fromkeys(names, SECRET))
    taken: list[str | None] = []

    def note(place: Place, wait: float, tell: Tell) -> AbstractContextManager[None]:
        taken.append(place.name)
        return lock(place, wait, tell)

    monkeypatch.setattr(module, "lock", note)
    assert len(take(home, "1").removals) == len(names) + 1
    assert taken == [None, *sorted(names, key=str.encode)]


def test_a_copy_that_is_being_written_is_waited_for(home: Home) -> None:
    """The look found no turn in it, and a moment later it had its name, and the turn."""
    session_path(home).write_bytes(KEPT)
    before = contents(home)
    half = write(Path(home.saved, ".mino-0123456789abcdef-新的 🏕.tmp"), SECRET[:-20])
    with hold(home, "another"):  # of which it is none
        assert str(half) in take(home, SECRET_ID, dry_run=True).others
    with hold(home, "新的 🏕"):
        write(half, SECRET[:-20])  # whoever locked it removed what was there before
        with pytest.raises(SessionInUse, match="the conversation '新的 🏕' is in use"):
            take(home, SECRET_ID)
        assert half.exists() and contents(home) == before
        half.rename(path_in(home, "新的 🏕"))
        path_in(home, "新的 🏕").write_bytes(SECRET)
    done = take(home, SECRET_ID)
    assert done.removals[0][0] == str(path_in(home, "新的 🏕"))
    assert "秘密".encode() not in b"".join(contents(home).values())


@pytest.mark.parametrize("folder", ["saved", "sessions"])
@pytest.mark.parametrize("owner", ["", "新的 🏕", "other"])
def test_what_a_killed_writer_left_of_the_turn_is_gone_too(home: Home, folder: str, owner: str) -> None:
    left = write(Path(home.path, folder, f".mino-0123456789abcdef-{owner}.tmp"), SECRET[:-20])
    clean = write(Path(home.path, folder, ".mino-0123456789abcdef-third.tmp"), KEPT)
    assert take(home, SECRET_ID).others == []
    assert not left.exists() and clean.exists()


def test_who_waited_looks_again_because_the_turn_may_be_elsewhere_by_then(home: Home) -> None:
    told: list[str] = []
    with ExitStack() as busy:
        busy.enter_context(hold(home, "检查点"))

        def let_go(sentence: str) -> None:
            told.append(sentence)
            write(path_in(home, "抄的 🏕"), LIVE)  # `session save`, say
            busy.close()

        done = forget(home, None, 30, ["2"], let_go, last=False, dry_run=False)
    assert len(told) == 1 and "检查点" in told[0]
    assert str(path_in(home, "抄的 🏕")) in [path for path, _ in done.removals]
    assert questions(path_in(home, "抄的 🏕").read_bytes()) == ["公开"]
    assert "秘密".encode() not in b"".join(contents(home).values())


@pytest.mark.parametrize("name", EACH_KIND)
def test_the_conversation_is_recovered_as_by_every_writer(tmp_path: Path, name: str | None) -> None:
    home = home_with(tmp_path, name, LIVE + b'{"v":1,')
    told: list[str] = []
    forget(home, name, 0, ["2"], told.append, last=False, dry_run=False)
    [sentence] = told
    assert sentence.startswith(f"recovered {Place(home, name)}: cut an unfinished end of 7 bytes")
    assert questions(path_in(home, name).read_bytes()) == ["公开"]
    assert "秘密".encode() not in b"".join(contents(home).values())  # in the recovery copy neither


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_invalid_session_stops_it(tmp_path: Path, dry_run: bool) -> None:
    home = open_home(tmp_path, case("seq-gap"), 检查点=SECRET)
    before = contents(home)
    with pytest.raises(InvalidData):
        take(home, SECRET_ID, dry_run=dry_run)
    assert contents(home) == before
    reading = lock_shared(home.lock)
    assert reading  # let go, whatever happened
    reading.close()


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
