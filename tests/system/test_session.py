"""`mino session new | save | load | open | delete`, run as a user runs them."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.homes import (
    SESSION,
    completed,
    ended,
    go_on,
    make_home,
    questions,
    saved_in,
    session_of,
    write,
)
from tests.system.program import CASES, ROOT, Ended, Program, Word

OLD = completed(("你好，我是张三", "你好，张三 😀"), ("我叫什么名字？", "你叫张三。"))
OTHER = completed(("Name a colour.", "Blue."))
MORE = completed(("Drifted?", "Yes."))
AUTOMATIC = re.compile(r"auto-\d{8}T\d{6}Z")


def mino(home: Path, *words: Word, prefix: Sequence[Word] = ()) -> Ended:
    """Run `mino session` with these words."""
    return Program(home, {"MINO_HOME": str(home), "PYTHONPATH": str(ROOT)}).run("session", *words, prefix=prefix)


def test_save_drift_load_back_and_branch(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    assert "saved 2 turns as '检查点'" in mino(home, "save", "检查点").err
    assert saved_in(home) == {"检查点": OLD}
    go_on(home, MORE)
    drifted = session_of(home)

    done = mino(home, "load", "检查点")

    assert (done.status, done.out) == (0, "")
    assert session_of(home) == OLD  # replaced, not appended to
    (automatic,) = saved_in(home).keys() - {"检查点"}
    assert AUTOMATIC.fullmatch(automatic)
    assert saved_in(home)[automatic] == drifted
    assert f"saved as '{automatic}'" in done.err
    assert "loaded '检查点': 2 turns" in done.err
    assert mino(home, "load", automatic).status == 0
    assert session_of(home) == drifted
    assert saved_in(home).keys() == {"检查点", automatic}  # what was replaced was held already


def test_the_session_file_keeps_its_name_and_mode(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, other=OTHER)
    for command in (["load", "other"], ["new"], ["open", "other"], ["save", "x"]):
        assert mino(home, *command, prefix=["sh", "-c", 'umask 0; exec "$@"', "sh"]).status == 0
        assert (home / "sessions" / SESSION).stat().st_mode & 0o777 == 0o600
        assert [each.name for each in (home / "sessions").iterdir()] == [SESSION]
    modes = {each.name: each.stat().st_mode & 0o777 for each in [home / "current", *(home / "saved").iterdir()]}
    assert set(modes.values()) == {0o600}, modes
    assert (home / "saved").stat().st_mode & 0o777 == 0o700


def test_saving_twice_keeps_the_older_copy_only_where_it_is_another(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    mino(home, "save", "n")
    assert "holds this conversation already" in mino(home, "save", "n").err
    assert saved_in(home) == {"n": OLD}
    go_on(home, MORE)

    done = mino(home, "save", "n")

    (older,) = saved_in(home).keys() - {"n"}
    assert re.fullmatch(r"n\.~\d{8}T\d{6}Z~", older)
    assert saved_in(home) == {"n": session_of(home), older: OLD}
    assert f"kept as '{older}'" in done.err
    assert mino(home, "load", older).status == 0
    assert session_of(home) == OLD


def test_two_older_copies_within_one_second_have_two_names(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    for content in (OLD, OTHER, MORE):
        write(home / "sessions" / SESSION, content)
        assert mino(home, "save", "n").status == 0
        os.utime(home / "saved" / "n.jsonl", (10**9, 10**9))
    assert saved_in(home) == {"n": MORE, "n.~20010909T014640Z~": OLD, "n.~20010909T014640Z-2~": OTHER}


def test_open_gets_or_creates_and_saves_back(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"")
    assert "started an empty conversation '工作'" in mino(home, "open", "工作").err
    assert (home / "current").read_text() == "工作\n"
    go_on(home, OLD)
    assert mino(home, "open", "other").status == 0
    assert saved_in(home) == {"工作": OLD}
    assert session_of(home) == b""

    done = mino(home, "open", "工作")

    assert "loaded '工作': 2 turns" in done.err
    go_on(home, MORE)
    longer = session_of(home)
    assert "open already: 3 turns" in mino(home, "open", "工作").err
    assert session_of(home) == longer
    assert mino(home, "new").status == 0
    assert saved_in(home) == {"工作": longer}  # the older copy is the beginning of this one: nothing is lost
    assert session_of(home) == b""
    assert not (home / "current").exists()


def test_loading_the_checkpoint_of_the_open_name_leaves_the_checkpoint_alone(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", work=OLD)
    mino(home, "open", "work")
    go_on(home, MORE)
    drifted = session_of(home)

    assert mino(home, "load", "work").status == 0

    assert session_of(home) == OLD
    (older,) = saved_in(home).keys() - {"work"}
    assert saved_in(home) == {"work": OLD, older: drifted}
    assert older.startswith("work.~")
    assert (home / "current").read_text() == "work\n"


def test_load_of_another_name_takes_the_name_away(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", work=OLD, other=OTHER)
    mino(home, "open", "work")
    mino(home, "load", "other")
    go_on(home, MORE)
    mino(home, "new")
    assert saved_in(home)["work"] == OLD
    assert saved_in(home)["other"] == OTHER
    assert len(saved_in(home)) == 3


def test_failed_and_cancelled_turns_are_saved_too(tmp_path: Path) -> None:
    content = ended(1, "a" * 32, "failed?", "failed") + ended(3, "b" * 32, "cancelled?", "cancelled")
    home = make_home(tmp_path / "home", content)
    mino(home, "save", "x")
    assert saved_in(home) == {"x": content}


def test_an_open_turn_is_closed_before_it_is_saved(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", (CASES / "open-question.jsonl").read_bytes())
    done = mino(home, "save", "x")
    assert "as interrupted" in done.err
    assert saved_in(home)["x"] == session_of(home)
    assert len(questions(saved_in(home)["x"])) == 2


@pytest.mark.parametrize("name", ["a b", "名" * 66, "x.jsonl"], ids=["space", "198 bytes", "ending"])
def test_a_good_name(tmp_path: Path, name: str) -> None:
    home = make_home(tmp_path / "home", OLD)
    assert mino(home, "save", name).status == 0
    go_on(home, MORE)
    assert mino(home, "save", name).status == 0
    older = (saved_in(home).keys() - {name}).pop()
    assert mino(home, "load", older).status == 0
    assert mino(home, "delete", older).status == 0
    assert saved_in(home).keys() == {name} | {each for each in saved_in(home) if each.startswith("auto-")}


def test_a_link_among_the_directories_is_followed(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    (home / "saved").symlink_to(disk)
    assert mino(home, "save", "x").status == 0
    assert (disk / "x.jsonl").read_bytes() == OLD


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, a=OTHER, b=MORE)
    command = [sys.executable, "-m", "mino", "--home", str(home), "session", "load", "--wait", "30"]
    both = [subprocess.Popen([*command, name], env={"PYTHONPATH": str(ROOT)}, stderr=-1) for name in "abab"]
    assert [process.communicate(timeout=60) and process.returncode for process in both] == [0, 0, 0, 0]
    assert session_of(home) in (OTHER, MORE)
    assert sorted(saved_in(home).values()) == sorted([OTHER, MORE, OLD])


def test_delete_takes_the_name_from_the_live_conversation(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", work=OLD)
    mino(home, "open", "work")
    done = mino(home, "delete", "work")
    assert done.status == 0
    assert "the live conversation was opened as 'work'; it stays" in done.err
    assert (session_of(home), saved_in(home)) == (OLD, {})
    mino(home, "new")
    assert [AUTOMATIC.fullmatch(name) is not None for name in saved_in(home)] == [True]


@pytest.mark.parametrize("content", [b"", b"\xff\n", b"../x\n", b"a\0b\n", b"x" * 10_000, None])
def test_a_lost_name_loses_only_the_name(tmp_path: Path, content: bytes | None) -> None:
    home = make_home(tmp_path / "home", OLD)
    if content is None:
        (home / "current").symlink_to(home / "sessions" / SESSION)
    else:
        write(home / "current", content)
    assert mino(home, "new").status == 0
    assert [(bool(AUTOMATIC.fullmatch(name)), kept) for name, kept in saved_in(home).items()] == [(True, OLD)]


def test_an_empty_conversation_needs_no_saving(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", x=OTHER)
    for words in (["load", "x"], ["new"], ["new"], ["open", "y"], ["open", "z"]):
        assert mino(home, *words).status == 0
    assert saved_in(home) == {"x": OTHER}


def test_a_saved_session_of_windows_lines_is_loaded(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", crlf=(CASES / "crlf.jsonl").read_bytes())
    assert mino(home, "load", "crlf").status == 0
    assert session_of(home) == (CASES / "crlf.jsonl").read_bytes()
