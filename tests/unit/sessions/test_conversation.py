"""The session opened for writing: lock, load, recover, append."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mino import disk
from mino.errors import CannotCreate, InvalidData, SessionInUse, StorageFailed
from mino.home import Home
from mino.journal.lock import lock_exclusive, lock_shared
from mino.journal.record import assistant_message, turn_end, user_message
from mino.journal.recovery import Recovery
from mino.sessions.conversation import format_recovery, open_conversation
from tests.homes import case, hold, open_home, refuse_telling, session_path, write
from tests.unit.journal.calls import fail_sync, watch_calls
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


@pytest.mark.parametrize(
    ("keep", "kept"), [(None, [FIRST, SECOND, THIRD]), (2, [SECOND, THIRD]), (0, []), (9, [FIRST, SECOND, THIRD])]
)
def test_the_context_is_the_last_completed_turns(tmp_path: Path, keep: int | None, kept: list[str]) -> None:
    home = open_home(tmp_path, file_of([*two_turns(), *turn(7, THIRD), question(10, "f" * 32)]))
    told: list[str] = []
    with open_conversation(home, None, 0, told.append, keep) as conversation:
        assert [each.turn_id for each in conversation.context] == kept
        assert conversation.turns == 4
    assert told == [f"recovered the session: ended the open turn {'f' * 32} as interrupted"]
    assert load(session_path(home).read_bytes())[1].state == "clean"


def test_a_session_is_recovered_when_it_is_opened_and_that_is_told_once(tmp_path: Path) -> None:
    data = case("torn-last-newline")
    home = open_home(tmp_path, data)
    path = session_path(home)
    told: list[str] = []
    with open_conversation(home, None, 0, told.append) as conversation:
        assert len(conversation.context) == 1
    [sentence] = told
    [copy] = (other for other in path.parent.iterdir() if other != path)
    assert sentence == (
        f"recovered the session: cut an unfinished end of 99 bytes, the whole file is in '{copy}' "
        "and ended the open turn 0193a0b1c2d300000000000000000002 as interrupted"
    )
    assert copy.read_bytes() == data
    with open_conversation(home, None, 0, refuse_telling) as conversation:
        assert conversation.turns == 2


@pytest.mark.parametrize("name", ["fused-records", "newer-version", "seq-gap", "wrong-last-line-but-json"])
def test_an_invalid_session_is_not_opened_and_not_changed(tmp_path: Path, name: str) -> None:
    home = open_home(tmp_path, case(name))
    path = session_path(home)
    for _ in range(2):
        with pytest.raises(InvalidData, match=re.escape(str(path))), open_conversation(home, None, 0, refuse_telling):
            raise AssertionError
        assert path.read_bytes() == case(name) and list(path.parent.iterdir()) == [path]
    lock_exclusive(home.lock, 0).close()


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


def test_a_session_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", b"")
    session_path(home).rename(tmp_path / "elsewhere")
    session_path(home).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="is a symbolic link"), open_conversation(home, None, 0, refuse_telling):
        raise AssertionError


def test_a_second_writer_stops_at_once_or_says_after_a_second_that_it_waits(home: Home) -> None:
    told: list[str] = []
    with hold(home):
        with pytest.raises(SessionInUse), open_conversation(home, None, 0, refuse_telling):
            raise AssertionError
        with pytest.raises(SessionInUse), open_conversation(home, None, 1.1, told.append):
            raise AssertionError
    assert len(told) == 1 and told[0].startswith("waiting up to 1.1 seconds: the session is in use by process ")


def test_a_writer_narrows_what_is_wide_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    home = open_home(tmp_path, file_of(two_turns()))
    path = session_path(home)
    path.chmod(0o644)
    left = Path(home.sessions, ".mino-0123456789abcdef.tmp")
    left.touch()
    told: list[str] = []
    with open_conversation(home, None, 0, told.append):
        assert path.stat().st_mode & 0o777 == 0o600 and not left.exists()
    assert told == [f"narrowed '{path}' from mode 0644 to 0600"]


def test_a_home_in_the_place_of_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = Home(str(tmp_path / "file"), False)
    with pytest.raises(CannotCreate), open_conversation(home, None, 0, refuse_telling):
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


@pytest.mark.parametrize("left", [b"12345 mino ask\n", b"\0", b"x" * 1000])
def test_after_a_killed_writer_all_that_is_found_is_synced_first(tmp_path: Path, calls: list[str], left: bytes) -> None:
    home = open_home(tmp_path, case("good-two-turns"), name=case("good-two-turns"))
    write(Path(home.lock), left)
    with open_conversation(home, None, 0, refuse_telling):
        # The session file and its entry; the home in its parent; the entries of the home and its two folders.
        assert [call for call in calls if "sync" in call] == ["sync", *["sync directory"] * 5]
    assert os.path.getsize(home.lock) == 0


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
