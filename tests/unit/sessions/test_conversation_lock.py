"""The lock of a conversation: one writer, what the writer before left, and which conversation is current by then."""

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mino import disk
from mino.errors import InvalidData, NotFound, SessionInUse, StorageFailed
from mino.home import Home
from mino.journal.lock import lock_exclusive, lock_shared
from mino.journal.record import user_message
from mino.sessions.conversation import lock_chosen, open_conversation
from mino.sessions.place import Place, set_current
from tests.homes import (
    EACH_KIND,
    NAMED,
    case,
    hold,
    home_with,
    open_home,
    path_in,
    refuse_telling,
    session_of,
    session_path,
    write,
)
from tests.unit.journal.calls import fail_sync, watch_calls
from tests.unit.journal.sample import FIRST, file_of, load, turn, two_turns


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is not there yet."""
    return Home(str(tmp_path / "mino"), False)


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_lock_that_is_a_link_is_refused(tmp_path: Path, name: str | None) -> None:
    home = home_with(tmp_path / "home", name, b"")
    write(tmp_path / "elsewhere", b"precious")
    Path(Place(home, name).lock).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="is a symbolic link"), open_conversation(home, name, 0, refuse_telling):
        raise AssertionError
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


def test_a_second_writer_stops_at_once_or_says_after_a_second_that_it_waits(home: Home) -> None:
    for name in EACH_KIND:
        told: list[str] = []
        with hold(home, name):
            with pytest.raises(SessionInUse) as caught, open_conversation(home, name, 0, refuse_telling):
                raise AssertionError
            assert "--wait SECONDS" in caught.value.hint and "--session NAME" in caught.value.hint
            with pytest.raises(SessionInUse), open_conversation(home, name, 1.1, told.append):
                raise AssertionError
        [sentence] = told
        assert sentence.startswith(f"waiting up to 1.1 seconds: {Place(home, name)} is in use by process ")


def test_each_conversation_has_a_lock_of_its_own(home: Home) -> None:
    with (
        open_conversation(home, None, 0, refuse_telling) as unnamed,
        open_conversation(home, "一", 0, refuse_telling) as first,
        open_conversation(home, "二", 0, refuse_telling) as second,
    ):
        paths = [each.journal.path for each in (unnamed, first, second)]
        assert paths[1:] == [f"{home.saved}/一.jsonl", f"{home.saved}/二.jsonl"]
        for seq, conversation in enumerate((second, unnamed, first), 1):
            conversation.append(user_message(1, FIRST, "?" * seq))
        for name in (None, "一", "二"):
            assert lock_shared(Place(home, name).lock) is None
            with pytest.raises(SessionInUse), open_conversation(home, name, 0, refuse_telling):
                raise AssertionError
        assert lock_shared(Place(home, "三").lock) is not None
    assert [load(Path(path).read_bytes())[0][0].user for path in paths] == ["??", "???", "?"]
    assert {os.stat(path).st_mode & 0o777 for path in (*paths, f"{home.saved}/一.lock")} == {0o600}
    assert os.stat(home.saved).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_writer_narrows_what_is_wide_and_removes_what_a_killed_one_left(tmp_path: Path, name: str | None) -> None:
    home = home_with(tmp_path, name, file_of(two_turns()))
    path = path_in(home, name)
    path.chmod(0o644)
    left, other = (path.with_name(f".mino-0123456789abcdef-{owner}.tmp") for owner in (name or "", "another"))
    for each in (left, other):
        write(each, b"")
    told: list[str] = []
    with open_conversation(home, name, 0, told.append):
        assert path.stat().st_mode & 0o777 == 0o600 and not left.exists() and other.exists()
    assert told == [f"narrowed '{path}' from mode 0644 to 0600"]


# The current conversation


def test_without_a_name_the_current_one_is_opened(tmp_path: Path) -> None:
    home = open_home(tmp_path, file_of(turn(1, FIRST)), **{NAMED: file_of(two_turns())})
    set_current(home, NAMED)
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        assert (conversation.place, conversation.turns) == (Place(home, NAMED), 2)
    with open_conversation(home, "other", 0, refuse_telling) as conversation:
        assert (conversation.place, conversation.turns) == (Place(home, "other"), 0)
    path_in(home, NAMED).unlink()
    with pytest.raises(NotFound, match="is not there"), open_conversation(home, None, 0, refuse_telling):
        raise AssertionError
    assert not path_in(home, NAMED).exists() and len(session_of(tmp_path)) == len(file_of(turn(1, FIRST)))


def test_who_waited_begins_anew_where_another_one_is_current_by_then(tmp_path: Path) -> None:
    """A question that waited for `session open b` would else go into `a`, which the person has left."""
    home = open_home(tmp_path, b"", a=b"", b=b"")
    set_current(home, "a")
    with ExitStack() as busy:
        busy.enter_context(hold(home, "a"))

        def let_go(sentence: str) -> None:
            assert "waiting up to 30 seconds: the conversation 'a' is in use" in sentence
            set_current(home, "b")
            busy.close()

        with lock_chosen(home, None, 30, let_go) as place:
            assert place == Place(home, "b") and lock_shared(place.lock) is None
            assert os.path.getsize(Place(home, "a").lock) == 0  # it ended in order there
            lock_exclusive(Place(home, "a").lock, 0).close()


def test_who_waited_for_one_that_is_gone_by_then_makes_none(tmp_path: Path) -> None:
    home = open_home(tmp_path, b"", a=b"")
    set_current(home, "a")
    with ExitStack() as busy:
        busy.enter_context(hold(home, "a"))

        def let_go(sentence: str) -> None:
            path_in(home, "a").unlink()
            busy.close()

        with pytest.raises(NotFound, match="'a' is not there"), open_conversation(home, None, 30, let_go):
            raise AssertionError
    assert not path_in(home, "a").exists()


def test_who_waited_for_a_name_stays_with_it(tmp_path: Path) -> None:
    home = open_home(tmp_path, b"", a=b"", b=b"")
    with ExitStack() as busy:
        busy.enter_context(hold(home, "a"))

        def let_go(sentence: str) -> None:
            set_current(home, "b")
            busy.close()

        with lock_chosen(home, "a", 30, let_go) as place:
            assert place == Place(home, "a")


# After a writer that was killed


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the system from the beginning of the test on."""
    return watch_calls(monkeypatch)


