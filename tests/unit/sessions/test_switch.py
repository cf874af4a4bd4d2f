"""What `chat` relies on: an open conversation continues, with its context, on whatever has replaced its content."""

import os
from pathlib import Path

import pytest

from mino.errors import NotFound, StorageFailed, UsageMistake
from mino.home import Home
from mino.journal.ids import new_id
from mino.journal.record import assistant_message, turn_end, user_message
from mino.sessions import saved, switch
from mino.sessions.conversation import Conversation, open_conversation
from mino.sessions.saved import Saved
from tests.homes import (
    EACH_KIND,
    NAMED,
    completed,
    ended,
    home_with,
    numbered,
    open_home,
    path_in,
    questions,
    refuse_telling,
    saved_in,
    session_of,
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


def load(home: Home, conversation: Conversation, name: str) -> Saved | None:
    with saved.open_ended(switch.find(home, name)) as content:
        return switch.load(conversation, content)


def test_the_conversation_goes_on_with_what_was_loaded(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        kept = load(home, conversation, "other")
        assert kept and kept.is_new and kept.turns == 2 and saved.is_automatic(kept.name)
        assert conversation.turns == 1 and [turn.user for turn in conversation.context] == ["三"]
        say(conversation, "四", "four")
        assert [turn.user for turn in conversation.context] == ["三", "四"]
        assert switch.save(home, "after", 0, refuse_telling, conversation.content()) == Saved("after", 2)
    path = Path(home.path)
    assert questions(session_of(path)) == ["三", "四"]
    assert saved_in(path) == {"other": OTHER, "after": session_of(path), kept.name: OLD}


def test_the_checkpoint_stays_as_it_is_however_often_it_is_loaded(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        for number in range(3):
            load(home, conversation, "other")
            say(conversation, f"问 {number}", "答")
    assert saved_in(Path(home.path))["other"] == OTHER
    assert questions(session_of(Path(home.path))) == ["三", "问 2"]


def test_what_a_named_conversation_holds_is_not_saved_again(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        load(home, conversation, "other")
        assert switch.start(conversation) == Saved("other", 1, is_new=False)
        assert switch.start(conversation) is None  # it is empty
    assert session_of(Path(home.path)) == b"" and len(saved_in(Path(home.path))) == 2


def test_the_context_stays_as_long_as_it_was_asked_for(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling, keep=1) as conversation:
        kept = load(home, conversation, "other")
        assert kept
        load(home, conversation, kept.name)
        assert [turn.user for turn in conversation.context] == ["二"]
        assert conversation.turns == 2


def test_new_and_load_leave_no_descriptor_behind(home: Home) -> None:
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            switch.start(conversation)
            load(home, conversation, "other")
        assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("name", EACH_KIND)
def test_undo_takes_the_last_turn_out_and_saves_it_first(tmp_path: Path, name: str | None) -> None:
    home = home_with(tmp_path, name, OLD)
    with open_conversation(home, name, 0, refuse_telling) as conversation:
        done = switch.undo(conversation)
        assert (done.turn.user, done.turns, conversation.turns) == ("二", 1, 1)
        assert [turn.user for turn in conversation.context] == ["一"]
        assert done.kept.name.startswith(f"{NAMED}.~" if name else "auto-") and done.kept.is_new
        assert saved_in(tmp_path)[done.kept.name] == OLD
        assert switch.undo(conversation).turn.user == "一"
        with pytest.raises(NotFound):
            switch.undo(conversation)
    assert path_in(home, name).read_bytes() == b""


@pytest.mark.parametrize("name", EACH_KIND)
def test_undo_of_a_failed_turn(tmp_path: Path, name: str | None) -> None:
    home = home_with(tmp_path, name, numbered(OTHER, ended(1, "f" * 32, "failed?", "failed")))
    with open_conversation(home, name, 0, refuse_telling) as conversation:
        assert switch.undo(conversation).turn.status == "failed"
        assert [turn.user for turn in conversation.context] == ["三"]
    assert path_in(home, name).read_bytes() == OTHER


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_session_file_that_was_replaced_by_another_hand_is_not_replaced_again(
    tmp_path: Path, name: str | None
) -> None:
    home = home_with(tmp_path, name, OLD)
    path = path_in(home, name)
    with open_conversation(home, name, 0, refuse_telling) as conversation:
        path.rename(path.with_suffix(".old"))
        path.write_bytes(OTHER)
        for change in (switch.start, switch.undo):
            with pytest.raises(StorageFailed, match="replaced by another file"):
                change(conversation)
    assert path.read_bytes() == OTHER


def test_a_session_that_grew_by_another_hand_is_not_replaced(home: Home) -> None:
    path = path_in(home, None)
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        path.write_bytes(numbered(OLD, OTHER))
        with pytest.raises(StorageFailed, match="changed by another process"):
            switch.start(conversation)
    assert path.read_bytes() == numbered(OLD, OTHER)


def test_what_is_no_conversation_is_not_found(home: Home) -> None:
    os.symlink(f"{home.saved}/other.jsonl", f"{home.saved}/link.jsonl")
    os.mkdir(f"{home.saved}/文件夹.jsonl")
    assert switch.find(home, "other") == str(path_in(home, "other"))
    with pytest.raises(NotFound, match="no conversation '没有'"):
        switch.find(home, "没有")
    with pytest.raises(UsageMistake):
        switch.find(home, "../sessions")
    for name, what in (("link", "is a symbolic link"), ("文件夹", "is not a regular file")):
        with pytest.raises(StorageFailed, match=what):
            switch.find(home, name)
        with pytest.raises(StorageFailed, match=what):
            switch.delete(home, name, 0, refuse_telling)
    assert sorted(os.listdir(home.saved)) == ["link.jsonl", "other.jsonl", "文件夹.jsonl"]
