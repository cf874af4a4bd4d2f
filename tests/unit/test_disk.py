"""Files and directories: made private and whole, replaced in one rename, synced; every failure names its path."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mino import disk
from mino.disk import (
    CHUNK,
    TEMPORARY,
    chunks,
    create,
    is_same,
    make_directory,
    open_failure,
    open_regular,
    opened,
    replace,
    sync_directory,
    write_all,
)
from mino.errors import AccessRefused, CannotCreate, MinoError, NotFound, StorageFailed
from mino.text import shell_word
from tests.unit.journal.calls import fail_sync, watch_calls

as_root = os.geteuid() == 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the system, in order."""
    return watch_calls(monkeypatch)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_create_is_private_exclusive_and_synced(tmp_path: Path, calls: list[str]) -> None:
    for mask in (0, 0o777):
        path = tmp_path / f"{mask:o}"
        with umask(mask):
            assert create(str(path), [b"ab", b"", "好".encode()]) == 5
        assert path.read_bytes() == "ab好".encode()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert calls == ["write", "write", "sync", "sync directory"] * 2
    with pytest.raises(CannotCreate, match="File exists"):
        create(str(path), [b"other"])
    assert path.read_bytes() == "ab好".encode()


def test_create_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(CannotCreate):
        create(str(tmp_path / "link"), [b"x"])
    assert not (tmp_path / "target").exists()
    with pytest.raises(CannotCreate, match="No such file"):
        create(str(tmp_path / "missing" / "file"), [b"x"])


def exploding() -> Iterator[bytes]:
    yield b"half"
    raise EOFError


@pytest.mark.parametrize("make", [create, replace])
def test_a_file_that_cannot_be_made_whole_does_not_stay(tmp_path: Path, make: Callable[..., int]) -> None:
    path = tmp_path / "file"
    if make is replace:
        path.write_bytes(b"old")
    with pytest.raises(EOFError):
        make(str(path), exploding())
    assert [other.name for other in tmp_path.iterdir()] == (["file"] if make is replace else [])
    assert make is create or path.read_bytes() == b"old"


