"""The live session: lock, load, recover, append; and reading it while another process writes."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from mino.conversation import describe, lock_home, open_conversation, read_session
from mino.errors import CannotCreate, InvalidData, SessionInUse, StorageFailed
from mino.home import Home
from mino.journal.lock import lock_exclusive, lock_shared
from mino.journal.recovery import Recovery
from tests.unit.journal.sample import CASES, FIRST, ITEM, SECOND, THIRD, file_of, load, question, turn, two_turns


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "mino"), False)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said on stderr."""
    sentences: list[str] = []
    monkeypatch.setattr("mino.terminal.notice", sentences.append)
    return sentences


def session(home: Home, data: bytes, name: str = FIRST) -> Path:
    os.makedirs(home.sessions, 0o700, exist_ok=True)
    os.chmod(home.path, 0o700)
    path = Path(home.sessions, f"{name}.jsonl")
    path.touch(0o600)
    path.write_bytes(data)
    return path


def test_the_first_use_makes_an_empty_session_under_the_lock(home: Home) -> None:
    with open_conversation(home, 0) as conversation:
        path = Path(conversation.journal.path)
        assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}\.jsonl", path.name)
        assert path.read_bytes() == b"" and path.stat().st_mode & 0o777 == 0o600
        assert lock_shared(home.lock) is None
        assert (list(conversation.context), conversation.turns) == ([], 0)
    assert os.stat(home.sessions).st_mode & 0o777 == os.stat(home.path).st_mode & 0o777 == 0o700
    lock_exclusive(home.lock, 0).close()
    with open_conversation(home, 0) as conversation:
        assert conversation.journal.path == str(path)


def test_an_answer_enters_the_context_only_after_it_is_on_disk(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_conversation(home, 0) as conversation:
        conversation.begin(FIRST, "你好？")
        assert list(conversation.context) == []
        items: list[Any] = [ITEM, {"no": "type"}, {"type": "m", "n": 10**5000}]
        conversation.complete(FIRST, "你好？", "巴黎", items)
        [first] = conversation.context
        assert (first.user, first.assistant, first.output, first.status) == ("你好？", "巴黎", [ITEM], "completed")
        conversation.begin(SECOND, "?")
        conversation.end(SECOND, "failed")
        conversation.begin(THIRD, "?")
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data: 0)
            with pytest.raises(StorageFailed):
                conversation.complete(THIRD, "?", "!", [])
        assert list(conversation.context) == [first] and conversation.turns == 2
    turns, _ = load(Path(conversation.journal.path).read_bytes())
    assert [turn.status for turn in turns] == ["completed", "failed", "open"]


@pytest.mark.parametrize(
    ("keep", "kept"), [(None, [FIRST, SECOND, THIRD]), (2, [SECOND, THIRD]), (0, []), (9, [FIRST, SECOND, THIRD])]
)
def test_the_context_is_the_last_completed_turns(home: Home, keep: int | None, kept: list[str]) -> None:
    failed = [question(10, "f" * 32)]
    session(home, file_of([*two_turns(), *turn(7, THIRD), *failed]))
    with open_conversation(home, 0, keep) as conversation:
        assert [each.turn_id for each in conversation.context] == kept
        assert conversation.turns == 4
    reading = read_session(home, keep, completed=True)
    assert reading and [each.turn_id for each in reading.turns] == kept and reading.report.state == "clean"


def test_a_session_is_recovered_when_it_is_opened_and_that_is_told_once(home: Home, told: list[str]) -> None:
    data = (CASES / "torn-last-newline.jsonl").read_bytes()
    path = session(home, data)
    with open_conversation(home, 0) as conversation:
        assert len(conversation.context) == 1
    [sentence] = told
    [copy] = (other for other in path.parent.iterdir() if other != path)
    assert sentence == (
        f"recovered the session: cut an unfinished end of 99 bytes, the whole file is in '{copy}' "
        "and ended the open turn 0193a0b1c2d300000000000000000002 as interrupted"
    )
    assert copy.read_bytes() == data
    with open_conversation(home, 0) as conversation:
        assert len(told) == 1 and conversation.turns == 2


