"""What `chat` relies on: an open conversation goes on, with its context, on whatever has replaced it."""

import os
from pathlib import Path

import pytest

from mino import sessions
from mino.conversation import open_conversation
from mino.errors import NotThere, StorageFailed
from mino.home import Home
from mino.journal.record import new_id
from tests.homes import SESSION, completed, ended, make_home, numbered, questions, saved_in, session_of

OLD = completed(("一", "one"), ("二", "two"))
OTHER = completed(("三", "three"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    make_home(tmp_path / "home", OLD, other=OTHER)
    return Home(str(tmp_path / "home"), is_default=False)


def test_the_conversation_goes_on_with_what_was_loaded(home: Home) -> None:
    with open_conversation(home, 0) as conversation:
        done = sessions.load(home, conversation, "other")
        assert (done.action, done.name, done.turns, conversation.turns) == ("loaded", "other", 1, 1)
        assert done.kept
        assert done.kept.is_new
        assert [turn.user for turn in conversation.context] == ["三"]
        turn_id = new_id()
        conversation.begin(turn_id, "四")
        conversation.complete(turn_id, "四", "four", [])
        assert [turn.user for turn in conversation.context] == ["三", "四"]
        assert sessions.save(home, conversation, "after").is_new
    path = Path(home.path)
    assert questions(session_of(path)) == ["三", "四"]
    assert saved_in(path) == {"other": OTHER, "after": session_of(path), done.kept.name: OLD}


def test_a_disk_that_knows_no_upper_and_lower_case(home: Home) -> None:
    """Two names of one file, as such a disk has them; here they are two links."""
    os.link(f"{home.saved}/other.jsonl", f"{home.saved}/Other.jsonl")
    with open_conversation(home, 0) as conversation:
        sessions.open_named(home, conversation, "other")
        turn_id = new_id()
        conversation.begin(turn_id, "四")
        conversation.end(turn_id, "failed")
        assert sessions.open_named(home, conversation, "Other").action == "unchanged"
        assert sessions.load(home, conversation, "Other").turns == 1
    assert sessions.live_name(home) == "other"
    assert saved_in(Path(home.path))["other"] == OTHER


def test_the_context_stays_as_long_as_it_was_asked_for(home: Home) -> None:
    with open_conversation(home, 0, keep=1) as conversation:
        sessions.load(home, conversation, "other")
        sessions.load(home, conversation, next(name for name in saved_in(Path(home.path)) if name != "other"))
        assert [turn.user for turn in conversation.context] == ["二"]
        assert conversation.turns == 2


def test_new_and_open_leave_no_descriptor_behind(home: Home) -> None:
    with open_conversation(home, 0) as conversation:
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            sessions.start_new(home, conversation)
            sessions.open_named(home, conversation, "other")
        assert len(os.listdir("/dev/fd")) == before
        assert sessions.live_name(home) == "other"


def test_undo_takes_the_last_turn_out_and_saves_it_first(home: Home) -> None:
    with open_conversation(home, 0) as conversation:
        done = sessions.undo(home, conversation)
        assert (done.turn.user, done.turns, conversation.turns) == ("二", 1, 1)
        assert [turn.user for turn in conversation.context] == ["一"]
        assert saved_in(Path(home.path))[done.kept.name] == OLD
        assert sessions.undo(home, conversation).turn.user == "一"
        with pytest.raises(NotThere):
            sessions.undo(home, conversation)
    assert session_of(Path(home.path)) == b""


def test_undo_of_a_failed_turn(tmp_path: Path) -> None:
    make_home(tmp_path, numbered(OTHER, ended(1, "f" * 32, "failed?", "failed")))
    home = Home(str(tmp_path), is_default=False)
    with open_conversation(home, 0) as conversation:
        assert sessions.undo(home, conversation).turn.status == "failed"
        assert [turn.user for turn in conversation.context] == ["三"]
    assert session_of(tmp_path) == OTHER


def test_undo_keeps_the_name_and_the_longer_conversation(home: Home) -> None:
    with open_conversation(home, 0) as conversation:
        sessions.open_named(home, conversation, "work")
        turn_id = new_id()
        conversation.begin(turn_id, "五")
        conversation.complete(turn_id, "五", "five", [])
        undone = sessions.undo(home, conversation)
        assert (undone.kept.name, sessions.live_name(home)) == ("work", "work")
        sessions.start_new(home, conversation)
    assert questions(saved_in(Path(home.path))["work"]) == ["五"]


def test_a_session_file_that_was_replaced_by_another_hand_is_not_replaced_again(home: Home) -> None:
    path = Path(home.path, "sessions", SESSION)
    with open_conversation(home, 0) as conversation:
        path.rename(path.with_suffix(".old"))
        path.write_bytes(OTHER)
        with pytest.raises(StorageFailed, match="replaced by another file"):
            sessions.load(home, conversation, "other")
        with pytest.raises(StorageFailed, match="replaced by another file"):
            sessions.start_new(home, conversation)
    assert path.read_bytes() == OTHER


def test_a_session_that_grew_by_another_hand_is_not_replaced(home: Home) -> None:
    path = Path(home.path, "sessions", SESSION)
    with open_conversation(home, 0) as conversation:
        path.write_bytes(numbered(OLD, OTHER))
        with pytest.raises(StorageFailed, match="changed by another process"):
            sessions.start_new(home, conversation)
    assert path.read_bytes() == numbered(OLD, OTHER)
