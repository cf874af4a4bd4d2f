"""The conversation that a chat holds: it is exchanged for another one whole, or it stays."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mino.errors import InvalidData, NotFound, SessionInUse, StorageFailed, UsageMistake
from mino.home import Home
from mino.journal.ids import new_id
from mino.journal.lock import lock_exclusive, lock_shared
from mino.journal.record import turn_end, user_message
from mino.sessions import held as module
from mino.sessions import saved, switch
from mino.sessions.held import Held
from mino.sessions.place import Place, current_name, set_current
from mino.sessions.saved import Saved
from tests.homes import NAMED, case, completed, hold, open_home, path_in, questions, refuse_telling, saved_in

UNNAMED, OTHER = completed(("一", "one"), ("二", "two")), completed(("三", "three"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home", UNNAMED, **{NAMED: OTHER})


@contextmanager
def holding(home: Home, session: str | None = None, keep: int | None = None) -> Iterator[Held]:
    with Held(home, session, 0, refuse_telling, keep) as held:
        yield held


def move(held: Held, name: str | None) -> None:
    with held.move(name):
        pass


def is_held(home: Home, name: str | None) -> bool:
    """Whether the lock of that conversation is held by anybody; what is free was let go in order, or never taken."""
    lock = lock_shared(Place(home, name).lock)
    if lock:
        lock.close()
    return lock is None


def ask(held: Held, question: str) -> None:
    """Save a turn that has failed."""
    turn_id, conversation = new_id(), held.conversation
    conversation.append(user_message(conversation.journal.seq, turn_id, question))
    conversation.append(turn_end(conversation.journal.seq, turn_id, "failed"))


def test_another_one_is_held_and_current_at_the_end_of_the_block(home: Home) -> None:
    with holding(home) as held:
        with held.move(NAMED):
            assert is_held(home, None) and is_held(home, NAMED)
            assert held.conversation.place == Place(home, NAMED) and current_name(home, refuse_telling) is None
        assert current_name(home, refuse_telling) == NAMED
        assert is_held(home, NAMED) and not is_held(home, None)
        assert [turn.user for turn in held.conversation.context] == ["三"]
        ask(held, "四")
        move(held, None)
        assert current_name(home, refuse_telling) is None
        assert is_held(home, None) and not is_held(home, NAMED)
        ask(held, "五")
    assert not is_held(home, None)
    assert questions(path_in(home, NAMED).read_bytes()) == ["三", "四"]
    assert questions(path_in(home, None).read_bytes()) == ["一", "二", "五"]
    assert os.path.getsize(Place(home, NAMED).lock) == os.path.getsize(home.lock) == 0  # all ended in order


def test_one_that_is_not_there_is_made(home: Home) -> None:
    with holding(home) as held:
        move(held, "新的 🏕")
        assert (held.conversation.turns, list(held.conversation.context)) == (0, [])
    assert path_in(home, "新的 🏕").read_bytes() == b"" and current_name(home, refuse_telling) == "新的 🏕"


def test_the_context_stays_as_long_as_it_was_asked_for(home: Home) -> None:
    with holding(home, NAMED, keep=1) as held:
        move(held, None)
        assert [turn.user for turn in held.conversation.context] == ["二"] and held.conversation.turns == 2


def test_one_that_is_in_use_is_not_taken(home: Home) -> None:
    with holding(home) as held, hold(home, NAMED):
        before = held.conversation
        with pytest.raises(SessionInUse, match=f"the conversation '{NAMED}' is in use"), held.move(NAMED):
            raise AssertionError
        assert held.conversation is before and is_held(home, None)
        assert current_name(home, refuse_telling) is None
        ask(held, "四")
    assert questions(path_in(home, None).read_bytes()) == ["一", "二", "四"]


@pytest.mark.parametrize("failure", [StorageFailed("the disk is full"), NotFound("no"), KeyboardInterrupt()])
def test_after_a_failure_the_old_one_goes_on_and_the_new_one_is_free(home: Home, failure: BaseException) -> None:
    with holding(home) as held:
        before, descriptors = held.conversation, len(os.listdir("/dev/fd"))
        for _ in range(3):
            with pytest.raises(type(failure)), held.move(NAMED):
                assert held.conversation.place == Place(home, NAMED)
                raise failure
            assert held.conversation is before and is_held(home, None) and not is_held(home, NAMED)
        assert len(os.listdir("/dev/fd")) == descriptors and current_name(home, refuse_telling) is None
        ask(held, "四")
        left = lock_exclusive(Place(home, NAMED).lock, 0)
        assert left.was_left  # what it had written is synced by the next writer
        left.close()
    assert questions(path_in(home, None).read_bytes()) == ["一", "二", "四"]
    assert path_in(home, NAMED).read_bytes() == OTHER


def test_where_the_pointer_cannot_be_written_the_old_one_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(home: Home, name: str | None) -> None:
        raise StorageFailed("No space left on device")

    with holding(home) as held:
        with monkeypatch.context() as patch:
            patch.setattr(module, "set_current", refuse)
            with pytest.raises(StorageFailed):
                move(held, NAMED)
        assert held.conversation.place == Place(home, None)
        assert is_held(home, None) and not is_held(home, NAMED)
        move(held, NAMED)
        assert held.conversation.place == Place(home, NAMED)


def test_an_invalid_one_is_not_taken_and_the_old_one_goes_on(home: Home) -> None:
    path_in(home, NAMED).write_bytes(case("seq-gap"))
    with holding(home) as held:
        with pytest.raises(InvalidData):
            move(held, NAMED)
        assert held.conversation.place == Place(home, None) and not is_held(home, NAMED)
        ask(held, "四")
    assert path_in(home, NAMED).read_bytes() == case("seq-gap") and current_name(home, refuse_telling) is None


def test_an_invalid_one_is_set_aside_where_it_is_to_be_replaced(home: Home) -> None:
    path_in(home, None).write_bytes(case("seq-gap"))
    told: list[str] = []
    with Held(home, NAMED, 0, told.append, None) as held:
        with held.move(None, replace_invalid=True):
            assert switch.start(held.conversation) is None
        ask(held, "新")
    [name] = set(saved_in(Path(home.path))) - {NAMED}
    assert saved_in(Path(home.path))[name] == case("seq-gap")
    [sentence] = told
    assert sentence.endswith(f"set aside as '{name}'")


@pytest.mark.parametrize("name", [None, NAMED])
def test_the_same_one_stays_as_it_is_and_becomes_current(home: Home, name: str | None) -> None:
    with holding(home, name) as held:
        before = held.conversation
        move(held, name)
        assert held.conversation is before and is_held(home, name)
    set_current(home, name)
    with holding(home) as held:  # which is the current one
        set_current(home, "another")  # a command in another shell
        move(held, name)
        assert current_name(home, refuse_telling) == name
        with pytest.raises(EOFError), held.move(name):
            raise EOFError
        assert is_held(home, name)
        ask(held, "四")


def test_what_was_chosen_for_the_chat_alone_leaves_current_as_it_is(home: Home) -> None:
    set_current(home, "their own")
    with holding(home, NAMED) as held:
        for name in (None, "新的 🏕", NAMED, NAMED):
            move(held, name)
            assert held.conversation.place == Place(home, name) and is_held(home, name)
            assert current_name(home, refuse_telling) == "their own"
        with saved.open_ended(str(path_in(home, NAMED))) as content, held.move(None):
            switch.load(held.conversation, content)
    assert current_name(home, refuse_telling) == "their own"
    assert path_in(home, None).read_bytes() == OTHER


def test_save_holds_the_lock_of_the_name_alone(home: Home) -> None:
    with holding(home) as held:
        assert held.save("检查点") == Saved("检查点", 2)
        assert held.save("检查点") == Saved("检查点", 2, is_new=False)
        assert not is_held(home, "检查点") and is_held(home, None)
        with hold(home, NAMED), pytest.raises(SessionInUse):
            held.save(NAMED)
        with pytest.raises(UsageMistake):
            held.save("../x")
        ask(held, "四")
    assert saved_in(Path(home.path)) == {NAMED: OTHER, "检查点": UNNAMED}


def test_one_that_cannot_be_opened_leaves_no_lock(home: Home) -> None:
    set_current(home, "没有")
    with pytest.raises(NotFound):
        Held(home, None, 0, refuse_telling, None)
    with hold(home, NAMED), pytest.raises(SessionInUse):
        Held(home, NAMED, 0, refuse_telling, None)
    assert not is_held(home, None) and not is_held(home, NAMED)
