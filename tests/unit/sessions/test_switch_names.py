"""`rename` and `delete`: all that bears a name goes along, in an order that a crash at any step leaves mendable."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mino.errors import CannotCreate, NotFound, SessionInUse, StorageFailed, UsageMistake
from mino.home import Home
from mino.journal.lock import lock_shared
from mino.sessions import switch
from mino.sessions.place import Place, current_name, set_current
from tests.homes import completed, copy_path, hold, open_home, path_in, refuse_telling, saved_in, write

OLD, OTHER = completed(("一", "one")), completed(("二", "two"))
NEW = "新的 🏕"
OLDER = "old.~20260101T000000Z~"


class Killed(BaseException):
    """The process ends here."""


def make(place: Path) -> Home:
    """A home whose current conversation `old` has two recovery copies, and a checkpoint that was kept."""
    home = open_home(place, b"", **{"old": OLD, "other": OTHER, OLDER: OTHER, "older": OTHER})
    for number in (1, 2):
        write(copy_path(home, "old", number), b"copy %d" % number)
    write(copy_path(home, "older"), b"another's")
    set_current(home, "old")
    return home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make(tmp_path / "home")


def rename(home: Home, old: str = "old", new: str = NEW) -> None:
    switch.rename(home, old, new, 0, refuse_telling)


def delete(home: Home, name: str = "old") -> bool:
    return switch.delete(home, name, 0, refuse_telling)


def contents(home: Home) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(home.path).rglob("*") if path.is_file()}


def die_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Kill the process before its change number `step`, from 0, of a directory."""
    left = [step]

    def dying(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return change(*arguments)

        return call

    for name in ("rename", "unlink"):
        patch.setattr(os, name, dying(getattr(os, name)))


RENAMED = {NEW: OLD, "other": OTHER, OLDER: OTHER, "older": OTHER}
REST = {"other": OTHER, OLDER: OTHER, "older": OTHER}


def refuse_traces(home: Home, name: str) -> None:
    """Nothing may bear that name any more, nor be half made."""
    files = os.listdir(home.saved)
    assert not [file for file in files if file.startswith((f"{name}.jsonl", f"{name}.lock", f"{name}-", ".mino-"))]


def test_rename_takes_copies_and_being_current_along(home: Home) -> None:
    rename(home)
    copies = {copy_path(home, NEW, number).stem: b"copy %d" % number for number in (1, 2)}
    assert saved_in(Path(home.path)) == {**RENAMED, **copies, copy_path(home, "older").stem: b"another's"}
    assert current_name(home, refuse_telling) == NEW
    refuse_traces(home, "old")
    assert os.path.getsize(Place(home, NEW).lock) == 0
    rename(home, "other", "其他")
    assert current_name(home, refuse_telling) == NEW and "其他" in saved_in(Path(home.path))


def test_a_name_that_is_taken_that_is_none_or_that_is_not_there_changes_nothing(home: Home) -> None:
    before = contents(home)
    for old, new, failure in (
        ("old", "other", CannotCreate),
        ("没有", "other", NotFound),
        ("没有", "b", NotFound),
        ("old", "-b", UsageMistake),
        ("old", f"b-recovery-20260101T000000Z-{0:08x}", UsageMistake),
        ("../old", "b", UsageMistake),
    ):
        with pytest.raises(failure):
            rename(home, old, new)
    os.symlink("nowhere", path_in(home, "link"))
    with pytest.raises(CannotCreate, match="exists already"):
        rename(home, "old", "link")
    with pytest.raises(StorageFailed, match="symbolic link"):
        rename(home, "link", "b")
    os.unlink(path_in(home, "link"))
    locks = {path for path in contents(home) if path.endswith(".lock")}
    assert {path: data for path, data in contents(home).items() if path not in locks} == before


@pytest.mark.parametrize("busy", ["old", NEW])
def test_rename_needs_both_names(home: Home, busy: str) -> None:
    with hold(home, busy):
        before = contents(home)
        with pytest.raises(SessionInUse, match=f"the conversation '{busy}' is in use"):
            rename(home)
        after = contents(home)
    other = Place(home, "old" if busy == NEW else NEW).lock
    assert {path: data for path, data in after.items() if path != other} == before
    rename(home)


def test_a_name_becomes_itself(home: Home) -> None:
    before = saved_in(Path(home.path))
    rename(home, "old", "old")
    assert saved_in(Path(home.path)) == before and current_name(home, refuse_telling) == "old"


def test_a_disk_that_knows_no_upper_and_lower_case(home: Home) -> None:
    """Two names of one file, as such a disk has them; here they are two links, of which a rename makes nothing."""
    os.link(path_in(home, "old"), path_in(home, "Old"))
    rename(home, "old", "Old")
    assert current_name(home, refuse_telling) == "Old" and path_in(home, "Old").read_bytes() == OLD
    assert {copy_path(home, "Old", number).read_bytes() for number in (1, 2)} == {b"copy 1", b"copy 2"}
    assert os.path.exists(Place(home, "old").lock)  # it is that of `Old` too
    set_current(home, "old")
    assert delete(home, "Old") is True and current_name(home, refuse_telling) is None


def test_a_rename_that_was_killed_is_ended_by_the_same_command(tmp_path: Path) -> None:
    steps = 0
    for step in range(30):
        home = make(tmp_path / str(step))
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, step)
            with suppress(Killed):
                rename(home)
                steps = step
                break
        there = [name for name in ("old", NEW) if path_in(home, name).exists()]
        assert len(there) == 1 and path_in(home, there[0]).read_bytes() == OLD
        assert current_name(home, refuse_telling) in ("old", NEW)
        assert sorted(data for data in contents(home).values() if data.startswith(b"copy")) == [b"copy 1", b"copy 2"]
        if there == ["old"]:
            rename(home)
        else:
            delete(home)  # a lock alone: the rest is done
        assert current_name(home, refuse_telling) == NEW
        assert {name: saved_in(Path(home.path))[name] for name in RENAMED} == RENAMED
        assert [copy_path(home, NEW, number).read_bytes() for number in (1, 2)] == [b"copy 1", b"copy 2"]
        refuse_traces(home, "old")
    assert steps == 5  # two copies, `current`, the file, the lock


