"""What `chat` relies on: an open conversation goes on, with its context, on whatever has replaced it."""

import os
from pathlib import Path

import pytest

from mino.errors import NotFound, StorageFailed, UsageMistake
from mino.home import Home
from mino.journal.ids import new_id
from mino.journal.record import assistant_message, turn_end, user_message
from mino.sessions import switch
from mino.sessions.conversation import Conversation, open_conversation
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
)

OLD = completed(("一", "one"), ("二", "two"))
OTHER = completed(("三", "three"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home", OLD, other=OTHER)


def say(conversation: Conversation, question: str, answer: str | None) -> None:
    """Save a turn; without an answer it has failed."""
    turn_id = new_id()
    conversation.append(user_message(conversation.journal.seq, turn_id, question))
    if answer is not None:
        conversation.append(assistant_message(conversation.journal.seq, turn_id, answer, None))
    conversation.append(turn_end(conversation.journal.seq, turn_id, "failed" if answer is None else "completed"))


def test_the_conversation_goes_on_with_what_was_loaded(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        done = switch.load(home, conversation, "other")
        assert (done.action, done.name, done.turns, conversation.turns) == ("loaded", "other", 1, 1)
        assert done.kept
        assert done.kept.is_new
        assert [turn.user for turn in conversation.context] == ["三"]
        say(conversation, "四", "four")
        assert [turn.user for turn in conversation.context] == ["三", "四"]
        assert switch.save(home, conversation, "after").is_new
    path = Path(home.path)
    assert questions(session_of(path)) == ["三", "四"]
    assert saved_in(path) == {"other": OTHER, "after": session_of(path), done.kept.name: OLD}


def test_a_disk_that_knows_no_upper_and_lower_case(home: Home) -> None:
    """Two names of one file, as such a disk has them; here they are two links."""
    os.link(f"{home.saved}/other.jsonl", f"{home.saved}/Other.jsonl")
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        switch.open_named(home, conversation, "other")
        say(conversation, "四", None)
        assert switch.open_named(home, conversation, "Other").action == "unchanged"
        assert switch.load(home, conversation, "Other").turns == 1
    assert switch.live_name(home) == "other"
    assert saved_in(Path(home.path))["other"] == OTHER


def test_the_context_stays_as_long_as_it_was_asked_for(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling, keep=1) as conversation:
        switch.load(home, conversation, "other")
        switch.load(home, conversation, next(name for name in saved_in(Path(home.path)) if name != "other"))
        assert [turn.user for turn in conversation.context] == ["二"]
        assert conversation.turns == 2


def test_new_and_open_leave_no_descriptor_behind(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            switch.start(home, conversation)
            switch.open_named(home, conversation, "other")
        assert len(os.listdir("/dev/fd")) == before
        assert switch.live_name(home) == "other"


def test_undo_takes_the_last_turn_out_and_saves_it_first(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        done = switch.undo(home, conversation)
        assert (done.turn.user, done.turns, conversation.turns) == ("二", 1, 1)
        assert [turn.user for turn in conversation.context] == ["一"]
        assert saved_in(Path(home.path))[done.kept.name] == OLD
        assert switch.undo(home, conversation).turn.user == "一"
        with pytest.raises(NotFound):
            switch.undo(home, conversation)
    assert session_of(Path(home.path)) == b""


def test_undo_of_a_failed_turn(tmp_path: Path) -> None:
    home = open_home(tmp_path, numbered(OTHER, ended(1, "f" * 32, "failed?", "failed")))
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        assert switch.undo(home, conversation).turn.status == "failed"
        assert [turn.user for turn in conversation.context] == ["三"]
    assert session_of(tmp_path) == OTHER


def test_undo_keeps_the_name_and_the_longer_conversation(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        switch.open_named(home, conversation, "work")
        say(conversation, "五", "five")
        undone = switch.undo(home, conversation)
        assert (undone.kept.name, switch.live_name(home)) == ("work", "work")
        switch.start(home, conversation)
    assert questions(saved_in(Path(home.path))["work"]) == ["五"]


def test_a_session_file_that_was_replaced_by_another_hand_is_not_replaced_again(home: Home) -> None:
    path = session_path(home)
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        path.rename(path.with_suffix(".old"))
        path.write_bytes(OTHER)
        with pytest.raises(StorageFailed, match="replaced by another file"):
            switch.load(home, conversation, "other")
        with pytest.raises(StorageFailed, match="replaced by another file"):
            switch.start(home, conversation)
    assert path.read_bytes() == OTHER


def test_a_session_that_grew_by_another_hand_is_not_replaced(home: Home) -> None:
    path = session_path(home)
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        path.write_bytes(numbered(OLD, OTHER))
        with pytest.raises(StorageFailed, match="changed by another process"):
            switch.start(home, conversation)
    assert path.read_bytes() == numbered(OLD, OTHER)


def test_delete_takes_the_name_from_the_live_conversation_and_its_content_stays(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        switch.save(home, conversation, "检查点 🏕")
        switch.open_named(home, conversation, "other")
    assert switch.delete(home, "检查点 🏕") is False
    assert switch.live_name(home) == "other"
    assert switch.delete(home, "other") is True
    assert switch.live_name(home) is None and not os.path.exists(home.current)
    assert saved_in(Path(home.path)) == {} and session_of(Path(home.path)) == OTHER


def test_what_is_not_there_is_not_deleted(home: Home) -> None:
    os.symlink(f"{home.saved}/other.jsonl", f"{home.saved}/link.jsonl")
    os.mkdir(f"{home.saved}/文件夹.jsonl")
    with pytest.raises(NotFound, match="no saved session '没有'"):
        switch.delete(home, "没有")
    with pytest.raises(UsageMistake):
        switch.delete(home, "../sessions")
    for name, what in (("link", "is a symbolic link"), ("文件夹", "is not a regular file")):
        with pytest.raises(StorageFailed, match=what):
            switch.delete(home, name)
    assert sorted(os.listdir(home.saved)) == ["link.jsonl", "other.jsonl", "文件夹.jsonl"]
