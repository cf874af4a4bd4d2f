"""The list of the conversations, and their titles."""

import os
from pathlib import Path

import pytest

from mino.errors import InvalidData
from mino.home import Home
from mino.journal.ids import id_time
from mino.sessions.listing import list_sessions, make_title
from tests.homes import completed, hold, open_home, session_path, turns_of, write
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


def test_the_conversations_newest_first(tmp_path: Path) -> None:
    live = completed(("长城在哪里？ 🧱\nI forgot.", "北京"))
    home = open_home(tmp_path, live, old=completed(("o", "p"), ("q", "r")), torn=completed(("t", "u"))[:-1])
    (tmp_path / "saved" / "link.jsonl").symlink_to(session_path(home))
    write(tmp_path / "current", "名".encode() + b"\n")
    places = {None: session_path(home)} | {name: tmp_path / "saved" / f"{name}.jsonl" for name in ("old", "torn")}
    for seconds, path in enumerate(places.values()):
        os.utime(path, (seconds, seconds))
    entries = [entry for entry in list_sessions(home) if entry.name != "link"]
    assert [(entry.name, entry.live, entry.turns, entry.title, entry.state) for entry in entries] == [
        ("torn", False, 1, "t", "recoverable"),
        ("old", False, 2, "o", "clean"),
        ("名", True, 1, "长城在哪里？ 🧱 I forgot.", "clean"),
    ]
    assert [entry.saved.timestamp() for entry in entries] == [2, 1, 0]
    assert entries[2].created == id_time(turns_of(live)[0].turn_id)
    assert entries[2].bytes == len(live) and entries[2].path == str(session_path(home))
    [link] = (entry for entry in list_sessions(home) if entry.name == "link")
    assert (link.state, link.turns, link.title, link.created) == ("unreadable", 0, "", None)


def test_the_saved_copy_of_the_live_conversation_is_not_listed_twice(tmp_path: Path) -> None:
    home = open_home(tmp_path, completed(("新", "new")), 名=completed(("旧", "old")))
    write(tmp_path / "current", "名".encode())
    assert [(entry.name, entry.live, entry.title) for entry in list_sessions(home)] == [("名", True, "新")]
    session_path(home).unlink()
    assert [(entry.name, entry.live, entry.title) for entry in list_sessions(home)] == [("名", False, "旧")]


def test_what_a_writer_has_not_finished_is_no_damage_in_the_live_conversation(tmp_path: Path) -> None:
    torn = completed(("一", "one"))[:-1]
    home = open_home(tmp_path, torn, other=torn)
    with hold(home):
        assert {entry.name: entry.state for entry in list_sessions(home)} == {None: "in-use", "other": "recoverable"}


def test_listing_makes_nothing_and_stops_at_more_than_one_conversation(tmp_path: Path) -> None:
    assert list_sessions(Home(str(tmp_path / "missing"), False)) == []
    assert os.listdir(tmp_path) == []
    home = open_home(tmp_path / "home", b"")
    write(Path(home.sessions, f"{SECOND}.jsonl"), b"")
    with pytest.raises(InvalidData, match="more than one conversation"):
        list_sessions(home)
