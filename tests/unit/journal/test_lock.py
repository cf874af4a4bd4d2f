"""One writer or any number of readers, in real processes; and what stands in the way of a lock."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mino.errors import CannotCreate, SessionInUse, StorageFailed
from mino.journal import lock
from mino.journal.lock import lock_exclusive, lock_shared

HOLD = """
import sys
from mino.journal.lock import lock_exclusive, lock_shared
sys.argv = ["/usr/bin/mino", "ask", "a secret question"]
held = {how}({path!r}, *{arguments})
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "sessions.lock")


@contextmanager
def held_elsewhere(path: str, how: str = "lock_exclusive") -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock until this block ends."""
    code = HOLD.format(how=how, path=path, arguments="(0,)" if how == "lock_exclusive" else "()")
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout and process.stdin
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_writer_is_told_at_once_who_holds_the_session(path: str) -> None:
    with held_elsewhere(path) as holder:
        start = time.monotonic()
        with pytest.raises(SessionInUse) as caught:
            lock_exclusive(path, 0)
        assert time.monotonic() - start < 1
        assert caught.value.message == f"the session is in use by process {holder.pid} (mino ask)"
        assert "--wait" in caught.value.hint


def test_a_writer_waits_as_long_as_it_was_told(path: str) -> None:
    with held_elsewhere(path):
        start = time.monotonic()
        with pytest.raises(SessionInUse):
            lock_exclusive(path, 0.3)
        assert 0.3 <= time.monotonic() - start < 5


def test_a_writer_that_waits_gets_the_lock_when_it_is_free(path: str) -> None:
    with held_elsewhere(path) as holder:
        timer = threading.Timer(0.2, holder.kill)
        timer.start()
        lock_exclusive(path, 30).close()
        timer.join()
        assert holder.wait() == -signal.SIGKILL


def test_a_killed_holder_leaves_a_lock_file_and_no_lock(path: str) -> None:
    with held_elsewhere(path) as holder:
        holder.kill()
        holder.wait()
        assert Path(path).read_text() == f"{holder.pid} mino ask\n"
        lock_exclusive(path, 0).close()


@pytest.mark.parametrize("content", [b"", b"\xff\0\n" * 1000, b"1 init\n", "99999 你好\n".encode()])
def test_a_leftover_file_of_any_content_is_no_error(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    os.utime(path, (0, 0))
    held = lock_exclusive(path, 0)
    assert re.fullmatch(rf"{os.getpid()} \S.*\n", Path(path).read_text())
    held.close()
    assert Path(path).exists()


@pytest.mark.parametrize("content", [b"", b"\xff\0\n" * 1000, b"x mino\n", b"12"])
def test_a_holder_that_cannot_be_read_is_another_process(path: str, content: bytes) -> None:
    with held_elsewhere(path):
        Path(path).write_bytes(content)
        with pytest.raises(SessionInUse, match="in use by another process"):
            lock_exclusive(path, 0)


def test_readers_share_and_a_writer_keeps_them_out(path: str) -> None:
    with held_elsewhere(path):
        assert lock_shared(path) is None
    first, second = lock_shared(path), lock_shared(path)
    assert first and second
    first.close()
    second.close()


def test_a_reader_creates_nothing(path: str, tmp_path: Path) -> None:
    reading = lock_shared(path)
    assert reading and list(tmp_path.iterdir()) == []
    reading.close()


def test_a_writer_waits_for_readers_without_being_told_but_not_for_long(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(path).touch()
    with held_elsewhere(path, "lock_shared") as reader:
        timer = threading.Timer(0.2, reader.kill)
        timer.start()
        lock_exclusive(path, 0).close()
        timer.join()
    monkeypatch.setattr(lock, "_READERS_WAIT", 0.2)
    with (
        held_elsewhere(path, "lock_shared"),
        pytest.raises(SessionInUse, match="other processes keep reading the session"),
    ):
        lock_exclusive(path, 0)


def test_a_lock_that_was_deleted_and_made_anew_is_not_taken_for_the_lock(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between open and flock somebody replaces the file: the flock on the old one guards nothing."""
    real = lock._try
    replaced: list[bool] = []

    def replace_first(fd: int, kind: int, name: str) -> bool:
        if not replaced:
            replaced.append(True)
            os.unlink(path)
            Path(path).write_text("new")
        return real(fd, kind, name)

    monkeypatch.setattr(lock, "_try", replace_first)
    held = lock_exclusive(path, 0)
    assert os.path.samestat(os.stat(path), os.fstat(held._fd))
    assert Path(path).read_text().startswith(f"{os.getpid()} ")
    held.close()


def test_the_mode_of_the_lock_holds_whatever_the_umask(path: str) -> None:
    before = os.umask(0o777)
    try:
        held = lock_exclusive(path, 0)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    held.close()


def make_link(path: str) -> None:
    Path(path + ".target").write_text("precious")
    os.symlink(path + ".target", path)


def make_socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


@pytest.mark.parametrize("make", [make_link, os.mkfifo, os.mkdir, make_socket])
def test_a_lock_that_is_no_regular_file_is_refused(
    path: str, make: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(os.path.dirname(path))
    make(os.path.basename(path))  # a short name, for that of a socket may not be long
    with pytest.raises((StorageFailed, CannotCreate), match=re.escape(path)):
        lock_exclusive(path, 0)
    with pytest.raises(StorageFailed, match=re.escape(path)):
        lock_shared(path)
    target = Path(path + ".target")
    assert not target.exists() or target.read_text() == "precious"


def test_a_lock_in_a_directory_that_is_not_there_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(CannotCreate, match="cannot create"):
        lock_exclusive(str(tmp_path / "missing" / "sessions.lock"), 0)


def test_the_lock_of_another_owner_that_can_be_opened_is_held(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    lock_exclusive(path, 0).close()
    if os.geteuid():
        pytest.skip("only root opens a file of this mode, as a group does another owner's")
    os.chmod(path, 0o060)
    monkeypatch.setattr("os.fchmod", refuse)
    held = lock_exclusive(path, 0)
    assert lock_shared(path) is None
    held.close()


def test_a_file_system_without_locks_stops_a_writer_and_no_reader(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, kind: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StorageFailed, match=r"cannot lock .*: No locks available") as caught:
        lock_exclusive(path, 0)
    assert "local disk" in caught.value.hint
    reading = lock_shared(path)
    assert reading
    reading.close()


def test_a_lock_is_not_inherited_by_a_child(path: str) -> None:
    held = lock_exclusive(path, 0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        held.close()
        lock_exclusive(path, 5).close()  # the child closes it a moment after it has let its parent go on
        child.kill()
    assert child.returncode == -signal.SIGKILL
