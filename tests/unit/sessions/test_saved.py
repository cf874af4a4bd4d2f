"""Names, ended turns, and copies of conversations under a name."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from mino import disk
from mino.errors import StorageFailed, UsageMistake
from mino.sessions import saved
from tests.homes import completed, turns_of
from tests.unit.journal.calls import watch_calls
from tests.unit.sessions.conftest import ContentOf

OLD = completed(("旧", "old"))
LONGER, OTHER = completed(("旧", "old"), ("新", "new")), completed(("新", "new"))


@pytest.mark.parametrize(
    "name",
    ["a", "检查点", "a b", " a", "a.b", "a-", "~", "é", "e\u0301", "🙂", "名" * 66, "x" * 200, "a.~20260101T000000Z~"],
)
def test_good_names(name: str) -> None:
    assert saved.name_flaw(name) is None
    assert saved.path_of("d", name) == f"d/{name}.jsonl"
    assert len(os.fsencode(f"{name}.~20260101T000000Z-99~.jsonl")) <= 255


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (".", "begins with `.`"),
        ("..", "begins with `.`"),
        ("-n", "begins with `-`"),
        ("a/b", "`/`"),
        ("../x", "begins with `.`"),
        ("a\nb", "control"),
        ("a\0b", "control"),
        ("a\x7f", "control"),
        ("a\x9b", "control"),
        ("a\udcff", "not UTF-8"),
        ("x" * 201, "201 bytes, more than 200"),
        ("名" * 67, "201 bytes"),
        ("x-recovery-20260101T000000Z-0123abcd", "recovery copy"),
    ],
)
def test_bad_names(name: str, why: str) -> None:
    assert why in (saved.name_flaw(name) or "")
    with pytest.raises(UsageMistake):
        saved.path_of("d", name)


def test_names_are_those_of_conversations_alone(directory: Path) -> None:
    for file in (
        "b.jsonl",
        "a.jsonl",
        ".x.jsonl",
        "notes",
        ".mino-0123456789abcdef-a.tmp",
        "a.lock",
        "a-recovery-20260101T000000Z-0123abcd.jsonl",
    ):
        (directory / file).touch()
    os.mkdir(os.path.join(os.fsencode(directory), b"\xff.jsonl"))
    assert saved.names(str(directory)) == ["a", "b"]
    assert saved.names(str(directory / "nowhere")) == []


@pytest.mark.parametrize("name", ["n", "检查点 🏕", "n.~20260101T000000Z~"])
def test_an_older_copy_is_kept_where_the_new_one_does_not_hold_it(
    directory: Path, content_of: ContentOf, name: str
) -> None:
    place = str(directory)
    assert saved.store(place, name, content_of(OLD)) == saved.Saved(name, 1)
    assert saved.store(place, name, content_of(OLD)) == saved.Saved(name, 1, is_new=False)
    assert saved.store(place, name, content_of(LONGER)) == saved.Saved(name, 2)  # it continues what it was
    shorter = saved.store(place, name, content_of(OLD))
    assert shorter.older and saved.is_automatic(shorter.older)
    assert (directory / f"{shorter.older}.jsonl").read_bytes() == LONGER
    assert (directory / f"{name}.jsonl").read_bytes() == OLD
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}


def test_a_copy_is_written_under_the_lock_of_the_conversation_that_is_copied(
    directory: Path, content_of: ContentOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its temporary file says so: whoever is next under that lock, and nobody else, removes it after a kill."""
    owners: list[tuple[str, str]] = []
    replace = disk.replace

    def note(path: str, data: Iterable[bytes], owner: str = "") -> int:
        owners.append((os.path.basename(path), owner))
        return replace(path, data, owner)

    monkeypatch.setattr(disk, "replace", note)
    monkeypatch.setattr(saved, "now", lambda: 0.0)
    place = str(directory)
    saved.store(place, "名", content_of(LONGER))
    os.utime(directory / "名.jsonl", (0, 0))
    saved.store(place, "名", content_of(OLD))
    saved.keep(place, content_of(completed(("a", "b"))), None)
    saved.keep(place, content_of(completed(("c", "d"))), "名")
    saved.store_turns(place, "导入", [("q", "a")])
    assert owners == [
        ("名.jsonl", "名"),
        ("名.~19700101T000000Z~.jsonl", "名"),
        ("名.jsonl", "名"),
        ("auto-19700101T000000Z.jsonl", ""),
        ("名.~19700101T000000Z-2~.jsonl", "名"),
        ("导入.jsonl", "导入"),
    ]