def test_a_lock_that_its_writer_emptied_costs_no_sync(tmp_path: Path, calls: list[str]) -> None:
    home = open_home(tmp_path, case("good-two-turns"))
    for _ in range(2):
        with open_conversation(home, None, 0, refuse_telling):
            assert os.path.getsize(home.lock) > 0
        assert os.path.getsize(home.lock) == 0
    assert [call for call in calls if "sync" in call] == []


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize("left", [b"12345 mino ask\n", b"\0", b"x" * 1000])
def test_after_a_killed_writer_all_that_is_found_is_synced_first(
    tmp_path: Path, calls: list[str], left: bytes, name: str | None
) -> None:
    home = open_home(tmp_path, case("good-two-turns"), **dict.fromkeys((NAMED, "name"), case("good-two-turns")))
    lock = write(Path(Place(home, name).lock), left)
    with open_conversation(home, name, 0, refuse_telling):
        # The session file and its entry; the home in its parent; the entries of the home and its two folders.
        assert [call for call in calls if "sync" in call] == ["sync", *["sync directory"] * 5]
    assert lock.stat().st_size == 0


def test_a_killed_writer_of_another_conversation_costs_no_sync(tmp_path: Path, calls: list[str]) -> None:
    home = open_home(tmp_path, case("good-two-turns"), a=case("good-two-turns"), b=case("good-two-turns"))
    for lock in (home.lock, Place(home, "b").lock):
        write(Path(lock), b"1 mino ask\n")
    with open_conversation(home, "a", 0, refuse_telling):
        assert [call for call in calls if "sync" in call] == []
    assert os.path.getsize(home.lock) > 0 and os.path.getsize(Place(home, "b").lock) > 0


@pytest.mark.parametrize("failure", [StorageFailed("the disk is broken"), KeyboardInterrupt(), InvalidData("bad")])
def test_a_writer_that_failed_leaves_its_name_in_the_lock(tmp_path: Path, failure: BaseException) -> None:
    home = open_home(tmp_path, case("good-two-turns"))
    with pytest.raises(type(failure)), open_conversation(home, None, 0, refuse_telling):
        raise failure
    assert Path(home.lock).read_text().startswith(f"{os.getpid()} ")
    lock = lock_exclusive(home.lock, 0)
    assert lock.was_left
    lock.close()


def test_nothing_is_appended_if_that_sync_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_home(tmp_path, case("good-two-turns"))
    write(Path(home.lock), b"1 mino ask\n")
    with monkeypatch.context() as broken:
        broken.setattr(disk, "sync", fail_sync)
        with pytest.raises(StorageFailed), open_conversation(home, None, 0, refuse_telling):
            raise AssertionError
    assert os.path.getsize(home.lock) > 0  # so that the next writer tries too
    assert session_path(home).read_bytes() == case("good-two-turns")


def test_a_home_that_was_never_used_may_be_that_of_a_killed_writer(home: Home, calls: list[str]) -> None:
    os.mkdir(home.path, 0o700)
    with hold(home):
        assert calls.count("sync directory") == 3  # for `.gitignore`, for the home's own entry, and for `sessions/`


def test_a_folder_that_is_empty_may_be_that_of_a_killed_writer(tmp_path: Path, calls: list[str]) -> None:
    """Its maker was killed right after it made the folder: the entry may not be synced, and no lock can say so."""
    home = open_home(tmp_path / "home", b"")
    os.mkdir(home.saved, 0o700)
    with hold(home, NAMED):
        assert calls.count("sync directory") == 1


def test_a_full_disk_cannot_hide_that_a_writer_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)
    path = str(tmp_path / "sessions.lock")
    lock_exclusive(path, 0).close()
    assert os.path.getsize(path) > 0


def test_the_lock_is_never_empty_between_two_killed_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "sessions.lock", b"1 mino ask\n")
    sizes = []

    def watched(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            done = step(*arguments)
            sizes.append(path.stat().st_size)
            return done

        return call

    monkeypatch.setattr(os, "ftruncate", watched(os.ftruncate))
    monkeypatch.setattr(os, "pwrite", watched(os.pwrite))
    lock_exclusive(str(path), 0).close()
    assert sizes and 0 not in sizes
