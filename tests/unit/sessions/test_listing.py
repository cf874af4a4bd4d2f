"""The list of the conversations, and their titles."""

import os
from pathlib import Path

import pytest

from mino.home import Home
from mino.journal.ids import id_time
from mino.sessions.listing import Entry, list_sessions, make_title
from mino.sessions.place import set_current
from tests.homes import completed, hold, open_home, path_in, refuse_telling, session_path, turns_of, write
from tests.unit.journal.sample import SECOND


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("", ""),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 40 + "…"),
        ("长" * 40, "长" * 40),
        ("长" * 41, "长" * 40 + "…"),  # characters, not bytes
        ("🙂" * 41, "🙂" * 40 + "…"),
        ("two\n lines\tand \u2028 more ", "two lines and more"),
        (" " * 1000 + "late", "late"),
    ],
)
def test_a_title_is_one_line_of_at_most_forty_characters(question: str, title: str) -> None:
    assert make_title(question) == title


def listed(home: Home) -> dict[str | None, Entry]:
    return {entry.name: entry for entry in list_sessions(home, refuse_telling)}


def test_the_conversations_newest_first(tmp_path: Path) -> None:
    unnamed = completed(("长城在哪里？ 🧱\nI forgot.", "北京"))
    home = open_home(tmp_path, unnamed, old=completed(("o", "p"), ("q", "r")), torn=completed(("t", "u"))[:-1])
    (tmp_path / "saved" / "link.jsonl").symlink_to(session_path(home))
    for name in ("old.lock", "-no.jsonl", "old-recovery-20260101T000000Z-01234567.jsonl", "notes.txt"):
        write(tmp_path / "saved" / name, b"")  # none of them is a conversation
    set_current(home, "old")
    for seconds, path in enumerate((session_path(home), path_in(home, "old"), path_in(home, "torn"))):
        os.utime(path, (seconds, seconds))
    entries = [entry for entry in list_sessions(home, refuse_telling) if entry.name != "link"]
    assert [(entry.name, entry.current, entry.turns, entry.title, entry.state) for entry in entries] == [
        ("torn", False, 1, "t", "recoverable"),
        ("old", True, 2, "o", "clean"),
        (None, False, 1, "长城在哪里？ 🧱 I forgot.", "clean"),
    ]
    assert [entry.saved.timestamp() for entry in entries] == [2, 1, 0]
    assert entries[2].created == id_time(turns_of(unnamed)[0].turn_id)
    assert entries[2].bytes == len(unnamed) and entries[2].path == str(session_path(home))
    link = listed(home)["link"]
    assert (link.state, link.turns, link.title, link.created) == ("unreadable", 0, "", None)


def test_what_is_current_is_marked_and_what_is_not_there_is_not_listed(tmp_path: Path) -> None:
    home = open_home(tmp_path, completed(("新", "new")), 名=completed(("旧", "old")))
    for current, marked in ((None, {None}), ("名", {"名"}), ("没有", set())):
        set_current(home, current)
        assert {name for name, entry in listed(home).items() if entry.current} == marked
        assert {name: entry.title for name, entry in listed(home).items()} == {None: "新", "名": "旧"}
    write(Path(home.current), b"../x\n")
    told: list[str] = []
    [unnamed] = (entry for entry in list_sessions(home, told.append) if entry.current)
    assert unnamed.name is None and len(told) == 1


@pytest.mark.parametrize("held", [None, "other"])
def test_what_a_writer_has_not_finished_is_no_damage_in_its_conversation(tmp_path: Path, held: str | None) -> None:
    torn = completed(("一", "one"))[:-1]
    home = open_home(tmp_path, torn, other=torn)
    with hold(home, held):
        for name, entry in listed(home).items():
            assert entry.state == ("in-use" if name == held else "recoverable")
            assert entry.in_progress is (name == held)


def test_listing_makes_nothing(tmp_path: Path) -> None:
    assert list_sessions(Home(str(tmp_path / "missing"), False), refuse_telling) == []
    assert os.listdir(tmp_path) == []


def test_more_than_one_unnamed_conversation_is_listed(tmp_path: Path) -> None:
    """A person has to find out which of them to keep."""
    home = open_home(tmp_path / "home", completed(("一", "one")), other=b"")
    second = write(Path(home.sessions, f"{SECOND}.jsonl"), completed(("二", "two")))
    entries = list_sessions(home, refuse_telling)
    assert {entry.path: entry.title for entry in entries if entry.name is None} == {
        str(session_path(home)): "一",
        str(second): "二",
    }
    assert len(entries) == 3