def test_an_older_copy_is_made_once_however_often_the_new_one_fails(directory: Path, content_of: ContentOf) -> None:
    """A job that saved on a full disk kept the same older copy again each time, until the disk was full of them."""
    place = str(directory)
    saved.store(place, "n", content_of(OLD))
    replace = disk.replace

    def fail(path: str, data: Iterable[bytes], owner: str) -> int:
        if path.endswith("/n.jsonl"):
            raise StorageFailed("No space left on device")
        return replace(path, data, owner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "replace", fail)
        for _ in range(3):
            with pytest.raises(StorageFailed):
                saved.store(place, "n", content_of(OTHER))
    [older] = {path.name for path in directory.iterdir()} - {"n.jsonl"}
    assert (directory / older).read_bytes() == (directory / "n.jsonl").read_bytes() == OLD
    assert saved.store(place, "n", content_of(OTHER)).older == older.removesuffix(".jsonl")
    # A link to what is about to be replaced is no copy of it.
    os.unlink(directory / older)
    (directory / older).symlink_to("n.jsonl")
    os.utime(directory / "n.jsonl", (0, 0))
    (directory / "n.~19700101T000000Z~.jsonl").symlink_to("n.jsonl")
    kept = saved.store(place, "n", content_of(OLD)).older
    assert kept == "n.~19700101T000000Z-2~"
    assert (directory / f"{kept}.jsonl").read_bytes() == OTHER


@pytest.mark.parametrize(
    ("seconds", "kept"),
    [
        (-1e11, 0.0),
        (0.0, 0.0),
        (1.7e9, 1.7e9),
        (253_402_300_800.0, 253_402_128_000.0),
        (1e18, 253_402_128_000.0),
    ],
)
def test_a_file_may_have_any_time(seconds: float, kept: float) -> None:
    """A backup or a broken clock made a file of the year 10000, and the list ended in a traceback."""
    facts = os.stat_result((0o600, 0, 0, 1, 0, 0, 0, 0, seconds, 0))
    assert saved.file_time(facts) == kept


def test_the_older_copy_of_an_older_copy_has_no_longer_name(directory: Path) -> None:
    assert saved.older_name(str(directory), "n.~20260101T000000Z-2~", 0) == "n.~19700101T000000Z~"


def test_a_copy_that_holds_the_same_is_found(directory: Path, content_of: ContentOf) -> None:
    for name, content in {"a": LONGER, "b": OLD.swapcase(), "c": OLD}.items():
        (directory / f"{name}.jsonl").write_bytes(content)
    (directory / "0.jsonl").symlink_to(directory / "c.jsonl")
    (directory / "1-recovery-20260101T000000Z-01234567.jsonl").write_bytes(OLD)
    assert saved.find_equal(str(directory), content_of(OLD), None) == "c"
    assert saved.find_equal(str(directory), content_of(OLD), apart_from="c") is None
    assert saved.find_equal(str(directory), content_of(completed(("x", "y"))), None) is None


# What Mino names, and what a person does


