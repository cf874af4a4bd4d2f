"""A session that another process holds: readers read it and say so on stderr; writers stop, by whatever name it has."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mino.journal.lock import lock_exclusive
from mino.journal.record import encode, user_message
from tests.homes import SESSION, completed, make_home
from tests.system.program import ROOT, Program

WRITING = completed(("Name a colour.", "蓝色 🔵")) + encode(user_message(4, "0193a0b1c2d37000800000000000000b", "再来"))


@contextmanager
def held(home: Path, name: str | None = None) -> Iterator[Program]:
    """The program, which means the conversation of that name, while this process is its writer."""
    environ = {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)} | ({"MINO_SESSION": name} if name else {})
    mino = Program(home, environ, name)
    lock = lock_exclusive(str(mino.lock), 0)
    try:
        yield mino
    finally:
        lock.close()


READERS = [
    ["history", "show"],
    ["history", "show", "--context"],
    ["history", "search", "colour"],
    ["history", "verify"],
    ["history", "verify", "--json"],
    ["history", "export"],
    ["session", "list"],
    ["ask", "--dry-run", "第三个"],
]


def home_of(place: Path, name: str | None, content: bytes) -> Path:
    """A home whose one conversation, called `name` or unnamed, has that content."""
    return make_home(place, content) if name is None else make_home(place, None, **{name: content})


@pytest.mark.parametrize("name", [None, "计划"])
@pytest.mark.parametrize("words", READERS)
def test_a_reader_is_silent_while_nothing_is_unfinished(tmp_path: Path, words: list[str], name: str | None) -> None:
    """A chat that waits at its prompt is no news to every command beside it."""
    home = home_of(tmp_path / "home", name, completed(("Name a colour.", "蓝色 🔵")))
    with held(home, name) as mino:
        ended = mino.run(*words)
    assert ended.status == 0 and ended.out
    has_size = {"--context", "--dry-run"} & {*words}
    assert ended.err == ("mino: the context has 1 turn, 2 items, 200 bytes\n" if has_size else "")


@pytest.mark.parametrize("name", [None, "计划"])
@pytest.mark.parametrize("tail", [b"", b'{"v":1,"seq":5,"ty', b"\0" * 4096])
@pytest.mark.parametrize("words", READERS)
def test_a_reader_says_that_the_session_is_in_use(
    tmp_path: Path, words: list[str], tail: bytes, name: str | None
) -> None:
    home = home_of(tmp_path / "home", name, WRITING + tail)
    with held(home, name) as mino:
        ended = mino.run(*words)
        file = mino.session
    assert ended.status == 0
    assert "mino: the session is in use by another process" in ended.err
    assert ended.out
    assert file.read_bytes() == WRITING + tail


@pytest.mark.parametrize("through", ["link", "disk"])
def test_a_folder_on_another_disk_is_the_same_session(tmp_path: Path, through: str) -> None:
    """`recover *.jsonl` in the folder that `sessions` links to ended the turn that was being answered."""
    home, disk = make_home(tmp_path / "home", None), tmp_path / "other disk"
    os.rename(home / "sessions", disk)
    (home / "sessions").symlink_to(disk)
    file = disk / SESSION
    file.write_bytes(WRITING)
    file.chmod(0o600)
    named = str(file if through == "disk" else home / "sessions" / SESSION)
    with held(home) as mino:
        assert mino.run("history", "verify", named).out.startswith(f"{named}: in-use: ")
        assert mino.run("history", "recover", "--dry-run", named).status == 75
        assert mino.run("history", "recover", named).status == 75
    assert file.read_bytes() == WRITING
    assert mino.run("history", "recover", named).status == 0
    assert b'"interrupted"' in file.read_bytes()
