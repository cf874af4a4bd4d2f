"""The open session file: one write a call, synced; whole files made privately, in one rename; every failure told."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mino.errors import AccessRefused, CannotCreate, MinoError, NotThere, StorageFailed
from mino.journal import file, lock
from mino.journal.file import Journal, chunks, create, open_regular, replace, sync_directory, write_all
from tests.unit.journal.sample import FIRST, ITEM, SECOND, load

as_root = os.geteuid() == 0


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    path = str(tmp_path / "session.jsonl")
    create(path, ())
    opened = Journal(path, open_regular(path, os.O_RDWR | os.O_APPEND), 0, 1)
    yield opened
    opened.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the journal asks of the system, in order."""
    seen: list[str] = []

    def note(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            seen.append(name)
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "write", note("write", os.write))
    monkeypatch.setattr(os, "ftruncate", note("cut", os.ftruncate))
    monkeypatch.setattr(os, "rename", note("rename", os.rename))
    monkeypatch.setattr(file, "sync", note("sync", lock.sync))
    return seen


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_a_turn_is_two_writes_each_of_them_synced(journal: Journal, calls: list[str]) -> None:
    journal.begin(FIRST, "你好 😀")
    assert calls == ["write", "sync"]
    journal.complete(FIRST, "巴黎", [ITEM])
    assert calls == ["write", "sync"] * 2
    journal.begin(SECOND, "?")
    journal.end(SECOND, "cancelled")
    assert calls == ["write", "sync"] * 4
    turns, report = load(Path(journal.path).read_bytes())
    assert [turn.status for turn in turns] == ["completed", "cancelled"] and report.state == "clean"
    assert (journal.size, journal.seq) == (report.bytes, report.next_seq)
    assert b"".join(journal.chunks()) == Path(journal.path).read_bytes()


def test_a_cut_is_synced(journal: Journal, calls: list[str]) -> None:
    journal.begin(FIRST, "你好")
    journal.cut(5)
    assert calls == ["write", "sync", "cut", "sync"]
    assert Path(journal.path).stat().st_size == journal.size == 5


def append_all(journal: Journal) -> Iterator[Callable[[], None]]:
    yield lambda: journal.begin(FIRST, "?")
    yield lambda: journal.complete(FIRST, "!", None)
    yield lambda: journal.end(FIRST, "failed")
    yield lambda: journal.cut(0)
    yield lambda: journal.replace([b""])


def test_a_file_that_was_deleted_is_not_made_again(journal: Journal) -> None:
    os.unlink(journal.path)
    for change in append_all(journal):
        with pytest.raises(StorageFailed, match=r"session\.jsonl' is gone: No such file"):
            change()
    assert not Path(journal.path).exists()


def test_a_file_that_was_replaced_is_not_written_to(journal: Journal) -> None:
    Path(journal.path + ".new").write_bytes(b"")
    os.rename(journal.path + ".new", journal.path)
    for change in append_all(journal):
        with pytest.raises(StorageFailed, match="was replaced by another file"):
            change()
    assert Path(journal.path).read_bytes() == b""


def test_a_link_in_the_place_of_the_file_is_not_followed(journal: Journal) -> None:
    os.rename(journal.path, journal.path + ".there")
    os.symlink(journal.path + ".there", journal.path)
    with pytest.raises(StorageFailed, match="replaced"):
        journal.begin(FIRST, "?")


@pytest.mark.parametrize("other", [b"x", b"\n" * 1000])
def test_a_file_that_another_process_wrote_to_is_left_alone(journal: Journal, other: bytes) -> None:
    Path(journal.path).write_bytes(other)
    for change in append_all(journal):
        with pytest.raises(StorageFailed, match=f"changed by another process: it has {len(other)} bytes, expected 0"):
            change()
    assert Path(journal.path).read_bytes() == other


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_is_told_and_nothing_goes_on_after_it() -> None:
    full = Journal("/dev/full", os.open("/dev/full", os.O_WRONLY), 0, 1)
    with pytest.raises(StorageFailed, match="cannot append to '/dev/full': No space left on device"):
        full.begin(FIRST, "?")
    assert (full.size, full.seq) == (0, 1)
    full.close()


def test_a_write_that_is_cut_short_is_a_failure(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(StorageFailed, match="No space left"):
        journal.begin(FIRST, "?")
    monkeypatch.undo()
    with pytest.raises(StorageFailed, match="it has 10 bytes, expected 0"):
        journal.begin(FIRST, "?")


@pytest.mark.parametrize("change", [lambda journal: journal.begin(FIRST, "?"), lambda journal: journal.cut(0)])
def test_a_sync_that_fails_is_a_failure(
    journal: Journal, change: Callable[[Journal], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(file, "sync", fail)
    with pytest.raises(StorageFailed, match=r"cannot .*session\.jsonl': Input/output error"):
        change(journal)


def test_create_is_private_exclusive_and_synced(tmp_path: Path, calls: list[str]) -> None:
    for mask in (0, 0o777):
        path = tmp_path / f"{mask:o}"
        with umask(mask):
            assert create(str(path), [b"ab", b"", "好".encode()]) == 5
        assert path.read_bytes() == "ab好".encode()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert calls == ["write", "write", "sync", "sync"] * 2  # the file, and then the entry of its directory
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
        "import resource, sys; from mino.errors import StorageFailed; from mino.journal import file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"try: file.{make}(sys.argv[1], [b'x' * 1500])\n"
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
    assert calls == ["write", "sync", "sync", "rename", "sync"]


def test_a_replace_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file" / "inside").mkdir(parents=True)
    with pytest.raises(StorageFailed, match="cannot replace"):
        replace(str(tmp_path / "file"), [b"new"])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def make_link(path: Path) -> None:
    path.symlink_to(path.parent / "target")
    (path.parent / "target").write_bytes(b"")


@pytest.mark.parametrize(
    ("make", "failure", "words"),
    [
        (lambda path: None, NotThere, "does not exist"),
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
    os.close(open_regular(str(tmp_path / "link"), os.O_RDONLY, follow=True))


@pytest.mark.skipif(as_root, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(AccessRefused, match="Permission denied"):
        open_regular(str(path), os.O_RDONLY)


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

    monkeypatch.setattr(file, "sync", fail)
    sync_directory(str(tmp_path))
    code = errno.EIO
    with pytest.raises(StorageFailed, match="cannot sync the directory"):
        sync_directory(str(tmp_path))


def test_a_directory_that_cannot_be_opened_for_its_sync_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot sync the directory"):
        sync_directory(str(tmp_path / "missing"))


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
