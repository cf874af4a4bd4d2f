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
    longer = session_of(home)
    assert mino(home, "save", "n").err == "mino: saved 3 turns as 'n'\n"
    assert saved_in(home) == {"n": longer}  # which begins with all that the older one had
    write(home / "sessions" / SESSION, OTHER)

    done = mino(home, "save", "n")

    (older,) = saved_in(home).keys() - {"n"}
    assert re.fullmatch(r"n\.~\d{8}T\d{6}Z~", older)
    assert saved_in(home) == {"n": OTHER, older: longer}
    assert f"kept as '{older}'" in done.err
    assert mino(home, "load", older).status == 0
    assert session_of(home) == longer


def test_two_older_copies_within_one_second_have_two_names(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    for content in (OLD, OTHER, MORE):
        write(home / "sessions" / SESSION, content)
        assert mino(home, "save", "n").status == 0
        os.utime(home / "saved" / "n.jsonl", (10**9, 10**9))
    assert saved_in(home) == {"n": MORE, "n.~20010909T014640Z~": OLD, "n.~20010909T014640Z-2~": OTHER}


def test_open_gets_or_creates_and_copies_nothing(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, other=OTHER)
    for name in ("工作", "other", "工作"):
        assert mino(home, "open", name).err == f"mino: the conversation '{name}' is current\n"
        assert (home / "current").read_text() == f"{name}\n"
        assert (home / "current").stat().st_mode & 0o777 == 0o600
    assert saved_in(home) == {"other": OTHER, "工作": b""}
    assert mino(home, "open").err == "mino: the unnamed conversation is current\n"
    assert not (home / "current").exists()
    assert session_of(home) == OLD


@pytest.mark.parametrize("words", [["new"], ["load", "other"]])
def test_new_and_load_work_on_the_unnamed_conversation(tmp_path: Path, words: list[str]) -> None:
    home = make_home(tmp_path / "home", OLD, work=MORE, other=OTHER)
    mino(home, "open", "work")
    assert mino(home, *words).status == 0
    assert not (home / "current").exists()
    (automatic,) = saved_in(home).keys() - {"work", "other"}
    assert saved_in(home) == {"work": MORE, "other": OTHER, automatic: OLD}
    assert session_of(home) == (b"" if words == ["new"] else OTHER)


def test_save_copies_the_current_conversation(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, work=MORE)
    mino(home, "open", "work")
    assert mino(home, "save", "copy").err == "mino: saved 1 turn as 'copy'\n"
    assert saved_in(home) == {"work": MORE, "copy": MORE}
    done = mino(home, "save", "work")
    assert (done.status, "there is nothing to save" in done.err) == (0, True)
    assert not (home / "saved" / "work.lock").exists()


def test_saving_over_other_content_keeps_it(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, n=OTHER)
    assert "what 'n' held is kept as 'n.~" in mino(home, "save", "n").err
    (older,) = saved_in(home).keys() - {"n"}
    assert saved_in(home) == {"n": OLD, older: OTHER}


def test_rename_takes_recovery_copies_and_being_current_along(tmp_path: Path) -> None:
    copy = "草稿-recovery-20260101T000000Z-0123abcd"
    home = make_home(tmp_path / "home", OLD, 草稿=MORE, **{copy: OTHER}, taken=OTHER)
    mino(home, "open", "草稿")
    assert mino(home, "rename", "草稿", "taken").status == 73
    assert mino(home, "rename", "nope", "x").status == 66
    assert mino(home, "rename", "草稿", "../x").status == 2
    done = mino(home, "rename", "草稿", "终稿 🌱")
    assert (done.status, done.err) == (0, "mino: renamed '草稿' to '终稿 🌱'\n")
    assert saved_in(home) == {"终稿 🌱": MORE, copy.replace("草稿", "终稿 🌱"): OTHER, "taken": OTHER}
    assert (home / "current").read_text() == "终稿 🌱\n"
    assert not (home / "saved" / "草稿.lock").exists()


def test_delete_leaves_nothing_of_the_name(tmp_path: Path) -> None:
    copies = {"work-recovery-20260101T000000Z-0123abcd": OTHER, "work.~20260101T000000Z~": OTHER}
    home = make_home(tmp_path / "home", OLD, work=MORE, workshop=OLD, **copies)
    mino(home, "open", "work")
    done = mino(home, "delete", "work")
    assert (done.status, "the unnamed one is current now" in done.err) == (0, True)
    assert saved_in(home) == {"workshop": OLD, "work.~20260101T000000Z~": OTHER}
    assert not list((home / "saved").glob("*.lock"))
    assert not (home / "current").exists()
    assert mino(home, "delete", "work").status == 66


def test_clean_removes_only_what_mino_kept_by_itself(tmp_path: Path) -> None:
    copies = {
        "auto-20260101T000000Z": OLD,
        "auto-20260101T000000Z-2": OLD,
        "work.~20260101T000000Z~": OLD,
        "work-recovery-20260101T000000Z-0123abcd": OLD,
        "gone-recovery-20260101T000000Z-0123abcd": OLD,
    }
    kept = {"work": MORE, "auto-repair": OLD, "auto-20260102T000000Z": OTHER, "auto-20260103T000000Z": OTHER}
    home = make_home(tmp_path / "home", OLD, **copies, **kept)
    unnamed = write(
        home / "sessions" / f"{SESSION.removesuffix('.jsonl')}-recovery-20260101T000000Z-0123abcd.jsonl", OLD
    )
    for path in (unnamed, *(home / "saved").iterdir()):
        if path.name != "auto-20260102T000000Z.jsonl":  # young
            os.utime(path, (10**9, 10**9))
    mino(home, "open", "auto-20260103T000000Z")
    planned = mino(home, "clean", "--dry-run")
    assert planned.out.count(f": would remove {len(OLD)} bytes\n") == 6 == planned.out.count("\n")
    assert len(saved_in(home)) == 9
    done = mino(home, "clean")
    assert (done.status, done.out) == (0, planned.out.replace("would remove", "removed"))
    assert saved_in(home) == kept and not unnamed.exists()
    assert not (home / "saved" / "gone.lock").exists()
    assert mino(home, "clean", "--older", "0").out.count("\n") == 1  # the young one
    assert mino(home, "clean", "--older", "0").err == "mino: there is no copy older than 0 days\n"


def test_failed_and_cancelled_turns_are_saved_too(tmp_path: Path) -> None:
    content = ended(1, "a" * 32, "failed?", "failed") + ended(3, "b" * 32, "cancelled?", "cancelled")
    home = make_home(tmp_path / "home", content)
    mino(home, "save", "x")
    assert saved_in(home) == {"x": content}


@pytest.mark.parametrize("case", ["open-question", "torn-40-bytes", "torn-write-answer"])
@pytest.mark.parametrize("words", [["save", "x"], ["load", "case"]])
def test_only_ended_turns_are_copied(tmp_path: Path, case: str, words: list[str]) -> None:
    unfinished = (CASES / f"{case}.jsonl").read_bytes()
    home = make_home(tmp_path / "home", unfinished if words[0] == "save" else b"", case=unfinished)
    assert mino(home, *words).status == 0
    copy = saved_in(home)["x"] if words[0] == "save" else session_of(home)
    assert unfinished.startswith(copy) and 0 < len(copy) < len(unfinished)
    assert questions(copy)
    assert saved_in(home)["case"] == unfinished


@pytest.mark.parametrize("name", ["a b", "名" * 66, "x.jsonl"], ids=["space", "198 bytes", "ending"])
def test_a_good_name(tmp_path: Path, name: str) -> None:
    home = make_home(tmp_path / "home", OLD)
    assert mino(home, "save", name).status == 0
    write(home / "sessions" / SESSION, OTHER)
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


@pytest.mark.parametrize("content", [b"", b"\xff\n", b"../x\n", b"a\0b\n", b"x" * 10_000])
def test_what_is_no_name_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    home = make_home(tmp_path / "home", OLD)
    write(home / "current", content)
    done = mino(home, "save", "x")
    assert "holds no name of a conversation, so that the unnamed one is current" in done.err
    assert (done.status, saved_in(home)) == (0, {"x": OLD})


def test_a_current_that_is_a_link_is_refused_and_the_hint_mends_it(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD)
    (home / "current").symlink_to(home / "sessions" / SESSION)
    done = mino(home, "save", "x")
    assert (done.status, done.err.endswith("is a symbolic link\nhint: mino session open\n")) == (74, True)
    assert mino(home, "open").status == 0
    assert (mino(home, "save", "x").status, session_of(home)) == (0, OLD)


def test_a_current_conversation_that_is_missing_is_not_started_unasked(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", OLD, work=MORE)
    mino(home, "open", "work")
    (home / "saved" / "work.jsonl").unlink()
    done = mino(home, "save", "x")
    assert (done.status, saved_in(home)) == (66, {})
    assert "hint: mino session open 'work' starts it anew; mino session open returns to the unnamed one" in done.err
    assert mino(home, "open", "work").status == 0
    assert (mino(home, "save", "x").status, saved_in(home)) == (0, {"work": b"", "x": b""})


def test_an_empty_conversation_needs_no_saving(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", x=OTHER)
    for words in (["load", "x"], ["new"], ["new"]):
        assert mino(home, *words).status == 0
    assert saved_in(home) == {"x": OTHER}


def test_a_saved_session_of_windows_lines_is_loaded(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", b"", crlf=(CASES / "crlf.jsonl").read_bytes())
    assert mino(home, "load", "crlf").status == 0
    assert session_of(home) == (CASES / "crlf.jsonl").read_bytes()
