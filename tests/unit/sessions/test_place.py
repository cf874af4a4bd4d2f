"""Which conversation a command means, and where it lies."""

import os
from pathlib import Path

import pytest

from mino.errors import AccessRefused, InvalidData, MinoError, NotFound, UsageMistake
from mino.home import Home
from mino.sessions.place import (
    SESSION_NAME,
    Place,
    choose,
    find,
    place_of,
    set_current,
)
from tests.homes import EACH_KIND, NAMED, copy_path, obeys_modes, open_home, path_in, refuse_telling, write
from tests.unit.journal.calls import watch_calls
from tests.unit.journal.sample import FIRST, SECOND

COPY = "-recovery-20261201T100000Z-01234567"
ODD = ["a-b", "-", ".tmp", "a-.tmp", "a\nb", "检查点 🏕", "e\u0301", "a.~20260101T000000Z~", "*", "x" * 200]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with no unnamed conversation yet, and a named one."""
    return open_home(tmp_path / "home", None, **{NAMED: b""})


# Which one is meant


def test_a_name_beats_what_is_current_and_without_one_it_decides(home: Home) -> None:
    assert choose(home, None, refuse_telling) == Place(home, None)
    set_current(home, NAMED)
    assert choose(home, None, refuse_telling) == Place(home, NAMED)
    assert choose(home, "other", refuse_telling) == Place(home, "other")
    assert find(home, None, refuse_telling) == (Place(home, NAMED), str(path_in(home, NAMED)))
    set_current(home, None)
    assert choose(home, None, refuse_telling) == Place(home, None)
    assert find(home, None, refuse_telling) == (Place(home, None), None)
    write(path_in(home, None), b"")
    assert find(home, None, refuse_telling) == (Place(home, None), str(path_in(home, None)))


def test_a_name_that_nothing_has_is_chosen_for_a_writer_and_missing_for_a_reader(home: Home) -> None:
    assert choose(home, "新的 🏕", refuse_telling) == Place(home, "新的 🏕")
    with pytest.raises(NotFound, match="no conversation '新的 🏕'") as caught:
        find(home, "新的 🏕", refuse_telling)
    assert caught.value.hint == "mino session list" and os.listdir(home.saved) == [f"{NAMED}.jsonl"]


@pytest.mark.parametrize("name", ["", "../sessions", "-x", ".x", "a/b", "a\nb", "a\udcff", f"a{COPY}", "x" * 201])
def test_what_cannot_be_a_name_is_a_mistake(home: Home, name: str) -> None:
    for look in (choose, find):
        with pytest.raises(UsageMistake, match="cannot be the name of a conversation"):
            look(home, name, refuse_telling)


def test_nothing_starts_empty_where_the_current_one_is_gone(home: Home) -> None:
    set_current(home, "it's gone 🏕")
    for look in (choose, find):
        with pytest.raises(NotFound, match="the current conversation 'it's gone 🏕' is not there") as caught:
            look(home, None, refuse_telling)
        assert "mino session open 'it'\\''s gone 🏕' " in caught.value.hint
        assert caught.value.hint.endswith("mino session open returns to the unnamed one")
    assert choose(home, NAMED, refuse_telling) == Place(home, NAMED)  # who names one needs no current one
    assert os.listdir(home.saved) == [f"{NAMED}.jsonl"]


# Where it lies


@pytest.mark.parametrize(
    ("name", "is_session"),
    [
        (f"{FIRST}.jsonl", True),
        (f"{FIRST.upper()}.jsonl", False),
        (f"{FIRST[1:]}.jsonl", False),
        (f"{FIRST}.jsonl~", False),
        (f"x{FIRST}.jsonl", False),
        (f"{FIRST}.jsonl\n", False),
        (f".mino-{FIRST}.tmp", False),
        (f"{FIRST}{COPY}.jsonl", False),
        ("会话.jsonl", False),
    ],
)
def test_a_name_is_a_session_only_if_the_whole_name_matches(home: Home, name: str, is_session: bool) -> None:
    path = os.path.join(home.sessions, name)
    Path(path).touch()
    assert Place(home, None).find() == (path if is_session else None)
    assert bool(SESSION_NAME.fullmatch(name)) is is_session


def test_more_than_one_session_stops_what_means_the_unnamed_one_alone(home: Home) -> None:
    for digit, written in (("1", 2000), ("2", 1000)):
        path = Path(home.sessions, FIRST[:-1] + digit + ".jsonl")
        path.write_bytes(b"precious")
        os.utime(path, (written, written))
    with pytest.raises(InvalidData, match="more than one conversation") as caught:
        Place(home, None).find()
    assert FIRST[:-1] + "1.jsonl" in caught.value.message and FIRST[:-1] + "2.jsonl" in caught.value.message
    # The last one that was written to stays, whatever its name.
    assert caught.value.hint.endswith(f"/sessions/{FIRST[:-1]}2.jsonl' '{home.saved}/{FIRST[:-1]}2.jsonl'")
    assert len(os.listdir(home.sessions)) == 2
    set_current(home, NAMED)
    assert find(home, None, refuse_telling)[1] == find(home, NAMED, refuse_telling)[1] == str(path_in(home, NAMED))


def test_a_folder_of_sessions_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_bytes(b"")
    with pytest.raises(MinoError, match="Not a directory") as caught:
        Place(Home(str(tmp_path), False), None).find()
    assert caught.value.status == 74


@pytest.mark.skipif(not obeys_modes(), reason="root may read everything")
def test_a_folder_of_sessions_that_may_not_be_read_is_told(home: Home) -> None:
    os.chmod(home.sessions, 0)
    with pytest.raises(AccessRefused):
        Place(home, None).find()
    os.chmod(home.sessions, 0o700)


def test_a_link_in_the_place_of_a_conversation_is_found_and_refused_when_it_is_opened(home: Home) -> None:
    """If it were passed over, a new conversation would begin where somebody else says."""
    path = path_in(home, "link")
    path.symlink_to("nowhere")
    assert Place(home, "link").find() == str(path)


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_file_belongs_to_the_conversation_whose_lock_guards_it(
    home: Home, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = path_in(home, name), copy_path(home, name)
    place = Place(home, name)
    assert place_of(home, str(path)) == place_of(home, str(copy)) == place
    assert place.is_at(str(path)) and not place.is_at(str(copy))
    monkeypatch.chdir(path.parent)
    assert place_of(home, path.name) == place and place.is_at(path.name)


def test_a_name_of_digits_is_a_name(home: Home) -> None:
    """The hint at two unnamed conversations moves one into `saved/` under its own name."""
    place = Place(home, FIRST)
    assert place_of(home, str(path_in(home, FIRST))) == place_of(home, str(copy_path(home, FIRST))) == place
    assert place.is_at(str(path_in(home, FIRST))) and place.lock == f"{home.saved}/{FIRST}.lock"


def test_a_copy_of_a_copy_belongs_to_the_copy(home: Home) -> None:
    """Recovery of a recovery copy, which a person asks for, makes one; in `saved/` its name is none."""
    assert place_of(home, f"{home.sessions}/{FIRST}{COPY}{COPY}.jsonl") == Place(home, None)
    assert place_of(home, f"{home.saved}/a{COPY}{COPY}.jsonl") is None
    assert place_of(home, f"{home.saved}/a.~20260101T000000Z~{COPY}.jsonl") == Place(home, "a.~20260101T000000Z~")


@pytest.mark.parametrize(
    "file", ["a", "a.json", "a.jsonl~", "a.lock", "-a.jsonl", ".a.jsonl", f"-a{COPY}.jsonl", "a\nb.jsonl"]
)
def test_a_file_of_another_name_belongs_to_none(home: Home, file: str) -> None:
    assert place_of(home, os.path.join(home.saved, file)) is None


def test_whatever_lies_in_sessions_is_guarded_by_its_lock(home: Home) -> None:
    path = f"{home.sessions}/会话.jsonl"
    assert place_of(home, path) == Place(home, None) and not Place(home, None).is_at(path)
    assert place_of(home, f"{home.sessions}/会话") is None


def test_another_home_is_known_by_a_lock(home: Home, tmp_path: Path) -> None:
    other = open_home(tmp_path / "other", b"", a=b"", b=b"")
    paths = [str(path_in(other, name)) for name in (None, "a", "b")]
    assert [place_of(home, path) for path in paths] == [None] * 3
    write(Path(other.saved, "a.lock"), b"")
    assert [place_of(home, path) for path in paths] == [None, Place(other, "a"), None]
    write(Path(other.lock), b"")
    assert [place_of(home, path) for path in paths] == [Place(other, name) for name in (None, "a", "b")]
    assert place_of(home, f"{other.path}/x.jsonl") is None and place_of(home, f"{other.saved}/-x.jsonl") is None
    assert place_of(home, str(tmp_path / "x.jsonl")) is None


def test_a_folder_that_is_reached_by_a_link_is_the_same(home: Home, tmp_path: Path) -> None:
    (tmp_path / "链接").symlink_to(home.saved)
    assert place_of(home, str(tmp_path / "链接" / f"{NAMED}.jsonl")) == Place(home, NAMED)


# What a killed writer left


def temporary(owner: str) -> str:
    return f".mino-0123456789abcdef-{owner}.tmp"


@pytest.mark.parametrize("name", [None, *ODD])
def test_only_what_a_writer_of_this_conversation_left_is_removed(
    home: Home, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = temporary(name or "")
    others = {temporary(each) for each in ("", *ODD, "a", "b", "检查点")} - {mine}
    keep = {*others, ".mino-0123456789abcdef.tmp", "x.tmp", mine + "~", "x" + mine}
    for folder in (home.sessions, home.saved):
        for file in (*keep, mine):
            Path(folder, file).touch()
    calls = watch_calls(monkeypatch)
    Place(home, name).remove_temporaries()
    # A turn that is forgotten after it must not come back in one of them; where nothing was removed, nothing is synced.
    assert calls == ["sync directory"] * 2
    Place(home, name).remove_temporaries()
    assert calls == ["sync directory"] * 2
    assert set(os.listdir(home.sessions)) == keep and set(os.listdir(home.saved)) == {*keep, f"{NAMED}.jsonl"}


def test_a_folder_of_that_name_is_none_of_ours(home: Home) -> None:
    os.mkdir(os.path.join(home.saved, temporary("a")))
    Place(home, "a").remove_temporaries()
    assert temporary("a") in os.listdir(home.saved)


@pytest.mark.parametrize("name", EACH_KIND)
def test_what_a_killed_writer_left_unsynced_is_synced(
    home: Home, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path_in(home, name), b"x")
    write(path_in(home, "another"), b"x")
    calls = watch_calls(monkeypatch)
    Place(home, name).settle()
    # The file and its entry; the home in its parent; the entries of the home and its two folders.
    assert calls == ["sync", *["sync directory"] * 5]


def test_there_may_be_nothing_to_sync_but_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    calls = watch_calls(monkeypatch)
    for name in EACH_KIND:
        Place(Home(str(tmp_path / "home"), False), name).settle()
    assert calls == ["sync directory"] * 4 and list((tmp_path / "home").iterdir()) == []


def test_all_of_more_than_one_session_is_synced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """`settle` comes before the refusal, which is for whoever looks for the file."""
    for each in (FIRST, SECOND):
        write(Path(home.sessions, f"{each}.jsonl"), b"x")
    calls = watch_calls(monkeypatch)
    Place(home, None).settle()
    assert calls.count("sync") == 2
