"""`current`, which names the current conversation: whatever it holds, and how it changes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mino.errors import AccessRefused, StorageFailed
from mino.home import Home
from mino.sessions.place import Place, choose, current_name, find, is_current, set_current
from tests.homes import NAMED, obeys_modes, open_home, path_in, refuse_telling, write
from tests.unit.journal.calls import watch_calls

COPY = "-recovery-20261201T100000Z-01234567"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with no unnamed conversation yet, and a named one."""
    return open_home(tmp_path / "home", None, **{NAMED: b""})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"  \n",
        b"a\nb\n",
        b"a\n\n",
        b"a\r\n",
        b"../sessions\n",
        b"-x\n",
        b"\xff\xfe\n",
        b"\0" * 100,
        "名".encode() * 1_000_000,
        b"x" * 201,
        f"a{COPY}\n".encode(),
        "检查点".encode()[:-1],
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_pointer_that_holds_no_name_is_told_and_counts_as_missing(home: Home, content: bytes) -> None:
    write(Path(home.current), content)
    told: list[str] = []
    assert choose(home, None, told.append) == Place(home, None)
    assert told == [f"'{home.current}' holds no name of a conversation, so that the unnamed one is current"]
    assert not is_current(home, NAMED, told.append)
    assert Path(home.current).read_bytes() == content
    set_current(home, NAMED)
    assert current_name(home, refuse_telling) == NAMED


@pytest.mark.parametrize("name", ["a", " a ", "a.b", "检查点 🏕", "e\u0301", "名" * 66, "a.~20260101T000000Z~"])
@pytest.mark.parametrize("end", ["", "\n"])  # an editor, or `echo`, puts one there; `printf` does not
def test_a_pointer_is_a_name_and_a_newline_at_most(home: Home, name: str, end: str) -> None:
    write(Path(home.current), (name + end).encode())
    assert current_name(home, refuse_telling) == name


def make_link(path: str) -> None:
    write(Path(path + ".target"), NAMED.encode())
    os.symlink(path + ".target", path)


@pytest.mark.parametrize("make", [make_link, os.mkdir, os.mkfifo])
def test_a_pointer_that_is_no_file_is_refused_with_the_way_out(home: Home, make: Callable[[str], None]) -> None:
    make(home.current)
    with pytest.raises(StorageFailed) as caught:
        choose(home, None, refuse_telling)
    assert home.current in caught.value.message and caught.value.hint == "mino session open"
    assert choose(home, NAMED, refuse_telling) == Place(home, NAMED)
    if make is not os.mkdir:
        set_current(home, None)  # what the hint does
        assert not os.path.lexists(home.current) and choose(home, None, refuse_telling) == Place(home, None)
    target = Path(home.current + ".target")
    assert not target.exists() or target.read_bytes() == NAMED.encode()


@pytest.mark.skipif(not obeys_modes(), reason="root may read everything")
def test_a_pointer_that_may_not_be_read_is_not_passed_over(home: Home) -> None:
    set_current(home, NAMED)
    os.chmod(home.current, 0)
    with pytest.raises(AccessRefused) as caught:
        choose(home, None, refuse_telling)
    assert caught.value.hint == "mino session open"


def test_the_pointer_is_private_and_changes_in_one_synced_step(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        set_current(home, "检查点 🏕")
    finally:
        os.umask(before)
    assert Path(home.current).read_bytes() == "检查点 🏕\n".encode()
    assert os.stat(home.current).st_mode & 0o777 == 0o600
    calls = watch_calls(monkeypatch)
    set_current(home, "b")
    assert calls == ["write", "sync", "sync directory", "rename", "sync directory"]
    del calls[:]
    set_current(home, None)
    set_current(home, None)  # who removed it before may have been killed before the sync
    assert calls == ["sync directory"] * 2 and sorted(os.listdir(home.path)) == ["saved", "sessions"]


def test_what_a_killed_switch_left_is_removed_when_it_is_old(home: Home) -> None:
    """It has no lock: one that is new may be that of a switch that is going on."""
    old, new = (write(Path(home.path, f".mino-{digit * 16}-.tmp"), b"") for digit in "ab")
    others = [write(Path(home.path, name), b"") for name in (".mino-x.tmp", "notes.tmp", "SOUL.md")]
    for path in (old, *others):
        os.utime(path, (0, 0))
    set_current(home, NAMED)
    assert not old.exists() and new.exists() and all(each.exists() for each in others)


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "missing"), False)
    assert find(home, None, refuse_telling) == (Place(home, None), None)
    set_current(home, None)
    assert os.listdir(tmp_path) == []


def test_two_spellings_of_one_file_are_one_conversation(home: Home) -> None:
    """As a file system has them that knows no upper and lower case; here they are two links."""
    write(path_in(home, "other"), b"x")
    os.link(path_in(home, "other"), path_in(home, "Other"))
    set_current(home, "Other")
    assert is_current(home, "other", refuse_telling) and is_current(home, "Other", refuse_telling)
    assert not is_current(home, NAMED, refuse_telling)
    set_current(home, None)
    assert not is_current(home, "other", refuse_telling)
