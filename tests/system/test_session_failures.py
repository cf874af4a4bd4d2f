"""What `mino session` refuses, and what fails: nothing is changed, and the message says what and where."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.homes import completed, make_home, obeys_modes, saved_in, session_of, write
from tests.system.program import CASES, ROOT, Ended, Program, Word, limited

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
OTHER = completed(("Name a colour.", "Blue."))


def mino(home: Path, *words: Word, prefix: Sequence[Word] = ()) -> Ended:
    """Run `mino session` with these words."""
    return Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)}).run("session", *words, prefix=prefix)


@pytest.mark.parametrize(
    ("case", "advice"), [("bad", "mino history recover --salvage --dry-run"), ("newer-version", "update Mino")]
)
def test_an_invalid_conversation_is_not_loaded_and_nothing_changes(tmp_path: Path, case: str, advice: str) -> None:
    broken = b"{]\n" + OTHER if case == "bad" else (CASES / f"{case}.jsonl").read_bytes()
    home = make_home(tmp_path / "home", OLD, broken=broken)

    done = mino(home, "load", "broken")

    assert done.status == 65
    assert f"hint: {advice}" in done.err and f"'{home}/saved/broken.jsonl'" in done.err
    assert session_of(home) == OLD
    assert saved_in(home) == {"broken": broken}
    assert not (home / "current").exists()


@pytest.mark.parametrize("case", ["bad", "unknown-type", "newer-version", "unknown-field"])
@pytest.mark.parametrize("words", [["load", "other"], ["new"]])
def test_a_broken_session_locks_nobody_out_of_another_one(tmp_path: Path, case: str, words: list[str]) -> None:
    """After one record of an unknown type each of these ended in 65, with a hint that helped nobody."""
    broken = b"{]\n" + OLD if case == "bad" else (CASES / f"{case}.jsonl").read_bytes()
    home = make_home(tmp_path / "home", broken, other=OTHER)
    assert mino(home, "load", "没有").status == 66 and session_of(home) == broken
    done = mino(home, *words)
    assert done.status == 0, done.err
    (name,) = set(saved_in(home)) - {"other"}
    assert saved_in(home) == {"other": OTHER, name: broken}
    assert f"it is set aside as '{name}'" in done.err
    assert session_of(home) == (OTHER if words[-1] == "other" else b"")
    assert f"{name}  (invalid: " in mino(home, "list").out


@pytest.mark.parametrize("case", ["bad", "unknown-type"])
def test_a_broken_conversation_is_in_nobodys_way(tmp_path: Path, case: str) -> None:
    broken = b"{]\n" + OLD if case == "bad" else (CASES / f"{case}.jsonl").read_bytes()
    home = make_home(tmp_path / "home", OLD, broken=broken, other=OTHER)
    assert mino(home, "open", "broken").status == 0  # the next command reports what is damaged
    assert mino(home, "save", "x").status == 65
    assert "* " in mino(home, "list").out and "(invalid: " in mino(home, "list").out
    for words in (["load", "other"], ["open", "other"], ["save", "x"], ["new"], ["delete", "broken"]):
        assert mino(home, *words).status == 0, words
    assert "broken" not in saved_in(home) and saved_in(home)["x"] == OTHER


def test_a_broken_session_is_not_saved_and_left_alone(tmp_path: Path) -> None:
    broken = b"{]\n" + OLD
    home = make_home(tmp_path / "home", broken, other=OTHER)
    done = mino(home, "save", "x")
    assert done.status == 65 and "recover --salvage" in done.err
    assert session_of(home) == broken
    assert saved_in(home) == {"other": OTHER}


@pytest.mark.parametrize("words", [["load", "nope"], ["delete", "nope"], ["load", "没有"]])
def test_a_name_that_is_not_there_is_an_ordinary_answer(tmp_path: Path, words: list[str]) -> None:
    home = make_home(tmp_path / "home", OLD)
    done = mino(home, *words)
    assert done.status == 66
    assert done.err == f"mino: there is no conversation '{words[1]}'\nhint: mino session list\n"
    assert session_of(home) == OLD


@pytest.mark.parametrize("name", ["", "../../x", b"\xff", "a\x1b[31m"])
def test_a_bad_name_is_a_usage_mistake_and_makes_no_file(tmp_path: Path, name: str | bytes) -> None:
    home = tmp_path / "home"
    file = write(tmp_path / "file", b"[]")
    for words in (["save"], ["load"], ["open"], ["delete"], ["import", "--from", "messages"]):
        last = [str(file)] if words[0] == "import" else []
        done = mino(home, *words, "--", name, *last)
        assert (done.status, "cannot be the name of a conversation" in done.err) == (2, True)
        assert "\x1b" not in done.err
    assert not home.exists()


def test_a_saved_session_that_is_a_link_is_refused(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, other=OTHER)
    outside = write(tmp_path / "outside.jsonl", OTHER)
    (home / "saved" / "link.jsonl").symlink_to(outside)
    for command in ("load", "save", "delete"):
        done = mino(home, command, "link")
        assert (done.status, "symbolic link" in done.err) == (74, True)
    assert outside.read_bytes() == OTHER
    assert session_of(home) == OLD


def test_a_directory_in_place_of_a_saved_session_is_refused(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    (home / "saved" / "x.jsonl").mkdir(parents=True)
    for command in ("load", "save", "delete"):
        done = mino(home, command, "x")
        assert (done.status, "not a regular file" in done.err) == (74, True)
    assert session_of(home) == OLD


def test_two_session_files_stop_what_means_the_unnamed_conversation(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, x=OTHER)
    write(home / "sessions" / ("f" * 32 + ".jsonl"), OTHER)
    file = write(tmp_path / "file", b'[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]')
    for words in (["new"], ["save", "y"], ["load", "x"], ["list"]):
        done = mino(home, *words)
        assert (done.status, "more than one conversation" in done.err) == (65, True), words
    assert saved_in(home) == {"x": OTHER}
    assert mino(home, "list").out.count("\n") == 3
    for words in (["import", "y", str(file), "--from", "messages"], ["open", "x"], ["save", "z"], ["delete", "y"]):
        assert mino(home, *words).status == 0, words
    assert saved_in(home) == {"x": OTHER, "z": OTHER}


@pytest.mark.parametrize(
    ("name", "busy", "free"),
    [
        ("", [["new"], ["load", "x"]], [["save", "y"], ["open", "x"], ["rename", "x", "z"]]),
        ("x", [["delete", "x"], ["rename", "x", "z"], ["rename", "w", "x"], ["save", "x"]], [["new"], ["load", "x"]]),
    ],
)
def test_a_conversation_that_is_in_use(tmp_path: Path, name: str, busy: list[list[str]], free: list[list[str]]) -> None:
    home = make_home(tmp_path / "home", OLD, x=OTHER, w=OTHER)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(home), name], env={"PYTHONPATH": str(ROOT)}, stdin=-1, stdout=-1, text=True
    )
    assert holder.stdin
    assert holder.stdout
    try:
        assert holder.stdout.readline() == "held\n"
        for words in busy:
            done = mino(home, *words)
            assert (done.status, f"process {holder.pid}" in done.err) == (75, True), words
        assert (session_of(home), saved_in(home)) == (OLD, {"x": OTHER, "w": OTHER})
        assert f"{name or '-'}  (in use) " in mino(home, "list").out
        waiting = time.monotonic()
        assert mino(home, *busy[0], "--wait", "0.3").status == 75
        assert time.monotonic() - waiting >= 0.3
        for words in free:
            assert mino(home, *words).status == 0, words
    finally:
        holder.communicate("", timeout=30)
    assert mino(home, "new").status == 0


_HOLD = """
import sys
from mino.sessions.conversation import lock
from mino.sessions.place import Place
from mino.home import Home
with lock(Place(Home(sys.argv[1], False), sys.argv[2] or None), 0, print):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("words", [["save", "x"], ["load", "big"], ["new"]])
def test_a_full_disk_changes_nothing(tmp_path: Path, words: list[str]) -> None:
    long = completed(("long " * 4000, "answer"))
    home = make_home(tmp_path / "home", long, big=completed(("other " * 4000, "answer")))
    before = session_of(home), saved_in(home)

    done = mino(home, *words, prefix=limited(9000))

    assert done.status == 74
    assert "File too large" in done.err
    assert (session_of(home), saved_in(home)) == before
    assert not list(home.rglob(".mino-*"))


@pytest.mark.skipif(not obeys_modes(), reason="root writes everywhere")
def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, x=OTHER)
    (home / "sessions.lock").touch(0o600)
    (home / "saved").chmod(0o500)
    (home / "sessions").chmod(0o500)
    try:
        for words in (["save", "y"], ["load", "x"], ["new"]):
            assert mino(home, *words).status == 73
        assert mino(home, "delete", "x").status == 74
        assert mino(home, "list").status == 0
    finally:
        (home / "saved").chmod(0o700)
        (home / "sessions").chmod(0o700)
    assert (session_of(home), saved_in(home)) == (OLD, {"x": OTHER})


@pytest.mark.skipif(not obeys_modes(), reason="root reads everything")
def test_a_saved_session_that_may_not_be_read(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, x=OTHER)
    (home / "saved" / "x.jsonl").chmod(0)
    for command in ("load", "save"):
        assert mino(home, command, "x").status == 77
    assert "unreadable" in mino(home, "list").out
    assert mino(home, "new").status == 0
    assert OLD in (path.read_bytes() for path in (home / "saved").glob("auto-*"))