@pytest.mark.parametrize("make", ["create", "replace"])
def test_a_file_that_is_too_large_does_not_stay(tmp_path: Path, make: str) -> None:
    """A real limit, in a process of its own: a write is cut short first, and the next one fails."""
    code = (
        "import resource, sys; from mino import disk; from mino.errors import StorageFailed\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"try: disk.{make}(sys.argv[1], [b'x' * 1500])\n"
        "except StorageFailed as failure: print(failure)"
    )
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    path = str(tmp_path / "file")
    run = subprocess.run([sys.executable, "-c", code, path], env=environ, capture_output=True, text=True, check=True)
    assert "cannot write" in run.stdout and "File too large" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_replace_is_one_rename_of_a_synced_file(tmp_path: Path, calls: list[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    assert replace(str(path), [b"new"]) == 3
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert calls == ["write", "sync", "sync directory", "rename", "sync directory"]


def test_a_replace_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file" / "inside").mkdir(parents=True)
    with pytest.raises(StorageFailed, match="cannot replace"):
        replace(str(tmp_path / "file"), [b"new"])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("folder", ["", "文件夹"])
def test_a_replace_that_cannot_begin_names_the_file_and_not_the_temporary_one(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = str(tmp_path / folder / "会话 🙂")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises((CannotCreate, StorageFailed), match=r"cannot (create|write)") as caught:
        replace(path, [b"new"])
    assert f"'{path}'" in caught.value.message and ".mino-" not in caught.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "owner", ["", "检查点 🏕", "a-b.tmp", "-", "a\\b", "名" * 66, "x" * 200 + ".~20260101T000000Z~"]
)
def test_a_temporary_file_ends_in_the_name_of_its_owner(
    tmp_path: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is killed here leaves it, and only the next writer of that conversation may remove it."""
    names: list[str] = []
    rename = os.rename

    def note(source: str, target: str) -> None:
        names.append(os.path.basename(source))
        rename(source, target)

    monkeypatch.setattr(os, "rename", note)
    assert replace(str(tmp_path / "file"), [b"new"], owner) == 3
    [name] = names
    found = TEMPORARY.fullmatch(name)
    assert found and found[1] == owner and len(os.fsencode(name)) <= 255


@pytest.mark.parametrize(
    "name",
    [
        ".mino-0123456789abcdef.tmp",
        ".mino-0123456789ABCDEF-.tmp",
        ".mino-0123456789abcde-.tmp",
        "x.mino-0123456789abcdef-.tmp",
        ".mino-0123456789abcdef-a.tmp~",
        ".mino-0123456789abcdef-a.jsonl",
        ".mino-x",
    ],
)
def test_other_names_are_not_of_temporary_files(name: str) -> None:
    assert not TEMPORARY.fullmatch(name)


def test_a_rename_is_synced_and_its_failure_names_both(tmp_path: Path, calls: list[str]) -> None:
    source, target = tmp_path / "旧", tmp_path / "新 🏕"
    source.write_bytes(b"x")
    disk.rename(str(source), str(target))
    assert target.read_bytes() == b"x" and calls == ["rename", "sync directory"]
    with pytest.raises(StorageFailed, match=f"cannot rename '{source}' to '{target}': No such file"):
        disk.rename(str(source), str(target))


def test_a_file_of_the_working_directory_needs_no_folder_in_its_name(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert create("新", [b"x"]) == replace("新", [b"y"]) == 1
    assert (tmp_path / "新").read_bytes() == b"y" and len(list(tmp_path.iterdir())) == 1
    assert calls.count("sync directory") == 3


def make_link(path: Path) -> None:
    path.symlink_to(path.parent / "target")
    (path.parent / "target").write_bytes(b"")


@pytest.mark.parametrize(
    ("make", "failure", "words"),
    [
        (lambda path: None, NotFound, "does not exist"),
        (make_link, StorageFailed, "is a symbolic link"),
        (Path.mkdir, StorageFailed, "directory|not a regular file"),
        (os.mkfifo, StorageFailed, "not a regular file"),
    ],
)
def test_only_a_regular_file_is_opened(
    tmp_path: Path, make: Callable[[Path], None], failure: type[MinoError], words: str
) -> None:
    path = tmp_path / "it"
    make(path)
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_APPEND):
        with pytest.raises(failure, match=words) as caught:
            open_regular(str(path), flags)
        assert str(path) in caught.value.message


def test_a_link_that_the_user_names_is_followed_on_demand(tmp_path: Path) -> None:
    make_link(tmp_path / "link")
    fd = open_regular(str(tmp_path / "link"), os.O_RDONLY, follow=True)
    assert os.path.samestat(os.fstat(fd), (tmp_path / "target").stat())
    os.close(fd)


@pytest.mark.skipif(as_root, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(AccessRefused, match="Permission denied"):
        open_regular(str(path), os.O_RDONLY)


def test_the_failure_of_an_open_is_of_its_kind() -> None:
    """Most of them cannot be brought about in a test that may run as root."""
    path = "我的 '文件' 😀"
    for code, kind, hint in (
        (errno.ELOOP, StorageFailed, f"ls -l {shell_word(path)}"),
        (errno.EMLINK, StorageFailed, f"ls -l {shell_word(path)}"),
        (errno.ENOENT, NotFound, ""),
        (errno.EACCES, AccessRefused, f"ls -l {shell_word(path)}"),
        (errno.EPERM, AccessRefused, f"ls -l {shell_word(path)}"),
        (errno.EIO, StorageFailed, ""),
    ):
        failure = open_failure(path, OSError(code, os.strerror(code)))
        assert (type(failure), failure.hint) == (kind, hint)
        assert f"'{path}'" in failure.message


def test_a_file_is_open_within_the_block_alone(tmp_path: Path) -> None:
    make_link(tmp_path / "link")
    with pytest.raises(StorageFailed, match="symbolic link"), opened(str(tmp_path / "link")):
        pass
    with pytest.raises(EOFError), opened(str(tmp_path / "link"), follow=True) as fd:
        assert os.path.samestat(os.fstat(fd), (tmp_path / "target").stat())
        assert not os.get_inheritable(fd)
        raise EOFError
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    with opened(str(tmp_path / "target"), os.O_RDWR) as fd:
        assert os.write(fd, b"x") == 1


def test_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    data = "长 😀\n".encode() * CHUNK
    (tmp_path / "file").write_bytes(data)
    with opened(str(tmp_path / "file")) as fd:
        pieces = list(chunks(fd, "file"))
        assert list(chunks(fd, "file")) == []
    assert b"".join(pieces) == data
    assert len(pieces) > 1 and all(0 < len(piece) <= CHUNK for piece in pieces)


def test_reading_a_directory_is_a_failure_with_its_name(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(StorageFailed, match=f"cannot read '{tmp_path}': Is a directory"):
        list(chunks(fd, str(tmp_path)))
    os.close(fd)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EBADF])
def test_a_directory_sync_that_the_system_does_not_know_is_no_error(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(disk, "sync", fail)
    sync_directory(str(tmp_path))
    code = errno.EIO
    with pytest.raises(StorageFailed, match="cannot sync the directory"):
        sync_directory(str(tmp_path))


def test_a_directory_that_cannot_be_opened_for_its_sync_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot sync the directory"):
        sync_directory(str(tmp_path / "missing"))


@pytest.mark.parametrize("code", [0, errno.ENOTSUP, errno.EINVAL, errno.ENOTTY, errno.EIO])
def test_on_macos_a_sync_reaches_the_disk_if_it_can(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def full_sync(fd: int, command: int) -> int:
        seen.append(command)
        if code:
            raise OSError(code, os.strerror(code))
        return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda fd: seen.append("fsync"))
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync(0)
    else:
        disk.sync(0)
    assert seen == ([51] if code in (0, errno.EIO) else [51, "fsync"])


def test_all_is_written_however_little_a_write_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    write_all(write_end, "你好 😀".encode())
    monkeypatch.setattr(os, "write", lambda fd, data: 0)
    with pytest.raises(OSError, match="No space left"):
        write_all(write_end, b"x")
    monkeypatch.undo()
    os.close(write_end)
    assert os.read(read_end, 100) == "你好 😀".encode()
    os.close(read_end)


def test_directories_are_private_whatever_the_umask(tmp_path: Path, calls: list[str]) -> None:
    for mask in (0, 0o077, 0o777):
        path = tmp_path / f"{mask:o}" / "甲" / "b"
        with umask(mask):
            assert make_directory(str(path)) is True
        assert calls == ["sync directory"] * 4  # `tmp_path` is empty, or holds what was made before; then each of three
        assert {stat.S_IMODE(each.stat().st_mode) for each in (path, *path.parents[:2])} == {0o700}
        del calls[:]
        assert make_directory(str(path)) is False
        assert calls == ["sync directory"]  # it is empty: whoever made it may have been killed before its sync
        (path / "used").touch()
        assert make_directory(str(path)) is False
        assert calls == ["sync directory"]


def test_an_empty_directory_may_be_half_of_a_path_that_a_killed_process_made(tmp_path: Path, calls: list[str]) -> None:
    (tmp_path / "a").mkdir()
    assert make_directory(str(tmp_path / "a" / "b")) is True
    assert calls == ["sync directory"] * 2  # of `a` in its parent, and of `b` in `a`


def test_an_entry_that_this_user_cannot_have_made_is_not_synced(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.sync_entry(str(tmp_path))
    assert calls == ["sync directory"]
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # a file system that is read-only, for root too
    disk.sync_entry(str(tmp_path))
    assert calls == ["sync directory"]


def test_a_file_that_somebody_else_made_is_synced_with_its_entry(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    disk.sync_file(str(tmp_path / "a"))
    assert calls == ["sync", "sync directory"]
    monkeypatch.setattr(disk, "sync", fail_sync)
    with pytest.raises(StorageFailed, match=r"cannot sync '.*a': Input/output error"):
        disk.sync_file(str(tmp_path / "a"))


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    for path in ("file", "file/inside", "link"):
        with pytest.raises(CannotCreate, match="cannot create the directory"):
            make_directory(str(tmp_path / path))


def test_a_directory_that_another_process_makes_at_the_same_moment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    mkdir = os.mkdir
    (tmp_path / "used").touch()

    def make_twice(path: str, mode: int) -> None:
        mkdir(path, mode)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", make_twice)
    assert make_directory(str(tmp_path / "家")) is False
    assert (tmp_path / "家").is_dir()
    assert calls == ["sync directory"]  # the other one may be killed before its sync


def test_a_file_that_was_replaced_or_removed_is_not_the_open_one(tmp_path: Path) -> None:
    path = tmp_path / "文件"
    path.write_bytes(b"old")
    with opened(str(path)) as fd:
        assert disk.is_open_as(str(path), fd)
        replace(str(path), [b"new"])
        assert not disk.is_open_as(str(path), fd)
        path.unlink()
        assert not disk.is_open_as(str(path), fd)
    (tmp_path / "target").write_bytes(b"")
    path.symlink_to("target")
    with opened(str(tmp_path / "target")) as fd:
        assert not disk.is_open_as(str(path), fd)  # a lock or a session file is never a link


def test_two_paths_that_lead_to_one_place_are_the_same(tmp_path: Path) -> None:
    place, missing = str(tmp_path / "disk"), str(tmp_path / "missing")
    os.mkdir(place)
    os.symlink(place, tmp_path / "链接")
    assert is_same(place, str(tmp_path / "链接")) and is_same(place, place + "/../disk/")
    assert not is_same(place, str(tmp_path)) and not is_same(place, missing)
    # If one is missing, the spelling decides; a path that no system takes is missing.
    assert is_same(missing, missing) and not is_same(missing, missing + "/")
    assert is_same("a\0b", "a\0b") and not is_same("a\0b", place)