@pytest.mark.parametrize("name", ["fused-records", "newer-version", "seq-gap", "wrong-last-line-but-json"])
def test_an_invalid_session_is_not_opened_and_not_changed(home: Home, name: str) -> None:
    data = (CASES / f"{name}.jsonl").read_bytes()
    path = session(home, data)
    for _ in range(2):
        with pytest.raises(InvalidData, match=re.escape(str(path))), open_conversation(home, 0):
            raise AssertionError
        assert path.read_bytes() == data and list(path.parent.iterdir()) == [path]
    lock_exclusive(home.lock, 0).close()


def test_more_than_one_session_is_not_touched(home: Home) -> None:
    paths = [session(home, b"torn", FIRST), session(home, b"torn", SECOND)]
    with pytest.raises(InvalidData, match="more than one conversation"), open_conversation(home, 0):
        raise AssertionError
    assert [path.read_bytes() for path in paths] == [b"torn", b"torn"]
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)


def test_a_session_that_is_a_link_is_refused(home: Home, tmp_path: Path) -> None:
    path = session(home, b"")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="is a symbolic link"), open_conversation(home, 0):
        raise AssertionError
    with pytest.raises(StorageFailed, match="is a symbolic link"):
        read_session(home)


def test_a_second_writer_stops_at_once_or_says_after_a_second_that_it_waits(home: Home, told: list[str]) -> None:
    with lock_home(home, 0):
        with pytest.raises(SessionInUse), open_conversation(home, 0):
            raise AssertionError
        assert told == []
        with pytest.raises(SessionInUse), open_conversation(home, 1.1):
            raise AssertionError
    assert len(told) == 1 and told[0].startswith("waiting up to 1.1 seconds: the session is in use by process ")


def test_a_writer_narrows_what_is_wide_and_removes_what_a_killed_one_left(home: Home, told: list[str]) -> None:
    path = session(home, file_of(two_turns()))
    path.chmod(0o644)
    left = Path(home.sessions, ".mino-0123456789abcdef.tmp")
    left.touch()
    with open_conversation(home, 0):
        assert path.stat().st_mode & 0o777 == 0o600 and not left.exists()
    assert told == [f"narrowed '{path}' from mode 0644 to 0600"]


def test_a_reader_makes_and_changes_nothing(home: Home, told: list[str]) -> None:
    assert read_session(home) is None
    assert not os.path.exists(home.path)
    data = (CASES / "torn-last-newline.jsonl").read_bytes()
    path = session(home, data)
    path.chmod(0o644)
    reading = read_session(home)
    assert reading and reading.path == str(path)
    assert [each.status for each in reading.turns] == ["completed", "open"]
    assert reading.report.state == "recoverable"
    assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(home.path) == ["sessions"] and told == []


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("good-two-turns", "in-use"),
        ("open-question", "in-use"),
        ("open-answer", "in-use"),
        ("torn-40-bytes", "in-use"),
        ("torn-last-newline", "in-use"),
        ("blank-last-line", "invalid"),  # a writer writes whole records: this is none that it has not finished
        ("nul-in-the-middle", "invalid"),
        ("wrong-last-line-but-json", "invalid"),
    ],
)
def test_a_reader_takes_what_a_writer_has_not_finished_for_in_progress(home: Home, name: str, state: str) -> None:
    session(home, (CASES / f"{name}.jsonl").read_bytes())
    with lock_home(home, 0):
        beside = read_session(home)
    assert beside and beside.report.state == state and beside.report.in_use
    after = read_session(home)
    assert after and after.report.state != "in-use"


def test_readers_let_the_lock_go_when_they_have_read(home: Home) -> None:
    session(home, file_of(two_turns()))
    read_session(home)
    lock_exclusive(home.lock, 0).close()


def test_a_home_in_the_place_of_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotCreate), open_conversation(Home(str(tmp_path / "file"), False), 0):
        raise AssertionError


def test_a_session_deleted_while_it_is_open_is_not_made_again(home: Home) -> None:
    path = session(home, b"")
    with open_conversation(home, 0) as conversation:
        path.unlink()
        with pytest.raises(StorageFailed, match="is gone"):
            conversation.begin(FIRST, "?")
    assert os.listdir(home.sessions) == []


def test_a_plan_has_no_copy_to_name() -> None:
    assert describe(Recovery("recoverable", 7)) == "cut an unfinished end of 7 bytes"
    assert describe(Recovery("recoverable", 0, None, FIRST)) == f"ended the open turn {FIRST} as interrupted"
    assert not Recovery("clean").is_needed