@pytest.mark.parametrize(
    ("name", "is_automatic"),
    [
        ("auto-20260101T000000Z", True),
        ("auto-20260101T000000Z-2", True),
        ("auto-20260101T000000Z-", False),
        ("auto-20260101T000000Z 2", False),
        ("auto-20260101T000000", False),
        ("auto-repair", False),
        ("auto-", False),
        ("Auto-20260101T000000Z", False),
        ("my auto-20260101T000000Z", False),
        ("a.~20260101T000000Z~", True),
        ("检查点 🏕.~20260101T000000Z-12~", True),
        ("auto-repair.~20260101T000000Z~", True),
        ("a.~20260101T000000Z", False),
        ("a.~20260101T000000Z~b", False),
        ("a~20260101T000000Z~", False),
        ("a.~~", False),
        ("a~", False),
    ],
)
def test_a_name_is_automatic_only_if_it_is_exactly_of_that_form(name: str, is_automatic: bool) -> None:
    assert saved.is_automatic(name) is is_automatic
    assert saved.name_flaw(name) is None


def test_the_names_that_mino_gives_are_automatic(directory: Path) -> None:
    for _ in range(3):
        for name in (saved.automatic_name(str(directory)), saved.older_name(str(directory), "名", 0)):
            assert saved.is_automatic(name) and saved.name_flaw(name) is None
            (directory / f"{name}.jsonl").touch()
    assert len(os.listdir(directory)) == 6


def test_turns_are_saved_as_completed_ones(directory: Path) -> None:
    pairs = [("巴黎在哪里？ 🗼", "In France.\n在法国。"), ("still?", "是的")]
    saved.store_turns(str(directory), "导入", iter(pairs))
    turns = turns_of((directory / "导入.jsonl").read_bytes())
    assert [(turn.user, turn.assistant, turn.status) for turn in turns] == [(*pair, "completed") for pair in pairs]
    assert len({turn.turn_id for turn in turns}) == 2
    with pytest.raises(UsageMistake):
        saved.store_turns(str(directory), "-n", pairs)
    assert os.listdir(directory) == ["导入.jsonl"]


def test_a_file_is_removed_or_that_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "旧的.jsonl").write_bytes(OLD)
    calls = watch_calls(monkeypatch)
    saved.remove(str(directory / "旧的.jsonl"))
    assert os.listdir(directory) == [] and calls == ["sync directory"]
    with pytest.raises(StorageFailed, match=r"cannot delete '.*旧的\.jsonl': No such file"):
        saved.remove(str(directory / "旧的.jsonl"))


def test_a_copy_that_is_there_already_is_synced_before_it_is_relied_on(
    directory: Path, content_of: ContentOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever put it there (`cp`, a writer that was killed) may not have synced it."""
    (directory / "a.jsonl").write_bytes(OLD)
    content, longer = content_of(OLD), content_of(OTHER)
    calls = watch_calls(monkeypatch)
    assert saved.find_equal(str(directory), content, None) == "a"
    assert not saved.store(str(directory), "a", content).is_new
    assert calls == ["sync", "sync directory"] * 2

    older = saved.older_name(str(directory), "a", os.path.getmtime(directory / "a.jsonl"))
    (directory / f"{older}.jsonl").write_bytes(OLD)
    del calls[:]
    assert saved.store(str(directory), "a", longer).older == older
    assert calls[:2] == ["sync", "sync directory"] and calls.count("rename") == 1


def test_what_is_set_aside_is_in_its_new_place_before_it_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename from one directory to the other may be synced in the old one alone, and then the file is gone."""
    path = tmp_path / "live.jsonl"
    path.write_bytes(b"damaged")
    calls = watch_calls(monkeypatch)
    unlink = os.unlink

    def note(each: str) -> None:
        assert each == str(path) and calls[-1] == "sync directory"
        unlink(each)

    monkeypatch.setattr(os, "unlink", note)
    name = saved.set_aside(str(tmp_path / "saved"), str(path))
    assert (tmp_path / "saved" / f"{name}.jsonl").read_bytes() == b"damaged" and not path.exists()
    assert calls[-3:] == ["rename", "sync directory", "sync directory"]