def test_delete_leaves_nothing_of_that_name_but_kept_checkpoints(home: Home) -> None:
    write(Path(home.saved, ".mino-0123456789abcdef-old.tmp"), OLD)
    assert delete(home) is True
    assert saved_in(Path(home.path)) == {**REST, copy_path(home, "older").stem: b"another's"}
    refuse_traces(home, "old")
    assert current_name(home, refuse_telling) is None and not os.path.exists(home.current)
    assert delete(home, "other") is False
    with pytest.raises(NotFound, match="no conversation 'other'"):
        delete(home, "other")


def test_delete_of_another_one_leaves_current_as_it_is(home: Home) -> None:
    assert delete(home, "other") is False
    assert current_name(home, refuse_telling) == "old"


def test_a_conversation_in_use_is_not_deleted(home: Home) -> None:
    with hold(home, "old"):
        before = contents(home)
        with pytest.raises(SessionInUse):
            delete(home)
        assert contents(home) == before
    with hold(home), hold(home, "other"):  # of others
        assert delete(home) is True


def test_a_lock_alone_is_what_a_killed_deletion_left(home: Home) -> None:
    with pytest.raises(NotFound):
        delete(home, "没有")
    assert not os.path.exists(Place(home, "没有").lock)
    write(Path(Place(home, "没有").lock), b"1 mino session\n")
    assert delete(home, "没有") is False
    refuse_traces(home, "没有")
    with pytest.raises(NotFound):
        delete(home, "没有")


def test_a_deletion_that_was_killed_is_ended_by_the_same_command(tmp_path: Path) -> None:
    steps = 0
    for step in range(30):
        home = make(tmp_path / str(step))
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, step)
            with suppress(Killed):
                delete(home)
                steps = step
                break
        # What is current is there, or the unnamed one is: no command is led to a conversation that is gone.
        current = current_name(home, refuse_telling)
        assert current is None or path_in(home, current).read_bytes() == OLD
        # As long as a copy is left, so is the conversation whose name it bears.
        left = [copy for number in (1, 2) if (copy := copy_path(home, "old", number)).exists()]
        assert not left or path_in(home, "old").exists()
        delete(home)
        assert {name: saved_in(Path(home.path))[name] for name in REST} == REST
        refuse_traces(home, "old")
        assert current_name(home, refuse_telling) is None
        lock = lock_shared(Place(home, "old").lock)
        assert lock  # let go
        lock.close()
    assert steps == 5  # `current`, two copies, the file, the lock
