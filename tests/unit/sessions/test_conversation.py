"""The session opened for writing: lock, load, recover, append."""

import os
import re
from pathlib import Path

import pytest

from mino.errors import CannotCreate, InvalidData, StorageFailed
from mino.home import Home
from mino.journal.lock import lock_exclusive, lock_shared
from mino.journal.record import assistant_message, turn_end, user_message
from mino.journal.recovery import Recovery
from mino.sessions import saved
from mino.sessions.conversation import format_recovery, open_conversation, open_place
from mino.sessions.place import Place, place_of
from tests.homes import (
    EACH_KIND,
    NAMED,
    case,
    hold,
    home_with,
    open_home,
    path_in,
    refuse_telling,
    saved_in,
    session_of,
    session_path,
    write,
)
from tests.unit.journal.sample import FIRST, ITEM, SECOND, THIRD, file_of, load, question, turn, two_turns


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is not there yet."""
    return Home(str(tmp_path / "mino"), False)


def test_the_first_use_makes_an_empty_session_under_the_lock(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        path = Path(conversation.journal.path)
        assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}\.jsonl", path.name)
        assert path.read_bytes() == b"" and path.stat().st_mode & 0o777 == 0o600
        assert lock_shared(home.lock) is None
        assert (list(conversation.context), conversation.turns) == ([], 0)
    assert os.stat(home.sessions).st_mode & 0o777 == os.stat(home.path).st_mode & 0o777 == 0o700
    lock_exclusive(home.lock, 0).close()
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        assert conversation.journal.path == str(path)


def test_an_answer_enters_the_context_only_after_it_is_on_disk(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        conversation.append(user_message(1, FIRST, "你好？"))
        assert (list(conversation.context), conversation.turns) == ([], 0)
        conversation.append(assistant_message(2, FIRST, "巴黎", [ITEM]), turn_end(3, FIRST, "completed"))
        [first] = conversation.context
        assert (first.user, first.assistant, first.output, first.status) == ("你好？", "巴黎", [ITEM], "completed")
        assert (first.number, first.turn_id) == (1, FIRST)
        conversation.append(user_message(4, SECOND, "?"))
        conversation.append(turn_end(5, SECOND, "failed"))
        conversation.append(user_message(6, THIRD, "?"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data: 0)
            with pytest.raises(StorageFailed):
                conversation.append(assistant_message(7, THIRD, "!", None), turn_end(8, THIRD, "completed"))
        assert list(conversation.context) == [first] and conversation.turns == 2
    turns, _ = load(Path(conversation.journal.path).read_bytes())
    assert [turn.status for turn in turns] == ["completed", "failed", "open"]


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize(
    ("keep", "kept"), [(None, [FIRST, SECOND, THIRD]), (2, [SECOND, THIRD]), (0, []), (9, [FIRST, SECOND, THIRD])]
)
def test_the_context_is_the_last_completed_turns(
    tmp_path: Path, name: str | None, keep: int | None, kept: list[str]
) -> None:
    home = home_with(tmp_path, name, file_of([*two_turns(), *turn(7, THIRD), question(10, "f" * 32)]))
    told: list[str] = []
    with open_conversation(home, name, 0, told.append, keep) as conversation:
        assert [each.turn_id for each in conversation.context] == kept
        assert conversation.turns == 4
    assert told == [f"recovered {Place(home, name)}: ended the open turn {'f' * 32} as interrupted"]
    assert load(path_in(home, name).read_bytes())[1].state == "clean"


@pytest.mark.parametrize(("name", "called"), [(None, "the session"), (NAMED, f"the conversation '{NAMED}'")])
def test_a_session_is_recovered_when_it_is_opened_and_that_is_told_once(
    tmp_path: Path, name: str | None, called: str
) -> None:
    data = case("torn-last-newline")
    home = home_with(tmp_path, name, data)
    path = path_in(home, name)
    told: list[str] = []
    with open_conversation(home, name, 0, told.append) as conversation:
        assert len(conversation.context) == 1
    [sentence] = told
    [copy] = (other for other in path.parent.iterdir() if other != path and other.suffix == ".jsonl")
    assert place_of(home, str(copy)) == Place(home, name)
    assert sentence == (
        f"recovered {called}: cut an unfinished end of 99 bytes, the whole file is in '{copy}' "
        "and ended the open turn 0193a0b1c2d300000000000000000002 as interrupted"
    )
    assert copy.read_bytes() == data and copy.stat().st_mode & 0o777 == 0o600
    with open_conversation(home, name, 0, refuse_telling) as conversation:
        assert conversation.turns == 2


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize("damage", ["fused-records", "newer-version", "seq-gap", "wrong-last-line-but-json"])
def test_an_invalid_session_is_not_opened_and_not_changed(tmp_path: Path, damage: str, name: str | None) -> None:
    home = home_with(tmp_path, name, case(damage))
    path, lock = path_in(home, name), Path(Place(home, name).lock)
    for _ in range(2):
        with pytest.raises(InvalidData, match=re.escape(str(path))), open_conversation(home, name, 0, refuse_telling):
            raise AssertionError
        assert path.read_bytes() == case(damage) and {*path.parent.iterdir()} - {lock} == {path}
    lock_exclusive(str(lock), 0).close()


def test_an_invalid_session_can_be_set_aside_whole(tmp_path: Path) -> None:
    home = open_home(tmp_path, case("seq-gap"))
    told: list[str] = []
    with open_place(Place(home, None), 0, told.append, replace_invalid=True) as conversation:
        assert (list(conversation.context), conversation.turns) == ([], 0)
        assert Path(conversation.journal.path) != session_path(home)
    [name] = saved_in(tmp_path)
    [sentence] = told
    assert saved.is_automatic(name) and sentence.endswith(f"; it is set aside as '{name}'")
    assert saved_in(tmp_path)[name] == case("seq-gap") and session_of(tmp_path) == b""


def test_more_than_one_session_is_not_touched(tmp_path: Path) -> None:
    home = open_home(tmp_path, b"torn")
    paths = [session_path(home), write(Path(home.sessions, f"{SECOND}.jsonl"), b"torn")]
    with (
        pytest.raises(InvalidData, match="more than one conversation"),
        open_conversation(home, None, 0, refuse_telling),
    ):
        raise AssertionError
    assert [path.read_bytes() for path in paths] == [b"torn", b"torn"]
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize("there", [True, False])
def test_a_session_that_is_a_link_is_not_opened(tmp_path: Path, name: str | None, there: bool) -> None:
    home = home_with(tmp_path / "home", name, b"")
    path = path_in(home, name)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    if there:
        write(tmp_path / "elsewhere", b"precious")
    with pytest.raises(StorageFailed, match="is a symbolic link"), open_conversation(home, name, 0, refuse_telling):
        raise AssertionError
    assert not there or (tmp_path / "elsewhere").read_bytes() == b"precious"
    assert there or not (tmp_path / "elsewhere").exists()


def test_a_home_in_the_place_of_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = Home(str(tmp_path / "file"), False)
    for name in EACH_KIND:
        with pytest.raises(CannotCreate), hold(home, name):
            raise AssertionError


def test_a_session_deleted_while_it_is_open_is_not_made_again(tmp_path: Path) -> None:
    home = open_home(tmp_path, b"")
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        session_path(home).unlink()
        with pytest.raises(StorageFailed, match="is gone"):
            conversation.append(user_message(1, FIRST, "?"))
    assert os.listdir(home.sessions) == []


def test_a_conversation_continues_with_the_file_that_has_replaced_its_own(tmp_path: Path) -> None:
    home = open_home(tmp_path, file_of(turn(1, FIRST)))
    descriptors = len(os.listdir("/dev/fd"))
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        conversation.append(user_message(4, SECOND, "还没有回答 🐢"))
        conversation.journal.replace([file_of(turn(1, THIRD) + turn(4, SECOND))])
        with pytest.raises(StorageFailed, match="was replaced by another file"):
            conversation.append(turn_end(5, SECOND, "failed"))
        conversation.reopen()
        assert [each.turn_id for each in conversation.context] == [THIRD, SECOND] and conversation.turns == 2
        conversation.append(turn_end(conversation.journal.seq, FIRST, "failed"))
        assert conversation.turns == 2  # the question that was open is no longer in the file
    assert len(os.listdir("/dev/fd")) == descriptors


def test_a_plan_has_no_copy_to_name() -> None:
    assert format_recovery(Recovery("recoverable", 7)) == "cut an unfinished end of 7 bytes"
    assert format_recovery(Recovery("recoverable", 0, None, FIRST)) == f"ended the open turn {FIRST} as interrupted"
    assert format_recovery(Recovery("recoverable", 0, None, FIRST), planned=True).startswith("end the open turn ")
    assert not Recovery("clean").is_needed
