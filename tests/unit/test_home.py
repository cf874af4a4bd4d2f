"""The paths under MINO_HOME and their modes."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mino.disk import make_directory
from mino.errors import CannotCreate, Misconfigured, UsageMistake
from mino.home import (
    Home,
    find_home,
    find_usable_home,
    make_home,
    narrow,
    wide,
)
from mino.sessions.place import Place
from tests.unit.journal.calls import watch_calls

ID = "0193a0b1c2d370008000000000000001"
as_root = os.geteuid() == 0


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / "home"), is_default=False)
    make_home(made)
    make_directory(made.sessions)
    make_directory(made.saved)
    return made


def test_the_option_beats_the_variable_which_beats_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    environ = {"HOME": str(tmp_path), "MINO_HOME": "/of/variable"}
    assert find_home("of/option", environ) == Home(str(tmp_path / "of" / "option"), False)
    assert find_home(None, environ) == Home("/of/variable", False)
    assert find_home(None, {**environ, "MINO_HOME": ""}) == Home(str(tmp_path / ".mino"), True)
    assert find_home(str(tmp_path / "x" / ".." / ".mino"), environ).is_default


def test_a_tilde_is_the_home_directory_whoever_hands_it_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for named in ("~/x", "~//x/", "~/y/../x"):
        assert find_home(named, {}) == find_home(None, {"MINO_HOME": named}) == Home(str(tmp_path / "x"), False)
    assert find_home("~/.mino", {}).is_default
    assert find_home("./~/x", {}).path == str(tmp_path / "~" / "x")
    assert find_home("x~", {}).path == str(tmp_path / "x~")
    monkeypatch.setenv("HOME", "")
    with pytest.raises(Misconfigured, match="the home directory is unknown"):
        find_home("~/x", {"HOME": ""})


@pytest.mark.parametrize("below", ["", "x", "x/y/z"])
@pytest.mark.parametrize("kind", ["file", "link to a file", "link to nothing"])
def test_what_is_no_directory_is_no_home(tmp_path: Path, kind: str, below: str) -> None:
    place = tmp_path / "会话 🗂"
    if kind == "file":
        place.touch()
    else:
        (tmp_path / "file").touch()
        place.symlink_to(tmp_path / ("file" if kind == "link to a file" else "unmounted"))
    with pytest.raises(CannotCreate) as caught:
        find_home(str(place / below), {})
    assert caught.value.message == f"cannot use the home '{place / below}': '{place}' is not a directory"
    assert str(place) in caught.value.hint
    assert find_usable_home(str(place / below), {}) is None  # a question without history needs none


def test_an_empty_option_is_a_mistake_and_not_the_default() -> None:
    with pytest.raises(UsageMistake, match="--home"):
        find_home("", {"MINO_HOME": "/somewhere"})


def test_without_a_home_directory_there_is_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    with pytest.raises(Misconfigured, match="the home directory is unknown") as caught:
        find_home(None, {"HOME": ""})
    assert "MINO_HOME" in caught.value.hint
    assert find_home("/x", {"HOME": ""}).path == "/x"
    assert find_usable_home(None, {"HOME": ""}) is None


def test_a_home_that_is_not_there_is_not_usable_and_not_made(tmp_path: Path) -> None:
    assert find_usable_home(str(tmp_path / "missing"), {}) is None
    assert find_usable_home(str(tmp_path), {}) == Home(str(tmp_path), False)
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_mino_made_or_the_default_is_narrowed_and_another_is_told(tmp_path: Path) -> None:
    with umask(0):
        assert make_home(Home(str(tmp_path / "made"), False)) == []
    assert mode(tmp_path / "made") == 0o700 and mode(tmp_path / "made" / ".gitignore") == 0o600
    for is_default, after in ((True, 0o700), (False, 0o755)):
        path = tmp_path / str(is_default)
        (path / "sessions").mkdir(parents=True)
        path.chmod(0o755)
        [told] = make_home(Home(str(path), is_default))
        assert mode(path) == after and "0755" in told and str(path) in told
        assert not (path / ".gitignore").exists()


def test_a_home_that_mino_made_is_never_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(str(tmp_path / "made"), False)
    make_home(home)
    ignored = tmp_path / "made" / ".gitignore"
    assert ignored.read_bytes() == b"*\n"
    ignored.unlink()
    make_home(home)  # killed between the two steps
    assert ignored.read_bytes() == b"*\n"
    calls = watch_calls(monkeypatch)
    make_home(home)  # killed before its sync
    assert calls == ["sync", "sync directory", "sync directory"]
    os.mkdir(home.saved)  # a lock in it, or beside `sessions/`, says from now on what is not synced
    make_home(home)
    assert len(calls) == 3
    os.rmdir(home.saved)
    ignored.write_bytes(b"")
    make_home(home)
    assert ignored.read_bytes() == b""  # it is the user's from now on


def test_what_is_wide_is_narrowed_and_told_once(home: Home) -> None:
    session = os.path.join(home.sessions, f"{ID}.jsonl")
    copy = os.path.join(home.sessions, f"{ID}-recovery-20261201T100000Z-01234567.jsonl")
    saved, lock = os.path.join(home.saved, "巴黎.jsonl"), os.path.join(home.saved, "巴黎.lock")
    for file in (session, copy, saved, lock, home.lock, home.current):
        Path(file).touch()
        os.chmod(file, 0o644)
    Path(home.saved, "not Mino's.txt").touch(0o644)
    Path(home.soul).touch(0o644)
    os.chmod(home.sessions, 0o755)
    names = {session, copy, saved, lock, home.lock, home.current, home.sessions}
    assert {path for path, _, _ in wide(home)} == names
    told = narrow(home)
    assert len(told) == len(names) and all(sentence.startswith("narrowed '") for sentence in told)
    assert f"narrowed '{home.sessions}' from mode 0755 to 0700" in told
    assert {mode(path) for path in names - {home.sessions}} == {0o600} and mode(home.sessions) == 0o700
    assert mode(os.path.join(home.saved, "not Mino's.txt")) != 0o600 and mode(home.soul) != 0o600
    assert narrow(home) == [] and list(wide(home)) == []


def test_a_link_is_not_narrowed_through(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    target.chmod(0o644)
    os.symlink(target, os.path.join(home.sessions, f"{ID}.jsonl"))
    narrow(home)
    assert mode(target) == 0o644


def test_directories_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "disk").chmod(0o755)
    (tmp_path / "sessions").symlink_to(tmp_path / "disk")
    home = Home(str(tmp_path), False)
    assert make_directory(home.sessions) is False
    narrow(home)
    assert mode(tmp_path / "disk") == 0o700
    (tmp_path / "disk" / f"{ID}.jsonl").touch()
    assert Place(home, None).find() == os.path.join(home.sessions, f"{ID}.jsonl")


def test_what_cannot_be_narrowed_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file of another owner, or where the file system has no modes."""
    path = os.path.join(home.sessions, f"{ID}.jsonl")
    Path(path).touch()
    os.chmod(path, 0o644)

    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    descriptors = len(os.listdir("/dev/fd"))
    assert narrow(home) == [f"'{path}' has mode 0644, which cannot be narrowed to 0600"]
    assert len(os.listdir("/dev/fd")) == descriptors
    os.mkdir(path + ".default", 0o755)
    assert make_home(Home(path + ".default", True))[0].endswith("others can reach it")
